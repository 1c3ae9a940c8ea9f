"""Purging dropped objects: all of their contents are deleted, except for the keys of their commits.

A table whose files a clone needs is not purged, unless the clone is purged with it.

First a commit into the dropped log itself records the purge. By put-if-absent that excludes a restore, which
would have to be the very same version. Then its data files are deleted. Then the log shrinks to an empty base
and tombstones, and only then does the namespace forget it. Until that last step, the namespace's list of
dropped objects is the list of the remaining work. So the next run finishes a run that was stopped anywhere.

A table whose place the user chose is left as it is, log included, because the drop returned the place to its
owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from lakelog.catalog.core.ddl import NeededVersions, folder_of_cuts
from lakelog.catalog.core.files import started_at
from lakelog.catalog.core.logs import (
    LogTarget,
    NameTree,
    Progress,
    TrackedLog,
    UnreadableLog,
    linked_elsewhere,
    no_progress,
)
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    DroppedDefinition,
    EntryPurged,
    NameLink,
    NamespaceDropped,
    NamespaceEntry,
    NamespaceEvent,
    NamespacePurged,
    NamespaceState,
    TableDropped,
    TableEvent,
    TablePurged,
    TableState,
    encode,
)
from lakelog.catalog.errors import LinkedElsewhere, OwnersUnknown
from lakelog.catalog.formats.iceberg import objects_of
from lakelog.catalog.keeping.maintenance.adopted import UnusedAdoptedFiles, delete_files, of_dropped
from lakelog.catalog.keeping.maintenance.expire import refresh_snapshot
from lakelog.catalog.keeping.maintenance.promises import end_at_origins, kept_for
from lakelog.catalog.keeping.maintenance.reachable import DATA
from lakelog.catalog.names import WALK_DEPTH_LIMIT, quoted
from lakelog.log import Commit, Draft, LogView, expiry
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.leftovers import unreferenced
from lakelog.log.placing import Decide
from lakelog.log.stores import ObjectStore

EVENTS_MAX = 1000
DELETE_MAX = 1000
DELETES_AT_ONCE = 4
"""S3 accepts 3,500 deletions a second for a prefix, and a request of 1,000 takes about a second."""


@dataclass(slots=True)
class PurgedContent:
    """The objects to delete at a place: data files and other objects, by key, with their sizes.

    `foreign` files stay.
    """

    files: dict[str, int] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class LogPurge:
    """A log that is purged, and its objects.

    `children` are below it, and are purged first. `refused` objects stay. `adopted` files are elsewhere.
    """

    tracked: TrackedLog[Any]
    view: LogView[Any]
    kind: str
    name: str
    content: PurgedContent
    children: tuple[LogPurge, ...] = ()
    refused: tuple[UnreadableLog, ...] = ()
    adopted: UnusedAdoptedFiles | None = None

    def all(self) -> Iterator[LogPurge]:
        yield self
        for child in self.children:
            yield from child.all()


def folder(tracked: TrackedLog[Any]) -> str:
    """Return the prefix of the keys of a log's objects."""
    return f"{tracked.prefix}/" if tracked.prefix else ""


def data_of(store: ObjectStore, prefix: str) -> PurgedContent:
    """Return all data files at a place. Makes a LIST request for every 1000."""
    content = PurgedContent()
    for key, size_bytes in store.list_sizes(f"{prefix}{DATA}"):
        if started_at(key.removeprefix(prefix)) is None:
            content.foreign += 1
        else:
            content.files[key] = size_bytes
    content.objects |= store.list_leftovers(f"{prefix}{DATA}")
    return content


def all_of(store: ObjectStore, prefix: str) -> PurgedContent:
    """Return the data files at a place, and the objects of exports.

    Makes an additional LIST request after `data_of`.
    """
    content = data_of(store, prefix)
    content.objects |= objects_of(store, prefix)
    return content


