"""Changes that one process has others commit, and commits for others, in a thread behind those that wait for them.

It begins where a log is contended, puts a proposal for what waits, and follows the log until each is decided. Where it
sees no version of a combiner for a while, it becomes one (see `Combining`). It ends once nothing has waited for a
while, or no other process has proposed anything. Each thread that waits gets an outcome, or its change back, to commit
it as if there were no proposals: so nothing depends on this thread, and nothing is lost with it.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from lakelog.log.errors import LakelogError, PermissionDenied, StorageError
from lakelog.log.format import WINDOW, ProposedChange
from lakelog.log.placing import following
from lakelog.log.proposals.combining import Combining, order_of
from lakelog.log.proposals.inbox import proposals_of
from lakelog.log.proposals.pending import Pending
from lakelog.log.proposals.waiting import Waiting
from lakelog.log.view import Draft, S
from lakelog.log.writing import check_fence, check_may_follow

FAILURES_MAX = 8


class Courier(Pending[S]):
    """The thread, and what it proposes."""

    _failures = 0
    begins_to_combine = False
    """Whether others were found to wait for this process, which wins what races there are."""

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
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            # The interpreter ends, and begins no thread any more: those that wait go on as they can.
        finally:
            # Also where memory ran out: what waits is committed by its own thread, which knows what was proposed.
            self.close()

    def _work(self) -> None:
        misses, look_at_s = 0, self.pace.now_s()
        while self.wait_for_callers():
            try:
                self.await_served()
                if self.begins_to_combine:
                    self.begins_to_combine = False
                    if not self._combined_on():
                        return
                    continue
                self.take()
                self._propose([each for each in self.mine.values() if not each.placing.proposed_until])
                if not self.mine:
                    continue
                if (early_s := look_at_s - self.pace.now_s()) > 0:
                    self.sleep(early_s)  # what arrives meanwhile is proposed, and is no reason to look
                    continue
                misses = 0 if self._look() else misses + 1
                if self.pace.is_impatient and self._combines():
                    if not self._combined_on():
                        return
                    continue
                self._failures = 0
            except StorageError as error:
                self._failures += 1
                if self._failures == FAILURES_MAX or isinstance(error, PermissionDenied):
                    return
            except LakelogError:
                return  # each that waits meets it by itself
            look_at_s = self.pace.now_s() + self.pace.next_look_s(misses)

    def _combined_on(self) -> bool:
        """Commit for all, and return whether to go on proposing once another one does."""
        goes_on = Combining(self).work()
        self.pace.start_waiting()
        self.is_my_turn = False
        return goes_on

    def _look(self) -> bool:
        """Read the next version, if it is there, and what follows where this is late."""
        looked_s, version = self.pace.now_s(), self.view.version
        data = self.replay.store.get(self.replay.keys.commit(version + 1))
        if data is None:
            self.pace.missed(looked_s)
            return False
        self.follow(following(self.replay, version, data, batch=0, patient=True), looked_s=looked_s)
        return self.view.version > version

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
                each.placing.proposed_seen = seen
                each.placing.proposed_until = seen + WINDOW  # also where the answer is lost: it may be there
            self._put(seen, waiting, data)

    def _put(self, seen: int, waiting: list[Waiting[S]], data: bytes) -> None:
        begun_s = self.pace.now_s()
        first_id = waiting[0].placing.commit_id
        try:
            self.inbox.put(seen, first_id, data)
        except StorageError:
            for each in waiting:
                self.give_back(each)  # as proposed: an earlier try may have had an effect, or have it later
            raise
        self.pace.measured_put(self.pace.now_s() - begun_s)
        self.proposed_keys.append(self.replay.keys.proposal(seen, first_id))

    def _proposed(self, each: Waiting[S]) -> tuple[ProposedChange | None, Draft]:
        """Return a change as it is proposed; None where it is for its own process to commit, or to be refused."""
        placing = each.placing
        try:
            draft: Draft = each.run(placing.decide, self.view, tuple(placing.passed))
            each.is_of_many = bool(draft.carries)
            check_may_follow(self.view, draft, placing.location)
            check_fence(self.view, draft, placing.location)
            if not draft.rows:
                self.by_data.redo(self.view, draft)
        except Exception:
            return None, Draft()
        if replace(draft, events=(), write=None, features=(), rows=b"") != Draft():
            return None, Draft()  # it has more than a proposal can say
        change = ProposedChange(
            commit_id=placing.commit_id,
            base=placing.base,
            writer=each.run(dict, self.writer.writer),
            write=draft.write,
            events=draft.events,
            rows=draft.rows,
        )
        return change, draft

    def _combines(self) -> bool:
        """Return whether it is on this process to combine: others may be before it, and are waited for once."""
        if self.is_my_turn:
            return True
        order = order_of(self.inbox.list(self.view.version), self.view.version)
        turns = next((place for place, key in enumerate(order) if key in self.proposed_keys), 0)
        self.is_my_turn = True
        self.pace.start_waiting(turns)
        return turns == 0
