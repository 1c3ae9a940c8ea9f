"""Saved cuts: a name for the versions that all logs of a namespace had at the same moment.

They are there to read the namespace as of then. A cut of the root is of the whole catalog. The versions are
in an object of their own in the namespace's folder, `_cut/<id>.json`, which is written first; the namespace's
log names it, with its hash. Expiry keeps the versions that saved cuts need (see `kept_for_cuts`).

A namespace's cut only has logs of the namespace's own folder. Folders stay at their place, whatever is
renamed or moved. So a log's place shows which cuts may need it. To check them takes rights to the folders
above the log, and to no other.

A transaction of the namespace alone saves a cut. Once its intent stands, and before it is decided, it checks
that no version of the cut has expired. Expiry announces itself in the log, and reads the saved cuts after
that, when nothing in the namespace is undecided. So the cut sees the expiry or the expiry sees the cut, and a
saved cut can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from lakelog.catalog.core.files.data_file import is_elsewhere
from lakelog.catalog.core.logs.cache import JointLogChange, LogCache
from lakelog.catalog.core.logs.commits import Token, or_applied
from lakelog.catalog.core.logs.consistent_cut import FOREVER_US, ConsistentCut
from lakelog.catalog.core.logs.name_path import follow
from lakelog.catalog.core.logs.name_tree import NameTree, commit_in, no_such_namespace
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.state.events import CutDropped, CutSaved, encode
from lakelog.catalog.core.state.namespace_state import NAMESPACE, RELATION, NamespaceState, SavedCut
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.catalog.times import is_time
from lakelog.log import Draft, LogView
from lakelog.log.decoding import SIZE_MAX_DERIVED, decoded
from lakelog.log.errors import AlreadyExists, FormatError, InvalidInput, LogSealed, NotFound, StorageError
from lakelog.log.grammar import Location, Name, Number, check_id, shortened
from lakelog.log.settling import create

FORMAT: Literal[1] = 1
COLLECTIONS_MAX = 20


class CutVersions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object of a saved cut: the version of each log by its location."""

    format: Literal[1]
    name: Name
    logs: dict[Location, Number]


ready(CutVersions)
_CUT = msgspec.json.Decoder(CutVersions)


def decode_cut(data: bytes, location: str, folder: str) -> dict[str, int]:
    """Return the version of each log in a cut of the namespace in `folder`, "" for the whole catalog.

    Raises FormatError, which names the object at `location`. That includes a cut with a log outside the
    folder, which no client saves.
    """
    logs = decoded(_CUT, data, location, size_max=SIZE_MAX_DERIVED).logs
    outside = next((log_location for log_location in logs if not is_inside(log_location, folder)), None)
    if outside is not None:
        raise FormatError(
            f"{location} has a version of {shortened(outside)!r}, which is not in the folder {folder}: find out which "
            "client wrote this object"
        )
    return logs


def is_inside(location: str, folder: str) -> bool:
    """Return whether a log is in the folder of the namespace that saves a cut.

    All logs are in the catalog's folder.
    """
    return not folder or f"{location}/".startswith(f"{folder}/")


