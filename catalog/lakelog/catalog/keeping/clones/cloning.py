"""Making a clone: its log with the source's files, the promises of these files' owners, then the name.

The three steps come in this order. A process that dies after the first step leaves a log that no name leads
to, and a vacuum purges it. After the second step, promises to that log are left too, and end once the log is
purged. So leftovers only cost space, and the files of every table with a name are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa

from lakelog.catalog.core.ddl import (
    CREATE,
    StagedTable,
    StageRequest,
    create_from,
    created_event,
    stage_table,
)
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import (
    NameTree,
    NothingToDo,
    TableHead,
    Token,
    TrackedLog,
    gone_as_no_such_table,
    merged_drafts,
    was_applied_anywhere,
)
from lakelog.catalog.core.schema import kept_of_import
from lakelog.catalog.core.state import (
    COMMENT,
    MAIN,
    CloneOrigin,
    ClonePromised,
    OperationKind,
    TableCloned,
    TableState,
    encode,
)
from lakelog.catalog.core.writes import moved_files
from lakelog.catalog.errors import CommitConflict, NoSuchTable
from lakelog.catalog.keeping.clones.borrowed import absolute, is_of
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, LogView, WriteRef
from lakelog.log.errors import NotFound, PermissionDenied, Unsupported


def clone_table(tree: NameTree, source: TableHead, identifier: Identifier, token: Token | None) -> TableHead:
    """Make the table of that name a clone of a version of `source`, and return it.

    No data file is read or copied.

    Raises TableExists or NoSuchNamespace, and NotFound if the version expires before the clone is made.
    Raises PermissionDenied if the source's log may not be written. The same holds for the log of a table
    whose files the source borrows as a clone. Raises Unsupported if the source has files that no log keeps,
    or is outside of the warehouse. Nothing is visible after an error.
    """
    tree.logs.check_writable()
    if token is not None and was_applied_anywhere(tree.logs, token):
        return TableHead.named(tree.logs, tree.table(identifier), identifier)
    newest = source.tracked.current()
    check_cloneable(source, newest)
    check_kept(source, source.all_files(), newest.state.origins)
    stage = stage_like(tree, source, identifier, token)
    draft = first_commit(source, newest, stage, origins_of(source, newest))

    def promise(tracked: TrackedLog[TableState], view: LogView[TableState]) -> LogView[TableState]:
        promise_all(tree, source, newest.state.origins, stage)
        return view

    return create_from(tree, stage, draft, promise)


def origins_of(source: TableHead, newest: LogView[TableState]) -> tuple[CloneOrigin, ...]:
    """Return the logs that have to promise: the source's log, and the logs that keep files for the source."""
    return (CloneOrigin(location=source.tracked.location, id=source.id), *newest.state.origins)


def promise_all(
    tree: NameTree, source: TableHead, origins: Sequence[CloneOrigin], stage: StagedTable
) -> None:
    """Make the source, and the tables whose files it borrows, keep the files for the staged clone."""
    for origin in origins:
        _promise_again(tree, source, origin, stage)
    _promise(source, stage)


def check_cloneable(source: TableHead, newest: LogView[TableState]) -> None:
    """Raise Unsupported if no log could keep the source's files for a clone."""
    if source.ref != MAIN:
        raise Unsupported(
            f"{source.name} is on {source.ref}, and a clone is of the table itself: fast-forward the table to it, or "
            "clone the version that it was made of"
        )
    if newest.state.current.own_location:
        raise Unsupported(
            f"{source.name} cannot be cloned: it is at {source.url}, a place of its user's, whose files a drop of the "
            "table leaves to the user. Copy it by CREATE TABLE AS SELECT"
        )
    if is_elsewhere(source.tracked.location):
        raise Unsupported(
            f"{source.name} cannot be cloned: its namespace has a location outside of the warehouse, {source.url}. "
            "Copy it by CREATE TABLE AS SELECT"
        )


def check_kept(source: TableHead, files: pa.Table, origins: Sequence[CloneOrigin]) -> None:
    """Raise Unsupported for a file that belongs neither to the table nor to an owner that keeps it."""
    folders = [source.logs.url(origin.location) for origin in origins]
    for path in files["path"].to_pylist():
        if is_elsewhere(path) and not any(is_of(path, folder) for folder in folders):
            raise Unsupported(
                f"{source.name} cannot be cloned: it has the file {path}, which another writer has put there, and may "
                "delete at any time. Import with copies, or compact the table, and clone it then"
            )


def stage_like(tree: NameTree, source: TableHead, identifier: Identifier, token: Token | None) -> StagedTable:
    """Stage a new table with the definition of another table.

    Raises TableExists or NoSuchNamespace, and Unsupported if the new table would be outside of the warehouse.
    Raises UnsupportedFormat if the source has something for writers that is unknown here: the new table would
    lack it.
    """
    source.tracked.log.check_writable(source.view)
    metadata = source.metadata
    # The clone's first commit also has properties of other formats that an older version of lakelog imported.
    properties, _ = kept_of_import(metadata.properties)
    stage = stage_table(
        tree,
        StageRequest(
            kind=CREATE,
            identifier=identifier,
            schema=metadata.schema,
            partitioning=(),
            sort_by=(),
            cluster_by=(),
            properties={name: value for name, value in properties.items() if name != COMMENT},
            location=None,
            comment=metadata.comment,
            provider=metadata.provider,
        ),
    )
    if is_elsewhere(stage.location):
        raise Unsupported(
            f"{quoted(identifier)} cannot be a clone: its namespace has a location outside of the warehouse, "
            f"{stage.url}. Clone into another namespace"
        )
    return msgspec.structs.replace(
        stage,
        schema=metadata.schema,
        spec=metadata.specs[-1],
        sort_order=metadata.sort_order,
        commit_id=stage.commit_id if token is None else token.commit_id,
    )


