"""The objects of a log up to a version: exactly the objects that a copy of it needs.

These are its commits and tombstones up to the version, the bases on the way, a snapshot that no base has
outdated, and the manifests and sidecars that these name. Decisions of transactions, objects of saved cuts,
and the data files of all readable versions belong to them too. Expiry may continue during the read, up to the
version. If a base is created while the log is read, the log is read again. So the result never depends on an
object that the base releases.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.ddl import decode_cut
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, Progress, TrackedLog, no_progress
from lakelog.catalog.core.state import NAMESPACE, NamespaceState, TableState
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance.reachable import all_named, ever_in, first_readable
from lakelog.log import Commit, Log, LogView
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.expiry import bases, last_base
from lakelog.log.format import LogBase, SnapshotRoot

TRIES_MAX = 5
AT_ONCE = 256
"""The number of commits that are read in a round."""


class BackupCutGone(CommitConflict):
    """A backed-up version has a saved cut whose object is gone because another client dropped the cut."""


@dataclass(frozen=True, slots=True)
class LogAt:
    """A log of the cut at its version. `path` is its name; a dropped log has its last name."""

    kind: str
    location: str
    version: int
    path: tuple[str, ...]
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class OutsideName:
    """A name that leads out of the warehouse, or that did before it was dropped."""

    path: tuple[str, ...]
    location: str
    dropped: bool


@dataclass(slots=True)
class LogContents:
    """The objects of a log.

    `read` has objects with their bytes. `named` has objects that are read during the copy, with their
    required sizes (None: not known). `elsewhere` has the places of files outside of the warehouse, and
    `borrowed` of files of other tables in it. For a namespace, `cuts` has the locations of the logs in each
    saved cut.
    """

    read: dict[str, bytes] = field(default_factory=dict)
    named: dict[str, int | None] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    borrowed: set[str] = field(default_factory=set)
    cuts: dict[str, frozenset[str]] = field(default_factory=dict)


def logs_of(
    logs: LogCache, versions: dict[str, int], start: str, path: tuple[str, ...]
) -> tuple[list[LogAt], list[OutsideName]]:
    """Return the logs of a cut of the namespace at `start`, and the names that lead out of the warehouse.

    Dropped logs that may be restored are included.
    """
    logs_by_location: dict[str, LogAt] = {}
    names_outside: list[OutsideName] = []
    until_us = _newest_us(logs, versions, start)

    def walk(kind: str, location: str, name: tuple[str, ...], dropped: bool) -> None:
        if is_elsewhere(location):
            names_outside.append(OutsideName(name, location, dropped))
            return
        if location in logs_by_location:
            return
        tracked_log: TrackedLog[Any] = logs.namespace(location) if kind == NAMESPACE else logs.table(location)
        version = versions.get(location) if not dropped else None
        if version is None:
            version = _version_then(tracked_log, until_us)
            if version is None:
                return
        logs_by_location[location] = LogAt(kind, location, version, name, dropped)
        if kind != NAMESPACE:
            return
        state: NamespaceState = tracked_log.log.view_at(version).state
        for _, child, entry in state.all_logs():
            walk(entry.kind, entry.location, (*name, child), dropped)
        for drop in state.dropped_logs():
            walk(drop.entry.kind, drop.entry.location, (*name, drop.name), True)

    walk(NAMESPACE, start, path, False)
    return list(logs_by_location.values()), names_outside


def _newest_us(logs: LogCache, versions: dict[str, int], start: str) -> int:
    """Return the time of the cut. No version in it is newer."""
    times = [logs.namespace(start).log.view_at(versions[start]).time_us]
    for location, version in versions.items():
        if location == start or is_elsewhere(location):
            continue
        tracked_log = logs.unread(location)
        entry = tracked_log.log.entry_at(version)
        if entry is not None:
            decision = tracked_log.log.replay.decided(entry) if _is_intent(entry) else None  # type: ignore[arg-type]
            times.append(max(entry.time_us, decision.time_us if decision is not None else 0))
    return max(times)


def _is_intent(entry: Any) -> bool:
    return isinstance(entry, Commit) and entry.intent is not None


def _version_then(tracked: TrackedLog[Any], until_us: int) -> int | None:
    """Return the version of a dropped log at that time. For a log that was purged later, return the purge.

    None if there is no log: it never had one, or another log has its place.
    """
    try:
        view = tracked.current()
        if view.time_us <= until_us or view.purged:
            return view.version
        return tracked.log.version_at_time(until_us)
    except NotFound:
        return None


def contents_of(logs: LogCache, at: LogAt, progress: Progress = no_progress) -> LogContents:
    """Return the objects of a log up to its version. Raises CommitConflict if its versions keep expiring."""
    tracked_log: TrackedLog[Any] = (
        logs.namespace(at.location) if at.kind == NAMESPACE else logs.table(at.location)
    )
    for _ in range(TRIES_MAX):
        old_base = last_base(tracked_log.log)
        try:
            contents = _contents(tracked_log, at, progress)
        except NotFound:
            contents = None
        if contents is not None and last_base(tracked_log.log) == old_base:
            return contents
    raise CommitConflict(
        f"versions of {tracked_log.log.location} expire while it is copied: retry once that has ended",
        version=0,
    )


def _contents(tracked: TrackedLog[Any], at: LogAt, progress: Progress) -> LogContents:
    contents, log = LogContents(), tracked.log
    commits = _commits(log, at, contents, progress)
    base = _bases(log, at.version, contents)
    first = first_readable(base)
    uses = set(base.root.uses or ()) if base is not None else set()
    uses |= _snapshot(log, at.version, 0 if base is None else base.number, contents)
    contents.named |= {log.keys.manifest(name): None for name in uses}
    for commit in commits:
        if commit.intent is not None:
            place = log.replay.decision_place(commit)
            data = None if place is None else place.store.get(place.key)
            if place is not None and data is not None:
                # The location begins with the warehouse, whose folder contains all logs here.
                contents.read[_inside(tracked, place.location)] = data
        if commit.version > first or base is None:
            contents.named |= {
                log.keys.sidecar(sidecar.name): sidecar.size_bytes for sidecar in commit.sidecars
            }
    view = log.view_at(at.version)
    if view.purged:
        return contents
    if at.kind == NAMESPACE:
        _cuts(tracked, view, contents)
    else:
        _files(tracked, view, first, contents, progress)
    return contents


def _commits(log: Log[Any], at: LogAt, contents: LogContents, progress: Progress) -> list[Commit]:
    commits = []
    for start in range(1, at.version + 1, AT_ONCE):
        versions = range(start, min(start + AT_ONCE, at.version + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            key = log.keys.commit(version)
            if data is None:
                raise FormatError(f"{log.replay.at(key)} is missing: run lakelog fsck")
            entry = log.replay.entry(version, data)
            contents.read[key] = data
            if isinstance(entry, Commit):
                commits.append(entry)
        progress(f"{log.location}: version {versions[-1]:,} of {at.version:,}")
    return commits


def _bases(log: Log[Any], version: int, contents: LogContents) -> LogBase | None:
    """Take the bases up to the version, and return the last of them.

    Later bases need a version that is not taken.
    """
    last: LogBase | None = None
    for last, data in bases(log):
        if last.root.version > version:
            raise NotFound(f"version {version} of {log.location} has expired")
        contents.read[log.keys.base(last.number)] = data
    return last


def _snapshot(log: Log[Any], version: int, base: int, contents: LogContents) -> set[str]:
    """Take the newest snapshot whose manifests no base can release, and make it the hint.

    Return the manifests' names.
    """
    for key in reversed(list(log.store.list_after(log.keys.snapshots))):
        of = log.keys.snapshot_version(key)
        if of is None or of > version:
            continue
        data = log.store.get(key)
        root: SnapshotRoot | None = log.replay.root_or_none(key, data)
        if root is None or data is None or root.base != base or root.uses is None:
            continue
        commit = log.replay.entry(root.version, contents.read[log.keys.commit(root.version)])
        if root.version != of or not log.replay.names_this(root, commit):
            continue
        contents.read[key] = contents.read[log.keys.latest] = data
        return set(root.uses)
    return set()


def _cuts(tracked: TrackedLog[NamespaceState], view: LogView[NamespaceState], contents: LogContents) -> None:
    """Take the objects of the saved cuts.

    The objects' names come from tokens. So copies of a warehouse that diverged may have different objects of
    the same name.
    """
    folder = f"{tracked.prefix}/_cut/" if tracked.prefix else "_cut/"
    for name, cut in view.state.cuts.items():
        key = f"{folder}{cut.object}"
        data = tracked.store.get(key)
        if data is not None:
            contents.read[key] = data
            with suppress(FormatError):  # a damaged cut is damaged in the backup too, and fsck reports it
                contents.cuts[name] = frozenset(decode_cut(data, key, tracked.location))
            continue
        newest_cut = tracked.current().state.cuts.get(name)
        if newest_cut is not None and newest_cut.object == cut.object:
            raise FormatError(f"{tracked.log.replay.at(key)} is missing: run lakelog fsck")
        raise BackupCutGone(
            f"the saved cut {name!r} was dropped since the version that is backed up, with the versions in it: back up "
            "a newer version",
            version=view.version,
        )


def _files(
    tracked: TrackedLog[TableState],
    view: LogView[TableState],
    first: int,
    contents: LogContents,
    progress: Progress,
) -> None:
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    parts: list[pa.Table] = all_named(tracked, view)
    for part in (*parts, *ever_in(tracked, first, view.version, progress)):
        for path, size in zip(part["path"].to_pylist(), part["size"].to_pylist(), strict=True):
            # For an object of vectors, an entry only knows the end of its own vector.
            required_size = size if path.endswith(".parquet") else None
            if not is_elsewhere(path):
                contents.named[f"{prefix}{path}"] = required_size
            elif (key := _inside(tracked, path)) != path:
                contents.borrowed.add(path)
                contents.named[key] = required_size
            else:
                contents.elsewhere.add(path)


def _inside(tracked: TrackedLog[Any], location: str) -> str:
    return location.removeprefix(tracked.store.url.rstrip("/") + "/")
