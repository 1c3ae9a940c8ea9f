"""Keeping tables in shape: how they are, what is due by their policies, and doing it.

Rule: no row changes, no writer fails or waits for it, and nothing expires or is deleted unless a policy of the user's
says how long to keep it. What is done is done by the pieces that do it on request: compaction, expiry, vacuum.
It must not be needed by any reader or writer, and must not know the command or a picture.
"""

from lakelog.catalog.keeping.upkeep.automatic import (
    KeepingUp,
)
from lakelog.catalog.keeping.upkeep.clustering import (
    check_clustered,
    cluster,
    expected_of,
    plan_next,
    ranked,
)
from lakelog.catalog.keeping.upkeep.compacting import (
    Compacted,
)
from lakelog.catalog.keeping.upkeep.expected import (
    ExpectedClustering,
    KeyOverlap,
    overlap_of,
)
from lakelog.catalog.keeping.upkeep.facts import (
    SMALL,
    Done,
    advice_for,
    size_classes,
)
from lakelog.catalog.keeping.upkeep.health import (
    files_of,
    health_in,
    health_of_table,
    subject_of,
)
from lakelog.catalog.keeping.upkeep.maintain import (
    Due,
    Limits,
    Maintained,
    due_in,
    maintain_tables,
)
from lakelog.catalog.keeping.upkeep.model import (
    Advice,
    Health,
    KeyDepth,
    LastDay,
    SizeClass,
)
from lakelog.catalog.keeping.upkeep.spans import (
    KeySpans,
    depths_of,
    keys_of,
)
from lakelog.catalog.keeping.upkeep.statistics import (
    is_counted,
)
from lakelog.catalog.keeping.upkeep.words import (
    command_name,
    size_text,
)

__all__ = [
    "check_clustered",
    "cluster",
    "plan_next",
    "ranked",
    "Advice",
    "Compacted",
    "Done",
    "Due",
    "ExpectedClustering",
    "Health",
    "KeepingUp",
    "KeyDepth",
    "KeyOverlap",
    "KeySpans",
    "LastDay",
    "Limits",
    "Maintained",
    "maintain_tables",
    "SMALL",
    "SizeClass",
    "advice_for",
    "command_name",
    "depths_of",
    "due_in",
    "expected_of",
    "files_of",
    "health_in",
    "health_of_table",
    "is_counted",
    "keys_of",
    "overlap_of",
    "size_classes",
    "size_text",
    "subject_of",
]
