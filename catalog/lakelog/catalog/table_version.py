"""One version of a table, to inspect and to read: its metadata, its files and rows, and its other versions.

Nothing here changes a table; `table` has the changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lakelog.catalog import table_partitions
from lakelog.catalog.commit_history import History
from lakelog.catalog.core.files import TableEstimates
from lakelog.catalog.core.logs import PickledHead, TableHead, Unchanging, observed, watched
from lakelog.catalog.core.planning import TopRows, Values, bind, left_out_by_partition
from lakelog.catalog.core.schema import (
    Constraint,
    Filter,
    Metadata,
    Obstacle,
    PartitionSpec,
    Schema,
    SortOrder,
    as_predicate,
    obstacles,
    schema_to_arrow,
    values_json,
)
from lakelog.catalog.core.state import (
    MAIN,
    ClusteringGoal,
    Goal,
    Group,
    HistoryEntry,
    Ref,
    RowCounts,
    entries_of,
)
from lakelog.catalog.core.tools import ArrowRows, as_html
from lakelog.catalog.core.writes import compaction_commit, delete, file_changes, known_taken, matching_files
from lakelog.catalog.names import Identifier
from lakelog.catalog.scan import Scan
from lakelog.catalog.times import time_text
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Changes


@observed(
    lambda table: table.head.logs,
    lambda table: table.name,
    apart_from=("scan", "history", "inspect", "iceberg_obstacles", "can_overwrite"),
)
class TableVersion(ArrowRows, Unchanging):
    """One version of a table. One that was opened by a name belongs to that name: see `TableRenamed`."""

    def __init__(self, head: TableHead, *, of_the_past: bool = False) -> None:
        self.head = head
        self.is_past = of_the_past

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), PickledHead.of(self.head, "a table"), self.is_past)

    @property
    def identifier(self) -> Identifier | None:
        """The name that the table was opened by; None when it was opened by its place."""
        return None if self.head.found_by is None else self.head.found_by.identifier

    def _with(self, head: TableHead, *, of_the_past: bool = False) -> Self:
        return type(self)(head, of_the_past=of_the_past)

    def __repr__(self) -> str:
        return f"<Table {self.name} version {self.version}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is known of this version, without a request."""
        from lakelog.catalog.looking.pictures import definition_of

        files, definition = self.head.state.files, definition_of(self.metadata, self.version)
        facts = {
            "version": f"{self.version:,} of {time_text(self.timestamp_us)}",
            "branch or tag": None if self.ref == MAIN else self.ref,
            "location": self.location,
            "rows": f"{files.row_count:,} in {files.file_count:,} files, {files.size_bytes:,} bytes",
            "partitioned by": ", ".join(definition.partitioning),
            "clustered by": ", ".join(definition.clustering),
            "comment": definition.comment,
        }
        columns = [
            (column.name, column.type, "" if column.nullable else "NOT NULL", column.comment or "")
            for column in definition.columns
        ]
        return as_html(f"Table {self.name}", facts, ("column", "type", "", "comment"), columns)

    # Metadata

    @property
    def name(self) -> str:
        """The quoted name, or the place where it has no name."""
        return self.head.name

    @property
    def location(self) -> str:
        """The folder or S3 URL that holds the table's log, and its files below `data/`."""
        return self.head.url

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def version(self) -> int:
        return self.head.version

    @property
    def timestamp_us(self) -> int:
        """When this version was committed, in microseconds since 1970 (UTC), by the log's never-decreasing time."""
        return self.head.time_us

    @property
    def features(self) -> tuple[str, ...]:
        """What every client that reads or writes this table has to know, by name: log/README.md lists them."""
        return self.head.features

    @property
    def metadata(self) -> Metadata:
        return self.head.metadata

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
        """The word after USING when the table was created, unchanged."""
        return self.metadata.provider

    @property
    def comment(self) -> str | None:
        return self.metadata.comment

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """CHECK conditions, which hold for all rows, and keys, which are not enforced."""
        return self.metadata.constraints

    @property
    def own_location(self) -> bool:
        """Whether the user chose the place, rather than the catalog."""
        return self.metadata.own_location

    @property
    def estimates(self) -> TableEstimates | None:
        """The last result of `compute_statistics`, by column id; None where it was never run."""
        return self.head.state.estimates

    @property
    def row_count(self) -> int:
        self.head.note_rows_read(None)
        return self.head.state.files.row_count

    @property
    def file_count(self) -> int:
        self.head.note_rows_read(None)
        return self.head.state.files.file_count

    @property
    def size_bytes(self) -> int:
        """The compressed size of the data files."""
        self.head.note_rows_read(None)
        return self.head.state.files.size_bytes

    @property
    def ref(self) -> str:
        """The tag or branch of the table that this is, `main` for the table itself."""
        return self.head.ref

    @property
    def ref_id(self) -> str | None:
        """The id of the tag or branch, which differs from others of the same name before and after it; None for the
        table itself."""
        return self.head.ref_id

    @property
    def is_tag(self) -> bool:
        return self.head.is_tag

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The tags and branches of this version, by name."""
        return self.head.state.refs

    @property
    def rows_changed(self) -> RowCounts | None:
        """How many rows the change has inserted, updated, deleted and copied that returned this table.

        None of a table that no change returned, or one that changes no rows. In a transaction, of its own step.
        """
        return self.head.rows

    # Other versions

    def refresh(self) -> Self:
        """Return the newest version, of the branch if this is on one. Costs 1 GET when nothing is newer.

        NoSuchTable when the table was dropped, TableRenamed when it was renamed, NoSuchRef when the branch was dropped.
        """
        return self._with(self.head.refreshed())

    def at(
        self, *, version: int | None = None, timestamp_us: int | None = None, ref: str | None = None
    ) -> Self:
        """Return the table as of a version, or of a time (the newest version not after it), or on a tag or branch
        (`main` is the table itself); or on a tag or branch as of then.

        On a branch, the table can be read and written to, but not altered. A tag is of the past. NotFound, with those
        that exist, for one that does not: NoSuchRef for a tag or branch.
        """
        if ref is not None:
            is_now = version is None and timestamp_us is None
            then = self if is_now else self.at(version=version, timestamp_us=timestamp_us)
            found = then.head.on(ref)
            return self._with(found, of_the_past=then.is_past or found.is_tag)
        for asked in (version, timestamp_us):
            if asked is not None and type(asked) is not int:
                raise InvalidInput(
                    f"{asked!r} is not a version or a time in microseconds: give a whole number"
                )
        if (version is None) == (timestamp_us is None):
            raise InvalidInput(
                "the past of a table is loaded by version or by timestamp_us: give exactly one of them"
            )
        if self.is_tag:
            raise InvalidInput(f"{self.ref} is a tag, which has no other versions: use the table itself")
        if version is None:
            assert timestamp_us is not None
            version = self.head.version_at_time(timestamp_us)
        return self._with(self.head.at_version(version), of_the_past=True)

    def history(self, *, limit: int | None = None) -> History:
        """Return the changes of the table up to this version, the newest first: an iterator, read while it is taken."""
        reading = watched(self.head.logs, "history", self.name)
        return History(self.name, reading.each(self._history(limit)), self._newest)

    def _history(self, limit: int | None) -> Iterator[HistoryEntry]:
        if limit is not None and limit < 0:
            raise InvalidInput(f"the limit of {limit} changes is negative: use 0 or more")
        tracked = self.head.tracked
        tracked.transaction.note_rows_read(None)
        if tracked.transaction.creates_log:
            return
        commits = tracked.log.commits(last=self.version, newest_first=True)
        own = takewhile(lambda commit: commit.log_id == self.id, commits)
        yield from islice(entries_of(own), limit)

    def _newest(self) -> Iterator[HistoryEntry]:
        """Yield the changes that made this version, the newest first."""
        tracked = self.head.tracked
        if not tracked.transaction.is_open:
            yield from entries_of(tracked.log.commits(first=self.version, last=self.version))

    def author_of(self, text: str) -> str | None:
        """Return who brought a text into the table's definition (a CHECK, a default), and in which version of its log;
        None where that commit has expired."""
        from lakelog.catalog.looking.audit import author_of_text

        return author_of_text(self.head, self.version, text)

    def inspect(self, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of a metadata table, with all columns or `columns`: see docs/sql/metadata.md."""
        from lakelog.catalog.looking.audit import read_metadata

        reading = watched(self.head.logs, "inspect", self.name)
        with reading.working():
            found = read_metadata(self.head, name, columns)
        return pa.RecordBatchReader.from_batches(found.schema, reading.each(iter(found)))

    def iceberg_obstacles(self) -> list[Obstacle]:
        """Return what Iceberg cannot say of the table, what blocks an export first: see `Table.export_iceberg`."""
        return obstacles(self.schema, self.constraints, self.metadata.clustering)

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
        version that wrote it last. Both are NULL for rows from before there were ids, and for uncommitted rows of a
        transaction.
        """
        return Scan(self.head, columns, filter, limit, row_ids=row_ids)

    @property
    def arrow_schema(self) -> pa.Schema:
        return schema_to_arrow(self.schema)

    def _prepared(self) -> Scan:
        return self.scan()

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
        the change between before `first` and after `last`, if any. In a transaction, these are the changes of committed
        versions, with their columns. NotFound for versions that do not exist or have expired.
        """
        from lakelog.catalog.looking.changelog import Asked, Changes, changelog_of

        log = changelog_of(self, Asked(start_version=first, end_version=last))
        return Changes(log, columns, net=net, updates=updates)

    # Which files: for engines that read and write them

    def plan(self, predicate: Filter | None = None, *, top: TopRows | None = None) -> pa.Table:
        """Return the data files that may hold rows matching `predicate` or, without one, one of the `top` rows."""
        return self.head.plan(predicate, top)

    def left_out_by_partition(self, predicate: Filter, planned: int) -> int | None:
        """Return how many files a plan of so many has left out by what is asked of partitioned columns; None where
        that would have to be read."""
        bound, left_out = bind(as_predicate(predicate), self.schema), self.file_count - planned
        return left_out_by_partition(self.head.state.files, bound, self.head.metadata.specs, left_out)

    def plan_partial(self, predicate: Filter) -> pa.Table:
        """Return the data files in which an overwrite by this filter may replace some rows and not all; what lakelog
        does not know of it may be true of any row."""
        return matching_files(self.head, bind(as_predicate(predicate), self.schema), in_part=True)[1]

    def plan_rename(self, old: Values, new: Values) -> tuple[pa.Table, tuple[str, ...] | None]:
        """Return what an engine that renames a partition rewrites, for `rename_partition` (see `plan_rename`)."""
        return table_partitions.plan_rename(self.head, old, new)

    def plan_compaction(
        self, goal: Goal, filter: Filter | None, *, until: int, limit_bytes: int
    ) -> tuple[pa.Table, list[Group]]:
        """Return the files to rewrite next, and their groups, for `commit_compaction`."""
        return compaction_commit.plan_groups(self.head, goal, filter, until=until, limit_bytes=limit_bytes)

    def plan_clustering(
        self, goal: ClusteringGoal, filter: Filter | None, *, until: int, key: Sequence[int]
    ) -> tuple[pa.Table, list[Group]]:
        """Return the files to put in order next, and their groups, for `commit_compaction`. DoneInPart where the table
        is clustered by other columns than `key` by now."""
        from lakelog.catalog.keeping.upkeep import plan_next as plan_next_clustering

        return plan_next_clustering(self.head, goal, filter, until=until, key=key)

    def partitions(self, where: Values | None = None) -> pa.Table:
        """Return the partitions that have these values: a column for each field, and `files`, `rows` and `bytes`.

        `where` has JSON literals by the names of partition fields. Unsupported where files of an older partitioning may
        have rows of several partitions.
        """
        return table_partitions.listed(self.head, where)

    def identity_values(self) -> list[dict[str, Any]]:
        """Return the next value of each identity column, `{"column": id, "next": value}`, as far as known here."""
        return values_json(self.schema, known_taken(self.head))

    def can_delete(self, filter: Filter) -> bool:
        """Return whether `delete` with this filter is decided by whole files."""
        predicate = as_predicate(filter)
        self.head.note_rows_read(predicate)
        return delete.is_by_files(self.head, predicate)

    def can_overwrite(self, filter: Filter) -> bool:
        """Return whether `overwrite` accepts this filter: whether lakelog knows exactly which rows it matches."""
        return file_changes.is_understood(as_predicate(filter), self.schema)


def _unpickled(made: type[TableVersion], head: PickledHead, is_past: bool) -> TableVersion:
    return made(head.head(), of_the_past=is_past)
