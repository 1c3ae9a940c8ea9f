"""The changes that wait in this process for other clients, brought from version to version of the log.

Any thread may call `submit`; the other methods are for a single thread. A waiting thread gets an outcome, or
its change back.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from lakelog.log.changes import combined_ids
from lakelog.log.errors import FormatError, LakelogError, StorageError
from lakelog.log.following import REMEMBERED, Follower, VersionTrail, following
from lakelog.log.format import Commit, SettledIntent, Tombstone
from lakelog.log.proposals.inbox import ProposalInbox
from lakelog.log.proposals.pace import LogPace
from lakelog.log.proposals.window import VersionWindow
from lakelog.log.rounds.commit_round import CommitRound
from lakelog.log.rounds.waiting import WaitingChange
from lakelog.log.view import CommittedChange, Draft, GatheredChanges, LogView, S, effective
from lakelog.log.writing import LogWriter

PASSED_OVER_MAX = 3
"""Combiners' versions that may pass over a change. Then its own process puts it."""

ASLEEP_MAX_S = 1.0
"""How long an exiting interpreter waits for an idle courier, however slow its store is."""


class ByData(Protocol[S]):
    """How a client decides another client's data changes. Only for changes that add to a state."""

    def lets_pass(self, commit: Commit) -> bool:
        """Return whether `redo` can decide earlier changes again after this commit."""
        ...

    def redo(self, view: LogView[S], draft: Draft) -> Draft:
        """Return a draft as its author would draft it on another view, after versions that all let it pass.

        Raises LakelogError if only its author knows, or for any other change.
        """
        ...

    def gather(self, view: LogView[S], rows: Sequence[bytes]) -> GatheredChanges[S] | None:
        """Return a single change for the rows of several changes, in order; None if that is unknown here.

        This is the only method that may write. A problem with a change's rows does not affect other changes.
        Raises StorageError.
        """
        ...


