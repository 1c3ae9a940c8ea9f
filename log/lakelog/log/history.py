"""Older versions: the log as of a version or a time, and its commits in sequence."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from lakelog.log.errors import FormatError, NotFound
from lakelog.log.format import Commit, SnapshotRoot, Tombstone
from lakelog.log.keys import number
from lakelog.log.replay import BATCH_MAX, LogReplay, prefix
from lakelog.log.snapshots import FEWER_SNAPSHOTS_MAX
from lakelog.log.view import LogView, S, effective, empty_view

REPLAYED_MAX = 24
"""Up to this version no snapshot is looked for, because reading all versions costs a single round too."""

SNAPSHOT_WINDOW = 1024
"""The fewest versions in which a snapshot is looked for.

The window also covers two of the rarest snapshots, because a snapshot may be missing.
"""

PROBES = 7


def view_at(replay: LogReplay[S], version: int) -> LogView[S]:
    """Return the log as of `version`, from the nearest snapshot before it. Raises NotFound."""
    if version < 1:
        raise NotFound(f"{replay.location} has no version {version}: versions begin at 1")
    view = _near_snapshot(replay, version)
    if view is None:
        start = _view_before(replay, version) or _first_view(replay, version)
        view = replay.forward(start, batch=min(REPLAYED_MAX, version), until=version)
    if view.version == version:
        return view
    if view.version > version:
        raise NotFound(
            f"version {version} of {replay.location} has expired: versions from {view.version} to "
            f"{replay.forward(view).version} can be read"
        )
    raise NotFound(
        f"{replay.location} has no version {version}: the newest is {view.version}"
        if view.version
        else f"there is no log at {replay.location}; check the location, or create it first"
    )


def _first_view(replay: LogReplay[S], version: int) -> LogView[S]:
    """Return the empty view, or the last base's view if version 1 has expired."""
    data = replay.store.get(replay.keys.commit(1))
    if data is not None and isinstance(replay.entry(1, data), Tombstone):
        return replay.last_base(1, at_least=1)
    return empty_view(replay.projection)


def _near_snapshot(replay: LogReplay[S], version: int) -> LogView[S] | None:
    """Return the log as of `version` from the last regular snapshot up to it, if that exists.

    Takes three rounds and no LIST, since a long history has many snapshots. Returns None if anything is in
    the way; the caller then takes the longer way.
    """
    every = replay.options.snapshot_every_versions
    turn = version - version % every if every else 0
    if version <= REPLAYED_MAX or not 0 <= version - turn <= REPLAYED_MAX:
        return None
    objects = replay.get_versions(range(turn, version + 1))
    if objects[0] is None:
        return None
    entry = replay.entry(turn, objects[0])
    if isinstance(entry, Tombstone):
        return None
    key = replay.keys.snapshot(turn, entry.hash)
    root = replay.root_or_none(key, replay.store.get(key))
    if root is None or not replay.names_this(root, entry):
        return None
    view = replay.view_of(root, key)
    if root.uses != ():
        base = replay.sound_with(root, replay.store.get(replay.keys.base(root.base + 1)))
        view = None if view is None or base is None else replace(view, base=base)
    return None if view is None else replay.forward(view, found=objects[1:], until=version)


def _view_before(replay: LogReplay[S], version: int) -> LogView[S] | None:
    """Return a view from the newest usable snapshot up to `version`, if searching for a snapshot pays."""
    if version <= REPLAYED_MAX:
        return None
    candidates: tuple[Callable[[], SnapshotRoot | None], ...] = (
        lambda: _listed_root(replay, version),
        replay.hinted_root,
    )
    for candidate in candidates:
        root = candidate()
        if root is None or root.version > version:
            continue
        commit, newer_base = replay.store.get_many(
            [replay.keys.commit(root.version), replay.keys.base(root.base + 1)]
        )
        if commit is None or not replay.names_this(root, replay.entry(root.version, commit)):
            continue
        base = replay.sound_with(root, newer_base)
        view = replay.view_of(root, replay.keys.snapshot(root.version, root.commit_hash))
        if base is not None and view is not None:
            return replace(view, base=base)
    return None


