"""In-memory catalogs of Spark's own tests: the reference for statements on a DataSource V2 catalog.

Those of 4.2 run on 4.3 too; older Sparks have their own.
"""

from importlib import metadata
from pathlib import Path

from lakelog.testing import maven

RELEASES = {"4.0": "4.0.1", "4.1": "4.1.1"}

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
    release = RELEASES.get(metadata.version("pyspark")[:3], "4.2.0")
    package = f"org.apache.spark:spark-catalyst_2.13:{release}:tests"
    return maven.jars(f"spark-catalyst-{release}-tests", [package], excluded=["*:*"])
