"""Finding objects by name: walks namespaces' logs from the warehouse's root down to a namespace or a table.

All known levels are checked again in a single parallel round, and unknown levels are read ahead; then all are
walked. A name may lead to a sealed log. Either it was read before the drop that unlinked it, or the table was
dropped by its place. In both cases the object does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.logs.cache import JointLogChange, LogCache
from lakelog.catalog.core.logs.commits import NothingToDo, Token, base_past_seals
from lakelog.catalog.core.logs.name_path import PathLevel, follow, known_on_path, read_path
from lakelog.catalog.core.logs.own_links import is_own, linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.definition import Definition
from lakelog.catalog.core.state.decoded_events import namespace_events
from lakelog.catalog.core.state.events import EntryLinked, EntryUnlinked, NamespaceCreated, encode
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    NAMESPACE,
    PROPERTIES,
    RELATION,
    TABLE,
    NamespaceState,
)
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import CommitConflict, NoSuchNamespace, NoSuchTable, NoSuchWarehouse
from lakelog.catalog.name_hints import meant_by, suggests_names
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, LogView
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
class FoundLog(Generic[S]):
    """A namespace or a table: its log, and its view that was fresh when it was found."""

    tracked: TrackedLog[S]
    view: LogView[S]


class NameTree:
    """The names of a warehouse."""

    def __init__(self, logs: LogCache) -> None:
        self.logs = logs

    # Finding

    def find_namespace(self, namespace: Identifier) -> FoundLog[NamespaceState] | None:
        """Return a namespace as it is now, or None if it does not exist, as the root of an empty
        warehouse.
        """
        return self._walk(namespace, self._refreshed(namespace, None))

    def namespace(self, namespace: Identifier) -> FoundLog[NamespaceState]:
        """Return a namespace as it is now. Raises NoSuchNamespace if it does not exist."""
        namespace_head = self.find_namespace(namespace)
        if namespace_head is None:
            raise self.missing_namespace(namespace)
        return namespace_head

    def listed(self, namespace: Identifier, space: str) -> NamespaceState:
        """Return a namespace as it is now, and note that all names of a space are read.

        The root of an empty warehouse is empty. Raises NoSuchNamespace if the namespace does not exist;
        NoSuchWarehouse for the names of a warehouse that does not exist.
        """
        namespace_head = self.find_namespace(namespace)
        if namespace_head is None:
            if not namespace:
                if space != PROPERTIES:
                    self.check_there()
                return NamespaceState()
            raise self.missing_namespace(namespace)
        namespace_head.tracked.transaction.note_name_read(space, None)
        return namespace_head.view.state

    def tables_below(self, namespace: Identifier) -> list[Identifier]:
        """Return the tables in all namespaces below a namespace, which costs a round for each level.

        A namespace that is dropped in between is left out. Raises NoSuchNamespace.
        """
        tables: list[Identifier] = []
        level, met = [(namespace, self.listed(namespace, NAMESPACE))], set[str]()
        while level:
            below: list[tuple[Identifier, str]] = []
            for path, state in level:
                if path != namespace:
                    tables += [(*path, name) for name in state.names(RELATION, TABLE)]
                for name, entry in state.logs(NAMESPACE):
                    if entry.location not in met:  # a namespace can be forged that leads to itself
                        met.add(entry.location)
                        below.append(((*path, name), entry.location))
            states = self.logs.in_parallel(lambda one: self._state_at(one[1]), below)
            level = [
                (path, state) for (path, _), state in zip(below, states, strict=True) if state is not None
            ]
        return tables

    def _state_at(self, location: str) -> NamespaceState | None:
        """Return a namespace by its place, and note that its names are read; None if it was dropped."""
        namespace_log = self.logs.namespace(location)
        try:
            view = namespace_log.current()
        except NotFound:
            return None
        if view.sealed:
            return None
        for space in (NAMESPACE, RELATION):
            namespace_log.transaction.note_name_read(space, None)
        return view.state

    def find_table(self, identifier: Identifier, *, looks: int = LOOKS_MAX) -> FoundLog[TableState] | None:
        """Return a table as it is now, or None."""
        namespace, name = identifier[:-1], identifier[-1]
        fresh = self._refreshed(namespace, name)
        parent = self._walk(namespace, fresh)
        if parent is not None:
            parent.tracked.transaction.note_name_read(RELATION, name)
        entry = parent.view.state.entry(RELATION, name) if parent is not None else None
        if parent is None or entry is None:
            return None
        table_log = self.logs.table(entry.location)
        try:
            view = self._view(table_log, fresh)
            if view.log_id != entry.id:
                # The view is of an earlier log at this place, or older than the name: a new read gives a
                # newer view.
                view = table_log.anew()
        except NotFound as error:
            raise _dangling(identifier, self.logs.url(entry.location)) from error
        _check_own(identifier, entry, view, self.logs)
        is_there = not view.sealed and view.log_id == entry.id
        if is_there and is_own(view, parent.tracked.location, name):
            return FoundLog(table_log, view)
        # The table was dropped or renamed after its namespace was read, or before that but after the table
        # was read. Perhaps another table has the name already. Or the table was dropped by its place.
        self.logs.check_cut()
        if not is_there and self.logs.is_a_cut:
            return None
        if looks and not self.logs.is_a_cut and (is_there or _leads_to_another(parent, name, entry)):
            return self.find_table(identifier, looks=looks - 1)
        if is_there:
            raise linked_elsewhere(quoted(identifier), self.logs.url(entry.location), view.state.link)
        # A look-up needs no right to write. If that is missing, another client removes the name.
        with suppress(PermissionDenied):
            self.unlink(parent, RELATION, name, entry)
        return None

    def older_table(self, identifier: Identifier, version: int) -> FoundLog[TableState] | None:
        """Return a version of a table whose newest version `find_table` could not read.

        None if the table had another name at that version. Only the newest version says where that name leads.
        """
        parent, name = self.known_namespace(identifier[:-1]), identifier[-1]
        entry = None if parent is None else parent.view.state.entry(RELATION, name)
        if parent is None or entry is None:
            return None
        table_log = self.logs.table(entry.location)
        view = table_log.view_at(version)
        if view.log_id != entry.id or view.sealed or not is_own(view, parent.tracked.location, name):
            return None
        return FoundLog(table_log, view)

    def known_namespace(self, namespace: Identifier) -> FoundLog[NamespaceState] | None:
        """Return a namespace in which a name was just looked up, as it was found then. Makes no request."""
        return self._walk(namespace, {log.location for log in known_on_path(self.logs, namespace)})

    def known_definition(self, identifier: Identifier) -> Definition | None:
        """Return the definition of a name that `find_table` has just found not to be a table's.

        Makes no request.
        """
        parent = self.known_namespace(identifier[:-1])
        definition = parent.view.state.definition(RELATION, identifier[-1]) if parent is not None else None
        return None if definition is None else definition.definition

    def table(self, identifier: Identifier) -> FoundLog[TableState]:
        """Return a table as it is now. Raises NoSuchTable if it does not exist, or is a view."""
        table = self.find_table(identifier)
        if table is None:
            if self.known_definition(identifier) is not None:
                raise NoSuchTable(
                    f"{quoted(identifier)} is a view, which has no rows of its own: read it by Spark, or get its "
                    "definition by load_view"
                )
            raise self.missing_table(identifier)
        return table

    def missing_table(self, identifier: Identifier) -> NoSuchTable:
        """Return the error for a name that `find_table` has just found not to be a table's."""
        return NoSuchTable(f"there is no table {quoted(identifier)}: {self.hint(identifier, RELATION)}")

    def missing_namespace(self, namespace: Identifier) -> NotFound:
        """Return the error for a name that `find_namespace` has just found not to be a namespace's."""
        hint = self.hint(namespace, NAMESPACE)
        if not namespace:
            return NoSuchWarehouse(hint)
        return NoSuchNamespace(f"there is no namespace {quoted(namespace)}: {hint}")

    def hint(self, path: Identifier, space: str) -> str:
        """Return what helps who asked for a name that was just found to be missing.

        Reads only namespaces that may have the name that is meant, and that were never read.
        """
        # A cut may be from before the warehouse was set up.
        may_be_later = self.logs.is_a_cut and not self.logs.places.is_missing_folder
        if not may_be_later and self.known_namespace(()) is None:
            return self.logs.places.absence()
        if suggests_names():
            if space == RELATION and self._is_known(path, NAMESPACE):
                return "it is a namespace"
            if space == NAMESPACE and self._is_known(path, RELATION):
                return "it is a table or a view"
            if meant := meant_by(path, space, self._names_in):
                return meant
        if space == RELATION and len(path) == 1 and not self._known_names((), RELATION):
            return "write its namespace before the name, as in `namespace`.`table`"
        return f"list its {'parent' if space == NAMESPACE else 'namespace'} to see which exist"

    def check_there(self) -> None:
        """Raise NoSuchWarehouse if nothing is at the warehouse's place, after its root was found to be missing.

        Makes no request.
        """
        self.logs.places.check_there(is_empty=not self.logs.is_a_cut)

    def _names_in(self, namespace: Identifier, space: str) -> Collection[str]:
        """Return a namespace's names of a space. Reads the namespace if it was never read."""
        with suppress(LakelogError):
            if self.known_namespace(namespace) is None:
                self.find_namespace(namespace)
        return self._known_names(namespace, space)

    def _is_known(self, path: Identifier, space: str) -> bool:
        return bool(path) and path[-1] in self._known_names(path[:-1], space)

    def _known_names(self, namespace: Identifier, space: str) -> Collection[str]:
        """Return a namespace's names of a space, as they were found."""
        namespace_head = self.known_namespace(namespace)
        return namespace_head.view.state.entries.get(space, {}) if namespace_head is not None else ()

    def _refreshed(self, namespace: Identifier, table: str | None) -> set[str]:
        """Read the levels of a path; return the locations that are now fresh."""
        self.logs.prepare_path(namespace, table)
        if self.logs.is_a_cut:
            return {tracked_log.location for tracked_log in known_on_path(self.logs, namespace, table)}
        return read_path(self.logs, namespace, table)

    def _walk(
        self, namespace: Identifier, fresh: set[str], *, looks: int = LOOKS_MAX
    ) -> FoundLog[NamespaceState] | None:
        def look(
            path: Identifier, entry: NamespaceEntry | None, tracked: TrackedLog[NamespaceState]
        ) -> LogView[NamespaceState] | None:
            if entry is None:
                return self._root_view(tracked, fresh)
            return self._below(path, entry, tracked, fresh)

        above: PathLevel | None = None
        for level in follow(self.logs, namespace, look):
            if above is not None and level.view.sealed:
                # The namespace was dropped after its parent was read, and perhaps re-created in the same
                # moment.
                self.logs.check_cut()
                if looks and not self.logs.is_a_cut and _leads_elsewhere(above, level):
                    return self._walk(namespace, set(), looks=looks - 1)
                return None
            if above is not None and not is_own(level.view, above.tracked.location, level.path[-1]):
                # The namespace was moved between the reads of the two, or the name was forged.
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
        return FoundLog(above.tracked, above.view)

    def _root_view(
        self, tracked: TrackedLog[NamespaceState], fresh: set[str]
    ) -> LogView[NamespaceState] | None:
        try:
            return self._view(tracked, fresh)
        except NotFound:
            # A cut can be from before the warehouse was set up.
            if self.logs.is_a_cut or not self._has_any_log():
                return None
            return self._required_root(tracked)

    def _below(
        self, path: Identifier, entry: NamespaceEntry, tracked: TrackedLog[NamespaceState], fresh: set[str]
    ) -> LogView[NamespaceState]:
        try:
            view = self._view(tracked, fresh)
        except NotFound as error:
            raise _dangling(path, self.logs.url(entry.location)) from error
        _check_own(path, entry, view, self.logs)
        return view

    def _view(self, tracked: TrackedLog[Any], fresh: set[str]) -> LogView[Any]:
        known_view = tracked.known
        if known_view is not None and tracked.location in fresh:
            return known_view
        view = tracked.current()
        fresh.add(tracked.location)
        return view

    def known_on_path(self, path: Identifier) -> list[TrackedLog[Any]]:
        """Return the logs that lead to the namespace or table that a path names, as far as known.

        Makes no request.
        """
        as_table = known_on_path(self.logs, path[:-1], path[-1]) if path else []
        return list(dict.fromkeys([*as_table, *known_on_path(self.logs, path)]))

    # Setting up

    def root(self) -> FoundLog[NamespaceState]:
        """Return the root namespace, and set the warehouse up first if it is absent or empty."""
        root = self.find_namespace(())
        if root is not None:
            return root
        root_log = self.logs.namespace("")
        if self.logs.is_a_cut and self._has_any_log():
            return FoundLog(root_log, self._required_root(root_log))
        draft = Draft(events=encode([NamespaceCreated(properties={})]))
        try:
            view = root_log.create(draft, log_id=self.logs.new_id())
        except AlreadyExists:
            view = root_log.current()
        return FoundLog(root_log, view)

    def writable(self, namespace: Identifier) -> FoundLog[NamespaceState]:
        """Return a namespace for a change in it; a missing root is set up."""
        return self.namespace(namespace) if namespace else self.root()

    def _has_any_log(self) -> bool:
        """Return whether the warehouse holds any log.

        Raises InvalidInput for any object that is not lakelog's. Costs a LIST, and is called only if there is
        no root log.
        """
        has_log = False
        for key in self.logs.places.store(self.logs.warehouse).list_after(""):
            has_log = has_log or "_log/" in key  # files of a staged table can be there before the root
            if not _OWN_KEY.match(key):
                raise InvalidInput(
                    f"{self.logs.warehouse} is not a lakelog warehouse: it has no log but holds {key!r}. "
                    "Give an empty or new folder as the warehouse, or check the path"
                )
        return has_log

    def _required_root(self, tracked: TrackedLog[NamespaceState]) -> LogView[NamespaceState]:
        """Return the root, which must exist, because its log is created before any other."""
        try:
            return tracked.current()
        except NotFound as error:
            raise FormatError(
                f"{self.logs.warehouse} holds namespaces or tables, but the log of its root namespace is missing: "
                "restore the folder _log from a backup"
            ) from error

    # Unlinking

    def is_taken(self, identifier: Identifier) -> bool:
        """Return whether a name leads to a table, for a caller that is about to give it to a table.

        A name whose table no longer exists is unlinked. In a transaction that is one of its steps.
        """
        if self.find_table(identifier) is not None:
            return True
        parent, name = self.find_namespace(identifier[:-1]) if self.logs.is_a_cut else None, identifier[-1]
        entry = parent.view.state.entry(RELATION, name) if parent is not None else None
        if parent is None or entry is None:
            return False
        was_seen = not self.logs.table(entry.location).transaction.creates_log
        unlink_event = EntryUnlinked(space=RELATION, name=name, id=entry.id, dropped=was_seen)

        def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
            events = (event for commit in passed_commits for event in namespace_events(commit))
            if any(isinstance(event, EntryLinked) and event.id == entry.id for event in events):
                raise CommitConflict(
                    f"the table {quoted(identifier)} had been dropped, and was restored while its name was given to "
                    "another table: load it again",
                    version=view.version,
                )
            if view.state.entry(RELATION, name) != entry:
                raise NothingToDo("another client has unlinked the name")
            return Draft(events=encode([unlink_event]))

        commit_in(parent, identifier[:-1], decide, None)
        return False

    def unlink(self, parent: FoundLog[NamespaceState], space: str, name: str, entry: NamespaceEntry) -> None:
        """Remove a name whose log is sealed but still linked.

        Does nothing if it is removed already or the log was restored. The view of the log can be older than
        the view of its namespace. So an intent locks the name first, as every restore has to, and then the
        log is read again.
        """
        logs = self.logs
        target_log: TrackedLog[Any] = (
            logs.table(entry.location) if space == RELATION else logs.namespace(entry.location)
        )

        def check_gone(view: LogView[Any]) -> None:
            if view.log_id == entry.id and not view.sealed:
                raise _AlreadyDone

        def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
            if view.state.entry(space, name) != entry:
                raise _AlreadyDone
            unlink_event = EntryUnlinked(space=space, name=name, id=entry.id, dropped=True)
            return Draft(events=encode([unlink_event]))

        def validate() -> None:
            check_gone(target_log.offer(target_log.log.refresh_settled(target_log.at_its_place())))

        try:
            check_gone(target_log.at_its_place())
            change = JointLogChange(parent.tracked, parent.tracked.at_least(parent.view.version), decide)
            logs.commit_together([change], validate=validate)
        except (_AlreadyDone, LogSealed):
            # Another client finished this drop, undid it, or dropped the whole namespace: nothing is left to
            # do.
            return


