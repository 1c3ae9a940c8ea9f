"""Saved cuts: a name for the version that every log of a namespace had at one moment, to read it as of then.

A cut of the root is of the whole catalog. The versions are in an object of their own in the namespace's folder,
`_cut/<id>.json`, which is written first; the namespace's log names it, with its hash. Expiry keeps the versions that
saved cuts need (see `kept_for_cuts`).

A namespace's cut has logs of the namespace's own folder alone. Folders stay where they were made, whatever is renamed
or moved; so what a cut may need shows from a log's place, and takes rights to the folders above it and to no other.

A cut is saved by a transaction of the namespace alone: once its intent stands, and before it is decided, it is checked
that no version of it has expired. Expiry says so in the log, and reads the saved cuts after that, when nothing in the
namespace is undecided. So at least one of the two sees the other, and a cut that was saved can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import (
    FOREVER_US,
    Cut,
    LogCache,
    LogChange,
    NameTree,
    Token,
    TrackedLog,
    commit_in,
    follow,
    no_such_namespace,
)
from lakelog.catalog.core.schema import ready
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    CutDropped,
    CutSaved,
    NamespaceState,
    SavedCut,
    encode,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.catalog.times import is_time
from lakelog.log import Draft, View
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

    FormatError, which names the object at `location`, also for one that has a log elsewhere: no client saves that.
    """
    logs = decoded(_CUT, data, location, size_max=SIZE_MAX_DERIVED).logs
    strange = next((each for each in logs if not is_inside(each, folder)), None)
    if strange is not None:
        raise FormatError(
            f"{location} has a version of {shortened(strange)!r}, which is not in the folder {folder}: find out which "
            "client wrote this object"
        )
    return logs


def is_inside(location: str, folder: str) -> bool:
    """Return whether a log is in the folder of the namespace whose cut is to have it; all are in the catalog's."""
    return not folder or f"{location}/".startswith(f"{folder}/")


def save_cut(tree: NameTree, name: str, namespace: Identifier, token: Token | None) -> SavedCut:
    """Give the present versions of all logs of a namespace a name. AlreadyExists where it is taken; InvalidInput where
    the namespace leads to a log outside of its folder.

    Costs one GET for each log that is known, and reads the others; one PUT for the versions, two for the name, and one
    GET more for each log between these two.
    """
    tree.logs.check_writable()
    check_name(name, "cut")
    if is_time(name):
        raise InvalidInput(f"{name!r} would be read as a time: choose another name for the cut")
    found = tree.writable(namespace)
    tracked = found.tracked
    versions = collect(tree.logs, namespace, tracked)
    id = token.commit_id if token is not None else tree.logs.new_id()
    check_id(id, "a commit id")
    key = _key(tracked, f"{id}.json")
    data = msgspec.json.encode(CutVersions(format=FORMAT, name=name, logs=versions))
    if not create(tracked.store, key, data, tracked.log.options):
        # A retry: the commit means the object that the first attempt wrote.
        data = tracked.store.get(key) or data
        versions = decode_cut(data, f"{tracked.store.url}/{key}", tracked.location)
    saved = CutSaved(name=name, object=f"{id}.json", hash=_hash(data), logs=len(versions))

    def decide(view: View[NamespaceState], passed: Any) -> Draft:
        if name in view.state.cuts:
            raise AlreadyExists(
                f"there is a saved cut {name!r}{_of(namespace)} already: drop it, or choose another name"
            )
        if view.state.expired > versions[tracked.location]:
            raise _expired(name, tracked, versions[tracked.location], view)
        return Draft(events=encode([saved]))

    base = token.base(tracked) if token is not None else None
    change = LogChange(tracked, tracked.at_least(found.view.version), decide, base)
    try:
        tree.logs.commit_together(
            [change],
            commit_id=token.commit_id if token is not None else None,
            validate=lambda: _check_kept(tree, tracked, name, versions),
        )
    except _Expired as expired:
        # The same request may be retried, and then has to write other versions.
        _delete(tracked, [saved.object])
        raise CommitConflict(*expired.args, version=expired.version) from None
    except LogSealed as error:
        raise no_such_namespace(namespace) from error
    view = tracked.known
    assert view is not None, "it was committed to"
    kept = view.state.cuts.get(name)
    if kept is None or kept.object != saved.object:
        raise NotFound(f"the cut {name!r} was saved, and dropped since by another client: save it again")
    return kept


