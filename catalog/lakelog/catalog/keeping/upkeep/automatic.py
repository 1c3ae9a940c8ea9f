"""Upkeep by the writers themselves: compaction, clustering or counting in the background, by a policy.

The policy is `auto`. It costs a commit nothing: no request, and no wait. The writer that committed a version
divisible by `FAN_IN` looks for due work. So of many writers a single writer does it, without communication.
Work that became due before an earlier such version belongs to that version's writer, which may still be doing
it (see `UpkeepTurns`). A writer takes a group at a time, while all of its upkeep has taken less than a tenth of the
time since its first such commit. So it does at least a group, and exceeds its share by at most a group.
Upkeep ends with the process, which waits for it no longer than `END_S`.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import VERSION
from lakelog.catalog.core.logs import LogCache, TableHead, TrackedLog, in_background
from lakelog.catalog.core.policies import FAN_IN, is_auto, policy_for
from lakelog.catalog.core.schema import AUTO, ON_DEMAND
from lakelog.catalog.core.state import ClusteringTarget, FileGroup, TableState
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.upkeep.clustering import plan_next, ranked, rewritten
from lakelog.catalog.keeping.upkeep.compacting import clustering_by, due, goal_by, step
from lakelog.catalog.keeping.upkeep.statistics import due_since, old_statistics, refreshed
from lakelog.log import LogView
from lakelog.log.errors import LakelogError, NotFound

SHARE = 0.1
STEP_BYTES_MAX = 512 * 1024 * 1024
STEP_S_MAX = 60.0
"""A group that is larger, or takes longer, is left to `maintain`."""

END_S = 1.0
LOST_MAX = 3
"""After losing so many groups to other writers, a table is left until its next commits."""

TAKEN_OVER_AFTER = 16
"""When a writer takes over work that another left undone: after so many turns, or twice as many, and so on.