def commit_in(
    found: FoundLog[NamespaceState],
    namespace: Identifier,
    decide: Decide[NamespaceState],
    token: Token | None,
) -> None:
    """Commit a change of a namespace, together with concurrent commits of other threads.

    `decide` does no I/O. Raises NoSuchNamespace if it was dropped in the meantime, and the errors of
    `decide`.
    """
    namespace_log = found.tracked
    try:
        namespace_log.commit(
            namespace_log.at_least(found.view.version),
            decide,
            commit_id=token.commit_id if token else None,
            base=token.base(namespace_log) if token else None,
            shared=True,
        )
    except LogSealed as error:
        raise no_such_namespace(namespace) from error


def changes_of(
    decisions: Sequence[tuple[FoundLog[Any], Decide[Any]]], token: Token | None
) -> list[JointLogChange[Any]]:
    """Return the changes of a single commit to several logs, each with its decision."""
    return [
        JointLogChange(
            target.tracked, target.view, decide, base_past_seals(token, target.tracked, target.view)
        )
        for target, decide in decisions
    ]


def check_not_forgotten(state: NamespaceState, id: str, title: str) -> None:
    """Raise CommitConflict if vacuum took a log for abandoned, because it may have been deleted."""
    if id in state.forgotten:
        raise CommitConflict(
            f"the creation of {title} took so long that vacuum took it for abandoned: repeat the change",
            version=0,
        )


