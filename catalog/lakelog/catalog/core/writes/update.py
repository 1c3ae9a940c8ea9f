"""An update from Python: the rows that match a filter get new values, in one commit.

Values that are expressions are computed by DuckDB, which is not needed if all are plain values. Rule: rows
are found as by a delete, and written as by a merge.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.reading import read_positions
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.generated import refuse_generated
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.computed_rows import ChangedRows, ComputedRows, TargetRows, ValueProjection
from lakelog.catalog.core.writes.merge_clauses import ConstantValue, Value, kept, new_values
from lakelog.catalog.core.writes.merge_source import own_name
from lakelog.catalog.core.writes.sql.engine import SqlEngine, fenced, quoted_name
from lakelog.catalog.core.writes.sql.expressions import TARGET, ExpressionScope
from lakelog.log.errors import InvalidInput


def update(
    head: TableHead, values: Mapping[str, Any], predicate: Predicate, token: Token | None
) -> TableHead:
    """Set columns of the rows that match, and return the newest version.

    Reads the filter's columns in files that may match, and all columns of matching rows. Raises the errors of
    `Table.update`.
    """
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{values!r} are not values by columns: give a dict")
    if not values:
        raise InvalidInput("the update sets no column: name at least one")
    refuse_generated(head.schema, "change these rows by UPDATE in Spark")
    with ExitStack() as stack:
        needs_engine = any(isinstance(value, str) for value in values.values())
        engine = stack.enter_context(SqlEngine.opened()) if needs_engine else None
        new_row_values = kept(
            new_values(engine, values, head.schema, ExpressionScope(target=head.schema, is_bare=True)),
            head.schema,
        )
        log, condition = head.tracked, bind(predicate, head.schema)
        log.transaction.note_rows_read(predicate)
        plan = head.plan_bound(condition)
        plan = plan.filter(pc.greater(plan["rows"], 0))
        open_url = log.log.replay.open_url
        places = dict(read_positions(log.store, log.prefix, plan, head.schema, condition, open_url))
        rows = TargetRows(head, plan, None)
        row_changes = ChangedRows(head, rows, OperationKind.UPDATE, places)
        if places:
            chunks = (
                _plain(head, rows, new_row_values, places)
                if engine is None
                else _computed(engine, head, rows, new_row_values, places)
            )
            row_changes.add_updated(chunks, new_row_values)
        return row_changes.commit(predicate, lambda: None, token)


def _plain(
    head: TableHead, rows: TargetRows, values: Mapping[str, Value], places: Mapping[str, Any]
) -> Generator[ComputedRows]:
    columns, fields = list(values), {field.name: field for field in head.schema.fields}
    for part in rows.at(columns, places):
        count = part.rows.num_rows
        arrays = [
            value.stored(fields[name], count) if isinstance(value, ConstantValue) else part.rows.column(at)
            for at, (name, value) in enumerate(values.items())
        ]
        ids = part.rows.column(part.rows.num_columns - 2)
        yield ComputedRows(pa.table(arrays, names=columns), ids)


def _computed(
    engine: SqlEngine,
    head: TableHead,
    rows: TargetRows,
    values: Mapping[str, Value],
    places: Mapping[str, Any],
) -> Generator[ComputedRows]:
    projection = ValueProjection.of(values, head.schema, pa.schema([]))
    names = [own_name(name, projection.target) for name in ("_file", "_pos", "_id")]
    with engine.stream("target_rows", *rows.stream(projection.target, names, only=places)):
        sql = f"SELECT {TARGET}.{quoted_name(names[2])}{projection.sql} FROM {fenced('target_rows')} AS {TARGET}"
        yield from projection.rows(engine, sql)
