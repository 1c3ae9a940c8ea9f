"""Drops. A dropped table or namespace is sealed in its own log and unlinked in its namespace by one commit of both.

So readers never see a name that leads nowhere, or half of a namespace, and a writer that still holds a dropped table
finds out at its next write. The namespace keeps a list of dropped objects, which can be restored until they are purged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lakelog.catalog.core.logs import (
    Found,
    LogChange,
    NameTree,
    Token,
    TrackedLog,
    base_past_seals,
    commit_changes,
    linked_elsewhere,
    no_such_namespace,
    no_such_table,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    TABLE,
    Entry,
    EntryLinked,
    EntryUnlinked,
    Link,
    NamespaceDropped,
    NamespaceEvent,
    NamespaceState,
    TableDropped,
    TableState,
    encode,
    namespace_events,
)
from lakelog.catalog.errors import CommitConflict, NamespaceNotEmpty, NoSuchNamespace, NoSuchTable
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, LogSealed, NotFound

S = TypeVar("S")

COLLECTIONS_MAX = 10
ATTEMPTS_MAX = 3


def drop_table(tree: NameTree, identifier: Identifier, token: Token | None, only: str | None = None) -> bool:
    """Drop a table. False where it does not exist, or where the name does not lead to the place `only`."""
    for _ in range(ATTEMPTS_MAX):
        try:
            return _drop_table(tree, identifier, token, only)
        except (NoSuchTable, LogSealed, ConflictError) as error:
            # It was read long ago: commits since then may have expired, the table may have been dropped and restored,
            # or the name may have been given to another table. Look the name up anew.
            if tree.find_table(identifier) is None:
                if isinstance(error, NoSuchTable | LogSealed):
                    return was_applied_anywhere(tree.logs, token)
                raise
            failure = error
    raise ConflictError(
        f"{quoted(identifier)} keeps changing while it is dropped: drop it again ({failure})", version=0
    )


def _drop_table(tree: NameTree, identifier: Identifier, token: Token | None, only: str | None) -> bool:
    name = identifier[-1]
    parent = tree.find_namespace(identifier[:-1])
    if parent is not None:
        parent.tracked.transaction.note_name_read(RELATION, name)
    entry = parent.view.state.entry(RELATION, name) if parent is not None else None
    if parent is None or entry is None:
        return was_applied_anywhere(tree.logs, token)
    tracked = _opened(tree.logs.table, entry)
    if only is not None and (tracked is None or tracked.location != only):
        return False
    if tracked is None:
        commit_changes(tree.logs, [_unlinking(parent, RELATION, name, entry, None, token)], token)
        return True
    if was_applied_elsewhere(tree.logs, tracked, token):
        return True
    link = Link(namespace=parent.tracked.location, name=name)
    view = _head(tracked, entry, link)
    if view is not None and _is_left(tree, view, link):
        return _drop_name(tree, parent, RELATION, identifier, entry, tracked, token)
    unlinking = _unlinking(parent, RELATION, name, entry, tracked, token)
    if view is None or view.sealed:
        _drop_name_alone(tree, identifier, unlinking, tracked, entry, token)
        # Without a log, it was deleted outside of the catalog, and only the name was left to drop.
        return view is None
    commit_changes(
        tree.logs, [unlinking, _sealing_table(tracked, view, entry, identifier, token, link)], token
    )
    return True


def _drop_name_alone(
    tree: NameTree,
    identifier: Identifier,
    unlinking: LogChange[Any],
    tracked: TrackedLog[TableState],
    entry: Entry,
    token: Token | None,
) -> None:
    """Remove a name whose table was sealed by itself, or has no log.

    Another client may have dropped it by the name and restored it since. So an intent locks the name first, as every
    restore has to, and then the log is read once more.
    """
    if tree.logs.is_a_cut:
        commit_changes(tree.logs, [unlinking], token)
        return

    def check_gone() -> None:
        try:
            view = tracked.offer(tracked.log.refresh_settled(tracked.at_its_place()))
        except (InvalidInput, NotFound):
            return
        if view.log_id == entry.id and not view.sealed:
            raise no_such_table(identifier)

    commit_id = None if token is None else token.commit_id
    tree.logs.commit_together([unlinking], commit_id=commit_id, validate=check_gone)


def _drop_name(
    tree: NameTree,
    parent: Found[NamespaceState],
    space: str,
    identifier: Identifier,
    entry: Entry,
    tracked: TrackedLog[Any],
    token: Token | None,
) -> bool:
    """Remove a name whose log is left as it is (see `_is_left`)."""
    link = Link(namespace=parent.tracked.location, name=identifier[-1])

    def check_another() -> None:
        # The intent locks the name: from here on the log cannot be moved to it.
        if not _is_left(tree, tracked.current(), link):
            raise no_such_table(identifier) if space == RELATION else no_such_namespace(identifier)

    view = tracked.current()
    if tree.logs.is_a_cut:
        raise linked_elsewhere(quoted(identifier), tree.logs.url(entry.location), view.state.link)
    change = _unlinking(parent, space, identifier[-1], entry, tracked, token, can_return=False)
    commit_id = None if token is None else token.commit_id
    tree.logs.commit_together([change], commit_id=commit_id, validate=check_another)
    return not view.sealed


def _is_left(tree: NameTree, view: View[Any], link: Link) -> bool:
    """Whether a log is not to be sealed by the drop of a name: it has another one (the name was forged, or the table
    was taken over by another warehouse), or its time is far ahead, so that no transaction takes it."""
    return view.state.link != link or (not tree.logs.is_a_cut and tree.logs.clocks.is_far_ahead(view))


def drop_table_at(tree: NameTree, location: str, token: Token | None) -> bool:
    """Drop the table whose log is at a place; False where it does not exist. A name that led to it then leads
    nowhere."""
    tracked = tree.logs.table(location)
    try:
        view = tracked.at_its_place()
    except NotFound:
        return False
    if view.sealed:
        return was_applied(tracked, token)
    entry = Entry(kind=TABLE, id=view.log_id, location=location)
    try:
        commit_changes(tree.logs, [_sealing_table(tracked, view, entry, (location,), token, None)], token)
    except (NoSuchTable, LogSealed):
        return False
    return True


def drop_namespace(tree: NameTree, namespace: Identifier, *, cascade: bool, token: Token | None) -> bool:
    """Drop a namespace, with `cascade` also all that is below it. False where it does not exist.

    NamespaceNotEmpty unless `cascade`, also for names that were linked in the meantime.
    """
    if not namespace:
        raise InvalidInput("the root namespace cannot be dropped: remove the warehouse itself")
    for _ in range(COLLECTIONS_MAX):
        try:
            return _drop_namespace(tree, namespace, cascade, token)
        except CommitConflict as error:
            grew = error
    raise grew


def _drop_namespace(tree: NameTree, namespace: Identifier, cascade: bool, token: Token | None) -> bool:
    name, parent = namespace[-1], tree.find_namespace(namespace[:-1])
    if parent is not None:
        parent.tracked.transaction.note_name_read(NAMESPACE, name)
    entry = parent.view.state.entry(NAMESPACE, name) if parent is not None else None
    if parent is None or entry is None:
        return was_applied_anywhere(tree.logs, token)
    tracked = _opened(tree.logs.namespace, entry)
    if tracked is None:
        commit_changes(tree.logs, [_unlinking(parent, NAMESPACE, name, entry, None, token)], token)
        return True
    if was_applied_elsewhere(tree.logs, tracked, token) or (cascade and was_applied(tracked, token)):
        # The token has no versions of the logs below, so their drop cannot be retried: they may have been restored.
        return True
    try:
        view = tracked.current()
    except (InvalidInput, NotFound):
        # As of a table: only the name is left to drop.
        commit_changes(tree.logs, [_unlinking(parent, NAMESPACE, name, entry, tracked, token)], token)
        return True
    if view.sealed or view.log_id != entry.id:
        return was_applied(tracked, token)
    if _is_left(tree, view, Link(namespace=parent.tracked.location, name=name)):
        return _drop_name(tree, parent, NAMESPACE, namespace, entry, tracked, token)
    changes: list[LogChange[Any]] = [_unlinking(parent, NAMESPACE, name, entry, tracked, token)]
    changes.append(_sealing_namespace(tree, tracked, view, namespace, cascade, token))
    if cascade:
        changes.extend(_below(tree, namespace, tracked, view.state, token))
    try:
        commit_changes(tree.logs, changes, token)
    except (NoSuchTable, NoSuchNamespace, LogSealed, ConflictError) as error:
        if isinstance(error, ConflictError) and error.version is None:
            raise  # other clients aborted each of its attempts
        if tree.find_namespace(namespace) is not None:
            # An object below was dropped by itself meanwhile, or the name was given to another namespace.
            raise CommitConflict(
                f"the contents of {quoted(namespace)} keep changing while it is dropped: drop it again ({error})",
                version=getattr(error, "version", 0),
            ) from error
        return was_applied_anywhere(tree.logs, token)
    return True


def _below(
    tree: NameTree,
    namespace: Identifier,
    tracked: TrackedLog[NamespaceState],
    state: NamespaceState,
    token: Token | None,
) -> list[LogChange[Any]]:
    """Return the changes that seal all tables and namespaces below one, level by level. Some stay: see `_is_left`."""
    changes: list[LogChange[Any]] = []
    level = [(namespace, tracked.location, state)]
    met = {tracked.location}
    while level:
        below: list[tuple[Identifier, TrackedLog[NamespaceState], Entry, str]] = []
        tables: list[tuple[Identifier, TrackedLog[TableState], Entry, str]] = []
        for path, above, parent in level:
            # One can be forged that leads to itself, or to another log twice: each is sealed once.
            for name, entry in parent.entries.get(RELATION, {}).items():
                table = _opened(tree.logs.table, entry)
                if entry.location not in met and table is not None:
                    met.add(entry.location)
                    tables.append(((*path, name), table, entry, above))
            for name, entry in parent.entries.get(NAMESPACE, {}).items():
                child_log = _opened(tree.logs.namespace, entry)
                if entry.location not in met and child_log is not None:
                    met.add(entry.location)
                    below.append(((*path, name), child_log, entry, above))
        _read(tree, [each[1] for each in tables] + [each[1] for each in below])
        for path, table, entry, above in tables:
            link = Link(namespace=above, name=path[-1])
            view = _head(table, entry, link)
            if view is not None and not view.sealed and not _is_left(tree, view, link):
                changes.append(_sealing_table(table, view, entry, path, token, link))
        level = []
        for path, log, entry, above in below:
            link = Link(namespace=above, name=path[-1])
            child = _head(log, entry, link)
            if child is not None and not child.sealed and not _is_left(tree, child, link):
                changes.append(_sealing_namespace(tree, log, child, path, True, token))
                level.append((path, log.location, child.state))
    return changes


def _opened(log_at: Callable[[str], TrackedLog[S]], entry: Entry) -> TrackedLog[S] | None:
    """Return the log of an entry; None for a place that can be no log's: the entry was forged."""
    try:
        return log_at(entry.location)
    except (FormatError, InvalidInput):
        return None


