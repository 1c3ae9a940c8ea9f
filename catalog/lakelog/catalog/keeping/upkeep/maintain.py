"""Doing what is due, by the policy of each table: compaction and clustering step by step, statistics, expiry, vacuum.

It goes round: one step of each table at a time, so that no large table keeps the others waiting, until nothing is due
or a limit is reached. What was done is no longer due, so the next run goes on where this one stopped. Nothing expires
and nothing is deleted but by a policy that says how long to keep it. A table that fails hides no other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.choices import ACTIONS, CLUSTER, COMPACT, EXPIRE, STATISTICS, VACUUM
from lakelog.catalog.core.logs import LogCache, NameTree, Progress, Scope, TableHead, Target, TrackedLog
from lakelog.catalog.core.policies import namespace_keeps_for, policy_for
from lakelog.catalog.core.schema import OFF, Policy
from lakelog.catalog.core.state import (
    ClusteringGoal,
    FilesVacuumed,
    Goal,
    Group,
    HistoryExpired,
    NamespaceState,
    TableState,
    says_only,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance import Engine, expire_logs, vacuum_logs, vacuum_wish, what_to_keep
from lakelog.catalog.keeping.upkeep.clustering import Clustered, plan_next, ranked, rewritten
from lakelog.catalog.keeping.upkeep.compacting import (
    FILES_AT_ONCE,
    Compacted,
    clustering_by,
    due,
    goal_by,
    step,
)
from lakelog.catalog.keeping.upkeep.statistics import old_statistics, refreshed
from lakelog.catalog.names import Identifier
from lakelog.log import Commit, View
from lakelog.log.errors import InvalidInput, LakelogError, NotFound
from lakelog.log.secrets import masked, masked_urls

LOST_MAX = 5
"""After so many steps that other writers won, a table is left for the next run."""

_ALL_BYTES = 1 << 62
_SLACK = 10
"""Versions expire once the oldest is kept for a tenth longer than asked for: then those of that tenth go at once."""


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a table, or is due in a dry run; of a namespace, of its own log alone. `statistics` of so many
    columns were computed anew; `versions` have expired; `freed_files` were deleted, with `freed_bytes`. `is_left`: more
    is due, and a limit was reached. `note` is why nothing was due that might be; `error` is what failed."""

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
class Limits:
    """When to stop. `now_s` is a clock that only goes forward; `stopped` may ask for an end at any time."""

    now_s: Callable[[], float]
    limit_s: float | None = None
    limit_bytes: int | None = None
    stopped: Callable[[], bool] = lambda: False
    began_s: float = field(init=False)
    read_bytes: int = 0

    def __post_init__(self) -> None:
        for limit, kind, what in (
            (self.limit_s, (int, float), "seconds"),
            (self.limit_bytes, (int,), "bytes"),
        ):
            if limit is not None and (type(limit) not in kind or limit != limit):
                raise InvalidInput(f"a limit of {limit!r} is not a number of {what}: give one")
        if self.limit_s is not None and self.limit_s <= 0:
            raise InvalidInput(f"a limit of {self.limit_s} seconds leaves no time: give more than 0")
        if self.limit_bytes is not None and self.limit_bytes <= 0:
            raise InvalidInput(f"a limit of {self.limit_bytes} bytes leaves nothing to do: give more than 0")
        self.began_s = self.now_s()

    @property
    def is_over(self) -> bool:
        spent = self.limit_bytes is not None and self.read_bytes >= self.limit_bytes
        late = self.limit_s is not None and self.now_s() - self.began_s >= self.limit_s
        return spent or late or self.stopped()

    def bytes_left(self, at_most: int) -> int:
        return (
            at_most if self.limit_bytes is None else max(1, min(at_most, self.limit_bytes - self.read_bytes))
        )

    def check(self) -> None:
        """Raise _Stopped where it was asked for. A limit of time or bytes does not cut a step: what it has read would
        have been read for nothing."""
        if self.stopped():
            raise _Stopped("upkeep was stopped")


class _Stopped(LakelogError):
    """Ends a step, when upkeep was asked to stop; what was committed before is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What an engine, which rewrites rows itself, is to do for the table at `path`: compact it with that goal, where
    `compacts`, cluster it by its `key` with the other, where it has one, and compute the statistics of these columns
    anew."""

    path: Identifier
    goal: Goal
    compacts: bool
    clustering: ClusteringGoal | None
    key: tuple[int, ...]
    statistics: tuple[str, ...]


