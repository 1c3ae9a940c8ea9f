"""One Python side after the other for the same warehouse, and questions to it as the adapter sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from lakelog.spark.dispatch import RequestDispatch
from lakelog.spark.jar import version

EVERYTHING = {"op": "ALWAYS_TRUE", "args": []}
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


class Side:
    """A process that has one catalog open."""

    def __init__(self, **settings: str) -> None:
        self.dispatch = RequestDispatch()
        self._catalog: int | None = None
        self.ask("hello", version=version(), spark="4.3.0")
        self._catalog = self.ask("open_catalog", settings=settings)["catalog"]

    @property
    def catalog(self):
        return self.dispatch.opened(self._catalog).outside

    def ask(self, method: str, **params: Any) -> Any:
        return self.answer(method, params)[0]

    def answer(self, method: str, params: Any, *, is_first: bool = False) -> tuple[Any, bytes]:
        """Return the answer's JSON as it crosses the pipe, and the bytes, in one piece."""
        text = msgspec.json.encode(params)
        answer, body = self.dispatch.answer(method, text, self._catalog, is_first=is_first)
        return msgspec.json.decode(msgspec.json.encode(answer)), body if isinstance(
            body, bytes
        ) else b"".join(body)


def ask(side: Side, method: str, **params: Any) -> Any:
    return side.ask(method, **params)


def reference(facts: Any) -> dict[str, Any]:
    """Name a table that was loaded, as requests do."""
    known_texts = ("location", "id", "version", "past", "step", "ref", "found_by")
    return {key: facts[key] for key in known_texts if key in facts}


def named(facts: Any) -> dict[str, Any]:
    """Name a table by its place, and its tag or branch."""
    return {key: facts[key] for key in ("location", "ref") if key in facts}


def of_write(begun: Any) -> dict[str, Any]:
    """Return what the commit of a write that has begun says of it."""
    return {key: begun[key] for key in ("write", "token", "version") if key in begun}
