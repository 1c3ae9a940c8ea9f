"""Choices of callers, by a word or a number, and their defaults.

Signatures and options name these. They lie below all rooms, so that a signature loads no room that acts on
it.
"""

from __future__ import annotations

WAREHOUSE_VARIABLE = "LAKELOG_WAREHOUSE"
"""The environment variable of the warehouse, for the command and `Catalog.from_env`."""

SNAPSHOT = "snapshot"
"""The mode of an import that leaves the source as it is."""

REFUSE, LEAVE, CARRY = "refuse", "leave", "carry"
"""The choices for files outside of the warehouse in a backup or a copy."""

COMPACT, CLUSTER, EXPIRE, VACUUM, STATISTICS = "compact", "cluster", "expire", "vacuum", "statistics"
ACTIONS = (COMPACT, CLUSTER, STATISTICS, EXPIRE, VACUUM)
"""The actions of upkeep, in their order."""

COMMITS_MAX = 1_000
"""So many of the newest commits are read for a table's health by default, with a GET for each."""

CHANGES_MAX = 10_000
"""So many changes are read for a picture by default."""

METADATA_TABLE_NAMES = ("detail", "files", "history", "log", "manifests", "partitions", "refs", "snapshots")
"""The names of the metadata tables of a table, which stand in `looking.audit`; a test compares them."""