def staged(
    source: TableHead, identifier: Identifier, namespace: str, table_id: str, location: str
) -> StagedTable:
    """Return the stage of a clone whose name is already in the namespace's log at that location."""
    metadata, logs = source.metadata, source.logs
    return StagedTable(
        kind=CREATE,
        identifier=identifier,
        namespace=namespace,
        namespace_base=0,
        table_id=table_id,
        commit_id=table_id,
        location=location,
        url=logs.url(location),
        own_location=False,
        schema=metadata.schema,
        spec=metadata.specs[-1],
        sort_order=metadata.sort_order,
        properties=metadata.properties,
        provider=metadata.provider,
        comment=metadata.comment,
        replaced=None,
        write=WriteRef(id=logs.new_id(), version=0),
    )


def first_commit(
    source: TableHead,
    newest: LogView[TableState],
    stage: StagedTable,
    origins: tuple[CloneOrigin, ...],
    files: pa.Table | None = None,
) -> Draft:
    """Return the first commit of a clone's log: its definition, its origin, and its rows as a single change.

    The rows are in `files`, copies in the clone's folder. Without `files`, they are in the source's files.
    Identity columns continue after all values that the source ever took, also if an old version is cloned.
    """
    files = absolute(source.all_files(), source.url) if files is None else files
    metadata = msgspec.structs.replace(source.metadata, own_location=False)
    clone_event = TableCloned(
        of=source.id,
        version=source.version,
        metadata=metadata,
        origins=origins,
        next_row=source.state.next_row,
        identities=dict(newest.state.identities),
        ancestors=source.state.ancestors,
    )
    drafts = [Draft(events=encode([created_event(stage), clone_event]), write=stage.write)]
    if files.num_rows:
        change, blobs = moved_files(OperationKind.CLONE, files, files.slice(0, 0), metadata)
        drafts.append(Draft(events=encode([change]), blobs=blobs))
    return merged_drafts(drafts)


def _promise(source: TableHead, stage: StagedTable) -> None:
    """Make the source keep the files of its version for the staged clone."""
    source_view = source.view

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        if stage.table_id in view.state.clones:
            raise NothingToDo("it has been promised")
        if view.state.expired > source_view.version or view.log_id != source.id:
            raise NotFound(
                f"version {source_view.version} of {source.name} cannot be cloned: it has expired meanwhile"
            )
        new_files, old_files = (
            source.files_only_here(view),
            source.at(view).files_only_here(source_view),
        )
        change, blobs = moved_files(OperationKind.CLONE, new_files, old_files, source_view.state.current)
        promise = ClonePromised(
            **{field: getattr(change, field) for field in change.__struct_fields__},
            clone=stage.table_id,
            location=stage.location,
            version=source_view.version,
            metadata=None if source_view.state.current == view.state.current else source_view.state.current,
        )
        return Draft(events=encode([promise]), blobs=blobs)

    _commit(source.tracked, source.name, stage, decide)


def _promise_again(tree: NameTree, source: TableHead, origin: CloneOrigin, stage: StagedTable) -> None:
    """Make a table that keeps files for its clone `source` keep the same files for the clone of `source`."""
    table_log = tree.logs.table(origin.location)
    title = f"the table at {tree.logs.url(origin.location)}, whose files {source.name} has"

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        if stage.table_id in view.state.clones:
            raise NothingToDo("it has been promised")
        promise = view.state.clones.get(source.id) if view.log_id == origin.id else None
        if promise is None:
            raise CommitConflict(
                f"{source.name} cannot be cloned: {title} keeps nothing for it any more. Where it was materialized "
                "meanwhile, clone it again; else run `lakelog fsck`",
                version=view.version,
            )
        new_promise = ClonePromised(
            operation=OperationKind.CLONE.word,
            clone=stage.table_id,
            location=stage.location,
            version=promise.version,
            of=source.id,
        )
        return Draft(events=encode([new_promise]))

    try:
        _commit(table_log, title, stage, decide)
    except NoSuchTable as error:
        raise NoSuchTable(
            f"{source.name} cannot be cloned: {title} was dropped, and promises files to no other clone. Restore that "
            f"table, or copy what is borrowed (ALTER TABLE {source.name} MATERIALIZE), and expire and vacuum "
            f"{source.name}"
        ) from error


def _commit(
    tracked: TrackedLog[TableState],
    title: str,
    stage: StagedTable,
    decide: Callable[[LogView[TableState], Sequence[Commit]], Draft],
) -> None:
    with _not_denied(title, stage), gone_as_no_such_table(title):
        try:
            tracked.commit(tracked.current(), decide)
        except NothingToDo:
            return


@contextmanager
def _not_denied(title: str, stage: StagedTable) -> Iterator[None]:
    try:
        yield
    except PermissionDenied as error:
        raise PermissionDenied(
            f"{stage.title} cannot be a clone: {title} has to keep its files for the clone, which takes the right to "
            f"write in its log, and these credentials may not ({error.message}). Ask for that right, or copy the rows "
            "by CREATE TABLE AS SELECT",
            location=error.location,
        ) from error
