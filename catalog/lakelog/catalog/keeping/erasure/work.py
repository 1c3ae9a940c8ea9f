"""How an erasure reads and writes rows: in this process, or by whatever an engine has for it.

An engine has an `ErasureWork` of its own, in which any of these is done by its jobs. What it cannot do stays with
this one.
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
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes import RowChange, commit_rows
from lakelog.log import WriteRef
from lakelog.log.errors import FormatError, LakelogError

NumberArray: TypeAlias = npt.NDArray[np.int64]


class ErasureWork:
    """Reads and writes in this process, file by file."""

    def rewrite(self, line: TableHead, paths: Sequence[str], bound: Bound, predicate: Predicate) -> None:
        """Write these files of a line anew without the rows that match, and commit that. CommitConflict where others
        change their rows."""
        write = line.begin_write()
        files = joined(line.files_named(paths))
        rows = live_rows(line, files, lambda: None, bound)
        self._written(line, write, files, rows, predicate)

    def rewrite_without(
        self, line: TableHead, paths: Sequence[str], ids: NumberArray, predicate: Predicate | None
    ) -> None:
        """Write these files of a line anew without the rows that have one of the ids, and commit that. CommitConflict
        as in `rewrite`; without a condition also where others have brought in rows."""
        write = line.begin_write()
        files = joined(line.files_named(paths))
        rows = (
            each.filter(pc.invert(is_among(each.column(each.num_columns - 2), ids)))
            for each in live_rows(line, files, lambda: None)
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
        copied = written_rows(line.tracked, line.metadata, write, rows, row_ids=True)
        self.committed(line, write, files, predicate, copied)

    @staticmethod
    def committed(
        line: TableHead,
        write: WriteRef,
        files: pa.Table,
        predicate: Predicate | None,
        copied: Sequence[DataFile],
    ) -> None:
        """Commit that copies without such rows are in the place of these files."""
        change = RowChange(
            operation=Operation.DELETE_ROWS,
            files=copied,
            removed=frozenset(files["path"].to_pylist()),
            deletes={},
            condition=predicate,
            keeps_partitions=False,
        )
        with kept_by_commit(line.tracked, copied):
            commit_rows(line, write, change, None)

    def count(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Mapping[str, int]:
        """Return those of the files, which are entries of a version, that have live rows that match, and how many;
        with `whole`, whatever a file says of itself."""
        tracked = head.tracked
        found = read_positions(
            tracked.store, tracked.prefix, files, schema, bound, tracked.log.replay.open_url
        )
        return {path: len(positions) for path, positions in found}

    def matching(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Iterator[tuple[str, pa.Array]]:
        """Yield those of the files that have rows that match, deleted or not, with the ids of these; NULL for a row
        that has none. With `whole`, whatever a file says of itself."""
        columns = list(dict.fromkeys(term.path[0] for term in terms(bound)))
        found: dict[str, list[pa.Array]] = {}
        for each in read_placed_rows(
            head.tracked.store,
            head.tracked.prefix,
            as_written(files),
            schema,
            columns,
            head.tracked.log.replay.open_url,
            predicate=None if whole else bound,
        ):
            ids = each.rows.filter(evaluate(IsTrue(bound), each.rows))["_row_id"]
            if len(ids):
                found.setdefault(each.path, []).append(ids.combine_chunks())
        for path, parts in found.items():
            yield path, pa.concat_arrays(parts)

    def copies(self, head: TableHead, files: pa.Table, ids: NumberArray) -> Iterator[tuple[str, int, bool]]:
        """Yield each of the files, how many of its rows have one of the ids, deleted or not, and whether its rows have
        no other ids than those that follow from their place."""
        tracked = head.tracked
        for start in range(0, files.num_rows, 1000):
            some = as_written(files.slice(start, 1000))
            counts = dict.fromkeys(some["path"].to_pylist(), 0)
            placed = read_placed_rows(
                tracked.store, tracked.prefix, some, head.schema, (), tracked.log.replay.open_url
            )
            moved: set[str] = set()
            firsts = _firsts(some)
            for each in placed:
                rows = each.rows["_row_id"]
                counts[each.path] += int(pc.sum(is_among(rows, ids), min_count=0).as_py())
                first = firsts[each.path]
                if first is None or not np.array_equal(
                    np.asarray(rows.fill_null(-1)), np.asarray(each.positions) + first
                ):
                    moved.add(each.path)
            for path, count in counts.items():
                yield path, count, path not in moved and firsts[path] is not None

    def matching_no_more(
        self, head: TableHead, files: pa.Table, ids: NumberArray, schema: Schema, bound: Bound | None
    ) -> int:
        """Return how many live rows of the files have one of the ids, and do not match by the names of now."""
        tracked = head.tracked
        columns = [] if bound is None else list(dict.fromkeys(term.path[0] for term in terms(bound)))
        found = 0
        for each in read_placed_rows(
            tracked.store, tracked.prefix, files, schema, columns, tracked.log.replay.open_url
        ):
            wanted = is_among(each.rows["_row_id"], ids)
            if bound is not None:
                wanted = pc.and_not(wanted, evaluate(IsTrue(bound), each.rows).combine_chunks())
            found += int(pc.sum(wanted, min_count=0).as_py())
        return found

    def count_listed(
        self, head: TableHead, listed: Iterable[tuple[str, int]], schema: Schema, bound: Bound
    ) -> Iterable[tuple[str, int, int | None]]:
        """Yield the path, the size and how many rows match of files in the table's folder, by the columns that they
        have; None where one lacks a column of the condition: it is older than that, or than the table that has it."""
        for path, size in listed:
            yield path, size, self._rows_in(head, path, size, schema, bound)

    def _rows_in(self, head: TableHead, path: str, size: int, schema: Schema, bound: Bound) -> int | None:
        tracked = head.tracked
        prefix = f"{tracked.prefix}/" if tracked.prefix else ""
        try:
            with tracked.store.open_input(f"{prefix}{path}") as source:
                there = set(pq.read_schema(source).names)
        except (pa.ArrowException, OSError, LakelogError):
            return None  # half a file of a write that died: it is deleted with the others
        if not stored_names(schema, bound) <= there:
            return None
        try:
            found = self.count(head, as_planned([(path, size)]), schema, bound)
        except FormatError:
            return None
        return found.get(path, 0)


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
    return np.unique(np.concatenate(parts)) if any(len(each) for each in parts[1:]) else parts[0]


def is_among(numbers: pa.ChunkedArray | pa.Array, ids: NumberArray) -> pa.Array:
    """Return which of the numbers are among `ids`, which are ascending; a NULL is not."""
    if not len(ids):
        return pa.repeat(pa.scalar(False), len(numbers))
    found = np.asarray(pc.fill_null(numbers, -1), np.int64)
    places = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
    return pa.array(ids[places] == found)


def stored_names(schema: Schema, bound: Bound) -> set[str]:
    """Return what files call the columns of a condition."""
    return {schema.find((term.path[0],), case_sensitive=True).physical for term in terms(bound)}


def as_planned(listed: Sequence[tuple[str, int]]) -> pa.Table:
    """Return files, of which nothing but this is known, as a plan has them."""
    paths, sizes = zip(*listed, strict=True) if listed else ((), ())
    return pa.table({"path": pa.array(paths, pa.string()), "size": pa.array(sizes, pa.int64())})
