"""Filters as text: the part of Spark's SQL that predicates can express, read into a predicate.

It has comparisons of columns with literals, AND, OR, NOT, IN, BETWEEN, IS [NOT] NULL, TRUE or DISTINCT FROM,
and LIKE with `%` at the ends. Rule: the meaning is Spark's, of the text as it stands. A condition that
predicates cannot express is refused by its name. It must not know a schema, because names and types are
checked when the predicate is bound to a schema.

The grammar is a small one of our own. Parsers of whole SQL dialects do not keep a literal's text (`'it''s'`
and `'it' 's'` become the same tree), which decides what Spark reads. See docs/design/filters.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

from lakelog.catalog.core.schema.filter_tokens import FilterToken, FilterTokens
from lakelog.catalog.core.schema.literals import float_to_json
from lakelog.catalog.core.schema.predicate import (
    Column,
    FilterLiteral,
    Operand,
    Predicate,
    condition_of,
    literal,
    too_deep,
)
from lakelog.catalog.core.schema.sql_literals import binary_value, interval_value, typed_value, unquoted
from lakelog.log.errors import InvalidInput

_COMPARISONS = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_CONNECTIVES = frozenset(
    ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "ESCAPE")
)
_TYPED = frozenset(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"))
_INTEGERS = {"Y": ("TINYINT", 8), "S": ("SMALLINT", 16), "L": ("BIGINT", 64)}
_FLOAT_MAX = float.fromhex("0x1.fffffep+127")
_FLOATS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
_DIGITS_LIMIT = 38


def parse_filter(text: str) -> Predicate:
    """Return the predicate of a condition in Spark's SQL. Raises InvalidInput, which quotes the wrong or
    unsupported part."""
    try:
        return _Parser(text).whole()
    except RecursionError:
        raise too_deep() from None


class _Parser:
    """Recursive descent: OR, AND, NOT, then a test of a value, as in Spark's grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = FilterTokens(text)

    def whole(self) -> Predicate:
        if self._tokens.now.kind == "end":
            raise InvalidInput(
                'the filter has no text: write a condition such as "id > 1", or leave the filter out'
            )
        predicate = self._condition(self._or())
        if self._tokens.now.kind != "end":
            self._tokens.unexpected("the end, AND or OR")
        return predicate

    # Conditions

    def _or(self) -> Operand:
        return self._chain("OR", self._and)

    def _and(self) -> Operand:
        return self._chain("AND", self._not)

    def _chain(self, op: str, part: Callable[[], Operand]) -> Operand:
        parts = [part()]
        while self._tokens.took(op):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Predicate(op, tuple(map(self._condition, parts)))

    def _not(self) -> Operand:
        if self._tokens.took("NOT") or self._tokens.took("!"):
            return Predicate("NOT", (self._condition(self._not()),))
        return self._test()

    def _condition(self, operand: Operand) -> Predicate:
        return condition_of(operand, self._tokens.where)

    def _test(self) -> Operand:
        start = self._tokens.now
        left = self._value()
        if self._tokens.now.text in _COMPARISONS and self._tokens.now.kind == "sign":
            op = _COMPARISONS[self._tokens.next().text]
            return self._single(self._compared(op, left, self._value(), start))
        if self._tokens.took("IS"):
            return self._single(self._is(left, start))
        negates = self._tokens.took("NOT")
        if self._tokens.took("IN"):
            predicate = self._in(left, start)
        elif self._tokens.took("BETWEEN"):
            low = _with_blanks(self._value())
            if not self._tokens.took("AND"):
                self._tokens.unexpected("AND, and the upper end of BETWEEN")
            high = _with_blanks(self._value())
            predicate = Predicate(
                "AND", (self._compared(">=", left, low, start), self._compared("<=", left, high, start))
            )
        elif self._tokens.took("LIKE"):
            predicate = self._like(left, start)
        elif negates:
            self._tokens.unexpected("IN, BETWEEN or LIKE")
        else:
            return left
        return self._single(Predicate("NOT", (predicate,)) if negates else predicate)

    def _single(self, predicate: Predicate) -> Predicate:
        token = self._tokens.now
        if (
            token.text in _COMPARISONS
            and token.kind == "sign"
            or token.word in ("IS", "IN", "BETWEEN", "LIKE")
        ):
            self._tokens.refuse(token, "tests the result of a test", "combine tests by AND, OR and NOT")
        return predicate

    def _compared(self, op: str, left_operand: Operand, right: Operand, start: FilterToken) -> Predicate:
        for side in (left_operand, right):
            if isinstance(side, Predicate):
                self._tokens.refuse(
                    start, f"compares a condition by {op}", "combine conditions by AND, OR and NOT"
                )
        if isinstance(left_operand, FilterLiteral) and isinstance(right, FilterLiteral):
            self._tokens.refuse(
                start, "compares two literals", "compare a column with a literal, or write true for all rows"
            )
        return Predicate(op, (left_operand, right))

    def _is(self, left_operand: Operand, start: FilterToken) -> Predicate:
        if isinstance(left_operand, Predicate):
            self._tokens.refuse(start, "tests a condition by IS", "test a column")
        negates, token = self._tokens.took("NOT"), self._tokens.next()
        match token.word:
            case "NULL":
                return Predicate("IS_NOT_NULL" if negates else "IS_NULL", (left_operand,))
            case "UNKNOWN":
                predicate = Predicate("IS_NULL", (self._column(left_operand, start),))
            case "TRUE" | "FALSE" as truth:
                predicate = Predicate("<=>", (self._column(left_operand, start), literal(truth == "TRUE")))
            case "DISTINCT" if self._tokens.took("FROM"):
                predicate, negates = (
                    self._compared("<=>", left_operand, self._value(), start),
                    not negates,
                )
            case _:
                self._tokens.unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", token)
        return Predicate("NOT", (predicate,)) if negates else predicate

    def _in(self, left_operand: Operand, start: FilterToken) -> Predicate:
        column = self._column(left_operand, start)
        if not self._tokens.took("("):
            self._tokens.unexpected("(, and the values of IN")
        values: list[FilterLiteral] = []
        while not values or self._tokens.took(","):
            token = self._tokens.now
            value = self._value()
            if not isinstance(value, FilterLiteral):
                self._tokens.refuse(
                    token, "has IN with something other than literals", "list literals, or write OR"
                )
            values.append(value)
        if not self._tokens.took(")"):
            self._tokens.unexpected("a comma or )")
        return Predicate("IN", (column, *values))

    def _like(self, left_operand: Operand, start: FilterToken) -> Predicate:
        column, token = self._column(left_operand, start), self._tokens.now
        pattern = self._value()
        escape = "\\"
        if self._tokens.took("ESCAPE"):
            escape_literal = self._value()
            if (
                not isinstance(escape_literal, FilterLiteral)
                or not isinstance(escape_literal.value, str)
                or len(escape_literal.value) != 1
            ):
                self._tokens.refuse(
                    token, "has an ESCAPE that is not one character", "write one such as ESCAPE '!'"
                )
            escape = escape_literal.value
        if not isinstance(pattern, FilterLiteral) or not (pattern.value is None or pattern.type == "string"):
            self._tokens.refuse(
                token, "has LIKE with something other than a text", "write the pattern as a literal"
            )
        if not isinstance(pattern.value, str):
            return Predicate("=", (column, FilterLiteral(None)))
        parts = self._pattern(pattern.value, escape, token)
        match parts:
            case [whole]:
                return Predicate("=", (column, _with_blanks(literal(whole))))
            case [text, ""]:
                return Predicate("STARTS_WITH", (column, literal(text)))
            case ["", text]:
                return Predicate("ENDS_WITH", (column, literal(text)))
            case ["", text, ""]:
                return Predicate("CONTAINS", (column, literal(text)))
        self._tokens.refuse(token, "has LIKE with % between other characters", "write % at the ends only")

    def _pattern(self, pattern: str, escape: str, token: FilterToken) -> list[str]:
        """Return the strings between the `%` of a pattern. Raises InvalidInput for `_` and for escapes of
        other characters."""
        parts, characters = [""], iter(pattern)
        for character in characters:
            if character == escape:
                escaped_character = next(characters, "")
                if escaped_character not in ("%", "_", escape) or not escaped_character:
                    self._tokens.refuse(
                        token, f"has a LIKE that escapes {escaped_character!r}", f"double the {escape}"
                    )
                parts[-1] += escaped_character
            elif character == "_":
                self._tokens.refuse(
                    token, "has LIKE with _ for any character", f"write {escape}_ for the character itself"
                )
            elif character != "%":
                parts[-1] += character
            elif len(parts) == 1 or parts[-1]:
                parts.append("")
        return parts

    def _column(self, operand: Operand, start: FilterToken) -> Column:
        if isinstance(operand, Column):
            return operand
        self._tokens.refuse(start, "tests something other than a column", "begin the test with a column")

    # Values

    def _value(self) -> Operand:
        token = self._tokens.next()
        match token.kind:
            case "quoted":
                return self._name(token)
            case "string":
                if self._tokens.now.kind == "string":
                    self._tokens.refuse(self._tokens.now, "has two texts in a row", "write them as one")
                return literal(unquoted(token.text))
            case "hex":
                return literal(binary_value(token.text[2:-1]))
            case "number":
                return self._number(token.text, token)
            case "word":
                return self._worded(token)
        match token.text:
            case "(":
                operand = self._or()
                if self._tokens.now.text == ",":
                    self._tokens.refuse(
                        self._tokens.now, "has several values in parentheses", "compare each column by itself"
                    )
                if not self._tokens.took(")"):
                    self._tokens.unexpected(")")
                return operand
            case "-" | "+" if self._tokens.now.kind == "number":
                return self._number(("-" if token.text == "-" else "") + self._tokens.next().text, token)
        self._tokens.unexpected("a column or a literal", token)

    def _worded(self, token: FilterToken) -> Operand:
        word, next_token = token.word, self._tokens.now
        if word in ("NULL", "TRUE", "FALSE"):
            return literal({"NULL": None, "TRUE": True, "FALSE": False}[word])
        if word in _TYPED and next_token.kind == "string":
            text = unquoted(self._tokens.next().text).strip()
            return literal(typed_value(word.lower(), text, f"the literal {self._tokens.text_since(token)!r}"))
        if word == "INTERVAL" and (next_token.kind == "string" or next_token.text in ("-", "+")):
            return self._interval(token)
        if word in ("CAST", "TRY_CAST") and next_token.text == "(":
            return self._cast(token)
        if next_token.text == "(" and word not in _CONNECTIVES:
            self._tokens.refuse(
                token, f"calls the function {token.text}", "compare a column itself with a literal"
            )
        if word in _CONNECTIVES or word in ("CASE", "EXISTS", "SELECT"):
            self._tokens.unexpected(
                "a column or a literal; a column of that name stands in backquotes", token
            )
        return self._name(token)

    def _name(self, token: FilterToken) -> Column:
        path = [token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text]
        while self._tokens.took("."):
            part = self._tokens.next()
            if part.kind not in ("word", "quoted"):
                self._tokens.unexpected("the name of a field", part)
            path.append(part.text[1:-1].replace("``", "`") if part.kind == "quoted" else part.text)
        return Column(tuple(path))

    def _number(self, text: str, token: FilterToken) -> FilterLiteral:
        digits, suffix = re.fullmatch(r"(.*?)(bd|[yslf]|d)?", text, re.I | re.S).groups()  # type: ignore[union-attr]
        suffix = (suffix or "").upper()
        if suffix in ("D", "F") or not suffix and "e" in digits.lower():
            value = float(digits)
            if math.isinf(value) or suffix == "F" and abs(value) > _FLOAT_MAX:
                self._tokens.refuse(
                    token, f"has {text}, which is beyond the type", "write CAST('Infinity' AS DOUBLE)"
                )
            return FilterLiteral(value, "float" if suffix == "F" else "double")
        exact = Decimal(digits)
        if suffix in _INTEGERS:
            name, bits = _INTEGERS[suffix]
            if exact != int(exact) or not -(2 ** (bits - 1)) <= exact < 2 ** (bits - 1):
                self._tokens.refuse(token, f"has {text}, which is not a {name}", "leave the suffix out")
            return literal(int(exact))
        if not suffix and digits.lstrip("+-").isdigit() and -(2**63) <= exact < 2**63:
            return literal(int(exact))
        digits_count, exponent = len(exact.as_tuple().digits), int(exact.as_tuple().exponent)
        if max(digits_count + max(0, exponent), -exponent) > _DIGITS_LIMIT:
            self._tokens.refuse(
                token, f"has {text}, which has more than {_DIGITS_LIMIT} digits", "write fewer"
            )
        return literal(exact)

    def _interval(self, token: FilterToken) -> FilterLiteral:
        while self._tokens.now.kind == "string" or self._tokens.now.text in ("-", "+"):
            self._tokens.next()
        if self._tokens.next().kind == "word" and self._tokens.took("TO"):
            self._tokens.next()
        text = self._tokens.text_since(token)
        return literal(interval_value(text, f"the literal {text!r}"))

    def _cast(self, token: FilterToken) -> FilterLiteral:
        """Read the values that SQL has no literals for: NaN, the infinities, and a typed NULL."""
        self._tokens.next()
        value = self._value()
        if not self._tokens.took("AS"):
            self._tokens.unexpected("AS, and a type")
        kind = self._tokens.next().text.lower()
        if self._tokens.took("("):
            while self._tokens.now.kind == "number" or self._tokens.now.text == ",":
                self._tokens.next()
            if not self._tokens.took(")"):
                self._tokens.unexpected(")")
        if not self._tokens.took(")"):
            self._tokens.unexpected(")")
        if isinstance(value, FilterLiteral) and value.value is None:
            return literal(None)
        if (
            kind in ("double", "float", "real")
            and isinstance(value, FilterLiteral)
            and isinstance(value.value, str)
        ):
            special = _FLOATS.get(value.value.strip().lower().lstrip("+"))
            if special is not None:
                return FilterLiteral(float_to_json(special), "double")
        self._tokens.refuse(
            token,
            "has a CAST",
            "cast only NULL, or 'NaN' and 'Infinity' to DOUBLE; write other literals in their type",
        )


def _with_blanks(operand: Operand) -> Operand:
    """Return a string with a type whose comparisons see all blanks, also the padding of a CHAR, as LIKE and
    BETWEEN do.

    Such a type is VARCHAR.
    """
    if isinstance(operand, FilterLiteral) and isinstance(operand.value, str) and operand.type == "string":
        return FilterLiteral(operand.value, f"varchar({max(1, len(operand.value))})")
    return operand
