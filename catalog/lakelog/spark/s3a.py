"""Hadoop's S3A, through which Spark reads and writes data files on S3: the packages that have it, and its
settings.

Spark takes packages at the start of its JVM only, and fetches them from Maven Central, or from its cache.
They are 36 jars of 13 MB instead of the 600 MB of the SDK's bundle. The rule: packages that Spark has, and
settings of the user, stay as they are. The user's packages are kept in addition to these.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from lakelog.log.errors import NotFound
from lakelog.spark.jar import spark_jars

# Each Hadoop that a supported Spark is built with, and the SDK that its S3A is built with: 3.5.0 is that of
# Spark 4.2 and 4.3, 3.4.2 that of 4.1, 3.4.1 that of 4.0.
SDKS = {"3.5.0": "2.35.4", "3.4.2": "2.29.52", "3.4.1": "2.24.6"}
NEWEST_HADOOP = "3.5.0"
# Packages that Spark has itself, or that belong to clients that S3A does not use.
EXCLUDED = (
    "software.amazon.awssdk:bundle",
    "org.slf4j:slf4j-api",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    "io.netty:*",
)
PACKAGES_KEY, EXCLUDES_KEY = "spark.jars.packages", "spark.jars.excludes"
S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"

_OF_SPARK = {
    "spark.hadoop.fs.s3.impl": S3A_CLASS,
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
}
"""Spark finds its own files, such as checkpoints, as s3:// too, as S3A finds them as s3a://."""
_OF_BUCKET = {"endpoint": "endpoint", "region": "endpoint.region", "path_style": "path.style.access"}
_PROPERTY = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def packages(hadoop: str = NEWEST_HADOOP) -> tuple[str, ...]:
    """Return the Maven packages of S3A for a Hadoop in `SDKS`."""
    return (
        f"org.apache.hadoop:hadoop-aws:{hadoop}",
        f"software.amazon.awssdk:s3:{SDKS[hadoop]}",
        f"software.amazon.awssdk:s3-transfer-manager:{SDKS[hadoop]}",
    )


def hadoop_of_spark() -> str | None:
    """Return the Hadoop of the installed Spark, or the newest in `SDKS` without Spark.

    Returns None if it is not in `SDKS`.
    """
    try:
        jars = {jar.name for jar in spark_jars().glob("hadoop-client-api-*.jar")}
    except NotFound:
        # The settings are for another machine.
        return NEWEST_HADOOP
    return next((hadoop for hadoop in SDKS if f"hadoop-client-api-{hadoop}.jar" in jars), None)


def s3_settings(warehouse: str, options: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that give Spark S3A for a warehouse on S3 with these options of its catalog.

    None for a folder. `present` are other settings of this Spark. The returned settings extend them, and
    never replace them.
    """
    if not warehouse.startswith("s3://"):
        return {}
    bucket = warehouse.removeprefix("s3://").partition("/")[0]
    of_bucket = {
        f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}": options[option]
        for option, name in _OF_BUCKET.items()
        if option in options
    }
    settings = {key: value for key, value in (_OF_SPARK | of_bucket).items() if key not in present}
    return settings | added_packages("hadoop-aws", packages, EXCLUDED, present)


def packages_line(hadoop: str | None = None) -> str:
    """Return the two settings by which Spark fetches S3A, as options of its programs.

    They fit `hadoop`, or else the installed Spark.
    """
    fitting = packages(hadoop or hadoop_of_spark() or NEWEST_HADOOP)
    return f"--conf {PACKAGES_KEY}={','.join(fitting)} --conf {EXCLUDES_KEY}={','.join(EXCLUDED)}"


def added_packages(
    part: str,
    packages_of: Callable[[str], tuple[str, ...]],
    excluded: tuple[str, ...],
    present: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings by which Spark fetches a connector, in addition to the packages of `present`.

    `part` is a part of the name of the connector's jar. Empty if Spark has the connector, or a Hadoop that the
    packages do not fit. Then the adapter names fitting packages.
    """
    hadoop = hadoop_of_spark()
    if hadoop is None or has_connector(part, present):
        return {}
    package_settings = {PACKAGES_KEY: packages_of(hadoop), EXCLUDES_KEY: excluded}
    return {key: ",".join(_joined(present.get(key, ""), values)) for key, values in package_settings.items()}


def has_connector(part: str, present: Mapping[str, str]) -> bool:
    """Return whether these settings, or Spark's folder of jars, have a jar or package whose name has that part."""
    if any(part in present.get(key, "") for key in ("spark.jars", PACKAGES_KEY)):
        return True
    try:
        return any(spark_jars().glob(f"{part}*.jar"))
    except NotFound:
        return False


def _joined(present: str, values: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys([*filter(None, map(str.strip, present.split(","))), *values]))


def spark_defaults() -> dict[str, str]:
    """Return the settings of the file `spark-defaults.conf` of this Spark.

    Empty without Spark or such a file. A program's setting replaces the setting of this file, so lists have
    to be read here to be kept.
    """
    folder = os.environ.get("SPARK_CONF_DIR")
    try:
        file = (Path(folder) if folder else spark_jars().parent / "conf") / "spark-defaults.conf"
        lines = file.read_text(encoding="utf-8").splitlines()
    except (NotFound, OSError):
        return {}
    return {match[1]: match[2] for line in lines if (match := _PROPERTY.fullmatch(line))}
