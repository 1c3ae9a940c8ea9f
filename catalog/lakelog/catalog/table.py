"""A table as a value: one version of it, to look at, read, and change into a newer one.

A handle never changes under its holder; every change returns the handle of the version that it made. A handle that was
asked for by version or time is of the past and refuses changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.catalog import table_partitions
from lakelog.catalog.errors import BatchCommitted, NoSuchTable
from lakelog.catalog.files import DataFile, Positions, TableEstimates, check_written_by
from lakelog.catalog.logs import (
    LogCache,
    NothingToDo,
    TableVersion,
    Token,
    TrackedLog,
    Written,
    check,
    gone_as_no_such_table,
    no_files,
    seen_on,
    was_applied_elsewhere,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.parquet import check_rows, required
from lakelog.catalog.planning import TopRows, Values
from lakelog.catalog.schema import (
    ALWAYS_TRUE,
    Constraint,
    Filter,
    Metadata,
    PartitionSpec,
    Schema,
    SortOrder,
    TableChange,
    ValuesTaken,
    apply_changes,
    as_predicate,
    changes_from,
    values_json,
)
from lakelog.catalog.state import MAIN, HistoryEntry, Operation, TableState, encode, entry_of, events_of
from lakelog.catalog.table_compaction import TableCompaction
from lakelog.catalog.table_versions import TableVersions
from lakelog.catalog.writes import (
    StreamBatch,
    check_new,
    delete,
    file_changes,
    known_taken,
    look_again,
    rollback,
    row_changes,
    statistics_commit,
)
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    # What reads and writes Parquet is loaded by the first read or write: an engine that does both itself needs neither.
    from lakelog.catalog.changelog import Changes
    from lakelog.catalog.parquet import FoundFile, Ingestible
    from lakelog.catalog.scan import Scan


class Table(TableCompaction, TableVersions):
    """One version of a table. `identifier` is None when the table was opened by its place."""

    def __init__(
        self,
        logs: LogCache,
        tracked: TrackedLog[TableState],
        view: View[TableState],
        identifier: Identifier | None,
        *,
        of_the_past: bool = False,
    ) -> None:
        self._logs = logs
        self._tracked = tracked
        self._view = view
        self._of_the_past = of_the_past
        self.identifier = identifier

    def __repr__(self) -> str:
        return f"<Table {self.name} version {self.version}>"

    # What it is

    @property
    def name(self) -> str:
        """The quoted name, or the place where it has no name."""
        return quoted(self.identifier) if self.identifier else self.location

    @property
    def location(self) -> str:
        """The folder or S3 URL that holds the table's log, and its files below `data/`."""
        return self._logs.url(self._tracked.location)

    @property
    def id(self) -> str:
        return self._view.log_id

    @property
    def version(self) -> int:
        return self._view.version

    @property
    def timestamp_us(self) -> int:
        """When this version was committed, in microseconds since 1970 (UTC), by the log's never-decreasing time."""
        return self._view.time_us

    @property
    def metadata(self) -> Metadata:
        return self._view.state.current

    @property
    def schema(self) -> Schema:
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """How new files are partitioned; `specs` has those of older files too."""
        return self.metadata.spec

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        return self.metadata.specs

    @property
    def sort_order(self) -> SortOrder:
        return self.metadata.sort_order

    @property
    def clustering(self) -> tuple[tuple[str, ...], ...]:
        """The columns by which writes cluster their rows, each by the names that lead to it."""
        return tuple(map(self.schema.path_of, self.metadata.clustering))

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.properties

    @property
    def provider(self) -> str | None:
        """What was said after USING when the table was created, kept as it was."""
        return self.metadata.provider

    @property
    def comment(self) -> str | None:
        return self.metadata.comment

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """CHECK conditions, which hold for all rows, and keys, which are only said to hold."""
        return self.metadata.constraints

    @property
    def own_location(self) -> bool:
        """Whether the user chose the place, rather than the catalog."""
        return self.metadata.own_location

    @property
    def estimates(self) -> TableEstimates | None:
        """What `compute_statistics` found last, by column id; None where nobody has asked for it."""
        return self._view.state.estimates

    @property
    def row_count(self) -> int:
        self._tracked.note_rows_read(None)
        return self._view.state.files.row_count

    @property
    def file_count(self) -> int:
        self._tracked.note_rows_read(None)
        return self._view.state.files.file_count

    @property
    def size_bytes(self) -> int:
        """The size of the data files, compressed as they are."""
        self._tracked.note_rows_read(None)
        return self._view.state.files.size_bytes

    # Other versions

    def refresh(self) -> Table:
        """Return the newest version, on a branch of this. Costs 1 GET when nothing is newer.

        NoSuchTable when the table was dropped, NoSuchRef when the branch was.
        """
        with gone_as_no_such_table(self.name):
            view = self._tracked.current()
        if view.sealed or view.log_id != self.id:
            raise NoSuchTable(f"there is no table {self.name} any more: it was dropped")
        return self._with(view)

    def history(self, *, limit: int | None = None) -> Iterator[HistoryEntry]:
        """Yield what happened to the table up to this version, the newest first."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"a limit of {limit} versions is not possible: give 0 or more")
        self._tracked.note_rows_read(None)
        if self._tracked.is_new:
            return
        commits = self._tracked.log.commits(last=self.version, newest_first=True)
        for count, commit in enumerate(commits):
            if count == limit or commit.log_id != self.id:
                return
            yield entry_of(commit)

    def inspect(self, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of a metadata table, all columns or these: see docs/sql/metadata.md."""
        from lakelog.catalog.audit import read_metadata

        return read_metadata(TableVersion(self._tracked, self._view, self.location), name, columns)

    # Reading

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        *,
        row_ids: bool = False,
    ) -> Scan:
        """Prepare a read of this version: some columns (in their order), the rows that match, at most `limit`.

        With `row_ids`, `_row_id` and `_row_version` follow: an id that stays when the row is moved or updated, and the
        version that wrote it last. Both are NULL for rows of before there were ids, and for those that a transaction
        has added, as long as it is not committed.
        """
        from lakelog.catalog.scan import Scan

        return Scan(self._tracked, self._view, columns, filter, limit, row_ids=row_ids)

    def to_arrow(self) -> pa.Table:
        return self.scan().to_arrow()

    def plan(self, predicate: Filter | None = None, *, top: TopRows | None = None) -> pa.Table:
        """Return the data files that may hold rows matching `predicate` or, without one, one of the `top` rows."""
        return TableVersion(self._tracked, self._view, self.location).plan(predicate, top)

    def changes(
        self,
        first: int,
        last: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        net: bool = False,
        updates: bool = False,
    ) -> Changes:
        """Prepare a read of the rows that versions from `first` to `last` (None: this one) inserted and deleted.

        An updated row is deleted and inserted, or, with `updates`, the two halves of an update. With `net`, a row has
        the change between before `first` and after `last`, if any. In a transaction, there are those of committed
        versions, with their columns. NotFound for versions that there are not (any more).
        """
        from lakelog.catalog.changelog import Asked, Changes, changelog_of

        log = changelog_of(self, Asked(start_version=first, end_version=last))
        return Changes(self._tracked, log, columns, net=net, updates=updates)

    # Changing metadata

    def alter(
        self,
        changes: Sequence[TableChange | Mapping[str, Any]],
        *,
        looked_at: Table | None = None,
        token: Token | None = None,
    ) -> Table:
        """Apply `changes` in their order as one commit, or none of them.

        A new CHECK, and NOT NULL for a column that may be NULL, need a proof that all rows are so: the statistics of
        the files (RowsUnproven where they do not give it), or the word of an engine that has `looked_at` all rows of a
        version. CommitConflict when files were added since then that may hold others.
        """
        self._check_main("altered")
        self._check_writable("alter")
        parsed = changes_from(changes)
        own = self._tracked.own_since(self._view)
        if own:
            written = Written(-1, self.schema, no_files)
            check(Operation.ALTER, self._tracked.current(), own, written, self.name)
        looked = None if looked_at is None else looked_at._view

        def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
            metadata = view.state.current
            check(Operation.ALTER, view, passed, Written(self.version, self.schema, no_files), self.name)
            altered = apply_changes(metadata, parsed)
            events = events_of(metadata, altered)
            if not events:
                raise NothingToDo("the table is so already")
            check_rows(self._tracked, view, looked, required(metadata, altered), self.name)
            return Draft(events=encode(events))

        try:
            return self._commit(decide, token)
        except NothingToDo:
            return self.refresh()

    # Changing contents, from Python

    def append(
        self, data: Ingestible, *, batch: StreamBatch | None = None, token: Token | None = None
    ) -> Table:
        """Add the rows of an Arrow table, batch, reader or anything that exports an Arrow stream.

        Columns are matched by name. InvalidInput when the data does not fit; nothing is changed then. With `batch`,
        the rows are added once, however often they are: where the table has that batch, nothing happens.
        """
        return self._write(Operation.APPEND, data, None, token, batch)

    def overwrite(
        self, data: Ingestible, filter: Filter | None = None, *, token: Token | None = None
    ) -> Table:
        """Replace all rows, or those for which `filter` is true, by those of `data`. Unsupported as by `delete`."""
        return self._write(Operation.OVERWRITE, data, ALWAYS_TRUE if filter is None else filter, token)

    def overwrite_partitions(self, data: Ingestible, *, token: Token | None = None) -> Table:
        """Replace the partitions that `data` has rows in by the rows of `data`."""
        return self._write(Operation.OVERWRITE_PARTITIONS, data, None, token)

    def truncate(self, *, token: Token | None = None) -> Table:
        """Remove all rows."""
        return self.commit_write(None, Operation.TRUNCATE.value, (), token=token)

    def delete(self, filter: Filter, *, token: Token | None = None) -> Table:
        """Remove the rows that match: whole files where that suffices, else by reading those that may hold some.
        Unsupported for a condition that lakelog does not understand."""
        self._check_writable("delete from")
        predicate, new_id = as_predicate(filter), self._logs.new_id
        return self._with(
            delete.delete(self._tracked, self._view, predicate, new_id, name=self.name, token=token)
        )

    def can_delete(self, filter: Filter) -> bool:
        """Tell whether `delete` with this filter is decided by whole files."""
        self._tracked.note_rows_read(filter)
        return delete.is_by_files(self._tracked, self._view, as_predicate(filter))

    def can_overwrite(self, filter: Filter) -> bool:
        """Tell whether `overwrite` takes this filter: whether lakelog knows exactly which rows it matches."""
        return file_changes.is_understood(as_predicate(filter), self.schema)

    def add_files(
        self,
        source: str,
        *,
        partition_filter: Mapping[str, str | None] | None = None,
        ignore_extra_columns: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Add the Parquet files in the folder `source`, or the file `source`, where they are: nothing is copied.

        Columns are matched by name; what stands in folders' names (name=value) are columns too, of which
        `partition_filter` chooses values. Such files are read, and never deleted. InvalidInput, naming the file, where
        one does not fit the table, is in it already, or tells several values of a partition field.
        """
        from lakelog.catalog.parquet import found_files

        open_url = self._tracked.log.replay.open_url
        assert open_url is not None, "a table's log is opened through a catalog"
        found = found_files(source, self.schema, partition_filter or {}, open_url)
        return self.add_found_files(found, ignore_extra_columns=ignore_extra_columns, token=token)

    def add_found_files(
        self, found: Sequence[FoundFile], *, ignore_extra_columns: bool = False, token: Token | None = None
    ) -> Table:
        """As `add_files`, for an engine that has looked into the files itself."""
        from lakelog.catalog.parquet import data_files

        self._check_writable("add files to")
        if not found:
            return self.refresh()
        files = data_files(found, self.metadata, self.location, ignore_extra_columns=ignore_extra_columns)
        return self.commit_write(self.begin_write(), Operation.APPEND.value, files, token=token)

    def commit_statistics(self, estimates: TableEstimates, *, token: Token | None = None) -> Table:
        """Keep what somebody has found by looking at all rows of this version, for planners of queries."""
        self._check_main("analyzed")
        self._check_writable("compute statistics of")
        decide = statistics_commit.decision(self._tracked, self._view, estimates, self.name)
        return self._commit(decide, token)

    # Partitions, each given by its values: JSON literals by the names of the partition fields

    def partitions(self, where: Values | None = None) -> pa.Table:
        """Return the partitions that have these values: a column for each field, and `files`, `rows` and `bytes`.

        Unsupported where files of an older partitioning may have rows of several of them.
        """
        return table_partitions.listed(self._tracked, self._view, where)

    def add_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Add partitions without rows. One that is there already stays as it is."""
        self._check_writable("add partitions to")
        return table_partitions.add(self._with(self._newest()), self._tracked, partitions, token)

    def drop_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Remove the rows of partitions, and these with them; what is not there is gone already."""
        return table_partitions.drop(self, partitions, token)

    def truncate_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Remove the rows of partitions, which stay as empty ones."""
        self._check_writable("truncate partitions of")
        return self._with(table_partitions.truncate(self, self._tracked, self._view, partitions, token))

    def rename_partition(self, old: Values, new: Values, *, token: Token | None = None) -> Table:
        """Give all rows of the partition `old` the values of `new`, by rewriting them. NotFound, AlreadyExists."""
        self._check_writable("rename partitions of")
        return table_partitions.rename(self, self._tracked, old, new, token)

    # Going back

    def rollback_to_version(self, version: int, *, token: Token | None = None) -> Table:
        """Make the whole table what it was at `version`, rows, columns and properties alike, as a new version.

        What was committed since stays in the history. NotFound for a version that there is not (any more).
        """
        self._check_main("rolled back, but to rows, by set_current_version,")
        return self._go_back(Operation.ROLLBACK, version, token)

    def rollback_to_timestamp(self, timestamp_us: int, *, token: Token | None = None) -> Table:
        """As `rollback_to_version`, to the newest version not after that time."""
        self._check_main("rolled back, but to rows, by set_current_version,")
        self._check_writable("roll back")
        return self.rollback_to_version(self.refresh().at(timestamp_us=timestamp_us).version, token=token)

    def set_current_version(self, version: int, *, token: Token | None = None) -> Table:
        """Give the table the rows that it had at `version`; its columns, partitioning and properties stay.

        InvalidInput where these rows do not fit the table as it is now.
        """
        return self._go_back(Operation.SET_CURRENT, version, token)

    def _go_back(self, operation: Operation, version: int, token: Token | None) -> Table:
        self._check_writable("roll back")
        then = self.at(version=version)._view
        decide = rollback.decision(self._tracked, self._view, then, operation, self.name)
        try:
            return self._commit(decide, token)
        except NothingToDo:
            return self.refresh()

    # Changing contents, for engines

    def begin_write(self) -> WriteRef:
        """Return the id of a new write, which starts from this version; it goes into the names of its files."""
        self._check_writable("write to")
        return WriteRef(id=self._logs.new_id(), version=self.version)

    def identity_values(self) -> list[dict[str, Any]]:
        """Return the next value of each identity column, `{"column": id, "next": value}`, as far as is known here."""
        return values_json(self.schema, known_taken(self._tracked, self._view))

    def commit_write(
        self,
        write: WriteRef | None,
        operation: str,
        files: Sequence[DataFile],
        *,
        filter: Filter | None = None,
        deletes: Sequence[Positions | Mapping[str, Any]] | None = None,
        batch: StreamBatch | None = None,
        values: Sequence[ValuesTaken] = (),
        token: Token | None = None,
    ) -> Table:
        """Commit files that were written under `data/` (append, overwrite by `filter`, overwrite-partitions, truncate).

        `values` are those of identity columns that it took for their rows, `deletes` all rows that match in files that
        are cut, if known. CommitConflict, NoSuchTable, WriteFenced; BatchCommitted where the table has the batch.
        """
        self._check_writable("write to")
        check_written_by(files, write)
        change = file_changes.change_of(operation, files, filter, batch, values, deletes)
        if token is None and write is not None:
            # One write is one commit: committing its files again must not add them twice.
            token = Token(commit_id=write.id, bases={self._tracked.location: write.version})
        base = self._base_of(write)
        committed = file_changes.commit(self._tracked, base, change, name=self.name, write=write, token=token)
        return self._with(committed.view)

    def commit_rows(
        self,
        write: WriteRef,
        operation: str,
        files: Sequence[DataFile] = (),
        *,
        removed: Sequence[str] = (),
        deletes: Sequence[Positions | Mapping[str, Any]] = (),
        condition: Filter | None = None,
        values: Sequence[ValuesTaken] = (),
        reads_others: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Commit a change of rows that was prepared by reading this version: delete, update, merge or compact.

        `files` were written under `data/`; the files `removed` give way to them; of other files, the rows at the
        positions in `deletes` are deleted, which were live. `condition` is true for all rows that were looked at.
        `values` are those of identity columns that were taken for new rows. `reads_others`: a delete of rows depends on
        other rows of the table too, as by a subquery.
        CommitConflict, NoSuchTable, WriteFenced; InvalidInput for files and rows that this version does not have.
        """
        self._check_writable("change rows of")
        check_written_by(files, write)
        predicate = None if condition is None else as_predicate(condition)
        change = row_changes.row_change(
            operation, files, removed, deletes, predicate, values, reads_others=reads_others
        )
        if change.is_empty:
            return self.refresh()
        token = token or Token(commit_id=write.id, bases={self._tracked.location: write.version})
        base = self._base_of(write)
        committed = row_changes.commit(self._tracked, base, change, name=self.name, write=write, token=token)
        return self._with(committed.view)

    def _base_of(self, write: WriteRef | None) -> View[TableState]:
        """Return the view that a write started from."""
        if write is None or write.version == self.version:
            return self._view
        view = self._tracked.log.view_at(write.version)
        return view if self.ref == MAIN else seen_on(view, self.ref, self.refs[self.ref].id)

    def _write(
        self,
        operation: Operation,
        data: Ingestible,
        filter: Filter | None,
        token: Token | None,
        batch: StreamBatch | None = None,
    ) -> Table:
        from lakelog.catalog.parquet import Numbering, kept_by_commit, written_files

        self._check_writable("write to")
        look_again(self._tracked, self._view)
        # What replaces rows may carry rows that were read from this very version, so it starts from no newer one.
        table = self._with(self._newest()) if operation is Operation.APPEND else self
        write = table.begin_write()
        try:
            if batch is not None:
                check_new(table._view.state.streams, batch, table.name)
            numbering = Numbering(table.schema, known_taken(self._tracked, table._view))
            files = written_files(table._tracked, table.metadata, write, data, numbering)
            values = numbering.taken()
            with kept_by_commit(table._tracked, files):
                return table.commit_write(
                    write, operation.value, files, filter=filter, batch=batch, values=values, token=token
                )
        except BatchCommitted:
            return table.refresh()

    # Inside

    def _newest(self) -> View[TableState]:
        """The newest view that is known without a request: where a commit that read nothing starts from."""
        known = self._tracked.known
        if (
            known is not None
            and known.log_id == self.id
            and known.version > self.version
            and known.state.current.generation == self.metadata.generation
        ):
            return known
        return self._view

    def _with(self, view: View[TableState]) -> Table:
        return self._made(self._tracked, view, of_the_past=False)

    def _made(self, tracked: TrackedLog[TableState], view: View[TableState], *, of_the_past: bool) -> Table:
        return Table(self._logs, tracked, view, self.identifier, of_the_past=of_the_past)

    def _commit(self, decide: Any, token: Token | None) -> Table:
        if was_applied_elsewhere(self._logs, self._tracked, token):
            return self.refresh()
        start = self._tracked.at_least(self.version)
        if start.log_id != self.id:
            raise NoSuchTable(f"there is no table {self.name} any more: another one is at its place")
        base = min(self.version, token.base(self._tracked)) if token is not None else self.version
        with gone_as_no_such_table(self.name):
            committed = self._tracked.commit(
                start, decide, commit_id=token.commit_id if token else None, base=base
            )
        return self._with(committed.view)

    def _check_writable(self, what: str) -> None:
        if self.is_tag:
            raise InvalidInput(
                f"cannot {what} {self.name} on the tag {self.ref}, which stays as it is: make a branch from it"
            )
        if self._of_the_past:
            raise InvalidInput(
                f"cannot {what} {self.name} at version {self.version}: the past is read-only; load the table without a "
                "version or timestamp"
            )
        self._logs.check_writable()
