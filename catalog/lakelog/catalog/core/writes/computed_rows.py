"""Rows that a merge or an update changes: read with their places, completed with computed values, written,
committed.

Rule: an updated row keeps its id, and a row that is only copied keeps its version too. New values pass the
same checks as appended values. Files of a change that does not happen are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.ingest import RowChecks, written_rows
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.parquet.reading import ID_FIELDS, PlacedRows, read_placed_rows
from lakelog.catalog.core.planning.bound import Bound
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.identity import identity_fields
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.properties.known import COPY_ON_WRITE, TARGET_FILE_SIZE, WRITE_MODES
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import Field
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.catalog.core.writes.merge_clauses import ConstantValue, Value
from lakelog.catalog.core.writes.prepared_rows import RowChange
from lakelog.catalog.core.writes.row_changes import commit_rows
from lakelog.catalog.core.writes.row_reader import are_among
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type, into_engine, out_of_engine
from lakelog.catalog.core.writes.sql.expressions import SOURCE, SqlExpression
from lakelog.catalog.core.writes.store_assignment import stored
from lakelog.catalog.errors import CommitConflict

if TYPE_CHECKING:
    from pyroaring import BitMap

    Places = Mapping[str, BitMap]

FILE_BYTES_MAX = 32 * 1024 * 1024
BUFFERED_BYTES = 16 * 1024 * 1024
"""Files and row groups are made in memory, two at a time, beside DuckDB's share of memory. A change makes
none much larger than this."""


COPIED_FILES_AHEAD = 2
"""Copied rows have all columns in memory, and writing them takes longer than reading them."""

BATCH_ROWS = 32 * 1024
"""Several batches of several files are read ahead. Batches of a narrower reader's size would take most of the
memory."""


class TargetRows:
    """The live rows of the files of a plan, with their places. Files have numbers, which are small in
    joins."""

    def __init__(self, head: TableHead, plan: pa.Table, predicate: Bound | None) -> None:
        self._head = head
        self._plan = plan
        self._predicate = predicate
        self._paths: list[str] = plan["path"].to_pylist()
        self._numbers = {path: number for number, path in enumerate(self._paths)}

    def stream(
        self, columns: Sequence[str], names: Sequence[str], only: Places | None = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the rows in DuckDB's form: file, position and id by `names`, then `columns`.

        `only` restricts them to some rows of some files. Without it, row groups that cannot match are left
        out.
        """
        whole = schema_to_arrow(self._head.schema)
        types = [carried_type(whole.field(name).type) for name in columns]
        own = zip(names, (pa.int32(), pa.int64(), pa.int64()), strict=True)
        schema = pa.schema([*own, *zip(columns, types, strict=True)])

        def batches() -> Iterator[pa.RecordBatch]:
            row_parts = self.placed(columns, self._predicate) if only is None else self.at(columns, only)
            for part in row_parts:
                count = len(part.positions)
                arrays = [
                    pa.array(np.full(count, self._numbers[part.path], dtype=np.int32)),
                    pa.array(part.positions),
                    part.rows.column(part.rows.num_columns - 2),
                    *(into_engine(part.rows.column(at), name) for at, name in enumerate(columns)),
                ]
                yield from pa.table(arrays, schema=schema).to_batches()

        return schema, batches()

    def placed(
        self,
        columns: Sequence[str],
        predicate: Bound | None = None,
        paths: Collection[str] | None = None,
        **how: Any,
    ) -> Iterator[PlacedRows]:
        """Yield the rows, of all files or of some. `how` has further arguments of `read_placed_rows`."""
        head, plan = self._head, self._plan
        if paths is not None:
            plan = plan.filter(pc.is_in(plan["path"], value_set=pa.array(sorted(paths), pa.string())))
        log = head.tracked
        open_url = log.log.replay.open_url
        return read_placed_rows(
            log.store,
            log.prefix,
            plan,
            head.schema,
            columns,
            open_url,
            predicate=predicate,
            batch_rows=BATCH_ROWS,
            **how,
        )

    def at(self, columns: Sequence[str], places: Places) -> Iterator[PlacedRows]:
        """Yield the rows at `places`."""
        positions = {path: np.asarray(bitmap, dtype=np.int64) for path, bitmap in places.items()}
        return self.placed(
            columns,
            paths=places.keys(),
            of=lambda each: _some(each, are_among(each.positions, positions[each.path])),
        )

    def beside(self, places: Places) -> Iterator[PlacedRows]:
        """Yield the other rows of the files that have rows at `places`, with all columns."""
        columns = [field.name for field in self._head.schema.fields]
        excluded_positions = {path: np.asarray(bitmap, dtype=np.int64) for path, bitmap in places.items()}
        return self.placed(
            columns,
            paths=places.keys(),
            of=lambda each: _some(each, ~are_among(each.positions, excluded_positions[each.path])),
            files_ahead=COPIED_FILES_AHEAD,
        )

    def positions(self, batches: Iterable[pa.RecordBatch]) -> dict[str, BitMap]:
        """Return places by paths, from file numbers and positions.

        It costs least if the rows of each file mostly arrive together. Files are in the order of the plan.
        """
        from pyroaring import BitMap

        places: dict[str, BitMap] = {}
        for batch in batches:
            files, positions = (np.asarray(column) for column in batch.columns)
            order = np.argsort(files, kind="stable")
            files, positions = files[order], positions[order]
            starts = np.concatenate([[0], np.flatnonzero(np.diff(files)) + 1])
            for file, file_positions in zip(files[starts], np.split(positions, starts[1:]), strict=True):
                places.setdefault(self._paths[int(file)], BitMap()).update(file_positions.astype(np.uint32))
        return {path: places[path] for path in self._paths if path in places}


