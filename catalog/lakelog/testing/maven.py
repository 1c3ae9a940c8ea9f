"""Jars from Maven Central, which Maven fetches once into the user's cache."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lakelog.log.errors import LakelogError
from lakelog.spark.user_cache import made, own, user_cache


class MavenFailed(LakelogError):
    """Maven is missing, or it could not fetch the jars."""

    kind = "maven-failed"


def has_maven() -> bool:
    return shutil.which("mvn") is not None


def jars(name: str, packages: Sequence[str], excluded: Sequence[str] = ()) -> list[Path]:
    """Return the jars of `packages` and of all that they need, sorted by name.

    A package is group:artifact:version or group:artifact:version:classifier; what is `excluded` is group:artifact, and
    either may be *. They are kept in the cache under `name`, which has to be unique for these packages and versions;
    fetching takes 5 to 15 seconds. Raises MavenFailed; InvalidInput for a cache that other users may write to.
    """
    cache = made(user_cache())
    folder = cache / name
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache, prefix="maven-") as temporary:
            _fetch(Path(temporary), packages, excluded)
            for each in (found := Path(temporary) / "jars", *found.iterdir()):
                each.chmod(each.stat().st_mode & ~0o022)
            try:
                # Renamed when complete: a folder that is there holds all of them.
                found.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return [own(each) for each in sorted(folder.glob("*.jar"))]


def _fetch(folder: Path, packages: Sequence[str], excluded: Sequence[str]) -> None:
    wanted = ", ".join(packages)
    if not has_maven():
        raise MavenFailed(f"Maven is needed to fetch {wanted}: put mvn on the PATH")
    (folder / "pom.xml").write_text(_pom(packages, excluded), encoding="utf-8")
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=jars",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    fetched = {path.name for path in (folder / "jars").glob("*.jar")}
    if done.returncode != 0 or not {_file(package) for package in packages} <= fetched:
        raise MavenFailed(f"Maven could not fetch {wanted}: {(done.stdout + done.stderr).strip()[-2000:]}")


def _file(package: str) -> str:
    _, *rest = package.split(":")
    return "-".join(rest) + ".jar"


def _pom(packages: Sequence[str], excluded: Sequence[str]) -> str:
    exclusions = "".join(_coordinates("exclusion", name) for name in excluded)
    wanted = "".join(
        _coordinates("dependency", package, f"<exclusions>{exclusions}</exclusions>") for package in packages
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lakelog</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _coordinates(tag: str, name: str, rest: str = "") -> str:
    fields = zip(("groupId", "artifactId", "version", "classifier"), name.split(":"), strict=False)
    return f"<{tag}>{''.join(f'<{field}>{value}</{field}>' for field, value in fields)}{rest}</{tag}>"
