"""From a namespace down: every log that is linked or can be restored, and the data files of every table.

Reads logs directly and never through the tree of names, because a lookup there finishes the unfinished work
of other clients. A check changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, TrackedLog, has_own_place
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    DroppedLog,
    NamespaceEntry,
    NamespaceState,
    TableState,
)
from lakelog.catalog.keeping.maintenance.fsck.data_checks import RESTORE, Checksum, DataCheck
from lakelog.catalog.keeping.maintenance.fsck.judges import NamespaceJudge, TableJudge
from lakelog.catalog.keeping.maintenance.fsck.links import (
    LOOKS_MAX,
    CheckedLink,
    both_there,
    is_at_rest,
    shown,
)
from lakelog.catalog.keeping.maintenance.fsck.retained import RetainedFiles
from lakelog.catalog.keeping.maintenance.fsck.still_needed import StillNeeded
from lakelog.catalog.keeping.maintenance.fsck.table_files import TableFiles
from lakelog.catalog.names import WALK_DEPTH_LIMIT, Identifier, quoted
from lakelog.log.checks.findings import Findings, Severity
from lakelog.log.checks.verify import VerifiedLog, verify
from lakelog.log.costs import TallyThreads
from lakelog.log.errors import FormatError, NotFound, StorageError
from lakelog.log.grammar import shortened
from lakelog.log.view import UNREADABLE

T = TypeVar("T")
LOGS_AT_ONCE = 4
_NAMED_BY_ID = re.compile(r"(?:^|/)[nt]-([a-z2-7]{26})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDepth:
    """How much of the data is read: footers of current versions' files, of all versions' files, or all pages.

    An engine has read the files in `checksums`, by URL.
    """

    deep: bool = False
    all_versions: bool = False
    checksums: Mapping[str, Checksum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """A checked log, and the result. A log that is not its `own` was found by a name that is not its name."""

    tracked: TrackedLog[Any]
    verified: VerifiedLog[Any]
    judge: NamespaceJudge | TableJudge
    name: Identifier | None
    own: bool = True


@dataclass(frozen=True, slots=True)
class HalfDone:
    """A name in the namespace at `parent` of a sealed log: a drop stopped before it removed the name."""

    parent: str
    space: str
    name: str
    entry: NamespaceEntry


@dataclass(slots=True)
class WarehouseWalk:
    """A check of a warehouse, log by log."""

    logs: LogCache
    findings: Findings
    depth: CheckDepth
    checked: dict[str, CheckedLog] = field(default_factory=dict)
    half_done: list[HalfDone] = field(default_factory=list)
    whole: bool = False
    """Whether all logs below the root namespace were checked."""
    decisions: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    """The keys of all decisions of the warehouse, and of objects of saved cuts, once these were listed."""
    _linked: dict[tuple[str, str], CheckedLink] = field(default_factory=dict)
    _places: set[str] = field(default_factory=set)
    _entered: set[str] = field(default_factory=set)

    def namespace(self, location: str, *arguments: Any, **named: Any) -> None:
        """Check the namespace at `location` and all that is below it (see `_namespace`)."""
        self._each(self._namespace, location, *arguments, **named)

    def table(self, location: str, *arguments: Any, **named: Any) -> None:
        """Check the table at `location`: its log, and its data files (see `_table`)."""
        self._each(self._table, location, *arguments, **named)

    def _each(self, check: Callable[..., None], location: str, *arguments: Any, **named: Any) -> None:
        """Check a log. If it cannot be checked, for whatever reason, the check of the others continues."""
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
        entry: NamespaceEntry | None = None,
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
            return  # a dropped namespace can be forged to lead to itself
        if path is not None and len(path) > WALK_DEPTH_LIMIT:
            raise FormatError(f"namespaces are more than {WALK_DEPTH_LIMIT} levels deep there")
        self._entered.add(location)
        namespace_log = self.logs.namespace(location)
        link = (
            None
            if entry is None or parent is None
            else CheckedLink(parent, NAMESPACE, path or (), entry, dropped)
        )
        checked_log = self._checked(namespace_log, NamespaceJudge, link, path)
        self.findings.count("namespaces")
        view = None if checked_log is None else checked_log.verified.view
        if (
            checked_log
            and view is not None
            and checked_log.own
            and (link is None or view.log_id == link.entry.id)
        ):
            self._below(view.state, location, path, gone=dropped or view.sealed)

    def _table(
        self,
        location: str,
        path: Identifier | None,
        entry: NamespaceEntry | None = None,
        parent: str | None = None,
        *,
        dropped: bool = False,
    ) -> None:
        table_log = self.logs.table(location)
        link = (
            None
            if entry is None or parent is None
            else CheckedLink(parent, RELATION, path or (), entry, dropped)
        )
        checked_log = self._checked(table_log, lambda: self._table_judge(table_log), link, path)
        self.findings.count("tables")
        if checked_log is None:
            return
        judge, view = checked_log.judge, checked_log.verified.view
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
            self._data(table_log, checked_log.verified, view.state, judge)

    def _table_judge(self, tracked: TrackedLog[TableState]) -> TableJudge:
        return TableJudge(tracked.log.read_blobs, retained=RetainedFiles(facts=self.depth.all_versions))

    def _checked(
        self,
        tracked: TrackedLog[Any],
        judge: Callable[[], NamespaceJudge | TableJudge],
        link: CheckedLink | None,
        path: Identifier | None,
    ) -> CheckedLog | None:
        """Check a log, and that it and the name which leads to it agree. None if there is no log."""
        for _ in range(LOOKS_MAX):
            checked_log = self._verified(tracked, judge, link, path)
            if checked_log is None or link is None:
                return checked_log
            problem = link.problem(checked_log.verified, checked_log.judge.linked_in, self.logs)
            if problem is None or not link.is_there(self.logs):
                return checked_log
            # The name was read before and after the log. If the log has not changed since, both are of the
            # same moment.
            if is_at_rest(tracked.log, checked_log.verified):
                if problem.half_done:
                    self.half_done.append(HalfDone(link.parent, link.space, link.path[-1], link.entry))
                self.findings.report(problem.finding)
                if problem.foreign:
                    checked_log = self.checked[tracked.location] = replace(checked_log, own=False)
                return checked_log
        return checked_log

    def _verified(
        self,
        tracked: TrackedLog[Any],
        judge: Callable[[], NamespaceJudge | TableJudge],
        link: CheckedLink | None,
        path: Identifier | None,
    ) -> CheckedLog | None:
        entry = None if link is None else link.entry
        log_id = entry.id if entry is not None and has_own_place(entry) else None
        if entry is None and (name_match := _NAMED_BY_ID.search(tracked.location)):
            log_id = name_match[1]
        try:
            checked_log = self._confirmed(tracked, judge, log_id, path)
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
        self.checked[tracked.location] = checked_log
        return checked_log

    def _confirmed(
        self,
        tracked: TrackedLog[Any],
        new_judge: Callable[[], NamespaceJudge | TableJudge],
        log_id: str | None,
        path: Identifier | None,
    ) -> CheckedLog:
        """Check a log, and check it again if anything is wrong. Report only problems of both checks.

        Its objects are read one after another, while writers and expiry continue. An object that a log needs
        is written before the object that needs it, and deleted after that. So an object is missing if it was
        missing before the second check began, and an object that this check reads needs it.
        """
        first, judge = Findings(progress=self.findings.progress), new_judge()
        result = verify(tracked.log, judge, first, log_id=log_id)
        if first.worst in (None, Severity.NOTE):
            self.findings.take(first)
        else:
            again, judge = Findings(progress=self.findings.progress), new_judge()
            result = verify(tracked.log, judge, again, log_id=log_id)
            self.findings.take(again, first)
        return CheckedLog(tracked, result, judge, path)

    def _below(self, state: NamespaceState, location: str, path: Identifier | None, *, gone: bool) -> None:
        """Check all logs below a namespace. Logs below a dropped namespace can be restored with it."""
        tables: list[Callable[[], None]] = []
        for space, name, entry in state.all_logs():
            child = (*(path or ()), name)
            if not gone and not self._first_link(CheckedLink(location, space, child, entry)):
                continue
            if space == NAMESPACE:
                self.namespace(entry.location, child, entry, location, dropped=gone)
            elif space == RELATION:
                tables.append(_later(self.table, entry.location, child, entry, location, dropped=gone))
        for drop in state.dropped_logs():
            self._dropped(drop, location, path, tables)
        with TallyThreads(LOGS_AT_ONCE, thread_name_prefix="lakelog-fsck") as pool:
            for _ in pool.map(lambda check: check(), tables):
                pass

    def _dropped(
        self,
        was: DroppedLog,
        location: str,
        path: Identifier | None,
        tables: list[Callable[[], None]],
    ) -> None:
        entry = was.entry
        if entry.location in self._places or entry.location in self.checked:
            return
        child = (*(path or ()), was.name)
        if was.space == NAMESPACE:
            self.namespace(entry.location, child, entry, location, dropped=True)
        else:
            tables.append(_later(self.table, entry.location, child, entry, location, dropped=True))

    def _first_link(self, link: CheckedLink) -> bool:
        # A place that a user chose may have had another log, whose name still exists.
        first_link = self._linked.setdefault((link.entry.location, link.entry.id), link)
        self._places.add(link.entry.location)
        if first_link == link:
            return True
        checked_log = self.checked.get(link.entry.location)
        if checked_log is not None and not checked_log.own:
            # It was found by a name that is not its own. This name may be its own.
            self._linked[link.entry.location, link.entry.id] = link
            self._entered.discard(link.entry.location)
            return True
        if both_there(first_link, link, self.logs):
            self.findings.damage(
                "linked-twice",
                self.logs.url(link.entry.location),
                f"both {quoted(first_link.path)} and {quoted(link.path)} lead there",
                "find out which of the two is right, and restore the other's namespace from a backup",
            )
        return False

    def _data(
        self,
        tracked: TrackedLog[TableState],
        verified_log: VerifiedLog[TableState],
        state: TableState,
        judge: TableJudge,
    ) -> None:
        check = DataCheck(
            tracked.store,
            tracked.prefix,
            self.findings,
            self.depth.deep,
            tracked.log.replay.open_url,
            StillNeeded(tracked, verified_log.log_id, verified_log.first),
            self.depth.checksums,
        )
        files = TableFiles(tracked, state, judge, check, self.findings)
        files.examine(all_versions=self.depth.all_versions)


def _later(check: Callable[..., None], *arguments: Any, **named: Any) -> Callable[[], None]:
    return lambda: check(*arguments, **named)
