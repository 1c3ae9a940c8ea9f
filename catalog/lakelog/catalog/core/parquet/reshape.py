"""Arrow arrays from one shape into another: other names, other order, added and widened fields, at every level.

`reshape` walks the target type and takes its parts out of the given array; `Rules` say which part stands for which
field, what a missing one holds and how atomic values are converted. Only what changes is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import Constant
from lakelog.catalog.core.schema import (
    VARIANT,
    AtomicType,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
    Type,
    children,
    dotted,
    field_to_arrow,
    is_list,
    parse_literal,
    to_arrow,
    type_to_arrow,
    value_type,
)
from lakelog.log.errors import FormatError, Unsupported

Path = tuple[str, ...]


class Rules(Protocol):
    """The rules of one kind of reshaping. `path` names the field in messages."""

    physical: bool
    """Whether the result has physical names and types."""

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: Path) -> list[int | None]:
        """Return which of the parts named `names` stands for each of `fields`; None: it is missing."""

    def missing(self, field: Field, length: int, path: Path) -> pa.Array:
        """Return the values of a field that the source does not have."""

    def atomic(self, array: pa.Array, type: AtomicType, path: Path) -> pa.Array:
        """Return atomic values converted to `type`."""

    def check(self, array: pa.Array, field: Field, owners: pa.Array | None, path: Path) -> None:
        """Check the values of a field before they are converted; `owners` are the structs that hold them."""

    def mismatch(self, found: pa.DataType, type: Type, path: Path) -> Exception:
        """Return the error for a value that is not the expected struct, list or map."""


def reshape_columns(data: pa.Table | pa.RecordBatch, fields: Sequence[Field], rules: Rules) -> pa.Table:
    """Return a table of exactly `fields`, made from the columns of `data`."""
    picked = rules.pick(data.schema.names, fields, ())
    columns = []
    for field, index in zip(fields, picked, strict=True):
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
    constants: Mapping[int, Constant] | None = None,
) -> pa.Table:
    """Return rows of a data file in the table's present schema; `columns` chooses some, in that order.

    Fields are found by physical name, or by the file's own `names`. One that the file does not have gets its `exists`
    default, or NULL. See `DataFile` for `names` and `constants`.
    """
    fields = schema.fields if columns is None else tuple(schema.find((name,)) for name in columns)
    rules = _FROM_FILE if names is None and not constants else _FromNamedFile(names, constants or {})
    return reshape_columns(data, fields, rules)


class OwnColumns:
    """The columns that are read of lakelog's own files. Most files have them in the same form, which is found out once:
    where only names differ, rows are renamed at the cost of no more than that. Safe to share between threads."""

    def __init__(self, schema: Schema, columns: Sequence[str]) -> None:
        self._schema = schema
        self._columns = columns
        self._fields = [schema.find((name,)) for name in columns]
        self._logical = pa.schema([field_to_arrow(field) for field in self._fields])
        self._renamed: tuple[pa.Schema, list[int]] | None = None

    def logical(self, rows: pa.RecordBatch) -> pa.Table:
        """Return the rows of a file as `to_logical` does."""
        known = self._renamed
        if known is not None and known[0].equals(rows.schema):
            return pa.Table.from_arrays([rows.column(at) for at in known[1]], schema=self._logical)
        places = [at for at in _FROM_FILE.pick(rows.schema.names, self._fields, ()) if at is not None]
        if [rows.schema.types[at] for at in places] == self._logical.types and all(
            isinstance(field.type, AtomicType) and field.type.family != "variant" for field in self._fields
        ):
            self._renamed = rows.schema, places
        return to_logical(rows, self._schema, self._columns)


def to_physical(data: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
    """Return rows of the logical schema in the form of a data file."""
    return reshape_columns(data, schema.fields, _TO_FILE)


def default_values(field: Field, sql: str | None, length: int, *, physical: bool = False) -> pa.Array:
    """Return `length` times the literal `sql`, or NULL for None."""
    type = type_to_arrow(field.type, physical=physical)
    value = None if sql is None else parse_literal(sql, field.type)
    if isinstance(value, timedelta):
        # Arrow refuses the longest ones as they are.
        return pa.repeat(pa.scalar(value // timedelta(microseconds=1), pa.int64()).cast(type), length)
    return _nulls(length, type) if value is None else pa.repeat(pa.scalar(value, type), length)


def reshape(array: pa.Array, type: Type, path: Path, rules: Rules) -> pa.Array:
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


def variant(array: pa.Array, path: Path) -> pa.Array:
    """Return the two binaries of variants, whichever of them comes first. Unsupported for shredded ones."""
    if not pa.types.is_struct(array.type) or set(_names(array.type)) != {"metadata", "value"}:
        raise Unsupported(
            f"the variant column {dotted(path)} is {array.type} here: only a struct of the binaries metadata and "
            "value can be read and written by Python; queries in Spark read shredded variants"
        )
    parts = [array.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=_mask(array))


def _field_values(
    array: pa.Array, field: Field, owners: pa.Array | None, path: Path, rules: Rules
) -> pa.Array:
    rules.check(array, field, owners, path)
    return reshape(array, field.type, path, rules)


def _struct(array: pa.Array, type: StructType, path: Path, rules: Rules) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise rules.mismatch(array.type, type, path)
    parts = []
    picked = rules.pick(_names(array.type), type.fields, path)
    # What stands below a NULL is NULL too, however deep: checks of NOT NULL do not see it.
    given = array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
    for field, index in zip(type.fields, picked, strict=True):
        here = (*path, field.name)
        if index is None:
            part = rules.missing(field, len(array), here)
        else:
            part = _field_values(given[index], field, array, here, rules)
        parts.append(part if field.nullable else _filled(part, array))
    fields = [field_to_arrow(field, physical=rules.physical) for field in type.fields]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(array))


def _list(array: pa.Array, type: ListType, path: Path, rules: Rules) -> pa.Array:
    if not is_list(array.type):
        raise rules.mismatch(array.type, type, path)
    (element,) = children(type)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    values = _field_values(array.flatten(), element, None, (*path, element.name), rules)
    target = type_to_arrow(type, physical=rules.physical)
    return pa.ListArray.from_arrays(_offsets(lengths), values, type=target, mask=_mask(array))


def _map(array: pa.Array, type: MapType, path: Path, rules: Rules) -> pa.Array:
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


# Parquet's writer checks a NOT NULL field by itself, so that it needs a value where its struct is NULL.


def _nulls(length: int, type: pa.DataType) -> pa.Array:
    """Return NULLs. Unlike those of `pa.nulls`, a NULL struct has values in its NOT NULL fields."""
    return pa.array([None], type).take(pa.array(np.zeros(length, dtype=np.int64)))


def _filled(values: pa.Array, owners: pa.Array) -> pa.Array:
    """Return `values` with a value in place of a NULL whose owner is NULL."""
    if not owners.null_count or not values.null_count:
        return values
    some = pa.array([None], pa.struct([pa.field("", values.type, nullable=False)])).field(0)
    places = np.arange(len(values))
    places[pc.and_(values.is_null(), owners.is_null()).to_numpy(zero_copy_only=False)] = len(values)
    return pa.concat_arrays([values, some]).take(pa.array(places))


def _offsets(lengths: Any) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), type=pa.int32())


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _names(struct: pa.DataType) -> list[str]:
    return [struct.field(i).name for i in range(struct.num_fields)]


class _FromFile:
    """A data file's rows into the present schema."""

    physical = False

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: Path) -> list[int | None]:
        places = {name: index for index, name in enumerate(names)}
        return [places.get(field.physical) for field in fields]

    def missing(self, field: Field, length: int, path: Path) -> pa.Array:
        exists = None if field.default is None else field.default.exists
        return default_values(field, exists, length, physical=self.physical)

    def atomic(self, array: pa.Array, type: AtomicType, path: Path) -> pa.Array:
        if type.family == "variant":
            return variant(array, path)
        target = type_to_arrow(type, physical=self.physical)
        if array.type == target:
            return array
        try:
            return array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise FormatError(
                f"the column {dotted(path)} is {array.type} in a data file and {type} in the table's schema: "
                f"{error}; was the file written by a program other than lakelog?"
            ) from None

    def check(self, array: pa.Array, field: Field, owners: pa.Array | None, path: Path) -> None:
        pass

    def mismatch(self, found: pa.DataType, type: Type, path: Path) -> Exception:
        return FormatError(
            f"the column {dotted(path)} is {found} in a data file and {type} in the table's schema"
        )


