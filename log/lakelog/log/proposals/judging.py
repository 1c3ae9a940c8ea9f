"""Changes that are to share a version, each decided on the state that those before it leave. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from lakelog.log.format import CHANGES_MAX, FORMAT, Commit, Refusal, encode
from lakelog.log.view import Draft, Projection, S, View
from lakelog.log.writing import Decided

SHARED_SIZE_MAX = 4 * 1024 * 1024
"""Of the events of a version that is shared; what is above goes into the next one."""


class Judged(Generic[S]):
    """What was decided for the version after `before`."""

    def __init__(
        self, before: View[S], projection: Projection[S], lets_pass: Callable[[Commit], bool] | None = None
    ) -> None:
        """`lets_pass` says of a change whether others of its version, decided before it was there, may follow it."""
        self.before = before
        self._view = before
        self._state = before.state
        self._steps = before.steps
        self.decided: list[Decided] = []
        self.blobs: Sequence[bytes] = ()
        self._projection = projection
        self._lets_pass = lets_pass
        self._ids: set[str] = set()
        self._size_bytes = 0
        self._changes = 0

    @property
    def view(self) -> View[S]:
        """What all so far make of `before`. Made when it is asked for: few of a thousand changes are decided on it."""
        if self._view.steps != self._steps:
            self._view = replace(self._view, state=self._state, steps=self._steps)
        return self._view

    @property
    def is_full(self) -> bool:
        return self._changes >= CHANGES_MAX or self._size_bytes > SHARED_SIZE_MAX

    def has_room_for(self, draft: Draft) -> bool:
        return self._changes + len(draft.carries) < CHANGES_MAX

    def has(self, commit_id: str) -> bool:
        return commit_id in self._ids

    def add_all(self, parts: Sequence[Decided]) -> None:
        """Fold several, or none of them where it raises."""
        before = self._state, self._steps, list(self.decided), self.blobs, set(self._ids)
        sizes = self._size_bytes, self._changes
        try:
            for each in parts:
                self.add(each)
        except BaseException:
            self._state, self._steps, self.decided, self.blobs, self._ids = before
            self._size_bytes, self._changes = sizes
            raise

    def add(self, decided: Decided) -> None:
        """Fold one more. Raises where it cannot be one of several, or cannot be folded."""
        draft = decided.draft
        if draft.seals or draft.restores or draft.purges or draft.fence:
            raise ValueError("it is about the log itself")
        part = Commit(
            format=FORMAT,
            log_id=self.before.log_id,
            version=self.before.version + 1,
            commit_id=decided.commit_id,
            attempt_id="",
            base=decided.base,
            prev=self.before.hash,
            time_us=self.before.time_us + 1,
            writer=decided.writer,
            write=draft.write,
            events=draft.all_events,
        )
        if self._lets_pass is not None and not self._lets_pass(part):
            raise ValueError("what others of its version were decided on is not the same after it")
        size_bytes = len(encode(part))
        self._state = self._projection.apply(self._state, part, draft.blobs)
        self._steps += 1
        self._add(decided, size_bytes)
        self.blobs = self.blobs or draft.blobs

    def add_refused(self, decided: Decided, refused: Refusal) -> None:
        """Have the version refuse one, which it does for good."""
        decided = replace(decided, draft=Draft(), refused=refused)
        self._add(decided, len(refused.message))

    def _add(self, decided: Decided, size_bytes: int) -> None:
        self.decided.append(decided)
        self._ids.add(decided.commit_id)
        self._size_bytes += size_bytes
        self._changes += 1 + len(decided.draft.carries)
