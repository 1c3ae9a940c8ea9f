"""Staged changes: a table that is prepared in full before anybody can see it.

A `Stage` is a plain value that can be stored or sent, so whoever stages may ask again after a crash: the ids in it make
the commit the same commit. Nothing is visible before `commit`, and that makes the table visible with its metadata and
its files at one moment: the link in its namespace for a new table, the commit in its own log for a replaced one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakelog.catalog.commits import Written, check, files_event, gone_as_no_such_table
from lakelog.catalog.conflicts import Operation
from lakelog.catalog.data_file import DataFile, check_files, of_write
from lakelog.catalog.errors import NoSuchNamespace, NoSuchTable, TableExists
from lakelog.catalog.events import EntryLinked, TableCreated, TableEvent, TableReplaced, encode
from lakelog.catalog.log_cache import TrackedLog
from lakelog.catalog.name_tree import Found, NameTree, no_such_namespace, no_such_table
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.namespace_state import RELATION, TABLE, NamespaceState
from lakelog.catalog.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.schema import Schema
from lakelog.catalog.table_state import TableState, apply
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import AlreadyExists, InvalidInput, LogSealed

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create-or-replace"
KINDS = (CREATE, REPLACE, CREATE_OR_REPLACE)


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table to be: everything that its commit needs, decided when it was staged.

    `identifier` is None for a table that is only known by its place. `replaced` is the version of the table that gives
    way, None for a new table. `url` is where its files go, under `data/`, with `write.id` in their names.
    """

    kind: str
    identifier: tuple[str, ...] | None
    namespace: str | None
    namespace_base: int
    table_id: str
    commit_id: str
    location: str
    url: str
    own_location: bool
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: dict[str, str]
    provider: str | None
    comment: str | None
    replaced: int | None
    write: WriteRef

    @property
    def title(self) -> str:
        return quoted(self.identifier) if self.identifier else self.url


