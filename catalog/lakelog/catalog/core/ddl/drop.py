"""Drops. A single commit seals a dropped table or namespace in its own log and unlinks it in its namespace.

So readers never see a name that leads nowhere, or half of a namespace. A writer that still holds a dropped
table learns of the drop at its next write. The namespace keeps a list of dropped objects, which can be
restored until they are purged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.core.logs.commits import (
    Token,
    base_past_seals,
    commit_changes,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.name_tree import FoundLog, NameTree, no_such_namespace, no_such_table
from lakelog.catalog.core.logs.own_links import linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.decoded_events import namespace_events
from lakelog.catalog.core.state.events import (
    EntryLinked,
    EntryUnlinked,
    NamespaceDropped,
    NamespaceEvent,
    TableDropped,
    encode,
)
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    NAMESPACE,
    RELATION,
    TABLE,
    NamespaceState,
)
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import CommitConflict, NamespaceNotEmpty, NoSuchNamespace, NoSuchTable
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.next_step import in_words
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import ConflictError, FormatError, InvalidInput, LogSealed, NotFound

S = TypeVar("S")

COLLECTIONS_MAX = 10
ATTEMPTS_MAX = 3


def drop_table(tree: NameTree, identifier: Identifier, token: Token | None, only: str | None = None) -> bool:
    """Drop a table. False if it does not exist, or if the name does not lead to the place `only`."""
    for _ in range(ATTEMPTS_MAX):
        try:
            return _drop_table(tree, identifier, token, only)
        except (NoSuchTable, LogSealed, ConflictError) as error:
            # The table was read long ago. Since then commits may have expired, the table may have been
            # dropped and restored, or its name may belong to another table. Look the name up again.
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
    tracked_log = _opened(tree.logs.table, entry)
    if only is not None and (tracked_log is None or tracked_log.location != only):
        return False
    if tracked_log is None:
        commit_changes(tree.logs, [_unlinking(parent, RELATION, name, entry, None, token)], token)
        return True
    if was_applied_elsewhere(tree.logs, tracked_log, token):
        return True
    link = NameLink(namespace=parent.tracked.location, name=name)
    view = _head(tracked_log, entry, link)
    if view is not None and _is_left(tree, view, link):
        return _drop_name(tree, parent, RELATION, identifier, entry, tracked_log, token)
    unlink_change = _unlinking(parent, RELATION, name, entry, tracked_log, token)
    if view is None or view.sealed:
        _drop_name_alone(tree, identifier, unlink_change, tracked_log, entry, token)
        # Without a log, the table was deleted outside of the catalog, and only the name was left to drop.
        return view is None
    commit_changes(
        tree.logs, [unlink_change, _sealing_table(tracked_log, view, entry, identifier, token, link)], token
    )
    return True


def _drop_name_alone(
    tree: NameTree,
    identifier: Identifier,
    unlinking_change: JointLogChange[Any],
    tracked: TrackedLog[TableState],
    entry: NamespaceEntry,
    token: Token | None,
) -> None:
    """Remove a name whose table is sealed but still linked, or has no log.

    Another client may have dropped the table through this name and restored it since. So an intent locks the
    name first, as every restore has to, and then the log is read again.
    """
    if tree.logs.is_a_cut:
        commit_changes(tree.logs, [unlinking_change], token)
        return

    def check_gone() -> None:
        try:
            view = tracked.offer(tracked.log.refresh_settled(tracked.at_its_place()))
        except (InvalidInput, NotFound):
            return
        if view.log_id == entry.id and not view.sealed:
            raise no_such_table(identifier)

    commit_id = None if token is None else token.commit_id
    tree.logs.commit_together([unlinking_change], commit_id=commit_id, validate=check_gone)


def _drop_name(
    tree: NameTree,
    parent: FoundLog[NamespaceState],
    space: str,
    identifier: Identifier,
    entry: NamespaceEntry,
    tracked: TrackedLog[Any],
    token: Token | None,
) -> bool:
    """Remove a name, and leave its log as it is (see `_is_left`)."""
    link = NameLink(namespace=parent.tracked.location, name=identifier[-1])

    def check_another() -> None:
        # The intent locks the name: from here on no move can give the log this name.
        if not _is_left(tree, tracked.current(), link):
            raise no_such_table(identifier) if space == RELATION else no_such_namespace(identifier)

    view = tracked.current()
    if tree.logs.is_a_cut:
        raise linked_elsewhere(quoted(identifier), tree.logs.url(entry.location), view.state.link)
    change = _unlinking(parent, space, identifier[-1], entry, tracked, token, can_return=False)
    commit_id = None if token is None else token.commit_id
    tree.logs.commit_together([change], commit_id=commit_id, validate=check_another)
    return not view.sealed


def _is_left(tree: NameTree, view: LogView[Any], link: NameLink) -> bool:
    """Return whether the drop of a name must not seal its log.

    This holds if the log has another name: the name was forged, or another warehouse took the table over. It
    also holds if the log's time is far ahead, so that no transaction takes it.
    """
    return view.state.link != link or (not tree.logs.is_a_cut and tree.logs.clocks.is_far_ahead(view))


def drop_table_at(tree: NameTree, location: str, token: Token | None) -> bool:
    """Drop the table whose log is at a place; False if it does not exist.

    Its name, if any, then leads nowhere.
    """
    tracked_log = tree.logs.table(location)
    try:
        view = tracked_log.at_its_place()
    except NotFound:
        return False
    if view.sealed:
        return was_applied(tracked_log, token)
    entry = NamespaceEntry(kind=TABLE, id=view.log_id, location=location)
    try:
        commit_changes(tree.logs, [_sealing_table(tracked_log, view, entry, (location,), token, None)], token)
    except (NoSuchTable, LogSealed):
        return False
    return True


def drop_namespace(tree: NameTree, namespace: Identifier, *, cascade: bool, token: Token | None) -> bool:
    """Drop a namespace, and with `cascade` all that is below it.

    False if it does not exist. Raises NamespaceNotEmpty unless `cascade`, also for names that were linked in
    the meantime.
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
    tracked_log = _opened(tree.logs.namespace, entry)
    if tracked_log is None:
        commit_changes(tree.logs, [_unlinking(parent, NAMESPACE, name, entry, None, token)], token)
        return True
    if was_applied_elsewhere(tree.logs, tracked_log, token) or (cascade and was_applied(tracked_log, token)):
        # The token has no versions of the logs below. So their drop cannot be retried: they may have been
        # restored.
        return True
    try:
        view = tracked_log.current()
    except (InvalidInput, NotFound):
        # This may be the log of a table: only the name is left to drop.
        commit_changes(tree.logs, [_unlinking(parent, NAMESPACE, name, entry, tracked_log, token)], token)
        return True
    if view.sealed or view.log_id != entry.id:
        return was_applied(tracked_log, token)
    if _is_left(tree, view, NameLink(namespace=parent.tracked.location, name=name)):
        return _drop_name(tree, parent, NAMESPACE, namespace, entry, tracked_log, token)
    changes: list[JointLogChange[Any]] = [_unlinking(parent, NAMESPACE, name, entry, tracked_log, token)]
    changes.append(_sealing_namespace(tree, tracked_log, view, namespace, cascade, token))
    if cascade:
        changes.extend(_below(tree, namespace, tracked_log, view.state, token))
    try:
        commit_changes(tree.logs, changes, token)
    except (NoSuchTable, NoSuchNamespace, LogSealed, ConflictError) as error:
        if isinstance(error, ConflictError) and error.version is None:
            raise  # other clients aborted each of its attempts
        if tree.find_namespace(namespace) is not None:
            # An object below was dropped in the meantime, or the name was given to another namespace.
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
) -> list[JointLogChange[Any]]:
    """Return the changes that seal all tables and namespaces below a namespace, level by level.

    See `_is_left` for the rest.
    """
    changes: list[JointLogChange[Any]] = []
    level = [(namespace, tracked.location, state)]
    met = {tracked.location}
    while level:
        below: list[tuple[Identifier, TrackedLog[NamespaceState], NamespaceEntry, str]] = []
        tables: list[tuple[Identifier, TrackedLog[TableState], NamespaceEntry, str]] = []
        for path, above, parent in level:
            # A forged namespace can lead to itself, or to another log twice: each log is sealed once.
            for name, entry in parent.logs(RELATION):
                table = _opened(tree.logs.table, entry)
                if entry.location not in met and table is not None:
                    met.add(entry.location)
                    tables.append(((*path, name), table, entry, above))
            for name, entry in parent.logs(NAMESPACE):
                child_log = _opened(tree.logs.namespace, entry)
                if entry.location not in met and child_log is not None:
                    met.add(entry.location)
                    below.append(((*path, name), child_log, entry, above))
        _read(tree, [below_entry[1] for below_entry in tables] + [below_entry[1] for below_entry in below])
        for path, table, entry, above in tables:
            link = NameLink(namespace=above, name=path[-1])
            view = _head(table, entry, link)
            if view is not None and not view.sealed and not _is_left(tree, view, link):
                changes.append(_sealing_table(table, view, entry, path, token, link))
        level = []
        for path, log, entry, above in below:
            link = NameLink(namespace=above, name=path[-1])
            child = _head(log, entry, link)
            if child is not None and not child.sealed and not _is_left(tree, child, link):
                changes.append(_sealing_namespace(tree, log, child, path, True, token))
                level.append((path, log.location, child.state))
    return changes


