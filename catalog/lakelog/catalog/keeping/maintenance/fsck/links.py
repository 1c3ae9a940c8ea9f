"""The two ends of a name: the namespace that has it, and the log that it leads to. They have to agree.

They are two logs, read one after the other, while names are made, moved and dropped. So a contradiction
counts only if both ends are known to have been so at the same moment. This module must not change anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, has_own_place
from lakelog.catalog.core.state import NamespaceEntry, NamespaceState
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Log, LogView
from lakelog.log.checks.findings import Finding, Severity
from lakelog.log.checks.verify import VerifiedLog, read_decision
from lakelog.log.errors import LakelogError, StorageError

LOOKS_MAX = 5
"""An object that changes at each read is in use, and not damaged."""

REMOVES_IT = "lakelog fsck --repair removes the name; so does any lookup of it"


@dataclass(frozen=True, slots=True)
class LinkProblem:
    """A disagreement of a name and its log.

    `half_done`: the log was sealed, and the name has to be removed. `foreign`: the log has another name, so
    nothing may be changed there because of this name.
    """

    finding: Finding
    half_done: bool = False
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class CheckedLink:
    """A name, or an entry in the list of dropped objects, in the namespace at the location `parent`.

    With `dropped`, it may also be a name in a namespace that was dropped itself.
    """

    parent: str
    space: str
    path: Identifier
    entry: NamespaceEntry
    dropped: bool = False

    def is_there(self, logs: LogCache) -> bool:
        """Return whether the namespace has it now, as far as that can be read. Loads the namespace."""
        view = as_it_is(logs, self.parent)
        return view is None or self.is_in(view)

    def is_in(self, view: LogView[NamespaceState]) -> bool:
        has_name = view.state.entry(self.space, self.path[-1]) == self.entry
        if not self.dropped:
            return has_name and not view.sealed
        return self.entry.id in view.state.dropped or (view.sealed and has_name)

    def problem(
        self, verified_log: VerifiedLog[Any], linked_in: str | None, logs: LogCache
    ) -> LinkProblem | None:
        """Return the disagreement of the name and the log that it leads to. None if there is none."""
        view, entry, url = verified_log.view, self.entry, logs.url(self.entry.location)
        if view is None:
            return None
        if view.log_id != entry.id and (has_own_place(entry) or entry.id not in verified_log.log_ids):
            text = f"{shown(self.path)} is the log {entry.id}, but log {view.log_id} is there"
            return _damage("log-foreign", url, text, "restore the folder from a backup")
        if view.log_id != entry.id and not self.dropped:
            text = f"{shown(self.path)} is the log {entry.id}, which was dropped, and another log is at its place now"
            return _repairable("name-outlived", url, text, REMOVES_IT, half_done=verified_log.complete)
        if view.log_id != entry.id:
            return None
        if self.dropped and not view.sealed and verified_log.complete:
            text = f"{shown(self.path)} is in the list of dropped objects, but its log is not sealed"
            return _repairable("dropped-alive", url, text, "restore it by its id, or drop it again")
        if not self.dropped and view.sealed:
            text = f"{shown(self.path)} was dropped, and its name is still there"
            return _repairable("drop-unfinished", url, text, REMOVES_IT, half_done=verified_log.complete)
        if (
            linked_in is not None
            and linked_in != self.parent
            and not (self.dropped and is_elsewhere(entry.location))
        ):
            text = (
                f"{shown(self.path)} is linked in {logs.url(self.parent)}, but its log says that it is linked in "
                f"{logs.url(linked_in)}"
            )
            todo = "find out which of the two namespaces should have it, and restore the other from a backup"
            return _damage("link-disagrees", url, text, todo, foreign=True)
        name = None if self.dropped else view.state.link
        if name is not None and name.namespace == self.parent and name.name != self.path[-1]:
            text = f"{shown(self.path)} leads there, but the log says that its name is {quoted([name.name])}"
            return _damage(
                "link-disagrees",
                url,
                text,
                "find out which of the two is right, and restore the other from a backup",
                foreign=True,
            )
        return None


def both_there(first_link: CheckedLink, other_link: CheckedLink, logs: LogCache) -> bool:
    """Return whether two names of a log exist at the same moment: the first stays while the second is read."""
    for _ in range(LOOKS_MAX):
        first, between, last = (as_it_is(logs, link.parent) for link in (first_link, other_link, first_link))
        if first is None or between is None or last is None:
            return True  # as far as it can be read
        if first.hash == last.hash:
            return first_link.is_in(first) and other_link.is_in(
                first if first_link.parent == other_link.parent else between
            )
    return False


def as_it_is(logs: LogCache, location: str) -> LogView[NamespaceState] | None:
    """Return a namespace, read again. None if damage prevents it: then the earlier read is all there is."""
    try:
        return logs.namespace(location).log.load()
    except StorageError:
        raise
    except LakelogError:
        return None


def is_at_rest(log: Log[Any], verified_log: VerifiedLog[Any]) -> bool:
    """Return whether nothing has happened in a log since its check.

    Makes a GET request, and another for an open decision.
    """
    if log.store.get(log.keys.commit(verified_log.head + 1)) is not None:
        return False
    return verified_log.undecided is None or read_decision(log, verified_log.undecided).decision is None


def names_of(state: NamespaceState, id: str) -> list[tuple[str, str, NamespaceEntry, bool]]:
    """Return the space, name and entry of all links to that id in a namespace, and whether each is dropped."""
    links = [(space, name, entry, False) for space, name, entry in state.all_logs() if entry.id == id]
    if (drop := state.dropped_log(id)) is not None:
        links.append((drop.space, drop.name, drop.entry, True))
    return links


def shown(path: Iterable[str] | None) -> str:
    return "the root namespace" if not path else quoted(tuple(path))


def _damage(kind: str, where: str, what: str, todo: str, *, foreign: bool = False) -> LinkProblem:
    issue = Finding(severity=Severity.DAMAGE, kind=kind, where=where, what=what, todo=todo)
    return LinkProblem(issue, foreign=foreign)


def _repairable(kind: str, where: str, what: str, todo: str, *, half_done: bool = False) -> LinkProblem:
    issue = Finding(severity=Severity.REPAIRABLE, kind=kind, where=where, what=what, todo=todo)
    return LinkProblem(issue, half_done)