def save_cut(tree: NameTree, name: str, namespace: Identifier, token: Token | None) -> SavedCut:
    """Give the present versions of all logs of a namespace a name.

    Raises AlreadyExists if the name is taken; NoSuchWarehouse; InvalidInput if the namespace leads to a log
    outside of its folder. Costs a GET for each log that is known, and reads the others. Costs a PUT for the
    versions, two for the name, and another GET for each log between these two.
    """
    tree.logs.check_writable()
    check_name(name, "cut")
    if is_time(name):
        raise InvalidInput(f"{name!r} would be read as a time: choose another name for the cut")
    parent = tree.namespace(namespace)
    namespace_log = parent.tracked
    versions = collect(tree.logs, namespace, namespace_log)
    id = token.commit_id if token is not None else tree.logs.new_id()
    check_id(id, "a commit id")
    key = _key(namespace_log, f"{id}.json")
    data = msgspec.json.encode(CutVersions(format=FORMAT, name=name, logs=versions))
    if not create(namespace_log.store, key, data, namespace_log.log.options):
        # A retry: the commit means the object that the first attempt wrote.
        data = namespace_log.store.get(key) or data
        versions = decode_cut(data, f"{namespace_log.store.url}/{key}", namespace_log.location)
    save_event = CutSaved(name=name, object=f"{id}.json", hash=_hash(data), logs=len(versions))

    def decide(view: LogView[NamespaceState], passed: Any) -> Draft:
        if name in view.state.cuts:
            raise AlreadyExists(
                f"there is a saved cut {name!r}{_of(namespace)} already: drop it, or choose another name"
            )
        if view.state.expired > versions[namespace_log.location]:
            raise _expired(name, namespace_log, versions[namespace_log.location], view)
        return Draft(events=encode([save_event]))

    base = token.base(namespace_log) if token is not None else None
    change = JointLogChange(namespace_log, namespace_log.at_least(parent.view.version), decide, base)
    try:
        tree.logs.commit_together(
            [change],
            commit_id=token.commit_id if token is not None else None,
            validate=lambda: _check_kept(tree, namespace_log, name, versions),
        )
    except _Expired as expired:
        # The same request may be retried, and then has to write other versions.
        _delete(namespace_log, [save_event.object])
        raise CommitConflict(*expired.args, version=expired.version) from None
    except LogSealed as error:
        raise no_such_namespace(namespace) from error
    view = namespace_log.known
    assert view is not None, "it was committed to"
    saved_cut = view.state.cuts.get(name)
    if saved_cut is None or saved_cut.object != save_event.object:
        raise NotFound(f"the cut {name!r} was saved, and dropped since by another client: save it again")
    return saved_cut


def _check_kept(
    tree: NameTree, namespace_log: TrackedLog[NamespaceState], name: str, versions: Mapping[str, int]
) -> None:
    """Raise CommitConflict for a cut if any of its versions has expired since it was collected.

    The namespace itself is left out, because the cut's intent in it was judged on its state. If another log
    replaced a log at its place, the versions of the first are no longer known, and count as expired.
    """
    known_logs: list[TrackedLog[Any]] = [
        tracked_log
        for location in versions
        if location != namespace_log.location
        for tracked_log in (
            *(() if is_elsewhere(location) else (tree.logs.namespace(location),)),
            tree.logs.table(location),
        )
        if tracked_log.known is not None
    ]
    tree.logs.refresh(known_logs)
    for tracked_log in known_logs:
        view, version = tracked_log.known, versions[tracked_log.location]
        if view is None:
            continue
        later_effects = tracked_log.log.replay.effects(version + 1, view.version)
        if view.state.expired > version or view.purged or any(entry.reopens for entry in later_effects):
            raise _expired(name, tracked_log, version, view)


def _expired(name: str, tracked: TrackedLog[Any], version: int, view: LogView[Any]) -> _Expired:
    return _Expired(
        f"version {version} of {tracked.log.location} expired while the cut {name!r} was saved: save it again",
        version=view.version,
    )


class _Expired(CommitConflict):
    """Ends the saving of a cut that could not be read."""


def drop_cut(tree: NameTree, name: str, namespace: Identifier, token: Token | None) -> None:
    """Forget a saved cut: versions that only it needed may expire. Raises NotFound if it does not exist."""
    or_applied(tree.logs, token, lambda: _drop(tree, name, namespace, token))


def _drop(tree: NameTree, name: str, namespace: Identifier, token: Token | None) -> None:
    namespace_head = tree.namespace(namespace)
    objects: list[str] = []

    def decide(view: LogView[NamespaceState], passed: Any) -> Draft:
        objects[:] = [_cut_named(view.state.cuts, name, namespace).object]
        return Draft(events=encode([CutDropped(name=name)]))

    commit_in(namespace_head, namespace, decide, token)
    _delete(namespace_head.tracked, objects)


