"""Predicates in the other forms that a filter may have: SQL text, expressions of pyarrow and of Polars."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from tests.property.catalog.filter_model import TYPES

from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Operand, Predicate, TransformedColumn

_EPOCH = dt.datetime(1970, 1, 1)
_COMPARED = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class NotSaid(Exception):
    """The form has no words for a predicate."""


_LIKE = {"STARTS_WITH": "{}%", "ENDS_WITH": "%{}", "CONTAINS": "%{}%"}


@dataclass(frozen=True)
class _Dialect:
    """What SQL of one engine has for itself; `texts` are the types of literals that LIKE may have."""

    name: str
    equal: str
    literal: Callable[[FilterLiteral], str]
    quoted: Callable[[str], str]
    texts: tuple[str | None, ...]


def text_of(operand: Operand) -> str:
    """Return a condition as SQL."""
    return _in_words(operand, _SPARK)


def duckdb_of(operand: Operand) -> str:
    """Return a condition as DuckDB's SQL."""
    return _in_words(operand, _DUCKDB)


def _in_words(operand: Operand, dialect: _Dialect) -> str:
    def of(part: Operand) -> str:
        return _in_words(part, dialect)

    match operand:
        case Column():
            return ".".join(f"{dialect.name}{part}{dialect.name}" for part in operand.path)
        case FilterLiteral():
            return dialect.literal(operand)
        case Predicate(op="NOT", args=(part,)):
            return f"NOT ({of(part)})"
        case Predicate(op=("AND" | "OR") as op, args=parts):
            return f" {op} ".join(f"({of(part)})" for part in parts)
        case Predicate(op="IN", args=(Column() as column, first, *others)):
            return f"{of(column)} IN ({', '.join(map(of, (first, *others)))})"
        case Predicate(op=("IS_NULL" | "IS_NOT_NULL") as op, args=(Column() as column,)):
            return f"{of(column)} {op.replace('_', ' ')}"
        case Predicate(op=op, args=(Column() as column, FilterLiteral() as text)) if (
            op in _LIKE and text.type in dialect.texts
        ):
            return f"{of(column)} LIKE {_pattern(op, text, dialect)}"
        case Predicate(op=op, args=(left, right)) if op in (*_COMPARED, "<=>"):
            if not isinstance(left, TransformedColumn) and not isinstance(right, TransformedColumn):
                return f"{of(left)} {dialect.equal if op == '<=>' else op} {of(right)}"
    raise NotSaid(operand)


def _pattern(op: str, text: FilterLiteral, dialect: _Dialect) -> str:
    if text.value is None:
        return "NULL"
    escaped_text = "".join(
        "!" + each_text if each_text in "!%_" else each_text for each_text in str(text.value)
    )
    return f"{dialect.quoted(_LIKE[op].format(escaped_text))} ESCAPE '!'"


def _quoted_text(text: str) -> str:
    return _duckdb_quoted(text.replace("\\", "\\\\"))


def _duckdb_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _text_of_literal(literal: FilterLiteral) -> str:
    value: Any = python_value(literal)
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() if len(str(abs(value))) <= 38:
            return str(value)
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case float():
            return f"CAST('{literal.value}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}BD"
        case str():
            return _quoted_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind}'{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE'{value}'"
    raise NotSaid(literal)


def _duckdb_of_literal(literal: FilterLiteral) -> str:
    value: Any = python_value(literal)
    match value:
        case str():
            return _duckdb_quoted(value)
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case float():
            return f"'{value!r}'::DOUBLE"
        case Decimal():
            return f"{value:f}"
        case dt.datetime() if value.tzinfo is not None:
            return f"TIMESTAMPTZ'{value.isoformat(' ')}'"
        case dt.datetime():
            return f"TIMESTAMP'{value.isoformat(' ')}'"
    return _text_of_literal(literal)


_SPARK = _Dialect("`", "<=>", _text_of_literal, _quoted_text, ("string", None))
_DUCKDB = _Dialect('"', "IS NOT DISTINCT FROM", _duckdb_of_literal, _duckdb_quoted, ("string",))


