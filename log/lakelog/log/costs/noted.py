"""Which commits a piece of work makes, for a caller who asks: each by its log, its version and its id.

Rule: what is noted has happened, by this try or an earlier one; work that goes on in other threads is not the caller's.
It must not know what a commit says.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotedCommit:
    """A commit of the log at `location`, which is the url of its root."""

    location: str
    version: int
    commit_id: str


_NOTING: ContextVar[list[NotedCommit] | None] = ContextVar("lakelog_noting", default=None)


@contextmanager
def noting_commits() -> Iterator[list[NotedCommit]]:
    """Inside, commits are noted, in their order."""
    noted: list[NotedCommit] = []
    before = _NOTING.set(noted)
    try:
        yield noted
    finally:
        _NOTING.reset(before)


def note_commit(location: str, version: int, commit_id: str) -> None:
    """Note a commit, if anyone asks."""
    noted = _NOTING.get()
    if noted is not None:
        noted.append(NotedCommit(location, version, commit_id))