def _check_kept(
    tree: NameTree, saving: TrackedLog[NamespaceState], name: str, versions: Mapping[str, int]
) -> None:
    """Refuse a cut of which a version has expired since it was collected. CommitConflict. The namespace itself is left
    out: the cut's intent in it was judged on its state.

    The versions of a log that was replaced by another one at its place are no longer known, and count as expired.
    """
    known: list[TrackedLog[Any]] = [
        tracked
        for location in versions
        if location != saving.location
        for tracked in (
            *(() if is_elsewhere(location) else (tree.logs.namespace(location),)),
            tree.logs.table(location),
        )
        if tracked.known is not None
    ]
    tree.logs.refresh(known)
    for tracked in known:
        view, version = tracked.known, versions[tracked.location]
        if view is None:
            continue
        following = tracked.log.replay.effects(version + 1, view.version)
        if view.state.expired > version or view.purged or any(entry.reopens for entry in following):
            raise _expired(name, tracked, version, view)


def _expired(name: str, tracked: TrackedLog[Any], version: int, view: View[Any]) -> _Expired:
    return _Expired(
        f"version {version} of {tracked.log.location} expired while the cut {name!r} was saved: save it again",
        version=view.version,
    )


class _Expired(CommitConflict):
    """Ends the saving of a cut that could not be read."""


def drop_cut(tree: NameTree, name: str, namespace: Identifier, token: Token | None) -> None:
    """Forget a saved cut: versions that only it needed may expire. NotFound where it does not exist."""
    found = tree.writable(namespace)
    objects: list[str] = []

    def decide(view: View[NamespaceState], passed: Any) -> Draft:
        objects[:] = [_cut_named(view.state.cuts, name, namespace).object]
        return Draft(events=encode([CutDropped(name=name)]))

    commit_in(found, namespace, decide, token)
    _delete(found.tracked, objects)


def _delete(tracked: TrackedLog[NamespaceState], objects: Sequence[str]) -> None:
    """Delete objects of cuts that are not saved, or not any more: an id is never used again."""
    try:
        tracked.store.delete([_key(tracked, each) for each in objects])
    except StorageError:
        return  # it only takes space, and fsck reports the object


def all_cuts(tree: NameTree, namespace: Identifier) -> Mapping[str, SavedCut]:
    """Return the saved cuts of a namespace by their names. NoSuchNamespace; a warehouse that is empty has none."""
    found = tree.namespace(namespace) if namespace else tree.find_namespace(())
    return found.view.state.cuts if found is not None else {}


def cut_of(logs: LogCache, name: str, namespace: Identifier) -> Cut:
    """Return what a saved cut shows: logs of the namespace as they were, and nothing else. NotFound, NoSuchNamespace.

    The namespaces above it, and the name that it has in them, are as they are now: they are not in the cut.
    """
    tree = NameTree(logs)
    cut = _cut_named(all_cuts(tree, namespace), name, namespace)
    *above, own = follow(logs, namespace, lambda path, entry, tracked: tracked.known)
    versions = versions_of(own.tracked, name, cut)
    if not namespace:
        return Cut(logs, versions=versions)
    then = Cut(logs, versions=versions).view_of(own.tracked)
    shown: dict[str, View[NamespaceState]] = {
        own.tracked.location: replace(then, state=replace(then.state, link=own.view.state.link))
    }
    for level, below in zip(above, namespace, strict=True):
        entry = level.view.state.entry(NAMESPACE, below)
        assert entry is not None, "the path led through it"
        alone = NamespaceState(
            properties=level.view.state.properties,
            entries={NAMESPACE: {below: entry}},
            link=level.view.state.link,
        )
        shown[level.tracked.location] = replace(level.view, state=alone)
    return Cut(logs, versions=versions, shown=shown)


