"""What was dropped and can be restored: since when, by whom, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lakelog.catalog.logs import NameTree
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.retention import kept_until_us
from lakelog.catalog.schema import kind_of
from lakelog.catalog.state import NAMESPACE, Dropped, DroppedDefinition, NamespaceState, writer
from lakelog.log import Commit, FormatError, Json, NotFound
from lakelog.log.format import Tombstone

D = TypeVar("D", Dropped, DroppedDefinition)


class DroppedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table, namespace, view or function that can be restored.

    `name` is what it was called; several can have had the same. A view or function has no `location`.

    `kept_until_us` is when vacuum may purge it if it is run as usual; nothing happens by itself then. `writer` is what
    is known of who dropped it, empty where that commit has expired.
    """

    id: str
    kind: str
    name: Identifier
    location: str
    dropped_us: int
    kept_until_us: int
    writer: dict[str, Json]

    @property
    def user(self) -> str | None:
        said = self.writer.get(writer.USER)
        return None if said is None else str(said)


def list_dropped(tree: NameTree, namespace: Identifier, *, recursive: bool = False) -> list[DroppedEntry]:
    """Return what was dropped in a namespace, the latest drop first; with `recursive`, in all below it too.

    What lies in a dropped namespace comes back with that and is not listed by itself. NoSuchNamespace. Costs a look at
    the log of each thing that is listed.
    """
    found = tree.find_namespace(()) if not namespace else tree.namespace(namespace)
    if found is None:
        return []
    known: list[tuple[Identifier, str, Dropped]] = []
    definitions: list[DroppedEntry] = []
    level: list[tuple[Identifier, NamespaceState]] = [(namespace, found.view.state)]
    while level:
        below: list[tuple[Identifier, str]] = []
        for path, state in level:
            known += [((*path, each.name), id, each) for id, each in state.dropped.items()]
            definitions += [_defined(path, id, each) for id, each in state.dropped_definitions.items()]
            if recursive:
                children = state.entries.get(NAMESPACE, {})
                below += [((*path, name), entry.location) for name, entry in children.items()]
        # One that was dropped since its parent was read is sealed: its parent tells of it the next time.
        loaded = tree.logs.in_parallel(lambda one: (one[0], tree.logs.namespace(one[1]).current()), below)
        level = [(path, view.state) for path, view in loaded if not view.sealed]
    entries = tree.logs.in_parallel(lambda one: _entry(tree, *one), known)
    return sorted(entries + definitions, key=lambda entry: (-entry.dropped_us, entry.name, entry.id))


def dropped_last(
    gone: Mapping[str, D], space: str, name: Identifier, id: str | None, *, what: str
) -> tuple[str, D]:
    """Return what was dropped last under a name, or has that id, of all by their ids that a namespace remembers.

    NotFound, naming what there is; `what` begins it: `nothing`, or `no view`.
    """
    known = {key: each for key, each in gone.items() if each.space == space}
    meant = {
        key: each for key, each in known.items() if (key == id if id is not None else each.name == name[-1])
    }
    if not meant:
        names = sorted({quoted([each.name]) for each in known.values()})
        hint = f"there are {', '.join(names[:10])}" if names else "there is nothing that can be restored"
        wanted = quoted(name) + (f" with the id {id}" if id is not None else "")
        raise NotFound(
            f"{what} named {wanted} was dropped and can be restored: in its namespace {hint}. "
            "`lakelog dropped` lists all"
        )
    return max(meant.items(), key=lambda pair: pair[1].time_us)


def _entry(tree: NameTree, name: Identifier, id: str, gone: Dropped) -> DroppedEntry:
    return DroppedEntry(
        id=id,
        kind=gone.kind,
        name=name,
        location=tree.logs.url(gone.location),
        dropped_us=gone.time_us,
        kept_until_us=kept_until_us(gone.time_us),
        writer=_who_dropped(tree, id, gone),
    )


def _defined(path: Identifier, id: str, gone: DroppedDefinition) -> DroppedEntry:
    # Who dropped it stands in the namespace's log, among all that happened there: the audit tells.
    return DroppedEntry(
        id=id,
        kind=kind_of(gone.definition),
        name=(*path, gone.name),
        location="",
        dropped_us=gone.time_us,
        kept_until_us=kept_until_us(gone.time_us),
        writer={},
    )


def _who_dropped(tree: NameTree, id: str, gone: Dropped) -> dict[str, Json]:
    """Return what the commit says of its writer that sealed the log: its newest, as a rule."""
    log = tree.logs.unread(gone.location).log
    try:
        newest = log.load().version
        # A restore that did not happen may stand after the seal; another table at its place does seldom.
        for version in range(newest, 0, -1):
            entry = log.replay.entry(version, log.replay.get_versions([version])[0] or b"")
            if isinstance(entry, Commit) and entry.seals and entry.log_id == id:
                return dict(entry.writer)
            if isinstance(entry, Tombstone):
                break
    except (FormatError, NotFound):
        # That it can be listed does not depend on it; restoring it will say what is wrong.
        pass
    return {}