def due_in(tree: NameTree, scope: Scope) -> list[Due]:
    """Return the tables of `scope` for which there is something to do. One that cannot be judged is left out:
    `maintain_tables` reports it."""
    found = []
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
            each = Due(
                path=target.path,
                goal=goal,
                compacts=bool(groups),
                clustering=clustering,
                key=key,
                statistics=old_statistics(head),
            )
        except LakelogError:
            continue
        if each.compacts or each.clustering or each.statistics:
            found.append(each)
    return found


def maintain_tables(
    tree: NameTree,
    scope: Scope,
    limits: Limits,
    *,
    actions: Collection[str] = ACTIONS,
    dry_run: bool,
    progress: Progress,
    engine: Engine | None = None,
) -> list[Maintained]:
    """Do what is due in `scope`, or report it; of these actions alone. An `engine` does what it can of much."""
    for action in actions:
        if action not in ACTIONS:
            raise InvalidInput(f"{action!r} is not what upkeep does here: name some of {', '.join(ACTIONS)}")
    works = [_Work(tree, target, frozenset(actions), engine, dry_run=dry_run) for target in scope.tables]
    left = list(works)
    while left and not limits.is_over:
        going: list[_Work] = []
        for number, work in enumerate(left, start=1):
            if limits.is_over:
                going += left[number - 1 :]
                break
            progress(f"{number:,} of {len(left):,}: {work.target.name}")
            if work.go_on(limits, progress):
                going.append(work)
        left = going
    for work in left:
        work.leave()
    unread = [
        Maintained(name=each.name, location=masked_urls(each.location), error=masked(each.error))
        for each in scope.unreadable
        if each.kind == "table"
    ]
    namespaces = scope.namespaces if EXPIRE in actions else []
    found = [
        _expired(tree, each, limits, dry_run=dry_run, progress=progress, engine=engine) for each in namespaces
    ]
    return [*unread, *(work.done for work in works), *(each for each in found if each is not None)]


def _expired(
    tree: NameTree,
    target: Target[NamespaceState],
    limits: Limits,
    *,
    dry_run: bool,
    progress: Progress,
    engine: Engine | None,
) -> Maintained | None:
    """Expire what a namespace's own log has kept for long enough; None where nothing is due."""
    done = Maintained(
        kind="namespace", name=target.name, location=masked_urls(tree.logs.url(target.tracked.location))
    )
    try:
        keep_for = namespace_keeps_for(tree.logs, target.view.state)
        if keep_for is None or not _is_old(tree.logs, target.tracked, keep_for):
            return None
        if limits.is_over:
            return msgspec.structs.replace(done, is_left=True)
        scope, wish = Scope(namespaces=[target]), what_to_keep(older_than=keep_for)
        (gone,) = expire_logs(tree, scope, wish, dry_run=dry_run, progress=progress, engine=engine)
    except LakelogError as error:
        return msgspec.structs.replace(done, error=masked(str(error)))
    failed = None if gone.error is None else masked(gone.error)
    if not gone.versions and failed is None:
        return None  # a saved cut needs them
    return msgspec.structs.replace(done, versions=gone.versions, error=failed)


def _is_old(logs: LogCache, tracked: TrackedLog[Any], keep_for: dt.timedelta) -> bool:
    """Whether a version is kept that was replaced long enough ago, by more than what an expiry or a vacuum says of
    itself: an idle log would have a new version of that each time. Costs a search of the log, and a GET for
    each of its newest versions that are of that kind. What goes is judged by the expiry itself."""
    view = tracked.current()
    kept_from = max(1, view.state.expired)
    newest = _version_before(logs, tracked, view, keep_for + keep_for / _SLACK)
    entries = (tracked.log.entry_at(version) for version in range(newest, kept_from, -1))
    return any(
        not isinstance(entry, Commit) or not says_only(entry, HistoryExpired, FilesVacuumed)
        for entry in entries
    )


def _version_before(logs: LogCache, tracked: TrackedLog[Any], view: View[Any], age: dt.timedelta) -> int:
    """Return the version that was current so long ago, 0 where there was none."""
    until_us = logs.clocks.likely_us(tracked.location) - age // dt.timedelta(microseconds=1)
    if view.time_us <= until_us:
        return view.version
    try:
        return tracked.version_at_time(until_us)
    except NotFound:
        return 0


