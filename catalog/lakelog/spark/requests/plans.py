"""Reading a table that was loaded: which files a question needs, and what is known without them."""

from __future__ import annotations

from lakelog.catalog.core.schema import Expression, TableChange
from lakelog.spark.requests.base import Answer, InCatalog, LoadedTable, Message, OfLoaded


class Top(Message, frozen=True, kw_only=True):
    """The first `limit` rows by a column."""

    column: str
    ascending: bool
    nulls_first: bool
    limit: int


class Plan(OfLoaded, frozen=True, kw_only=True, tag="plan"):
    """The files that may have rows like `predicate`, as an Arrow stream; with the values of the partition fields `keys`
    where all of the files are partitioned by these."""

    predicate: Expression
    top: Top | None = None
    keys: tuple[int, ...] = ()


class Planned(Answer, frozen=True, kw_only=True):
    """How many files the version has, how many deleted rows those have that are planned, and what planning cost.

    `by_partition` of those that are left out are so by what is asked of partitioned columns, where that is known.
    """

    files: int = 0
    deleted: int = 0
    requests: int = 0
    bytes: int = 0
    by_partition: int | None = None


class PlanCut(OfLoaded, frozen=True, kw_only=True, tag="plan_cut"):
    """The files in which an overwrite by a filter may replace some rows and not all, as an Arrow stream."""

    predicate: Expression


class TableRead(LoadedTable, frozen=True, kw_only=True):
    """A table that a statement reads. `settled` is the version that it has been read at already, or -1."""

    settled: int


class ReadTogether(InCatalog, frozen=True, kw_only=True, tag="read_together"):
    """A version of each table, all of one moment."""

    tables: tuple[TableRead, ...]


class Versions(Answer, frozen=True, kw_only=True):
    versions: tuple[int, ...]


class CanDelete(OfLoaded, frozen=True, kw_only=True, tag="can_delete"):
    """Whether a delete by that condition takes whole files only."""

    predicate: Expression


class CanOverwrite(OfLoaded, frozen=True, kw_only=True, tag="can_overwrite"):
    """Whether it is known exactly which rows match."""

    predicate: Expression


class CanChange(OfLoaded, frozen=True, kw_only=True, tag="can_change"):
    """Whether the table can be changed in that way."""

    change: TableChange


class Aggregated(Message, frozen=True, kw_only=True):
    """`kind` is `count`, `min` or `max`; without a column, rows are counted."""

    kind: str
    column: str | None


class Aggregate(OfLoaded, frozen=True, kw_only=True, tag="aggregate"):
    """The values of `group_by`, and then the aggregates, as an Arrow stream, if they are known without the files."""

    aggregates: tuple[Aggregated, ...]
    group_by: tuple[str, ...]


class Known(Answer, frozen=True, kw_only=True):
    known: bool
