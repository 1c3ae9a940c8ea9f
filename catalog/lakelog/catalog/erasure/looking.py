"""What an erasure is about: a table, its clones and the dropped tables that had its name, with all that has such rows.

Nothing is changed here. What is found, what will be lost by the erasure, and what it leaves, in words, is the answer of
a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from lakelog.catalog.erasure.clearing import cuts_of
from lakelog.catalog.erasure.dropped import dropped_tables, ever_named, namespaces_of
from lakelog.catalog.erasure.former_clones import former_clones
from lakelog.catalog.erasure.holdings import Held, boundaries, foreign_of, held_by, is_boundary
from lakelog.catalog.erasure.model import ErasedTable, Lost
from lakelog.catalog.erasure.old_bounds import old_bounds
from lakelog.catalog.erasure.row_set import RowSet, row_set
from lakelog.catalog.erasure.texts import definitions_quoting, values_of, versions_quoting
from lakelog.catalog.erasure.unlinked import Family, unlinked_with_rows
from lakelog.catalog.erasure.work import ErasureWork, NumberArray
from lakelog.catalog.errors import NoSuchColumn
from lakelog.catalog.files import joined
from lakelog.catalog.logs import (
    NameTree,
    Progress,
    TableHead,
    TrackedLog,
    known_path_to,
)
from lakelog.catalog.maintenance import Orphan, unfinished
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.parquet import left_folders
from lakelog.catalog.schema import Predicate
from lakelog.catalog.state import (
    MAIN,
    RELATION,
    TABLE,
    TableState,
    normalized,
)
from lakelog.log import View
from lakelog.log.errors import InvalidInput, LakelogError, NotFound
from lakelog.log.stores import ObjectStore


@dataclass(slots=True)
class ErasedLog:
    """One table's log that takes part."""

    head: TableHead
    path: Identifier | None
    kind: str
    held: Held
    rows: RowSet | None = None
    is_due: bool = False
    done: ErasedTable = field(init=False)

    def __post_init__(self) -> None:
        state, live = self.head.state, self.held.live
        self.is_due = bool(self.is_due or live or self.held.past or state.erasing)
        self.done = ErasedTable(
            kind=self.kind,
            name=self.head.name,
            location=self.head.url,
            files=len(live),
            rows=sum(live.values()),
            past_files=len(self.held.past),
            versions=self._versions() if self.is_due else 0,
        )

    def _versions(self) -> int:
        return self.head.version - max(self.head.state.expired, 1) + 1

    def must(self) -> None:
        """Its older versions have such rows, though nothing else of it shows that."""
        if not self.is_due:
            self.is_due = True
            self.say(versions=self._versions())

    def say(self, **what: object) -> None:
        self.done = msgspec.structs.replace(self.done, **what)


