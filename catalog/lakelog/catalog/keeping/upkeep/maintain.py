"""Doing the due work by each table's policy: compaction, clustering, statistics, expiry, vacuum.

It takes a step of each table in turn, so that no large table keeps the others waiting, until nothing is due
or a limit is reached. Completed work is no longer due, so the next run continues from there. Nothing expires
or is deleted except by a policy that says how long to keep it. A table that fails hides no other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.choices import ACTIONS, CLUSTER, COMPACT, EXPIRE, STATISTICS, VACUUM
from lakelog.catalog.core.logs import LogCache, LogScope, LogTarget, NameTree, Progress, TableHead, TrackedLog
from lakelog.catalog.core.policies import namespace_keeps_for, policy_for
from lakelog.catalog.core.schema import OFF, MaintenancePolicy
from lakelog.catalog.core.state import (
    ClusteringTarget,
    CompactionTarget,
    FileGroup,
    FilesVacuumed,
    HistoryExpired,
    NamespaceState,
    TableState,
    says_only,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance.engine import Engine
from lakelog.catalog.keeping.maintenance.expire import expire_logs, what_to_keep
from lakelog.catalog.keeping.maintenance.vacuum import vacuum_logs, vacuum_wish
from lakelog.catalog.keeping.upkeep.clustering import plan_next, ranked, rewritten
from lakelog.catalog.keeping.upkeep.compacting import (
    FILES_AT_ONCE,
    Compacted,
    clustering_by,
    due,
    goal_by,
    step,
)
from lakelog.catalog.keeping.upkeep.statistics import old_statistics, refreshed
from lakelog.catalog.names import Identifier, check_list
from lakelog.log import Commit, LogView
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.secrets import masked, masked_urls

LOST_MAX = 5
"""After losing so many steps to other writers, a table is left for the next run."""

_ALL_BYTES = 1 << 62
_SLACK = 10
"""Versions expire once the oldest was kept for a tenth longer than required.

Then all versions of that tenth expire at once.
"""


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """The work done for a table, or due in a dry run. For a namespace, only the work on its own log.

    `statistics` is the number of recomputed columns. `versions` have expired, and `freed_files` with
    `freed_bytes` were deleted. `is_left`: more is due, and a limit was reached. `note` is the reason if
    possible work was not due. `error` is the failure.
    """

    name: str
    location: str
    compacted: Compacted = Compacted()
    statistics: int = 0
    versions: int = 0
    freed_files: int = 0
    freed_bytes: int = 0
    is_left: bool = False
    note: str | None = None
    error: str | None = None
    kind: str = "table"


@dataclass(slots=True, kw_only=True)
class MaintenanceLimits:
    """When to stop. `now_s` is a monotonic clock. `stopped` may request the end at any time."""

    now_s: Callable[[], float]
    limit_s: float | None = None
    limit_bytes: int | None = None
    stopped: Callable[[], bool] = lambda: False
    began_s: float = field(init=False)
    read_bytes: int = 0

    def __post_init__(self) -> None:
        for limit, kind, unit in (
            (self.limit_s, (int, float), "seconds"),
            (self.limit_bytes, (int,), "bytes"),
        ):
            if limit is not None and (type(limit) not in kind or limit != limit):
                raise InvalidInput(f"a limit of {limit!r} is not a number of {unit}: give one")
        if self.limit_s is not None and self.limit_s <= 0:
            raise InvalidInput(f"a limit of {self.limit_s} seconds leaves no time: give more than 0")
        if self.limit_bytes is not None and self.limit_bytes <= 0:
            raise InvalidInput(f"a limit of {self.limit_bytes} bytes leaves nothing to do: give more than 0")
        self.began_s = self.now_s()

    @property
    def is_over(self) -> bool:
        is_spent = self.limit_bytes is not None and self.read_bytes >= self.limit_bytes
        late = self.limit_s is not None and self.now_s() - self.began_s >= self.limit_s
        return is_spent or late or self.stopped()

    def bytes_left(self, at_most: int) -> int:
        return (
            at_most if self.limit_bytes is None else max(1, min(at_most, self.limit_bytes - self.read_bytes))
        )

    def check(self) -> None:
        """Raise _Stopped if a stop was requested.

        A limit of time or bytes does not interrupt a step, whose reads would have been in vain.
        """
        if self.stopped():
            raise _Stopped("upkeep was stopped")


class _Stopped(LakelogError):
    """Ends a step, when upkeep was asked to stop. Earlier commits stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWork:
    """The work for an engine, which rewrites rows itself, on the table at `path`.

    If `compacts`, it compacts the table with `goal`. If `clustering` is set, it clusters the table by its
    `key`. It recomputes the statistics of the named columns.
    """

    path: Identifier
    goal: CompactionTarget
    compacts: bool
    clustering: ClusteringTarget | None
    key: tuple[int, ...]
    statistics: tuple[str, ...]


