"""The jars with which Spark reads and writes S3: Hadoop's S3A and the parts of AWS's SDK that it uses.

They are 36 jars of 13 MB instead of the SDK's bundle of 600 MB. Maven fetches them once into the user's cache, where
it is there; otherwise Spark fetches them itself at every start, which is slower.
"""

from pathlib import Path

from lakelog.testing import maven

HADOOP = "3.5.0"  # what Spark 4.2 and 4.3 are built with
SDK = "2.35.4"
PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    f"software.amazon.awssdk:s3:{SDK}",
    f"software.amazon.awssdk:s3-transfer-manager:{SDK}",
)
# What Spark has itself, or what belongs to clients that S3A does not use.
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
    if not maven.has_maven():
        return {"spark.jars.packages": ",".join(PACKAGES), "spark.jars.excludes": ",".join(EXCLUDED)}
    return {"spark.jars": ",".join(str(jar) for jar in s3a_jars())}


def s3a_jars() -> list[Path]:
    """Return the jars, which Maven fetches where they are not in the cache yet (about 15 seconds)."""
    return maven.jars(f"s3a-{HADOOP}-{SDK}", PACKAGES, EXCLUDED)
