"""Lines for a Python side that break what is handed down to scans: each has to be noticed, or the comparison is asleep.

What no query in Python decides is broken where Python says what Scala goes by: how many rows a file has, for a limit;
what a file is called, for columns; which partition it is of, for joins without moving rows.
"""

from __future__ import annotations

from tests.spark.hooks import HOOK

MUTATIONS: dict[str, str] = {
    "filters: a bound is outside of its file": """
from lakelog.catalog.core.planning import pruning
real = pruning._Evaluation._below
pruning._Evaluation._below = lambda self, op, facts, value: real(self, "<", facts, value)
""",
    "filters: NaN is no value": """
from dataclasses import replace
import pyarrow as pa
from lakelog.catalog.core.planning import pruning
real = pruning.facts_of
pruning.facts_of = lambda files, term, specs: replace(
    real(files, term, specs), may_nan=pa.repeat(pa.scalar(False), files.num_rows))
""",
    "filters: a file is of its first bucket": """
import pyarrow.compute as pc
from lakelog.catalog.core.planning import pruning
real = pruning.partition_values
pruning.partition_values = lambda files, field: pc.multiply(real(files, field), 0)
""",
    "limit: deleted rows count": """
import pyarrow.compute as pc
from lakelog.spark.handlers import plans
real = plans.files_in_arrow
def with_deleted(files, *keys):
    if "deleted" not in files.column_names:
        return real(files, *keys)
    rows = pc.add(files["rows"], pc.fill_null(files["deleted"], 0))
    return real(files.set_column(files.column_names.index("rows"), "rows", rows), *keys)
plans.files_in_arrow = with_deleted
""",
    "top-n: each file has enough rows": """
import pyarrow.compute as pc
from lakelog.catalog.core.planning import top_rows
real = top_rows._certain
top_rows._certain = lambda files, term: pc.multiply(real(files, term), 100)
""",
    "aggregates: deleted rows have bounds": """
from lakelog.catalog.core.planning import aggregates
real = aggregates._from_statistics
def whole(files, field, rows):
    names = [name for name in files.column_names if name != aggregates.DELETED]
    return real(files.select(names), field, rows)
aggregates._from_statistics = whole
""",
    "aggregates: of nothing there is no row": """
from lakelog.catalog.core.planning import aggregates
from lakelog.catalog import scan
real = scan.aggregate
scan.aggregate = lambda *given: (found := real(*given)) and (found.slice(0, 0) if found.num_columns == 1 else found)
""",
    "runtime filters: of a list all but one value are forgotten": HOOK
    + """
from dataclasses import replace
from lakelog.catalog.core.planning import pruning
real = pruning._Evaluation._in
pruning._Evaluation._in = lambda self, test, facts: real(self, replace(test, values=test.values[:1]), facts)
""",
    "partitioning: keys are those of other files": """
import pyarrow as pa
from lakelog.spark.handlers import plans
real = plans.files_in_arrow
def turned(files, keys=()):
    values = [key.to_pylist() for key in keys]
    return real(files, [pa.array(some[1:] + some[:1], key.type) for key, some in zip(keys, values)])
plans.files_in_arrow = turned
""",
    "columns: files of others have the table's names": """
from lakelog.spark.handlers import plans
real = plans.files_in_arrow
plans.files_in_arrow = lambda files, *keys: real(
    files.select([name for name in files.column_names if name != "names"]), *keys)
""",
}
