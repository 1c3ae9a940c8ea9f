"""Filters as expressions of pyarrow: read into a predicate that is true, false or NULL for the same rows.

An expression hides its parts. What it is pickled as has them all: a file of Arrow's IPC, whose columns are the
literals and options, and whose metadata is the tree, in the order in which it is written. That is read here,
through Arrow's C data interface, because `Schema.metadata` is a dict and drops repeated keys. Substrait would need
a schema first, and a decoder of its own.

Rule: a function that is not known here is refused by its name. Where Arrow and SQL differ, Arrow's result counts:
NaN is not greater than a number, and `isin` is false for NULL. `nan_is_largest` is for engines that write such
expressions with SQL's order in mind.
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
    Literal,
    Operand,
    Predicate,
    condition_of,
    literal,
)
from lakelog.log.errors import InvalidInput

_NAN = Literal("NaN", "double")
_COMPARISONS = {
    "equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_NUMBERS = ("long", "double", "decimal")
_NUMBER_BYTES = 4
_WHAT = "the pyarrow expression"
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = {"starts_with": "STARTS_WITH", "ends_with": "ENDS_WITH", "match_substring": "CONTAINS"}
_MATCH, _SKIP = 0, 1
"""Arrow's SetLookupOptions: a NULL is looked up like a value, or never found."""


def from_arrow_expression(expression: pc.Expression, *, nan_is_largest: bool = False) -> Predicate:
    """Return the condition. InvalidInput for a function that predicates do not have, which it names."""
    return condition_of(_Reading(expression, nan_is_largest).whole(), _WHAT)


def columns_of(expression: pc.Expression) -> list[str]:
    """Return the names of the columns that an expression needs, also of one that is not understood."""
    return _Reading(expression, False).columns()


def literal_of(scalar: pa.Scalar) -> Literal:
    """Return a value of Arrow's as a literal. InvalidInput for other types, and for parts of microseconds."""
    type, types = scalar.type, pa.types
    if not scalar.is_valid:
        return Literal(None)
    try:
        if types.is_timestamp(type):
            kind = "timestamp_ntz" if type.tz is None else "timestamp"
            return Literal(scalar.cast(pa.timestamp("us", type.tz)).value, kind)
        if types.is_date(type):
            return Literal(scalar.cast(pa.date32()).value, "date")
        if types.is_time(type):
            return Literal(scalar.cast(pa.time64("us")).value, "time")
        if types.is_duration(type):
            return Literal(scalar.cast(pa.duration("us")).value, "interval day to second")
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"cannot compare a column with {scalar} of type {type}: {error}") from None
    value = scalar.as_py()
    if isinstance(value, bool | int | float | str | bytes | Decimal):
        return literal(value)
    raise InvalidInput(
        f"cannot compare a column with {scalar} of type {type}: give a value of a column's type"
    )


def is_one_of(column: Operand, values: Sequence[Literal], *, null_is_value: bool) -> Predicate:
    """Return whether a column is one of `values`; for NULL that is NULL, or whether it is one (`null_is_value`)."""
    known = [each for each in values if each.value is not None]
    test = Predicate("IN", (column, *known))
    if not null_is_value:
        # A list without values is false for all values, and NULL for NULL.
        return test if known else Predicate("AND", (Predicate("IS_NULL", (column,)), Literal(None)))
    if len(known) < len(values):
        return Predicate("OR", (Predicate("IS_NULL", (column,)), test))
    return Predicate("AND", (Predicate("IS_NOT_NULL", (column,)), test))


class _Reading:
    def __init__(self, expression: pc.Expression, nan_is_largest: bool) -> None:
        self._nan_is_largest = nan_is_largest
        try:
            _, (stored,) = expression.__reduce__()
            with pa.ipc.open_file(stored) as file:
                self._columns = file.get_batch(0).columns
                self._pairs = list(_metadata(file.schema))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidInput(
                f"the pyarrow expression {str(expression)[:200]} cannot be read ({error}): name columns, as in "
                "field('a') or field('a', 'b'), or write the filter as text"
            ) from None

    def whole(self) -> Operand:
        """Return the tree, read without recursion: an expression may be deeper than Python's stack."""
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
                    found: Operand = literal_of(self._scalar(value))
                case "field_ref":
                    found = Column((value,))
                case "nested_field_ref":
                    path = [name for _, name in self._pairs[at : at + int(value)]]
                    at += len(path)
                    found = Column(tuple(path))
                case "end":
                    name, arguments, options = open_calls.pop()
                    found = self._call(name, arguments, options)
                case _:
                    _refuse(key)
            if not open_calls:
                return found
            open_calls[-1][1].append(found)

    def columns(self) -> list[str]:
        found, at = [], 0
        while at < len(self._pairs):
            key, value = self._pairs[at]
            # The names of a nested field follow, of which the first is the column's.
            parts = int(value) if key == "nested_field_ref" else 0
            if parts or key == "field_ref":
                found.append(self._pairs[at + 1][1] if parts else value)
            at += 1 + parts
        return list(dict.fromkeys(found))

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
            case "if_else", [Predicate(op="IS_NOT_NULL") as valid, then, Literal(value=None)]:
                # So a test that is false for NULL is made NULL for it.
                null = Predicate("AND", (Predicate("IS_NULL", valid.args), Literal(None)))
                return Predicate("OR", (null, Predicate("AND", (valid, condition_of(then, _WHAT)))))
            case "is_in", [part] if _option(options, "null_matching_behavior") in (_MATCH, _SKIP):
                assert options is not None
                skips = _option(options, "null_matching_behavior") == _SKIP
                values = [
                    literal_of(each) for each in options["value_set"].values if each.is_valid or not skips
                ]
                return is_one_of(_column(part, name), values, null_is_value=True)
            case _, [part] if name in _TEXT_TESTS and not _option(options, "ignore_case"):
                assert options is not None
                return Predicate(_TEXT_TESTS[name], (_column(part, name), _text(options["pattern"])))
            case _, [left, right] if name in _COMPARISONS:
                return self._compared(_COMPARISONS[name], left, right)
        _refuse(name)

    def _compared(self, op: str, left: Operand, right: Operand) -> Predicate:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, op, right = right, _MIRRORED[op], left
        test = Predicate(op, (left, right))
        if self._nan_is_largest or not isinstance(right, Literal) or right.type not in _NUMBERS:
            return test
        if right.value == _NAN.value:
            never = Predicate("AND", (_is_nan(left), Predicate("NOT", (_is_nan(left),))))
            return Predicate("NOT", (never,)) if op == "<>" else never
        return Predicate("AND", (test, Predicate("NOT", (_is_nan(left),)))) if op in (">", ">=") else test


def _column(operand: Operand, function: str) -> Column:
    if isinstance(operand, Column):
        return operand
    raise InvalidInput(
        f"the pyarrow expression calls {function} of {operand}, which lakelog cannot do: call it of a column"
    )


def _text(pattern: pa.StringScalar) -> Literal:
    """Return what is searched for: a text, or the bytes of a binary, which the options hold as a text too."""
    found = pattern.as_buffer().to_pybytes()
    try:
        return literal(found.decode())
    except UnicodeDecodeError:
        return literal(found)


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
    """The begin of the struct of Arrow's C data interface."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield all of a schema's metadata in its order, repeated keys too."""
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
