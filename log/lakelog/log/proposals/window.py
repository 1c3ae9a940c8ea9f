"""A client's knowledge of the versions that it has read, which decides the proposals it may commit. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lakelog.log.changes import decided_ids
from lakelog.log.format import WINDOW, Commit, Proposal, Tombstone


class VersionWindow:
    """The versions after `since`, up to the newest that was added, without a gap.

    `lets_pass` returns whether changes decided before a version can be decided again by their data.
    """

    def __init__(self, since: int, lets_pass: Callable[[Commit], bool]) -> None:
        self._lets_pass = lets_pass
        self._ids: dict[str, int] = {}
        self._versions: deque[tuple[int, tuple[str, ...]]] = deque()
        self.since = since
        self.barrier = 0
        """The newest version that earlier changes cannot pass."""

    def add(self, version: int, effect: Commit | Tombstone | None) -> None:
        """Add the next version. None if it was aborted; an expired version restarts the window."""
        if isinstance(effect, Tombstone):
            self.restart(version)
        elif effect is not None:
            self._add(version, effect)

    def add_before(self, commits: list[Commit], since: int) -> None:
        """Add earlier versions: those after `since` that had an effect, in order."""
        newer_versions = self._versions
        self._versions, newer_barrier = deque(), self.barrier
        for commit in commits:
            self._add(commit.version, commit)
        self._versions.extend(newer_versions)
        self.since, self.barrier = since, max(self.barrier, newer_barrier)

    def restart(self, version: int) -> None:
        """Forget all versions up to this version."""
        self._ids.clear()
        self._versions.clear()
        self.since = version

    def is_decided(self, commit_id: str) -> bool:
        return commit_id in self._ids

    def is_open(self, proposal: Proposal, version: int) -> bool:
        """Return whether the next version, `version`, may apply its undecided changes."""
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
