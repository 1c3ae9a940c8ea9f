"""Who creates a key: of all that ever try, exactly one, and it learns so even where its answer was lost.

Racers write different bytes, so that what is stored names its creator. An answer that proves nothing (409, 5xx, a
broken connection) is settled as a log settles it: by reading the key.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.report import SEE_MESSAGE, CannotTry, Check, Verdict, judged
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
class Outcome:
    """How one racer ended. "echo": a later answer said taken, and what is stored is its own. "vanished": taken, and
    nothing was there. `doubts` are the answers that proved nothing."""

    racer: int
    ending: Ending
    doubts: tuple[str, ...] = ()


@dataclass(slots=True)
class Race:
    """The outcomes of one key, and what is stored under it once all have ended."""

    key: str
    outcomes: list[Outcome] = field(default_factory=list)
    stored: bytes | None = None


def body(key: str, racer: int) -> bytes:
    return f"{key} was created by racer {racer}\n".encode().ljust(256, b".")


def attempt(store: ObjectStore, key: str, racer: int, goes_on: Callable[[], bool] = lambda: True) -> Outcome:
    """Try to create a key as a log does, for as long as it `goes_on`. Raises nothing of the store's."""
    mine = body(key, racer)
    doubts: list[str] = []

    def ended(ending: Ending) -> Outcome:
        return Outcome(racer=racer, ending=ending, doubts=tuple(doubts))

    for number in range(TRIES):
        if number and not goes_on():
            break
        try:
            if store.put_if_absent(key, mine):
                return ended("won")
            found = store.get(key)
            if found is None:
                return ended("vanished")
        except StorageError as error:
            doubts.append(answer_of(error))
            try:
                found = store.get(key)
            except StorageError as unread:
                doubts.append(answer_of(unread))
                continue
        if found is not None:
            return ended("echo" if found == mine else "taken")
    return ended("failed")


def answer_of(error: StorageError) -> str:
    """Return in short what the store answered: a status, what the system said, or that there was no answer."""
    cause = error.__cause__
    if cause is None:
        return "no answer"
    status = http_status(cause)
    if status is not None:
        return str(status)
    return os.strerror(cause.errno) if isinstance(cause, OSError) and cause.errno else "no answer"


def created(store: ObjectStore, key: str, data: bytes) -> bool:
    """Create a key as a log does: an answer that proves nothing is settled by reading. StorageError where none comes
    in TRIES attempts."""
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
            found = store.get(key)
        except StorageError as error:
            doubt = error
            continue
        if found is not None or doubt is None:
            return found == data
    assert doubt is not None
    raise doubt


def refused(store: ObjectStore, key: str, data: bytes) -> bool:
    """Whether a key that was taken is refused, in the first answer that proves something."""
    for number in range(TRIES):
        try:
            return not store.put_if_absent(key, data)
        except PermissionDenied:
            raise
        except StorageError:
            if number == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def faults_of(race: Race) -> list[str]:
    """Return what a race shows to be wrong, as texts."""
    name = race.key.rpartition("/")[2]
    creators = [each.racer for each in race.outcomes if each.ending in ("won", "echo")]
    faults = []
    if len(creators) > 1:
        faults.append(f"{len(creators)} of {len(race.outcomes)} racers created {name}")
    if not creators and not _failed(race):
        faults.append(f"all racers were refused {name}, which none of them created")
    if len(creators) == 1 and race.stored != body(race.key, creators[0]):
        found = "nothing was" if race.stored is None else "another racer's bytes were"
        faults.append(f"one racer was reported to have created {name}, and {found} stored")
    if any(each.ending == "vanished" for each in race.outcomes):
        faults.append(f"{name} was refused as taken, and a read found nothing there")
    return faults


def _failed(race: Race) -> list[Outcome]:
    return [each for each in race.outcomes if each.ending == "failed"]


def _failures(races: Sequence[Race]) -> Iterator[str]:
    """What was not found out, as texts: that shows nothing to be wrong with conditions."""
    for race in races:
        if failed := _failed(race):
            doubts = ", ".join(sorted({doubt for each in failed for doubt in each.doubts}))
            name = race.key.rpartition("/")[2]
            yield (
                f"{len(failed)} of {len(race.outcomes)} racers could not find out who created {name}, in up to "
                f"{TRIES} attempts ({doubts})"
            )


