"""Reading a loaded table: the files that a question needs, and the answers that need no files."""

from __future__ import annotations

from lakelog.catalog import Expression, TableChange
from lakelog.spark.requests.base import Answer, CatalogRequest, LoadedTable, LoadedTableRequest, Message


class TopLimit(Message, frozen=True, kw_only=True):
    """The first `limit` rows by a column."""

    column: str
    ascending: bool
    nulls_first: bool
    limit: int


class PlanFiles(LoadedTableRequest, frozen=True, kw_only=True, tag="plan"):
    """Return the files that may have rows like `predicate`, as an Arrow stream.

    It has the values of the partition fields `keys` if all files are partitioned by them.
    """

    predicate: Expression
    top: TopLimit | None = None
    keys: tuple[int, ...] = ()


class PlanFacts(Answer, frozen=True, kw_only=True):
    """The version's file count, the deleted rows of the planned files, and the cost of planning.

    `by_partition` is how many files the conditions on partitioned columns left out, if that is known.
    """

    files: int = 0
    deleted: int = 0
    requests: int = 0
    bytes: int = 0
    by_partition: int | None = None


class PlanCut(LoadedTableRequest, frozen=True, kw_only=True, tag="plan_cut"):
    """Return the files in which an overwrite by a filter may replace some rows, but not all, as an Arrow
    stream."""

    predicate: Expression


class TableRead(LoadedTable, frozen=True, kw_only=True):
    """A table that a statement reads. `settled` is the version that the statement has read, or -1."""

    settled: int


class ReadTogether(CatalogRequest, frozen=True, kw_only=True, tag="read_together"):
    """Return a version of each table, all as of the same moment."""

    tables: tuple[TableRead, ...]


class VersionList(Answer, frozen=True, kw_only=True):
    versions: tuple[int, ...]


class CanDelete(LoadedTableRequest, frozen=True, kw_only=True, tag="can_delete"):
    """Return whether a delete by that condition takes whole files only."""

    predicate: Expression


class CanOverwrite(LoadedTableRequest, frozen=True, kw_only=True, tag="can_overwrite"):
    """Return whether lakelog knows exactly which rows match."""

    predicate: Expression


class CanChange(LoadedTableRequest, frozen=True, kw_only=True, tag="can_change"):
    """Return whether the table can be changed in that way."""

    change: TableChange


class AggregateColumn(Message, frozen=True, kw_only=True):
    """`kind` is `count`, `min` or `max`; without a column, rows are counted."""

    kind: str
    column: str | None


class ReadAggregates(LoadedTableRequest, frozen=True, kw_only=True, tag="aggregate"):
    """Return the values of `group_by` and the aggregates, as an Arrow stream, if they are known without the
    files."""

    aggregates: tuple[AggregateColumn, ...]
    group_by: tuple[str, ...]


class AggregatesKnown(Answer, frozen=True, kw_only=True):
    known: bool
