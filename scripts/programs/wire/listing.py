"""The list of requests, their members and their answers in `catalog/spark/README.md`, between two marks."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec

from programs.wire.structs import (
    Member,
    Struct,
    by_subject,
    is_request,
    is_typed,
    members,
    requests,
    tag,
)

README = "catalog/spark/README.md"
BEGIN, END = "<!-- requests: written by scripts/wire -->", "<!-- end of requests -->"


def listed(root: Path) -> dict[str, str]:
    """Return the README with the list as it is now."""
    text = (root / README).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, f"{README} has no {BEGIN} … {END}"
    return {README: f"{before}{BEGIN}\n\n{_list()}\n{END}{after}"}


def _list() -> str:
    lines = ["| request | members | answer |", "|---|---|---|"]
    for request, answers, has_bytes in requests():
        answered = " or ".join(_named(answer) for answer in answers)
        beside = " and bytes" if has_bytes else ""
        lines.append(f"| `{tag(request)}` | {_members(request)} | {answered}{beside} |")
    lines += ["", "| value or answer | members |", "|---|---|"]
    for structs in by_subject().values():
        for struct in structs:
            if not is_request(struct) and not _is_base_of_requests(struct) and members(struct):
                lines.append(f"| {_named(struct)} | {_members(struct)} |")
    return "\n".join(lines) + "\n"


def _is_base_of_requests(struct: Struct) -> bool:
    return any(issubclass(request, struct) for request, _, _ in requests()) and not _is_value(struct)


def _is_value(struct: Struct) -> bool:
    return struct.__name__ == "LoadedTable"


def _members(struct: Struct) -> str:
    loaded = next(each for each in by_subject()["base"] if _is_value(each))
    own = members(struct)
    said = []
    if struct is not loaded and issubclass(struct, loaded):
        said.append(f"*{_named(loaded)}*")
        names = {member.name for member in members(loaded)}
        own = [member for member in own if member.name not in names]
    return ", ".join([*said, *(_member(member) for member in own)])


def _member(member: Member) -> str:
    missing = "?" if member.is_optional else ""
    null = " or null" if member.is_nullable and not member.is_optional else ""
    return f"`{member.name}`{missing} {_type(member.type)}{null}"


def _named(struct: Struct) -> str:
    return (
        struct.__name__
        if is_typed(struct)
        else f"{struct.__name__} (`{struct.__module__.partition('.')[2]}`)"
    )


def _type(annotated: Any) -> str:
    simple = {str: "text", int: "whole number", bool: "flag", float: "number", Any: "JSON"}
    if annotated in simple:
        return simple[annotated]
    origin, arguments = get_origin(annotated), get_args(annotated)
    if origin is tuple:
        return f"[{_type(arguments[0])}]"
    if origin is dict:
        return "JSON" if arguments[1] is Any else f"{{{_type(arguments[0])}: {_type(arguments[1])}}}"
    if origin in (Union, types.UnionType):
        if all(hasattr(each, "__struct_fields__") for each in arguments) and len(arguments) > 2:
            return "TableChange"
        return " or ".join(_type(each) for each in arguments)
    if isinstance(annotated, type) and issubclass(annotated, msgspec.Struct):
        return annotated.__name__
    return str(annotated)
