"""The subject of an erasure: a table, its clones, dropped tables of its name, and their rows to erase.

This module changes nothing. Its findings, the losses by the erasure, and the remaining rows, in words, are
the answer of a dry run.
"""

from __future__ import annotations

import numpy as np

from lakelog.catalog.core.logs import (
    NameTree,
    Progress,
    TableHead,
    TrackedLog,
    known_path_to,
)
from lakelog.catalog.core.schema import Predicate
from lakelog.catalog.core.state import (
    MAIN,
    RELATION,
    TABLE,
    TableState,
    normalized,
)
from lakelog.catalog.errors import NoSuchColumn
from lakelog.catalog.keeping.erasure.dropped import dropped_tables, ever_named
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.foreign import foreign_files
from lakelog.catalog.keeping.erasure.former_clones import former_clones
from lakelog.catalog.keeping.erasure.holdings import HeldRows, boundaries, held_by, is_boundary
from lakelog.catalog.keeping.erasure.losses import losses_of, moved_away, temporary
from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.catalog.keeping.erasure.namespaces import namespaces_of, namespaces_quoting, places_above
from lakelog.catalog.keeping.erasure.old_bounds import old_bounds
from lakelog.catalog.keeping.erasure.proposed import proposals_with_rows
from lakelog.catalog.keeping.erasure.row_set import RowSet, row_set
from lakelog.catalog.keeping.erasure.texts import definitions_quoting, entries_quoting, values_of
from lakelog.catalog.keeping.erasure.unlinked import TableFamily, unlinked_with_rows
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray
from lakelog.catalog.keeping.maintenance.orphans import OrphanLog, unfinished
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import LogView
from lakelog.log.errors import InvalidInput, LakelogError, NotFound


