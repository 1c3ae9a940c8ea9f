"""Row filters that are not bound to a schema: a tree, its JSON form, and its form in Python.

The JSON is that of Spark's V2 predicates: `{"op": "=", "args": [{"col": ["a", "b"]}, {"lit": 5, "type":
"integer"}]}`. `{"transform": "bucket", "args": [16, {"col": ["a"]}]}` may replace a column. An unknown
operation keeps its name. It may match anything when a scan is planned, and is refused when rows are read or
deleted.

In Python: `(col("a") > 5) & col("b").is_in(["x", "y"])`. `filters` has the other forms that users may give.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

import msgspec

from lakelog.catalog.core.schema.expression import Expression
from lakelog.catalog.core.schema.literals import float_to_json
from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.schema.types import Scalar
from lakelog.catalog.names import check_list
from lakelog.log.errors import InvalidInput, LakelogError

COMPARISONS = ("=", "<=>", "<>", "<", "<=", ">", ">=")
TEXT_TESTS = ("STARTS_WITH", "ENDS_WITH", "CONTAINS")
NULL_TESTS = ("IS_NULL", "IS_NOT_NULL")
DEPTH_LIMIT = 200
_DEPTH_KEPT = DEPTH_LIMIT + 8
"""A condition is cut at the depth limit, and a few levels are put around it."""
_CONDITIONS_LIMIT = 10_000
TOO_DEEP = f"nested deeper than the limit of {DEPTH_LIMIT} levels"


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its path: its name, and the names of nested fields in it."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class TransformedColumn:
    """A partition transform of a column, which a filter compares with a literal."""

    transform: Transform
    column: Column

    def __str__(self) -> str:
        argument = "" if self.transform.argument is None else f"{self.transform.argument}, "
        return f"{self.transform.name}({argument}{self.column})"


@dataclass(frozen=True, slots=True)
class FilterLiteral:
    """A value in its JSON form, and its Spark type. Without a type, it has the column's."""

    value: Scalar
    type: str | None = None

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True, slots=True)
class OpaqueExpression:
    """An expression of Spark that lakelog does not know."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Predicate:
    """An operation on operands, in the form of the log and of users' filters: a comparison, AND, OR, NOT,
    IS_NULL …"""

    op: str
    args: tuple[Operand, ...] = ()

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate("AND", (self, _predicate(other, "&")))

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate("OR", (self, _predicate(other, "|")))

    def __invert__(self) -> Predicate:
        return Predicate("NOT", (self,))

    def __bool__(self) -> NoReturn:
        raise InvalidInput("a filter is not a bool: combine filters with &, | and ~, each in parentheses")

    def __str__(self) -> str:
        try:
            return of_limited_depth(self)._text()
        except InvalidInput:
            return f"a condition {TOO_DEEP}, or of too many conditions"

    def _text(self) -> str:
        # Each level takes a single Python frame, so a condition at the limit can be shown from any caller.
        texts = [arg._text() if isinstance(arg, Predicate) else str(arg) for arg in self.args]
        match self.op, texts:
            case (("AND" | "OR"), _):
                return "(" + f" {self.op} ".join(texts) + ")"
            case "IN", [column, *values]:
                return f"{column} IN ({', '.join(values)})"
            case "NOT", [operand]:
                return f"NOT {operand}"
            case op, [left, right] if op in COMPARISONS:
                return f"{left} {op} {right}"
            case op, [operand] if op in NULL_TESTS:
                return f"{operand} {op.replace('_', ' ')}"
            case op, []:
                return op
            case op, _:
                return f"{op}({', '.join(texts)})"
        raise AssertionError("every predicate has a text")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form. Raises InvalidInput if it is nested too deeply."""
        return _to_json(of_limited_depth(self))

    @staticmethod
    def from_json(data: str | Mapping[str, Any] | Expression) -> Predicate:
        """Read the JSON form. Unknown operations are kept unchanged. Raises InvalidInput if it is
        malformed."""
        if isinstance(data, Expression):
            data = msgspec.to_builtins(data)
        try:
            data_json = json.loads(data) if isinstance(data, str) else data
        except RecursionError:
            raise too_deep() from None
        operand = _from_json(data_json, 0)
        return _predicate(operand, "a filter")


Operand: TypeAlias = Column | TransformedColumn | FilterLiteral | OpaqueExpression | Predicate