def _some(placed_rows: PlacedRows, mask: np.ndarray) -> PlacedRows:
    if mask.all():
        return placed_rows
    return PlacedRows(placed_rows.path, placed_rows.positions[mask], placed_rows.rows.filter(pa.array(mask)))


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """Rows with the columns that a change sets, by name. `ids` are the ids of rows that they replace."""

    rows: pa.Table
    ids: pa.Array


@dataclass(frozen=True, slots=True)
class ValueProjection:
    """The part of a query that selects the values of some columns, and the conversion of its result.

    In the query, `sql` follows the id. `target` are the table's columns that it needs.
    """

    values: Mapping[str, Value]
    fields: Mapping[str, Field]
    plain: Mapping[str, pa.DataType]
    sql: str
    target: Sequence[str]

    @staticmethod
    def of(values: Mapping[str, Value], schema: Schema, source: pa.Schema) -> ValueProjection:
        whole = schema_to_arrow(schema)
        expressions = {name: value for name, value in values.items() if isinstance(value, SqlExpression)}
        plain = {}
        for name, value in expressions.items():
            if value.column is not None:
                side, column = value.column
                type = source.field(column).type if side == SOURCE else whole.field(column).type
                plain[name] = type
        return ValueProjection(
            values,
            {field.name: field for field in schema.fields},
            plain,
            "".join(f", {value.sql} AS value{at}" for at, value in enumerate(expressions.values())),
            sorted({column for value in expressions.values() for column in value.target}),
        )

    def rows(self, engine: SqlEngine, sql: str) -> Generator[ComputedRows]:
        """Yield the result of a query that selects an id and this projection."""
        for batch in engine.rows(sql):
            yield self.of_batch(batch)

    def of_batch(self, batch: pa.RecordBatch) -> ComputedRows:
        columns, position = [], 1
        for name, value in self.values.items():
            field = self.fields[name]
            if isinstance(value, ConstantValue):
                columns.append(value.stored(field, batch.num_rows))
                continue
            column = batch.column(position)
            column = out_of_engine(column, self.plain.get(name, column.type), name)
            columns.append(stored(column, field) if value.is_assigned else column)
            position += 1
        return ComputedRows(pa.table(columns, names=list(self.values)), batch.column(0))


class ChangedRows:
    """A change of rows. Rows at `places` are deleted, or come back as updated rows. Other rows are added.

    Added rows are computed when the change is committed, in the order of the calls.
    """

    def __init__(self, head: TableHead, rows: TargetRows, operation: OperationKind, places: Places) -> None:
        self._head = head
        self._rows = rows
        self._operation = operation
        self._places = places
        self._numbering = IdentityNumbering(head.schema, known_taken(head))
        self._parts: list[tuple[Generator[ComputedRows], bool]] = []
        self._inserted = self._updated = 0

    def add_updated(self, rows: Generator[ComputedRows], values: Mapping[str, Value]) -> None:
        self._parts.append((rows, True))
        unchanged_names = {
            name for name, value in values.items() if isinstance(value, SqlExpression) and value.is_kept(name)
        }
        self._numbering.note_given(
            field.id for field, _ in identity_fields(self._head.schema) if field.name not in unchanged_names
        )

    def add_new(self, rows: Generator[ComputedRows]) -> None:
        self._parts.append((rows, False))

    def commit(
        self, condition: Predicate | None, closer: Callable[[], Predicate | None], token: Token | None
    ) -> TableHead:
        """Write the added rows and commit. Return the newest version. Nothing is committed if no row is
        changed.

        `condition` is true for all rows that were read. `closer` returns a more exact condition, at a cost,
        or None. It is used if another change is in the way. Raises the errors of `engine.commit_rows`.
        """
        head = self._head
        write = head.begin_write()
        copies_rows = WRITE_MODES[self._operation.word].of(head.metadata.properties) == COPY_ON_WRITE
        has_ids = bool(self._places) and (copies_rows or any(is_update for _, is_update in self._parts))
        size = min(FILE_BYTES_MAX, TARGET_FILE_SIZE.of(head.metadata.properties))
        with closing(self._written(is_copying=copies_rows, has_ids=has_ids)) as rows:
            files = written_rows(
                head.tracked,
                head.metadata,
                write,
                rows,
                row_ids=has_ids,
                target_size_bytes=size,
                buffered_bytes=BUFFERED_BYTES,
            )
        change = RowChange(
            operation=self._operation,
            files=files,
            removed=frozenset(self._places if copies_rows else ()),
            deletes={} if copies_rows else self._places,
            condition=condition,
            values=self._numbering.taken(),
            inserted=None if self._operation is OperationKind.UPDATE else self._inserted,
            updated=self._updated,
        )
        with kept_by_commit(head.tracked, files):
            try:
                return commit_rows(head, write, change, token)
            except CommitConflict:
                closer_condition = closer()
                if closer_condition is None:
                    raise
                return commit_rows(head, write, replace(change, condition=closer_condition), token)

    def _written(self, *, is_copying: bool, has_ids: bool) -> Generator[pa.Table]:
        if is_copying and self._places:
            yield from (part_rows.rows for part_rows in self._rows.beside(self._places))
        if not self._parts:
            return
        checks = RowChecks(self._head.metadata, self._numbering)
        for part, is_update in self._parts:
            # The computation ends before the engine does.
            with closing(part):
                for chunk in part:
                    rows = (checks.updated if is_update else checks.new)(chunk.rows)
                    if is_update:
                        self._updated += rows.num_rows
                    else:
                        self._inserted += rows.num_rows
                    if has_ids:
                        versions = pa.nulls(rows.num_rows, pa.int64())
                        for field, values in zip(ID_FIELDS, (chunk.ids, versions), strict=True):
                            rows = rows.append_column(field, values)
                    yield rows
