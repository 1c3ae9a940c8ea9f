"""Saved cuts: a name for the version that every log had at one moment, so that the catalog can be read as of then.

The versions are in an object of their own, `_cut/<id>.json`, which is written first; the root namespace's log names
it, with its hash. Expiry keeps the versions that saved cuts need.

A cut is saved by a transaction of the root alone: once its intent stands, and before it is decided, it is checked that
no version of it has expired. Expiry says so in the log, and reads the saved cuts after that, when nothing in the root
is undecided. So at least one of the two sees the other, and a cut that was saved can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import is_elsewhere
from lakelog.catalog.logs import FOREVER_US, Cut, LogCache, LogChange, NameTree, Token, TrackedLog, commit_in
from lakelog.catalog.names import check_name
from lakelog.catalog.schema import ready
from lakelog.catalog.state import NAMESPACE, RELATION, CutDropped, CutSaved, NamespaceState, SavedCut, encode
from lakelog.catalog.times import is_time
from lakelog.log import Draft, View
from lakelog.log.decoding import SIZE_MAX_DERIVED, decoded
from lakelog.log.errors import AlreadyExists, FormatError, InvalidInput, NotFound, StorageError
from lakelog.log.grammar import Location, Name, Number, check_id

FORMAT: Literal[1] = 1
COLLECTIONS_MAX = 20


class CutVersions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object of a saved cut: the version of each log by its location."""

    format: Literal[1]
    name: Name
    logs: dict[Location, Number]


ready(CutVersions)
_CUT = msgspec.json.Decoder(CutVersions)


def decode_cut(data: bytes, location: str) -> dict[str, int]:
    """Return the version of each log in a saved cut. FormatError, which names the object at `location`."""
    return decoded(_CUT, data, location, size_max=SIZE_MAX_DERIVED).logs


def save_cut(tree: NameTree, name: str, token: Token | None) -> SavedCut:
    """Give the present versions of all logs a name. AlreadyExists where it is taken.

    Costs one GET for each log that is known, and reads the others; one PUT for the versions, two for the name, and one
    GET more for each log between these two.
    """
    tree.logs.check_writable()
    check_name(name, "cut")
    if is_time(name):
        raise InvalidInput(f"{name!r} would be read as a time: choose another name for the cut")
    found = tree.root()
    root = found.tracked
    versions = collect(tree.logs)
    id = token.commit_id if token is not None else tree.logs.new_id()
    check_id(id, "a commit id")
    key = _key(f"{id}.json")
    store = tree.logs.places.store(tree.logs.warehouse)
    data = msgspec.json.encode(CutVersions(format=FORMAT, name=name, logs=versions))
    if not store.put_if_absent(key, data):
        # A retry: the commit means the object that the first attempt wrote.
        data = store.get(key) or data
        versions = decode_cut(data, f"{tree.logs.warehouse}/{key}")
    saved = CutSaved(name=name, object=f"{id}.json", hash=_hash(data), logs=len(versions))

    def decide(view: View[NamespaceState], passed: Any) -> Draft:
        if name in view.state.cuts:
            raise AlreadyExists(f"there is a saved cut {name!r} already: drop it, or choose another name")
        if view.state.expired > versions[root.location]:
            raise _expired(name, root, versions[root.location], view)
        return Draft(events=encode([saved]))

    base = token.base(root) if token is not None else None
    change = LogChange(root, root.at_least(found.view.version), decide, base)
    try:
        tree.logs.commit_together(
            [change],
            commit_id=token.commit_id if token is not None else None,
            validate=lambda: _check_kept(tree, name, versions),
        )
    except _Expired as expired:
        # The same request may be retried, and then has to write other versions.
        _delete(tree, [saved.object])
        raise CommitConflict(*expired.args, version=expired.version) from None
    view = root.known
    assert view is not None, "it was committed to"
    kept = view.state.cuts.get(name)
    if kept is None or kept.object != saved.object:
        raise NotFound(f"the cut {name!r} was saved, and dropped since by another client: save it again")
    return kept


