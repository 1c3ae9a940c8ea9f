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
    """Return the README with the current list."""
    text = (root / README).read_text(encoding="utf-8")
    head, _, following_text = text.partition(BEGIN)
    _, _, tail = following_text.partition(END)
    assert tail, f"{README} has no {BEGIN} … {END}"
    return {README: f"{head}{BEGIN}\n\n{_list()}\n{END}{tail}"}


def _list() -> str:
    lines = ["| request | members | answer |", "|---|---|---|"]
    for request, answers, has_bytes in requests():
        answer_names = " or ".join(answer.__name__ for answer in answers)
        bytes_note = " and bytes" if has_bytes else ""
        lines.append(f"| `{tag(request)}` | {_members(request)} | {answer_names}{bytes_note} |")
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
    member = next(struct_tag[0] for _, struct_tag in tags if struct_tag is not None)
    tag_texts = ", ".join(f"`{struct_tag[1]}` {name}" for name, struct_tag in tags if struct_tag is not None)
    return f"`{member}`: {tag_texts}"


def _members(struct: Struct) -> str:
    if struct in KEPT:
        return "only Python reads it" + "".join(f", except `{name}`" for name in KEPT[struct])
    loaded_table = next(
        struct_of_base for struct_of_base in by_subject()["base"] if struct_of_base.__name__ == "LoadedTable"
    )
    own = members(struct)
    own_tag = tag_member(struct)
    texts = [] if own_tag is None else [f"`{own_tag[0]}` “{own_tag[1]}”"]
    if struct is not loaded_table and issubclass(struct, loaded_table):
        texts.append(f"*{loaded_table.__name__}*")
        names = {member.name for member in members(loaded_table)}
        own = [member for member in own if member.name not in names]
    return ", ".join([*texts, *(_member(member) for member in own)])


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
        return " or ".join(f"“{argument}”" for argument in arguments)
    if origin is tuple:
        types = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return f"[{', '.join(_type(argument) for argument in types)}]"
    if origin is dict:
        return "JSON" if arguments[1] is Any else f"{{{_type(arguments[0])}: {_type(arguments[1])}}}"
    if isinstance(annotated, type) and issubclass(annotated, msgspec.Struct):
        return annotated.__name__
    return str(annotated)


def _type_of_union(annotated: Any) -> str:
    parts = [part for part in get_args(annotated) if part is not msgspec.UnsetType]
    inner, is_nullable = without_none(annotated)
    if {bool, int, float, str} <= set(parts):
        json_types = [part for part in parts if part not in (bool, int, float, str, type(None))]
        return " or ".join([*(_type(part) for part in json_types), "value"])
    if set(get_args(inner)) == {str, dict[str, Any]} or dict[str, Any] in parts:
        return "JSON"
    text = name_of(inner) or " or ".join(_type(part) for part in parts if part is not type(None))
    return f"{text} or null" if is_nullable else text
