"""Forgetting rows: the order of it, over a table, its clones, and the dropped tables that had its name.

Clones first, so that their source need not keep files for them; then the table; then what was dropped. For each: no
line has such rows, then versions expire and files are deleted, then all that is left is read. If that finds rows that
others brought in meanwhile, it is done again, a few times; then they are reported. The receipt is the last commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np

from lakelog.catalog.erasure.checking import Checked, check
from lakelog.catalog.erasure.clearing import clear, cuts_of, drop_cuts
from lakelog.catalog.erasure.dropped import dropped_tables
from lakelog.catalog.erasure.holdings import Held, boundaries, foreign_of, held_by, is_boundary
from lakelog.catalog.erasure.model import ErasedTable, Forgotten, Lost
from lakelog.catalog.erasure.receipt import Signer, statement_of
from lakelog.catalog.erasure.rewriting import erase_lines
from lakelog.catalog.erasure.row_set import RowSet, row_set
from lakelog.catalog.erasure.texts import definitions_quoting, values_of, versions_quoting
from lakelog.catalog.erasure.work import ErasureWork, NumberArray, united
from lakelog.catalog.errors import CommitConflict, NoSuchColumn
from lakelog.catalog.logs import (
    NO_MAINTENANCE,
    NameTree,
    Progress,
    Scope,
    TableHead,
    Target,
    TrackedLog,
    known_path_to,
    no_progress,
    writing_as,
)
from lakelog.catalog.maintenance import expire_logs, purge, what_to_keep
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.schema import Predicate
from lakelog.catalog.state import (
    STATEMENT,
    Entry,
    ErasureEnded,
    Link,
    NamespaceState,
    RowsErased,
    TableState,
    encode,
    normalized,
)
from lakelog.log import Draft, View, expiry
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, Unsupported

ROUNDS_MAX = 3

OWN_STATEMENT = "CALL forget (its condition is not kept)"
"""What commits of an erasure have for a statement, whatever a session keeps: it would quote what is to be forgotten."""

OUT_OF_REACH = (
    "older versions of objects that a bucket with versioning, or with object lock, keeps: delete them there",
    "backups, replicas and copies of the warehouse, and metadata exported to or published at other places",
    "checkpoints of streams, caches and event logs of engines, and tables that were made from these rows",
    "files that a write which began before the erasure, and is fenced off, puts after it: the next vacuum deletes them",
)


@dataclass(slots=True)
class _Log:
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


def forget(
    tree: NameTree,
    identifier: Identifier,
    predicate: Predicate,
    *,
    dry_run: bool,
    signer: Signer | None = None,
    reference: str | None = None,
    leave_foreign: bool = False,
    work: ErasureWork | None = None,
    progress: Progress | None = None,
) -> Forgotten:
    """Forget the rows of a table that match, or say what that would do. NoSuchTable; InvalidInput for a column that is
    not there, and for files of another writer unless they are to be left; Unsupported for a condition that only an
    engine knows. DoneInPart where it could not be ended: the next call goes on."""
    if tree.logs.is_a_cut:
        raise Unsupported(NO_MAINTENANCE)
    with writing_as({STATEMENT: OWN_STATEMENT}):
        asked = _Forgetting(tree, identifier, predicate, work or ErasureWork(), progress or no_progress)
        asked.look(leave_foreign=leave_foreign)
        if dry_run:
            return asked.answer(dry_run=True)
        asked.empty_bases()
        if not asked.is_due:
            return asked.answer(dry_run=False)
        asked.do(reference)
        return asked.end(signer, reference)


def _owned(head: TableHead) -> str:
    """Return how files of another writer become lakelog's own, in words: a folder's can only be copied."""
    source = head.state.source
    if source is not None and source.metadata is not None and not source.copies:
        return "adopt the files (catalog.adopt_files)"
    return "copy the rows (CREATE TABLE … AS SELECT, or import with copy), delete the source's files"


class _Forgetting:
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
        self.logs: list[_Log] = []
        self.dropped: list[_Log] = []
        self.namespaces: list[ErasedTable] = []
        self.lost: list[Lost] = []
        self.left: list[str] = []
        self.unreached: list[str] = []
        self._released: set[str] = set()
        self._met: set[str] = set()
        self._rows: dict[str, RowSet] = {}
        found = tree.table(identifier)
        self.head = TableHead.named(tree.logs, found, identifier)

    @property
    def is_due(self) -> bool:
        return any(each.is_due for each in (*self.logs, *self.dropped)) or bool(self.namespaces)

    # Looking

    def look(self, *, leave_foreign: bool) -> None:
        """Find out what has such rows."""
        self._progress(f"{self.head.name}: looking for files with such rows")
        self._look_at_dropped()
        self._add(self.head, self._identifier, "table")
        self._look_at_promises()
        self._look_at_origins()
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

    def _add(self, head: TableHead, path: Identifier | None, kind: str) -> _Log:
        self._met.add(head.id)
        shared = self._shared_with(head) if kind == "clone" else None
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
        log = _Log(head, path, kind, held, rows, is_due=quoting is not None)
        self.logs.append(log)
        return log

    def _shared_with(self, head: TableHead) -> NumberArray:
        """Return the ids of rows of the tables that a clone comes from, as far as it has these rows. What matches in a
        clone says nothing about the rows of its source, which may be others by now."""
        known = [(self._rows.get(each.id), each.until) for each in head.state.ancestors]
        return united([np.empty(0, np.int64), *(rows.shared(until) for rows, until in known if rows)])

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
        if view.sealed:
            if holds:
                self._add_dropped(_Log(head, path, "dropped-table", Held(), is_due=True))
            return
        try:
            self._add(head, path, "clone")
        except (InvalidInput, NotFound) as error:
            self.left.append(f"{name}, a clone, was left as it is: {error}")

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

    def _note_lost(self, log: _Log) -> None:
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

    def _look_at_dropped(self) -> None:
        for dropped in dropped_tables(self.tree, self._identifier):
            title = f"{quoted(dropped.path)}, dropped, {dropped.id}"
            tracked = self.tree.logs.table(dropped.location)
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
            log = _Log(head, dropped.path, "dropped-table", held, rows, is_due=view.purged or quotes)
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

    def _add_dropped(self, log: _Log) -> None:
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

    def _look_at_origins(self) -> None:
        for origin in self.head.state.origins:
            url = self.tree.logs.url(origin.location)
            try:
                tracked = self.tree.logs.table(origin.location)
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

    def _shared_by_clone(self, origin: str) -> NumberArray:
        """Return the ids of the rows that the table has from that one."""
        own = self._rows[self.head.id]
        until = [each.until for each in self.head.state.ancestors if each.id == origin]
        return own.shared(until[0] if until else 0)

    # Doing

    def empty_bases(self) -> None:
        """Also where no file has such rows any more: bases from when one had them are never deleted."""
        for each in self.logs:
            expiry.blank(each.head.tracked.log)

    def do(self, reference: str | None) -> None:
        event = RowsErased(erasure=self.id, filter=self.filter, reference=reference)
        dropped = self.dropped
        # Each before those that keep files for it.
        for log in self.logs:
            dropped = [each for each in dropped if not self._is_purged(each)]
            if not log.is_due:
                continue
            try:
                self._erase(log, event)
            except CommitConflict:
                raise
            except LakelogError as error:
                if log.kind == "table":
                    raise
                log.say(error=str(error))
                self.left.append(f"{log.head.name} was not, or not all, erased: {error}")
                continue
            self._released.add(log.head.id)
        while dropped:
            left = [each for each in dropped if not self._is_purged(each)]
            if len(left) == len(dropped):
                break
            dropped = left
        for log in dropped:
            self.left.append(f"{log.head.name} was not purged: {log.done.error}")
        for each in self.namespaces:
            self._expire_namespace(each)

    def _erase(self, log: _Log, event: RowsErased) -> None:
        assert log.rows is not None, "what is erased was looked at"
        written, deleted = set[str](), set[str]()
        checked = Checked()
        for _ in range(ROUNDS_MAX):
            before = {path for path in self._files(log.head)}
            head, gone = erase_lines(log.head, log.rows, event, self._released.__contains__, self._progress)
            log.head = head
            written |= set(self._files(head)) - before
            deleted |= set(clear(self.tree, head, log.path, self._progress, checked.unburied))
            self._progress(f"{head.name}: all that is left is read")
            log.head = head.at(head.tracked.current())
            checked = check(log.head, log.rows)
            if not checked.again:
                break
        self.left += checked.left
        for version in versions_quoting(log.head.tracked, self.values):
            self.left.append(
                f"{log.head.name}: the statement of version {version}, committed meanwhile, quotes a value"
            )
        log.say(
            erased_at=log.head.state.erased,
            written=tuple(sorted(written)),
            deleted=tuple(sorted(deleted)),
            checked_objects=checked.objects,
            checked_rows=checked.rows,
        )

    @staticmethod
    def _files(head: TableHead) -> list[str]:
        fetch = head.tracked.log.read_blobs
        return [
            path
            for state in head.state.lines()
            for chunk in state.files.chunks(fetch, ())
            for path in chunk["path"].to_pylist()
        ]

    def _is_purged(self, log: _Log) -> bool:
        """Purge what was dropped, if no other log needs its files any more, and return whether that is done."""
        head = log.head
        link = head.state.link
        if link is None:
            log.say(error="it has no name that it was dropped from: purge it by hand")
            return False
        try:
            namespace = self.tree.logs.namespace(link.namespace)
            view = namespace.current()
            entry = Entry(kind="table", id=head.id, location=head.tracked.location)
            drop_cuts(self.tree, head.tracked.location)
            planned = purge.plan_purge(
                self.tree, "table", head.name, entry, link=Link(namespace=link.namespace, name=link.name)
            )
            if planned is not None and not purge.do(self.tree, planned):
                clones = purge.clones_of(self.tree, planned)
                why = f"clones need its files: {', '.join(clones)}" if clones else "it was restored meanwhile"
                log.say(error=why)
                return False
            expiry.blank(head.tracked.log)
            target: Target[NamespaceState] = Target(head.name, None, namespace, view)
            purge.take_off_the_list(target, [head.id])
            deleted = () if planned is None else tuple(sorted(planned.content.files))
            log.say(deleted=deleted, erased_at=head.tracked.current().version, error=None)
        except LakelogError as error:
            log.say(error=str(error))
            return False
        self._released.add(head.id)
        return True

    def _expire_namespace(self, each: ErasedTable) -> None:
        location = self.tree.logs.location(each.location)
        tracked = self.tree.logs.namespace(location)
        drop_cuts(self.tree, location)
        view = tracked.current()
        scope = Scope(namespaces=[Target(each.name, None, tracked, view)])
        for found in expire_logs(
            self.tree, scope, what_to_keep(version=view.version), dry_run=False, trust_clock=True
        ):
            if found.error is not None or found.kept_for_cuts:
                self.left.append(
                    f"older versions of {each.name} did not expire: {found.error or 'a cut has them'}"
                )
        expiry.blank(tracked.log)

    # The answer

    def answer(self, *, dry_run: bool) -> Forgotten:
        return Forgotten(
            erasure=self.id,
            table=self.head.name,
            filter=self.filter,
            dry_run=dry_run,
            tables=tuple([*(each.done for each in (*self.logs, *self.dropped)), *self.namespaces]),
            lost=tuple(dict.fromkeys(self.lost)),
            left=tuple(dict.fromkeys(self.left)),
            out_of_reach=(*OUT_OF_REACH, *self.unreached),
        )

    def end(self, signer: Signer | None, reference: str | None) -> Forgotten:
        """Commit the receipt in each log that was erased, and return it."""
        found = self.answer(dry_run=False)
        statement = statement_of(
            self.id, self.filter, reference, found.tables, found.lost, found.left, found.out_of_reach
        )
        signature = None if signer is None else signer.sign(statement.encode())
        event = ErasureEnded(
            erasure=self.id,
            statement=statement,
            signature=signature,
            signed_by=None if signer is None else signer.key,
        )
        version, hash = None, None
        for log in self.logs:
            if log.done.erased_at is None or log.done.error is not None:
                continue
            tracked = log.head.tracked
            done = tracked.commit(tracked.current(), lambda view, passed: Draft(events=encode([event])))
            if log.kind == "table":
                version, hash = done.version, done.view.hash
        return msgspec.structs.replace(
            found,
            version=version,
            commit_hash=hash,
            statement=statement,
            signature=signature,
            signed_by=event.signed_by,
        )
