"""Filters as expressions of pyarrow: read into a predicate that is true, false or NULL for the same rows.

An expression hides its parts, but its pickled form has them all. This is a file of Arrow's IPC: its columns
are the literals and options, and its metadata is the tree, in writing order. The metadata is read through
Arrow's C data interface, because `Schema.metadata` is a dict and drops repeated keys. Substrait would need a
schema first, and a decoder of its own.

Rule: an unknown function is refused by its name. If Arrow and SQL differ, Arrow's result counts: NaN is not
greater than a number, and `isin` is false for NULL. `nan_is_largest` is for engines that write such
expressions in SQL's order.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.predicate import (
    Column,
    FilterLiteral,
    Operand,
    Predicate,
    condition_of,
    literal,
)
from lakelog.log.errors import InvalidInput

_NAN = FilterLiteral("NaN", "double")
_COMPARISONS = {
    "equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_NUMBERS = ("long", "double", "decimal")
_NUMBER_BYTES = 4
_WHAT = "the pyarrow expression"
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = {"starts_with": "STARTS_WITH", "ends_with": "ENDS_WITH", "match_substring": "CONTAINS"}
_MATCH, _SKIP = 0, 1
"""Arrow's SetLookupOptions: a NULL is looked up like a value, or never matches."""


def from_arrow_expression(expression: pc.Expression, *, nan_is_largest: bool = False) -> Predicate:
    """Return the condition. Raises InvalidInput, which names the function, if predicates do not have a
    function."""
    return condition_of(_Reading(expression, nan_is_largest).whole(), _WHAT)


def columns_of(expression: pc.Expression) -> list[str]:
    """Return the names of the columns that an expression needs, even if the expression is not understood."""
    return _Reading(expression, False).columns()


def literal_of(scalar: pa.Scalar) -> FilterLiteral:
    """Return an Arrow scalar as a literal. Raises InvalidInput for other types, and for fractions of
    microseconds."""
    type, types = scalar.type, pa.types
    if not scalar.is_valid:
        return FilterLiteral(None)
    try:
        if types.is_timestamp(type):
            kind = "timestamp_ntz" if type.tz is None else "timestamp"
            return FilterLiteral(scalar.cast(pa.timestamp("us", type.tz)).value, kind)
        if types.is_date(type):
            return FilterLiteral(scalar.cast(pa.date32()).value, "date")
        if types.is_time(type):
            return FilterLiteral(scalar.cast(pa.time64("us")).value, "time")
        if types.is_duration(type):
            return FilterLiteral(scalar.cast(pa.duration("us")).value, "interval day to second")
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"cannot compare a column with {scalar} of type {type}: {error}") from None
    value = scalar.as_py()
    if isinstance(value, bool | int | float | str | bytes | Decimal):
        return literal(value)
    raise InvalidInput(
        f"cannot compare a column with {scalar} of type {type}: give a value of a column's type"
    )


def is_one_of(column: Operand, values: Sequence[FilterLiteral], *, null_is_value: bool) -> Predicate:
    """Return whether a column is in `values`. For NULL this is NULL, or with `null_is_value` whether NULL is
    in `values`."""
    non_null = [value for value in values if value.value is not None]
    test = Predicate("IN", (column, *non_null))
    if not null_is_value:
        # An empty list is false for every value, and NULL for NULL.
        return test if non_null else Predicate("AND", (Predicate("IS_NULL", (column,)), FilterLiteral(None)))
    if len(non_null) < len(values):
        return Predicate("OR", (Predicate("IS_NULL", (column,)), test))
    return Predicate("AND", (Predicate("IS_NOT_NULL", (column,)), test))


def _looked_up(value: FilterLiteral) -> FilterLiteral:
    """Return a value of a list as Arrow looks it up: it casts a whole number to the column's type, exactly."""
    number = value.value
    return literal(int(number)) if isinstance(number, float) and number.is_integer() else value


