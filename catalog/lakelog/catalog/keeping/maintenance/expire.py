"""Expiry of old versions of tables and namespaces, each in its own log.

First a commit in the log records it (`history-expired`), with its writer; from then on no change can bring back what
only older versions had. Then a base makes the first kept version durable, and the older ones become tombstones
(`lakelog.log.expiry`). The current version always stays. Data files are not touched: vacuum deletes those that only
expired versions had. If it stops at any point, the next run finishes it.

Saved cuts are read twice, the second time after the commit. A writer of a cut does the two steps in the opposite
order: it writes the cut, then reads what the logs have recorded. So at least one of the two sees the other and stops.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from lakelog.catalog.core.ddl import NeededVersions
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import (
    NameTree,
    Progress,
    Scope,
    Target,
    TrackedLog,
    Unreadable,
    in_turn,
    no_progress,
)
from lakelog.catalog.core.policies import kept_for
from lakelog.catalog.core.schema import KEEP_FOR
from lakelog.catalog.core.state import HistoryExpired, NamespaceState, TableState, encode
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.keeping.maintenance.adopted import sizes_of
from lakelog.catalog.keeping.maintenance.ages import age_us, judging_us, until_us
from lakelog.catalog.keeping.maintenance.engine import Engine, burying
from lakelog.catalog.keeping.maintenance.reachable import first_readable, lost_with, total
from lakelog.catalog.times import age_of
from lakelog.log import Draft, View, expiry
from lakelog.log.burial import is_buried
from lakelog.log.errors import InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.format import Base
from lakelog.log.leftovers import last_base_from, size_of_commits

S = TypeVar("S", TableState, NamespaceState)

EXPIRE_DEFAULT_AGE = dt.timedelta(days=7)


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """What expires, or would expire, of one log: `versions` before `first`, the first that can be read afterwards.

    `commits` become tombstones (those that an earlier run left undone too); with their sidecars they have `size_bytes`.
    `files` data files with `file_bytes` are then unreachable from any version. `kept_for_cuts`: saved cuts need older
    versions than requested. `error` is why this log was skipped.
    """

    kind: str
    name: str
    location: str
    first: int = 0
    head: int = 0
    versions: int = 0
    commits: int = 0
    size_bytes: int = 0
    files: int = 0
    file_bytes: int = 0
    kept_for_cuts: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """From which version on a log is kept: exactly one of these is given.

    `since`: what could be read at that time or later. `version`: that one. `last`: a number, with the current one.
    """

    since: int | None = None
    version: int | None = None
    last: int | None = None

    def first(self, tracked: TrackedLog[Any], view: View[Any], base: Base | None) -> int:
        """Return the first version to keep, at most the current one."""
        if self.since is not None:
            if base is not None and base.root.time_us >= self.since:
                return base.root.version
            return _current_at(tracked, view, self.since)
        if self.last is not None:
            return max(1, view.version - self.last + 1)
        assert self.version is not None, "one of them is given"
        if self.version > view.version:
            raise NotFound(
                f"{tracked.log.location} has no version {self.version}: the newest is {view.version}, which stays"
            )
        return self.version


def what_to_keep(
    *,
    older_than: dt.timedelta | None = None,
    version: int | None = None,
    retain_last: int | None = None,
) -> Callable[[int], Keep]:
    """Return what these arguments mean at a given time; without any, `EXPIRE_DEFAULT_AGE`. InvalidInput."""
    wishes = {"older_than": older_than, "version": version, "retain_last": retain_last}
    given = [name for name, value in wishes.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(f"{' and '.join(given)} cannot be combined: give only one of them")
    for name, number in (("version", version), ("retain_last", retain_last)):
        if number is not None and (type(number) is not int or number < 1):
            raise InvalidInput(f"{name} is {number!r}: give a whole number of at least 1")
    if version is not None or retain_last is not None:
        return lambda now_us: Keep(version=version, last=retain_last)
    age = age_us("older_than", EXPIRE_DEFAULT_AGE if older_than is None else older_than)
    return lambda now_us: Keep(since=until_us(now_us, age))


LOGS_AT_ONCE = 8
"""Most have little to do: what takes long is the round trips of one after the other."""


def expire_logs(
    tree: NameTree,
    scope: Scope,
    wish: Callable[[int], Keep],
    *,
    dry_run: bool,
    by_policy: bool = False,
    trust_clock: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> list[Expired]:
    """Expire old versions of every log in `scope`, or report what would expire. One log's failure does not stop the
    others. With `by_policy`, the property keep-for of a table or of a namespace above it counts in place of `wish`,
    where there is one. An `engine` makes the tombstones where they are many. ClockNotTrusted (see `ages`).

    Costs, for each log, a few GETs where nothing expires, with `by_policy` one more for each namespace above; else two
    GETs for each version that expires, and one for each retained version where an expired one removed files. On doing
    it, two GETs and a PUT for each that expires, four PUTs for the commit, base, snapshot and hint, and two LISTs.
    """
    progress = progress or no_progress
    cuts = NeededVersions(tree)

    def kept(now_us: int) -> Callable[[Target[Any]], Keep]:
        return lambda target: (_by_policy(tree, target, now_us) if by_policy else None) or wish(now_us)

    def goes(now_us: int) -> set[str]:
        found = _each(tree, scope, kept(now_us), cuts, no_progress, None, dry_run=True)
        return {f"{each.location}@{each.first}" for each in found if each.commits}

    now_us = judging_us(tree, scope, goes, only_look=dry_run, trust_clock=trust_clock)
    return _each(tree, scope, kept(now_us), cuts, progress, engine, dry_run=dry_run)


def _by_policy(tree: NameTree, target: Target[Any], now_us: int) -> Keep | None:
    """Return what the properties say that is kept, None where none of them does."""
    said = kept_for(tree.logs, target.view.state)
    if said is None:
        return None
    age = age_of(said)
    return Keep(version=1) if age is None else Keep(since=until_us(now_us, age_us(KEEP_FOR.name, age)))


def _each(
    tree: NameTree,
    scope: Scope,
    keep: Callable[[Target[Any]], Keep],
    cuts: NeededVersions,
    progress: Progress,
    engine: Engine | None,
    *,
    dry_run: bool,
) -> list[Expired]:
    done: list[Expired] = [_skipped(each) for each in scope.unreadable]
    show = in_turn(progress)

    needed = threading.Lock()

    def log(work: tuple[Target[Any], str]) -> Expired:
        target, kind = work
        try:
            with needed:
                cut = cuts.get(target.tracked.location)
            found = _plan(target, kind, keep(target), cut, show, counts=dry_run)
            return _do(tree, target, found, show, engine) if not dry_run and found.commits else found
        except LakelogError as error:
            if scope.is_one_table:
                raise
            return Expired(
                kind=kind, name=target.name, location=target.tracked.log.location, error=str(error)
            )

    count = len(scope.tables) + len(scope.namespaces)
    for kind, targets in (("table", scope.tables), ("namespace", scope.namespaces)):
        for begin in range(0, len(targets), LOGS_AT_ONCE):
            some: list[Target[Any]] = list(targets[begin : begin + LOGS_AT_ONCE])
            show(f"{len(done) + 1:,} of {count:,}: {some[0].name}")
            done += tree.logs.in_parallel(log, [(target, kind) for target in some])
    return done


def _plan(
    target: Target[Any], kind: str, keep: Keep, cut: int | None, progress: Progress, *, counts: bool
) -> Expired:
    """Return what would expire; unless it `counts`, how many commits that are is said by doing it."""
    tracked, view = target.tracked, target.view
    base = last_base_from(tracked.log, view)
    oldest = first_readable(base)
    # Any run finishes what an earlier one began.
    asked = max(keep.first(tracked, view, base), view.state.expired, oldest)
    first = max(oldest, asked if cut is None else min(asked, cut))
    known = Expired(
        kind=kind,
        name=target.name,
        location=tracked.log.location,
        first=first,
        head=view.version,
        kept_for_cuts=first < asked,
    )
    finished = base is None or is_buried(tracked.log.replay, base)
    if first == oldest and finished:
        return known
    commits, size_bytes = max(1, first - oldest), 0
    if counts:
        commits, size_bytes = size_of_commits(tracked.log, oldest if finished else 1, first)
    files = _unreachable(tracked, oldest, first, view, progress) if kind == "table" else None
    return msgspec.structs.replace(
        known,
        versions=first - oldest,
        commits=commits,
        size_bytes=size_bytes,
        files=0 if files is None else files.num_rows,
        file_bytes=0 if files is None else total(files),
    )


def _unreachable(
    tracked: TrackedLog[TableState], oldest: int, first: int, view: View[TableState], progress: Progress
) -> pa.Table:
    """Return the table's own files that only versions before `first` had: other files are never deleted."""
    left = lost_with(tracked, oldest, first, view.version, progress)
    adopted = {} if view.state.adopted is None else sizes_of(tracked, tracked.current())
    own = [not is_elsewhere(path) or path in adopted for path in left["path"].to_pylist()]
    return left.filter(pa.array(own, pa.bool_()))


