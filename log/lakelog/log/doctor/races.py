"""Races to create a key: exactly one racer creates it, and learns that even if its answer was lost.

Racers write different bytes, so that the stored object names its creator. An answer that proves nothing (409,
5xx, a broken connection) is settled as a log settles it: by reading the key.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.report import SEE_MESSAGE, CannotTry, CheckVerdict, StoreCheck, judged
from lakelog.log.errors import PermissionDenied, StorageError
from lakelog.log.stores.s3_errors import http_status
from lakelog.log.stores.store import ObjectStore

RACERS = 32
TRIES = 8
OTHER_STORE = (
    "use another store or file system, or a newer server: two writers could overwrite each other here"
)
UNRELIABLE = (
    "free space if that is it, and run the doctor again; where it stays, the store is not reliable enough"
)

Ending = Literal["won", "echo", "taken", "vanished", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RacerOutcome:
    """The result of a racer.

    "echo": a later answer said taken, and the stored object is its own. "vanished": taken, and no object was
    there. `doubts` are the answers that proved nothing.
    """

    racer: int
    ending: Ending
    doubts: tuple[str, ...] = ()


@dataclass(slots=True)
class KeyRace:
    """The outcomes for a key, and the object stored there once all racers have ended."""

    key: str
    outcomes: list[RacerOutcome] = field(default_factory=list)
    stored: bytes | None = None


def body(key: str, racer: int) -> bytes:
    return f"{key} was created by racer {racer}\n".encode().ljust(256, b".")


def attempt(
    store: ObjectStore, key: str, racer: int, goes_on: Callable[[], bool] = lambda: True
) -> RacerOutcome:
    """Try to create a key as a log does, while `goes_on` returns True. Raises no error of the store."""
    mine = body(key, racer)
    doubts: list[str] = []

    def ended(ending: Ending) -> RacerOutcome:
        return RacerOutcome(racer=racer, ending=ending, doubts=tuple(doubts))

    for number in range(TRIES):
        if number and not goes_on():
            break
        try:
            if store.put_if_absent(key, mine):
                return ended("won")
            stored_data = store.get(key)
            if stored_data is None:
                return ended("vanished")
        except StorageError as error:
            doubts.append(answer_of(error))
            try:
                stored_data = store.get(key)
            except StorageError as read_error:
                doubts.append(answer_of(read_error))
                continue
        if stored_data is not None:
            return ended("echo" if stored_data == mine else "taken")
    return ended("failed")


def answer_of(error: StorageError) -> str:
    """Return the store's answer in short: a status, the system's text, or that there was no answer."""
    cause = error.__cause__
    if cause is None:
        return "no answer"
    status = http_status(cause)
    if status is not None:
        return str(status)
    return os.strerror(cause.errno) if isinstance(cause, OSError) and cause.errno else "no answer"


def created(store: ObjectStore, key: str, data: bytes) -> bool:
    """Create a key as a log does: if an answer proves nothing, a read settles it.

    Raises StorageError if no answer comes in TRIES attempts.
    """
    doubt: StorageError | None = None
    for _ in range(TRIES):
        try:
            if store.put_if_absent(key, data):
                return True
        except PermissionDenied:
            raise
        except StorageError as error:
            doubt = error
        try:
            stored_data = store.get(key)
        except StorageError as error:
            doubt = error
            continue
        if stored_data is not None or doubt is None:
            return stored_data == data
    assert doubt is not None
    raise doubt


def refused(store: ObjectStore, key: str, data: bytes) -> bool:
    """Return whether a taken key is refused, in the first answer that proves anything."""
    for number in range(TRIES):
        try:
            return not store.put_if_absent(key, data)
        except PermissionDenied:
            raise
        except StorageError:
            if number == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def faults_of(race: KeyRace) -> list[str]:
    """Return the faults that a race shows, as texts."""
    name = race.key.rpartition("/")[2]
    creators = [outcome.racer for outcome in race.outcomes if outcome.ending in ("won", "echo")]
    faults = []
    if len(creators) > 1:
        faults.append(f"{len(creators)} of {len(race.outcomes)} racers created {name}")
    if not creators and not _failed(race):
        faults.append(f"all racers were refused {name}, which none of them created")
    if len(creators) == 1 and race.stored != body(race.key, creators[0]):
        state_text = "nothing was" if race.stored is None else "another racer's bytes were"
        faults.append(f"one racer was reported to have created {name}, and {state_text} stored")
    if any(outcome.ending == "vanished" for outcome in race.outcomes):
        faults.append(f"{name} was refused as taken, and a read found nothing there")
    return faults


def _failed(race: KeyRace) -> list[RacerOutcome]:
    return [outcome for outcome in race.outcomes if outcome.ending == "failed"]


def _failures(races: Sequence[KeyRace]) -> Iterator[str]:
    """Yield unsettled outcomes as texts, which show no fault of the conditions."""
    for race in races:
        if failures := _failed(race):
            doubts = ", ".join(sorted({doubt for outcome in failures for doubt in outcome.doubts}))
            name = race.key.rpartition("/")[2]
            yield (
                f"{len(failures)} of {len(race.outcomes)} racers could not find out who created {name}, in up to "
                f"{TRIES} attempts ({doubts})"
            )


def judge(name: str, races: Sequence[KeyRace], who: str) -> StoreCheck:
    """Return the check of these races."""
    faults = [fault for race in races for fault in faults_of(race)]
    if not faults and any(map(_failed, races)):
        return judged(name, _failures(races), "", UNRELIABLE)
    count = Counter(outcome.ending for race in races for outcome in race.outcomes)
    doubts = Counter(doubt for race in races for outcome in race.outcomes for doubt in outcome.doubts)
    answers = "".join(
        f"; {number} times {answer}, settled by reading" for answer, number in sorted(doubts.items())
    )
    return judged(
        name,
        faults,
        f"{who} for each of {len(races)} keys: one created it, {count['taken']} were refused, {count['echo']} found "
        f"their own success behind a refusal{answers}",
        OTHER_STORE,
    )


def threads(
    store: ObjectStore, reader: ObjectStore, keys: Sequence[str], at_most_us: int, racers: int = RACERS
) -> list[KeyRace]:
    """Have `racers` threads race for each key, until all keys are done or the time is over.

    No thread continues afterwards, even if this is interrupted.
    """
    races = []
    end_us = steady_clock_us() + at_most_us
    interrupted_event = threading.Event()
    for key in keys:
        race = KeyRace(key)
        # Set once all threads are there, so that each will end. Before that, an aborted thread never writes.
        all_present = threading.Event()
        barrier = threading.Barrier(racers, action=all_present.set)
        # Once a signal has interrupted Thread.join, it returns at once from then on, whatever the thread
        # does.
        ended_events = [threading.Event() for _ in range(racers)]

        def run(
            racer: int,
            race: KeyRace = race,
            barrier: threading.Barrier = barrier,
            ended: Sequence[threading.Event] = ended_events,
        ) -> None:
            try:
                barrier.wait()
                race.outcomes.append(
                    attempt(
                        store,
                        race.key,
                        racer,
                        lambda: steady_clock_us() < end_us and not interrupted_event.is_set(),
                    )
                )
            except threading.BrokenBarrierError:
                return
            finally:
                ended[racer].set()

        try:
            for racer in range(racers):
                threading.Thread(target=run, args=(racer,), daemon=True).start()
            for ended_event in ended_events:
                ended_event.wait()
        except BaseException as error:
            interrupted_event.set()
            barrier.abort()
            # Checked only after the abort, and not counted at the starts, as a signal may come within the
            # last start.
            for ended_event in ended_events if all_present.is_set() else ():
                ended_event.wait()
            if isinstance(error, RuntimeError):
                raise CannotTry(f"this host could not start {racers} threads: {error}") from error
            raise
        races.append(stored(reader, race))
        if steady_clock_us() > end_us:
            break
    return races


def stored(reader: ObjectStore, race: KeyRace) -> KeyRace:
    """Add the data that another client reads now to a race."""
    race.stored = reader.get(race.key)
    return race


def retried(store: ObjectStore, reader: ObjectStore, key: str) -> StoreCheck:
    """Return the check that a resent request is refused and changes nothing.

    Client libraries resend requests whose answer was lost.
    """
    first_body, other_body = body(key, 0), body(key, 1)
    faults = []
    if not created(store, key, first_body):
        faults.append("a new key was refused as taken")
    if not refused(store, key, first_body):
        faults.append("the same request succeeded twice, so a lost answer cannot be settled")
    if not refused(store, key, other_body):
        faults.append("a key that was taken was created once more")
    if reader.get(key) != first_body:
        faults.append("the second request replaced what the first had written")
    return judged(
        "put-if-absent: sent twice", faults, "refused, and the object is still the first one", OTHER_STORE
    )


def after_delete(store: ObjectStore, key: str) -> StoreCheck:
    """Return the check that a deleted key can be created. Otherwise an interrupted creation would block it for ever."""
    store.put(key, b"first")
    store.delete([key])
    faults = [] if created(store, key, b"second") else ["a key that was deleted was refused as taken"]
    return judged("put-if-absent: after a delete", faults, "a deleted key was created", OTHER_STORE)


def large(store: ObjectStore, reader: ObjectStore, key: str, size_bytes: int) -> StoreCheck:
    """Return the check of the largest commit in a single request. Gateways often have their own limit."""
    name, size_text = "put-if-absent: largest commit", f"{size_bytes / 1e6:.0f} MB"
    data = b"\0" * size_bytes
    todo = f"raise the limit of the server, or of the gateway before it, to {size_text} in one PUT"
    try:
        faults = [] if created(store, key, data) else ["a new key was refused as taken"]
        if not refused(store, key, b"small"):
            faults.append("a large object was replaced by a small one")
            todo = OTHER_STORE
    except StorageError as error:
        if not store.is_bucket:
            todo = SEE_MESSAGE
        return StoreCheck(
            name=name, verdict=CheckVerdict.BAD, what=f"{size_text} in one PUT: {error}", todo=todo
        )
    if reader.get(key) != data:
        faults.append(f"a read of {size_text} returned other bytes")
    return judged(name, faults, f"{size_text} in one PUT, read back whole", todo)
