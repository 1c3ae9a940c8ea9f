"""The commits that a session has made last, as its tables' history shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelog.catalog.logs import LogCache, NotedCommit, known_path_to
from lakelog.catalog.names import quoted
from lakelog.catalog.state import HistoryEntry, entries_of
from lakelog.log.errors import NotFound


@dataclass(frozen=True, slots=True)
class CommitOfTable:
    """What a commit did to a table, and what the table is called now; by its place where that is not known."""

    table: str
    entry: HistoryEntry


def newest_commits(logs: LogCache, noted: Iterable[NotedCommit]) -> list[CommitOfTable]:
    """Return the last of these commits of each table, without those that have expired. Costs a GET for each table."""
    found = []
    for each in {each.location: each for each in noted}.values():
        entry = _entry(logs, each)
        if entry is not None:
            found.append(CommitOfTable(_name(logs, each.location), entry))
    return found


def _entry(logs: LogCache, noted: NotedCommit) -> HistoryEntry | None:
    log = logs.table(noted.location).log
    try:
        entries = list(entries_of(log.commits(first=noted.version, last=noted.version, newest_first=True)))
    except NotFound:
        return None
    # Other changes may share its version.
    own = [each for each in entries if each.commit_id == noted.commit_id]
    return next(iter(own or entries), None)


def _name(logs: LogCache, location: str) -> str:
    known = logs.table(location).known
    link = None if known is None else known.state.link
    path = None if link is None else known_path_to(logs, link.namespace)
    return logs.url(location) if link is None or path is None else quoted((*path, link.name))