class PendingChanges(CommitRound[S]):
    """The waiting changes of a process, and its knowledge of the log."""

    def __init__(self, writer: LogWriter[S], by_data: ByData[S], view: LogView[S]) -> None:
        super().__init__(writer, VersionTrail(writer.replay))
        self.options = writer.replay.options
        self.by_data = by_data
        self.view = view
        self.window = VersionWindow(view.version, by_data.lets_pass)
        self.inbox = ProposalInbox(writer.replay)
        self.pace = LogPace(self.options.monotonic_s, self.options.random)
        self.mine: dict[str, WaitingChange[S]] = {}
        """The waiting changes at this view, by commit id."""
        self._passed_over: dict[str, int] = {}
        self.proposed_keys: deque[str] = deque(maxlen=REMEMBERED)
        self._arrived: list[WaitingChange[S]] = []
        self._bell = threading.Event()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._served = 0
        """Callers that had an outcome since the last caller came."""
        self.is_my_turn = False

    @property
    def is_at_work(self) -> bool:
        return not self._closed and self._pid == os.getpid()

    def submit(self, change: WaitingChange[S]) -> bool:
        """Take a change. Returns False if this courier has ended, or belongs to the parent process of a fork."""
        if self._pid != os.getpid():
            return False  # its lock may be held for ever
        with self._lock:
            if self._closed or not threading.main_thread().is_alive():
                return False
            self._arrived.append(change)
            change.sent = True
        self._bell.set()
        return True

    @property
    def has_callers(self) -> bool:
        return bool(self.mine or self._arrived)

    def wait_for_callers(self) -> bool:
        """Return True once a change waits, False if none does for a while."""
        until_s = self.pace.now_s() + self.pace.linger_s
        while not self.has_callers:
            left_s = until_s - self.pace.now_s()
            if left_s <= 0 or not threading.main_thread().is_alive():
                return False
            self.sleep(min(left_s, ASLEEP_MAX_S))
        return True

    def sleep(self, time_s: float) -> None:
        """Wait, at most until a change arrives."""
        if time_s > 0:
            self.options.wait(self._bell, time_s)
            self._bell.clear()

    def await_served(self) -> None:
        """Wait a little for callers that had an outcome just now, so that their next changes go together.

        The first alone would leave the others a PUT behind.
        """
        until_s = self.pace.now_s() + self.pace.company_s
        while 0 < len(self._arrived) < self._served and (left_s := until_s - self.pace.now_s()) > 0:
            self.sleep(left_s)

    def take(self) -> None:
        """Take the arrived changes, and bring them and this courier to the same version."""
        self._bell.clear()
        with self._lock:
            new_changes, self._arrived = self._arrived, []
        if new_changes:
            self._served = 0
        for change in new_changes:
            if change.cursor.commit_id in self.mine:
                self.set_apart(change)  # a retry of another thread, which will find its outcome
                continue
            if not self.mine:
                self.pace.start_waiting()
            self.mine[change.cursor.commit_id] = change
        for change in list(self.mine.values()):
            self._level(change)

    def _level(self, change: WaitingChange[S]) -> None:
        cursor = change.cursor
        while self.mine.get(cursor.commit_id) is change:
            if cursor.view.version < self.view.version:
                change_view = cursor.view
                self._pass_by(change, self.trail.following(change_view))
                if cursor.view is change_view:
                    newer = following(self.replay, change_view.version, None, batch=1)
                    self._pass_by(change, newer)
            elif cursor.view.version > self.view.version:
                self.follow(following(self.replay, self.view.version, None, batch=2))
            elif cursor.view.hash != self.view.hash:
                return self.set_apart(change)  # it belongs to another log, which was at this place before
            else:
                return

    def follow(
        self,
        newer: Iterable[Follower],
        *,
        looked_s: float | None = None,
    ) -> bool:
        """Pass the next entries, with all waiting changes. Returns whether any was another combiner's version.

        `looked_s` is when a look for the first entry began.
        """
        was_combined = False
        for entry, outcome in newer:
            effect = effective(entry, outcome)
            next_view = self.trail.step(self.view, entry, outcome)
            if isinstance(entry, Tombstone) or next_view.version != entry.version:
                self.view = next_view
                self.window.restart(self.view.version)
                self.pass_all(entry, outcome)
                for change in list(self.mine.values()):
                    self._level(change)
                return was_combined
            self.view = next_view
            self.window.add(entry.version, effect)
            self.pass_all(entry, outcome)
            if isinstance(effect, Commit):
                self.pace.seen(effect, looked_s=looked_s)
                looked_s = None
                if combined_ids(effect):
                    was_combined = True
                    self._was_combined()
        return was_combined

    def _was_combined(self) -> None:
        """Keep waiting because another client combines, except for changes that it passes over."""
        self.pace.combined()
        self.is_my_turn = False
        for commit_id, change in list(self.mine.items()):
            if change.cursor.proposed_until:
                self._passed_over[commit_id] = self._passed_over.get(commit_id, 0) + 1
                if self._passed_over[commit_id] > PASSED_OVER_MAX:
                    self.set_apart(change)

    def pass_all(self, entry: Commit | Tombstone, settled_intent: SettledIntent | None) -> None:
        for change in list(self.mine.values()):
            if change.cursor.view.version == entry.version - 1:
                self._pass_by(change, [(entry, settled_intent)])
            if change.cursor.proposed_until and self.view.version >= change.cursor.proposed_until:
                self.set_apart(change)

    def _pass_by(self, change: WaitingChange[S], newer: Iterable[Follower]) -> None:
        if self.mine.get(change.cursor.commit_id) is not change:
            return  # it was set apart, so only its own thread moves its cursor now
        try:
            commit = change.cursor.rebase(newer, self.trail)
        except StorageError:
            raise
        except LakelogError as error:
            if isinstance(error, FormatError):
                self.set_apart(change)  # its own thread meets the error, and knows that it was proposed
            else:
                self.end(change, error)
        except Exception as error:
            self.end(change, error)
        else:
            if commit is not None:
                self.end(change, commit)
            elif change.cursor.refusal is not None:
                self.set_apart(change)

    # Outcomes

    def end(self, change: WaitingChange[S], outcome: CommittedChange[S] | BaseException) -> None:
        if self.mine.get(change.cursor.commit_id) is change:
            change.done = outcome
            self._served += 1
            self.set_apart(change)

    def set_apart(self, change: WaitingChange[S]) -> None:
        """Have its own thread continue: with the outcome, or by committing the change without others."""
        commit_id = change.cursor.commit_id
        if self.mine.get(commit_id) is change:
            del self.mine[commit_id]
            self._passed_over.pop(commit_id, None)
        change.returned.set()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            new_changes, self._arrived = self._arrived, []
        for change in [*self.mine.values(), *new_changes]:
            self.set_apart(change)
        self.trail = VersionTrail(self.replay)  # it holds states