def _read(tree: NameTree, logs: Sequence[TrackedLog[Any]]) -> None:
    """Bring all of these up to date, those that are known in one round."""
    tree.logs.refresh([tracked for tracked in logs if tracked.known is not None])
    unknown = [tracked for tracked in logs if tracked.known is None]
    if unknown:
        tree.logs.log_options.in_parallel([_reading(tracked) for tracked in unknown])


def _reading(tracked: TrackedLog[Any]) -> Any:
    def read() -> None:
        try:
            tracked.current()
        except (InvalidInput, NotFound):
            return

    return read


def _head(tracked: TrackedLog[Any], entry: Entry, link: Link) -> View[Any] | None:
    """Return the newest view of the log that `entry` links; None where there is no such log. A view that does not
    agree with the name is read anew: it may be older than the name."""
    try:
        view = tracked.known or tracked.current()
        if view.log_id != entry.id or view.sealed or view.state.link != link:
            view = tracked.anew()
    except (InvalidInput, NotFound):
        return None
    return view if view.log_id == entry.id else None


def _unlinking(
    parent: Found[NamespaceState],
    space: str,
    name: str,
    entry: Entry,
    dropped: TrackedLog[Any] | None,
    token: Token | None,
    *,
    can_return: bool = True,
) -> LogChange[NamespaceState]:
    # An object that the same transaction created was never visible to other clients, and cannot be restored.
    can_return = can_return and dropped is not None and not dropped.transaction.creates_log
    event = EntryUnlinked(space=space, name=name, id=entry.id, dropped=can_return)
    unlinked = Draft(events=encode([event]))

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if view.state.entry(space, name) != entry:
            raise no_such_table((name,)) if space == RELATION else no_such_namespace((name,))
        return unlinked

    tracked = parent.tracked
    view = tracked.at_least(parent.view.version)
    return LogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _sealing_table(
    tracked: TrackedLog[TableState],
    view: View[TableState],
    entry: Entry,
    identifier: Identifier,
    token: Token | None,
    link: Link | None,
) -> LogChange[TableState]:
    """Return the change that seals a table: as `link`, or whatever its name is."""
    sealed = Draft(events=encode([TableDropped()]), seals=True)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        # A table that has another name by now is found by it: the name that was dropped leads to it no longer.
        if view.log_id != entry.id or (link is not None and view.state.link != link):
            raise no_such_table(identifier)
        return sealed

    return LogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _sealing_namespace(
    tree: NameTree,
    tracked: TrackedLog[NamespaceState],
    view: View[NamespaceState],
    namespace: Identifier,
    cascade: bool,
    token: Token | None,
) -> LogChange[NamespaceState]:
    collected, collected_at = _linked(view.state), view.version
    # Objects that the same transaction created will never exist: they must not be restored with the namespace.
    events: list[NamespaceEvent] = [
        EntryUnlinked(space=space, name=name, id=entry.id)
        for space, entries in collected.items()
        for name, entry in entries.items()
        if _is_created_here(tree, space, entry)
    ]
    sealed = Draft(events=encode([*events, NamespaceDropped(cascade=cascade)]), seals=True)

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if not cascade and not view.state.is_empty:
            for space in (RELATION, NAMESPACE):
                tracked.transaction.note_name_read(space, None)
            raise _not_empty(namespace, view.state)
        if cascade and (_linked(view.state) != collected or _linked_after(collected_at, passed)):
            raise CommitConflict(
                f"names were added to {quoted(namespace)}, or removed from it, after its contents were listed for "
                "the drop. Nothing was changed: drop it again",
                version=view.version,
            )
        return sealed

    return LogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _is_created_here(tree: NameTree, space: str, entry: Entry) -> bool:
    log: TrackedLog[Any] | None = (
        _opened(tree.logs.table, entry) if space == RELATION else _opened(tree.logs.namespace, entry)
    )
    return log is not None and log.transaction.creates_log


def _linked(state: NamespaceState) -> dict[str, dict[str, Entry]]:
    return {space: dict(entries.items()) for space, entries in state.entries.items() if entries}


def _linked_after(version: int, passed: Sequence[Commit]) -> bool:
    """Return whether a name was linked since: it may be of an object that was collected as dropped, and restored."""
    return any(
        isinstance(event, EntryLinked)
        for commit in passed
        if commit.version > version
        for event in namespace_events(commit)
    )


def _not_empty(namespace: Identifier, state: NamespaceState) -> NamespaceNotEmpty:
    spaces = (*state.entries.values(), *state.definitions.values())
    names = [name for entries in spaces for name in entries]
    shown = ", ".join(quoted([name]) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return NamespaceNotEmpty(
        f"the namespace {quoted(namespace)} is not empty: it holds {shown}. Drop these first, or use CASCADE"
    )
