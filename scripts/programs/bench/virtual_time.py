"""An event loop whose clock jumps to the next timer, and a store whose requests take such time.

A simulation of a minute takes as long as its computing, and one seed gives one result. No request is made of any store.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Instead of waiting it moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("each task waits for another one, and no timer is left")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run until `main` returns; what still runs then is cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True)
class Latencies:
    """Seconds of each request. It takes effect after `effect` of its time, which a read sees as it was then.

    `spread` is the deviation of the logarithm of the time.
    """

    put: float = 0.060
    get: float = 0.025
    names: float = 0.050
    effect: float = 0.5
    spread: float = 0.1


class VirtualStore:
    """Keys and values; each request waits, takes effect at one moment, and waits again."""

    def __init__(self, latencies: Latencies, seed: int) -> None:
        self.latencies = latencies
        self.objects: dict[str, Any] = {}
        self.folders: dict[str, dict[str, None]] = {}
        self.requests: Counter[str] = Counter()
        self._random = random.Random(seed)

    def time(self, kind: str) -> float:
        return float(getattr(self.latencies, kind)) * self._random.lognormvariate(0.0, self.latencies.spread)

    async def get(self, key: str) -> Any:
        async with _Request(self, "get"):
            found = self.objects.get(key)
        return found

    async def names(self, folder: str) -> list[str]:
        async with _Request(self, "names"):
            found = list(self.folders.get(folder, ()))
        return found

    async def put(self, key: str, value: Any, *, if_absent: bool = False) -> bool:
        async with _Request(self, "put"):
            is_new = key not in self.objects
            if is_new or not if_absent:
                self.objects[key] = value
                self.folders.setdefault(key.rpartition("/")[0], {})[key] = None
        return is_new

    async def delete_many(self, keys: list[str]) -> None:
        """One request, as S3 has it for up to 1,000 keys."""
        async with _Request(self, "delete"):
            for key in keys:
                self.objects.pop(key, None)
                self.folders[key.rpartition("/")[0]].pop(key, None)


class _Request:
    """What stands inside of it takes effect at its moment."""

    def __init__(self, store: VirtualStore, kind: str) -> None:
        store.requests[kind] += 1
        spent = store.time("put" if kind == "delete" else kind)
        self._before, self._after = spent * store.latencies.effect, spent * (1 - store.latencies.effect)

    async def __aenter__(self) -> None:
        await asyncio.sleep(self._before)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(self._after)
