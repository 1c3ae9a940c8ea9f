"""Values of partition transforms, for whole columns.

The functions are Iceberg's, bit for bit. Bucket is murmur3 (see `murmur3`) without its sign, modulo the
number of buckets. Truncate and the parts of dates and times round down, below zero too. NULL, and only NULL,
becomes NULL.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.murmur3 import hash_longs, hash_slices
from lakelog.catalog.core.schema.partitioning import Transform, result_type
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import InvalidInput

_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000
_TEXTS = ("string", "char", "varchar", "binary")
_INT32 = np.iinfo(np.int32)
_EXACT = Context(prec=40)

_Int64s: TypeAlias = npt.NDArray[np.int64]


def apply_transform(transform: Transform, values: pa.Array | pa.ChunkedArray, source: AtomicType) -> pa.Array:
    """Return the transform of each value of a column of type `source`, as the value type of `result_type`.

    Raises InvalidInput if the transform does not take that type, or if the result of a value does not fit.
    """
    target = value_type(result_type(transform, source))
    assert target is not None, "every type that can be transformed has an order"
    array = _combined(values, source)
    match transform.name:
        case "identity":
            return array
        case "bucket":
            assert transform.argument is not None
            hashes = _hashes(array, source) & np.uint32(_INT32.max)
            return _array(hashes % np.uint32(transform.argument), array, target)
        case "truncate":
            assert transform.argument is not None
            return _truncated(array, transform.argument, source, target)
        case _:
            return _array(_time_part(transform.name, array, source), array, target)


def hashes_of_values(values: pa.Array, type: AtomicType) -> npt.NDArray[np.uint32]:
    """Return a hash of each value, for ordered types. Equal values have equal hashes. For counting only."""
    if type.family in ("float", "double"):
        numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers)
        return hash_longs(numbers.view(np.int64))
    array = _combined(values, type)
    return _hashes(array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array, type)


def _combined(values: pa.Array | pa.ChunkedArray, source: AtomicType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=values.type)
    if pa.types.is_duration(array.type):
        array = array.cast(pa.duration("us"))
    return array.cast(value_type(source))


def _array(numbers: npt.NDArray[Any], like: pa.Array, type: pa.DataType) -> pa.Array:
    """Return `numbers` as an array of `type`, with NULL wherever `like` has NULL."""
    mask = np.asarray(like.is_null()) if like.null_count else None
    integer = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[type.bit_width // 8]
    return pa.array(numbers.astype(integer.to_pandas_dtype()), type=integer, mask=mask).cast(type)


def _numbers(array: pa.Array) -> _Int64s:
    """Return the integers behind an array of integers, dates, times or timestamps, with 0 for NULL."""
    integers = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
    non_null = pc.fill_null(integers.cast(pa.int64()), 0)
    numbers: _Int64s = non_null.to_numpy(zero_copy_only=False)
    return numbers


def _hashes(array: pa.Array, source: AtomicType) -> npt.NDArray[np.uint32]:
    if source.family == "decimal":
        return _decimal_hashes(array)
    if source.family not in _TEXTS:
        return hash_longs(_numbers(array))
    large = pc.fill_null(array.cast(pa.large_binary()), b"")
    _, offsets, data = large.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[large.offset : large.offset + len(large) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return hash_slices(content, bounds[:-1], np.diff(bounds))


def _halves(array: pa.Array) -> tuple[npt.NDArray[np.uint64], _Int64s]:
    """Return the lower and the upper half of each unscaled decimal, with any value for NULL."""
    words = np.frombuffer(array.buffers()[1], dtype=np.uint64)
    words = words.reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1].view(np.int64)


def _decimal_hashes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """Hash the fewest bytes that hold each unscaled value in two's complement, the highest first."""
    if len(array) == 0:
        return np.zeros(0, dtype=np.uint32)
    low, high = _halves(array)
    digits = np.empty((len(array), 16), dtype=np.uint8)
    digits[:, :8] = high.astype(">i8").view(np.uint8).reshape(-1, 8)
    digits[:, 8:] = low.astype(">u8").view(np.uint8).reshape(-1, 8)
    fill = np.where(digits[:, 0] >= 128, 255, 0).astype(np.uint8)
    superfluous = np.zeros(len(array), dtype=np.int64)
    for byte in range(15):
        redundant = (digits[:, byte] == fill) & ((digits[:, byte + 1] >= 128) == (fill == 255))
        superfluous += redundant & (superfluous == byte)
    starts = np.arange(len(array), dtype=np.int64) * 16 + superfluous
    return hash_slices(digits.reshape(-1), starts, 16 - superfluous)


def _truncated(array: pa.Array, width: int, source: AtomicType, target: pa.DataType) -> pa.Array:
    match source.family:
        case "decimal":
            return _truncated_decimals(array, width, target)
        case "binary":
            return pc.binary_slice(array, 0, width)
        case "string" | "char" | "varchar":
            return pc.utf8_slice_codeunits(array, 0, width)
        case _:
            numbers = _numbers(array)
            # Below the smallest value it wraps, like Java's integers. `file_facts` takes that into account.
            with np.errstate(over="ignore"):
                return _array(numbers - np.mod(numbers, np.int64(width)), array, target)


def _truncated_decimals(array: pa.Array, width: int, target: pa.DataType) -> pa.Array:
    if len(array) == 0:
        return pa.array([], type=target)
    low, high = _halves(array)
    # The remainder of high * 2^64 + low. Every product stays below 2^62, because the width is below 2^31.
    modulus = np.uint64(width)
    upper = np.mod(high, np.int64(width)).astype(np.uint64)
    remainder = (upper * np.uint64(2**64 % width) % modulus + low % modulus) % modulus
    words = np.empty((len(array), 2), dtype=np.uint64)
    words[:, 0] = low - remainder
    words[:, 1] = (high - (low < remainder)).view(np.uint64)
    widest = pa.decimal128(38, target.scale)
    raw_values = pa.Array.from_buffers(widest, len(array), [None, pa.py_buffer(words.tobytes())])
    result = pc.if_else(pc.is_valid(array), raw_values, pa.scalar(None, widest))
    lowest = pa.scalar(Decimal(1 - 10**38).scaleb(-target.scale, _EXACT), widest)
    if pc.any(pc.less(result, lowest)).as_py():
        raise InvalidInput(
            f"a decimal truncated to a multiple of {width} needs more than 38 digits: it cannot be stored as a "
            "partition value"
        )
    return result.cast(target)


def _time_part(name: str, array: pa.Array, source: AtomicType) -> _Int64s:
    numbers = _numbers(array)
    if name == "hour":
        hours = numbers // _HOUR_US
        if len(hours) and (hours.max() > _INT32.max or hours.min() < _INT32.min):
            raise InvalidInput(
                "a timestamp is too far from 1970 to be partitioned by hour: partition by day, month or year"
            )
        return hours
    days = numbers if source.family == "date" else numbers // _DAY_US
    if name == "day":
        return days
    unit = {"month": "datetime64[M]", "year": "datetime64[Y]"}[name]
    return days.astype("datetime64[D]").astype(unit).astype(np.int64)
