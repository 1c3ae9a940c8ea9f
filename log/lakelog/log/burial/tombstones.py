"""Tombstones over the commits that a base lets expire: window after window, in each side by side and in any order.

What a version becomes is a function of its commit and its outcome alone: cleaners may do it twice, late or at once.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from lakelog.log.errors import FormatError
from lakelog.log.format import COMMITTED, FORMAT, Commit, Settled, Tombstone, encode, id_digest
from lakelog.log.log import Log
from lakelog.log.view import S

BURIED_AT_ONCE = 64
"""Tombstones that this process puts side by side."""

Done = Callable[[int], None]
"""Takes the version up to which all are tombstones by now."""

Buried = Callable[[int, int], None]
"""Takes how many more commits have become tombstones, and their bytes with their sidecars."""


Bury: TypeAlias = Callable[[Log[Any], range, Done, Buried], None]
"""Makes tombstones of the versions of a window; that of its last version once all others are acknowledged."""


def no_one_waits(version: int) -> None:
    """Takes how far the work is, and shows it to no one."""


def no_one_counts(commits: int, size_bytes: int) -> None:
    """Takes what has become tombstones, and adds it to nothing."""


def bury_versions(
    log: Log[S], versions: range, progress: Done = no_one_waits, buried: Buried = no_one_counts
) -> None:
    """Overwrite the commits at successive versions with tombstones, after deleting their sidecars: all but the last in
    any order, many side by side, then that one. One GET and one PUT for each, and a deletion for each 64."""
    for start in range(0, len(versions), BURIED_AT_ONCE):
        batch = versions[start : start + BURIED_AT_ONCE]
        commits, size_bytes = _commits_in(log, batch)
        log.store.delete([log.keys.sidecar(each.name) for commit, _ in commits for each in commit.sidecars])
        before = [each for each in commits if each[0].version < versions[-1]]
        # What became of an intent stands in the commit after it: no client is to need the decision for that.
        for intent in (each for each in before if each[0].intent is not None):
            _burial(log, *intent)()
        log.options.in_parallel([_burial(log, *each) for each in before if each[0].intent is None])
        for last in commits[len(before) :]:
            _burial(log, *last)()
        buried(len(commits), size_bytes)
        progress(batch[-1])


def _commits_in(log: Log[S], versions: range) -> tuple[list[tuple[Commit, Settled | None]], int]:
    """Return the versions that are not tombstones yet, each with what became of it if it is an intent, and their bytes
    with their sidecars."""
    entries: list[Commit | Tombstone] = []
    size_bytes = 0
    for number, data in zip(versions, log.replay.get_versions(versions), strict=True):
        if data is None:
            raise FormatError(
                f"{log.replay.at(log.keys.commit(number))} is missing; restore it from a backup"
            )
        entry = log.replay.entry(number, data)
        entries.append(entry)
        if isinstance(entry, Commit):
            size_bytes += len(data) + sum(sidecar.size_bytes for sidecar in entry.sidecars)
    settled = log.replay.with_outcomes(entries, log.replay.outcome)
    known = [(entry, outcome) for entry, outcome in settled if isinstance(entry, Commit)]
    last = entries[-1]
    if isinstance(last, Commit) and not (known and known[-1][0] is last):
        _check_overtaken(log, last)
    return known, size_bytes


def _check_overtaken(log: Log[S], intent: Commit) -> None:
    """Raise an error where what became of an intent is not known, and no other client has put its tombstone meanwhile:
    what follows it would say that it is there. PermissionDenied where this client may not read it."""
    if isinstance(log.entry_at(intent.version), Tombstone):
        return
    if log.replay.withheld == intent.version:
        raise log.replay.withheld_error()
    raise FormatError(
        f"{log.replay.at(log.keys.commit(intent.version))} is part of a transaction whose decision is missing; restore "
        "it from a backup"
    )


def _burial(log: Log[S], commit: Commit, settled: Settled | None) -> Callable[[], None]:
    key, stone = log.keys.commit(commit.version), encode(tombstone_of(commit, settled))
    return lambda: log.store.put(key, stone)


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
