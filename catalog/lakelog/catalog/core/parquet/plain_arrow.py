"""Arrow data as libraries export it, in the few forms that the rest of lakelog knows.

Arrow has several forms of the same values: views, large and fixed sizes, dictionaries, run ends, extension
types, units. `PlainStream` brings each of them into a single form, column by column, and refuses by name the
values that it cannot keep as they are.

Rule: every row that users give comes in through it, and no other module knows those forms. pyarrow's own
casts of nested types are not used. They store other values for list views, and cannot read dictionaries of
views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelog.catalog.core.schema.arrow_types import is_list, storage_of
from lakelog.catalog.core.schema.schema import DEPTH_LIMIT, dotted, too_deep
from lakelog.catalog.core.schema.types import ColumnPath
from lakelog.log.errors import InvalidInput, LakelogError, Unsupported

Ints = NDArray[np.int64]

_is = pa.types

BATCH_ROWS_MAX = 128 * 1024
"""Rows of other forms are converted in parts of so many, because the texts of a part must fit into 2 GiB."""

_PLAIN = (
    (("is_string", "is_large_string", "is_string_view"), pa.string()),
    (("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"), pa.binary()),
    (("is_float16",), pa.float32()),
    (("is_date",), pa.date32()),
    (("is_time",), pa.time64("us")),
    (("is_duration",), pa.duration("us")),
)


class PlainStream:
    """Rows that are read once.

    `schema` has the names and the plain types of their columns. Raises Unsupported for a column of a type
    that cannot be stored.
    """

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self.schema = pa.schema(
            [(field.name, plain_type(field.type, (field.name,))) for field in reader.schema]
        )

    def reader(self, columns: Sequence[int] | None = None) -> pa.RecordBatchReader:
        """Return the rows, with all columns or those at some places.

        The reader raises InvalidInput for a value that is damaged, or that its plain type cannot hold.
        """
        places = range(len(self.schema)) if columns is None else columns
        schema = pa.schema([self.schema.field(place) for place in places])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema, list(places)))

    def _batches(self, schema: pa.Schema, places: list[int]) -> Iterator[pa.RecordBatch]:
        source_types = [self._reader.schema.field(place).type for place in places]
        forms = [_Form((name,)) for name in schema.names]
        most = None if source_types == schema.types else BATCH_ROWS_MAX
        try:
            for batch in self._reader:
                for start in range(0, batch.num_rows, most or max(1, batch.num_rows)):
                    part = batch.slice(start, most)
                    arrays = [
                        form.all_of(part.column(place), type)
                        for form, place, type in zip(forms, places, schema.types, strict=True)
                    ]
                    if arrays:
                        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                    else:
                        yield without_columns(part.num_rows)
        except LakelogError:
            self._reader.close()
            raise


def without_columns(rows: int) -> pa.RecordBatch:
    """Return so many rows of nothing. Arrow's other ways to make a batch count rows by their columns."""
    return pa.RecordBatch.from_struct_array(pa.repeat(pa.scalar({}, pa.struct([])), rows))


def plain_type(type: pa.DataType, path: ColumnPath) -> pa.DataType:
    """Return the plain type of values of Arrow's `type`.

    Raises Unsupported, with the column, if there is none.
    """
    if len(path) > DEPTH_LIMIT + 1:
        raise too_deep(path)
    if isinstance(type, pa.BaseExtensionType):
        return plain_type(storage_of(type, path), path)
    if _is.is_dictionary(type) or _is.is_run_end_encoded(type):
        return plain_type(type.value_type, path)
    if _is.is_nested(type) and not _is.is_union(type):
        return with_parts(type, lambda field: plain_type(field.type, (*path, field.name)))
    if _is.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    if _is.is_decimal(type):
        # A type of more digits may hold values that have fewer; a negative scale stands for zeros before the
        # point.
        scale = max(0, type.scale)
        precision = min(38, max(type.precision + scale - type.scale, scale))
        if scale <= precision:
            return pa.decimal128(precision, scale)
    for tests, plain in _PLAIN:
        if any(getattr(_is, test)(type) for test in tests):
            return plain
    if _is.is_null(type) or _is.is_boolean(type) or _is.is_integer(type) or _is.is_floating(type):
        return type
    raise Unsupported(
        f"the column {dotted(path)} has Arrow's type {type}, which cannot be stored: cast it to another"
    )


def with_parts(type: pa.DataType, of: Callable[[pa.Field], pa.DataType]) -> pa.DataType:
    """Return a nested type in its plain form, with other types of its parts; another type as it is."""
    if _is.is_struct(type):
        return pa.struct([field.with_type(of(field)) for field in type])
    if _is.is_map(type):
        key, item = type.key_field, type.item_field
        return pa.map_(key.with_type(of(key)), item.with_type(of(item)))
    if is_list(type):
        return pa.list_(type.value_field.with_type(of(type.value_field)))
    return type


