"""Changes that threads of one process make to one log at the same time: they share versions.

A thread that finds no other at work leads: it commits its own change and then, one version after another, all that came
meanwhile. Each is decided on the state that those before it leave, and learns its outcome after the put is settled, for
what was put before it is a part of what it was judged on. No thread waits for company: one that is alone puts what it
would put without this module. Nothing here is needed for safety, which is the put-if-absent's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.format import CHANGES_MAX, FORMAT, Commit, Settled, Tombstone, encode
from lakelog.log.parallel import Turns, Wanted
from lakelog.log.placing import Placing, Trail, lost_too_often
from lakelog.log.view import Committed, Draft, S, View
from lakelog.log.writing import Decided, Placed, Writer, check_fence, check_may_follow

SHARED_SIZE_MAX = 4 * 1024 * 1024
"""Of the events of a version that is shared; what is above goes into the next one."""


@dataclass(eq=False)
class _Waiting(Wanted, Generic[S]):
    """One change, which its thread waits for. `done` is what became of it, or why nothing did."""

    placing: Placing[S] = field(kw_only=True)
    run: Callable[..., Any] = field(default_factory=lambda: copy_context().run)
    """Runs a function with what its thread's context says: who writes, for one."""

    def outcome(self) -> Committed[S]:
        """Return what became of the change, or raise why nothing did."""
        if isinstance(self.done, BaseException):
            raise self.done
        assert isinstance(self.done, Committed)
        return self.done


class Sharing(Generic[S]):
    """The changes of one log that wait in this process."""

    def __init__(self, writer: Writer[S]) -> None:
        self._writer = writer
        self._turns: Turns[_Waiting[S]] = Turns(writer.replay.options.wait)
        self._trail: Trail[S] = Trail()

    @property
    def waiting(self) -> int:
        """How many changes wait for the one that is being put."""
        return self._turns.waiting

    def commit(self, placing: Placing[S]) -> Committed[S]:
        """Commit a change alone or with others. Its `decide` does no I/O, and its draft takes away no file that another
        one may have added. Those before it in its version show in the state of its view, and are not among what it
        passes. Raises what `Placing.place` raises."""
        own: _Waiting[S] = _Waiting(placing=placing)
        try:
            self._turns.take(own, self._commit, self._unfinished)
        finally:
            if self._turns.is_idle:
                self._trail = Trail()  # it holds states
        return own.outcome()

    def _commit(self, group: Sequence[_Waiting[S]]) -> None:
        _Group(self._writer, self._trail, group).commit()

    def _unfinished(self, each: _Waiting[S]) -> CommitUnknown:
        return unknown(
            each.placing.commit_id, self._writer.replay.location, "the thread that wrote it was interrupted"
        )


