"""Expiry of old versions, without ever freeing a key.

The order is the safety, at whatever point the work stops: a base makes the state durable under a name that
readers find without a hint; then sidecars go and commits become tombstones, which keep a late writer from
creating a version again; then manifests and snapshots that only expired versions used. Doing any of it twice,
late, or by two cleaners at once does no harm.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from lakelog.log.errors import FormatError, Unsupported
from lakelog.log.format import (
    COMMITTED,
    FORMAT,
    Base,
    Commit,
    Settled,
    Tombstone,
    encode,
    encode_derived,
    id_digest,
)
from lakelog.log.log import Log
from lakelog.log.replay import given_up_by, is_blank
from lakelog.log.settling import place
from lakelog.log.snapshots import store_blobs
from lakelog.log.view import S, View, root_of

Done = Callable[[int], None]
"""Takes the version up to which all are tombstones by now."""

BURIED_AT_ONCE = 64
"""Tombstones of one batch. No version is a tombstone while one that is so many before it is not: cleaners that resume
the work of others rely on it, so that it is part of the format (see README.md)."""


def expire(log: Log[S], version: int, progress: Done = lambda version: None) -> int:
    """Make `version` the first that can be read, and return the base's version: a later one where it was moved.

    Also finishes what an earlier call left undone. Raises NotFound when there is no such version.
    """
    last = last_base(log)
    if last is not None:
        clean_up(log, last, progress)
    if last is None or last.root.version < version:
        last = add_base(log, last, log.view_at(version))
        clean_up(log, last, progress)
    return last.root.version


def clean_up(log: Log[S], base: Base, progress: Done = lambda version: None) -> None:
    """Do what a durable base allows, in the order of what depends on what."""
    bury(log, base.root.version, progress)
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


def bury(log: Log[S], version: int, progress: Done = lambda version: None) -> None:
    """Overwrite the commits up to `version` with tombstones, after deleting their sidecars.

    Batches follow one another, oldest first, and the tombstones of a batch are put side by side. That of `version` is
    the last of all: it says that the others are there. One GET and one PUT for each.
    """
    for start in range(_first_alive(log, version), version + 1, BURIED_AT_ONCE):
        commits = _commits_in(log, start, min(start + BURIED_AT_ONCE - 1, version))
        log.store.delete([log.keys.sidecar(each.name) for commit, _ in commits for each in commit.sidecars])
        before = [each for each in commits if each[0].version < version]
        # What became of an intent stands in the commit after it: no client is to need the decision for that.
        for intent in (each for each in before if each[0].intent is not None):
            _burial(log, *intent)()
        log.options.in_parallel([_burial(log, *each) for each in before if each[0].intent is None])
        for last in commits[len(before) :]:
            _burial(log, *last)()
        progress(min(start + BURIED_AT_ONCE - 1, version))


def _commits_in(log: Log[S], first: int, last: int) -> list[tuple[Commit, Settled | None]]:
    """Return the versions that are not tombstones yet, each with what became of it if it is an intent."""
    entries = []
    versions = range(first, last + 1)
    for number, data in zip(versions, log.replay.get_versions(versions), strict=True):
        if data is None:
            raise FormatError(
                f"{log.replay.at(log.keys.commit(number))} is missing; restore it from a backup"
            )
        entries.append(log.replay.entry(number, data))
    settled = log.replay.with_outcomes(entries, log.replay.outcome)
    return [(entry, outcome) for entry, outcome in settled if isinstance(entry, Commit)]


def _burial(log: Log[S], commit: Commit, settled: Settled | None) -> Callable[[], None]:
    key, stone = log.keys.commit(commit.version), encode(tombstone_of(commit, settled))
    return lambda: log.store.put(key, stone)


def _first_alive(log: Log[S], version: int) -> int:
    """Return a version before which all are tombstones, version + 1 where all up to `version` are.

    The one that is found may have others before it, which a cleaner that died left out of its last batch.
    """
    low, high = 1, version + 1
    while low < high:
        middle = (low + high) // 2
        data = log.store.get(log.keys.commit(middle))
        if data is not None and isinstance(log.replay.entry(middle, data), Tombstone):
            low = middle + 1
        else:
            high = middle
    return low if low > version else max(1, low - BURIED_AT_ONCE)


def tombstone_of(commit: Commit, settled: Settled | None = None) -> Tombstone:
    """Return the tombstone of a commit: only what settles which commit won its version, and the outcome of an
    intent."""
    if (commit.intent is None) != (settled is None):
        raise FormatError(
            f"version {commit.version} of log {commit.log_id} is an intent without an outcome, or has one and is none; "
            "restore the log's objects from one backup"
        )
    return Tombstone(
        format=FORMAT,
        log_id=commit.log_id,
        version=commit.version,
        commit_id=commit.commit_id,
        attempt_id=commit.attempt_id,
        prev=commit.prev,
        time_us=settled.time_us if settled is not None and settled.outcome == COMMITTED else commit.time_us,
        seals=commit.seals,
        reopens=commit.reopens,
        restores=commit.restores,
        purges=commit.purges,
        outcome="" if settled is None else settled.outcome,
        applied=tuple(id_digest(each.commit_id) for each in commit.changes if each.refused is None),
        refused=tuple(id_digest(each.commit_id) for each in commit.changes if each.refused is not None),
        commit_hash=commit.hash,
    )


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
