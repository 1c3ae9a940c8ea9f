"""Expressions as DuckDB's parser writes them, in a single shape for all its versions.

DuckDB 2 names arguments, keeps literals as texts, and types of casts as expressions. A tree is read in the
shape of DuckDB 1. Parts that only version 2 has are kept, so that the tree can be given back to the parser
that wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

Node: TypeAlias = dict[str, Any]
"""A part of an expression, as DuckDB's parser writes it."""

_LITERALS = {"INTEGER": "INTEGER", "NUMERIC": "DECIMAL", "BOOLEAN": "BOOLEAN", "NULL_LITERAL": "NULL"}
"""Kinds of literals in DuckDB 2, and their type ids in version 1. Other literals are texts there."""


def one_shape(part: Any, type_of: Callable[[Node], str]) -> Any:
    """Return a tree of any version in the shape of DuckDB 1. `type_of` returns the name of the type of a
    cast."""
    if isinstance(part, list):
        return [one_shape(item, type_of) for item in part]
    if not isinstance(part, dict):
        return part
    if "type_expr" in part:
        cast = {name: item for name, item in part.items() if name != "type_expr"}
        cast["cast_type"] = {**_type(type_of(part)), "as_written": json.dumps(part["type_expr"])}
        return {name: one_shape(item, type_of) for name, item in cast.items()}
    node = {name: one_shape(item, type_of) for name, item in part.items()}
    if "literal" in node:
        node["value"] = _value(node["literal"])
    if "arguments" in node:
        arguments = node.pop("arguments")
        node["children"] = [item["expression"] for item in arguments]
        node["argument_names"] = [item["name"] for item in arguments]
    return node


def as_written(part: Any) -> Any:
    """Return a tree in the form of the parser that wrote its parts."""
    if isinstance(part, list):
        return [as_written(item) for item in part]
    if not isinstance(part, dict):
        return part
    node = {name: as_written(item) for name, item in part.items()}
    if "literal" in node:
        node.pop("value", None)
    if "argument_names" in node:
        pairs = zip(node.pop("argument_names"), node.pop("children"), strict=True)
        node["arguments"] = [{"name": name, "expression": item} for name, item in pairs]
    if "as_written" in (node.get("cast_type") or {}):
        node["type_expr"] = json.loads(node.pop("cast_type")["as_written"])
    return node


def _value(literal: Node) -> Node:
    kind, text = literal["kind"], literal["text"]
    type = {"id": _LITERALS.get(kind, "VARCHAR"), "type_info": None}
    if kind == "NULL_LITERAL":
        return {"type": type, "is_null": True}
    value: Any = text
    if kind == "INTEGER":
        value = int(text)
    elif kind == "NUMERIC":
        value = float(text)
    elif kind == "BOOLEAN":
        value = text == "true"
    return {"type": type, "is_null": False, "value": value}


def _type(name: str) -> Node:
    """Return the type node of DuckDB 1, with the parts that are used."""
    digits = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", name)
    if digits is not None:
        return {"id": "DECIMAL", "type_info": {"width": int(digits[1]), "scale": int(digits[2])}}
    return {"id": name, "type_info": None}
