"""Changes that one process has others commit, and commits for others, in a thread behind those that wait for them.

It begins where a log is contended, puts a proposal for what waits, and follows the log until each is decided. Where it
sees no version of a combiner for a while, it becomes one (see `Combining`). It ends once nothing has waited for a
while, or no other process has proposed anything. Each thread that waits gets an outcome, or its change back, to commit
it as if there were no proposals: so nothing depends on this thread, and nothing is lost with it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, Protocol

from lakelog.log.changes import combined_ids
from lakelog.log.combining import Combining
from lakelog.log.errors import LakelogError, PermissionDenied, StorageError
from lakelog.log.format import WINDOW, Commit, ProposedChange, Settled, Tombstone
from lakelog.log.inbox import Inbox, proposals_of
from lakelog.log.pace import Pace
from lakelog.log.placing import REMEMBERED, Trail, following
from lakelog.log.view import Committed, Draft, S, View, effective
from lakelog.log.waiting import Waiting
from lakelog.log.window import Window
from lakelog.log.writing import Writer, check_fence, check_may_follow

PASSED_OVER_MAX = 3
"""Versions of combiners without a change that they could have had: it is then put by its own process."""
FAILURES_MAX = 8


class ByData(Protocol[S]):
    """How a change that is data is decided by a client that did not make it. Pure; only for what adds to a state."""

    def lets_pass(self, commit: Commit) -> bool:
        """Return whether changes that were decided before a version can be decided anew after it, by `redo`."""
        ...

    def redo(self, view: View[S], draft: Draft) -> Draft:
        """Return a draft as its author would draft it on another view, behind versions that all let it pass. Raises
        LakelogError where only its author can tell, or where it is none of these changes."""
        ...


class Courier(Generic[S]):
    """The changes of one process that are for others to commit. `submit` is for any thread, the rest for its own."""

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
        self._proposed_keys: deque[str] = deque(maxlen=REMEMBERED)
        self._arrived: list[Waiting[S]] = []
        self._bell = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._failures = 0
        self._is_my_turn = False

    # For other threads

    def submit(self, each: Waiting[S]) -> bool:
        """Take a change. False where this courier has ended."""
        with self._lock:
            if self._closed or not threading.main_thread().is_alive():
                return False
            self._arrived.append(each)
            each.sent = True
        self._bell.set()
        return True

    def start(self) -> bool:
        """Begin to work. False where no thread can begin any more."""
        try:
            self.options.in_thread(f"proposals of {self.replay.location}", self.run)
        except RuntimeError:
            return False
        return True

    # The thread

    def run(self) -> None:
        try:
            self._work()
        finally:
            # Also where memory ran out: what waits is committed by its own thread, which knows what was proposed.
            self._close()

    def _work(self) -> None:
        missed = False
        while self.wait_for_callers():
            try:
                self.take()
                self._propose([each for each in self.mine.values() if not each.placing.proposed_until])
                if not self.mine:
                    continue
                missed = not self._look(missed)
                if self.pace.is_impatient and self._combines():
                    if not Combining(self).work():
                        return
                    self.pace.start_waiting()
                    self._is_my_turn = False
                    continue
                self._failures = 0
            except PermissionDenied:
                return
            except StorageError:
                self._failures += 1
                if self._failures == FAILURES_MAX:
                    return
            if self.mine:
                self.sleep(self.pace.next_look_s(missed=missed))

    def wait_for_callers(self) -> bool:
        """Return once something waits; False where nothing does for a while."""
        until_s = self.pace.now_s() + self.pace.linger_s
        while not self.mine and not self._arrived:
            left_s = until_s - self.pace.now_s()
            if left_s <= 0:
                return False
            self.sleep(left_s)
        return True

    def sleep(self, time_s: float) -> None:
        """Wait, at most until something arrives."""
        if time_s > 0:
            self.options.wait(self._bell, time_s)
            self._bell.clear()

    def take(self) -> None:
        """Take what has arrived, and bring it and this courier to one version."""
        self._bell.clear()
        with self._lock:
            arrived, self._arrived = self._arrived, []
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

    def _look(self, missed: bool) -> bool:
        """Read the next version, if it is there, and what follows where this is late."""
        data = self.replay.store.get(self.replay.keys.commit(self.view.version + 1))
        if data is None:
            if not missed:
                self.pace.missed()
            return False
        version = self.view.version
        self.follow(following(self.replay, version, data, batch=0, patient=True), at_first_look=not missed)
        return self.view.version > version

    def follow(
        self,
        newer: Iterable[tuple[Commit | Tombstone, Settled | None]],
        *,
        at_first_look: bool = False,
    ) -> bool:
        """Move on over what follows, with all that waits. Returns whether a version of another combiner was there."""
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
                self.pace.seen(effect, at_first_look=at_first_look)
                if combined_ids(effect):
                    combined = True
                    self._was_combined()
        return combined

    def _was_combined(self) -> None:
        """Another client combines: go on waiting, but not for what it passes over."""
        self.pace.start_waiting()
        self._is_my_turn = False
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
            if each.placing.will_be_refused(error):
                self.give_back(each)
            else:
                self.end(each, error)
        except Exception as error:
            self.end(each, error)
        else:
            if found is not None:
                self.end(each, found)

    # Proposing

    def _propose(self, new: list[Waiting[S]]) -> None:
        drafts: dict[str, ProposedChange] = {}
        features: set[str] = set()
        for each in new:
            change, draft = self._proposed(each)
            if change is None:
                self.give_back(each)
            else:
                drafts[change.commit_id] = change
                features.update(draft.features)
        if not drafts:
            return
        seen = self.view.version
        parts = proposals_of(self.view.log_id, seen, sorted(features), list(drafts.values()))
        for data, changes in parts:
            waiting = [self.mine[change.commit_id] for change in changes]
            if data is None:
                self.give_back(waiting[0])
                continue
            for each in waiting:
                each.placing.proposed_until = seen + WINDOW  # also where the answer is lost: it may be there
            self._put(seen, waiting, data)

    def _put(self, seen: int, waiting: list[Waiting[S]], data: bytes) -> None:
        begun_s = self.pace.now_s()
        first_id = waiting[0].placing.commit_id
        try:
            self.inbox.put(seen, first_id, data)
        except StorageError as error:
            for each in waiting:
                if error.without_effect:
                    each.placing.proposed_until = 0
                self.give_back(each)
            raise
        self.pace.measured_put(self.pace.now_s() - begun_s)
        self._proposed_keys.append(self.replay.keys.proposal(seen, first_id))

    def _proposed(self, each: Waiting[S]) -> tuple[ProposedChange | None, Draft]:
        """Return a change as it is proposed; None where it is for its own process to commit, or to be refused."""
        placing = each.placing
        try:
            draft: Draft = each.run(placing.decide, self.view, tuple(placing.passed))
            check_may_follow(self.view, draft, placing.location)
            check_fence(self.view, draft, placing.location)
            self.by_data.redo(self.view, draft)
        except Exception:
            return None, Draft()
        if replace(draft, events=(), write=None, features=()) != Draft():
            return None, Draft()  # it has more than a proposal can say
        change = ProposedChange(
            commit_id=placing.commit_id,
            base=placing.base,
            writer=each.run(dict, self.writer.writer),
            write=draft.write,
            events=draft.events,
        )
        return change, draft

    def _combines(self) -> bool:
        """Return whether it is on this process to combine: others may be before it, and are waited for once."""
        if self._is_my_turn:
            return True
        order = Combining.order(self.inbox.list(self.view.version), self.view.version)
        turns = next((place for place, key in enumerate(order) if key in self._proposed_keys), 0)
        self._is_my_turn = True
        self.pace.start_waiting(turns)
        return turns == 0

    # Outcomes

    def end(self, each: Waiting[S], done: Committed[S] | BaseException) -> None:
        each.done = done
        self.give_back(each)

    def give_back(self, each: Waiting[S]) -> None:
        """Have its own thread go on: with the outcome, or to commit it without others where there is none."""
        commit_id = each.placing.commit_id
        if self.mine.get(commit_id) is each:
            del self.mine[commit_id]
            self._passed_over.pop(commit_id, None)
        each.returned.set()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            arrived, self._arrived = self._arrived, []
        for each in [*self.mine.values(), *arrived]:
            self.give_back(each)
        self.trail = Trail()  # it holds states
