"""The entries after a version: commits and tombstones, with the outcomes of the transactions among them.

An undecided transaction at the head is waited for, and finally aborted. A `VersionTrail` remembers the reads of a
process, so that many changes pass a version with a single read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias

from lakelog.log.decisions import settled_by, wait_or_abort
from lakelog.log.errors import CommitUnknown, StorageError
from lakelog.log.format import ABORTED, Commit, SettledIntent, Tombstone
from lakelog.log.replay import BATCH_MAX, LogReplay
from lakelog.log.view import LogView, S

Follower: TypeAlias = tuple[Commit | Tombstone, SettledIntent | None]
"""An entry that follows a version, with the outcome of an intent."""

REMEMBERED = 64


class IntentUndecided(Exception):
    """Another writer's intent is undecided, and the reader may not wait for it."""


class VersionTrail(Generic[S]):
    """The newest versions as this process read or wrote them.

    It holds states, so drop it once no change is under way.
    """

    def __init__(self, replay: LogReplay[S]) -> None:
        self._replay = replay
        self._after: dict[int, tuple[Commit | Tombstone, SettledIntent | None, LogView[S]]] = {}

    def add(
        self, entry: Commit | Tombstone, settled_intent: SettledIntent | None, view_after: LogView[S]
    ) -> None:
        self._after[entry.version] = entry, settled_intent, view_after
        while len(self._after) > REMEMBERED:
            del self._after[next(iter(self._after))]

    def step(
        self, view: LogView[S], entry: Commit | Tombstone, settled_intent: SettledIntent | None
    ) -> LogView[S]:
        """Return the view after `entry`, which follows `view`; the head if expiry was there first."""
        trail_entry = self._after.get(entry.version)
        # The hash of an entry covers everything before it.
        if (
            trail_entry is not None
            and entry.prev == view.hash
            and (trail_entry[0].hash, trail_entry[1]) == (entry.hash, settled_intent)
        ):
            return trail_entry[2]
        next_view = self._replay.step(view, entry, settled_intent)
        if isinstance(entry, Tombstone) or next_view.version != entry.version:
            return self._replay.forward(next_view)
        self.add(entry, settled_intent, next_view)
        return next_view

    def following(self, view: LogView[S]) -> Iterator[Follower]:
        """Yield the remembered entries after a view, without a gap."""
        while (trail_entry := self._after.get(view.version + 1)) is not None and trail_entry[
            0
        ].prev == view.hash:
            entry, outcome, view = trail_entry
            yield entry, outcome


def following(
    replay: LogReplay[S], version: int, data: bytes | None, *, batch: int, patient: bool = True
) -> Iterator[Follower]:
    """Yield the entries after a version: `data` is the next entry, then all later entries follow.

    `batch` is the number of versions to read first; 0 reads nothing. Raises IntentUndecided if it must wait but is not
    `patient`, and StorageError.
    """

    def at_end(intent: Commit) -> SettledIntent | None:
        return settle(replay, intent, patient=patient)

    return replay.with_outcomes(_read_on(replay, version + 1, data, batch), at_end)


def _read_on(
    replay: LogReplay[Any], version: int, found_data: bytes | None, batch: int
) -> Iterator[Commit | Tombstone]:
    if found_data is not None:
        yield replay.entry(version, found_data)
        version += 1
    while batch:
        versions = range(version, version + batch)
        for version, data in zip(versions, replay.get_versions(versions), strict=True):
            if data is None:
                return
            yield replay.entry(version, data)
        version += 1
        batch = min(batch * 2, BATCH_MAX)


def settle(replay: LogReplay[S], intent: Commit, *, patient: bool) -> SettledIntent:
    """Return the outcome of an intent that was the last entry when it was read. Raises IntentUndecided or StorageError.

    Makes a GET if it is decided. Otherwise waits for the decision, and finally aborts the transaction.
    """
    outcome = replay.decided(intent) or replay.outcome(intent)
    if outcome is not None:
        return outcome
    if not patient:
        raise IntentUndecided
    place = replay.decision_place(intent)
    if place is None:
        return SettledIntent(outcome=ABORTED)
    return settled_by(wait_or_abort(place, intent, replay.options), intent, place.location)


def refresh_settled(replay: LogReplay[S], view: LogView[S]) -> LogView[S]:
    """Return the head once no undecided intent follows it."""
    while True:
        view, undecided_intent = replay.read_on(view)
        if undecided_intent is None:
            return view
        settle(replay, undecided_intent, patient=True)


@contextmanager
def or_unknown(commit_id: str, location: str) -> Iterator[None]:
    """Turn a failed read into CommitUnknown, because the commit may have happened."""
    try:
        yield
    except StorageError as error:
        raise CommitUnknown(
            f"commit {commit_id} to {location} may have happened, but reading the log failed: {error}; "
            "retry with the same commit id",
            commit_id=commit_id,
            location=location,
        ) from error
