"""Binding a filter to a schema: names become column ids, and literals get the column's type, exactly.

A literal that the column's type cannot hold is not rounded. On an integer, `a < 5.5` is `a <= 5`, and `a =
5.5` is false unless `a` is NULL. Every other comparison with a value out of range is decided here, too. If a
literal is a double, numbers are compared as doubles, as Spark does it: by the range of numbers that become
the same double.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

from lakelog.catalog.core.planning.bound import (
    AndCondition,
    Bound,
    BoundTerm,
    CompareCondition,
    ConstantCondition,
    InCondition,
    IsNull,
    IsTrue,
    KnownCondition,
    NotCondition,
    OpaqueCondition,
    OrCondition,
    TextTest,
)
from lakelog.catalog.core.planning.exact import exact_value, of_double, range_of, scalar_of
from lakelog.catalog.core.schema.literals import to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import result_type
from lakelog.catalog.core.schema.predicate import (
    COMPARISONS,
    TEXT_TESTS,
    Column,
    FilterLiteral,
    Operand,
    Predicate,
    TransformedColumn,
)
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, StructType, is_collated
from lakelog.log.errors import InvalidInput

_DAY_TIME = ("day", "hour", "minute", "second")
_COMPARED = frozenset(
    (
        "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar",
        "binary", "date", "timestamp", "timestamp_ntz", "time", "interval year", "interval month",
        "interval year to month", *(f"interval {unit}" for unit in _DAY_TIME),
        *(f"interval {start} to {end}" for start, end in itertools.combinations(_DAY_TIME, 2)),
    )
)  # fmt: skip
_TEXTS = frozenset(("string", "varchar"))
_WHOLES = frozenset(("byte", "short", "integer", "long"))
_PLAIN: dict[str, tuple[frozenset[type], frozenset[str | None]]] = {
    **{family: (frozenset((str,)), _TEXTS | {"char", None}) for family in _TEXTS},
    **{family: (frozenset((int,)), _WHOLES | {None}) for family in _WHOLES},
    **{
        family: (frozenset((int,)), frozenset((family, None)))
        for family in ("date", "timestamp", "timestamp_ntz")
    },
}
"""Families of columns for which a list of literals is taken at once: the literals' classes and families."""
_MIRRORED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bind(predicate: Predicate, schema: Schema, case_sensitive: bool = False) -> Bound:
    """Return `predicate` on the columns of `schema`.

    Raises NoSuchColumn (with the known names) for an unknown column. Raises InvalidInput for a literal that
    cannot be compared with its column, and for a wrong number of arguments. A condition that lakelog does not
    know becomes `OpaqueCondition`, as do comparisons of a column with a collation, whose rules only the engine
    has.
    """
    return _Binder(schema, case_sensitive).bind(predicate)


