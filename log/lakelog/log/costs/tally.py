"""What a piece of work costs: requests to stores, their bytes, and what commits went through.

Stores and commits report what they do by `asked`, `read` and the like. It is logged, and added to the tally of the
thread, where it has one: `threads` has what hands a tally on to other threads.
One rule: a tally decides nothing. It must not know what the work is, nor who reads the tally.
"""

from __future__ import annotations

import io
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, cast

from lakelog.log.clocks import steady_clock_us

_REQUESTS = logging.getLogger("lakelog.log.requests")
_COMMITS = logging.getLogger("lakelog.log.commits")
# What a program does not ask for is not printed, not even what is a warning: it decides by its own handlers.
logging.getLogger("lakelog").addHandler(logging.NullHandler())


class Tally:
    """Counts, of any number of threads.

    `requests` are those to stores, by kind: get, put_if_absent, put, list, delete, head, open, copy. On S3 each is a
    request by HTTP, those included that the client library sends again; of a folder, an operation on it. The bytes are
    those of objects. `attempts` are versions of logs that were put, or met another's there; `rebases` are changes that
    were decided after versions of others; `waits` are times that the work waited for another writer, or before it
    tried again, for `waited_s` in all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.bytes_read = self.bytes_written = 0
        self.attempts = self.rebases = self.waits = 0
        self.waited_s = 0.0

    def request(self, kind: str, count: int) -> None:
        with self._lock:
            self.requests[kind] += count

    def bytes(self, read: int, written: int) -> None:
        with self._lock:
            self.bytes_read += read
            self.bytes_written += written

    def commit(self, *, attempts: int = 0, rebases: int = 0, waits: int = 0, waited_s: float = 0.0) -> None:
        with self._lock:
            self.attempts += attempts
            self.rebases += rebases
            self.waits += waits
            self.waited_s += waited_s


_NOW: ContextVar[Tally | None] = ContextVar("lakelog_tally", default=None)


@contextmanager
def tallied(tally: Tally | None) -> Iterator[None]:
    """Inside, what this thread does is added to `tally`, and to no other."""
    token = _NOW.set(tally)
    try:
        yield
    finally:
        _NOW.reset(token)


def tally_now() -> Tally | None:
    """Return what this thread's work is added to."""
    return _NOW.get()


def asked(kind: str, url: str, key: str, count: int = 1, *, written: int = 0) -> None:
    """Note requests to the store at `url`; `key` is that of the (first) object, or a prefix."""
    if _REQUESTS.isEnabledFor(logging.DEBUG):
        _REQUESTS.debug("%s %s/%s%s", kind, url, key, "" if count == 1 else f" and {count - 1} more")
    tally = _NOW.get()
    if tally is not None:
        tally.request(kind, count)
        if written:
            tally.bytes(0, written)


def read(size_bytes: int) -> None:
    """Note bytes that a store has returned."""
    tally = _NOW.get()
    if tally is not None:
        tally.bytes(size_bytes, 0)


class CountedFile(io.FileIO):
    """A local file, open to be read, whose bytes are added to the tally of the thread that has opened it: libraries
    read it by threads of their own."""

    def __init__(self, fd: int, tally: Tally) -> None:
        super().__init__(fd, "rb")
        self._tally = tally

    def readinto(self, buffer: Any, /) -> int | None:
        found = super().readinto(buffer)
        self._tally.bytes(found or 0, 0)
        return found

    def readall(self) -> bytes:
        found = super().readall()
        self._tally.bytes(len(found), 0)
        return found


def open_to_read(fd: int) -> BinaryIO:
    """Return the file of a descriptor, to be read."""
    tally = _NOW.get()
    if tally is None:
        return os.fdopen(fd, "rb")
    return cast(BinaryIO, io.BufferedReader(CountedFile(fd, tally)))


def attempted() -> None:
    """Note that a version of a log is being put."""
    tally = _NOW.get()
    if tally is not None:
        tally.commit(attempts=1)


def rebased(location: str, version: int, passed: int) -> None:
    """Note that a change was decided on `version`, after `passed` changes of others."""
    _COMMITS.info("%s: a change was decided anew on version %d, after %d others", location, version, passed)
    tally = _NOW.get()
    if tally is not None:
        tally.commit(rebases=1)


def waiting(wait: Callable[..., Any]) -> Callable[..., Any]:
    """Return `wait`, of which each call is noted."""

    def noted(*arguments: Any) -> Any:
        begun_us = steady_clock_us()
        try:
            return wait(*arguments)
        finally:
            waited_s = (steady_clock_us() - begun_us) / 1e6
            _COMMITS.info("waited %.3f s for another writer, or before another try", waited_s)
            tally = _NOW.get()
            if tally is not None:
                tally.commit(waits=1, waited_s=waited_s)

    return noted
