"""Builds the adapter's jar from its Scala sources, with only a Java runtime and Spark's own jars.

Spark's jars contain the Scala compiler, so a checkout or a wheel that carries the sources is enough. A jar is
built once per state of the sources and version of Spark, and kept in the user's cache. A wheel may carry
ready jars, which are used if their hash matches.

The rule: the name of a jar depends on all of its inputs, so an existing jar is the right jar.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from lakelog.log.errors import InvalidInput, LakelogError, NotFound, install_command
from lakelog.spark.user_cache import made, own, user_cache

PROPERTIES = "lakelog-adapter.properties"
SUPPORTED = ("4.0", "4.1", "4.2", "4.3")

OPTIONS = ("-deprecation", "-feature", "-unchecked", "-Xlint")
# Only in a checkout, because a wheel may meet a later release of Spark, whose new warnings its user cannot
# fix.
STRICT = ("-Werror",)

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1] / "spark"


def supported() -> str:
    """Return the versions of Spark that the adapter runs on, for a sentence: "4.2 or 4.3"."""
    return f"{', '.join(SUPPORTED[:-1])} or {SUPPORTED[-1]}"


def version() -> str:
    """Return lakelog's version, which the jar carries and the bridge compares with the Python package's."""
    return metadata.version("lakelog")


def sources() -> Path:
    """Return the folder of the Scala sources: a wheel's package data, or `catalog/spark` of a checkout."""
    for folder in (_PACKAGE / "scala", _CHECKOUT):
        if (folder / "LakeCatalog.scala").is_file():
            return folder
    raise NotFound(
        "The sources of the Spark adapter are in neither the package nor a checkout. Install lakelog again."
    )


def spark_jars() -> Path:
    """Return the folder with the jars of the Spark that pyspark starts (it honours SPARK_HOME)."""
    try:
        from pyspark.find_spark_home import _find_spark_home
    except ModuleNotFoundError as missing:
        raise NotFound(
            f"pyspark is not installed here. Install it with: {install_command('pyspark', 'spark')}"
        ) from missing
    jars = Path(_find_spark_home()) / "jars"
    if not jars.is_dir():
        raise NotFound(
            f"Spark's jars were not found at {jars}. Check the installation of pyspark, or SPARK_HOME."
        )
    return jars


def spark_version(jars: Path) -> str:
    """Return the version of the Spark whose jars are in `jars`, such as "4.3.0"."""
    for jar in jars.glob("spark-catalyst_2.13-*.jar"):
        return jar.stem.removeprefix("spark-catalyst_2.13-")
    raise NotFound(f"There is no spark-catalyst_2.13 jar in {jars}: install Spark {supported()}.")


def jar_path(*, cache: Path | None = None, jars: Path | None = None) -> Path:
    """Return the path of the adapter's jar for the installed Spark.

    Builds it first if needed (10 to 30 s). Raises InvalidInput if the adapter does not know the Spark, or if
    other users may write to the cache. Raises NotFound without Spark, Java or sources.
    """
    spark = jars or spark_jars()
    name = _jar_name(sources(), spark_version(spark))
    if (packaged_jar := _PACKAGE / "jars" / name).is_file():
        return packaged_jar
    target = (cache or user_cache()) / name
    return own(target) if target.is_file() else _build(sources(), spark, target)


def _jar_name(folder: Path, spark: str) -> str:
    digest = hashlib.sha256(f"{version()} {spark} {' '.join(OPTIONS)}".encode())
    for source in [*scala_files(folder, spark), *resources(folder)]:
        digest.update(f"\n{source.relative_to(folder).as_posix()}\n".encode() + source.read_bytes())
    return f"lakelog-spark-{spark}-{digest.hexdigest()[:16]}.jar"


def minor_of(spark: str) -> str:
    """Return "4.3" for "4.3.0". Raises InvalidInput if the sources do not fit that Spark."""
    minor = ".".join(spark.split(".")[:2])
    if minor not in SUPPORTED:
        raise InvalidInput(f"Spark {spark} is not supported: lakelog's adapter runs on Spark {supported()}.")
    return minor


def scala_files(folder: Path, spark: str) -> list[Path]:
    """Return the sources for a Spark such as "4.3.0", sorted: all in `folder`, without sources for other
    versions of Spark.

    Raises InvalidInput if the sources do not fit that Spark.
    """
    other_folders = [folder / name for name in excluded(folder, spark)]
    return sorted(
        path
        for path in folder.rglob("*.scala")
        if not any(path.is_relative_to(other_folder) for other_folder in other_folders)
    )


def excluded(folder: Path, spark: str) -> list[str]:
    """Return the folders below `folder` whose sources are for other versions of Spark.

    Sources that differ between versions stand in a folder for each version, `versions/4.3`, or for
    consecutive versions, `versions/4.2-4.3`.
    """
    own = minor_of(spark)
    versions = sorted(path.name for path in (folder / "versions").glob("*") if not _is_for(path.name, own))
    return [f"versions/{name}" for name in versions]


def _is_for(folder_name: str, minor: str) -> bool:
    """Return whether the folder of that name in `versions` has sources for a version such as "4.3"."""
    first, _, last = folder_name.partition("-")
    return _numbers(first) <= _numbers(minor) <= _numbers(last or first)


def _numbers(minor: str) -> list[int]:
    return [int(number) for number in minor.split(".")]


def resources(folder: Path) -> list[Path]:
    """Return the files that go into the jar as they are, by which Spark finds its classes."""
    return list(_files(folder / "META-INF"))


def _build(folder: Path, spark: Path, target: Path) -> Path:
    release = spark_version(spark)
    files = [str(source) for source in scala_files(folder, release)]
    strict = STRICT if folder == _CHECKOUT else ()
    print(f"lakelog: building the adapter for Spark {release} (once) …", file=sys.stderr, flush=True)
    try:
        made(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as temporary:
            classes = Path(temporary) / "classes"
            classes.mkdir()
            command = [*compiler(spark), *OPTIONS, *strict]
            compilation = subprocess.run(
                [*command, "-d", str(classes), *files], capture_output=True, text=True, check=False
            )
            if compilation.returncode != 0:
                raise LakelogError(
                    f"The Spark adapter does not compile against {spark}:\n{compilation.stdout}{compilation.stderr}"
                )
            properties = f"version={version()}\nspark={release}\n"
            (classes / PROPERTIES).write_text(properties, encoding="utf-8")
            for resource in resources(folder):
                copy = classes / resource.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(resource, copy)
            ready = Path(temporary) / target.name
            _zip(classes, ready)
            ready.chmod(0o644)
            # Two builds at the same time make the same jar. The last build wins, and no reader sees half a
            # jar.
            os.replace(ready, target)
    except OSError as error:
        raise NotFound(f"Cannot build the Spark adapter at {target}: {error}") from error
    return target


def compiler(spark: Path) -> list[str]:
    """Return the command of the Scala compiler in a folder of Spark's jars. Raises NotFound without Java."""
    return [
        java(),
        # The compiler ends too soon for the JVM's second compiler and its parallel collector to pay.
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xss8m",
        "-cp",
        f"{spark}/*",
        "scala.tools.nsc.Main",
        "-usejavacp",
    ]


def _zip(classes: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files(classes):
            # A fixed time makes the jar's bytes depend on its content only.
            entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), date_time=(2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def java() -> str:
    """Return the program `java` of JAVA_HOME, or on the PATH. Raises NotFound if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise NotFound("Java was not found. Install Java 17 or newer, or set JAVA_HOME.")
    return program
