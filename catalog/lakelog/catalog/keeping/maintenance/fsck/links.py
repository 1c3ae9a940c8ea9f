"""The two ends of a name: the namespace that has it, and the log that it leads to, which have to agree.

They are two logs, read one after the other, while names are made, moved and dropped. So a contradiction counts only
where both ends are known to have been so at one moment. It must not change anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, has_own_place
from lakelog.catalog.core.state import Entry, NamespaceState
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Log, View
from lakelog.log.checks.findings import Finding, Severity
from lakelog.log.checks.verify import Verified, read_decision
from lakelog.log.errors import LakelogError, StorageError

LOOKS_MAX = 5
"""What changes each time it is looked at is in use, and not damaged."""

REMOVES_IT = "lakelog fsck --repair removes the name; so does any lookup of it"


@dataclass(frozen=True, slots=True)
class Problem:
    """How a name and its log disagree. `half_done`: the log was sealed, and the name is to go. `foreign`: the log has
    another name, and nothing may be changed there because of this one."""

    finding: Finding
    half_done: bool = False
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A name, or an entry in the list of dropped objects, in the namespace at the location `parent`.

    With `dropped`, also a name in a namespace that was dropped itself.
    """

    parent: str
    space: str
    path: Identifier
    entry: Entry
    dropped: bool = False

    def is_there(self, logs: LogCache) -> bool:
        """Return whether the namespace has it now, as far as that can be read. A load of the namespace."""
        view = as_it_is(logs, self.parent)
        return view is None or self.is_in(view)

    def is_in(self, view: View[NamespaceState]) -> bool:
        named = view.state.entry(self.space, self.path[-1]) == self.entry
        if not self.dropped:
            return named and not view.sealed
        return self.entry.id in view.state.dropped or (view.sealed and named)

    def problem(self, verified: Verified[Any], linked_in: str | None, logs: LogCache) -> Problem | None:
        """Return how the name and the log that it leads to disagree, None where they do not."""
        view, entry, url = verified.view, self.entry, logs.url(self.entry.location)
        if view is None:
            return None
        if view.log_id != entry.id and (has_own_place(entry) or entry.id not in verified.log_ids):
            what = f"{shown(self.path)} is the log {entry.id}, but log {view.log_id} is there"
            return _damage("log-foreign", url, what, "restore the folder from a backup")
        if view.log_id != entry.id and not self.dropped:
            what = f"{shown(self.path)} is the log {entry.id}, which was dropped, and another log is at its place now"
            return _repairable("name-outlived", url, what, REMOVES_IT, half_done=verified.complete)
        if view.log_id != entry.id:
            return None
        if self.dropped and not view.sealed and verified.complete:
            what = f"{shown(self.path)} is in the list of dropped objects, but its log is not sealed"
            return _repairable("dropped-alive", url, what, "restore it by its id, or drop it again")
        if not self.dropped and view.sealed:
            what = f"{shown(self.path)} was dropped, and its name is still there"
            return _repairable("drop-unfinished", url, what, REMOVES_IT, half_done=verified.complete)
        if (
            linked_in is not None
            and linked_in != self.parent
            and not (self.dropped and is_elsewhere(entry.location))
        ):
            what = (
                f"{shown(self.path)} is linked in {logs.url(self.parent)}, but its log says that it is linked in "
                f"{logs.url(linked_in)}"
            )
            todo = "find out which of the two namespaces should have it, and restore the other from a backup"
            return _damage("link-disagrees", url, what, todo, foreign=True)
        name = None if self.dropped else view.state.link
        if name is not None and name.namespace == self.parent and name.name != self.path[-1]:
            what = f"{shown(self.path)} leads there, but the log says that its name is {quoted([name.name])}"
            return _damage(
                "link-disagrees",
                url,
                what,
                "find out which of the two is right, and restore the other from a backup",
                foreign=True,
            )
        return None


def both_there(one: Link, other: Link, logs: LogCache) -> bool:
    """Return whether two names that lead to one log exist at one moment: one stays while the other is read."""
    for _ in range(LOOKS_MAX):
        first, between, last = (as_it_is(logs, each.parent) for each in (one, other, one))
        if first is None or between is None or last is None:
            return True  # as far as it can be read
        if first.hash == last.hash:
            return one.is_in(first) and other.is_in(first if one.parent == other.parent else between)
    return False


def as_it_is(logs: LogCache, location: str) -> View[NamespaceState] | None:
    """Return a namespace read anew, None where damage prevents it: then what was read before is all there is."""
    try:
        return logs.namespace(location).log.load()
    except StorageError:
        raise
    except LakelogError:
        return None


def is_at_rest(log: Log[Any], verified: Verified[Any]) -> bool:
    """Return whether nothing has happened in a log since it was checked. One GET, and one of an open decision."""
    if log.store.get(log.keys.commit(verified.head + 1)) is not None:
        return False
    return verified.undecided is None or read_decision(log, verified.undecided).decision is None


def names_of(state: NamespaceState, id: str) -> list[tuple[str, str, Entry, bool]]:
    """Return space, name and entry of all that leads to that id in a namespace, and whether it is dropped."""
    found = [
        (space, name, entry, False)
        for space, names in state.entries.items()
        for name, entry in names.items()
        if entry.id == id
    ]
    was = state.dropped.get(id)
    if was is not None:
        found.append((was.space, was.name, Entry(kind=was.kind, id=id, location=was.location), True))
    return found


def shown(path: Iterable[str] | None) -> str:
    return "the root namespace" if not path else quoted(tuple(path))


def _damage(kind: str, where: str, what: str, todo: str, *, foreign: bool = False) -> Problem:
    finding = Finding(severity=Severity.DAMAGE, kind=kind, where=where, what=what, todo=todo)
    return Problem(finding, foreign=foreign)


def _repairable(kind: str, where: str, what: str, todo: str, *, half_done: bool = False) -> Problem:
    finding = Finding(severity=Severity.REPAIRABLE, kind=kind, where=where, what=what, todo=todo)
    return Problem(finding, half_done)
