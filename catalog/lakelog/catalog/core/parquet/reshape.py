"""Arrow arrays from one shape into another: other names, order and types of fields, at every level.

`reshape` walks the target type and takes its parts out of the given array. `ReshapingRules` say which part stands for
which field, which values a missing part gets, and how atomic values are converted. Only changed parts are
copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.arrow_types import VARIANT, field_to_arrow, is_list, type_to_arrow
from lakelog.catalog.core.schema.literals import arrow_value, widened
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import (
    AtomicType,
    ColumnPath,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
    TypedValue,
    children,
)
from lakelog.log.errors import FormatError, Unsupported


class ReshapingRules(Protocol):
    """The rules of a kind of reshaping. `path` names the field in messages."""

    physical: bool
    """Whether the result has physical names and types."""

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: ColumnPath) -> list[int | None]:
        """Return which of the parts named `names` stands for each of `fields`; None if it is missing."""

    def missing(self, field: Field, length: int, path: ColumnPath) -> pa.Array:
        """Return the values of a field that the source does not have."""

    def atomic(self, array: pa.Array, type: AtomicType, path: ColumnPath) -> pa.Array:
        """Return atomic values converted to `type`."""

    def check(self, array: pa.Array, field: Field, owners: pa.Array | None, path: ColumnPath) -> None:
        """Check the values of a field before they are converted; `owners` are the structs that hold them."""

    def mismatch(self, data_type: pa.DataType, type: Type, path: ColumnPath) -> Exception:
        """Return the error for a value that is not the expected struct, list or map."""


def reshape_columns(
    data: pa.Table | pa.RecordBatch, fields: Sequence[Field], rules: ReshapingRules
) -> pa.Table:
    """Return a table of exactly `fields`, made from the columns of `data`."""
    indexes = rules.pick(data.schema.names, fields, ())
    columns = []
    for field, index in zip(fields, indexes, strict=True):
        type = type_to_arrow(field.type, physical=rules.physical)
        if index is None:
            columns.append(pa.chunked_array([rules.missing(field, data.num_rows, (field.name,))], type=type))
            continue
        column = data.column(index)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        columns.append(
            pa.chunked_array(
                [_field_values(chunk, field, None, (field.name,), rules) for chunk in chunks], type=type
            )
        )
    schema = pa.schema([field_to_arrow(field, physical=rules.physical) for field in fields])
    return pa.table(columns, schema=schema)


def to_logical(
    data: pa.Table | pa.RecordBatch,
    schema: Schema,
    columns: Sequence[str] | None = None,
    *,
    names: Mapping[int, str] | None = None,
    constants: Mapping[int, TypedValue] | None = None,
) -> pa.Table:
    """Return rows of a data file in the table's present schema; `columns` chooses some, in that order.

    Fields are found by physical name, or by the file's own `names`. A field that the file lacks gets its
    `exists` default, or NULL. See `DataFile` for `names` and `constants`.
    """
    fields = schema.fields if columns is None else tuple(schema.find((name,)) for name in columns)
    rules = _FROM_FILE if names is None and not constants else _FromNamedFile(names, constants or {})
    return reshape_columns(data, fields, rules)


class OwnColumns:
    """The columns that are read of lakelog's own files.

    Safe to share between threads. Most files have them in the same form, which is found out once. If only
    names differ, rows are only renamed.
    """

    def __init__(self, schema: Schema, columns: Sequence[str]) -> None:
        self._schema = schema
        self._columns = columns
        self._fields = [schema.find((name,)) for name in columns]
        self._logical = pa.schema([field_to_arrow(field) for field in self._fields])
        self._renamed: tuple[pa.Schema, list[int]] | None = None

    def logical(self, rows: pa.RecordBatch) -> pa.Table:
        """Return the rows of a file as `to_logical` does."""
        schema_and_places = self._renamed
        if schema_and_places is not None and schema_and_places[0].equals(rows.schema):
            return pa.Table.from_arrays(
                [rows.column(at) for at in schema_and_places[1]], schema=self._logical
            )
        places = [at for at in _FROM_FILE.pick(rows.schema.names, self._fields, ()) if at is not None]
        if [rows.schema.types[at] for at in places] == self._logical.types and all(
            isinstance(field.type, AtomicType) and field.type.family != "variant" for field in self._fields
        ):
            self._renamed = rows.schema, places
        return to_logical(rows, self._schema, self._columns)


def to_physical(data: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
    """Return rows of the logical schema in the form of a data file."""
    return reshape_columns(data, schema.fields, _TO_FILE)


def repeated(value: TypedValue | None, type: Type, length: int, *, physical: bool = False) -> pa.Array:
    """Return `length` times a value that a column of `type` was given, or NULL for None."""
    target = type_to_arrow(type, physical=physical)
    if value is None or value.value is None:
        return _nulls(length, target)
    return pa.repeat(arrow_value(widened(value, type)).cast(target)[0], length)


def reshape(array: pa.Array, type: Type, path: ColumnPath, rules: ReshapingRules) -> pa.Array:
    """Return `array` as `type`."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    match type:
        case AtomicType():
            return rules.atomic(array, type, path)
        case _ if pa.types.is_null(array.type):
            return _nulls(len(array), type_to_arrow(type, physical=rules.physical))
        case StructType():
            return _struct(array, type, path, rules)
        case ListType():
            return _list(array, type, path, rules)
        case MapType():
            return _map(array, type, path, rules)


