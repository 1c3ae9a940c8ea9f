"""Bounds of columns whose types were changed: which of them mean the same. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lakelog.catalog.core.files import ColumnStats, DataFile
from lakelog.catalog.core.schema import AtomicType, Field, Schema

_INTEGERS = ("byte", "short", "integer", "long")


def with_bounds_of(files: Iterable[DataFile], then: Schema, now: Schema) -> Iterator[DataFile]:
    """Yield the files, of which bounds are values of the columns `then`, with those that are the same of `now`.

    A bound is read by the type that a column has: by another type, days would be microseconds.
    """
    other = {field.id for _, field in then.walk() if not _has_same_values(field, now)}
    for file in files:
        if other.isdisjoint(file.stats):
            yield file
            continue
        stats = {
            id: ColumnStats(nulls=known.nulls) if id in other else known for id, known in file.stats.items()
        }
        yield msgspec.structs.replace(file, stats=stats)


def _has_same_values(field: Field, now: Schema) -> bool:
    if not now.has_id(field.id):
        return True
    there = now.field_by_id(field.id).type
    if not isinstance(field.type, AtomicType) or not isinstance(there, AtomicType):
        return True
    return field.type == there or (field.type.family in _INTEGERS and there.family in _INTEGERS)
