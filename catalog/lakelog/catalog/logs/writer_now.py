"""Who writes, as commits say it: the catalog's writer, and what a statement adds while its thread runs.

Threads do not inherit what is added; `as_here` hands it on to those that work for the one at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from lakelog.log import Json

T = TypeVar("T")

_FACTS: ContextVar[Mapping[str, Json] | None] = ContextVar("lakelog_writer_facts", default=None)


class Facts(Mapping[str, Json]):
    """Who writes, as a commit made now says it: the catalog's writer, and what `writing_as` adds."""

    def __init__(self, writer: Mapping[str, Json]) -> None:
        self._writer = writer

    def _now(self) -> Mapping[str, Json]:
        return {**self._writer, **(_FACTS.get() or {})}

    def __getitem__(self, key: str) -> Json:
        return self._now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def facts_now() -> Mapping[str, Json]:
    """Return what `writing_as` adds at this point."""
    return _FACTS.get() or {}


def write_as(facts: Mapping[str, Json]) -> None:
    """Say from here on, until the enclosing `writing_as` ends, that `facts` are what it adds."""
    _FACTS.set(facts)


@contextmanager
def writing_as(facts: Mapping[str, Json]) -> Iterator[None]:
    """Inside, `facts` are added to what each commit of this thread says about its writer."""
    token = _FACTS.set({**(_FACTS.get() or {}), **facts})
    try:
        yield
    finally:
        _FACTS.reset(token)


def as_here(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work`, which says of its writer, in whatever thread it runs, what this one says now."""
    context = copy_context()
    return lambda: context.run(work)
