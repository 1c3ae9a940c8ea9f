"""Drops that cannot be undone: the table is purged at once, rather than by a vacuum after its retention."""

from __future__ import annotations

from lakelog.catalog.core.ddl import NeededVersions, drop_table
from lakelog.catalog.core.logs import (
    FOREVER_US,
    NameTree,
    Target,
    Token,
    TrackedLog,
    Unreadable,
    was_applied_anywhere,
)
from lakelog.catalog.core.state import RELATION, Entry, Link, TableState
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
    """Drop a table, delete its files and forget it; False where it does not exist, or is not at the place `only`.

    A table at a place that its user chose is forgotten, and its files stay. Unsupported, with nothing done, where a
    saved cut has the table, or a clone needs its files, unless it `is_replaced` (see `purge.do`). DoneInPart where it
    was dropped, but could not be purged.
    """
    tree.logs.check_writable()
    if tree.logs.is_a_cut:
        raise Unsupported(
            f"{quoted(identifier)} cannot be purged in a transaction, as a purge cannot be rolled back: drop it "
            "without PURGE, or purge it outside of the transaction"
        )
    found = None if was_applied_anywhere(tree.logs, token) else tree.find_table(identifier)
    if found is not None and not is_replaced and NeededVersions(tree).get(found.tracked.location) is not None:
        raise Unsupported(
            f"a saved cut has versions of {quoted(identifier)}, which a purge would delete: drop that cut first, or "
            "drop the table without PURGE"
        )
    if found is not None and not is_replaced and (clones := kept_for(tree.logs, found.tracked, found.view)):
        raise Unsupported(
            f"{quoted(identifier)} has files that clones of it need, {', '.join(clones)}: materialize them "
            "(ALTER TABLE … MATERIALIZE) and expire their older versions, drop and purge them, or drop the table "
            "without PURGE"
        )
    asked = token or Token(commit_id=tree.logs.new_id(), bases={})
    if not drop_table(tree, identifier, asked, only):
        return False
    try:
        _purge(tree, identifier, asked, is_replaced)
    except DoneInPart:
        raise
    except LakelogError as error:
        raise DoneInPart(
            f"{quoted(identifier)} was dropped, but not all of it is purged: {error}. Vacuum purges the rest after its "
            "retention"
        ) from error
    return True


def purge_replaced(tree: NameTree, name: Identifier, location: str) -> None:
    """Purge a dropped clone at a place, in a warehouse that is being restored, whatever has a need of it: it names the
    files of another warehouse. Stopped anywhere, it is finished by the next call."""
    tracked = tree.logs.table(location)
    try:
        view = tracked.at_its_place()
    except NotFound:
        return
    entry = Entry(kind="table", id=view.log_id, location=location)
    planned = purge.plan_purge(tree, "table", quoted(name), entry, link=view.state.link)
    if planned is not None:
        purge.do(tree, planned, is_replaced=True)
    parent = tree.find_namespace(name[:-1])
    if parent is not None:
        above = Target(quoted(name[:-1]), name[:-1], parent.tracked, parent.tracked.current())
        purge.take_off_the_list(above, [view.log_id])


def _purge(tree: NameTree, identifier: Identifier, token: Token, is_replaced: bool) -> None:
    """Purge what `token` has dropped under that name, unless that has been done."""
    parent = tree.find_namespace(identifier[:-1])
    if parent is None:
        return  # dropped since, with all that had been dropped in it
    view = parent.tracked.current()
    namespace = Target(quoted(identifier[:-1]), identifier[:-1], parent.tracked, view)
    finished = []
    refused: list[Unreadable] = []
    for id, (kind, name, entry) in purge.due(view.state, FOREVER_US).items():
        if name != identifier[-1] or view.state.dropped[id].space != RELATION:
            continue
        tracked = tree.logs.table(entry.location)
        if not _is_dropped_by(tracked, id, token):
            continue
        link = Link(namespace=parent.tracked.location, name=name)
        planned = purge.plan_purge(tree, kind, quoted(identifier), entry, link=link)
        if planned is not None and not purge.do(tree, planned, is_replaced=is_replaced):
            raise DoneInPart(
                f"{quoted(identifier)} was dropped, but not purged: it was restored since, or a cut was saved or a "
                "clone made that has it. Vacuum purges it after its retention"
            )
        finished.append(id)
        refused += () if planned is None else planned.refused
    if finished:
        purge.take_off_the_list(namespace, finished)
    if refused:
        raise DoneInPart(
            f"{quoted(identifier)} was purged, except for the files that it has adopted: {refused[0].error}"
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
