"""Changes that threads of one process make to one log at the same time: they share versions.

A thread that finds no other at work leads: it commits its own change and then, one version after another, all that came
meanwhile. Each is decided on the state that those before it leave, and learns its outcome after the put is settled, for
what was put before it is a part of what it was judged on. No thread waits for company: one that is alone puts what it
would put without this module. Where other processes keep winning, a `Courier` takes over. Nothing here is needed for
safety, which is the put-if-absent's alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias

from lakelog.log.costs import attempted, rebased
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, StorageError
from lakelog.log.format import PROPOSALS, Commit, Settled, Tombstone
from lakelog.log.parallel import Turns
from lakelog.log.placing import Contended, Placing, Trail, lost_too_often
from lakelog.log.proposals.courier import Courier
from lakelog.log.proposals.judging import Judged
from lakelog.log.proposals.pending import ByData
from lakelog.log.proposals.waiting import Waiting, own_error, unknown
from lakelog.log.proposals.watch import Watch, wish
from lakelog.log.view import Committed, Projection, S, View
from lakelog.log.writing import Decided, Placed, Writer, check_fence, check_may_follow

Send: TypeAlias = Callable[[Sequence[Waiting[S]]], None]
"""Hands changes over to a courier."""


class Sharing(Generic[S]):
    """The changes of one log that wait in this process."""

    def __init__(self, writer: Writer[S], by_data: ByData[S] | None = None) -> None:
        """Changes that `by_data` understands may be proposed to other processes, where the options have it so."""
        self._writer = writer
        self._replay, options = writer.replay, writer.replay.options
        self._by_data = by_data if options.proposes(in_bucket=writer.replay.store.is_bucket) else None
        self._lets_pass = None if by_data is None else by_data.lets_pass
        self._turns: Turns[Waiting[S]] = Turns(writer.replay.options.wait)
        self._trail: Trail[S] = Trail()
        self._courier: Courier[S] | None = None
        self._watch = Watch(writer.replay)

    @property
    def waiting(self) -> int:
        """How many changes wait for the one that is being put."""
        return self._turns.waiting

    def commit(self, placing: Placing[S]) -> Committed[S]:
        """Commit a change alone or with others. Its `decide` does no I/O, and its draft takes away no file that another
        one may have added. Those before it in its version show in the state of its view, and are not among what it
        passes. Raises what `Placing.place` raises; ConflictError for one that carries others', where processes propose:
        each of these is to be tried by itself."""
        own: Waiting[S] = Waiting(placing=placing)
        if self._turns.is_inside:
            self._group(Trail(), [own]).commit()
            return own.outcome()
        placing.yields = self._by_data is not None
        is_over = threading.Event()

        def wishes() -> None:
            # By the thread that has the turn, which may not know yet that this one was interrupted.
            wish(self._replay, placing.view.version, placing.commit_id, is_over)

        placing.wishes = wishes
        try:
            self._turns.take(own, self._commit, self._unfinished, self._submitted)
        finally:
            is_over.set()
            placing.wishes = None  # it holds what it is held by
            if self._turns.is_idle:
                self._trail = Trail()  # it holds states
        if own.sent:
            self._replay.options.wait(own.returned, None)
            if own.done is None and own.is_of_many and not placing.is_proposed:
                # Alone, it would go on to lose. It is no retry, whatever its id: what it carries is new.
                raise lost_too_often(placing)
            if own.done is None:
                placing.yields = False
                self._group(Trail(), [own]).commit()
        return own.outcome()

    @property
    def has_courier(self) -> bool:
        """Whether changes of this log are proposed at the moment, so that rows may be given in place of files."""
        return self._courier is not None and self._courier.is_at_work

    def propose(self, placing: Placing[S]) -> Committed[S] | None:
        """Have a change that has rows committed by others, or with what they propose. None where that did not happen:
        then it may have been proposed, and is to be tried without rows, under its id, as a retry is."""
        own: Waiting[S] = Waiting(placing=placing)
        courier = self._courier
        if self._turns.is_inside or courier is None or not courier.submit(own):
            return None
        self._replay.options.wait(own.returned, None)
        return None if own.done is None else own.outcome()

    def _commit(self, group: Sequence[Waiting[S]]) -> None:
        if self._by_data is None:
            self._group(self._trail, group, self._send).commit()
            return
        view = group[0].placing.view
        if self._watch.begins():
            if PROPOSALS in view.features:
                self._send(group, combines=True)
                group = [each for each in group if not each.sent]
            for each in group:
                each.placing.is_wished = True
        if group:
            self._watch.look_if_due(view.version)
            self._group(self._trail, group, self._send).commit()
        self._watch.ended()

    def _group(self, trail: Trail[S], group: Sequence[Waiting[S]], send: Send[S] | None = None) -> _Group[S]:
        return _Group(self._writer, trail, group, self._lets_pass, send)

    def _unfinished(self, each: Waiting[S]) -> CommitUnknown | None:
        if each.sent:
            return None  # the courier has it
        why = "the thread that wrote it was interrupted"
        return unknown(each.placing.commit_id, self._replay.location, why)

    def _submitted(self, own: Waiting[S]) -> bool:
        """Return whether the courier has taken a change, where there is one."""
        if self._courier is None or not self._courier.submit(own):
            self._courier = None
        return own.sent

    def _send(self, group: Sequence[Waiting[S]], *, combines: bool = False) -> None:
        """Hand changes over to the courier, which begins to work: it `combines`, or proposes first."""
        assert self._by_data is not None
        with self._turns.lock:
            courier = self._courier
            for each in group:
                if courier is not None and courier.submit(each):
                    continue
                courier = Courier(self._writer, self._by_data, each.placing.view)
                courier.begins_to_combine = combines
                if not courier.start() or not courier.submit(each):
                    return  # the interpreter ends
                self._courier = courier


class _Group(Generic[S]):
    """Changes that one thread commits for all of theirs, in as few versions as they allow."""

    def __init__(
        self,
        writer: Writer[S],
        trail: Trail[S],
        group: Sequence[Waiting[S]],
        lets_pass: Callable[[Commit], bool] | None,
        send: Send[S] | None,
    ) -> None:
        self.lets_pass = lets_pass
        self.send = send
        self.writer = writer
        self.replay = writer.replay
        self.trail = trail
        self.pending = list(group)
        self.alone: list[Waiting[S]] = []
        self.lost = 0
        for each in group:
            each.placing.trail = trail

    def commit(self) -> None:
        while len(self.pending) > 1 and self.lost < self.replay.options.rebases_max:
            self._level(read=True)
            if len(self.pending) > 1 and self._is_contended():
                self._send_all()
            elif len(self.pending) > 1:
                first = self.pending[0].placing
                if self.lost and first.marks:
                    first.wish_once()
                self._one_version()
        if len(self.pending) > 1:
            for each in self.pending:
                self._end(each, lost_too_often(each.placing))
        for each in [*self.pending, *self.alone]:
            self._place_alone(each)

    def _is_contended(self) -> bool:
        for each in self.pending:
            each.placing.lost = max(each.placing.lost, self.lost)
        return all(each.placing.is_contended for each in self.pending)

    def _send_all(self) -> None:
        assert self.send is not None
        self.send(self.pending)
        # What was not taken, as the interpreter ends, is put as before.
        for each in self.pending:
            each.placing.yields = False
        self.pending = [each for each in self.pending if not each.sent]

    def _one_version(self) -> None:
        """Put one version of all that can be in it, and end those of which the outcome is known then; others stay."""
        judged = self._judge()
        if not judged.decided:
            self._refuse(judged.refused, put=False)
            return
        try:
            put = self._put(judged)
        except CommitUnknown as error:
            for each in judged.whose:
                self._end(each, unknown(each.placing.commit_id, error.location, error.message))
            return  # those that were refused are judged again, on what is there now
        except StorageError as error:
            self._failed(error, judged.whose)
            return
        except LakelogError:
            # One of them makes a version that cannot be: by itself it says which.
            for each in judged.whose:
                self._set_apart(each)
            return
        if not isinstance(put, Placed):
            self.lost += 1
            first = self.pending[0]
            self._pass(first, first.placing.newer(put, batch=2 if self.lost > 1 else 0, patient=True))
            return
        view = self.writer.settled(put)
        self.trail.add(put.commit, None, put.after)
        for each in judged.whose:
            self._end(each, Committed(view, put.commit.version))
        self._refuse(judged.refused, put=True)

    def _judge(self) -> _JudgedGroup[S]:
        view = self.pending[0].placing.view
        judged = _JudgedGroup(view, self.replay.projection, self.lets_pass)
        for each in list(self.pending):
            if judged.is_full:
                break
            placing = each.placing
            if placing.view.hash != view.hash:  # of another log, which was at this place before
                self._set_apart(each)
                continue
            if judged.has(placing.commit_id):
                continue  # a retry of another thread, which will find that it happened
            try:
                draft = each.run(placing.decide, judged.view, tuple(placing.passed))
                if placing.passed:
                    each.run(rebased, placing.location, view.version, len(placing.passed))
                check_may_follow(view, draft, placing.location)
                check_fence(view, draft, placing.location)
            except Exception as error:
                if placing.is_open_elsewhere:
                    self._set_apart(each)  # the log has to say so
                else:
                    judged.refused.append((each, error))
                continue
            if judged.blobs and draft.blobs:
                continue  # events refer to sidecars by their index: one change of a version has some
            if judged.decided and not judged.has_room_for(draft):
                continue
            try:
                judged.add(
                    Decided(placing.commit_id, placing.base, draft, each.run(dict, self.writer.writer))
                )
                judged.whose.append(each)
            except Exception:
                # What it is, or that it cannot be folded, its own put says.
                self._set_apart(each)
        return judged

    def _put(self, judged: _JudgedGroup[S]) -> Placed[S] | bytes:
        if len(judged.decided) > 1:
            marks = any(each.placing.marks for each in judged.whose)
            for each in judged.whose:
                each.run(attempted)
            return self.writer.put_together(judged.before, judged.decided, marks=marks)
        [each], [decided] = judged.whose, judged.decided
        put: Placed[S] | bytes = each.run(
            self.writer.put, judged.before, decided.draft, decided.commit_id, base=decided.base
        )
        return put

    def _refuse(self, refused: Sequence[tuple[Waiting[S], Exception]], *, put: bool) -> None:
        """End those that were refused, if nothing is newer than what they were judged on: by a put, or by a look."""
        if not put and refused:
            first, before = refused[0][0], refused[0][0].placing.view
            self._pass(first, first.placing.newer(None, batch=1, patient=True))
            if first.done is not None or first.placing.view is not before:
                return
        for each, error in refused:
            if each in self.pending:
                self._end(each, error)

    def _failed(self, error: StorageError, decided: Sequence[Waiting[S]]) -> None:
        """End those of a put without effect by its error, unless an earlier try of one had an effect."""
        for each in decided:
            # One of them reads up to the head; the others pass what it found. Not one that finds its own commit before.
            if each in self.pending and self._looked_for_all(each):
                break
        self._level(read=False)
        for each in decided:
            if each in self.pending:
                self._end(each, own_error(error))

    def _looked_for_all(self, each: Waiting[S]) -> bool:
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

    def _pass(self, each: Waiting[S], newer: Iterable[tuple[Commit | Tombstone, Settled | None]]) -> None:
        """Move one past what follows its view, which may end it: its own commit may be there, or a seal."""
        try:
            found = each.placing.rebase(newer)
        except Exception as error:
            if isinstance(error, LakelogError) and each.placing.will_be_refused(error):
                self._set_apart(each)
            else:
                self._end(each, error)
        else:
            if found is not None:
                self._end(each, found)

    def _place_alone(self, each: Waiting[S]) -> None:
        def place() -> Committed[S]:
            known = each.placing.rebase(self.trail.following(each.placing.view))
            done = known or self._placed(each)
            if isinstance(done, Committed):
                return done
            self.trail.add(done.commit, None, done.after)
            return Committed(self.writer.settled(done), done.commit.version)

        try:
            each.done = each.run(place)
        except Contended:
            return
        except (StorageError, FormatError) as error:
            # Nothing happened, but what was proposed may: also where this client cannot read what follows.
            each.done = each.placing.unknown(str(error)) if each.placing.is_proposed else error
        except Exception as error:
            each.done = error

    def _placed(self, each: Waiting[S]) -> Placed[S] | Committed[S]:
        try:
            return each.placing.place()
        except Contended:
            assert self.send is not None
            self.send([each])
            if each.sent:
                raise
            each.placing.yields = False
            return each.placing.place()

    def _set_apart(self, each: Waiting[S]) -> None:
        self.alone.append(each)
        self.pending.remove(each)

    def _end(self, each: Waiting[S], done: Committed[S] | BaseException) -> None:
        each.done = done
        self.pending.remove(each)


class _JudgedGroup(Judged[S]):
    """What was decided of a group's changes. `whose` are those of what is decided, in its order."""

    def __init__(
        self, before: View[S], projection: Projection[S], lets_pass: Callable[[Commit], bool] | None
    ) -> None:
        super().__init__(before, projection, lets_pass)
        self.whose: list[Waiting[S]] = []
        self.refused: list[tuple[Waiting[S], Exception]] = []
