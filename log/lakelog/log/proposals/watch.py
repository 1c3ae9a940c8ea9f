"""How a writer that never loses notices losing writers, and how they call it.

This is only advice: nothing depends on it. A winner needs no read before its next put, but losers do. So a
writer that never stops may keep the log for long. Such a writer lists the inbox beside every few of its puts,
and commits the proposals with its own changes. In a log that has no mark for proposals yet, a loser may not
propose. It leaves a *wish*, which is an empty object, and the winner marks the log with its next version.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from lakelog.log.errors import LakelogError
from lakelog.log.proposals.inbox import ProposalInbox
from lakelog.log.replay import LogReplay

QUICK_COMMITS = 4
"""Commits in quick succession after which a writer looks. Writers that rarely commit never look."""
PAUSE_COMMITS = 4.0
"""The pause that ends a succession, in durations of a commit."""
EVERY = 2, 4
"""Commits per look. The number doubles, up to the second figure, whenever a look finds nothing."""

WAIT_S = 1.0


class ProposalWatch:
    """A process's knowledge of other clients that may wait for it. Only a single thread calls its methods at a time."""

    def __init__(self, replay: LogReplay[Any]) -> None:
        self._replay = replay
        self._options = replay.options
        self._commits = 0
        self._every = EVERY[0]
        self._look_at = QUICK_COMMITS
        self._begun_s = self._ended_s = 0.0
        self._known: set[str] = set()
        self._is_found = False
        self._looking = 0
        """The process whose thread looks; a forked process has no such thread."""

    def begins(self) -> bool:
        """Record that a commit begins. Returns whether a look has found waiting clients since the last commit."""
        self._begun_s, last_s = self._options.monotonic_s(), self._begun_s
        if self._begun_s - self._ended_s > PAUSE_COMMITS * (self._ended_s - last_s):
            self._commits, self._every, self._look_at = 0, EVERY[0], QUICK_COMMITS
        self._commits += 1
        is_wished, self._is_found = self._is_found, False
        if is_wished:
            self._every, self._look_at = 1, self._commits
        return is_wished

    def ended(self) -> None:
        self._ended_s = self._options.monotonic_s()

    def look_if_due(self, version: int) -> None:
        """Start a look beside the current commit, if it is time."""
        if self._commits < self._look_at or self._looking == os.getpid():
            return
        self._look_at = self._commits + self._every
        self._every = min(2 * self._every, EVERY[1])
        self._looking = os.getpid()

        def look() -> None:
            try:
                listed_keys: set[str] = set(ProposalInbox(self._replay).calls(version))
                self._is_found = self._is_found or not listed_keys <= self._known
                self._known = listed_keys
            except LakelogError:
                pass  # the next look sees it
            finally:
                self._looking = 0

        try:
            self._options.in_thread(f"look into the inbox of {self._replay.location}", look)
        except RuntimeError:  # the interpreter exits
            self._looking = 0


def wish(replay: LogReplay[Any], seen: int, commit_id: str, is_over: threading.Event) -> None:
    """Leave a wish in the background, and remove it once `is_over` is set."""
    options, store, key = replay.options, replay.store, replay.keys.wish(seen, commit_id)

    def work() -> None:
        if is_over.is_set():
            return
        with suppress(LakelogError):
            store.put(key, b"")
        while not is_over.is_set() and threading.main_thread().is_alive():
            options.wait(is_over, WAIT_S)
        with suppress(LakelogError):
            store.delete([key])

    with suppress(RuntimeError):  # the interpreter exits
        options.in_thread(f"wish at {replay.location}", work)
