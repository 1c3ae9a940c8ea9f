"""Values that an update or a merge sets, in the types of their columns, as Spark stores them.

An expression has a type of its own, which Spark casts by its rules of store assignment (ANSI): numbers to any
type of number, dates and times to each other, and numbers, booleans and dates to text. Digits that do not fit
behind the point are cut off in an integer, and rounded (half up) in a DECIMAL. A value out of range is an
error, and so is a text for any other type. Times are in UTC. DuckDB's infinite dates and times are refused,
and structs that lack a field. Rows that a user appends are never changed in value (see `conform`).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.parquet.conform import ConformRules
from lakelog.catalog.core.parquet.reshape import reshape
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, ColumnPath, Field, Type
from lakelog.log.errors import InvalidInput
from lakelog.log.grammar import shortened

_is = pa.types
_INTEGERS = ("byte", "short", "integer", "long")
_TEXTS = ("string", COLLATED, "char", "varchar")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_DIGITS_MAX = 76
"""The digits of Arrow's longest decimals."""
_DAY_US = 86_400_000_000
_YEAR_0, _YEAR_10000 = -719_528, 2_932_897
"""The first days of the years 0 and 10000, since 1970."""


def stored(array: pa.Array, field: Field) -> pa.Array:
    """Return values as the column `field` stores them.

    Raises InvalidInput if Spark would not assign a value of that type to the column, or if a value is out of
    its range.
    """
    return reshape(array, field.type, (field.name,), _STORE)


def whole(array: pa.Array, field: Field) -> pa.Array:
    """Return nested values of Python's as appended rows have them. Raises InvalidInput if a struct lacks a field."""
    return reshape(array, field.type, (field.name,), _WHOLE)


class _WholeStructs(ConformRules):
    def missing(self, field: Field, length: int, path: ColumnPath) -> pa.Array:
        raise InvalidInput(
            f"the value has no field {dotted(path)}, which Spark does not assign either: give the field, or NULL for it"
        )


class _StoreRules(_WholeStructs):
    def atomic(self, array: pa.Array, type: AtomicType, path: ColumnPath) -> pa.Array:
        if _is_infinite(array):
            raise InvalidInput(
                f"the column {dotted(path)} is of type {type}, and a value is infinity, which only DuckDB has: "
                "write a date or a time, or NULL"
            )
        return super().atomic(array, type, path)

    def _cast(self, array: pa.Array, type: AtomicType, target: pa.DataType, path: ColumnPath) -> pa.Array:
        cast = _cast_of(array.type, type)
        if cast is None:
            return super()._cast(array, type, target, path)
        try:
            return cast(array, target)
        except (pa.ArrowInvalid, ArithmeticError, ValueError) as error:
            reason = shortened(str(error).splitlines()[0], 100) if isinstance(error, pa.ArrowInvalid) else ""
            raise InvalidInput(
                f"the column {dotted(path)} is of type {type}, and a value ({array.type}) is out of its range"
                f"{f': {reason}' if reason else ''}"
            ) from None

    def mismatch(self, found: pa.DataType, type: Type, path: ColumnPath) -> Exception:
        both = f"the column {dotted(path)} is of type {type}, and the value is of type {found}, which"
        if isinstance(type, AtomicType) and type.family in _TEXTS:
            return InvalidInput(f"{both} has another text in Spark: write strftime(…) or format(…)")
        return InvalidInput(f"{both} Spark does not assign to it either: {_instead(type)}")


_STORE, _WHOLE = _StoreRules(), _WholeStructs()
_DUCKDB_NAMES = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "long": "BIGINT",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}


def _instead(type: Type) -> str:
    if not isinstance(type, AtomicType):
        return "give a value of that form"
    if type.family == "date":
        return "write DATE '2026-02-01', or CAST(… AS DATE)"
    return f"write CAST(… AS {_DUCKDB_NAMES.get(type.family, str(type).upper())})"


