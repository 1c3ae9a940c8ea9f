"""Older versions: the log as of a version or a time, and its commits one by one."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from lakelog.log.errors import FormatError, NotFound
from lakelog.log.format import Commit, Root, Tombstone
from lakelog.log.keys import number
from lakelog.log.replay import BATCH_MAX, Replay, prefix
from lakelog.log.snapshots import FEWER_SNAPSHOTS_MAX
from lakelog.log.view import S, View, effective, empty_view

REPLAYED_MAX = 24
"""Up to this version a snapshot is not looked for: reading all of them costs one round, too."""

SNAPSHOT_WINDOW = 1024
"""Among so many versions a snapshot is looked for, or among those of two of the rarest, as one may be missing."""

PROBES = 7


def view_at(replay: Replay[S], version: int) -> View[S]:
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


def _first_view(replay: Replay[S], version: int) -> View[S]:
    """Return the empty view, or that of the last base once version 1 has expired."""
    found = replay.store.get(replay.keys.commit(1))
    if found is not None and isinstance(replay.entry(1, found), Tombstone):
        return replay.last_base(1, at_least=1)
    return empty_view(replay.projection)


def _near_snapshot(replay: Replay[S], version: int) -> View[S] | None:
    """Return the log as of `version` from the snapshot of the last version up to it that had its turn, if there is one.

    Three rounds, and no LIST, since a long history has many snapshots. What is in the way is left to the longer way.
    """
    every = replay.options.snapshot_every_versions
    turn = version - version % every if every else 0
    if version <= REPLAYED_MAX or not 0 <= version - turn <= REPLAYED_MAX:
        return None
    found = replay.get_versions(range(turn, version + 1))
    if found[0] is None:
        return None
    entry = replay.entry(turn, found[0])
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
    return None if view is None else replay.forward(view, found=found[1:], until=version)


def _view_before(replay: Replay[S], version: int) -> View[S] | None:
    """Return a view from the newest usable snapshot at or before `version`, if one is worth searching for."""
    if version <= REPLAYED_MAX:
        return None
    candidates: tuple[Callable[[], Root | None], ...] = (
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


def _listed_root(replay: Replay[S], version: int) -> Root | None:
    keys = replay.keys
    rarest = replay.options.snapshot_every_versions * (1 + FEWER_SNAPSHOTS_MAX)
    floor = max(0, version - max(SNAPSHOT_WINDOW, 2 * rarest))
    best = None
    for key in replay.store.list_after(keys.snapshots, keys.snapshots + number(floor)):
        found = keys.snapshot_version(key)
        if found is not None and found > version:
            break
        best = key if found is not None else best
    return None if best is None else replay.root_or_none(best, replay.store.get(best))


def commits(replay: Replay[S], first: int, last: int | None, *, newest_first: bool) -> Iterator[Commit]:
    """Yield the commits from `first` to `last` that have not expired, without a gap. Raises NotFound where
    they expire meanwhile."""
    first = max(first, 1)
    if newest_first:
        at_head = last is None
        last = replay.load().version if last is None else last
        while last >= first:
            start = max(first, last - BATCH_MAX + 1)
            batch, expired = _retained(replay, start, last)
            if len(batch) < last - max(expired, start - 1):
                if not at_head and (newest := replay.load().version) < last:
                    last, at_head = newest, True
                    continue
                missing = replay.keys.commit(max(expired + 1, start + len(batch)))
                raise FormatError(f"{replay.at(missing)} is missing; restore it from a backup")
            yield from (commit for commit in reversed(batch) if commit is not None)
            if expired:
                return
            last = start - 1
        return
    begun = False
    while last is None or first <= last:
        end = first + BATCH_MAX - 1 if last is None else min(first + BATCH_MAX - 1, last)
        batch, expired = _retained(replay, first, end)
        if begun and expired:
            raise NotFound(
                f"version {expired} of {replay.location} expired while its history was read; read it again"
            )
        if expired:
            # What is before the last base has expired, whether a cleaner has been there or not.
            first = replay.last_base(1, at_least=expired).version + 1
            continue
        if not begun and len(batch) == end - first + 1 == BATCH_MAX and end != last:
            # Tombstones come in any order: some may be further on, though none is here.
            retained = _first_retained(replay)
            if retained > first:
                first = retained
                continue
        yield from (commit for commit in batch if commit is not None)
        begun = begun or bool(batch)
        first += len(batch)
        if first <= end:
            return


def standing(replay: Replay[S], first: int) -> Iterator[Commit]:
    """Yield the commits that are in the log from `first` on, whatever became of them: also those of transactions that
    were aborted, or are undecided. Expired ones are left out."""
    while True:
        objects = prefix(replay.get_versions(range(first, first + BATCH_MAX)))
        for version, data in enumerate(objects, first):
            entry = replay.entry(version, data)
            if isinstance(entry, Commit):
                yield entry
        if len(objects) < BATCH_MAX:
            return
        first += BATCH_MAX


def _first_retained(replay: Replay[S]) -> int:
    """Return the first version that has not expired: 1 where there is no base. One GET then, else a walk over them."""
    if replay.store.get(replay.keys.base(1)) is None:
        return 1
    try:
        return replay.last_base(1, at_least=0).version + 1
    except FormatError:
        return 1  # of no matter, as long as no tombstone is met


def _retained(replay: Replay[S], first: int, last: int) -> tuple[list[Commit | None], int]:
    """Return the commits from `first` to the first that is absent or undecided, None for aborted ones, but only
    those after the newest tombstone, and the version of that, 0 for none."""
    # With the version before them, so that each is known to belong to this log.
    objects = replay.get_versions(range(max(first - 1, 1), last + 1))
    before = objects.pop(0) if first > 1 else None
    entries = [replay.entry(version, data) for version, data in enumerate(prefix(objects), first)]
    replay.check_links(entries if before is None else [replay.entry(first - 1, before), *entries])
    expired = max((entry.version for entry in entries if isinstance(entry, Tombstone)), default=0)
    # Expiry puts tombstones side by side, so that commits may be left among them.
    alive = [entry for entry in entries if isinstance(entry, Commit) and entry.version > expired]
    return [effective(*each) for each in replay.with_outcomes(alive, replay.outcome)], expired


def version_at_time(replay: Replay[S], time_us: int) -> int:
    """Return the newest version at or before `time_us`, by a search that reads a few versions in each round."""
    head = replay.load()
    if head.time_us <= time_us:
        return head.version
    low, high = 0, head.version  # low is early enough (0: nothing yet), high is too late
    earliest_us: int | None = None
    while high - low > 1:
        step = max(1, (high - low) // (PROBES + 1))
        probes = list(range(low + step, high, step))[: PROBES + 1]
        for version, data in zip(probes, replay.get_versions(probes), strict=True):
            if data is None:
                raise FormatError(
                    f"{replay.at(replay.keys.commit(version))} is missing; restore it from a backup"
                )
            probed_us = _time_us(replay, _own_entry(replay, version, data, head), low)
            if version == 1:
                earliest_us = probed_us
            if probed_us is not None and probed_us > time_us:
                high = version
                break
            low = version
    if low == 0:
        raise NotFound(
            f"{replay.location} has no version at or before the time {time_us} µs: the first is of "
            f"{head.time_us if earliest_us is None else earliest_us} µs"
        )
    return low


def _time_us(replay: Replay[S], entry: Commit | Tombstone, low: int) -> int | None:
    """Return the time of the log as of `entry`, None where it is that of `low`, since what came after was aborted."""
    while True:
        settled = None
        if isinstance(entry, Commit) and entry.intent is not None:
            settled = replay.outcome(entry)
        effect = effective(entry, settled)
        if effect is not None:
            return effect.time_us
        before = entry.version - 1
        if before <= low:
            return None
        data = replay.store.get(replay.keys.commit(before))
        if data is None:
            raise FormatError(f"{replay.at(replay.keys.commit(before))} is missing; restore it from a backup")
        entry = replay.entry(before, data)


def _own_entry(replay: Replay[S], version: int, data: bytes, head: View[S]) -> Commit | Tombstone:
    """Return the entry at a version before `head`, where it is this log's: an earlier one's was reopened since."""
    entry = replay.entry(version, data)
    if entry.log_id != head.log_id:
        following = replay.store.get(replay.keys.commit(version + 1))
        if following is not None:
            replay.check_links([entry, replay.entry(version + 1, following)])
    return entry
