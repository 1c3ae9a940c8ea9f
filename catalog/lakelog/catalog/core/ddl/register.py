"""Giving a name to a table that has none: its log exists at a place, and no namespace leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.logs.commits import Token, commit_changes, was_applied_anywhere
from lakelog.catalog.core.logs.name_tree import FoundLog, NameTree, changes_of, check_at_place
from lakelog.catalog.core.logs.own_folders import check_not_own
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import (
    EntryLinked,
    TableCreated,
    TableEvent,
    TableMoved,
    TableRestored,
    encode,
)
from lakelog.catalog.core.state.namespace_state import RELATION, TABLE, NamespaceState
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import NoSuchTable, TableExists
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import InvalidInput, NotFound, Unsupported
from lakelog.log.following import or_unknown


def register_table(
    tree: NameTree, identifier: Identifier, location: str, take_over: bool, token: Token | None
) -> FoundLog[TableState]:
    """Give the name `identifier` to the table at `location`, a URL or folder, with its history.

    Makes a single commit of the namespace and the table. Restores a dropped table that no namespace lists as
    dropped any more. Raises NoSuchTable or NoSuchNamespace; TableExists if the name is taken, or another name
    leads to the table.
    """
    check_name(identifier[-1], "table")
    check_not_own(location, of_ids=False)
    table_log = tree.logs.table(tree.logs.location(location))
    if token is not None and was_applied_anywhere(tree.logs, token):
        with or_unknown(token.commit_id, location):
            return FoundLog(table_log, table_log.at_its_place())
    goal = tree.namespace(identifier[:-1])
    if tree.find_table(identifier) is not None:
        raise staging.table_exists(identifier)
    view = _view_at(tree, table_log, location)
    _check_unlinked(tree, view, location, take_over)
    if tree.logs.is_a_cut and view.sealed:
        raise Unsupported(
            f"the table at {location} was dropped, and cannot be restored in a transaction: register it before or after"
        )

    def link(current_view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        staging.check_free(current_view.state, identifier)
        link_event = EntryLinked(
            space=RELATION,
            name=identifier[-1],
            kind=TABLE,
            id=view.log_id,
            location=table_log.location,
        )
        return Draft(events=encode([link_event]))

    def move(current_view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        if (
            current_view.log_id != view.log_id
            or current_view.sealed != view.sealed
            or _is_linked(passed_commits)
        ):
            raise TableExists(
                f"the table at {location} was registered, dropped or moved by another client meanwhile: look it up "
                "again"
            )
        into: dict[str, Any] = {"namespace": goal.tracked.location, "name": identifier[-1]}
        if view.sealed:
            return Draft(events=encode([TableRestored(**into)]), restores=True)
        return Draft(events=encode([TableMoved(**into)]))

    commit_changes(tree.logs, changes_of([(goal, link), (FoundLog(table_log, view), move)], token), token)
    return FoundLog(table_log, table_log.known or view)


def _view_at(tree: NameTree, tracked: TrackedLog[TableState], location: str) -> LogView[TableState]:
    try:
        view = tracked.at_its_place()
    except NotFound as error:
        raise NoSuchTable(f"there is no table at {location}: check the path") from error
    if view.purged:
        raise NoSuchTable(
            f"the table at {location} was dropped, and its files are deleted: it cannot be registered"
        )
    if not view.sealed:
        check_at_place(tracked.location, view, tree.logs)
    return view


def _check_unlinked(tree: NameTree, view: LogView[TableState], location: str, take_over: bool) -> None:
    """Refuse a table that a name leads to, or that can be restored under a name.

    Its log has the namespace that linked it last; only that namespace knows whether a name leads to it. A
    namespace that this warehouse does not have belongs to another warehouse, which cannot be read from here.
    """
    last = view.state.link
    if last is None:
        return
    namespace = tree.logs.namespace(last.namespace)
    state = _state_of(namespace)
    if state is None:
        if not (take_over or view.sealed):
            raise TableExists(
                f"the log of the table at {location} names a namespace of another warehouse, which links it as "
                f"{last.name}: drop it there first (its data stays), or, if it is no longer used there, take it over "
                "with take_over => true"
            )
        return
    links = [(name, entry) for name, entry in state.logs(RELATION) if entry.id == view.log_id]
    for name, entry in links:
        if not view.sealed:
            raise TableExists(
                f"the table at {location} already has the name {quoted([name])}, in the namespace that links it: use "
                "or rename that"
            )
        # The table was dropped by its place. The name leads nowhere, and must not lead to the table that is
        # restored here.
        tree.unlink(FoundLog(namespace, namespace.current()), RELATION, name, entry)
    if view.log_id in state.dropped:
        raise TableExists(
            f"the table at {location} was dropped as {quoted([state.dropped[view.log_id].name])} and can be restored: "
            f"CALL <catalog>.system.undrop_table, with the id {view.log_id}"
        )


def _state_of(namespace: TrackedLog[NamespaceState]) -> NamespaceState | None:
    try:
        return namespace.current().state
    except (NotFound, InvalidInput):
        return None


def _is_linked(passed_commits: Sequence[Commit]) -> bool:
    """Return whether any of these commits gave the table a name."""
    events: list[TableEvent] = [event for commit in passed_commits for event in table_events(commit)]
    return any(isinstance(event, TableCreated | TableMoved | TableRestored) for event in events)
