"""A process that commits all proposals for a while, version after version, each with every change that it knows.

Only the version's put-if-absent decides. The `VersionWindow` says which proposals a version may apply. The client
that puts a version has compared the ids of all versions since the head that a proposal's author saw.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.following import following
from lakelog.log.format import CHANGES_MAX, Commit, Proposal
from lakelog.log.proposals.pending import PendingChanges
from lakelog.log.rounds.judging import JudgedVersion
from lakelog.log.view import Draft, GatheredChanges, LogView, S, StateProjection
from lakelog.log.writing import DecidedChange, PlacedCommit, check_fence, check_may_follow

IDLE_ROUNDS = 3
"""LISTs without a proposal of another process, after which processes put their own versions again.

Before that, a process that had its outcome gets time to come back.
"""
FOLLOWED_BY_ONE = 3
"""Lost races after which a combiner checks for more versions before its next put.

An earlier check would cost it the lead that it gains on a writer that puts version after version.
"""
CATCH_UP_MAX = 64
"""Versions from before this process's start that are read because of proposals that saw them."""
GATHERED_SIZE_MAX = 16 * 1024 * 1024
"""The bytes of rows that a version gathers. Further rows go into the next version."""


def order_of(keys: Sequence[str], version: int) -> list[str]:
    """Return proposal keys in their authors' order of combining, which changes with each version."""
    return sorted(keys, key=lambda key: zlib.crc32(f"{version} {key}".encode()))


COLLECTED_AFTER_PUTS = 1 / 6
"""The delay after a put, in PUTs, before the inbox is listed for the next version.

It applies to versions without a file. With a shorter delay, more proposals made on the version before come
later.
"""


