"""Expiry of old versions of tables and namespaces, each in its own log.

First a commit in the log records it (`history-expired`), with its writer. From then on, no change can bring
back data that only older versions had. Then a base makes the first kept version durable, and the older
versions become tombstones (`lakelog.log.expiry`). The current version always stays. Data files are not
touched: vacuum deletes the files that only expired versions had. If it stops at any point, the next run
finishes it.

Saved cuts are read twice, the second time after the commit. A writer of a cut does the two steps in the
opposite order: it writes the cut, then reads the recorded expiries of the logs. So at least one of the two
sees the other and stops.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from lakelog.catalog.core.ddl import NeededVersions
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import (
    LogScope,
    LogTarget,
    NameTree,
    Progress,
    TrackedLog,
    UnreadableLog,
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
from lakelog.log import Draft, LogView, expiry
from lakelog.log.burial import is_buried
from lakelog.log.errors import InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.format import LogBase
from lakelog.log.leftovers import last_base_from, size_of_commits

S = TypeVar("S", TableState, NamespaceState)

EXPIRE_DEFAULT_AGE = dt.timedelta(days=7)


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that expire, or would expire: `versions` before `first`, the first readable version then.

    `commits` become tombstones, including those that an earlier run left undone. With their sidecars they
    have `size_bytes`. `files` data files with `file_bytes` are then unreachable from any version.
    `kept_for_cuts`: saved cuts need older versions than requested. `error` is the reason if this log was
    skipped.
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
class KeptRange:
    """From which version on a log is kept. Exactly one of these is given.

    `since`: the versions that were readable at that time or later. `version`: that version. `last`: a number
    of versions, including the current version.
    """

    since: int | None = None
    version: int | None = None
    last: int | None = None

    def first(self, tracked: TrackedLog[Any], view: LogView[Any], base: LogBase | None) -> int:
        """Return the first version to keep, at most the current version."""
        if self.since is not None:
            if base is not None and base.root.time_us >= self.since:
                return base.root.version
            return max(1, tracked.version_then(view, self.since))
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
) -> Callable[[int], KeptRange]:
    """Return the meaning of these arguments at a given time.

    The default is `EXPIRE_DEFAULT_AGE`. Raises InvalidInput.
    """
    wishes = {"older_than": older_than, "version": version, "retain_last": retain_last}
    given_names = [name for name, value in wishes.items() if value is not None]
    if len(given_names) > 1:
        raise InvalidInput(f"{' and '.join(given_names)} cannot be combined: give only one of them")
    for name, number in (("version", version), ("retain_last", retain_last)):
        if number is not None and (type(number) is not int or number < 1):
            raise InvalidInput(f"{name} is {number!r}: give a whole number of at least 1")
    if version is not None or retain_last is not None:
        return lambda now_us: KeptRange(version=version, last=retain_last)
    age = age_us("older_than", EXPIRE_DEFAULT_AGE if older_than is None else older_than)
    return lambda now_us: KeptRange(since=until_us(now_us, age))


LOGS_AT_ONCE = 8
"""Most logs have little to expire, and round trips take the time. So several logs expire in parallel."""


def expire_logs(
    tree: NameTree,
    scope: LogScope,
    wish: Callable[[int], KeptRange],
    *,
    dry_run: bool,
    by_policy: bool = False,
    trust_clock: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> list[Expired]:
    """Expire old versions of every log in `scope`, or report the versions that would expire.

    A log's failure does not stop the others. With `by_policy`, the property keep-for of a table or of a
    namespace above it replaces `wish`, if it is set. An `engine` makes the tombstones if they are many.
    Raises ClockNotTrusted (see `ages`).

    Makes a few GET requests for each log if nothing expires; with `by_policy`, another for each namespace
    above. Otherwise it makes 2 GET requests for each version that expires. If an expired version removed
    files, it makes a GET request for each retained version. An actual expiry makes 2 GET requests and a PUT
    for each version. It makes 4 PUT requests for the commit, base, snapshot and hint, and 2 LIST requests.
    """
    progress = progress or no_progress
    cuts = NeededVersions(tree)

    def kept(now_us: int) -> Callable[[LogTarget[Any]], KeptRange]:
        return lambda target: (_by_policy(tree, target, now_us) if by_policy else None) or wish(now_us)

    def goes(now_us: int) -> set[str]:
        results = _each(tree, scope, kept(now_us), cuts, no_progress, None, dry_run=True)
        return {f"{entry.location}@{entry.first}" for entry in results if entry.commits}

    now_us = judging_us(tree, scope, goes, only_look=dry_run, trust_clock=trust_clock)
    return _each(tree, scope, kept(now_us), cuts, progress, engine, dry_run=dry_run)


def _by_policy(tree: NameTree, target: LogTarget[Any], now_us: int) -> KeptRange | None:
    """Return the versions to keep by the properties. None if no property applies."""
    setting = kept_for(tree.logs, target.view.state)
    if setting is None:
        return None
    age = age_of(setting)
    return (
        KeptRange(version=1) if age is None else KeptRange(since=until_us(now_us, age_us(KEEP_FOR.name, age)))
    )


def _each(
    tree: NameTree,
    scope: LogScope,
    keep: Callable[[LogTarget[Any]], KeptRange],
    cuts: NeededVersions,
    progress: Progress,
    engine: Engine | None,
    *,
    dry_run: bool,
) -> list[Expired]:
    results: list[Expired] = [_skipped(skipped_log) for skipped_log in scope.unreadable]
    show = in_turn(progress)

    cuts_lock = threading.Lock()

    def log(work: tuple[LogTarget[Any], str]) -> Expired:
        target, kind = work
        try:
            with cuts_lock:
                cut = cuts.get(target.tracked.location)
            target, plan = _planned(target, kind, keep, cut, show, counts=dry_run)
            return _do(tree, target, plan, show, engine) if not dry_run and plan.commits else plan
        except LakelogError as error:
            if scope.is_one_table:
                raise
            return Expired(
                kind=kind, name=target.name, location=target.tracked.log.location, error=str(error)
            )

    count = len(scope.tables) + len(scope.namespaces)
    for kind, targets in (("table", scope.tables), ("namespace", scope.namespaces)):
        for begin in range(0, len(targets), LOGS_AT_ONCE):
            batch: list[LogTarget[Any]] = list(targets[begin : begin + LOGS_AT_ONCE])
            show(f"{len(results) + 1:,} of {count:,}: {batch[0].name}")
            results += tree.logs.in_parallel(log, [(target, kind) for target in batch])
    return results


def _planned(
    target: LogTarget[Any],
    kind: str,
    keep: Callable[[LogTarget[Any]], KeptRange],
    cut: int | None,
    progress: Progress,
    *,
    counts: bool,
) -> tuple[LogTarget[Any], Expired]:
    """Return the plan, and the log that it is of: read anew if another client expires it at the same time."""
    while True:
        base = last_base_from(target.tracked.log, target.view)
        try:
            return target, _plan(target, base, kind, keep(target), cut, progress, counts=counts)
        except NotFound:
            target = replace(target, view=target.tracked.anew())
            if last_base_from(target.tracked.log, target.view) == base:
                raise


def _plan(
    target: LogTarget[Any],
    base: LogBase | None,
    kind: str,
    keep: KeptRange,
    cut: int | None,
    progress: Progress,
    *,
    counts: bool,
) -> Expired:
    """Return the versions that would expire. Unless it `counts`, the expiry itself counts the commits."""
    tracked_log, view = target.tracked, target.view
    oldest = first_readable(base)
    # Any run finishes the work of an earlier run.
    wanted_version = max(keep.first(tracked_log, view, base), view.state.expired, oldest)
    first = max(oldest, wanted_version if cut is None else min(wanted_version, cut))
    summary = Expired(
        kind=kind,
        name=target.name,
        location=tracked_log.log.location,
        first=first,
        head=view.version,
        kept_for_cuts=first < wanted_version,
    )
    is_finished = base is None or is_buried(tracked_log.log.replay, base)
    if first == oldest and is_finished:
        return summary
    commits, size_bytes = max(1, first - oldest), 0
    if counts:
        commits, size_bytes = size_of_commits(tracked_log.log, oldest if is_finished else 1, first)
    files = _unreachable(tracked_log, oldest, first, view, progress) if kind == "table" else None
    return msgspec.structs.replace(
        summary,
        versions=first - oldest,
        commits=commits,
        size_bytes=size_bytes,
        files=0 if files is None else files.num_rows,
        file_bytes=0 if files is None else total(files),
    )


def _unreachable(
    tracked: TrackedLog[TableState], oldest: int, first: int, view: LogView[TableState], progress: Progress
) -> pa.Table:
    """Return the table's own files that only versions before `first` had. Other files are never deleted."""
    lost_files = lost_with(tracked, oldest, first, view.version, progress)
    adopted_sizes = {} if view.state.adopted is None else sizes_of(tracked, tracked.current())
    own = [not is_elsewhere(path) or path in adopted_sizes for path in lost_files["path"].to_pylist()]
    return lost_files.filter(pa.array(own, pa.bool_()))