def _may_free(logs: LogCache, tracked: TrackedLog[TableState], age: dt.timedelta) -> bool:
    """Whether a vacuum is due, though nothing has expired in this run: there are versions behind the last one's fence
    that are twice as old as what it fences off, and they are not only its own. So it is done once in about that time,
    and not again where nothing is committed. Costs a search of the log."""
    view = tracked.current()
    newest = _version_before(logs, tracked, view, 2 * age)
    if newest <= view.fence:
        return False
    if newest < view.version:
        return True
    last = tracked.log.entry_at(newest)
    return not isinstance(last, Commit) or not says_only(last, FilesVacuumed)


class _Work:
    """What is left to do for one table."""

    def __init__(
        self,
        tree: NameTree,
        target: Target[TableState],
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
        self._policy: Policy | None = None
        self._lost = 0

    def go_on(self, limits: Limits, progress: Progress) -> bool:
        """Do the next step; return whether there may be another."""
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

    def _compact(self, policy: Policy, limits: Limits) -> bool:
        """Rewrite some of the files that are due; return whether there may be more. All at once in a dry run."""
        head = self._head if self._dry_run else self._head.refreshed()
        goal = goal_by(head, policy, joins=not head.metadata.clustering)
        # After a step that was lost, as little as possible at once.
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

    def _cluster(self, limits: Limits) -> bool:
        """The same for what is not in the order of the table's clustering."""
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
        now = ranked(head)
        if now.version != head.version:
            # By other boundaries, others may be due; their commit is no row's.
            head, self._until = (
                now,
                max(self._until, now.version) if now.version == head.version + 1 else self._until,
            )
            files, groups = plan_next(head, goal, until=self._until, key=key)
            if not groups:
                return False
        try:
            self._head, done = rewritten(head, files, groups, goal, limits.check)
            if self._head.version == head.version + 1 and self._until == head.version:
                self._until = self._head.version
        except CommitConflict:
            done = Clustered(lost=len(groups))
        came = Compacted(
            read_files=done.read_files,
            read_bytes=done.read_bytes,
            written_files=done.written_files,
            written_bytes=done.written_bytes,
            deleted_rows=done.deleted_rows,
            lost=min(1, done.lost),
        )
        return self._came(came, groups, limits)

    def _count(self, limits: Limits) -> bool:
        """Compute statistics anew that are out of date."""
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
        # Once in a run: writers may be faster than it.
        self._actions -= {STATISTICS}
        self._say(statistics=len(columns))
        return True

    def _plan(self, files: pa.Table, groups: list[Group]) -> None:
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

    def _came(self, came: Compacted, groups: list[Group], limits: Limits) -> bool:
        limits.read_bytes += sum(group.size_bytes for group in groups)
        self._say(compacted=self.done.compacted.and_(came))
        self._lost += came.lost
        if self._lost >= LOST_MAX:
            self._note(
                f"other writers changed the files of {LOST_MAX} steps: the rest is left for the next run"
            )
            return False
        return True

    def _let_go(self, policy: Policy, progress: Progress) -> None:
        """Expire and delete what the policy allows to go."""
        scope = Scope(tables=[self.target])
        logs, tracked, expired = self.tree.logs, self.target.tracked, 0
        if (
            EXPIRE in self._actions
            and policy.keep_for is not None
            and _is_old(logs, tracked, policy.keep_for)
        ):
            (gone,) = expire_logs(
                self.tree,
                scope,
                what_to_keep(older_than=policy.keep_for),
                dry_run=self._dry_run,
                progress=progress,
                engine=self._engine,
            )
            expired = gone.versions
            self._say(versions=expired)
        age = policy.vacuum_age if VACUUM in self._actions else None
        if age is not None and (expired or _may_free(logs, tracked, age)):
            asked = vacuum_wish(
                older_than=age,
                dry_run=self._dry_run,
                keys=False,
                progress=progress,
                engine=self._engine,
                marks=True,
            )
            places = vacuum_logs(self.tree, scope, asked)
            self._say(
                freed_files=sum(each.files + each.objects for each in places),
                freed_bytes=sum(each.size_bytes + each.object_bytes for each in places),
                error=next((each.error for each in places if each.error is not None), None),
            )
