"""The Scala side: a case class for each struct that writes and reads its JSON. See `wire/Message.scala`."""

from __future__ import annotations

import inspect
import re
from typing import Any, Literal, get_args, get_origin

import msgspec

from programs.wire.structs import (
    BY_HAND,
    GROUPS,
    KEPT,
    UNIONS,
    Member,
    Struct,
    by_subject,
    group_of,
    is_request,
    is_struct,
    is_union,
    is_value,
    members,
    module_of,
    name_of,
    requests,
    tag,
    tag_member,
    union_of,
    without_none,
)

FOLDER = "catalog/spark/wire"
WIDTH = 120

_RESERVED = {"type", "new", "object", "case", "class", "val", "var", "def", "match", "package", "given"}
_WHOLE_OF_ANY_SIZE = {("NextValue", "next"), ("ValuesTaken", "first"), ("ValuesTaken", "last")}
_HEAD = """// Written by scripts/wire from {modules}: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject
"""


def sources() -> dict[str, str]:
    """Return the text of each file by its path in the repository."""
    struct_sources = {
        f"{FOLDER}/{subject.capitalize()}.scala": _file(subject, structs)
        for subject, structs in by_subject().items()
    }
    return {**struct_sources, f"{FOLDER}/Mirror.scala": _mirror()}


def _file(subject: str, structs: list[Struct]) -> str:
    names = [name for name, union in UNIONS.items() if get_args(union)[0] in structs]
    class_sources = [_class(struct) for struct in structs if struct not in BY_HAND]
    classes = "\n".join([*(_union(name) for name in names), *class_sources])
    modules = " and ".join(sorted({module_of(struct) for struct in structs}))
    return _HEAD.format(modules=modules) + "\n" + classes


def _union(name: str) -> str:
    """Return a trait for a union's structs. A member that all of them have distinguishes them."""
    structs: tuple[Struct, ...] = get_args(UNIONS[name])
    tags = [tag_member(struct) for struct in structs]
    member = next(struct_tag[0] for struct_tag in tags if struct_tag is not None)
    cases = [
        f'      case "{struct_tag[1]}" => {struct.__name__}.of(json)'
        for struct, struct_tag in zip(structs, tags, strict=True)
        if struct_tag is not None
    ]
    return "\n".join(
        [
            f"private[lakelog] sealed abstract class {name} extends Message",
            "",
            f"private[lakelog] object {name} extends Companion[{name}] {{",
            f"  override def of(json: JObject): {name} =",
            f'    take[String](json, "{member}") match {{',
            *cases,
            "      case other => unknown(other)",
            "    }",
            "}",
            "",
        ]
    )


def _kept(struct: Struct) -> str:
    """Return the class of a struct that only Python reads, except for some members."""
    name = struct.__name__
    by_name = {member.name: member for member in members(struct)}
    parts = [
        f'  def {_name(key)}: {_type(name, by_name[key])} = {name}.part[{_scala(by_name[key].type)}](kept, "{key}")'
        for key in KEPT[struct]
    ]
    return "\n".join(
        [
            _doc(struct),
            f"private[lakelog] final case class {name}(private[wire] val kept: JObject)",
            "  extends Message {",
            "  override def members: Members = kept.obj",
            *parts,
            "}",
            "",
            f"private[lakelog] object {name} extends Companion[{name}] {{",
            "",
            "  /** What stands in a request for the answer to another that comes first. */",
            f"  val ToCome: {name} = {name}(JObject(Nil))",
            "",
            f"  override def of(json: JObject): {name} = {name}(json)",
            "}",
            "",
        ]
    )


def _class(struct: Struct) -> str:
    if struct in KEPT:
        return _kept(struct)
    group = group_of(struct)
    group_names = {member.name for member in members(group)} if group else set()
    own = [member for member in members(struct) if member.name not in group_names]
    name = struct.__name__
    parameters = [f"{GROUPS[group]}: {group.__name__}"] if group else []
    parameters += [_parameter(name, member) for member in own]
    member_lists = [f"{GROUPS[group]}.members"] if group else []
    own_tag = tag_member(struct)
    parts = [] if own_tag is None else [f'"{own_tag[0]}" -> put("{own_tag[1]}")']
    parts += [_written(struct, member) for member in own]
    if parts or not member_lists:
        member_lists.append(f"List({', '.join(parts)})")
    lines = [
        _doc(struct),
        f"private[lakelog] final case class {name}{_in_parentheses(parameters)}",
        f"  extends {_base(struct, own)} {{",
        f"  override def members: Members = {' ++ '.join(member_lists)}",
    ]
    if is_request(struct):
        lines += _of_request(struct, own)
    read = [f"{group.__name__}.of(json)"] if group else []
    read += [_read(name, member) for member in own]
    lines += [
        "}",
        "",
        f"private[lakelog] object {name} extends Companion[{name}] {{",
        f"  override def of(json: JObject): {name} = {_called(name, read)}",
        "}",
        "",
    ]
    return "\n".join(_wrapped(line) for line in lines)


