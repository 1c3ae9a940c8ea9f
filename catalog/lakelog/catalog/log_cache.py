"""The logs that this process has met, each with the newest view of it: where names, ids and stores come together.

A location is relative to the warehouse (`""` is the root namespace) or, where a user chose the place, a URL. Views only
ever move forward here; every answer that must be fresh costs the caller one round of GETs for all logs in question.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from lakelog.catalog.namespace_state import NamespaceProjection, NamespaceState
from lakelog.catalog.table_state import TableProjection, TableState
from lakelog.log import (
    Commit,
    Dump,
    Json,
    Log,
    LogOptions,
    Projection,
    View,
    canonical_url,
    open_store,
    refresh_many,
)
from lakelog.log.store import ObjectStore

S = TypeVar("S")

RELOAD_AFTER_VERSIONS = 1000
"""A state that was folded forward for so long is read anew from its snapshot: it no longer holds on to its past."""


class TrackedLog(Generic[S]):
    """One log and the newest view that this process has of it. Safe to share between threads."""

    def __init__(self, log: Log[S], location: str, store: ObjectStore, prefix: str) -> None:
        self.log = log
        self.location = location
        self.store = store
        self.prefix = prefix
        self._view: View[S] | None = None
        self._loaded_at = 0
        self._lock = threading.Lock()

    @property
    def known(self) -> View[S] | None:
        """The newest view that is known, without a request."""
        return self._view

    def offer(self, view: View[S]) -> View[S]:
        """Remember `view` if it is the newest; return the newest."""
        with self._lock:
            if self._view is None or self._view.version < view.version:
                self._view = view
            return self._view

    def reset(self, view: View[S]) -> View[S]:
        """Remember `view` whatever was known: its log was just created at this place."""
        with self._lock:
            self._view = view
            return view

    def at_least(self, version: int) -> View[S]:
        """Return a view that is not older than `version`: the known one where it will do, else the head."""
        known = self._view
        return known if known is not None and known.version >= version else self.current()

    def current(self) -> View[S]:
        """Return the head: 1 GET when known and unchanged, 2 round trips when not known. NotFound without a log."""
        known = self._view
        if known is None or known.version - self._loaded_at >= RELOAD_AFTER_VERSIONS:
            view = self.log.load()
            self._loaded_at = view.version
        else:
            view = self.log.refresh(known)
        return self.offer(view)

    def anew(self) -> View[S]:
        """Return the head as one finds it who knows nothing: what is known may be of a log that was removed."""
        with self._lock:
            self._view = None
        return self.current()

    def at_its_place(self) -> View[S]:
        """Return the head of what is there now: where a sealed log is known, it may have been removed since."""
        view = self.current()
        return self.anew() if view.sealed else view


class _Unread:
    """Folds commits into nothing."""

    def initial(self) -> None:
        return None

    def apply(self, state: None, commit: Commit, blobs: Sequence[bytes]) -> None:
        return None

    def dump(self, state: None, version: int) -> Dump:
        raise AssertionError("nobody commits through a log that is not read")

    def stored(self, dump: Dump) -> None:
        raise AssertionError("nobody commits through a log that is not read")

    def load(self, root: Json) -> None:
        return None


class LogCache:
    """Opens the logs of one warehouse, and of the places that users chose, under one configuration."""

    def __init__(
        self, warehouse: str, options: Mapping[str, str], writer: Mapping[str, Json], log_options: LogOptions
    ) -> None:
        self.warehouse = canonical_url(warehouse)
        self.log_options = log_options
        self._options = dict(options)
        self._writer = dict(writer)
        self._stores: dict[str, ObjectStore] = {}
        self._namespaces: dict[str, TrackedLog[NamespaceState]] = {}
        self._tables: dict[str, TrackedLog[TableState]] = {}
        self._lock = threading.Lock()
        self.store(self.warehouse)

    def new_id(self) -> str:
        return self.log_options.new_id()

    def store(self, url: str) -> ObjectStore:
        with self._lock:
            if url not in self._stores:
                self._stores[url] = open_store(url, self._options)
            return self._stores[url]

    def namespace(self, location: str) -> TrackedLog[NamespaceState]:
        return self._tracked(self._namespaces, location, NamespaceProjection())

    def table(self, location: str) -> TrackedLog[TableState]:
        def fetch(names: Sequence[str]) -> list[bytes]:
            return self.table(location).log.read_blobs(names)

        return self._tracked(self._tables, location, TableProjection(fetch))

    def unread(self, location: str) -> TrackedLog[None]:
        """Return the log at a location without a word about what it is of: to look for commits in it."""
        return self._tracked({}, location, _Unread())

    def _tracked(
        self, cache: dict[str, TrackedLog[Any]], location: str, projection: Projection[Any]
    ) -> TrackedLog[Any]:
        tracked = cache.get(location)
        if tracked is None:
            store, prefix = self._place(location)
            log = Log(store, prefix, projection, writer=self._writer, options=self.log_options)
            with self._lock:
                tracked = cache.setdefault(location, TrackedLog(log, location, store, prefix))
        return tracked

    def url(self, location: str) -> str:
        """Return where `location` is, as a URL (a plain path for local folders)."""
        if _is_url(location):
            return location
        return f"{self.warehouse}/{location}" if location else self.warehouse

    def location(self, url: str) -> str:
        """Return the location that `url` stands for: relative to the warehouse where it lies inside."""
        url = canonical_url(url)
        if url == self.warehouse:
            return ""
        inside = url.removeprefix(self.warehouse.rstrip("/") + "/")
        return url if inside == url else inside

    def _place(self, location: str) -> tuple[ObjectStore, str]:
        if not _is_url(location):
            return self.store(self.warehouse), location
        if location.startswith("s3://"):
            # One client per bucket serves all the places in it.
            bucket, _, prefix = location.removeprefix("s3://").partition("/")
            return self.store(f"s3://{bucket}"), prefix
        return self.store(location), ""


def refresh_all(logs: Sequence[TrackedLog[Any]]) -> None:
    """Bring every log that is known up to date, in one parallel round of GETs when nothing moved."""
    pairs = [(tracked.log, tracked.known) for tracked in logs]
    views = refresh_many([(log, view) for log, view in pairs if view is not None])
    for tracked, view in zip(
        (t for t, (_, v) in zip(logs, pairs, strict=True) if v is not None), views, strict=True
    ):
        tracked.offer(view)


def _is_url(location: str) -> bool:
    return location.startswith("/") or "://" in location
