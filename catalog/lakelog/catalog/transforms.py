"""Values of partition transforms, for whole columns, and what filters on a column say about them.

The functions are Iceberg's, bit for bit: bucket is murmur3 (see `murmur3`) without its sign, modulo the
number of buckets; truncate and the parts of dates and times round down, below zero too. NULL goes to NULL,
and only NULL does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.literals import value_type
from lakelog.catalog.murmur3 import hash_longs, hash_slices
from lakelog.catalog.partitioning import Transform, result_type
from lakelog.catalog.types import AtomicType
from lakelog.log.errors import InvalidInput

_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000
_INTEGERS = ("byte", "short", "integer", "long")
_TEXTS = ("string", "char", "varchar", "binary")
_INT32 = np.iinfo(np.int32)
_EXACT = Context(prec=40)

_Int64s: TypeAlias = npt.NDArray[np.int64]


def apply_transform(transform: Transform, values: pa.Array | pa.ChunkedArray, source: AtomicType) -> pa.Array:
    """Return the transform of each value of a column of type `source`, as the value type of `result_type`.

    InvalidInput when the transform does not take that type, or a value's result does not fit.
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


def transform_literal(transform: Transform, value: pa.Scalar, source: AtomicType) -> pa.Scalar:
    """Return the transform of one value of type `source`, which may be NULL."""
    return apply_transform(transform, pa.array([value.as_py()], type=value.type), source)[0]


def _combined(values: pa.Array | pa.ChunkedArray, source: AtomicType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=values.type)
    if pa.types.is_duration(array.type):
        array = array.cast(pa.duration("us"))
    return array.cast(value_type(source))


def _array(numbers: npt.NDArray[Any], like: pa.Array, type: pa.DataType) -> pa.Array:
    """Return `numbers` as an array of `type`, NULL where `like` is."""
    mask = np.asarray(like.is_null()) if like.null_count else None
    integer = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[type.bit_width // 8]
    return pa.array(numbers.astype(integer.to_pandas_dtype()), type=integer, mask=mask).cast(type)


def _numbers(array: pa.Array) -> _Int64s:
    """Return the integers behind an array of integers, dates, times or timestamps; 0 where it is NULL."""
    integers = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
    filled = pc.fill_null(integers.cast(pa.int64()), 0)
    numbers: _Int64s = filled.to_numpy(zero_copy_only=False)
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


def _limbs(array: pa.Array) -> tuple[npt.NDArray[np.uint64], _Int64s]:
    """Return the lower and the upper half of each unscaled decimal; whatever it may be where it is NULL."""
    words = np.frombuffer(array.buffers()[1], dtype=np.uint64)
    words = words.reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1].view(np.int64)


def _decimal_hashes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """Hash the fewest bytes that hold each unscaled value in two's complement, the highest first."""
    if len(array) == 0:
        return np.zeros(0, dtype=np.uint32)
    low, high = _limbs(array)
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
            # Below the smallest value it wraps, as Java's integers do; `_wrapped` tells filters about it.
            with np.errstate(over="ignore"):
                return _array(numbers - np.mod(numbers, np.int64(width)), array, target)


def _truncated_decimals(array: pa.Array, width: int, target: pa.DataType) -> pa.Array:
    if len(array) == 0:
        return pa.array([], type=target)
    low, high = _limbs(array)
    # The remainder of high * 2^64 + low: every product stays below 2^62, because the width is below 2^31.
    modulus = np.uint64(width)
    upper = np.mod(high, np.int64(width)).astype(np.uint64)
    rest = (upper * np.uint64(2**64 % width) % modulus + low % modulus) % modulus
    words = np.empty((len(array), 2), dtype=np.uint64)
    words[:, 0] = low - rest
    words[:, 1] = (high - (low < rest)).view(np.uint64)
    widest = pa.decimal128(38, target.scale)
    unmasked = pa.Array.from_buffers(widest, len(array), [None, pa.py_buffer(words.tobytes())])
    truncated = pc.if_else(pc.is_valid(array), unmasked, pa.scalar(None, widest))
    lowest = pa.scalar(Decimal(1 - 10**38).scaleb(-target.scale, _EXACT), widest)
    if pc.any(pc.less(truncated, lowest)).as_py():
        raise InvalidInput(
            f"a decimal truncated to a multiple of {width} needs more than 38 digits: it cannot be kept as a partition "
            "value"
        )
    return truncated.cast(target)


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


