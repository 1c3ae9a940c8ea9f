"""The jars of S3A for tests. Maven fetches them once into the user's cache.

If Maven is missing, Spark itself fetches them at every start, which is slower.
"""

from pathlib import Path

from lakelog.spark.s3a import EXCLUDED, EXCLUDES_KEY, NEWEST_HADOOP, PACKAGES_KEY, hadoop_of_spark, packages
from lakelog.testing import maven


def s3a_settings() -> dict[str, str]:
    """Return the settings that put S3A on Spark's class path: `spark.jars`, or `spark.jars.packages` without Maven."""
    if not maven.has_maven():
        return {PACKAGES_KEY: ",".join(packages(_hadoop())), EXCLUDES_KEY: ",".join(EXCLUDED)}
    return {"spark.jars": ",".join(str(jar) for jar in s3a_jars())}


def s3a_jars() -> list[Path]:
    """Return the jars. Maven fetches them if they are not in the cache yet (about 15 seconds)."""
    *_, sdk = packages(_hadoop())
    return maven.jars(f"s3a-{_hadoop()}-{sdk.rpartition(':')[2]}", list(packages(_hadoop())), EXCLUDED)


def _hadoop() -> str:
    return hadoop_of_spark() or NEWEST_HADOOP
