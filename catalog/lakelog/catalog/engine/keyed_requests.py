"""Requests that clients send with a key, so that they can send them again, and each has its effect once.

Each commit of such a request has a fact with the hashes of its key and of the request. A ledger knows the facts of the
newest commits of each log. It is derived from the log, so any number of servers agree. Rule: a request is looked for at
a version that is at least as new as the version on which it is decided. Clocks only decide when a key is forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import Token, TrackedLog
from lakelog.catalog.core.state import REQUEST, request_of
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import Identifier
from lakelog.log import Json, LogView, each_change
from lakelog.log.clocks import host_clock_us
from lakelog.log.errors import InvalidInput

LIFETIME_S = 30 * 60
"""How long a client may send a request again."""
GRACE_S = 30 * 60
"""How long a key is known beyond that, as clocks of hosts differ."""
LOGS_MAX = 1000


class KeyReused(InvalidInput):
    """Another request had the same key."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key."""

    id: str
    """The hash of the key and the caller, in the form of a commit id. No caller knows, or meets, another's key."""
    digest: str
    """The hash of the request."""

    @property
    def facts(self) -> dict[str, Json]:
        """The facts for the writer of its commits."""
        return {REQUEST: {"id": self.id, "digest": self.digest}}


@dataclass(frozen=True, slots=True)
class EarlierCommit:
    """The commit that a request had when it was sent before."""

    location: str
    version: int
    digest: str
    time_us: int


def keyed_request(key: str, caller: str, parts: Sequence[bytes]) -> KeyedRequest:
    """Return a request with a key. Requests with other `parts` are other requests."""
    id_hash = _hash([key.encode(), caller.encode()]).digest()
    id = base64.b32encode(id_hash).decode().lower()[:26]
    return KeyedRequest(id, _hash(parts).hexdigest())


def _hash(parts: Sequence[bytes]) -> Any:
    """Return the hash of texts, each apart from the others."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts))


@of_catalog
def token_of(catalog: CatalogNames, name: Identifier, request: KeyedRequest) -> Token:
    """Return a token for the change of the object that `name` leads to. Take it before the request is looked for."""
    return Token(commit_id=request.id, bases=catalog.token(name).bases)


class RequestLedger:
    """The keyed requests in the newest commits of logs. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: OrderedDict[str, _LogRequests] = OrderedDict()

    def in_namespace(
        self, catalog: CatalogNames, namespace: Identifier, request: KeyedRequest
    ) -> EarlierCommit | None:
        """Return the commit of a request in the log of a namespace. None if there is none.

        Reads the commits since the last look, at first those of the time for which keys are known. Raises KeyReused.
        """
        namespace_log = catalog._tree.find_namespace(namespace)
        return None if namespace_log is None else self._find(namespace_log.tracked, request)

    def in_table(
        self, catalog: CatalogNames, name: Identifier, request: KeyedRequest
    ) -> EarlierCommit | None:
        """Return the commit of a request in the log of a table, as `in_namespace` does."""
        table_log = catalog._tree.find_table(name)
        return None if table_log is None else self._find(table_log.tracked, request)

    def _find(self, tracked: TrackedLog[Any], request: KeyedRequest) -> EarlierCommit | None:
        earlier_commit = self._requests_of(tracked.location).find(tracked, tracked.settled(), request.id)
        if earlier_commit is not None and earlier_commit.digest != request.digest:
            raise KeyReused(
                "another request had the same Idempotency-Key, and nothing was changed now: send each request with a "
                "key of its own"
            )
        return earlier_commit

    def _requests_of(self, location: str) -> _LogRequests:
        with self._lock:
            requests = self._logs.setdefault(location, _LogRequests())
            self._logs.move_to_end(location)
            while len(self._logs) > LOGS_MAX:
                self._logs.popitem(last=False)
            return requests


@dataclass(slots=True)
class _LogRequests:
    """The keyed requests of a log, up to its version `last`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    log_id: str = ""
    last: int = 0
    commits: dict[str, EarlierCommit] = field(default_factory=dict)

    def find(self, tracked: TrackedLog[Any], view: LogView[Any], id: str) -> EarlierCommit | None:
        with self.lock:
            self._read(tracked, view)
            return self.commits.get(id)

    def _read(self, tracked: TrackedLog[Any], view: LogView[Any]) -> None:
        forgotten_us = host_clock_us() - (LIFETIME_S + GRACE_S) * 1_000_000
        if self.log_id != view.log_id or self.last > view.version:
            self.log_id, self.last, self.commits = view.log_id, 0, {}
        for commit in tracked.log.commits(first=self.last + 1, last=view.version, newest_first=True):
            if commit.time_us < forgotten_us:
                break
            for change in each_change(commit):
                request = request_of(change)
                if request is not None:
                    self.commits[request.id] = EarlierCommit(
                        tracked.location, commit.version, request.digest, commit.time_us
                    )
        self.last = view.version
        self.commits = {id: commit for id, commit in self.commits.items() if commit.time_us >= forgotten_us}