ALWAYS_TRUE = Predicate("ALWAYS_TRUE")
ALWAYS_FALSE = Predicate("ALWAYS_FALSE")


class Reference:
    """A column in a filter written in Python. A comparison with it makes a `Predicate`."""

    __slots__ = ("_column",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, column: Column) -> None:
        self._column = column

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Predicate:
        return self._compare(">=", other)

    def null_safe_equals(self, other: Any) -> Predicate:
        """SQL's `<=>`: NULL equals NULL."""
        return self._compare("<=>", other)

    def is_in(self, values: Iterable[Any]) -> Predicate:
        check_list(values, "values")
        return Predicate("IN", (self._column, *(literal(value) for value in values)))

    def is_null(self) -> Predicate:
        return Predicate("IS_NULL", (self._column,))

    def is_not_null(self) -> Predicate:
        return Predicate("IS_NOT_NULL", (self._column,))

    def starts_with(self, text: str) -> Predicate:
        return Predicate("STARTS_WITH", (self._column, literal(text)))

    def ends_with(self, text: str) -> Predicate:
        return Predicate("ENDS_WITH", (self._column, literal(text)))

    def contains(self, text: str) -> Predicate:
        return Predicate("CONTAINS", (self._column, literal(text)))

    def _compare(self, op: str, other: object) -> Predicate:
        return Predicate(
            op, (self._column, other._column if isinstance(other, Reference) else literal(other))
        )


def col(*path: str) -> Reference:
    """Return a column for comparisons: `col("a") > 5`. `col("a", "b")` or `col("a.b")` is the field b of a
    struct a."""
    if not path or not all(isinstance(part, str) for part in path):
        raise InvalidInput(
            f"col{path!r} is not a column: give its name, for a nested one the names that lead to it"
        )
    return Reference(Column(path))


def condition_of(operand: Operand, whole: str) -> Predicate:
    """Return an operand as a condition. A boolean column or a constant is a condition, too."""
    match operand:
        case Predicate():
            return operand
        case Column():
            return Predicate("=", (operand, literal(True)))
        case FilterLiteral(value=bool() as value):
            return ALWAYS_TRUE if value else ALWAYS_FALSE
        case FilterLiteral(value=None):
            return Predicate("AND", (operand,))
    raise InvalidInput(f"{whole} has {operand} in place of a condition: compare it with a column")


def of_limited_depth(predicate: Predicate) -> Predicate:
    """Return the condition, flattened if it is too deep. Raises InvalidInput if the flattened form is still
    too deep."""
    return _flattened(predicate) if _is_too_deep(predicate) else predicate


def _is_too_deep(predicate: Predicate) -> bool:
    level: list[Predicate] = [predicate]
    for _ in range(_DEPTH_KEPT):
        level = [arg for parent in level for arg in parent.args if isinstance(arg, Predicate)]
        if not level:
            return False
    return True


def _flattened(predicate: Predicate, depth: int = 0) -> Predicate:
    """Return the same condition with each chain of AND, and of OR, in one level. Python nests each `&` and
    `|` in the next.

    Raises InvalidInput if the result is nested too deeply or has too many conditions.
    """
    if depth > _DEPTH_KEPT:
        raise too_deep()
    operands: list[Operand] = []
    stack: list[Operand] = list(reversed(predicate.args))
    is_chain = predicate.op in ("AND", "OR")
    while stack:
        operand = stack.pop()
        if is_chain and isinstance(operand, Predicate) and operand.op == predicate.op:
            stack += reversed(operand.args)
        else:
            operands.append(_flattened(operand, depth + 1) if isinstance(operand, Predicate) else operand)
    if is_chain and len(operands) > _CONDITIONS_LIMIT:
        raise InvalidInput(
            f"a filter has {len(operands):,} conditions, and the limit is {_CONDITIONS_LIMIT:,}: compare one column "
            "with many values by is_in"
        )
    return Predicate(predicate.op, tuple(operands))


def too_deep() -> InvalidInput:
    return InvalidInput(
        f"a filter is {TOO_DEEP}: compare one column with many values by is_in, and write many conditions as a list of "
        "lists of tuples, of which one has to hold"
    )


def paths_in(predicate: Predicate) -> list[tuple[str, ...]]:
    """Return the columns, and fields of columns, that a condition names."""
    paths: list[tuple[str, ...]] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            paths += paths_in(part)
        elif isinstance(part, Column):
            paths.append(tuple(part.path))
        elif isinstance(part, TransformedColumn):
            paths.append(tuple(part.column.path))
    return paths


