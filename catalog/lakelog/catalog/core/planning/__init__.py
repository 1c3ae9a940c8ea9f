"""Which files a question needs: filters bound to a schema, pruning, top rows, aggregates, partitions.

Rule: pure, and never a guess. "May match" keeps a file that cannot be judged, "must match" refuses it.

It must not know events, logs or stores: it gets metadata and Arrow tables of files, and returns such tables.
"""

from lakelog.catalog.core.files.file_set import Specs
from lakelog.catalog.core.planning.aggregates import Aggregate, aggregate, decided
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import (
    AndCondition,
    Bound,
    ConstantCondition,
    IsTrue,
    terms,
    unknown_parts,
)
from lakelog.catalog.core.planning.file_facts import array_of, partition_values
from lakelog.catalog.core.planning.foreign import handed_down
from lakelog.catalog.core.planning.partitions import (
    Values,
    key_of,
    list_partitions,
    predicate_of,
    renamed_columns,
    with_values,
)
from lakelog.catalog.core.planning.pruning import match, may_fail, may_match
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.planning.scan_plan import left_out_by_partition
from lakelog.catalog.core.planning.top_rows import TopRows
from lakelog.catalog.core.planning.typed_literals import typed

__all__ = [
    "Aggregate",
    "AndCondition",
    "Bound",
    "ConstantCondition",
    "IsTrue",
    "Specs",
    "TopRows",
    "Values",
    "aggregate",
    "array_of",
    "bind",
    "decided",
    "evaluate",
    "handed_down",
    "key_of",
    "left_out_by_partition",
    "list_partitions",
    "match",
    "may_fail",
    "may_match",
    "partition_values",
    "predicate_of",
    "renamed_columns",
    "terms",
    "typed",
    "unknown_parts",
    "with_values",
]
