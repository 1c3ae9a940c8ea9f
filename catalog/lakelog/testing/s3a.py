"""The jars with which Spark reads and writes S3: Hadoop's S3A and the parts of AWS's SDK that it uses.

They are 36 jars of 13 MB instead of the SDK's bundle of 600 MB. Maven fetches them once into the user's cache, where
it is there; otherwise Spark is told to fetch them itself at every start, which is slower.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HADOOP = "3.5.0"  # what Spark 4.2 and 4.3 are built with
SDK = "2.35.4"
PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    f"software.amazon.awssdk:s3:{SDK}",
    f"software.amazon.awssdk:s3-transfer-manager:{SDK}",
)
# What Spark has itself, or what is there for clients that S3A does not use.
EXCLUDED = (
    "software.amazon.awssdk:bundle",
    "org.slf4j:slf4j-api",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    "io.netty:*",
)


def s3a_settings() -> dict[str, str]:
    """Return the settings that put S3A on Spark's class path: `spark.jars`, or `spark.jars.packages` without Maven."""
    if shutil.which("mvn") is None:
        return {"spark.jars.packages": ",".join(PACKAGES), "spark.jars.excludes": ",".join(EXCLUDED)}
    return {"spark.jars": ",".join(str(jar) for jar in s3a_jars())}


def s3a_jars() -> list[Path]:
    """Return the jars, which Maven fetches where they are not in the cache yet (about 15 seconds)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakelog"
    folder = cache / f"s3a-{HADOOP}-{SDK}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="s3a-") as temporary:
            _fetch(Path(temporary))
            try:
                # Renamed when complete: a folder that is there holds all of them.
                (Path(temporary) / "jars").rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path) -> None:
    (folder / "pom.xml").write_text(_pom(), encoding="utf-8")
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=jars",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not any((folder / "jars").glob("hadoop-aws-*.jar")):
        raise RuntimeError(
            f"Maven could not fetch the jars of S3A: {(done.stdout + done.stderr).strip()[-2000:]}"
        )


def _pom() -> str:
    excluded = "".join(_coordinates("exclusion", name) for name in EXCLUDED)
    wanted = "".join(
        _coordinates("dependency", package, f"<exclusions>{excluded}</exclusions>") for package in PACKAGES
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lakelog</groupId><artifactId>s3a</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _coordinates(tag: str, name: str, rest: str = "") -> str:
    group, artifact, *version = name.split(":")
    versioned = f"<version>{version[0]}</version>" if version else ""
    return f"<{tag}><groupId>{group}</groupId><artifactId>{artifact}</artifactId>{versioned}{rest}</{tag}>"