def recast(
    array: pa.Array | pa.ChunkedArray, type: pa.DataType, path: ColumnPath
) -> pa.Array | pa.ChunkedArray:
    """Return values in another form: a plain type, or a type of the same parts with other atomic types.

    Raises InvalidInput, with the column, for a value that `type` cannot hold.
    """
    form = _Form(path)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([form.all_of(chunk, type) for chunk in array.chunks], type=type)
    return form.all_of(array, type)


@lru_cache(1024)
def _is_settled(type: pa.DataType) -> bool:
    """Return whether all values of a plain type are valid.

    Texts may not be UTF-8, decimals may have too many digits, and times may be of no day. Lists and maps may
    have values below a NULL, and offsets may lead outside of memory.
    """
    if is_list(type) or _is.is_map(type):
        return False
    if _is.is_nested(type):
        return all(_is_settled(type.field(at).type) for at in range(type.num_fields))
    tests = (_is.is_string, _is.is_binary, _is.is_decimal, _is.is_time)
    return not any(test(type) for test in tests)


class _Form:
    """Brings values of a column into their plain form."""

    def __init__(self, path: ColumnPath) -> None:
        self._path = path
        self._parts: dict[str, _Form] = {}
        self._dictionary: tuple[pa.Array, pa.Array] | None = None

    def all_of(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        """Return the values of a column. Raises InvalidInput for whatever Arrow cannot do with them."""
        try:
            return self.of(array, type)
        except (pa.ArrowException, IndexError) as error:
            raise InvalidInput(
                f"the data's column {dotted(self._path)} of Arrow's type {array.type} cannot be decoded "
                f"({first_line(error)}): give its values as {type}, in smaller batches"
            ) from error

    def of(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if array.type == type and _is_settled(type):
            return array
        if _is.is_dictionary(array.type):
            return self._plain_dictionary(array.dictionary, type).take(array.indices)
        if _is.is_run_end_encoded(array.type):
            values, runs = self._runs(array, type)
            return values.take(runs)
        if _is.is_null(array.type) or _is.is_null(type):
            return pa.nulls(len(array), type)
        if _is.is_struct(type):
            return self._struct(array, type)
        if is_list(type):
            return self._list(array, type)
        if _is.is_map(type):
            return self._map(array, type)
        return self._atomic(array, type)

    def _part(self, name: str) -> _Form:
        return self._parts.setdefault(name, _Form((*self._path, name)))

    def _atomic(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        try:
            array.validate(full=True)
            if array.type == type:
                return array
            if _is.is_boolean(type):
                return pc.not_equal(array, 0)
            return array.cast(type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(
                f"the data's column {dotted(self._path)} of Arrow's type {array.type} has a value that {type} cannot "
                f"hold ({first_line(error)}): convert it, or leave it out"
            ) from None

    def _plain_dictionary(self, dictionary: pa.Array, type: pa.DataType) -> pa.Array:
        """Return the values of a dictionary, which most batches of a stream have in common."""
        dictionary_and_values = self._dictionary
        if dictionary_and_values is None or _place_of(dictionary_and_values[0]) != _place_of(dictionary):
            dictionary_and_values = self._dictionary = dictionary, self.of(dictionary, type)
        return dictionary_and_values[1]

    def _runs(self, array: pa.Array, type: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """Return the values of runs, and for each row the number of its run."""
        first, count = array.find_physical_offset(), array.find_physical_length()
        ends = array.run_ends.slice(first, count).to_numpy(zero_copy_only=False)
        rows = np.arange(array.offset, array.offset + len(array))
        return self.of(array.values.slice(first, count), type), pa.array(
            np.searchsorted(ends, rows, side="right")
        )

    def _struct(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        fields = [type.field(at) for at in range(type.num_fields)]
        # Below a NULL there may be lists with values, as there may be in lists.
        source_parts = array.flatten() if array.null_count else [array.field(at) for at in range(len(fields))]
        parts = [
            self._part(field.name).of(part, field.type)
            for part, field in zip(source_parts, fields, strict=True)
        ]
        if array.type == type and _are_same(parts, source_parts):
            return array
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(array))

    def _list(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        places, field = _Places(array, len(array.values)), type.value_field
        source_values = places.reached(array.values)
        values = self._part(field.name).of(source_values, field.type)
        if array.type == type and places.are_whole and values is source_values:
            return array
        return pa.ListArray.from_arrays(places.offsets, places.chosen(values), type=type, mask=_mask(array))

    def _map(self, array: pa.Array, type: pa.DataType) -> pa.Array:
        places, key, item = _Places(array, len(array.keys)), type.key_field, type.item_field
        source_parts = [places.reached(array.keys), places.reached(array.items)]
        keys, items = (
            self._part(key.name).of(source_parts[0], key.type),
            self._part(item.name).of(source_parts[1], item.type),
        )
        if array.type == type and places.are_whole and _are_same([keys, items], source_parts):
            return array
        return pa.MapArray.from_arrays(
            places.offsets, places.chosen(keys), places.chosen(items), type=type, mask=_mask(array)
        )


class _Places:
    """The places of the values of rows in an array of lists or maps.

    Only values that rows have are used. A part of a long array stands before all of its values, and there may
    be values below a NULL, which no reader sees and Parquet's writer refuses.
    """

    def __init__(self, array: pa.Array, values: int) -> None:
        starts, row_sizes = _starts_and_sizes(array)
        sizes = row_sizes
        if array.null_count:
            sizes = np.where(array.is_valid().to_numpy(zero_copy_only=False), sizes, 0)
        if ((sizes < 0) | (sizes > 0) & ((starts < 0) | (starts > values - sizes))).any():
            raise IndexError("its offsets lead outside of its values")
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        self.offsets = pa.array(np.concatenate([[0], ends]), type=pa.int32())
        self._places: pa.Array | None = None
        if not _has_views(array.type) and bool((row_sizes == sizes).all()):
            self._first, self._count, self.are_whole = int(starts[0]) if len(starts) else 0, total, True
            return
        self._first = int(starts[sizes > 0].min(initial=2**62))
        self._count = int((starts + sizes)[sizes > 0].max(initial=self._first)) - self._first
        places = np.repeat(starts - (ends - sizes) - self._first, sizes) + np.arange(total)
        are_in_order = len(places) == self._count and not (np.diff(places) != 1).any()
        self.are_whole = are_in_order and bool((row_sizes == sizes).all())
        if not are_in_order:
            self._places = pa.array(places)

    def reached(self, values: pa.Array) -> pa.Array:
        """Return the values from the first to the last that a row has."""
        return values.slice(self._first if self._count else 0, self._count)

    def chosen(self, values: pa.Array) -> pa.Array:
        """Return the values of the rows, in their order, from the reached values."""
        return values if self._places is None else values.take(self._places)


def _has_views(type: pa.DataType) -> bool:
    return bool(_is.is_list_view(type) or _is.is_large_list_view(type))


def _starts_and_sizes(array: pa.Array) -> tuple[Ints, Ints]:
    if _is.is_fixed_size_list(array.type):
        width = array.type.list_size
        return np.arange(array.offset, array.offset + len(array)) * width, np.full(len(array), width)
    starts = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    if _has_views(array.type):
        return starts, array.sizes.to_numpy(zero_copy_only=False).astype(np.int64)
    return starts[:-1], np.diff(starts)


def unsliced(array: pa.Array) -> pa.Array:
    """Return plain values as DuckDB can read them.

    Up to 1.5, it reads wrong rows of a struct inside another type, if the struct begins within its memory.
    """
    return pa.concat_arrays([array, array.slice(0, 0)]) if _is_misread(array, 0) else array


def unsliced_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of plain values as DuckDB can read it."""
    if not any(map(_is.is_nested, batch.schema.types)):
        return batch
    return pa.RecordBatch.from_arrays([unsliced(column) for column in batch.columns], schema=batch.schema)


def _is_misread(array: pa.Array, depth: int) -> bool:
    """Return whether a struct inside another type may begin within its memory."""
    if not _is.is_nested(array.type):
        return False
    if _is.is_struct(array.type):
        parts = [array.field(at) for at in range(array.type.num_fields)]
        return (depth > 0 and any(part.offset for part in (array, *parts))) or any(
            _is_misread(part, depth + 1) for part in parts
        )
    parts = [array.keys, array.items] if _is.is_map(array.type) else [array.values]
    return any(_is_misread(part, depth + 1) for part in parts)


def _are_same(new_arrays: list[pa.Array], source_arrays: list[pa.Array]) -> bool:
    return all(
        new_array is source_array for new_array, source_array in zip(new_arrays, source_arrays, strict=True)
    )


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _place_of(array: pa.Array) -> tuple[object, ...]:
    """Return the facts that distinguish an array from others in memory."""
    return (
        array.offset,
        len(array),
        *(None if buffer is None else buffer.address for buffer in array.buffers()),
    )


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
