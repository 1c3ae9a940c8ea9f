"""Upkeep of tables: their health, the work that is due by their policies, and doing it.

Rule: no row changes, and no writer fails or waits for upkeep. Nothing expires or is deleted unless a policy
of the user's says how long to keep it. The same code does the work as on request: compaction, expiry, vacuum.
No reader or writer may depend on this package, and it must not know the command or a picture.
"""

from lakelog.catalog.keeping.upkeep.automatic import KeepingUp
from lakelog.catalog.keeping.upkeep.clustering import check_clustered, cluster, expected_of, plan_next, ranked
from lakelog.catalog.keeping.upkeep.compacting import Compacted
from lakelog.catalog.keeping.upkeep.expected import ExpectedClustering, KeyOverlap, overlap_of
from lakelog.catalog.keeping.upkeep.facts import SMALL, CommitFacts, advice_for, size_classes
from lakelog.catalog.keeping.upkeep.health import files_of, health_in, health_of_table, subject_of
from lakelog.catalog.keeping.upkeep.maintain import (
    DueWork,
    Maintained,
    MaintenanceLimits,
    due_in,
    maintain_tables,
)
from lakelog.catalog.keeping.upkeep.model import Advice, Health, KeyDepth, LastDay, SizeClass
from lakelog.catalog.keeping.upkeep.spans import KeySpans, depths_of, keys_of
from lakelog.catalog.keeping.upkeep.statistics import is_counted
from lakelog.catalog.keeping.upkeep.words import command_name, size_text

__all__ = [
    "Advice",
    "Compacted",
    "CommitFacts",
    "DueWork",
    "ExpectedClustering",
    "Health",
    "KeepingUp",
    "KeyDepth",
    "KeyOverlap",
    "KeySpans",
    "LastDay",
    "MaintenanceLimits",
    "Maintained",
    "SMALL",
    "SizeClass",
    "advice_for",
    "check_clustered",
    "cluster",
    "command_name",
    "depths_of",
    "due_in",
    "expected_of",
    "files_of",
    "health_in",
    "health_of_table",
    "is_counted",
    "keys_of",
    "maintain_tables",
    "overlap_of",
    "plan_next",
    "ranked",
    "size_classes",
    "size_text",
    "subject_of",
]