def due_in(tree: NameTree, scope: LogScope) -> list[DueWork]:
    """Return the tables of `scope` that have due work.

    Skips unreadable tables, which `maintain_tables` reports.
    """
    works = []
    for target in scope.tables:
        try:
            policy = policy_for(tree.logs, target.view, target.name)
            if policy.mode == OFF or target.path is None:
                continue
            head = TableHead(tree.logs, target.tracked, target.view, target.name)
            clustering, key = clustering_by(head.metadata), head.metadata.clustering
            goal = goal_by(head, policy, joins=clustering is None)
            _, groups = due(head, goal, until=head.version, limit_bytes=1)
            if clustering is not None and not plan_next(head, clustering, until=head.version, key=key)[1]:
                clustering = None
            table_work = DueWork(
                path=target.path,
                goal=goal,
                compacts=bool(groups),
                clustering=clustering,
                key=key,
                statistics=old_statistics(head),
            )
        except LakelogError:
            continue
        if table_work.compacts or table_work.clustering or table_work.statistics:
            works.append(table_work)
    return works


def maintain_tables(
    tree: NameTree,
    scope: LogScope,
    limits: MaintenanceLimits,
    *,
    actions: Collection[str] = ACTIONS,
    dry_run: bool,
    progress: Progress,
    engine: Engine | None = None,
) -> list[Maintained]:
    """Do the due work in `scope`, or report it, for these actions only.

    An `engine` does the large work that it can.
    """
    check_list(actions, "actions")
    for action in actions:
        if action not in ACTIONS:
            raise InvalidInput(f"{action!r} is not what upkeep does here: name some of {', '.join(ACTIONS)}")
    works = [_Work(tree, target, frozenset(actions), engine, dry_run=dry_run) for target in scope.tables]
    pending = list(works)
    while pending and not limits.is_over:
        unfinished: list[_Work] = []
        for number, work in enumerate(pending, start=1):
            if limits.is_over:
                unfinished += pending[number - 1 :]
                break
            progress(f"{number:,} of {len(pending):,}: {work.target.name}")
            if work.go_on(limits, progress):
                unfinished.append(work)
        pending = unfinished
    for work in pending:
        work.leave()
    unread = [
        Maintained(name=entry.name, location=masked_urls(entry.location), error=masked(entry.error))
        for entry in scope.unreadable
        if entry.kind == "table"
    ]
    namespaces = scope.namespaces if EXPIRE in actions else []
    results = [
        _expired(tree, entry, limits, dry_run=dry_run, progress=progress, engine=engine)
        for entry in namespaces
    ]
    return [*unread, *(work.done for work in works), *(entry for entry in results if entry is not None)]


def _expired(
    tree: NameTree,
    target: LogTarget[NamespaceState],
    limits: MaintenanceLimits,
    *,
    dry_run: bool,
    progress: Progress,
    engine: Engine | None,
) -> Maintained | None:
    """Expire the versions that a namespace's own log has kept for long enough. None if nothing is due."""
    result = Maintained(
        kind="namespace", name=target.name, location=masked_urls(tree.logs.url(target.tracked.location))
    )
    try:
        keep_for = namespace_keeps_for(tree.logs, target.view.state)
        if keep_for is None or not _is_old(tree.logs, target.tracked, keep_for):
            return None
        if limits.is_over:
            return msgspec.structs.replace(result, is_left=True)
        scope, wish = LogScope(namespaces=[target]), what_to_keep(older_than=keep_for)
        (expiry,) = expire_logs(tree, scope, wish, dry_run=dry_run, progress=progress, engine=engine)
    except LakelogError as error:
        return msgspec.structs.replace(result, error=masked(str(error)))
    failure = None if expiry.error is None else masked(expiry.error)
    if not expiry.versions and failure is None:
        return None  # a saved cut needs them
    return msgspec.structs.replace(result, versions=expiry.versions, error=failure)


