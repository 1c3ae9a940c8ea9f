"""Staged changes: a table that is prepared in full before readers can see it.

A `Stage` is a plain value that can be stored or sent, so its client may retry after a crash: the ids in it make the
commit the same commit. Nothing is visible before `commit_stage`, which makes the table visible with its metadata and
its files at one moment: the link in its namespace for a new table, the commit in its own log for a replaced one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from lakelog.catalog.core.ddl import table_places
from lakelog.catalog.core.files import DataFile, check_files, check_written_by, file_path, of_write, with_ids
from lakelog.catalog.core.logs import (
    Found,
    FoundBy,
    LogCache,
    NameTree,
    TableHead,
    Token,
    TrackedLog,
    Written,
    another_table,
    check_conflicts,
    check_not_forgotten,
    commit_in,
    files_event,
    is_final,
    no_files,
    no_such_namespace,
    no_such_table,
)
from lakelog.catalog.core.schema import Constraint, PartitionSpec, Schema, SortOrder, ready, refuse_identity
from lakelog.catalog.core.state import (
    RELATION,
    TABLE,
    ClusteringChanged,
    ConstraintAdded,
    EntryLinked,
    NamespaceState,
    Operation,
    TableCreated,
    TableDropped,
    TableEvent,
    TableReplaced,
    TableState,
    apply,
    check_no_branches,
    encode,
    namespace_events,
)
from lakelog.catalog.errors import (
    LocationTaken,
    NameReassigned,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
    ViewExists,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, View, WriteRef, each_change
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    InvalidInput,
    LakelogError,
    StorageError,
    Unsupported,
)

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create-or-replace"
KINDS = (CREATE, REPLACE, CREATE_OR_REPLACE)


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prepared table: everything that its commit needs, decided when it was staged.

    `identifier` is None for a table that is only known by its place. `replaced` is the version of the table that is
    replaced, None for a new table. `url` is where its files go, under `data/`, with `write.id` in their names.
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
    constraints: tuple[Constraint, ...] = ()
    clustering: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return quoted(self.identifier) if self.identifier else self.url


ready(Stage)


GoOn: TypeAlias = Callable[[TrackedLog[TableState], View[TableState]], View[TableState]]
"""Makes more commits to the log of a table that no name leads to yet, and returns the last view."""


def create_from(tree: NameTree, stage: Stage, draft: Draft, go_on: GoOn) -> TableHead:
    """Make a new table visible with a first commit of the caller's, and those that `go_on` makes after it.

    Raises as `commit_stage`. Where it fails, nothing is visible, and a vacuum deletes what was written.
    """
    namespace = _namespace(tree, stage)
    found = _unless_final(tree, stage, namespace, lambda: _create_log(tree, stage, namespace, draft, go_on))
    return TableHead(tree.logs, found.tracked, found.view, stage.title, _found_by(stage))


def commit_stage(tree: NameTree, stage: Stage, files: Sequence[DataFile]) -> TableHead:
    """Make the staged table visible with `files`. The same stage may be committed again: it happens once.

    TableExists, NoSuchTable, NoSuchNamespace, CommitConflict (NameReassigned): nothing has become visible.
    """
    found = _commit(tree, stage, files)
    return TableHead(tree.logs, found.tracked, found.view, stage.title, _found_by(stage))


def _found_by(stage: Stage) -> FoundBy | None:
    """Return the name that the table is to have, or has where it is replaced; None for one that is only known by its
    place."""
    if stage.identifier is None or stage.namespace is None:
        return None
    return FoundBy(stage.identifier, stage.namespace)


def _commit(tree: NameTree, stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    check_written_by(files, stage.write)
    if files:
        refuse_identity(stage.schema, "create the table without rows, and write the rows afterwards")
    files = of_write(files, stage.write)
    check_files(files, stage.schema, (stage.spec,))
    namespace = _namespace(tree, stage)
    done = _committed_before(tree, stage, namespace)
    if done is not None:
        return done
    if namespace is not None and namespace.view.sealed:
        raise no_such_namespace(_name_of(stage)[:-1])
    return _unless_final(tree, stage, namespace, lambda: _commit_anew(tree, stage, namespace, files))


def _unless_final(
    tree: NameTree,
    stage: Stage,
    namespace: Found[NamespaceState] | None,
    make: Callable[[], Found[TableState]],
) -> Found[TableState]:
    """Return what `make` does. Where it is refused before the namespace's log was asked for the link, and another
    client has committed the link that an earlier try proposed: the table of that."""
    try:
        return make()
    except (CommitUnknown, StorageError):
        raise
    except LakelogError as error:
        if namespace is None or stage.kind == REPLACE:
            raise
        if is_final(namespace.tracked, _link_token(stage, namespace), error):
            raise
        now = Found(namespace.tracked, namespace.tracked.known or namespace.view)
        done = _committed_before(tree, stage, now)
        if done is None:
            raise
        return done


def _commit_anew(
    tree: NameTree, stage: Stage, namespace: Found[NamespaceState] | None, files: Sequence[DataFile]
) -> Found[TableState]:
    if stage.replaced is None:
        return _create_unless_taken(tree, stage, namespace, files)
    if namespace is not None and not _still_linked(stage, namespace):
        return _replace_dropped(tree, stage, namespace, files)
    try:
        return _replace(tree.logs, stage, files)
    except NoSuchTable:
        return _replace_dropped(tree, stage, namespace, files)


def _namespace(tree: NameTree, stage: Stage) -> Found[NamespaceState] | None:
    """Return the namespace of the stage, even if its name leads to another one now; None without a name.

    It is as of the staging or newer: the commit that links a new table in it checks what was committed since.
    """
    if stage.namespace is None:
        return None
    if not stage.namespace:
        return tree.root()
    tracked = tree.logs.namespace(stage.namespace)
    is_new = stage.replaced is None
    return Found(tracked, tracked.at_least(stage.namespace_base) if is_new else tracked.current())


def _committed_before(
    tree: NameTree, stage: Stage, namespace: Found[NamespaceState] | None
) -> Found[TableState] | None:
    """Return the table that an earlier commit of this stage made, by the commit's id, as names may change."""
    if stage.replaced is not None:
        tracked = tree.logs.table(stage.location)
        head = tracked.current()
        if tracked.find(stage.commit_id, stage.replaced + 1, head.version) is not None:
            return Found(tracked, head)
    if namespace is None:
        return None
    log = namespace.tracked.log
    version = namespace.tracked.find(stage.commit_id, stage.namespace_base + 1, namespace.view.version)
    if version is None:
        return None
    location = stage.location
    for commit in log.commits(first=version, last=version):
        for change in each_change(commit):
            if change.commit_id == stage.commit_id:
                linked = (e for e in namespace_events(change) if isinstance(e, EntryLinked))
                location = next((e.location for e in linked), location)
    tracked = tree.logs.table(location)
    return Found(tracked, tracked.current())