def plan_purge(
    tree: NameTree,
    kind: str,
    name: str,
    entry: NamespaceEntry,
    *,
    link: NameLink | None,
    only_look: bool = False,
    above: tuple[str, ...] = (),
) -> LogPurge | None:
    """Return the plan for a purge of `entry`, with all entries below it. None if it has nothing left.

    An entry has nothing left if another log took its place, or if a user chose the place. `only_look` aborts
    no transaction. `above` are the places of the entries above in the plan, because a forged namespace can
    lead to itself.

    `link` is the name that leads to the log, or None without a name. Raises LinkedElsewhere if the log has
    another link, because an entry can be forged. An entry below with another link is `refused`, and the rest
    is purged. Raises OwnersUnknown if it cannot be seen whether files that a table has adopted have another
    owner too.
    """
    if entry.location in above:
        return None
    if len(above) > WALK_DEPTH_LIMIT:
        raise FormatError(
            f"{tree.logs.url(above[0])} has namespaces more than {WALK_DEPTH_LIMIT} levels deep: run `lakelog fsck`"
        )
    logs, location = tree.logs, entry.location
    tracked: TrackedLog[Any] = logs.namespace(location) if kind == NAMESPACE else logs.table(location)
    try:
        # Before the abort of a transaction that another user has under way.
        for load_view in (tracked.at_its_place, tracked.settled)[: 1 if only_look else 2]:
            view = load_view()
            state = view.state
            if view.log_id != entry.id or (isinstance(state, TableState) and state.current.own_location):
                return None
            if link is not None and state.link != link:
                raise linked_elsewhere(name, logs.url(location), state.link)
    except NotFound:
        return None
    children: list[LogPurge] = []
    refusals: list[UnreadableLog] = []
    adopted_files: UnusedAdoptedFiles | None = None
    if isinstance(view.state, NamespaceState):
        content = PurgedContent()
        for child_kind, child_name, child in _below(view.state):
            title = f"{name}.{quoted((child_name,))}"
            own = NameLink(namespace=location, name=child_name)
            try:
                child_plan = plan_purge(
                    tree, child_kind, title, child, link=own, only_look=only_look, above=(*above, location)
                )
            except LinkedElsewhere as error:
                refusals.append(UnreadableLog(child_kind, title, logs.url(child.location), str(error)))
                continue
            children += [] if child_plan is None else [child_plan]
    else:
        content = all_of(tracked.store, folder(tracked))
        try:
            adopted_files = of_dropped(tree, tracked, view, no_progress, settle=not only_look)
        except OwnersUnknown:
            raise  # a later purge may know; after this purge, nothing would delete the files
        except InvalidInput as error:
            message = f"{error}. No vacuum deletes the files that {name} has adopted once it is purged"
            refusals.append(UnreadableLog("adopted-files", name, logs.url(location), message))
    content.objects |= _metadata(tracked, view)
    return LogPurge(tracked, view, kind, name, content, tuple(children), tuple(refusals), adopted_files)


def _below(state: NamespaceState) -> Iterator[tuple[str, str, NamespaceEntry]]:
    """Yield all entries of a namespace at its drop, including entries that had been dropped in it before."""
    for space, kind in ((RELATION, "table"), (NAMESPACE, NAMESPACE)):
        for name, entry in sorted(state.logs(space)):
            yield kind, name, entry
    for drop in sorted(state.dropped_logs(), key=lambda drop: drop.entry.id):
        kind = NAMESPACE if drop.space == NAMESPACE else "table"
        yield kind, drop.name, drop.entry


def _metadata(tracked: TrackedLog[Any], view: LogView[Any]) -> dict[str, int]:
    """Return the objects to delete in addition to the commits, whose keys stay.

    These are sidecars, manifests, snapshots, objects that repairs moved away, and saved cuts.
    """
    keys = tracked.log.keys
    sizes: dict[str, int] = {}
    for part in (keys.sidecar(""), keys.manifests, keys.snapshots, keys.lost):
        sizes |= tracked.store.list_sizes(part)
    if isinstance(view.state, NamespaceState):
        sizes |= tracked.store.list_sizes(folder_of_cuts(tracked))
    return sizes | dict(tracked.store.list_leftovers(f"{keys.log}/"))


