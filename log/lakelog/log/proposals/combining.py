"""One process that commits, for a while, what all have proposed: one version after another, each of all that it knows.

The version's put-if-absent is all that decides. What a proposal may be applied to, the `Window` says: a client that
puts a version has compared the ids of all versions since the one that the proposal's author saw.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.format import CHANGES_MAX, Commit, Proposal
from lakelog.log.placing import following
from lakelog.log.proposals.judging import Judged
from lakelog.log.proposals.pending import Pending
from lakelog.log.proposals.refusals import refusal_of
from lakelog.log.proposals.waiting import Waiting, own_error, unknown
from lakelog.log.view import Committed, Draft, Gathered, Projection, S, View
from lakelog.log.writing import Decided, Placed, check_fence, check_may_follow

IDLE_ROUNDS = 3
"""LISTs without a proposal of another process, after which each goes back to puts of its own: but not before one that
had its outcome could come back."""
FOLLOWED_BY_ONE = 3
"""Races lost after which a combiner looks whether there is yet more before its next put. Before, a look would cost it
the lead that it gains on a writer which puts one version after the other."""
CATCH_UP_MAX = 64
"""Versions from before this process was there that are read for proposals that saw them."""
GATHERED_SIZE_MAX = 16 * 1024 * 1024
"""Of the rows that one version gathers; what is above goes into the next one."""


def order_of(keys: Sequence[str], version: int) -> list[str]:
    """Return the keys of proposals in the order in which their authors are to combine: another one after each
    version."""
    return sorted(keys, key=lambda key: zlib.crc32(f"{version} {key}".encode()))


COLLECTED_AFTER_PUTS = 1 / 6
"""How long after its put a version without a file has the inbox listed for the next one: the sooner, the more of what
is proposed at sight of the version before comes a version later."""


class Combining(Generic[S]):
    """What a courier does while it commits for others."""

    def __init__(self, pending: Pending[S]) -> None:
        self._pending = pending
        self._inbox = pending.inbox
        self._replay = pending.replay
        self._unfit: set[str] = set()
        """Keys of proposals that no version could be made with."""
        self._deleted: set[str] = set()
        self._left_alone: set[str] = set()
        """Ids of changes of others with rows that nothing can be made of."""
        self._gathered: tuple[list[str], Gathered[S]] | None = None
        """What was written for rows, by the ids of their changes, and is in no version yet."""

    def work(self) -> bool:
        """Put versions until another client combines, or no caller waits. False where no other process proposes
        anything any more."""
        goes_on = self._work()
        self._discard()  # not after an exception: a version may have it, and if none has, vacuum finds it
        return goes_on

    def _work(self) -> bool:
        pending, idle = self._pending, 0
        pace = pending.pace
        idle_since_s = called_s = pace.now_s()
        if self._catch_up():
            return True
        while idle < IDLE_ROUNDS or pace.now_s() < idle_since_s + pace.linger_s:
            if pending.has_callers:
                called_s = pace.now_s()
            elif not idle and pace.now_s() < called_s + pace.linger_s and threading.main_thread().is_alive():
                pass  # others would wait for long until they know that it combines no more
            elif not pending.wait_for_callers():
                return True
            pending.take()
            idle += 1
            if self._open_proposals():
                idle, idle_since_s = 0, pace.now_s()
            judged = self._judge()
            if not judged.decided:
                for each in judged.refused:
                    pending.give_back(each)  # it looks whether that is final
                self._inbox.collect(pending.view.version)
                if not judged.refused and not any(self._open_proposals()):
                    pending.sleep(pending.pace.put_s)
            elif not self._put(judged):
                return True
        return False

    def _catch_up(self) -> bool:
        """Begin with what is proposed, and know the versions since the oldest of it. Returns whether another client
        combines."""
        pending, window = self._pending, self._pending.window
        if pending.follow(following(self._replay, pending.view.version, None, batch=1, patient=True)):
            return True
        self._inbox.collect(pending.view.version)
        seen = [proposal.seen for proposal in self._inbox.read.values() if proposal is not None]
        since = max(min(seen, default=window.since), window.since - CATCH_UP_MAX, 0)
        if since < window.since:
            older = list(self._replay.effects(since + 1, window.since))
            commits = [each for each in older if isinstance(each, Commit)]
            if len(commits) == len(older):
                window.add_before(commits, since)
        return False

    def _open_proposals(self) -> list[tuple[str, Proposal]]:
        """Return the proposals of other processes that can be committed next, by their keys."""
        pending = self._pending
        found = []
        for key, proposal in self._inbox.read.items():
            if proposal is None or key in self._unfit or proposal.log_id != pending.view.log_id:
                continue
            waits = (
                change.commit_id not in pending.mine and not pending.window.is_decided(change.commit_id)
                for change in proposal.changes
            )
            if pending.window.is_open(proposal, pending.view.version + 1) and any(waits):
                found.append((key, proposal))
        return sorted(found, key=lambda item: (item[1].seen, item[0]))

    def _judge(self) -> _JudgedRound[S]:
        pending = self._pending
        judged = _JudgedRound(pending.view, self._replay.projection, pending.by_data.lets_pass)
        for each in list(pending.mine.values()):
            if judged.is_full:
                break
            self._judge_own(judged, each)
        for key, proposal in self._open_proposals():
            if judged.is_full:
                break
            judged.keys.append(key)
            self._judge_proposal(judged, proposal)
        if judged.rows:
            self._gather(judged)
        return judged

    def _judge_own(self, judged: _JudgedRound[S], each: Waiting[S]) -> None:
        placing = each.placing
        writer = each.run(dict, self._pending.writer.writer)
        try:
            draft: Draft = each.run(placing.decide, judged.view, tuple(placing.passed))
            check_may_follow(judged.before, draft, placing.location)
            check_fence(judged.before, draft, placing.location)
        except LakelogError as error:
            if placing.is_open_elsewhere and error.is_for_good:
                refused = Decided(placing.commit_id, placing.base, Draft(), writer)
                judged.add_refused(refused, refusal_of(error))
                judged.errors[placing.commit_id] = error
            else:
                judged.refused.append(each)
            return
        except Exception:
            self._pending.give_back(each)  # its own put says what it is
            return
        try:
            if draft.blobs:
                raise ValueError("what has sidecars goes by itself")
            if (judged.decided or judged.rows) and not judged.has_room_for(draft):
                return
            # As it was proposed, others see that the version is a combiner's.
            seen = placing.proposed_seen if placing.is_proposed else 0
            decided = Decided(placing.commit_id, placing.base, draft, writer, seen=seen)
            if draft.rows:
                judged.add_rows(decided)
            else:
                judged.add(decided)
        except Exception:
            self._pending.give_back(each)

    def _judge_proposal(self, judged: _JudgedRound[S], proposal: Proposal) -> None:
        """Add the changes of a proposal that can be decided here; others are their authors' own to commit."""
        pending = self._pending
        for change in proposal.changes:
            known = pending.window.is_decided(change.commit_id) or judged.has(change.commit_id)
            if known or change.commit_id in pending.mine or change.commit_id in self._left_alone:
                continue
            features = tuple(proposal.features)
            draft = Draft(events=change.events, write=change.write, features=features, rows=change.rows)
            try:
                if not draft.rows:
                    draft = pending.by_data.redo(judged.view, draft)
                check_may_follow(judged.before, draft, self._replay.location)
                check_fence(judged.before, draft, self._replay.location)
                decided = Decided(change.commit_id, change.base, draft, change.writer, seen=proposal.seen)
                if draft.rows:
                    judged.add_rows(decided)
                elif judged.has_room_for(draft):
                    judged.add(decided)
            except Exception:
                continue  # any client can have written it: it holds up no other one

    def _gather(self, judged: _JudgedRound[S]) -> None:
        """Add the changes that have rows, and the one that they make together: after all others, so that it is known
        what they stand on. Those of this process that cannot be among them go by themselves."""
        pending = self._pending
        gathered = self._gathered_on(judged)
        parts: list[Decided] = []
        for i, each in enumerate(judged.rows):
            events = None if gathered is None else gathered.events[i]
            if events is not None:
                parts.append(replace(each, draft=Draft(events=events, features=each.draft.features)))
            elif each.commit_id in pending.mine:
                pending.give_back(pending.mine[each.commit_id])
            else:
                self._left_alone.add(each.commit_id)
        if gathered is None or not parts:
            return
        id, before = self._replay.options.new_id(), judged.before
        parts.append(Decided(id, before.version, gathered.draft, dict(pending.writer.writer)))
        try:
            check_fence(before, gathered.draft, self._replay.location)
            judged.add_all(parts)
        except Exception:
            # Nothing says of whose rows it is. Their authors have them still.
            self._unfit.update(judged.keys)
            for each in judged.rows:
                if each.commit_id in pending.mine:
                    pending.give_back(pending.mine[each.commit_id])

    def _gathered_on(self, judged: _JudgedRound[S]) -> Gathered[S] | None:
        """Return what the rows make on the view so far. It is written once for as many races as it takes."""
        ids = [each.commit_id for each in judged.rows]
        if self._gathered is not None and self._gathered[0] == ids:
            draft = self._gathered[1].again(judged.view)
            if draft is not None:
                return replace(self._gathered[1], draft=draft)
        self._discard()
        gathered = self._pending.by_data.gather(judged.view, [each.draft.rows for each in judged.rows])
        if gathered is not None:
            self._gathered = ids, gathered
        return gathered

    def _discard(self) -> None:
        if self._gathered is not None:
            gathered, self._gathered = self._gathered[1], None
            gathered.discard()

    def _put(self, judged: _JudgedRound[S]) -> bool:
        """Put the version, and see what is proposed meanwhile. Returns whether to go on."""
        goes_on: list[bool] = []
        collected: list[dict[str, Proposal | None]] = []
        works: list[Callable[[], None]] = [
            lambda: goes_on.append(self._put_anew(judged)),
            lambda: collected.append(self._collected(judged)),
        ]
        decided = self._decided_keys()
        if decided:
            works.append(lambda: self._inbox.delete(decided))
        try:
            self._pending.options.in_parallel(works)
        except StorageError:
            if not goes_on:
                raise  # of the put; the others' next try says the same again, if it lasts
        for read in collected:
            self._inbox.read = read
        return goes_on[0]

    def _collected(self, judged: _JudgedRound[S]) -> dict[str, Proposal | None]:
        if not judged.rows:
            self._pending.options.sleep_s(COLLECTED_AFTER_PUTS * self._pending.pace.put_s)
        return self._inbox.collected(judged.before.version)

    def _put_anew(self, judged: _JudgedRound[S]) -> bool:
        """Put the version, and after a lost race one with what is left of it at once: who wins needs no read, and would
        win again. Returns whether to go on: not where another client combines."""
        pending, lost = self._pending, 0
        while judged.decided:
            begun_s = pending.pace.now_s()
            try:
                put = self._put_version(judged)
            except LakelogError as error:
                return self._failed(error, judged)
            pending.pace.measured_put(pending.pace.now_s() - begun_s)
            if isinstance(put, Placed):
                self._placed(put, judged)
                return True
            batch, lost = 2 if lost >= FOLLOWED_BY_ONE else 0, lost + 1
            found = following(self._replay, pending.view.version, put, batch=batch, patient=True)
            if pending.follow(found):
                return False
            judged = self._judge()
        return True

    def _put_version(self, judged: _JudgedRound[S]) -> Placed[S] | bytes:
        [*others, last] = judged.decided
        if others or last.seen or last.refused is not None:
            return self._pending.writer.put_together(judged.before, judged.decided)
        each, writer = self._pending.mine[last.commit_id], self._pending.writer
        put: Placed[S] | bytes = each.run(
            writer.put, judged.before, last.draft, last.commit_id, base=last.base
        )
        return put

    def _decided_keys(self) -> list[str]:
        """Return the keys of proposals that no client waits for: all of their changes are decided. Each once."""
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

    def _placed(self, placed: Placed[S], judged: _JudgedRound[S]) -> None:
        pending, commit, self._gathered = self._pending, placed.commit, None
        pending.view = pending.writer.settled(placed)
        pending.trail.add(commit, None, placed.after)
        pending.window.add(commit.version, commit)
        for decided in judged.decided:
            each = pending.mine.get(decided.commit_id)
            if each is not None:
                error = judged.errors.get(decided.commit_id)
                pending.end(each, error or Committed(pending.view, commit.version))
        for each in judged.refused:
            pending.give_back(each)
        pending.pass_all(commit, None)

    def _failed(self, error: LakelogError, judged: _JudgedRound[S]) -> bool:
        """See to what waits here after a put that failed. Others have other combiners, or go ahead."""
        pending = self._pending
        mine = [pending.mine[each.commit_id] for each in judged.decided if each.commit_id in pending.mine]
        if isinstance(error, CommitUnknown):
            self._gathered = None  # a version may have it
            for each in mine:
                pending.end(each, unknown(each.placing.commit_id, error.location, error.message))
            return False
        if isinstance(error, StorageError):
            for each in mine:
                if each.placing.is_proposed:
                    pending.end(each, each.placing.unknown(str(error)))
                else:
                    pending.end(each, own_error(error))
            return False
        # They make a version that cannot be: each of this process by itself says which.
        self._unfit.update(judged.keys)
        for each in mine:
            pending.give_back(each)
        return True