def variant(array: pa.Array, path: ColumnPath) -> pa.Array:
    """Return the two binaries of variants, whichever of them comes first.

    Raises Unsupported for shredded variants.
    """
    if not pa.types.is_struct(array.type) or set(_names(array.type)) != {"metadata", "value"}:
        raise Unsupported(
            f"the variant column {dotted(path)} is {array.type} here: only a struct of the binaries metadata and "
            "value can be read and written by Python; queries in Spark read shredded variants"
        )
    parts = [array.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=_mask(array))


def _field_values(
    array: pa.Array, field: Field, owners: pa.Array | None, path: ColumnPath, rules: ReshapingRules
) -> pa.Array:
    rules.check(array, field, owners, path)
    return reshape(array, field.type, path, rules)


def _struct(array: pa.Array, type: StructType, path: ColumnPath, rules: ReshapingRules) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise rules.mismatch(array.type, type, path)
    parts = []
    indexes = rules.pick(_names(array.type), type.fields, path)
    # A part below a NULL is NULL too, however deep: checks of NOT NULL do not see it.
    source_parts = (
        array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
    )
    for field, index in zip(type.fields, indexes, strict=True):
        field_path = (*path, field.name)
        if index is None:
            part = rules.missing(field, len(array), field_path)
        else:
            part = _field_values(source_parts[index], field, array, field_path, rules)
        parts.append(part if field.nullable else _filled(part, array))
    fields = [field_to_arrow(field, physical=rules.physical) for field in type.fields]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(array))


def _list(array: pa.Array, type: ListType, path: ColumnPath, rules: ReshapingRules) -> pa.Array:
    if not is_list(array.type):
        raise rules.mismatch(array.type, type, path)
    (element,) = children(type)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    values = _field_values(array.flatten(), element, None, (*path, element.name), rules)
    target = type_to_arrow(type, physical=rules.physical)
    return pa.ListArray.from_arrays(_offsets(lengths), values, type=target, mask=_mask(array))


def _map(array: pa.Array, type: MapType, path: ColumnPath, rules: ReshapingRules) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise rules.mismatch(array.type, type, path)
    offsets = array.offsets.to_numpy(zero_copy_only=False) if len(array) else np.zeros(1, dtype=np.int32)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    key, value = children(type)
    keys = _field_values(array.keys.slice(first, count), key, None, (*path, key.name), rules)
    items = _field_values(array.items.slice(first, count), value, None, (*path, value.name), rules)
    target = type_to_arrow(type, physical=rules.physical)
    relative = pa.array(offsets - first, type=pa.int32())
    return pa.MapArray.from_arrays(relative, keys, items, type=target, mask=_mask(array))


