"""The authors of stored definitions, from the commits that have them.

The answers are for messages only, so an expired commit is no error. It must not know the uses of a
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from lakelog.catalog.core.logs import FoundLog, NameTree, TableHead
from lakelog.catalog.core.schema import SPACES
from lakelog.catalog.core.state import (
    USER,
    EntryDefined,
    EntryRenamed,
    NamespaceState,
    namespace_events,
    table_events,
)
from lakelog.catalog.names import Identifier
from lakelog.log import Commit, each_change
from lakelog.log.errors import LakelogError

COMMITS_MAX = 10_000


def author_of_definition(tree: NameTree, kind: str, identifier: Identifier) -> str | None:
    """Return the writer of a view or function as it is now. None if the log no longer has that commit."""
    namespace = tree.find_namespace(identifier[:-1])
    if namespace is None:
        return None
    commit = commits_of_definitions(namespace, kind, [identifier[-1]]).get(identifier[-1])
    return None if commit is None else _named(commit, namespace.tracked.log.location)


def commits_of_definitions(
    namespace: FoundLog[NamespaceState], kind: str, names: Iterable[str]
) -> dict[str, Commit]:
    """Return the commits that defined a namespace's present views or functions, by name.

    Commits that the log no longer has are left out.
    """
    space = SPACES[kind]
    names_now = {name: name for name in names}  # present names by former names
    defining_commits: dict[str, Commit] = {}
    for commit in (
        _newest_first(lambda: namespace.tracked.log.commits(newest_first=True)) if names_now else ()
    ):
        for event in reversed(namespace_events(commit)):
            if isinstance(event, EntryRenamed) and event.space == space and event.new_name in names_now:
                names_now[event.name] = names_now.pop(event.new_name)
            if isinstance(event, EntryDefined) and event.space == space and event.name in names_now:
                defining_commits[names_now.pop(event.name)] = commit
        if not names_now:
            break
    return defining_commits


def author_of_text(head: TableHead, version: int, text: str) -> str | None:
    """Return the writer who brought a text into a table's definition.

    None if the log no longer has that commit.
    """
    text_json = msgspec.json.encode(text)
    oldest_commit: Commit | None = None
    for commit in _newest_first(lambda: head.tracked.log.commits(last=version, newest_first=True)):
        if any(text_json in msgspec.json.encode(event) for event in table_events(commit)):
            oldest_commit = commit
    return None if oldest_commit is None else _named(oldest_commit, head.tracked.log.location)


def _named(commit: Commit, location: str) -> str:
    user = commit.writer.get(USER)
    return f"{user or 'a user without a name'}, in version {commit.version} of {location}"


def _newest_first(commits: Callable[[], Iterator[Commit]]) -> Iterator[Commit]:
    try:
        for commit in islice(commits(), COMMITS_MAX):
            yield from each_change(commit, newest_first=True)
    except LakelogError:
        return  # damage is reported if a reader needs the damaged part
