"""One transaction in several logs: all of its parts happen, or none.

Each part is put into its log as an intent, which locks that log; when all of them stand, one decision makes them
true. The coordinator is the caller, and no client has to trust it: if it dies, other clients abort what it began.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from lakelog.log.clocks import host_clock_us
from lakelog.log.costs import note_commit
from lakelog.log.decisions import DecisionPlace, Decisions
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, StorageError
from lakelog.log.format import COMMITTED, FORMAT, Decision, Intent
from lakelog.log.log import Log
from lakelog.log.participants import is_url
from lakelog.log.placing import Busy, Decide, Placing
from lakelog.log.view import DAY_US, Committed, S, View, commit_time_us, is_far_ahead
from lakelog.log.writing import Placed

BACKOFF_FIRST_S = 0.02
BACKOFF_MAX_S = 1.0


@dataclass(frozen=True)
class Part(Generic[S]):
    """What is to happen in one log, as Log.commit takes it. `name` is the log's place in the warehouse of the
    decisions: below it, or its URL. It puts the parts in order, in every process alike."""

    name: str
    log: Log[S]
    view: View[S]
    decide: Decide[S]
    base: int | None = None
    home: str | None = None
    """Of a log outside of the warehouse: the folder of it by which rights to this log are judged ("": all of it)."""


def commit_together(
    parts: Sequence[Part[Any]],
    *,
    decisions: Decisions,
    commit_id: str | None = None,
    validate: Callable[[], None] | None = None,
) -> list[Committed[Any]]:
    """Commit all the parts or none, and return them in the order of `parts`.

    Each `decide` is judged as Log.commit does it, on the state that its intent follows; those of different parts
    may run in several threads at once. `validate` runs once all intents stand, when nothing can come in between any
    more, and raises to abort: a caller that depends on logs it does not write checks there that they are unchanged.
    To retry, pass the same commit id, the same logs and the *original* bases.

    Costs one PUT for each part, side by side, and one for the decision; one more, before all others, where this process
    has not written a decision in that folder yet. A single part without `validate` is exactly Log.commit. Raises what
    that raises; CommitUnknown only where the decision itself could not be settled, or that of an earlier try;
    PermissionDenied where the decision may not be written; FormatError where a log's time is far ahead of the store's;
    everything else means that nothing happened.
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
    transaction = _Transaction(parts, decisions, commit_id or options.new_id(), validate)
    done = transaction.commit()
    for part, committed in zip(parts, done, strict=True):
        note_commit(part.log.location, committed.version, transaction.commit_id)
    return done


# What became of the attempt to place one part; None: it was not tried.
_Found: TypeAlias = Placed[Any] | Committed[Any] | Exception | None