def literal(value: Any) -> FilterLiteral:
    """Return a Python value as a literal. Raises InvalidInput if its type has no literals."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    elif hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    match value:
        case None:
            return FilterLiteral(None)
        case bool():
            return FilterLiteral(value, "boolean")
        case int():
            return FilterLiteral(value, "long")
        case float():
            return FilterLiteral(float_to_json(value), "double")
        case str():
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise InvalidInput(
                    f"cannot compare a column with {value[:40]!r}, which has half a surrogate pair: remove it"
                )
            return FilterLiteral(value, "string")
        case bytes():
            return FilterLiteral(base64.b64encode(value).decode("ascii"), "binary")
        case Decimal() if value.is_finite():
            return FilterLiteral(format(value, "f"), "decimal")
        case dt.datetime():
            epoch = dt.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else dt.UTC)
            kind = "timestamp_ntz" if value.tzinfo is None else "timestamp"
            return FilterLiteral((value - epoch) // dt.timedelta(microseconds=1), kind)
        case dt.date():
            return FilterLiteral(value.toordinal() - dt.date(1970, 1, 1).toordinal(), "date")
        case dt.time() if value.tzinfo is None:
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return FilterLiteral(seconds * 1_000_000 + value.microsecond, "time")
        case dt.timedelta():
            return FilterLiteral(value // dt.timedelta(microseconds=1), "interval day to second")
    raise InvalidInput(f"cannot compare a column with {value!r} of type {type(value).__name__}")


def _predicate(operand: object, where: str) -> Predicate:
    if isinstance(operand, Predicate):
        return operand
    raise InvalidInput(
        f"{where} needs a condition, not {operand!r}: put comparisons in parentheses, (col('a') > 5) & …"
    )


def _to_json(operand: Operand) -> dict[str, Any]:
    match operand:
        case Predicate():
            return {"op": operand.op, "args": [_to_json(arg) for arg in operand.args]}
        case Column():
            return {"col": list(operand.path)}
        case FilterLiteral():
            return {"lit": operand.value} | ({} if operand.type is None else {"type": operand.type})
        case TransformedColumn():
            argument = [] if operand.transform.argument is None else [operand.transform.argument]
            return {"transform": operand.transform.name, "args": [*argument, _to_json(operand.column)]}
        case OpaqueExpression():
            return {"opaque": operand.text}


def _from_json(data: Any, depth: int) -> Operand:
    if depth > DEPTH_LIMIT:
        # It is not evaluated. A scan reads all that it might match, and a delete refuses it.
        return Predicate(f"what is {TOO_DEEP}")
    match data:
        case {"op": str(op), **members}:
            args = members.get("args", [])
            if not isinstance(args, list | tuple):
                raise InvalidInput(f"the filter's operation {op} has no list of arguments: {data!r}")
            return Predicate(op, tuple(_from_json(arg, depth + 1) for arg in args))
        case {"col": [*path]} if path and all(isinstance(part, str) for part in path):
            return Column(tuple(path))
        case {"lit": (bool() | int() | float() | str() | None) as value, **members}:
            kind = members.get("type")
            return FilterLiteral(value, None if kind is None else str(kind))
        case {"transform": str(name), "args": [*args]}:
            return _transformed(name, args, depth)
        case {**members}:
            return OpaqueExpression(json.dumps(members, sort_keys=True))
    raise InvalidInput(f"{data!r} is not a part of a filter")


def _transformed(name: str, args: Sequence[Any], depth: int) -> Operand:
    """Read a transform of a single column. Numbers may be bare or literals. Unknown transforms stay opaque."""
    columns = [arg for arg in args if isinstance(arg, Mapping) and "col" in arg]
    numbers = [
        arg["lit"] if isinstance(arg, Mapping) and "lit" in arg else arg for arg in args if arg not in columns
    ]
    column = _from_json(columns[0], depth + 1) if len(columns) == 1 else None
    if isinstance(column, Column) and all(type(number) is int for number in numbers) and len(numbers) <= 1:
        try:
            transform = Transform.parse(name if not numbers else f"{name}[{numbers[0]}]")
            return TransformedColumn(transform, column)
        except LakelogError:
            pass
    return OpaqueExpression(f"{name}({json.dumps(list(args))})")
