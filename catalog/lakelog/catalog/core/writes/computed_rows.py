"""Rows that a merge or an update changes: read with their places, put together from what was computed, written,
committed.

Rule: a row that is updated keeps its id, and one that is only copied its version too. New values pass the same checks
as those that are appended. Files of a change that does not happen are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs import TableHead, Token
from lakelog.catalog.core.parquet import (
    ID_FIELDS,
    Numbering,
    PlacedRows,
    RowChecks,
    kept_by_commit,
    read_placed_rows,
    written_rows,
)
from lakelog.catalog.core.planning import Bound
from lakelog.catalog.core.schema import (
    COPY_ON_WRITE,
    TARGET_FILE_SIZE,
    WRITE_MODES,
    Predicate,
    Schema,
    identity_fields,
    schema_to_arrow,
    value_of,
)
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.catalog.core.writes.merge_clauses import Constant, Value
from lakelog.catalog.core.writes.prepared_rows import RowChange
from lakelog.catalog.core.writes.row_changes import commit_rows
from lakelog.catalog.core.writes.row_reader import are_among
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type, into_engine, out_of_engine
from lakelog.catalog.core.writes.sql.expressions import SOURCE, SqlExpression
from lakelog.catalog.errors import CommitConflict

if TYPE_CHECKING:
    from pyroaring import BitMap

    Places = Mapping[str, BitMap]

FILE_BYTES_MAX = 32 * 1024 * 1024
BUFFERED_BYTES = 16 * 1024 * 1024
"""Files and row groups are made in memory, two at a time, where DuckDB has its share too: a change makes none much
larger than this."""


COPIED_FILES_AHEAD = 2
"""Of rows that are copied, all columns are in memory, and to write them takes longer than to read them."""

BATCH_ROWS = 32 * 1024
"""Several batches of several files are read ahead: of a narrower reader's size, they would take most of the memory."""


