"""What a log is made of up to one version: the objects that a copy of it needs, and no others.

Commits and tombstones up to the version, the bases on the way, one snapshot that no base has outdated, the manifests
and sidecars that these name, the decisions of transactions, the objects of saved cuts, and the data files of all
versions that can be read. Expiry may go on meanwhile, up to the version: where a base came to be while the log was
read, it is read again, so that what is returned never depends on an object that the base gives up.
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
from lakelog.catalog.keeping.maintenance import all_named, ever_in, first_readable
from lakelog.log import Commit, Log, View
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.expiry import bases, last_base
from lakelog.log.format import Base, Root

TRIES_MAX = 5
AT_ONCE = 256
"""Commits that are read in one round."""


class BackupCutGone(CommitConflict):
    """A version that is backed up has a saved cut whose object is gone, as others have dropped it since."""


@dataclass(frozen=True, slots=True)
class LogAt:
    """A log of the cut at its version; `path` is the name that leads to it, of a dropped one its last."""

    kind: str
    location: str
    version: int
    path: tuple[str, ...]
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Outside:
    """A name that leads out of the warehouse, or did before it was dropped."""

    path: tuple[str, ...]
    location: str
    dropped: bool


@dataclass(slots=True)
class Contents:
    """The objects of one log. `read` have their bytes here already; `named` are read when they are copied, with the
    size that they have to have (None: not known). `elsewhere` are the places of files outside of the warehouse,
    `borrowed` those of other tables in it. Of a namespace, `cuts` are the locations of the logs in each saved cut."""

    read: dict[str, bytes] = field(default_factory=dict)
    named: dict[str, int | None] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    borrowed: set[str] = field(default_factory=set)
    cuts: dict[str, frozenset[str]] = field(default_factory=dict)


def logs_of(
    logs: LogCache, versions: dict[str, int], start: str, path: tuple[str, ...]
) -> tuple[list[LogAt], list[Outside]]:
    """Return the logs of a cut of the namespace at `start`, with those that were dropped and may be restored, and the
    names that lead out of the warehouse."""
    found: dict[str, LogAt] = {}
    left: list[Outside] = []
    until_us = _newest_us(logs, versions, start)

    def walk(kind: str, location: str, name: tuple[str, ...], dropped: bool) -> None:
        if is_elsewhere(location):
            left.append(Outside(name, location, dropped))
            return
        if location in found:
            return
        tracked: TrackedLog[Any] = logs.namespace(location) if kind == NAMESPACE else logs.table(location)
        version = versions.get(location) if not dropped else None
        if version is None:
            version = _version_then(tracked, until_us)
            if version is None:
                return
        found[location] = LogAt(kind, location, version, name, dropped)
        if kind != NAMESPACE:
            return
        state: NamespaceState = tracked.log.view_at(version).state
        for entries in state.entries.values():
            for each, entry in entries.items():
                walk(entry.kind, entry.location, (*name, each), dropped)
        for gone in state.dropped.values():
            walk(gone.kind, gone.location, (*name, gone.name), True)

    walk(NAMESPACE, start, path, False)
    return list(found.values()), left


def _newest_us(logs: LogCache, versions: dict[str, int], start: str) -> int:
    """Return the time of the cut: no version in it is newer."""
    times = [logs.namespace(start).log.view_at(versions[start]).time_us]
    for location, version in versions.items():
        if location == start or is_elsewhere(location):
            continue
        tracked = logs.unread(location)
        entry = tracked.log.entry_at(version)
        if entry is not None:
            settled = tracked.log.replay.decided(entry) if _is_intent(entry) else None  # type: ignore[arg-type]
            times.append(max(entry.time_us, settled.time_us if settled is not None else 0))
    return max(times)


def _is_intent(entry: Any) -> bool:
    return isinstance(entry, Commit) and entry.intent is not None


def _version_then(tracked: TrackedLog[Any], until_us: int) -> int | None:
    """Return the version that a dropped log had at that time; of one that was purged since, the purge. None where there
    is no log: it never had one, or it is another one's place by now."""
    try:
        view = tracked.current()
        if view.time_us <= until_us or view.purged:
            return view.version
        return tracked.log.version_at_time(until_us)
    except NotFound:
        return None


def contents_of(logs: LogCache, at: LogAt, progress: Progress = no_progress) -> Contents:
    """Return the objects of a log up to its version. CommitConflict where its versions expire again and again."""
    tracked: TrackedLog[Any] = (
        logs.namespace(at.location) if at.kind == NAMESPACE else logs.table(at.location)
    )
    for _ in range(TRIES_MAX):
        before = last_base(tracked.log)
        try:
            found = _contents(tracked, at, progress)
        except NotFound:
            found = None
        if found is not None and last_base(tracked.log) == before:
            return found
    raise CommitConflict(
        f"versions of {tracked.log.location} expire while it is copied: retry once that has ended", version=0
    )


