"""The front door: a catalog of namespaces and tables in one warehouse, a folder or a prefix on S3."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakelog.catalog.after_commit import AfterCommit
from lakelog.catalog.catalog_backups import CatalogBackups
from lakelog.catalog.choices import ACTIONS, CHANGES_MAX, COMMITS_MAX, SNAPSHOT
from lakelog.catalog.core.ddl import cut_of, drop_cut, save_cut
from lakelog.catalog.core.logs import (
    Cut,
    LogCache,
    Observe,
    Opening,
    Places,
    Scope,
    Token,
    TransactionLogs,
    Unchanging,
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
from lakelog.catalog.errors import NoSuchTable, TableExists
from lakelog.catalog.names import Identifier, Location, Name, identifier, quoted, spelled, table_identifier
from lakelog.catalog.table import Table
from lakelog.catalog.times import Moment, is_time, time_us
from lakelog.catalog.transaction import Transaction
from lakelog.log import Json, LogOptions
from lakelog.log.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from lakelog.catalog.formats.imports import Imported, KnownFolder
    from lakelog.catalog.keeping.maintenance import Adoption, Checksum, Engine, Expired, Findings, Vacuumed
    from lakelog.catalog.keeping.upkeep import Due, Health, Maintained
    from lakelog.catalog.looking.audit import AuditEntry
    from lakelog.catalog.looking.pictures import Picture, Sheet, Wish


@observed(lambda catalog: catalog._logs, apart_from=("audit", "transaction"))
class Catalog(CatalogBackups, Unchanging):
    """Namespaces, tables, views and functions under one warehouse. Safe to share between threads.

    `options`: `fsync` (on, off) for folders; `endpoint`, `region`, `path_style` for S3, whose credentials come from the
    usual AWS chain only. `writer` is kept in every commit, to identify its author; without one, `writer_facts` is kept.
    `log_options` switches `proposals` on or off, and replaces clock, ids and patience, for tests. `as_of`, a time or
    the name of a saved cut, opens the catalog as of then, read-only. A namespace's own cut is opened by its name and
    that of the namespace, `as_of_namespace`, and shows nothing but that namespace, at the name that it has now.
    `observe` is called with an `Observation` of each operation, in the thread that ends it: see `logs.observing`.
    `maintenance` (on-demand, auto) holds for tables for which no property `lakelog.maintenance` does; with off, this
    process compacts none by itself.

    A catalog can be pickled, and so can its tables and their reads: see `logs.pickled`. What opens it again has neither
    its `observe` nor its `log_options`, except for `proposals`.
    """

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
        places = Places(spelled(warehouse), options or {})
        logs = LogCache(places, identity, log_options or LogOptions(), observe)
        logs.after_commit = AfterCommit(maintenance).committed
        logs.gather_rows = gathered_rows
        super().__init__(_as_of(logs, as_of, identifier(as_of_namespace)))
        self._logs.opening = Opening.without_secrets(
            reopen=_reopened,
            warehouse=logs.warehouse,
            options=options,
            writer=writer,
            as_of=as_of,
            as_of_namespace=identifier(as_of_namespace),
            maintenance=maintenance,
            proposals=logs.log_options.proposals,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._logs.opening,)

    # Several changes at once

    def begin(self, isolation: str | None = None) -> Transaction:
        """Begin a transaction: a catalog as of now, whose changes no other reader sees before its `commit`.

        `isolation` is snapshot or serializable; None leaves that to the tables' property `lakelog.isolation`.
        """
        self._logs.check_writable()
        return Transaction(self._logs, isolation)

    def transaction(self, isolation: str | None = None) -> Transaction:
        """As `begin`, for `with`: committed at the end of the block, rolled back when that raises."""
        return self.begin(isolation)

    def save_cut(self, name: str, *, namespace: Name = (), token: Token | None = None) -> SavedCut:
        """Give the present version of every log a name, for `Catalog(…, as_of=name)`. AlreadyExists.

        With a `namespace`, of the logs that it leads to alone, and as one of its own: that takes no rights beside its
        folder. `as_of_namespace` opens it. InvalidInput where it leads to a table outside of its folder.
        """
        return save_cut(self._tree, name, identifier(namespace), token)

    def drop_cut(self, name: str, *, namespace: Name = (), token: Token | None = None) -> None:
        """Forget a saved cut, or one of a namespace's own: versions that only it needed can then expire. NotFound."""
        drop_cut(self._tree, name, identifier(namespace), token)

    # Clones

    def clone(
        self,
        source: Name,
        target: Name,
        *,
        version: int | None = None,
        timestamp_us: int | None = None,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Make `target` a table with the rows and columns of `source`, now or at a version or time, without copying a
        byte: its files are those of the source, which keeps them until the clone needs them no more. From there on each
        has its own history. Tags, branches and older versions do not come along.

        Takes the right to write in the source's log. TableExists (unless `if_not_exists`), NoSuchTable,
        NoSuchNamespace; PermissionDenied; Unsupported for a table with files that another writer may delete.
        """
        from lakelog.catalog.keeping.clones import clone_table

        path = table_identifier(target)
        if if_not_exists and token is None and self.table_exists(path):
            return self.load_table(path)
        head = self.load_table(source, version=version, timestamp_us=timestamp_us).head
        try:
            return Table(clone_table(self._tree, head, path, token))
        except TableExists:
            if not if_not_exists or not self.table_exists(path):
                raise
            return self.load_table(path)

    def clone_namespace(self, source: Name, target: Name, *, token: Token | None = None) -> None:
        """Make the namespace `target` with a clone of each table in and below `source`, all as of one moment: they
        become visible by one commit. Views, functions and saved cuts stay behind.

        NamespaceExists, NoSuchNamespace; for each table as `clone`.
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
        """Make the table `table` of a table of another format, whose files stay where they are; or, where it was made
        so before, catch up with what the source did since, as one commit.

        `source` is the folder of an Iceberg table, or its metadata file (`format` iceberg), of a Delta table (delta) or
        of Parquet files (parquet). `time_zone` is that of a Delta table's writers, for partitions by times. Its newest
        `versions` come along, older ones in the first of them. With `copy`, files of all of these are copied, and those
        of later imports, so that the source may delete its own. `mode` snapshot leaves the source as it is. With
        `dry_run`, nothing is committed. InvalidInput for a table of another source, SourceDiverged, Unsupported for
        what lakelog does not have: then nothing is changed. `known` is what an engine knows of a Parquet folder.
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
        """Make the files that an imported table has of its source the table's own, named one by one in a commit: from
        then on a vacuum deletes those that no version has any more, and the table catches up no more.

        The source has to be gone: a Delta table without its `_delta_log`, an Iceberg table without its metadata. Other
        tables of this warehouse that have one of the files, and other files in the source's folder, are looked for.
        SourceDiverged, InvalidInput where there is another owner, or may be one; then nothing is changed. `dry_run`
        (default) only reports.
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
        """Expire versions that were replaced longer ago than `older_than`, or before `version`, or all but the
        `retain_last`: of a table, a namespace with all that is below it, or the whole catalog. Without any of these,
        versions are kept for as long as the property `lakelog.maintenance.keep-for` of the table or of a namespace
        above it says, and for 7 days where none does.

        Returns what expires of each log; `dry_run` (default) only reports it. The current version stays, and versions
        that saved cuts need. Where nothing but the clock of this host says that more than a day has passed since the
        newest commit, a version that is old enough by that alone is not expired, unless with `trust_clock`:
        ClockNotTrusted, and nothing is changed. An `engine` makes the tombstones where more than 1,000 can be made
        side by side.
        """
        from lakelog.catalog.keeping.maintenance import expire_logs, what_to_keep

        wish = what_to_keep(older_than=older_than, version=version, retain_last=retain_last)
        self._check_there(location)
        found = chosen_scope(
            self._tree, *_identifiers(table, namespace), location=spelled(location), progress=progress
        )
        if version is not None and not found.is_one_table:
            raise InvalidInput(
                "a version belongs to a single table: name a table, or use older_than or retain_last"
            )
        return expire_logs(
            self._tree,
            found,
            wish,
            dry_run=dry_run,
            by_policy=older_than is None and version is None and retain_last is None,
            trust_clock=trust_clock,
            progress=progress,
            engine=engine,
        )

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
        """Delete files that no retained version and no write under way can reach, of a table, a namespace with all that
        is below it, or the whole catalog; of the latter two also objects that were dropped longer ago than
        `dropped_older_than` (7 days), which can then not be restored, and the leftovers of unfinished creations.

        Writes that began longer ago than `older_than` (3 days) fail from then on. Returns what is deleted, by place,
        with `keys` by name too; `dry_run` (default) only reports it. `trust_clock` is as for `expire`. Of a table
        with more than 100,000 objects to delete, an `engine` deletes them.
        """
        from lakelog.catalog.keeping.maintenance import vacuum_logs, vacuum_wish

        asked = vacuum_wish(
            older_than=older_than,
            dropped_older_than=dropped_older_than,
            dry_run=dry_run,
            trust_clock=trust_clock,
            keys=keys,
            progress=progress,
            engine=engine,
        )
        self._check_there(location)
        found = chosen_scope(
            self._tree, *_identifiers(table, namespace), location=spelled(location), progress=progress
        )
        return vacuum_logs(self._tree, found, asked)

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
        """Do what is due to keep a table in shape, or each table of a namespace with all below it, by their policies
        (see docs/upkeep.md). Without a name, of the whole warehouse.

        Small files of about one size are joined, and files with many deleted rows rewritten without these; versions
        expire, and files are deleted, only where a policy says how long to keep them. It stops after about that time,
        or once so many bytes were read for compactions, or when `stopped` returns true, with all that was committed by
        then; the next call goes on. `actions` are some of compact, expire and vacuum. With `dry_run`, it only reports
        what is due. A table that fails is reported, and hides no other. NoSuchTable where there is neither.
        """
        from lakelog.catalog.keeping.upkeep import Limits, maintain_tables

        self._logs.check_writable()
        if limit_time is not None and not isinstance(limit_time, dt.timedelta):
            raise InvalidInput(f"a limit of {limit_time!r} is not a time: give a datetime.timedelta")
        limits = Limits(
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

    def plan_upkeep(self, name: Name | None = None) -> list[Due]:
        """Return what is due for the tables that `maintain` would look at, for an engine that rewrites rows itself."""
        from lakelog.catalog.keeping.upkeep import due_in

        self._logs.check_writable()
        return due_in(self._tree, self._scope_of(name, None, None))

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
        """Yield who changed what, when and how, in the whole warehouse (see `lakelog.catalog.looking.audit`)."""
        from lakelog.catalog.looking.audit import audit_entries

        self._check_there(location)
        reading = watched(self._logs, "audit", "")
        with reading.working():
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
        return reading.each(entries)

    def picture(
        self,
        name: Name | None = None,
        *,
        location: Location | None = None,
        versions: int = CHANGES_MAX,
        progress: Callable[[str], None] | None = None,
    ) -> Sheet:
        """Return what a table, or a namespace with all below it, holds and what happened to it, to be looked at.

        Without a name, of the whole warehouse; of a table also by its `location`. The newest `versions` changes are
        read, and verified. What is damaged is named in it and hides nothing else. A notebook shows it; `to_html` is
        one page. NoSuchTable where there is neither a table nor a namespace of that name.
        """
        from lakelog.catalog.looking.pictures import Sheet, Wish, picture_of_namespace

        self._check_there(location)
        if versions < 1:
            raise InvalidInput(f"{versions} versions cannot be shown: give at least 1")
        wish = Wish(versions, progress or no_progress)
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

    def _table_picture(self, path: Identifier | None, location: str | None, wish: Wish) -> Picture:
        from lakelog.catalog.looking.pictures import picture_of_table

        try:
            table = self.table_at(location or "") if path is None else self.load_table(path)
        except FormatError:
            return picture_of_table(self._tree, None, path, location, wish)
        return picture_of_table(self._tree, table.head, path, location, wish)

    def health(
        self,
        name: Name | None = None,
        *,
        location: Location | None = None,
        commits: int = COMMITS_MAX,
        listing: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> list[Health]:
        """Return how a table is, or each table of a namespace with all below it, and what is to be done about it, with
        what that would read, write and save, and the command for it. Without a name, of the whole warehouse.

        It reads metadata alone: the newest `commits` of each table, and its manifests. With `listing`, what a vacuum
        would delete now is counted too, by a list of each table's objects. NoSuchTable where there is neither.
        """
        from lakelog.catalog.keeping.upkeep import health_in

        scope = self._scope_of(name, location, progress)
        return health_in(
            self._tree, scope, commits=commits, listing=listing, progress=progress or no_progress
        )

    def _scope_of(
        self, name: Name | None, location: Location | None, progress: Callable[[str], None] | None
    ) -> Scope:
        """Return a table, or a namespace with all below it, by a name that may be either's. NoSuchTable."""
        self._check_there(location)
        path = () if name is None else identifier(name)
        is_table = bool(path) and self.table_exists(path)
        if path and not is_table and self._tree.find_namespace(path) is None:
            raise no_such_table(path)
        which = {"table": path} if is_table else {"namespace": path} if location is None else {}
        return chosen_scope(self._tree, **which, location=spelled(location), progress=progress)

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
        """Check every object of the warehouse, or of a table or namespace (see `lakelog.catalog.keeping.maintenance`).

        Of data files in `checksums`, by URL, a `deep` check reads no more than the footer: others have read them.
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


def _reopened(opening: Opening) -> Catalog:
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
        # Asked once a log was read: so the store's time is known without a request.
        if logs.clocks.is_future(at_us):
            raise InvalidInput(f"the time {as_of} is in the future: the catalog as of then is not known yet")

    return TransactionLogs(logs, Cut(logs, at_us=at_us, check_past=check_past), refusal=refusal)
