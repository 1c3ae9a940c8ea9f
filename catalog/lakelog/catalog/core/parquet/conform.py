"""Rows from Python into the shape of a table: matched by name, checked, never changed in value.

Input that would lose or gain information is refused with the column's name. Examples are a number out of
range, digits cut off, a time without its zone, a NULL in a NOT NULL column, and text that is too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.parquet.reshape import repeated, reshape_columns, variant
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow, type_to_arrow
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.sql_literals import parse_literal
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, ColumnPath, Field, Type
from lakelog.log.errors import InvalidInput
from lakelog.log.once import of_the_last

_is = pa.types


_INTEGER_DIGITS = 20


def _is_text(type: pa.DataType) -> bool:
    return bool(_is.is_string(type) or _is.is_large_string(type) or _is.is_string_view(type))


def _is_bytes(type: pa.DataType) -> bool:
    tests = (_is.is_binary, _is.is_large_binary, _is.is_binary_view, _is.is_fixed_size_binary)
    return any(test(type) for test in tests)


def _is_number(type: pa.DataType) -> bool:
    return bool(_is.is_integer(type) or _is.is_floating(type))


_ACCEPTED: dict[str, Callable[[pa.DataType], bool]] = {
    "boolean": _is.is_boolean,
    "byte": _is.is_integer,
    "short": _is.is_integer,
    "integer": _is.is_integer,
    "long": _is.is_integer,
    "float": lambda type: bool(_is_number(type) and not _is.is_float64(type)),
    "double": _is_number,
    "decimal": lambda type: bool(_is.is_integer(type) or _is.is_decimal(type)),
    "string": _is_text,
    COLLATED: _is_text,
    "char": _is_text,
    "varchar": _is_text,
    "binary": _is_bytes,
    "date": _is.is_date,
    "timestamp": lambda type: bool(_is.is_timestamp(type) and type.tz is not None),
    "timestamp_ntz": lambda type: bool(_is.is_timestamp(type) and type.tz is None or _is.is_date(type)),
    "time": _is.is_time,
    "interval year-month": _is.is_integer,
    "interval day-time": _is.is_duration,
}


def conform(data: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
    """Return `data` with the logical Arrow schema of `schema`.

    Columns and nested fields are matched by name (case-insensitive); a missing column gets its default or
    NULL. Raises InvalidInput for a column that the table does not have, and for a missing column that must
    have a value. Raises it for a value that the table's type cannot hold, a NULL in a NOT NULL column, and
    text beyond a char's or varchar's length.
    """
    simple = _simple_of(schema)
    if simple is not None and simple.is_form_of(data):
        return pa.Table.from_arrays(data.columns, schema=simple.arrow)
    return reshape_columns(data, schema.fields, _CONFORM)


class _Simple:
    """A schema whose columns have values of Arrow's types as they are.

    Most rows come in this form already, and are only renamed.
    """

    def __init__(self, schema: Schema) -> None:
        self.arrow = schema_to_arrow(schema)
        self._names, self._types = self.arrow.names, self.arrow.types
        self._required = [at for at, field in enumerate(schema.fields) if not field.nullable]

    def is_form_of(self, data: pa.Table | pa.RecordBatch) -> bool:
        data_schema = data.schema
        if data_schema.names != self._names or data_schema.types != self._types:
            return False
        return not any(data.column(at).null_count for at in self._required)


_MEASURED = ("char", "varchar", "variant")


@of_the_last(8)
def _simple_of(schema: Schema) -> _Simple | None:
    if all(
        isinstance(field.type, AtomicType) and field.type.family not in _MEASURED for field in schema.fields
    ):
        return _Simple(schema)
    return None


class ConformRules:
    """The rules for appended rows."""

    physical = False

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: ColumnPath) -> list[int | None]:
        where = f"the struct {dotted(path)}" if path else "the table"
        places: dict[str, int] = {}
        for index, name in enumerate(names):
            if places.setdefault(name.lower(), index) != index:
                raise InvalidInput(
                    f"the data has two columns named {dotted((*path, name))} (case-insensitive): leave one out"
                )
        unknown = places.keys() - {field.name.lower() for field in fields}
        if unknown:
            unknown_columns = ", ".join(
                dotted((names[places[name]],)) for name in sorted(unknown, key=lambda n: places[n])
            )
            raise InvalidInput(
                f"the data has {unknown_columns}, which {where} does not have; its columns are "
                f"{', '.join(dotted((field.name,)) for field in fields)}: leave it out, or add the column first"
            )
        return [places.get(field.name.lower()) for field in fields]

    def missing(self, field: Field, length: int, path: ColumnPath) -> pa.Array:
        current = None if field.default is None else field.default.current
        try:
            value = None if current is None else parse_literal(current, field.type)
            values = repeated(value, field.type, length)
        except InvalidInput as error:
            raise InvalidInput(
                f"the data has no column {dotted(path)}, and its default cannot be computed here ({error}): add the "
                "column to the data"
            ) from None
        if values.null_count and not field.nullable:
            raise InvalidInput(
                f"the data has no column {dotted(path)}, which is NOT NULL: add the column to the data"
            )
        return values

    def check(self, array: pa.Array, field: Field, owners: pa.Array | None, path: ColumnPath) -> None:
        if field.nullable or array.null_count == 0:
            return
        nulls = array.is_null()
        if owners is not None and owners.null_count:
            nulls = pc.and_(nulls, owners.is_valid())
        count = pc.sum(nulls).as_py() or 0
        if count:
            raise InvalidInput(
                f"the column {dotted(path)} is NOT NULL, and the data has {count} NULLs in it: replace them by values"
            )

    def atomic(self, array: pa.Array, type: AtomicType, path: ColumnPath) -> pa.Array:
        target = type_to_arrow(type)
        if _is.is_null(array.type):
            return pa.nulls(len(array), target)
        if type.family == "variant":
            return variant(array, path)
        if array.type != target:
            array = self._cast(array, type, target, path)
        return _within_length(array, type, path) if type.family in ("char", "varchar") else array

    def mismatch(self, data_type: pa.DataType, type: Type, path: ColumnPath) -> Exception:
        return InvalidInput(
            f"the column {dotted(path)} is of type {type}, and the data has {data_type}: "
            f"{_conversion(data_type, type)}"
        )

    def _cast(self, array: pa.Array, type: AtomicType, target: pa.DataType, path: ColumnPath) -> pa.Array:
        if not _ACCEPTED[type.family](array.type):
            raise self.mismatch(array.type, type, path)
        try:
            if type.family == "decimal" and _is.is_integer(array.type):
                # Arrow's own cast wants room for all values of the integer's type.
                array = array.cast(pa.decimal256(_INTEGER_DIGITS, 0))
                array = array.cast(pa.decimal256(_INTEGER_DIGITS + target.scale, target.scale))
            return array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput(
                f"the column {dotted(path)} is of type {type}, and a value of the data ({array.type}) does not fit: "
                f"{reason}"
            ) from None


def _conversion(found: pa.DataType, type: Type) -> str:
    """Return how data of Arrow's type `found` is converted to `type`, in pandas or pyarrow."""
    family = type.family if isinstance(type, AtomicType) else ""
    if family == "timestamp" and _is.is_timestamp(found):
        return 'name the time zone of these times, in pandas by .dt.tz_localize("UTC")'
    if family == "timestamp_ntz" and _is.is_timestamp(found):
        return "take the time zone off, in pandas by .dt.tz_localize(None)"
    if family in ("byte", "short", "integer", "long") and _is.is_floating(found):
        return 'convert it, in pandas by .astype("Int64"), which keeps missing values'
    if family == "decimal" and (_is.is_floating(found) or _is_text(found)) and isinstance(type, AtomicType):
        return f"convert it, in pyarrow by .cast(pa.decimal128({type.precision}, {type.scale}))"
    if family == "float" and _is.is_float64(found):
        return 'convert it, in pandas by .astype("float32"), which rounds'
    if family in _OF_TEXTS and _is_text(found):
        return f"convert it, in pandas by pd.to_datetime{_OF_TEXTS[family]}"
    return "convert it"


_OF_TEXTS = {"date": "(…).dt.date", "timestamp": "(…, utc=True)", "timestamp_ntz": "(…)"}


def _within_length(array: pa.Array, type: AtomicType, path: ColumnPath) -> pa.Array:
    """Cut blanks beyond the length, as Spark does, and pad a char with blanks."""
    lengths = pc.utf8_length(array)
    if (pc.max(lengths).as_py() or 0) > type.length:
        cut = pc.utf8_slice_codeunits(array, 0, type.length)
        tail = pc.utf8_slice_codeunits(array, type.length)
        beyond = pc.utf8_length(pc.utf8_rtrim(tail, characters=" "))
        if pc.max(beyond).as_py():
            raise InvalidInput(
                f"the column {dotted(path)} is of type {type}, and the data has a text of "
                f"{pc.max(lengths).as_py()} characters: shorten it"
            )
        array = cut
    return pc.utf8_rpad(array, width=type.length, padding=" ") if type.family == "char" else array


_CONFORM = ConformRules()
