"""Changes that a process has others commit, and commits for others, in a thread behind the waiting threads.

It starts if a log is contended, puts a proposal for the waiting changes, and follows the log until each is
decided. If it sees no combiner's version for a while, it combines itself (see `CourierRound`). It ends if
nothing has waited for a while, or no other process has proposed anything. Each waiting thread gets an
outcome, or its change back. It commits a returned change as if there were no proposals. So nothing depends on
this thread, and nothing is lost with it.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from lakelog.log.errors import LakelogError, PermissionDenied, StorageError
from lakelog.log.following import following
from lakelog.log.format import ProposedChange
from lakelog.log.proposals.combining import CourierRound, order_of
from lakelog.log.proposals.inbox import proposals_of
from lakelog.log.proposals.pending import PendingChanges
from lakelog.log.rounds.judging import part_of
from lakelog.log.rounds.waiting import WaitingChange
from lakelog.log.view import Draft, FeatureNames, S
from lakelog.log.writing import DecidedChange, check_fence

FAILURES_MAX = 8


class ProposalCourier(PendingChanges[S]):
    """The courier's thread, and its proposals."""

    _failures = 0
    begins_to_combine = False
    """Whether other clients wait for this process, which wins the races there are."""

    def start(self) -> bool:
        """Start to work. Returns False if no thread can start any more."""
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
            # The interpreter exits and starts no threads; waiting threads continue as they can.
        finally:
            # This happens even without memory. Each waiting change is committed by its own thread, which
            # knows its proposals.
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
                self._propose([change for change in self.mine.values() if not change.cursor.proposed_until])
                if not self.mine:
                    continue
                if (early_s := look_at_s - self.pace.now_s()) > 0:
                    self.sleep(early_s)  # changes that arrive now are proposed, and are no reason to look
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
                return  # each waiting change meets the error by itself
            look_at_s = self.pace.now_s() + self.pace.next_look_s(misses)

    def _combined_on(self) -> bool:
        """Commit for all clients, and return whether to go on proposing once another client combines."""
        goes_on = CourierRound(self).work()
        self.pace.start_waiting()
        self.is_my_turn = False
        return goes_on

    def _look(self) -> bool:
        """Read the next version if it exists, and the later ones if this is late."""
        looked_s, version = self.pace.now_s(), self.view.version
        data = self.replay.store.get(self.replay.keys.commit(version + 1))
        if data is None:
            self.pace.missed(looked_s)
            return False
        self.follow(following(self.replay, version, data, batch=0), looked_s=looked_s)
        return self.view.version > version

    # Proposing

    def _propose(self, new: list[WaitingChange[S]]) -> None:
        if new:
            self.replay.check_writable(self.view)
        drafts: dict[str, ProposedChange] = {}
        features = FeatureNames()
        for waiting_change in new:
            try:
                change, used_features = self._proposed(waiting_change)
            except Exception:
                self.set_apart(waiting_change)
            else:
                drafts[change.commit_id] = change
                features |= used_features
        if not drafts:
            return
        seen_version = self.view.version
        parts = proposals_of(self.view.log_id, seen_version, features, list(drafts.values()))
        for data, changes in parts:
            waiting_changes = [self.mine[change.commit_id] for change in changes]
            if data is None:
                self.set_apart(waiting_changes[0])
                continue
            for waiting_change in waiting_changes:
                waiting_change.cursor.proposed_seen = (
                    seen_version  # even if the answer is lost, since the proposal may be there
                )
            self._put(seen_version, waiting_changes, data)

    def _put(self, seen: int, changes: list[WaitingChange[S]], data: bytes) -> None:
        start_s = self.pace.now_s()
        first_id = changes[0].cursor.commit_id
        try:
            self.inbox.put(seen, first_id, data)
        except StorageError:
            for change in changes:
                self.set_apart(change)  # as proposed: an earlier try may have had an effect, or have it later
            raise
        self.pace.measured_put(self.pace.now_s() - start_s)
        self.proposed_keys.append(self.replay.keys.proposal(seen, first_id))

    def _proposed(self, waiting_change: WaitingChange[S]) -> tuple[ProposedChange, FeatureNames]:
        """Return a change as a proposal has it, with the features that it uses.

        Raises if its process must commit it, or it is refused.
        """
        cursor, view = waiting_change.cursor, self.view
        draft: Draft = waiting_change.run(cursor.decide, view)
        waiting_change.is_of_many = bool(draft.carries)
        check_fence(view, draft, cursor.location)
        if replace(draft, events=(), write=None, rows=b"") != Draft():
            raise ValueError("it has more than a proposal can contain")
        features = FeatureNames()
        writer = waiting_change.run(dict, self.writer.writer)
        if not draft.rows:
            self.by_data.redo(view, draft)
            part = part_of(view, DecidedChange(cursor.commit_id, cursor.base, draft, writer))
            features = self.replay.projection.uses(part, ())
        return ProposedChange(
            commit_id=cursor.commit_id,
            base=cursor.base,
            writer=writer,
            write=draft.write,
            events=draft.events,
            rows=draft.rows,
        ), features

    def _combines(self) -> bool:
        """Return whether this process should combine now. Others may be first, and get a single chance."""
        if self.is_my_turn:
            return True
        order = order_of(self.inbox.list(self.view.version), self.view.version)
        turns = next((place for place, key in enumerate(order) if key in self.proposed_keys), 0)
        self.is_my_turn = True
        self.pace.start_waiting(turns)
        return turns == 0
