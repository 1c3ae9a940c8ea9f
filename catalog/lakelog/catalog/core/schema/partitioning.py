"""Partition specs and sort orders: their structure, their statements, and the source types that they accept.

A spec is a list of transforms of columns, by column id. Specs evolve, and a table keeps every spec that its
files were written with. `transforms` computes the values. This module only knows their types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import msgspec

from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.type_widening import keeps_partition_values
from lakelog.catalog.core.schema.types import (
    DECIMAL_PRECISION_LIMIT,
    AtomicType,
    ListType,
    MapType,
    Type,
    is_collated,
)
from lakelog.catalog.names import check_list, identifier
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Int32

FIRST_FIELD_ID = 1000
"""Ids of partition fields start here, so that they never look like column ids."""

INT32_MAX = 2**31 - 1

_TRANSFORM = re.compile(r"([a-z_]+)(?:\[(\d+)\])?")
_CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_DIRECTION = re.compile(r"(.*?)\s+(asc|desc)(?:\s+nulls\s+(first|last))?", re.DOTALL | re.IGNORECASE)
_SPELLINGS = {
    "years": "year", "months": "month", "days": "day", "date": "day", "hours": "hour", "date_hour": "hour",
}  # fmt: skip
_SUFFIXES = {"bucket": "_bucket", "truncate": "_trunc"}
_TIMESTAMPS = ("timestamp", "timestamp_ntz")
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "identity": (
        "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char",
        "varchar", "binary", "date", "time", "interval year-month", "interval day-time", *_TIMESTAMPS,
    ),
    "bucket": (
        "byte", "short", "integer", "long", "decimal", "string", "char", "varchar", "binary", "date", "time",
        *_TIMESTAMPS,
    ),
    "truncate": ("byte", "short", "integer", "long", "decimal", "string", "char", "varchar", "binary"),
    "year": ("date", *_TIMESTAMPS),
    "month": ("date", *_TIMESTAMPS),
    "day": ("date", *_TIMESTAMPS),
    "hour": _TIMESTAMPS,
}  # fmt: skip


class Transform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A function of a column: identity, bucket (of `argument`), truncate (to `argument`), year … hour."""

    name: str
    argument: Int32 | None = None

    def __post_init__(self) -> None:
        if self.name not in _SOURCES:
            raise Unsupported(
                f"the transform {self.name} is not supported: the transforms are {', '.join(_SOURCES)}"
            )
        if self.name not in _SUFFIXES:
            if self.argument is not None:
                raise InvalidInput(
                    f"the transform {self.name} takes a column only, not the argument {self.argument}"
                )
        elif self.argument is None or not 1 <= self.argument <= INT32_MAX:
            raise InvalidInput(
                f"the transform {self.name} needs a number of 1 to {INT32_MAX}, as in {self.name}[16]; "
                f"it has {self.argument}"
            )

    @staticmethod
    def parse(text: str) -> Transform:
        """Read `bucket[16]`, `day` and so on. Also reads years, months, days, date, hours and date_hour."""
        match = _TRANSFORM.fullmatch(text.strip().lower())
        if match is None:
            raise InvalidInput(
                f"{text!r} is not a transform: write identity, bucket[16], truncate[4], year, month, day "
                "or hour"
            )
        return Transform(_SPELLINGS.get(match[1], match[1]), None if match[2] is None else int(match[2]))

    def __str__(self) -> str:
        return self.name if self.argument is None else f"{self.name}[{self.argument}]"


IDENTITY = Transform("identity")


class StatedField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A transform of a column in a statement. Without a `transform`, it is the column itself.

    The column is in `column`, or alone in `columns`, by its name or its path. `direction` and `nulls` are
    only for a sort order, and `name` is only for a partition field.
    """

    transform: str = "identity"
    args: tuple[int, ...] = ()
    column: str | tuple[str, ...] | None = None
    columns: tuple[str | tuple[str, ...], ...] | None = None
    direction: str | None = None
    nulls: str | None = None
    name: str | None = None


Written: TypeAlias = str | StatedField | Mapping[str, Any]
"""A column name, or a transform: `{"transform": "bucket", "args": [16], "column": ["a"]}`."""


class PartitionField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of a file's partition. `result` is the value's type, known even if the column was dropped."""

    id: Int32
    source_id: Int32
    name: str
    transform: Transform
    result: AtomicType


class PartitionSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The partitioning of the files of a period of a table's life. Without fields they are not
    partitioned."""

    id: Int32 = 0
    fields: tuple[PartitionField, ...] = ()

    def __call__(self) -> NoReturn:
        raise TypeError("a table's partitioning is no method: write table.spec")


class SortField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column, or a transform of it, by which rows are sorted."""

    source_id: Int32
    transform: Transform
    direction: Literal["asc", "desc"]
    nulls: Literal["first", "last"]


class SortOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The order of the rows within a data file. Without fields they keep the order of arrival."""

    fields: tuple[SortField, ...] = ()


def result_type(transform: Transform, source: Type) -> AtomicType:
    """Return the type of the transform's values. Raises InvalidInput if it does not take columns of type
    `source`."""
    if is_collated(source):
        raise InvalidInput(
            f"the transform {transform} does not take a column of type {source}: texts that its collation holds equal "
            "may have different bytes, and so would be kept apart; use a column of type string"
        )
    if not isinstance(source, AtomicType) or source.family not in _SOURCES[transform.name]:
        raise InvalidInput(
            f"the transform {transform} does not take a column of type {source}: it takes "
            f"{', '.join(_SOURCES[transform.name])}"
        )
    match transform.name:
        case "truncate" if source.family == "decimal":
            # Rounding down adds digits: -0.01 to a multiple of 1.00 is -1.00.
            precision = min(DECIMAL_PRECISION_LIMIT, max(source.precision, 10) + 1)
            return AtomicType(f"decimal({precision},{source.scale})")
        case "identity" | "truncate":
            return source
        case "day":
            return AtomicType("date")
        case _:
            return AtomicType("integer")


def field_name(transform: Transform, column: str) -> str:
    """Return a partition field's name, as in Iceberg: the column's for identity, else with a suffix."""
    if transform.name == "identity":
        return column
    return column + _SUFFIXES.get(transform.name, f"_{transform.name}")


def spec_from_transforms(
    transforms: Sequence[Written],
    schema: Schema,
    *,
    existing: Iterable[PartitionSpec] = (),
    case_sensitive: bool = False,
) -> PartitionSpec:
    """Return the spec of `transforms`.

    A transform may have a `name` for its values. If a spec of `existing` is the same, it is returned.
    Otherwise the new spec has the next id, and fields that are also in an existing spec keep their ids.
    """
    check_list(transforms, "fields")
    specs = list(existing)
    fields_by_source = {(field.source_id, field.transform): field for spec in specs for field in spec.fields}
    next_id = max((field.id for spec in specs for field in spec.fields), default=FIRST_FIELD_ID - 1) + 1
    fields: list[PartitionField] = []
    for statement in transforms:
        stated_field = _stated_in(statement, schema)
        transform, path = _read(stated_field)
        source_id, result = _source(schema, transform, path, case_sensitive)
        if any(field.source_id == source_id and field.transform == transform for field in fields):
            raise InvalidInput(f"the partitioning names {transform} of {dotted(path)} twice: leave one out")
        existing_field = fields_by_source.get((source_id, transform))
        if existing_field is None:
            id, next_id = next_id, next_id + 1
        else:
            id = existing_field.id
        if stated_field.name is None:
            name = _unused(schema, source_id, transform, fields)
        else:
            name = _checked_name(stated_field.name, schema, source_id, transform, fields)
        fields.append(
            PartitionField(id=id, source_id=source_id, name=name, transform=transform, result=result)
        )
    for spec in specs:
        if list(map(_identity_of, spec.fields)) == list(map(_identity_of, fields)):
            return spec
    return PartitionSpec(id=max((spec.id for spec in specs), default=-1) + 1, fields=tuple(fields))


def shown_names(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Return the field names of a table's present spec: the column's for identity, else the field's own.

    Columns may have been renamed since, so a name that would repeat gets a number.
    """
    names: list[str] = []
    for field in spec.fields:
        is_identity = field.transform == IDENTITY and schema.has_id(field.source_id)
        name = ".".join(schema.path_of(field.source_id)) if is_identity else field.name
        names.append(_numbered(name, {shown_name.lower() for shown_name in names}))
    return names


