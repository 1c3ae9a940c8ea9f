"""Undoing drops.

A single commit across all of their logs continues sealed logs as they were, and links them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelog.catalog.core.ddl.dropped import dropped_last
from lakelog.catalog.core.ddl.staging import check_free
from lakelog.catalog.core.files.data_file import is_elsewhere
from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.core.logs.commits import Token, base_past_seals, commit_changes, was_applied_anywhere
from lakelog.catalog.core.logs.name_tree import FoundLog, NameTree, changes_of, has_own_place
from lakelog.catalog.core.logs.own_links import linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.events import (
    EntryLinked,
    EntryPurged,
    EntryUnlinked,
    NamespaceRestored,
    TableRestored,
    encode,
)
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.namespace_entries import DroppedLog, NamespaceEntry
from lakelog.catalog.core.state.namespace_state import NAMESPACE, RELATION, NamespaceState
from lakelog.catalog.errors import CommitConflict, NamespaceExists
from lakelog.catalog.names import Identifier, check_name, check_namespace, quoted
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

LOOK_BACK = 63


def undrop_table(
    tree: NameTree, identifier: Identifier, id: str | None, to: Identifier | None, token: Token | None
) -> Identifier:
    """Restore the table that was dropped last under that name, or has that id. Return its present name."""
    tree.logs.check_writable()
    target = to or identifier
    check_name(target[-1], "table")
    if was_applied_anywhere(tree.logs, token):
        return target
    source, drop = _dropped(tree, identifier, RELATION, id)
    goal = tree.namespace(target[:-1])
    table_log = tree.logs.table(drop.entry.location)
    event = TableRestored(namespace=goal.tracked.location, name=target[-1])
    link = NameLink(namespace=source.tracked.location, name=drop.name)
    draft = Draft(events=encode([event]), restores=True)
    changes: list[JointLogChange[Any]] = [
        _restoring(tree, table_log, drop.entry.id, quoted(identifier), draft, token, link)
    ]
    _check_still_dropped(source, drop, changes[0].view, link)
    changes += _linking(source, goal, drop, target, token)
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
    """Restore a namespace with everything that was dropped together with it.

    Return its present name. With `inside_only`, names that lead out of the warehouse are removed, and the
    tables they lead to are left as they are.
    """
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
    source, drop = _dropped(tree, namespace, NAMESPACE, id)
    goal = tree.namespace(target[:-1])
    namespace_log = tree.logs.namespace(drop.entry.location)
    event = NamespaceRestored(parent=goal.tracked.location, name=target[-1])
    stale = _stale_names(tree, namespace_log.current().state, inside_only)
    draft = Draft(events=encode([event, *stale]), restores=True)
    link = NameLink(namespace=source.tracked.location, name=drop.name)
    changes: list[JointLogChange[Any]] = [
        _restoring(tree, namespace_log, drop.entry.id, quoted(namespace), draft, token, link)
    ]
    _check_still_dropped(source, drop, changes[0].view, link)
    changes += _linking(source, goal, drop, target, token)
    changes += _below(tree, namespace_log, _sealed_by(namespace_log), token, inside_only)
    commit_changes(tree.logs, changes, token)
    return target


def _below(
    tree: NameTree,
    tracked: TrackedLog[NamespaceState],
    drop_id: str,
    token: Token | None,
    inside_only: bool,
) -> list[JointLogChange[Any]]:
    """Return the changes that restore the objects below a namespace that were sealed by the same drop."""
    changes: list[JointLogChange[Any]] = []
    for name, entry in tracked.current().state.logs(RELATION):
        if inside_only and is_elsewhere(entry.location):
            continue
        table = tree.logs.table(entry.location)
        link = NameLink(namespace=tracked.location, name=name)
        if _was_sealed_by(table, entry.id, drop_id, link):
            event = TableRestored(namespace=tracked.location, name=name)
            draft = Draft(events=encode([event]), restores=True)
            changes.append(_restoring(tree, table, entry.id, quoted([name]), draft, token, link))
    for name, entry in tracked.current().state.logs(NAMESPACE):
        child = tree.logs.namespace(entry.location)
        link = NameLink(namespace=tracked.location, name=name)
        if _was_sealed_by(child, entry.id, drop_id, link):
            restore_event = NamespaceRestored(parent=tracked.location, name=name)
            stale = _stale_names(tree, child.current().state, inside_only)
            draft = Draft(events=encode([restore_event, *stale]), restores=True)
            changes.append(_restoring(tree, child, entry.id, quoted([name]), draft, token, link))
            changes += _below(tree, child, drop_id, token, inside_only)
    return changes


def _stale_names(tree: NameTree, state: NamespaceState, inside_only: bool) -> list[EntryUnlinked]:
    """Return the removal of names whose table was purged, or whose place belongs to another table by now.

    Only a place that a user chose can belong to another table.
    """
    return [
        EntryUnlinked(space=RELATION, name=name, id=entry.id)
        for name, entry in state.logs(RELATION)
        if (inside_only and is_elsewhere(entry.location)) or _is_stale(tree.logs.table(entry.location), entry)
    ]


def _is_stale(tracked: TrackedLog[Any], entry: NamespaceEntry) -> bool:
    try:
        view = tracked.at_its_place()
    except NotFound:
        return not has_own_place(entry)
    return view.purged if view.log_id == entry.id else not has_own_place(entry)


def _was_sealed_by(tracked: TrackedLog[Any], id: str, drop_id: str, link: NameLink) -> bool:
    """Return whether a drop sealed a log under that name.

    Checked, because the entries of a namespace can be forged.
    """
    try:
        view = tracked.current()
    except NotFound:
        return False
    is_sealed_here = view.log_id == id and view.sealed and not view.purged and view.state.link == link
    return is_sealed_here and bool(drop_id) and _sealed_by(tracked) == drop_id


def _sealed_by(tracked: TrackedLog[Any]) -> str:
    """Return the id of the commit that sealed a log. A drop has the same id in all of its logs."""
    version = tracked.current().version
    # Few entries follow a seal. If it has expired, its tombstone still has the commit's id.
    last = list(tracked.log.replay.effects(max(1, version - LOOK_BACK), version))
    return next((entry.commit_id for entry in reversed(last) if entry.seals), "")


def _dropped(
    tree: NameTree, identifier: Identifier, space: str, id: str | None
) -> tuple[FoundLog[NamespaceState], DroppedLog]:
    """Return the namespace of the drop, and the log that was dropped.

    Raises NotFound with the names that can be restored.
    """
    parent = tree.namespace(identifier[:-1])
    return parent, dropped_last(parent.view.state.dropped_logs(), space, identifier, id, what="nothing")


def _restoring(
    tree: NameTree,
    tracked: TrackedLog[Any],
    id: str,
    title: str,
    draft: Draft,
    token: Token | None,
    link: NameLink,
) -> JointLogChange[Any]:
    try:
        view = tracked.current()
    except NotFound as error:
        raise NotFound(f"{title} cannot be restored: its log is missing ({error})") from error
    seen_version = view.version

    def decide(view: LogView[Any], passed_commits: Sequence[Commit]) -> Draft:
        if view.log_id != id:
            raise NotFound(f"{title} cannot be restored: another table was created at its place since")
        if view.purged:
            raise NotFound(f"{title} can no longer be restored: it was purged at version {view.version}")
        if view.state.link != link and view.version > seen_version:
            raise _restored_meanwhile(title, view)
        if view.state.link != link:
            raise linked_elsewhere(title, tree.logs.url(tracked.location), view.state.link)
        return draft

    return JointLogChange(tracked, view, decide, base_past_seals(token, tracked, view))


def _check_still_dropped(
    source: FoundLog[NamespaceState], drop: DroppedLog, view: LogView[Any], link: NameLink
) -> None:
    """Raise CommitConflict if another client restored the object between the reads of its two logs.

    These are the namespace's log, which was read first, and its own. Its link then differs, as a forged
    entry's link does.
    """
    if view.state.link == link:
        return
    current = source.tracked.current()
    if current.state.dropped_log(drop.entry.id) != drop:
        raise _restored_meanwhile(quoted([drop.name]), current)


def _restored_meanwhile(title: str, view: LogView[Any]) -> CommitConflict:
    return CommitConflict(
        f"{title} was restored or purged by another client meanwhile: look it up again", version=view.version
    )


def _linking(
    source: FoundLog[NamespaceState],
    goal: FoundLog[NamespaceState],
    drop: DroppedLog,
    target: Identifier,
    token: Token | None,
) -> list[JointLogChange[Any]]:
    name, space, entry = target[-1], drop.space, drop.entry
    link_event = EntryLinked(space=space, name=name, kind=entry.kind, id=entry.id, location=entry.location)
    is_same = source.tracked.location == goal.tracked.location

    def link(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if is_same:
            check(view)
        if space == RELATION:
            check_free(view.state, target)
        elif view.state.entry(space, name) is not None:
            raise NamespaceExists(
                f"there is a namespace {quoted(target)} already: restore it under another name"
            )
        return Draft(events=encode([link_event]))

    def forget(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        check(view)
        return Draft(events=encode([EntryPurged(id=entry.id)]))

    def check(view: LogView[NamespaceState]) -> None:
        if entry.id not in view.state.dropped:
            raise _restored_meanwhile(quoted(target), view)

    return changes_of([(goal, link)] if is_same else [(goal, link), (source, forget)], token)