# Parquet's writer checks a NOT NULL field itself, so the field needs a value if its struct is NULL.


def _nulls(length: int, type: pa.DataType) -> pa.Array:
    """Return NULLs. Unlike those of `pa.nulls`, a NULL struct has values in its NOT NULL fields."""
    return pa.array([None], type).take(pa.array(np.zeros(length, dtype=np.int64)))


def _filled(values: pa.Array, owners: pa.Array) -> pa.Array:
    """Return `values` with a value in place of a NULL whose owner is NULL."""
    if not owners.null_count or not values.null_count:
        return values
    fill_value = pa.array([None], pa.struct([pa.field("", values.type, nullable=False)])).field(0)
    places = np.arange(len(values))
    places[pc.and_(values.is_null(), owners.is_null()).to_numpy(zero_copy_only=False)] = len(values)
    return pa.concat_arrays([values, fill_value]).take(pa.array(places))


def _offsets(lengths: Any) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), type=pa.int32())


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _names(struct: pa.DataType) -> list[str]:
    return [struct.field(i).name for i in range(struct.num_fields)]


_ROUNDED = (
    (pa.types.is_float64, pa.types.is_float32),
    (pa.types.is_decimal, pa.types.is_floating),
    (pa.types.is_floating, pa.types.is_decimal),
    (pa.types.is_timestamp, pa.types.is_date),
)
"""Types that Arrow would cast to another type without an error, by rounding values."""


class _FromFile:
    """A data file's rows into the present schema."""

    physical = False

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: ColumnPath) -> list[int | None]:
        places = {name: index for index, name in enumerate(names)}
        return [places.get(field.physical) for field in fields]

    def missing(self, field: Field, length: int, path: ColumnPath) -> pa.Array:
        exists = None if field.default is None else field.default.exists
        return repeated(exists, field.type, length, physical=self.physical)

    def atomic(self, array: pa.Array, type: AtomicType, path: ColumnPath) -> pa.Array:
        if type.family == "variant":
            return variant(array, path)
        target = type_to_arrow(type, physical=self.physical)
        if array.type == target:
            return array
        if any(is_given(array.type) and is_wanted(target) for is_given, is_wanted in _ROUNDED):
            raise self.mismatch(array.type, type, path)
        try:
            return array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise FormatError(
                f"the column {dotted(path)} is {array.type} in a data file and {type} in the table's schema: "
                f"{error}; was the file written by a program other than lakelog?"
            ) from None

    def check(self, array: pa.Array, field: Field, owners: pa.Array | None, path: ColumnPath) -> None:
        pass

    def mismatch(self, data_type: pa.DataType, type: Type, path: ColumnPath) -> Exception:
        return FormatError(
            f"the column {dotted(path)} is {data_type} in a data file and {type} in the table's schema"
        )


class _FromNamedFile(_FromFile):
    """Rows of a file that lakelog has not written."""

    def __init__(self, names: Mapping[int, str] | None, constants: Mapping[int, TypedValue]) -> None:
        self._names = names
        self._constants = constants

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: ColumnPath) -> list[int | None]:
        places = {name: index for index, name in enumerate(names)}
        names_by_id = self._names
        file_names = [
            field.physical if names_by_id is None else names_by_id.get(field.id) for field in fields
        ]
        return [
            None if name is None or field.id in self._constants else places.get(name)
            for name, field in zip(file_names, fields, strict=True)
        ]

    def missing(self, field: Field, length: int, path: ColumnPath) -> pa.Array:
        constant = self._constants.get(field.id)
        if constant is None:
            return super().missing(field, length, path)
        return repeated(constant, field.type, length, physical=self.physical)


class _ToFile(_FromFile):
    """Rows of the present schema into the form of data files."""

    physical = True

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: ColumnPath) -> list[int | None]:
        assert list(names) == [field.name for field in fields], "rows are conformed before they are written"
        return list(range(len(names)))


_FROM_FILE, _TO_FILE = _FromFile(), _ToFile()
