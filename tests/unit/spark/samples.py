"""A value of each struct that crosses the bridge: with all of its members, and with those only that it must have."""

from __future__ import annotations

import re
import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from lakelog.catalog.core.schema import Dependency, Expression
from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.types import AtomicType, TypedValue
from lakelog.spark.requests import base
from lakelog.spark.requests.sources import ForeignSource
from lakelog.spark.requests.writes import MakeToken

T = TypeVar("T", bound=msgspec.Struct)

_DEPTH = 6
_LITERALS: tuple[Any, ...] = (None, True, 2**70, -1.5, 'a ‘text’ \\ "')
_FILTER = (
    Expression(
        op="IN",
        args=(Expression(col=("a", "b")), *(Expression(lit=literal, type="long") for literal in _LITERALS)),
    ),
    Expression(
        op="=", args=(Expression(transform="bucket", args=(16, Expression(col=("a",)))), Expression(lit=1))
    ),
    Expression(lit="x", type={"type": "array", "elementType": "string", "containsNull": True}),
    Expression(opaque="some words"),
    Expression(op="SPARK:Nested", args=()),
)
_VALID: dict[Any, dict[str, Any]] = {
    AtomicType: {"name": "long"},
    Transform: {"name": "bucket", "argument": 16},
    Expression: {"op": "AND", "args": _FILTER},
    TypedValue: {"type": "string", "value": 'a ‘text’ \\ "'},
    Dependency: {"function": ("some", "function")},
    ForeignSource: {"table": ("some", "table")},
}
"""Of structs that do not take any value."""


def sample(struct: type[T], *, full: bool, depth: int = 0) -> T:
    """Return a value that Python reads as it writes it."""
    hints = get_type_hints(struct, include_extras=True)
    given = {}
    for field in msgspec.structs.fields(struct):
        names_it = struct is MakeToken or issubclass(struct, base.NamedObject)
        if names_it and field.name in ("location", "namespace"):
            continue  # Of what names a table, one is given.
        if struct in _VALID:
            return struct(**_VALID[struct])
        if names_it and field.name == "identifier":
            given[field.name] = ("some", "name")
        elif field.required or (full and depth < _DEPTH):
            given[field.name] = _value(hints[field.name], field.name, full=full, depth=depth + 1)
    return struct(**given)


def _value(annotated: Any, name: str, *, full: bool, depth: int) -> Any:
    simple = {str: f'some ‘{name}’ \\ "', int: 2**40 + len(name), bool: True, float: 0.5}
    if annotated in simple:
        return simple[annotated]
    if annotated is msgspec.Raw:
        return msgspec.Raw(b'{"any":1}')
    if annotated is Any or isinstance(annotated, str | TypeVar):
        return {"any": [1, "x", None, True, 2.5, {"deep": []}]} if full else None
    origin, arguments = get_origin(annotated), get_args(annotated)
    if origin is Annotated:
        return _within(_value(arguments[0], name, full=full, depth=depth), arguments[1:])
    if origin in (Union, types.UnionType):
        other_arguments = [argument for argument in arguments if argument is not type(None)]
        if not full and len(other_arguments) < len(arguments):
            return None
        return _value(other_arguments[0], name, full=full, depth=depth)
    if origin is Literal:
        return arguments[0]
    if origin in (tuple, list):
        parts = arguments[:1] * 2 if arguments[-1] is Ellipsis or origin is list else arguments
        values = [_value(part, name, full=full, depth=depth) for part in parts]
        if not full and (arguments[-1] is Ellipsis or origin is list):
            values = []
        return tuple(values) if origin is tuple else values
    if origin is dict:
        key = _value(arguments[0], name, full=full, depth=depth)
        return {key: _value(arguments[1], name, full=full, depth=depth)} if full else {}
    if isinstance(annotated, type) and issubclass(annotated, msgspec.Struct):
        return sample(annotated, full=full, depth=depth)
    raise AssertionError(f"there is no sample of {annotated}")


_FORMS = ("x" * 26, "0" * 64, "data/x.parquet", f"data/{1:020d}-x-0.puffin", f"x-{'0' * 32}")


def _within(value: Any, limits: tuple[Any, ...]) -> Any:
    """Return the value, or another one that is within the limits of its type."""
    for limit in limits:
        if isinstance(value, int) and limit.le is not None:
            value = min(value, limit.le)
        if isinstance(value, str) and limit.pattern is not None and not re.search(limit.pattern, value):
            value = next(form for form in _FORMS if re.search(limit.pattern, form))
    return value
