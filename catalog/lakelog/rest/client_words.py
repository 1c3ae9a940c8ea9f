"""The words with which errors of Iceberg's REST catalog begin, as its clients and their tests know them.

An error keeps lakelog's own message, which says what to do, after these words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelog.catalog import (
    NamespaceExists,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import LakelogError


@dataclass(frozen=True, slots=True)
class RequestNames:
    """The names that a request is about: of namespaces, or of tables or views."""

    names: Sequence[Identifier] = ()
    is_of_view: bool = False
    is_commit: bool = False
    """Whether the request commits to tables. Then a table that exists is a requirement that does not hold."""

    new_name: Identifier | None = None
    """The name that a table or view is to get."""


def with_known_words(error: LakelogError, message: str, request: RequestNames) -> str:
    """Return the message of an error, after the words that clients know for it, if there are any."""
    words = _words(error, message, request)
    return f"{words} ({message})" if words else message


def _words(error: LakelogError, message: str, request: RequestNames) -> str:
    """Return the words for an error. Empty if there are none, or if the message is about another name."""
    all_names = (*request.names, *([request.new_name] if request.new_name else []))
    match error:
        case NoSuchNamespace() | NamespaceExists():
            parents = [name[:length] for name in all_names for length in range(1, len(name) + 1)]
            state = "already exists" if isinstance(error, NamespaceExists) else "does not exist"
            return _about(f"Namespace {state}", parents, message)
        case NoSuchTable():
            return _about("Table does not exist", all_names, message)
        case NoSuchView():
            return _about("View does not exist", all_names, message)
        case TableExists():
            return _words_of_taken_name(isinstance(error, ViewExists), all_names, message, request)
        case _:
            return ""


def _words_of_taken_name(
    is_view: bool, names: Sequence[Identifier], message: str, request: RequestNames
) -> str:
    kind = "View" if is_view else "Table"
    if request.new_name is not None:
        names_of_rename = f"{_dotted(request.names[0])} to {_dotted(request.new_name)}"
        return f"Cannot rename {names_of_rename}. {kind} already exists"
    if is_view != request.is_of_view:
        return _about(f"{kind} with same name already exists", names, message)
    if request.is_commit:
        return "Requirement failed: table already exists"
    return _about(f"{kind} already exists", names, message)


def _about(words: str, names: Iterable[Identifier], message: str) -> str:
    """Return the words with the name that the message is about. It is the first name there, and the longest."""
    places = {name: message.find(quoted(name)) for name in names}
    names_there = [name for name, place in places.items() if place >= 0]
    if not names_there:
        return ""
    return f"{words}: {_dotted(min(names_there, key=lambda name: (places[name], -len(name))))}"


def _dotted(name: Identifier) -> str:
    return ".".join(name)
