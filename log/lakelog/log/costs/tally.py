"""The costs of work: requests to stores, their bytes, and the difficulties of its commits.

Stores and commits report by `asked`, `read` and the like. Reports are logged, and added to the thread's tally
if it has one; `threads` hands a tally on to other threads. One rule: a tally decides nothing. It must not
know the work, or the reader of the tally.
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
# Without handlers, nothing is printed, not even warnings: a program decides by its own handlers.
logging.getLogger("lakelog").addHandler(logging.NullHandler())


class CostTally:
    """Counts, for any number of threads.

    `requests` are counts of requests to stores by kind: get, put_if_absent, put, list, delete, head, open,
    copy. On S3 each is an HTTP request, including those that the client library resends. In a folder, each is
    an operation. The bytes are those of objects. `attempts` counts puts of log versions, including those that
    lost. `rebases` counts changes that were decided after versions of others. `waits` counts pauses for
    another writer, or before another try, with `waited_s` in total.
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


_NOW: ContextVar[CostTally | None] = ContextVar("lakelog_tally", default=None)


@contextmanager
def tallied(tally: CostTally | None) -> Iterator[None]:
    """Add this thread's work inside this context to `tally`, and to no other."""
    token = _NOW.set(tally)
    try:
        yield
    finally:
        _NOW.reset(token)


def tally_now() -> CostTally | None:
    """Return the tally of this thread's work."""
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
    """A local file for reading, whose bytes are added to the tally of the thread that opened it.

    Libraries read it in threads of their own.
    """

    def __init__(self, fd: int, tally: CostTally) -> None:
        super().__init__(fd, "rb")
        self._tally = tally

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        self._tally.bytes(count or 0, 0)
        return count

    def readall(self) -> bytes:
        content = super().readall()
        self._tally.bytes(len(content), 0)
        return content


def open_to_read(fd: int) -> BinaryIO:
    """Return a descriptor's file, for reading."""
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
    """Return `wait` with each call noted."""

    def noted(*arguments: Any) -> Any:
        start_us = steady_clock_us()
        try:
            return wait(*arguments)
        finally:
            waited_s = (steady_clock_us() - start_us) / 1e6
            _COMMITS.info("waited %.3f s for another writer, or before another try", waited_s)
            tally = _NOW.get()
            if tally is not None:
                tally.commit(waits=1, waited_s=waited_s)

    return noted