class ErasureSearch:
    """All findings, and their descriptions. `logs` are in the order of the erasure."""

    def __init__(
        self,
        tree: NameTree,
        identifier: Identifier,
        predicate: Predicate,
        work: ErasureWork,
        progress: Progress,
    ) -> None:
        self.tree, self.predicate = tree, predicate
        self._work, self._progress = work, progress
        self._identifier = identifier
        self.id = tree.logs.new_id()
        self.filter = normalized(str(predicate))
        self.values = values_of(predicate)
        self.logs: list[ErasedLog] = []
        self.dropped: list[ErasedLog] = []
        self.namespaces: list[ErasedTable] = []
        self.lost: list[Lost] = []
        self.left: list[str] = []
        self.unreached: list[str] = []
        self._released: set[str] = set()
        self.orphans: list[OrphanLog] = []
        self._met: set[str] = set()
        self._read: list[TrackedLog[TableState]] = []
        self._rows: dict[str, RowSet] = {}
        self._namespaces = list(namespaces_of(tree, self.unreached.append))
        self._named = ever_named(self._namespaces, identifier)
        table = tree.table(identifier)
        self.head = TableHead.named(tree.logs, table, identifier)

    @property
    def is_due(self) -> bool:
        return self._any_due or bool(self.namespaces or self.orphans)

    @property
    def _any_due(self) -> bool:
        return any(log.is_due for log in (*self.logs, *self.dropped))

    # Looking

    def look(self, *, leave_foreign: bool) -> None:
        """Find everything that has rows to erase."""
        self._progress(f"{self.head.name}: looking for files with such rows")
        self._look_at_dropped()
        self._add(self.head, self._identifier, "table")
        self._look_at_former_clones()
        self._look_at_promises()
        self._look_at_origins()
        self._look_at_renamed()
        self._look_at_boundaries()
        for own_log in self.logs:
            self.left += foreign_files(own_log, leave=leave_foreign)
        for own_log in self.logs:
            if own_log.is_due:
                self.lost += losses_of(self.tree, own_log, self._work)
            elif count := moved_away(own_log.head):
                self.left.append(
                    f"{own_log.head.name}: {count:,} objects that a repair has moved to _lost/ are not looked into, "
                    "and may have such rows: delete them"
                )
            self._name_definitions(own_log.head)
        for log in self.dropped:
            self.lost.append(Lost(kind="dropped-table", name=log.head.name, why="is purged"))
        self._name_entries()
        for place, losses in namespaces_quoting(self.tree, [*self.logs, *self.dropped], self.values):
            self.namespaces.append(place)
            self.lost += losses
        self.look_at_unlinked()

    def _name_definitions(self, head: TableHead) -> None:
        for state in head.state.kept():
            name = head.name if state.line == MAIN else f"{head.name}, {state.line}"
            if state.line != MAIN and state.current == head.metadata:
                continue
            for problem in definitions_quoting(state.current, self.values):
                self.left.append(f"{name}: {problem}")

    def _name_entries(self) -> None:
        """Report definitions that quote values.

        Other namespaces' may be unrelated, so they are not reported as left.
        """
        near = places_above([*self.logs, *self.dropped])
        for space in self._namespaces:
            messages = self.left if space.tracked.location in near else self.unreached
            name = quoted(space.path) if space.path else self.tree.logs.url(space.tracked.location)
            for problem in entries_quoting(space.state, self.values):
                messages.append(f"{name}: {problem}")

    def let_go(self) -> None:
        """Reload all logs at their next use."""
        for table_log in self._read:
            table_log.forget()

    def look_at_temporary_folders(self, *, delete: bool) -> None:
        """Look for rows that did not fit into the memory of a killed process, and half-written objects."""
        losses, messages = temporary(self.tree, [*self.logs, *self.dropped], delete=delete)
        self.lost += losses
        self.unreached += messages

    def _add(self, head: TableHead, path: Identifier | None, kind: str) -> ErasedLog:
        self._met.add(head.id)
        self._read.append(head.tracked)
        shared_ids = self._family().shared_with(head.state) if kind == "clone" else None
        rows = row_set(head, self.predicate, self._work, shared_ids)
        if rows.unnamed:
            self.unreached.append(
                f"values of columns of {head.name} that were dropped before its oldest version that can be read "
                f"({', '.join(rows.unnamed)} in files): no row is found by these. They go as files are rewritten"
            )
        holdings = held_by(head, rows)
        self._rows[head.id] = rows
        self._add_clones(head, holdings)
        log = self._with_traces(ErasedLog(head, path, kind, holdings, rows))
        self.logs.append(log)
        return log

    def _with_traces(self, log: ErasedLog) -> ErasedLog:
        """Look for traces of the rows outside of files.

        These are statements, former definitions, boundaries, proposals, and bounds of files that are gone.
        """
        head, rows = log.head, log.rows
        bounds = [] if rows is None else old_bounds(head, rows)
        proposals = [] if rows is None else list(proposals_with_rows(head, rows, self.values))
        if bounds or proposals:
            log.must()
        if rows is not None and (rows.quoting or is_boundary(self.predicate, rows.ranks)):
            log.must()
        log.say(old_bounds=len(bounds))
        return log

    def _add_clones(self, head: TableHead, held_rows: HeldRows) -> None:
        clones = []
        for id, promise in sorted(head.state.clones.items()):
            clone_log = self.tree.logs.table(promise.location)
            try:
                clones.append((id, promise.location, clone_log, clone_log.at_its_place()))
            except LakelogError as error:
                if id in held_rows.clones and id not in self._met:
                    url = self.tree.logs.url(promise.location)
                    self.left.append(f"the clone at {url} cannot be read: {error}")
        # A clone of a clone comes after that clone because it has its rows.
        for id, location, clone_log, view in sorted(clones, key=lambda clone: len(clone[3].state.ancestors)):
            if id not in self._met:
                self._add_clone(id, location, clone_log, view, id in held_rows.clones)

    def _add_clone(
        self, id: str, location: str, tracked: TrackedLog[TableState], view: LogView[TableState], holds: bool
    ) -> None:
        if view.log_id != id or (view.purged and not holds):
            self._released.add(id)
            return
        path = self._path_of(view)
        name = self.tree.logs.url(location) if path is None else quoted(path)
        head = TableHead(self.tree.logs, tracked, view, name)
        orphan = unfinished(self.tree, tracked, view) if holds else None
        if orphan is not None:
            self._add_orphan(orphan)
            return
        if view.sealed:
            self._add_dropped_clone(head, path, holds)
            return
        try:
            self._add(head, path, "clone")
        except (InvalidInput, NotFound) as error:
            self.left.append(f"{name}, a clone, was left as it is: {error}")

    def _add_dropped_clone(self, head: TableHead, path: Identifier | None, holds: bool) -> None:
        self._met.add(head.id)
        self._read.append(head.tracked)
        if holds or head.view.purged:
            self._add_dropped(ErasedLog(head, path, "dropped-table", HeldRows(), is_due=True))
            return
        rows = row_set(head, self.predicate, self._work, self._family().shared_with(head.state))
        holdings = held_by(head, rows)
        log = self._with_traces(ErasedLog(head, path, "dropped-table", holdings, rows))
        self._rows[head.id] = rows
        self._add_clones(head, holdings)
        if log.is_due:
            self._add_dropped(log)

    def _look_at_former_clones(self) -> None:
        own = self.logs.pop()
        for id, clone_log, view in former_clones(
            self.tree.logs, self._namespaces, self._family().ids, self._met
        ):
            if id not in self._met:
                self._add_clone(id, clone_log.location, clone_log, view, view.purged)
        self.logs.append(own)

    def _look_at_promises(self) -> None:
        """Mark clones as due if files are kept for them, because their older versions have these files.

        A clone of a clone is met once, though both of the logs that it comes from may keep files for it.
        """
        clone_ids = {id for log in self.logs for id in log.held.clones}
        for log in self.logs:
            if log.head.id in clone_ids:
                log.must()

    def _path_of(self, view: LogView[TableState]) -> Identifier | None:
        link = view.state.link
        above = None if link is None else known_path_to(self.tree.logs, link.namespace)
        return None if link is None or above is None else (*above, link.name)

    def _look_at_boundaries(self) -> None:
        """Mark clustered tables as due if a boundary may be a value of an erased row.

        Boundaries are values of rows. If any table has or had rows to erase, a boundary may belong to such a
        row, even in a clone without such rows. Otherwise only a boundary that matches by itself shows it.
        """
        logs = [log for log in self.logs if boundaries(log.head)]
        if any(log.is_due for log in self.logs) or any(
            is_boundary(self.predicate, boundaries(log.head)) for log in logs
        ):
            for log in logs:
                log.must()

    def _look_at_dropped(self) -> None:
        for entry in dropped_tables(self._namespaces, self._identifier, self._named):
            title = f"{quoted(entry.path)}, dropped, {entry.id}"
            table_log = self.tree.logs.table(entry.location)
            self._read.append(table_log)
            try:
                view = table_log.at_its_place()
                if view.log_id != entry.id:
                    continue
                head = TableHead(self.tree.logs, table_log, view, title)
                # A purge that is still on the list was stopped, and has to be completed.
                rows = None if view.purged else self._rows_of_dropped(head)
                holdings = HeldRows() if rows is None else held_by(head, rows)
            except LakelogError as error:
                self.left.append(f"the dropped table {title} was not looked at: {error}")
                continue
            log = ErasedLog(head, entry.path, "dropped-table", holdings, rows, is_due=view.purged)
            log = self._with_traces(log)
            if rows is not None:
                self._rows[head.id] = rows
            self._add_clones(head, holdings)
            if not log.is_due:
                continue
            if entry.in_dropped:
                self.left.append(
                    f"{title}, has such rows, or may, and its namespace was dropped, too: restore that and forget the "
                    "rows there, or wait for a vacuum that purges it"
                )
                continue
            self._add_dropped(log)

    def _rows_of_dropped(self, head: TableHead) -> RowSet:
        """Return its matching rows.

        Without the column there are none, but files of no version count nevertheless.
        """
        try:
            return row_set(head, self.predicate, self._work)
        except NoSuchColumn:
            return row_set(head, self.predicate, self._work, np.empty(0, np.int64))

    def _add_dropped(self, log: ErasedLog) -> None:
        if log.head.state.current.own_location:
            self.left.append(
                f"{log.head.name} has such rows, or may, at a place that a user chose, {log.head.url}, where a purge "
                "deletes nothing: restore it under another name, and forget the rows there"
            )
            return
        self.dropped.append(log)

    def _family(self) -> TableFamily:
        links = [log.head.state.link for log in (*self.logs, *self.dropped)]
        return TableFamily(
            ids={*self._rows, *self._met, *self._named},
            rows=self._rows,
            places={link.namespace for link in links if link is not None},
            is_due=self._any_due,
            erased={log.head.id: log.done.erased_at for log in self.logs if log.done.erased_at is not None},
        )

    def look_at_unlinked(self) -> None:
        """Look for folders to which no name leads."""
        orphan_ids = {known_orphan.id for known_orphan in self.orphans}
        for folder in unlinked_with_rows(self.tree, self._namespaces, self.predicate, self._family()):
            orphan = folder.orphan
            if orphan is not None and orphan.id in orphan_ids:
                continue
            if orphan is not None:
                self._add_orphan(orphan)
                continue
            self.left.append(
                f"{folder.url}, where no name leads, of a creation that was stopped or is under way, has such rows, or "
                "may: a vacuum of its namespace deletes it once it is old"
            )

    def look_again_at_unlinked(self) -> None:
        """Look for clones that began since the first look: they have lists of older files."""
        self._namespaces = list(namespaces_of(self.tree, self.unreached.append))
        self.look_at_unlinked()

    def _add_orphan(self, orphan: OrphanLog) -> None:
        self.orphans.append(orphan)
        why = "no name leads to it: it is purged, and a call that still makes it fails"
        self.lost.append(Lost(kind="unfinished-clone", name=orphan.purge.name, why=why))

    def _look_at_origins(self) -> None:
        for origin in self.head.state.origins:
            url = self.tree.logs.url(origin.location)
            try:
                origin_log = self.tree.logs.table(origin.location)
                self._read.append(origin_log)
                origin_head = TableHead.at_place(self.tree.logs, origin_log, origin_log.current())
                rows = row_set(origin_head, self.predicate, self._work, self._shared_by_clone(origin.id))
                holdings = held_by(origin_head, rows)
            except LakelogError as error:
                self.left.append(
                    f"the table at {url}, of which {self.head.name} is a clone, was not looked at: {error}"
                )
                continue
            if holdings.live or holdings.past:
                if self.head.id in holdings.clones:
                    self.logs[-1].must()
                self.left.append(
                    f"the table at {url}, of which {self.head.name} is a clone, has such rows: forget them there, "
                    "which includes its clones"
                )

    def _look_at_renamed(self) -> None:
        """Report a renamed table that has rows to erase.

        They stay because it has its own name, unknown to the caller.
        """
        for space in self._namespaces:
            for name, entry in space.state.logs(RELATION):
                if (
                    entry.id not in self._named
                    or entry.id in self._met
                    or entry.kind != TABLE
                    or space.is_dropped
                ):
                    continue
                title = quoted((*space.path, name))
                if self._has_such_rows(entry.location, title):
                    self.left.append(
                        f"{title}, which was called {self.head.name} before, has such rows, or may: forget them there"
                    )

    def _has_such_rows(self, location: str, title: str) -> bool:
        table_log = self.tree.logs.table(location)
        self._read.append(table_log)
        try:
            head = TableHead.at_place(self.tree.logs, table_log, table_log.current())
            rows = row_set(head, self.predicate, self._work)
            holdings = held_by(head, rows)
            return bool(holdings.live or holdings.past or old_bounds(head, rows))
        except NoSuchColumn:
            return False
        except LakelogError as error:
            self.left.append(f"{title}, which was called {self.head.name} before, was not looked at: {error}")
            return False

    def _shared_by_clone(self, origin: str) -> NumberArray:
        """Return the ids of the rows that the table has from that origin."""
        own = self._rows[self.head.id]
        until = [ancestor.until for ancestor in self.head.state.ancestors if ancestor.id == origin]
        return own.shared(until[0] if until else 0)
