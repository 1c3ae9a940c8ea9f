"""Changes that threads of a process make to a log at the same time: they share versions.

A thread that finds no other at work leads. It commits its own change and then, in a single round, all changes
that arrived since. No thread waits for company: a single thread puts the same commit as without this module.
If other processes keep winning, a `ProposalCourier` takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from lakelog.log.errors import CommitUnknown
from lakelog.log.following import VersionTrail
from lakelog.log.format import PROPOSALS
from lakelog.log.parallel import ThreadTurns
from lakelog.log.placing import ChangeCursor
from lakelog.log.proposals.courier import ProposalCourier
from lakelog.log.proposals.pending import ByData
from lakelog.log.proposals.watch import ProposalWatch
from lakelog.log.rounds.commit_round import ThreadRound
from lakelog.log.rounds.waiting import WaitingChange, unknown
from lakelog.log.view import CommittedChange, S
from lakelog.log.writing import LogWriter


class ChangeSharing(Generic[S]):
    """The changes of a log that wait in this process."""

    def __init__(self, writer: LogWriter[S], by_data: ByData[S] | None = None) -> None:
        """Share changes by `writer`. If the options allow it, changes that `by_data` understands may be proposed."""
        self._writer = writer
        self._replay, options = writer.replay, writer.replay.options
        self._by_data = by_data if options.proposes(in_bucket=writer.replay.store.is_bucket) else None
        self._lets_pass = None if by_data is None else by_data.lets_pass
        self._turns: ThreadTurns[WaitingChange[S]] = ThreadTurns(writer.replay.options.wait)
        self._trail: VersionTrail[S] = VersionTrail(self._replay)
        self._courier: ProposalCourier[S] | None = None
        self._watch = ProposalWatch(writer.replay)

    @property
    def waiting(self) -> int:
        """The number of changes that wait for the change that is being put."""
        return self._turns.waiting

    def commit(self, cursor: ChangeCursor[S], *, alone: bool) -> CommittedChange[S]:
        """Commit a change alone or with others.

        The `decide` of a change that goes with others does no I/O. Its draft removes no file that another
        change may have added. Changes before it in its version are in the state of its view, not among the
        commits that it passes. Raises the errors of `Log.commit`. If processes propose, also raises
        ConflictError for a change that carries others; each of those is to be tried by itself.
        """
        own: WaitingChange[S] = WaitingChange(cursor=cursor)
        if alone or self._turns.is_inside:
            return self._commit_alone(own)
        try:
            self._turns.take(own, self._commit, self._unfinished, self._submitted)
        finally:
            own.is_over.set()
            if self._turns.is_idle:
                self._trail = VersionTrail(self._replay)  # it holds states
        if not own.sent:
            return own.outcome()
        self._replay.options.wait(own.returned, None)
        if own.done is not None:
            return own.outcome()
        if own.is_of_many and not cursor.is_proposed:
            # Alone, it would only lose again. It is no retry, whatever its id, because the changes that it
            # carries are new.
            raise cursor.lost_for_good()
        return self._commit_alone(own)

    def _commit_alone(self, own: WaitingChange[S]) -> CommittedChange[S]:
        ThreadRound(self._writer, [own]).commit()
        return own.outcome()

    @property
    def has_courier(self) -> bool:
        """Whether this log's changes are currently proposed, so that rows may be given in place of files."""
        return self._courier is not None and self._courier.is_at_work

    def propose(self, cursor: ChangeCursor[S]) -> CommittedChange[S] | None:
        """Have a change with rows committed by others, or together with their proposals.

        Returns None if that did not happen. It may have been proposed, so it has to be tried without rows
        under its id, as a retry.
        """
        own: WaitingChange[S] = WaitingChange(cursor=cursor)
        courier = self._courier
        if self._turns.is_inside or courier is None or not courier.submit(own):
            return None
        self._replay.options.wait(own.returned, None)
        return None if own.done is None else own.outcome()

    def _commit(self, group: Sequence[WaitingChange[S]]) -> None:
        """Commit the changes of a group, whose first thread has the turn."""
        if self._by_data is None:
            ThreadRound(self._writer, group, self._trail, lets_pass=self._lets_pass).commit()
            return
        view, is_wished = group[0].cursor.view, self._watch.begins()
        if is_wished and PROPOSALS in view.writer_features:
            self._send(group, combines=True)
            group = [change for change in group if not change.sent]
        if group:
            self._watch.look_if_due(view.version)
            ThreadRound(
                self._writer,
                group,
                self._trail,
                lets_pass=self._lets_pass,
                send=self._send,
                is_wished=is_wished,
            ).commit()
        self._watch.ended()

    def _unfinished(self, change: WaitingChange[S]) -> CommitUnknown | None:
        if change.sent:
            return None  # the courier has it
        why = "the thread that wrote it was interrupted"
        return unknown(change.cursor.commit_id, self._replay.location, why)

    def _submitted(self, own: WaitingChange[S]) -> bool:
        """Return whether the courier has taken a change, if there is a courier."""
        if self._courier is None or not self._courier.submit(own):
            self._courier = None
        return own.sent

    def _send(self, group: Sequence[WaitingChange[S]], *, combines: bool = False) -> None:
        """Hand changes over to the courier, which starts to work: it `combines`, or proposes first."""
        assert self._by_data is not None
        with self._turns.lock:
            courier = self._courier
            for change in group:
                if courier is not None and courier.submit(change):
                    continue
                courier = ProposalCourier(self._writer, self._by_data, change.cursor.view)
                courier.begins_to_combine = combines
                if not courier.start() or not courier.submit(change):
                    return  # the interpreter exits
                self._courier = courier
