"""SQL that has different meanings in DuckDB and Spark: changed to Spark's meaning, or refused by name.

A statement that was moved from Spark must not silently do something else here. So a division by zero is an
error, a cast to an integer cuts digits off, and FLOAT is compared as a double. Other such operators, literals
and functions are refused with an alternative. Rule: syntax that only DuckDB has (another name, another
operator) keeps DuckDB's meaning and stays as it is. It must not know tables. `type_of` returns types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.writes.sql.tree import Node
from lakelog.log.errors import Unsupported

_LIKES = frozenset(("~~", "!~~", "~~*", "!~~*"))
_DIVISIONS = frozenset(("/", "%", "mod"))
_WIDENED = frozenset((*_DIVISIONS, "+", "-", "*", "nullif", "greatest", "least"))
_TRIMS = frozenset(("trim", "ltrim", "rtrim"))
_WHOLE = frozenset(("trunc", "round", "floor", "ceil", "ceiling"))
_INTEGERS = frozenset(
    sign + name for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT") for sign in ("", "U")
)
_OF_WEEK = "it counts days otherwise in Spark: write isodow(…), where Monday is 1"
_OTHERWISE = {
    "^": "it is a bitwise XOR in Spark: write xor(…), or ** for a power",
    "array_contains": "it is NULL in Spark where the list has NULLs: write list_contains(…)",
    "array_distinct": "it keeps NULL and the order in Spark: write list_distinct(…)",
    "array_position": "it is 0 in Spark for a value that is not there: write list_position(…)",
    "array_sort": "it sorts NULL last in Spark: write list_sort(…)",
    "bit_count": "it counts the bits of a BIGINT in Spark: compute it in the source",
    "concat": "it is NULL in Spark where a part is: write ||",
    "dayname": "it is short in Spark: write strftime(…, '%A') or '%a'",
    "dayofweek": _OF_WEEK,
    "element_at": "it is a value in Spark: write map_extract_value(…) or list_extract(…)",
    "hash": "it has other results in Spark: write md5(…), or compute it in the source",
    "isnan": "it is false for NULL in Spark: compare with CAST('NaN' AS DOUBLE)",
    "levenshtein": "it counts characters in Spark and bytes in DuckDB: compute it in the source",
    "monthname": "it is short in Spark: write strftime(…, '%B') or '%b'",
    "split": "it splits by a regular expression in Spark: write string_split(…) or regexp_split_to_array(…)",
    "typeof": "types have other names in Spark: leave it out",
    "weekday": _OF_WEEK,
}
_WITH_ARGUMENTS = {
    ("log", 1): "it is the natural logarithm in Spark: write ln(…) or log10(…)",
    ("regexp_extract", 2): "it returns group 1 in Spark: give the number of the group",
    ("regexp_extract_all", 2): "it returns group 1 in Spark: give the number of the group",
    ("regexp_replace", 3): "it replaces all matches in Spark: give options, such as 'g' for all",
}
_PARTS_OF_TIME = {
    **dict.fromkeys(("dow", "dayofweek", "weekday"), "it counts days otherwise in Spark: use isodow"),
    **dict.fromkeys(("second", "seconds"), "it has a fraction in Spark: write second(…)"),
}


class SparkMeaning:
    """Checks a text against Spark's meaning. `parse` makes a node of a text, `type_of` returns a node's value
    type."""

    def __init__(
        self,
        text: str,
        begins_at: int,
        *,
        is_bare: bool,
        parse: Callable[[str], Node],
        type_of: Callable[[Node], pa.DataType],
    ) -> None:
        self._text = text
        self._bytes = text.encode()
        self._begins_at = begins_at
        self._is_bare = is_bare
        self._parse = parse
        self._type_of = type_of

    def of_spark(self, node: Node, *, has_floats: bool) -> Node:
        """Return the expression to compute for `node`. Raises Unsupported if a part has another meaning in
        Spark.

        With `has_floats`, a FLOAT may occur in it.
        """
        self._has_floats = has_floats
        result: Node = self._changed(node)
        return result

    def check_condition(self, node: Node) -> None:
        """Raise Unsupported for a condition that is not a boolean, which DuckDB would cast."""
        if node["class"] in ("COMPARISON", "CONJUNCTION", "BETWEEN"):
            return
        type = self._type_of(node)
        if not (pa.types.is_boolean(type) or node["class"] == "CONSTANT" and node["value"]["is_null"]):
            raise Unsupported(
                f"the expression {self._text!r} is a condition of type {type}, not a boolean: compare it with a value"
            )

    def _changed(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._changed(item) for item in part]
        if not isinstance(part, dict):
            return part
        node = {name: self._changed(item) for name, item in part.items()}
        match node.get("class"):
            case "CONSTANT":
                self._check_constant(node)
            case "COLUMN_REF":
                if self._is_bare and self._at(node).startswith(b'"'):
                    self._refuse(
                        "a name in double quotes", "it is a text in Spark: write target.\"…\", or '…'"
                    )
            case "FUNCTION":
                self._check_function(node)
                name, arguments = node["function_name"].lower(), node["children"]
                if name in _WIDENED:
                    self._widen(arguments, range(len(arguments)))
                if name in _DIVISIONS and len(arguments) == 2:
                    arguments[1] = self._not_zero(arguments[1])
            case "CAST":
                return self._cast(node)
            case "COMPARISON":
                self._widen(node, ("left", "right"))
            case "BETWEEN":
                self._widen(node, ("input", "lower", "upper"))
            case "OPERATOR":
                self._check_operator(node)
        return node

    def _refuse(self, what: str, why: str) -> None:
        raise Unsupported(f"the expression {self._text!r} has {what}, and {why}")

    def _at(self, node: Node) -> bytes:
        return self._bytes[max(0, node["query_location"] - self._begins_at) :]

    # Literals, operators and functions

    def _check_constant(self, node: Node) -> None:
        value = node["value"]
        if value["type"]["id"] != "VARCHAR" or value["is_null"]:
            return
        start = self._at(node)[:2].lower()
        if start in (b"x'", b"b'"):
            self._refuse("bytes in hexadecimals", "they are a text in DuckDB: write unhex('…')")
        if "\\" in value["value"] and start.startswith(b"'"):
            self._refuse("a text with a backslash", r"it escapes in Spark: write e'…', where \\ is one")

    def _check_function(self, node: Node) -> None:
        name, children = node["function_name"].lower(), node["children"]
        why = _OTHERWISE.get(name) or _WITH_ARGUMENTS.get((name, len(children)))
        if name in _LIKES and not _is_text_without(children[1], "\\"):
            why = "a backslash escapes in a pattern of Spark's: add ESCAPE with another character"
        elif name in ("substring", "substr") and _value(children[1]) == 0:
            why = "the first character has the number 1: in DuckDB there is none at 0"
        elif name in _TRIMS and len(children) == 2 and _begins(children[0]) < _begins(children[1]):
            why = "its arguments stand the other way round in Spark: write trim(LEADING … FROM …), or TRAILING, BOTH"
        elif name in ("date_part", "datepart"):
            why = _PARTS_OF_TIME.get(str(_value(children[0])).lower())
        if why is not None:
            self._refuse(_NAMES.get(name, f"the function {name}"), why)
        if name in ("||", "concat_ws"):
            for child in children:
                if child.get("function_name") != "||":
                    self._check_text_of(child)

    def _check_operator(self, node: Node) -> None:
        if node["type"] == "ARRAY_EXTRACT" and not isinstance(_value(node["children"][1]), str):
            self._refuse(
                "a position in [ ]",
                "it counts from 0 in Spark: write list_extract(…), which counts from 1, or map_extract_value(…)",
            )
        if node["type"] in ("COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE"):
            self._widen(node["children"], range(len(node["children"])))

    # Types

    def _not_zero(self, node: Node) -> Node:
        if _value(node) not in (None, 0):
            return node
        return self._filled("CASE WHEN part_ = 0 THEN error('division by zero') ELSE part_ END", node)

    def _cast(self, node: Node) -> Node:
        child, kind = node["child"], node["cast_type"]
        info = kind.get("type_info") or {}
        if kind["id"] == "VARCHAR":
            self._check_text_of(child)
        elif (
            kind["id"] == "DECIMAL"
            and (info.get("width"), info.get("scale")) == (18, 3)
            and not re.search(r"\(\s*18\s*,\s*3\s*\)", self._text)
        ):
            self._refuse("a DECIMAL without its digits", "it has others in Spark: write as DECIMAL(18, 3)")
        elif kind["id"] in _INTEGERS and child.get("function_name", "").lower() not in _WHOLE:
            child_type = self._type_of(child)
            if pa.types.is_floating(child_type) or pa.types.is_decimal(child_type) and child_type.scale:
                return {**node, "child": self._filled("trunc(part_)", child)}
            if pa.types.is_string(child_type):
                otherwise = "NULL" if node["try_cast"] else "error('not an integer: ' || part_)"
                test = r"part_ IS NULL OR regexp_full_match(part_, '\s*[+-]?[0-9]+\s*')"
                whole = self._filled(f"CASE WHEN {test} THEN part_ ELSE {otherwise} END", child)
                return {**node, "child": whole}
        return node

    def _check_text_of(self, node: Node) -> None:
        if isinstance(_value(node), str):
            return
        type, types = self._type_of(node), pa.types
        if types.is_floating(type) or types.is_binary(type) or types.is_nested(type) or types.is_interval(type) or (
            types.is_timestamp(type) and type.tz is not None
        ):  # fmt: skip
            self._refuse(
                f"a {type} that becomes a text",
                "it has another form in Spark: write format(…) or strftime(…)",
            )

    def _widen(self, within: Any, places: Any) -> None:
        """Make FLOATs doubles if they are compared with another type, which DuckDB would round to FLOAT."""
        if not self._has_floats:
            return
        types = {place: self._type_of(within[place]) for place in places}
        floats = [place for place, value_type in types.items() if pa.types.is_float32(value_type)]
        if len(floats) < len(types):
            for place in floats:
                within[place] = self._filled("CAST(part_ AS DOUBLE)", within[place])

    def _filled(self, template: str, part: Node) -> Node:
        """Return the node of a text, with `part` in place of `part_`."""

        def fill(node: Any) -> Any:
            if isinstance(node, list):
                return [fill(item) for item in node]
            if not isinstance(node, dict):
                return node
            if node.get("class") == "COLUMN_REF" and node["column_names"] == ["part_"]:
                return deepcopy(part)
            return {name: fill(item) for name, item in node.items()}

        result: Node = fill(self._parse(template))
        return result


_NAMES = {
    **dict.fromkeys(_LIKES, "LIKE with a backslash, or with a pattern that is computed"),
    "^": "the operator ^",
}


def _value(node: Node) -> Any:
    """Return the value of a literal, or None for another node."""
    return None if node["class"] != "CONSTANT" or node["value"]["is_null"] else node["value"]["value"]


def _begins(node: Node) -> int:
    return int(node["query_location"])


def _is_text_without(node: Node, character: str) -> bool:
    value = _value(node)
    return isinstance(value, str) and character not in value
