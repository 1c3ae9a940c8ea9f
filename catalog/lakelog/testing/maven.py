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
    """Return the jars of `packages` and of all their dependencies, sorted by name.

    A package is group:artifact:version or group:artifact:version:classifier. An `excluded` artifact is
    group:artifact, and either may be *. The jars are cached under `name`, which must be unique for these
    packages and versions. Fetching takes 5 to 15 seconds. Raises MavenFailed, or InvalidInput if other users
    may write to the cache.
    """
    cache = made(user_cache())
    folder = cache / name
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache, prefix="maven-") as temporary_folder:
            _fetch(Path(temporary_folder), packages, excluded)
            for path in (jar_folder := Path(temporary_folder) / "jars", *jar_folder.iterdir()):
                path.chmod(path.stat().st_mode & ~0o022)
            try:
                # It is renamed when complete, so an existing folder has all jars.
                jar_folder.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return [own(path) for path in sorted(folder.glob("*.jar"))]


def _fetch(folder: Path, packages: Sequence[str], excluded: Sequence[str]) -> None:
    package_list = ", ".join(packages)
    if not has_maven():
        raise MavenFailed(f"Maven is needed to fetch {package_list}: put mvn on the PATH")
    (folder / "pom.xml").write_text(_pom(packages, excluded), encoding="utf-8")
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=jars",
    ]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    jar_names = {path.name for path in (folder / "jars").glob("*.jar")}
    if result.returncode != 0 or not {_file(package) for package in packages} <= jar_names:
        raise MavenFailed(
            f"Maven could not fetch {package_list}: {(result.stdout + result.stderr).strip()[-2000:]}"
        )


def _file(package: str) -> str:
    _, *parts = package.split(":")
    return "-".join(parts) + ".jar"


def _pom(packages: Sequence[str], excluded: Sequence[str]) -> str:
    exclusions = "".join(_coordinates("exclusion", name) for name in excluded)
    dependencies = "".join(
        _coordinates("dependency", package, f"<exclusions>{exclusions}</exclusions>") for package in packages
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lakelog</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _coordinates(tag: str, name: str, rest: str = "") -> str:
    fields = zip(("groupId", "artifactId", "version", "classifier"), name.split(":"), strict=False)
    return f"<{tag}>{''.join(f'<{field}>{value}</{field}>' for field, value in fields)}{rest}</{tag}>"
