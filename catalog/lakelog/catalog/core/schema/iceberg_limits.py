"""What of a table Iceberg cannot say, version 3 of its format. Pure.

What blocks an export is known when it comes into a table, so that `lakelog.iceberg` = `on` refuses it then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lakelog.catalog.core.schema.constraints import Constraint
from lakelog.catalog.core.schema.properties import ICEBERG, ICEBERG_ON, value_of
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.sql_literals import parse_literal
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, Field, Type, walk
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
    """What Iceberg cannot say of a table.

    What `blocks` would be read wrongly or not at all, so that there is no export; what is only `lost` is not known to
    readers, who read the same rows.
    """

    effect: Literal["blocks", "lost"]
    where: str
    why: str


def obstacles(
    schema: Schema, constraints: Sequence[Constraint] = (), clustering: Sequence[int] = ()
) -> list[Obstacle]:
    """Return what Iceberg cannot say of a table, what blocks an export first."""
    found = [each for path, field in walk(schema.fields) for each in _of_field(path, field)]
    found += [
        Obstacle("lost", f"the constraint {each.name}", "Iceberg has no constraints") for each in constraints
    ]
    if clustering:
        found.append(Obstacle("lost", "the clustering", "Iceberg knows orders of rows only"))
    return sorted(found, key=lambda each: each.effect)


def check_iceberg(schema: Schema, properties: Mapping[str, str]) -> None:
    """Raise Unsupported for columns that Iceberg cannot say, where the table is to be one of Iceberg's at all times."""
    if value_of(properties, ICEBERG) == ICEBERG_ON:
        check_exportable(schema, f"the property {ICEBERG.name} is {ICEBERG_ON}")


def check_exportable(schema: Schema, why: str) -> None:
    """Raise Unsupported for columns that readers of Iceberg would read wrongly."""
    found = [f"{each.where}: {each.why}" for each in obstacles(schema) if each.effect == "blocks"]
    if found:
        raise Unsupported(
            f"{why}, and Iceberg cannot have this table ({'; '.join(found)}): use other types, or no Iceberg"
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
        yield Obstacle(
            "blocks", where, f"files may have it as {older}, which Iceberg does not read as {field.type}"
        )
    if field.default is not None:
        if field.default.exists is not None and len(path) > 1:
            yield Obstacle("lost", where, "few readers of Iceberg know defaults of nested fields")
        if field.default.current is not None and not _is_literal(field.default.current, field.type):
            yield Obstacle("lost", where, f"its default {field.default.current} is no literal")
    if field.generated is not None:
        yield Obstacle("lost", where, "Iceberg has no generated columns")
    if field.identity is not None:
        yield Obstacle("lost", where, "Iceberg has no identity columns")


def _is_literal(sql: str, type: Type) -> bool:
    try:
        parse_literal(sql, type)
    except InvalidInput:
        return False
    return True
