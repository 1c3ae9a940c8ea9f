"""Whether the columns that a streaming query was prepared for are still those of the table. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from lakelog.catalog.core.schema import Schema


def form_of(schema: Schema, *, to_write: bool = False) -> str:
    """Return a form that is equal for schemas that are read alike, or written alike: comments do not count, nor, for
    readers, defaults of new rows."""
    ignored = ("comment",) if to_write else ("comment", "current")
    stored = _without(ignored, msgspec.to_builtins(schema.fields))
    return hashlib.sha256(msgspec.json.encode(stored, order="sorted")).hexdigest()


def _without(ignored: tuple[str, ...], stored: Any) -> Any:
    if isinstance(stored, dict):
        return {key: _without(ignored, value) for key, value in stored.items() if key not in ignored}
    if isinstance(stored, list | tuple):
        return [_without(ignored, each) for each in stored]
    return stored