def sort_order_from(fields: Sequence[Written], schema: Schema, *, case_sensitive: bool = False) -> SortOrder:
    """Return the sort order of `fields`. Each field may have a `direction` and `nulls`.

    The default of `nulls` is Spark's: first in ascending order, last in descending order.
    """
    check_list(fields, "fields")
    sort_fields: list[SortField] = []
    for statement in fields:
        stated_field = _stated_in(_with_direction(statement, schema), schema)
        transform, path = _read(stated_field)
        source_id, _ = _source(schema, transform, path, case_sensitive)
        if stated_field.name is not None:
            raise InvalidInput(f"a field of a sort order cannot have a name: leave {stated_field.name!r} out")
        direction: Any = stated_field.direction or "asc"
        nulls: Any = stated_field.nulls or ("first" if direction == "asc" else "last")
        if direction not in ("asc", "desc") or nulls not in ("first", "last"):
            raise InvalidInput(
                f"the sort order of {dotted(path)} is {direction!r}, nulls {nulls!r}: write asc or desc, and "
                "nulls first or last"
            )
        sort_fields.append(
            SortField(source_id=source_id, transform=transform, direction=direction, nulls=nulls)
        )
    return SortOrder(fields=tuple(sort_fields))


def source_of(written: Written, schema: Schema, case_sensitive: bool = False) -> tuple[int, Transform]:
    """Return the column id and the transform of a statement. Raises the errors of `spec_from_transforms`."""
    transform, path = _read(_stated_in(written, schema))
    source_id, _ = _source(schema, transform, path, case_sensitive)
    return source_id, transform


def transform_to_json(schema: Schema, source_id: int, transform: Transform) -> dict[str, Any]:
    """Return the form that `spec_from_transforms` reads, with the column's present path."""
    arguments = [] if transform.argument is None else [transform.argument]
    return {"transform": transform.name, "args": arguments, "column": list(schema.path_of(source_id))}


def with_schema(spec: PartitionSpec, schema: Schema) -> PartitionSpec:
    """Return `spec` with the result types that follow from `schema`. Fields whose column was dropped keep
    theirs.

    A table applies it to all its specs whenever its schema changes, so that a dropped column's last type
    survives.
    """
    return msgspec.structs.replace(
        spec,
        fields=tuple(
            msgspec.structs.replace(
                field, result=result_type(field.transform, schema.field_by_id(field.source_id).type)
            )
            if schema.has_id(field.source_id)
            else field
            for field in spec.fields
        ),
    )


NO_COLUMN = 0
"""The source of a partition field if its column has other partition values now, or none. No column has this id."""


def with_former_schema(spec: PartitionSpec, schema: Schema, left_schema: Schema) -> PartitionSpec:
    """Return `with_schema` for a table that gets another version's schema in place of `left_schema`.

    A column's type there may give other partition values. Its field is of no column then. So the spec keeps its number,
    but no new file gets it. Plans do not compare its values.
    """
    fields = tuple(
        field
        if _keeps_values(field.source_id, schema, left_schema)
        else msgspec.structs.replace(field, source_id=NO_COLUMN)
        for field in spec.fields
    )
    return with_schema(msgspec.structs.replace(spec, fields=fields), schema)


def _keeps_values(id: int, schema: Schema, left_schema: Schema) -> bool:
    if not schema.has_id(id):
        return True
    if not left_schema.has_id(id):
        return False  # it may have had any type that its files have values of
    type, left_type = schema.field_by_id(id).type, left_schema.field_by_id(id).type
    if not isinstance(type, AtomicType) or not isinstance(left_type, AtomicType):
        return type == left_type
    return type == left_type or any(
        keeps_partition_values(*pair) for pair in ((type, left_type), (left_type, type))
    )


def stated(written: Written) -> StatedField:
    """Return a statement's field as a struct. Raises InvalidInput if it is not a column or a transform of a
    column."""
    if isinstance(written, StatedField):
        return written
    if isinstance(written, str):
        return StatedField(column=(written,))
    try:
        return msgspec.convert(dict(written), StatedField)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"{written!r} is not a column, nor a transform of one: {error}") from None