class _Binder:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def bind(self, predicate: Predicate) -> Bound:
        match predicate.op, predicate.args:
            case "ALWAYS_TRUE", ():
                return ConstantCondition(True)
            case "ALWAYS_FALSE", ():
                return ConstantCondition(False)
            case "AND", (_, *_) as parts:
                return AndCondition(tuple(map(self._condition, parts)))
            case "OR", (_, *_) as parts:
                return OrCondition(tuple(map(self._condition, parts)))
            case "NOT", (part,):
                return NotCondition(self._condition(part))
            case "IS_NULL", (operand,):
                return self._null_test(operand, predicate)
            case "IS_NOT_NULL", (operand,):
                return NotCondition(self._null_test(operand, predicate))
            case "IN", (operand, *values):
                return self._in(operand, values, predicate)
            case op, (left_operand, right) if op in COMPARISONS:
                if isinstance(left_operand, FilterLiteral) and not isinstance(right, FilterLiteral):
                    left_operand, op, right = right, _MIRRORED[op], left_operand
                return self._comparison(op, left_operand, right, predicate)
            case op, (operand, text) if op in TEXT_TESTS:
                return self._text_test(op, operand, text, predicate)
        if predicate.op in (*COMPARISONS, *TEXT_TESTS, "AND", "OR", "NOT", "IN", "IS_NULL", "IS_NOT_NULL"):
            raise InvalidInput(
                f"the condition {predicate} has the wrong number of arguments: {len(predicate.args)}"
            )
        self._check_columns(predicate)
        return OpaqueCondition(str(predicate))

    def _condition(self, operand: Operand) -> Bound:
        match operand:
            case Predicate():
                return self.bind(operand)
            case FilterLiteral(value=None):
                return ConstantCondition(None)
            case FilterLiteral(value=bool() as value):
                return ConstantCondition(value)
            case Column():
                return self._comparison("=", operand, FilterLiteral(True, "boolean"), operand)
            case _:
                return OpaqueCondition(str(operand))

    def _comparison(self, op: str, left_operand: Operand, right: Operand, whole: Operand) -> Bound:
        term = self._term(left_operand)
        if term is None or is_collated(term.source) or not isinstance(right, FilterLiteral):
            self._check_columns(whole)
            return OpaqueCondition(str(whole))
        if right.value is None:
            return IsNull(term) if op == "<=>" else ConstantCondition(None)
        if _is_foreign(right):
            return OpaqueCondition(str(whole))
        match op:
            case "<=>":
                return IsTrue(compared("=", term, right))
            case "<>":
                return NotCondition(compared("=", term, right))
            case _:
                return compared(op, term, right)

    def _in(self, operand: Operand, values: Sequence[Operand], whole: Predicate) -> Bound:
        if not values:
            self._check_columns(whole)
            return ConstantCondition(False)
        term = self._term(operand)
        literals = [value for value in values if isinstance(value, FilterLiteral)]
        is_known = term is not None and not is_collated(term.source) and len(literals) == len(values)
        if term is None or not is_known or any(map(_is_foreign, literals)):
            self._check_columns(whole)
            return OpaqueCondition(str(whole))
        if (plain_values := _plain_values(term, literals)) is not None:
            return InCondition(term, plain_values, False, any(value.value is None for value in literals))
        comparisons = [compared("=", term, value) for value in literals if value.value is not None]
        if any(isinstance(part, AndCondition) for part in comparisons):
            # A double stands for several decimals, or for several large integers.
            unknown = [ConstantCondition(None)] if len(comparisons) < len(literals) else []
            return OrCondition((*comparisons, *unknown))
        scalars = [part.value for part in comparisons if isinstance(part, CompareCondition)]
        plain = [scalar for scalar in scalars if not is_nan(scalar)]
        # Not through Python's values: its dates end with the year 9999.
        empty = pa.array([], term.type or pa.null())
        array = pa.concat_arrays([empty, *(pa.repeat(scalar, 1) for scalar in plain)])
        return InCondition(
            term, array, len(plain) < len(scalars), any(value.value is None for value in literals)
        )

    def _text_test(self, op: str, operand: Operand, text: Operand, whole: Predicate) -> Bound:
        term = self._term(operand)
        if (
            term is None
            or is_collated(term.source)
            or not isinstance(text, FilterLiteral)
            or _is_foreign(text)
        ):
            self._check_columns(whole)
            return OpaqueCondition(str(whole))
        if text.value is None:
            return ConstantCondition(None)
        kind = _type_of(term)
        if kind is None or not isinstance(text.value, str):
            raise _incomparable(term, text)
        match kind.family:
            case "binary" if text.type in (None, "binary"):
                return TextTest(op, term, _bytes(text, term))
            case "string" | "char" | "varchar" if _is_text(text):
                return TextTest(op, term, text.value)
        raise _incomparable(term, text)

    def _null_test(self, operand: Operand, whole: Predicate) -> Bound:
        if isinstance(operand, FilterLiteral):
            return ConstantCondition(operand.value is None)
        term = self._term(operand)
        if term is None:
            self._check_columns(whole)
            return OpaqueCondition(str(whole))
        return IsNull(term)

    def _term(self, operand: Operand) -> BoundTerm | None:
        match operand:
            case Column():
                return self._column(operand)
            case TransformedColumn():
                column = self._column(operand.column)
                result = result_type(operand.transform, column.source)
                return BoundTerm(
                    column.column_id, column.path, column.source, _compared_in(result), operand.transform
                )
            case _:
                return None

    def _column(self, column: Column) -> BoundTerm:
        path = column.path
        if len(path) == 1 and "." in path[0] and self._schema.get(path, self._case_sensitive) is None:
            path = tuple(path[0].split("."))
            if self._schema.get(path, self._case_sensitive) is None:
                path = column.path
        for length in range(1, len(path)):
            parent = self._schema.find(path[:length], self._case_sensitive)
            if not isinstance(parent.type, StructType):
                raise InvalidInput(
                    f"the filter names {dotted(path)}, but {dotted(path[:length])} is a {parent.type}: only fields of "
                    "structs can be compared"
                )
        field = self._schema.find(path, self._case_sensitive)
        compared_in = _compared_in(field.type) if isinstance(field.type, AtomicType) else None
        return BoundTerm(field.id, self._schema.path_of(field.id), field.type, compared_in)

    def _check_columns(self, operand: Operand) -> None:
        """Raise NoSuchColumn for an unknown column, also in a condition that is not understood."""
        match operand:
            case Column():
                self._column(operand)
            case TransformedColumn():
                self._column(operand.column)
            case Predicate():
                for argument in operand.args:
                    self._check_columns(argument)


