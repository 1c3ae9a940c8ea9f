"""How an erasure reads and writes rows: in this process, or by whatever an engine has for it.

An engine has an `ErasureWork` of its own, in which any of these is done by its jobs. What it cannot do stays with
this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.files import DataFile, joined
from lakelog.catalog.logs import TableHead
from lakelog.catalog.parquet import copied_files, kept_by_commit, read_positions
from lakelog.catalog.planning import Bound, terms
from lakelog.catalog.schema import Predicate, Schema
from lakelog.catalog.state import Operation
from lakelog.catalog.writes import RowChange, commit_rows
from lakelog.log import WriteRef
from lakelog.log.errors import FormatError, LakelogError


class ErasureWork:
    """Reads and writes in this process, file by file."""

    def rewrite(self, line: TableHead, paths: Sequence[str], bound: Bound, predicate: Predicate) -> None:
        """Write these files of a line anew without the rows that match, and commit that. CommitConflict where others
        change their rows."""
        write = line.begin_write()
        files = joined(line.files_named(paths))
        self.committed(line, write, files, predicate, copied_files(line, files, bound, write))

    @staticmethod
    def committed(
        line: TableHead, write: WriteRef, files: pa.Table, predicate: Predicate, copied: Sequence[DataFile]
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

    def count_listed(
        self, head: TableHead, listed: Iterable[tuple[str, int]], bound: Bound
    ) -> Iterable[tuple[str, int, int | None]]:
        """Yield the path, the size and how many rows match of files in the table's folder, by the columns that they
        have; None where one lacks a column of the condition: it is older than that, or than the table that has it."""
        for path, size in listed:
            yield path, size, self._rows_in(head, path, size, bound)

    def _rows_in(self, head: TableHead, path: str, size: int, bound: Bound) -> int | None:
        tracked = head.tracked
        prefix = f"{tracked.prefix}/" if tracked.prefix else ""
        try:
            with tracked.store.open_input(f"{prefix}{path}") as source:
                there = set(pq.read_schema(source).names)
        except (pa.ArrowException, OSError, LakelogError):
            return None  # half a file of a write that died: it is deleted with the others
        if not stored_names(head.schema, bound) <= there:
            return None
        try:
            found = self.count(head, as_planned([(path, size)]), head.schema, bound)
        except FormatError:
            return None
        return found.get(path, 0)


def stored_names(schema: Schema, bound: Bound) -> set[str]:
    """Return what files call the columns of a condition."""
    return {schema.find((term.path[0],), case_sensitive=True).physical for term in terms(bound)}


def as_planned(listed: Sequence[tuple[str, int]]) -> pa.Table:
    """Return files, of which nothing but this is known, as a plan has them."""
    paths, sizes = zip(*listed, strict=True) if listed else ((), ())
    return pa.table({"path": pa.array(paths, pa.string()), "size": pa.array(sizes, pa.int64())})
