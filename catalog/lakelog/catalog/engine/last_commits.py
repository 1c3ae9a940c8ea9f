"""The last commits of a session, as the history of its tables shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.core.state import (
    FilesVacuumed,
    HistoryEntry,
    HistoryExpired,
    NameLink,
    entries_of,
    table_events,
)
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import quoted
from lakelog.log import Commit, NotedCommit, each_change
from lakelog.log.errors import LakelogError, NotFound

LEVELS_MAX = 32


@dataclass(frozen=True, slots=True)
class CommitOfTable:
    """The changes of a commit to a table, and the table's present name, or its place if it has no name."""

    table: str
    entry: HistoryEntry


@of_catalog
def newest_commits(catalog: CatalogNames, noted_commits: Iterable[NotedCommit]) -> list[CommitOfTable]:
    """Return the changes of the commits that an engine has noted (see `noting_commits`): the last of each
    table.

    Expired commits are left out. Makes a GET or two for each log, and a GET for each namespace that is not
    cached.
    """
    logs, last_commits = catalog._logs, []
    for noted_commit in {noted_commit.location: noted_commit for noted_commit in noted_commits}.values():
        location = logs.location(noted_commit.location)
        entry = _entry(logs, location, noted_commit)
        if entry is not None:
            last_commits.append(CommitOfTable(_name(logs, location), entry))
    return last_commits


def _entry(logs: LogCache, location: str, noted_commit: NotedCommit) -> HistoryEntry | None:
    log = logs.table(location).log
    try:
        commits = list(log.commits(first=noted_commit.version, last=noted_commit.version))
    except NotFound:
        return None
    if not any(_is_of_a_table(change) for commit in commits for change in each_change(commit)):
        return None
    # Other changes may share the commit's version.
    own_entries = [entry for entry in entries_of(commits) if entry.commit_id == noted_commit.commit_id]
    return own_entries[0] if own_entries else None


def _is_of_a_table(commit: Commit) -> bool:
    """Return whether a commit changes a table. The events of upkeep keep a log of names small, too."""
    try:
        events = table_events(commit)
    except LakelogError:
        return False
    return any(not isinstance(event, HistoryExpired | FilesVacuumed) for event in events)


def _name(logs: LogCache, location: str) -> str:
    try:
        link: NameLink | None = logs.table(location).current().state.link
        parts: list[str] = []
        while link is not None and len(parts) < LEVELS_MAX:
            parts.append(link.name)
            if not link.namespace:
                return quoted(parts[::-1])
            link = logs.namespace(link.namespace).current().state.link
    except LakelogError:
        pass  # an unreadable table has a place all the same
    return logs.url(location)