def compared(op: str, term: BoundTerm, literal: FilterLiteral) -> Bound:
    """Return `term op literal` for one of = < <= > >= and a literal that is not NULL."""
    kind = _type_of(term)
    value = literal.value
    match None if kind is None else kind.family:
        case None | "variant":
            raise _incomparable(term, literal)
        case "boolean" if isinstance(value, bool):
            return CompareCondition(op, term, pa.scalar(value, pa.bool_()))
        case "string" | "char" | "varchar" if isinstance(value, str) and _is_text(literal):
            assert kind is not None
            text = value.rstrip(" ").ljust(kind.length) if _is_padded(term, kind, literal) else value
            return CompareCondition(op, term, pa.scalar(text, pa.string()))
        case "binary" if isinstance(value, str) and literal.type in (None, "binary"):
            return CompareCondition(op, term, pa.scalar(_bytes(literal, term), pa.binary()))
        case "boolean" | "string" | "char" | "varchar" | "binary":
            raise _incomparable(term, literal)
    assert kind is not None
    exact = exact_value(literal, kind)
    if exact is None:
        raise _incomparable(term, literal)
    if kind.family in ("float", "double"):
        return _float_compared(op, term, exact)
    if isinstance(exact, float):
        return KnownCondition(term, _beyond(op, above=not exact < 0))
    if literal.type in ("float", "double"):
        first, last = map(Fraction, of_double(exact, 10 ** (kind.scale if kind.family == "decimal" else 0)))
        if first < last and op == "=":
            return AndCondition(
                tuple(_compared_exactly(end, term, kind, at) for end, at in ((">=", first), ("<=", last)))
            )
        if first <= last:
            exact = first if op in ("<", ">=") else last
    return _compared_exactly(op, term, kind, exact)


def _plain_values(term: BoundTerm, literals: Sequence[FilterLiteral]) -> pa.Array | None:
    """Return the values of a list that a column can have; None if each has to be compared by itself.

    A join gives thousands of values at run time. They have the column's own type, or are whole numbers.
    """
    kind = _type_of(term)
    if kind is None or term.type is None or kind.family not in _PLAIN:
        return None
    classes, alike = _PLAIN[kind.family]
    values = [literal.value for literal in literals if literal.value is not None]
    families = {None if literal.type is None else literal.type.split("(")[0] for literal in literals}
    if not families <= alike or not {type(value) for value in values} <= classes:
        return None
    if kind.family not in _TEXTS:
        lowest, highest = range_of(kind)
        values = [value for value in values if lowest <= value <= highest]  # type: ignore[operator]
    return to_arrow(values, term.type)


