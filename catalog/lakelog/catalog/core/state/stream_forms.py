"""A check that a table still has the columns that a streaming query was prepared for. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from lakelog.catalog.core.schema.schema import Schema


def form_of(schema: Schema, *, to_write: bool = False) -> str:
    """Return a form that is equal for schemas that are read alike, or with `to_write` written alike.

    Comments do not count. For readers, defaults of new rows do not count either.
    """
    ignored_members = ("comment",) if to_write else ("comment", "current")
    content = _without(ignored_members, msgspec.to_builtins(schema.fields))
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _without(ignored: tuple[str, ...], stored: Any) -> Any:
    if isinstance(stored, dict):
        return {key: _without(ignored, value) for key, value in stored.items() if key not in ignored}
    if isinstance(stored, list | tuple):
        return [_without(ignored, item) for item in stored]
    return stored