def arrow_of(operand: Operand) -> Any:
    """Return a condition as an expression of pyarrow."""
    match operand:
        case Column():
            return pc.field(*operand.path)
        case FilterLiteral():
            return pc.scalar(arrow_value(operand))
        case Predicate(op="NOT", args=(part,)):
            return ~arrow_of(part)
        case Predicate(op=("AND" | "OR") as op, args=parts):
            return functools.reduce(operator.and_ if op == "AND" else operator.or_, map(arrow_of, parts))
        case Predicate(op="IN", args=(Column() as column, *values)) if values:
            if TYPES.get(column.path[-1]) == "date" and any(
                isinstance(value, FilterLiteral) and value.type == "timestamp_ntz" for value in values
            ):
                raise NotSaid(operand)  # Arrow cuts moments to days there
            return arrow_of(column).isin(_arrow_values(values))
        case Predicate(op="IS_NULL", args=(Column() as column,)):
            return arrow_of(column).is_null()
        case Predicate(op="IS_NOT_NULL", args=(Column() as column,)):
            return arrow_of(column).is_valid()
        case Predicate(op="STARTS_WITH", args=(Column() as column, FilterLiteral(value=str()) as text)):
            return pc.starts_with(arrow_of(column), python_value(text))
        case Predicate(op="ENDS_WITH", args=(Column() as column, FilterLiteral(value=str()) as text)):
            return pc.ends_with(arrow_of(column), python_value(text))
        case Predicate(op="CONTAINS", args=(Column() as column, FilterLiteral(value=str()) as text)):
            return pc.match_substring(arrow_of(column), python_value(text))
        case Predicate(op=op, args=(left, right)) if op in _COMPARED:
            if not isinstance(left, TransformedColumn) and not isinstance(right, TransformedColumn):
                return _COMPARED[op](arrow_of(left), arrow_of(right))
    raise NotSaid(operand)


def polars_of(operand: Operand) -> pl.Expr:
    """Return a condition as an expression of Polars."""
    match operand:
        case Column():
            first, *other_texts = operand.path
            return functools.reduce(lambda found, name: found.struct.field(name), other_texts, pl.col(first))
        case FilterLiteral():
            return pl.lit(python_value(operand))
        case Predicate(op="NOT", args=(part,)):
            return ~polars_of(part)
        case Predicate(op=("AND" | "OR") as op, args=parts):
            return functools.reduce(operator.and_ if op == "AND" else operator.or_, map(polars_of, parts))
        case Predicate(op="IN", args=(Column() as column, *values)):
            return polars_of(column).is_in(list(map(python_value, values)))  # type: ignore[arg-type]
        case Predicate(op="IS_NULL", args=(Column() as column,)):
            return polars_of(column).is_null()
        case Predicate(op="IS_NOT_NULL", args=(Column() as column,)):
            return polars_of(column).is_not_null()
        case Predicate(op="STARTS_WITH", args=(Column() as column, FilterLiteral(type="string") as text)):
            return polars_of(column).str.starts_with(str(text.value))
        case Predicate(op="ENDS_WITH", args=(Column() as column, FilterLiteral(type="string") as text)):
            return polars_of(column).str.ends_with(str(text.value))
        case Predicate(op="CONTAINS", args=(Column() as column, FilterLiteral(type="string") as text)):
            return polars_of(column).str.contains(str(text.value), literal=True)
        case Predicate(op="<=>", args=(left, right)):
            return polars_of(left).eq_missing(polars_of(right))
        case Predicate(op=op, args=(left, right)) if op in _COMPARED:
            if not isinstance(left, TransformedColumn) and not isinstance(right, TransformedColumn):
                found: pl.Expr = _COMPARED[op](polars_of(left), polars_of(right))
                return found
    raise NotSaid(operand)


def _arrow_values(literals: Sequence[Any]) -> pa.Array:
    if any(type(literal.value) in (int, float) and literal.value == 0 for literal in literals):
        raise NotSaid("Arrow looks up the two zeros apart, and SQL has one")
    try:
        return pa.array(list(map(python_value, literals)))
    except (OverflowError, pa.ArrowException):
        raise NotSaid(literals) from None


def arrow_value(literal: FilterLiteral) -> pa.Scalar:
    try:
        return pa.scalar(python_value(literal))
    except (OverflowError, pa.ArrowException):
        raise NotSaid(literal) from None


def python_value(literal: FilterLiteral) -> Any:
    """Return the value of a literal as a user writes it in Python."""
    value: Any = literal.value
    match literal.type:
        case "double" if isinstance(value, str):
            return float(value.replace("Infinity", "inf"))
        case "decimal":
            return Decimal(value)
        case "binary":
            return base64.b64decode(value)
        case "date":
            return dt.date.fromordinal(value + _EPOCH.toordinal())
        case "timestamp":
            return _EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=value)
        case "timestamp_ntz":
            return _EPOCH + dt.timedelta(microseconds=value)
    return value
