"""The logs that this process has met, each with the newest view of it: where names, ids and stores come together.

Views only ever move forward here; every answer that must be fresh costs the caller one round of GETs for all logs in
question. A change of one log goes through its `TrackedLog`, a change of several at once through `commit_together`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from lakelog.catalog.logs.places import Places
from lakelog.catalog.names import Identifier
from lakelog.catalog.state import NamespaceProjection, NamespaceState, TableProjection, TableState
from lakelog.log import (
    Commit,
    Committed,
    Decisions,
    Draft,
    Dump,
    Json,
    Log,
    LogOptions,
    Part,
    Projection,
    View,
    commit_together,
    refresh_many,
)
from lakelog.log.errors import NotFound
from lakelog.log.placing import Decide
from lakelog.log.stores import ObjectStore
from lakelog.log.view import CLOCK_TOLERANCE_US

S = TypeVar("S")
T = TypeVar("T")

RELOAD_AFTER_VERSIONS = 1000
"""A state that was folded forward for so long is read anew from its snapshot: it no longer holds on to its past."""

_FACTS: ContextVar[Mapping[str, Json] | None] = ContextVar("lakelog_writer_facts", default=None)


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """What a change of several logs does in one of them; the arguments are those of `Log.commit`."""

    tracked: TrackedLog[S]
    view: View[S]
    decide: Decide[S]
    base: int | None = None


class TrackedLog(Generic[S]):
    """One log and the newest view that this process has of it. Safe to share between threads."""

    def __init__(
        self, log: Log[S], location: str, store: ObjectStore, prefix: str, seen: Callable[[int], None]
    ) -> None:
        self.log = log
        self.location = location
        self.store = store
        self.prefix = prefix
        self._seen = seen
        self._view: View[S] | None = None
        self._loaded_at = 0
        self._lock = threading.Lock()

    @property
    def known(self) -> View[S] | None:
        """The newest view that is known, without a request."""
        return self._view

    def offer(self, view: View[S]) -> View[S]:
        """Remember `view` if it is the newest; return the newest."""
        self._seen(view.time_us)
        with self._lock:
            if self._view is None or self._view.version < view.version:
                self._view = view
            return self._view

    def reset(self, view: View[S]) -> View[S]:
        """Remember `view` whatever was known: its log was just created at this place."""
        self._seen(view.time_us)
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

    def settled(self) -> View[S]:
        """Return the head once nothing stands undecided after it (see `Log.refresh_settled`)."""
        return self.offer(self.log.refresh_settled(self._view or self.log.load()))

    def anew(self) -> View[S]:
        """Return the head as one finds it who knows nothing: what is known may be of a log that was removed."""
        with self._lock:
            self._view = None
        return self.current()

    def at_its_place(self) -> View[S]:
        """Return the head of what is there now: where a sealed log is known, it may have been removed since."""
        view = self.current()
        return self.anew() if view.sealed else view

    def read(self, view: View[S], look: Callable[[View[S]], T]) -> T:
        """Return what `look` finds in a view whose parts are still in the store; where expiry has replaced them, in the
        same version read anew. NotFound, with the versions that there are, when that has expired."""
        try:
            return look(view)
        except NotFound:
            fresh = self.anew()
            if fresh.hash != view.hash:
                fresh = self.log.view_at(view.version)
            if fresh.hash != view.hash:
                raise
            return look(as_seen_in(view, fresh))

    # Changes

    def create(self, draft: Draft, *, log_id: str, commit_id: str | None = None) -> View[S]:
        """Create the log (see `Log.create`) and remember it."""
        return self.reset(self.log.create(draft, log_id=log_id, commit_id=commit_id))

    def commit(
        self, view: View[S], decide: Decide[S], *, commit_id: str | None = None, base: int | None = None
    ) -> Committed[S]:
        """Commit (see `Log.commit`) and remember what that led to."""
        committed = self.log.commit(view, decide, commit_id=commit_id, base=base)
        self.offer(committed.view)
        return committed

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return which version from `first` to `last` is that commit (see `Log.find`)."""
        return self.log.find(commit_id, first, last)

    def view_at(self, version: int) -> View[S]:
        """Return the log as of `version` (see `Log.view_at`)."""
        return self.log.view_at(version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version at or before `time_us` (see `Log.version_at_time`)."""
        return self.log.version_at_time(time_us)

    def as_seen(self, commit: Commit) -> Commit:
        """Return a commit as it is seen here: on a tag or branch, with the changes of that as those of the table."""
        return commit

    def own_since(self, view: View[S]) -> Sequence[Commit]:
        """Return what the transaction at hand did after `view`, as commits; outside of transactions, nothing."""
        return ()

    def note_staged(self, commit_id: str, view: View[S]) -> None:
        """Take note that what will be committed under this id is prepared on `view`."""

    def own_since_staged(self, commit_id: str) -> Sequence[Commit]:
        """As `own_since`, after the view that `note_staged` was told."""
        return ()

    @property
    def in_transaction(self) -> bool:
        """Whether what is committed here is a step of a transaction, which may have read and done other things."""
        return False

    @property
    def outside(self) -> TrackedLog[S]:
        """The log that everybody sees, where this is a transaction's."""
        return self

    @property
    def is_new(self) -> bool:
        """Whether the log is only being created by a transaction that is not committed yet."""
        return False

    # What a transaction takes down to validate it later; nobody else needs it.

    def note_rows_read(self, predicate: Any) -> None:
        """Take note that the rows which match were read; None stands for all rows."""

    def note_rows_of_line_read(self, name: str, id: str, predicate: Any) -> None:
        """As `note_rows_read`, of the tag or branch of that name and id."""

    def note_name_read(self, space: str, name: str | None) -> None:
        """Take note that this name was looked up in this namespace."""


def as_seen_in(view: View[S], fresh: View[S]) -> View[S]:
    """Return a view that was read anew as it was seen before: on a tag or branch, where it was."""
    seen, state = view.state, fresh.state
    if not isinstance(seen, TableState) or not isinstance(state, TableState):
        return fresh
    return cast(View[S], replace(cast(View[TableState], fresh), state=state.on(seen.line)))


class _Facts(Mapping[str, Json]):
    """Who writes, as a commit made now says it: the catalog's writer, and what `writing_as` adds."""

    def __init__(self, writer: Mapping[str, Json]) -> None:
        self._writer = writer

    def _now(self) -> Mapping[str, Json]:
        return {**self._writer, **(_FACTS.get() or {})}

    def __getitem__(self, key: str) -> Json:
        return self._now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


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
    """Opens the logs of one warehouse, and of the places that users chose, under one configuration.

    A commit's time is later than all that this process has read, so that a cut by time never holds an effect without
    its cause, whatever the clocks say.
    """

    def __init__(self, places: Places, writer: Mapping[str, Json], log_options: LogOptions) -> None:
        self.places = places
        self.writer = dict(writer)
        self._seen_us = 0
        clock_us, in_parallel = log_options.clock_us, log_options.in_parallel

        def in_parallel_as_here(works: Sequence[Callable[[], None]]) -> None:
            # Threads do not inherit who is writing.
            in_parallel([_as_here(work) for work in works])

        self.log_options = replace(
            log_options,
            clock_us=lambda: max(self._believable_us(clock_us()), self._seen_us + 1),
            in_parallel=in_parallel_as_here,
        )
        self._namespaces: dict[str, TrackedLog[NamespaceState]] = {}
        self._tables: dict[str, TrackedLog[TableState]] = {}
        self._lock = threading.Lock()

    def new_id(self) -> str:
        return self.log_options.new_id()

    @property
    def seen_us(self) -> int:
        """The time of the newest version that this process has read or written."""
        return self._seen_us

    @property
    def warehouse(self) -> str:
        return self.places.warehouse

    def url(self, location: str) -> str:
        """Return where `location` is, as a URL (a plain path for local folders)."""
        return self.places.url(location)

    def location(self, url: str) -> str:
        """Return the location that `url` stands for: relative to the warehouse where it lies inside."""
        return self.places.location(url)

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
        self, cache: dict[str, TrackedLog[S]], location: str, projection: Projection[S]
    ) -> TrackedLog[S]:
        tracked = cache.get(location)
        if tracked is None:
            store, prefix = self.places.open(location)
            log = Log(
                store,
                prefix,
                projection,
                writer=_Facts(self.writer),
                options=self.log_options,
                open_url=self.places.open_url,
            )
            with self._lock:
                tracked = cache.setdefault(location, TrackedLog(log, location, store, prefix, self._saw))
        return tracked

    def _believable_us(self, own_us: int) -> int:
        """Return the store's time for a clock that differs too much: else the log would put it, and what was seen by
        this process with it, aside."""
        store_us = self.places.store(self.warehouse).now_us()
        return own_us if store_us is None or abs(own_us - store_us) <= CLOCK_TOLERANCE_US else store_us

    def _saw(self, time_us: int) -> None:
        with self._lock:
            self._seen_us = max(self._seen_us, time_us)

    # Several logs at once

    def check_writable(self) -> None:
        """Refuse a change where everything is as of the past. Unsupported."""

    @property
    def is_a_cut(self) -> bool:
        """Whether all logs are seen as they were at one moment, so that none of them is newer than another."""
        return False

    def refresh(self, logs: Sequence[TrackedLog[Any]]) -> None:
        """Bring every log that is known up to date, in one parallel round of GETs when nothing moved."""
        pairs = [(tracked, tracked.known) for tracked in logs]
        known = [(tracked, view) for tracked, view in pairs if view is not None]
        views = refresh_many([(tracked.log, view) for tracked, view in known])
        for (tracked, _), view in zip(known, views, strict=True):
            tracked.offer(view)

    def check_cut(self) -> None:
        """Make sure that what was read is as of one moment, where that is what is shown. CommitConflict."""

    def take_path(self, namespace: Identifier, table: str | None) -> None:
        """Prepare a walk down that path: a cut reads all levels that are known in one round."""

    def commit_together(
        self,
        changes: Sequence[Change[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Commit all of the changes, each to a log of its own, or none of them (see `lakelog.log.commit_together`)."""
        parts = [
            Part(name=c.tracked.location, log=c.tracked.log, view=c.view, decide=c.decide, base=c.base)
            for c in changes
        ]
        store, prefix = self.places.open("")
        done = commit_together(
            parts, decisions=Decisions(store, prefix), commit_id=commit_id, validate=validate
        )
        for change, committed in zip(changes, done, strict=True):
            change.tracked.offer(committed.view)


def facts_now() -> Mapping[str, Json]:
    """Return what `writing_as` adds at this point."""
    return _FACTS.get() or {}


def write_as(facts: Mapping[str, Json]) -> None:
    """Say from here on, until the enclosing `writing_as` ends, that `facts` are what it adds."""
    _FACTS.set(facts)


@contextmanager
def writing_as(facts: Mapping[str, Json]) -> Iterator[None]:
    """Inside, `facts` are added to what each commit of this thread says about its writer."""
    token = _FACTS.set({**(_FACTS.get() or {}), **facts})
    try:
        yield
    finally:
        _FACTS.reset(token)


def _as_here(work: Callable[[], T]) -> Callable[[], T]:
    context = copy_context()
    return lambda: context.run(work)
