"""The logs that this process has met, each with its newest view: names, ids and stores come together here.

Views only ever move forward here. Every answer that must be fresh costs the caller a round of GETs for all
logs in question. A change of a single log goes through its `TrackedLog`, a change of several at once through
`commit_together`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.files.manifest_parts import PartCache
from lakelog.catalog.core.logs.by_data import GatherRows, NamespaceByData, TableByData
from lakelog.catalog.core.logs.clocks import WarehouseClocks
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.observing import ObservationHook, Observe, in_background
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.logs.write_times import WriteTimes
from lakelog.catalog.core.logs.writer_now import WriterFacts, as_here
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.core.state.namespace_projection import NamespaceProjection
from lakelog.catalog.core.state.namespace_state import NamespaceState
from lakelog.catalog.core.state.table_projection import TableProjection
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.names import Identifier
from lakelog.log import (
    ByData,
    Commit,
    Json,
    Log,
    LogOptions,
    LogPart,
    LogView,
    NoFeatures,
    StateDump,
    StateProjection,
    WarehouseDecisions,
    commit_together,
    refresh_many,
)
from lakelog.log.costs import waiting
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.grammar import shortened
from lakelog.log.ids import own_id
from lakelog.log.keys import LogKeys
from lakelog.log.participants import is_url
from lakelog.log.placing import Decide
from lakelog.log.snapshots import read_blobs
from lakelog.log.stores import ObjectStore

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class JointLogChange(Generic[S]):
    """The part of a change of several logs that one of them gets.

    The arguments are those of `Log.commit`.
    """

    tracked: TrackedLog[S]
    view: LogView[S]
    decide: Decide[S]
    base: int | None = None


class _Unread(NoFeatures):
    """Folds commits into nothing."""

    known_features = KNOWN

    def initial(self) -> None:
        return None

    def apply(self, state: None, commit: Commit, blobs: Sequence[bytes]) -> None:
        return None

    def dump(self, state: None, version: int, for_base: bool = False) -> StateDump:
        raise AssertionError("a log that is not read is not committed to")

    def stored(self, dump: StateDump) -> None:
        raise AssertionError("a log that is not read is not committed to")

    def load(self, root: Json) -> None:
        return None


class LogCache:
    """Opens the logs of a warehouse, and of the places that users chose, under one configuration.

    It judges times by `clocks`. `after_commit` is called with this cache and each log that was committed to,
    and must not wait. `gather_rows` writes the rows that other processes propose; without it, they are left
    to these processes.

    The cache refers to its logs, and the logs do not refer to it. So a catalog that is dropped releases its
    memory at once, which can be hundreds of megabytes, and does not wait for Python to look for cycles.
    """

    def __init__(
        self,
        places: WarehouseStores,
        writer: Mapping[str, Json],
        log_options: LogOptions,
        observe: Observe | None = None,
    ) -> None:
        self.places = places
        self.writer = dict(writer)
        self.clocks = WarehouseClocks(places, log_options.clock_us)
        self.after_commit: Callable[[LogCache, TrackedLog[Any], LogView[Any]], None] = _nothing
        self.gather_rows: GatherRows | None = None
        self.opening: object | None = None
        """Opens the logs again in another process; None if that is not possible."""
        in_parallel = log_options.in_parallel

        def in_parallel_as_here(works: Sequence[Callable[[], None]]) -> None:
            # Threads do not inherit the writer's facts.
            in_parallel([as_here(work) for work in works])

        self.observe = None if observe is None else ObservationHook(observe)
        """Called with a record of each operation."""
        self.log_options = replace(
            log_options,
            in_parallel=in_parallel_as_here,
            sleep_s=waiting(log_options.sleep_s),
            wait=waiting(log_options.wait),
            in_background=_seen(self.observe, places.warehouse, log_options.in_background),
            in_thread=_seen(self.observe, places.warehouse, log_options.in_thread),
        )
        self.write_times = WriteTimes(log_options.monotonic_s)
        self._kept = PartCache(log_options.blobs_kept_bytes, threading.Lock())
        self._namespaces: dict[str, TrackedLog[NamespaceState]] = {}
        self._tables: dict[str, TrackedLog[TableState]] = {}
        self._lock = threading.Lock()

    def beside(self, warehouse: str) -> LogCache:
        """Return the logs of another warehouse, under the same configuration, with the same stores."""
        other_logs = LogCache(self.places.beside(warehouse), self.writer, self.log_options)
        other_logs.observe = self.observe
        return other_logs

    def new_id(self) -> str:
        return own_id(self.log_options.new_id())

    @property
    def clock_is_the_hosts(self) -> bool:
        """Whether the warehouse is a folder, whose store mostly has no clock but the host's."""
        return self.warehouse.startswith("/")

    @property
    def warehouse(self) -> str:
        return self.places.warehouse

    def url(self, location: str) -> str:
        """Return the URL of `location` (a plain path for local folders)."""
        return self.places.url(location)

    def location(self, url: str) -> str:
        """Return the location that `url` stands for, which is relative to the warehouse if it lies inside."""
        return self.places.location(url)

    def namespace(self, location: str) -> TrackedLog[NamespaceState]:
        known_log = self._namespaces.get(location)
        if known_log is not None:
            return known_log
        if is_url(location):
            raise FormatError(
                f"a name leads to a namespace at {shortened(location)}, outside of the warehouse: find out "
                "which client wrote it"
            )
        # Names are looked up far more often than changed, each time through all namespaces above.
        every = self.log_options.hint_every_versions or _versions_per_hint
        options = replace(self.log_options, hint_every_versions=every)
        new_pages: list[_NamespacePages] = []

        def projection(store: ObjectStore, keys: LogKeys) -> NamespaceProjection:
            new_pages.append(_NamespacePages(partial(read_blobs, store, keys)))
            return NamespaceProjection(new_pages[0])

        tracked_log = self._tracked(
            self._namespaces, location, projection, options, lambda store, prefix: NamespaceByData()
        )
        for pages in new_pages:
            pages.are_of(tracked_log)
        return tracked_log

    def table(self, location: str) -> TrackedLog[TableState]:
        return self._tracked(
            self._tables,
            location,
            lambda store, keys: TableProjection(partial(read_blobs, store, keys), self._kept),
            # Without this cache, because the log must not refer to it.
            by_data=partial(TableByData, gather=self.gather_rows, options=self.log_options),
        )

    def unread(self, location: str) -> TrackedLog[None]:
        """Return the log at a location, whatever its kind, to look for commits in it."""
        return self._tracked({}, location, lambda store, keys: _Unread())

    def _tracked(
        self,
        cache: dict[str, TrackedLog[S]],
        location: str,
        projection: Callable[[ObjectStore, LogKeys], StateProjection[S]],
        options: LogOptions | None = None,
        by_data: Callable[[ObjectStore, str], ByData[S]] | None = None,
    ) -> TrackedLog[S]:
        tracked_log = cache.get(location)
        if tracked_log is None:
            store, prefix = self.places.open(location)
            log = Log(
                store,
                prefix,
                projection(store, LogKeys(prefix)),
                writer=WriterFacts(self.writer),
                options=replace(
                    options or self.log_options, clock_us=partial(self.clocks.commit_us, location)
                ),
                open_url=self.places.open_url,
                opened=self.places.warehouse,
                by_data=None if by_data is None else by_data(store, prefix),
            )
            with self._lock:
                new_log = TrackedLog(log, location, store, prefix, self.clocks.saw, _reporting(self))
                tracked_log = cache.setdefault(location, new_log)
        return tracked_log

    # Several logs at once

    def in_parallel(self, work: Callable[[T], U], inputs: Sequence[T]) -> list[U]:
        """Return the results of `work` for each of the inputs, several of them at a time."""
        results: dict[int, U] = {}

        def run(index: int) -> None:
            results[index] = work(inputs[index])

        self.log_options.in_parallel([partial(run, index) for index in range(len(inputs))])
        return [results[index] for index in range(len(inputs))]

    def check_writable(self) -> None:
        """Raise Unsupported for a change if all logs are as of the past."""

    @property
    def is_a_cut(self) -> bool:
        """Whether all logs are seen as they were at the same moment, so that none is newer than another."""
        return False

    def refresh(self, logs: Sequence[TrackedLog[Any]]) -> None:
        """Bring every known log up to date, in a single parallel round of GETs if nothing moved."""
        pairs = [(tracked_log, tracked_log.known) for tracked_log in logs]
        known_pairs = [(tracked_log, view) for tracked_log, view in pairs if view is not None]
        views = refresh_many([(tracked_log.log, view) for tracked_log, view in known_pairs])
        for (tracked_log, _), view in zip(known_pairs, views, strict=True):
            tracked_log.offer(view)

    def check_cut(self) -> None:
        """If all logs are shown as of the same moment, raise CommitConflict if the reads were not."""

    def prepare_path(self, namespace: Identifier, table: str | None) -> None:
        """Prepare a walk down that path: a cut reads all known levels in a single round."""

    def commit_together(
        self,
        changes: Sequence[JointLogChange[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Commit all of the changes, each to a log of its own, or none of them.

        See `lakelog.log.commit_together`.
        """
        parts = [
            LogPart(
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
        commit_results = commit_together(
            parts, decisions=WarehouseDecisions(store, prefix), commit_id=commit_id, validate=validate
        )
        for change, commit_result in zip(changes, commit_results, strict=True):
            change.tracked.offer_committed(commit_result.view)


def _versions_per_hint(state: NamespaceState) -> int:
    return state.versions_per_hint


def _seen(
    hook: ObservationHook | None, warehouse: str, begin: Callable[[str, Callable[[], None]], None]
) -> Callable[[str, Callable[[], None]], None]:
    """Return a function that begins work in another thread, each as a record of its own."""
    if hook is None:
        return begin
    return lambda name, work: begin(name, in_background(hook, warehouse, name, work))


def _nothing(logs: LogCache, tracked: TrackedLog[Any], view: LogView[Any]) -> None:
    pass


def _reporting(logs: LogCache) -> Callable[[TrackedLog[Any], LogView[Any]], None]:
    """Return a function that reports commits to `logs`, and does not keep it alive.

    A caller that commits does.
    """
    logs_ref = weakref.ref(logs)

    def committed(tracked: TrackedLog[Any], view: LogView[Any]) -> None:
        logs = logs_ref()
        if logs is not None:
            logs.after_commit(logs, tracked, view)

    return committed


def _home_of(view: LogView[Any]) -> str | None:
    """Return the location of the namespace that links a table."""
    link = view.state.link if isinstance(view.state, TableState) else None
    return None if link is None else link.namespace


class _NamespacePages:
    """A `PageSource` of a namespace's names, even if expiry has replaced pages.

    It does not refer to the log, which refers to it. So a catalog that is dropped releases its memory at
    once.
    """

    def __init__(self, read: Callable[[Sequence[str]], list[bytes]]) -> None:
        self._read = read
        self._tracked: weakref.ref[TrackedLog[NamespaceState]] | None = None

    def are_of(self, tracked: TrackedLog[NamespaceState]) -> None:
        self._tracked = weakref.ref(tracked)

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return pages by their names, in a single round. Raises NotFound if any of them has expired."""
        return self._read(names)

    def state_at(self, version: int) -> NamespaceState:
        """Return the state of a version, read again.

        Raises NotFound if it has expired. Then the next use of the log loads it again.
        """
        tracked_log = None if self._tracked is None else self._tracked()
        if tracked_log is None:
            raise NotFound("pages of a namespace have expired, and its catalog was closed: open it again")
        try:
            with naming(tracked_log.log.location):
                return tracked_log.log.view_at(version).state
        except NotFound:
            tracked_log.forget()
            raise
