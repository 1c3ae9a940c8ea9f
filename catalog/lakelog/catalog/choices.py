"""What callers choose from by a word or a number, and what holds where they say nothing.

Signatures and options name these. They lie below all rooms, so that a signature loads none of those that act on it.
"""

from __future__ import annotations

SNAPSHOT = "snapshot"
"""The mode of an import that leaves the source as it is."""

REFUSE, LEAVE, CARRY = "refuse", "leave", "carry"
"""What becomes of files outside of the warehouse in a backup or a copy."""

COMPACT, CLUSTER, EXPIRE, VACUUM, STATISTICS = "compact", "cluster", "expire", "vacuum", "statistics"
ACTIONS = (COMPACT, CLUSTER, STATISTICS, EXPIRE, VACUUM)
"""What upkeep does, in that order."""

COMMITS_MAX = 1_000
"""So many of the newest commits are read for a table's health by default, one GET each."""

CHANGES_MAX = 10_000
"""So many changes are read for a picture by default."""

METADATA_TABLES = ("detail", "files", "history", "log", "manifests", "partitions", "refs", "snapshots")
"""The names of the metadata tables of a table, which stand in `looking.audit`; a test compares them."""
