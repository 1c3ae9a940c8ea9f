"""Expiry of old versions, without ever freeing a key.

The order is the safety, at whatever point the work stops: a base makes the state durable under a name that
readers find without a hint; then sidecars go and commits become tombstones, which keep a late writer from
creating a version again; then manifests and snapshots that only expired versions used. Doing any of it twice,
late, or by two cleaners at once does no harm.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise

import msgspec

from lakelog.log.burial import (
    Buried,
    Bury,
    Done,
    bury_versions,
    no_one_counts,
    no_one_waits,
    unfinished,
    versions_of,
    windows_of,
)
from lakelog.log.errors import FormatError, Unsupported
from lakelog.log.format import FORMAT, Base, encode_derived
from lakelog.log.log import Log
from lakelog.log.replay import given_up_by, is_blank
from lakelog.log.settling import place
from lakelog.log.snapshots import store_blobs
from lakelog.log.view import S, View, root_of


def expire(
    log: Log[S],
    version: int,
    progress: Done = no_one_waits,
    buried: Buried = no_one_counts,
    bury: Bury | None = None,
) -> int:
    """Make `version` the first that can be read, and return the base's version: a later one where it was moved.

    Also finishes what an earlier call left undone. Raises NotFound when there is no such version. `bury` makes the
    tombstones of a window, in place of `burial.bury_versions`.
    """
    steps = expiring(log, version)
    while True:
        try:
            window = next(steps)
        except StopIteration as done:
            return int(done.value)
        (bury or bury_versions)(log, window, progress, buried)


def expiring(log: Log[S], version: int) -> Generator[range, None, int]:
    """As `expire`, for callers that make the tombstones themselves: yields window after window, each once the one
    before is done (see `burial`), and returns the base's version.

    What an earlier call left undone comes before a base is made: the windows of one begin where that of the base
    before ends.
    """
    last = last_base(log)
    if last is not None:
        yield from unfinished(log.replay, last)
        sweep(log, last)
    if last is None or last.root.version < version:
        last = add_base(log, last, log.view_at(version))
        yield from unfinished(log.replay, last)
        sweep(log, last)
    return last.root.version


def clean_up(log: Log[S], base: Base, *, bury: Bury | None = None, all_anew: bool = False) -> None:
    """Do what a durable base allows, in the order of what depends on what; `bury` as in `expire`. `all_anew` looks at
    all versions since the base before, as a copy may have been made while they expired."""
    windows = windows_of(versions_of(log.replay, base)) if all_anew else unfinished(log.replay, base)
    for window in windows:
        (bury or bury_versions)(log, window, no_one_waits, no_one_counts)
    sweep(log, base)


def last_base(log: Log[S]) -> Base | None:
    """Return the last base of the dense sequence, None where there is none."""
    last: Base | None = None
    for base, _ in bases(log):
        last = base
    return last


def bases(log: Log[S]) -> Iterator[tuple[Base, bytes]]:
    """Yield the bases of the dense sequence with their bytes, in order: a GET for each, and one more."""
    number = 1
    while (data := log.store.get(log.keys.base(number))) is not None:
        yield log.replay.base(number, data), data
        number += 1


def add_base(log: Log[S], before: Base | None, view: View[S]) -> Base:
    """Create the base after `before` at `view`, or return the one that another client created there."""
    number = 1 if before is None else before.number + 1
    dump = store_blobs(log.replay, view, for_base=True)
    if dump.uses is None:
        raise Unsupported(
            f"{log.location} cannot expire versions: its projection does not say which manifests it uses"
        )
    root = root_of(view, dump, base=number)
    key = log.keys.base(number)
    lost = lost_manifests(log, dump.uses, before) if dump.uses else set()
    # A view may have an older base: one that began with a snapshot without manifests, of which none was given up.
    if lost or view.base >= number:
        created_meanwhile = log.store.get(key)
        if created_meanwhile is not None:
            return log.replay.base(number, created_meanwhile)
        raise FormatError(
            f"{log.replay.at(log.keys.manifest(min(lost, default='')))} is missing, or an earlier base gave it up, but "
            f"version {view.version} needs it; restore it from a backup"
        )
    data = encode_derived(
        Base(format=FORMAT, log_id=view.log_id, number=number, root=root), log.replay.at(key)
    )
    taken = place(log.store, key, data, lambda found: found == data, log.options, f"base {number}")
    return log.replay.base(number, taken or data)


def blank(log: Log[S]) -> int:
    """Take the state out of every base that another one follows, and return of how many. They keep their place and all
    else: readers look at the state of the last one only, and one that has read too early walks on.

    Statistics of rows that were erased can be in such a state. One GET for each base, and one PUT.
    """
    emptied = 0
    for (base, _), _newer in pairwise(bases(log)):
        if not is_blank(base):
            root = msgspec.structs.replace(base.root, state=None, hash="")
            key = log.keys.base(base.number)
            blanked = msgspec.structs.replace(base, root=root, hash="")
            log.store.put(key, encode_derived(blanked, log.replay.at(key)))
            emptied += 1
    return emptied


def lost_manifests(log: Log[S], uses: Sequence[str], before: Base | None) -> set[str]:
    """Return which of the manifests are gone, or may be deleted at any time on behalf of the base before."""
    given_up = set() if before is None else given_up_by(before, uses)
    existing = {key.removeprefix(log.keys.manifests) for key in log.store.list_after(log.keys.manifests)}
    return {name for name in uses if name not in existing or name in given_up}


def sweep(log: Log[S], base: Base) -> None:
    """Delete the manifests that neither `base` nor any state derived from it can use, and older snapshots."""
    keys, root = log.keys, base.root
    names = [key.removeprefix(keys.manifests) for key in log.store.list_after(keys.manifests)]
    log.store.delete([keys.manifest(name) for name in sorted(given_up_by(base, names))])
    snapshots = []
    for key in log.store.list_after(keys.snapshots):
        found = keys.snapshot_version(key)
        if found is not None and found <= root.version:
            snapshots.append(key)
    log.store.delete(snapshots)
