"""What waits in this process for others to commit it, brought from one version of the log to the next.

`submit` is for any thread, the rest for one. A thread that waits gets an outcome, or its change back.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol

from lakelog.log.changes import combined_ids
from lakelog.log.errors import FormatError, LakelogError, StorageError
from lakelog.log.format import Commit, Settled, Tombstone
from lakelog.log.placing import REMEMBERED, Trail, following
from lakelog.log.proposals.inbox import Inbox
from lakelog.log.proposals.pace import Pace
from lakelog.log.proposals.waiting import Waiting
from lakelog.log.proposals.window import Window
from lakelog.log.view import Committed, Draft, Gathered, S, View, effective
from lakelog.log.writing import Writer

PASSED_OVER_MAX = 3
"""Versions of combiners without a change that they could have had: it is then put by its own process."""

ASLEEP_MAX_S = 1.0
"""How long an interpreter that ends waits for a courier that nothing waits for, whatever its store takes."""


class ByData(Protocol[S]):
    """How a change that is data is decided by a client that did not make it; only for what adds to a state."""

    def lets_pass(self, commit: Commit) -> bool:
        """Return whether changes that were decided before a version can be decided anew after it, by `redo`."""
        ...

    def redo(self, view: View[S], draft: Draft) -> Draft:
        """Return a draft as its author would draft it on another view, behind versions that all let it pass. Raises
        LakelogError where only its author knows, or for any other change."""
        ...

    def gather(self, view: View[S], rows: Sequence[bytes]) -> Gathered[S] | None:
        """Return one change of what several have as rows, in their order; None where that is not known here. The only
        method that may write. What is wrong with the rows of one is no other's affair. Raises StorageError."""
        ...