class _FromNamedFile(_FromFile):
    """Rows of a file that lakelog has not written."""

    def __init__(self, names: Mapping[int, str] | None, constants: Mapping[int, Constant]) -> None:
        self._names = names
        self._constants = constants

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: Path) -> list[int | None]:
        places = {name: index for index, name in enumerate(names)}
        known = self._names
        found = [field.physical if known is None else known.get(field.id) for field in fields]
        return [
            None if name is None or field.id in self._constants else places.get(name)
            for name, field in zip(found, fields, strict=True)
        ]

    def missing(self, field: Field, length: int, path: Path) -> pa.Array:
        constant = self._constants.get(field.id)
        if constant is None:
            return super().missing(field, length, path)
        type = value_type(AtomicType(constant.type))
        assert type is not None, "a constant is of a type with values"
        value = to_arrow([constant.value], type)
        target = type_to_arrow(field.type, physical=self.physical)
        return pa.repeat(value.cast(target)[0], length)


class _ToFile(_FromFile):
    """Rows of the present schema into the form of data files."""

    physical = True

    def pick(self, names: Sequence[str], fields: Sequence[Field], path: Path) -> list[int | None]:
        assert list(names) == [field.name for field in fields], "rows are conformed before they are written"
        return list(range(len(names)))


_FROM_FILE, _TO_FILE = _FromFile(), _ToFile()