def _still_linked(stage: Stage, namespace: Found[NamespaceState]) -> bool:
    """Return whether the name still leads to the table to replace. NameReassigned where it leads to another one."""
    entry = namespace.view.state.entry(RELATION, _name_of(stage)[-1])
    if entry is not None and entry.id != stage.table_id:
        raise NameReassigned(
            f"{stage.title} was dropped and re-created, or its name was given to another table, while it was being "
            "replaced. Nothing was changed: run the statement again to replace the table of that name",
            version=namespace.view.version,
        )
    return entry is not None


def _replace(logs: LogCache, stage: Stage, files: Sequence[DataFile]) -> Found[TableState]:
    if stage.replaced is None:
        raise InvalidInput(f"{stage.title} was not staged as a replacement: stage it again")
    tracked = logs.table(stage.location)
    written = Written(stage.replaced, stage.schema, no_files)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.REPLACE, view, passed, written, stage.title)
        check_no_branches(view.state.branches, stage.title, "replaced")
        replaced = TableReplaced(
            schema=stage.schema,
            spec=stage.spec,
            sort_order=stage.sort_order,
            properties=stage.properties,
            provider=stage.provider,
            comment=stage.comment,
        )
        metadata = msgspec.structs.replace(view.state.current, schema=stage.schema, specs=(stage.spec,))
        changed, blobs = files_event(Operation.REPLACE, with_ids(files, view.state.next_row), (), metadata)
        events: list[TableEvent] = [replaced, *_optional_events(stage), *([changed] if files else [])]
        return Draft(events=encode(events), blobs=blobs, write=stage.write)

    own = tracked.transaction.own_since_staged(stage.commit_id)
    if own:
        unversioned = Written(-1, stage.schema, no_files)
        check_conflicts(Operation.REPLACE, tracked.current(), own, unversioned, stage.title)
    view = tracked.at_least(stage.replaced)
    if view.log_id != stage.table_id:
        raise another_table(stage.title)
    token = Token(commit_id=stage.commit_id, bases={tracked.location: stage.replaced})
    head = TableHead(logs, tracked, view, stage.title, _found_by(stage))
    return Found(tracked, head.commit(decide, token).view)


