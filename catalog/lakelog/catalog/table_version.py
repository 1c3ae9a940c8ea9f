"""A version of a table, to inspect and to read: its metadata, its files and rows, and its other versions.

Nothing here changes a table. `table` has the changes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from lakelog.catalog.commit_history import History
from lakelog.catalog.core.logs import PickledHead, TableHead, UnchangingValue, observed, watched
from lakelog.catalog.core.schema import (
    Constraint,
    Filter,
    Metadata,
    Obstacle,
    PartitionSpec,
    Schema,
    SortOrder,
    obstacles,
    schema_to_arrow,
)
from lakelog.catalog.core.state import (
    HistoryEntry,
    Ref,
    RowCounts,
    entries_of,
)
from lakelog.catalog.core.tools import ArrowRows
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Identifier, check_list
from lakelog.catalog.scan import Scan
from lakelog.catalog.times import Moment, moment_of, time_us
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Changes


@observed(
    lambda table: table.table_head.logs,
    lambda table: table.name,
    apart_from=("scan", "head", "tail", "sample", "history", "inspect", "iceberg_obstacles"),
)
@explaining
class TableVersion(ArrowRows, UnchangingValue):
    """A version of a table. If it was opened by a name, it belongs to that name (see `TableRenamed`)."""

    def __init__(self, head: TableHead, *, of_the_past: bool = False) -> None:
        self.table_head = head
        self.is_past = of_the_past

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), PickledHead.of(self.table_head, "a table"), self.is_past)

    @property
    def identifier(self) -> Identifier | None:
        """The name that the table was opened by. None if it was opened by its place."""
        return None if self.table_head.found_by is None else self.table_head.found_by.identifier

    def _with(self, head: TableHead, *, of_the_past: bool = False) -> Self:
        return type(self)(head, of_the_past=of_the_past)

    def __len__(self) -> NoReturn:
        raise TypeError(
            "a table has no length: write table.row_count, or len(table.arrow_schema) for its columns"
        )

    def __bool__(self) -> bool:
        return True  # without a look at its length

    def __repr__(self) -> str:
        return f"<Table {self.name} version {self.version}>"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: facts, columns, first rows, last changes.

        Never raises an error, and notes no read.
        """
        from lakelog.catalog.looking.notebooks import table_html

        return table_html(self.table_head)

    # Metadata

    @property
    def name(self) -> str:
        """The quoted name, or the place if it has no name."""
        return self.table_head.name

    @property
    def location(self) -> str:
        """The folder or S3 URL that holds the table's log, and its files below `data/`."""
        return self.table_head.url

    @property
    def id(self) -> str:
        return self.table_head.id

    @property
    def version(self) -> int:
        return self.table_head.version

    @property
    def committed_at(self) -> dt.datetime:
        """The time of this version's commit in UTC, by the log's time, which never decreases."""
        return moment_of(self.table_head.time_us)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that a client has to know to read this table, by name (catalog/README.md lists them)."""
        return self.table_head.view.features

    @property
    def writer_features(self) -> tuple[str, ...]:
        """The features that a client has to know too to write to this table, by name."""
        return self.table_head.view.writer_features

    @property
    def metadata(self) -> Metadata:
        return self.table_head.metadata

    @property
    def schema(self) -> Schema:
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The partitioning of new files. `specs` has the partitionings of older files too."""
        return self.metadata.spec

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        return self.metadata.specs

    @property
    def sort_order(self) -> SortOrder:
        return self.metadata.sort_order

    @property
    def clustering(self) -> tuple[tuple[str, ...], ...]:
        """The columns by which writes cluster their rows. Each is a path of names."""
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
    def row_count(self) -> int:
        self.table_head.note_rows_read(None)
        return self.table_head.state.files.row_count

    @property
    def file_count(self) -> int:
        self.table_head.note_rows_read(None)
        return self.table_head.state.files.file_count

    @property
    def size_bytes(self) -> int:
        """The compressed size of the data files."""
        self.table_head.note_rows_read(None)
        return self.table_head.state.files.size_bytes

    @property
    def ref(self) -> str:
        """The tag or branch of the table that this is, `main` for the table itself."""
        return self.table_head.ref

    @property
    def is_tag(self) -> bool:
        return self.table_head.is_tag

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The tags and branches of this version, by name."""
        return _RefsByName(self.table_head.state.refs)

    @property
    def rows_changed(self) -> RowCounts | None:
        """How many rows were inserted, updated, deleted and copied by the change that returned this table.

        None if no change returned this table, or if that change changes no rows. In a transaction, of its own
        step.
        """
        return self.table_head.rows

    # Other versions

    def refresh(self) -> Self:
        """Return the newest version, of the branch if this is on a branch.

        Makes a GET if nothing is newer. Raises NoSuchTable if the table was dropped, TableRenamed if it was
        renamed, NoSuchRef if the branch was dropped.
        """
        return self._with(self.table_head.refreshed())

    def at(
        self, *, version: int | None = None, timestamp: Moment | None = None, ref: str | None = None
    ) -> Self:
        """Return the table as of a version or a time, on a tag or branch, or on a tag or branch as of then.

        A time means the newest version not after it. `main` is the table itself. A timestamp is a datetime, a
        text such as "2026-11-20 23:59:00", or microseconds since 1970. It is in UTC if it names no zone. On a
        branch, the table can be read and written to, but not altered. A tag is of the past. Raises NotFound,
        or NoSuchRef for a tag or branch, if there is none. The error lists those that exist.
        """
        if ref is not None:
            is_now = version is None and timestamp is None
            base_table = self if is_now else self.at(version=version, timestamp=timestamp)
            ref_head = base_table.table_head.on(ref)
            return self._with(ref_head, of_the_past=base_table.is_past or ref_head.is_tag)
        if version is not None:
            _check_version(version, "or a timestamp=")
        if (version is None) == (timestamp is None):
            raise InvalidInput(
                "the past of a table is loaded by version or by timestamp: give exactly one of them"
            )
        if self.is_tag:
            raise InvalidInput(f"{self.ref} is a tag, which has no other versions: use the table itself")
        if version is None:
            assert timestamp is not None
            version = self.table_head.version_at_time(time_us(timestamp))
        return self._with(self.table_head.at_version(version), of_the_past=True)

    def history(self, *, limit: int | None = None) -> History:
        """Return the changes of the table up to this version, the newest first, as an iterator that reads
        lazily."""
        if limit is not None and type(limit) is not int:
            raise InvalidInput(f"the limit {limit!r} is not a number of changes: give a whole number")
        watch = watched(self.table_head.logs, "history", self.name)
        return History(self.name, watch.each(self._history(limit)), self._newest)

    def _history(self, limit: int | None) -> Iterator[HistoryEntry]:
        if limit is not None and limit < 0:
            raise InvalidInput(f"the limit of {limit} changes is negative: use 0 or more")
        table_log = self.table_head.tracked
        table_log.transaction.note_rows_read(None)
        if table_log.transaction.creates_log:
            return
        commits = table_log.log.commits(last=self.version, newest_first=True)
        own_commits = takewhile(lambda commit: commit.log_id == self.id, commits)
        yield from islice(entries_of(own_commits), limit)

    def _newest(self) -> Iterator[HistoryEntry]:
        """Yield the changes that made this version, the newest first."""
        table_log = self.table_head.tracked
        if not table_log.transaction.is_open:
            yield from entries_of(table_log.log.commits(first=self.version, last=self.version))

    def inspect(self, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows of a metadata table, with all columns or `columns` (see docs/sql/metadata.md)."""
        from lakelog.catalog.looking.audit import read_metadata

        check_list(columns, "columns")
        watch = watched(self.table_head.logs, "inspect", self.name)
        with watch.working():
            rows = read_metadata(self.table_head, name, columns)
        return pa.RecordBatchReader.from_batches(rows.schema, watch.each(iter(rows)))

    def iceberg_obstacles(self) -> list[Obstacle]:
        """Return the table's features that Iceberg cannot represent (see `Table.export_iceberg`).

        Features that block an export come first.
        """
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
        """Prepare a read of this version: some columns (in their order), the rows that match, at most
        `limit`.

        With `row_ids`, the columns `_row_id` and `_row_version` follow. `_row_id` stays if the row is moved
        or updated. `_row_version` is the version that wrote the row last. Both are NULL for rows that are
        older than ids, and for uncommitted rows of a transaction.
        """
        return Scan(self.table_head, columns, filter, limit, row_ids=row_ids)

    def head(self, n: int = 5) -> pa.Table:
        """Return the first `n` rows, in the order of a scan. Reads no more files than that takes."""
        return self.scan().head(n)

    def tail(self, n: int = 5) -> pa.Table:
        """Return the last `n` rows, in the order of a scan, which need not be the newest. Reads only the last files."""
        return self.scan().tail(n)

    def sample(self, n: int = 5, *, seed: int | None = None) -> pa.Table:
        """Return `n` rows by chance, each equally likely.

        With a `seed`, a version has the same rows each time.

        Reads only files that have any of these rows.
        """
        return self.scan().sample(n, seed=seed)

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
        """Prepare a read of the rows that versions from `first` to `last` (None: this version) inserted and
        deleted.

        An updated row is deleted and inserted, or, with `updates`, the two halves of an update. With `net`, a
        row has the change between before `first` and after `last`, if any. That also holds if
        it was updated to other values and back. In a transaction, these are the
        changes of committed versions, with their columns. Raises NotFound if a version does not exist or has
        expired.
        """
        from lakelog.catalog.looking.changelog import ChangeRange, Changes, changelog_of

        _check_version(first, "or read times by Spark's CHANGES")
        if last is not None:
            _check_version(last, "or None for this version")
        log = changelog_of(self, ChangeRange(start_version=first, end_version=last))
        return Changes(log, columns, net=net, updates=updates)

    def plan(self, predicate: Filter | None = None) -> pa.Table:
        """Return the data files that may hold rows matching `predicate`, with a row for each file."""
        return self.table_head.plan(predicate)

    def __dir__(self) -> list[str]:
        """Return the names for users. `table_head` is for the other rooms, and for the engine's door."""
        return [name for name in super().__dir__() if name not in ("table_head", "__len__", "__bool__")]


def _check_version(version: object, instead: str) -> None:
    if type(version) is not int:
        raise InvalidInput(f"{version!r} is not a version: give a whole number, {instead}")


class _RefsByName(dict[str, Ref]):
    def __call__(self) -> NoReturn:
        raise TypeError("a table's tags and branches are no method: write table.refs")


def _unpickled(made: type[TableVersion], head: PickledHead, is_past: bool) -> TableVersion:
    return made(head.head(), of_the_past=is_past)
