"""Suggestions of existing names for a name that does not exist.

Only names that exist are suggested. Each part of a name may be misspelled. The first part may be the
catalog's name, as in Spark's statements. A namespace may be missing before the name. Rule: only a few
namespaces are read, because an error must not take long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TypeAlias

from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.nearest import nearest

NamesIn: TypeAlias = Callable[[Identifier, str], Collection[str]]
"""Returns a namespace's names of a space; none if there is no such namespace."""

_SHOWN_MAX = 3
_NAMESPACES_MAX = 20

_NAMESPACE, _RELATION = "namespace", "relation"


_ARE_WANTED: ContextVar[bool] = ContextVar("lakelog_name_hints", default=True)


@contextmanager
def without_suggestions() -> Iterator[None]:
    """Inside, errors of this thread show no name but the missing name. Its caller may not see all names."""
    token = _ARE_WANTED.set(False)
    try:
        yield
    finally:
        _ARE_WANTED.reset(token)


def suggests_names() -> bool:
    return _ARE_WANTED.get()


def meant_by(path: Identifier, space: str, names_in: NamesIn) -> str:
    """Return the suggestion for a missing name, or an empty text."""
    if like := _shown(_likes((), path, space, names_in)):
        return f"did you mean {like}?"
    namespaces = names_in((), _NAMESPACE)
    if len(path) > 1 and path[0] not in namespaces:
        inner_path = path[1:]
        if inner_path[-1] in names_in(inner_path[:-1], space):
            return f"leave the catalog's name out, as in {quoted(inner_path)}"
        if like_names := nearest(path[0], namespaces):
            return f"there is a namespace {' or '.join(quoted((name,)) for name in like_names)}, without that name"
    if len(path) == 1 and space == _RELATION:
        paths = ((name, *path) for name in islice(sorted(namespaces), _NAMESPACES_MAX))
        if candidates := _shown(
            other_path for other_path in paths if path[0] in names_in(other_path[:1], space)
        ):
            return f"did you mean {candidates}?"
    return ""


def _likes(parent: Identifier, rest: Identifier, space: str, names_in: NamesIn) -> Iterator[Identifier]:
    """Yield existing names in a namespace that are like `rest`."""
    if not rest:
        yield parent
        return
    names = names_in(parent, space if len(rest) == 1 else _NAMESPACE)
    for name in [rest[0]] if rest[0] in names else nearest(rest[0], names):
        yield from _likes((*parent, name), rest[1:], space, names_in)


def _shown(names: Iterator[Identifier]) -> str:
    return " or ".join(map(quoted, islice(names, _SHOWN_MAX)))