def _opened(log_at: Callable[[str], TrackedLog[S]], entry: NamespaceEntry) -> TrackedLog[S] | None:
    """Return the log of an entry; None if no log can be at its place, because the entry was forged."""
    try:
        return log_at(entry.location)
    except (FormatError, InvalidInput):
        return None


def _read(tree: NameTree, logs: Sequence[TrackedLog[Any]]) -> None:
    """Bring all of these logs up to date. The known logs are refreshed together."""
    tree.logs.refresh([tracked_log for tracked_log in logs if tracked_log.known is not None])
    unknown = [tracked_log for tracked_log in logs if tracked_log.known is None]
    if unknown:
        tree.logs.log_options.in_parallel([_reading(tracked_log) for tracked_log in unknown])


def _reading(tracked: TrackedLog[Any]) -> Any:
    def read() -> None:
        try:
            tracked.current()
        except (InvalidInput, NotFound):
            return

    return read


def _head(tracked: TrackedLog[Any], entry: NamespaceEntry, link: NameLink) -> LogView[Any] | None:
    """Return the newest view of the log that `entry` links; None if there is no such log.

    A view that disagrees with the name may be older than the name, so it is read again.
    """
    try:
        view = tracked.known or tracked.current()
        if view.log_id != entry.id or view.sealed or view.state.link != link:
            view = tracked.anew()
    except (InvalidInput, NotFound):
        return None
    return view if view.log_id == entry.id else None


