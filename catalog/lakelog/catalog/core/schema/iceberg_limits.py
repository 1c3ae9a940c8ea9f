"""The parts of a table that version 3 of Iceberg's format cannot express. Pure.

A part that blocks an export is refused when it is added to a table with `lakelog.iceberg` = `on`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lakelog.catalog.core.schema.constraints import Constraint
from lakelog.catalog.core.schema.properties.known import ICEBERG, ICEBERG_ON
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.sql_literals import parse_literal
from lakelog.catalog.core.schema.type_widening import is_iceberg_promotion
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, Field, Type, TypedValue, walk
from lakelog.log.errors import InvalidInput, Unsupported

ICEBERG_TYPES = {
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "char": "string",
    "varchar": "string",
    COLLATED: "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "time": "time",
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A part of a table that Iceberg cannot express.

    If it `blocks`, Iceberg readers would misread it or fail, so there is no export. If it is only `lost`,
    Iceberg readers do not know it, but read the same rows.
    """

    effect: Literal["blocks", "lost"]
    where: str
    why: str


def obstacles(
    schema: Schema, constraints: Sequence[Constraint] = (), clustering: Sequence[int] = ()
) -> list[Obstacle]:
    """Return the parts of a table that Iceberg cannot express. Parts that block an export come first."""
    result = [each for path, field in walk(schema.fields) for each in _of_field(path, field)]
    result += [
        Obstacle("lost", f"the constraint {each.name}", "Iceberg has no constraints") for each in constraints
    ]
    if clustering:
        result.append(Obstacle("lost", "the clustering", "Iceberg knows orders of rows only"))
    return sorted(result, key=lambda each: each.effect)


def check_iceberg(schema: Schema, properties: Mapping[str, str]) -> None:
    """Raise Unsupported for columns that Iceberg cannot express, if the table must always be exportable."""
    if ICEBERG.of(properties) == ICEBERG_ON:
        check_exportable(schema, f"the property {ICEBERG.name} is {ICEBERG_ON}")


def check_exportable(schema: Schema, why: str) -> None:
    """Raise Unsupported for columns that readers of Iceberg would misread."""
    reasons = [
        f"{obstacle.where}: {obstacle.why}" for obstacle in obstacles(schema) if obstacle.effect == "blocks"
    ]
    if reasons:
        raise Unsupported(
            f"{why}, and Iceberg cannot have this table ({'; '.join(reasons)}): use other types, or no Iceberg"
        )


def _of_field(path: Sequence[str], field: Field) -> Iterator[Obstacle]:
    where = f"the column {dotted(tuple(path))}"
    if isinstance(field.type, AtomicType):
        family = field.type.family
        if family not in ICEBERG_TYPES and family != "decimal":
            yield Obstacle("blocks", where, f"Iceberg has no type for {field.type} as lakelog stores it")
        elif family in ("char", "varchar"):
            yield Obstacle("lost", where, f"Iceberg has no length of texts: {field.type} is string")
        elif family == COLLATED:
            yield Obstacle("lost", where, f"Iceberg compares texts by their bytes: {field.type} is string")
        elif family in ("byte", "short"):
            yield Obstacle("lost", where, f"Iceberg has no {field.type}: it is int")
    for older in field.widened:
        if not isinstance(field.type, AtomicType) or not is_iceberg_promotion(AtomicType(older), field.type):
            yield Obstacle(
                "blocks", where, f"files may have it as {older}, which Iceberg does not read as {field.type}"
            )
    if field.default is not None:
        if field.default.exists is not None and not is_in_iceberg(field.default.exists):
            yield Obstacle(
                "blocks", where, f"Iceberg has no default {field.default.exists.value} of existing rows"
            )
        elif field.default.exists is not None and len(path) > 1:
            yield Obstacle("lost", where, "few readers of Iceberg know defaults of nested fields")
        if field.default.current is not None and not _is_literal(field.default.current, field.type):
            yield Obstacle("lost", where, f"its default {field.default.current} is no literal of Iceberg's")
    if field.generated is not None:
        yield Obstacle("lost", where, "Iceberg has no generated columns")
    if field.identity is not None:
        yield Obstacle("lost", where, "Iceberg has no identity columns")


def is_in_iceberg(value: TypedValue) -> bool:
    """Return whether Iceberg's JSON has the value: it has neither NaN nor infinities."""
    return not (value.type in ("float", "double") and isinstance(value.value, str))


def _is_literal(sql: str, type: Type) -> bool:
    try:
        value = parse_literal(sql, type)
    except InvalidInput:
        return False
    return value is None or is_in_iceberg(value)
