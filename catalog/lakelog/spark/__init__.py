"""lakelog in Spark: the settings of a session, the adapter's jar, and the Python side of the adapter's bridge.

from lakelog.spark import configure
spark = configure(SparkSession.builder, warehouse="/data/lake").getOrCreate()
spark.sql("CREATE TABLE lake.numbers AS SELECT id FROM range(10)")
"""

from lakelog.spark.audit import Audited, Failed, audit_and_publish
from lakelog.spark.configure import SparkSettings, configure, spark_conf
from lakelog.spark.transaction import transaction

__all__ = [
    "Audited",
    "Failed",
    "SparkSettings",
    "audit_and_publish",
    "configure",
    "spark_conf",
    "transaction",
]
