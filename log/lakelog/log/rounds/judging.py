"""Changes that are to share a version, each decided on the state after the changes before it. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from lakelog.log.errors import LakelogError
from lakelog.log.format import CHANGES_MAX, FORMAT, Commit, encode
from lakelog.log.rounds.waiting import WaitingChange
from lakelog.log.view import Draft, LogView, S, StateProjection
from lakelog.log.writing import DecidedChange

SHARED_SIZE_MAX = 4 * 1024 * 1024
"""The bytes of a shared version's events. Further changes go into the next version."""


def part_of(view_before: LogView[S], change: DecidedChange) -> Commit:
    """Return a change of the version after `view_before` as a commit of its own, to be folded and never put."""
    return Commit(
        format=FORMAT,
        log_id=view_before.log_id,
        version=view_before.version + 1,
        commit_id=change.commit_id,
        attempt_id="",
        base=change.base,
        prev=view_before.hash,
        time_us=view_before.time_us + 1,
        writer=change.writer,
        write=change.draft.write,
        events=change.draft.all_events,
    )


class JudgedVersion(Generic[S]):
    """The decisions for the version after `before`."""

    def __init__(
        self,
        view_before: LogView[S],
        projection: StateProjection[S],
        lets_pass: Callable[[Commit], bool] | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        """Prepare the version after `view_before`.

        `lets_pass` returns whether changes that were decided before a commit may follow it in its version. If
        `is_shared` is False, the version has a single change of any kind. It is not folded, and no change is
        decided after it.
        """
        self.before = view_before
        self.is_shared = is_shared
        self.decided: list[DecidedChange] = []
        self.outcomes: list[tuple[WaitingChange[S], Exception | None]] = []
        """Changes of this process that are in the version, in order, each with the error if the version refuses it."""
        self.refused: list[tuple[WaitingChange[S], LakelogError]] = []
        """Changes that are not in the version, with the reason."""
        self.blobs: Sequence[bytes] = ()
        self._view = view_before
        self._state = view_before.state
        self._steps = view_before.steps
        self._projection = projection
        self._lets_pass = lets_pass
        self._ids: set[str] = set()
        self._size_bytes = 0
        self._changes = 0

    @property
    def view(self) -> LogView[S]:
        """The view after all changes so far. Built on demand, because few of a thousand changes are decided on it."""
        if self._view.steps != self._steps:
            self._view = replace(self._view, state=self._state, steps=self._steps)
        return self._view

    @property
    def is_full(self) -> bool:
        return self._changes >= CHANGES_MAX or self._size_bytes > SHARED_SIZE_MAX

    def has_room_for(self, draft: Draft) -> bool:
        """Return whether a draft fits. Only one change of a version has sidecars, as events refer to them by index."""
        if not self.decided:
            return True
        return self._changes + len(draft.carries) < CHANGES_MAX and not (self.blobs and draft.blobs)

    def has(self, commit_id: str) -> bool:
        return commit_id in self._ids

    def add_all(self, parts: Sequence[DecidedChange]) -> None:
        """Fold several changes, or none of them if this raises."""
        saved_state = self._state, self._steps, list(self.decided), self.blobs, set(self._ids)
        saved_sizes = self._size_bytes, self._changes
        try:
            for part in parts:
                self.fold(part)
        except BaseException:
            self._state, self._steps, self.decided, self.blobs, self._ids = saved_state
            self._size_bytes, self._changes = saved_sizes
            raise

    def forget(self) -> None:
        """Drop the outcomes, because errors keep frames alive that keep this and its callers' objects."""
        self.outcomes.clear()
        self.refused.clear()

    def leave_out(self, change: WaitingChange[S]) -> None:
        """Have a change that was to be in the version go by itself."""
        self.outcomes = [outcome for outcome in self.outcomes if outcome[0] is not change]

    def add(self, change: DecidedChange) -> None:
        """Add a change. Raises if it cannot share a version, or cannot be folded."""
        self.fold(change)

    def fold(self, change: DecidedChange) -> None:
        draft = change.draft
        if change.refused is not None or not self.is_shared:
            return self._add(change, 0 if change.refused is None else len(change.refused.message))
        if draft.seals or draft.restores or draft.purges or draft.fence:
            raise ValueError("it is about the log itself")
        part = part_of(self.before, change)
        if self._lets_pass is not None and not self._lets_pass(part):
            raise ValueError("what others of its version were decided on is not the same after it")
        size_bytes = len(encode(part))
        self._state = self._projection.apply(self._state, part, draft.blobs)
        self._steps += 1
        self._add(change, size_bytes)
        self.blobs = self.blobs or draft.blobs

    def _add(self, change: DecidedChange, size_bytes: int) -> None:
        self.decided.append(change)
        self._ids.add(change.commit_id)
        self._size_bytes += size_bytes
        self._changes += 1 + len(change.draft.carries)
