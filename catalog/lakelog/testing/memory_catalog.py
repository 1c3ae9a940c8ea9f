"""In-memory catalogs of Spark's own tests: the reference for statements on a DataSource V2 catalog.

The catalogs of 4.2 run on 4.3 too.
"""

from pathlib import Path

from lakelog.testing import maven

PACKAGE = "org.apache.spark:spark-catalyst_2.13:4.2.0:tests"

# Tables with rows, namespaces, functions and procedures.
TABLES = "org.apache.spark.sql.connector.catalog.InMemoryCatalog"
# Tables whose rows can be deleted, updated and merged, by partition: they must be partitioned.
ROWS = "org.apache.spark.sql.connector.catalog.InMemoryRowLevelOperationTableCatalog"
# Tables and views as definitions only.
RELATIONS = "org.apache.spark.sql.connector.catalog.InMemoryRelationCatalog"
# Tables with partitions that can be added and dropped.
PARTITIONS = "org.apache.spark.sql.connector.catalog.InMemoryPartitionTableCatalog"


def memory_catalog_jars() -> list[Path]:
    """Return the jar for `spark.jars`, which Maven fetches once. Raises MavenFailed."""
    return maven.jars("spark-catalyst-4.2.0-tests", [PACKAGE], excluded=["*:*"])
