"""Bounds of columns whose types changed: which bounds keep their meaning. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lakelog.catalog.core.files import ColumnStats, DataFile
from lakelog.catalog.core.schema import AtomicType, Field, Schema

_INTEGERS = ("byte", "short", "integer", "long")


def with_bounds_of(files: Iterable[DataFile], past_schema: Schema, schema: Schema) -> Iterator[DataFile]:
    """Yield the files, with only those bounds of the columns `past_schema` that have the same meaning in `schema`.

    A bound is read by the type of its column. With another type, days would be read as microseconds.
    """
    changed_ids = {field.id for _, field in past_schema.walk() if not _has_same_values(field, schema)}
    for file in files:
        if changed_ids.isdisjoint(file.stats):
            yield file
            continue
        stats = {
            id: ColumnStats(nulls=column_stats.nulls) if id in changed_ids else column_stats
            for id, column_stats in file.stats.items()
        }
        yield msgspec.structs.replace(file, stats=stats)


def _has_same_values(field: Field, schema: Schema) -> bool:
    if not schema.has_id(field.id):
        return True
    new_type = schema.field_by_id(field.id).type
    if not isinstance(field.type, AtomicType) or not isinstance(new_type, AtomicType):
        return True
    return field.type == new_type or (field.type.family in _INTEGERS and new_type.family in _INTEGERS)
