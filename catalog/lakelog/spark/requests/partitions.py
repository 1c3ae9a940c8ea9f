"""Single partitions of a table, which are named by the values of its partition fields."""

from __future__ import annotations

from typing import TypeAlias

from lakelog.catalog import Scalar
from lakelog.catalog.engine import DataFile
from lakelog.log import WriteRef
from lakelog.spark.requests.base import Answer, LoadedChange, LoadedTableRequest

Values: TypeAlias = dict[str, Scalar]
"""Values of partition fields, by their names."""


class ListPartitions(LoadedTableRequest, frozen=True, kw_only=True, tag="partitions"):
    """Return the partitions that have these values as an Arrow stream, with the columns files, rows and
    bytes."""

    where: Values


class AddPartitions(LoadedChange, frozen=True, kw_only=True, tag="add_partitions"):
    """Add partitions without rows."""

    partitions: tuple[Values, ...]


class DropPartitions(LoadedChange, frozen=True, kw_only=True, tag="drop_partitions"):
    """Delete the rows of partitions, and the partitions."""

    partitions: tuple[Values, ...]


class TruncatePartitions(LoadedChange, frozen=True, kw_only=True, tag="truncate_partitions"):
    """Delete the rows of partitions."""

    partitions: tuple[Values, ...]


class PlanRename(LoadedTableRequest, frozen=True, kw_only=True, tag="plan_rename"):
    """Return the files that may have rows of the partition `old`, as an Arrow stream, for an engine that
    rewrites them."""

    old: Values
    new: Values


class RenamePlan(Answer, frozen=True, kw_only=True):
    """The columns that get other values. None if Python has to check the rows, and so rewrites them."""

    columns: tuple[str, ...] | None = None


class RenamePartition(LoadedChange, frozen=True, kw_only=True, tag="rename_partition"):
    """Give all rows of the partition `old` the values of `new`.

    If an engine rewrote the rows, `files` of its write have them.
    """

    old: Values
    new: Values
    write: WriteRef | None = None
    files: tuple[DataFile, ...] | None = None
