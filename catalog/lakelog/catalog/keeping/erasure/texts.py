"""Texts that quote values of a condition: statements that commits keep, and what a table's columns and properties say.

A statement is kept without its literals unless a session asks for all of it. What is found goes by expiry, as a
tombstone keeps no text. Definitions are the user's to change: they are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.schema import Literal, Metadata, Predicate
from lakelog.log import Commit, each_change
from lakelog.log.burial import is_buried
from lakelog.log.expiry import last_base

SHORTEST = 3
"""Shorter numbers are in too many statements to say anything; shorter texts are looked for between quotes."""


def values_of(predicate: Predicate) -> list[str]:
    """Return the values that a condition names, as texts, and as literals and JSON have them."""
    found: list[str] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            found += values_of(part)
        elif isinstance(part, Literal) and part.value is not None and not isinstance(part.value, bool):
            text = str(part.value)
            if len(text) >= SHORTEST:
                found += _written(text)
            elif text and isinstance(part.value, str):
                found += [f"{quote}{each}{quote}" for quote in "'\"" for each in _written(text)]
    return list(dict.fromkeys(found))


def _written(text: str) -> list[str]:
    """Return the forms of a text between quotes: as it is, with quotes doubled, and with backslashes before them."""
    slashed = text.replace("\\", "\\\\")
    return [
        text,
        text.replace("'", "''"),
        text.replace('"', '""'),
        slashed,
        slashed.replace("'", "\\'"),
        slashed.replace('"', '\\"'),
    ]


def quotes(text: str, values: Sequence[str]) -> bool:
    """Return whether a text has one of the values, and not only as a part of a longer word or number."""
    return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for value in values)


def versions_quoting(tracked: TrackedLog[Any], values: Sequence[str]) -> Iterator[int]:
    """Yield the versions of a log whose commits keep a statement that quotes a value, and that of a base where expiry
    was stopped: commits before it are still there, and are read no more. A commit that has no effect counts, as its
    object stays: that of a transaction that was aborted, or is undecided."""
    if not values:
        return
    base = last_base(tracked.log)
    if base is not None and not is_buried(tracked.log.replay, base):
        yield base.root.version
    for commit in tracked.log.standing(1 if base is None else base.root.version):
        if has_quoting_statement(commit, values):
            yield commit.version


def has_quoting_statement(commit: Commit, values: Sequence[str]) -> bool:
    """Return whether a commit keeps a statement that quotes one of the values."""
    return any(quotes(text, values) for text in _statements(commit))


def _statements(commit: Commit) -> Iterator[str]:
    for each in (commit, *each_change(commit)):
        yield str(each.writer.get("statement") or "")


def definitions_quoting(metadata: Metadata, values: Sequence[str]) -> Iterator[str]:
    """Yield what of a table's definition quotes a value, in words."""
    for constraint in metadata.constraints:
        if quotes(msgspec.json.encode(constraint).decode(), values):
            yield f"the constraint {constraint.name}"
    for name, value in sorted(metadata.properties.items()):
        if quotes(value, values):
            yield f"the property {name}"
    if metadata.comment and quotes(metadata.comment, values):
        yield "the comment of the table"
    for field in metadata.schema.fields:
        if quotes(msgspec.json.encode(field).decode(), values):
            yield f"the definition of the column {field.name}"
