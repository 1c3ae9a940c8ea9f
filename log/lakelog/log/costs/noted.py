"""The commits that work makes, for a caller who asks: each with its log, version and id.

Rule: a noted commit has happened, by this try or an earlier try. Work in other threads is not the caller's.
It must not know the content of a commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotedCommit:
    """A commit of the log whose root has the URL `location`."""

    location: str
    version: int
    commit_id: str


_NOTING: ContextVar[list[NotedCommit] | None] = ContextVar("lakelog_noting", default=None)


@contextmanager
def noting_commits() -> Iterator[list[NotedCommit]]:
    """Note commits inside this context, in order."""
    commits: list[NotedCommit] = []
    token = _NOTING.set(commits)
    try:
        yield commits
    finally:
        _NOTING.reset(token)


def note_commit(location: str, version: int, commit_id: str) -> None:
    """Note a commit, if a caller asks."""
    commits = _NOTING.get()
    if commits is not None:
        commits.append(NotedCommit(location, version, commit_id))