class Pending(Generic[S]):
    """The changes of one process that wait, and what it knows of the log."""

    def __init__(self, writer: Writer[S], by_data: ByData[S], view: View[S]) -> None:
        self.writer = writer
        self.replay = writer.replay
        self.options = writer.replay.options
        self.by_data = by_data
        self.view = view
        self.trail: Trail[S] = Trail()
        self.window = Window(view.version, by_data.lets_pass)
        self.inbox = Inbox(writer.replay)
        self.pace = Pace(self.options.monotonic_s, self.options.random)
        self.mine: dict[str, Waiting[S]] = {}
        """What waits, by commit id, at this view."""
        self._passed_over: dict[str, int] = {}
        self.proposed_keys: deque[str] = deque(maxlen=REMEMBERED)
        self._arrived: list[Waiting[S]] = []
        self._bell = threading.Event()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._served = 0
        """Callers that had an outcome since the last one came."""
        self.is_my_turn = False

    @property
    def is_at_work(self) -> bool:
        return not self._closed and self._pid == os.getpid()

    def submit(self, each: Waiting[S]) -> bool:
        """Take a change. False where this courier has ended, or is of the process that this one was forked from."""
        if self._pid != os.getpid():
            return False  # its lock may be held for ever
        with self._lock:
            if self._closed or not threading.main_thread().is_alive():
                return False
            self._arrived.append(each)
            each.sent = True
        self._bell.set()
        return True

    @property
    def has_callers(self) -> bool:
        return bool(self.mine or self._arrived)

    def wait_for_callers(self) -> bool:
        """Return once something waits; False where nothing does for a while."""
        until_s = self.pace.now_s() + self.pace.linger_s
        while not self.has_callers:
            left_s = until_s - self.pace.now_s()
            if left_s <= 0 or not threading.main_thread().is_alive():
                return False
            self.sleep(min(left_s, ASLEEP_MAX_S))
        return True

    def sleep(self, time_s: float) -> None:
        """Wait, at most until something arrives."""
        if time_s > 0:
            self.options.wait(self._bell, time_s)
            self._bell.clear()

    def await_served(self) -> None:
        """Wait a little for callers that had an outcome just now, so that what they write next goes together: the first
        one would leave the others a PUT behind."""
        until_s = self.pace.now_s() + self.pace.company_s
        while 0 < len(self._arrived) < self._served and (left_s := until_s - self.pace.now_s()) > 0:
            self.sleep(left_s)

    def take(self) -> None:
        """Take what has arrived, and bring it and this courier to one version."""
        self._bell.clear()
        with self._lock:
            arrived, self._arrived = self._arrived, []
        if arrived:
            self._served = 0
        for each in arrived:
            if each.placing.commit_id in self.mine:
                self.give_back(each)  # a retry of another thread, which will find what became of it
                continue
            each.placing.trail = self.trail
            if not self.mine:
                self.pace.start_waiting()
            self.mine[each.placing.commit_id] = each
        for each in list(self.mine.values()):
            self._level(each)

    def _level(self, each: Waiting[S]) -> None:
        placing = each.placing
        while each.done is None and placing.commit_id in self.mine:
            if placing.view.version < self.view.version:
                before = placing.view
                self._pass_by(each, self.trail.following(before))
                if placing.view is before:
                    newer = following(self.replay, before.version, None, batch=1, patient=True)
                    self._pass_by(each, newer)
            elif placing.view.version > self.view.version:
                self.follow(following(self.replay, self.view.version, None, batch=2, patient=True))
            elif placing.view.hash != self.view.hash:
                return self.give_back(each)  # it is of another log, which was at this place before
            else:
                return

    def follow(
        self,
        newer: Iterable[tuple[Commit | Tombstone, Settled | None]],
        *,
        looked_s: float | None = None,
    ) -> bool:
        """Move on over what follows, with all that waits. Returns whether a version of another combiner was there.
        `looked_s` is when a look for the first of it began."""
        combined = False
        for entry, settled in newer:
            effect = effective(entry, settled)
            after = self.replay.step(self.view, entry, settled)
            if isinstance(entry, Tombstone) or after.version != entry.version:
                self.view = self.replay.forward(after)
                self.window.restart(self.view.version)
                self.pass_all(entry, settled)
                for each in list(self.mine.values()):
                    self._level(each)
                return combined
            self.view = after
            self.trail.add(entry, settled, after)
            self.window.add(entry.version, effect)
            self.pass_all(entry, settled)
            if isinstance(effect, Commit):
                self.pace.seen(effect, looked_s=looked_s)
                looked_s = None
                if combined_ids(effect):
                    combined = True
                    self._was_combined()
        return combined

    def _was_combined(self) -> None:
        """Another client combines: go on waiting, but not for what it passes over."""
        self.pace.combined()
        self.is_my_turn = False
        for commit_id, each in list(self.mine.items()):
            if each.placing.proposed_until:
                self._passed_over[commit_id] = self._passed_over.get(commit_id, 0) + 1
                if self._passed_over[commit_id] > PASSED_OVER_MAX:
                    self.give_back(each)

    def pass_all(self, entry: Commit | Tombstone, settled: Settled | None) -> None:
        for each in list(self.mine.values()):
            if each.placing.view.version == entry.version - 1:
                self._pass_by(each, [(entry, settled)])
            if each.placing.proposed_until and self.view.version >= each.placing.proposed_until:
                self.give_back(each)

    def _pass_by(self, each: Waiting[S], newer: Iterable[tuple[Commit | Tombstone, Settled | None]]) -> None:
        try:
            found = each.placing.rebase(newer)
        except StorageError:
            raise
        except LakelogError as error:
            if isinstance(error, FormatError) or each.placing.will_be_refused(error):
                self.give_back(each)  # what it is, its own thread meets, and knows that it was proposed
            else:
                self.end(each, error)
        except Exception as error:
            self.end(each, error)
        else:
            if found is not None:
                self.end(each, found)

    # Outcomes

    def end(self, each: Waiting[S], done: Committed[S] | BaseException) -> None:
        each.done = done
        self._served += 1
        self.give_back(each)

    def give_back(self, each: Waiting[S]) -> None:
        """Have its own thread go on: with the outcome, or to commit it without others where there is none."""
        commit_id = each.placing.commit_id
        if self.mine.get(commit_id) is each:
            del self.mine[commit_id]
            self._passed_over.pop(commit_id, None)
        each.returned.set()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            arrived, self._arrived = self._arrived, []
        for each in [*self.mine.values(), *arrived]:
            self.give_back(each)
        self.trail = Trail()  # it holds states
