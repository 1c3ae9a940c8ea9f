"""A store that counts the requests to another store and their bytes, so that tests can hold budgets."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from lakelog.log.stores.ranges import ObjectRange, get_ranges
from lakelog.log.stores.servers import unknown_server
from lakelog.log.stores.store import ObjectStore


class CountingStore:
    """An ObjectStore that passes everything on to `inner`.

    `requests` counts requests, and `rounds` counts sequential round trips (such as a get_many). `by_kind`
    counts requests by operation: get, put_if_absent, put, list, delete, open. `bytes_read` and
    `bytes_written` are those of whole objects. Reads from opened objects are not counted.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url
        self.is_bucket = inner.is_bucket
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self.rounds = 0
            self.by_kind: Counter[str] = Counter()
            self.bytes_read = self.bytes_written = 0

    @property
    def requests(self) -> int:
        return self.by_kind.total()

    def unknown_server(self) -> str:
        return unknown_server(self.inner)

    def side_by_side(self, works: Sequence[Callable[[], None]]) -> None:
        """Run callables in sequence, but count only the rounds of the longest, as if they ran at once.

        For `LogOptions.in_parallel`.
        """
        start = longest_end = self.rounds
        for work in works:
            self.rounds = start
            work()
            longest_end = max(longest_end, self.rounds)
        self.rounds = longest_end

    def _count(self, kind: str, requests: int = 1, *, written: int = 0) -> None:
        with self._lock:
            self.rounds += 1
            self.by_kind[kind] += requests
            self.bytes_written += written

    def _read(self, found: Sequence[bytes | None]) -> None:
        with self._lock:
            self.bytes_read += sum(len(data) for data in found if data is not None)

    def get(self, key: str) -> bytes | None:
        self._count("get")
        data = self.inner.get(key)
        self._read([data])
        return data

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        if keys:
            self._count("get", len(keys))
        objects = self.inner.get_many(keys)
        self._read(objects)
        return objects

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        if ranges:
            self._count("get", len(ranges))
        parts = get_ranges(self.inner, ranges)
        self._read(parts)
        return parts

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._count("put_if_absent", written=len(data))
        return self.inner.put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        self._count("put", written=len(data))
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
