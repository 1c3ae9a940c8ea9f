"""What goes once no line of a table has such rows: older versions, the states of older bases, files and proposals that
nothing needs, snapshots, what repairs have moved away, and Iceberg's metadata of before.

All of it is derived, expired, or unreachable behind a fence. Doing it twice does no harm, so a run that was stopped is
ended by the next.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from lakelog.catalog.core.ddl import holders_of, versions_of
from lakelog.catalog.core.logs import NameTree, NothingToDo, Progress, Scope, TableHead, Target, TrackedLog
from lakelog.catalog.core.state import CutDropped, NamespaceState, TableState, encode
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.formats.iceberg import export_anew, newest_metadata, objects_of
from lakelog.catalog.keeping.maintenance import expire_logs, vacuum_logs, vacuum_wish, what_to_keep
from lakelog.log import Commit, Draft, View, expiry, wait_for_background
from lakelog.log.burial import bury_versions, runs
from lakelog.log.errors import LogSealed, NotFound


def cuts_of(tree: NameTree, location: str) -> Iterator[tuple[TrackedLog[NamespaceState], str]]:
    """Yield the namespaces that have saved cuts with a version of the log at `location`, with the names of these."""
    for holder in holders_of(location):
        tracked = tree.logs.namespace(holder)
        try:
            view = tracked.current()
        except NotFound:
            continue
        for name, cut in {} if view.purged else sorted(view.state.cuts.items()):
            try:
                if location in versions_of(tracked, name, cut):
                    yield tracked, name
            except NotFound:
                continue


def drop_cuts(tree: NameTree, location: str) -> None:
    """Drop all saved cuts that have a version of the log. DoneInPart where a cut is a dropped namespace's."""
    for tracked, name in list(cuts_of(tree, location)):

        def decide(view: View[NamespaceState], passed: Sequence[Commit], name: str = name) -> Draft:
            if name not in view.state.cuts:
                raise NothingToDo("it is dropped")
            return Draft(events=encode([CutDropped(name=name)]))

        try:
            tracked.commit(tracked.current(), decide)
        except NothingToDo:
            continue
        except LogSealed as error:
            raise DoneInPart(
                f"the saved cut {name!r} of the dropped namespace at {tracked.log.location} has older versions of "
                f"{tree.logs.url(location)}: restore that namespace, or purge it, and call this again"
            ) from error


def clear(
    tree: NameTree,
    head: TableHead,
    path: tuple[str, ...] | None,
    progress: Progress,
    unburied: Sequence[int] = (),
) -> list[str]:
    """Expire all versions up to that of the table's last erasure, and delete what nothing needs then; return the keys
    of the data files and other objects that were deleted. `unburied` are earlier ones, in their order, that a check has
    found to be no tombstones."""
    tracked = head.tracked
    gone: list[str] = []
    drop_cuts(tree, tracked.location)
    progress(f"{head.name}: older versions expire")
    expire_versions(tree, head, path)
    base = expiry.last_base(tracked.log)
    for run in runs(version for version in unburied if base is not None and version <= base.root.version):
        bury_versions(tracked.log, run)
    expiry.blank(tracked.log)
    wait_for_background()
    # An export that one of these commits has begun may go on from an older one.
    head = head.at(tracked.current())
    if newest_metadata(head) is not None:
        export_anew(head)
    else:
        gone += _unfinished_exports(head)
    gone += _listed(tracked, (tracked.log.keys.inbox, tracked.log.keys.lost))
    progress(f"{head.name}: files that nothing needs are deleted")
    asked = vacuum_wish(
        older_than=dt.timedelta(0), dry_run=False, keys=True, trust_clock=True, progress=progress
    )
    scope = Scope(tables=[Target(head.name, path, tracked, tracked.current())])
    for place in vacuum_logs(tree, scope, asked):
        gone += place.keys
        if place.error is not None:
            raise DoneInPart(f"of {head.name}, some files are left: {place.error}. Call this again")
    gone += snapshots_anew(tracked)
    return gone


def expire_versions(tree: NameTree, head: TableHead, path: tuple[str, ...] | None) -> None:
    """Make the version of the table's last erasure the first that can be read. DoneInPart where a cut is in the way."""
    tracked = head.tracked
    view = tracked.current()
    scope = Scope(tables=[Target(head.name, path, tracked, view)])
    wish = what_to_keep(version=max(view.state.erased, 1))
    for found in expire_logs(tree, scope, wish, dry_run=False, trust_clock=True):
        if found.kept_for_cuts:
            raise DoneInPart(
                f"a cut was saved meanwhile that has older versions of {head.name}: they did not expire. Call this "
                "again, which drops that cut"
            )


def _unfinished_exports(head: TableHead) -> list[str]:
    """Delete what exports of expired versions have written that never came to their metadata; return the keys."""
    tracked = head.tracked
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    keys = []
    for key in objects_of(tracked.store, prefix):
        version = key.rpartition("/")[2].partition("-")[0]
        if version.isdecimal() and int(version) < head.state.erased:
            keys.append(key)
    if keys:
        tracked.store.delete(keys)
    return keys


def _listed(tracked: TrackedLog[TableState], places: Sequence[str]) -> list[str]:
    keys = [key for place in places for key, _ in tracked.store.list_sizes(place)]
    if keys:
        tracked.store.delete(keys)
    return keys


def snapshots_anew(tracked: TrackedLog[TableState]) -> list[str]:
    """Write a snapshot from the last base, delete all others, and return their keys: a client may have written one
    from what it had in memory."""
    tracked.log.snapshot(tracked.anew())
    log = tracked.log
    hinted = log.replay.hinted_root()
    newest = None if hinted is None else log.keys.snapshot(hinted.version, hinted.commit_hash)
    others = [key for key in log.store.list_after(log.keys.snapshots) if key != newest]
    if others:
        log.store.delete(others)
    return others
