"""Changes of views and functions: each is an event of the namespace that holds the name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lakelog.catalog.core.ddl.dropped import dropped_last
from lakelog.catalog.core.ddl.staging import table_exists
from lakelog.catalog.core.logs import (
    NameTree,
    Token,
    changes_of,
    commit_changes,
    commit_in,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.core.schema import FUNCTION, SPACES, VIEW, Definition, check_definition, kind_of
from lakelog.catalog.core.state import (
    Defined,
    EntryDefined,
    EntryPurged,
    EntryRenamed,
    EntryUnlinked,
    NamespaceState,
    encode,
)
from lakelog.catalog.errors import (
    CommitConflict,
    FunctionExists,
    NoSuchFunction,
    NoSuchView,
    ViewExists,
)
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import NotFound


def find_definition(tree: NameTree, kind: str, identifier: Identifier) -> Defined | None:
    """Return the present definition under a name; None where there is no definition of that kind."""
    space, name = SPACES[kind], identifier[-1]
    found = tree.find_namespace(identifier[:-1])
    if found is None:
        return None
    found.tracked.transaction.note_name_read(space, name)
    return _of_kind(found.view.state, kind, name)


def load_definition(tree: NameTree, kind: str, identifier: Identifier) -> Defined:
    """Return the present definition under a name. NoSuchView, NoSuchFunction."""
    found = find_definition(tree, kind, identifier)
    if found is None:
        raise_missing(kind, identifier)
    return found


def define(
    tree: NameTree,
    identifier: Identifier,
    definition: Definition,
    *,
    create: bool,
    replace: bool,
    expected: Definition | None,
    token: Token | None,
) -> None:
    """Give a name the `definition`: a new name if `create`, in place of the present definition if `replace`.

    ViewExists, FunctionExists, NoSuchView, NoSuchFunction, TableExists, NoSuchNamespace. CommitConflict when the
    present definition is not `expected`.
    """
    check_definition(definition)
    kind = kind_of(definition)
    space, name = SPACES[kind], identifier[-1]
    check_name(name, kind)
    namespace = tree.writable(identifier[:-1])
    if was_applied_elsewhere(tree.logs, namespace.tracked, token):
        return
    new_id = tree.logs.new_id()

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        there = _of_kind(view.state, kind, name)
        if there is None and not create:
            raise_missing(kind, identifier)
        if view.state.entry(space, name) is not None:
            raise table_exists(identifier)
        if there is not None and not replace:
            raise_exists(kind, identifier)
        if expected is not None and there is not None and there.definition != expected:
            raise CommitConflict(
                f"the {kind} {quoted(identifier)} was changed by another client meanwhile: run the statement again",
                version=view.version,
            )
        id = there.id if there is not None else new_id
        return Draft(events=encode([EntryDefined(space=space, name=name, id=id, definition=definition)]))

    commit_in(namespace, identifier[:-1], decide, token)


def drop_definition(tree: NameTree, kind: str, identifier: Identifier, token: Token | None) -> bool:
    """Drop a view or function; False where it does not exist. It can be restored until vacuum purges it."""
    space, name = SPACES[kind], identifier[-1]
    namespace = tree.find_namespace(identifier[:-1])
    if namespace is None:
        return was_applied_anywhere(tree.logs, token)
    if was_applied_elsewhere(tree.logs, namespace.tracked, token):
        return True

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        there = _of_kind(view.state, kind, name)
        if there is None:
            raise_missing(kind, identifier)
        return Draft(events=encode([EntryUnlinked(space=space, name=name, id=there.id, dropped=True)]))

    if _of_kind(namespace.view.state, kind, name) is None:
        return was_applied(namespace.tracked, token)
    try:
        commit_in(namespace, identifier[:-1], decide, token)
    except NotFound:
        return was_applied_anywhere(tree.logs, token)
    return True


def rename_definition(
    tree: NameTree, kind: str, old: Identifier, new: Identifier, token: Token | None
) -> None:
    """Give a view or function another name: by one commit in a namespace, across two by one of both logs."""
    check_name(new[-1], kind)
    space = SPACES[kind]
    source = tree.namespace(old[:-1])
    if was_applied(source.tracked, token) or was_applied_elsewhere(tree.logs, source.tracked, token):
        return
    goal = source if old[:-1] == new[:-1] else tree.namespace(new[:-1])
    there = _of_kind(source.view.state, kind, old[-1])
    if there is None:
        raise_missing(kind, old)

    def check(view: View[NamespaceState]) -> Defined:
        now = _of_kind(view.state, kind, old[-1])
        if now is None or now.id != there.id:
            raise_missing(kind, old)
        return now

    def within(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check_free(view.state, kind, new)
        renamed = EntryRenamed(space=space, name=old[-1], id=check(view).id, new_name=new[-1])
        return Draft(events=encode([renamed]))

    def unlink(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if check(view).definition != there.definition:
            raise CommitConflict(
                f"the {kind} {quoted(old)} was changed while it was renamed: rename it again",
                version=view.version,
            )
        return Draft(events=encode([EntryUnlinked(space=space, name=old[-1], id=there.id)]))

    def define_there(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check_free(view.state, kind, new)
        moved = EntryDefined(space=space, name=new[-1], id=there.id, definition=there.definition)
        return Draft(events=encode([moved]))

    if goal.tracked.location == source.tracked.location:
        commit_in(source, old[:-1], within, token)
    else:
        commit_changes(tree.logs, changes_of([(source, unlink), (goal, define_there)], token), token)


def undrop_definition(
    tree: NameTree,
    kind: str,
    identifier: Identifier,
    id: str | None,
    to: Identifier | None,
    token: Token | None,
) -> Identifier:
    """Restore the definition that was dropped last under that name (or with that id); return its name now."""
    tree.logs.check_writable()
    target = to or identifier
    check_name(target[-1], kind)
    if was_applied_anywhere(tree.logs, token):
        return target
    source = tree.namespace(identifier[:-1])
    goal = source if identifier[:-1] == target[:-1] else tree.namespace(target[:-1])
    space, candidates = SPACES[kind], source.view.state.dropped_definitions
    key, dropped = dropped_last(candidates, space, identifier, id, what=f"no {kind}")
    defined = EntryDefined(space=space, name=target[-1], id=key, definition=dropped.definition)
    is_same = source.tracked.location == goal.tracked.location

    def check(view: View[NamespaceState]) -> None:
        if key not in view.state.dropped_definitions:
            raise NotFound(
                f"{quoted(identifier)} was restored or purged by another client meanwhile: look it up again"
            )

    def link(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if is_same:
            check(view)
        check_free(view.state, kind, target)
        return Draft(events=encode([defined]))

    def forget(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check(view)
        return Draft(events=encode([EntryPurged(id=key)]))

    if is_same:
        commit_in(goal, target[:-1], link, token)
    else:
        commit_changes(tree.logs, changes_of([(goal, link), (source, forget)], token), token)
    return target


def _of_kind(state: NamespaceState, kind: str, name: str) -> Defined | None:
    return state.definition(SPACES[kind], name)


def check_free(state: NamespaceState, kind: str, identifier: Identifier) -> None:
    """Raise TableExists, ViewExists or FunctionExists where the name is taken."""
    space, name = SPACES[kind], identifier[-1]
    if state.entry(space, name) is not None:
        raise table_exists(identifier)
    if state.definition(space, name) is not None:
        raise_exists(kind, identifier)


def raise_missing(kind: str, identifier: Identifier) -> NoReturn:
    message = f"there is no {kind} {quoted(identifier)}: list its namespace to see which exist"
    raise NoSuchView(message) if kind == VIEW else NoSuchFunction(message)


def raise_exists(kind: str, identifier: Identifier) -> NoReturn:
    message = f"there is a {kind} {quoted(identifier)} already: drop it, or choose another name"
    raise FunctionExists(message) if kind == FUNCTION else ViewExists(message)
