"""Clearing a table's history, once no line of the table has rows of the erasure.

It removes older versions, states of older bases, files and proposals that nothing needs, snapshots, objects
that repairs moved away, and Iceberg's older metadata. All of these are derived, expired, or unreachable
behind a fence. A repetition does no harm, so the next run completes a stopped run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from lakelog.catalog.core.ddl import holders_of, versions_of
from lakelog.catalog.core.logs import (
    LogScope,
    LogTarget,
    NameTree,
    NothingToDo,
    Progress,
    TableHead,
    TrackedLog,
)
from lakelog.catalog.core.state import CutDropped, NamespaceState, TableState, encode
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.formats.iceberg import export_anew, newest_metadata, objects_of
from lakelog.catalog.keeping.maintenance.expire import expire_logs, what_to_keep
from lakelog.catalog.keeping.maintenance.vacuum import vacuum_logs, vacuum_wish
from lakelog.log import Commit, Draft, LogView, expiry, wait_for_background
from lakelog.log.burial import bury_versions, runs
from lakelog.log.errors import LogSealed, NotFound


def cuts_of(tree: NameTree, location: str) -> Iterator[tuple[TrackedLog[NamespaceState], str]]:
    """Yield the namespaces whose saved cuts have a version of the log at `location`, with the cuts' names."""
    for holder in holders_of(location):
        namespace_log = tree.logs.namespace(holder)
        try:
            view = namespace_log.current()
        except NotFound:
            continue
        for name, cut in {} if view.purged else sorted(view.state.cuts.items()):
            try:
                if location in versions_of(namespace_log, name, cut):
                    yield namespace_log, name
            except NotFound:
                continue


def drop_cuts(tree: NameTree, location: str) -> None:
    """Drop all saved cuts that have a version of the log.

    Raises DoneInPart if a cut is a dropped namespace's.
    """
    for space_log, name in list(cuts_of(tree, location)):

        def decide(
            view: LogView[NamespaceState], passed_commits: Sequence[Commit], name: str = name
        ) -> Draft:
            if name not in view.state.cuts:
                raise NothingToDo("it is dropped")
            return Draft(events=encode([CutDropped(name=name)]))

        try:
            space_log.commit(space_log.current(), decide)
        except NothingToDo:
            continue
        except LogSealed as error:
            raise DoneInPart(
                f"the saved cut {name!r} of the dropped namespace at {space_log.log.location} has older versions of "
                f"{tree.logs.url(location)}: restore that namespace, or purge it, and call this again"
            ) from error


def clear(
    tree: NameTree,
    head: TableHead,
    path: tuple[str, ...] | None,
    progress: Progress,
    unburied: Sequence[int] = (),
) -> list[str]:
    """Expire all versions up to the table's last erasure, and delete all objects that nothing needs then.

    Returns the keys of the deleted data files and other objects. `unburied` are earlier versions, in order,
    that a check found to be no tombstones.
    """
    table_log = head.tracked
    deleted_keys: list[str] = []
    drop_cuts(tree, table_log.location)
    progress(f"{head.name}: older versions expire")
    expire_versions(tree, head, path)
    base = expiry.last_base(table_log.log)
    for run in runs(version for version in unburied if base is not None and version <= base.root.version):
        bury_versions(table_log.log, run)
    expiry.blank(table_log.log)
    wait_for_background()
    # An export that one of these commits started may continue an older export.
    head = head.at(table_log.current())
    if newest_metadata(head) is not None:
        export_anew(head)
    else:
        deleted_keys += _unfinished_exports(head)
    deleted_keys += _listed(table_log, (table_log.log.keys.inbox, table_log.log.keys.lost))
    progress(f"{head.name}: files that nothing needs are deleted")
    wish = vacuum_wish(
        older_than=dt.timedelta(0), dry_run=False, keys=True, trust_clock=True, progress=progress
    )
    scope = LogScope(tables=[LogTarget(head.name, path, table_log, table_log.current())])
    for place in vacuum_logs(tree, scope, wish):
        deleted_keys += place.keys
        if place.error is not None:
            raise DoneInPart(f"of {head.name}, some files are left: {place.error}. Call this again")
    deleted_keys += snapshots_anew(table_log)
    return deleted_keys


def expire_versions(tree: NameTree, head: TableHead, path: tuple[str, ...] | None) -> None:
    """Make the version of the table's last erasure the first readable version.

    Raises DoneInPart if a cut prevents it.
    """
    table_log = head.tracked
    view = table_log.current()
    scope = LogScope(tables=[LogTarget(head.name, path, table_log, view)])
    wish = what_to_keep(version=max(view.state.erased, 1))
    for result in expire_logs(tree, scope, wish, dry_run=False, trust_clock=True):
        if result.kept_for_cuts:
            raise DoneInPart(
                f"a cut was saved meanwhile that has older versions of {head.name}: they did not expire. Call this "
                "again, which drops that cut"
            )


def _unfinished_exports(head: TableHead) -> list[str]:
    """Delete objects of unfinished exports of expired versions. Return their keys."""
    table_log = head.tracked
    prefix = f"{table_log.prefix}/" if table_log.prefix else ""
    keys = []
    for key in objects_of(table_log.store, prefix):
        version = key.rpartition("/")[2].partition("-")[0]
        if version.isdecimal() and int(version) < head.state.erased:
            keys.append(key)
    if keys:
        table_log.store.delete(keys)
    return keys


def _listed(tracked: TrackedLog[TableState], places: Sequence[str]) -> list[str]:
    keys = [key for place in places for key, _ in tracked.store.list_sizes(place)]
    if keys:
        tracked.store.delete(keys)
    return keys


def snapshots_anew(tracked: TrackedLog[Any]) -> list[str]:
    """Write a snapshot from the last base, delete all other snapshots, and return their keys.

    A client may have written a snapshot from its memory.
    """
    tracked.log.snapshot(tracked.anew())
    log = tracked.log
    newest_root = log.replay.hinted_root()
    newest = None if newest_root is None else log.keys.snapshot(newest_root.version, newest_root.commit_hash)
    other_keys = [key for key in log.store.list_after(log.keys.snapshots) if key != newest]
    if other_keys:
        log.store.delete(other_keys)
    return other_keys
