"""Finding objects by name: walks namespaces' logs from the warehouse's root down to a namespace or a table.

All known levels are re-checked in one parallel round, and those that were not known are read ahead; then all are
walked. A name that leads to a sealed log was read before the drop that unlinked it, or the table was dropped by its
place: either way the object does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.logs.cache import LogCache, LogChange
from lakelog.catalog.core.logs.commits import NothingToDo, Token, base_past_seals
from lakelog.catalog.core.logs.name_path import Level, follow, known_on_path, read_path
from lakelog.catalog.core.logs.own_links import is_own, linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema import Definition
from lakelog.catalog.core.state import (
    NAMESPACE,
    PROPERTIES,
    RELATION,
    Entry,
    EntryLinked,
    EntryUnlinked,
    NamespaceCreated,
    NamespaceState,
    TableState,
    encode,
    namespace_events,
)
from lakelog.catalog.errors import CommitConflict, NoSuchNamespace, NoSuchTable
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.nearest import nearest
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import (
    AlreadyExists,
    FormatError,
    InvalidInput,
    LakelogError,
    LogSealed,
    NotFound,
    PermissionDenied,
)
from lakelog.log.placing import Decide

S = TypeVar("S")

LOOKS_MAX = 3

_OWN_KEY = re.compile(
    r"_log/([0-9]{20}\.json|latest\.json|_?[a-z]+/)|_(txn|cut|doctor|rest)/|[nt]-[a-z2-7]{26}/"
)

_NAMED_BY_ID = re.compile(r"(?:^|/)t-([a-z2-7]{26})$")


@dataclass(frozen=True, slots=True)
class Found(Generic[S]):
    """A namespace or a table: its log, and its view that was fresh when it was found."""

    tracked: TrackedLog[S]
    view: View[S]


class NameTree:
    """The names of one warehouse."""

    def __init__(self, logs: LogCache) -> None:
        self.logs = logs

    # Finding

    def find_namespace(self, namespace: Identifier) -> Found[NamespaceState] | None:
        """Return a namespace as it is now, or None if it does not exist (also for the root of an empty warehouse)."""
        return self._walk(namespace, self._refreshed(namespace, None))

    def namespace(self, namespace: Identifier) -> Found[NamespaceState]:
        """Return a namespace as it is now. NoSuchNamespace if it does not exist."""
        found = self.find_namespace(namespace)
        if found is None:
            raise no_such_namespace(namespace, self._like(namespace, NAMESPACE))
        return found

    def listed(self, namespace: Identifier, space: str) -> NamespaceState:
        """Return a namespace as it is now, and note that all of one space is read. NoSuchNamespace if it does not
        exist, NoSuchWarehouse for the names of one that does not exist; the root of an empty one is empty."""
        found = self.find_namespace(namespace)
        if found is None:
            if not namespace:
                if space != PROPERTIES:
                    self.logs.places.check_there()
                return NamespaceState()
            raise no_such_namespace(namespace, self._like(namespace, NAMESPACE))
        found.tracked.transaction.note_name_read(space, None)
        return found.view.state

    def find_table(self, identifier: Identifier, *, looks: int = LOOKS_MAX) -> Found[TableState] | None:
        """Return a table as it is now, or None."""
        namespace, name = identifier[:-1], identifier[-1]
        fresh = self._refreshed(namespace, name)
        found = self._walk(namespace, fresh)
        if found is not None:
            found.tracked.transaction.note_name_read(RELATION, name)
        entry = found.view.state.entry(RELATION, name) if found is not None else None
        if found is None or entry is None:
            return None
        tracked = self.logs.table(entry.location)
        try:
            view = self._view(tracked, fresh)
            if view.log_id != entry.id:
                # The view is of an earlier log at this place, or older than the name: one that is read now is newer.
                view = tracked.anew()
        except NotFound as error:
            raise _dangling(identifier, self.logs.url(entry.location)) from error
        _check_own(identifier, entry, view, self.logs)
        is_there = not view.sealed and view.log_id == entry.id
        if is_there and is_own(view, found.tracked.location, name):
            return Found(tracked, view)
        # Dropped or renamed after its namespace was read, or before, while the table was read before that; perhaps
        # another has the name already. Or dropped by its place.
        self.logs.check_cut()
        if not is_there and self.logs.is_a_cut:
            return None
        if looks and not self.logs.is_a_cut and (is_there or _leads_to_another(found, name, entry)):
            return self.find_table(identifier, looks=looks - 1)
        if is_there:
            raise linked_elsewhere(quoted(identifier), self.logs.url(entry.location), view.state.link)
        # Looking up needs no right to write: where that is missing, another client removes the name.
        with suppress(PermissionDenied):
            self.unlink(found, RELATION, name, entry)
        return None

    def known_namespace(self, namespace: Identifier) -> Found[NamespaceState] | None:
        """Return a namespace in which a name was just looked up, as it was found then. No request."""
        return self._walk(namespace, {each.location for each in known_on_path(self.logs, namespace)})

    def known_definition(self, identifier: Identifier) -> Definition | None:
        """Return the definition of a name that `find_table` has just found not to be a table's. No request."""
        found = self.known_namespace(identifier[:-1])
        defined = found.view.state.definition(RELATION, identifier[-1]) if found is not None else None
        return None if defined is None else defined.definition

    def table(self, identifier: Identifier) -> Found[TableState]:
        """Return a table as it is now. NoSuchTable if it does not exist, also for a view."""
        found = self.find_table(identifier)
        if found is None:
            if self.known_definition(identifier) is not None:
                raise NoSuchTable(
                    f"{quoted(identifier)} is a view, which has no rows of its own: read it by Spark, or get its "
                    "definition by load_view"
                )
            raise self.missing_table(identifier)
        return found

    def missing_table(self, identifier: Identifier) -> NoSuchTable:
        """Return the error for a name that `find_table` has just found not to be a table's. No request."""
        return no_such_table(identifier, self._like(identifier, RELATION))

    def _like(self, path: Identifier, space: str) -> list[str]:
        """Return names like `path`, by the first of its parts that is not there. No request."""
        for depth, part in enumerate(path):
            found = self.known_namespace(path[:depth])
            if found is None:
                break
            within = space if depth == len(path) - 1 else NAMESPACE
            state = found.view.state
            names = {*state.entries.get(within, {}), *state.definitions.get(within, {})}
            if part not in names:
                return [quoted((*path[:depth], each, *path[depth + 1 :])) for each in nearest(part, names)]
        return []

    def _refreshed(self, namespace: Identifier, table: str | None) -> set[str]:
        """Read the levels of a path; return the locations that are now fresh."""
        self.logs.prepare_path(namespace, table)
        if self.logs.is_a_cut:
            return {tracked.location for tracked in known_on_path(self.logs, namespace, table)}
        return read_path(self.logs, namespace, table)

    def _walk(
        self, namespace: Identifier, fresh: set[str], *, looks: int = LOOKS_MAX
    ) -> Found[NamespaceState] | None:
        def look(
            path: Identifier, entry: Entry | None, tracked: TrackedLog[NamespaceState]
        ) -> View[NamespaceState] | None:
            if entry is None:
                return self._root_view(tracked, fresh)
            return self._below(path, entry, tracked, fresh)

        above: Level | None = None
        for level in follow(self.logs, namespace, look):
            if above is not None and level.view.sealed:
                # Dropped after its parent was read, and perhaps re-created in the same moment.
                self.logs.check_cut()
                if looks and not self.logs.is_a_cut and _leads_elsewhere(above, level):
                    return self._walk(namespace, set(), looks=looks - 1)
                return None
            if above is not None and not is_own(level.view, above.tracked.location, level.path[-1]):
                # Moved between the reads of the two; or the name was forged.
                self.logs.check_cut()
                if looks and not self.logs.is_a_cut:
                    return self._walk(namespace, set(), looks=looks - 1)
                raise linked_elsewhere(
                    quoted(level.path), self.logs.url(level.tracked.location), level.view.state.link
                )
            if level.path != namespace:
                level.tracked.transaction.note_name_read(NAMESPACE, namespace[len(level.path)])
            above = level
        if above is None or above.path != namespace:
            return None
        return Found(above.tracked, above.view)

    def _root_view(self, tracked: TrackedLog[NamespaceState], fresh: set[str]) -> View[NamespaceState] | None:
        try:
            return self._view(tracked, fresh)
        except NotFound:
            # A cut can be from before the warehouse was set up.
            if self.logs.is_a_cut or not self._has_any_log():
                return None
            return self._required_root(tracked)

    def _below(
        self, path: Identifier, entry: Entry, tracked: TrackedLog[NamespaceState], fresh: set[str]
    ) -> View[NamespaceState]:
        try:
            view = self._view(tracked, fresh)
        except NotFound as error:
            raise _dangling(path, self.logs.url(entry.location)) from error
        _check_own(path, entry, view, self.logs)
        return view

    def _view(self, tracked: TrackedLog[Any], fresh: set[str]) -> View[Any]:
        known = tracked.known
        if known is not None and tracked.location in fresh:
            return known
        view = tracked.current()
        fresh.add(tracked.location)
        return view

    def known_on_path(self, path: Identifier) -> list[TrackedLog[Any]]:
        """Return the logs that lead to the namespace or table that a path names, as far as known. No request."""
        as_table = known_on_path(self.logs, path[:-1], path[-1]) if path else []
        return list(dict.fromkeys([*as_table, *known_on_path(self.logs, path)]))

    # Setting up

    def root(self) -> Found[NamespaceState]:
        """Return the root namespace, setting the warehouse up if it is absent or empty."""
        found = self.find_namespace(())
        if found is not None:
            return found
        tracked = self.logs.namespace("")
        if self.logs.is_a_cut and self._has_any_log():
            return Found(tracked, self._required_root(tracked))
        draft = Draft(events=encode([NamespaceCreated(properties={})]))
        try:
            view = tracked.create(draft, log_id=self.logs.new_id())
        except AlreadyExists:
            view = tracked.current()
        return Found(tracked, view)

    def writable(self, namespace: Identifier) -> Found[NamespaceState]:
        """Return a namespace for a change in it; a missing root is set up."""
        return self.namespace(namespace) if namespace else self.root()

    def _has_any_log(self) -> bool:
        """Return whether the warehouse holds any log; InvalidInput for any object that is not lakelog's.

        Costs a LIST; called only where there is no root log.
        """
        found = False
        for key in self.logs.places.store(self.logs.warehouse).list_after(""):
            found = found or "_log/" in key  # files of a staged table can be there before the root
            if not _OWN_KEY.match(key):
                raise InvalidInput(
                    f"{self.logs.warehouse} is not a lakelog warehouse: it has no log but holds {key!r}. "
                    "Give an empty or new folder as the warehouse, or check the path"
                )
        return found

    def _required_root(self, tracked: TrackedLog[NamespaceState]) -> View[NamespaceState]:
        """Return the root, which must exist: its log is created before any other."""
        try:
            return tracked.current()
        except NotFound as error:
            raise FormatError(
                f"{self.logs.warehouse} holds namespaces or tables, but the log of its root namespace is missing: "
                "restore the folder _log from a backup"
            ) from error

    # Unlinking

    def is_taken(self, identifier: Identifier) -> bool:
        """Return whether a name leads to a table, for a caller that is about to give it to one. A name whose table no
        longer exists is unlinked: in a transaction, by a step of it."""
        if self.find_table(identifier) is not None:
            return True
        parent, name = self.find_namespace(identifier[:-1]) if self.logs.is_a_cut else None, identifier[-1]
        entry = parent.view.state.entry(RELATION, name) if parent is not None else None
        if parent is None or entry is None:
            return False
        was_seen = not self.logs.table(entry.location).transaction.creates_log
        unlinked = EntryUnlinked(space=RELATION, name=name, id=entry.id, dropped=was_seen)

        def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
            events = (event for commit in passed for event in namespace_events(commit))
            if any(isinstance(event, EntryLinked) and event.id == entry.id for event in events):
                raise CommitConflict(
                    f"the table {quoted(identifier)} had been dropped, and was restored while its name was given to "
                    "another table: load it again",
                    version=view.version,
                )
            if view.state.entry(RELATION, name) != entry:
                raise NothingToDo("another client has unlinked the name")
            return Draft(events=encode([unlinked]))

        commit_in(parent, identifier[:-1], decide, None)
        return False

    def unlink(self, parent: Found[NamespaceState], space: str, name: str, entry: Entry) -> None:
        """Remove a name whose log was sealed by itself, unless it is removed already or the log was restored.

        The view of the log can be older than the view of its namespace. So an intent locks the name first, as every
        restore has to, and then the log is read once more.
        """
        logs = self.logs
        tracked: TrackedLog[Any] = (
            logs.table(entry.location) if space == RELATION else logs.namespace(entry.location)
        )

        def check_gone(view: View[Any]) -> None:
            if view.log_id == entry.id and not view.sealed:
                raise _AlreadyDone

        def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
            if view.state.entry(space, name) != entry:
                raise _AlreadyDone
            unlinked = EntryUnlinked(space=space, name=name, id=entry.id, dropped=True)
            return Draft(events=encode([unlinked]))

        def validate() -> None:
            check_gone(tracked.offer(tracked.log.refresh_settled(tracked.at_its_place())))

        try:
            check_gone(tracked.at_its_place())
            change = LogChange(parent.tracked, parent.tracked.at_least(parent.view.version), decide)
            logs.commit_together([change], validate=validate)
        except (_AlreadyDone, LogSealed):
            # Another client finished this drop, undid it, or dropped the whole namespace: nothing is left to do.
            return


