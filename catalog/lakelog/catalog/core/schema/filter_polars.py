"""Filters as expressions of Polars: read into a predicate that is true, false or NULL for the same rows.

An expression is read from the JSON that Polars makes of it. Polars itself converts literals to values. Rule:
an unknown part is refused by its name. So another version of Polars, which may write other JSON, can only
lead to a refusal. Polars is imported only if such an expression is given.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import pyarrow as pa

from lakelog.catalog.core.schema.filter_arrow import is_one_of, literal_of
from lakelog.catalog.core.schema.predicate import (
    Column,
    FilterLiteral,
    Operand,
    Predicate,
    condition_of,
    literal,
    too_deep,
)
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

_WHAT = "the Polars expression"
_COMPARISONS = {
    "Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=", "EqValidity": "<=>",
}  # fmt: skip
_CHAINS = {"And": "AND", "LogicalAnd": "AND", "Or": "OR", "LogicalOr": "OR"}
_TEXT_TESTS = {"StartsWith": "STARTS_WITH", "EndsWith": "ENDS_WITH"}
_BETWEEN = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def is_polars_expression(value: object) -> TypeGuard[pl.Expr]:
    """Return whether a value is an expression of Polars, without importing Polars."""
    return type(value).__name__ == "Expr" and type(value).__module__.split(".")[0] == "polars"


def from_polars_expression(expression: pl.Expr) -> Predicate:
    """Return the condition. Raises InvalidInput, which names the part, if predicates do not have a part."""
    try:
        return condition_of(_operand(json.loads(expression.meta.serialize(format="json"))), _WHAT)
    except RecursionError:
        raise too_deep() from None


def conjuncts(expression: pl.Expr) -> list[Predicate]:
    """Return conditions that are all true if the expression is true: its readable parts, joined by AND."""
    try:
        return list(_readable(json.loads(expression.meta.serialize(format="json"))))
    except RecursionError:
        return []


def _readable(node: Any) -> Sequence[Predicate]:
    match node:
        case {"BinaryExpr": {"left": left, "op": ("And" | "LogicalAnd"), "right": right}}:
            return [*_readable(left), *_readable(right)]
    try:
        return [condition_of(_operand(node), _WHAT)]
    except InvalidInput:
        return []


def _operand(node: Any) -> Operand:
    match node:
        case {"Column": str(name)}:
            return Column((name,))
        case {"Literal": _}:
            return literal_of(_values(node)[0])
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
            return _binary(op, _operand(left), _operand(right))
        case {"Function": {"input": [first, *others], "function": Mapping() as function}}:
            return _function(function, first, others)
        case {"Alias": [named, _]}:
            return _operand(named)
    _refuse(_name_of(node))


def _binary(op: str, left_operand: Operand, right: Operand) -> Predicate:
    if op in _CHAINS:
        return Predicate(_CHAINS[op], (condition_of(left_operand, _WHAT), condition_of(right, _WHAT)))
    if op in _COMPARISONS:
        return Predicate(_COMPARISONS[op], (left_operand, right))
    if op == "NotEqValidity":
        return Predicate("NOT", (Predicate("<=>", (left_operand, right)),))
    _refuse(op)


def _function(function: Mapping[str, Any], first: Any, others: Sequence[Any]) -> Operand:
    match function, others:
        case {"Boolean": "Not"}, []:
            return Predicate("NOT", (condition_of(_operand(first), _WHAT),))
        case {"Boolean": "IsNull"}, []:
            return Predicate("IS_NULL", (_column(first),))
        case {"Boolean": "IsNotNull"}, []:
            return Predicate("IS_NOT_NULL", (_column(first),))
        case {"Boolean": ("IsNan" | "IsNotNan") as test}, []:
            is_nan = Predicate("=", (_column(first), literal(float("nan"))))
            return is_nan if test == "IsNan" else Predicate("NOT", (is_nan,))
        case {"Boolean": {"IsIn": {"nulls_equal": bool(nulls_equal)}}}, [{"Literal": _} as list_node]:
            return is_one_of(
                _column(first), list(map(literal_of, _listed(list_node))), null_is_value=nulls_equal
            )
        case {"Boolean": {"IsBetween": {"closed": str(closed)}}}, [low, high] if closed in _BETWEEN:
            column, (lower, upper) = _operand(first), _BETWEEN[closed]
            ends = Predicate(lower, (column, _operand(low))), Predicate(upper, (column, _operand(high)))
            return Predicate("AND", ends)
        case {"StringExpr": {"Contains": {"literal": True}}}, [text]:
            return Predicate("CONTAINS", (_column(first), _text(text)))
        case {"StringExpr": ("StartsWith" | "EndsWith") as test}, [text]:
            return Predicate(_TEXT_TESTS[test], (_column(first), _text(text)))
        case {"StructExpr": {"FieldByName": str(name)}}, []:
            return Column((*_column(first).path, name))
    _refuse(_name_of(function))


def _column(node: Any) -> Column:
    operand = _operand(node)
    if isinstance(operand, Column):
        return operand
    raise InvalidInput(f"the Polars expression tests {operand}, which lakelog cannot do: test a column")


def _text(node: Any) -> FilterLiteral:
    operand = _operand(node)
    if isinstance(operand, FilterLiteral) and (operand.value is None or operand.type == "string"):
        return operand
    raise InvalidInput(
        f"the Polars expression searches a text for {operand}, which lakelog cannot do: search for a text"
    )


def _values(node: Any) -> pa.Array:
    """Return the values of a literal. Only Polars knows the form of its JSON."""
    import polars as pl

    try:
        literal = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        values = pl.select(literal).to_series().to_arrow()
    except (pl.exceptions.PolarsError, pa.ArrowException):
        # In JSON, NaN and the infinities are null, which Polars refuses to read.
        raise InvalidInput(
            "the Polars expression has a value that its JSON cannot hold, such as NaN: use is_nan, or write the "
            "filter as text"
        ) from None
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _listed(node: Any) -> pa.Array:
    """Return the values of the literal that a column is looked up in: a list or a series."""
    values = _values(node)
    return values[0].values if "Series" not in node["Literal"] else values


def _name_of(node: Any) -> str:
    """Return the name of a part of an expression for messages: the names that lead to it."""
    names = []
    while isinstance(node, Mapping) and len(node) == 1:
        ((name, node),) = node.items()
        names.append(str(name))
        if name in ("Literal", "Cast"):
            break
    return " ".join([*names, node] if isinstance(node, str) else names) or "an unknown part"


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(
        f"the Polars expression has {what}, which lakelog cannot do: use comparisons of columns with values, &, |, ~, "
        "is_null, is_nan, is_in, is_between, str.starts_with, str.ends_with and str.contains with literal=True, or "
        "filter the result instead"
    )