class _AlreadyDone(LakelogError):
    """Ends a commit whose effect exists already, or is no longer needed."""

    kind = "already-done"


def no_such_namespace(namespace: Identifier) -> NoSuchNamespace:
    return NoSuchNamespace(f"there is no namespace {quoted(namespace)}: list its parent to see which exist")


def no_such_table(identifier: Identifier) -> NoSuchTable:
    """Return the error of a table name that leads to nothing."""
    return NoSuchTable(f"there is no table {quoted(identifier)}: list its namespace to see which exist")


def has_own_place(entry: NamespaceEntry) -> bool:
    """Return whether the catalog chose the place, which has the log's id in its name.

    Then it holds the same log for ever.
    """
    return entry.location.endswith(f"-{entry.id}")


def check_at_place(location: str, view: LogView[TableState], logs: LogCache) -> None:
    """Raise FormatError if a place that the catalog chose for a table holds another table's log."""
    id_match = _NAMED_BY_ID.search(location)
    if id_match is not None and id_match[1] != view.log_id and not view.state.current.own_location:
        raise FormatError(
            f"{logs.url(location)} is the place of the log {id_match[1]}, but holds the log {view.log_id}: objects "
            "were copied or moved without the catalog; restore them"
        )


def _check_own(identifier: Identifier, entry: NamespaceEntry, view: LogView[Any], logs: LogCache) -> None:
    """Raise FormatError if a place that belongs to one log holds another.

    The name must not lead to the other log, and must not be removed.
    """
    if view.log_id != entry.id and has_own_place(entry):
        raise FormatError(
            f"in the catalog, {quoted(identifier)} is the log {entry.id}, but {logs.url(entry.location)} holds the log "
            f"{view.log_id}: objects were copied or moved without the catalog; restore them"
        )


def _leads_to_another(parent: FoundLog[NamespaceState], name: str, entry: NamespaceEntry) -> bool:
    """Return whether the name of a table that turned out to be gone now leads to another table."""
    return parent.tracked.current().state.entry(RELATION, name) != entry


def _leads_elsewhere(parent: PathLevel, child: PathLevel) -> bool:
    """Return whether the name of a namespace that turned out to be sealed now leads to another namespace."""
    return parent.tracked.current().state.entry(NAMESPACE, child.path[-1]) != child.entry


def _dangling(identifier: Identifier, url: str) -> FormatError:
    return FormatError(
        f"in the catalog, {quoted(identifier)} is at {url}, but there is no log at that place: "
        "objects were removed or moved without the catalog; restore them"
    )
