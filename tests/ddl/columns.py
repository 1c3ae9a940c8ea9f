"""Columns of the model: a tree in which everything has a number of its own that is never given twice.

A row keeps its values by these numbers as it was written, for ever; how it looks is decided when it is shown, by the
columns of some version. Types are in Spark's JSON if they are asked for, and `Type` here.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]
Cells: TypeAlias = dict[int, Any]
"""A row, or a struct in it: values by the numbers of columns. Maps are lists of pairs."""

WIDER = {
    "byte": ("integer", "long", "double", "decimal(12,2)", "decimal(16,4)"),
    "integer": ("long", "double", "decimal(12,2)", "decimal(16,4)"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
    "decimal(12,2)": ("decimal(16,4)",),
    "varchar(5)": ("varchar(9)", "string"),
    "varchar(9)": ("string",),
}
SAME_PARTITIONS = {("byte", "integer"), ("byte", "long"), ("integer", "long"), ("varchar(5)", "varchar(9)"),
                   ("varchar(5)", "string"), ("varchar(9)", "string")}  # fmt: skip
"""The widenings by which a column stays in the partitions that it was in."""


class Refused(Exception):
    """The model says that a step cannot be."""


@dataclass(frozen=True)
class Nested:
    """A struct with its fields, an array with `element`, or a map with `key` and `value`."""

    kind: str
    parts: tuple[Column, ...]


Type: TypeAlias = str | Nested


@dataclass(frozen=True)
class Column:
    """`default` is what new rows get that do not have it, `before` what rows have that were there first."""

    number: int
    name: str
    type: Type
    required: bool = False
    default: Any = None
    before: Any = None


_numbers = itertools.count(1)


def column(name: str, json: Any, required: bool = False, default: Any = None, before: Any = None) -> Column:
    return Column(next(_numbers), name, type_of(json), required, default, before)


def type_of(json: Any) -> Type:
    """Return a type, with new numbers in it."""
    if isinstance(json, str):
        return json
    match json["type"]:
        case "struct":
            parts = [column(field["name"], field["type"], not field["nullable"]) for field in json["fields"]]
        case "array":
            parts = [column("element", json["elementType"], not json["containsNull"])]
        case _:
            parts = [
                column("key", json["keyType"], True),
                column("value", json["valueType"], not json["valueContainsNull"]),
            ]
    return Nested(json["type"], tuple(parts))


def walk(columns: tuple[Column, ...], above: Path = ()) -> Iterator[tuple[Path, Column]]:
    for column in columns:
        yield (*above, column.name), column
        if isinstance(column.type, Nested):
            yield from walk(column.type.parts, (*above, column.name))


def find(columns: tuple[Column, ...], path: Path) -> Column:
    return dict(walk(columns))[path]


def below(column: Column) -> set[int]:
    """The numbers of a column and of all in it."""
    return {node.number for _, node in walk((column,))}


def refuse_equal_keys(old_columns: tuple[Column, ...], columns: tuple[Column, ...]) -> None:
    """Raise Refused if the keys of a map have lost a part, without which two of them may be equal."""
    numbers = {node.number for _, node in walk(columns)}
    for path, node in walk(old_columns):
        if not isinstance(node.type, Nested) or node.type.kind != "map" or node.number not in numbers:
            continue
        if not below(node.type.parts[0]) <= numbers:
            raise Refused(f"the keys of {path} have lost a part")


Edit: TypeAlias = Callable[[tuple[Column, ...]], tuple[Column, ...]]


def edited(columns: tuple[Column, ...], holder: Path, edit: Edit) -> tuple[Column, ...]:
    """Return `columns` with `edit` done to the columns (or parts) right below `holder`."""
    if not holder:
        return edit(columns)
    return tuple(
        replace(column, type=Nested(column.type.kind, edited(column.type.parts, holder[1:], edit)))
        if column.name == holder[0] and isinstance(column.type, Nested)
        else column
        for column in columns
    )


def placed(columns: tuple[Column, ...], new: Column, position: Any) -> tuple[Column, ...]:
    """`position` is None (the end), "first", or {"after": name}."""
    if position is None:
        return (*columns, new)
    if position == "first":
        return (new, *columns)
    names = [column.name for column in columns]
    if position["after"] not in names:
        raise Refused("no such sibling")
    at = names.index(position["after"]) + 1
    return (*columns[:at], new, *columns[at:])


def written(type: Type, value: Any) -> Any:
    """Return a value, structs in it by names, as a row keeps it."""
    if value is None or isinstance(type, str):
        return value
    match type.kind:
        case "struct":
            return {part.number: written(part.type, value[part.name]) for part in type.parts}
        case "array":
            return [written(type.parts[0].type, each) for each in value]
        case _:
            key, item = type.parts
            return [(written(key.type, k), written(item.type, v)) for k, v in value]


def shown(columns: tuple[Column, ...], cells: Cells) -> dict[str, Any]:
    """Return how a row (or struct) looks by these columns."""
    return {column.name: _shown(column.type, cells.get(column.number, column.before)) for column in columns}


def _shown(type: Type, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type, str):
        return _as(type, value)
    match type.kind:
        case "struct":
            return shown(type.parts, value)
        case "array":
            return [_shown(type.parts[0].type, each) for each in value]
        case _:
            key, item = type.parts
            return [(_shown(key.type, k), _shown(item.type, v)) for k, v in value]


def _as(type: str, value: Any) -> Any:
    if type in ("float", "double"):
        return float(value)
    if type.startswith("decimal"):
        return Decimal(value).quantize(Decimal(1).scaleb(-int(type[:-1].split(",")[1])))
    if type == "timestamp_ntz" and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def has_null(type: Type, value: Any, path: Path) -> bool:
    """Return whether a shown value has a NULL at `path` in something that is not NULL itself."""
    if not path:
        return value is None
    if value is None:
        return False
    assert isinstance(type, Nested)
    [part] = [part for part in type.parts if part.name == path[0]]
    match type.kind:
        case "struct":
            inner = [value[part.name]]
        case "array":
            inner = value
        case _:
            inner = [pair[path[0] == "value"] for pair in value]
    return any(has_null(part.type, each, path[1:]) for each in inner)
