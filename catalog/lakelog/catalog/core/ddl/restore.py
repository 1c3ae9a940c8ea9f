"""Undoing drops: sealed logs continue as they were, and are linked again, by one commit across all of these logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelog.catalog.core.ddl.dropped import dropped_last
from lakelog.catalog.core.ddl.staging import check_free
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import (
    Found,
    LogChange,
    NameTree,
    Token,
    TrackedLog,
    base_past_seals,
    changes_of,
    commit_changes,
    has_own_place,
    linked_elsewhere,
    was_applied_anywhere,
)
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    Dropped,
    Entry,
    EntryLinked,
    EntryPurged,
    EntryUnlinked,
    Link,
    NamespaceRestored,
    NamespaceState,
    TableRestored,
    encode,
)
from lakelog.catalog.errors import CommitConflict, NamespaceExists
from lakelog.catalog.names import Identifier, check_name, check_namespace, quoted
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

LOOK_BACK = 63


def undrop_table(
    tree: NameTree, identifier: Identifier, id: str | None, to: Identifier | None, token: Token | None
) -> Identifier:
    """Restore the table that was dropped last under that name (or the one with that id); return its name now."""
    tree.logs.check_writable()
    target = to or identifier
    check_name(target[-1], "table")
    if was_applied_anywhere(tree.logs, token):
        return target
    source, id, dropped = _dropped(tree, identifier, RELATION, id)
    goal = tree.namespace(target[:-1])
    tracked = tree.logs.table(dropped.location)
    event = TableRestored(namespace=goal.tracked.location, name=target[-1])
    link = Link(namespace=source.tracked.location, name=dropped.name)
    draft = Draft(events=encode([event]), restores=True)
    changes: list[LogChange[Any]] = [_restoring(tree, tracked, id, quoted(identifier), draft, token, link)]
    _check_still_dropped(source, id, dropped, changes[0].view, link)
    changes += _linking(source, goal, id, dropped, target, token)
    commit_changes(tree.logs, changes, token)
    return target


def undrop_namespace(
    tree: NameTree,
    namespace: Identifier,
    id: str | None,
    to: Identifier | None,
    token: Token | None,
    *,
    inside_only: bool = False,
) -> Identifier:
    """Restore a namespace with all that was dropped together with it; return its name now. With `inside_only`, names
    that lead out of the warehouse are removed, and what they lead to is left as it is."""
    if not namespace:
        raise InvalidInput("the root namespace cannot be dropped or restored: name another one")
    tree.logs.check_writable()
    target = to or namespace
    check_namespace(target)
    if was_applied_anywhere(tree.logs, token):
        return target
    if tree.logs.is_a_cut:
        raise Unsupported(
            "a namespace cannot be restored in a transaction: restore it before or after the transaction"
        )
    source, id, dropped = _dropped(tree, namespace, NAMESPACE, id)
    goal = tree.namespace(target[:-1])
    tracked = tree.logs.namespace(dropped.location)
    event = NamespaceRestored(parent=goal.tracked.location, name=target[-1])
    stale = _stale_names(tree, tracked.current().state, inside_only)
    draft = Draft(events=encode([event, *stale]), restores=True)
    link = Link(namespace=source.tracked.location, name=dropped.name)
    changes: list[LogChange[Any]] = [_restoring(tree, tracked, id, quoted(namespace), draft, token, link)]
    _check_still_dropped(source, id, dropped, changes[0].view, link)
    changes += _linking(source, goal, id, dropped, target, token)
    changes += _below(tree, tracked, _sealed_by(tracked), token, inside_only)
    commit_changes(tree.logs, changes, token)
    return target


def _below(
    tree: NameTree,
    tracked: TrackedLog[NamespaceState],
    drop_id: str,
    token: Token | None,
    inside_only: bool,
) -> list[LogChange[Any]]:
    """Return the changes that restore the objects below a namespace that were sealed by the same drop."""
    changes: list[LogChange[Any]] = []
    for name, entry in tracked.current().state.entries.get(RELATION, {}).items():
        if inside_only and is_elsewhere(entry.location):
            continue
        table = tree.logs.table(entry.location)
        link = Link(namespace=tracked.location, name=name)
        if _was_sealed_by(table, entry.id, drop_id, link):
            event = TableRestored(namespace=tracked.location, name=name)
            draft = Draft(events=encode([event]), restores=True)
            changes.append(_restoring(tree, table, entry.id, quoted([name]), draft, token, link))
    for name, entry in tracked.current().state.entries.get(NAMESPACE, {}).items():
        child = tree.logs.namespace(entry.location)
        link = Link(namespace=tracked.location, name=name)
        if _was_sealed_by(child, entry.id, drop_id, link):
            restored = NamespaceRestored(parent=tracked.location, name=name)
            stale = _stale_names(tree, child.current().state, inside_only)
            draft = Draft(events=encode([restored, *stale]), restores=True)
            changes.append(_restoring(tree, child, entry.id, quoted([name]), draft, token, link))
            changes += _below(tree, child, drop_id, token, inside_only)
    return changes


def _stale_names(tree: NameTree, state: NamespaceState, inside_only: bool) -> list[EntryUnlinked]:
    """Return the removal of names whose table was purged since, or whose place, chosen by a user, now belongs to
    another table."""
    return [
        EntryUnlinked(space=RELATION, name=name, id=entry.id)
        for name, entry in state.entries.get(RELATION, {}).items()
        if (inside_only and is_elsewhere(entry.location)) or _is_stale(tree.logs.table(entry.location), entry)
    ]


def _is_stale(tracked: TrackedLog[Any], entry: Entry) -> bool:
    try:
        view = tracked.at_its_place()
    except NotFound:
        return not has_own_place(entry)
    return view.purged if view.log_id == entry.id else not has_own_place(entry)


def _was_sealed_by(tracked: TrackedLog[Any], id: str, drop_id: str, link: Link) -> bool:
    """Return whether a log was sealed by a drop, under that name: the entries of a namespace can be forged."""
    try:
        view = tracked.current()
    except NotFound:
        return False
    is_sealed = view.log_id == id and view.sealed and not view.purged and view.state.link == link
    return is_sealed and bool(drop_id) and _sealed_by(tracked) == drop_id


def _sealed_by(tracked: TrackedLog[Any]) -> str:
    """Return the id of the commit that sealed a log: one drop has one id in all of its logs."""
    version = tracked.current().version
    # Few entries follow a seal. Where it has expired, its tombstone still has the commit's id.
    last = list(tracked.log.replay.effects(max(1, version - LOOK_BACK), version))
    return next((entry.commit_id for entry in reversed(last) if entry.seals), "")


def _dropped(
    tree: NameTree, identifier: Identifier, space: str, id: str | None
) -> tuple[Found[NamespaceState], str, Dropped]:
    """Return the namespace of the drop, and the id and entry that were dropped. NotFound, with the names that there
    are."""
    parent = tree.namespace(identifier[:-1])
    key, dropped = dropped_last(parent.view.state.dropped, space, identifier, id, what="nothing")
    return parent, key, dropped


def _restoring(
    tree: NameTree,
    tracked: TrackedLog[Any],
    id: str,
    title: str,
    draft: Draft,
    token: Token | None,
    link: Link,
) -> LogChange[Any]:
    try:
        view = tracked.current()
    except NotFound as error:
        raise NotFound(f"{title} cannot be restored: its log is missing ({error})") from error
    seen = view.version

    def decide(view: View[Any], passed: Sequence[Commit]) -> Draft:
        if view.log_id != id:
            raise NotFound(f"{title} cannot be restored: another table was created at its place since")
        if view.purged:
            raise NotFound(f"{title} can no longer be restored: it was purged at version {view.version}")
        if view.state.link != link and view.version > seen:
            raise _restored_meanwhile(title, view)
        if view.state.link != link:
            raise linked_elsewhere(title, tree.logs.url(tracked.location), view.state.link)
        return draft

    return LogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _check_still_dropped(
    source: Found[NamespaceState], id: str, dropped: Dropped, view: View[Any], link: Link
) -> None:
    """Raise CommitConflict where another client restored it after the namespace was read, and before its own log was:
    then its link is another one, as that of an entry that was forged."""
    if view.state.link == link:
        return
    now = source.tracked.current()
    if now.state.dropped.get(id) != dropped:
        raise _restored_meanwhile(quoted([dropped.name]), now)


def _restored_meanwhile(title: str, view: View[Any]) -> CommitConflict:
    return CommitConflict(
        f"{title} was restored or purged by another client meanwhile: look it up again", version=view.version
    )


def _linking(
    source: Found[NamespaceState],
    goal: Found[NamespaceState],
    id: str,
    dropped: Dropped,
    target: Identifier,
    token: Token | None,
) -> list[LogChange[Any]]:
    name, space = target[-1], dropped.space
    linked = EntryLinked(space=space, name=name, kind=dropped.kind, id=id, location=dropped.location)
    is_same = source.tracked.location == goal.tracked.location

    def link(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if is_same:
            check(view)
        if space == RELATION:
            check_free(view.state, target)
        elif view.state.entry(space, name) is not None:
            raise NamespaceExists(
                f"there is a namespace {quoted(target)} already: restore it under another name"
            )
        return Draft(events=encode([linked]))

    def forget(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check(view)
        return Draft(events=encode([EntryPurged(id=id)]))

    def check(view: View[NamespaceState]) -> None:
        if id not in view.state.dropped:
            raise _restored_meanwhile(quoted(target), view)

    return changes_of([(goal, link)] if is_same else [(goal, link), (source, forget)], token)
