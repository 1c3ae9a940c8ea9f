"""Copying rows into new files of the same table, with their ids and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.ingest import written_rows
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.planning.bound import Bound, ConstantCondition, IsTrue, NotCondition
from lakelog.log import WriteRef

_NOTHING = ConstantCondition(False)


def copied_files(
    head: TableHead,
    files: pa.Table,
    left_out: Bound,
    write: WriteRef,
    *,
    target_size_bytes: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[DataFile]:
    """Write the live rows of `files` (a plan's) for which `left_out` is not true, and return their new files.

    They are written as the table is partitioned and sorted now, in files of about `target_size_bytes` (None:
    the table's property). Nothing is committed. `check` is called before each batch; if it raises, nothing is
    left.
    """
    rows = live_rows(head, files, check, left_out)
    return written_rows(
        head.tracked, head.metadata, write, rows, row_ids=True, target_size_bytes=target_size_bytes
    )


def live_rows(
    head: TableHead, files: pa.Table, check: Callable[[], None], left_out: Bound = _NOTHING
) -> Iterator[pa.Table]:
    """Yield the live rows of `files` for which `left_out` is not true.

    Their ids and versions are the last columns.
    """
    metadata, table_log = head.metadata, head.tracked
    _, batches = read_files(
        table_log.store,
        table_log.prefix,
        files,
        metadata.schema,
        metadata.specs,
        predicate=NotCondition(IsTrue(left_out)),
        open_url=table_log.log.replay.open_url,
        row_ids=True,
    )
    for batch in batches:
        check()
        yield pa.Table.from_batches([batch])
