"""The operations on names, of a catalog and of a transaction: namespaces, tables, views, functions.

It works on any logs that it is given: as they are, as of one moment, or with uncommitted changes of a transaction. It
must not know which of these they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from lakelog.catalog.commit_history import History
from lakelog.catalog.core.ddl import (
    CREATE,
    DroppedEntry,
    Stage,
    StageRequest,
    all_cuts,
    alter_namespace,
    commit_stage,
    create_namespace,
    drop_namespace,
    drop_table,
    drop_table_at,
    list_dropped,
    register_table,
    rename_table,
    stage_table,
    undrop_namespace,
    undrop_table,
)
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import (
    Places,
    TableHead,
    Token,
    check_at_place,
    has_happened,
    new_token,
    observed,
    was_committed,
    watched,
    writing_as,
)
from lakelog.catalog.core.schema import Schema, Stated, ViewDefinition, Written
from lakelog.catalog.core.state import (
    NAMESPACE,
    PROPERTIES,
    RELATION,
    TABLE,
    SavedCut,
    entries_of,
)
from lakelog.catalog.core.tools import as_html
from lakelog.catalog.defined_names import DefinedNames
from lakelog.catalog.errors import NamespaceExists, NoSuchTable, TableExists
from lakelog.catalog.names import Identifier, Location, Name, identifier, quoted, spelled, table_identifier
from lakelog.catalog.newest_commits import CommitOfTable, newest_commits
from lakelog.catalog.table import Table
from lakelog.log import Json, NotedCommit, WriteRef
from lakelog.log.errors import NotFound


@observed(lambda catalog: catalog._logs, apart_from=("history", "token_of_write", "writing_as"))
class CatalogNames(DefinedNames):
    """Namespaces, tables, views and functions by their names. Safe to share between threads."""

    @property
    def warehouse(self) -> str:
        return self._logs.warehouse

    def _repr_html_(self) -> str:
        """Return what a notebook shows, without a request."""
        return as_html(type(self).__name__, {"warehouse": self.warehouse})

    @property
    def places(self) -> Places:
        """The stores that are read and written here: counting ones can be put around them, to measure requests."""
        return self._logs.places

    # Namespaces

    def create_namespace(
        self,
        namespace: Name,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> None:
        """Create a namespace in an existing one. NamespaceExists (unless `if_not_exists`), NoSuchNamespace.

        The property `location`, an absolute path or URL, says where its tables go; `comment` and `owner` are Spark's.
        """
        path = identifier(namespace)
        if if_not_exists and self.namespace_exists(path):
            return
        try:
            create_namespace(self._tree, path, properties or {}, token)
        except NamespaceExists:
            if not if_not_exists:
                raise

    def namespace_exists(self, namespace: Name) -> bool:
        path = identifier(namespace)
        return not path or self._tree.find_namespace(path) is not None

    def load_namespace(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties. NoSuchNamespace."""
        path = identifier(namespace)
        return dict(self._tree.listed(path, PROPERTIES).properties)

    def list_namespaces(self, parent: Name = ()) -> list[Identifier]:
        """Return the namespaces directly in `parent`, sorted. NoSuchNamespace."""
        path = identifier(parent)
        return [(*path, name) for name in self._tree.listed(path, NAMESPACE).names(NAMESPACE, NAMESPACE)]

    def alter_namespace(
        self,
        namespace: Name,
        *,
        set: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
        token: Token | None = None,
    ) -> None:
        """Set and remove properties as one commit. NoSuchNamespace."""
        alter_namespace(self._tree, identifier(namespace), set or {}, remove, token)

    def drop_namespace(self, namespace: Name, *, cascade: bool = False, token: Token | None = None) -> bool:
        """Drop a namespace; False where it does not exist. NamespaceNotEmpty unless `cascade`."""
        return drop_namespace(self._tree, identifier(namespace), cascade=cascade, token=token)

    def undrop_namespace(
        self, namespace: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the namespace that was dropped last under that name, with all that was dropped together with it.

        `id` (see `dropped`) chooses another one, `to` gives it another name. Returns its name. NotFound when none can
        be restored, NamespaceExists when the name is taken.
        """
        target = None if to is None else identifier(to)
        return undrop_namespace(self._tree, identifier(namespace), id, target, token)

    # Tables

    def list_tables(self, namespace: Name = ()) -> list[Identifier]:
        """Return the tables directly in `namespace`, sorted. NoSuchNamespace.

        When warm it costs one round: a GET for each level from the root down to the namespace, as a name may have
        changed since.
        """
        path = identifier(namespace)
        return [(*path, name) for name in self._tree.listed(path, RELATION).names(RELATION, TABLE)]

    def table_names(self, namespace: Name = ()) -> pa.StringArray:
        """As `list_tables`, only the names themselves, as an Arrow array: fast where they are a million."""
        return self._tree.listed(identifier(namespace), RELATION).names_array(RELATION, TABLE)

    def list_relations(self, namespace: Name = ()) -> tuple[list[Identifier], list[Identifier]]:
        """Return the tables and the views directly in `namespace`, at the cost of either. NoSuchNamespace."""
        path = identifier(namespace)
        state = self._tree.listed(path, RELATION)
        tables, views = state.names(RELATION, TABLE), state.defined_names(RELATION)
        return [(*path, name) for name in tables], [(*path, name) for name in views]

    def relation_names(self, namespace: Name = ()) -> tuple[pa.StringArray, pa.StringArray]:
        """As `list_relations`, only the names themselves, as Arrow arrays."""
        state = self._tree.listed(identifier(namespace), RELATION)
        return state.names_array(RELATION, TABLE), pa.array(state.defined_names(RELATION), pa.string())

    def table_exists(self, name: Name) -> bool:
        return self._tree.find_table(table_identifier(name)) is not None

    def load_relation(self, name: Name) -> Table | ViewDefinition:
        """Return the table or view of that name, at the cost of a table. NoSuchTable where neither exists."""
        path = table_identifier(name)
        found = self._tree.find_table(path)
        if found is not None:
            return Table(TableHead.named(self._logs, found, path))
        view = self._tree.known_definition(path)
        if isinstance(view, ViewDefinition):
            return view
        raise self._tree.missing_table(path)

    def load_table(
        self,
        name: Name,
        *,
        version: int | None = None,
        timestamp_us: int | None = None,
        ref: str | None = None,
    ) -> Table:
        """Return a table, now or at a version or time of its past, or on a tag or branch.

        NoSuchTable; NotFound for the past, NoSuchRef for a tag or branch.
        """
        path = table_identifier(name)
        found = self._tree.table(path)
        table = self._at(Table(TableHead.named(self._logs, found, path)), version, timestamp_us)
        return table if ref is None else table.at(ref=ref)

    def table_at(
        self, location: Location, *, version: int | None = None, timestamp_us: int | None = None
    ) -> Table:
        """Return the table whose log is at `location`, a folder or an S3 URL. NoSuchTable."""
        tracked = self._logs.table(self._logs.location(spelled(location)))
        try:
            view = tracked.at_its_place()
        except NotFound as error:
            raise NoSuchTable(f"there is no table at {location}: check the path") from error
        if view.sealed:
            raise NoSuchTable(f"the table at {location} was dropped")
        check_at_place(tracked.location, view, self._logs)
        return self._at(Table(TableHead.at_place(self._logs, tracked, view)), version, timestamp_us)

    def create_table(
        self,
        name: Name,
        schema: Schema | pa.Schema,
        *,
        partition_by: Sequence[str | Mapping[str, Any]] = (),
        sort_by: Sequence[str | Mapping[str, Any]] = (),
        cluster_by: Sequence[str | Sequence[str]] = (),
        properties: Mapping[str, str] | None = None,
        location: Location | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create an empty table. TableExists (unless `if_not_exists`), NoSuchNamespace, InvalidInput.

        `partition_by` and `sort_by` hold names of columns, or transforms of one:
        `{"transform": "bucket", "args": [16], "column": ["id"]}`. `cluster_by` holds names of columns.
        """
        path = table_identifier(name)
        try:
            stage = self.stage(
                CREATE,
                path,
                schema,
                partitioning=partition_by,
                sort_by=sort_by,
                cluster_by=cluster_by,
                properties=properties,
                location=location,
                comment=comment,
            )
            return self.commit_stage(stage)
        except TableExists:
            if not if_not_exists or not self.table_exists(path):
                raise
            return self.load_table(path)

    def rename_table(self, old: Name, new: Name, *, token: Token | None = None) -> None:
        """Give a table another name, in its namespace or another one. NoSuchTable, TableExists, NoSuchNamespace.

        Its objects stay at their place, and so do the permissions for them.
        """
        rename_table(self._tree, table_identifier(old), table_identifier(new), token)

    def register_table(
        self, name: Name, location: Location, *, take_over: bool = False, token: Token | None = None
    ) -> Table:
        """Give a name to the table whose log is at `location`, a folder or an S3 URL, and that no name leads to.

        A dropped table whose data was kept, and that is no longer in a namespace's list of dropped ones, is restored.
        `take_over` also takes one whose log names a namespace of another warehouse: no client must use it there any
        more. NoSuchTable, NoSuchNamespace; TableExists where the name is taken, or another name leads to the table.
        """
        path = table_identifier(name)
        found = register_table(self._tree, path, spelled(location), take_over, token)
        return Table(TableHead.named(self._logs, found, path))

    def drop_table(self, name: Name, *, purge: bool = False, token: Token | None = None) -> bool:
        """Drop a table; False where it does not exist. It can be restored until vacuum purges it; with `purge`, it
        cannot. A purge is several commits: DoneInPart where it was dropped, but could not be purged."""
        from lakelog.catalog.keeping.maintenance import drop_and_purge

        dropping = drop_and_purge if purge else drop_table
        return dropping(self._tree, table_identifier(name), token)

    def undrop_table(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the table that was dropped last under that name, with its history.

        `id` (see `dropped`) chooses another one, `to` gives it another name, in any namespace. Returns its name.
        NotFound when none can be restored, TableExists when the name is taken.
        """
        target = None if to is None else table_identifier(to)
        return undrop_table(self._tree, table_identifier(name), id, target, token)

    def drop_table_at(self, location: Location, *, token: Token | None = None) -> bool:
        """Drop a table that has no name, by its place; False where it does not exist. Its data stays."""
        return drop_table_at(self._tree, self._logs.location(spelled(location)), token)

    def dropped(self, namespace: Name = (), *, recursive: bool = False) -> list[DroppedEntry]:
        """Return the dropped objects of a namespace that can be restored, the latest drop first. NoSuchNamespace.

        With `recursive`, of all namespaces below it too; objects in a dropped namespace are restored with it.
        """
        return list_dropped(self._tree, identifier(namespace), recursive=recursive)

    # Staged changes

    def stage(
        self,
        kind: str,
        name: Name | None,
        schema: Schema | pa.Schema,
        *,
        partitioning: Sequence[Written] = (),
        sort_by: Sequence[Written] = (),
        cluster_by: Sequence[str | Sequence[str]] = (),
        properties: Mapping[str, str] | None = None,
        location: Location | None = None,
        comment: str | None = None,
        provider: str | None = None,
        constraints: Sequence[Stated | Mapping[str, Any]] = (),
    ) -> Stage:
        """Prepare a table, invisible before `commit_stage`: `kind` is create, replace or create-or-replace.

        Rows in files of a table with a CHECK among its `constraints` satisfy it: the writer of the files ensures that.
        Without a name, the table is the one at `location`. TableExists, NoSuchTable, NoSuchNamespace, InvalidInput.
        """
        request = StageRequest(
            kind=kind,
            identifier=None if name is None else table_identifier(name),
            schema=schema,
            partitioning=partitioning,
            sort_by=sort_by,
            cluster_by=cluster_by,
            properties=properties or {},
            location=spelled(location),
            comment=comment,
            provider=provider,
            constraints=constraints,
        )
        return stage_table(self._tree, request)

    def commit_stage(self, stage: Stage, files: Sequence[DataFile] = ()) -> Table:
        """Make a staged table visible, with the files that were written for it. A retry is safe."""
        return Table(commit_stage(self._tree, stage, files))

    # For clients that may have to retry

    def token(self, name: Name = ()) -> Token:
        """Return a token for one change of the object that `name` leads to; reads only logs that were never read.

        Pass it with the request, and pass the same one with a retry: then the change happens once.
        """
        path = identifier(name)
        if len(self._tree.known_on_path(path)) <= len(path):
            self._tree.find_namespace(path)
            if path:
                self._tree.find_table(path)
        return new_token(self._logs, self._tree.known_on_path(path))

    def token_at(self, location: Location) -> Token:
        """Return a token for one change of the table at `location` (see `token`)."""
        tracked = self._logs.table(self._logs.location(spelled(location)))
        if tracked.known is None:
            self.table_at(location)
        return new_token(self._logs, [tracked])

    def token_of_write(self, location: Location, write: WriteRef) -> Token:
        """Return the token of a write to the table at `location` whose commit was requested without a token."""
        return Token(commit_id=write.id, bases={self._logs.location(spelled(location)): write.version})

    def newest_commits(self, noted: Sequence[NotedCommit]) -> list[CommitOfTable]:
        """Return what commits that an engine has noted did (see `noting_commits`), the last of each table."""
        return newest_commits(self._logs, noted)

    def was_committed(self, token: Token) -> bool:
        """Return whether a transaction happened whose process has ended, by its `commit_token`. Costs about 2 GETs.

        An undecided transaction is settled first. For one in a single log, False says that its PUT has not arrived yet.
        """
        return was_committed(self._logs, token)

    def has_happened(self, token: Token) -> bool:
        """Return whether the one change of `token` happened, in any of its logs. Costs a few GETs for each."""
        return has_happened(self._logs, token)

    # History

    def history(self, namespace: Name = ()) -> History:
        """Return the changes of a namespace, the newest first: an iterator, read while it is taken. NoSuchNamespace."""
        name = identifier(namespace)
        reading = watched(self._logs, "history", quoted(name))
        with reading.working():
            found = self._tree.namespace(name)
        log, version = found.tracked.log, found.view.version
        return History(
            quoted(name) or self.warehouse,
            reading.each(entries_of(log.commits(last=version, newest_first=True))),
            lambda: entries_of(log.commits(first=version, last=version)),
        )

    def cuts(self, namespace: Name = ()) -> dict[str, SavedCut]:
        """Return the saved cuts of the whole catalog, or a namespace's own, by their names. NoSuchNamespace."""
        return dict(all_cuts(self._tree, identifier(namespace)))

    def writing_as(self, facts: Mapping[str, Json]) -> AbstractContextManager[None]:
        """Inside, `facts` (a query, a statement) are added to the writer's facts in this thread's commits."""
        return writing_as(facts)

    # Inside

    def _at(self, table: Table, version: int | None, timestamp_us: int | None) -> Table:
        if version is None and timestamp_us is None:
            return table
        return table.at(version=version, timestamp_us=timestamp_us)