def _delete(tracked: TrackedLog[NamespaceState], objects: Sequence[str]) -> None:
    """Delete objects of cuts that are not saved, or no longer saved: an id is never used again."""
    try:
        tracked.store.delete([_key(tracked, object_name) for object_name in objects])
    except StorageError:
        return  # it only takes space, and fsck reports the object


def all_cuts(tree: NameTree, namespace: Identifier) -> Mapping[str, SavedCut]:
    """Return the saved cuts of a namespace by their names, none for an empty warehouse.

    Raises NoSuchNamespace.
    """
    namespace_head = tree.namespace(namespace) if namespace else tree.find_namespace(())
    if namespace_head is None:
        tree.check_there()
        return {}
    return namespace_head.view.state.cuts


def cut_of(logs: LogCache, name: str, namespace: Identifier) -> ConsistentCut:
    """Return the contents of a saved cut: the logs of the namespace as they were, and nothing else.

    The namespaces above it, and its name in them, are as they are now, because the cut does not contain them.
    Raises NotFound or NoSuchNamespace.
    """
    tree = NameTree(logs)
    cut = _cut_named(all_cuts(tree, namespace), name, namespace)
    *above, own = follow(logs, namespace, lambda path, entry, tracked: tracked.known)
    versions = versions_of(own.tracked, name, cut)
    if not namespace:
        return ConsistentCut(logs, versions=versions)
    own_view = ConsistentCut(logs, versions=versions).view_of(own.tracked)
    views: dict[str, LogView[NamespaceState]] = {
        own.tracked.location: replace(own_view, state=replace(own_view.state, link=own.view.state.link))
    }
    for level, below in zip(above, namespace, strict=True):
        alone = NamespaceState(
            properties=level.view.state.properties,
            entries={NAMESPACE: {below: level.view.state.entries[NAMESPACE][below]}},
            link=level.view.state.link,
        )
        views[level.tracked.location] = replace(level.view, state=alone)
    return ConsistentCut(logs, versions=versions, shown=views)


def versions_of(tracked: TrackedLog[NamespaceState], name: str, cut: SavedCut) -> dict[str, int]:
    """Return the version of each log in a cut of that namespace.

    Raises NotFound if it was dropped in the meantime.
    """
    key = _key(tracked, cut.object)
    data = tracked.store.get(key)
    if data is None and tracked.current().state.cuts.get(name) != cut:
        raise NotFound(
            f"the saved cut {name!r} was dropped meanwhile, or dropped and saved again: open the catalog again"
        )
    if data is None or _hash(data) != cut.hash:
        damage = "is missing" if data is None else "was altered"
        raise FormatError(
            f"{tracked.store.url}/{key}, which has the versions of the cut {name!r}, {damage}: restore it from a backup"
        )
    return decode_cut(data, f"{tracked.store.url}/{key}", tracked.location)


def collect(
    logs: LogCache,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
    *,
    within: str | None = None,
) -> dict[str, int]:
    """Return a version of a namespace and of every log that it leads to, all as of the same moment.

    If a log moves during the collection, the moment is put before the move, and all logs are read again as of
    then. But the moment is never before anything that this process had seen. Raises InvalidInput if a log is
    outside the folder `within`; None means the namespace's own folder.
    """
    at_us, seen_us = FOREVER_US, logs.clocks.seen_us
    for _ in range(COLLECTIONS_MAX):
        cut = ConsistentCut(logs, at_us=at_us)
        views: dict[str, LogView[Any]] = {}
        try:
            _walk(logs, cut, namespace, tracked, views, tracked.location if within is None else within)
            cut.check()
        except CommitConflict:
            at_us = cut.last_us if cut.last_us >= seen_us else FOREVER_US
            continue
        except (InvalidInput, NotFound):
            if at_us == FOREVER_US:
                raise
            at_us = FOREVER_US  # versions of that moment have expired
            continue
        return {location: view.version for location, view in views.items()}
    raise CommitConflict("the catalog kept changing while its versions were collected: retry", version=0)


