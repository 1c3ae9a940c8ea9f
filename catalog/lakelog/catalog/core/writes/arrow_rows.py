"""Commits of rows from Python. They are written as data files, which are deleted if the commit does not
happen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from lakelog.catalog.core.logs.commits import Token, is_final, was_applied_elsewhere
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.given_rows import Ingestible
from lakelog.catalog.core.parquet.ingest import few_rows, written_files
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.schema.filters import Filter
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.file_changes import change_of, commit_write
from lakelog.catalog.core.writes.identity_values import known_taken, refresh_taken
from lakelog.catalog.core.writes.joint_appends import ROWS_SIZE_MAX, append_few, may_go_together
from lakelog.catalog.core.writes.proposed_rows import append_proposed
from lakelog.catalog.core.writes.stream_batches import StreamBatch, check_after, check_new
from lakelog.catalog.errors import BatchCommitted
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError


def write_rows(
    head: TableHead,
    operation: OperationKind,
    data: Ingestible,
    filter: Filter | None,
    token: Token | None,
    batch: StreamBatch | None = None,
) -> TableHead:
    """Append the rows of `data`, or overwrite others with them, and return the newest version.

    A few rows are appended together with rows of other threads that append at the same time, or are proposed
    to other processes.
    """
    try:
        return _write_or_propose(head, operation, data, filter, token, batch)
    except (CommitUnknown, StorageError):
        raise
    except LakelogError as error:
        # An earlier try may have been proposed, and another client may have committed its rows although they
        # do not fit any more.
        if operation is not OperationKind.APPEND or is_final(head.tracked, token, error):
            raise
        return head.refreshed()


def _write_or_propose(
    head: TableHead,
    operation: OperationKind,
    data: Ingestible,
    filter: Filter | None,
    token: Token | None,
    batch: StreamBatch | None,
) -> TableHead:
    may_propose = head.tracked.log.proposes
    is_alone = batch is not None or (token is not None and not may_propose)
    if operation is OperationKind.APPEND and not is_alone and may_go_together(head):
        data = few_rows(data, ROWS_SIZE_MAX)
        if isinstance(data, pa.Table) and may_propose:
            return append_proposed(head, data, token, partial(_by_itself, head, data))
        if isinstance(data, pa.Table):
            return append_few(head, data, partial(_alone, head, data))
    return _write_rows(head, operation, data, filter, token, batch)


def _alone(head: TableHead, data: pa.Table, written: Callable[[], None]) -> TableHead:
    """Append a few rows of a single thread. Processes may have begun to propose rows since the check."""
    if head.tracked.log.proposes:
        written()
        return append_proposed(head, data, None, partial(_by_itself, head, data))
    return _write_rows(head, OperationKind.APPEND, data, None, None, None, written)


def _by_itself(head: TableHead, data: pa.Table, token: Token | None) -> TableHead:
    return _write_rows(head, OperationKind.APPEND, data, None, token, None)


def _write_rows(
    head: TableHead,
    operation: OperationKind,
    data: Ingestible,
    filter: Filter | None,
    token: Token | None,
    batch: StreamBatch | None,
    written: Callable[[], None] = lambda: None,
) -> TableHead:
    if was_applied_elsewhere(head.logs, head.tracked, token):
        return head.refreshed()  # its rows are in no file of this table
    refresh_taken(head)
    # An overwrite may write rows that were read from exactly this version, so it must not start from a newer
    # version.
    base = head.newest_known() if operation is OperationKind.APPEND else head
    write = base.begin_write()
    try:
        if batch is not None:
            check_after(base, batch)
            check_new(base.state.streams, batch, base.name)
        identity_numbers = IdentityNumbering(base.schema, known_taken(base))
        files = written_files(base.tracked, base.metadata, write, data, identity_numbers)
        written()
        with kept_by_commit(base.tracked, files):
            change = change_of(operation.value, files, filter, batch, identity_numbers.taken())
            return commit_write(base, write, change, token)
    except BatchCommitted:
        return base.refreshed().unchanged()