def _compared_exactly(op: str, term: BoundTerm, kind: AtomicType, exact: Fraction) -> Bound:
    """Return a comparison of a column with a number in its unit, which may be a fraction or out of range."""
    lowest, highest = range_of(kind)
    if exact.denominator != 1:
        if op == "=":
            return KnownCondition(term, False)
        op, number = ("<=", math.floor(exact)) if op in ("<", "<=") else (">=", math.ceil(exact))
    else:
        number = exact.numerator
    if not lowest <= number <= highest:
        return KnownCondition(term, _beyond(op, above=number > highest))
    return CompareCondition(op, term, scalar_of(number, kind))


def is_nan(scalar: pa.Scalar) -> bool:
    return pa.types.is_floating(scalar.type) and math.isnan(scalar.as_py())


def _beyond(op: str, *, above: bool) -> bool:
    """Return `x op y` if y is above (or below) every x.

    NaN and Infinity are above all values of other types.
    """
    return op in (("<", "<=") if above else (">", ">="))


def _float_compared(op: str, term: BoundTerm, exact: Fraction | float) -> Bound:
    """Return a comparison of doubles.

    As in Spark, the literal becomes the nearest double, but never an infinity.
    """
    try:
        return CompareCondition(op, term, pa.scalar(float(exact), pa.float64()))
    except OverflowError:
        if op == "=":
            return KnownCondition(term, False)
        below = op in ("<", "<=")
        if exact > 0:
            return CompareCondition("<" if below else ">=", term, pa.scalar(math.inf))
        return CompareCondition("<=" if below else ">", term, pa.scalar(-math.inf))


def _type_of(term: BoundTerm) -> AtomicType | None:
    if not isinstance(term.source, AtomicType):
        return None
    return term.source if term.transform is None else result_type(term.transform, term.source)


def _compared_in(type: AtomicType) -> pa.DataType | None:
    arrow = value_type(type)
    return pa.float64() if arrow == pa.float32() else arrow


def _is_text(literal: FilterLiteral) -> bool:
    return literal.type is None or literal.type.split("(")[0] in ("string", "char", "varchar")


def _is_padded(term: BoundTerm, kind: AtomicType, literal: FilterLiteral) -> bool:
    """Return whether a text is compared as if it were as long as its column.

    Spark does so for a column of type CHAR, but neither for a field of a struct nor for a transform. Blanks
    behind a VARCHAR count. Spark's own texts come as such, because Spark has already padded them if it
    compares them so.
    """
    is_column = term.transform is None and len(term.path) == 1
    return kind.family == "char" and is_column and not (literal.type or "").startswith("varchar")


def _is_foreign(literal: FilterLiteral) -> bool:
    """Return whether lakelog does not compare a literal's type: a nested type, text with a collation, …"""
    return literal.type is not None and literal.type.split("(")[0] not in _COMPARED


def _bytes(literal: FilterLiteral, term: BoundTerm) -> bytes:
    try:
        return base64.b64decode(str(literal.value), validate=True)
    except ValueError:
        raise _incomparable(term, literal) from None


def _incomparable(term: BoundTerm, literal: FilterLiteral) -> InvalidInput:
    column = dotted(term.path) if term.transform is None else f"{term.transform} of {dotted(term.path)}"
    kind = f" of type {literal.type}" if literal.type else ""
    return InvalidInput(
        f"cannot compare the column {column}, which is a {_type_of(term) or term.source}, with {literal}{kind}: give a "
        "value of the column's type"
    )