def commit(tree: NameTree, stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    """Make the staged table visible with `files`. The same stage may be committed again: it happens once.

    TableExists, NoSuchTable, NoSuchNamespace, CommitConflict: nothing has become visible.
    """
    files = of_write(files, stage.write)
    check_files(files, stage.schema, (stage.spec,))
    if stage.replaced is None:
        return _create(tree, stage, files)
    tracked = tree.logs.table(stage.location)
    if stage.identifier is not None and not _still_linked(tree, stage, tracked):
        return _replace_what_is_gone(tree, stage, files)
    try:
        return _replace(tracked, stage, files)
    except NoSuchTable:
        return _replace_what_is_gone(tree, stage, files)


def _still_linked(tree: NameTree, stage: Stage, tracked: TrackedLog[TableState]) -> bool:
    """Tell whether the name still leads to the table that was staged against; NoSuchNamespace, TableExists."""
    assert stage.identifier is not None
    namespace = tree.namespace(stage.identifier[:-1])
    entry = namespace.view.state.entry(RELATION, stage.identifier[-1])
    if entry is None or entry.id == stage.commit_id:
        # The second is what `_replace_what_is_gone` made when this stage was committed before.
        return False
    if entry.id == stage.table_id:
        return True
    raise TableExists(f"{stage.title} is another table now: it was dropped and created again meanwhile")


def _replace(tracked: TrackedLog[TableState], stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    assert stage.replaced is not None

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        written = Written(base=view.state.current)
        check(Operation.REPLACE, view, passed, written, _no_files, stage.title)
        replaced = TableReplaced(
            schema=stage.schema,
            spec=stage.spec,
            sort_order=stage.sort_order,
            properties=stage.properties,
            provider=stage.provider,
            comment=stage.comment,
        )
        metadata = msgspec.structs.replace(view.state.current, schema=stage.schema, specs=(stage.spec,))
        changed, blobs = files_event(Operation.REPLACE, files, (), metadata)
        events: list[TableEvent] = [replaced, changed] if files else [replaced]
        return Draft(events=encode(events), blobs=blobs, write=stage.write)

    view = tracked.at_least(stage.replaced)
    with gone_as_no_such_table(stage.title):
        committed = tracked.log.commit(view, decide, commit_id=stage.commit_id, base=stage.replaced)
    return Found(tracked, tracked.offer(committed.view))


def _no_files(_write: str) -> None:
    raise AssertionError("a replace never looks at files")


def _replace_what_is_gone(tree: NameTree, stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    """The table was dropped meanwhile: REPLACE fails, CREATE OR REPLACE creates a new one.

    Its files stand under the dropped table; they are copied, which costs as much as writing them, but is rare.
    """
    if stage.kind == REPLACE:
        assert stage.identifier is not None or stage.own_location
        raise (
            no_such_table(stage.identifier)
            if stage.identifier
            else NoSuchTable(f"there is no table at {stage.url}")
        )
    if stage.own_location or stage.identifier is None:
        raise NoSuchTable(f"{stage.title} was dropped while it was being replaced: run the statement again")
    table_id = stage.commit_id
    location = (
        stage.location.rpartition("/")[0] + f"/t-{table_id}" if "/" in stage.location else f"t-{table_id}"
    )
    new = msgspec.structs.replace(
        stage,
        table_id=table_id,
        location=location,
        url=tree.logs.url(location),
        replaced=None,
        kind=CREATE_OR_REPLACE,
    )
    source, target = tree.logs.table(stage.location), tree.logs.table(location)
    for file in files:
        data = source.store.get(_key(source.prefix, file.path))
        assert data is not None, "files of a write under way are not deleted"
        target.store.put(_key(target.prefix, file.path), data)
    return _create(tree, new, files)


def _key(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix else path


def _create(tree: NameTree, stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    tracked = tree.logs.table(stage.location)
    created = TableCreated(
        schema=stage.schema,
        spec=stage.spec,
        sort_order=stage.sort_order,
        properties=stage.properties,
        namespace=stage.namespace,
        name=stage.identifier[-1] if stage.identifier else None,
        provider=stage.provider,
        comment=stage.comment,
        own_location=stage.own_location,
    )
    metadata = apply(TableState(), created, 1, ()).current
    changed, blobs = files_event(Operation.APPEND, files, (), metadata)
    events: list[TableEvent] = [created, changed] if files else [created]
    draft = Draft(events=encode(events), blobs=blobs, write=stage.write)
    if stage.identifier is not None:
        _check_free(tree, stage)
    try:
        view = tracked.offer(tracked.log.create(draft, log_id=stage.table_id, commit_id=stage.commit_id))
    except AlreadyExists as error:
        raise TableExists(
            f"there is a table's log at {stage.url} already: choose another place, or register that table"
        ) from error
    if stage.identifier is not None:
        _link(tree, stage)
    return Found(tracked, view)


def _check_free(tree: NameTree, stage: Stage) -> None:
    """Fail before anything is written where the commit would fail anyway."""
    assert stage.identifier is not None
    namespace = tree.writable(stage.identifier[:-1])
    entry = namespace.view.state.entry(RELATION, stage.identifier[-1])
    if entry is not None and entry.id != stage.table_id and tree.find_table(stage.identifier) is not None:
        raise table_exists(stage.identifier)


def _link(tree: NameTree, stage: Stage) -> None:
    """Link the new table: the moment of its creation."""
    assert stage.identifier is not None
    name = stage.identifier[-1]
    namespace = tree.writable(stage.identifier[:-1])
    if stage.namespace is not None and namespace.tracked.location != stage.namespace:
        raise NoSuchNamespace(f"the namespace of {stage.title} was dropped and created again meanwhile")
    linked = EntryLinked(space=RELATION, name=name, kind=TABLE, id=stage.table_id, location=stage.location)

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        entry = view.state.entry(RELATION, name)
        if entry is not None and entry.id != stage.table_id:
            raise table_exists(stage.identifier)
        return Draft(events=encode([linked]))

    try:
        committed = namespace.tracked.log.commit(
            namespace.tracked.at_least(stage.namespace_base),
            decide,
            commit_id=stage.commit_id,
            base=stage.namespace_base,
        )
    except LogSealed as error:
        raise no_such_namespace(stage.identifier[:-1]) from error
    namespace.tracked.offer(committed.view)


def table_exists(identifier: Identifier | None) -> TableExists:
    assert identifier is not None
    return TableExists(f"there is a table {quoted(identifier)} already: drop it, or choose another name")


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is not a kind of staged change: it is one of {', '.join(KINDS)}")
