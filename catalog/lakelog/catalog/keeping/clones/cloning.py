"""Making a clone: its log with the files of the source, the promises of all who own these, and then the name.

Three steps, in this order. A process that dies after the first leaves a log that no name leads to, which a vacuum
purges; after the second also promises to that log, which are over once it is purged. So nothing that is left behind
costs more than space, and whatever a name leads to is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa

from lakelog.catalog.core.ddl import CREATE, Stage, StageRequest, create_from, created_event, stage_table
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
    ClonePromised,
    Operation,
    Origin,
    TableCloned,
    TableState,
    encode,
)
from lakelog.catalog.core.writes import moved_files
from lakelog.catalog.errors import CommitConflict, NoSuchTable
from lakelog.catalog.keeping.clones.borrowed import absolute, is_of
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import NotFound, PermissionDenied, Unsupported


def clone_table(tree: NameTree, source: TableHead, identifier: Identifier, token: Token | None) -> TableHead:
    """Make the table of that name a clone of a version of `source`, and return it. No data file is read or copied.

    TableExists, NoSuchNamespace; NotFound where the version expires meanwhile; PermissionDenied where the source's log,
    or that of a table whose files the source itself has as a clone, may not be written; Unsupported for a source with
    files that no log keeps, or outside of the warehouse. Nothing is visible then.
    """
    tree.logs.check_writable()
    if token is not None and was_applied_anywhere(tree.logs, token):
        return TableHead.named(tree.logs, tree.table(identifier), identifier)
    newest = source.tracked.current()
    check_cloneable(source, newest)
    check_kept(source, source.all_files(), newest.state.origins)
    stage = stage_like(tree, source, identifier, token)
    draft = first_commit(source, newest, stage, origins_of(source, newest))

    def promise(tracked: TrackedLog[TableState], view: View[TableState]) -> View[TableState]:
        promise_all(tree, source, newest.state.origins, stage)
        return view

    return create_from(tree, stage, draft, promise)


def origins_of(source: TableHead, newest: View[TableState]) -> tuple[Origin, ...]:
    """Return the logs that have to promise: the source's, and those that keep files for it."""
    return (Origin(location=source.tracked.location, id=source.id), *newest.state.origins)


def promise_all(tree: NameTree, source: TableHead, origins: Sequence[Origin], stage: Stage) -> None:
    """Let the source, and the tables whose files it has itself, keep the files for the clone that is staged."""
    for origin in origins:
        _promise_again(tree, source, origin, stage)
    _promise(source, stage)


def check_cloneable(source: TableHead, newest: View[TableState]) -> None:
    """Refuse what no log could keep for a clone."""
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


def check_kept(source: TableHead, files: pa.Table, origins: Sequence[Origin]) -> None:
    """Refuse files that are neither the table's own nor those of a table that has promised to keep them."""
    folders = [source.logs.url(origin.location) for origin in origins]
    for path in files["path"].to_pylist():
        if is_elsewhere(path) and not any(is_of(path, folder) for folder in folders):
            raise Unsupported(
                f"{source.name} cannot be cloned: it has the file {path}, which another writer has put there, and may "
                "delete at any time. Import with copies, or compact the table, and clone it then"
            )


def stage_like(tree: NameTree, source: TableHead, identifier: Identifier, token: Token | None) -> Stage:
    """Stage a new table with the definition of another one. TableExists, NoSuchNamespace; Unsupported where it would be
    outside of the warehouse."""
    metadata = source.metadata
    # What an older version of lakelog took of other formats' properties, the clone has too: by its first commit.
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


