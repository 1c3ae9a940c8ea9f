"""An erasure's reading and writing of rows, as Spark's jobs: this process only learns counts, and entries of new files.

What Spark compares in another way than lakelog (a CHAR, a transform of a column) stays with this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import pyarrow as pa

from lakelog.catalog import Table
from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.planning import Bound, terms, typed
from lakelog.catalog.core.schema import Expression, Predicate, Schema, schema_to_spark
from lakelog.catalog.keeping.erasure import ErasureWork, as_planned, as_written, stored_names
from lakelog.spark.facts import of_table
from lakelog.spark.going_calls import JobFailed, Jobs
from lakelog.spark.requests.jobs import CopyRows, CountRows, RowsCopied, RowsCounted
from lakelog.spark.requests.tables import TableFacts

WRITTEN_AT_ONCE = 1_000
"""So many files are written anew for one commit: a call that is stopped has lost no more."""

READ_AT_ONCE = 20_000
"""So many files are read by one job."""


class SparkWork(ErasureWork):
    """Has Spark read and write."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def rewrite(self, line: TableHead, paths: Sequence[str], bound: Bound, predicate: Predicate) -> None:
        asked = _asked(bound)
        if asked is None:
            super().rewrite(line, paths, bound, predicate)
            return
        for start in range(0, len(paths), WRITTEN_AT_ONCE):
            there = sorted(line.entries(paths[start : start + WRITTEN_AT_ONCE]))
            if there:
                self._rewrite(line, there, asked, predicate)
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
        copied = self._jobs.run(job, RowsCopied, files).files
        self.committed(line, write, files, predicate, copied)

    def count(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Mapping[str, int]:
        asked = _asked(bound)
        if asked is None:
            return super().count(head, files, schema, bound, whole=whole)
        found: dict[str, int] = {}
        for start in range(0, files.num_rows, READ_AT_ONCE):
            some = files.slice(start, READ_AT_ONCE)
            job = CountRows(
                table=_to_read(head, schema),
                text=f"lakelog forget: rows in {some.num_rows:,} files of {head.name}",
                predicate=asked,
                columns=_columns(bound),
                whole=whole,
            )
            counts = self._jobs.run(job, RowsCounted, some).counts
            found |= {
                path: count for path, count in zip(some["path"].to_pylist(), counts, strict=True) if count
            }
        return found

    def matching(
        self, head: TableHead, files: pa.Table, schema: Schema, bound: Bound, *, whole: bool = False
    ) -> Iterator[tuple[str, pa.Array]]:
        """Spark finds the files; ids of rows are read here, of these alone."""
        if _asked(bound) is not None:
            counts = self.count(head, as_written(files), schema, bound, whole=whole)
            files = files.filter(pa.array([path in counts for path in files["path"].to_pylist()], pa.bool_()))
        yield from super().matching(head, files, schema, bound, whole=whole)

    def count_listed(
        self, head: TableHead, listed: Iterable[tuple[str, int]], schema: Schema, bound: Bound
    ) -> Iterable[tuple[str, int, int | None]]:
        asked, waiting = _asked(bound), iter(listed)
        if asked is None:
            yield from super().count_listed(head, waiting, schema, bound)
            return
        while some := list(islice(waiting, READ_AT_ONCE)):
            yield from self._count_listed(head, some, schema, bound, asked)

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
            unknown = files.append_column("rows", pa.repeat(pa.scalar(0, pa.int64()), files.num_rows))
            counts = self._jobs.run(job, RowsCounted, unknown).counts
        except JobFailed as failed:
            if failed.cancelled:
                raise
            # One that is no whole file must not hold up the others: each is looked at by itself.
            yield from super().count_listed(head, some, schema, bound)
            return
        for (path, size), count in zip(some, counts, strict=True):
            yield path, size, None if count < 0 else count


def _asked(bound: Bound) -> Expression | None:
    """Return the condition as Spark evaluates it on rows, None where that may differ."""
    predicate = typed(bound)
    return None if predicate is None else msgspec.convert(predicate.to_json(), Expression)


def _columns(bound: Bound) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.path[0] for term in terms(bound)))


def _to_read(head: TableHead, schema: Schema) -> TableFacts:
    """Return the facts of a table whose files are read by a schema that it has now, or has had."""
    return msgspec.structs.replace(
        of_table(Table(head)),
        schema=schema_to_spark(schema, internal=True),
        partitioning=(),
        sort_order=(),
        clustering=(),
        constraints=(),
        estimates=(),
    )