def _replace_dropped(
    tree: NameTree, stage: Stage, namespace: Found[NamespaceState] | None, files: Sequence[DataFile]
) -> Found[TableState]:
    """Handle a table that was dropped meanwhile: REPLACE fails, CREATE OR REPLACE creates a new one.

    The staged files are in the dropped table's folder; they are copied, which costs as much as writing them, but is
    rare.
    """
    if stage.kind == REPLACE:
        raise (
            no_such_table(stage.identifier)
            if stage.identifier
            else NoSuchTable(f"there is no table at {stage.url}")
        )
    if stage.own_location or stage.identifier is None:
        raise NoSuchTable(f"{stage.title} was dropped while it was being replaced: run the statement again")
    # The commit's id becomes the table's, so that a retried commit of this stage makes the same table.
    location = table_places.new_table(tree.logs, namespace, stage.commit_id)
    write = WriteRef(id=stage.write.id, version=0)
    source, target = tree.logs.table(stage.location), tree.logs.table(location)
    moved = []
    for number, file in enumerate(files):
        data = source.store.get(_key(source.prefix, file.path))
        if data is None:
            raise NoSuchTable(
                f"{stage.title} and its files were removed while it was being replaced: run the statement again"
            )
        path = file_path(write, f"{number:05d}")
        target.store.put(_key(target.prefix, path), data)
        moved.append(msgspec.structs.replace(file, path=path))
    new = msgspec.structs.replace(
        stage,
        table_id=stage.commit_id,
        location=location,
        url=tree.logs.url(location),
        replaced=None,
        write=write,
    )
    return _create_unless_taken(tree, new, namespace, moved)


def _create_unless_taken(
    tree: NameTree, stage: Stage, namespace: Found[NamespaceState] | None, files: Sequence[DataFile]
) -> Found[TableState]:
    """Create the table. Where another one has its name by now: TableExists, or NameReassigned for CREATE OR REPLACE."""
    try:
        return _create(tree, stage, namespace, files)
    except (ViewExists, LocationTaken):
        raise
    except TableExists as error:
        if stage.kind != CREATE_OR_REPLACE or namespace is None:
            raise
        raise NameReassigned(
            f"another client created {stage.title}, or gave that name to another table, while this statement was "
            "creating it. Nothing was changed: run the statement again to replace that table",
            version=namespace.view.version,
        ) from error


def _optional_events(stage: Stage) -> list[TableEvent]:
    """Return the events of a new table for its optional clustering and constraints."""
    clustering = [ClusteringChanged(columns=stage.clustering)] if stage.clustering else []
    return [*clustering, *(ConstraintAdded(constraint=each) for each in stage.constraints)]


