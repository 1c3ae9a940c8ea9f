"""The front door: a catalog of the namespaces and tables of a warehouse, a folder or a prefix on S3."""

from __future__ import annotations

import datetime as dt
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from lakelog.catalog.after_commit import AfterCommit
from lakelog.catalog.catalog_backups import CatalogBackups
from lakelog.catalog.choices import ACTIONS, CHANGES_MAX, COMMITS_MAX, SNAPSHOT, WAREHOUSE_VARIABLE
from lakelog.catalog.core.ddl import cut_of, drop_cut, save_cut
from lakelog.catalog.core.logs import (
    CatalogOpening,
    ConsistentCut,
    LogCache,
    LogScope,
    Observe,
    Token,
    TransactionLogs,
    UnchangingValue,
    WarehouseStores,
    chosen_scope,
    no_progress,
    no_such_table,
    observed,
    watched,
    writer_facts,
)
from lakelog.catalog.core.schema import ON_DEMAND
from lakelog.catalog.core.state import SavedCut
from lakelog.catalog.core.writes import gathered_rows
from lakelog.catalog.dry_run import reported
from lakelog.catalog.errors import NoSuchTable, TableExists
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Identifier, Location, Name, identifier, quoted, spelled, table_identifier
from lakelog.catalog.nearest import nearest
from lakelog.catalog.table import Table
from lakelog.catalog.times import Moment, is_time, time_us
from lakelog.catalog.transaction import Transaction
from lakelog.log import Json, LogOptions
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.log.stores import known_options, option_hint

if TYPE_CHECKING:
    from lakelog.catalog.formats.imports import Imported, KnownFolder
    from lakelog.catalog.keeping.maintenance import Adoption, Checksum, Engine, Expired, Findings, Vacuumed
    from lakelog.catalog.keeping.upkeep import Health, Maintained
    from lakelog.catalog.looking.audit import AuditEntry
    from lakelog.catalog.looking.pictures import Picture, PictureRequest, Sheet


P = ParamSpec("P")


def _explaining(opens: Callable[P, None]) -> Callable[P, None]:
    """Refuse an unknown keyword of `Catalog(…)`, and name the right word, as other libraries differ."""
    known = inspect.signature(opens).parameters

    @wraps(opens)
    def explained(*args: P.args, **given: P.kwargs) -> None:
        for name in given:
            if name not in known:
                raise InvalidInput(f"Catalog(…) takes no {name}=: {_keyword_hint(name, known)}")
        opens(*args, **given)

    return explained


def _keyword_hint(name: str, known: Iterable[str]) -> str:
    if name in known_options():
        return f"it is an option of the store, so write options={{{name!r}: …}}"
    if name == "storage_options":
        return (
            f"write options={{…}}, with {', '.join(known_options())}; credentials come from the environment"
        )
    if like := nearest(name, known):
        return f"did you mean {like[0]}=?"
    return option_hint(name)


