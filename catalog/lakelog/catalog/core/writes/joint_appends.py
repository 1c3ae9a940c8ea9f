"""Appends of a few rows by threads of one process: a single thread writes the files for all waiting threads,
and commits.

While its version is put, the next thread writes the files of later appends. Each append has its own id,
author and outcome. If only some of them can be refused, each is tried on its own. A thread that is alone
writes and commits as if this module did not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from lakelog.catalog.core.logs.changed import TableCommit
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.parquet.ingest import RowChecks, written_rows
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.events import RowsAppended, encode
from lakelog.catalog.core.state.row_counts import RowCounts
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.file_changes import change_of, commit_write
from lakelog.catalog.core.writes.identity_values import known_taken, refresh_taken
from lakelog.log import CarriedChange, Json
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.format import CHANGES_MAX
from lakelog.log.parallel import ThreadRequest, ThreadTurns
from lakelog.log.rounds.waiting import own_error, unknown

ROWS_SIZE_MAX = 256 * 1024
"""The limit of an append that goes with others, in memory."""

TOGETHER_SIZE_MAX = 16 * 1024 * 1024
"""The limit of appends that go together. A larger append goes on its own."""


@dataclass(eq=False)
class _Append(ThreadRequest):
    """The rows of a thread. `done` is the table afterwards, an error, or _ALONE."""

    head: TableHead = field(kw_only=True)
    rows: pa.Table = field(kw_only=True)
    commit_id: str = field(kw_only=True)
    writer: dict[str, Json] = field(kw_only=True)
    run: Callable[..., Any] = field(default_factory=lambda: copy_context().run)
    committing: bool = False


class _Alone:
    """The outcome of an append that did not happen at all, and will be tried on its own."""


_ALONE = _Alone()
_turns: WeakKeyDictionary[TrackedLog[TableState], ThreadTurns[_Append]] = WeakKeyDictionary()


def may_go_together(head: TableHead) -> bool:
    """Return whether the appended rows are the table's own, and not part of a transaction or a branch."""
    log = head.tracked
    return type(log) is TrackedLog and not log.transaction.is_open


def append_few(
    head: TableHead, rows: pa.Table, alone: Callable[[Callable[[], None]], TableHead]
) -> TableHead:
    """Append rows together with rows of other threads, or by `alone`. Return the newest version.

    `alone` calls its argument when its files are written, or are left for others to write.
    """
    log = head.tracked.log
    turns = _turns.get(head.tracked)
    if turns is None:
        # Without a lock, because a signal handler or a forked child would wait for it in vain.
        turns = _turns.setdefault(head.tracked, ThreadTurns(log.options.wait))
    own = _Append(head=head, rows=rows, commit_id=log.options.new_id(), writer=dict(log.writer.writer))

    def work(waiting: Sequence[_Append]) -> None:
        # If processes propose rows to each other, each thread's rows go on their own.
        group = [own] if log.proposes else _compatible(waiting)
        for append in set(waiting).difference(group):
            _end(append, _ALONE)
        if group == [own]:
            own.done = alone(lambda: turns.pass_on(own))
        else:
            _append(group, lambda: turns.pass_on(own))

    turns.take(own, work, _unfinished)
    if own.done is _ALONE:
        return alone(_nothing)
    if isinstance(own.done, BaseException):
        raise own.done
    assert isinstance(own.done, TableHead)
    return own.done


def _nothing() -> None:
    pass


def _end(each: _Append, done: object) -> None:
    each.done = done
    each.woken.set()


def _append(group: Sequence[_Append], pass_on: Callable[[], None]) -> None:
    """Append the rows of a group, and set each outcome. If a single append may have caused an error, each
    retries alone."""
    try:
        _write_and_commit(group, pass_on)
    except CommitUnknown as error:
        for append in _open(group):
            append.done = unknown(append.commit_id, error.location, error.message)
    except StorageError as error:
        for append in _open(group):
            append.done = own_error(error)
    except LakelogError:
        for append in _open(group):
            append.done = _ALONE
    except Exception:
        for append in _open(group):
            append.done = _unfinished(append)


def _open(group: Sequence[_Append]) -> list[_Append]:
    return [append for append in group if append.done is None]


def _compatible(waiting: Sequence[_Append]) -> list[_Append]:
    """Return the appends to the same table under the same name, up to the limits."""
    first, size_bytes = waiting[0], 0
    group: list[_Append] = []
    for append in waiting:
        size_bytes += append.rows.nbytes
        if (
            len(group) < CHANGES_MAX - 1
            and size_bytes <= TOGETHER_SIZE_MAX
            and _is_alike(append.head, first.head)
        ):
            group.append(append)
    return group


def _is_alike(head: TableHead, other_head: TableHead) -> bool:
    return (
        head.id == other_head.id
        and head.found_by == other_head.found_by
        and head.metadata.generation == other_head.metadata.generation
    )


def _write_and_commit(group: Sequence[_Append], pass_on: Callable[[], None]) -> None:
    head = max((append.head for append in group), key=lambda head: head.version)
    refresh_taken(head)
    base = head.newest_known()
    write = base.begin_write()
    identity_numbers = IdentityNumbering(base.schema, known_taken(base))
    rows = list(_checked(group, RowChecks(base.metadata, identity_numbers)))
    group = _open(group)
    if len(group) < 2:
        for append in group:
            append.done = _ALONE
        return
    files = written_rows(base.tracked, base.metadata, write, rows)
    pass_on()
    with kept_by_commit(base.tracked, files):
        change = change_of(OperationKind.APPEND.value, files, None, None, identity_numbers.taken())
        carried_appends = [
            CarriedChange(
                append.commit_id,
                base.version,
                append.writer,
                encode([RowsAppended(rows=append.rows.num_rows)]),
            )
            for append in group
        ]
        for append in group:
            append.committing = True
        result = commit_write(base, write, replace(change, carries=carried_appends), None)
    for append in group:
        append.done = append.head.after(
            TableCommit(result.view, result.version, RowCounts(inserted=append.rows.num_rows))
        )


def _checked(group: Sequence[_Append], checks: RowChecks) -> Iterator[pa.Table]:
    for append in group:
        try:
            yield append.run(checks.new, append.rows.combine_chunks())
        except Exception:
            # Its own error, and not an error of rows that others have appended with it, or of how they are
            # combined.
            _end(append, _ALONE)


def _unfinished(each: _Append) -> object:
    if not each.committing:
        return _ALONE
    return unknown(each.commit_id, each.head.url, "the thread that wrote it was interrupted")