def _is_old(logs: LogCache, tracked: TrackedLog[Any], keep_for: dt.timedelta) -> bool:
    """Return whether a kept version was replaced long ago by more than the report of an expiry or a vacuum.

    Otherwise an idle log would get another version from each such report. Makes a search of the log, and a
    GET request for each of its newest versions of that kind. The expiry itself decides which versions expire.
    """
    view = tracked.current()
    kept_from = max(1, view.state.expired)
    newest = _version_before(logs, tracked, view, keep_for + keep_for / _SLACK)
    entries = (tracked.log.entry_at(version) for version in range(newest, kept_from, -1))
    return any(
        not isinstance(entry, Commit) or not says_only(entry, HistoryExpired, FilesVacuumed)
        for entry in entries
    )


def _version_before(logs: LogCache, tracked: TrackedLog[Any], view: LogView[Any], age: dt.timedelta) -> int:
    """Return the version that was current so long ago. 0 if there was none."""
    until_us = logs.clocks.likely_us(tracked.location) - age // dt.timedelta(microseconds=1)
    return tracked.version_then(view, until_us)


def _may_free(logs: LogCache, tracked: TrackedLog[TableState], age: dt.timedelta) -> bool:
    """Return whether a vacuum is due, though nothing has expired in this run.

    It is due if versions after the last fence are twice as old as the vacuum's age, and are not only the
    vacuum's own. So it runs once in about that time, and not again if there are no commits. Costs a search of
    the log.
    """
    view = tracked.current()
    newest = _version_before(logs, tracked, view, 2 * age)
    if newest <= view.fence:
        return False
    if newest < view.version:
        return True
    last = tracked.log.entry_at(newest)
    return not isinstance(last, Commit) or not says_only(last, FilesVacuumed)