def _base(struct: Struct, own: list[Member]) -> str:
    if not is_request(struct):
        return union_of(struct) or "Message"
    kind = "Change" if any(member.name == "token" for member in own) and _subject(struct) else "Request"
    return f'{kind}[{_answered(struct)}]("{tag(struct)}")'


def _subject(struct: Struct) -> str | None:
    """Return the Scala of the token request for a change, which names the object that it changes."""
    group = group_of(struct)
    names = {member.name for member in members(struct)}
    if group is not None and {"location", "id"} <= names:
        return "MakeToken(location = Some(table.location))"
    if group is not None and {"location", "identifier"} <= names:
        return "MakeToken(of.identifier, of.location)"
    if "namespace" in names:
        return "MakeToken(namespace = Some(namespace))"
    if "identifier" in names:
        return f"MakeToken(Some({'function.' if group else ''}identifier))"
    return None


def _of_request(struct: Struct, own: list[Member]) -> list[str]:
    lines = [f"  override def answer(json: JObject): {_answered(struct)} = {_answer(struct)}"]
    subject = _subject(struct)
    if subject and any(member.name == "token" for member in own):
        lines.append(f"  override def subject: MakeToken = {subject}")
    return lines


def _answers(struct: Struct) -> tuple[Struct, ...]:
    return next(answers for request, answers, _ in requests() if request is struct)


def _answered(struct: Struct) -> str:
    answers = _answers(struct)
    if len(answers) == 2:
        return f"Either[{answers[1].__name__}, {answers[0].__name__}]"
    return answers[0].__name__


def _answer(struct: Struct) -> str:
    answers = _answers(struct)
    if len(answers) == 2:
        usual, rare = answers
        member = next(candidate.name for candidate in members(rare) if not candidate.is_optional)
        return (
            f'if (has(json, "{member}")) Left({rare.__name__}.of(json)) else Right({usual.__name__}.of(json))'
        )
    return f"{answers[0].__name__}.of(json)"


def _parameter(struct: str, member: Member) -> str:
    base = f"{_name(member.name)}: {_type(struct, member)}"
    # Python makes the token of a change first, unless the change has a token.
    if (member.is_nullable and member.is_optional) or member.name == "token":
        return f"{base} = None"
    return f"{base} = {_default(member)}" if member.is_optional else base


def _type(struct: str, member: Member) -> str:
    inner = "BigInt" if (struct, member.name) in _WHOLE_OF_ANY_SIZE else _scala(member.type)
    return f"Option[{inner}]" if member.is_nullable else inner


def _scala(annotated: Any) -> str:
    if is_struct(annotated):
        return str(annotated.__name__)
    simple = {str: "String", int: "Long", bool: "Boolean", float: "Double"}
    simple |= {Any: "FreeJson", msgspec.Raw: "JObject"}
    if annotated in simple:
        return simple[annotated]
    if is_union(annotated):
        return _scala_of_union(annotated)
    origin, arguments = get_origin(annotated), get_args(annotated)
    if origin is Literal:
        return "String"
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"Seq[{_scala(arguments[0])}]"
        return f"({', '.join(map(_scala, arguments))})"
    assert origin is dict, f"there is no Scala for {annotated}"
    key, value = arguments
    return "FreeJson" if value is Any else f"Map[{_scala(key)}, {_scala(value)}]"


def _scala_of_union(annotated: Any) -> str:
    inner, is_nullable = without_none(annotated)
    parts = get_args(inner)
    if set(parts) == {bool, int, float, str}:
        return "Scalar"
    if is_nullable:
        return f"Option[{_scala(inner)}]"
    union_name = name_of(annotated)
    if union_name is not None:
        return union_name
    if set(parts) == {str, dict[str, Any]}:
        return "FreeJson"
    assert len(parts) == 2, f"{annotated} has no name in UNIONS"
    return f"Either[{', '.join(map(_scala, parts))}]"


