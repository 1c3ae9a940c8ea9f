"""Changes of views and functions. Each is an event of the namespace that holds the name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lakelog.catalog.core.ddl.dropped import dropped_last
from lakelog.catalog.core.ddl.staging import table_exists
from lakelog.catalog.core.logs.commits import (
    Token,
    commit_changes,
    or_applied,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.name_tree import NameTree, changes_of, commit_in
from lakelog.catalog.core.schema.definition import (
    FUNCTION,
    SPACES,
    VIEW,
    Definition,
    check_definition,
    kind_of,
)
from lakelog.catalog.core.state.events import EntryDefined, EntryPurged, EntryRenamed, EntryUnlinked, encode
from lakelog.catalog.core.state.namespace_entries import DefinitionEntry
from lakelog.catalog.core.state.namespace_state import NamespaceState
from lakelog.catalog.errors import (
    CommitConflict,
    FunctionExists,
    NoSuchFunction,
    NoSuchView,
    ViewExists,
)
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import NotFound


def find_definition(tree: NameTree, kind: str, identifier: Identifier) -> DefinitionEntry | None:
    """Return the present definition under a name; None if there is no definition of that kind."""
    space, name = SPACES[kind], identifier[-1]
    namespace = tree.find_namespace(identifier[:-1])
    if namespace is None:
        return None
    namespace.tracked.transaction.note_name_read(space, name)
    return _of_kind(namespace.view.state, kind, name)


def load_definition(tree: NameTree, kind: str, identifier: Identifier) -> DefinitionEntry:
    """Return the present definition under a name. Raises NoSuchView or NoSuchFunction if there is none."""
    definition = find_definition(tree, kind, identifier)
    if definition is None:
        raise_missing(tree, kind, identifier)
    return definition


def define(
    tree: NameTree,
    identifier: Identifier,
    definition: Definition,
    *,
    create: bool,
    replace: bool,
    expected: Definition | None = None,
    token: Token | None,
) -> None:
    """Give a name the `definition`: a new name if `create`, in place of the present definition if `replace`.

    Raises ViewExists, FunctionExists, TableExists, NoSuchView, NoSuchFunction or NoSuchNamespace. Raises
    CommitConflict if the present definition is not `expected`.
    """
    check_definition(definition)
    kind = kind_of(definition)
    space, name = SPACES[kind], identifier[-1]
    check_name(name, kind)
    new_id = tree.logs.new_id()

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        present = _of_kind(view.state, kind, name)
        if present is None and not create:
            raise_missing(tree, kind, identifier)
        if view.state.entry(space, name) is not None:
            raise table_exists(identifier)
        if present is not None and not replace:
            raise_exists(kind, identifier)
        if expected is not None and present is not None and present.definition != expected:
            raise CommitConflict(
                f"the {kind} {quoted(identifier)} was changed by another client in the meantime: repeat the change",
                version=view.version,
            )
        id = present.id if present is not None else new_id
        return Draft(events=encode([EntryDefined(space=space, name=name, id=id, definition=definition)]))

    def define_it() -> None:
        namespace = tree.writable(identifier[:-1])
        if not was_applied_elsewhere(tree.logs, namespace.tracked, token):
            commit_in(namespace, identifier[:-1], decide, token)

    or_applied(tree.logs, token, define_it)


def drop_definition(tree: NameTree, kind: str, identifier: Identifier, token: Token | None) -> bool:
    """Drop a view or function; False if it does not exist. It can be restored until vacuum purges it."""
    space, name = SPACES[kind], identifier[-1]
    namespace = tree.find_namespace(identifier[:-1])
    if namespace is None:
        return was_applied_anywhere(tree.logs, token)
    if was_applied_elsewhere(tree.logs, namespace.tracked, token):
        return True

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        present = _of_kind(view.state, kind, name)
        if present is None:
            raise_missing(tree, kind, identifier)
        return Draft(events=encode([EntryUnlinked(space=space, name=name, id=present.id, dropped=True)]))

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
    """Give a view or function another name.

    Makes a commit of the namespace, or a single commit of both logs if the new name is in another namespace.
    """
    check_name(new[-1], kind)
    or_applied(tree.logs, token, lambda: _rename(tree, kind, old, new, token))


def _rename(tree: NameTree, kind: str, old: Identifier, new: Identifier, token: Token | None) -> None:
    space = SPACES[kind]
    source = tree.namespace(old[:-1])
    if was_applied(source.tracked, token) or was_applied_elsewhere(tree.logs, source.tracked, token):
        return
    goal = source if old[:-1] == new[:-1] else tree.namespace(new[:-1])
    definition = _of_kind(source.view.state, kind, old[-1])
    if definition is None:
        raise_missing(tree, kind, old)

    def check(view: LogView[NamespaceState]) -> DefinitionEntry:
        present = _of_kind(view.state, kind, old[-1])
        if present is None or present.id != definition.id:
            raise_missing(tree, kind, old)
        return present

    def within(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        check_free(view.state, kind, new)
        rename_event = EntryRenamed(space=space, name=old[-1], id=check(view).id, new_name=new[-1])
        return Draft(events=encode([rename_event]))

    def unlink(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if check(view).definition != definition.definition:
            raise CommitConflict(
                f"the {kind} {quoted(old)} was changed while it was renamed: rename it again",
                version=view.version,
            )
        return Draft(events=encode([EntryUnlinked(space=space, name=old[-1], id=definition.id)]))

    def define_there(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        check_free(view.state, kind, new)
        define_event = EntryDefined(
            space=space, name=new[-1], id=definition.id, definition=definition.definition
        )
        return Draft(events=encode([define_event]))

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
    """Restore the definition that was dropped last under that name, or has that id.

    Return its present name.
    """
    tree.logs.check_writable()
    target = to or identifier
    check_name(target[-1], kind)
    if was_applied_anywhere(tree.logs, token):
        return target
    source = tree.namespace(identifier[:-1])
    goal = source if identifier[:-1] == target[:-1] else tree.namespace(target[:-1])
    space = SPACES[kind]
    is_same = source.tracked.location == goal.tracked.location

    def dropped_in(state: NamespaceState) -> DefinitionEntry:
        """Return the definition to restore. Dropped once more, it may have another text under the same id."""
        return dropped_last(state.dropped_definitions(), space, identifier, id, what=f"no {kind}").entry

    def defining(dropped_entry: DefinitionEntry) -> EntryDefined:
        return EntryDefined(
            space=space, name=target[-1], id=dropped_entry.id, definition=dropped_entry.definition
        )

    entry = dropped_in(source.view.state)

    def link(view: LogView[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check_free(view.state, kind, target)
        return Draft(events=encode([defining(dropped_in(view.state) if is_same else entry)]))

    def forget(view: LogView[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if entry.id not in view.state.dropped:
            raise NotFound(
                f"{quoted(identifier)} was restored or purged by another client meanwhile: look it up again"
            )
        if dropped_in(view.state) != entry:
            raise CommitConflict(
                f"the {kind} {quoted(identifier)} was dropped once more by another client in the meantime: repeat the "
                "change",
                version=view.version,
            )
        return Draft(events=encode([EntryPurged(id=entry.id)]))

    if is_same:
        commit_in(goal, target[:-1], link, token)
    else:
        commit_changes(tree.logs, changes_of([(goal, link), (source, forget)], token), token)
    return target


def _of_kind(state: NamespaceState, kind: str, name: str) -> DefinitionEntry | None:
    return state.definition(SPACES[kind], name)


def check_free(state: NamespaceState, kind: str, identifier: Identifier) -> None:
    """Raise TableExists, ViewExists or FunctionExists if the name is taken."""
    space, name = SPACES[kind], identifier[-1]
    if state.entry(space, name) is not None:
        raise table_exists(identifier)
    if state.definition(space, name) is not None:
        raise_exists(kind, identifier)


def raise_missing(tree: NameTree, kind: str, identifier: Identifier) -> NoReturn:
    """Raise NoSuchView or NoSuchFunction for a name whose namespace was just read. Makes no request."""
    message = f"there is no {kind} {quoted(identifier)}: {tree.hint(identifier, SPACES[kind])}"
    raise NoSuchView(message) if kind == VIEW else NoSuchFunction(message)


def raise_exists(kind: str, identifier: Identifier) -> NoReturn:
    message = f"there is a {kind} {quoted(identifier)} already: drop it, or choose another name"
    raise FunctionExists(message) if kind == FUNCTION else ViewExists(message)
