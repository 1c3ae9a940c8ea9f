"""Drops that cannot be undone: the table is purged at once, rather than by a vacuum after its retention."""

from __future__ import annotations

from lakelog.catalog.core.ddl import NeededVersions, drop_table
from lakelog.catalog.core.logs import (
    FOREVER_US,
    LogTarget,
    NameTree,
    Token,
    TrackedLog,
    UnreadableLog,
    was_applied_anywhere,
)
from lakelog.catalog.core.state import RELATION, NameLink, NamespaceEntry, TableState
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.keeping.maintenance import purge
from lakelog.catalog.keeping.maintenance.promises import kept_for
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import LakelogError, NotFound, Unsupported


def drop_and_purge(
    tree: NameTree,
    identifier: Identifier,
    token: Token | None,
    only: str | None = None,
    *,
    is_replaced: bool = False,
) -> bool:
    """Drop a table, delete its files and forget it.

    False if it does not exist, or is not at the place `only`.

    A table at a place that its user chose is forgotten, and its files stay. Raises Unsupported, with nothing
    done, if a saved cut has the table, or a clone needs its files. A table that `is_replaced` is purged
    nevertheless (see `purge.do`). Raises DoneInPart if the table was dropped, but could not be purged.
    """
    tree.logs.check_writable()
    if tree.logs.is_a_cut:
        raise Unsupported(
            f"{quoted(identifier)} cannot be purged in a transaction, as a purge cannot be rolled back: drop it "
            "without PURGE, or purge it outside of the transaction"
        )
    table = None if was_applied_anywhere(tree.logs, token) else tree.find_table(identifier)
    if table is not None and not is_replaced and NeededVersions(tree).get(table.tracked.location) is not None:
        raise Unsupported(
            f"a saved cut has versions of {quoted(identifier)}, which a purge would delete: drop that cut first, or "
            "drop the table without PURGE"
        )
    if table is not None and not is_replaced and (clones := kept_for(tree.logs, table.tracked, table.view)):
        raise Unsupported(
            f"{quoted(identifier)} has files that clones of it need, {', '.join(clones)}: materialize them "
            "(ALTER TABLE … MATERIALIZE) and expire their older versions, drop and purge them, or drop the table "
            "without PURGE"
        )
    drop_token = token or Token(commit_id=tree.logs.new_id(), bases={})
    if not drop_table(tree, identifier, drop_token, only):
        return False
    try:
        _purge(tree, identifier, drop_token, is_replaced)
    except DoneInPart:
        raise
    except LakelogError as error:
        raise DoneInPart(
            f"{quoted(identifier)} was dropped, but not all of it is purged: {error}. Vacuum purges the rest after its "
            "retention"
        ) from error
    return True


def purge_replaced(tree: NameTree, name: Identifier, location: str) -> None:
    """Purge a dropped clone at a place in a warehouse during a restore, whatever needs it.

    Its log names files of another warehouse. If it stops anywhere, the next call finishes the work.
    """
    table_log = tree.logs.table(location)
    try:
        view = table_log.at_its_place()
    except NotFound:
        return
    entry = NamespaceEntry(kind="table", id=view.log_id, location=location)
    plan = purge.plan_purge(tree, "table", quoted(name), entry, link=view.state.link)
    if plan is not None:
        purge.do(tree, plan, is_replaced=True)
    parent = tree.find_namespace(name[:-1])
    if parent is not None:
        above = LogTarget(quoted(name[:-1]), name[:-1], parent.tracked, parent.tracked.current())
        purge.take_off_the_list(above, [view.log_id])


def _purge(tree: NameTree, identifier: Identifier, token: Token, is_replaced: bool) -> None:
    """Purge the table that `token` has dropped under that name, unless it is purged already."""
    parent = tree.find_namespace(identifier[:-1])
    if parent is None:
        return  # dropped since, with all that had been dropped in it
    view = parent.tracked.current()
    namespace = LogTarget(quoted(identifier[:-1]), identifier[:-1], parent.tracked, view)
    purged_ids = []
    refusals: list[UnreadableLog] = []
    for id, (kind, name, entry) in purge.due(view.state, FOREVER_US).items():
        if name != identifier[-1] or view.state.dropped[id].space != RELATION:
            continue
        table_log = tree.logs.table(entry.location)
        if not _is_dropped_by(table_log, id, token):
            continue
        link = NameLink(namespace=parent.tracked.location, name=name)
        plan = purge.plan_purge(tree, kind, quoted(identifier), entry, link=link)
        if plan is not None and not purge.do(tree, plan, is_replaced=is_replaced):
            raise DoneInPart(
                f"{quoted(identifier)} was dropped, but not purged: it was restored since, or a cut was saved or a "
                "clone made that has it. Vacuum purges it after its retention"
            )
        purged_ids.append(id)
        refusals += () if plan is None else plan.refused
    if purged_ids:
        purge.take_off_the_list(namespace, purged_ids)
    if refusals:
        raise DoneInPart(
            f"{quoted(identifier)} was purged, except for the files that it has adopted: {refusals[0].error}"
        )


def _is_dropped_by(tracked: TrackedLog[TableState], id: str, token: Token) -> bool:
    """Return whether the log ends with that drop, or is being purged already."""
    try:
        view = tracked.at_its_place()
    except NotFound:
        return False
    tracked.log.check_not_withheld(view)
    if view.log_id != id:
        return False
    return view.purged or (
        view.sealed and tracked.find(token.commit_id, view.version, view.version) is not None
    )
