"""The logs that this process has met, each with the newest view of it: where names, ids and stores come together.

Views only ever move forward here; every answer that must be fresh costs the caller one round of GETs for all logs in
question. A change of one log goes through its `TrackedLog`, a change of several at once through `commit_together`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.files import Kept
from lakelog.catalog.core.logs.by_data import GatherRows, NamespaceByData, TableByData
from lakelog.catalog.core.logs.clocks import Clocks
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.observing import Hook, Observe, in_background
from lakelog.catalog.core.logs.places import Places
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.logs.write_times import WriteTimes
from lakelog.catalog.core.logs.writer_now import Facts, as_here
from lakelog.catalog.core.state import (
    NamespaceProjection,
    NamespaceState,
    TableProjection,
    TableState,
)
from lakelog.catalog.names import Identifier
from lakelog.log import (
    ByData,
    Commit,
    Decisions,
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
from lakelog.log.costs import waiting
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.grammar import shortened
from lakelog.log.keys import Keys
from lakelog.log.participants import is_url
from lakelog.log.placing import Decide
from lakelog.log.snapshots import read_blobs
from lakelog.log.stores import ObjectStore

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class LogChange(Generic[S]):
    """What a change of several logs does in one of them; the arguments are those of `Log.commit`."""

    tracked: TrackedLog[S]
    view: View[S]
    decide: Decide[S]
    base: int | None = None


class _Unread:
    """Folds commits into nothing."""

    def initial(self) -> None:
        return None

    def apply(self, state: None, commit: Commit, blobs: Sequence[bytes]) -> None:
        return None

    def dump(self, state: None, version: int, for_base: bool = False) -> Dump:
        raise AssertionError("a log that is not read is not committed to")

    def stored(self, dump: Dump) -> None:
        raise AssertionError("a log that is not read is not committed to")

    def load(self, root: Json) -> None:
        return None


class LogCache:
    """Opens the logs of one warehouse, and of the places that users chose, under one configuration.

    `clocks` are what it judges times by. `after_commit` is called with this cache and each log that was committed to,
    and must not wait. `gather_rows` writes the rows that other processes propose; without it, they are left to these.

    It keeps its logs, and they do not keep it: a catalog that is dropped releases all that it knows at once, where
    that can be hundreds of megabytes, and does not wait for Python to look for cycles.
    """

    def __init__(
        self,
        places: Places,
        writer: Mapping[str, Json],
        log_options: LogOptions,
        observe: Observe | None = None,
    ) -> None:
        self.places = places
        self.writer = dict(writer)
        self.clocks = Clocks(places, log_options.clock_us)
        self.after_commit: Callable[[LogCache, TrackedLog[Any], View[Any]], None] = _nothing
        self.gather_rows: GatherRows | None = None
        self.opening: object | None = None
        """What opens them again in another process; None: nothing does."""
        in_parallel = log_options.in_parallel

        def in_parallel_as_here(works: Sequence[Callable[[], None]]) -> None:
            # Threads do not inherit the writer's facts.
            in_parallel([as_here(work) for work in works])

        self.observe = None if observe is None else Hook(observe)
        """What is called with a record of each operation."""
        self.log_options = replace(
            log_options,
            in_parallel=in_parallel_as_here,
            sleep_s=waiting(log_options.sleep_s),
            wait=waiting(log_options.wait),
            in_background=_seen(self.observe, places.warehouse, log_options.in_background),
            in_thread=_seen(self.observe, places.warehouse, log_options.in_thread),
        )
        self.write_times = WriteTimes(log_options.monotonic_s)
        self._kept = Kept(log_options.blobs_kept_bytes, threading.Lock())
        self._namespaces: dict[str, TrackedLog[NamespaceState]] = {}
        self._tables: dict[str, TrackedLog[TableState]] = {}
        self._lock = threading.Lock()

    def beside(self, warehouse: str) -> LogCache:
        """Return the logs of another warehouse, under the same configuration, with the same stores."""
        other = LogCache(self.places.beside(warehouse), self.writer, self.log_options)
        other.observe = self.observe
        return other

    def new_id(self) -> str:
        return self.log_options.new_id()

    @property
    def clock_is_the_hosts(self) -> bool:
        """Whether the warehouse is a folder, whose store mostly has no clock but the host's."""
        return self.warehouse.startswith("/")

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
        known = self._namespaces.get(location)
        if known is not None:
            return known
        if is_url(location):
            raise FormatError(
                f"a name leads to a namespace at {shortened(location)}, outside of the warehouse: find out "
                "which client wrote it"
            )
        # Names are looked up far more often than changed, each time through all namespaces above.
        every = self.log_options.hint_every_versions or _versions_per_hint
        options = replace(self.log_options, hint_every_versions=every)
        made: list[_NamespacePages] = []

        def projection(store: ObjectStore, keys: Keys) -> NamespaceProjection:
            made.append(_NamespacePages(partial(read_blobs, store, keys)))
            return NamespaceProjection(made[0])

        tracked = self._tracked(
            self._namespaces, location, projection, options, lambda store, prefix: NamespaceByData()
        )
        for pages in made:
            pages.are_of(tracked)
        return tracked

    def table(self, location: str) -> TrackedLog[TableState]:
        return self._tracked(
            self._tables,
            location,
            lambda store, keys: TableProjection(partial(read_blobs, store, keys), self._kept),
            # Without this cache, which the log does not keep.
            by_data=partial(TableByData, gather=self.gather_rows, options=self.log_options),
        )

    def unread(self, location: str) -> TrackedLog[None]:
        """Return the log at a location, whatever it is of, to look for commits in it."""
        return self._tracked({}, location, lambda store, keys: _Unread())

    def _tracked(
        self,
        cache: dict[str, TrackedLog[S]],
        location: str,
        projection: Callable[[ObjectStore, Keys], Projection[S]],
        options: LogOptions | None = None,
        by_data: Callable[[ObjectStore, str], ByData[S]] | None = None,
    ) -> TrackedLog[S]:
        tracked = cache.get(location)
        if tracked is None:
            store, prefix = self.places.open(location)
            log = Log(
                store,
                prefix,
                projection(store, Keys(prefix)),
                writer=Facts(self.writer),
                options=replace(
                    options or self.log_options, clock_us=partial(self.clocks.commit_us, location)
                ),
                open_url=self.places.open_url,
                opened=self.places.warehouse,
                by_data=None if by_data is None else by_data(store, prefix),
            )
            with self._lock:
                made = TrackedLog(log, location, store, prefix, self.clocks.saw, _reporting(self))
                tracked = cache.setdefault(location, made)
        return tracked

    # Several logs at once

    def in_parallel(self, work: Callable[[T], U], inputs: Sequence[T]) -> list[U]:
        """Return what `work` returns for each of the inputs, several of them at a time."""
        results: dict[int, U] = {}

        def run(index: int) -> None:
            results[index] = work(inputs[index])

        self.log_options.in_parallel([partial(run, index) for index in range(len(inputs))])
        return [results[index] for index in range(len(inputs))]

    def check_writable(self) -> None:
        """Refuse a change where all logs are as of the past. Unsupported."""

    @property
    def is_a_cut(self) -> bool:
        """Whether all logs are seen as they were at one moment, so that none of them is newer than another."""
        return False

    def refresh(self, logs: Sequence[TrackedLog[Any]]) -> None:
        """Bring every known log up to date, in one parallel round of GETs when nothing moved."""
        pairs = [(tracked, tracked.known) for tracked in logs]
        known = [(tracked, view) for tracked, view in pairs if view is not None]
        views = refresh_many([(tracked.log, view) for tracked, view in known])
        for (tracked, _), view in zip(known, views, strict=True):
            tracked.offer(view)

    def check_cut(self) -> None:
        """Check, where all logs are shown as of one moment, that what was read is as of one. CommitConflict."""

    def prepare_path(self, namespace: Identifier, table: str | None) -> None:
        """Prepare a walk down that path: a cut reads all known levels in one round."""

    def commit_together(
        self,
        changes: Sequence[LogChange[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Commit all of the changes, each to a log of its own, or none of them (see `lakelog.log.commit_together`)."""
        parts = [
            Part(
                name=c.tracked.location,
                log=c.tracked.log,
                view=c.view,
                decide=c.decide,
                base=c.base,
                home=_home_of(c.view),
            )
            for c in changes
        ]
        store, prefix = self.places.open("")
        done = commit_together(
            parts, decisions=Decisions(store, prefix), commit_id=commit_id, validate=validate
        )
        for change, committed in zip(changes, done, strict=True):
            change.tracked.offer_committed(committed.view)


def _versions_per_hint(state: NamespaceState) -> int:
    return state.versions_per_hint


def _seen(
    hook: Hook | None, warehouse: str, begin: Callable[[str, Callable[[], None]], None]
) -> Callable[[str, Callable[[], None]], None]:
    """Return what begins work in another thread, each as a record of its own."""
    if hook is None:
        return begin
    return lambda name, work: begin(name, in_background(hook, warehouse, name, work))


def _nothing(logs: LogCache, tracked: TrackedLog[Any], view: View[Any]) -> None:
    pass


def _reporting(logs: LogCache) -> Callable[[TrackedLog[Any], View[Any]], None]:
    """Return what reports commits to `logs`, without keeping it: a caller that commits to one of its logs does."""
    known = weakref.ref(logs)

    def committed(tracked: TrackedLog[Any], view: View[Any]) -> None:
        logs = known()
        if logs is not None:
            logs.after_commit(logs, tracked, view)

    return committed


def _home_of(view: View[Any]) -> str | None:
    """Return the location of the namespace that links a table."""
    link = view.state.link if isinstance(view.state, TableState) else None
    return None if link is None else link.namespace


class _NamespacePages:
    """A `PageSource` of a namespace's names, also where expiry has replaced pages.

    It does not keep the log, which keeps it: a catalog that is dropped releases all at once.
    """

    def __init__(self, read: Callable[[Sequence[str]], list[bytes]]) -> None:
        self._read = read
        self._tracked: weakref.ref[TrackedLog[NamespaceState]] | None = None

    def are_of(self, tracked: TrackedLog[NamespaceState]) -> None:
        self._tracked = weakref.ref(tracked)

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return pages by their names, in one round. NotFound where one has expired."""
        return self._read(names)

    def state_at(self, version: int) -> NamespaceState:
        """Return the state of a version, read anew. NotFound where it has expired: then the log is loaded anew when it
        is used the next time."""
        tracked = None if self._tracked is None else self._tracked()
        if tracked is None:
            raise NotFound("pages of a namespace have expired, and its catalog was closed: open it again")
        try:
            with naming(tracked.log.location):
                return tracked.log.view_at(version).state
        except NotFound:
            tracked.forget()
            raise
