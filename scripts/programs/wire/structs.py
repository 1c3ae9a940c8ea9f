"""Which structs cross the bridge, and what their members are.

Some structs are bases of several: in Scala these are one parameter of each (`GROUPS`). Structs of `lakelog.catalog`
that Python makes and takes again, or that tasks write as text, are JSON to Scala, except for those in `TYPED`.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from lakelog.catalog.files import Positions
from lakelog.catalog.schema import ValuesTaken
from lakelog.catalog.writes import StreamBatch
from lakelog.log import WriteRef
from lakelog.spark.handlers.table import ENTRIES
from lakelog.spark.requests import base, changes, definitions, procedures, process, staged, tables

Struct = type[msgspec.Struct]

TYPED: tuple[Struct, ...] = (WriteRef, StreamBatch, ValuesTaken, Positions)

GROUPS: dict[Struct, str] = {
    base.LoadedTable: "table",
    base.Named: "of",
    staged.ToBe: "table",
    tables.TableFacts: "facts",
    changes.OfStream: "stream",
    definitions.OfFunction: "function",
    procedures.OfProcedure: "call",
}
"""What a parameter is called that stands for the members of such a base."""

SCOPE = ("transaction", "query")
"""Members that the adapter adds to whatever it asks."""

PROCESS: tuple[tuple[Struct, Struct], ...] = (
    (process.Hello, process.Welcome),
    (process.OpenCatalog, process.Opened),
    (process.CloseCatalog, process.Closed),
)


@dataclass(frozen=True, slots=True)
class Member:
    """`type` is without None where that is allowed; `is_optional`: it may be missing."""

    name: str
    type: Any
    is_nullable: bool
    is_optional: bool
    default: Any


def members(struct: Struct) -> list[Member]:
    """Return the members of a struct in their order, without those that are added to any request."""
    without = SCOPE if issubclass(struct, base.Request) else ()
    hints = get_type_hints(struct)
    found = []
    for field in msgspec.structs.fields(struct):
        if field.encode_name in without:
            continue
        inner, is_nullable = without_none(hints[field.name])
        found.append(Member(field.encode_name, inner, is_nullable, not field.required, field.default))
    return found


def without_none(annotated: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was among it."""
    if get_origin(annotated) not in (Union, types.UnionType):
        return annotated, False
    parts = tuple(part for part in get_args(annotated) if part is not type(None))
    return (parts[0] if len(parts) == 1 else Union[parts]), len(parts) < len(get_args(annotated))  # noqa: UP007


def group_of(struct: Struct) -> Struct | None:
    """Return the nearest base whose members are one parameter."""
    return next((each for each in struct.__mro__[1:] if each in GROUPS), None)


def tag(struct: Struct) -> str:
    return str(struct.__struct_config__.tag)


def requests() -> list[tuple[Struct, tuple[Struct, ...], bool]]:
    """Return every request with its answers, and whether bytes come beside them."""
    of_process = [(request, (answer,), False) for request, answer in PROCESS]
    return of_process + [(each.request, each.answers, each.has_bytes) for each in ENTRIES]


def is_typed(struct: Any) -> bool:
    """Whether Scala knows the members of a struct."""
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return False
    return struct in TYPED or struct.__module__.startswith("lakelog.spark.requests.")


def subject(struct: Struct) -> str:
    """Return the name of the module that a struct is listed with."""
    own = struct.__module__.rpartition(".")[2]
    return own if struct.__module__.startswith("lakelog.spark.requests.") else "writes"


def by_subject() -> dict[str, list[Struct]]:
    """Return all structs that Scala knows, each after those that it consists of."""
    found: dict[Struct, None] = {}
    for request, answers, _ in requests():
        for struct in (request, *answers):
            _collect(struct, found)
    _collect(base.Statement, found)
    _collect(process.Failed, found)
    grouped: dict[str, list[Struct]] = {}
    for struct in found:
        grouped.setdefault(subject(struct), []).append(struct)
    return grouped


def _collect(struct: Any, found: dict[Struct, None]) -> None:
    if not is_typed(struct) or struct in found:
        return
    group = group_of(struct)
    if group is not None:
        _collect(group, found)
    for member in members(struct):
        for part in _parts(member.type):
            _collect(part, found)
    found[struct] = None


def _parts(annotated: Any) -> Iterator[Any]:
    yield annotated
    for part in get_args(annotated):
        yield from _parts(part)


def is_request(struct: Struct) -> bool:
    return any(struct is request for request, _, _ in requests())
