"""The changes of a table's definition, as they arrive from Spark and from Python.

There is one struct for each kind of Spark's TableChange, tagged by `change` in their JSON. `schema_changes`
applies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from lakelog.catalog.core.schema.constraints import StatedConstraint
from lakelog.catalog.core.schema.partitioning import StatedField
from lakelog.catalog.core.schema.spark_types import SparkType
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import ColumnPath, Default
from lakelog.log.errors import InvalidInput


class AfterColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The position behind the sibling called `after`."""

    after: str


Position: TypeAlias = Literal["first"] | AfterColumn


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="change"):
    pass


class SetProperty(_Change, frozen=True, tag="set-property"):
    key: str
    value: str


class RemoveProperty(_Change, frozen=True, tag="remove-property"):
    key: str


class AddColumn(_Change, frozen=True, tag="add-column"):
    """`type` is in Spark's JSON. Without a position the column becomes the last of its struct.

    A `default` without `exists` is a literal, which existing rows have too. A NULL in `exists` has any type.
    """

    name: ColumnPath
    type: SparkType
    nullable: bool = True
    comment: str | None = None
    position: Position | None = None
    default: Default | None = None


class RenameColumn(_Change, frozen=True, tag="rename-column"):
    name: ColumnPath
    new_name: str


class UpdateColumnType(_Change, frozen=True, tag="update-column-type"):
    name: ColumnPath
    type: SparkType


class UpdateColumnNullability(_Change, frozen=True, tag="update-column-nullability"):
    name: ColumnPath
    nullable: bool


class UpdateColumnComment(_Change, frozen=True, tag="update-column-comment"):
    name: ColumnPath
    comment: str | None


class UpdateColumnPosition(_Change, frozen=True, tag="update-column-position"):
    name: ColumnPath
    position: Position


class UpdateColumnDefault(_Change, frozen=True, tag="update-column-default"):
    """Changes the default of new rows. None removes it. Existing rows keep their values."""

    name: ColumnPath
    default: Default | None


class DeleteColumn(_Change, frozen=True, tag="delete-column"):
    name: ColumnPath
    if_exists: bool = False


class SetPartitioning(_Change, frozen=True, tag="set-partitioning"):
    """`fields` are column names or transforms, as `partitioning.spec_from_transforms` reads them."""

    fields: tuple[str | StatedField, ...]


class AddPartitionField(_Change, frozen=True, tag="add-partition-field"):
    """Also partitions new files by `field`. If `name` is None, the field's name is derived from the
    column's."""

    field: str | StatedField
    name: str | None = None


class DropPartitionField(_Change, frozen=True, tag="drop-partition-field"):
    """`field` is the name of a partition field, or its column name or transform."""

    field: str | StatedField


class ReplacePartitionField(_Change, frozen=True, tag="replace-partition-field"):
    """Replaces `field`, given as in `DropPartitionField`, with `by`."""

    field: str | StatedField
    by: str | StatedField
    name: str | None = None


class SetSortOrder(_Change, frozen=True, tag="set-sort-order"):
    """`fields` are column names or transforms, as `partitioning.sort_order_from` reads them."""

    fields: tuple[str | StatedField, ...]


class AddConstraint(_Change, frozen=True, tag="add-constraint"):
    constraint: StatedConstraint


class DropConstraint(_Change, frozen=True, tag="drop-constraint"):
    name: str
    if_exists: bool = False


class SetClustering(_Change, frozen=True, tag="set-clustering"):
    """Clusters new rows by these columns. An empty list ends it."""

    columns: tuple[ColumnPath, ...]


TableChange: TypeAlias = (
    SetProperty
    | RemoveProperty
    | AddColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnPosition
    | UpdateColumnDefault
    | DeleteColumn
    | SetPartitioning
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetSortOrder
    | AddConstraint
    | DropConstraint
    | SetClustering
)

ready(TableChange)


def changes_from(changes: Sequence[TableChange | Mapping[str, Any]]) -> tuple[TableChange, ...]:
    """Return `changes` as structs. Raises InvalidInput for JSON that is not a known change."""
    if isinstance(changes, str | Mapping) or not isinstance(changes, Iterable):
        raise InvalidInput(f"{changes!r} is not a list of changes: give a list")
    return tuple(_change_from(change) for change in changes)


def _change_from(change: object) -> TableChange:
    if isinstance(change, get_args(TableChange)):
        return cast(TableChange, change)
    if not isinstance(change, Mapping):
        raise InvalidInput(f"{change!r} is not a change of a table")
    try:
        table_change: TableChange = msgspec.convert(dict(change), TableChange)
        return table_change
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{dict(change)!r} is not a change of a table: {error}") from None
