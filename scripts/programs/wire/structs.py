"""The structs that cross the bridge, and their members.

A base of several structs is a single parameter of each in Scala (`GROUPS`). Values that Python makes and takes back
stay closed there (`KEPT`). Unions have names (`UNIONS`). A struct whose forms have no tag is a Scala trait that is
written by hand (`BY_HAND`).
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from lakelog.catalog.core.ddl import StagedTable
from lakelog.catalog.core.files import DeletionVector
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import Expression, TableChange
from lakelog.spark.handlers.entries import ENTRIES
from lakelog.spark.requests import base, changes, definitions, jobs, procedures, process, staged, tables

Struct = type[msgspec.Struct]

KEPT: dict[Struct, tuple[str, ...]] = {Token: (), StagedTable: ("write",)}
"""Structs that only Python reads, except for these members."""

BY_HAND: tuple[Struct, ...] = (Expression,)

UNIONS: dict[str, Any] = {"TableChange": TableChange, "AnyJob": jobs.AnyJob, "AnyResult": jobs.AnyResult}

GROUPS: dict[Struct, str] = {
    base.LoadedTable: "table",
    base.NamedObject: "of",
    staged.FutureTable: "table",
    tables.TableFacts: "facts",
    changes.StreamRequest: "stream",
    definitions.FunctionRequest: "function",
    procedures.ProcedureRequest: "call",
}
"""The name of the parameter that stands for the members of such a base."""

BESIDE: tuple[Struct, ...] = (
    base.UserStatement,
    process.FailedRequest,
    process.SentRequest,
    DeletionVector,
)
"""Structs outside of requests: parts of every frame, and JSON in the columns of planned files."""

SCOPE = ("transaction", "query")
"""Members that the adapter adds to every request."""

PROCESS: tuple[tuple[Struct, Struct], ...] = (
    (process.Hello, process.Welcome),
    (process.OpenCatalog, process.OpenedCatalog),
    (process.CloseCatalog, process.ClosedCatalog),
)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct. `type` leaves out None if None is allowed. The member may be missing if `is_optional`."""

    name: str
    type: Any
    is_nullable: bool
    is_optional: bool
    default: Any


@cache
def members(struct: Struct) -> list[Member]:
    """Return the members of a struct in their order, without the members that every request gets."""
    without = SCOPE if issubclass(struct, base.Request) else ()
    hints = get_type_hints(struct)
    own_members = []
    for field in msgspec.structs.fields(struct):
        if field.encode_name in without:
            continue
        inner, is_nullable = without_none(hints[field.name])
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        own_members.append(Member(field.encode_name, inner, is_nullable, not field.required, default))
    return own_members


def without_none(annotated: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether the type allowed None."""
    if get_origin(annotated) not in (Union, types.UnionType):
        return annotated, False
    parts = tuple(part for part in get_args(annotated) if part is not type(None))
    return (parts[0] if len(parts) == 1 else Union[parts]), len(parts) < len(get_args(annotated))  # noqa: UP007


def group_of(struct: Struct) -> Struct | None:
    """Return the nearest base whose members are a single parameter."""
    return next((base_class for base_class in struct.__mro__[1:] if base_class in GROUPS), None)


def tag(struct: Struct) -> str:
    return str(struct.__struct_config__.tag)


@cache
def requests() -> list[tuple[Struct, tuple[Struct, ...], bool]]:
    """Return every request with its answers, and whether bytes accompany them."""
    of_process = [(request, (answer,), False) for request, answer in PROCESS]
    return of_process + [(entry.request, entry.answers, entry.has_bytes) for entry in ENTRIES]


def is_struct(annotated: Any) -> bool:
    return isinstance(annotated, type) and issubclass(annotated, msgspec.Struct)


def is_union(annotated: Any) -> bool:
    return get_origin(annotated) in (Union, types.UnionType)


def union_of(struct: Struct) -> str | None:
    """Return the name of the union that a struct belongs to, or None if it belongs to none."""
    return next((name for name, union in UNIONS.items() if struct in get_args(union)), None)


def name_of(union: Any) -> str | None:
    """Return the name of a union, or None if it has none."""
    parts = set(get_args(union))
    return next((name for name, candidate in UNIONS.items() if set(get_args(candidate)) == parts), None)


def module_of(struct: Struct) -> str:
    """Return the module or the room from which others import a struct."""
    parts = struct.__module__.split(".")
    return ".".join(parts if parts[1] == "spark" else parts[:4] if parts[1] == "catalog" else parts[:2])


def subject(struct: Struct) -> str:
    """Return the name of the module that lists a struct."""
    return module_of(struct).rpartition(".")[2]


def is_value(struct: Struct) -> bool:
    """Whether a struct is an answer, or a part of requests or answers, rather than a request or a base of requests."""
    return not issubclass(struct, (base.Request, process.ProcessRequest))


def tag_member(struct: Struct) -> tuple[str, str] | None:
    """Return the member that tags a value with its struct, and the tag. Return None if the value has no tag."""
    config = struct.__struct_config__
    return (str(config.tag_field), str(config.tag)) if is_value(struct) and config.tag else None


@cache
def by_subject() -> dict[str, list[Struct]]:
    """Return all structs that Scala knows, by module. Each follows the structs that it consists of."""
    ordered_structs: dict[Struct, None] = {}
    for request, answers, _ in requests():
        for struct in (request, *answers):
            _collect(struct, ordered_structs)
    for struct in BESIDE:
        _collect(struct, ordered_structs)
    structs_by_subject: dict[str, list[Struct]] = {}
    for struct in ordered_structs:
        structs_by_subject.setdefault(subject(struct), []).append(struct)
    return structs_by_subject


def _collect(struct: Any, found: dict[Struct, None]) -> None:
    if not is_struct(struct) or struct in found:
        return
    if struct in BY_HAND:
        found[struct] = None
        return
    group = group_of(struct)
    if group is not None:
        _collect(group, found)
    for member in members(struct):
        if struct not in KEPT or member.name in KEPT[struct]:
            for part in _parts(member.type):
                _collect(part, found)
    found[struct] = None


def _parts(annotated: Any) -> Iterator[Any]:
    yield annotated
    for part in get_args(annotated):
        yield from _parts(part)


def is_request(struct: Struct) -> bool:
    return any(struct is request for request, _, _ in requests())
