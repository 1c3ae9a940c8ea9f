"""Identifiers of namespaces and tables: how they are written, and which are refused.

A name is any text without control characters, up to `NAME_LIMIT_BYTES` of UTF-8. Names never become paths, so
nothing else has to be forbidden. Ids locate objects, and names only find them. A place that a user chose is a
`Location`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeAlias, overload

from lakelog.log.errors import InvalidInput

NAME_LIMIT_BYTES = 255
DEPTH_LIMIT = 32
WALK_DEPTH_LIMIT = 4 * DEPTH_LIMIT
"""No walk goes deeper.

Namespaces that are moved with their contents may pass the limit of a name, but not this limit.
"""

Identifier: TypeAlias = tuple[str, ...]
"""A namespace (possibly the root, `()`) or a table (its last part is the table's name)."""

Name: TypeAlias = str | Sequence[str]
"""An identifier as users give it: `"a.b.t"` (backticks around parts with dots) or the parts."""


Location: TypeAlias = str | os.PathLike[str]
"""A folder or a file as users give it: its path, or a URL."""


@overload
def spelled(location: Location) -> str: ...
@overload
def spelled(location: None) -> None: ...
def spelled(location: Location | None) -> str | None:
    """Return a place as text."""
    return None if location is None else os.fspath(location)


def identifier(value: Name) -> Identifier:
    """Return the parts of `value`."""
    if not isinstance(value, str | list | tuple):
        raise InvalidInput(f"{value!r} is not an identifier: give text or a list of its parts")
    parts = split(value) if isinstance(value, str) else tuple(value)
    if len(parts) > WALK_DEPTH_LIMIT:
        raise InvalidInput(
            f"a name has {len(parts):,} parts; namespaces are at most {DEPTH_LIMIT} levels deep"
        )
    for part in parts:
        if not isinstance(part, str):
            raise InvalidInput(f"{value!r} is not an identifier: its parts must be text")
        # The limit is far longer than any existing name, because messages show names as they are.
        if len(part) > 4 * NAME_LIMIT_BYTES or any("\ud800" <= character <= "\udfff" for character in part):
            raise InvalidInput(
                f"{part[:40]!r}… of {len(part):,} characters is not a name: that is text of at most {NAME_LIMIT_BYTES} "
                "bytes"
            )
    return parts


def table_identifier(value: Name) -> Identifier:
    """Return the parts of a table's name, at least one (see `identifier`)."""
    parts = identifier(value)
    if not parts:
        raise InvalidInput("the name of a table is empty: give it at least one character")
    return parts


def split(text: str) -> Identifier:
    """Split SQL's spelling of an identifier at its dots.

    Backticks quote a part. In it, two backticks stand for a backtick.
    """
    if text == "":
        return ()
    parts: list[str] = []
    position = 0
    while True:
        if text.startswith("`", position):
            part, position = _quoted(text, position + 1)
        else:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            part, position = text[position:end], end
        parts.append(part)
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise InvalidInput(f"{text!r} is not an identifier: a dot is expected after the closing backtick")
        position += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    part: list[str] = []
    position = start
    while True:
        end = text.find("`", position)
        if end < 0:
            raise InvalidInput(f"{text!r} is not an identifier: a backtick is not closed")
        part.append(text[position:end])
        if not text.startswith("``", end):
            return "".join(part), end + 1
        part.append("`")
        position = end + 2


def check_list(given: object, of: str) -> None:
    """Raise InvalidInput for a text or a mapping instead of a list, which would be taken letter by letter."""
    if isinstance(given, str | bytes | Mapping):
        raise InvalidInput(f"{given!r} is not a list of {of}: give one, such as [{given!r}]")


def quoted(parts: Sequence[str]) -> str:
    """Return `parts` as SQL spells them: each part in backticks, joined by dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quoted_where_needed(parts: tuple[str, ...]) -> str:
    """Return a name as the commands take it, with backticks only around parts that need them.

    A part needs them also if the name would be read as an option.
    """
    return ".".join(
        part if part and not set(part) & set("`./") and (at or part[0] != "-") else quoted((part,))
        for at, part in enumerate(parts)
    )


def check_name(name: str, what: str) -> None:
    """Raise InvalidInput unless `name` may be given to a new namespace or table (`what` says which)."""
    if name == "":
        raise InvalidInput(f"the name of a {what} is empty: give it at least one character")
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > NAME_LIMIT_BYTES:
        raise InvalidInput(
            f"the name of the {what} {name[:40]!r}… has {size} bytes; the limit is {NAME_LIMIT_BYTES}: shorten it"
        )
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidInput(
                f"the name of the {what} {name!r} contains the control character U+{ord(character):04X}: remove it"
            )


def check_namespace(namespace: Identifier) -> None:
    """Raise InvalidInput unless every part of `namespace` may name a namespace, and it is not too deep."""
    if len(namespace) > DEPTH_LIMIT:
        raise InvalidInput(
            f"the namespace {quoted(namespace[:4])}… is {len(namespace)} levels deep; the limit is {DEPTH_LIMIT}: "
            "use fewer levels"
        )
    for part in namespace:
        check_name(part, "namespace")
