"""Requests that clients send with a key, so that they can send them again, and each has its effect once.

The commit of such a request has a fact with the hashes of its key and of the request. Its id follows from both. A
ledger knows the facts of the newest commits of each log. It is derived from the log, so any number of servers agree.
Rule: a request is looked for at a version that is at least as new as the version on which it is decided. All logs count
that its name has led to. Commits with other ids do not. Clocks only decide when a key is forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import Token, TrackedLog, new_token
from lakelog.catalog.core.state import REQUEST, request_of
from lakelog.catalog.engine.former_names import NameChanges, RecentNames, logs_of_name
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import Identifier
from lakelog.log import Json, LogView, each_change
from lakelog.log.clocks import host_clock_us
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound

LIFETIME_S = 30 * 60
"""How long a client may send a request again."""
GRACE_S = 30 * 60
"""How long a key is known beyond that, as clocks of hosts differ."""
LOGS_MAX = 1000


class KeyReused(InvalidInput):
    """Another request had the same key."""


class DoneBefore(LakelogError):
    """Ends a change whose request was done before. No client sees it."""

    kind = "done-before"


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

    @property
    def commit_id(self) -> str:
        """The id of its commit. Another request with the same key has another id."""
        return _commit_id(self.id, self.digest)


@dataclass(frozen=True, slots=True)
class EarlierCommit:
    """The commit that a request had when it was sent before."""

    location: str
    """The place of the log that has it."""
    version: int
    digest: str
    time_us: int
    object_id: str
    """The id of the object that it has given a name. Without such an object, the log's id."""


def keyed_request(key: str, caller: str, parts: Sequence[bytes]) -> KeyedRequest:
    """Return a request with a key. Requests with other `parts` are other requests."""
    return KeyedRequest(_as_id(_hash([key.encode(), caller.encode()])), _hash(parts).hexdigest())


def _hash(parts: Sequence[bytes]) -> Any:
    """Return the hash of texts, each apart from the others."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts))


def _commit_id(id: str, digest: str) -> str:
    return _as_id(_hash([id.encode(), digest.encode()]))


def _as_id(text_hash: Any) -> str:
    return base64.b32encode(text_hash.digest()).decode().lower()[:26]


@of_catalog
def token_of(catalog: CatalogNames, name: Identifier, request: KeyedRequest) -> Token:
    """Return a token for the change of the object that `name` leads to. Take it before the request is looked for.

    Its versions are those of now. Older versions may know a former use of the key.
    """
    tree = catalog._tree
    tree.find_namespace(name)
    if name:
        # A damaged table can still be dropped.
        with suppress(FormatError, InvalidInput, NotFound):
            tree.find_table(name)
    return Token(commit_id=request.commit_id, bases=new_token(catalog._logs, tree.known_on_path(name)).bases)


@of_catalog
def still_leads(catalog: CatalogNames, name: Identifier, earlier_commit: EarlierCommit) -> bool:
    """Return whether a name leads to the object of an earlier commit."""
    return earlier_commit.object_id in RecentNames(catalog).present_ids(name)


class RequestLedger:
    """The keyed requests in the newest commits of logs. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: OrderedDict[str, _LogRequests] = OrderedDict()

    def in_namespace(
        self, catalog: CatalogNames, namespace: Identifier, request: KeyedRequest
    ) -> EarlierCommit | None:
        """Return the commit of a request in a log of a namespace's name. None if there is none.

        Reads the commits since the last look, at first those of the time for which keys are known. Raises KeyReused.
        Raises FormerLogUnknown if a log to which the name has led cannot be found.
        """
        return self._find(logs_of_name(catalog, namespace, self._changes_of, is_table=False), request)

    def in_table(
        self, catalog: CatalogNames, name: Identifier, request: KeyedRequest
    ) -> EarlierCommit | None:
        """Return the commit of a request in a log of a table, as `in_namespace` does."""
        return self._find(logs_of_name(catalog, name, self._changes_of, is_table=True), request)

    def _find(self, logs: Iterator[TrackedLog[Any]], request: KeyedRequest) -> EarlierCommit | None:
        for tracked in logs:
            try:
                view = tracked.settled()
            except NotFound:
                continue  # its namespace was purged
            earlier_commit = self._requests_of(tracked).find(tracked, view, request.id)
            if earlier_commit is None:
                continue
            if earlier_commit.digest != request.digest:
                raise KeyReused(
                    "another request had the same Idempotency-Key, and nothing was changed now: send each request "
                    "with a key of its own"
                )
            return earlier_commit
        return None

    def _changes_of(self, tracked: TrackedLog[Any], view: LogView[Any]) -> NameChanges:
        return self._requests_of(tracked).name_changes(tracked, view)

    def _requests_of(self, tracked: TrackedLog[Any]) -> _LogRequests:
        with self._lock:
            requests = self._logs.setdefault(tracked.location, _LogRequests())
            self._logs.move_to_end(tracked.location)
            while len(self._logs) > LOGS_MAX:
                self._logs.popitem(last=False)
            return requests


@dataclass(slots=True)
class _LogRequests:
    """The keyed requests of a log, and the changes of its names, up to its version `last`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    log_id: str = ""
    last: int = 0
    commits: OrderedDict[str, EarlierCommit] = field(default_factory=OrderedDict)
    """Those of keys that are still known, the oldest first."""
    names: NameChanges = field(default_factory=NameChanges)

    def find(self, tracked: TrackedLog[Any], view: LogView[Any], id: str) -> EarlierCommit | None:
        with self.lock:
            self._read(tracked, view)
            return self.commits.get(id)

    def name_changes(self, tracked: TrackedLog[Any], view: LogView[Any]) -> NameChanges:
        with self.lock:
            self._read(tracked, view)
            return self.names

    def _read(self, tracked: TrackedLog[Any], view: LogView[Any]) -> None:
        known_view = tracked.known
        if known_view is not None and known_view.version > view.version:
            view = known_view  # another thread, which had the lock before, may have read as far as that
        forgotten_us = host_clock_us() - (LIFETIME_S + GRACE_S) * 1_000_000
        if self.log_id != view.log_id or self.last > view.version:
            self.log_id, self.last, self.commits, self.names = view.log_id, 0, OrderedDict(), NameChanges()
        while self.commits and next(iter(self.commits.values())).time_us < forgotten_us:
            self.commits.popitem(last=False)
        new_commits: dict[str, EarlierCommit] = {}
        new_names = NameChanges()
        first = self.last + 1
        for commit in (
            tracked.log.commits(first=first, last=view.version, newest_first=True)
            if first <= view.version
            else ()
        ):
            if commit.time_us < forgotten_us:
                break
            for change in each_change(commit, newest_first=True):
                object_id = new_names.add(view.state, change)
                request = request_of(change)
                if request is not None and change.commit_id == _commit_id(request.id, request.digest):
                    new_commits[request.id] = EarlierCommit(
                        tracked.location,
                        commit.version,
                        request.digest,
                        commit.time_us,
                        object_id or view.log_id,
                    )
        for id, earlier_commit in reversed(new_commits.items()):
            # The first commit of a key counts.
            self.commits.setdefault(id, earlier_commit)
        self.names = self.names.followed_by(new_names, forgotten_us)
        self.last = view.version
