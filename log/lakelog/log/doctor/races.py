"""Who creates a key: of all that ever try, exactly one, and it learns so even where its answer was lost.

Racers write different bytes, so that what is stored names its creator. An answer that proves nothing (409, 5xx, a
broken connection) is settled as a log settles it: by reading the key.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.report import Check, Verdict, judged
from lakelog.log.errors import StorageError
from lakelog.log.stores.s3_store import http_status
from lakelog.log.stores.store import ObjectStore

RACERS = 32
TRIES = 8
OTHER_STORE = (
    "use another store or file system, or a newer server: two writers could overwrite each other here"
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


def attempt(store: ObjectStore, key: str, racer: int) -> Outcome:
    """Try to create a key as a log does. Raises nothing of the store's."""
    mine = body(key, racer)
    doubts: list[str] = []

    def ended(ending: Ending) -> Outcome:
        return Outcome(racer=racer, ending=ending, doubts=tuple(doubts))

    for _ in range(TRIES):
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
    """Return in short what the store answered: a status, or that there was none."""
    status = http_status(error.__cause__) if error.__cause__ is not None else None
    return str(status) if status is not None else "no answer"


def faults_of(race: Race) -> list[str]:
    """Return what a race shows to be wrong, as texts."""
    name = race.key.rpartition("/")[2]
    creators = [each.racer for each in race.outcomes if each.ending in ("won", "echo")]
    faults = []
    if len(creators) > 1:
        faults.append(f"{len(creators)} of {len(race.outcomes)} racers created {name}")
    if not creators and any(each.ending == "failed" for each in race.outcomes):
        doubts = ", ".join(sorted({doubt for each in race.outcomes for doubt in each.doubts}))
        faults.append(f"no racer created {name} in {TRIES} attempts ({doubts})")
    elif not creators:
        faults.append(f"all racers were refused {name}, which none of them created")
    if len(creators) == 1 and race.stored != body(race.key, creators[0]):
        found = "nothing" if race.stored is None else "another racer's bytes"
        faults.append(f"one racer was reported to have created {name}, and {found} was stored")
    if any(each.ending == "vanished" for each in race.outcomes):
        faults.append(f"{name} was refused as taken, and a read found nothing there")
    return faults


def judge(name: str, races: Sequence[Race], who: str) -> Check:
    """Return the check of these races."""
    count = Counter(each.ending for race in races for each in race.outcomes)
    doubts = Counter(doubt for race in races for each in race.outcomes for doubt in each.doubts)
    answers = "".join(
        f"; {number} times {answer}, settled by reading" for answer, number in sorted(doubts.items())
    )
    return judged(
        name,
        (fault for race in races for fault in faults_of(race)),
        f"{who} for each of {len(races)} keys: one created it, {count['taken']} were refused, {count['echo']} found "
        f"their own success behind a refusal{answers}",
        OTHER_STORE,
    )


def threads(
    store: ObjectStore, reader: ObjectStore, keys: Sequence[str], at_most_us: int, racers: int = RACERS
) -> list[Race]:
    """Have `racers` threads race for one key after the other, until all are run or the time is over."""
    races = []
    end_us = steady_clock_us() + at_most_us
    for key in keys:
        race = Race(key)
        barrier = threading.Barrier(racers)

        def run(racer: int, race: Race = race, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            race.outcomes.append(attempt(store, race.key, racer))

        started = [threading.Thread(target=run, args=(racer,), daemon=True) for racer in range(racers)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
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
    if not store.put_if_absent(key, first):
        faults.append("a new key was refused as taken")
    if store.put_if_absent(key, first):
        faults.append("the same request succeeded twice, so a lost answer cannot be settled")
    if store.put_if_absent(key, other):
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
    faults = [] if store.put_if_absent(key, b"second") else ["a key that was deleted was refused as taken"]
    return judged("put-if-absent: after a delete", faults, "a deleted key was created", OTHER_STORE)


def large(store: ObjectStore, reader: ObjectStore, key: str, size_bytes: int) -> Check:
    """The largest commit, in one request. Gateways often have a limit of their own."""
    name, shown = "put-if-absent: largest commit", f"{size_bytes / 1e6:.0f} MB"
    data = b"\0" * size_bytes
    todo = f"raise the limit of the server, or of the gateway before it, to {shown} in one PUT"
    try:
        faults = [] if store.put_if_absent(key, data) else ["a new key was refused as taken"]
        if store.put_if_absent(key, b"small"):
            faults.append("a large object was replaced by a small one")
            todo = OTHER_STORE
    except StorageError as error:
        return Check(name=name, verdict=Verdict.BAD, what=f"{shown} in one PUT: {error}", todo=todo)
    if reader.get(key) != data:
        faults.append(f"a read of {shown} returned other bytes")
    return judged(name, faults, f"{shown} in one PUT, read back whole", todo)
