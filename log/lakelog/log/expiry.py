"""Expiry of old versions, without ever freeing a key.

Its order makes it safe, at whatever point the work stops. First, a base makes the state durable under a name
that readers find without a hint. Then sidecars are deleted and commits become tombstones, which keep a late
writer from creating a version again. Last, manifests and snapshots that only expired versions used are
deleted. Doing any of it twice, late, or by two cleaners at once is harmless.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise

import msgspec

from lakelog.log.burial import (
    Buried,
    BuriedUpTo,
    Bury,
    bury_versions,
    no_one_counts,
    no_one_waits,
    unfinished,
    versions_of,
    windows_of,
)
from lakelog.log.errors import FormatError, Unsupported
from lakelog.log.format import FORMAT, LogBase, encode_derived
from lakelog.log.log import Log
from lakelog.log.replay import given_up_by, is_blank
from lakelog.log.settling import place
from lakelog.log.snapshots import store_blobs
from lakelog.log.view import LogView, S, root_of


def expire(
    log: Log[S],
    version: int,
    progress: BuriedUpTo = no_one_waits,
    buried: Buried = no_one_counts,
    bury: Bury | None = None,
    head: LogView[S] | None = None,
) -> int:
    """Make `version` the first readable version, and return the base's version, which may be later.

    Also finishes the work of an earlier call. Raises NotFound if there is no such version. `bury` makes the
    tombstones of a window, in place of `burial.bury_versions`. `head` is the head if the caller knows it.
    """
    steps = expiring(log, version, head)
    while True:
        try:
            window = next(steps)
        except StopIteration as stop:
            return int(stop.value)
        (bury or bury_versions)(log, window, progress, buried)


def expiring(log: Log[S], version: int, head: LogView[S] | None = None) -> Generator[range, None, int]:
    """Expire as `expire` does, for callers that make the tombstones themselves. Returns the base's version.

    Yields window after window, each once the window before is done (see `burial`). Unfinished work of an
    earlier call comes before a base is made, because a base's windows begin where those of the base before it
    end.
    """
    log.check_writable(log.load() if head is None else head)
    last = last_base(log)
    if last is not None:
        yield from unfinished(log.replay, last)
        sweep(log, last)
    if last is None or last.root.version < version:
        last = add_base(log, last, log.view_at(version))
        yield from unfinished(log.replay, last)
        sweep(log, last)
    return last.root.version


def clean_up(log: Log[S], base: LogBase, *, bury: Bury | None = None, all_anew: bool = False) -> None:
    """Do everything that a durable base allows, in the order of the dependencies. `bury` is as in `expire`.

    `all_anew` looks at all versions since the previous base, because a copy may have been made while they
    expired.
    """
    windows = windows_of(versions_of(log.replay, base)) if all_anew else unfinished(log.replay, base)
    for window in windows:
        (bury or bury_versions)(log, window, no_one_waits, no_one_counts)
    sweep(log, base)


def last_base(log: Log[S]) -> LogBase | None:
    """Return the last base of the dense sequence, None if there is none."""
    last: LogBase | None = None
    for base, _ in bases(log):
        last = base
    return last


def bases(log: Log[S]) -> Iterator[tuple[LogBase, bytes]]:
    """Yield the bases of the dense sequence with their bytes, in order. Makes a GET for each, and another."""
    number = 1
    while (data := log.store.get(log.keys.base(number))) is not None:
        yield log.replay.base(number, data), data
        number += 1


def add_base(log: Log[S], base_before: LogBase | None, view: LogView[S]) -> LogBase:
    """Create the base after `base_before` at `view`, or return the base that another client created there."""
    number = 1 if base_before is None else base_before.number + 1
    dump = store_blobs(log.replay, view, for_base=True)
    if dump.uses is None:
        raise Unsupported(
            f"{log.location} cannot expire versions: its projection does not say which manifests it uses"
        )
    root = root_of(view, dump, base=number)
    key = log.keys.base(number)
    lost = lost_manifests(log, dump.uses, base_before) if dump.uses else set()
    # A view may have an older base if it began with a snapshot without manifests, which no base can give up.
    if lost or view.base >= number:
        existing_base = log.store.get(key)
        if existing_base is not None:
            return log.replay.base(number, existing_base)
        raise FormatError(
            f"{log.replay.at(log.keys.manifest(min(lost, default='')))} is missing, or an earlier base gave it up, but "
            f"version {view.version} needs it; restore it from a backup"
        )
    data = encode_derived(
        LogBase(format=FORMAT, log_id=view.log_id, number=number, root=root), log.replay.at(key)
    )
    existing_data = place(log.store, key, data, lambda found: found == data, log.options, f"base {number}")
    return log.replay.base(number, existing_data or data)


def blank(log: Log[S]) -> int:
    """Remove the state from every base that another base follows, and return how many were changed.

    Such a base keeps its place and everything else. Readers use the state of the last base only, and a reader
    that has read too early walks on. The state can contain statistics of erased rows. Makes a GET for each
    base, and a PUT for each change.
    """
    blank_count = 0
    for (base, _), _newer in pairwise(bases(log)):
        if not is_blank(base):
            root = msgspec.structs.replace(base.root, state=None, hash="")
            key = log.keys.base(base.number)
            blank_base = msgspec.structs.replace(base, root=root, hash="")
            log.store.put(key, encode_derived(blank_base, log.replay.at(key)))
            blank_count += 1
    return blank_count


def lost_manifests(log: Log[S], uses: Sequence[str], base_before: LogBase | None) -> set[str]:
    """Return the manifests that are gone, or that the base before allows to be deleted at any time."""
    given_up_names = set() if base_before is None else given_up_by(base_before, uses)
    existing_names = {
        key.removeprefix(log.keys.manifests) for key in log.store.list_after(log.keys.manifests)
    }
    return {name for name in uses if name not in existing_names or name in given_up_names}


def sweep(log: Log[S], base: LogBase) -> None:
    """Delete the manifests that neither `base` nor any state derived from it can use, and older snapshots."""
    keys, root = log.keys, base.root
    names = [key.removeprefix(keys.manifests) for key in log.store.list_after(keys.manifests)]
    log.store.delete([keys.manifest(name) for name in sorted(given_up_by(base, names))])
    snapshots = []
    for key in log.store.list_after(keys.snapshots):
        snapshot_version = keys.snapshot_version(key)
        if snapshot_version is not None and snapshot_version <= root.version:
            snapshots.append(key)
    log.store.delete(snapshots)
