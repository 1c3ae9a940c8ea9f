"""A table as a value: one version of it, to inspect, read, and change into a newer one.

A handle is immutable; every change returns the handle of the version that it made. A handle that was loaded by version
or time is of the past and refuses changes. The changes themselves are in `writes`; this module checks which handles
allow them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.catalog import table_partitions
from lakelog.catalog.core.files import DataFile, Positions, TableEstimates
from lakelog.catalog.core.logs import (
    NameTree,
    TableHead,
    Token,
    as_operation,
    check_not_own,
    no_progress,
    observed,
)
from lakelog.catalog.core.parquet import FoundFile, Ingestible, data_files, found_files
from lakelog.catalog.core.planning import Values, predicate_of
from lakelog.catalog.core.schema import ALWAYS_TRUE, Filter, TableChange, ValuesTaken, as_predicate
from lakelog.catalog.core.state import BRANCH, MAIN, TAG, Operation, clustering_goal, goal_of
from lakelog.catalog.core.writes import (
    Clause,
    Does,
    Rewritten,
    Rows,
    StreamBatch,
    alter,
    arrow_rows,
    compaction_commit,
    delete,
    file_changes,
    mark_of,
    merge,
    rollback,
    row_changes,
    tags_and_branches,
    update,
)
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.merge import Merge
from lakelog.catalog.names import Location, spelled
from lakelog.catalog.table_version import TableVersion
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput, PermissionDenied, Unsupported

if TYPE_CHECKING:
    from lakelog.catalog.formats.iceberg import Exported
    from lakelog.catalog.keeping.clones import CopyFiles, Materialized
    from lakelog.catalog.keeping.upkeep import ExpectedClustering, Health

_ROLLED_BACK = "rolled back"
_TO_ROWS = "Use the table itself, or set_current_version for rows only"


@observed(lambda table: table.head.logs, lambda table: table.name, apart_from=("begin_write", "merge"))
class Table(TableVersion):
    """One version of a table, which can be changed into a newer one, unless it is of the past or on a tag."""

    # Changing metadata

    def alter(
        self,
        changes: Sequence[TableChange | Mapping[str, Any]],
        *,
        looked_at: Table | None = None,
        token: Token | None = None,
    ) -> Table:
        """Apply `changes` in their order as one commit, or none of them.

        A new CHECK, and NOT NULL for a column that may be NULL, need a proof that all rows satisfy it: the statistics
        of the files (RowsUnproven where they do not prove it), or `looked_at`, a version of which an engine has checked
        all rows. CommitConflict when files were added since that version that may have rows which violate it.
        """
        self._check_main("altered")
        head = self._writable("alter")
        return self._with(alter.alter(head, changes, None if looked_at is None else looked_at.head, token))

    # Changing contents, from Python

    def append(
        self, data: Ingestible, *, batch: StreamBatch | None = None, token: Token | None = None
    ) -> Table:
        """Add the rows of an Arrow table, batch, reader or anything that exports an Arrow stream.

        Columns are matched by name. InvalidInput when the data does not fit; nothing is changed then. With `batch`, the
        rows are added only once: where the table has that batch already, nothing happens.
        """
        head = self._writable("write to")
        return self._with(arrow_rows.write_rows(head, Operation.APPEND, data, None, token, batch))

    def overwrite(
        self, data: Ingestible, filter: Filter | None = None, *, token: Token | None = None
    ) -> Table:
        """Replace all rows, or those for which `filter` is true, by those of `data`. Unsupported as by `delete`."""
        head, replaced = self._writable("write to"), ALWAYS_TRUE if filter is None else filter
        return self._with(arrow_rows.write_rows(head, Operation.OVERWRITE, data, replaced, token))

    def overwrite_partitions(self, data: Ingestible, *, token: Token | None = None) -> Table:
        """Replace the partitions that `data` has rows in by the rows of `data`."""
        head = self._writable("write to")
        return self._with(arrow_rows.write_rows(head, Operation.OVERWRITE_PARTITIONS, data, None, token))

    def truncate(self, *, token: Token | None = None) -> Table:
        """Remove all rows."""
        return self.commit_write(None, Operation.TRUNCATE.value, (), token=token)

    def delete(self, filter: Filter, *, token: Token | None = None) -> Table:
        """Remove the rows that match: whole files where that suffices, else by reading those that may hold some.
        Unsupported for a condition that lakelog does not understand."""
        return self._with(delete.delete(self._writable("delete from"), as_predicate(filter), token))

    def update(
        self, set: Mapping[str, Any], where: Filter | None = None, *, token: Token | None = None
    ) -> Table:
        """Set columns of the rows that match, or of all: `update({"price": "price * 2", "seen": True}, col("id") > 5)`.

        A text is an expression in DuckDB's SQL over the row's columns (a text in quotes: `"'new'"`), any other value of
        Python's is what it is. Unsupported as by `delete`; CommitConflict, InvalidInput, CheckViolated.
        """
        predicate = ALWAYS_TRUE if where is None else as_predicate(where)
        return self._with(update.update(self._writable("update"), set, predicate, token))

    def merge(self, source: Ingestible, on: str | Sequence[str]) -> Merge[Table]:
        """Begin a merge of `source`, anything that exports an Arrow stream: say by its clauses what happens, then
        `execute`.

        Rows match where the columns `on` are equal, or where `on` is true, an expression in DuckDB's SQL:
        `"target.id = source.key AND target.day > source.day"`. NULL is equal to nothing.
        """
        head = self._writable("merge into")

        def execute(clauses: Sequence[Clause], token: Token | None) -> Table:
            with as_operation(head.logs, "merge", self.name) as seen:
                done = self._with(merge.merge(head, source, on, clauses, token))
                seen.returned(done)
                return done

        return Merge(execute)

    def upsert(self, source: Ingestible, on: str | Sequence[str], *, token: Token | None = None) -> Table:
        """Update the rows that have the keys of a row of `source` in the columns `on`, and insert its other rows.

        Columns that the source does not have stay as they are, or get their default. InvalidInput where two rows of the
        source have the same key, or two of the table have the key of one. Raises as `Merge.execute`.
        """
        head, keys = self._writable("merge into"), [on] if isinstance(on, str) else on
        clauses = (Clause(Rows.MATCHED, Does.UPDATE), Clause(Rows.NOT_MATCHED, Does.INSERT))
        return self._with(merge.merge(head, source, keys, clauses, token, is_unique=True))

    def add_files(
        self,
        source: Location,
        *,
        partition_filter: Mapping[str, str | None] | None = None,
        ignore_extra_columns: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Add the Parquet files in the folder `source`, or the file `source`, where they are: nothing is copied.

        Columns are matched by name; names of folders (name=value) are columns too, of which `partition_filter` chooses
        values. Such files are read, and never deleted. InvalidInput, naming the file, where one does not fit the table,
        is in it already, or does not prove a single value of a partition field.
        """
        place, open_url = spelled(source), self.head.logs.places.open_url
        check_not_own(place, of_ids=False)
        found = found_files(place, self.schema, partition_filter or {}, open_url)
        return self.add_found_files(found, ignore_extra_columns=ignore_extra_columns, token=token)

    def add_found_files(
        self, found: Sequence[FoundFile], *, ignore_extra_columns: bool = False, token: Token | None = None
    ) -> Table:
        """As `add_files`, for an engine that has read the files' footers itself."""
        from lakelog.catalog.formats.imports import check_files_unclaimed

        self._writable("add files to")
        if not found:
            return self.refresh()
        for folder in {each.path.rpartition("/")[0] for each in found}:
            check_not_own(folder or "/", of_ids=False)
        open_url, paths = self.head.logs.places.open_url, [each.path for each in found]
        check_files_unclaimed(open_url, paths)
        files = data_files(found, self.metadata, self.location, ignore_extra_columns=ignore_extra_columns)
        done = self.commit_write(self.begin_write(), Operation.APPEND.value, files, token=token)
        if self.head.tracked.outside is self.head.tracked:
            # A table that adopts files there may have looked for others that have them before this commit.
            try:
                check_files_unclaimed(open_url, paths)
            except InvalidInput as error:
                raise DoneInPart(
                    f"files were added to {self.name}, and meanwhile {error}. Roll {self.name} back to the version "
                    "before, or drop it"
                ) from error
        return done

    def compact(
        self,
        filter: Filter | None = None,
        *,
        target_size_bytes: int | None = None,
        deleted_ratio: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Table:
        """Rewrite small files of a partition as larger ones, and files with many deleted rows without these.

        No row changes. With `filter`, only files that may have matching rows; Unsupported for a filter that cannot be
        evaluated on files. Files get about `target_size_bytes` (None: the table's property); one with at least the
        share `deleted_ratio` of deleted rows (None: 0.3) is rewritten in any case. Large tables take several commits.
        Files that other clients change meanwhile are skipped, and those that are left are planned anew; CommitConflict
        where that fails several times.
        """
        head = self._writable("compact")
        goal = goal_of(self.properties, target_size_bytes, deleted_ratio)
        return self._with(compaction_commit.compact(head.refreshed(), goal, filter, progress or no_progress))

    def cluster(
        self,
        filter: Filter | None = None,
        *,
        limit_bytes: int | None = None,
        full: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Table:
        """Put the rows in the order of the table's clustering (`CLUSTER BY`), as far as that is worth its writing.

        No row changes. Files without that order are rewritten, together with others where these are not much larger: so
        a call after some new rows rewrites little more than these. It ends when nothing is due, or once about
        `limit_bytes` were read; the next call goes on. With `filter`, only of files that may have matching rows.
        With `full`, no file overlaps another afterwards, whatever that rewrites. InvalidInput for a table that is not
        clustered; conflicts as `compact`.
        """
        from lakelog.catalog.keeping.upkeep import cluster as cluster_rows

        head = self._writable("cluster").refreshed()
        goal = clustering_goal(self.properties, limit_bytes, full=full)
        head, _ = cluster_rows(head, goal, limit_bytes, progress or no_progress, filter)
        return self._with(head)

    def expected_of_clustering(
        self, filter: Filter | None = None, *, limit_bytes: int | None = None, full: bool = False
    ) -> ExpectedClustering:
        """Return what `cluster` would read and write with these arguments, and how many files a filter by the key
        columns reads now and would read then: from metadata alone. InvalidInput for a table that is not clustered."""
        from lakelog.catalog.keeping.upkeep import expected_of

        goal = clustering_goal(self.properties, limit_bytes, full=full)
        return expected_of(self.head, goal, limit_bytes, filter)

    def clustering_overlap(self) -> float:
        """Return how many files a look-up of one value of each column of `CLUSTER BY` reads, on average; 0 for a table
        that is not clustered."""
        from lakelog.catalog.keeping.upkeep import overlap_of

        return overlap_of(self.head.all_files(), self.metadata) or 0.0

    def ranked(self, *, dry_run: bool = False) -> Table:
        """Return the newest version, with boundaries along which its rows can be clustered: for engines that rewrite
        files as `plan_clustering` says. InvalidInput for a table that is not clustered, also in a dry run."""
        from lakelog.catalog.keeping.upkeep import check_clustered
        from lakelog.catalog.keeping.upkeep import ranked as with_ranks

        head = self._writable("cluster").refreshed()
        check_clustered(head)
        return self._with(head if dry_run else with_ranks(head))

    def health(self, *, listing: bool = False) -> Health:
        """Return how the newest version of the table is, from its metadata, and what is to be done about it (see
        `Catalog.health`). With `listing`, what a vacuum would delete now is counted too."""
        from lakelog.catalog.keeping.upkeep import health_of_table

        return health_of_table(NameTree(self.head.logs), self.head.whole.refreshed(), listing=listing)

    # Partitions, each given by its values: JSON literals by the names of the partition fields

    def add_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Add partitions without rows. One that exists already stays as it is."""
        return self._with(table_partitions.add(self._writable("add partitions to"), partitions, token))

    def drop_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Remove partitions with their rows; one that does not exist is ignored."""
        head, predicate = self._writable("drop partitions of"), predicate_of(self.metadata, partitions)
        return self._with(delete.delete(head, predicate, token, keeps_partitions=False))

    def truncate_partitions(self, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
        """Remove the rows of partitions, which stay as empty ones."""
        head = self._writable("truncate partitions of")
        return self._with(table_partitions.truncate(head, partitions, token))

    def rename_partition(
        self,
        old: Values,
        new: Values,
        *,
        write: WriteRef | None = None,
        files: Sequence[DataFile] | None = None,
        token: Token | None = None,
    ) -> Table:
        """Give all rows of the partition `old` the values of `new`, by rewriting them. NotFound, AlreadyExists.

        Where a `write` has rewritten them, as `plan_rename` says, its `files` are taken.
        """
        head = self._writable("rename partitions of")
        return self._with(table_partitions.rename(head, old, new, token, write, files))

    # Going back

    def rollback_to_version(self, version: int, *, token: Token | None = None) -> Table:
        """Restore the whole table as of `version`, with rows, columns and properties, as a new version.

        Commits since then stay in the history. NotFound for a version that does not exist or has expired.
        """
        self._check_main(_ROLLED_BACK, _TO_ROWS)
        return self._go_back(Operation.ROLLBACK, version, token)

    def rollback_to_timestamp(self, timestamp_us: int, *, token: Token | None = None) -> Table:
        """As `rollback_to_version`, to the newest version not after that time."""
        self._check_main(_ROLLED_BACK, _TO_ROWS)
        self._writable("roll back")
        return self.rollback_to_version(self.refresh().at(timestamp_us=timestamp_us).version, token=token)

    def set_current_version(self, version: int, *, token: Token | None = None) -> Table:
        """Give the table the rows that it had at `version`; its columns, partitioning and properties stay.

        InvalidInput where these rows do not fit the present columns.
        """
        return self._go_back(Operation.SET_CURRENT, version, token)

    def _go_back(self, operation: Operation, version: int, token: Token | None) -> Table:
        head = self._writable("roll back")
        return self._with(rollback.go_back(head, operation, self.at(version=version).head.view, token))

    # Tags and branches

    def create_tag(
        self,
        name: str,
        version: int | None = None,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Give a version, by default this one, a name by which it can be read as long as the tag exists.

        On a branch, versions are those of the branch. RefExists, unless `replace` or `if_not_exists`; NotFound for a
        version that does not exist or has expired.
        """
        return self._set_ref(TAG, name, version, token, replace=replace, if_not_exists=if_not_exists)

    def create_branch(
        self,
        name: str,
        version: int | None = None,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Make a second line of contents, which begins with those of a version, by default this one; see `create_tag`.

        InvalidInput where the rows of that version do not fit the present columns, which branches share.
        """
        return self._set_ref(BRANCH, name, version, token, replace=replace, if_not_exists=if_not_exists)

    def replace_tag(self, name: str, version: int | None = None, *, token: Token | None = None) -> Table:
        """As `create_tag`, in place of an existing tag. NoSuchRef."""
        return self._set_ref(TAG, name, version, token, replace=True, is_known=True)

    def replace_branch(self, name: str, version: int | None = None, *, token: Token | None = None) -> Table:
        """As `create_branch`, in place of an existing branch, whose rows are lost. NoSuchRef."""
        return self._set_ref(BRANCH, name, version, token, replace=True, is_known=True)

    def drop_tag(self, name: str, *, if_exists: bool = False, token: Token | None = None) -> Table:
        """Drop a tag. NoSuchRef."""
        return self._drop_ref(TAG, name, if_exists, token)

    def drop_branch(self, name: str, *, if_exists: bool = False, token: Token | None = None) -> Table:
        """Drop a branch, with the rows that only it has. NoSuchRef."""
        return self._drop_ref(BRANCH, name, if_exists, token)

    def fast_forward(self, branch: str, to: str, *, token: Token | None = None) -> Table:
        """Give `branch` the contents of the branch `to`, which was made from it; either may be `main`.

        Where `branch` has all changes of `to` already, nothing is changed, and the version stays, whatever was done to
        `branch` since. InvalidInput where both were changed, NoSuchRef where one of them does not exist.
        """
        return self._with(
            tags_and_branches.fast_forward(self.head, branch, to, is_past=self.is_past, token=token)
        )

    def _set_ref(self, kind: str, name: str, version: int | None, token: Token | None, **how: bool) -> Table:
        of = None if version is None else self.at(version=version).head
        return self._with(
            tags_and_branches.set_ref(self.head, kind, name, of, is_past=self.is_past, token=token, **how)
        )

    def _drop_ref(self, kind: str, name: str, if_exists: bool, token: Token | None) -> Table:
        return self._with(
            tags_and_branches.drop_ref(
                self.head, kind, name, if_exists=if_exists, is_past=self.is_past, token=token
            )
        )

    # For readers of other formats

    def export_iceberg(
        self, to: Location | None = None, *, progress: Callable[[str], None] | None = None
    ) -> Exported:
        """Let readers of Iceberg read the newest version, with its history, tags and branches.

        The metadata comes into the table's own place, or into the folder or URL `to`; data files stay where they are.
        Costs what has changed since the last export. Unsupported where readers of Iceberg would read rows wrongly, or
        the property `lakelog.iceberg` is `off`.
        """
        return self._exported(spelled(to), progress or no_progress)[0]

    def iceberg_metadata(self) -> tuple[str, bytes]:
        """Return the URL and the JSON of Iceberg's metadata of the newest version, which is exported if it was not.

        Of the newest export, where this client may read only. Unsupported as by `export_iceberg`.
        """
        from lakelog.catalog.formats.iceberg import newest_metadata

        try:
            done, metadata = self._exported(None)
        except PermissionDenied:
            if (known := newest_metadata(self.head)) is None:
                raise
            return known
        return done.url, metadata

    def _exported(
        self, to: str | None, progress: Callable[[str], None] = no_progress
    ) -> tuple[Exported, bytes]:
        from lakelog.catalog.formats.iceberg import export_with_metadata

        self.head.logs.check_writable()
        if self.head.tracked.transaction.is_open:
            raise Unsupported(
                f"{self.name} is of a transaction, and others cannot see it so: commit first, then export"
            )
        if to is not None:
            check_not_own(to)
        return export_with_metadata(self.head.on(MAIN).refreshed(), to, progress=progress)

    def materialize(
        self,
        *,
        limit_bytes: int | None = None,
        progress: Callable[[str], None] | None = None,
        copy: CopyFiles | None = None,
    ) -> Materialized:
        """Copy the data files that this clone and its branches have of other tables, which then need not keep them.

        They go on keeping what older versions and tags need, until these expire or are dropped, and a vacuum of this
        table has seen that. Rows stay as they are; what others write meanwhile stays. A run that was stopped goes on,
        as does one that had come to `limit_bytes`. `copy` is how an engine copies files; None: by this process.
        """
        from lakelog.catalog.keeping.clones import materialize
        from lakelog.catalog.keeping.maintenance import settle_origins

        table = self.head.whole
        done = materialize(table, progress or no_progress, copy=copy, limit_bytes=limit_bytes)
        owners = settle_origins(table.logs, table.tracked, table.tracked.current())
        return replace(done, owners=tuple(owners))

    def release_clone(self, clone: str) -> Table:
        """Keep no more files for a clone whose log is gone, so that it can never say that it needs none. `clone` is the
        id of that log, as `fsck` shows it. What of the clone is restored later has no rows then.

        InvalidInput where nothing is kept for it; Unsupported where its log, or a part of it, is there.
        """
        from lakelog.catalog.keeping.maintenance import release_lost

        head = self._writable("release clones of").whole
        release_lost(head.logs, head.tracked, head.name, clone)
        return self.refresh()

    # For engines, which write files themselves

    def stream_mark(self, stream: str) -> str | None:
        """Return what a writer of numbered batches keeps with its own progress, and gives as `StreamBatch(after=…)`
        with the next one: a table that was set back since refuses it. None where this version has no batch of it."""
        if self.head.tracked.transaction.is_open:
            raise InvalidInput(f"{self.name} is in a transaction: take the mark once that is committed")
        return mark_of(self.head, stream)

    def begin_write(self) -> WriteRef:
        """Return the id of a new write, which starts from this version; it goes into the names of its files."""
        return self._writable("write to").begin_write()

    def commit_write(
        self,
        write: WriteRef | None,
        operation: str,
        files: Sequence[DataFile],
        *,
        filter: Filter | None = None,
        deletes: Sequence[Positions | Mapping[str, Any]] | None = None,
        copies: Sequence[DataFile] | None = None,
        batch: StreamBatch | None = None,
        values: Sequence[ValuesTaken] = (),
        token: Token | None = None,
    ) -> Table:
        """Commit files that were written under `data/` (append, overwrite by `filter`, overwrite-partitions, truncate).

        `values` are those of identity columns that the write took for new rows, `deletes` all matching rows in files
        that match in part, if known, and `copies` have the rows that stay of these, where the table deletes by copying.
        CommitConflict, NoSuchTable, WriteFenced; BatchCommitted where the table has the batch.
        """
        head = self._writable("write to")
        change = file_changes.change_of(operation, files, filter, batch, values, deletes, copies)
        return self._with(file_changes.commit_write(head, write, change, token))

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
        inserted: int | None = None,
        updated: int | None = None,
        token: Token | None = None,
    ) -> Table:
        """Commit a change of rows that was prepared by reading this version: delete, update, merge or compact.

        `files` were written under `data/`, and replace the files `removed`; of other files, the live rows at the
        positions in `deletes` are deleted. `condition` is true for all rows that were read. `values` are those of
        identity columns that were taken for new rows. `reads_others`: a delete of rows depends on other rows of the
        table too, as by a subquery. Of the rows in `files`, `inserted` are new ones of a merge, and `updated` have the
        place of others; the rest are copies. Without them, the history of an update or merge does not know its numbers.
        CommitConflict, NoSuchTable, WriteFenced; InvalidInput for files and rows that this version does not have.
        """
        head, predicate = (
            self._writable("change rows of"),
            None if condition is None else as_predicate(condition),
        )
        change = row_changes.row_change(
            operation,
            files,
            removed,
            deletes,
            predicate,
            values,
            reads_others=reads_others,
            inserted=inserted,
            updated=updated,
        )
        return self._with(row_changes.commit_rows(head, write, change, token))

    def commit_compaction(
        self, write: WriteRef, groups: Sequence[Rewritten], *, token: Token | None = None
    ) -> tuple[Table, list[int]]:
        """Commit groups that were planned on this version, and return those not committed, as other clients have
        changed their files."""
        base = self._writable("compact").at_write(write)
        head, lost = compaction_commit.commit(base, groups, write=write, token=token)
        return self._with(head), lost

    def commit_statistics(self, estimates: TableEstimates, *, token: Token | None = None) -> Table:
        """Keep statistics that an engine has computed from all rows of this version, for query planners."""
        self._check_main("analyzed")
        return self._with(alter.set_statistics(self._writable("compute statistics of"), estimates, token))

    # Inside

    def _check_main(self, what: str, instead: str = "Use the table itself") -> None:
        if self.ref != MAIN:
            raise InvalidInput(
                f"{self.ref} of {self.name} cannot be {what} by itself: tags and branches have the columns and "
                f"properties of the table. {instead}"
            )

    def _writable(self, what: str) -> TableHead:
        if self.is_tag:
            raise InvalidInput(
                f"cannot {what} {self.name} on the tag {self.ref}, which stays as it is: make a branch from it"
            )
        if self.is_past:
            raise InvalidInput(
                f"cannot {what} {self.name} at version {self.version}, as the past is read-only: load the table "
                "without a version or timestamp"
            )
        self.head.logs.check_writable()
        return self.head