def _written(struct: Struct, member: Member) -> str:
    name = _name(member.name)
    if member.is_nullable:
        call = f"putIfAny({name})" if member.is_optional else f"putOrNull({name})"
    elif member.is_optional and is_value(struct):
        call = f"putUnless({name})({_default(member)})"
    else:
        call = f"put({name})"
    return f'"{member.name}" -> {call}'


def _read(struct: str, member: Member) -> str:
    inner = "BigInt" if (struct, member.name) in _WHOLE_OF_ANY_SIZE else _scala(member.type)
    if member.is_nullable:
        return f'takeIfAny[{inner}](json, "{member.name}")'
    if member.is_optional:
        return f'takeIfAny[{inner}](json, "{member.name}").getOrElse({_default(member)})'
    return f'take[{inner}](json, "{member.name}")'


def _default(member: Member) -> str:
    if isinstance(member.default, bool | int):
        return str(member.default).lower()
    if member.default == {}:
        return f"{_scala(member.type).partition('[')[0]}.empty"
    if isinstance(member.default, str):
        return f'"{member.default}"'
    assert member.default == (), f"{member.name} has a default that Scala does not know"
    return "Nil"


def _name(name: str) -> str:
    first, *more = name.split("_")
    camel = first + "".join(part.capitalize() for part in more)
    return f"`{camel}`" if camel in _RESERVED else camel


def _doc(struct: Struct) -> str:
    text = " ".join((inspect.getdoc(struct) or "").split()) if struct.__doc__ else ""
    text = re.sub(r"`([^`]*)`", r"`\1`", text)
    if not text or text.startswith(f"{struct.__name__}("):
        return ""
    lines, line = [], " *"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = " *"
        line += f" {word}"
    if not lines and len(line) + 5 <= WIDTH:
        return f"/**{line[2:]} */"
    return "\n".join(["/**", *lines, line, " */"])


def _in_parentheses(parameters: list[str]) -> str:
    return f"({', '.join(parameters)})"


def _called(name: str, arguments: list[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def _wrapped(line: str) -> str:
    """Return the line, or if it is too long, break its outermost list with each part on its own line."""
    if len(line) <= WIDTH or line.lstrip().startswith(("/**", "*")):
        return line
    opening_at = max(
        (i for i, char in enumerate(line) if char == "("),
        key=lambda i: (_closing(line, i) - i, -i),
        default=None,
    )
    if opening_at is None:
        return line
    closing_at = _closing(line, opening_at)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    parts = _split(line[opening_at + 1 : closing_at])
    return (
        line[: opening_at + 1] + "\n" + ",\n".join(indent + "  " + part for part in parts) + line[closing_at:]
    )


def _closing(line: str, opened: int) -> int:
    depth = 0
    for i in range(opened, len(line)):
        depth += {"(": 1, ")": -1}.get(line[i], 0)
        if depth == 0:
            return i
    raise AssertionError(f"unbalanced: {line}")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def _mirror() -> str:
    request_lines = [
        f'    "{tag(request)}" -> (({request.__name__}.of _): JObject => Request[_]),'
        for request, _, _ in requests()
    ]
    value_names = {
        struct.__name__ for structs in by_subject().values() for struct in structs if is_value(struct)
    }
    value_lines = [
        f'    "{name}" -> ({name}.of _: JObject => Message),' for name in sorted({*value_names, *UNIONS})
    ]
    request_lines[-1], value_lines[-1] = request_lines[-1].rstrip(","), value_lines[-1].rstrip(",")
    text = [
        _HEAD.format(modules="lakelog.spark.requests"),
        "/** Reads and writes requests, answers and their parts again: a test compares them with those of Python. */",
        "private[lakelog] object Mirror {",
        "",
        "  /** The request as the adapter would write it, in its transaction and for its statement. */",
        "  def request(method: String, text: String): String = {",
        "    val json = Json.parsed(text)",
        "    val read = requests(method)(json)",
        "    require(read.method == method)",
        "    Json.text(Scope.of(json).on(read))",
        "  }",
        "",
        "  def value(name: String, text: String): String = values(name)(Json.parsed(text)).asText",
        "",
        "  private val requests: Map[String, JObject => Request[_]] = Map(",
        *request_lines,
        "  )",
        "",
        "  private val values: Map[String, JObject => Message] = Map(",
        *value_lines,
        "  )",
        "}",
        "",
    ]
    return "\n".join(text)
