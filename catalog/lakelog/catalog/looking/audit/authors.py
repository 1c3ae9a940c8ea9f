"""Who wrote a definition that is stored: by the commits that have it.

An answer for messages only: a commit that has expired is no error. It must not know what the definition is used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from lakelog.catalog.core.logs import Found, NameTree, TableHead
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
    """Return the writer of a view or function as it is now; None where the log no longer has that commit."""
    found = tree.find_namespace(identifier[:-1])
    if found is None:
        return None
    commit = commits_of_definitions(found, kind, [identifier[-1]]).get(identifier[-1])
    return None if commit is None else _named(commit, found.tracked.log.location)


def commits_of_definitions(
    namespace: Found[NamespaceState], kind: str, names: Iterable[str]
) -> dict[str, Commit]:
    """Return the commits that defined views or functions of a namespace as they are now, by name. Those that the log
    no longer has are left out."""
    space = SPACES[kind]
    wanted = {name: name for name in names}  # what they are called now, by what they were called then
    found: dict[str, Commit] = {}
    for commit in _newest_first(lambda: namespace.tracked.log.commits(newest_first=True)) if wanted else ():
        for event in reversed(namespace_events(commit)):
            if isinstance(event, EntryRenamed) and event.space == space and event.new_name in wanted:
                wanted[event.name] = wanted.pop(event.new_name)
            if isinstance(event, EntryDefined) and event.space == space and event.name in wanted:
                found[wanted.pop(event.name)] = commit
        if not wanted:
            break
    return found


def author_of_text(head: TableHead, version: int, text: str) -> str | None:
    """Return the writer who brought a text into a table's definition; None where the log no longer has that commit."""
    wanted = msgspec.json.encode(text)
    found: Commit | None = None
    for commit in _newest_first(lambda: head.tracked.log.commits(last=version, newest_first=True)):
        if any(wanted in msgspec.json.encode(event) for event in table_events(commit)):
            found = commit
    return None if found is None else _named(found, head.tracked.log.location)


def _named(commit: Commit, location: str) -> str:
    user = commit.writer.get(USER)
    return f"{user or 'a user without a name'}, in version {commit.version} of {location}"


def _newest_first(commits: Callable[[], Iterator[Commit]]) -> Iterator[Commit]:
    try:
        for commit in islice(commits(), COMMITS_MAX):
            yield from each_change(commit, newest_first=True)
    except LakelogError:
        return  # what is damaged is reported where it is needed
