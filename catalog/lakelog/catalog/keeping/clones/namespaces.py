"""Cloning a namespace: a commit makes all of its tables, as of a moment, visible under a new name.

The new namespace's log is created first, with all names in it, under an id that nothing leads to. The tables'
logs follow, then the promises of their sources, and the link at the end. So the leftovers of a failed run are
purged as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.ddl import collect
from lakelog.catalog.core.logs import (
    FoundLog,
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
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import InvalidInput

LOCATION = "location"


@dataclass(frozen=True, slots=True)
class _Level:
    """A namespace that is cloned: its state at that moment, the name and place of its clone, and its
    contents.
    """

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
    """Make the namespace `target` with a clone of each table in and below `source`, as of a single moment.

    Views, functions and saved cuts are not cloned because they refer to objects in `source`. Raises
    NamespaceExists or NoSuchNamespace, and for each table the errors of `clone_table`. Nothing is visible
    after an error.
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
    source_log = tree.namespace(source).tracked
    # All versions that the source leads to, wherever they are. Unlike the versions of a cut, these need not
    # be kept.
    versions = collect(tree.logs, source, source_log, within="")
    level = _planned(tree, source, source_log.location, target[-1], parent.tracked.location, versions)
    heads = [head for cloned_level in level.all() for _, _, head in cloned_level.tables]
    for head in heads:
        newest = head.tracked.current()
        check_cloneable(head, newest)
        check_kept(head, head.all_files(), newest.state.origins)
    for cloned_level in level.all():
        _create(tree, cloned_level)
    _link(tree, parent, target, level, token)


def _planned(
    tree: NameTree,
    path: Identifier,
    location: str,
    name: str,
    parent: str,
    versions: dict[str, int],
) -> _Level:
    """Return the plan of a namespace and the namespaces below it, with each table as of its version."""
    logs, id = tree.logs, tree.logs.new_id()
    state = logs.namespace(location).view_at(versions[location]).state
    own = f"{parent}/n-{id}" if parent else f"n-{id}"
    tables = [
        (child, logs.new_id(), _head(tree, (*path, child), entry.location, versions[entry.location]))
        for child, entry in sorted(state.logs(RELATION))
        if entry.location in versions
    ]
    below = [
        _planned(tree, (*path, child), entry.location, child, own, versions)
        for child, entry in sorted(state.logs(NAMESPACE))
        if entry.location in versions
    ]
    return _Level(state, name, parent, id, tuple(tables), tuple(below))


def _head(tree: NameTree, name: Identifier, location: str, version: int) -> TableHead:
    table_log = tree.logs.table(location)
    return TableHead(tree.logs, table_log, table_log.view_at(version), quoted(name))


def _create(tree: NameTree, level: _Level) -> None:
    """Create the log of a clone of a namespace, with all names, then the tables that these names lead to."""
    properties = {key: value for key, value in level.state.properties.items() if key != LOCATION}
    events = [NamespaceCreated(properties=properties, parent=level.parent, name=level.name)]
    names = [
        EntryLinked(space=RELATION, name=name, kind=TABLE, id=id, location=f"{level.location}/t-{id}")
        for name, id, _ in level.tables
    ]
    names += [
        EntryLinked(space=NAMESPACE, name=child.name, kind=NAMESPACE, id=child.id, location=child.location)
        for child in level.below
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
    parent: FoundLog[NamespaceState],
    target: Identifier,
    level: _Level,
    token: Token | None,
) -> None:
    link = EntryLinked(space=NAMESPACE, name=target[-1], kind=NAMESPACE, id=level.id, location=level.location)

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if view.state.entry(NAMESPACE, target[-1]) is not None:
            raise _exists(target)
        check_not_forgotten(view.state, level.id, quoted(target))
        return Draft(events=encode([link]))

    commit_in(parent, target[:-1], decide, token)


def _exists(namespace: Identifier) -> NamespaceExists:
    return NamespaceExists(
        f"there is a namespace {quoted(namespace)} already: drop it, or choose another name"
    )