def _stated_in(written: Written, schema: Schema) -> StatedField:
    """Return `stated`. A text that is no column may be a transform, as Spark writes it."""
    field = stated(written)
    path = (field.column,) if isinstance(field.column, str) else field.column
    if field.transform != "identity" or field.args or path is None or len(path) != 1:
        return field
    text = path[0].strip()
    match = _CALL.fullmatch(text)
    if match is None or schema.get(path) is not None:
        return field
    name, arguments = match[1].lower(), [part.strip() for part in match[2].split(",")]
    numbers = tuple(int(part) for part in arguments if part.isdecimal())
    columns = [part for part in arguments if not part.isdecimal()]
    transform_name = _SPELLINGS.get(name, name)
    if transform_name not in _SOURCES or len(columns) != 1 or len(numbers) != (transform_name in _SUFFIXES):
        raise InvalidInput(
            f"{text!r} is neither a column nor a transform: write bucket(16, a), truncate(4, a), years(a), months(a), "
            "days(a) or hours(a)"
        )
    return msgspec.structs.replace(
        field, transform=transform_name, args=numbers, column=identifier(columns[0])
    )


def _with_direction(written: Written, schema: Schema) -> Written:
    """Return a field of a sort order, with the direction that a text has after the column."""
    match = _DIRECTION.fullmatch(written.strip()) if isinstance(written, str) else None
    if match is None or schema.get((str(written),)) is not None:
        return written
    return StatedField(column=(match[1],), direction=match[2].lower(), nulls=match[3] and match[3].lower())


def _read(field: StatedField) -> tuple[Transform, tuple[str, ...]]:
    columns = field.columns
    if columns is None:
        columns = () if field.column is None else (field.column,)
    if len(columns) != 1:
        raise Unsupported(
            f"the transform {field.transform} of {len(columns)} columns is not supported: partition by transforms of "
            "one column each"
        )
    if len(field.args) > 1:
        raise Unsupported(
            f"the transform {field.transform} with the arguments {list(field.args)!r} is not supported"
        )
    transform = Transform.parse(f"{field.transform}[{field.args[0]}]" if field.args else field.transform)
    column = columns[0]
    return transform, (column,) if isinstance(column, str) else column


def _source(
    schema: Schema, transform: Transform, path: Sequence[str], case_sensitive: bool
) -> tuple[int, AtomicType]:
    field = schema.find(path, case_sensitive)
    for length in range(1, len(path)):
        parent = schema.find(path[:length], case_sensitive)
        if isinstance(parent.type, ListType | MapType):
            raise InvalidInput(
                f"the column {dotted(path)} lies in {dotted(path[:length])} of type {parent.type} and has "
                "several values in a row: partition and sort by single values"
            )
    try:
        return field.id, result_type(transform, field.type)
    except InvalidInput as error:
        raise InvalidInput(f"cannot use the column {dotted(path)}: {error}") from None


def _unused(schema: Schema, source_id: int, transform: Transform, fields: Sequence[PartitionField]) -> str:
    """Return the usual name for a new field, with a number if a field or another column has this name."""
    name = field_name(transform, ".".join(schema.path_of(source_id)))
    names_in_use = {field.name.lower() for field in fields}
    names_in_use |= {
        c.name.lower() for c in schema.fields if c.id != source_id or transform.name != "identity"
    }
    return _numbered(name, names_in_use)


def _checked_name(
    name: str, schema: Schema, source_id: int, transform: Transform, fields: Sequence[PartitionField]
) -> str:
    """Return the name that the user gave to a field. Raises InvalidInput if the name is taken."""
    own = field_name(transform, ".".join(schema.path_of(source_id)))
    if not name:
        raise InvalidInput(
            f"{name!r} is not a valid name of a partition field: give a text that is not empty"
        )
    if transform == IDENTITY:
        if name.lower() != own.lower():
            raise InvalidInput(
                f"the partition field {name!r} cannot be named: it has the values of the column {own}, and its "
                "name. Leave the name out, and name transforms only"
            )
        return own
    if any(field.name.lower() == name.lower() for field in fields):
        raise InvalidInput(f"there is a partition field {name!r} already: give another name")
    if any(column.name.lower() == name.lower() for column in schema.fields):
        raise InvalidInput(
            f"a partition field cannot have the name of the column {name!r}: give another name"
        )
    return name


def _numbered(name: str, taken: Collection[str]) -> str:
    free_name, number = name, 2
    while free_name.lower() in taken:
        free_name, number = f"{name}_{number}", number + 1
    return free_name


def _identity_of(field: PartitionField) -> tuple[int, Transform, str]:
    """Return the identity of a field across specs. An identity field omits its name, which is its
    column's."""
    return field.id, field.transform, "" if field.transform == IDENTITY else field.name