class CourierRound(Generic[S]):
    """The work of a courier while it commits for others."""

    def __init__(self, pending_changes: PendingChanges[S]) -> None:
        self._pending = pending_changes
        self._inbox = pending_changes.inbox
        self._replay = pending_changes.replay
        self._unfit: set[str] = set()
        """Keys of proposals that made a version impossible."""
        self._deleted: set[str] = set()
        self._left_alone: set[str] = set()
        """Ids of other clients' changes with rows that cannot be used."""
        self._gathered: tuple[list[str], GatheredChanges[S]] | None = None
        """The result written for rows, with the ids of their changes, that no version has yet."""

    def work(self) -> bool:
        """Put versions until another client combines, or no caller waits.

        Returns False if no other process proposes anything any more.
        """
        goes_on = self._work()
        self._discard()  # not after an exception, since a version may have it; if none has, vacuum finds it
        return goes_on

    def _work(self) -> bool:
        pending, idle_rounds = self._pending, 0
        pace = pending.pace
        idle_since_s = called_s = pace.now_s()
        if self._catch_up():
            return True
        while idle_rounds < IDLE_ROUNDS or pace.now_s() < idle_since_s + pace.linger_s:
            if pending.has_callers:
                called_s = pace.now_s()
            elif (
                not idle_rounds
                and pace.now_s() < called_s + pace.linger_s
                and threading.main_thread().is_alive()
            ):
                pass  # otherwise other clients would wait long before they learn that it no longer combines
            elif not pending.wait_for_callers():
                return True
            pending.take()
            idle_rounds += 1
            if self._open_proposals():
                idle_rounds, idle_since_s = 0, pace.now_s()
            judged = self._judge()
            if not judged.decided:
                has_refused = bool(judged.refused)
                self._give_back_refused(judged)
                self._inbox.collect(pending.view.version)
                if not has_refused and not any(self._open_proposals()):
                    pending.sleep(pending.pace.put_s)
            elif not self._put(judged):
                return True
        return False

    def _catch_up(self) -> bool:
        """Read the proposals, and the versions since the oldest of them. Returns whether another client combines."""
        pending, window = self._pending, self._pending.window
        if pending.follow(following(self._replay, pending.view.version, None, batch=1)):
            return True
        self._inbox.collect(pending.view.version)
        heads_seen = [proposal.seen for proposal in self._inbox.read.values() if proposal is not None]
        start = max(min(heads_seen, default=window.since), window.since - CATCH_UP_MAX, 0)
        if start < window.since:
            effects = list(self._replay.effects(start + 1, window.since))
            commits = [effect for effect in effects if isinstance(effect, Commit)]
            if len(commits) == len(effects):
                window.add_before(commits, start)
        return False

    def _open_proposals(self) -> list[tuple[str, Proposal]]:
        """Return the proposals of other processes that can be committed next, with their keys."""
        pending = self._pending
        open_proposals = []
        for key, proposal in self._inbox.read.items():
            if proposal is None or key in self._unfit or proposal.log_id != pending.view.log_id:
                continue
            undecided_flags = (
                change.commit_id not in pending.mine and not pending.window.is_decided(change.commit_id)
                for change in proposal.changes
            )
            if pending.window.is_open(proposal, pending.view.version + 1) and any(undecided_flags):
                open_proposals.append((key, proposal))
        return sorted(open_proposals, key=lambda item: (item[1].seen, item[0]))

    def _judge(self) -> _JudgedRound[S]:
        pending = self._pending
        judged = _JudgedRound(pending.view, self._replay.projection, pending.by_data.lets_pass)
        for change in list(pending.mine.values()):
            if judged.is_full:
                break
            # Marked as proposed, it shows other clients that the version is a combiner's.
            seen_version = change.cursor.proposed_seen if change.cursor.is_proposed else 0
            pending.judge_change(judged, change, seen=seen_version)
        for key, proposal in self._open_proposals():
            if judged.is_full:
                break
            judged.keys.append(key)
            self._judge_proposal(judged, proposal)
        if judged.rows:
            self._gather(judged)
        return judged

    def _give_back_refused(self, judged: _JudgedRound[S]) -> None:
        while judged.refused:
            self._pending.set_apart(judged.refused.pop()[0])  # its thread checks whether the refusal is final

    def _judge_proposal(self, judged: _JudgedRound[S], proposal: Proposal) -> None:
        """Add the changes of a proposal that can be decided here; their authors have to commit the others."""
        pending = self._pending
        for change in proposal.changes:
            is_known = pending.window.is_decided(change.commit_id) or judged.has(change.commit_id)
            if is_known or change.commit_id in pending.mine or change.commit_id in self._left_alone:
                continue
            draft = Draft(events=change.events, write=change.write, rows=change.rows)
            try:
                if not draft.rows:
                    draft = pending.by_data.redo(judged.view, draft)
                check_may_follow(judged.before, draft, self._replay.location)
                check_fence(judged.before, draft, self._replay.location)
                decided_change = DecidedChange(
                    change.commit_id, change.base, draft, change.writer, seen=proposal.seen
                )
                if judged.has_room_for(draft):
                    judged.add(decided_change)
            except Exception:
                continue  # Any client can have written it, so it must not hold up other changes.

    def _gather(self, judged: _JudgedRound[S]) -> None:
        """Add the changes that have rows, and the change that they make together.

        This comes after all other changes, so that their base is known. Changes of this process that cannot
        be included go by themselves.
        """
        pending = self._pending
        rows_result = self._gathered_on(judged)
        parts: list[DecidedChange] = []
        for i, change in enumerate(judged.rows):
            events = None if rows_result is None else rows_result.events[i]
            if events is not None:
                parts.append(replace(change, draft=Draft(events=events)))
            elif change.commit_id in pending.mine:
                self._leave_out(judged, change)
            else:
                self._left_alone.add(change.commit_id)
        if rows_result is None or not parts:
            return
        id, base_view = self._replay.options.new_id(), judged.before
        parts.append(DecidedChange(id, base_view.version, rows_result.draft, dict(pending.writer.writer)))
        try:
            check_fence(base_view, rows_result.draft, self._replay.location)
            judged.add_all(parts)
        except Exception:
            # The error does not show whose rows caused it. Their authors still have them.
            self._unfit.update(judged.keys)
            for change in judged.rows:
                if change.commit_id in pending.mine:
                    self._leave_out(judged, change)

    def _leave_out(self, judged: _JudgedRound[S], decided_change: DecidedChange) -> None:
        """Have a change of this process go by itself, because its rows cannot be gathered with other rows."""
        own_change = self._pending.mine[decided_change.commit_id]
        judged.leave_out(own_change)
        self._pending.set_apart(own_change)

    def _gathered_on(self, judged: _JudgedRound[S]) -> GatheredChanges[S] | None:
        """Return the result for the rows on the view so far. It is written once for any number of races."""
        ids = [change.commit_id for change in judged.rows]
        if self._gathered is not None and self._gathered[0] == ids:
            draft = self._gathered[1].again(judged.view)
            if draft is not None:
                return replace(self._gathered[1], draft=draft)
        self._discard()
        rows_result = self._pending.by_data.gather(judged.view, [change.draft.rows for change in judged.rows])
        if rows_result is not None:
            self._gathered = ids, rows_result
        return rows_result

    def _discard(self) -> None:
        if self._gathered is not None:
            rows_result, self._gathered = self._gathered[1], None
            rows_result.discard()

    def _put(self, judged: _JudgedRound[S]) -> bool:
        """Put the version, and at the same time read new proposals. Returns whether to go on."""
        goes_on: list[bool] = []
        collections: list[dict[str, Proposal | None]] = []
        works: list[Callable[[], None]] = [
            lambda: goes_on.append(self._put_anew(judged)),
            lambda: collections.append(self._collected(judged)),
        ]
        decided_keys = self._decided_keys()
        if decided_keys:
            works.append(lambda: self._inbox.delete(decided_keys))
        try:
            self._pending.options.in_parallel(works)
        except StorageError:
            if not goes_on:
                raise  # This is the put's error. If other errors last, the next try reports them.
        for proposals in collections:
            self._inbox.read = proposals
        return goes_on[0]

    def _collected(self, judged: _JudgedRound[S]) -> dict[str, Proposal | None]:
        if not judged.rows:
            self._pending.options.sleep_s(COLLECTED_AFTER_PUTS * self._pending.pace.put_s)
        return self._inbox.collected(judged.before.version)

    def _put_anew(self, judged: _JudgedRound[S]) -> bool:
        """Put the version, and after each lost race the remaining changes at once. Returns whether to go on.

        A winner needs no read before its next put, and would win again. Returns False if another client
        combines.
        """
        pending, lost_races = self._pending, 0
        while judged.decided:
            start_s = pending.pace.now_s()
            try:
                result = pending.put(judged)
            except LakelogError as error:
                return self._failed(error, judged)
            pending.pace.measured_put(pending.pace.now_s() - start_s)
            if isinstance(result, PlacedCommit):
                self._placed(result, judged)
                return True
            judged.forget()
            batch, lost_races = 2 if lost_races >= FOLLOWED_BY_ONE else 0, lost_races + 1
            newer = following(self._replay, pending.view.version, result, batch=batch)
            if pending.follow(newer):
                return False
            judged = self._judge()
        return True

    def _decided_keys(self) -> list[str]:
        """Return keys of fully decided proposals, which no client waits for. Each key comes once."""
        is_decided = self._pending.window.is_decided
        self._deleted &= self._inbox.read.keys()
        keys = [
            key
            for key, proposal in self._inbox.read.items()
            if key not in self._deleted
            and proposal is not None
            and all(is_decided(change.commit_id) for change in proposal.changes)
        ]
        self._deleted.update(keys)
        return keys

    def _placed(self, placed_commit: PlacedCommit[S], judged: _JudgedRound[S]) -> None:
        pending, commit, self._gathered = self._pending, placed_commit.commit, None
        pending.view = pending.settled(placed_commit, judged)
        pending.window.add(commit.version, commit)
        self._give_back_refused(judged)
        pending.pass_all(commit, None)

    def _failed(self, error: LakelogError, judged: _JudgedRound[S]) -> bool:
        """Handle the waiting changes after a failed put, and return whether to go on.

        Other processes have other combiners, or go ahead.
        """
        if isinstance(error, CommitUnknown):
            self._gathered = None  # a version may have it
        is_final = isinstance(error, CommitUnknown | StorageError)
        if not is_final:
            self._unfit.update(judged.keys)  # they make an impossible version
        self._pending.failed(error, judged)
        return not is_final