def _listed_root(replay: LogReplay[S], version: int) -> SnapshotRoot | None:
    keys = replay.keys
    rarest = replay.options.snapshot_every_versions * (1 + FEWER_SNAPSHOTS_MAX)
    floor = max(0, version - max(SNAPSHOT_WINDOW, 2 * rarest))
    best = None
    for key in replay.store.list_after(keys.snapshots, keys.snapshots + number(floor)):
        snapshot_version = keys.snapshot_version(key)
        if snapshot_version is not None and snapshot_version > version:
            break
        best = key if snapshot_version is not None else best
    return None if best is None else replay.root_or_none(best, replay.store.get(best))


def commits(replay: LogReplay[S], first: int, last: int | None, *, newest_first: bool) -> Iterator[Commit]:
    """Yield the commits from `first` to `last` that have not expired, without a gap.

    Raises NotFound if they expire during the iteration.
    """
    first = max(first, 1)
    if newest_first:
        at_head = last is None
        last = replay.load().version if last is None else last
        while last >= first:
            start = max(first, last - BATCH_MAX + 1)
            batch, newest_tombstone = _retained(replay, start, last)
            if len(batch) < last - max(newest_tombstone, start - 1):
                if not at_head and (newest := replay.load().version) < last:
                    last, at_head = newest, True
                    continue
                missing_key = replay.keys.commit(max(newest_tombstone + 1, start + len(batch)))
                raise FormatError(f"{replay.at(missing_key)} is missing; restore it from a backup")
            yield from (commit for commit in reversed(batch) if commit is not None)
            if newest_tombstone:
                return
            last = start - 1
        return
    has_begun = False
    while last is None or first <= last:
        end = first + BATCH_MAX - 1 if last is None else min(first + BATCH_MAX - 1, last)
        batch, newest_tombstone = _retained(replay, first, end)
        if has_begun and newest_tombstone:
            raise NotFound(
                f"version {newest_tombstone} of {replay.location} expired while its history was read; read it again"
            )
        if newest_tombstone:
            # All versions before the last base have expired, even if no cleaner has run.
            first = replay.last_base(1, at_least=newest_tombstone).version + 1
            continue
        if not has_begun and len(batch) == end - first + 1 == BATCH_MAX and end != last:
            # Tombstones appear in any order, so later versions may have some though these have none.
            first_retained = _first_retained(replay)
            if first_retained > first:
                first = first_retained
                continue
        yield from (commit for commit in batch if commit is not None)
        has_begun = has_begun or bool(batch)
        first += len(batch)
        if first <= end:
            return


def standing(replay: LogReplay[S], first: int) -> Iterator[Commit]:
    """Yield the commits in the log from `first` on, whatever their outcome, so also aborted and undecided ones.

    Leaves out expired commits.
    """
    while True:
        objects = prefix(replay.get_versions(range(first, first + BATCH_MAX)))
        for version, data in enumerate(objects, first):
            entry = replay.entry(version, data)
            if isinstance(entry, Commit):
                yield entry
        if len(objects) < BATCH_MAX:
            return
        first += BATCH_MAX


def _first_retained(replay: LogReplay[S]) -> int:
    """Return the first version that has not expired, 1 if there is no base.

    Makes a GET if there is no base; otherwise it walks over the bases.
    """
    if replay.store.get(replay.keys.base(1)) is None:
        return 1
    try:
        return replay.last_base(1, at_least=0).version + 1
    except FormatError:
        return 1  # This does not matter as long as no tombstone appears.


