"""Which commits of tables a piece of work makes, for a caller who asks: each by its log, its version and its id.

Rule: what is noted has happened. Work that goes on in other threads is not the caller's. It must not know what a commit
says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.state import TableState
from lakelog.log import View


@dataclass(frozen=True, slots=True)
class NotedCommit:
    """A commit of a table's log, which is at `location`. Its id is None where only the log knows it."""

    location: str
    version: int
    commit_id: str | None


_NOTING: ContextVar[list[NotedCommit] | None] = ContextVar("lakelog_noting", default=None)


@contextmanager
def noting_commits() -> Iterator[list[NotedCommit]]:
    """Inside, commits of tables are noted, in their order."""
    noted: list[NotedCommit] = []
    before = _NOTING.set(noted)
    try:
        yield noted
    finally:
        _NOTING.reset(before)


def note_commit(location: str, view: View[Any], version: int, commit_id: str | None) -> None:
    """Note a commit, of which `view` is the state or a later one, if anyone asks."""
    noted = _NOTING.get()
    if noted is not None and isinstance(view.state, TableState):
        noted.append(NotedCommit(location, version, commit_id))
