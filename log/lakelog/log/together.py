"""A transaction in several logs: all of its parts happen, or none.

Each part is put into its log as an intent, which locks that log. Once all intents are in place, a single
decision makes them effective. The coordinator is the caller, and no client has to trust it. If it dies, other
clients abort its transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from lakelog.log.clocks import host_clock_us
from lakelog.log.costs import note_commit
from lakelog.log.decisions import DecisionPlace, WarehouseDecisions
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, StorageError
from lakelog.log.following import IntentUndecided
from lakelog.log.format import COMMITTED, FORMAT, Decision, Intent
from lakelog.log.ids import own_id, trying
from lakelog.log.log import Log
from lakelog.log.participants import is_url
from lakelog.log.placing import ChangeCursor, Decide
from lakelog.log.rounds.commit_round import ThreadRound
from lakelog.log.rounds.waiting import WaitingChange
from lakelog.log.view import DAY_US, CommittedChange, LogView, S, commit_time_us, is_far_ahead
from lakelog.log.writing import PlacedCommit

BACKOFF_FIRST_S = 0.02
BACKOFF_MAX_S = 1.0


@dataclass(frozen=True)
class LogPart(Generic[S]):
    """A change of a log in a transaction, as Log.commit takes it.

    `name` is the log's place in the warehouse of the decisions: below it, or its URL. It orders the parts, in
    the same way in every process.
    """

    name: str
    log: Log[S]
    view: LogView[S]
    decide: Decide[S]
    base: int | None = None
    home: str | None = None
    """For a log outside of the warehouse: the warehouse's folder that decides the rights to it ("": all of it)."""


def commit_together(
    parts: Sequence[LogPart[Any]],
    *,
    decisions: WarehouseDecisions,
    commit_id: str | None = None,
    validate: Callable[[], None] | None = None,
) -> list[CommittedChange[Any]]:
    """Commit all the parts or none, and return them in the order of `parts`.

    Each `decide` is judged as Log.commit does it, on the state that its intent follows. Several threads may
    run the parts' `decide` at once. `validate` runs once all intents are in place, when nothing can come in
    between, and raises to abort. So a caller that depends on logs it does not write checks there that they
    are unchanged. To retry, pass the same commit id, the same logs and the *original* bases.

    Costs a PUT for each part, in parallel, and a PUT for the decision. If this process has not yet written a
    decision in that folder, another PUT comes first. A single part without `validate` is exactly Log.commit.
    Raises the same errors as Log.commit. Raises CommitUnknown only if the decision, or that of an earlier
    try, could not be settled, or if the store fails in a retry. Raises PermissionDenied if the decision may
    not be written, FormatError if a log's time is far ahead of the store's. All other errors mean that
    nothing happened.
    """
    if len(parts) == 1 and validate is None:
        [part] = parts
        return [part.log.commit(part.view, part.decide, commit_id=commit_id, base=part.base)]
    if not parts:
        if validate is not None:
            validate()
        return []
    options = parts[0].log.options
    if len(parts) > options.participants_max:
        raise InvalidInput(
            f"a transaction of {len(parts)} logs is above the limit of {options.participants_max}: make several"
        )
    transaction = _Transaction(parts, decisions, commit_id or own_id(options.new_id()), validate)
    with trying(transaction.commit_id, min(part.log.location for part in parts)):
        commits = transaction.commit()
    for part, commit in zip(parts, commits, strict=True):
        note_commit(part.log.location, commit.version, transaction.commit_id)
    return commits


# The outcome of trying to place a part; None if it was not tried.
_Found: TypeAlias = PlacedCommit[Any] | CommittedChange[Any] | Exception | None