class TargetRows:
    """The live rows of the files of a plan, with their places; files have numbers, which are small in joins."""

    def __init__(self, head: TableHead, plan: pa.Table, predicate: Bound | None) -> None:
        self._head = head
        self._plan = plan
        self._predicate = predicate
        self._paths: list[str] = plan["path"].to_pylist()
        self._numbers = {path: number for number, path in enumerate(self._paths)}

    def stream(
        self, columns: Sequence[str], names: Sequence[str], only: Places | None = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the rows as DuckDB takes them: file, position and id by `names`, then `columns`.

        `only` some rows of some files; without that, row groups that cannot match are left out.
        """
        whole = schema_to_arrow(self._head.schema)
        types = [carried_type(whole.field(name).type) for name in columns]
        own = zip(names, (pa.int32(), pa.int64(), pa.int64()), strict=True)
        schema = pa.schema([*own, *zip(columns, types, strict=True)])

        def batches() -> Iterator[pa.RecordBatch]:
            placed = self.placed(columns, self._predicate) if only is None else self.at(columns, only)
            for each in placed:
                count = len(each.positions)
                arrays = [
                    pa.array(np.full(count, self._numbers[each.path], dtype=np.int32)),
                    pa.array(each.positions),
                    each.rows.column(each.rows.num_columns - 2),
                    *(into_engine(each.rows.column(at), name) for at, name in enumerate(columns)),
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
        """Yield the rows, of all files or of some; `how` is as for `read_placed_rows`."""
        head, plan = self._head, self._plan
        if paths is not None:
            plan = plan.filter(pc.is_in(plan["path"], value_set=pa.array(sorted(paths), pa.string())))
        tracked = head.tracked
        open_url = tracked.log.replay.open_url
        return read_placed_rows(
            tracked.store,
            tracked.prefix,
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
        wanted = {path: np.asarray(each, dtype=np.int64) for path, each in places.items()}
        return self.placed(
            columns,
            paths=places.keys(),
            of=lambda each: _some(each, are_among(each.positions, wanted[each.path])),
        )

    def beside(self, places: Places) -> Iterator[PlacedRows]:
        """Yield the other rows of the files that have rows at `places`, with all columns."""
        columns = [field.name for field in self._head.schema.fields]
        gone = {path: np.asarray(each, dtype=np.int64) for path, each in places.items()}
        return self.placed(
            columns,
            paths=places.keys(),
            of=lambda each: _some(each, ~are_among(each.positions, gone[each.path])),
            files_ahead=COPIED_FILES_AHEAD,
        )

    def positions(self, found: Iterable[pa.RecordBatch]) -> dict[str, BitMap]:
        """Return places by paths, from numbers of files and positions. Rows of one file mostly come together: then it
        costs least. Files are in the order of the plan."""
        from pyroaring import BitMap

        places: dict[str, BitMap] = {}
        for batch in found:
            files, positions = (np.asarray(column) for column in batch.columns)
            order = np.argsort(files, kind="stable")
            files, positions = files[order], positions[order]
            starts = np.concatenate([[0], np.flatnonzero(np.diff(files)) + 1])
            for file, some in zip(files[starts], np.split(positions, starts[1:]), strict=True):
                places.setdefault(self._paths[int(file)], BitMap()).update(some.astype(np.uint32))
        return {path: places[path] for path in self._paths if path in places}


def _some(placed: PlacedRows, mask: np.ndarray) -> PlacedRows:
    if mask.all():
        return placed
    return PlacedRows(placed.path, placed.positions[mask], placed.rows.filter(pa.array(mask)))


@dataclass(frozen=True, slots=True)
class Computed:
    """Rows with the columns that a change sets, by their names, and the ids of those that take the place of others."""

    rows: pa.Table
    ids: pa.Array


@dataclass(frozen=True, slots=True)
class Projection:
    """What a query selects for the values of some columns, and how its result becomes these. `sql` follows the id, and
    `target` are the columns of the table that it needs."""

    values: Mapping[str, Value]
    plain: Mapping[str, pa.DataType]
    sql: str
    target: Sequence[str]

    @staticmethod
    def of(values: Mapping[str, Value], schema: Schema, source: pa.Schema) -> Projection:
        whole = schema_to_arrow(schema)
        computed = {name: value for name, value in values.items() if isinstance(value, SqlExpression)}
        plain = {}
        for name, value in computed.items():
            if value.column is not None:
                side, column = value.column
                type = source.field(column).type if side == SOURCE else whole.field(column).type
                plain[name] = type
        return Projection(
            values,
            plain,
            "".join(f", {value.sql} AS value{at}" for at, value in enumerate(computed.values())),
            sorted({column for value in computed.values() for column in value.target}),
        )

    def rows(self, engine: SqlEngine, sql: str) -> Generator[Computed]:
        """Yield the result of a query that selects an id and what this one says."""
        for batch in engine.rows(sql):
            yield self.of_batch(batch)

    def of_batch(self, batch: pa.RecordBatch) -> Computed:
        columns, taken = [], 1
        for name, value in self.values.items():
            if isinstance(value, Constant):
                columns.append(value.times(batch.num_rows))
                continue
            column = batch.column(taken)
            columns.append(out_of_engine(column, self.plain.get(name, column.type), name))
            taken += 1
        return Computed(pa.table(columns, names=list(self.values)), batch.column(0))


class ChangedRows:
    """One change of rows. Rows at `places` go, or come back as updated ones; others are added.

    What is added is computed when the change is committed, in the order of the calls.
    """

    def __init__(self, head: TableHead, rows: TargetRows, operation: Operation, places: Places) -> None:
        self._head = head
        self._rows = rows
        self._operation = operation
        self._places = places
        self._numbering = Numbering(head.schema, known_taken(head))
        self._parts: list[tuple[Generator[Computed], bool]] = []
        self._inserted = self._updated = 0

    def add_updated(self, rows: Generator[Computed], values: Mapping[str, Value]) -> None:
        self._parts.append((rows, True))
        kept = {
            name for name, value in values.items() if isinstance(value, SqlExpression) and value.is_kept(name)
        }
        self._numbering.note_given(
            field.id for field, _ in identity_fields(self._head.schema) if field.name not in kept
        )

    def add_new(self, rows: Generator[Computed]) -> None:
        self._parts.append((rows, False))

    def commit(
        self, condition: Predicate | None, closer: Callable[[], Predicate | None], token: Token | None
    ) -> TableHead:
        """Write what is added, and commit; return the newest version. Nothing is committed where no row is changed.

        `condition` is true for all rows that were read; `closer` returns one that says more, at a cost, or None: it
        is used where another change is in the way. Raises as `Table.commit_rows`.
        """
        head = self._head
        write = head.begin_write()
        is_copying = value_of(head.metadata.properties, WRITE_MODES[self._operation.word]) == COPY_ON_WRITE
        has_ids = bool(self._places) and (is_copying or any(updated for _, updated in self._parts))
        size = min(FILE_BYTES_MAX, int(value_of(head.metadata.properties, TARGET_FILE_SIZE)))
        with closing(self._written(is_copying=is_copying, has_ids=has_ids)) as rows:
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
            removed=frozenset(self._places if is_copying else ()),
            deletes={} if is_copying else self._places,
            condition=condition,
            values=self._numbering.taken(),
            inserted=None if self._operation is Operation.UPDATE else self._inserted,
            updated=self._updated,
        )
        with kept_by_commit(head.tracked, files):
            try:
                return commit_rows(head, write, change, token)
            except CommitConflict:
                found = closer()
                if found is None:
                    raise
                return commit_rows(head, write, replace(change, condition=found), token)

    def _written(self, *, is_copying: bool, has_ids: bool) -> Generator[pa.Table]:
        if is_copying and self._places:
            yield from (each.rows for each in self._rows.beside(self._places))
        if not self._parts:
            return
        checks = RowChecks(self._head.metadata, self._numbering)
        for part, is_updated in self._parts:
            # What is computed ends before the engine does.
            with closing(part):
                for computed in part:
                    rows = (checks.updated if is_updated else checks.new)(computed.rows)
                    if is_updated:
                        self._updated += rows.num_rows
                    else:
                        self._inserted += rows.num_rows
                    if has_ids:
                        versions = pa.nulls(rows.num_rows, pa.int64())
                        for field, values in zip(ID_FIELDS, (computed.ids, versions), strict=True):
                            rows = rows.append_column(field, values)
                    yield rows