def _walk(
    logs: LogCache,
    cut: ConsistentCut,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
    views: dict[str, LogView[Any]],
    folder: str,
) -> None:
    def below(space: str) -> list[str]:
        """Return the locations that the level leads to and that are not in `views`, in order, each once.

        A forged namespace can lead to itself, or to another log twice.
        """
        new_locations: dict[str, None] = {}
        for path, level_log in level:
            for name, entry in views[level_log.location].state.logs(space):
                if not is_inside(entry.location, folder):
                    raise _outside(logs, (*path, name), entry.location, namespace, tracked)
                if entry.location not in views:
                    paths.setdefault(entry.location, (*path, name))
                    new_locations[entry.location] = None
        return list(new_locations)

    paths: dict[str, Identifier] = {}
    level = [(namespace, tracked)]
    while level:
        _choose_all(logs, cut, [level_log for _, level_log in level], views)
        _choose_all(logs, cut, _there(logs, logs.table, below(RELATION)), views)
        level = [
            (paths[level_log.location], level_log)
            for level_log in _there(logs, logs.namespace, below(NAMESPACE))
        ]


def _outside(
    logs: LogCache,
    path: Identifier,
    location: str,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
) -> InvalidInput:
    return InvalidInput(
        f"no cut was saved: {quoted(path)} is at {logs.url(location)}, outside of the folder of {quoted(namespace)}, "
        f"{tracked.log.location}: its versions would expire. Save a cut of a namespace whose folder holds both, "
        "or of the whole catalog"
    )


def _there(
    logs: LogCache, log_at: Callable[[str], TrackedLog[Any]], locations: Iterable[str]
) -> list[TrackedLog[Any]]:
    """Return the logs at these places, read to their heads, without names that lead to no log.

    Nothing can be read through such a name, and any client that may write to a namespace can forge it.
    """

    def read(location: str) -> TrackedLog[Any] | None:
        try:
            tracked_log = log_at(location)
            if tracked_log.known is None:
                tracked_log.current()
        except (InvalidInput, NotFound):
            return None
        except FormatError:
            if is_elsewhere(location):
                return None
            raise
        return tracked_log

    return [tracked_log for tracked_log in logs.in_parallel(read, list(locations)) if tracked_log is not None]


def _choose_all(logs: LogCache, cut: ConsistentCut, wanted: Any, views: dict[str, LogView[Any]]) -> None:
    logs.refresh([tracked_log for tracked_log in wanted if tracked_log.known is not None])
    for tracked_log in wanted:
        views[tracked_log.location] = cut.view_of(tracked_log, fresh=True)


def _cut_named(cuts: Mapping[str, SavedCut], name: str, namespace: Identifier) -> SavedCut:
    if name not in cuts:
        cut_names = ", ".join(sorted(cuts)[:10]) or "none"
        more = "" if namespace else "; a namespace's own are found by its name and theirs"
        raise NotFound(
            f"there is no saved cut {name!r}{_of(namespace)}: the saved cuts are {cut_names}{more}"
        )
    return cuts[name]


def _of(namespace: Identifier) -> str:
    return f" of {quoted(namespace)}" if namespace else ""


def _key(tracked: TrackedLog[NamespaceState], object: str) -> str:
    return f"{folder_of_cuts(tracked)}{object}"


def folder_of_cuts(tracked: TrackedLog[NamespaceState]) -> str:
    """Return the prefix of the keys of a namespace's cuts."""
    return f"{tracked.prefix}/_cut/" if tracked.prefix else "_cut/"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
