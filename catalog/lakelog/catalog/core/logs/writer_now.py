"""The writer's facts for commits: the catalog's facts, and facts that a statement adds while its thread runs.

Threads do not inherit added facts; `as_here` passes them on to the threads that work for the current thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from lakelog.log import Json
from lakelog.log.secrets import masked_facts

T = TypeVar("T")

_FACTS: ContextVar[Mapping[str, Json] | None] = ContextVar("lakelog_writer_facts", default=None)


class WriterFacts(Mapping[str, Json]):
    """The writer's facts for a commit made now, without secrets: the catalog's, and `writing_as`'s."""

    def __init__(self, writer: Mapping[str, Json]) -> None:
        self._writer = writer
        self._last: dict[str, tuple[Json, Json]] = {}
        """The value of each fact, with and without secrets: most are the same in each commit."""

    def _now(self) -> Mapping[str, Json]:
        return {**self._writer, **(_FACTS.get() or {})}

    def __getitem__(self, key: str) -> Json:
        # Each on its own: a commit reads each, and statements are long.
        facts = _FACTS.get() or {}
        value = facts[key] if key in facts else self._writer[key]
        last = self._last.get(key)
        if last is None or last[0] is not value or not isinstance(value, str):
            last = self._last[key] = value, masked_facts({key: value})[key]
        return last[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def facts_now() -> Mapping[str, Json]:
    """Return the facts that `writing_as` adds at this point."""
    return _FACTS.get() or {}


def write_as(facts: Mapping[str, Json]) -> None:
    """Let the enclosing `writing_as` add `facts` instead, from here on until it ends."""
    _FACTS.set(facts)


@contextmanager
def writing_as(facts: Mapping[str, Json]) -> Iterator[None]:
    """Inside, `facts` are added to the writer's facts of each commit of this thread."""
    token = _FACTS.set({**(_FACTS.get() or {}), **facts})
    try:
        yield
    finally:
        _FACTS.reset(token)


def as_here(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work`, which has the present writer's facts of this thread in any thread that runs it."""
    context = copy_context()
    return lambda: context.run(work)
