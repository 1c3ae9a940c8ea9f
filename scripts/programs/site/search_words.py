"""The order of the site's search results: words that users type, and pages that are for developers.

A page's words are its tags in the search index, which count for more than titles and text. A word leads to guides.
Pages of decisions, code and formats come last, or the search leaves them out.
"""

from __future__ import annotations

WORDS: dict[str, list[str]] = {
    "quick-start.md": ["getting started", "tutorial", "hello world"],
    "install.md": ["pip", "wheel", "setup", "pypi", "maven"],
    "bronze-to-gold.md": ["medallion", "bronze", "silver", "gold", "scd", "slowly changing dimension", "etl"],
    "sql/reading.md": ["time travel", "as of", "snapshot"],
    "erasure.md": ["gdpr", "forget", "right to be forgotten", "personal data", "purge"],
    "merging.md": ["upsert", "merge", "deduplicate"],
    "sql/rows.md": ["upsert", "merge into", "update", "delete"],
    "upkeep.md": ["small files", "compaction", "optimize", "maintenance", "auto compact"],
    "undo.md": ["undo", "undo delete", "restore", "recover", "rollback", "undrop", "undelete"],
    "backup.md": ["disaster recovery", "standby", "replication"],
    "branches.md": ["branch", "tag", "wap", "write audit publish"],
    "sql/changes.md": ["cdc", "change data feed", "change data capture", "incremental"],
    "streaming.md": ["stream", "kafka", "debezium", "exactly once", "checkpoint"],
    "transactions.md": [
        "acid",
        "isolation",
        "conflict",
        "retry",
        "idempotent",
        "concurrent writes",
        "two jobs",
        "same time",
    ],
    "maintenance.md": ["vacuum", "expire", "retention", "orphan files", "fsck"],
    "sql/alter.md": ["schema evolution", "rename column", "add column"],
    "sql/partitions.md": ["partition", "hidden partitioning"],
    "security.md": ["iam", "permissions", "rights", "policy"],
    "encryption.md": ["kms"],
    "clones.md": ["shallow clone", "copy table", "zero copy"],
    "sql/imports.md": ["import", "convert delta", "convert iceberg", "migrate"],
    "migrating.md": ["glue", "hive metastore", "migrate", "uninstall"],
    "iceberg-readers.md": ["duckdb", "trino", "athena", "pyiceberg"],
    "observability.md": ["metrics", "opentelemetry", "monitoring"],
    "pipelines.md": ["sdp", "materialized view"],
    "coming-from-delta.md": ["delta", "delta lake", "from delta", "migrate from delta"],
    "coming-from-iceberg.md": ["from iceberg", "migrate from iceberg"],
    "testing.md": ["pytest", "unit test", "test a job", "fixtures", "moto"],
    "from-python-libraries.md": ["deltatable", "delta-rs", "deltalake", "pyiceberg api"],
    "compared.md": ["iceberg", "delta", "ducklake", "hudi", "versus", "alternatives"],
    "production.md": ["checklist", "go live"],
    "platforms.md": ["databricks", "snowflake", "bigquery"],
    "emr.md": ["emr", "emr serverless", "bootstrap action"],
    "glue.md": ["glue job", "extra-jars", "additional-python-modules"],
    "dataproc.md": ["dataproc", "initialization action"],
    "clusters.md": ["kubernetes", "yarn", "docker"],
    "python.md": ["pandas", "polars", "arrow", "filter"],
}
"""The tags of pages, by their place on the site."""

NOT_SEARCHED = ("design/", "format/", "ARCHITECTURE.md", "CONTRIBUTING.md")
"""Beginnings of pages that the search leaves out, because they are for developers of lakelog."""

LATER = {
    "log/README.md": 0.1,
    "catalog/README.md": 0.1,
    "minimal-reader.md": 0.1,
    "minimal-writer.md": 0.1,
    "CHANGELOG.md": 0.1,
    "benchmarks.md": 0.5,
    "errors.md": 0.5,
}
"""The factor for the score of a page."""


def settings(page: str) -> dict[str, object]:
    """Return the settings for the search in a page's front matter."""
    if page.startswith(NOT_SEARCHED):
        return {"search": {"exclude": True}}
    front_matter: dict[str, object] = {"tags": WORDS[page]} if page in WORDS else {}
    if page in LATER:
        front_matter["search"] = {"boost": LATER[page]}
    return front_matter