def _do(
    tree: NameTree, target: Target[S], planned: Expired, progress: Progress, engine: Engine | None
) -> Expired:
    tracked, first = target.tracked, planned.first
    commits = size_bytes = 0

    def count(more: int, more_bytes: int) -> None:
        nonlocal commits, size_bytes
        commits, size_bytes = commits + more, size_bytes + more_bytes

    def decide(view: View[S], passed: Sequence[Any]) -> Draft:
        if view.state.expired >= first:
            raise _AlreadyRecorded
        return Draft(events=encode([HistoryExpired(version=first)]))

    try:
        tracked.commit(target.view, decide)
    except _AlreadyRecorded:
        pass
    except LogSealed as error:
        raise NotFound(
            f"{target.name} was dropped while its history was being expired: nothing was done"
        ) from error
    try:
        cut = NeededVersions(tree, settled=True).get(tracked.location)
        if cut is not None and cut < first:
            return Expired(
                kind=planned.kind,
                name=planned.name,
                location=planned.location,
                head=planned.head,
                kept_for_cuts=True,
            )
        kept = expiry.expire(
            tracked.log,
            first,
            lambda done: progress(f"{tracked.log.location}: version {done:,} of {first:,} expired"),
            count,
            burying(engine, target.name, first),
        )
        refresh_snapshot(tracked)
    except LakelogError as error:
        raise DoneInPart(
            f"versions before {first} of {target.name} have expired, but their objects are not all removed: {error}. "
            "Run expire again, which removes the rest"
        ) from error
    return msgspec.structs.replace(planned, first=kept, commits=commits, size_bytes=size_bytes)


def refresh_snapshot(tracked: TrackedLog[Any]) -> None:
    """Read the log anew, from its base, and write a snapshot: earlier ones make readers take a longer way."""
    tracked.log.snapshot(tracked.anew())


def _current_at(tracked: TrackedLog[Any], view: View[Any], time_us: int) -> int:
    if view.time_us <= time_us:
        return view.version
    try:
        return min(tracked.log.version_at_time(time_us), view.version)
    except NotFound:
        return 1


def _skipped(log: Unreadable) -> Expired:
    return Expired(kind=log.kind, name=log.name, location=log.location, error=log.error)


class _AlreadyRecorded(LakelogError):
    """Ends a commit that an earlier run has made."""
