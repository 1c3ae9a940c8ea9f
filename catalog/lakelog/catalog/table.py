"""A table as a value: a version of it, to inspect, read, and change into a newer version.

A handle is immutable. Every change returns the handle of the version that it made. A handle that was loaded
by version or time is of the past and refuses changes. The changes themselves are in `writes`. This module
checks which handles allow them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

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
from lakelog.catalog.core.schema import (
    ALWAYS_TRUE,
    DefinitionMethods,
    Filter,
    Schema,
    TableChange,
    as_predicate,
)
from lakelog.catalog.core.state import BRANCH, MAIN, TAG, OperationKind, clustering_goal, goal_of
from lakelog.catalog.core.writes import (
    StreamBatch,
    alter,
    arrow_rows,
    compaction_commit,
    delete,
    file_changes,
    mark_of,
    rollback,
    tags_and_branches,
)
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Location, spelled
from lakelog.catalog.table_alteration import TableAlteration
from lakelog.catalog.table_version import TableVersion
from lakelog.catalog.times import Moment
from lakelog.log.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from lakelog.catalog.core.writes import merge_clauses
    from lakelog.catalog.formats.iceberg import Exported
    from lakelog.catalog.keeping.clones import CopyFiles, Materialized
    from lakelog.catalog.keeping.upkeep import ExpectedClustering, Health
    from lakelog.catalog.merge import Merge

_ROLLED_BACK = "rolled back"
_TO_ROWS = "Use the table itself, or set_current_version for rows only"


@observed(lambda table: table.table_head.logs, lambda table: table.name, apart_from=("alteration", "merge"))
@explaining
class Table(TableVersion, DefinitionMethods):
    """A version of a table, which can be changed into a newer version, unless it is of the past or on a tag."""

    # Changing metadata

    def alter(
        self,
        changes: Sequence[TableChange | Mapping[str, Any]],
        *,
        looked_at: Table | None = None,
        token: Token | None = None,
    ) -> Self:
        """Apply `changes` in their order as a single commit, or none of them.

        A new CHECK, and NOT NULL for a column that may be NULL, need a proof that all rows satisfy it. The
        proof is the statistics of the files, or `looked_at`, a version of which an engine has checked all
        rows. Raises RowsUnproven if the statistics do not prove it. Raises CommitConflict if later files may
        have rows that violate it.
        """
        self._check_main("altered")
        head = self._writable("alter")
        return self._with(
            alter.alter(head, changes, None if looked_at is None else looked_at.table_head, token)
        )

    def alteration(self) -> TableAlteration[Table]:
        """Begin several changes that become a single commit at the end of a `with` block.

        An error drops all of them.

        `table` of the alteration is the new version, after the block has ended:

            with table.alteration() as change:
                change.add_column("channel", pa.string())
                change.rename_column("day", "weekday")
            table = change.table
        """
        self._check_main("altered")
        return TableAlteration(self._writable("alter").metadata, self.alter)

    def _altered(self, changes: Sequence[TableChange]) -> Self:
        return self.alter(changes)

    @property
    def _columns_now(self) -> Schema:
        return self.schema

    # Changing contents, from Python

    def append(
        self, data: Ingestible, *, batch: StreamBatch | None = None, token: Token | None = None
    ) -> Table:
        """Add the rows of an Arrow table, batch, reader or anything that exports an Arrow stream.

        Columns are matched by name. Raises InvalidInput if the data does not fit. Nothing is changed then.
        With `batch`, the rows are added only once. If the table has that batch, nothing happens.
        """
        head = self._writable("write to")
        return self._with(arrow_rows.write_rows(head, OperationKind.APPEND, data, None, token, batch))

    def overwrite(
        self, data: Ingestible, filter: Filter | None = None, *, token: Token | None = None
    ) -> Table:
        """Replace all rows, or the rows for which `filter` is true, by the rows of `data`.

        The rows of `data` need not match `filter`. Raises Unsupported as `delete`.
        """
        head, condition = self._writable("write to"), ALWAYS_TRUE if filter is None else filter
        return self._with(arrow_rows.write_rows(head, OperationKind.OVERWRITE, data, condition, token))

    def overwrite_partitions(self, data: Ingestible, *, token: Token | None = None) -> Table:
        """Replace the partitions that `data` has rows in by the rows of `data`."""
        head = self._writable("write to")
        return self._with(arrow_rows.write_rows(head, OperationKind.OVERWRITE_PARTITIONS, data, None, token))

    def truncate(self, *, token: Token | None = None) -> Table:
        """Remove all rows."""
        change = file_changes.change_of(OperationKind.TRUNCATE.value, ())
        return self._with(file_changes.commit_write(self._writable("write to"), None, change, token))

    def delete(self, filter: Filter, *, token: Token | None = None) -> Table:
        """Remove the rows that match.

        Removes whole files if that suffices, else reads the files that may hold such rows. Raises Unsupported
        if lakelog does not understand the condition.
        """
        return self._with(delete.delete(self._writable("delete from"), as_predicate(filter), token))

    def update(
        self, set: Mapping[str, Any], where: Filter | None = None, *, token: Token | None = None
    ) -> Table:
        """Set columns of the rows that match, or of all rows.

            table = table.update({"price": "price * 2", "seen": True}, col("id") > 5)

        A text is an expression in DuckDB's SQL over the row's columns (a text in quotes: `"'new'"`). Any
        other value of Python is taken as it is. A value is cast to the column's type as Spark stores it. Raises
        Unsupported as `delete`, CommitConflict, InvalidInput or CheckViolated.
        """
        from lakelog.catalog.core.writes import update

        predicate = ALWAYS_TRUE if where is None else as_predicate(where)
        return self._with(update.update(self._writable("update"), set, predicate, token))

    def merge(self, source: Ingestible, on: str | Sequence[str]) -> Merge[Table]:
        """Begin a merge of `source`, anything that exports an Arrow stream.

        Add clauses, then call `execute`.

        Rows match if the columns `on` are equal, or if `on` is true, an expression in DuckDB's SQL:
        `"target.id = source.key AND target.day > source.day"`. NULL is equal to nothing.
        """
        from lakelog.catalog.core.writes import merge
        from lakelog.catalog.merge import Merge

        head = self._writable("merge into")

        def execute(clauses: Sequence[merge_clauses.MergeClause], token: Token | None) -> Table:
            with as_operation(head.logs, "merge", self.name) as observation:
                new_table = self._with(merge.merge(head, source, on, clauses, token))
                observation.returned(new_table)
                return new_table

        return Merge(execute)

    def upsert(self, source: Ingestible, on: str | Sequence[str], *, token: Token | None = None) -> Table:
        """Update the rows that have the keys of a row of `source` in the columns `on`, and insert its other
        rows.

        Columns that the source lacks stay as they are, or get their default. Raises InvalidInput if two rows
        of the source have the same key, or if two rows of the table have the key of a source row. Raises as
        `Merge.execute`.
        """
        from lakelog.catalog.core.writes import merge
        from lakelog.catalog.core.writes import merge_clauses as of

        head, keys = self._writable("merge into"), [on] if isinstance(on, str) else on
        clauses = (
            of.MergeClause(of.ClauseRows.MATCHED, of.ClauseEffect.UPDATE),
            of.MergeClause(of.ClauseRows.NOT_MATCHED, of.ClauseEffect.INSERT),
        )
        return self._with(merge.merge(head, source, keys, clauses, token, is_unique=True))

    def add_files(
        self,
        source: Location,
        *,
        partition_filter: Mapping[str, str | None] | None = None,
        ignore_extra_columns: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Add the Parquet files in the folder `source`, or the file `source`, where they are: nothing is
        copied.

        Columns are matched by name. Names of folders (name=value) are columns too, and `partition_filter`
        chooses their values. Such files are read, and never deleted. Raises InvalidInput with the file's name
        if a file does not fit the table, is a file of the table, or does not prove a single value of a
        partition field.
        """
        place, open_url = spelled(source), self.table_head.logs.places.open_url
        check_not_own(place, of_ids=False)
        files = found_files(place, self.schema, partition_filter or {}, open_url)
        return self._add_found(files, ignore_extra_columns=ignore_extra_columns, token=token)

    def _add_found(
        self, found: Sequence[FoundFile], *, ignore_extra_columns: bool, token: Token | None
    ) -> Table:
        from lakelog.catalog.formats.imports import check_files_unclaimed

        head = self._writable("add files to")
        if not found:
            return self.refresh()
        for folder in {file.path.rpartition("/")[0] for file in found}:
            check_not_own(folder or "/", of_ids=False)
        open_url, paths = self.table_head.logs.places.open_url, [file.path for file in found]
        check_files_unclaimed(open_url, paths)
        files = data_files(found, self.metadata, self.location, ignore_extra_columns=ignore_extra_columns)
        change = file_changes.change_of(OperationKind.APPEND.value, files)
        new_table = self._with(file_changes.commit_write(head, head.begin_write(), change, token))
        if self.table_head.tracked.outside is self.table_head.tracked:
            # A table that adopts these files may have looked for other owners before this commit.
            try:
                check_files_unclaimed(open_url, paths)
            except InvalidInput as error:
                raise DoneInPart(
                    f"files were added to {self.name}, and meanwhile {error}. Roll {self.name} back to the version "
                    "before, or drop it"
                ) from error
        return new_table

    def compact(
        self,
        filter: Filter | None = None,
        *,
        target_size_bytes: int | None = None,
        deleted_ratio: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Table:
        """Rewrite small files of a partition as larger ones, and files with many deleted rows without these.

        No row changes. With `filter`, rewrites only files that may have matching rows. Files get about
        `target_size_bytes` (None: the table's property). A file with at least the share `deleted_ratio` of
        deleted rows (None: 0.3) is rewritten in any case. Large tables take several commits. Files that other
        clients change at the same time are skipped, and the remaining files are planned again. Raises
        CommitConflict if that fails several times. Raises Unsupported if the filter cannot be evaluated on
        files.
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
        """Put the rows in the order of the table's clustering (`CLUSTER BY`), if that is worth its writing.

        No row changes. Files without that order are rewritten, together with other files if these are not
        much larger. So a call after some new rows rewrites little more than these. It ends if nothing is due,
        or after reading about `limit_bytes`, and the next call goes on. With `filter`, it takes only files
        that may have matching rows. With `full`, no file overlaps another afterwards, whatever that rewrites.
        Raises InvalidInput if the table is not clustered, and CommitConflict as `compact`.
        """
        from lakelog.catalog.keeping.upkeep import cluster as cluster_rows

        head = self._writable("cluster").refreshed()
        goal = clustering_goal(self.properties, limit_bytes, full=full)
        head, _ = cluster_rows(head, goal, limit_bytes, progress or no_progress, filter)
        return self._with(head)

    def expected_of_clustering(
        self, filter: Filter | None = None, *, limit_bytes: int | None = None, full: bool = False
    ) -> ExpectedClustering:
        """Return the expected reads and writes of `cluster` with these arguments, from metadata alone.

        Also returns how many files a filter by the key columns reads before and after it. Raises InvalidInput
        if the table is not clustered.
        """
        from lakelog.catalog.keeping.upkeep import expected_of

        goal = clustering_goal(self.properties, limit_bytes, full=full)
        return expected_of(self.table_head, goal, limit_bytes, filter)

    def health(self, *, listing: bool = False) -> Health:
        """Return the health of the table's newest version, from its metadata (see `Catalog.health`).

        With `listing`, also counts the objects that a vacuum would delete now.
        """
        from lakelog.catalog.keeping.upkeep import health_of_table

        return health_of_table(
            NameTree(self.table_head.logs), self.table_head.whole.refreshed(), listing=listing
        )

    # Going back

    def rollback_to_version(self, version: int, *, token: Token | None = None) -> Table:
        """Restore the whole table as of `version`, with rows, columns and properties, as a new version.

        Later commits stay in the history. Raises NotFound if the version does not exist or has expired.
        """
        self._check_main(_ROLLED_BACK, _TO_ROWS)
        return self._go_back(OperationKind.ROLLBACK, version, token)

    def rollback_to_timestamp(self, timestamp: Moment, *, token: Token | None = None) -> Table:
        """As `rollback_to_version`, to the newest version not after that time."""
        self._check_main(_ROLLED_BACK, _TO_ROWS)
        self._writable("roll back")
        return self.rollback_to_version(self.refresh().at(timestamp=timestamp).version, token=token)

    def set_current_version(self, version: int, *, token: Token | None = None) -> Table:
        """Give the table the rows that it had at `version`.

        Its columns, partitioning and properties stay. Raises InvalidInput if these rows do not fit the
        present columns.
        """
        return self._go_back(OperationKind.SET_CURRENT, version, token)

    def _go_back(self, operation: OperationKind, version: int, token: Token | None) -> Table:
        head = self._writable("roll back")
        return self._with(rollback.go_back(head, operation, self.at(version=version).table_head.view, token))

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
        """Give a version, by default this version, a name by which it can be read as long as the tag exists.

        On a branch, versions are the branch's versions. Raises RefExists, unless `replace` or
        `if_not_exists`. Raises NotFound if the version does not exist or has expired.
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
        """Make a second line of contents, which begins with the contents of a version, by default this (see
        `create_tag`).

        Raises InvalidInput if the rows of that version do not fit the present columns, which branches share.
        """
        return self._set_ref(BRANCH, name, version, token, replace=replace, if_not_exists=if_not_exists)

    def drop_tag(self, name: str, *, missing_ok: bool = False, token: Token | None = None) -> Table:
        """Drop a tag. Raises NoSuchRef if it does not exist, unless `missing_ok`."""
        return self._drop_ref(TAG, name, missing_ok, token)

    def drop_branch(self, name: str, *, missing_ok: bool = False, token: Token | None = None) -> Table:
        """Drop a branch, with the rows that only it has.

        Raises NoSuchRef if it does not exist, unless `missing_ok`.
        """
        return self._drop_ref(BRANCH, name, missing_ok, token)

    def fast_forward(self, branch: str, to: str, *, token: Token | None = None) -> Table:
        """Give `branch` the contents of the branch `to`, which was made from it.

        Either may be `main`. If `branch` has all changes of `to`, nothing is changed, and the version stays,
        whatever was done to `branch` later. Raises InvalidInput if both were changed. Raises NoSuchRef if
        either does not exist.
        """
        return self._with(
            tags_and_branches.fast_forward(self.table_head, branch, to, is_past=self.is_past, token=token)
        )

    def _set_ref(self, kind: str, name: str, version: int | None, token: Token | None, **how: bool) -> Table:
        version_head = None if version is None else self.at(version=version).table_head
        return self._with(
            tags_and_branches.set_ref(
                self.table_head, kind, name, version_head, is_past=self.is_past, token=token, **how
            )
        )

    def _drop_ref(self, kind: str, name: str, missing_ok: bool, token: Token | None) -> Table:
        return self._with(
            tags_and_branches.drop_ref(
                self.table_head, kind, name, if_exists=missing_ok, is_past=self.is_past, token=token
            )
        )

    # Streams that number their batches

    def stream_mark(self, stream: str) -> str | None:
        """Return the mark that a writer of numbered batches keeps with its own progress.

        It gives the mark as `StreamBatch(after=…)` with the next batch, and a table that was set back refuses
        it. None if this version has no batch of the stream.
        """
        if self.table_head.tracked.transaction.is_open:
            raise InvalidInput(f"{self.name} is in a transaction: take the mark once that is committed")
        return mark_of(self.table_head, stream)

    # For readers of other formats

    def export_iceberg(
        self, to: Location | None = None, *, progress: Callable[[str], None] | None = None
    ) -> Exported:
        """Let readers of Iceberg read the newest version, with its history, tags and branches.

        The metadata comes into the table's own place, or into the folder or URL `to`. Data files stay where
        they are. Writes only the changes since the last export. Raises Unsupported if readers of Iceberg
        would read rows wrongly, or if the property `lakelog.iceberg` is `off`.
        """
        return self._exported(spelled(to), progress or no_progress)[0]

    def _exported(
        self, to: str | None, progress: Callable[[str], None] = no_progress
    ) -> tuple[Exported, bytes]:
        from lakelog.catalog.formats.iceberg import export_with_metadata

        self.table_head.logs.check_writable()
        if self.table_head.tracked.transaction.is_open:
            raise Unsupported(
                f"{self.name} is of a transaction, and others cannot see it so: commit first, then export"
            )
        if to is not None:
            check_not_own(to)
        return export_with_metadata(self.table_head.on(MAIN).refreshed(), to, progress=progress)

    def materialize(
        self,
        *,
        limit_bytes: int | None = None,
        progress: Callable[[str], None] | None = None,
        copy: CopyFiles | None = None,
    ) -> Materialized:
        """Copy the data files that this clone and its branches have of other tables, which then need not keep
        them.

        The other tables keep files that older versions and tags need, until these expire or are dropped and a
        vacuum of this table has seen that. Rows stay as they are, and so do rows that other clients write at
        the same time. The next call goes on after a stopped run, or after `limit_bytes`. `copy` is how an
        engine copies files. None: by this process.
        """
        from lakelog.catalog.keeping.clones import materialize
        from lakelog.catalog.keeping.maintenance import settle_origins

        table = self.table_head.whole
        result = materialize(table, progress or no_progress, copy=copy, limit_bytes=limit_bytes)
        owners = settle_origins(table.logs, table.tracked, table.tracked.current())
        return replace(result, owners=tuple(owners))

    def release_clone(self, clone: str, *, dry_run: bool = True) -> Table:
        """Keep no more files for a clone whose log is gone, so that the clone can never say that it needs
        none.

        `clone` is the id of that log, as `fsck` shows it. If the clone is restored later, its rows are lost.
        With `dry_run` (default), it only says whether that is possible. Raises InvalidInput if nothing is
        kept for the clone. Raises Unsupported if its log, or a part of it, exists.
        """
        from lakelog.catalog.keeping.maintenance import release_lost

        head = self._writable("release clones of").whole
        release_lost(head.logs, head.tracked, head.name, clone, dry_run=dry_run)
        return self.refresh()

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
        self.table_head.logs.check_writable()
        return self.table_head
