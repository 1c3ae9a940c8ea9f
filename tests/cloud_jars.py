"""The jars of the connectors for Google Cloud Storage and Azure, for tests. They are fetched into the user's cache."""

from lakelog.spark.cloud_connectors import AZURE_EXCLUDED, azure_packages, google_jar
from lakelog.spark.s3a import NEWEST_HADOOP, hadoop_of_spark
from lakelog.testing import maven


def connector_jars(scheme: str) -> str:
    """Return the jars of a cloud's connector as a list for `spark.jars`. `scheme` is that of its warehouses."""
    if scheme == "gs":
        return str(google_jar())
    hadoop = hadoop_of_spark() or NEWEST_HADOOP
    jars = maven.jars(f"abfs-{hadoop}", list(azure_packages(hadoop)), AZURE_EXCLUDED)
    return ",".join(map(str, jars))
