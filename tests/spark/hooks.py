"""Texts for Python sides whose answers a test holds up, counts or prevents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

HOOK = """
from dataclasses import replace
from lakelog.spark.handlers.entries import HANDLERS
def hook(method, wrap):
    entry = HANDLERS[method]
    HANDLERS[method] = replace(entry, handler=wrap(entry.handler))
"""
"""`hook(method, wrap)` puts `wrap(handler)` in the place of the handler of a request."""


def meanwhile(
    methods: Sequence[str], armed: Path, warehouse: Path | str, change: str, *, after: bool = False
) -> str:
    """Return a text by which another client makes a change beside the first request after the file `armed` appears.

    `change` are statements in which `other` is that client's catalog. It comes before the answer, or right `after` it.
    """
    call = "original(*asked)"
    return f"""{HOOK}
import pathlib
from lakelog.catalog import Catalog
armed = pathlib.Path({str(armed)!r})
def disturbed(original):
    def call(*asked):
        answer = {call if after else None}
        if armed.exists():
            armed.unlink()
            other = Catalog({str(warehouse)!r})
{indent(change.strip(), " " * 12)}
        return {"answer" if after else call}
    return call
for method in {tuple(methods)!r}:
    hook(method, disturbed)
"""
