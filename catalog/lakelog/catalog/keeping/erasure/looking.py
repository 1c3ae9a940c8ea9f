"""What an erasure is about: a table, its clones and the dropped tables that had its name, with all that has such rows.

Nothing is changed here. What is found, what will be lost by the erasure, and what it leaves, in words, is the answer of
a dry run.
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
from lakelog.catalog.keeping.erasure.holdings import Held, boundaries, held_by, is_boundary
from lakelog.catalog.keeping.erasure.losses import losses_of, moved_away, temporary
from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.catalog.keeping.erasure.namespaces import namespaces_of, namespaces_quoting
from lakelog.catalog.keeping.erasure.old_bounds import old_bounds
from lakelog.catalog.keeping.erasure.proposed import proposals_with_rows
from lakelog.catalog.keeping.erasure.row_set import RowSet, row_set
from lakelog.catalog.keeping.erasure.texts import definitions_quoting, values_of
from lakelog.catalog.keeping.erasure.unlinked import Family, unlinked_with_rows
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray
from lakelog.catalog.keeping.maintenance import Orphan, unfinished
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import View
from lakelog.log.errors import InvalidInput, LakelogError, NotFound


class Looking:
    """All that is found, and what is said of it. `logs` are in the order in which they are erased."""

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
        self.orphans: list[Orphan] = []
        self._met: set[str] = set()
        self._read: list[TrackedLog[TableState]] = []
        self._rows: dict[str, RowSet] = {}
        self._namespaces = list(namespaces_of(tree, self.unreached.append))
        self._named = ever_named(self._namespaces, identifier)
        found = tree.table(identifier)
        self.head = TableHead.named(tree.logs, found, identifier)

    @property
    def is_due(self) -> bool:
        return self._any_due or bool(self.namespaces or self.orphans)

    @property
    def _any_due(self) -> bool:
        return any(each.is_due for each in (*self.logs, *self.dropped))

    # Looking

    def look(self, *, leave_foreign: bool) -> None:
        """Find out what has such rows."""
        self._progress(f"{self.head.name}: looking for files with such rows")
        self._look_at_dropped()
        self._add(self.head, self._identifier, "table")
        self._look_at_former_clones()
        self._look_at_promises()
        self._look_at_origins()
        self._look_at_renamed()
        self._look_at_boundaries()
        for each in self.logs:
            self.left += foreign_files(each, leave=leave_foreign)
        for each in self.logs:
            if each.is_due:
                self.lost += losses_of(self.tree, each, self._work)
            elif moved := moved_away(each.head):
                self.left.append(
                    f"{each.head.name}: {moved:,} objects that a repair has moved to _lost/ are not looked into, "
                    "and may have such rows: delete them"
                )
            for what in definitions_quoting(each.head.metadata, self.values):
                self.left.append(
                    f"{each.head.name}: {what} quotes a value of the condition: change or drop it"
                )
        for log in self.dropped:
            self.lost.append(Lost(kind="dropped-table", name=log.head.name, why="is purged"))
        for place, lost in namespaces_quoting(self.tree, [*self.logs, *self.dropped], self.values):
            self.namespaces.append(place)
            self.lost += lost
        self.look_at_unlinked()

    def let_go(self) -> None:
        """Load all logs anew when they are used the next time."""
        for tracked in self._read:
            tracked.forget()

    def look_at_temporary_folders(self, *, delete: bool) -> None:
        """Rows that did not fit into the memory of a process that was killed, and half of what it was writing."""
        lost, unreached = temporary(self.tree, [*self.logs, *self.dropped], delete=delete)
        self.lost += lost
        self.unreached += unreached

    def _add(self, head: TableHead, path: Identifier | None, kind: str) -> ErasedLog:
        self._met.add(head.id)
        self._read.append(head.tracked)
        shared = self._family().shared_with(head.state) if kind == "clone" else None
        rows = row_set(head, self.predicate, self._work, shared)
        if rows.unnamed:
            self.unreached.append(
                f"values of columns of {head.name} that were dropped before its oldest version that can be read "
                f"({', '.join(rows.unnamed)} in files): no row is found by these. They go as files are rewritten"
            )
        held = held_by(head, rows)
        self._rows[head.id] = rows
        self._add_clones(head, held)
        log = self._with_traces(ErasedLog(head, path, kind, held, rows))
        self.logs.append(log)
        return log

    def _with_traces(self, log: ErasedLog) -> ErasedLog:
        """Find out what else than files has something of such rows: statements, proposals, bounds of files that are
        gone."""
        head, rows = log.head, log.rows
        bounds = [] if rows is None else old_bounds(head, rows)
        proposals = [] if rows is None else list(proposals_with_rows(head, rows, self.values))
        if bounds or proposals or (rows is not None and rows.quoting):
            log.must()
        log.say(old_bounds=len(bounds))
        return log

    def _add_clones(self, head: TableHead, held: Held) -> None:
        clones = []
        for id, promise in sorted(head.state.clones.items()):
            tracked = self.tree.logs.table(promise.location)
            try:
                clones.append((id, promise.location, tracked, tracked.at_its_place()))
            except LakelogError as error:
                if id in held.clones and id not in self._met:
                    url = self.tree.logs.url(promise.location)
                    self.left.append(f"the clone at {url} cannot be read: {error}")
        # A clone of a clone comes after that, as it has its rows.
        for id, location, tracked, view in sorted(clones, key=lambda each: len(each[3].state.ancestors)):
            if id not in self._met:
                self._add_clone(id, location, tracked, view, id in held.clones)

    def _add_clone(
        self, id: str, location: str, tracked: TrackedLog[TableState], view: View[TableState], holds: bool
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
            self._add_dropped(ErasedLog(head, path, "dropped-table", Held(), is_due=True))
            return
        rows = row_set(head, self.predicate, self._work, self._family().shared_with(head.state))
        held = held_by(head, rows)
        log = self._with_traces(ErasedLog(head, path, "dropped-table", held, rows))
        self._rows[head.id] = rows
        self._add_clones(head, held)
        if log.is_due:
            self._add_dropped(log)

    def _look_at_former_clones(self) -> None:
        own = self.logs.pop()
        for id, tracked, view in former_clones(
            self.tree.logs, self._namespaces, self._family().ids, self._met
        ):
            if id not in self._met:
                self._add_clone(id, tracked.location, tracked, view, view.purged)
        self.logs.append(own)

    def _look_at_promises(self) -> None:
        """Older versions of a clone have files that are kept for it. A clone of a clone is met once, while both of the
        logs that it comes from may keep files for it."""
        promised = {id for each in self.logs for id in each.held.clones}
        for each in self.logs:
            if each.head.id in promised:
                each.must()

    def _path_of(self, view: View[TableState]) -> Identifier | None:
        link = view.state.link
        above = None if link is None else known_path_to(self.tree.logs, link.namespace)
        return None if link is None or above is None else (*above, link.name)

    def _look_at_boundaries(self) -> None:
        """Boundaries of a clustering are values of rows. Wherever such rows are or were, each may be of one, also
        in a clone that has none of these itself. Else only a boundary itself says so."""
        clustered = [each for each in self.logs if boundaries(each.head)]
        if any(each.is_due for each in self.logs) or any(
            is_boundary(self.predicate, each.head) for each in clustered
        ):
            for each in clustered:
                each.must()

    def _look_at_dropped(self) -> None:
        for dropped in dropped_tables(self._namespaces, self._identifier, self._named):
            title = f"{quoted(dropped.path)}, dropped, {dropped.id}"
            tracked = self.tree.logs.table(dropped.location)
            self._read.append(tracked)
            try:
                view = tracked.at_its_place()
                if view.log_id != dropped.id:
                    continue
                head = TableHead(self.tree.logs, tracked, view, title)
                # A purge that is still on the list was stopped, and is to be ended.
                rows = None if view.purged else self._rows_of_dropped(head)
                held = Held() if rows is None else held_by(head, rows)
            except LakelogError as error:
                self.left.append(f"the dropped table {title} was not looked at: {error}")
                continue
            log = ErasedLog(head, dropped.path, "dropped-table", held, rows, is_due=view.purged)
            log = self._with_traces(log)
            if rows is not None:
                self._rows[head.id] = rows
            self._add_clones(head, held)
            if not log.is_due:
                continue
            if dropped.in_dropped:
                self.left.append(
                    f"{title}, has such rows, or may, and its namespace was dropped, too: restore that and forget the "
                    "rows there, or wait for a vacuum that purges it"
                )
                continue
            self._add_dropped(log)

    def _rows_of_dropped(self, head: TableHead) -> RowSet:
        """Return its rows that match. If it has no such column, no rows; files of no version count all the same."""
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

    def _family(self) -> Family:
        links = [each.head.state.link for each in (*self.logs, *self.dropped)]
        return Family(
            ids={*self._rows, *self._met, *self._named},
            rows=self._rows,
            places={link.namespace for link in links if link is not None},
            is_due=self._any_due,
            erased={
                each.head.id: each.done.erased_at for each in self.logs if each.done.erased_at is not None
            },
        )

    def look_at_unlinked(self) -> None:
        """Look for folders to which no name leads."""
        known = {each.id for each in self.orphans}
        for found in unlinked_with_rows(self.tree, self._namespaces, self.predicate, self._family()):
            orphan = found.orphan
            if orphan is not None and orphan.id in known:
                continue
            if orphan is not None:
                self._add_orphan(orphan)
                continue
            self.left.append(
                f"{found.url}, where no name leads, of a creation that was stopped or is under way, has such rows, or "
                "may: a vacuum of its namespace deletes it once it is old"
            )

    def look_again_at_unlinked(self) -> None:
        """Look for clones that began meanwhile: they have lists of files of before."""
        self._namespaces = list(namespaces_of(self.tree, self.unreached.append))
        self.look_at_unlinked()

    def _add_orphan(self, orphan: Orphan) -> None:
        self.orphans.append(orphan)
        why = "no name leads to it: it is purged, and a call that still makes it fails"
        self.lost.append(Lost(kind="unfinished-clone", name=orphan.purge.name, why=why))

    def _look_at_origins(self) -> None:
        for origin in self.head.state.origins:
            url = self.tree.logs.url(origin.location)
            try:
                tracked = self.tree.logs.table(origin.location)
                self._read.append(tracked)
                there = TableHead.at_place(self.tree.logs, tracked, tracked.current())
                rows = row_set(there, self.predicate, self._work, self._shared_by_clone(origin.id))
                held = held_by(there, rows)
            except LakelogError as error:
                self.left.append(
                    f"the table at {url}, of which {self.head.name} is a clone, was not looked at: {error}"
                )
                continue
            if held.live or held.past:
                if self.head.id in held.clones:
                    self.logs[-1].must()
                self.left.append(
                    f"the table at {url}, of which {self.head.name} is a clone, has such rows: forget them there, "
                    "which includes its clones"
                )

    def _look_at_renamed(self) -> None:
        """The rows of a table that was renamed stay, as it has a name of its own; the caller may not know it."""
        for space in self._namespaces:
            for name, entry in space.state.entries.get(RELATION, {}).items():
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
        tracked = self.tree.logs.table(location)
        self._read.append(tracked)
        try:
            there = TableHead.at_place(self.tree.logs, tracked, tracked.current())
            rows = row_set(there, self.predicate, self._work)
            held = held_by(there, rows)
            return bool(held.live or held.past or old_bounds(there, rows))
        except NoSuchColumn:
            return False
        except LakelogError as error:
            self.left.append(f"{title}, which was called {self.head.name} before, was not looked at: {error}")
            return False

    def _shared_by_clone(self, origin: str) -> NumberArray:
        """Return the ids of the rows that the table has from that one."""
        own = self._rows[self.head.id]
        until = [each.until for each in self.head.state.ancestors if each.id == origin]
        return own.shared(until[0] if until else 0)
