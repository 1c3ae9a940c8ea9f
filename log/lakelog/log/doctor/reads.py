"""A reader's results right after a write, by clients that share no connection; and the clocks of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.log.doctor.races import created
from lakelog.log.doctor.report import CheckVerdict, StoreCheck, judged, unknown
from lakelog.log.doctor.rights import StoreRights
from lakelog.log.errors import StorageError
from lakelog.log.stores.store import ObjectStore

ROUNDS = 10
SKEW_MAX_S = 60.0
WAVERS_MAX_S = 1.0

STALE = "use another store, or take the cache, proxy or replication away that is between: old answers are not harmless"

CREATED, REPLACED = b"created", b"replaced since"
"""The content of an object, in two sizes."""


def visibility(
    store: ObjectStore,
    reader: ObjectStore,
    folder: str,
    rights: StoreRights,
    rounds: int,
    took_us: dict[str, list[int]],
) -> list[StoreCheck]:
    """Write, replace and delete objects, and read and list them at once by another client."""
    needed_actions = {
        "reads after writes": ("put", "conditional put", "get", "get what is absent"),
        "lists after writes": ("conditional put", "list"),
        "reads after deletes": ("put", "get", "get what is absent", "delete"),
        "lists after deletes": ("put", "list", "delete"),
    }
    faults: dict[str, list[str]] = defaultdict(list)
    unknown_checks = {name: rights.unknown(name, *actions) for name, actions in needed_actions.items()}
    may = {name for name, check in unknown_checks.items() if check is None}

    def expect(name: str, holds: bool, fault: str) -> None:
        if not holds:
            faults[name].append(fault)

    def expect_read(name: str, key: str, data: bytes | None, fault: str) -> None:
        if name in may:
            start_us = steady_clock_us()
            read_data = reader.get(key)
            if data == CREATED:
                took_us["get"].append(steady_clock_us() - start_us)
            expect(name, read_data == data, fault.format(_short(read_data)))

    def expect_listed(name: str, prefix: str, sizes: dict[str, int], fault: str) -> None:
        if name in may:
            expect(name, _listed(reader, prefix) == sizes, fault)

    for number in range(rounds if not rights.missing("put", "conditional put") else 0):
        prefix = f"{folder}/reads/{number:04}"
        key = f"{prefix}/object"
        # A reader of a log requests the next version before it exists, and no cache may remember that
        # absence.
        expect_read("reads after writes", key, None, "an object was there that no client wrote")
        expect_listed("lists after writes", prefix, {}, "a list had a key that no client wrote")
        put_start_us = steady_clock_us()
        created(store, key, CREATED)
        took_us["put-if-absent"].append(steady_clock_us() - put_start_us)
        expect_read("reads after writes", key, CREATED, "after its creation, a read returned {}")
        expect_listed(
            "lists after writes", prefix, {key: len(CREATED)}, "a list lacked an object just created"
        )
        store.put(key, REPLACED)
        expect_read("reads after writes", key, REPLACED, "after a put, a read returned {}")
        expect_listed(
            "lists after writes", prefix, {key: len(REPLACED)}, "a list had the old size after a put"
        )
        if not rights.missing("delete"):
            store.delete([key])
            expect_read("reads after deletes", key, None, "after a delete, a read returned {}")
            expect_listed("lists after deletes", prefix, {}, "a list had an object just deleted")
    return [
        check or judged(name, faults[name], f"{rounds} times, by another client", STALE)
        for name, check in unknown_checks.items()
    ]


def _listed(reader: ObjectStore, prefix: str) -> dict[str, int]:
    return dict(reader.list_sizes(f"{prefix}/"))


def _short(data: bytes | None) -> str:
    return "nothing" if data is None else repr(data[:20].decode(errors="replace"))


def order(store: ObjectStore, folder: str, rights: StoreRights) -> StoreCheck:
    """Return the check that lists are in the order of the keys' bytes, and begin after the given key."""
    name, prefix = "lists in order", f"{folder}/order/"
    unknown_check = rights.unknown(name, "put", "list")
    if unknown_check is not None:
        return unknown_check
    keys = [
        f"{prefix}{part}"
        for part in ("00000000000000000009.json", "00000000000000000010.json", "A", "a/b", "b", "ä")
    ]
    for key in reversed(keys):
        store.put(key, b"")
    faults = []
    if list(store.list_after(prefix)) != keys:
        faults.append("keys were not listed in the order of their bytes, or not all of them, or twice")
    if list(store.list_after(prefix, keys[1])) != keys[2:]:
        faults.append("a list that was to begin after a key began elsewhere")
    if store.list_folders(prefix) != ["a"]:
        faults.append("a list of folders had others than there are")
    return judged(
        name, faults, f"{len(keys)} keys", "use another store: expire, vacuum and fsck rely on complete lists"
    )


@dataclass(slots=True)
class ClockReading:
    """The store's clock at several moments, compared with this host's.

    Each sample is the least and the most that the store can be ahead, as its answer was made while it was
    waited for.
    """

    open: Callable[[], ObjectStore]
    near: str
    ahead_s: list[tuple[float, float]] = field(default_factory=list)
    unread: str = ""

    def look(self) -> None:
        """Take a sample, by a client without earlier answers."""
        store, before_us, steady_us = self.open(), host_clock_us(), steady_clock_us()
        try:
            store_us = store.now_us(self.near)
        except StorageError as error:
            self.unread = f"it failed: {error}"
            return
        after_us = before_us + steady_clock_us() - steady_us
        if store_us is None:
            self.unread = "the store did not say what time it is"
        else:
            # S3 has whole seconds.
            self.ahead_s.append(((store_us - after_us) / 1e6, (store_us - before_us) / 1e6 + 1))

    def check(self) -> StoreCheck:
        if self.unread:
            return unknown("clock", self.unread)
        least, most = max(least for least, _ in self.ahead_s), min(most for _, most in self.ahead_s)
        if least - most > WAVERS_MAX_S:
            return StoreCheck(
                name="clock",
                verdict=CheckVerdict.BAD if least - most > SKEW_MAX_S else CheckVerdict.WARNING,
                what=f"answers of the store are at least {least - most:.1f} s apart about the time",
                todo="set all clocks of the store by NTP, and cache none of its answers: commits are timed, and ages "
                "judged, by its time",
            )
        skew = max(least, -most)
        if skew > SKEW_MAX_S:
            return StoreCheck(
                name="clock",
                verdict=CheckVerdict.WARNING,
                what=f"the store's clock is at least {skew:.0f} s {'ahead of' if least > 0 else 'behind'} this host's",
                todo="set the wrong one of them by NTP: commits are timed, and ages judged, by the store's, and S3 "
                "refuses requests of hosts that are 15 minutes off",
            )
        apart = max(abs(least), abs(most))
        return StoreCheck(
            name="clock",
            verdict=CheckVerdict.GOOD,
            what=f"the store's and this host's are at most {apart:.1f} s apart",
        )