@observed(lambda catalog: catalog._logs, apart_from=("audit", "transaction"))
@explaining
class Catalog(CatalogBackups, UnchangingValue):
    """Namespaces, tables, views and functions of a warehouse.

    Safe to share between threads. `options` are `fsync` (on, off) for folders, and `endpoint`, `region`,
    `path_style` for S3. Credentials for S3 come from the usual AWS chain only. `writer` is kept in every
    commit, to identify its author. By default it is `writer_facts`. `log_options` switches `proposals` on or
    off, and replaces clock, ids and patience, for tests. `as_of`, a time or the name of a saved cut, opens
    the catalog as of then, read-only. A namespace's own cut is opened by its name and the namespace's name,
    `as_of_namespace`. It shows only that namespace, under its present name. `observe` is called with an
    `Observation` of each operation, in the thread that ends it (see `logs.observing`). `maintenance`
    (on-demand, auto) holds for tables without a property `lakelog.maintenance`. With off, this process
    compacts no table by itself. A catalog can be pickled, and so can its tables and their reads (see
    `logs.pickled`). The unpickled catalog has neither `observe` nor `log_options`, except for `proposals`.
    """

    @_explaining
    def __init__(
        self,
        warehouse: Location,
        *,
        options: Mapping[str, str] | None = None,
        writer: Mapping[str, Json] | None = None,
        log_options: LogOptions | None = None,
        as_of: str | dt.datetime | int | None = None,
        as_of_namespace: Name = (),
        observe: Observe | None = None,
        maintenance: str = ON_DEMAND,
    ) -> None:
        identity = writer_facts() if writer is None else dict(writer)
        places = WarehouseStores(spelled(warehouse), options or {})
        logs = LogCache(places, identity, log_options or LogOptions(), observe)
        logs.after_commit = AfterCommit(maintenance).committed
        logs.gather_rows = gathered_rows
        super().__init__(_as_of(logs, as_of, identifier(as_of_namespace)))
        self._logs.opening = CatalogOpening.without_secrets(
            reopen=_reopened,
            warehouse=logs.warehouse,
            options=options,
            writer=writer,
            as_of=as_of,
            as_of_namespace=identifier(as_of_namespace),
            maintenance=maintenance,
            proposals=logs.log_options.proposals,
        )

    @classmethod
    def from_env(cls, *, options: Mapping[str, str] | None = None, as_of: Moment | None = None) -> Self:
        """Open the warehouse that LAKELOG_WAREHOUSE names. Raises InvalidInput if it is not set."""
        warehouse = os.environ.get(WAREHOUSE_VARIABLE, "")
        if not warehouse:
            raise InvalidInput(
                f"{WAREHOUSE_VARIABLE} is not set: set it to the warehouse's folder or URL, or write Catalog(…)"
            )
        return cls(warehouse, options=options, as_of=as_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._logs.opening,)

    # Several changes at once

    def begin(self, isolation: str | None = None) -> Transaction:
        """Begin a transaction: a catalog as of now, whose changes no other reader sees before its `commit`.

        `isolation` is snapshot or serializable. None leaves that to the tables' property `lakelog.isolation`.
        """
        self._logs.check_writable()
        return Transaction(self._logs, isolation)

    def transaction(self, isolation: str | None = None) -> Transaction:
        """As `begin`, for `with`. It commits at the end of the block, and rolls back if the block raises."""
        return self.begin(isolation)

    def save_cut(self, name: str, *, namespace: Name = (), token: Token | None = None) -> SavedCut:
        """Give the present version of every log a name, for `Catalog(…, as_of=name)`.

        Raises AlreadyExists. With a `namespace`, the cut is the namespace's own, and has only the logs that
        it leads to. That takes no rights outside of its folder. `as_of_namespace` opens such a cut. Raises
        InvalidInput if the namespace leads to a table outside of its folder.
        """
        return save_cut(self._tree, name, identifier(namespace), token)

    def drop_cut(self, name: str, *, namespace: Name = (), token: Token | None = None) -> None:
        """Delete a saved cut, or a namespace's own: versions that only it needs can expire. Raises NotFound."""
        drop_cut(self._tree, name, identifier(namespace), token)

    # Clones

    def clone(
        self,
        source: Name,
        target: Name,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Make `target` a table with the rows and columns of `source`, now or at a version or time.

        No byte is copied. The clone has the files of the source, which keeps them until the clone needs them
        no more. From then on each table has its own history. Tags, branches and older versions do not come
        along. Takes the right to write in the source's log. Raises TableExists (unless `if_not_exists`),
        NoSuchTable, NoSuchNamespace or PermissionDenied. Raises Unsupported if the table has files that
        another writer may delete.
        """
        from lakelog.catalog.keeping.clones import clone_table

        path = table_identifier(target)
        if if_not_exists and token is None and self.table_exists(path):
            return self.load_table(path)
        head = self.load_table(source, version=version, timestamp=timestamp).table_head
        try:
            return Table(clone_table(self._tree, head, path, token))
        except TableExists:
            if not if_not_exists or not self.table_exists(path):
                raise
            return self.load_table(path)

    def clone_namespace(self, source: Name, target: Name, *, token: Token | None = None) -> None:
        """Make the namespace `target` with a clone of each table in and below `source`, as of one moment.

        All become visible by a single commit. Views, functions and saved cuts are not cloned. Raises
        NamespaceExists or NoSuchNamespace, and errors of `clone` for each table.
        """
        from lakelog.catalog.keeping.clones import clone_namespace

        clone_namespace(self._tree, identifier(source), identifier(target), token)

    # Tables of other formats

    def import_table(
        self,
        source: Location,
        table: Name,
        *,
        format: str,
        mode: str = SNAPSHOT,
        versions: int = 100,
        dry_run: bool = False,
        copy: bool = False,
        time_zone: str | None = None,
        known: KnownFolder | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Imported:
        """Make the table `table` from a table of another format, whose files stay where they are.

        If an import made the table before, it catches up with the source's later changes, as a single commit.
        `source` is the folder of an Iceberg table, or its metadata file (`format` iceberg), of a Delta table
        (delta) or of Parquet files (parquet). `time_zone` is the time zone of a Delta table's writers, for
        partitions by times. The source's newest `versions` become versions of the table. The first of them
        has all earlier changes. With `copy`, files of these and of later imports are copied, so that the
        source may delete its own. `mode` snapshot leaves the source as it is. With `dry_run`, nothing is
        committed. `known` are an engine's facts of a Parquet folder. Raises InvalidInput if the table has
        another source. Raises SourceDiverged, and Unsupported if lakelog lacks a feature of the source.
        Nothing is changed then.
        """
        from lakelog.catalog.formats.imports import import_table

        self._logs.check_writable()
        return import_table(
            self._tree,
            spelled(source),
            table_identifier(table),
            format=format,
            mode=mode,
            versions=versions,
            dry_run=dry_run,
            copy=copy,
            known=known,
            time_zone=time_zone,
            progress=progress,
        )

    def adopt_files(
        self, table: Name, *, dry_run: bool = True, progress: Callable[[str], None] | None = None
    ) -> Adoption:
        """Make the source's files in an imported table the table's own.

        A commit names each of these files. From then on a vacuum deletes files that no version has any more,
        and the table catches up no more. The source has to be gone: a Delta table without its `_delta_log`,
        an Iceberg table without its metadata. Looks for other tables of this warehouse that have any of the
        files, and for other files in the source's folder. Raises SourceDiverged or InvalidInput if there is
        or may be another owner. Nothing is changed then. `dry_run` (default) only reports.
        """
        from lakelog.catalog.keeping.maintenance import adopt_files

        self._logs.check_writable()
        return adopt_files(self._tree, table_identifier(table), dry_run=dry_run, progress=progress)

    # Maintenance

    def expire(
        self,
        table: Name | None = None,
        *,
        namespace: Name | None = None,
        location: Location | None = None,
        older_than: dt.timedelta | None = None,
        version: int | None = None,
        retain_last: int | None = None,
        dry_run: bool = True,
        trust_clock: bool = False,
        progress: Callable[[str], None] | None = None,
        engine: Engine | None = None,
    ) -> list[Expired]:
        """Expire old versions of a table, of a namespace with all below it, or of the whole catalog.

        These are versions that were replaced longer ago than `older_than`, or before `version`, or all but
        the `retain_last` newest. Without any of these, the property `lakelog.maintenance.keep-for` of the
        table, or of a namespace above it, says how long versions are kept. It is 7 days if there is no such
        property. Returns the expired versions of each log. `dry_run` (default) only reports them. The current
        version stays, and so do versions that saved cuts need. If only this host's clock says that more than
        a day has passed since the newest commit, versions that are old enough by that alone are not expired,
        unless with `trust_clock`. Raises ClockNotTrusted then, and nothing is changed. An `engine` makes the
        tombstones if more than 1,000 can be made in parallel.
        """
        from lakelog.catalog.keeping.maintenance import expire_logs, what_to_keep

        wish = what_to_keep(older_than=older_than, version=version, retain_last=retain_last)
        self._check_there(location)
        scope = chosen_scope(
            self._tree, *_identifiers(table, namespace), location=spelled(location), progress=progress
        )
        if version is not None and not scope.is_one_table:
            raise InvalidInput(
                "a version belongs to a single table: name a table, or use older_than or retain_last"
            )
        results = expire_logs(
            self._tree,
            scope,
            wish,
            dry_run=dry_run,
            by_policy=older_than is None and version is None and retain_last is None,
            trust_clock=trust_clock,
            progress=progress,
            engine=engine,
        )
        return reported(results, dry_run=dry_run)

    def vacuum(
        self,
        table: Name | None = None,
        *,
        namespace: Name | None = None,
        location: Location | None = None,
        older_than: dt.timedelta | None = None,
        dropped_older_than: dt.timedelta | None = None,
        dry_run: bool = True,
        trust_clock: bool = False,
        keys: bool = False,
        progress: Callable[[str], None] | None = None,
        engine: Engine | None = None,
    ) -> list[Vacuumed]:
        """Delete unreachable files of a table, of a namespace with all below it, or of the whole catalog.

        These are files that no retained version and no write under way can reach. For a namespace or the
        catalog, it also deletes leftovers of unfinished creations, and objects that were dropped longer ago
        than `dropped_older_than` (7 days). These cannot be restored then. Writes that began longer ago than
        `older_than` (3 days) fail from then on. Returns the deleted objects by place, with `keys` by name
        too. `dry_run` (default) only reports them. `trust_clock` is as for `expire`. If a table has more than
        100,000 objects to delete, an `engine` deletes them.
        """
        from lakelog.catalog.keeping.maintenance import vacuum_logs, vacuum_wish

        wish = vacuum_wish(
            older_than=older_than,
            dropped_older_than=dropped_older_than,
            dry_run=dry_run,
            trust_clock=trust_clock,
            keys=keys,
            progress=progress,
            engine=engine,
        )
        self._check_there(location)
        scope = chosen_scope(
            self._tree, *_identifiers(table, namespace), location=spelled(location), progress=progress
        )
        return reported(vacuum_logs(self._tree, scope, wish), dry_run=dry_run)

    def maintain(
        self,
        name: Name | None = None,
        *,
        location: Location | None = None,
        dry_run: bool = False,
        limit_time: dt.timedelta | None = None,
        limit_bytes: int | None = None,
        actions: Collection[str] = ACTIONS,
        stopped: Callable[[], bool] = lambda: False,
        progress: Callable[[str], None] | None = None,
        engine: Engine | None = None,
    ) -> list[Maintained]:
        """Do the due upkeep of a table, or of each table of a namespace with all below it, by their policies
        (see docs/upkeep.md).

        Without a name, of the whole warehouse. It joins small files of about the same size, and rewrites
        files with many deleted rows without these rows. Versions expire, and files are deleted, only if a
        policy says how long to keep them. It stops after about `limit_time`, after reading `limit_bytes` for
        compactions, or if `stopped` returns true. All commits until then stay, and the next call goes on.
        `actions` are some of compact, cluster, statistics, expire and vacuum. With `dry_run`, it only reports
        the due work. A table that fails is reported, and hides no other table. Raises NoSuchTable if there is
        neither a table nor a namespace of that name.
        """
        from lakelog.catalog.keeping.upkeep import MaintenanceLimits, maintain_tables

        self._logs.check_writable()
        if limit_time is not None and not isinstance(limit_time, dt.timedelta):
            raise InvalidInput(f"a limit of {limit_time!r} is not a time: give a datetime.timedelta")
        limits = MaintenanceLimits(
            now_s=self._logs.log_options.monotonic_s,
            limit_s=None if limit_time is None else limit_time.total_seconds(),
            limit_bytes=limit_bytes,
            stopped=stopped,
        )
        scope = self._scope_of(name, location, progress)
        return maintain_tables(
            self._tree,
            scope,
            limits,
            actions=actions,
            dry_run=dry_run,
            progress=progress or no_progress,
            engine=engine,
        )

    # Inspection

    def audit(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        table: Name | None = None,
        namespace: Name | None = None,
        location: Location | None = None,
        user: str | None = None,
        operation: str | None = None,
        newest_first: bool = True,
        verify: bool = True,
        whole_ranges: bool = False,
    ) -> Iterator[AuditEntry]:
        """Yield the audited changes of the whole warehouse (see `lakelog.catalog.looking.audit`)."""
        from lakelog.catalog.looking.audit import audit_entries

        self._check_there(location)
        watch = watched(self._logs, "audit", "")
        with watch.working():
            entries = audit_entries(
                self._tree,
                since=since,
                until=until,
                table=table,
                namespace=namespace,
                location=spelled(location),
                user=user,
                operation=operation,
                newest_first=newest_first,
                verify=verify,
                whole_ranges=whole_ranges,
            )
        return watch.each(entries)

    def picture(
        self,
        name: Name | None = None,
        *,
        location: Location | None = None,
        versions: int = CHANGES_MAX,
        progress: Callable[[str], None] | None = None,
    ) -> Sheet:
        """Return a picture of the contents and the history of a table, or of a namespace with all below it.

        Without a name, it shows the whole warehouse. A table can also be given by its `location`. Reads and
        verifies the newest `versions` changes. The picture names damaged parts, and they hide nothing else. A
        notebook shows it, and `to_html` returns a page. Raises NoSuchTable if there is neither a table nor a
        namespace of that name.
        """
        from lakelog.catalog.looking.pictures import PictureRequest, Sheet, picture_of_namespace

        self._check_there(location)
        if versions < 1:
            raise InvalidInput(f"{versions} versions cannot be shown: give at least 1")
        wish = PictureRequest(versions, progress or no_progress)
        if location is not None:
            return Sheet(self._table_picture(None, spelled(location), wish))
        path = () if name is None else identifier(name)
        try:
            if path:
                return Sheet(self._table_picture(path, None, wish))
        except NoSuchTable:
            if self._tree.find_namespace(path) is None:
                raise
        return Sheet(picture_of_namespace(self._tree, path, wish))

    def _table_picture(self, path: Identifier | None, location: str | None, wish: PictureRequest) -> Picture:
        from lakelog.catalog.looking.pictures import picture_of_table

        try:
            table = self.table_at(location or "") if path is None else self.load_table(path)
        except FormatError:
            return picture_of_table(self._tree, None, path, location, wish)
        return picture_of_table(self._tree, table.table_head, path, location, wish)

    def health(
        self,
        name: Name | None = None,
        *,
        location: Location | None = None,
        commits: int = COMMITS_MAX,
        listing: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> list[Health]:
        """Return the health of a table, or of each table of a namespace with all below it.

        Without a name, of the whole warehouse. For each advised action it has the command, and the expected
        reads, writes and savings. Reads metadata alone: the newest `commits` of each table, and its
        manifests. With `listing`, it lists each table's objects too, and counts those that a vacuum would
        delete now. Raises NoSuchTable if there is neither a table nor a namespace of that name.
        """
        from lakelog.catalog.keeping.upkeep import health_in

        scope = self._scope_of(name, location, progress)
        return health_in(
            self._tree, scope, commits=commits, listing=listing, progress=progress or no_progress
        )

    def _scope_of(
        self, name: Name | None, location: Location | None, progress: Callable[[str], None] | None
    ) -> LogScope:
        """Return the scope of a table, or of a namespace with all below it.

        Raises NoSuchTable if there is neither.
        """
        self._check_there(location)
        path = () if name is None else identifier(name)
        is_table = bool(path) and self.table_exists(path)
        if path and not is_table and self._tree.find_namespace(path) is None:
            raise no_such_table(path)
        scope_arguments = {"table": path} if is_table else {"namespace": path} if location is None else {}
        return chosen_scope(self._tree, **scope_arguments, location=spelled(location), progress=progress)

    def fsck(
        self,
        name: Name | None = None,
        *,
        deep: bool = False,
        all_versions: bool = False,
        repair: bool = False,
        checksums: Mapping[str, Checksum] | None = None,
        progress: Callable[[str], None] = lambda message: None,
    ) -> Findings:
        """Check every object of the warehouse, or of a table or namespace (see
        `lakelog.catalog.keeping.maintenance`).

        A `deep` check reads only the footers of data files in `checksums`, by URL, because an engine has read
        the files.
        """
        from lakelog.catalog.keeping.maintenance import check_warehouse

        if self._logs.is_a_cut:
            raise InvalidInput("a catalog as of the past cannot be checked: open the catalog as it is now")
        self._check_there(None)
        path = () if name is None else identifier(name)
        return check_warehouse(
            self._logs,
            path,
            deep=deep,
            all_versions=all_versions,
            repair=repair,
            checksums=checksums,
            progress=progress,
        )


def _identifiers(table: Name | None, namespace: Name | None) -> tuple[Identifier | None, Identifier | None]:
    return (
        None if table is None else table_identifier(table),
        None if namespace is None else identifier(namespace),
    )


def _reopened(opening: CatalogOpening) -> Catalog:
    opening.check_process()
    return Catalog(
        opening.warehouse,
        options=opening.options,
        writer=opening.writer,
        log_options=LogOptions(proposals=opening.proposals),
        as_of=opening.as_of,
        as_of_namespace=opening.as_of_namespace,
        maintenance=opening.maintenance,
    )


def _as_of(logs: LogCache, as_of: str | dt.datetime | int | None, namespace: Identifier) -> LogCache:
    refusal = f"this catalog is read-only: it was opened as of {as_of}"
    if isinstance(as_of, str) and not is_time(as_of):
        return TransactionLogs(logs, cut_of(logs, as_of, namespace), refusal=refusal)
    if namespace:
        raise InvalidInput(
            f"as_of_namespace is {quoted(namespace)}, and as_of is {as_of}: give the name of a cut of that namespace"
        )
    if as_of is None:
        return logs
    at_us = time_us(as_of)

    def check_past() -> None:
        # It is asked after a log was read, so the store's time is known without a request.
        if logs.clocks.is_future(at_us):
            raise InvalidInput(f"the time {as_of} is in the future: the catalog as of then is not known yet")

    return TransactionLogs(logs, ConsistentCut(logs, at_us=at_us, check_past=check_past), refusal=refusal)
