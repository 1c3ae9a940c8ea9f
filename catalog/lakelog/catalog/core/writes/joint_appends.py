"""Appends of a few rows each by threads of one process: one of them writes the files for all that wait, and commits.

While its version is put, the next thread writes the files of those that came meanwhile. Each append has its own id,
author and outcome, and where one alone can be refused, each is tried by itself. A thread that is alone writes and
commits as if this module were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from lakelog.catalog.core.logs import Changed, TableHead, TrackedLog
from lakelog.catalog.core.parquet import Numbering, RowChecks, kept_by_commit, written_rows
from lakelog.catalog.core.state import Operation, RowCounts, RowsAppended, TableState, encode
from lakelog.catalog.core.writes.file_changes import change_of, commit_write
from lakelog.catalog.core.writes.identity_values import known_taken, refresh_taken
from lakelog.log import Carried, Json
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.format import CHANGES_MAX
from lakelog.log.parallel import Turns, Wanted
from lakelog.log.proposals.waiting import own_error, unknown

ROWS_SIZE_MAX = 256 * 1024
"""Of an append that goes with others, in memory."""

TOGETHER_SIZE_MAX = 16 * 1024 * 1024
"""Of those that go together; what is above goes by itself."""


@dataclass(eq=False)
class _Append(Wanted):
    """The rows of one thread. `done` is the table afterwards, an error, or _ALONE."""

    head: TableHead = field(kw_only=True)
    rows: pa.Table = field(kw_only=True)
    commit_id: str = field(kw_only=True)
    writer: dict[str, Json] = field(kw_only=True)
    run: Callable[..., Any] = field(default_factory=lambda: copy_context().run)
    committing: bool = False


class _Alone:
    """What becomes of an append that is to be tried by itself, for nothing of it has happened."""


_ALONE = _Alone()
_turns: WeakKeyDictionary[TrackedLog[TableState], Turns[_Append]] = WeakKeyDictionary()


def may_go_together(head: TableHead) -> bool:
    """Return whether what is appended is the table's own, and no part of a transaction or of a branch."""
    tracked = head.tracked
    return type(tracked) is TrackedLog and not tracked.transaction.is_open


def append_few(
    head: TableHead, rows: pa.Table, alone: Callable[[Callable[[], None]], TableHead]
) -> TableHead:
    """Append rows together with those of other threads, or as `alone` does it; return the newest version.

    `alone` calls what it is given once its files are written, or are for others to write.
    """
    log = head.tracked.log
    turns = _turns.get(head.tracked)
    if turns is None:
        # Without a lock, which a handler of a signal would wait for in vain, and a forked child too.
        turns = _turns.setdefault(head.tracked, Turns(log.options.wait))
    own = _Append(head=head, rows=rows, commit_id=log.options.new_id(), writer=dict(log.writer.writer))

    def work(waiting: Sequence[_Append]) -> None:
        # Where processes propose rows to each other, each thread's go by themselves.
        group = [own] if log.proposes else _compatible(waiting)
        for each in set(waiting).difference(group):
            _end(each, _ALONE)
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
    """Append what a group has, and note what becomes of each. What one alone may have caused, each finds out alone."""
    try:
        _write_and_commit(group, pass_on)
    except CommitUnknown as error:
        for each in _open(group):
            each.done = unknown(each.commit_id, error.location, error.message)
    except StorageError as error:
        for each in _open(group):
            each.done = own_error(error)
    except LakelogError:
        for each in _open(group):
            each.done = _ALONE
    except Exception:
        for each in _open(group):
            each.done = _unfinished(each)


def _open(group: Sequence[_Append]) -> list[_Append]:
    return [each for each in group if each.done is None]


def _compatible(waiting: Sequence[_Append]) -> list[_Append]:
    """Return those that append to the same table under the same name, up to the limits."""
    first, size_bytes = waiting[0], 0
    group: list[_Append] = []
    for each in waiting:
        size_bytes += each.rows.nbytes
        if (
            len(group) < CHANGES_MAX - 1
            and size_bytes <= TOGETHER_SIZE_MAX
            and _is_alike(each.head, first.head)
        ):
            group.append(each)
    return group


def _is_alike(one: TableHead, other: TableHead) -> bool:
    return (
        one.id == other.id
        and one.found_by == other.found_by
        and one.metadata.generation == other.metadata.generation
    )


def _write_and_commit(group: Sequence[_Append], pass_on: Callable[[], None]) -> None:
    head = max((each.head for each in group), key=lambda head: head.version)
    refresh_taken(head)
    base = head.newest_known()
    write = base.begin_write()
    numbering = Numbering(base.schema, known_taken(base))
    rows = list(_checked(group, RowChecks(base.metadata, numbering)))
    group = _open(group)
    if len(group) < 2:
        for each in group:
            each.done = _ALONE
        return
    files = written_rows(base.tracked, base.metadata, write, rows)
    pass_on()
    with kept_by_commit(base.tracked, files):
        change = change_of(Operation.APPEND.value, files, None, None, numbering.taken())
        carried = [
            Carried(
                each.commit_id, base.version, each.writer, encode([RowsAppended(rows=each.rows.num_rows)])
            )
            for each in group
        ]
        for each in group:
            each.committing = True
        done = commit_write(base, write, replace(change, carries=carried), None)
    for each in group:
        each.done = each.head.after(Changed(done.view, done.version, RowCounts(inserted=each.rows.num_rows)))


def _checked(group: Sequence[_Append], checks: RowChecks) -> Iterator[pa.Table]:
    for each in group:
        try:
            yield each.run(checks.new, each.rows.combine_chunks())
        except Exception:
            # Its own error, and not one of what others have appended with it, or of how they are put together.
            _end(each, _ALONE)


def _unfinished(each: _Append) -> object:
    if not each.committing:
        return _ALONE
    return unknown(each.commit_id, each.head.url, "the thread that wrote it was interrupted")
