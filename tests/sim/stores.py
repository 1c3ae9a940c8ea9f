"""The store of a simulation: one truth that remembers everything, and each actor's unreliable way to it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from tests.sim.scheduler import Crash, Scheduler

from lakelog.log import MemoryStore, PermissionDenied, StorageError


class TrueStore(MemoryStore):
    """Remembers the first bytes under every commit's and base's key, and notices when a key was freed."""

    def __init__(self, clock_us: Callable[[], int]) -> None:
        super().__init__("memory://simulation", clock_us=clock_us)
        self.created: dict[str, bytes] = {}
        self.created_at_us: dict[str, int] = {}
        self.created_sidecars: dict[str, bytes] = {}
        self.created_vectors = MemoryStore("memory://simulation")
        self.freed: list[str] = []
        self.wishes = 0
        self.faults: Counter[str] = Counter()
        """What has gone wrong on all ways to here, by its kind."""
        self.condition_holds = True

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if not self.condition_holds:
            self.put(key, data)
            is_created = True
        else:
            is_created = super().put_if_absent(key, data)
        if is_created:
            if key in self.created and self.created[key] != data:
                self.freed.append(key)
            self.created.setdefault(key, data)
            self.created_at_us.setdefault(key, self._clock_us())
        return is_created

    def put(self, key: str, data: bytes) -> None:
        folder, _, name = key.rpartition("/")
        if folder.endswith("/sidecars"):
            self.created_sidecars[name] = data
        self.wishes += name.endswith(".wish")
        if name.endswith(".puffin"):
            self.created_vectors.put(key, data)
        super().put(key, data)


@dataclass(frozen=True)
class Weather:
    """How unreliable the way to the store is: chances for each request."""

    fault: float
    crash: float
    stall: float
    stall_steps: int
    tear: float  # others run between the single reads of one get_many
    fault_kinds: tuple[str, ...]


FAULTS = (
    "500",
    "503",
    "409",
    "timeout",
    "closed",
    "lost-500",
    "lost-timeout",
    "lost-closed",
    "echo",
    "late",
    "denied",
)
_PARTIAL = {"500", "closed"}
"""Failures after which a part of a batch of deletes is done."""
_BEFORE = {"500", "503", "409", "timeout", "closed"}
CRASHES, STALLS, FAILED, LOST, LATE, CLOCKS = FAULTS_BY_KIND = (
    "crashes",
    "stalls",
    "failed requests",
    "lost answers",
    "late requests",
    "wrong clocks",
)
"""What a run counts. A clock is wrong from the beginning of its process on, by seconds or by years."""


class UnreliableStore:
    """See ObjectStore. Every request may fail before or after its effect, take effect late, or kill its actor."""

    def __init__(self, truth: TrueStore, scheduler: Scheduler, weather: Weather, rng: random.Random) -> None:
        self.url = truth.url
        self.is_bucket = truth.is_bucket
        self._truth = truth
        self._scheduler = scheduler
        self._weather = weather
        self._rng = rng
        self._knows_time = False
        self.has_written = False

    def get(self, key: str) -> bytes | None:
        self._begin()
        self._read_fault(key)
        return self._truth.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        self._begin()
        if keys:
            self._read_fault(keys[0])
        order = list(range(len(keys)))
        self._rng.shuffle(order)
        count: list[bytes | None] = [None] * len(keys)
        for i in order:
            if self._rng.random() < self._weather.tear:
                self._scheduler.step()
            count[i] = self._truth.get(keys[i])
        return count

    def put_if_absent(self, key: str, data: bytes) -> bool:
        created = False

        def effect() -> None:
            nonlocal created
            created = self._truth.put_if_absent(key, data)

        fault = self._write(key, effect)
        return created and fault != "echo"

    def put(self, key: str, data: bytes) -> None:
        self._write(key, lambda: self._truth.put(key, data))

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            half = keys[: len(keys) // 2]
            self._write(keys[0], lambda: self._truth.delete(keys), lambda: self._truth.delete(half))

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self._begin()
        breaks = self._fault() in _BEFORE
        return self._listed(prefix, after, breaks=breaks)

    def _listed(self, prefix: str, after: str, *, breaks: bool) -> Iterator[str]:
        """Yield keys, a failed list some of them: each page is a request, and a later page may fail."""
        keys = list(self._truth.list_after(prefix, after))
        if not breaks:
            yield from keys
            return
        self._truth.faults[FAILED] += 1
        yield from keys[: len(keys) // 2]
        raise StorageError(f"closed while listing {prefix}", location=prefix)

    def open_input(self, key: str) -> BinaryIO:
        self._begin()
        return self._truth.open_input(key)

    def now_us(self, near: str = "") -> int | None:
        """Known from any answer; if there was none yet, it is asked for."""
        if not self._knows_time:
            self._begin()
            self._read_fault(near)
        return self._truth.now_us()

    def _begin(self) -> None:
        self._scheduler.step()
        self._knows_time = True
        if self._rng.random() < self._weather.stall:
            self._truth.faults[STALLS] += 1
            self._scheduler.stall(1 + int(self._rng.random() * self._weather.stall_steps))
        self._maybe_crash()

    def _maybe_crash(self) -> None:
        if self._rng.random() < self._weather.crash:
            self._truth.faults[CRASHES] += 1
            raise Crash

    def _fault(self) -> str | None:
        if self._weather.fault_kinds and self._rng.random() < self._weather.fault:
            return self._rng.choice(self._weather.fault_kinds)
        return None

    def _read_fault(self, key: str) -> None:
        fault = self._fault()
        if fault in _BEFORE:
            self._truth.faults[FAILED] += 1
            raise StorageError(f"{fault} on reading {key}", location=key)

    def _write(
        self, key: str, effect: Callable[[], None], partial_effect: Callable[[], None] = lambda: None
    ) -> str | None:
        """Write, with a fault now and then. A batch of deletes that fails may have a partial effect, as on Azure."""
        self._begin()
        fault = self._fault()
        if fault is not None:
            self._truth.faults[_kind(fault)] += 1
        if fault in _BEFORE:
            if fault in _PARTIAL:
                partial_effect()
            raise StorageError(f"{fault} before writing {key}", location=key)
        if fault == "denied":
            raise PermissionDenied(f"403 on writing {key}", location=key)
        if fault == "late":
            self._scheduler.land_later(effect)
            raise StorageError(f"timeout while writing {key}", location=key)
        effect()
        self.has_written = True
        self._maybe_crash()
        if self._rng.random() < 0.2:
            self._scheduler.step()
        if fault is not None and fault.startswith("lost"):
            raise StorageError(f"{fault} after writing {key}", location=key)
        return fault


def _kind(fault: str) -> str:
    """Return the kind of a write's fault, of `FAULTS_BY_KIND`. An echo is the answer to a client's own retry."""
    if fault in _BEFORE or fault == "denied":
        return FAILED
    return LATE if fault == "late" else LOST
