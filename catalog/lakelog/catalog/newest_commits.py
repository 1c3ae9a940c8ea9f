"""The commits that a session has made last, as the history of its tables shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.core.state import (
    FilesVacuumed,
    HistoryEntry,
    HistoryExpired,
    Link,
    entries_of,
    table_events,
)
from lakelog.catalog.names import quoted
from lakelog.log import Commit, NotedCommit, each_change
from lakelog.log.errors import LakelogError, NotFound

LEVELS_MAX = 32


@dataclass(frozen=True, slots=True)
class CommitOfTable:
    """What a commit did to a table, and what the table is called now; by its place where it has no name."""

    table: str
    entry: HistoryEntry


def newest_commits(logs: LogCache, noted: Iterable[NotedCommit]) -> list[CommitOfTable]:
    """Return the last of these commits of each table, without those that have expired. Costs a GET or two for each log,
    and one for each namespace that is not known."""
    found = []
    for each in {each.location: each for each in noted}.values():
        location = logs.location(each.location)
        entry = _entry(logs, location, each)
        if entry is not None:
            found.append(CommitOfTable(_name(logs, location), entry))
    return found


def _entry(logs: LogCache, location: str, noted: NotedCommit) -> HistoryEntry | None:
    log = logs.table(location).log
    try:
        commits = list(log.commits(first=noted.version, last=noted.version))
    except NotFound:
        return None
    if not any(_is_of_a_table(change) for commit in commits for change in each_change(commit)):
        return None
    # Other changes may share its version.
    own = [entry for entry in entries_of(commits) if entry.commit_id == noted.commit_id]
    return own[0] if own else None


def _is_of_a_table(commit: Commit) -> bool:
    """Return whether a commit does something to a table: a log of names is kept small by the same events."""
    try:
        events = table_events(commit)
    except LakelogError:
        return False
    return any(not isinstance(event, HistoryExpired | FilesVacuumed) for event in events)


def _name(logs: LogCache, location: str) -> str:
    try:
        link: Link | None = logs.table(location).current().state.link
        parts: list[str] = []
        while link is not None and len(parts) < LEVELS_MAX:
            parts.append(link.name)
            if not link.namespace:
                return quoted(parts[::-1])
            link = logs.namespace(link.namespace).current().state.link
    except LakelogError:
        pass  # one that cannot be read has a place all the same
    return logs.url(location)
