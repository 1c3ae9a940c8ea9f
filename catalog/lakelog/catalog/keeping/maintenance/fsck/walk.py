"""From a namespace down: every log that a name leads to, or that can be restored, and the data files of every table.

Reads logs directly and never through the tree of names, because a lookup there finishes the unfinished work of other
clients: a check changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, TrackedLog, has_own_place
from lakelog.catalog.core.state import NAMESPACE, RELATION, Dropped, Entry, NamespaceState, TableState
from lakelog.catalog.keeping.maintenance.fsck.data_checks import RESTORE, Checksum, DataCheck
from lakelog.catalog.keeping.maintenance.fsck.judges import NamespaceJudge, TableJudge
from lakelog.catalog.keeping.maintenance.fsck.links import LOOKS_MAX, Link, both_there, is_at_rest, shown
from lakelog.catalog.keeping.maintenance.fsck.retained import RetainedFiles
from lakelog.catalog.keeping.maintenance.fsck.still_needed import StillNeeded
from lakelog.catalog.keeping.maintenance.fsck.table_files import TableFiles
from lakelog.catalog.names import WALK_DEPTH_LIMIT, Identifier, quoted
from lakelog.log.checks.findings import Findings, Severity
from lakelog.log.checks.verify import Verified, verify
from lakelog.log.costs import Threads
from lakelog.log.errors import FormatError, NotFound, StorageError
from lakelog.log.grammar import shortened
from lakelog.log.view import UNREADABLE

T = TypeVar("T")
LOGS_AT_ONCE = 4
_NAMED_BY_ID = re.compile(r"(?:^|/)[nt]-([a-z2-7]{26})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much of the data is read: footers of the current versions' files; of all versions; every page.

    Files in `checksums`, by URL, were read by others.
    """

    deep: bool = False
    all_versions: bool = False
    checksums: Mapping[str, Checksum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """A log that was checked, and the result. One that is not its `own` was found by a name that is not its name."""

    tracked: TrackedLog[Any]
    verified: Verified[Any]
    judge: NamespaceJudge | TableJudge
    name: Identifier | None
    own: bool = True


@dataclass(frozen=True, slots=True)
class HalfDone:
    """A name in the namespace at `parent` that leads to a sealed log: a drop stopped before it removed the name."""

    parent: str
    space: str
    name: str
    entry: Entry


@dataclass(slots=True)
class Walk:
    """One check of a warehouse, log by log."""

    logs: LogCache
    findings: Findings
    depth: Depth
    checked: dict[str, Checked] = field(default_factory=dict)
    half_done: list[HalfDone] = field(default_factory=list)
    whole: bool = False
    """Whether all that the root namespace leads to was checked."""
    decisions: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    """The keys of all decisions of the warehouse, and of all objects of saved cuts, once its objects were listed."""
    _linked: dict[tuple[str, str], Link] = field(default_factory=dict)
    _places: set[str] = field(default_factory=set)
    _entered: set[str] = field(default_factory=set)

    def namespace(self, location: str, *arguments: Any, **named: Any) -> None:
        """Check the namespace at `location` and all that is below it (see `_namespace`)."""
        self._each(self._namespace, location, *arguments, **named)

    def table(self, location: str, *arguments: Any, **named: Any) -> None:
        """Check the table at `location`: its log, and its data files (see `_table`)."""
        self._each(self._table, location, *arguments, **named)

    def _each(self, check: Callable[..., None], location: str, *arguments: Any, **named: Any) -> None:
        """Check one log. What cannot be checked, for whatever reason, does not keep the rest from being checked."""
        try:
            check(location, *arguments, **named)
        except StorageError as error:
            if not is_elsewhere(location):
                raise
            self.findings.damage(
                "log-unreachable",
                self.logs.url(location),
                str(error),
                "check the place and the right to read it",
            )
        except UNREADABLE as error:
            if not arguments or arguments[0] is None or not location:
                raise
            self.findings.damage(
                "log-unreadable",
                self.logs.url(location),
                f"it was not checked to its end: {shortened(str(error) or repr(error))}",
                RESTORE,
            )

    def _namespace(
        self,
        location: str,
        path: Identifier | None,
        entry: Entry | None = None,
        parent: str | None = None,
        *,
        dropped: bool = False,
    ) -> None:
        if entry is not None and not location:
            self.findings.damage(
                "link-disagrees",
                self.logs.warehouse,
                f"{shown(path)} leads to the root namespace, which has no name",
                "drop that name",
            )
        if location in self._entered:
            return  # a dropped one can be forged that leads to itself
        if path is not None and len(path) > WALK_DEPTH_LIMIT:
            raise FormatError(f"namespaces are more than {WALK_DEPTH_LIMIT} levels deep there")
        self._entered.add(location)
        tracked = self.logs.namespace(location)
        link = (
            None if entry is None or parent is None else Link(parent, NAMESPACE, path or (), entry, dropped)
        )
        checked = self._checked(tracked, NamespaceJudge, link, path)
        self.findings.count("namespaces")
        view = None if checked is None else checked.verified.view
        if checked and view is not None and checked.own and (link is None or view.log_id == link.entry.id):
            self._below(view.state, location, path, gone=dropped or view.sealed)

    def _table(
        self,
        location: str,
        path: Identifier | None,
        entry: Entry | None = None,
        parent: str | None = None,
        *,
        dropped: bool = False,
    ) -> None:
        tracked = self.logs.table(location)
        link = None if entry is None or parent is None else Link(parent, RELATION, path or (), entry, dropped)
        checked = self._checked(tracked, lambda: self._table_judge(tracked), link, path)
        self.findings.count("tables")
        if checked is None:
            return
        judge, view = checked.judge, checked.verified.view
        assert isinstance(judge, TableJudge)
        for problem in judge.taken.problems:
            self.findings.damage(
                "identity-taken-twice",
                self.logs.url(location),
                problem,
                "find rows that have the same value, and give them others",
            )
        for problem in judge.authors.problems:
            self.findings.damage(
                "authors-rows",
                self.logs.url(location),
                problem,
                "the rows are as the files have them: do not rely on the history for who appended how many, and find "
                "out which client wrote that version",
            )
        if view is not None and not view.purged and (link is None or view.log_id == link.entry.id):
            self._data(tracked, checked.verified, view.state, judge)

    def _table_judge(self, tracked: TrackedLog[TableState]) -> TableJudge:
        return TableJudge(tracked.log.read_blobs, retained=RetainedFiles(facts=self.depth.all_versions))

    def _checked(
        self,
        tracked: TrackedLog[Any],
        judge: Callable[[], NamespaceJudge | TableJudge],
        link: Link | None,
        path: Identifier | None,
    ) -> Checked | None:
        """Check a log, and that it and the name which leads to it agree. None where there is no log."""
        for _ in range(LOOKS_MAX):
            checked = self._verified(tracked, judge, link, path)
            if checked is None or link is None:
                return checked
            problem = link.problem(checked.verified, checked.judge.linked_in, self.logs)
            if problem is None or not link.is_there(self.logs):
                return checked
            # The name was read before and after the log: if that has not changed since, both are of one moment.
            if is_at_rest(tracked.log, checked.verified):
                if problem.half_done:
                    self.half_done.append(HalfDone(link.parent, link.space, link.path[-1], link.entry))
                self.findings.report(problem.finding)
                if problem.foreign:
                    checked = self.checked[tracked.location] = replace(checked, own=False)
                return checked
        return checked

    def _verified(
        self,
        tracked: TrackedLog[Any],
        judge: Callable[[], NamespaceJudge | TableJudge],
        link: Link | None,
        path: Identifier | None,
    ) -> Checked | None:
        entry = None if link is None else link.entry
        log_id = entry.id if entry is not None and has_own_place(entry) else None
        if entry is None and (named := _NAMED_BY_ID.search(tracked.location)):
            log_id = named[1]
        try:
            checked = self._confirmed(tracked, judge, log_id, path)
        except NotFound:
            if link is None:
                raise
            if link.is_there(self.logs):
                self.findings.damage(
                    "log-missing",
                    self.logs.url(link.entry.location),
                    f"{shown(path)} has a name, but its log is missing from "
                    f"{tracked.log.replay.at(tracked.log.keys.commit(1))} on",
                    "restore the folder from a backup, or drop the name",
                )
            return None
        self.checked[tracked.location] = checked
        return checked

    def _confirmed(
        self,
        tracked: TrackedLog[Any],
        new_judge: Callable[[], NamespaceJudge | TableJudge],
        log_id: str | None,
        path: Identifier | None,
    ) -> Checked:
        """Check a log; where anything is wrong once more, and report only what is wrong both times.

        Its objects are read one after another, while writers and expiry go on. What is needed of a log is written
        before the object that needs it, and deleted after that. So an object that was missing before the second check
        began, and is needed by what that check reads, is missing.
        """
        first, judge = Findings(progress=self.findings.progress), new_judge()
        verified = verify(tracked.log, judge, first, log_id=log_id)
        if first.worst in (None, Severity.NOTE):
            self.findings.take(first)
        else:
            again, judge = Findings(progress=self.findings.progress), new_judge()
            verified = verify(tracked.log, judge, again, log_id=log_id)
            self.findings.take(again, first)
        return Checked(tracked, verified, judge, path)

    def _below(self, state: NamespaceState, location: str, path: Identifier | None, *, gone: bool) -> None:
        """Check all that a namespace leads to. What is below one that is dropped can be restored with it."""
        tables: list[Callable[[], None]] = []
        for space, names in state.entries.items():
            for name, entry in names.items():
                child = (*(path or ()), name)
                if not gone and not self._first_link(Link(location, space, child, entry)):
                    continue
                if space == NAMESPACE:
                    self.namespace(entry.location, child, entry, location, dropped=gone)
                elif space == RELATION:
                    tables.append(_later(self.table, entry.location, child, entry, location, dropped=gone))
        for id, was in state.dropped.items():
            self._dropped(id, was, location, path, tables)
        with Threads(LOGS_AT_ONCE, thread_name_prefix="lakelog-fsck") as pool:
            for _ in pool.map(lambda check: check(), tables):
                pass

    def _dropped(
        self,
        id: str,
        was: Dropped,
        location: str,
        path: Identifier | None,
        tables: list[Callable[[], None]],
    ) -> None:
        if was.location in self._places or was.location in self.checked:
            return
        entry = Entry(kind=was.kind, id=id, location=was.location)
        child = (*(path or ()), was.name)
        if was.space == NAMESPACE:
            self.namespace(was.location, child, entry, location, dropped=True)
        else:
            tables.append(_later(self.table, was.location, child, entry, location, dropped=True))

    def _first_link(self, link: Link) -> bool:
        # A place that a user chose may have had another log, whose name still exists.
        known = self._linked.setdefault((link.entry.location, link.entry.id), link)
        self._places.add(link.entry.location)
        if known == link:
            return True
        checked = self.checked.get(link.entry.location)
        if checked is not None and not checked.own:
            # It was found by a name that is not its own: this one may be.
            self._linked[link.entry.location, link.entry.id] = link
            self._entered.discard(link.entry.location)
            return True
        if both_there(known, link, self.logs):
            self.findings.damage(
                "linked-twice",
                self.logs.url(link.entry.location),
                f"both {quoted(known.path)} and {quoted(link.path)} lead there",
                "find out which of the two is right, and restore the other's namespace from a backup",
            )
        return False

    def _data(
        self,
        tracked: TrackedLog[TableState],
        verified: Verified[TableState],
        state: TableState,
        judge: TableJudge,
    ) -> None:
        check = DataCheck(
            tracked.store,
            tracked.prefix,
            self.findings,
            self.depth.deep,
            tracked.log.replay.open_url,
            StillNeeded(tracked, verified.log_id, verified.first),
            self.depth.checksums,
        )
        files = TableFiles(tracked, state, judge, check, self.findings)
        files.examine(all_versions=self.depth.all_versions)


def _later(check: Callable[..., None], *arguments: Any, **named: Any) -> Callable[[], None]:
    return lambda: check(*arguments, **named)
