"""How a writer that never loses notices those that do, and how these call for it. Advice only: nothing depends on it.

Who has won needs no read before its next put, and the others do: so one writer that never stops may keep the log for
long. Such a writer lists the inbox beside every few of its puts, and commits what is proposed with its own. Who loses
in a log that has no mark for proposals yet, and so may not propose, leaves a *wish* there: an empty object, at which
the winner marks the log with its next version.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from lakelog.log.errors import LakelogError
from lakelog.log.proposals.inbox import Inbox
from lakelog.log.replay import Replay

QUICK_COMMITS = 4
"""Commits one after another from which on a writer looks; who commits now and then never does."""
PAUSE_COMMITS = 4.0
"""The pause, in times that a commit took, that ends them."""
EVERY = 2, 4
"""Of how many commits one looks: twice as many each time that it finds nothing, up to the second figure."""

WAIT_S = 1.0


class Watch:
    """What one process knows of others that may wait for it. Its methods are called by one thread at a time."""

    def __init__(self, replay: Replay[Any]) -> None:
        self._replay = replay
        self._options = replay.options
        self._commits = 0
        self._every = EVERY[0]
        self._look_at = QUICK_COMMITS
        self._begun_s = self._ended_s = 0.0
        self._known: set[str] = set()
        self._is_found = False
        self._looking = 0
        """The process whose thread looks: a forked one has none."""

    def begins(self) -> bool:
        """Take note that a commit begins. Returns whether others were found to wait since the last one."""
        self._begun_s, last_s = self._options.monotonic_s(), self._begun_s
        if self._begun_s - self._ended_s > PAUSE_COMMITS * (self._ended_s - last_s):
            self._commits, self._every, self._look_at = 0, EVERY[0], QUICK_COMMITS
        self._commits += 1
        found, self._is_found = self._is_found, False
        if found:
            self._every, self._look_at = 1, self._commits
        return found

    def ended(self) -> None:
        self._ended_s = self._options.monotonic_s()

    def look_if_due(self, version: int) -> None:
        """Begin to look beside the commit that begins, where it is time."""
        if self._commits < self._look_at or self._looking == os.getpid():
            return
        self._look_at = self._commits + self._every
        self._every = min(2 * self._every, EVERY[1])
        self._looking = os.getpid()

        def look() -> None:
            try:
                listed: set[str] = set(Inbox(self._replay).calls(version))
                self._is_found = self._is_found or not listed <= self._known
                self._known = listed
            except LakelogError:
                pass  # the next look sees it
            finally:
                self._looking = 0

        try:
            self._options.in_thread(f"look into the inbox of {self._replay.location}", look)
        except RuntimeError:  # the interpreter ends
            self._looking = 0


def wish(replay: Replay[Any], seen: int, commit_id: str, is_over: threading.Event) -> None:
    """Leave a wish beside what goes on, and take it away again once that is over."""
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

    with suppress(RuntimeError):  # the interpreter ends
        options.in_thread(f"wish at {replay.location}", work)