def _retained(replay: LogReplay[S], first: int, last: int) -> tuple[list[Commit | None], int]:
    """Return the commits up to the first absent or undecided version, and the newest tombstone's version.

    Only commits after that tombstone are returned, with None for each aborted commit. The version is 0 if
    there is no tombstone.
    """
    # The version before them is read too, which proves that each belongs to this log.
    objects = replay.get_versions(range(max(first - 1, 1), last + 1))
    previous_data = objects.pop(0) if first > 1 else None
    entries = [replay.entry(version, data) for version, data in enumerate(prefix(objects), first)]
    replay.check_links(
        entries if previous_data is None else [replay.entry(first - 1, previous_data), *entries]
    )
    newest_tombstone = max((entry.version for entry in entries if isinstance(entry, Tombstone)), default=0)
    # Expiry writes tombstones in parallel, so some commits may be left among them.
    live_commits = [
        entry for entry in entries if isinstance(entry, Commit) and entry.version > newest_tombstone
    ]
    return [
        effective(*commit_outcome) for commit_outcome in replay.with_outcomes(live_commits, replay.outcome)
    ], newest_tombstone


def version_at_time(replay: LogReplay[S], time_us: int) -> int:
    """Return the newest version at or before `time_us`. The search reads a few versions in each round."""
    head = replay.load()
    if head.time_us <= time_us:
        return head.version

    def time_at(version: int, data: bytes | None, low: int) -> int | None:
        if data is None:
            raise FormatError(
                f"{replay.at(replay.keys.commit(version))} is missing; restore it from a backup"
            )
        return _time_us(replay, _own_entry(replay, version, data, head), low)

    newest_match = search(replay, head.version, time_us, time_at)
    if newest_match:
        return newest_match
    first_us = time_at(1, replay.store.get(replay.keys.commit(1)), 0) if head.version > 1 else head.time_us
    raise NotFound(
        f"{replay.location} has no version at or before the time {time_us} µs: the first is of "
        f"{head.time_us if first_us is None else first_us} µs"
    )


def search(
    replay: LogReplay[S], end: int, time_us: int, time_at: Callable[[int, bytes | None, int], int | None]
) -> int:
    """Return the newest version before `end` that is at or before a time; 0 if there is none.

    `time_at` gets a version, its object, and an earlier version. It returns the log's time as of the version,
    None if no version since the earlier version has an effect. Reads a few versions in each round.
    """
    low, high = 0, end  # low is early enough (0: no version yet), high is too late
    while high - low > 1:
        step = max(1, (high - low) // (PROBES + 1))
        probes = list(range(low + step, high, step))[: PROBES + 1]
        for version, data in zip(probes, replay.get_versions(probes), strict=True):
            probed_us = time_at(version, data, low)
            if probed_us is not None and probed_us > time_us:
                high = version
                break
            low = version
    return low


def _time_us(replay: LogReplay[S], entry: Commit | Tombstone, low: int) -> int | None:
    """Return the log's time as of `entry`, None if it is the time of `low`, because all later versions were aborted."""
    while True:
        outcome = None
        if isinstance(entry, Commit) and entry.intent is not None:
            outcome = replay.outcome(entry)
        effect = effective(entry, outcome)
        if effect is not None:
            return effect.time_us
        previous_version = entry.version - 1
        if previous_version <= low:
            return None
        data = replay.store.get(replay.keys.commit(previous_version))
        if data is None:
            raise FormatError(
                f"{replay.at(replay.keys.commit(previous_version))} is missing; restore it from a backup"
            )
        entry = replay.entry(previous_version, data)


def _own_entry(replay: LogReplay[S], version: int, data: bytes, head: LogView[S]) -> Commit | Tombstone:
    """Return the entry at a version before `head`, checked to be of this log or of an earlier log that was reopened."""
    entry = replay.entry(version, data)
    if entry.log_id != head.log_id:
        next_data = replay.store.get(replay.keys.commit(version + 1))
        if next_data is not None:
            replay.check_links([entry, replay.entry(version + 1, next_data)])
    return entry
