"""Cloning a namespace: all tables in it and below it, as of one moment, become visible under a new name by one commit.

The new namespace's log is created with all names in it, under an id that nothing leads to; then the logs of the tables,
then the promises of their sources, and the link last of all. So what is left of one that died is purged as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.ddl import collect
from lakelog.catalog.core.logs import (
    Found,
    NameTree,
    TableHead,
    Token,
    check_not_forgotten,
    commit_in,
    was_applied_anywhere,
)
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    TABLE,
    EntryLinked,
    NamespaceCreated,
    NamespaceState,
    encode,
)
from lakelog.catalog.errors import NamespaceExists
from lakelog.catalog.keeping.clones.cloning import (
    check_cloneable,
    check_kept,
    first_commit,
    origins_of,
    promise_all,
    staged,
)
from lakelog.catalog.names import Identifier, check_namespace, quoted
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput

LOCATION = "location"


@dataclass(frozen=True, slots=True)
class _Level:
    """A namespace that is cloned: its state then, the name and place of its clone, and what is in it."""

    state: NamespaceState
    name: str
    parent: str
    id: str
    tables: tuple[tuple[str, str, TableHead], ...]
    below: tuple[_Level, ...]

    @property
    def location(self) -> str:
        return f"{self.parent}/n-{self.id}" if self.parent else f"n-{self.id}"

    def all(self) -> Iterator[_Level]:
        yield self
        for level in self.below:
            yield from level.all()


def clone_namespace(tree: NameTree, source: Identifier, target: Identifier, token: Token | None) -> None:
    """Make the namespace `target` with a clone of each table in and below `source`, as of one moment.

    Views, functions and saved cuts stay behind: they mean what is in `source`. NamespaceExists, NoSuchNamespace; for
    each table as `clone_table`, and nothing is visible then.
    """
    tree.logs.check_writable()
    if not source or not target:
        raise InvalidInput("the root namespace cannot be cloned, or be a clone: name a namespace in it")
    check_namespace(target)
    if was_applied_anywhere(tree.logs, token):
        return
    parent = tree.writable(target[:-1])
    if parent.view.state.entry(NAMESPACE, target[-1]) is not None:
        raise _exists(target)
    tracked = tree.namespace(source).tracked
    # All that it leads to, wherever that is: unlike versions that a cut has, these need not stay.
    versions = collect(tree.logs, source, tracked, within="")
    level = _planned(tree, source, tracked.location, target[-1], parent.tracked.location, versions)
    heads = [head for each in level.all() for _, _, head in each.tables]
    for head in heads:
        newest = head.tracked.current()
        check_cloneable(head, newest)
        check_kept(head, head.all_files(), newest.state.origins)
    for each in level.all():
        _create(tree, each)
    _link(tree, parent, target, level, token)


def _planned(
    tree: NameTree,
    path: Identifier,
    location: str,
    name: str,
    parent: str,
    versions: dict[str, int],
) -> _Level:
    """Return what is cloned of a namespace and of those below it, each table as of its version."""
    logs, id = tree.logs, tree.logs.new_id()
    state = logs.namespace(location).view_at(versions[location]).state
    own = f"{parent}/n-{id}" if parent else f"n-{id}"
    tables = [
        (each, logs.new_id(), _head(tree, (*path, each), entry.location, versions[entry.location]))
        for each, entry in sorted(state.entries.get(RELATION, {}).items())
        if entry.location in versions
    ]
    below = [
        _planned(tree, (*path, each), entry.location, each, own, versions)
        for each, entry in sorted(state.entries.get(NAMESPACE, {}).items())
        if entry.location in versions
    ]
    return _Level(state, name, parent, id, tuple(tables), tuple(below))


def _head(tree: NameTree, name: Identifier, location: str, version: int) -> TableHead:
    tracked = tree.logs.table(location)
    return TableHead(tree.logs, tracked, tracked.view_at(version), quoted(name))


def _create(tree: NameTree, level: _Level) -> None:
    """Create the log of a clone of a namespace, with all names, then the tables that these lead to."""
    properties = {key: value for key, value in level.state.properties.items() if key != LOCATION}
    events = [NamespaceCreated(properties=properties, parent=level.parent, name=level.name)]
    names = [
        EntryLinked(space=RELATION, name=name, kind=TABLE, id=id, location=f"{level.location}/t-{id}")
        for name, id, _ in level.tables
    ]
    names += [
        EntryLinked(space=NAMESPACE, name=each.name, kind=NAMESPACE, id=each.id, location=each.location)
        for each in level.below
    ]
    log = tree.logs.namespace(level.location)
    log.create(Draft(events=encode([*events, *names])), log_id=level.id, commit_id=level.id)
    for name, id, source in level.tables:
        newest = source.tracked.current()
        stage = staged(source, (level.name, name), level.location, id, f"{level.location}/t-{id}")
        draft = first_commit(source, newest, stage, origins_of(source, newest))
        tree.logs.table(stage.location).create(draft, log_id=id, commit_id=id)
        promise_all(tree, source, newest.state.origins, stage)


def _link(
    tree: NameTree,
    parent: Found[NamespaceState],
    target: Identifier,
    level: _Level,
    token: Token | None,
) -> None:
    linked = EntryLinked(
        space=NAMESPACE, name=target[-1], kind=NAMESPACE, id=level.id, location=level.location
    )

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        if view.state.entry(NAMESPACE, target[-1]) is not None:
            raise _exists(target)
        check_not_forgotten(view.state, level.id, quoted(target))
        return Draft(events=encode([linked]))

    commit_in(parent, target[:-1], decide, token)


def _exists(namespace: Identifier) -> NamespaceExists:
    return NamespaceExists(
        f"there is a namespace {quoted(namespace)} already: drop it, or choose another name"
    )