class _JudgedRound(JudgedVersion[S]):
    """The decisions for a version, with rows. `keys` are those of the proposals decided with it.

    `rows` are changes whose rows are yet to be gathered.
    """

    def __init__(
        self, view_before: LogView[S], projection: StateProjection[S], lets_pass: Callable[[Commit], bool]
    ) -> None:
        super().__init__(view_before, projection, lets_pass)
        self.keys: list[str] = []
        self.rows: list[DecidedChange] = []
        self._rows_ids: set[str] = set()
        self._rows_size_bytes = 0

    @property
    def is_full(self) -> bool:
        return super().is_full or self._rows_size_bytes > GATHERED_SIZE_MAX

    def has_room_for(self, draft: Draft) -> bool:
        if not self.decided and not self.rows:
            return True
        # Changes with rows, and the change that they make, are added last.
        rows_changes = len(self.rows) + 1 if self.rows or draft.rows else 0
        return self._changes + rows_changes + len(draft.carries) < CHANGES_MAX

    def has(self, commit_id: str) -> bool:
        return super().has(commit_id) or commit_id in self._rows_ids

    def add(self, change: DecidedChange) -> None:
        """Add a change, or keep it until its rows are gathered with other rows."""
        if change.draft.blobs:
            raise ValueError("what has sidecars goes by itself")
        if not change.draft.rows:
            self.fold(change)
            return
        self.rows.append(change)
        self._rows_ids.add(change.commit_id)
        self._rows_size_bytes += len(change.draft.rows)