def _owned(head: TableHead) -> str:
    """Return how files of another writer become lakelog's own, in words: a folder's can only be copied."""
    source = head.state.source
    if source is not None and source.metadata is not None and not source.copies:
        return "adopt the files (catalog.adopt_files)"
    return "copy the rows (CREATE TABLE … AS SELECT, or import with copy), delete the source's files"


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
        self._check_foreign(leave_foreign)
        for each in self.logs:
            if each.is_due:
                self._note_lost(each)
            for what in definitions_quoting(each.head.metadata, self.values):
                self.left.append(
                    f"{each.head.name}: {what} quotes a value of the condition: change or drop it"
                )
        for log in self.dropped:
            self.lost.append(Lost(kind="dropped-table", name=log.head.name, why="is purged"))
        self._look_at_namespaces()
        self.look_at_unlinked()

    def let_go(self) -> None:
        """Load all logs anew when they are used the next time."""
        for tracked in self._read:
            tracked.forget()

    def look_at_temporary_folders(self, *, delete: bool) -> None:
        """Rows that did not fit into the memory of a process that was killed, and half of what it was writing."""
        for store, prefix, url in self._places():
            keys = [key for key, _ in store.list_leftovers(prefix)]
            if keys and delete:
                store.delete(keys)
            if keys:
                why = f"{len(keys):,} files of writes that were killed are deleted"
                self.lost.append(Lost(kind="temporary-files", name=url, why=why))
        found = left_folders(delete=delete)
        for path, size in found.killed.items():
            why = f"{size:,} bytes that a process that was killed has left there are deleted"
            self.lost.append(Lost(kind="temporary-folder", name=path, why=why))
        if found.unclear:
            self.unreached.append(
                f"{len(found.unclear):,} temporary folders, {found.unclear[0]} among them, and nothing says if "
                "a process still uses them: delete them where none does"
            )
        if found.in_use:
            self.unreached.append(
                f"{len(found.in_use):,} temporary folders of processes that are running, {found.in_use[0]} among them: "
                "each goes with its process"
            )

    def _places(self) -> Iterator[tuple[ObjectStore, str, str]]:
        """Yield the folders of tables, and of the logs of their namespaces."""
        met: set[str] = set()
        for each in (*self.logs, *self.dropped):
            tracked, link = each.head.tracked, each.head.state.link
            yield tracked.store, f"{tracked.prefix}/" if tracked.prefix else "", each.head.url
            if link is None or link.namespace in met:
                continue
            met.add(link.namespace)
            above = self.tree.logs.namespace(link.namespace)
            folder = f"{above.prefix}/" if above.prefix else ""
            for part in ("_log/", "_txn/"):
                yield above.store, f"{folder}{part}", f"{self.tree.logs.url(link.namespace)}/{part}"

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
        quoting = next(versions_quoting(head.tracked, self.values), None)
        bounds = old_bounds(head, rows)
        log = ErasedLog(head, path, kind, held, rows, is_due=quoting is not None or bool(bounds))
        log.say(old_bounds=len(bounds))
        self.logs.append(log)
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
        bounds = old_bounds(head, rows)
        quotes = next(versions_quoting(head.tracked, self.values), None) is not None
        log = ErasedLog(head, path, "dropped-table", held, rows, is_due=bool(bounds) or quotes)
        log.say(old_bounds=len(bounds))
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

    def _check_foreign(self, leave_foreign: bool) -> None:
        for each in self.logs:
            foreign = foreign_of(each.head, each.held.live)
            if not foreign:
                continue
            if not leave_foreign:
                raise InvalidInput(
                    f"{each.head.name} has such rows in {len(foreign):,} files of another writer, {foreign[0]} among "
                    "them, which lakelog does not delete: forget the rows at their source and import again, "
                    f"{_owned(each.head)}, or leave the files there (--leave-foreign, SQL: leave_foreign => true), so "
                    "that only lakelog's own copies go"
                )
            self.left += [f"{each.head.name}: {path} is another writer's, and stays" for path in foreign]

    def _note_lost(self, log: ErasedLog) -> None:
        name = log.head.name
        first = max(log.head.state.expired, 1)
        self.lost.append(
            Lost(
                kind="versions",
                name=name,
                why=f"from {first} to {log.head.version}: they cannot be read any more",
            )
        )
        self.lost += [
            Lost(kind="tag", name=f"{name}, {tag}", why="has such rows") for tag in sorted(log.held.tags)
        ]
        self._note_rows_of_then(log)
        for tracked, cut in cuts_of(self.tree, log.head.tracked.location):
            where = self.tree.logs.url(tracked.location)
            self.lost.append(
                Lost(kind="cut", name=cut, why=f"saved in {where}, needs older versions of {name}")
            )
        own = log.head.tracked
        moved = sum(1 for _ in own.store.list_sizes(own.log.keys.lost))
        if moved:
            why = f"{moved:,} objects that a repair has moved to _lost/ are deleted"
            self.lost.append(Lost(kind="repairs", name=name, why=why))
        # The versions in which such rows were removed expire too, before any stream can have read them.
        why = "that read it begin anew, from its rows as they are then; those that write to it go on"
        self.lost.append(Lost(kind="streams", name=name, why=why))

    def _note_rows_of_then(self, log: ErasedLog) -> None:
        """Count rows that the condition does not find now."""
        rows = log.rows
        if rows is None:
            return
        for line, counts in log.held.lines.items():
            now = rows.matching_now(counts)
            paths = [path for path in counts if now[path] != counts[path]]
            if not paths:
                continue
            head = log.head.on(line)
            bound = None if rows.present is None else rows.present.bound
            count = self._work.matching_no_more(
                head, joined(head.files_named(paths)), rows.ids, head.schema, bound
            )
            if count:
                name = log.head.name if line == MAIN else f"{log.head.name}, {line}"
                why = f"{count:,} that matched at another version, or by a name that a column had then: they go too"
                self.lost.append(Lost(kind="rows", name=name, why=why))

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
                rows = None if view.purged else row_set(head, self.predicate, self._work)
                held = Held() if rows is None else held_by(head, rows)
            except NoSuchColumn:
                continue
            except LakelogError as error:
                self.left.append(f"the dropped table {title} was not looked at: {error}")
                continue
            quotes = next(versions_quoting(tracked, self.values), None) is not None
            bounds = [] if rows is None else old_bounds(head, rows)
            is_due = view.purged or quotes or bool(bounds)
            log = ErasedLog(head, dropped.path, "dropped-table", held, rows, is_due=is_due)
            log.say(old_bounds=len(bounds))
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

    def _add_dropped(self, log: ErasedLog) -> None:
        if log.head.state.current.own_location:
            self.left.append(
                f"{log.head.name} has such rows, or may, at a place that a user chose, {log.head.url}, where a purge "
                "deletes nothing: restore it under another name, and forget the rows there"
            )
            return
        self.dropped.append(log)

    def _look_at_namespaces(self) -> None:
        """Statements that quote values may stand in the commits that have linked the tables."""
        places = {""}
        for each in (*self.logs, *self.dropped):
            link = each.head.state.link
            if link is not None:
                parts = link.namespace.split("/")
                places |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        for place in sorted(places) if self.values else ():
            tracked = self.tree.logs.namespace(place)
            try:
                view = tracked.current()
            except LakelogError:
                continue
            if next(versions_quoting(tracked, self.values), None) is None:
                continue
            url = self.tree.logs.url(place)
            versions = view.version - max(view.state.expired, 1) + 1
            self.namespaces.append(ErasedTable(kind="namespace", name=url, location=url, versions=versions))
            self.lost.append(Lost(kind="versions", name=url, why="statements in them quote values"))
            self.lost += [
                Lost(kind="cut", name=cut, why=f"needs older versions of {url}")
                for _, cut in cuts_of(self.tree, place)
            ]

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