class _Transaction:
    def __init__(
        self,
        parts: Sequence[Part[Any]],
        decisions: Decisions,
        commit_id: str,
        validate: Callable[[], None] | None,
    ) -> None:
        for places in ([part.name for part in parts], [part.log.location for part in parts]):
            if len(set(places)) < len(places):
                raise InvalidInput(
                    f"a transaction has the log {max(places, key=places.count)} twice: give each once"
                )
        for part in parts:
            decisions.check_place(part.name, part.log.location)
        self.parts = parts
        self.decisions = decisions
        self.commit_id = commit_id
        self.validate = validate
        self.options = parts[0].log.options
        self.placings: list[Placing[Any]] = [
            part.log.placing(part.view, part.decide, commit_id, part.base) for part in parts
        ]
        self.in_order = sorted(range(len(parts)), key=lambda i: parts[i].name)

    def commit(self) -> list[Committed[Any]]:
        asked_before = [placing.asked_before() for placing in self.placings]
        if any(asked_before):
            return self._committed_before(asked_before)
        place = self._begin()[0]
        self._check_times(place, [placing.view.time_us for placing in self.placings])
        place.prove_rights()
        pause_s = BACKOFF_FIRST_S
        for tried in range(self.options.transaction_tries):
            if tried:
                self.options.sleep_s(pause_s * self.options.random())
                pause_s = min(pause_s * 2, BACKOFF_MAX_S)
            done = self._attempt(side_by_side=tried == 0)
            if done is not None:
                return done
        raise ConflictError(
            f"commit {self.commit_id} to {len(self.parts)} logs, {self.parts[0].log.location} among them, was aborted "
            f"by other clients {self.options.transaction_tries} times; retry when fewer clients write"
        )

    def _begin(self) -> tuple[DecisionPlace, list[Intent]]:
        """Return where an attempt is decided, and its intents: under a new id each time."""
        homes = [(part.home or "") if is_url(part.name) else part.name for part in self.parts]
        return self.decisions.begin(self.options.new_id(), [part.name for part in self.parts], homes)

    def _attempt(self, *, side_by_side: bool) -> list[Committed[Any]] | None:
        """Return the parts if they were committed, by this or an earlier attempt; None to try again."""
        place, intents = self._begin()
        found: list[_Found] = [None] * len(self.parts)
        if side_by_side:
            self.options.in_parallel([lambda i=i: self._place(i, intents[i], found) for i in self.in_order])  # type: ignore[misc]
        else:
            # Undecided transactions are waited for before anything is locked, and then one after another in an order
            # that all transactions share: so they queue up, instead of each waiting for what another one has locked.
            for i in self.in_order:
                found[i] = self.placings[i].catch_up()
            for i in self.in_order if not any(found) else ():
                self._place(i, intents[i], found, patient=True)
                if not isinstance(found[i], Placed):
                    break
        standing = [one for one in found if isinstance(one, Placed)]
        if len(standing) < len(found):
            self._give_up(place, found)
            if any(isinstance(one, Committed) for one in found):
                return self._committed_before([one if isinstance(one, Committed) else None for one in found])
            for error in found:
                if isinstance(error, Exception) and not isinstance(error, Busy):
                    raise error
            return None
        try:
            self._check_times(place, [placed.commit.time_us for placed in standing])
            if self.validate is not None:
                self.validate()
        except Exception:
            self._give_up(place, found)
            raise
        decision = self._decide(place, standing, found)
        if decision.outcome != COMMITTED:
            for placing, placed in zip(self.placings, standing, strict=True):
                placing.aborted(placed)
            return None
        return [
            Committed(placing.writer.settled(placed, decision.settled), placed.commit.version)
            for placing, placed in zip(self.placings, standing, strict=True)
        ]

    def _check_times(self, place: DecisionPlace, times_us: Sequence[int]) -> None:
        """Refuse a log whose time is far ahead: a transaction has one time in all of its logs, and what follows in each
        is after it. So the writer of one log could give any time to the others. FormatError."""
        if not is_far_ahead(max(times_us), host_clock_us()):
            return  # without a question to the store
        store_us = place.store.now_us(place.key)
        for part, time_us in zip(self.parts, times_us, strict=True):
            if store_us is not None and is_far_ahead(time_us, store_us):
                raise FormatError(
                    f"nothing was changed: the time of {part.log.location} is {(time_us - store_us) // DAY_US:,} days "
                    f"ahead of that of {place.store.url}, and a transaction would give it to its other logs; correct "
                    "this computer's clock, or find out which client wrote the newest commit there"
                )

    def _place(self, i: int, intent: Intent, found: list[_Found], *, patient: bool = False) -> None:
        try:
            found[i] = self.placings[i].place(intent, patient=patient)
        except Exception as error:  # for the thread that decides what becomes of the whole
            found[i] = error

    def _decide(
        self, place: DecisionPlace, standing: Sequence[Placed[Any]], found: Sequence[_Found]
    ) -> Decision:
        """Write "committed", unless the transaction was aborted, and return what stands there."""
        latest_us = max(placed.commit.time_us for placed in standing)
        positions = {
            part.name: placed.commit.version for part, placed in zip(self.parts, standing, strict=True)
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
        """Abort what was begun, so that no client has to wait for it. Where that fails, the next client does it."""
        if not any(isinstance(one, Placed | StorageError) for one in found):
            return
        try:
            place.abort(self.commit_id, self.options)
        except StorageError:
            return
        for placing, one in zip(self.placings, found, strict=True):
            if isinstance(one, Placed):
                placing.aborted(one)

    def _committed_before(self, found: Sequence[Committed[Any] | None]) -> list[Committed[Any]]:
        """An earlier attempt was committed in one log, so it was in all of them: find it in the others."""
        return [
            placing.committed_elsewhere() if one is None else one
            for placing, one in zip(self.placings, found, strict=True)
        ]