class _Group(Generic[S]):
    """Changes that one thread commits for all of theirs, in as few versions as they allow."""

    def __init__(self, writer: Writer[S], trail: Trail[S], group: Sequence[_Waiting[S]]) -> None:
        self.writer = writer
        self.replay = writer.replay
        self.trail = trail
        self.pending = list(group)
        self.alone: list[_Waiting[S]] = []
        self.lost = 0
        for each in group:
            each.placing.trail = trail

    def commit(self) -> None:
        while len(self.pending) > 1 and self.lost < self.replay.options.rebases_max:
            self._level(read=True)
            if len(self.pending) > 1:
                self._one_version()
        if len(self.pending) > 1:
            for each in self.pending:
                self._end(each, lost_too_often(each.placing))
        for each in [*self.pending, *self.alone]:
            self._place_alone(each)

    def _one_version(self) -> None:
        """Put one version of all that can be in it, and end those of which the outcome is known then; others stay."""
        judged = self._judge()
        if not judged.decided:
            self._refuse(judged.refused, put=False)
            return
        try:
            put = self._put(judged)
        except CommitUnknown as error:
            for each, _ in judged.decided:
                self._end(each, unknown(each.placing.commit_id, error.location, error.message))
            return  # those that were refused are judged again, on what is there now
        except StorageError as error:
            self._failed(error, [each for each, _ in judged.decided])
            return
        except LakelogError:
            # One of them makes a version that cannot be: by itself it says which.
            for each, _ in judged.decided:
                self._set_apart(each)
            return
        if not isinstance(put, Placed):
            self.lost += 1
            first = self.pending[0]
            self._pass(first, first.placing.newer(put, batch=2 if self.lost > 1 else 0, patient=True))
            return
        view = self.writer.settled(put)
        self.trail.add(put.commit, None, put.after)
        for each, _ in judged.decided:
            self._end(each, Committed(view, put.commit.version))
        self._refuse(judged.refused, put=True)

    def _judge(self) -> _Judged[S]:
        view = self.pending[0].placing.view
        judged = _Judged(view)
        for each in list(self.pending):
            if judged.changes >= CHANGES_MAX or judged.size_bytes > SHARED_SIZE_MAX:
                break
            placing = each.placing
            if placing.view.hash != view.hash:  # of another log, which was at this place before
                self._set_apart(each)
                continue
            if any(decided.commit_id == placing.commit_id for _, decided in judged.decided):
                continue  # a retry of another thread, which will find that it happened
            try:
                draft = each.run(placing.decide, judged.view, tuple(placing.passed))
                check_may_follow(view, draft, placing.location)
                check_fence(view, draft, placing.location)
            except Exception as error:
                judged.refused.append((each, error))
                continue
            if judged.blobs and draft.blobs:
                continue  # events refer to sidecars by their index: one change of a version has some
            if judged.changes + len(draft.carries) >= CHANGES_MAX and judged.decided:
                continue
            try:
                judged.add(self.writer, each, draft)
            except Exception:
                # What it is, or that it cannot be folded, its own put says.
                self._set_apart(each)
        return judged

    def _put(self, judged: _Judged[S]) -> Placed[S] | bytes:
        if len(judged.decided) > 1:
            return self.writer.put_together(judged.before, [decided for _, decided in judged.decided])
        [(each, decided)] = judged.decided
        put: Placed[S] | bytes = each.run(
            self.writer.put, judged.before, decided.draft, decided.commit_id, base=decided.base
        )
        return put

    def _refuse(self, refused: Sequence[tuple[_Waiting[S], Exception]], *, put: bool) -> None:
        """End those that were refused, if nothing is newer than what they were judged on: by a put, or by a look."""
        if not put and refused:
            first, before = refused[0][0], refused[0][0].placing.view
            self._pass(first, first.placing.newer(None, batch=1, patient=True))
            if first.done is not None or first.placing.view is not before:
                return
        for each, error in refused:
            if each in self.pending:
                self._end(each, error)

    def _failed(self, error: StorageError, decided: Sequence[_Waiting[S]]) -> None:
        """End those of a put without effect by its error, unless an earlier try of one had an effect."""
        for each in decided:
            # One of them reads up to the head; the others pass what it found. Not one that finds its own commit before.
            if each in self.pending and self._looked_for_all(each):
                break
        self._level(read=False)
        for each in decided:
            if each in self.pending:
                self._end(each, own_error(error))

    def _looked_for_all(self, each: _Waiting[S]) -> bool:
        try:
            found = each.placing.rebase(each.placing.newer(None, batch=1, patient=True))
        except StorageError:
            return True  # nor will the others
        except LakelogError:
            return False
        if found is not None:
            self._end(each, found)
        return found is None

    def _level(self, *, read: bool) -> None:
        """Take all to one version, past what is known to follow theirs, or by a read."""
        while True:
            for each in list(self.pending):
                self._pass(each, self.trail.following(each.placing.view))
            newest = max((each.placing.view.version for each in self.pending), default=0)
            behind = [each for each in self.pending if each.placing.view.version < newest]
            if not behind or not read:
                return
            self._pass(behind[0], behind[0].placing.newer(None, batch=1, patient=True))

    def _pass(self, each: _Waiting[S], newer: Iterable[tuple[Commit | Tombstone, Settled | None]]) -> None:
        """Move one past what follows its view, which may end it: its own commit may be there, or a seal."""
        try:
            found = each.placing.rebase(newer)
        except Exception as error:
            self._end(each, error)
        else:
            if found is not None:
                self._end(each, found)

    def _place_alone(self, each: _Waiting[S]) -> None:
        def place() -> Committed[S]:
            known = each.placing.rebase(self.trail.following(each.placing.view))
            done = known or each.placing.place()
            if isinstance(done, Committed):
                return done
            self.trail.add(done.commit, None, done.after)
            return Committed(self.writer.settled(done), done.commit.version)

        try:
            each.done = each.run(place)
        except Exception as error:
            each.done = error

    def _set_apart(self, each: _Waiting[S]) -> None:
        self.alone.append(each)
        self.pending.remove(each)

    def _end(self, each: _Waiting[S], done: Committed[S] | BaseException) -> None:
        each.done = done
        self.pending.remove(each)


class _Judged(Generic[S]):
    """What was decided of a group's changes for the version after `before`; `view` is what they make of that."""

    def __init__(self, before: View[S]) -> None:
        self.before = before
        self.view = before
        self.decided: list[tuple[_Waiting[S], Decided]] = []
        self.refused: list[tuple[_Waiting[S], Exception]] = []
        self.blobs: Sequence[bytes] = ()
        self.size_bytes = 0
        self.changes = 0

    def add(self, writer: Writer[S], each: _Waiting[S], draft: Draft) -> None:
        """Fold a draft. Raises where it cannot be one of several."""
        if draft.seals or draft.restores or draft.purges or draft.fence:
            raise ValueError("it is about the log itself")
        projection, placing = writer.replay.projection, each.placing
        decided = Decided(placing.commit_id, placing.base, draft, each.run(dict, writer.writer))
        part = Commit(
            format=FORMAT,
            log_id=self.before.log_id,
            version=self.before.version + 1,
            commit_id=placing.commit_id,
            attempt_id="",
            base=placing.base,
            prev=self.before.hash,
            time_us=self.before.time_us + 1,
            writer=decided.writer,
            write=draft.write,
            events=draft.all_events,
        )
        size_bytes = len(encode(part))
        state = projection.apply(self.view.state, part, draft.blobs)
        self.view = replace(self.view, state=state, steps=self.view.steps + 1)
        self.decided.append((each, decided))
        self.blobs, self.size_bytes = self.blobs or draft.blobs, self.size_bytes + size_bytes
        self.changes += 1 + len(draft.carries)


def own_error(error: LakelogError) -> LakelogError:
    """Return the error for another thread: what one raises has the frames of that thread."""
    own = type(error).__new__(type(error), *error.args)
    own.__dict__.update(error.__dict__)
    own.__cause__ = error.__cause__
    return own


def unknown(commit_id: str, location: str, why: str) -> CommitUnknown:
    return CommitUnknown(
        f"it is unknown whether commit {commit_id} happened, which was written together with others: {why}; retry "
        "with the same commit id",
        commit_id=commit_id,
        location=location,
    )