class _Transaction:
    def __init__(
        self,
        parts: Sequence[LogPart[Any]],
        decisions: WarehouseDecisions,
        commit_id: str,
        validate: Callable[[], None] | None,
    ) -> None:
        for part_places in ([part.name for part in parts], [part.log.location for part in parts]):
            if len(set(part_places)) < len(part_places):
                raise InvalidInput(
                    f"a transaction has the log {max(part_places, key=part_places.count)} twice: give each once"
                )
        for part in parts:
            decisions.check_place(part.name, part.log.location)
        self.parts = parts
        self.decisions = decisions
        self.commit_id = commit_id
        self.validate = validate
        self.options = parts[0].log.options
        self.cursors: list[ChangeCursor[Any]] = [
            part.log.cursor(part.view, part.decide, commit_id, part.base) for part in parts
        ]
        self.in_order = sorted(range(len(parts)), key=lambda i: parts[i].name)

    def commit(self) -> list[CommittedChange[Any]]:
        earlier_commits = [cursor.asked_before() for cursor in self.cursors]
        if any(earlier_commits):
            return self._committed_before(earlier_commits)
        place = self._begin()[0]
        self._check_times(place, [cursor.view.time_us for cursor in self.cursors])
        place.prove_rights(self.options)
        pause_s = BACKOFF_FIRST_S
        for attempt in range(self.options.transaction_tries):
            if attempt:
                self.options.sleep_s(pause_s * self.options.random())
                pause_s = min(pause_s * 2, BACKOFF_MAX_S)
            commits = self._attempt(side_by_side=attempt == 0)
            if commits is not None:
                return commits
        raise ConflictError(
            f"commit {self.commit_id} to {len(self.parts)} logs, {self.parts[0].log.location} among them, was aborted "
            f"by other clients {self.options.transaction_tries} times; retry when fewer clients write"
        )

    def _begin(self) -> tuple[DecisionPlace, list[Intent]]:
        """Return the place of an attempt's decision, and its intents, under a new id each time."""
        homes = [(part.home or "") if is_url(part.name) else part.name for part in self.parts]
        return self.decisions.begin(self.options.new_id(), [part.name for part in self.parts], homes)

    def _attempt(self, *, side_by_side: bool) -> list[CommittedChange[Any]] | None:
        """Return the parts if this or an earlier attempt committed them; None to try again."""
        place, intents = self._begin()
        results: list[_Found] = [None] * len(self.parts)
        if side_by_side:
            self.options.in_parallel([lambda i=i: self._place(i, intents[i], results) for i in self.in_order])  # type: ignore[misc]
        else:
            # Wait for undecided transactions before locking anything. Then lock in an order that all
            # transactions share, so that they queue up instead of each waiting for another's locks.
            for i in self.in_order:
                results[i] = self.cursors[i].catch_up()
            for i in self.in_order if not any(results) else ():
                self._place(i, intents[i], results, patient=True)
                if not isinstance(results[i], PlacedCommit):
                    break
        placed_parts = [result for result in results if isinstance(result, PlacedCommit)]
        if len(placed_parts) < len(results):
            self._give_up(place, results)
            if any(isinstance(result, CommittedChange) for result in results):
                return self._committed_before(
                    [result if isinstance(result, CommittedChange) else None for result in results]
                )
            for error in results:
                if isinstance(error, Exception) and not isinstance(error, IntentUndecided):
                    raise error
            return None
        try:
            self._check_times(place, [part_placed.commit.time_us for part_placed in placed_parts])
            if self.validate is not None:
                self.validate()
        except Exception:
            self._give_up(place, results)
            raise
        decision = self._decide(place, placed_parts, results)
        if decision.outcome != COMMITTED:
            for cursor, part_placed in zip(self.cursors, placed_parts, strict=True):
                cursor.aborted(part_placed)
            return None
        return [
            CommittedChange(
                part.log.writer.settled(part_placed, decision.settled), part_placed.commit.version
            )
            for part, part_placed in zip(self.parts, placed_parts, strict=True)
        ]

    def _check_times(self, place: DecisionPlace, times_us: Sequence[int]) -> None:
        """Raise FormatError if a log's time is far ahead of the store's.

        A transaction has the same time in all of its logs, and later commits in each come after it. So the
        writer of a log could give any time to the others.
        """
        if not is_far_ahead(max(times_us), host_clock_us()):
            return  # without a request to the store
        store_us = place.store.now_us(place.key)
        for part, time_us in zip(self.parts, times_us, strict=True):
            if store_us is not None and is_far_ahead(time_us, store_us):
                raise FormatError(
                    f"nothing was changed: the time of {part.log.location} is {(time_us - store_us) // DAY_US:,} days "
                    f"ahead of that of {place.store.url}, and a transaction would give it to its other logs; correct "
                    "this computer's clock, or find out which client wrote the newest commit there"
                )

    def _place(self, i: int, intent: Intent, found: list[_Found], *, patient: bool = False) -> None:
        own: WaitingChange[Any] = WaitingChange(cursor=self.cursors[i])
        ThreadRound(self.parts[i].log.writer, [own], intent=intent, patient=patient).commit()
        found[i] = own.done  # The thread that decides the outcome of the whole handles an error.

    def _decide(
        self, place: DecisionPlace, standing_commits: Sequence[PlacedCommit[Any]], found: Sequence[_Found]
    ) -> Decision:
        """Write "committed" unless the transaction was aborted, and return the stored decision."""
        latest_us = max(part_placed.commit.time_us for part_placed in standing_commits)
        positions = {
            part.name: part_placed.commit.version
            for part, part_placed in zip(self.parts, standing_commits, strict=True)
        }
        try:
            time_us = commit_time_us(latest_us - 1, self.options.clock_us(), place.store.now_us(place.key))
            decision = Decision(
                format=FORMAT,
                txn=place.txn,
                commit_id=self.commit_id,
                outcome=COMMITTED,
                time_us=time_us,
                positions=positions,
            )
            return place.create(decision, self.options)
        except StorageError:
            self._give_up(place, found)
            raise

    def _give_up(self, place: DecisionPlace, found: Sequence[_Found]) -> None:
        """Abort the intents, so that no client has to wait for them. If that fails, the next client does it."""
        if not any(isinstance(result, PlacedCommit | StorageError) for result in found):
            return
        try:
            place.abort(self.commit_id, self.options)
        except StorageError:
            return
        for cursor, result in zip(self.cursors, found, strict=True):
            if isinstance(result, PlacedCommit):
                cursor.aborted(result)

    def _committed_before(self, found: Sequence[CommittedChange[Any] | None]) -> list[CommittedChange[Any]]:
        """Find the commits of an earlier attempt. As it was committed in a log, it was committed in all of them."""
        return [
            cursor.committed_elsewhere() if commit is None else commit
            for cursor, commit in zip(self.cursors, found, strict=True)
        ]