def _check_kept(tree: NameTree, name: str, versions: Mapping[str, int]) -> None:
    """Refuse a cut of which a version has expired since it was collected. CommitConflict. The root is left out: the
    cut's intent in it was judged on its state.

    The versions of a log that was replaced by another one at its place are no longer known, and count as expired.
    """
    known: list[TrackedLog[Any]] = [
        tracked
        for location in versions
        if location
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


def drop_cut(tree: NameTree, name: str, token: Token | None) -> None:
    """Forget a saved cut: versions that only it needed may expire. NotFound where it does not exist."""
    found = tree.root()
    objects: list[str] = []

    def decide(view: View[NamespaceState], passed: Any) -> Draft:
        objects[:] = [_cut_named(view.state.cuts, name).object]
        return Draft(events=encode([CutDropped(name=name)]))

    commit_in(found, (), decide, token)
    _delete(tree, objects)


def _delete(tree: NameTree, objects: Sequence[str]) -> None:
    """Delete objects of cuts that are not saved, or not any more: an id is never used again."""
    try:
        tree.logs.places.store(tree.logs.warehouse).delete([_key(each) for each in objects])
    except StorageError:
        return  # it only takes space, and fsck reports the object


def all_cuts(tree: NameTree, *, settled: bool = False) -> Mapping[str, SavedCut]:
    """Return the saved cuts by their names; with `settled`, once it is decided about one that is being saved."""
    found = tree.find_namespace(())
    if found is None:
        return {}
    return (found.tracked.settled() if settled else found.view).state.cuts


def versions_of_cut(tree: NameTree, name: str) -> dict[str, int]:
    """Return the version of each log in the cut. NotFound where it does not exist."""
    cut = _cut_named(all_cuts(tree), name)
    key = _key(cut.object)
    data = tree.logs.places.store(tree.logs.warehouse).get(key)
    if data is None and all_cuts(tree).get(name) != cut:
        raise NotFound(
            f"the saved cut {name!r} was dropped meanwhile, or dropped and saved again: open the catalog again"
        )
    if data is None or _hash(data) != cut.hash:
        what = "is missing" if data is None else "was altered"
        raise FormatError(
            f"{tree.logs.warehouse}/{key}, which has the versions of the cut {name!r}, {what}: restore it from a backup"
        )
    return decode_cut(data, f"{tree.logs.warehouse}/{key}")


def needed_versions(tree: NameTree, *, settled: bool = False) -> dict[str, int]:
    """Return for each log the oldest version that a saved cut needs. Costs one GET for each cut.

    What is deleted for good is compared with the cuts `settled`, after a commit that says what goes.
    """
    needed: dict[str, int] = {}
    for name in all_cuts(tree, settled=settled):
        try:
            versions = versions_of_cut(tree, name)
        except NotFound:
            return needed_versions(tree, settled=settled)  # dropped after the names were read
        for location, version in versions.items():
            needed[location] = min(version, needed.get(location, version))
    return needed


def collect(logs: LogCache) -> dict[str, int]:
    """Return a version of every log that a name leads to, all as of one moment.

    Where a log moves during the collection, the moment is put before that, and all logs are read again as of then; but
    not before anything that this process had seen.
    """
    at_us, seen_us = FOREVER_US, logs.seen_us
    for _ in range(COLLECTIONS_MAX):
        cut = Cut(logs, at_us=at_us)
        views: dict[str, View[Any]] = {}
        try:
            _walk(logs, cut, logs.namespace(""), views)
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


def _walk(logs: LogCache, cut: Cut, tracked: TrackedLog[NamespaceState], views: dict[str, View[Any]]) -> None:
    level: list[TrackedLog[NamespaceState]] = [tracked]
    while level:
        _choose_all(logs, cut, level, views)
        states = [views[each.location].state for each in level]
        # Each once: a namespace can be forged that leads to itself, or to another log twice.
        tables = _there(logs, logs.table, [each for each in _below(states, RELATION) if each not in views])
        _choose_all(logs, cut, tables, views)
        level = _there(
            logs, logs.namespace, [each for each in _below(states, NAMESPACE) if each not in views]
        )


def _below(states: Iterable[NamespaceState], space: str) -> dict[str, None]:
    """Return the locations that these namespaces lead to, in order."""
    return dict.fromkeys(
        entry.location for state in states for entry in state.entries.get(space, {}).values()
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


def _cut_named(cuts: Mapping[str, SavedCut], name: str) -> SavedCut:
    if name not in cuts:
        known = ", ".join(sorted(cuts)[:10]) or "none"
        raise NotFound(f"there is no saved cut {name!r}: the saved cuts are {known}")
    return cuts[name]


def _key(object: str) -> str:
    return f"_cut/{object}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
