"""A store in which a request fails, or all requests from some number on, before or after their effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import BinaryIO, TypeVar

from lakelog.log import ObjectStore, PermissionDenied, StorageError

T = TypeVar("T")


class Fault(StrEnum):
    ONCE = "fails once"
    LOST = "is applied, and its answer lost"
    ENDS = "fails, and all after it"
    LOST_ENDS = "is applied and its answer lost, and all after it fail"
    DENIED = "is denied, and all after it"
    DIES = "kills its client"
    LOST_DIES = "is applied, and kills its client"


OF_WRITES = (Fault.LOST, Fault.LOST_ENDS, Fault.LOST_DIES)
"""Faults that are no others for a request that only reads."""


class Death(BaseException):
    """The end of a client: no code catches it by accident."""


class FailingStore:
    """See ObjectStore; passes requests on to `inner` until the one with the number `at`, counted from 0."""

    def __init__(self, inner: ObjectStore, at: int | None, fault: Fault = Fault.ONCE) -> None:
        self.inner, self.at, self.fault = inner, at, fault
        self.url = inner.url
        self.is_bucket = inner.is_bucket
        self.requests = 0
        self.writes: set[int] = set()

    def get(self, key: str) -> bytes | None:
        return self._ask(key, lambda: self.inner.get(key))

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self._ask(keys[0], lambda: self.inner.get_many(keys)) if keys else []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._ask(key, lambda: self.inner.put_if_absent(key, data), is_write=True)

    def put(self, key: str, data: bytes) -> None:
        self._ask(key, lambda: self.inner.put(key, data), is_write=True)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return iter(self._ask(prefix, lambda: list(self.inner.list_after(prefix, after))))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        return iter(self._ask(prefix, lambda: list(self.inner.list_sizes(prefix, after))))

    def list_folders(self, prefix: str) -> list[str]:
        return self._ask(prefix, lambda: self.inner.list_folders(prefix))

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(())

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            self._ask(keys[0], lambda: self.inner.delete(keys), is_write=True)

    def open_input(self, key: str) -> BinaryIO:
        return self._ask(key, lambda: self.inner.open_input(key))

    def now_us(self, near: str = "") -> int | None:
        return self.inner.now_us(near)

    def _ask(self, key: str, request: Callable[[], T], *, is_write: bool = False) -> T:
        number = self.requests
        if is_write:
            self.writes.add(number)
        self.requests += 1
        if self.at is None or number < self.at:
            return request()
        if number > self.at and self.fault in (Fault.ONCE, Fault.LOST):
            return request()
        if number == self.at and self.fault in OF_WRITES:
            request()
        if self.fault in (Fault.DIES, Fault.LOST_DIES):
            raise Death
        error = PermissionDenied if self.fault is Fault.DENIED else StorageError
        raise error(f"request {number} {self.fault}", location=key)
