"""An update from Python: the rows that match a filter get new values, in one commit.

Values that are expressions are computed by DuckDB; where all are plain values, it is not needed. Rule: rows are found
as a delete finds them, and written as a merge writes them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs import TableHead, Token
from lakelog.catalog.core.parquet import read_positions
from lakelog.catalog.core.planning import bind
from lakelog.catalog.core.schema import Predicate, refuse_generated
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes.computed_rows import ChangedRows, Computed, Projection, TargetRows
from lakelog.catalog.core.writes.merge_clauses import Constant, Value, kept, new_values
from lakelog.catalog.core.writes.merge_source import own_name
from lakelog.catalog.core.writes.sql.engine import SqlEngine, fenced, quoted_name
from lakelog.catalog.core.writes.sql.expressions import TARGET, Scope
from lakelog.log.errors import InvalidInput


def update(
    head: TableHead, values: Mapping[str, Any], predicate: Predicate, token: Token | None
) -> TableHead:
    """Set columns of the rows that match, and return the newest version.

    Reads the columns of the filter in files that may match, and whole those that do. Raises as `Table.update`.
    """
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{values!r} are not values by columns: give a dict")
    if not values:
        raise InvalidInput("the update sets no column: name at least one")
    refuse_generated(head.schema, "change these rows by UPDATE in Spark")
    with ExitStack() as opened:
        needs_engine = any(isinstance(value, str) for value in values.values())
        engine = opened.enter_context(SqlEngine.opened()) if needs_engine else None
        found = kept(
            new_values(engine, values, head.schema, Scope(target=head.schema, is_bare=True)), head.schema
        )
        tracked, bound = head.tracked, bind(predicate, head.schema)
        tracked.transaction.note_rows_read(predicate)
        plan = head.plan_bound(bound)
        plan = plan.filter(pc.greater(plan["rows"], 0))
        open_url = tracked.log.replay.open_url
        places = dict(read_positions(tracked.store, tracked.prefix, plan, head.schema, bound, open_url))
        rows = TargetRows(head, plan, None)
        changed = ChangedRows(head, rows, Operation.UPDATE, places)
        if places:
            computed = (
                _plain(head, rows, found, places)
                if engine is None
                else _computed(engine, head, rows, found, places)
            )
            changed.add_updated(computed, found)
        return changed.commit(predicate, lambda: None, token)


def _plain(
    head: TableHead, rows: TargetRows, values: Mapping[str, Value], places: Mapping[str, Any]
) -> Generator[Computed]:
    columns = list(values)
    for each in rows.at(columns, places):
        count = each.rows.num_rows
        arrays = [
            value.times(count) if isinstance(value, Constant) else each.rows.column(at)
            for at, value in enumerate(values.values())
        ]
        ids = each.rows.column(each.rows.num_columns - 2)
        yield Computed(pa.table(arrays, names=columns), ids)


def _computed(
    engine: SqlEngine,
    head: TableHead,
    rows: TargetRows,
    values: Mapping[str, Value],
    places: Mapping[str, Any],
) -> Generator[Computed]:
    projection = Projection.of(values, head.schema, pa.schema([]))
    names = [own_name(each, projection.target) for each in ("_file", "_pos", "_id")]
    with engine.stream("target_rows", *rows.stream(projection.target, names, only=places)):
        sql = f"SELECT {TARGET}.{quoted_name(names[2])}{projection.sql} FROM {fenced('target_rows')} AS {TARGET}"
        yield from projection.rows(engine, sql)
