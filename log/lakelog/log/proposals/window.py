"""What a client knows of the versions of a log that it has read: enough to know which proposals it may commit. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lakelog.log.changes import decided_ids
from lakelog.log.format import WINDOW, Commit, Proposal, Tombstone


class Window:
    """The versions after `since`, up to the newest that was added, without a gap.

    `lets_pass` says of a version whether changes that were decided before it can be decided anew by their data.
    """

    def __init__(self, since: int, lets_pass: Callable[[Commit], bool]) -> None:
        self._lets_pass = lets_pass
        self._ids: dict[str, int] = {}
        self._versions: deque[tuple[int, tuple[str, ...]]] = deque()
        self.since = since
        self.barrier = 0
        """The newest version that changes from before it do not pass."""

    def add(self, version: int, effect: Commit | Tombstone | None) -> None:
        """Add the next version: None where it was aborted. Of an expired one too little is known."""
        if isinstance(effect, Tombstone):
            self.restart(version)
        elif effect is not None:
            self._add(version, effect)

    def add_before(self, commits: list[Commit], since: int) -> None:
        """Add versions from before, those after `since` that had an effect, in their order."""
        older = self._versions
        self._versions, newer_barrier = deque(), self.barrier
        for commit in commits:
            self._add(commit.version, commit)
        self._versions.extend(older)
        self.since, self.barrier = since, max(self.barrier, newer_barrier)

    def restart(self, version: int) -> None:
        """Know of no version up to this one."""
        self._ids.clear()
        self._versions.clear()
        self.since = version

    def is_decided(self, commit_id: str) -> bool:
        return commit_id in self._ids

    def is_open(self, proposal: Proposal, version: int) -> bool:
        """Return whether its changes may be applied in `version`, the next one, unless they are decided."""
        in_window = proposal.seen < version <= proposal.until
        return in_window and proposal.seen >= max(self.since, self.barrier)

    def _add(self, version: int, commit: Commit) -> None:
        ids = decided_ids(commit)
        self._versions.append((version, ids))
        self._ids.update(dict.fromkeys(ids, version))
        if commit.seals or commit.reopens or commit.restores or not self._lets_pass(commit):
            self.barrier = version
        while self._versions[0][0] <= version - 2 * WINDOW:
            self.since, old = self._versions.popleft()
            for id in old:
                self._ids.pop(id, None)
