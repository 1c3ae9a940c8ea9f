"""Purging dropped objects: all that they held is deleted, except for the keys of their commits.

A table whose files a clone needs is not purged, unless the clone goes with it.

First a commit into the dropped log itself says that it is purged. By put-if-absent that excludes a restore, which would
have to be the very same version. Then its data files go, then the log shrinks to a base of nothing and tombstones, and
only then does the namespace forget it: until that last step the namespace's list of dropped objects is the list of
what is still to be done, so that the next run finishes one that was stopped anywhere.

A table whose place the user chose is left as it is, log included: dropping it returned the place to its owner.
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
    NameTree,
    Progress,
    Target,
    TrackedLog,
    Unreadable,
    linked_elsewhere,
    no_progress,
)
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    DroppedDefinition,
    Entry,
    EntryPurged,
    Link,
    NamespaceDropped,
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
from lakelog.catalog.keeping.maintenance.adopted import Going, delete_files, of_dropped
from lakelog.catalog.keeping.maintenance.expire import refresh_snapshot
from lakelog.catalog.keeping.maintenance.promises import end_at_origins, kept_for
from lakelog.catalog.keeping.maintenance.reachable import DATA
from lakelog.catalog.names import WALK_DEPTH_LIMIT, quoted
from lakelog.log import Commit, Draft, View, expiry
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.leftovers import unreferenced
from lakelog.log.placing import Decide
from lakelog.log.stores import ObjectStore

EVENTS_MAX = 1000
DELETE_MAX = 1000
DELETES_AT_ONCE = 4
"""S3 takes 3,500 deletions a second for a prefix, and a request of 1,000 takes about one."""


@dataclass(slots=True)
class Content:
    """What is deleted of one place: data files and other objects, by key, with their sizes; `foreign` stay."""

    files: dict[str, int] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class Purge:
    """One log that is purged, and its objects. `children` are below it, and are purged first; `refused` stay. `adopted`
    files are elsewhere."""

    tracked: TrackedLog[Any]
    view: View[Any]
    kind: str
    name: str
    content: Content
    children: tuple[Purge, ...] = ()
    refused: tuple[Unreadable, ...] = ()
    adopted: Going | None = None

    def all(self) -> Iterator[Purge]:
        yield self
        for child in self.children:
            yield from child.all()


def folder(tracked: TrackedLog[Any]) -> str:
    """Return the prefixes of the keys of a log's objects."""
    return f"{tracked.prefix}/" if tracked.prefix else ""


def data_of(store: ObjectStore, prefix: str) -> Content:
    """Return the data files at a place, all of them. One LIST for every 1000."""
    content = Content()
    for key, size_bytes in store.list_sizes(f"{prefix}{DATA}"):
        if started_at(key.removeprefix(prefix)) is None:
            content.foreign += 1
        else:
            content.files[key] = size_bytes
    content.objects |= store.list_leftovers(f"{prefix}{DATA}")
    return content


def all_of(store: ObjectStore, prefix: str) -> Content:
    """Return the data files at a place, and the objects of exports. One LIST more than `data_of`."""
    content = data_of(store, prefix)
    content.objects |= objects_of(store, prefix)
    return content


