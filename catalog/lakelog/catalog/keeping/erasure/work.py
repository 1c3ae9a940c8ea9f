"""How an erasure reads and writes rows: in this process, or by an engine.

An engine has an `ErasureWork` of its own, whose jobs do any of this work. Work that it cannot do stays with
this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog.core.files import (
    DELETED,
    DELETES,
    FIRST_ROW,
    DataFile,
    joined,
    physical_rows,
)
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.parquet import (
    kept_by_commit,
    live_rows,
    read_placed_rows,
    read_positions,
    written_rows,
)
from lakelog.catalog.core.planning import Bound, IsTrue, evaluate, terms
from lakelog.catalog.core.schema import Predicate, Schema
from lakelog.catalog.core.state import OperationKind
from lakelog.catalog.core.writes import RowChange, commit_rows
from lakelog.log import WriteRef
from lakelog.log.errors import FormatError, LakelogError

NumberArray: TypeAlias = npt.NDArray[np.int64]


class ErasureWork:
    """Reads and writes in this process, file by file."""

    def rewrite(
        self, line: TableHead, paths: Sequence[str], bound_condition: Bound, predicate: Predicate
    ) -> None:
        """Rewrite these files of a line without the matching rows, and commit that.

        Raises CommitConflict if other writers change their rows.
        """
        write = line.begin_write()
        files = joined(line.files_named(paths))
        rows = live_rows(line, files, lambda: None, bound_condition)
        self._written(line, write, files, rows, predicate)

    def rewrite_without(
        self, line: TableHead, paths: Sequence[str], ids: NumberArray, predicate: Predicate | None
    ) -> None:
        """Rewrite these files of a line without the rows that have these ids, and commit that.

        Raises CommitConflict as `rewrite` does; without a condition, also if other writers brought in rows.
        """
        write = line.begin_write()
        files = joined(line.files_named(paths))
        rows = (
            batch.filter(pc.invert(is_among(batch.column(batch.num_columns - 2), ids)))
            for batch in live_rows(line, files, lambda: None)
        )
        self._written(line, write, files, rows, predicate)

    def _written(
        self,
        line: TableHead,
        write: WriteRef,
        files: pa.Table,
        rows: Iterable[pa.Table],
        predicate: Predicate | None,
    ) -> None:
        copies = written_rows(line.tracked, line.metadata, write, rows, row_ids=True)
        self.committed(line, write, files, predicate, copies)

    @staticmethod
    def committed(
        line: TableHead,
        write: WriteRef,
        files: pa.Table,
        predicate: Predicate | None,
        copied_files: Sequence[DataFile],
    ) -> None:
        """Commit that copies without the rows replace these files."""
        change = RowChange(
            operation=OperationKind.DELETE_ROWS,
            files=copied_files,
            removed=frozenset(files["path"].to_pylist()),
            deletes={},
            condition=predicate,
            keeps_partitions=False,
        )
        with kept_by_commit(line.tracked, copied_files):
            commit_rows(line, write, change, None)

    def count(
        self, head: TableHead, files: pa.Table, schema: Schema, bound_condition: Bound, *, whole: bool = False
    ) -> Mapping[str, int]:
        """Return the files, which are entries of a version, that have matching live rows, with their counts.

        With `whole`, a file's own statistics are ignored.
        """
        table_log = head.tracked
        positions_by_path = read_positions(
            table_log.store, table_log.prefix, files, schema, bound_condition, table_log.log.replay.open_url
        )
        return {path: len(positions) for path, positions in positions_by_path}

    def matching(
        self, head: TableHead, files: pa.Table, schema: Schema, bound_condition: Bound, *, whole: bool = False
    ) -> Iterator[tuple[str, pa.Array]]:
        """Yield the files that have matching rows, deleted or not, with the ids of these rows.

        NULL is a row without an id.

        With `whole`, a file's own statistics are ignored.
        """
        columns = list(dict.fromkeys(term.path[0] for term in terms(bound_condition)))
        ids_by_path: dict[str, list[pa.Array]] = {}
        for placed in read_placed_rows(
            head.tracked.store,
            head.tracked.prefix,
            as_written(files),
            schema,
            columns,
            head.tracked.log.replay.open_url,
            predicate=None if whole else bound_condition,
        ):
            ids = placed.rows.filter(evaluate(IsTrue(bound_condition), placed.rows))["_row_id"]
            if len(ids):
                ids_by_path.setdefault(placed.path, []).append(ids.combine_chunks())
        for path, parts in ids_by_path.items():
            yield path, pa.concat_arrays(parts)

    def copies(self, head: TableHead, files: pa.Table, ids: NumberArray) -> Iterator[tuple[str, int, bool]]:
        """Yield each file, its number of rows with these ids, and whether all ids follow from positions.

        Rows count whether or not they are deleted.
        """
        table_log = head.tracked
        for start in range(0, files.num_rows, 1000):
            batch = as_written(files.slice(start, 1000))
            counts = dict.fromkeys(batch["path"].to_pylist(), 0)
            placed_rows = read_placed_rows(
                table_log.store, table_log.prefix, batch, head.schema, (), table_log.log.replay.open_url
            )
            moved_paths: set[str] = set()
            firsts = _firsts(batch)
            for item in placed_rows:
                rows = item.rows["_row_id"]
                counts[item.path] += int(pc.sum(is_among(rows, ids), min_count=0).as_py())
                first = firsts[item.path]
                if first is None or not np.array_equal(
                    np.asarray(rows.fill_null(-1)), np.asarray(item.positions) + first
                ):
                    moved_paths.add(item.path)
            for path, count in counts.items():
                yield path, count, path not in moved_paths and firsts[path] is not None

    def matching_no_more(
        self,
        head: TableHead,
        files: pa.Table,
        ids: NumberArray,
        schema: Schema,
        bound_condition: Bound | None,
    ) -> int:
        """Return how many live rows of the files have these ids, and do not match by the present names."""
        table_log = head.tracked
        columns = (
            []
            if bound_condition is None
            else list(dict.fromkeys(term.path[0] for term in terms(bound_condition)))
        )
        count = 0
        for placed in read_placed_rows(
            table_log.store, table_log.prefix, files, schema, columns, table_log.log.replay.open_url
        ):
            mask = is_among(placed.rows["_row_id"], ids)
            if bound_condition is not None:
                mask = pc.and_not(mask, evaluate(IsTrue(bound_condition), placed.rows).combine_chunks())
            count += int(pc.sum(mask, min_count=0).as_py())
        return count

    def count_listed(
        self, head: TableHead, listed: Iterable[tuple[str, int]], schema: Schema, bound_condition: Bound
    ) -> Iterable[tuple[str, int, int | None]]:
        """Yield the path, size and number of matching rows of files in the table's folder.

        Files are read by their own columns. The number is None if a file lacks a column of the condition.
        Then it is older than the column, or than the table that has it.
        """
        for path, size in listed:
            yield path, size, self._rows_in(head, path, size, schema, bound_condition)

    def _rows_in(
        self, head: TableHead, path: str, size: int, schema: Schema, bound_condition: Bound
    ) -> int | None:
        table_log = head.tracked
        prefix = f"{table_log.prefix}/" if table_log.prefix else ""
        try:
            with table_log.store.open_input(f"{prefix}{path}") as source:
                names = set(pq.read_schema(source).names)
        except (pa.ArrowException, OSError, LakelogError):
            return None  # a half-written file of a dead write: it is deleted with the others
        if not stored_names(schema, bound_condition) <= names:
            return None
        try:
            counts = self.count(head, as_planned([(path, size)]), schema, bound_condition)
        except FormatError:
            return None
        return counts.get(path, 0)


def _firsts(files: pa.Table) -> dict[str, int | None]:
    paths = files["path"].to_pylist()
    if FIRST_ROW not in files.column_names:
        return dict.fromkeys(paths)
    return dict(zip(paths, files[FIRST_ROW].to_pylist(), strict=True))


def as_written(files: pa.Table) -> pa.Table:
    """Return entries of files as if none of their rows were deleted."""
    rows = physical_rows(files)
    files = files.set_column(files.column_names.index("rows"), "rows", rows)
    return files.drop_columns([name for name in (DELETES, DELETED) if name in files.column_names])


def united(parts: Sequence[NumberArray]) -> NumberArray:
    """Return all numbers, each once, ascending."""
    return np.unique(np.concatenate(parts)) if any(len(part) for part in parts[1:]) else parts[0]


def is_among(numbers: pa.ChunkedArray | pa.Array, ids: NumberArray) -> pa.Array:
    """Return which of the numbers are among the ascending `ids`. A NULL is not."""
    if not len(ids):
        return pa.repeat(pa.scalar(False), len(numbers))
    values = np.asarray(pc.fill_null(numbers, -1), np.int64)
    places = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
    return pa.array(ids[places] == values)


def stored_names(schema: Schema, bound_condition: Bound) -> set[str]:
    """Return the names in files of a condition's columns."""
    return {schema.find((term.path[0],), case_sensitive=True).physical for term in terms(bound_condition)}


def as_planned(listed: Sequence[tuple[str, int]]) -> pa.Table:
    """Return files, of which only path and size are known, in the form of a plan."""
    paths, sizes = zip(*listed, strict=True) if listed else ((), ())
    return pa.table({"path": pa.array(paths, pa.string()), "size": pa.array(sizes, pa.int64())})