def staged(source: TableHead, identifier: Identifier, namespace: str, table_id: str, location: str) -> Stage:
    """Return the stage of a clone in a namespace whose log, at that place, has its name already."""
    metadata, logs = source.metadata, source.logs
    return Stage(
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
    newest: View[TableState],
    stage: Stage,
    origins: tuple[Origin, ...],
    files: pa.Table | None = None,
) -> Draft:
    """Return the first commit of a clone's log: its definition, where it is from, and its rows as those of one change.
    They are in `files`, copies of the source's in the clone's folder; without these, in those of the source.

    Values of identity columns go on after all that the source has ever taken, also where an old version is cloned.
    """
    files = absolute(source.all_files(), source.url) if files is None else files
    metadata = msgspec.structs.replace(source.metadata, own_location=False)
    cloned = TableCloned(
        of=source.id,
        version=source.version,
        metadata=metadata,
        origins=origins,
        next_row=source.state.next_row,
        identities=dict(newest.state.identities),
        ancestors=source.state.ancestors,
    )
    drafts = [Draft(events=encode([created_event(stage), cloned]), write=stage.write)]
    if files.num_rows:
        changed, blobs = moved_files(Operation.CLONE, files, files.slice(0, 0), metadata)
        drafts.append(Draft(events=encode([changed]), blobs=blobs))
    return merged_drafts(drafts)


def _promise(source: TableHead, stage: Stage) -> None:
    """Let the source keep the files of its version for the clone that is staged."""
    then = source.view

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        if stage.table_id in view.state.clones:
            raise NothingToDo("it has been promised")
        if view.state.expired > then.version or view.log_id != source.id:
            raise NotFound(
                f"version {then.version} of {source.name} cannot be cloned: it has expired meanwhile"
            )
        added, removed = source.files_only_here(view), source.at(view).files_only_here(then)
        changed, blobs = moved_files(Operation.CLONE, added, removed, then.state.current)
        promised = ClonePromised(
            **{field: getattr(changed, field) for field in changed.__struct_fields__},
            clone=stage.table_id,
            location=stage.location,
            version=then.version,
            metadata=None if then.state.current == view.state.current else then.state.current,
        )
        return Draft(events=encode([promised]), blobs=blobs)

    _commit(source.tracked, source.name, stage, decide)


def _promise_again(tree: NameTree, source: TableHead, origin: Origin, stage: Stage) -> None:
    """Let a table that keeps files for the source, which is its clone, keep the same ones for the clone of that."""
    tracked = tree.logs.table(origin.location)
    title = f"the table at {tree.logs.url(origin.location)}, whose files {source.name} has"

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        if stage.table_id in view.state.clones:
            raise NothingToDo("it has been promised")
        promise = view.state.clones.get(source.id) if view.log_id == origin.id else None
        if promise is None:
            raise CommitConflict(
                f"{source.name} cannot be cloned: {title} keeps nothing for it any more. Where it was materialized "
                "meanwhile, clone it again; else run `lakelog fsck`",
                version=view.version,
            )
        promised = ClonePromised(
            operation=Operation.CLONE.word,
            clone=stage.table_id,
            location=stage.location,
            version=promise.version,
            of=source.id,
        )
        return Draft(events=encode([promised]))

    try:
        _commit(tracked, title, stage, decide)
    except NoSuchTable as error:
        raise NoSuchTable(
            f"{source.name} cannot be cloned: {title} was dropped, and promises files to no other clone. Restore that "
            f"table, or copy what is borrowed (ALTER TABLE {source.name} MATERIALIZE), and expire and vacuum "
            f"{source.name}"
        ) from error


def _commit(
    tracked: TrackedLog[TableState],
    title: str,
    stage: Stage,
    decide: Callable[[View[TableState], Sequence[Commit]], Draft],
) -> None:
    with _not_denied(title, stage), gone_as_no_such_table(title):
        try:
            tracked.commit(tracked.current(), decide)
        except NothingToDo:
            return


@contextmanager
def _not_denied(title: str, stage: Stage) -> Iterator[None]:
    try:
        yield
    except PermissionDenied as error:
        raise PermissionDenied(
            f"{stage.title} cannot be a clone: {title} has to keep its files for the clone, which takes the right to "
            f"write in its log, and these credentials may not ({error.message}). Ask for that right, or copy the rows "
            "by CREATE TABLE AS SELECT",
            location=error.location,
        ) from error