def commit_in(
    found: Found[NamespaceState],
    namespace: Identifier,
    decide: Decide[NamespaceState],
    token: Token | None,
) -> None:
    """Commit a change of a namespace, with what other threads commit meanwhile: `decide` does no I/O. NoSuchNamespace
    when it was dropped meanwhile; raises what `decide` raises."""
    tracked = found.tracked
    try:
        tracked.commit(
            tracked.at_least(found.view.version),
            decide,
            commit_id=token.commit_id if token else None,
            base=token.base(tracked) if token else None,
            shared=True,
        )
    except LogSealed as error:
        raise no_such_namespace(namespace) from error


def changes_of(
    decisions: Sequence[tuple[Found[Any], Decide[Any]]], token: Token | None
) -> list[LogChange[Any]]:
    """Return the changes of one commit to several logs, each with its decision."""
    return [
        LogChange(each.tracked, each.view, decide, base_past_seals(token, each.tracked, each.view))
        for each, decide in decisions
    ]


def check_not_forgotten(state: NamespaceState, id: str, title: str) -> None:
    """Refuse to link a log that vacuum took for abandoned: it may have been deleted."""
    if id in state.forgotten:
        raise CommitConflict(
            f"the creation of {title} took so long that vacuum took it for abandoned: run the statement again",
            version=0,
        )


