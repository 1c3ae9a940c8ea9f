"""A store that counts the requests to another one, so that tests can hold budgets of requests."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from lakelog.log.stores.store import ObjectStore


class CountingStore:
    """See ObjectStore; passes everything on to `inner`.

    `requests` counts requests, `rounds` sequential round trips (a get_many is one), `by_kind` requests by the
    name of the operation: get, put_if_absent, put, list, delete, open.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self.rounds = 0
            self.by_kind: Counter[str] = Counter()

    @property
    def requests(self) -> int:
        return self.by_kind.total()

    def side_by_side(self, works: Sequence[Callable[[], None]]) -> None:
        """Run callables one after another, and count the rounds of the longest: as if all of them ran at once. For
        `LogOptions.in_parallel`."""
        begun = ended = self.rounds
        for work in works:
            self.rounds = begun
            work()
            ended = max(ended, self.rounds)
        self.rounds = ended

    def _count(self, kind: str, requests: int = 1) -> None:
        with self._lock:
            self.rounds += 1
            self.by_kind[kind] += requests

    def get(self, key: str) -> bytes | None:
        self._count("get")
        return self.inner.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        if keys:
            self._count("get", len(keys))
        return self.inner.get_many(keys)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._count("put_if_absent")
        return self.inner.put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        self._count("put")
        self.inner.put(key, data)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self._count("list")
        return self.inner.list_after(prefix, after)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        self._count("list")
        return self.inner.list_sizes(prefix, after)

    def list_folders(self, prefix: str) -> list[str]:
        self._count("list")
        return self.inner.list_folders(prefix)

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self.inner.list_leftovers(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            self._count("delete")
        self.inner.delete(keys)

    def open_input(self, key: str) -> BinaryIO:
        self._count("open")
        return self.inner.open_input(key)

    def now_us(self, near: str = "") -> int | None:
        return self.inner.now_us(near)