PartitionTest: TypeAlias = Callable[[pa.Array | pa.ChunkedArray], Any]
"""From partition values to booleans, never NULL."""


def project(
    transform: Transform, source: AtomicType, op: str, values: Sequence[pa.Scalar] = ()
) -> PartitionTest | None:
    """Return a test that is true for partition values which rows with `column op values` may have, or None:
    any.

    `op` is one of = <=> <> < <= > >= IN, NOT IN, STARTS_WITH, IS_NULL, IS_NOT_NULL; values are of `source`'s
    type.
    """
    return _projected(transform, source, op, values, strict=False)


def project_strict(
    transform: Transform, source: AtomicType, op: str, values: Sequence[pa.Scalar] = ()
) -> PartitionTest | None:
    """Return a test that is true only for partition values all of whose rows have `column op values`, or None: none."""
    return _projected(transform, source, op, values, strict=True)


def _projected(
    transform: Transform, source: AtomicType, op: str, values: Sequence[pa.Scalar], strict: bool
) -> PartitionTest | None:
    if op in ("IS_NULL", "IS_NOT_NULL"):
        return (lambda p: p.is_null()) if op == "IS_NULL" else (lambda p: p.is_valid())
    if op == "<=>":
        if not values[0].is_valid:
            return lambda p: p.is_null()
        op = "="
    if any(not value.is_valid for value in values):
        # A comparison with NULL holds for no row; IN with a NULL among others may hold for those.
        if op != "IN":
            return lambda p: _none(p)
        values = [value for value in values if value.is_valid]
    if transform.name == "identity":
        return _identity_test(op, values)
    try:
        images = [transform_literal(transform, value, source) for value in values]
    except InvalidInput:
        return None
    if transform.name == "bucket":
        exact = "NOT IN" if strict else "IN"
        alike = {"NOT IN": ("<>", "NOT IN"), "IN": ("=", "IN")}[exact]
        return _identity_test(exact, images) if op in alike else None
    if op == "STARTS_WITH":
        return _prefix_test(transform, values[0], strict)
    if strict:
        return _strict_test(transform, source, op, values, images)
    return _inclusive_test(transform, source, op, values, images)


def _inclusive_test(
    transform: Transform, source: AtomicType, op: str, values: Sequence[pa.Scalar], images: list[pa.Scalar]
) -> PartitionTest | None:
    wrapped = _wrapped(transform, source)
    match op:
        case "=" | "IN":
            return _identity_test("IN", images)
        case "<" | "<=":
            bound = images[0] if op == "<=" else _image_beside(transform, source, values[0], -1, images[0])
            if bound == wrapped:
                return None
            below = _identity_test("<=", [bound])
            if wrapped is None:
                return below
            also = _identity_test("=", [wrapped])
            return lambda p: pc.or_(below(p), also(p))
        case ">" | ">=":
            bound = images[0] if op == ">=" else _image_beside(transform, source, values[0], 1, images[0])
            if bound == wrapped:
                return None
            return _identity_test(">=", [bound])
        case _:
            return None


def _strict_test(
    transform: Transform, source: AtomicType, op: str, values: Sequence[pa.Scalar], images: list[pa.Scalar]
) -> PartitionTest | None:
    wrapped = _wrapped(transform, source)
    match op:
        case "<>" | "NOT IN":
            return _identity_test("NOT IN", images)
        case "=" | "IN":
            # A text that is shorter than the width is the only one that has itself as its truncation.
            if source.family not in _TEXTS or transform.argument is None:
                return None
            width = transform.argument
            return _identity_test("IN", [value for value in values if len(value.as_py()) < width])
        case "<" | "<=":
            bound = images[0] if op == "<" else _image_beside(transform, source, values[0], 1, images[0])
            if bound == wrapped:
                return None
            return _identity_test("<", [bound])
        case ">" | ">=":
            bound = images[0] if op == ">" else _image_beside(transform, source, values[0], -1, images[0])
            if bound == wrapped:
                return None
            above = _identity_test(">", [bound])
            if wrapped is None:
                return above
            apart = _identity_test("<>", [wrapped])
            return lambda p: pc.and_(above(p), apart(p))
        case _:
            return None