class _Work:
    """The remaining work for a table."""

    def __init__(
        self,
        tree: NameTree,
        target: LogTarget[TableState],
        actions: frozenset[str],
        engine: Engine | None,
        *,
        dry_run: bool,
    ) -> None:
        self.tree, self.target, self._actions, self._dry_run = tree, target, actions, dry_run
        self._engine = engine
        where = masked_urls(tree.logs.url(target.tracked.location))
        self.done = Maintained(name=target.name, location=where)
        self._head = TableHead(tree.logs, target.tracked, target.view, target.name)
        self._until = self._head.version
        self._policy: MaintenancePolicy | None = None
        self._lost = 0

    def go_on(self, limits: MaintenanceLimits, progress: Progress) -> bool:
        """Do the next step. Return whether another may follow."""
        try:
            if self._policy is None:
                self._policy = policy_for(self.tree.logs, self.target.view, self.target.name)
                if self._policy.mode == OFF:
                    self._note("lakelog.maintenance is off")
                    return False
            if COMPACT in self._actions and self._compact(self._policy, limits):
                return True
            if CLUSTER in self._actions and self._cluster(limits):
                return True
            if STATISTICS in self._actions and self._count(limits):
                return True
            self._let_go(self._policy, progress)
        except _Stopped:
            self._say(is_left=True)
        except LakelogError as error:
            self._say(error=masked(str(error)))
        return False

    def leave(self) -> None:
        """Note that a limit came before the end."""
        self._say(is_left=True)

    def _say(self, **what: object) -> None:
        self.done = msgspec.structs.replace(self.done, **what)

    def _note(self, note: str) -> None:
        self._say(note=note)

    def _compact(self, policy: MaintenancePolicy, limits: MaintenanceLimits) -> bool:
        """Rewrite some of the due files. Return whether more may be due. A dry run plans all at once."""
        head = self._head if self._dry_run else self._head.refreshed()
        goal = goal_by(head, policy, joins=not head.metadata.clustering)
        # After a lost step, as little as possible at once.
        most = 1 if self._lost else limits.bytes_left(FILES_AT_ONCE * goal.target_size_bytes)
        files, groups = due(head, goal, until=self._until, limit_bytes=_ALL_BYTES if self._dry_run else most)
        if not groups:
            return False
        if self._dry_run:
            self._plan(files, groups)
            return False
        try:
            self._head, came = step(head, goal, files, groups, limits.check)
        except CommitConflict:
            came = Compacted(lost=1)
        return self._came(came, groups, limits)

    def _cluster(self, limits: MaintenanceLimits) -> bool:
        """Cluster files that are not in the order of the table's clustering. Returns as `_compact` does."""
        head = self._head if self._dry_run else self._head.refreshed()
        goal, key = clustering_by(head.metadata), head.metadata.clustering
        if goal is None:
            return False
        most = 1 if self._lost else limits.bytes_left(goal.limit_bytes)
        goal = replace(goal, limit_bytes=_ALL_BYTES if self._dry_run else most)
        files, groups = plan_next(head, goal, until=self._until, key=key)
        if not groups:
            return False
        if self._dry_run:
            self._plan(files, groups)
            return False
        ranked_head = ranked(head)
        if ranked_head.version != head.version:
            # By new boundaries, other files may be due. The boundaries' commit changes no row.
            head, self._until = (
                ranked_head,
                max(self._until, ranked_head.version)
                if ranked_head.version == head.version + 1
                else self._until,
            )
            files, groups = plan_next(head, goal, until=self._until, key=key)
            if not groups:
                return False
        try:
            self._head, rewrite = rewritten(head, files, groups, goal, limits.check)
            if self._head.version == head.version + 1 and self._until == head.version:
                self._until = self._head.version
        except CommitConflict:
            rewrite = Compacted(lost=len(groups))
        came = msgspec.structs.replace(rewrite, lost=min(1, rewrite.lost))
        return self._came(came, groups, limits)

    def _count(self, limits: MaintenanceLimits) -> bool:
        """Recompute statistics that are out of date."""
        head = self._head if self._dry_run else self._head.refreshed()
        columns = () if self._lost >= LOST_MAX else old_statistics(head)
        if not columns or self._dry_run:
            self._say(statistics=self.done.statistics + len(columns))
            return False
        limits.read_bytes += head.state.files.size_bytes
        try:
            self._head = refreshed(head, head.plan_bound(None), columns, limits.check)
        except CommitConflict:
            self._lost += 1
            return True
        # Once in a run, because writers may be faster.
        self._actions -= {STATISTICS}
        self._say(statistics=len(columns))
        return True

    def _plan(self, files: pa.Table, groups: list[FileGroup]) -> None:
        self._say(
            compacted=self.done.compacted.and_(
                Compacted(
                    read_files=files.num_rows,
                    read_bytes=sum(group.size_bytes for group in groups),
                    written_files=sum(group.tasks for group in groups),
                    deleted_rows=sum(group.deleted for group in groups),
                )
            )
        )

    def _came(self, came: Compacted, groups: list[FileGroup], limits: MaintenanceLimits) -> bool:
        limits.read_bytes += sum(group.size_bytes for group in groups)
        self._say(compacted=self.done.compacted.and_(came))
        self._lost += came.lost
        if self._lost >= LOST_MAX:
            self._note(
                f"other writers changed the files of {LOST_MAX} steps: the rest is left for the next run"
            )
            return False
        return True

    def _let_go(self, policy: MaintenancePolicy, progress: Progress) -> None:
        """Expire and delete as the policy allows."""
        scope = LogScope(tables=[self.target])
        logs, table_log, expired_count = self.tree.logs, self.target.tracked, 0
        if (
            EXPIRE in self._actions
            and policy.keep_for is not None
            and _is_old(logs, table_log, policy.keep_for)
        ):
            (expiry,) = expire_logs(
                self.tree,
                scope,
                what_to_keep(older_than=policy.keep_for),
                dry_run=self._dry_run,
                progress=progress,
                engine=self._engine,
            )
            expired_count = expiry.versions
            self._say(versions=expired_count)
        age = policy.vacuum_age if VACUUM in self._actions else None
        if age is not None and (expired_count or _may_free(logs, table_log, age)):
            wish = vacuum_wish(
                older_than=age,
                dry_run=self._dry_run,
                keys=False,
                progress=progress,
                engine=self._engine,
                marks=True,
            )
            places = vacuum_logs(self.tree, scope, wish)
            self._say(
                freed_files=sum(place.files + place.objects for place in places),
                freed_bytes=sum(place.size_bytes + place.object_bytes for place in places),
                error=next((place.error for place in places if place.error is not None), None),
            )
