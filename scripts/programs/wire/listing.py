"""The list of requests, their members and their answers in `catalog/spark/README.md`, between two marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from programs.wire.structs import (
    KEPT,
    UNIONS,
    Member,
    Struct,
    by_subject,
    is_request,
    is_union,
    is_value,
    members,
    name_of,
    requests,
    tag,
    tag_member,
    without_none,
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
        answered = " or ".join(answer.__name__ for answer in answers)
        beside = " and bytes" if has_bytes else ""
        lines.append(f"| `{tag(request)}` | {_members(request)} | {answered}{beside} |")
    lines += ["", "| value or answer | members |", "|---|---|"]
    for structs in by_subject().values():
        for struct in structs:
            if not is_request(struct) and is_value(struct) and members(struct):
                lines.append(f"| {struct.__name__} | {_members(struct)} |")
    lines += ["", "| any of | tags |", "|---|---|"]
    lines += [f"| {name} | {_tags(union)} |" for name, union in UNIONS.items()]
    return "\n".join(lines) + "\n"


def _tags(union: Any) -> str:
    tags = [(struct.__name__, tag_member(struct)) for struct in get_args(union)]
    member = next(each[0] for _, each in tags if each is not None)
    said = ", ".join(f"`{each[1]}` {name}" for name, each in tags if each is not None)
    return f"`{member}`: {said}"


def _members(struct: Struct) -> str:
    if struct in KEPT:
        return "only Python reads it" + "".join(f", except `{name}`" for name in KEPT[struct])
    loaded = next(each for each in by_subject()["base"] if each.__name__ == "LoadedTable")
    own = members(struct)
    tagged = tag_member(struct)
    said = [] if tagged is None else [f"`{tagged[0]}` “{tagged[1]}”"]
    if struct is not loaded and issubclass(struct, loaded):
        said.append(f"*{loaded.__name__}*")
        names = {member.name for member in members(loaded)}
        own = [member for member in own if member.name not in names]
    return ", ".join([*said, *(_member(member) for member in own)])


def _member(member: Member) -> str:
    missing = "?" if member.is_optional else ""
    null = " or null" if member.is_nullable and not member.is_optional else ""
    return f"`{member.name}`{missing} {_type(member.type)}{null}"


def _type(annotated: Any) -> str:
    simple = {str: "text", int: "whole number", bool: "flag", float: "number"}
    simple |= {Any: "JSON", msgspec.Raw: "JSON", type(None): "null"}
    if annotated in simple:
        return simple[annotated]
    if is_union(annotated):
        return _type_of_union(annotated)
    origin, arguments = get_origin(annotated), get_args(annotated)
    if origin is Literal:
        return " or ".join(f"“{each}”" for each in arguments)
    if origin is tuple:
        shown = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return f"[{', '.join(_type(each) for each in shown)}]"
    if origin is dict:
        return "JSON" if arguments[1] is Any else f"{{{_type(arguments[0])}: {_type(arguments[1])}}}"
    if isinstance(annotated, type) and issubclass(annotated, msgspec.Struct):
        return annotated.__name__
    return str(annotated)


def _type_of_union(annotated: Any) -> str:
    parts = [each for each in get_args(annotated) if each is not msgspec.UnsetType]
    inner, is_nullable = without_none(annotated)
    if {bool, int, float, str} <= set(parts):
        others = [each for each in parts if each not in (bool, int, float, str, type(None))]
        return " or ".join([*(_type(each) for each in others), "value"])
    if set(get_args(inner)) == {str, dict[str, Any]} or dict[str, Any] in parts:
        return "JSON"
    named = name_of(inner) or " or ".join(_type(each) for each in parts if each is not type(None))
    return f"{named} or null" if is_nullable else named