class _Reading:
    def __init__(self, expression: pc.Expression, nan_is_largest: bool) -> None:
        self._nan_is_largest = nan_is_largest
        try:
            _, (pickle_bytes,) = expression.__reduce__()
            with pa.ipc.open_file(pickle_bytes) as file:
                self._columns = file.get_batch(0).columns
                self._pairs = list(_metadata(file.schema))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidInput(
                f"the pyarrow expression {str(expression)[:200]} cannot be read ({error}): name columns, as in "
                "field('a') or field('a', 'b'), or write the filter as text"
            ) from None

    def whole(self) -> Operand:
        """Return the tree. It is read without recursion, because an expression may be deeper than Python's
        stack."""
        open_calls: list[tuple[str, list[Operand], pa.StructScalar | None]] = []
        at = 0
        while True:
            key, value = self._pairs[at]
            at += 1
            match key:
                case "call":
                    open_calls.append((value, [], None))
                    continue
                case "options":
                    open_calls[-1] = (*open_calls[-1][:2], self._scalar(value))
                    continue
                case "literal":
                    operand: Operand = literal_of(self._scalar(value))
                case "field_ref":
                    operand = Column((value,))
                case "nested_field_ref":
                    path = [name for _, name in self._pairs[at : at + int(value)]]
                    at += len(path)
                    operand = Column(tuple(path))
                case "end":
                    name, arguments, options = open_calls.pop()
                    operand = self._call(name, arguments, options)
                case _:
                    _refuse(key)
            if not open_calls:
                return operand
            open_calls[-1][1].append(operand)

    def columns(self) -> list[str]:
        names, at = [], 0
        while at < len(self._pairs):
            key, value = self._pairs[at]
            # The names of a nested field follow. The first is the column's name.
            parts = int(value) if key == "nested_field_ref" else 0
            if parts or key == "field_ref":
                names.append(self._pairs[at + 1][1] if parts else value)
            at += 1 + parts
        return list(dict.fromkeys(names))

    def _scalar(self, index: str) -> pa.Scalar:
        return self._columns[int(index)][0]

    def _call(self, name: str, arguments: list[Operand], options: pa.StructScalar | None) -> Operand:
        match name, arguments:
            case (("and_kleene" | "or_kleene"), [*parts]):
                op = "AND" if name == "and_kleene" else "OR"
                return Predicate(op, tuple(condition_of(part, _WHAT) for part in parts))
            case "invert", [part]:
                return Predicate("NOT", (condition_of(part, _WHAT),))
            case "is_null", [part]:
                null = Predicate("IS_NULL", (_column(part, name),))
                return Predicate("OR", (null, _is_nan(part))) if _option(options, "nan_is_null") else null
            case "is_valid", [part]:
                return Predicate("IS_NOT_NULL", (_column(part, name),))
            case "is_nan", [part]:
                return _is_nan(_column(part, name))
            case "if_else", [Predicate(op="IS_NOT_NULL") as valid, then, FilterLiteral(value=None)]:
                # Engines write this to turn a test that is false for NULL into a test that is NULL for NULL.
                null = Predicate("AND", (Predicate("IS_NULL", valid.args), FilterLiteral(None)))
                return Predicate("OR", (null, Predicate("AND", (valid, condition_of(then, _WHAT)))))
            case "is_in", [part] if _option(options, "null_matching_behavior") in (_MATCH, _SKIP):
                assert options is not None
                skips = _option(options, "null_matching_behavior") == _SKIP
                values = [
                    _looked_up(literal_of(value))
                    for value in options["value_set"].values
                    if value.is_valid or not skips
                ]
                return is_one_of(_column(part, name), values, null_is_value=True)
            case _, [part] if name in _TEXT_TESTS and not _option(options, "ignore_case"):
                assert options is not None
                return Predicate(_TEXT_TESTS[name], (_column(part, name), _text(options["pattern"])))
            case _, [left, right] if name in _COMPARISONS:
                return self._compared(_COMPARISONS[name], left, right)
        _refuse(name)

    def _compared(self, op: str, left_operand: Operand, right: Operand) -> Predicate:
        if isinstance(left_operand, FilterLiteral) and not isinstance(right, FilterLiteral):
            left_operand, op, right = right, _MIRRORED[op], left_operand
        test = Predicate(op, (left_operand, right))
        if self._nan_is_largest or not isinstance(right, FilterLiteral) or right.type not in _NUMBERS:
            return test
        if right.value == _NAN.value:
            never = Predicate("AND", (_is_nan(left_operand), Predicate("NOT", (_is_nan(left_operand),))))
            return Predicate("NOT", (never,)) if op == "<>" else never
        return (
            Predicate("AND", (test, Predicate("NOT", (_is_nan(left_operand),))))
            if op in (">", ">=")
            else test
        )


def _column(operand: Operand, function: str) -> Column:
    if isinstance(operand, Column):
        return operand
    raise InvalidInput(
        f"the pyarrow expression calls {function} of {operand}, which lakelog cannot do: call it of a column"
    )


def _text(pattern: pa.StringScalar) -> FilterLiteral:
    """Return the searched string or bytes. The options hold bytes as a string, too."""
    pattern_bytes = pattern.as_buffer().to_pybytes()
    try:
        return literal(pattern_bytes.decode())
    except UnicodeDecodeError:
        return literal(pattern_bytes)


def _is_nan(operand: Operand) -> Predicate:
    return Predicate("=", (operand, _NAN))


def _option(options: pa.StructScalar | None, name: str) -> Any:
    return options[name].as_py() if options is not None and name in options else None


def _refuse(name: str) -> NoReturn:
    raise InvalidInput(
        f"the pyarrow expression calls {name}, which lakelog cannot do: use comparisons of columns with values, &, |, "
        "~, is_null, is_valid, is_nan, isin, starts_with, ends_with and match_substring, or filter the result instead"
    )


class _ArrowSchema(ctypes.Structure):
    """The beginning of the struct of Arrow's C data interface."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield all of a schema's metadata in its order, with repeated keys."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if address is None:
        return
    count = _number(address)
    address += _NUMBER_BYTES
    for _ in range(count):
        pair = []
        for _ in range(2):
            length = _number(address)
            pair.append(ctypes.string_at(address + _NUMBER_BYTES, length).decode())
            address += _NUMBER_BYTES + length
        yield pair[0], pair[1]


def _number(address: int) -> int:
    (number,) = struct.unpack("=i", ctypes.string_at(address, _NUMBER_BYTES))
    return int(number)