Taking over too early costs work, and never rows.
"""

TURNS_MAX = 64

_LOGGER = logging.getLogger("lakelog.catalog")


@dataclass(frozen=True, slots=True)
class UpkeepTurns:
    """The versions, divided by `FAN_IN`, that this process has committed, and after which it looks for work."""

    own: tuple[int, ...]

    def and_(self, later: UpkeepTurns) -> UpkeepTurns:
        return UpkeepTurns(tuple(sorted({*self.own, *later.own}))[-TURNS_MAX:])

    def has(self, newest: int) -> bool:
        """Return whether this writer has to rewrite a group whose last file came with the version `newest`."""
        due = -(-newest // FAN_IN)
        if due in self.own or due > self.own[-1]:
            return True
        late = (turn - due for turn in self.own)
        return any(turn >= TAKEN_OVER_AFTER and not turn & (turn - 1) for turn in late)


class KeepingUp:
    """The upkeep of a catalog's tables by this process, which began to write them at `since_s`. Thread-safe."""

    def __init__(self, default: str, since_s: float) -> None:
        self._default = default
        self._since_s = since_s
        self._lock = threading.Lock()
        self._wanted: dict[str, tuple[TrackedLog[TableState], UpkeepTurns]] = {}
        self._left: dict[str, UpkeepTurns] = {}
        """The turns of tables for which there was no time. These turns still belong to this process."""
        self._is_running = False
        self._spent_s = 0.0
        self._ended = threading.Event()
        _all.add(self)

    def committed(self, logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]) -> None:
        """Schedule a look at a table if its new version `is_auto` and is due for a look. Costs nothing here."""
        with self._lock:
            if _exiting.is_set():
                return
            turns = UpkeepTurns((view.version // FAN_IN,))
            _, earlier = self._wanted.get(tracked.location, (tracked, turns))
            left_turns = self._left.pop(tracked.location, turns)
            self._wanted[tracked.location] = (tracked, left_turns.and_(earlier).and_(turns))
            if self._is_running:
                return
            self._is_running = True
            self._ended.clear()
        try:
            _begin_thread(lambda: self._run(logs))
        except RuntimeError:  # the interpreter ends
            with self._lock:
                self._is_running = False
                self._ended.set()

    def wait(self, timeout_s: float) -> bool:
        """Return whether all work that was begun has ended by then."""
        with self._lock:
            if not self._is_running:
                return True
        return self._ended.wait(timeout_s)

    def _run(self, logs: LogCache) -> None:
        while (job := self._next()) is not None:
            table_log, turns = job
            work: Callable[[], None] = partial(self._look_after, logs, table_log, turns)
            if logs.observe is not None:
                work = in_background(logs.observe, logs.warehouse, table_log.log.location, work)
            try:
                work()
            except _Ended:
                pass
            except LakelogError as error:
                _LOGGER.info("%s was not looked after by a writer: %s", table_log.log.location, error)
            except Exception:
                # No writer fails because of upkeep: what is due stays due. A process that ends may have ended the
                # threads that a step needs.
                if not _exiting.is_set():
                    _LOGGER.warning("upkeep of %s failed", table_log.log.location, exc_info=True)

    def _next(self) -> tuple[TrackedLog[TableState], UpkeepTurns] | None:
        """Return the next scheduled table. None ends the thread, and the next commit may begin a new thread."""
        with self._lock:
            if not self._wanted or _exiting.is_set():
                self._is_running = False
                self._ended.set()
                return None
            return self._wanted.pop(next(iter(self._wanted)))

    def _look_after(self, logs: LogCache, tracked: TrackedLog[TableState], turns: UpkeepTurns) -> None:
        now_s, lost_count = logs.log_options.monotonic_s, 0
        while lost_count < LOST_MAX and self._may_work(logs, tracked, now_s()):
            began_s = now_s()
            try:
                came = self._do_one(logs, tracked, turns)
            finally:
                self._spent_s += now_s() - began_s
            if came is None:
                return
            lost_count += came
            _check()
        with self._lock:
            self._left[tracked.location] = turns

    def _do_one(self, logs: LogCache, tracked: TrackedLog[TableState], turns: UpkeepTurns) -> bool | None:
        """Rewrite the groups of a commit, and return whether some were lost to other writers.

        None if nothing is due.
        """
        try:
            view = tracked.current()
        except NotFound:
            return None
        if view.sealed or view.state.metadata is None:
            return None
        head = TableHead.at_place(logs, tracked, view)
        policy = policy_for(logs, view, head.name)
        if (policy.said or self._default) != AUTO:
            return None
        is_requested = policy.said is not None
        if not is_requested and view.state.branches:
            # Both would need space for the same rows.
            return None
        check = _until(logs.log_options.monotonic_s)
        clustering = clustering_by(head.metadata)
        goal = goal_by(head, policy, joins=clustering is None)
        # Other writers' files are copied only at a user's request because they stay in place, too.
        plan = due(head, goal, until=head.version, limit_bytes=sys.maxsize, only_own=not is_requested)
        files, groups = _ours(plan, turns, most=1)
        if groups:
            _, result = step(head, goal, files, groups, check, unless_branched=not is_requested)
            return bool(result.lost)
        if clustering is not None:
            came = self._cluster_one(head, clustering, turns, check, is_asked=is_requested)
            if came is not None:
                return came
        return _count_one(head, turns, check)

    def _cluster_one(
        self,
        head: TableHead,
        clustering: ClusteringTarget,
        turns: UpkeepTurns,
        check: Callable[[], None],
        *,
        is_asked: bool,
    ) -> bool | None:
        """Cluster the files that are not in the order of the table's clustering. Returns as `_do_one` does."""
        clustering = replace(clustering, limit_bytes=min(clustering.limit_bytes, STEP_BYTES_MAX))
        ours = partial(_ours, turns=turns, only_own=not is_asked)
        if not ours(_planned(head, clustering))[1]:
            return None
        head = ranked(head)
        files, groups = ours(_planned(head, clustering))
        if not groups:
            return None
        _, result = rewritten(head, files, groups, clustering, check, unless_branched=not is_asked)
        return bool(result.lost)

    def _may_work(self, logs: LogCache, tracked: TrackedLog[TableState], now_s: float) -> bool:
        """Return whether there is time for upkeep.

        It may take a tenth of all time if a user requested it, else a tenth of the time that writes took.
        """
        view = tracked.known
        has_policy = view is not None and is_auto(logs, view.state, ON_DEMAND)
        of_s = now_s - self._since_s if has_policy else logs.write_times.total_s
        return not _exiting.is_set() and self._spent_s <= SHARE * of_s

    def forget(self) -> None:
        """Reset the state in a forked child, which has neither the thread nor its work."""
        self._lock = threading.Lock()
        self._is_running = False
        self._wanted.clear()
        self._left.clear()


def _count_one(head: TableHead, turns: UpkeepTurns, check: Callable[[], None]) -> bool | None:
    """Compute statistics that are out of date, of a table that is at most as large as a group.

    Returns as `_do_one` does.
    """
    columns = old_statistics(head)
    if not columns or head.state.files.size_bytes > STEP_BYTES_MAX:
        return None
    plan = head.plan_bound(None)
    if not turns.has(due_since(head, plan)):
        return None
    try:
        refreshed(head, plan, columns, check)
    except CommitConflict:
        return True
    return False


def _planned(head: TableHead, goal: ClusteringTarget) -> tuple[pa.Table, list[FileGroup]]:
    return plan_next(head, goal, until=head.version, key=head.metadata.clustering)


def _ours(
    planned: tuple[pa.Table, list[FileGroup]],
    turns: UpkeepTurns,
    *,
    most: int | None = None,
    only_own: bool = False,
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the first groups, at most `most`, that are not too large and are for this writer, and their
    files.

    With `only_own`, only groups of the table's own folder count. Others are no reason to wait for them.
    """
    files, groups = planned
    own_groups: list[FileGroup] = []
    parts: list[pa.Table] = []
    first = size = 0
    for group in groups:
        own = files.slice(first, group.files)
        first += group.files
        if (
            len(own_groups) == most
            or size + group.size_bytes > STEP_BYTES_MAX
            or (only_own and not _are_own(own))
        ):
            continue
        if turns.has(pc.max(pc.fill_null(own[VERSION], 1)).as_py()):
            own_groups.append(group)
            parts.append(own)
            size += group.size_bytes
    return (pa.concat_tables(parts) if parts else files.slice(0, 0)), own_groups


def _are_own(files: pa.Table) -> bool:
    return bool(pc.all(pc.starts_with(files["path"], "data/")).as_py())


class _Ended(LakelogError):
    """Ends a step, because the process ends."""


def _until(now_s: Callable[[], float]) -> Callable[[], None]:
    """Return a check that ends a step with the process, or when it takes too long."""
    end_s = now_s() + STEP_S_MAX

    def check() -> None:
        _check()
        if now_s() > end_s:
            raise _Ended("a group takes too long: it is left to `lakelog maintain`")

    return check


def _check() -> None:
    if _exiting.is_set():
        raise _Ended("the process ends")


def _begin_thread(work: Callable[[], None]) -> None:
    # The interpreter does not wait for such a thread.
    threading.Thread(target=work, name="lakelog-upkeep", daemon=True).start()


_all: weakref.WeakSet[KeepingUp] = weakref.WeakSet()
_exiting = threading.Event()


def wait_for_upkeep(timeout_s: float = 60.0) -> bool:
    """Return whether all upkeep that writers of this process have begun has ended by then."""
    return all([upkeep.wait(timeout_s) for upkeep in list(_all)])


def _end() -> None:
    """End a step that is under way, and delete its files, if that takes no longer than `END_S`."""
    _exiting.set()
    wait_for_upkeep(END_S)


def _forget_all() -> None:
    for upkeep in list(_all):
        upkeep.forget()


# This runs before the thread pools of a step end. Functions registered with `atexit` run after that. The
# standard library's own pools register like this. If a Python lacks this function, a step ends by an error a
# little later.
try:
    getattr(threading, "_register_atexit", atexit.register)(_end)
except RuntimeError:  # a commit loads it while the process ends: then none is begun
    _exiting.set()
os.register_at_fork(after_in_child=_forget_all)
