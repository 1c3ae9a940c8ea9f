"""An erasure's reading and writing of rows, as Spark's jobs.

This process only gets counts, and entries of new files. Conditions that Spark compares differently (a CHAR, a
transform of a column) stay with this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import pyarrow as pa

from lakelog.catalog import Expression, Predicate, Schema, Table
from lakelog.catalog.engine import Bound, TableHead, joined, schema_to_spark, terms, typed
from lakelog.catalog.keeping.erasure import ErasureWork, as_planned, as_written, stored_names
from lakelog.spark.facts import of_table
from lakelog.spark.going_calls import CallJobs, JobFailed
from lakelog.spark.requests.jobs import CopyRows, CountRows, RowsCopied, RowsCounted
from lakelog.spark.requests.tables import TableFacts

WRITTEN_AT_ONCE = 1_000
"""The most files that are rewritten for a commit. A stopped call loses no more work."""

READ_AT_ONCE = 20_000
"""The most files that a job reads."""


class SparkWork(ErasureWork):
    """Erasure whose rows Spark reads and writes."""

    def __init__(self, jobs: CallJobs) -> None:
        self._jobs = jobs

    def rewrite(self, line: TableHead, paths: Sequence[str], bound: Bound, predicate: Predicate) -> None:
        condition = _asked(bound)
        if condition is None:
            super().rewrite(line, paths, bound, predicate)
            return
        for start in range(0, len(paths), WRITTEN_AT_ONCE):
            present_paths = sorted(line.entries(paths[start : start + WRITTEN_AT_ONCE]))
            if present_paths:
                self._rewrite(line, present_paths, condition, predicate)
                line = line.refreshed()

    def _rewrite(
        self, line: TableHead, paths: Sequence[str], asked: Expression, predicate: Predicate
    ) -> None:
        files, write = joined(line.files_named(paths)), line.begin_write()
        job = CopyRows(
            table=of_table(Table(line)),
            text=f"lakelog forget: {len(paths):,} files of {line.name} without such rows",
            predicate=asked,
            write=write,
        )
        new_files = self._jobs.run(job, RowsCopied, files).files
        self.committed(line, write, files, predicate, new_files)

    def count(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Mapping[str, int]:
        condition = _asked(bound)
        if condition is None:
            return super().count(head, files, schema, bound, whole=whole)
        row_counts: dict[str, int] = {}
        for start in range(0, files.num_rows, READ_AT_ONCE):
            part = files.slice(start, READ_AT_ONCE)
            job = CountRows(
                table=_to_read(head, schema),
                text=f"lakelog forget: rows in {part.num_rows:,} files of {head.name}",
                predicate=condition,
                columns=_columns(bound),
                whole=whole,
            )
            counts = self._jobs.run(job, RowsCounted, part).counts
            row_counts |= {
                path: count for path, count in zip(part["path"].to_pylist(), counts, strict=True) if count
            }
        return row_counts

    def matching(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Iterator[tuple[str, pa.Array]]:
        """Find the files by Spark. Row ids are read here, from these files alone."""
        if _asked(bound) is not None:
            counts = self.count(head, as_written(files), schema, bound, whole=whole)
            files = files.filter(pa.array([path in counts for path in files["path"].to_pylist()], pa.bool_()))
        yield from super().matching(head, files, schema, bound, whole=whole)

    def count_listed(
        self, head: TableHead, listed: Iterable[tuple[str, int]], schema: Schema, bound: Bound
    ) -> Iterable[tuple[str, int, int | None]]:
        condition, remaining = _asked(bound), iter(listed)
        if condition is None:
            yield from super().count_listed(head, remaining, schema, bound)
            return
        while part := list(islice(remaining, READ_AT_ONCE)):
            yield from self._count_listed(head, part, schema, bound, condition)

    def _count_listed(
        self,
        head: TableHead,
        some: list[tuple[str, int]],
        schema: Schema,
        bound: Bound,
        asked: Expression,
    ) -> Iterator[tuple[str, int, int | None]]:
        job = CountRows(
            table=_to_read(head, schema),
            text=f"lakelog forget: {len(some):,} objects of {head.name}",
            predicate=asked,
            columns=_columns(bound),
            stored=tuple(sorted(stored_names(schema, bound))),
            whole=True,
        )
        try:
            files = as_planned(some)
            uncounted_files = files.append_column("rows", pa.repeat(pa.scalar(0, pa.int64()), files.num_rows))
            counts = self._jobs.run(job, RowsCounted, uncounted_files).counts
        except JobFailed as failure:
            if failure.cancelled:
                raise
            # An incomplete file must not hold up the others, so each is checked on its own.
            yield from super().count_listed(head, some, schema, bound)
            return
        for (path, size), count in zip(some, counts, strict=True):
            yield path, size, None if count < 0 else count


def _asked(bound: Bound) -> Expression | None:
    """Return the condition as Spark evaluates it on rows. None if that may differ."""
    predicate = typed(bound)
    return None if predicate is None else msgspec.convert(predicate.to_json(), Expression)


def _columns(bound: Bound) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.path[0] for term in terms(bound)))


def _to_read(head: TableHead, schema: Schema) -> TableFacts:
    """Return the facts of a table whose files are read by a present or former schema."""
    return msgspec.structs.replace(
        of_table(Table(head)),
        schema=schema_to_spark(schema, internal=True),
        partitioning=(),
        sort_order=(),
        clustering=(),
        constraints=(),
        estimates=(),
    )