def judge(name: str, races: Sequence[Race], who: str) -> Check:
    """Return the check of these races."""
    faults = [fault for race in races for fault in faults_of(race)]
    if not faults and any(map(_failed, races)):
        return judged(name, _failures(races), "", UNRELIABLE)
    count = Counter(each.ending for race in races for each in race.outcomes)
    doubts = Counter(doubt for race in races for each in race.outcomes for doubt in each.doubts)
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
) -> list[Race]:
    """Have `racers` threads race for one key after the other, until all are run or the time is over. None of them runs
    on, also where it is interrupted."""
    races = []
    end_us = steady_clock_us() + at_most_us
    interrupted = threading.Event()
    for key in keys:
        race = Race(key)
        # Set once all are there, so that each will end; before, none that is aborted ever writes.
        released = threading.Event()
        barrier = threading.Barrier(racers, action=released.set)
        # Thread.join, once a signal has interrupted it, returns at once from then on, whatever the thread does.
        ended = [threading.Event() for _ in range(racers)]

        def run(
            racer: int,
            race: Race = race,
            barrier: threading.Barrier = barrier,
            ended: Sequence[threading.Event] = ended,
        ) -> None:
            try:
                barrier.wait()
                race.outcomes.append(
                    attempt(
                        store,
                        race.key,
                        racer,
                        lambda: steady_clock_us() < end_us and not interrupted.is_set(),
                    )
                )
            except threading.BrokenBarrierError:
                return
            finally:
                ended[racer].set()

        try:
            for racer in range(racers):
                threading.Thread(target=run, args=(racer,), daemon=True).start()
            for each in ended:
                each.wait()
        except BaseException as error:
            interrupted.set()
            barrier.abort()
            # Asked only after the abort, and not counted as they start: a signal may come within the last start.
            for each in ended if released.is_set() else ():
                each.wait()
            if isinstance(error, RuntimeError):
                raise CannotTry(f"this host could not start {racers} threads: {error}") from error
            raise
        races.append(stored(reader, race))
        if steady_clock_us() > end_us:
            break
    return races


def stored(reader: ObjectStore, race: Race) -> Race:
    """Add to a race what another client reads now."""
    race.stored = reader.get(race.key)
    return race


def retried(store: ObjectStore, reader: ObjectStore, key: str) -> Check:
    """A client library resends a request whose answer was lost: the second must be refused, and change nothing."""
    first, other = body(key, 0), body(key, 1)
    faults = []
    if not created(store, key, first):
        faults.append("a new key was refused as taken")
    if not refused(store, key, first):
        faults.append("the same request succeeded twice, so a lost answer cannot be settled")
    if not refused(store, key, other):
        faults.append("a key that was taken was created once more")
    if reader.get(key) != first:
        faults.append("the second request replaced what the first had written")
    return judged(
        "put-if-absent: sent twice", faults, "refused, and the object is still the first one", OTHER_STORE
    )


def after_delete(store: ObjectStore, key: str) -> Check:
    """A key that was deleted can be created, or an interrupted creation would be in the way for ever."""
    store.put(key, b"first")
    store.delete([key])
    faults = [] if created(store, key, b"second") else ["a key that was deleted was refused as taken"]
    return judged("put-if-absent: after a delete", faults, "a deleted key was created", OTHER_STORE)


def large(store: ObjectStore, reader: ObjectStore, key: str, size_bytes: int) -> Check:
    """The largest commit, in one request. Gateways often have a limit of their own."""
    name, shown = "put-if-absent: largest commit", f"{size_bytes / 1e6:.0f} MB"
    data = b"\0" * size_bytes
    todo = f"raise the limit of the server, or of the gateway before it, to {shown} in one PUT"
    try:
        faults = [] if created(store, key, data) else ["a new key was refused as taken"]
        if not refused(store, key, b"small"):
            faults.append("a large object was replaced by a small one")
            todo = OTHER_STORE
    except StorageError as error:
        if not store.is_bucket:
            todo = SEE_MESSAGE
        return Check(name=name, verdict=Verdict.BAD, what=f"{shown} in one PUT: {error}", todo=todo)
    if reader.get(key) != data:
        faults.append(f"a read of {shown} returned other bytes")
    return judged(name, faults, f"{shown} in one PUT, read back whole", todo)