def versions_of(tracked: TrackedLog[NamespaceState], name: str, cut: SavedCut) -> dict[str, int]:
    """Return the version of each log in a cut of that namespace. NotFound where it was dropped meanwhile."""
    key = _key(tracked, cut.object)
    data = tracked.store.get(key)
    if data is None and tracked.current().state.cuts.get(name) != cut:
        raise NotFound(
            f"the saved cut {name!r} was dropped meanwhile, or dropped and saved again: open the catalog again"
        )
    if data is None or _hash(data) != cut.hash:
        what = "is missing" if data is None else "was altered"
        raise FormatError(
            f"{tracked.store.url}/{key}, which has the versions of the cut {name!r}, {what}: restore it from a backup"
        )
    return decode_cut(data, f"{tracked.store.url}/{key}", tracked.location)


def collect(
    logs: LogCache,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
    *,
    within: str | None = None,
) -> dict[str, int]:
    """Return a version of a namespace and of every log that it leads to, all as of one moment. All have to be in the
    folder `within`, None for its own: InvalidInput.

    Where a log moves during the collection, the moment is put before that, and all logs are read again as of then; but
    not before anything that this process had seen.
    """
    at_us, seen_us = FOREVER_US, logs.clocks.seen_us
    for _ in range(COLLECTIONS_MAX):
        cut = Cut(logs, at_us=at_us)
        views: dict[str, View[Any]] = {}
        try:
            _walk(logs, cut, namespace, tracked, views, tracked.location if within is None else within)
            cut.check()
        except CommitConflict:
            at_us = cut.last_us if cut.last_us >= seen_us else FOREVER_US
            continue
        except (InvalidInput, NotFound):
            if at_us == FOREVER_US:
                raise
            at_us = FOREVER_US  # versions of that moment have expired meanwhile
            continue
        return {location: view.version for location, view in views.items()}
    raise CommitConflict("the catalog kept changing while its versions were collected: retry", version=0)


def _walk(
    logs: LogCache,
    cut: Cut,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
    views: dict[str, View[Any]],
    folder: str,
) -> None:
    def below(space: str) -> list[str]:
        """Return the locations that the level leads to and that were not met, in order. Each once: a namespace can be
        forged that leads to itself, or to another log twice."""
        found: dict[str, None] = {}
        for path, each in level:
            for name, entry in views[each.location].state.entries.get(space, {}).items():
                if not is_inside(entry.location, folder):
                    raise _outside(logs, (*path, name), entry.location, namespace, tracked)
                if entry.location not in views:
                    paths.setdefault(entry.location, (*path, name))
                    found[entry.location] = None
        return list(found)

    paths: dict[str, Identifier] = {}
    level = [(namespace, tracked)]
    while level:
        _choose_all(logs, cut, [each for _, each in level], views)
        _choose_all(logs, cut, _there(logs, logs.table, below(RELATION)), views)
        level = [(paths[each.location], each) for each in _there(logs, logs.namespace, below(NAMESPACE))]


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
    """Return the logs at these places, read to their heads, without names that lead to no log: nothing can be read by
    these, and any client that may write to a namespace can forge one."""

    def read(location: str) -> TrackedLog[Any] | None:
        try:
            tracked = log_at(location)
            if tracked.known is None:
                tracked.current()
        except (InvalidInput, NotFound):
            return None
        except FormatError:
            if is_elsewhere(location):
                return None
            raise
        return tracked

    return [tracked for tracked in logs.in_parallel(read, list(locations)) if tracked is not None]


def _choose_all(logs: LogCache, cut: Cut, wanted: Any, views: dict[str, View[Any]]) -> None:
    logs.refresh([tracked for tracked in wanted if tracked.known is not None])
    for tracked in wanted:
        views[tracked.location] = cut.view_of(tracked, fresh=True)


def _cut_named(cuts: Mapping[str, SavedCut], name: str, namespace: Identifier) -> SavedCut:
    if name not in cuts:
        known = ", ".join(sorted(cuts)[:10]) or "none"
        more = "" if namespace else "; a namespace's own are found by its name and theirs"
        raise NotFound(f"there is no saved cut {name!r}{_of(namespace)}: the saved cuts are {known}{more}")
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
