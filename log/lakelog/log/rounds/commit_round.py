"""The loop that commits: judge changes on the newest state, put them as a version, settle it, hand out outcomes.

A single change is a round of its own. Its version is a plain commit, or the intent of a transaction. If
several changes share a version, each is decided on the state after the changes before it. So it learns its
outcome only after the put is settled. Changes that lose to another writer are judged again, after that
writer's version. Safety needs nothing of this, only the put-if-absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic, TypeAlias

from lakelog.log.costs import attempted
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.following import Follower, IntentUndecided, VersionTrail, following
from lakelog.log.format import PROPOSALS, Commit, Intent
from lakelog.log.proposals.refusals import refusal_of
from lakelog.log.proposals.watch import wish
from lakelog.log.rounds.judging import JudgedVersion
from lakelog.log.rounds.waiting import WaitingChange, own_error, unknown
from lakelog.log.view import CommittedChange, Draft, LogView, S
from lakelog.log.writing import DecidedChange, LogWriter, PlacedCommit, check_fence

Send: TypeAlias = Callable[[Sequence[WaitingChange[S]]], None]
"""Hands changes over to a courier, which marks those that it takes as `sent`."""


class CommitRound(Generic[S]):
    """The steps to a version, for a round that a thread leads, or a process that combines."""

    def __init__(self, writer: LogWriter[S], trail: VersionTrail[S]) -> None:
        self.writer = writer
        self.replay = writer.replay
        self.trail = trail

    def end(self, change: WaitingChange[S], outcome: CommittedChange[S] | BaseException) -> None:
        """Hand out the `outcome` of a change."""
        raise NotImplementedError

    def set_apart(self, change: WaitingChange[S]) -> None:
        """Have a change go by itself, because it cannot share a version."""
        raise NotImplementedError

    def judge_change(
        self, judged_version: JudgedVersion[S], change: WaitingChange[S], *, seen: int = 0
    ) -> None:
        """Add a change to a version, or record why it is refused.

        The version contains the refusal if other clients have to know it.
        """
        cursor, writer = change.cursor, change.run(dict, self.writer.writer)
        try:
            draft: Draft = change.run(cursor.decide, judged_version.view)
            check_fence(judged_version.before, draft, cursor.location)
        except LakelogError as error:
            if cursor.is_open_elsewhere and error.is_for_good:
                refusal = refusal_of(error)
                judged_version.add(
                    DecidedChange(cursor.commit_id, cursor.base, Draft(), writer, refused=refusal)
                )
                judged_version.outcomes.append((change, error))
            else:
                judged_version.refused.append((change, error))
            return
        except Exception as error:
            if not judged_version.is_shared:
                self.end(change, error)
            else:
                self.set_apart(change)  # the state that it was judged on may never exist
            return
        if not judged_version.has_room_for(draft):
            return  # the next version will have it
        try:
            judged_version.add(DecidedChange(cursor.commit_id, cursor.base, draft, writer, seen=seen))
        except Exception:
            self.set_apart(change)  # its own put reports the problem, or that it cannot be folded
        else:
            judged_version.outcomes.append((change, None))

    def put(
        self, judged_version: JudgedVersion[S], *, marks: bool = False, intent: Intent | None = None
    ) -> PlacedCommit[S] | bytes:
        """Put the judged changes. A single change is a plain commit, unless it was proposed or is refused."""
        [*earlier_changes, last] = judged_version.decided
        if earlier_changes or last.seen or last.refused is not None:
            for change, _ in judged_version.outcomes:
                change.run(attempted)
            return self.writer.put_together(judged_version.before, judged_version.decided, marks=marks)
        draft = replace(last.draft, proposals=True) if marks else last.draft
        [(change, _)] = judged_version.outcomes
        result: PlacedCommit[S] | bytes = change.run(
            self.writer.put, judged_version.before, draft, last.commit_id, base=last.base, intent=intent
        )
        return result

    def settled(self, commit: PlacedCommit[S], judged_version: JudgedVersion[S]) -> LogView[S]:
        """Hand out the outcomes of a version that is in the log, and return the view after it."""
        view = self.writer.settled(commit)
        self.trail.add(commit.commit, None, commit.after)
        for change, error in judged_version.outcomes:
            self.end(change, error or CommittedChange(view, commit.commit.version))
        judged_version.outcomes.clear()  # otherwise errors and frames would keep each other alive
        return view

    def failed(self, error: Exception, judged_version: JudgedVersion[S]) -> None:
        """Hand out the outcomes of a failed put if they are known. Otherwise each change goes by itself."""
        for change, refusal in judged_version.outcomes:
            if change.done is not None:
                continue  # it got an outcome since
            commit_id = change.cursor.commit_id
            if isinstance(error, CommitUnknown) and (
                judged_version.is_shared or error.commit_id != commit_id
            ):
                self.end(change, unknown(commit_id, error.location, error.message))
            elif isinstance(error, StorageError) and (refusal or change.cursor.is_open_elsewhere):
                self.end(change, change.cursor.unknown(str(error)))  # others may apply it
            elif not judged_version.is_shared:
                self.end(change, change.cursor.failure(error))
            elif isinstance(error, StorageError):
                self.end(change, own_error(error))
            else:
                self.set_apart(
                    change
                )  # together they make an impossible version; by itself, each reports its error
        judged_version.forget()


class ThreadRound(CommitRound[S]):
    """Changes that a thread commits for several threads, in as few versions as possible."""

    def __init__(
        self,
        writer: LogWriter[S],
        waiting_changes: Sequence[WaitingChange[S]],
        trail: VersionTrail[S] | None = None,
        *,
        lets_pass: Callable[[Commit], bool] | None = None,
        send: Send[S] | None = None,
        is_wished: bool = False,
        intent: Intent | None = None,
        patient: bool = True,
    ) -> None:
        """Prepare a round of changes. `send` hands changes that lose races to a courier, if any.

        `is_wished` means that other clients wait for the log's mark, which allows them to propose. A round of
        an `intent` has a single change, whose outcome is `PlacedCommit`. A round that is not `patient` does not
        wait for other transactions: it ends with Busy.
        """
        super().__init__(writer, trail or VersionTrail(writer.replay))
        self.waiting = list(waiting_changes)
        self.apart: list[WaitingChange[S]] = []
        self.lets_pass = lets_pass
        self.send = send
        self.is_wished = is_wished
        self.intent = intent
        self.patient = patient

    def commit(self) -> None:
        """Put versions until each change has its outcome, or a courier has it."""
        send = self.send
        while self._level():
            if self._is_contended:
                self._send_all()
            elif self._lost < self.replay.options.rebases_max:
                self._one_version()
            else:
                for change in list(self.waiting):
                    self.end(change, change.cursor.lost_too_often())
        for change in self.apart:
            own_round = ThreadRound(self.writer, [change], self.trail, send=send, is_wished=self.is_wished)
            own_round.commit()

    @property
    def _view(self) -> LogView[S]:
        return self.waiting[0].cursor.view

    @property
    def _lost(self) -> int:
        return max(change.cursor.lost for change in self.waiting)

    @property
    def _is_contended(self) -> bool:
        """Whether others should commit these changes. The log must be marked first, so that its readers know."""
        losing_flags = (change.cursor.combined or change.cursor.is_losing for change in self.waiting)
        return self.send is not None and PROPOSALS in self._view.writer_features and all(losing_flags)

    @property
    def marks(self) -> bool:
        """Whether the next version should mark the log for proposals, because the next lost race may lead to some."""
        may_help = self.is_wished or any(change.cursor.is_losing for change in self.waiting)
        return self.send is not None and may_help and PROPOSALS not in self._view.writer_features

    def _send_all(self) -> None:
        assert self.send is not None
        self.send(self.waiting)
        self.waiting = [change for change in self.waiting if not change.sent]
        self.send = (
            None  # If the interpreter exits and the courier did not take some, they are put as before.
        )

    def _one_version(self) -> None:
        """Put a version of all changes that fit, and end those whose outcome is then known. Others stay."""
        marks = self.marks
        judged = self._judge()
        if not judged.decided:
            self._refuse_if_newest(judged)
            return
        try:
            if marks and self._lost:
                self._wish()
            result = self.put(judged, marks=marks, intent=self.intent)
        except Exception as error:
            self._failed(error, judged)
            return
        if not isinstance(result, PlacedCommit):
            has_refused = any(decided_change.refused for decided_change in judged.decided)
            judged.forget()
            self._pass_newer(result, batch=2 if self._lost or has_refused else 0)
        elif self.intent is not None:
            self.waiting.pop().done = result
        else:
            self.settled(result, judged)
            self._refuse(judged)

    def _wish(self) -> None:
        """Ask for the log's mark on behalf of the first change, unless that has happened."""
        first_change = self.waiting[0]
        self.replay.check_writable(self._view)
        if not first_change.has_wished:
            first_change.has_wished = True
            wish(
                self.replay,
                first_change.cursor.view.version,
                first_change.cursor.commit_id,
                first_change.is_over,
            )

    def _judge(self) -> JudgedVersion[S]:
        view, is_shared = self._view, len(self.waiting) > 1
        judged = JudgedVersion(view, self.replay.projection, self.lets_pass, is_shared=is_shared)
        for change in list(self.waiting):
            if judged.is_full:
                break
            if change.cursor.view.hash != view.hash:
                self.set_apart(change)  # it belongs to another log, which was at this place before
            elif not judged.has(change.cursor.commit_id):  # a retry of another thread finds that it happened
                self.judge_change(judged, change)
        return judged

    def _refuse_if_newest(self, judged_version: JudgedVersion[S]) -> None:
        """End the refused changes, unless a version is newer than the judged one, which may have their commits."""
        if judged_version.refused:
            first_change, judged_view = self.waiting[0], self._view
            self._pass_newer(None, batch=1)
            if first_change.done is None and first_change.cursor.view is judged_view:
                self._refuse(judged_version)
            judged_version.forget()

    def _refuse(self, judged_version: JudgedVersion[S]) -> None:
        while judged_version.refused:
            change, error = judged_version.refused.pop(0)
            if change in self.waiting:
                self.end(change, error)

    def _failed(self, error: Exception, judged_version: JudgedVersion[S]) -> None:
        if isinstance(error, CommitUnknown) and self.intent is not None:
            error = _given_up(self.intent, error, self.replay.location)
        if isinstance(error, StorageError):
            self._look_for_earlier_tries([change for change, _ in judged_version.outcomes])
        self.failed(error, judged_version)

    def _look_for_earlier_tries(self, tried_changes: Sequence[WaitingChange[S]]) -> None:
        """End changes whose put had no effect, if an earlier try with a lost answer succeeded."""
        for change in tried_changes:
            # A change reads up to the head, and the others pass the entries that it read. A change that finds
            # its own commit first stops earlier.
            if self._has_looked(change):
                break
        self._pass_known()

    def _has_looked(self, change: WaitingChange[S]) -> bool:
        cursor, patient = change.cursor, self.patient and self.intent is None
        try:
            newer = following(self.replay, cursor.view.version, None, batch=1, patient=patient)
            commit = cursor.rebase(newer, self.trail)
        except StorageError:
            return True  # the others could not read either
        except LakelogError:
            return False
        except IntentUndecided as error:
            self.end(change, error)
            return True
        if commit is not None:
            self.end(change, commit)
        return commit is None

    def _level(self) -> bool:
        """Bring all changes to one version, by remembered entries or a read. Returns whether any is left."""
        while True:
            self._pass_known()
            newest = max((change.cursor.view.version for change in self.waiting), default=0)
            late_changes = [change for change in self.waiting if change.cursor.view.version < newest]
            if not late_changes:
                return bool(self.waiting)
            self._pass(
                late_changes[0], following(self.replay, late_changes[0].cursor.view.version, None, batch=1)
            )

    def _pass_known(self) -> None:
        for change in list(self.waiting):
            self._pass(change, self.trail.following(change.cursor.view))

    def _pass_newer(self, data: bytes | None, *, batch: int) -> None:
        """Pass another writer's versions, read for the first change. Others follow by remembered entries."""
        for change in self.waiting:
            change.cursor.lost += 1
        first_change = self.waiting[0]
        version = first_change.cursor.view.version
        self._pass(first_change, following(self.replay, version, data, batch=batch, patient=self.patient))

    def _pass(self, change: WaitingChange[S], newer: Iterable[Follower]) -> None:
        """Move a change past the entries after its view, which may end it: they may have its own commit, or a seal."""
        try:
            commit = change.cursor.rebase(newer, self.trail)
        except Exception as error:
            self.end(change, change.cursor.failure(error))
        else:
            if commit is not None:
                self.end(change, commit)

    def set_apart(self, change: WaitingChange[S]) -> None:
        self.apart.append(change)
        self.waiting.remove(change)

    def end(self, change: WaitingChange[S], outcome: CommittedChange[S] | BaseException) -> None:
        change.done = outcome
        self.waiting.remove(change)


def _given_up(intent: Intent, unsettled: CommitUnknown, location: str) -> StorageError:
    """Return the error of an intent that may be in its log but will never be committed, as its coordinator knows."""
    error = StorageError(
        f"gave up transaction {intent.txn} of commit {unsettled.commit_id}, of which nothing happened: whether its "
        f"part for {location} was written is not known; retry",
        location=unsettled.location,
    )
    error.__cause__ = unsettled
    return error