class _AlreadyDone(LakelogError):
    """Ends a commit whose effect exists already, or is no longer wanted."""

    kind = "already-done"


def no_such_namespace(namespace: Identifier, like: Sequence[str] = ()) -> NoSuchNamespace:
    if like:
        return NoSuchNamespace(
            f"there is no namespace {quoted(namespace)}: did you mean {' or '.join(like)}?"
        )
    return NoSuchNamespace(f"there is no namespace {quoted(namespace)}: list its parent to see which exist")


def no_such_table(identifier: Identifier, like: Sequence[str] = ()) -> NoSuchTable:
    if like:
        return NoSuchTable(f"there is no table {quoted(identifier)}: did you mean {' or '.join(like)}?")
    return NoSuchTable(f"there is no table {quoted(identifier)}: list its namespace to see which exist")


def has_own_place(entry: Entry) -> bool:
    """Whether the catalog chose the place: then it holds one log for ever, whose id is in the folder's name."""
    return entry.location.endswith(f"-{entry.id}")


def check_at_place(location: str, view: View[TableState], logs: LogCache) -> None:
    """Raise FormatError where a place that the catalog chose for one table holds another's log."""
    named = _NAMED_BY_ID.search(location)
    if named is not None and named[1] != view.log_id and not view.state.current.own_location:
        raise FormatError(
            f"{logs.url(location)} is the place of the log {named[1]}, but holds the log {view.log_id}: objects "
            "were copied or moved without the catalog; restore them"
        )


def _check_own(identifier: Identifier, entry: Entry, view: View[Any], logs: LogCache) -> None:
    """Raise FormatError where a place that belongs to one log holds another: the name must not lead to that, and must
    not be removed."""
    if view.log_id != entry.id and has_own_place(entry):
        raise FormatError(
            f"in the catalog, {quoted(identifier)} is the log {entry.id}, but {logs.url(entry.location)} holds the log "
            f"{view.log_id}: objects were copied or moved without the catalog; restore them"
        )


def _leads_to_another(parent: Found[NamespaceState], name: str, entry: Entry) -> bool:
    """Return whether the name of a table that turned out to be gone now leads to another one."""
    return parent.tracked.current().state.entry(RELATION, name) != entry


def _leads_elsewhere(parent: Level, child: Level) -> bool:
    """Return whether the name of a namespace that turned out to be sealed now leads to another one."""
    return parent.tracked.current().state.entry(NAMESPACE, child.path[-1]) != child.entry


def _dangling(identifier: Identifier, url: str) -> FormatError:
    return FormatError(
        f"in the catalog, {quoted(identifier)} is at {url}, but there is no log at that place: "
        "objects were removed or moved without the catalog; restore them"
    )
