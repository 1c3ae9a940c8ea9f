"""Upkeep by the writers themselves: a little compaction, clustering or counting in the background, where a policy says
`auto`.

A commit costs nothing for it: no request, and no wait. The writer that committed a version divisible by `FAN_IN` looks
whether something is due, so that of many writers one does, without a word between them. What became due before an
earlier such version is its writer's, who may be at it still (see `Turns`). It takes a group at a time, while all of its
upkeep has taken less than a tenth of the time since its first such commit; so at least one group, and at most one more
than that. It ends with the process, which waits for it no longer than `END_S`.
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
from lakelog.catalog.core.policies import is_auto, policy_for
from lakelog.catalog.core.schema import AUTO, ON_DEMAND
from lakelog.catalog.core.state import ClusteringGoal, Group, TableState
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.upkeep.clustering import plan_next, ranked, rewritten
from lakelog.catalog.keeping.upkeep.compacting import FAN_IN, clustering_by, due, goal_by, step
from lakelog.catalog.keeping.upkeep.statistics import due_since, old_statistics, refreshed
from lakelog.log import View
from lakelog.log.errors import LakelogError, NotFound

SHARE = 0.1
STEP_BYTES_MAX = 512 * 1024 * 1024
STEP_S_MAX = 60.0
"""A group that is larger, or takes longer, is left to `maintain`."""

END_S = 1.0
LOST_MAX = 3
"""So many groups may be lost to other writers before a table is left until its next commits."""

TAKEN_OVER_AFTER = 16
"""What a writer has not done that looked when it was due is taken over by the writer of so many turns later, or of
twice as many, and so on: too early costs work, and never rows."""

TURNS_MAX = 64

_LOGGER = logging.getLogger("lakelog.catalog")


@dataclass(frozen=True, slots=True)
class Turns:
    """The versions, divided by `FAN_IN`, that this process has committed, and after which it looks."""

    own: tuple[int, ...]

    def and_(self, later: Turns) -> Turns:
        return Turns(tuple(sorted({*self.own, *later.own}))[-TURNS_MAX:])

    def has(self, newest: int) -> bool:
        """Whether a group is this writer's to rewrite whose last file came with the version `newest`."""
        due = -(-newest // FAN_IN)
        if due in self.own or due > self.own[-1]:
            return True
        late = (each - due for each in self.own)
        return any(each >= TAKEN_OVER_AFTER and not each & (each - 1) for each in late)


class KeepingUp:
    """The upkeep of one catalog's tables by this process. Safe to share between threads."""

    def __init__(self, default: str) -> None:
        self._default = default
        self._lock = threading.Lock()
        self._wanted: dict[str, tuple[TrackedLog[TableState], Turns]] = {}
        self._left: dict[str, Turns] = {}
        """Of tables for which there was no time: then their turns are still this process's."""
        self._is_running = False
        self._since_s: float | None = None
        self._spent_s = 0.0
        self._ended = threading.Event()
        _all.add(self)

    def committed(self, logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> None:
        """Have a table looked after soon whose new version `is_auto`, if it is time. Costs nothing here."""
        with self._lock:
            if self._since_s is None:
                self._since_s = logs.log_options.monotonic_s()
            if view.version % FAN_IN or _exiting.is_set():
                return
            turns = Turns((view.version // FAN_IN,))
            _, earlier = self._wanted.get(tracked.location, (tracked, turns))
            left = self._left.pop(tracked.location, turns)
            self._wanted[tracked.location] = (tracked, left.and_(earlier).and_(turns))
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
        """Return whether what was begun has ended by then."""
        with self._lock:
            if not self._is_running:
                return True
        return self._ended.wait(timeout_s)

    def _run(self, logs: LogCache) -> None:
        while (wanted := self._next()) is not None:
            tracked, turns = wanted
            work: Callable[[], None] = partial(self._look_after, logs, tracked, turns)
            if logs.observe is not None:
                work = in_background(logs.observe, logs.warehouse, tracked.log.location, work)
            try:
                work()
            except _Ended:
                pass
            except LakelogError as error:
                _LOGGER.info("%s was not looked after by a writer: %s", tracked.log.location, error)
            except Exception:
                # No writer fails because of upkeep: what is due stays due. A process that ends may have ended the
                # threads that a step needs.
                if not _exiting.is_set():
                    _LOGGER.warning("upkeep of %s failed", tracked.log.location, exc_info=True)

    def _next(self) -> tuple[TrackedLog[TableState], Turns] | None:
        """Return the next table that is wanted; None ends the thread, and the next commit may begin another one."""
        with self._lock:
            if not self._wanted or _exiting.is_set():
                self._is_running = False
                self._ended.set()
                return None
            return self._wanted.pop(next(iter(self._wanted)))

    def _look_after(self, logs: LogCache, tracked: TrackedLog[TableState], turns: Turns) -> None:
        now_s, lost = logs.log_options.monotonic_s, 0
        while lost < LOST_MAX and self._may_work(logs, tracked, now_s()):
            began_s = now_s()
            try:
                came = self._do_one(logs, tracked, turns)
            finally:
                self._spent_s += now_s() - began_s
            if came is None:
                return
            lost += came
            _check()
        with self._lock:
            self._left[tracked.location] = turns

    def _do_one(self, logs: LogCache, tracked: TrackedLog[TableState], turns: Turns) -> bool | None:
        """Rewrite what goes into one commit, and return whether some of that was lost to other writers; None where
        nothing is due."""
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
        is_asked = policy.said is not None
        if not is_asked and view.state.branches:
            # Both would need space for the same rows.
            return None
        check = _until(logs.log_options.monotonic_s)
        clustering = clustering_by(head.metadata)
        goal = goal_by(head, policy, joins=clustering is None)
        # Files of others are copied only where a user has asked for it: they stay where they are, too.
        planned = due(head, goal, until=head.version, limit_bytes=sys.maxsize, only_own=not is_asked)
        files, groups = _ours(planned, turns, most=1)
        if groups:
            _, compacted = step(head, goal, files, groups, check, unless_branched=not is_asked)
            return bool(compacted.lost)
        if clustering is not None:
            came = self._cluster_one(head, clustering, turns, check, is_asked=is_asked)
            if came is not None:
                return came
        return _count_one(head, turns, check)

    def _cluster_one(
        self,
        head: TableHead,
        clustering: ClusteringGoal,
        turns: Turns,
        check: Callable[[], None],
        *,
        is_asked: bool,
    ) -> bool | None:
        """The same for what is not in the order of the table's clustering."""
        clustering = replace(clustering, limit_bytes=min(clustering.limit_bytes, STEP_BYTES_MAX))
        ours = partial(_ours, turns=turns, only_own=not is_asked)
        if not ours(_planned(head, clustering))[1]:
            return None
        head = ranked(head)
        files, groups = ours(_planned(head, clustering))
        if not groups:
            return None
        _, done = rewritten(head, files, groups, clustering, check, unless_branched=not is_asked)
        return bool(done.lost)

    def _may_work(self, logs: LogCache, tracked: TrackedLog[TableState], now_s: float) -> bool:
        """Whether there is time: a tenth of all time where a user has asked for it, else of that which writes took."""
        assert self._since_s is not None, "a commit came first"
        known = tracked.known
        asked = known is not None and is_auto(logs, known.state, ON_DEMAND)
        of_s = now_s - self._since_s if asked else logs.write_times.total_s
        return not _exiting.is_set() and self._spent_s <= SHARE * of_s

    def forget(self) -> None:
        """A forked child has neither the thread nor its work."""
        self._lock = threading.Lock()
        self._is_running = False
        self._wanted.clear()
        self._left.clear()


def _count_one(head: TableHead, turns: Turns, check: Callable[[], None]) -> bool | None:
    """The same for statistics that are out of date, of a table that is no larger than a group may be."""
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


def _planned(head: TableHead, goal: ClusteringGoal) -> tuple[pa.Table, list[Group]]:
    return plan_next(head, goal, until=head.version, key=head.metadata.clustering)


def _ours(
    planned: tuple[pa.Table, list[Group]], turns: Turns, *, most: int | None = None, only_own: bool = False
) -> tuple[pa.Table, list[Group]]:
    """Return of what is due the first groups, `most` of them, that are not too large and for this writer to rewrite,
    and their files; with `only_own`, of those in the table's folder alone. Others are no reason to wait for them."""
    files, groups = planned
    found: list[Group] = []
    parts: list[pa.Table] = []
    first = size = 0
    for group in groups:
        own = files.slice(first, group.files)
        first += group.files
        if len(found) == most or size + group.size_bytes > STEP_BYTES_MAX or (only_own and not _are_own(own)):
            continue
        if turns.has(pc.max(pc.fill_null(own[VERSION], 1)).as_py()):
            found.append(group)
            parts.append(own)
            size += group.size_bytes
    return (pa.concat_tables(parts) if parts else files.slice(0, 0)), found


def _are_own(files: pa.Table) -> bool:
    return bool(pc.all(pc.starts_with(files["path"], "data/")).as_py())


class _Ended(LakelogError):
    """Ends a step, because the process ends."""


def _until(now_s: Callable[[], float]) -> Callable[[], None]:
    """Return what ends a step with the process, and once it takes too long."""
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
    """Return whether the upkeep that writers of this process have begun has ended by then."""
    return all([each.wait(timeout_s) for each in list(_all)])


def _end() -> None:
    """Have a step that is under way end, and delete what it has written, if that takes no longer than `END_S`."""
    _exiting.set()
    wait_for_upkeep(END_S)


def _forget_all() -> None:
    for each in list(_all):
        each.forget()


# Before the pools of threads that a step uses end, as all that is registered with `atexit` is called after that. The
# standard library's own pools register so; where a Python has no such place, a step ends by an error a little later.
try:
    getattr(threading, "_register_atexit", atexit.register)(_end)
except RuntimeError:  # it is loaded by a commit while the process ends: then none is begun
    _exiting.set()
os.register_at_fork(after_in_child=_forget_all)
