"""Credentials of a session, and a cache that gives them again for a part of their life."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.log.errors import LakelogError, StorageError

ENTRIES_MAX = 10_000
PAUSE_S = 5.0
"""How long nothing is asked for after a request without an answer. Each would take a thread until it times out."""
REQUESTS_MAX = 4
"""The requests at the same time. The server's other threads stay free, however slow the service is."""
WAIT_S = 5.0
"""How long a thread waits for the requests of others."""


@dataclass(frozen=True, slots=True)
class TableCredentials:
    """Credentials that end by themselves. Their text shows no secret."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int
    """When they end, in milliseconds since 1970."""

    def config(self) -> dict[str, str]:
        """Return the settings of a client of Iceberg that has them."""
        return {
            "s3.access-key-id": self.access_key_id,
            "s3.secret-access-key": self.secret_access_key,
            "s3.session-token": self.session_token,
            "s3.session-token-expires-at-ms": str(self.expires_at_ms),
        }


class RoleUnavailable(Exception):
    """The service of a role's credentials gives no answer. Another request soon would get none, either."""


@dataclass(slots=True)
class _CacheEntry:
    """Credentials for a key. The lock is held while they are asked for, so that others wait for the same answer."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    credentials: TableCredentials | None = None
    good_until_us: int = 0


class CredentialCache:
    """Credentials by their use. Threads may share it.

    They are given again for half of their life, so a client always gets at least half of it.
    """

    def __init__(self, duration_s: float) -> None:
        """`duration_s` is the life of credentials if they do not say themselves that it is shorter."""
        self._duration_us = round(duration_s * 1_000_000)
        self._entries: OrderedDict[Hashable, _CacheEntry] = OrderedDict()
        self._lock = threading.Lock()
        self._service = _ServiceGuard()

    def get(self, key: Hashable, make: Callable[[], TableCredentials]) -> TableCredentials:
        """Return the credentials of `key`. If there are none that are good for long enough, `make` makes them.

        Raises the error of `make`, and StorageError if nothing answers. Then nothing is asked for a while, of any key.
        After that a single thread tries it.
        """
        entry = self._entry(key)
        if not entry.lock.acquire(timeout=self._service.wait_s):
            raise _none_yet("another request for them has no answer yet")
        try:
            if entry.credentials is None or steady_clock_us() >= entry.good_until_us:
                entry.credentials = None
                entry.credentials, entry.good_until_us = self._new(make)
            return entry.credentials
        finally:
            entry.lock.release()

    def _new(self, make: Callable[[], TableCredentials]) -> tuple[TableCredentials, int]:
        with self._service.request():
            begun_us = steady_clock_us()
            credentials = make()
        # The steady clock alone decides, unless the service gives less time than it was asked for.
        own_life_us = credentials.expires_at_ms * 1000 - host_clock_us()
        return credentials, begun_us + min(self._duration_us, own_life_us) // 2

    def _entry(self, key: Hashable) -> _CacheEntry:
        with self._lock:
            entry = self._entries.setdefault(key, _CacheEntry())
            self._entries.move_to_end(key)
            while len(self._entries) > ENTRIES_MAX:
                self._entries.popitem(last=False)
            return entry


class _ServiceGuard:
    """Bounds the threads that wait for a service that is slow, or gives no answer."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(REQUESTS_MAX)
        self._lock = threading.Lock()
        self._has_failed = False
        """Whether the last request had no answer."""
        self._pause_until_us = 0
        self._is_tried = False
        """Whether a thread tries it after a failure."""

    @property
    def wait_s(self) -> float:
        """How long to wait for another thread's request. A service that has failed is not waited for."""
        return 0.0 if self._has_failed else WAIT_S

    @contextmanager
    def request(self) -> Iterator[None]:
        """Inside, a request is made. Raises StorageError if none may be, and if it has no answer."""
        is_trial = self._begin()
        try:
            yield
        except RoleUnavailable as error:
            with self._lock:
                self._has_failed = True
                self._pause_until_us = steady_clock_us() + round(PAUSE_S * 1_000_000)
            raise StorageError(f"{error}. Try again in {PAUSE_S:g} s", location="") from None
        except LakelogError:
            self._has_failed = False  # a refusal is an answer
            raise
        else:
            self._has_failed = False
        finally:
            self._slots.release()
            if is_trial:
                self._is_tried = False

    def _begin(self) -> bool:
        """Take a slot. Return whether the request is a trial after a failure."""
        with self._lock:
            is_trial = self._has_failed
            if is_trial and (self._is_tried or steady_clock_us() < self._pause_until_us):
                raise _none_yet("the last request for some had no answer")
            self._is_tried = self._is_tried or is_trial
        if not self._slots.acquire(timeout=WAIT_S):
            if is_trial:
                self._is_tried = False
            raise _none_yet(f"{REQUESTS_MAX} requests for some have no answer yet")
        return is_trial


def _none_yet(reason: str) -> StorageError:
    return StorageError(f"there are no credentials: {reason}. Try again in {PAUSE_S:g} s", location="")