def plan_purge(
    tree: NameTree,
    kind: str,
    name: str,
    entry: Entry,
    *,
    link: Link | None,
    only_look: bool = False,
    above: tuple[str, ...] = (),
) -> Purge | None:
    """Return what a purge of `entry` deletes, with all that is below it; None where it has nothing left.

    An entry whose place another log has taken, or that a user chose, has nothing left. `only_look` aborts no
    transaction. `above` are the places of what it is planned with: a namespace can be forged that leads to itself.

    `link` is the name that leads to the log, None where none does. LinkedElsewhere where the log has another one: an
    entry can be forged. One below is `refused`, and the rest is purged. OwnersUnknown where it cannot be seen whether
    files that a table has adopted are another's too.
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
        # Before a transaction is aborted that another user has under way.
        for read in (tracked.at_its_place, tracked.settled)[: 1 if only_look else 2]:
            view = read()
            state = view.state
            if view.log_id != entry.id or (isinstance(state, TableState) and state.current.own_location):
                return None
            if link is not None and state.link != link:
                raise linked_elsewhere(name, logs.url(location), state.link)
    except NotFound:
        return None
    children: list[Purge] = []
    refused: list[Unreadable] = []
    adopted: Going | None = None
    if isinstance(view.state, NamespaceState):
        content = Content()
        for child_kind, child_name, child in _below(view.state):
            title = f"{name}.{quoted((child_name,))}"
            own = Link(namespace=location, name=child_name)
            try:
                found = plan_purge(
                    tree, child_kind, title, child, link=own, only_look=only_look, above=(*above, location)
                )
            except LinkedElsewhere as error:
                refused.append(Unreadable(child_kind, title, logs.url(child.location), str(error)))
                continue
            children += [] if found is None else [found]
    else:
        content = all_of(tracked.store, folder(tracked))
        try:
            adopted = of_dropped(tree, tracked, view, no_progress, settle=not only_look)
        except OwnersUnknown:
            raise  # a later purge may know: once the table is purged, nothing would delete the files
        except InvalidInput as error:
            said = f"{error}. No vacuum deletes the files that {name} has adopted once it is purged"
            refused.append(Unreadable("adopted-files", name, logs.url(location), said))
    content.objects |= _metadata(tracked, view)
    return Purge(tracked, view, kind, name, content, tuple(children), tuple(refused), adopted)


def _below(state: NamespaceState) -> Iterator[tuple[str, str, Entry]]:
    """Yield all that a namespace held when it was dropped, including what had been dropped in it before."""
    for space, kind in ((RELATION, "table"), (NAMESPACE, NAMESPACE)):
        for name, entry in sorted(state.entries.get(space, {}).items()):
            yield kind, name, entry
    for id, dropped in sorted(state.dropped.items()):
        kind = NAMESPACE if dropped.space == NAMESPACE else "table"
        yield kind, dropped.name, Entry(kind=dropped.kind, id=id, location=dropped.location)


def _metadata(tracked: TrackedLog[Any], view: View[Any]) -> dict[str, int]:
    """Return the objects that are deleted beside the commits, which keep their keys: sidecars, manifests, snapshots,
    what repairs have moved away, and saved cuts."""
    keys = tracked.log.keys
    found: dict[str, int] = {}
    for part in (keys.sidecar(""), keys.manifests, keys.snapshots, keys.lost):
        found |= tracked.store.list_sizes(part)
    if isinstance(view.state, NamespaceState):
        found |= tracked.store.list_sizes(folder_of_cuts(tracked))
    return found | dict(tracked.store.list_leftovers(f"{keys.log}/"))


def clones_of(tree: NameTree, purge: Purge) -> list[str]:
    """Return the names of the clones that need files of what is to be purged, and are not to go themselves."""
    going = {each.tracked.location for each in purge.all()}
    return sorted(
        {
            name
            for each in purge.all()
            if isinstance(each.view.state, TableState)
            for name in kept_for(tree.logs, each.tracked, each.view, going)
        }
    )


def is_needed(purge: Purge, cuts: NeededVersions) -> bool:
    """Return whether a saved cut has a version of a log that is to be purged, and is not to go itself."""
    going = {each.tracked.location for each in purge.all()}
    return any(cuts.get(location, without=going) is not None for location in going)


def do(tree: NameTree, purge: Purge, *, sealed: bool = True, is_replaced: bool = False) -> bool:
    """Purge for good, children included. False where it changed since it was planned, or is needed by a saved cut or a
    clone.

    With `sealed`, only a dropped log may be purged; without it, a log that is not sealed yet is sealed first. A clone
    that `is_replaced`, in a warehouse that is being restored, is needed by none: its files are another warehouse's.
    """
    # Before the commit, which excludes promises since the plan: a log that is purged can promise nothing.
    if not is_replaced and clones_of(tree, purge):
        return False
    if not _done(tree, purge, sealed=sealed, is_replaced=is_replaced):
        return False
    for each in purge.all():
        if isinstance(each.view.state, TableState):
            end_at_origins(tree.logs, each.view.log_id, each.tracked.location, each.view.state.origins)
    return True


def _done(tree: NameTree, purge: Purge, *, sealed: bool, is_replaced: bool = False) -> bool:
    view = _purged(purge, seal=not sealed)
    # After the purge, as a writer of a cut reads purges after it has saved the cut.
    if view is None or (not is_replaced and is_needed(purge, NeededVersions(tree, settled=True))):
        return False
    for child in purge.children:
        # An object below a namespace cannot be restored without it, sealed by the drop or not.
        if not _done(tree, child, sealed=False):
            return False
    _empty(tree, purge, view)
    return True


def _purged(purge: Purge, *, seal: bool) -> View[Any] | None:
    """Commit that the log is purged, unless it is already. None where anything was committed since the plan.

    It may have been restored, and what was below it moved elsewhere, before it was dropped again.
    """
    tracked, is_namespace = purge.tracked, purge.kind == NAMESPACE
    view = tracked.offer(tracked.log.refresh_settled(tracked.at_its_place()))
    if view.purged:
        return view
    if view.version != purge.view.version:
        return None

    def only(draft: Draft) -> Decide[Any]:
        def decide(_view: View[Any], passed: Sequence[Commit]) -> Draft:
            if passed:
                raise _ChangedSincePlanned
            return draft

        return decide

    sealed: NamespaceEvent | TableEvent = NamespaceDropped(cascade=True) if is_namespace else TableDropped()
    purged: NamespaceEvent | TableEvent = NamespacePurged() if is_namespace else TablePurged()
    try:
        if not view.sealed:
            if not seal:
                return None
            view = tracked.commit(view, only(Draft(events=encode([sealed]), seals=True))).view
        return tracked.commit(view, only(Draft(events=encode([purged]), purges=True))).view
    except (_ChangedSincePlanned, ConflictError, LogSealed):
        view = tracked.current()
        return view if view.purged else None


def _empty(tree: NameTree, purge: Purge, view: View[Any]) -> None:
    """Delete the objects of a purged log: data files first, and last the hint, which then says that nothing is left."""
    tracked = purge.tracked
    if purge.adopted is not None:
        _delete_adopted(tree, tracked, view)
    if purge.kind != NAMESPACE:
        delete(tracked, all_of(tracked.store, folder(tracked)))
    expiry.expire(tracked.log, view.version)
    rest = unreferenced(tracked.log, view, expiry.last_base(tracked.log))
    rest |= tracked.store.list_leftovers(f"{tracked.log.keys.log}/")
    rest |= tracked.store.list_sizes(tracked.log.keys.lost)
    if purge.kind == NAMESPACE:
        rest |= tracked.store.list_sizes(folder_of_cuts(tracked))
    delete(tracked, Content(objects=rest))
    refresh_snapshot(tracked)


def _delete_adopted(tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState]) -> None:
    """Delete the files that the table had adopted. InvalidInput where another owner has come since the purge was
    planned: the next run, which plans it anew, says so and leaves them."""
    going = of_dropped(tree, tracked, view, no_progress, settle=True)
    if going is not None:
        delete_files(tree, going)


def delete(tracked: TrackedLog[Any], content: Content, progress: Progress = no_progress) -> None:
    """Delete objects at the place of a log: requests of 1,000 keys, a few of them side by side."""
    keys = sorted(content.files.keys() | content.objects.keys())
    delete_keys(tracked, iter(keys), len(keys), progress)


def delete_keys(tracked: TrackedLog[Any], keys: Iterator[str], count: int, progress: Progress) -> None:
    """As `delete`, of so many keys, of which few are in memory at once."""
    done = 0
    while group := list(islice(keys, DELETE_MAX * DELETES_AT_ONCE)):
        requests = [group[first : first + DELETE_MAX] for first in range(0, len(group), DELETE_MAX)]
        tracked.log.options.in_parallel([partial(tracked.store.delete, request) for request in requests])
        done += len(group)
        progress(f"{tracked.log.location}: {done:,} of {count:,} objects deleted")


def take_off_the_list(namespace: Target[NamespaceState], ids: Sequence[str]) -> None:
    """Remove a purged object from the namespace's list: the last step. It may be removed, or the namespace dropped."""
    for start in range(0, len(ids), EVENTS_MAX):

        def decide(
            view: View[NamespaceState],
            passed: Sequence[Any],
            chunk: Sequence[str] = ids[start : start + EVENTS_MAX],
        ) -> Draft:
            state = view.state
            listed = [id for id in chunk if id in state.dropped or id in state.dropped_definitions]
            if not listed:
                raise _AlreadyRemoved
            return Draft(events=encode([EntryPurged(id=id) for id in listed]))

        tracked = namespace.tracked
        try:
            tracked.commit(tracked.at_least(namespace.view.version), decide)
        except _AlreadyRemoved:
            continue
        except LogSealed:
            return  # its own purge does the rest


def due(state: NamespaceState, until_us: int) -> Mapping[str, tuple[str, str, Entry]]:
    """Return the logs that were dropped at `until_us` or before, by id: kind, name and entry."""
    found = {}
    for id, dropped in state.dropped.items():
        if dropped.time_us <= until_us:
            kind = NAMESPACE if dropped.space == NAMESPACE else "table"
            found[id] = kind, dropped.name, Entry(kind=dropped.kind, id=id, location=dropped.location)
    return found


def due_definitions(state: NamespaceState, until_us: int) -> Mapping[str, DroppedDefinition]:
    """Return the views and functions that were dropped at `until_us` or before, by id."""
    return {id: each for id, each in state.dropped_definitions.items() if each.time_us <= until_us}


class _AlreadyRemoved(LakelogError):
    """Ends a commit whose effect exists already."""


class _ChangedSincePlanned(LakelogError):
    """Ends a commit where another writer's came first: the version that it was to follow is no longer the last."""