def _contents(tracked: TrackedLog[Any], at: LogAt, progress: Progress) -> Contents:
    found, log = Contents(), tracked.log
    commits = _commits(log, at, found, progress)
    base = _bases(log, at.version, found)
    first = first_readable(base)
    uses = set(base.root.uses or ()) if base is not None else set()
    uses |= _snapshot(log, at.version, 0 if base is None else base.number, found)
    found.named |= {log.keys.manifest(name): None for name in uses}
    for commit in commits:
        if commit.intent is not None:
            place = log.replay.decision_place(commit)
            data = None if place is None else place.store.get(place.key)
            if place is not None and data is not None:
                # By the warehouse, whose folder all logs here are in.
                found.read[_inside(tracked, place.location)] = data
        if commit.version > first or base is None:
            found.named |= {log.keys.sidecar(each.name): each.size_bytes for each in commit.sidecars}
    view = log.view_at(at.version)
    if view.purged:
        return found
    if at.kind == NAMESPACE:
        _cuts(tracked, view, found)
    else:
        _files(tracked, view, first, found, progress)
    return found


def _commits(log: Log[Any], at: LogAt, found: Contents, progress: Progress) -> list[Commit]:
    commits = []
    for start in range(1, at.version + 1, AT_ONCE):
        versions = range(start, min(start + AT_ONCE, at.version + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            key = log.keys.commit(version)
            if data is None:
                raise FormatError(f"{log.replay.at(key)} is missing: run lakelog fsck")
            entry = log.replay.entry(version, data)
            found.read[key] = data
            if isinstance(entry, Commit):
                commits.append(entry)
        progress(f"{log.location}: version {versions[-1]:,} of {at.version:,}")
    return commits


def _bases(log: Log[Any], version: int, found: Contents) -> Base | None:
    """Take the bases up to the version, and return the last of these. Later ones need a version that is not taken."""
    last: Base | None = None
    for last, data in bases(log):
        if last.root.version > version:
            raise NotFound(f"version {version} of {log.location} has expired")
        found.read[log.keys.base(last.number)] = data
    return last


def _snapshot(log: Log[Any], version: int, base: int, found: Contents) -> set[str]:
    """Take the newest snapshot whose manifests no base can give up, and make it the hint; return what it uses."""
    for key in reversed(list(log.store.list_after(log.keys.snapshots))):
        of = log.keys.snapshot_version(key)
        if of is None or of > version:
            continue
        data = log.store.get(key)
        root: Root | None = log.replay.root_or_none(key, data)
        if root is None or data is None or root.base != base or root.uses is None:
            continue
        commit = log.replay.entry(root.version, found.read[log.keys.commit(root.version)])
        if root.version != of or not log.replay.names_this(root, commit):
            continue
        found.read[key] = found.read[log.keys.latest] = data
        return set(root.uses)
    return set()


def _cuts(tracked: TrackedLog[NamespaceState], view: View[NamespaceState], found: Contents) -> None:
    """Take the objects of the saved cuts. A token gives these their names, so copies of one warehouse that went
    different ways may have others of one name."""
    folder = f"{tracked.prefix}/_cut/" if tracked.prefix else "_cut/"
    for name, cut in view.state.cuts.items():
        key = f"{folder}{cut.object}"
        data = tracked.store.get(key)
        if data is not None:
            found.read[key] = data
            with suppress(FormatError):  # what is damaged here is damaged in the backup, and fsck says so
                found.cuts[name] = frozenset(decode_cut(data, key, tracked.location))
            continue
        now = tracked.current().state.cuts.get(name)
        if now is not None and now.object == cut.object:
            raise FormatError(f"{tracked.log.replay.at(key)} is missing: run lakelog fsck")
        raise BackupCutGone(
            f"the saved cut {name!r} was dropped since the version that is backed up, with the versions in it: back up "
            "a newer version",
            version=view.version,
        )


def _files(
    tracked: TrackedLog[TableState], view: View[TableState], first: int, found: Contents, progress: Progress
) -> None:
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    parts: list[pa.Table] = all_named(tracked, view)
    for part in (*parts, *ever_in(tracked, first, view.version, progress)):
        for path, size in zip(part["path"].to_pylist(), part["size"].to_pylist(), strict=True):
            # Of an object of vectors, an entry knows no more than where its own vector ends.
            known = size if path.endswith(".parquet") else None
            if not is_elsewhere(path):
                found.named[f"{prefix}{path}"] = known
            elif (key := _inside(tracked, path)) != path:
                found.borrowed.add(path)
                found.named[key] = known
            else:
                found.elsewhere.add(path)


def _inside(tracked: TrackedLog[Any], location: str) -> str:
    return location.removeprefix(tracked.store.url.rstrip("/") + "/")
