"""Changes of a table's definition as methods, with Python's columns, types and values.

Each method builds changes of `table_changes` and hands them to `_altered`: a table commits them at once, and
an alteration collects them. It must not know commits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Self

import pyarrow as pa

from lakelog.catalog.core.schema.arrow_types import type_from_arrow
from lakelog.catalog.core.schema.filter_text import parse_filter
from lakelog.catalog.core.schema.literals import value_of
from lakelog.catalog.core.schema.partitioning import StatedField, stated
from lakelog.catalog.core.schema.predicate import paths_in
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.spark_types import SparkType, checked_type, type_to_spark
from lakelog.catalog.core.schema.sql_literals import literal_of
from lakelog.catalog.core.schema.table_changes import (
    AddColumn,
    AddPartitionField,
    AfterColumn,
    DeleteColumn,
    DropConstraint,
    DropPartitionField,
    Position,
    RemoveProperty,
    RenameColumn,
    ReplacePartitionField,
    SetClustering,
    SetPartitioning,
    SetProperty,
    SetSortOrder,
    TableChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    changes_from,
)
from lakelog.catalog.core.schema.types import ColumnPath, Default, Type
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Name, check_list, identifier
from lakelog.log.errors import InvalidInput

_NAMES_OF_ARROW = frozenset(
    (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
        "bool_", "utf8", "large_utf8", "large_string", "large_binary", "date32", "date64",
    )
)  # fmt: skip
"""Type names that Spark does not have. Each is also a function of pyarrow."""


@explaining
class DefinitionMethods(ABC):
    """Methods that change columns, properties, partitioning, order and constraints.

    A column is named by its path: `"city"`, `"address.city"` for a field of a struct, `"tags.element"` for
    the elements of a list, `"m.key"` and `"m.value"` for a map. A name with dots is quoted in backticks, or
    the path is a tuple.
    """

    @abstractmethod
    def _altered(self, changes: Sequence[TableChange]) -> Self:
        """Return the table or alteration with these changes."""

    @property
    @abstractmethod
    def _columns_now(self) -> Schema:
        """The columns that the next change applies to."""

    # Columns

    def add_column(
        self,
        name: Name,
        type: pa.DataType | SparkType,
        *,
        nullable: bool = True,
        default: Any = None,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
    ) -> Self:
        """Add a column, or a field of a struct: `add_column("address.city", pa.string())`.

        `type` is a pyarrow type or Spark's name for a type (`"decimal(10,2)"`). Existing rows have the value
        `default`, and so do new rows that bring no value. Without `default` it is NULL. The column becomes
        the last of its struct, or the `first`, or follows the sibling `after`. Raises ColumnExists,
        NoSuchColumn or InvalidInput. Raises Unsupported if the type cannot be stored.
        """
        path = _path(name)
        json = spark_type_of(type, path)
        change = AddColumn(
            name=path,
            type=json,
            nullable=_flag(nullable, "nullable", path),
            comment=_comment(comment, path),
            position=_position(after, path, first=first),
            default=None if default is None else _default(default, checked_type(json, path), path),
        )
        return self._altered([change])

    def rename_column(self, name: Name, new_name: str) -> Self:
        """Rename a column within its struct. Data files stay as they are. Raises NoSuchColumn or
        ColumnExists."""
        return self._altered([RenameColumn(name=_path(name), new_name=_plain_name(new_name, "a new name"))])

    def drop_column(self, name: Name, *, missing_ok: bool = False) -> Self:
        """Drop a column. Data files stay as they are. Older versions of the table still have the column.

        Raises NoSuchColumn, unless `missing_ok`. Raises InvalidInput if the partitioning, the order or a
        constraint needs the column.
        """
        return self._altered([DeleteColumn(name=_path(name), if_exists=missing_ok)])

    def update_column(
        self,
        name: Name,
        *,
        type: pa.DataType | SparkType | None = None,
        nullable: bool | None = None,
        comment: str | EllipsisType | None = ...,
        default: Any = ...,
        after: str | None = None,
        first: bool = False,
    ) -> Self:
        """Change the given attributes of a column, and leave the others as they are.

        `type` may only widen, as from int32 to int64. Raises InvalidInput if values in data files may not
        fit. `nullable` False needs a proof that no value is NULL, and raises RowsUnproven without it.
        `comment` None and `default` None remove these. A new default is for new rows, and existing rows keep
        their values. `after` and `first` move the column.
        """
        path, changes = _path(name), list[TableChange]()
        if type is not None:
            changes.append(UpdateColumnType(name=path, type=spark_type_of(type, path)))
        if nullable is not None:
            changes.append(UpdateColumnNullability(name=path, nullable=_flag(nullable, "nullable", path)))
        if not isinstance(comment, EllipsisType):
            changes.append(UpdateColumnComment(name=path, comment=_comment(comment, path)))
        if default is None:
            changes.append(UpdateColumnDefault(name=path, default=None))
        elif default is not ...:
            column_type = self._columns_now.find(path).type if type is None else None
            new_type = column_type or checked_type(spark_type_of(type, path), path)
            changes.append(UpdateColumnDefault(name=path, default=_default(default, new_type, path)))
        position = _position(after, path, first=first)
        if position is not None:
            changes.append(UpdateColumnPosition(name=path, position=position))
        if not changes:
            raise InvalidInput(
                f"nothing of the column {dotted(path)} is to be changed: give type, nullable, comment, default, after "
                "or first; rename_column gives it another name"
            )
        return self._altered(changes)

    # Properties

    def set_properties(self, properties: Mapping[str, str]) -> Self:
        """Set properties by name. `comment` is the table's comment.

        Raises InvalidInput if a property cannot have its value.
        """
        if not isinstance(properties, Mapping):
            raise InvalidInput(f"{properties!r} is not a mapping: give {{'name': 'value'}}")
        for key, value in properties.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidInput(
                    f"the property {key!r} is {value!r}: give both as text, such as {str(value)!r}"
                )
        return self._altered([SetProperty(key=key, value=value) for key, value in properties.items()])

    def remove_properties(self, *names: str) -> Self:
        """Remove properties. Nothing happens if a property is not set."""
        return self._altered(
            [RemoveProperty(key=_plain_name(name, "the name of a property")) for name in names]
        )

    # Partitioning and order

    def set_partitioning(self, fields: Sequence[str | Mapping[str, Any]]) -> Self:
        """Partition new files by `fields`, which are like `partition_by` of `create_table`. An empty list
        ends it."""
        return self._altered([SetPartitioning(fields=_fields(fields))])

    def add_partition_field(self, field: str | Mapping[str, Any], *, name: str | None = None) -> Self:
        """Also partition new files by a column or a transform of a column. Existing files stay as they
        are."""
        return self._altered([AddPartitionField(field=_field(field), name=_field_name(name))])

    def drop_partition_field(self, field: str | Mapping[str, Any]) -> Self:
        """No longer partition new files by a field. `field` is its name, its column, or its transform."""
        return self._altered([DropPartitionField(field=_field(field))])

    def replace_partition_field(
        self, field: str | Mapping[str, Any], by: str | Mapping[str, Any], *, name: str | None = None
    ) -> Self:
        """Partition new files by another field instead of `field`."""
        return self._altered(
            [ReplacePartitionField(field=_field(field), by=_field(by), name=_field_name(name))]
        )

    def set_sort_order(self, fields: Sequence[str | Mapping[str, Any]]) -> Self:
        """Sort the rows of new files by `fields`, which are like `sort_by` of `create_table`. An empty list
        ends it."""
        return self._altered([SetSortOrder(fields=_fields(fields))])

    def set_clustering(self, columns: Sequence[Name]) -> Self:
        """Cluster new rows by `columns`. An empty list ends it. `Table.cluster` clusters existing rows."""
        check_list(columns, "columns")
        return self._altered([SetClustering(columns=tuple(map(_path, columns)))])

    # Constraints

    def add_constraint(
        self,
        name: str,
        *,
        check: str | None = None,
        primary_key: Sequence[str] | None = None,
        unique: Sequence[str] | None = None,
    ) -> Self:
        """Add a constraint: a condition `check="price > 0"`, written like a filter, or the columns of a key.

        A condition holds for all rows from now on. A key is not enforced. Raises RowsUnproven if statistics
        do not prove a condition for the existing rows. Raises ConstraintExists if the name is taken.
        """
        for key in (primary_key, unique):
            check_list(key, "columns")
        conditions = {"check": check, "primary-key": primary_key, "unique": unique}
        kinds = [kind for kind, value in conditions.items() if value is not None]
        if len(kinds) != 1:
            raise InvalidInput(
                f"the constraint {name} needs one of check, primary_key and unique: give one of them"
            )
        constraint: dict[str, Any] = {"kind": kinds[0], "name": name}
        if check is not None:
            predicate = parse_filter(check)
            constraint |= {
                "columns": sorted(set(paths_in(predicate))),
                "sql": check,
                "predicate": predicate.to_json(),
            }
        else:
            columns = primary_key or unique or ()
            constraint["columns"] = [
                _path(column) for column in ([columns] if isinstance(columns, str) else columns)
            ]
        return self._altered(changes_from([{"change": "add-constraint", "constraint": constraint}]))

    def drop_constraint(self, name: str, *, missing_ok: bool = False) -> Self:
        """Drop a constraint. Raises NoSuchConstraint if there is none, unless `missing_ok`."""
        return self._altered(
            [DropConstraint(name=_plain_name(name, "the name of a constraint"), if_exists=missing_ok)]
        )


def _path(name: str | Sequence[str]) -> ColumnPath:
    """Return the parts of a column's path: `"a.b"` (backticks around parts with dots) or the parts
    themselves."""
    if not isinstance(name, str | list | tuple) or not name:
        raise InvalidInput(f"{name!r} is not a column: give its name, or a path such as 'address.city'")
    return identifier(name)


def _plain_name(name: str, what: str) -> str:
    """Return a name that has no path. Raises InvalidInput if it is not text."""
    if not isinstance(name, str):
        raise InvalidInput(
            f"{name!r} is not {what}: give one name as text, without the path that leads to it"
        )
    return name


def spark_type_of(type: pa.DataType | SparkType, path: ColumnPath) -> SparkType:
    """Return a type in Spark's JSON. Raises InvalidInput or Unsupported, which name the column at `path`."""
    if isinstance(type, pa.DataType):
        return type_to_spark(type_from_arrow(type, path))
    if not isinstance(type, str | dict):
        raise InvalidInput(
            f"the type of the column {dotted(path)} is {type!r}: give one of pyarrow's, such as pa.int64(), or "
            "Spark's name for it, such as 'bigint'"
        )
    if isinstance(type, str) and type in _NAMES_OF_ARROW:
        raise InvalidInput(
            f"the type of the column {dotted(path)} is {type!r}, a name of Arrow's: give pyarrow.{type}() itself, or "
            "Spark's name"
        )
    return type_to_spark(checked_type(type, path))


