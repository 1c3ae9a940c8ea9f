"""Credentials of a session, and a cache that gives them again for a part of their life."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.log.errors import StorageError

ENTRIES_MAX = 10_000
PAUSE_S = 5.0
"""How long nothing is asked for after a request without an answer. Each would take a thread until it times out."""


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
        self._pause_until_us = 0

    def get(self, key: Hashable, make: Callable[[], TableCredentials]) -> TableCredentials:
        """Return the credentials of `key`. If there are none that are good for long enough, `make` makes them.

        Raises the error of `make`, and StorageError if nothing answers. Then nothing is asked for a while, of any key.
        """
        entry = self._entry(key)
        with entry.lock:
            if entry.credentials is None or steady_clock_us() >= entry.good_until_us:
                entry.credentials = None
                entry.credentials, entry.good_until_us = self._new(make)
            return entry.credentials

    def _new(self, make: Callable[[], TableCredentials]) -> tuple[TableCredentials, int]:
        begun_us = steady_clock_us()
        if begun_us < self._pause_until_us:
            raise StorageError(
                f"there are no credentials: the last request for some had no answer. Try again in {PAUSE_S:g} s",
                location="",
            )
        try:
            credentials = make()
        except RoleUnavailable as error:
            self._pause_until_us = steady_clock_us() + round(PAUSE_S * 1_000_000)
            raise StorageError(f"{error}. Try again in {PAUSE_S:g} s", location="") from None
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