def clones_of(tree: NameTree, purge: LogPurge) -> list[str]:
    """Return the names of the clones that need files of the purge, and are not purged themselves."""
    locations = {plan.tracked.location for plan in purge.all()}
    return sorted(
        {
            name
            for plan in purge.all()
            if isinstance(plan.view.state, TableState)
            for name in kept_for(tree.logs, plan.tracked, plan.view, locations)
        }
    )


def is_needed(purge: LogPurge, cuts: NeededVersions) -> bool:
    """Return whether a saved cut that is not itself purged has a version of a log in the purge."""
    locations = {plan.tracked.location for plan in purge.all()}
    return any(cuts.get(location, without=locations) is not None for location in locations)


def do(tree: NameTree, purge: LogPurge, *, sealed: bool = True, is_replaced: bool = False) -> bool:
    """Purge for good, children included.

    False if the log changed since the plan, or a saved cut or a clone needs it.

    With `sealed`, only a dropped log may be purged. Without it, a log that is not sealed yet is sealed first.
    Nothing needs a clone that `is_replaced`, in a warehouse during a restore, because its files are another
    warehouse's.
    """
    # Before the commit, which excludes promises since the plan: a purged log can promise nothing.
    if not is_replaced and clones_of(tree, purge):
        return False
    if not _done(tree, purge, sealed=sealed, is_replaced=is_replaced):
        return False
    for plan in purge.all():
        if isinstance(plan.view.state, TableState):
            end_at_origins(tree.logs, plan.view.log_id, plan.tracked.location, plan.view.state.origins)
    return True


def _done(tree: NameTree, purge: LogPurge, *, sealed: bool, is_replaced: bool = False) -> bool:
    view = _purged(purge, seal=not sealed)
    # After the purge, because a writer of a cut reads purges after it has saved the cut.
    if view is None or (not is_replaced and is_needed(purge, NeededVersions(tree, settled=True))):
        return False
    for child in purge.children:
        # An object below a namespace cannot be restored without it, whether or not the drop sealed it.
        if not _done(tree, child, sealed=False):
            return False
    _empty(tree, purge, view)
    return True


def _purged(purge: LogPurge, *, seal: bool) -> LogView[Any] | None:
    """Commit that the log is purged, unless it is already. None if there was any commit since the plan.

    The log may have been restored, and entries below it moved elsewhere, before it was dropped again.
    """
    tracked_log, is_namespace = purge.tracked, purge.kind == NAMESPACE
    view = tracked_log.offer(tracked_log.log.refresh_settled(tracked_log.at_its_place()))
    if view.purged:
        return view
    if view.version != purge.view.version:
        return None

    def only(draft: Draft) -> Decide[Any]:
        def decide(_view: LogView[Any], passed_commits: Sequence[Commit]) -> Draft:
            if passed_commits:
                raise _ChangedSincePlanned
            return draft

        return decide

    drop_event: NamespaceEvent | TableEvent = (
        NamespaceDropped(cascade=True) if is_namespace else TableDropped()
    )
    purge_event: NamespaceEvent | TableEvent = NamespacePurged() if is_namespace else TablePurged()
    try:
        if not view.sealed:
            if not seal:
                return None
            view = tracked_log.commit(view, only(Draft(events=encode([drop_event]), seals=True))).view
        return tracked_log.commit(view, only(Draft(events=encode([purge_event]), purges=True))).view
    except (_ChangedSincePlanned, ConflictError, LogSealed):
        view = tracked_log.current()
        return view if view.purged else None


