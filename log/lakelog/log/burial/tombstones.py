"""Tombstones over the commits that a base lets expire: window after window, each in parallel and in any order.

A version's tombstone is a function of its commit and outcome alone, so cleaners may write it twice, late or
at once.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from lakelog.log.errors import FormatError
from lakelog.log.format import COMMITTED, FORMAT, Commit, SettledIntent, Tombstone, encode, id_digest
from lakelog.log.log import Log
from lakelog.log.view import S

BURIED_AT_ONCE = 64
"""Tombstones that this process puts in parallel."""

BuriedUpTo = Callable[[int], None]
"""Takes the version up to which all versions are now tombstones."""

Buried = Callable[[int, int], None]
"""Takes the number of further commits that became tombstones, and their bytes with sidecars."""


Bury: TypeAlias = Callable[[Log[Any], range, BuriedUpTo, Buried], None]
"""Makes tombstones of a window's versions, the last once all others are acknowledged."""


def no_one_waits(version: int) -> None:
    """Take the progress, and ignore it."""


def no_one_counts(commits: int, size_bytes: int) -> None:
    """Take the new tombstones' counts, and ignore them."""


def bury_versions(
    log: Log[S], versions: range, progress: BuriedUpTo = no_one_waits, buried: Buried = no_one_counts
) -> None:
    """Overwrite the commits at successive versions with tombstones, after deleting their sidecars.

    All but the last are written in any order, many in parallel; the last follows. Makes a GET and a PUT for
    each, and a deletion for each 64.
    """
    for start in range(0, len(versions), BURIED_AT_ONCE):
        batch = versions[start : start + BURIED_AT_ONCE]
        commits, size_bytes = _commits_in(log, batch)
        log.store.delete(
            [log.keys.sidecar(sidecar.name) for commit, _ in commits for sidecar in commit.sidecars]
        )
        earlier_commits = [sidecar for sidecar in commits if sidecar[0].version < versions[-1]]
        # The commit after an intent has its outcome, so no client should need the decision for that.
        for intent in (sidecar for sidecar in earlier_commits if sidecar[0].intent is not None):
            _burial(log, *intent)()
        log.options.in_parallel(
            [_burial(log, *sidecar) for sidecar in earlier_commits if sidecar[0].intent is None]
        )
        for last in commits[len(earlier_commits) :]:
            _burial(log, *last)()
        buried(len(commits), size_bytes)
        progress(batch[-1])


def _commits_in(log: Log[S], versions: range) -> tuple[list[tuple[Commit, SettledIntent | None]], int]:
    """Return the versions that are not tombstones yet, with the outcomes of intents, and their bytes with sidecars."""
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
    outcomes = log.replay.with_outcomes(entries, log.replay.outcome)
    commits = [(entry, outcome) for entry, outcome in outcomes if isinstance(entry, Commit)]
    last = entries[-1]
    if isinstance(last, Commit) and not (commits and commits[-1][0] is last):
        _check_overtaken(log, last)
    return commits, size_bytes


def _check_overtaken(log: Log[S], intent: Commit) -> None:
    """Raise an error if an intent's outcome is unknown and no other client has put its tombstone.

    The tombstones after it would imply that it exists. Raises PermissionDenied if this client may not read
    the outcome.
    """
    if isinstance(log.entry_at(intent.version), Tombstone):
        return
    if log.replay.withheld == intent.version:
        raise log.replay.withheld_error()
    raise FormatError(
        f"{log.replay.at(log.keys.commit(intent.version))} is part of a transaction whose decision is missing; restore "
        "it from a backup"
    )


def _burial(log: Log[S], commit: Commit, settled_intent: SettledIntent | None) -> Callable[[], None]:
    key, stone = log.keys.commit(commit.version), encode(tombstone_of(commit, settled_intent))
    return lambda: log.store.put(key, stone)


def tombstone_of(commit: Commit, settled_intent: SettledIntent | None = None) -> Tombstone:
    """Return a commit's tombstone: only the facts that settle which commit won, and an intent's outcome."""
    if (commit.intent is None) != (settled_intent is None):
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
        time_us=settled_intent.time_us
        if settled_intent is not None and settled_intent.outcome == COMMITTED
        else commit.time_us,
        seals=commit.seals,
        reopens=commit.reopens,
        restores=commit.restores,
        purges=commit.purges,
        outcome="" if settled_intent is None else settled_intent.outcome,
        applied=tuple(id_digest(change.commit_id) for change in commit.changes if change.refused is None),
        refused=tuple(id_digest(change.commit_id) for change in commit.changes if change.refused is not None),
        commit_hash=commit.hash,
    )