def _cast_of(found: pa.DataType, type: AtomicType) -> Callable[[pa.Array, pa.DataType], pa.Array] | None:
    """Return the cast of Spark if appended rows have none, or another."""
    family = type.family
    if family in _INTEGERS and (_is.is_floating(found) or _is.is_decimal(found)):
        return _whole
    if family in ("float", "double") and _is.is_decimal(found):
        return _floating
    if family == "float" and (_is.is_integer(found) or _is.is_float64(found)):
        return _unchecked
    if family == "double" and _is.is_integer(found):
        return _unchecked
    if family == "decimal":
        if _is.is_floating(found):
            return _decimal_of_floating
        if _is.is_integer(found) or _is.is_decimal(found):
            return _decimal
    if family in _TEXTS and (
        _is.is_integer(found) or _is.is_boolean(found) or _is.is_date(found) or _is.is_decimal(found)
    ):
        return _text
    if family in _TIMES and (_is.is_timestamp(found) or _is.is_date(found)):
        return _time
    return None


def _whole(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cut the digits behind the point off."""
    if _is.is_decimal(array.type):
        return pc.trunc(array).cast(pa.decimal256(_DIGITS_MAX, 0)).cast(target)
    return pc.trunc(array).cast(target)


def _floating(array: pa.Array, target: pa.DataType) -> pa.Array:
    # By their texts, because Arrow's own cast of decimals is not correctly rounded.
    return array.cast(pa.string()).cast(target)


def _unchecked(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(target, safe=False)


def _decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    if _is.is_integer(array.type):
        return array.cast(pa.decimal256(20, 0)).cast(pa.decimal256(_DIGITS_MAX, target.scale)).cast(target)
    if array.type.scale <= target.scale:
        return array.cast(pa.decimal256(_DIGITS_MAX, target.scale)).cast(target)
    wide = array.cast(pa.decimal256(_DIGITS_MAX, array.type.scale))
    round_values = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    return round_values.cast(pa.decimal256(_DIGITS_MAX, target.scale)).cast(target)


def _decimal_of_floating(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Round the shortest digits that stand for the double, as Spark does."""
    unit = Decimal(1).scaleb(-target.scale)

    def to_decimal(value: Any) -> Decimal | None:
        return None if value is None else Decimal(repr(value)).quantize(unit, ROUND_HALF_UP)

    with localcontext() as context:
        context.prec = _DIGITS_MAX
        return pa.array([to_decimal(value) for value in array.to_pylist()], target)


def _is_infinite(array: pa.Array) -> bool:
    """Return whether a date or a time is DuckDB's infinity: the greatest number of its type, or minus that."""
    if not (_is.is_date32(array.type) or _is.is_timestamp(array.type)):
        return False
    bits = array.type.bit_width
    limits = pc.min_max(array.cast(pa.int32() if bits == 32 else pa.int64())).as_py()
    return bool(limits["max"] == 2 ** (bits - 1) - 1 or limits["min"] == 1 - 2 ** (bits - 1))


def _text(array: pa.Array, target: pa.DataType) -> pa.Array:
    if _is.is_date(array.type):
        return _text_of_dates(array.cast(pa.date32()), target)
    if _is.is_decimal(array.type):
        values = (None if value is None else format(value, "f") for value in array.to_pylist())
        return pa.array(values, target)
    return array.cast(target)


def _text_of_dates(array: pa.Array, target: pa.DataType) -> pa.Array:
    days = array.cast(pa.int32())
    limits = pc.min_max(days).as_py()
    if limits["min"] is None or (limits["min"] >= _YEAR_0 and limits["max"] < _YEAR_10000):
        return array.cast(target)
    # Arrow has no text for years beyond 32767. Spark's text of a longer year has a sign.
    texts = np.datetime_as_string(days.fill_null(0).to_numpy().astype("datetime64[D]"))
    both = zip(days.to_pylist(), texts.tolist(), strict=True)
    return pa.array(
        (None if day is None else f"{'+' if day >= _YEAR_10000 else ''}{text}" for day, text in both), target
    )


def _time(array: pa.Array, target: pa.DataType) -> pa.Array:
    if _is.is_date(target):
        if not _is.is_timestamp(array.type):
            return array.cast(target)
        times_us = array.cast(pa.timestamp("us")).cast(pa.int64())
        # Arrow's own floor_temporal overflows near the earliest time.
        days = np.floor_divide(times_us.fill_null(0).to_numpy(), _DAY_US)
        return (
            pa.array(days, mask=times_us.is_null().to_numpy(zero_copy_only=False))
            .cast(pa.int32())
            .cast(target)
        )
    if _is.is_date(array.type):
        return array.cast(pa.timestamp("us")).cast(target)
    return array.cast(target)