def _image_beside(
    transform: Transform, source: AtomicType, value: pa.Scalar, step: int, image: pa.Scalar
) -> pa.Scalar:
    """Return the transform of the next smaller or greater value, or `image` where there is none or no next one."""
    if source.family in _TEXTS or source.family == "decimal":
        return image
    width = pa.int32() if pa.types.is_date32(value.type) else value.type
    integer = value.cast(width).cast(pa.int64()).as_py() + step
    try:
        beside = pa.scalar(integer, pa.int64()).cast(width).cast(value.type)
        return transform_literal(transform, beside, source)
    except (pa.ArrowInvalid, OverflowError, InvalidInput):
        return image


def _wrapped(transform: Transform, source: AtomicType) -> pa.Scalar | None:
    """Return the one truncated value that is out of order, because it wrapped below the smallest; None: none is.

    It says nothing about order where it is the bound itself, which widths beyond the smallest value make it often.
    """
    if transform.name != "truncate" or source.family not in _INTEGERS:
        return None
    assert transform.argument is not None
    type = value_type(source)
    assert type is not None
    smallest = -(2 ** (type.bit_width - 1))
    if smallest % transform.argument == 0:
        return None
    return transform_literal(transform, pa.scalar(smallest, type), source)


def _prefix_test(transform: Transform, prefix: pa.Scalar, strict: bool) -> PartitionTest | None:
    if transform.name != "truncate" or not pa.types.is_string(prefix.type):
        return None
    assert transform.argument is not None
    text = prefix.as_py()
    if len(text) <= transform.argument:
        return lambda p: _filled(pc.starts_with(p, text))
    cut = text[: transform.argument]
    return None if strict else _identity_test("=", [pa.scalar(cut, prefix.type)])


def _identity_test(op: str, values: Sequence[pa.Scalar]) -> PartitionTest:
    """Return Spark's comparison of values as they are: NaN equals itself and is greater than all others."""
    match op:
        case "IN" | "=":
            return lambda p: _any(p, [_equal(p, value) for value in values])
        case "NOT IN" | "<>":
            return lambda p: pc.and_(p.is_valid(), pc.invert(_any(p, [_equal(p, value) for value in values])))
        case "STARTS_WITH":
            return lambda p: _filled(pc.starts_with(p, values[0].as_py()))
        case _:
            compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[op]
            return lambda p: _ordered(op, compare, p, values[0])


def _equal(p: Any, value: pa.Scalar) -> Any:
    return _filled(pc.is_nan(p)) if _is_nan(value) else _filled(pc.equal(p, value))


def _ordered(op: str, compare: Callable[[Any, Any], Any], p: Any, value: pa.Scalar) -> Any:
    if not pa.types.is_floating(value.type):
        return _filled(compare(p, value))
    nan = _filled(pc.is_nan(p))
    if _is_nan(value):
        return {"<": pc.and_(p.is_valid(), pc.invert(nan)), "<=": p.is_valid(), ">": _none(p), ">=": nan}[op]
    return pc.or_(_filled(compare(p, value)), nan) if op in (">", ">=") else _filled(compare(p, value))


def _is_nan(value: pa.Scalar) -> bool:
    return pa.types.is_floating(value.type) and bool(operator.ne(value.as_py(), value.as_py()))


def _filled(mask: Any) -> Any:
    return pc.fill_null(mask, False)


def _none(p: Any) -> Any:
    return pc.and_(p.is_null(), p.is_valid())


def _any(p: Any, masks: Sequence[Any]) -> Any:
    result = _none(p)
    for mask in masks:
        result = pc.or_(result, mask)
    return result