def _unlinking(
    parent: FoundLog[NamespaceState],
    space: str,
    name: str,
    entry: NamespaceEntry,
    dropped: TrackedLog[Any] | None,
    token: Token | None,
    *,
    can_return: bool = True,
) -> JointLogChange[NamespaceState]:
    # An object that the same transaction created was never visible to other clients, and cannot be restored.
    can_return = can_return and dropped is not None and not dropped.transaction.creates_log
    event = EntryUnlinked(space=space, name=name, id=entry.id, dropped=can_return)
    unlink_draft = Draft(events=encode([event]))

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if view.state.entry(space, name) != entry:
            raise no_such_table((name,)) if space == RELATION else no_such_namespace((name,))
        return unlink_draft

    tracked_log = parent.tracked
    view = tracked_log.at_least(parent.view.version)
    return JointLogChange(tracked_log, view, decide, base_past_seals(token, tracked_log, view))


def _sealing_table(
    tracked: TrackedLog[TableState],
    view: LogView[TableState],
    entry: NamespaceEntry,
    identifier: Identifier,
    token: Token | None,
    link: NameLink | None,
) -> JointLogChange[TableState]:
    """Return the change that seals a table if its name is `link`, or in any case without a `link`."""
    seal_draft = Draft(events=encode([TableDropped()]), seals=True)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        # A table may have been renamed. Then the dropped name no longer leads to it.
        if view.log_id != entry.id or (link is not None and view.state.link != link):
            raise no_such_table(identifier)
        return seal_draft

    return JointLogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _sealing_namespace(
    tree: NameTree,
    tracked: TrackedLog[NamespaceState],
    view: LogView[NamespaceState],
    namespace: Identifier,
    cascade: bool,
    token: Token | None,
) -> JointLogChange[NamespaceState]:
    links, links_version = _linked(view.state), view.version
    # Objects that the same transaction created will never exist: they must not be restored with the
    # namespace.
    events: list[NamespaceEvent] = [
        EntryUnlinked(space=space, name=name, id=entry.id)
        for space, name, entry in sorted(links, key=itemgetter(0, 1))
        if _is_created_here(tree, space, entry)
    ]
    seal_draft = Draft(events=encode([*events, NamespaceDropped(cascade=cascade)]), seals=True)

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if not cascade and not view.state.is_empty:
            for space in (RELATION, NAMESPACE):
                tracked.transaction.note_name_read(space, None)
            raise _not_empty(namespace, view.state)
        if cascade and (_linked(view.state) != links or _linked_after(links_version, passed_commits)):
            raise CommitConflict(
                f"names were added to {quoted(namespace)}, or removed from it, after its contents were listed for "
                "the drop. Nothing was changed: drop it again",
                version=view.version,
            )
        return seal_draft

    return JointLogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _is_created_here(tree: NameTree, space: str, entry: NamespaceEntry) -> bool:
    log: TrackedLog[Any] | None = (
        _opened(tree.logs.table, entry) if space == RELATION else _opened(tree.logs.namespace, entry)
    )
    return log is not None and log.transaction.creates_log


def _linked(state: NamespaceState) -> set[tuple[str, str, NamespaceEntry]]:
    return set(state.all_logs())


def _linked_after(version: int, passed_commits: Sequence[Commit]) -> bool:
    """Return whether a name was linked after a version.

    It may lead to a listed object that was dropped and restored.
    """
    return any(
        isinstance(event, EntryLinked)
        for commit in passed_commits
        if commit.version > version
        for event in namespace_events(commit)
    )


def _not_empty(namespace: Identifier, state: NamespaceState) -> NamespaceNotEmpty:
    names = [name for entries in state.entries.values() for name in entries]
    name_list = ", ".join(quoted([name]) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return NamespaceNotEmpty(
        f"the namespace {quoted(namespace)} is not empty: it holds {name_list}. Drop these first"
        + in_words(python=", or give cascade=True", elsewhere=", or use CASCADE")
    )