def _do(
    tree: NameTree, target: LogTarget[S], planned: Expired, progress: Progress, engine: Engine | None
) -> Expired:
    tracked_log, first = target.tracked, planned.first
    commits = size_bytes = 0

    def count(more: int, more_bytes: int) -> None:
        nonlocal commits, size_bytes
        commits, size_bytes = commits + more, size_bytes + more_bytes

    def decide(view: LogView[S], passed: Sequence[Any]) -> Draft:
        if view.state.expired >= first:
            raise _AlreadyRecorded
        return Draft(events=encode([HistoryExpired(version=first)]))

    try:
        tracked_log.commit(target.view, decide)
    except _AlreadyRecorded:
        pass
    except LogSealed as error:
        raise NotFound(
            f"{target.name} was dropped while its history was being expired: nothing was done"
        ) from error
    try:
        cut = NeededVersions(tree, settled=True).get(tracked_log.location)
        if cut is not None and cut < first:
            return Expired(
                kind=planned.kind,
                name=planned.name,
                location=planned.location,
                head=planned.head,
                kept_for_cuts=True,
            )
        first_kept = expiry.expire(
            tracked_log.log,
            first,
            lambda done: progress(f"{tracked_log.log.location}: version {done:,} of {first:,} expired"),
            count,
            burying(engine, target.name, first),
            tracked_log.known,
        )
        refresh_snapshot(tracked_log)
    except LakelogError as error:
        raise DoneInPart(
            f"versions before {first} of {target.name} have expired, but their objects are not all removed: {error}. "
            "Run expire again, which removes the rest"
        ) from error
    return msgspec.structs.replace(planned, first=first_kept, commits=commits, size_bytes=size_bytes)


def refresh_snapshot(tracked: TrackedLog[Any]) -> None:
    """Read the log again from its base, and write a snapshot. From earlier snapshots, readers take longer."""
    tracked.log.snapshot(tracked.anew())


def _skipped(log: UnreadableLog) -> Expired:
    return Expired(kind=log.kind, name=log.name, location=log.location, error=log.error)


class _AlreadyRecorded(LakelogError):
    """Ends a commit that an earlier run has made."""