def _empty(tree: NameTree, purge: LogPurge, view: LogView[Any]) -> None:
    """Delete the objects of a purged log: data files first, and the hint last, which confirms the end."""
    tracked_log = purge.tracked
    if purge.adopted is not None:
        _delete_adopted(tree, tracked_log, view)
    if purge.kind != NAMESPACE:
        delete(tracked_log, all_of(tracked_log.store, folder(tracked_log)))
    expiry.expire(tracked_log.log, view.version, head=view)
    leftovers = unreferenced(tracked_log.log, view, expiry.last_base(tracked_log.log))
    leftovers |= tracked_log.store.list_leftovers(f"{tracked_log.log.keys.log}/")
    leftovers |= tracked_log.store.list_sizes(tracked_log.log.keys.lost)
    if purge.kind == NAMESPACE:
        leftovers |= tracked_log.store.list_sizes(folder_of_cuts(tracked_log))
    delete(tracked_log, PurgedContent(objects=leftovers))
    refresh_snapshot(tracked_log)


def _delete_adopted(tree: NameTree, tracked: TrackedLog[TableState], view: LogView[TableState]) -> None:
    """Delete the files that the table had adopted.

    Raises InvalidInput if another owner has come since the plan. The next run, with a new plan, reports it
    and leaves them.
    """
    adopted_files = of_dropped(tree, tracked, view, no_progress, settle=True)
    if adopted_files is not None:
        delete_files(tree, adopted_files)


def delete(tracked: TrackedLog[Any], content: PurgedContent, progress: Progress = no_progress) -> None:
    """Delete objects at the place of a log, in requests of 1,000 keys, a few of them in parallel."""
    keys = sorted(content.files.keys() | content.objects.keys())
    delete_keys(tracked, iter(keys), len(keys), progress)


def delete_keys(tracked: TrackedLog[Any], keys: Iterator[str], count: int, progress: Progress) -> None:
    """Delete this number of keys as `delete` does, with few of them in memory at once."""
    deleted_count = 0
    while group := list(islice(keys, DELETE_MAX * DELETES_AT_ONCE)):
        requests = [group[first : first + DELETE_MAX] for first in range(0, len(group), DELETE_MAX)]
        tracked.log.options.in_parallel([partial(tracked.store.delete, request) for request in requests])
        deleted_count += len(group)
        progress(f"{tracked.log.location}: {deleted_count:,} of {count:,} objects deleted")


def take_off_the_list(namespace: LogTarget[NamespaceState], ids: Sequence[str]) -> None:
    """Remove purged objects from the namespace's list, as the last step.

    They may be gone, or the namespace dropped.
    """
    for start in range(0, len(ids), EVENTS_MAX):

        def decide(
            view: LogView[NamespaceState],
            passed: Sequence[Any],
            chunk: Sequence[str] = ids[start : start + EVENTS_MAX],
        ) -> Draft:
            state = view.state
            remaining_ids = [id for id in chunk if id in state.dropped]
            if not remaining_ids:
                raise _AlreadyRemoved
            return Draft(events=encode([EntryPurged(id=id) for id in remaining_ids]))

        namespace_log = namespace.tracked
        try:
            namespace_log.commit(namespace_log.at_least(namespace.view.version), decide)
        except _AlreadyRemoved:
            continue
        except LogSealed:
            return  # its own purge does the rest


def due(state: NamespaceState, until_us: int) -> Mapping[str, tuple[str, str, NamespaceEntry]]:
    """Return the logs that were dropped at `until_us` or before, by id: kind, name and entry."""
    entries = {}
    for drop in state.dropped_logs():
        if drop.time_us <= until_us:
            kind = NAMESPACE if drop.space == NAMESPACE else "table"
            entries[drop.entry.id] = (kind, drop.name, drop.entry)
    return entries


def due_definitions(state: NamespaceState, until_us: int) -> list[DroppedDefinition]:
    """Return the views and functions that were dropped at `until_us` or before."""
    return [drop for drop in state.dropped_definitions() if drop.time_us <= until_us]


class _AlreadyRemoved(LakelogError):
    """Ends a commit whose effect exists already."""


class _ChangedSincePlanned(LakelogError):
    """Ends a commit if another writer's commit came first, so that the planned version is no longer the last."""
