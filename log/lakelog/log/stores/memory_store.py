"""A store in this process's memory: for tests and examples, and as the simplest implementation of the contract."""

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, ClassVar

from lakelog.log.clocks import host_clock_us
from lakelog.log.costs import asked, read
from lakelog.log.errors import NotFound
from lakelog.log.grammar import check_key, check_prefix
from lakelog.log.stores.ranges import ObjectRange


class MemoryStore:
    """An ObjectStore in memory. Stores of the same name share their objects within the process."""

    is_bucket = False
    _named: ClassVar[dict[str, "MemoryStore"]] = {}
    _naming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, url: str = "memory://private", *, clock_us: Callable[[], int] = host_clock_us) -> None:
        self.url = url
        self._clock_us = clock_us
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    @classmethod
    def named(cls, url: str) -> "MemoryStore":
        with cls._naming:
            return cls._named.setdefault(url, cls(url))

    def get(self, key: str) -> bytes | None:
        check_key(key)
        asked("get", self.url, key)
        return _counted(self._objects.get(key))

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        for key in keys:
            check_key(key)
        if keys:
            asked("get", self.url, keys[0], len(keys))
        return [_counted(self._objects.get(key)) for key in keys]

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        for part in ranges:
            check_key(part.key)
        if ranges:
            asked("get", self.url, ranges[0].key, len(ranges))
        parts_data = [(part, self._objects.get(part.key)) for part in ranges]
        return [None if data is None else _counted(part.of(data)) for part, data in parts_data]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        check_key(key)
        asked("put_if_absent", self.url, key, written=len(data))
        with self._lock:
            if key in self._objects:
                return False
            self._objects[key] = data
            return True

    def put(self, key: str, data: bytes) -> None:
        check_key(key)
        asked("put", self.url, key, written=len(data))
        with self._lock:
            self._objects[key] = data

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        check_prefix(prefix)
        asked("list", self.url, prefix)
        with self._lock:
            keys = [key for key in self._objects if key.startswith(prefix)]
        keys.sort(key=str.encode)
        return (key for key in keys if key.encode() > after.encode())

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key in self.list_after(prefix, after):
            data = self._objects.get(key)
            if data is not None:
                yield key, len(data)

    def list_folders(self, prefix: str) -> list[str]:
        relative_keys = (key.removeprefix(prefix).partition("/") for key in self.list_after(prefix))
        return sorted({folder for folder, slash, _ in relative_keys if slash})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(())

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        if keys:
            asked("delete", self.url, keys[0])
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)

    def open_input(self, key: str) -> BinaryIO:
        check_key(key)
        asked("open", self.url, key)
        data = self._objects.get(key)
        if data is None:
            raise NotFound(f"{self.url}/{key} does not exist")
        read(len(data))
        return io.BytesIO(data)

    def now_us(self, near: str = "") -> int | None:
        return self._clock_us()


def _counted(data: bytes | None) -> bytes | None:
    if data is not None:
        read(len(data))
    return data