def _default(value: Any, type: Type, path: ColumnPath) -> Default:
    """Return a column's value as its default. Raises InvalidInput if the column cannot hold it."""
    column_value = value_of(value, type)
    if column_value is None:
        raise InvalidInput(
            f"the default {value!r} of the column {dotted(path)} is not a value of its type {type}: give a value of "
            "Python's that is, such as 0, 'new', True or datetime.date(2020, 1, 31)"
        )
    return Default(current=literal_of(column_value), exists=column_value)


def _flag(value: bool, word: str, path: ColumnPath) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{word} of the column {dotted(path)} is {value!r}: give True or False")
    return value


def _comment(value: str | None, path: ColumnPath) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"the comment of the column {dotted(path)} is {value!r}: give text")
    return value


def _position(after: str | None, path: ColumnPath, *, first: bool) -> Position | None:
    if after is not None and first:
        raise InvalidInput(f"the column {dotted(path)} cannot be first and after {after}: give one of them")
    if after is not None:
        return AfterColumn(after=_plain_name(after, "a column beside it"))
    return "first" if first else None


def _fields(given: Sequence[str | Mapping[str, Any]]) -> tuple[str | StatedField, ...]:
    check_list(given, "fields")
    return tuple(map(_field, given))


def _field(given: str | Mapping[str, Any]) -> str | StatedField:
    return given if isinstance(given, str) else stated(given)


def _field_name(name: str | None) -> str | None:
    return None if name is None else _plain_name(name, "the name of a partition field")
