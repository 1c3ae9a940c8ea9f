"""The operations on names, of a catalog and of a transaction: namespaces, tables, views, functions.

It works on any given logs: the present logs, logs as of a moment, or logs with uncommitted changes of a
transaction. It must not know which of these they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog.commit_history import History
from lakelog.catalog.core.ddl import (
    CREATE,
    DroppedEntry,
    StageRequest,
    all_cuts,
    alter_namespace,
    commit_stage,
    create_namespace,
    drop_namespace,
    drop_table,
    list_dropped,
    register_table,
    rename_table,
    stage_table,
    undrop_namespace,
    undrop_table,
)
from lakelog.catalog.core.logs import (
    TableHead,
    Token,
    check_at_place,
    new_token,
    observed,
    watched,
)
from lakelog.catalog.core.schema import Schema, SparkType
from lakelog.catalog.core.state import (
    NAMESPACE,
    PROPERTIES,
    RELATION,
    TABLE,
    SavedCut,
    entries_of,
)
from lakelog.catalog.defined_names import DefinedNames
from lakelog.catalog.errors import NamespaceExists, NoSuchTable, TableExists
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import (
    Identifier,
    Location,
    Name,
    check_list,
    identifier,
    quoted,
    spelled,
    table_identifier,
)
from lakelog.catalog.table import Table
from lakelog.catalog.times import Moment
from lakelog.log.errors import NotFound, UnsupportedFormat


@observed(lambda catalog: catalog._logs, apart_from=("history",))
@explaining
class CatalogNames(DefinedNames):
    """Namespaces, tables, views and functions by their names. Safe to share between threads."""

    @property
    def warehouse(self) -> str:
        return self._logs.warehouse

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.warehouse}>"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the tree of names. Never raises an error, and notes no read."""
        from lakelog.catalog.looking.notebooks import catalog_html

        return catalog_html(self._tree, type(self).__name__)

    # Namespaces

    def create_namespace(
        self,
        namespace: Name,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> None:
        """Create a namespace in an existing namespace.

        Raises NamespaceExists (unless `if_not_exists`) or NoSuchNamespace. The property `location`, an
        absolute path or URL, is the place of its tables. `comment` and `owner` are Spark's.
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
        """Return a namespace's properties. Raises NoSuchNamespace."""
        path = identifier(namespace)
        return dict(self._tree.listed(path, PROPERTIES).properties)

    def list_namespaces(self, parent: Name = ()) -> list[Identifier]:
        """Return the namespaces directly in `parent`, sorted. Raises NoSuchNamespace."""
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
        """Set and remove properties as a single commit. Raises NoSuchNamespace."""
        check_list(remove, "properties")
        alter_namespace(self._tree, identifier(namespace), set or {}, remove, token)

    def drop_namespace(
        self, namespace: Name, *, missing_ok: bool = False, cascade: bool = False, token: Token | None = None
    ) -> bool:
        """Drop a namespace.

        If it does not exist, raises NoSuchNamespace, or returns False with `missing_ok`. If it is not empty,
        raises NamespaceNotEmpty unless `cascade`.
        """
        path = identifier(namespace)
        did_drop = drop_namespace(self._tree, path, cascade=cascade, token=token)
        if not did_drop and not missing_ok:
            raise self._tree.missing_namespace(path)
        return did_drop

    def undrop_namespace(
        self, namespace: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the namespace that was dropped last under that name, with all that was dropped together
        with it.

        `id` (see `dropped`) chooses another namespace, and `to` gives it another name. Returns its name.
        Raises NotFound if none can be restored, and NamespaceExists if the name is taken.
        """
        target = None if to is None else identifier(to)
        return undrop_namespace(self._tree, identifier(namespace), id, target, token)

    # Tables

    def list_tables(self, namespace: Name = (), *, recursive: bool = False) -> list[Identifier]:
        """Return the tables directly in `namespace`, sorted.

        With `recursive`, of all namespaces below it too. Raises NoSuchNamespace. A warm call makes a round of
        requests: a GET for each level from the root to the namespace, because names may have changed. With
        `recursive`, makes a further round for each level below.
        """
        path = identifier(namespace)
        tables = [(*path, name) for name in self._tree.listed(path, RELATION).names(RELATION, TABLE)]
        if recursive:
            tables += self._tree.tables_below(path)
        return sorted(tables)

    def table_exists(self, name: Name) -> bool:
        return self._tree.find_table(table_identifier(name)) is not None

    def load_table(
        self,
        name: Name,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        ref: str | None = None,
    ) -> Table:
        """Return a table, now or at a version or time of its past, or on a tag or branch.

        Raises NoSuchTable. Raises NotFound if that past, or NoSuchRef if the tag or branch, does not exist. Raises
        UnsupportedFormat if the table uses features that are unknown here. Versions from before that can be
        read.
        """
        path = table_identifier(name)
        try:
            found_table = self._tree.table(path)
        except UnsupportedFormat:
            older_table = None if version is None else self._tree.older_table(path, version)
            if older_table is None:
                raise
            found_table = older_table
        table = self._at(Table(TableHead.named(self._logs, found_table, path)), version, timestamp)
        return table if ref is None else table.at(ref=ref)

    def table_at(
        self, location: Location, *, version: int | None = None, timestamp: Moment | None = None
    ) -> Table:
        """Return the table whose log is at `location`, a folder or an S3 URL. Raises NoSuchTable."""
        tracked = self._logs.table(self._logs.location(spelled(location)))
        try:
            view = tracked.at_its_place()
        except NotFound as error:
            raise NoSuchTable(f"there is no table at {location}: check the path") from error
        if view.sealed:
            raise NoSuchTable(f"the table at {location} was dropped")
        check_at_place(tracked.location, view, self._logs)
        return self._at(Table(TableHead.at_place(self._logs, tracked, view)), version, timestamp)

    def create_table(
        self,
        name: Name,
        schema: Schema | pa.Schema | Mapping[str, pa.DataType | SparkType],
        *,
        partition_by: Sequence[str | Mapping[str, Any]] = (),
        sort_by: Sequence[str | Mapping[str, Any]] = (),
        cluster_by: Sequence[str | Sequence[str]] = (),
        properties: Mapping[str, str] | None = None,
        location: Location | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create an empty table.

        Raises TableExists (unless `if_not_exists`), NoSuchNamespace or InvalidInput.

        `schema` is an Arrow schema, or has types by the names of columns: `{"id": "bigint", "day":
        pa.date32()}`. `partition_by` and `sort_by` hold names of columns, or transforms of a column as Spark
        writes them: `"bucket(16, id)"`, `"days(at)"`. `cluster_by` holds names of columns.
        """
        path = table_identifier(name)
        try:
            request = StageRequest(
                kind=CREATE,
                identifier=path,
                schema=schema,
                partitioning=partition_by,
                sort_by=sort_by,
                cluster_by=cluster_by,
                properties=properties or {},
                location=spelled(location),
                comment=comment,
                provider=None,
                constraints=(),
            )
            return Table(commit_stage(self._tree, stage_table(self._tree, request), ()))
        except TableExists:
            if not if_not_exists or not self.table_exists(path):
                raise
            return self.load_table(path)

    def rename_table(self, old: Name, new: Name, *, token: Token | None = None) -> None:
        """Give a table another name, in its namespace or another.

        Raises NoSuchTable, TableExists or NoSuchNamespace. Its objects stay at their place, and so do the
        permissions for them.
        """
        rename_table(self._tree, table_identifier(old), table_identifier(new), token)

    def register_table(
        self, name: Name, location: Location, *, take_over: bool = False, token: Token | None = None
    ) -> Table:
        """Give a name to the table whose log is at `location`, a folder or an S3 URL, and that no name leads
        to.

        A dropped table is restored if its data was kept, and if it is no longer in a namespace's list of
        dropped tables. With `take_over`, the log may name a namespace of another warehouse. No client must
        use the table there any more. Raises NoSuchTable or NoSuchNamespace. Raises TableExists if the name is
        taken, or if another name leads to the table.
        """
        path = table_identifier(name)
        found_table = register_table(self._tree, path, spelled(location), take_over, token)
        return Table(TableHead.named(self._logs, found_table, path))

    def drop_table(
        self, name: Name, *, missing_ok: bool = False, purge: bool = False, token: Token | None = None
    ) -> bool:
        """Drop a table.

        If it does not exist, raises NoSuchTable, or returns False with `missing_ok`. The table can be
        restored until vacuum purges it. With `purge`, it cannot. A purge is several commits. Raises
        DoneInPart if the table was dropped, but could not be purged.
        """
        from lakelog.catalog.keeping.maintenance import drop_and_purge

        path, drop = table_identifier(name), drop_and_purge if purge else drop_table
        did_drop = drop(self._tree, path, token)
        if not did_drop and not missing_ok:
            raise self._tree.missing_table(path)
        return did_drop

    def undrop_table(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the table that was dropped last under that name, with its history.

        `id` (see `dropped`) chooses another table, and `to` gives it another name, in any namespace. Returns
        its name. Raises NotFound if none can be restored, and TableExists if the name is taken.
        """
        target = None if to is None else table_identifier(to)
        return undrop_table(self._tree, table_identifier(name), id, target, token)

    def dropped(self, namespace: Name = (), *, recursive: bool = False) -> list[DroppedEntry]:
        """Return the dropped objects of a namespace that can be restored, the latest drop first.

        Raises NoSuchNamespace. With `recursive`, of all namespaces below it too. Objects in a dropped
        namespace are restored with it.
        """
        return list_dropped(self._tree, identifier(namespace), recursive=recursive)

    # For clients that may have to retry

    def token(self, name: Name = ()) -> Token:
        """Return a token for a single change of the object that `name` leads to.

        Reads only logs that were never read. Pass the same token with the request and with each retry, so
        that the change happens once.
        """
        path = identifier(name)
        if len(self._tree.known_on_path(path)) <= len(path):
            self._tree.find_namespace(path)
            if path:
                self._tree.find_table(path)
        return new_token(self._logs, self._tree.known_on_path(path))

    # History

    def history(self, namespace: Name = ()) -> History:
        """Return the changes of a namespace, the newest first, as an iterator that reads lazily.

        Raises NoSuchNamespace.
        """
        name = identifier(namespace)
        watch = watched(self._logs, "history", quoted(name))
        with watch.working():
            namespace_log = self._tree.namespace(name)
        log, version = namespace_log.tracked.log, namespace_log.view.version
        return History(
            quoted(name) or self.warehouse,
            watch.each(entries_of(log.commits(last=version, newest_first=True))),
            lambda: entries_of(log.commits(first=version, last=version)),
        )

    def cuts(self, namespace: Name = ()) -> dict[str, SavedCut]:
        """Return the saved cuts of the whole catalog, or a namespace's own, by their names.

        Raises NoSuchNamespace.
        """
        return dict(all_cuts(self._tree, identifier(namespace)))

    # Inside

    def _at(self, table: Table, version: int | None, timestamp: Moment | None) -> Table:
        if version is None and timestamp is None:
            return table
        return table.at(version=version, timestamp=timestamp)