def _key(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix else path


def created_event(stage: Stage) -> TableCreated:
    """Return the first event of the log of a staged table."""
    return TableCreated(
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


def _create(
    tree: NameTree, stage: Stage, namespace: Found[NamespaceState] | None, files: Sequence[DataFile]
) -> Found[TableState]:
    created = created_event(stage)
    metadata = apply(TableState(), created, 1, ()).current
    changed, blobs = files_event(Operation.APPEND, with_ids(files, TableState().next_row), (), metadata)
    events: list[TableEvent] = [created, *_optional_events(stage), *([changed] if files else [])]
    return _create_log(tree, stage, namespace, Draft(events=encode(events), blobs=blobs, write=stage.write))


def _create_log(
    tree: NameTree,
    stage: Stage,
    namespace: Found[NamespaceState] | None,
    draft: Draft,
    go_on: GoOn | None = None,
) -> Found[TableState]:
    tracked = tree.logs.table(stage.location)
    if namespace is not None:
        _check_free(tree, stage, namespace)
    elif tree.logs.is_a_cut:
        raise Unsupported(
            f"a table without a name, at {stage.url}, cannot be created in a transaction, which can only make "
            "tables with names visible: give it a name, or create it before the transaction"
        )
    try:
        view = tracked.create(draft, log_id=stage.table_id, commit_id=stage.commit_id)
    except AlreadyExists as error:
        raise LocationTaken(
            f"there is a table's log at {stage.url} already: choose another place. If no name leads to that table, "
            f"register it by CALL <catalog>.system.register_table('<name>', '{stage.url}'), or drop it by its place: "
            f"DROP TABLE <catalog>.{quoted([stage.url])}"
        ) from error
    if view.sealed or view.log_id != stage.table_id:
        raise NoSuchTable(f"{stage.title} was created by an earlier request, and dropped since")
    if go_on is not None:
        try:
            view = go_on(tracked, view)
        except (CommitUnknown, StorageError):
            raise
        except LakelogError:
            _give_up(tracked, view)
            raise
    if namespace is not None:
        try:
            _link(stage, namespace)
        except (TableExists, NoSuchNamespace):
            if stage.own_location or go_on is not None:
                _give_up(tracked, view)
            raise
    return Found(tracked, view)


def _give_up(tracked: TrackedLog[TableState], view: View[TableState]) -> None:
    """Seal a log that no name will ever lead to: it releases its place, and what others keep for it."""
    sealed = Draft(events=encode([TableDropped()]), seals=True)
    tracked.commit(view, lambda _view, _passed: sealed)


def _check_free(tree: NameTree, stage: Stage, namespace: Found[NamespaceState]) -> None:
    """Fail before anything is written where the commit would certainly fail."""
    identifier = _name_of(stage)
    check_no_view(namespace.view.state, identifier)
    taken = namespace.view.state.entry(RELATION, identifier[-1]) is not None
    if taken and tree.is_taken(identifier):
        raise table_exists(identifier)


def _name_of(stage: Stage) -> Identifier:
    """Return the name of a stage that is to be linked. A client had the stage meanwhile, and may have changed it."""
    if stage.identifier is None:
        raise InvalidInput("a table that was staged in a namespace has lost its name: stage it again")
    return stage.identifier


def _link(stage: Stage, namespace: Found[NamespaceState]) -> None:
    """Link the new table: the moment of its creation."""
    identifier = _name_of(stage)
    linked = EntryLinked(
        space=RELATION, name=identifier[-1], kind=TABLE, id=stage.table_id, location=stage.location
    )

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        check_free(view.state, identifier)
        check_not_forgotten(view.state, stage.table_id, stage.title)
        return Draft(events=encode([linked]))

    commit_in(namespace, identifier[:-1], decide, _link_token(stage, namespace))


def _link_token(stage: Stage, namespace: Found[NamespaceState]) -> Token:
    return Token(commit_id=stage.commit_id, bases={namespace.tracked.location: stage.namespace_base})


def table_exists(identifier: Identifier) -> TableExists:
    return TableExists(f"there is a table {quoted(identifier)} already: drop it, or choose another name")


def check_free(state: NamespaceState, identifier: Identifier) -> None:
    """Raise ViewExists or TableExists where the new name of a table is taken."""
    check_no_view(state, identifier)
    if state.entry(RELATION, identifier[-1]) is not None:
        raise table_exists(identifier)


def check_no_view(state: NamespaceState, identifier: Identifier) -> None:
    """Raise ViewExists where the name of a table is taken by a view: they share a space of names."""
    if state.definition(RELATION, identifier[-1]) is not None:
        raise ViewExists(f"there is a view {quoted(identifier)} already: drop it, or choose another name")


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is not a kind of staged change: use one of {', '.join(KINDS)}")
