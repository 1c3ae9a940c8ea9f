"""Staged changes: a table is prepared in full before readers can see it.

A `StagedTable` is a plain value that can be stored or sent. Its ids make a retry after a crash the same commit.
Nothing is visible before `commit_stage`. It makes the table visible with its metadata and its files in a
single moment. The moment is the link in its namespace for a new table, and the commit in its own log for a
replaced table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from lakelog.catalog.core.ddl import table_places
from lakelog.catalog.core.files.data_file import DataFile, check_files, check_written_by, file_path, of_write
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.commits import (
    OperationFacts,
    Token,
    check_conflicts,
    files_event,
    is_final,
    no_files,
)
from lakelog.catalog.core.logs.name_tree import (
    FoundLog,
    NameTree,
    check_not_forgotten,
    commit_in,
    no_such_namespace,
    no_such_table,
)
from lakelog.catalog.core.logs.table_head import FoundName, TableHead, another_table
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.constraints import Constraint
from lakelog.catalog.core.schema.identity import refuse_identity
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.decoded_events import namespace_events
from lakelog.catalog.core.state.events import (
    ClusteringChanged,
    ConstraintAdded,
    EntryLinked,
    TableCreated,
    TableDropped,
    TableEvent,
    TableReplaced,
    encode,
)
from lakelog.catalog.core.state.namespace_state import RELATION, TABLE, NamespaceState
from lakelog.catalog.core.state.refs import check_no_branches
from lakelog.catalog.core.state.table_state import TableState, apply
from lakelog.catalog.errors import (
    CommitConflict,
    LocationTaken,
    NameReassigned,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
    ViewExists,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, LogView, WriteRef, each_change
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    InvalidInput,
    LakelogError,
    NotFound,
    StorageError,
    Unsupported,
)
from lakelog.log.stores import copy_object

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create-or-replace"
KINDS = (CREATE, REPLACE, CREATE_OR_REPLACE)


class StagedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prepared table: everything that its commit needs, decided when it was staged.

    `identifier` is None for a table that is only known by its place. `replaced` is the version of the table
    that is replaced, None for a new table. `url` is the parent of its files, which go under `data/` with
    `write.id` in their names.
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


ready(StagedTable)


GoOn: TypeAlias = Callable[[TrackedLog[TableState], LogView[TableState]], LogView[TableState]]
"""Makes more commits to the log of a table that no name leads to yet, and returns the last view."""


def create_from(tree: NameTree, stage: StagedTable, draft: Draft, go_on: GoOn) -> TableHead:
    """Make a new table visible with the caller's first commit, and the commits that `go_on` makes after it.

    Raises the errors of `commit_stage`. If it fails, nothing is visible, and a vacuum deletes whatever was
    written.
    """
    namespace = _namespace(tree, stage)
    table = _unless_final(tree, stage, namespace, lambda: _create_log(tree, stage, namespace, draft, go_on))
    return TableHead(tree.logs, table.tracked, table.view, stage.title, _found_by(stage))


def commit_stage(tree: NameTree, stage: StagedTable, files: Sequence[DataFile]) -> TableHead:
    """Make the staged table visible with `files`.

    The same stage may be committed again, and takes effect once. Raises TableExists, NoSuchTable,
    NoSuchNamespace or CommitConflict (NameReassigned): nothing has become visible.
    """
    table = _commit(tree, stage, files)
    return TableHead(tree.logs, table.tracked, table.view, stage.title, _found_by(stage))


def _found_by(stage: StagedTable) -> FoundName | None:
    """Return the name that the table has, or will have if it is new; None if only its place is known."""
    if stage.identifier is None or stage.namespace is None:
        return None
    return FoundName(stage.identifier, stage.namespace)


def _commit(tree: NameTree, stage: StagedTable, files: Sequence[DataFile]) -> FoundLog[TableState]:
    check_written_by(files, stage.write)
    if files:
        refuse_identity(stage.schema, "create the table without rows, and write the rows afterwards")
    files = of_write(files, stage.write)
    check_files(files, stage.schema, (stage.spec,))
    namespace = _namespace(tree, stage)
    committed_table = _committed_before(tree, stage, namespace)
    if committed_table is not None:
        return committed_table
    if namespace is not None and namespace.view.sealed:
        raise no_such_namespace(_name_of(stage)[:-1])
    return _unless_final(tree, stage, namespace, lambda: _commit_anew(tree, stage, namespace, files))


def _unless_final(
    tree: NameTree,
    stage: StagedTable,
    namespace: FoundLog[NamespaceState] | None,
    make: Callable[[], FoundLog[TableState]],
) -> FoundLog[TableState]:
    """Return the table that `make` returns.

    `make` may be refused before it asked the namespace's log for the link. If another client has committed
    the link that an earlier attempt proposed, return the table of that link.
    """
    try:
        return make()
    except (CommitUnknown, StorageError):
        raise
    except LakelogError as error:
        if namespace is None or stage.kind == REPLACE:
            raise
        if is_final(namespace.tracked, _link_token(stage, namespace), error):
            raise
        known_namespace = FoundLog(namespace.tracked, namespace.tracked.known or namespace.view)
        committed_table = _committed_before(tree, stage, known_namespace)
        if committed_table is None:
            raise
        return committed_table


def _commit_anew(
    tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState] | None, files: Sequence[DataFile]
) -> FoundLog[TableState]:
    if stage.replaced is None:
        return _create_unless_taken(tree, stage, namespace, files)
    if namespace is not None and not _still_linked(stage, namespace):
        return _replace_dropped(tree, stage, namespace, files)
    try:
        return _replace(tree.logs, stage, files)
    except NoSuchTable:
        return _replace_dropped(tree, stage, namespace, files)


def _namespace(tree: NameTree, stage: StagedTable) -> FoundLog[NamespaceState] | None:
    """Return the namespace of the stage, even if its name leads to another namespace now.

    None without a name. It is as of the staging or newer. The commit that links a new table in it checks the
    commits since then.
    """
    if stage.namespace is None:
        return None
    if not stage.namespace:
        return tree.root()
    namespace_log = tree.logs.namespace(stage.namespace)
    is_new = stage.replaced is None
    return FoundLog(
        namespace_log, namespace_log.at_least(stage.namespace_base) if is_new else namespace_log.current()
    )


def _committed_before(
    tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState] | None
) -> FoundLog[TableState] | None:
    """Return the table that an earlier commit of this stage made.

    It is found by the commit's id, as names may change.
    """
    if stage.replaced is not None:
        table_log = tree.logs.table(stage.location)
        head = table_log.current()
        if table_log.find(stage.commit_id, stage.replaced + 1, head.version) is not None:
            return FoundLog(table_log, head)
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
                link_events = (e for e in namespace_events(change) if isinstance(e, EntryLinked))
                location = next((e.location for e in link_events), location)
    table_log = tree.logs.table(location)
    return FoundLog(table_log, table_log.current())


def _still_linked(stage: StagedTable, namespace: FoundLog[NamespaceState]) -> bool:
    """Return whether the name still leads to the table to replace.

    Raises NameReassigned if it leads to another table.
    """
    entry = namespace.view.state.entry(RELATION, _name_of(stage)[-1])
    if entry is not None and entry.id != stage.table_id:
        raise NameReassigned(
            f"{stage.title} was dropped and re-created, or its name was given to another table, while it was being "
            "replaced. Nothing was changed: run the statement again to replace the table of that name",
            version=namespace.view.version,
        )
    return entry is not None


def _replace(logs: LogCache, stage: StagedTable, files: Sequence[DataFile]) -> FoundLog[TableState]:
    if stage.replaced is None:
        raise InvalidInput(f"{stage.title} was not staged as a replacement: stage it again")
    table_log = logs.table(stage.location)
    write_facts = OperationFacts(stage.replaced, stage.schema, no_files)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(OperationKind.REPLACE, view, passed_commits, write_facts, stage.title)
        check_no_branches(view.state.branches, stage.title, "replaced")
        replace_event = TableReplaced(
            schema=stage.schema,
            spec=stage.spec,
            sort_order=stage.sort_order,
            properties=stage.properties,
            provider=stage.provider,
            comment=stage.comment,
        )
        metadata = msgspec.structs.replace(view.state.current, schema=stage.schema, specs=(stage.spec,))
        files_change, blobs = files_event(
            OperationKind.REPLACE, with_ids(files, view.state.next_row), (), metadata
        )
        events: list[TableEvent] = [
            replace_event,
            *_optional_events(stage),
            *([files_change] if files else []),
        ]
        return Draft(events=encode(events), blobs=blobs, write=stage.write)

    own = table_log.transaction.own_since_staged(stage.commit_id)
    if own:
        unversioned_facts = OperationFacts(-1, stage.schema, no_files)
        check_conflicts(OperationKind.REPLACE, table_log.current(), own, unversioned_facts, stage.title)
    view = table_log.at_least(stage.replaced)
    if view.log_id != stage.table_id:
        raise another_table(stage.title)
    token = Token(commit_id=stage.commit_id, bases={table_log.location: stage.replaced})
    head = TableHead(logs, table_log, view, stage.title, _found_by(stage))
    return FoundLog(table_log, head.commit(decide, token).view)


def _replace_dropped(
    tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState] | None, files: Sequence[DataFile]
) -> FoundLog[TableState]:
    """Handle a table that was dropped since it was staged.

    REPLACE fails, CREATE OR REPLACE creates a new table. The staged files are in the dropped table's folder,
    and are copied. If the store cannot copy, that costs as much as writing them, but it is rare.
    """
    if stage.kind == REPLACE:
        raise (
            no_such_table(stage.identifier)
            if stage.identifier
            else NoSuchTable(f"there is no table at {stage.url}")
        )
    if stage.own_location or stage.identifier is None:
        raise NoSuchTable(f"{stage.title} was dropped while it was being replaced: run the statement again")
    # The commit's id becomes the table's id, so that a retried commit of this stage makes the same table.
    location = table_places.new_table(tree.logs, namespace, stage.commit_id)
    write = WriteRef(id=stage.write.id, version=0)
    source, target = tree.logs.table(stage.location), tree.logs.table(location)
    moved_files = []
    for number, file in enumerate(files):
        path = file_path(write, f"{number:05d}")
        try:
            copy_object(source.store, _key(source.prefix, file.path), target.store, _key(target.prefix, path))
        except NotFound:
            raise NoSuchTable(
                f"{stage.title} and its files were removed while it was being replaced: run the statement again"
            ) from None
        moved_files.append(msgspec.structs.replace(file, path=path))
    new = msgspec.structs.replace(
        stage,
        table_id=stage.commit_id,
        location=location,
        url=tree.logs.url(location),
        replaced=None,
        write=write,
    )
    return _create_unless_taken(tree, new, namespace, moved_files)


def _create_unless_taken(
    tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState] | None, files: Sequence[DataFile]
) -> FoundLog[TableState]:
    """Create the table.

    Raises TableExists if another table has its name by now; NameReassigned instead for CREATE OR REPLACE.
    """
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


def _optional_events(stage: StagedTable) -> list[TableEvent]:
    """Return the events of a new table for its optional clustering and constraints."""
    clustering = [ClusteringChanged(columns=stage.clustering)] if stage.clustering else []
    return [*clustering, *(ConstraintAdded(constraint=constraint) for constraint in stage.constraints)]


def _key(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix else path


def created_event(stage: StagedTable) -> TableCreated:
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
    tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState] | None, files: Sequence[DataFile]
) -> FoundLog[TableState]:
    create_event = created_event(stage)
    metadata = apply(TableState(), create_event, 1, ()).current
    files_change, blobs = files_event(
        OperationKind.APPEND, with_ids(files, TableState().next_row), (), metadata
    )
    events: list[TableEvent] = [create_event, *_optional_events(stage), *([files_change] if files else [])]
    return _create_log(tree, stage, namespace, Draft(events=encode(events), blobs=blobs, write=stage.write))


def _create_log(
    tree: NameTree,
    stage: StagedTable,
    namespace: FoundLog[NamespaceState] | None,
    draft: Draft,
    go_on: GoOn | None = None,
) -> FoundLog[TableState]:
    table_log = tree.logs.table(stage.location)
    if namespace is not None:
        _check_free(tree, stage, namespace)
    elif tree.logs.is_a_cut:
        raise Unsupported(
            f"a table without a name, at {stage.url}, cannot be created in a transaction, which can only make "
            "tables with names visible: give it a name, or create it before the transaction"
        )
    try:
        view = table_log.create(draft, log_id=stage.table_id, commit_id=stage.commit_id)
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
            view = go_on(table_log, view)
        except (CommitUnknown, StorageError):
            raise
        except LakelogError:
            _give_up(table_log, view)
            raise
    if namespace is not None:
        try:
            _link(stage, namespace)
        except (CommitConflict, NoSuchNamespace, TableExists):
            if stage.own_location or go_on is not None:
                _give_up(table_log, view)
            raise
    return FoundLog(table_log, view)


def _give_up(tracked: TrackedLog[TableState], view: LogView[TableState]) -> None:
    """Seal a log that no name will ever lead to.

    That releases its place, and everything that others keep for it.
    """
    seal_draft = Draft(events=encode([TableDropped()]), seals=True)
    tracked.commit(view, lambda _view, _passed: seal_draft)


def _check_free(tree: NameTree, stage: StagedTable, namespace: FoundLog[NamespaceState]) -> None:
    """Raise the error of a commit that would certainly fail, before anything is written."""
    identifier = _name_of(stage)
    namespace.tracked.log.check_writable(namespace.view)
    check_no_view(namespace.view.state, identifier)
    has_entry = namespace.view.state.entry(RELATION, identifier[-1]) is not None
    if has_entry and tree.is_taken(identifier):
        raise table_exists(identifier)


def _name_of(stage: StagedTable) -> Identifier:
    """Return the name of a stage that is to be linked.

    Checked, because a client had the stage and may have changed it.
    """
    if stage.identifier is None:
        raise InvalidInput("a table that was staged in a namespace has lost its name: stage it again")
    return stage.identifier


def _link(stage: StagedTable, namespace: FoundLog[NamespaceState]) -> None:
    """Link the new table, which is the moment of its creation."""
    identifier = _name_of(stage)
    link_event = EntryLinked(
        space=RELATION, name=identifier[-1], kind=TABLE, id=stage.table_id, location=stage.location
    )

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        check_free(view.state, identifier)
        check_not_forgotten(view.state, stage.table_id, stage.title)
        return Draft(events=encode([link_event]))

    commit_in(namespace, identifier[:-1], decide, _link_token(stage, namespace))


def _link_token(stage: StagedTable, namespace: FoundLog[NamespaceState]) -> Token:
    return Token(commit_id=stage.commit_id, bases={namespace.tracked.location: stage.namespace_base})


def table_exists(identifier: Identifier) -> TableExists:
    return TableExists(f"there is a table {quoted(identifier)} already: drop it, or choose another name")


def check_free(state: NamespaceState, identifier: Identifier) -> None:
    """Raise ViewExists or TableExists if the new name of a table is taken."""
    check_no_view(state, identifier)
    if state.entry(RELATION, identifier[-1]) is not None:
        raise table_exists(identifier)


def check_no_view(state: NamespaceState, identifier: Identifier) -> None:
    """Raise ViewExists if a view has the name of a table: tables and views share their names."""
    if state.definition(RELATION, identifier[-1]) is not None:
        raise ViewExists(f"there is a view {quoted(identifier)} already: drop it, or choose another name")


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is not a kind of staged change: use one of {', '.join(KINDS)}")