class _JudgedRound(Judged[S]):
    """What was decided for one version. `errors` are those of what it refuses for good; `refused` is what may be
    decided anew, `keys` are those of the proposals that were decided with it, and `rows` are changes whose rows are
    yet to be gathered."""

    def __init__(
        self, before: View[S], projection: Projection[S], lets_pass: Callable[[Commit], bool]
    ) -> None:
        super().__init__(before, projection, lets_pass)
        self.errors: dict[str, LakelogError] = {}
        self.refused: list[Waiting[S]] = []
        self.keys: list[str] = []
        self.rows: list[Decided] = []
        self._rows_ids: set[str] = set()
        self._rows_size_bytes = 0

    @property
    def is_full(self) -> bool:
        return super().is_full or self._rows_size_bytes > GATHERED_SIZE_MAX

    def has_room_for(self, draft: Draft) -> bool:
        # Those that have rows, and the one that they make, are added last.
        coming = len(self.rows) + 1 if self.rows else 0
        return self._changes + coming + len(draft.carries) < CHANGES_MAX

    def has(self, commit_id: str) -> bool:
        return super().has(commit_id) or commit_id in self._rows_ids

    def add_rows(self, decided: Decided) -> None:
        """Note one whose rows are gathered with those of others. ValueError where there is no room for it."""
        if self._changes + len(self.rows) + 2 > CHANGES_MAX:
            raise ValueError("the version is full")
        self.rows.append(decided)
        self._rows_ids.add(decided.commit_id)
        self._rows_size_bytes += len(decided.draft.rows)
