"""Statistics of a data file, from its Parquet footer.

Only columns that are not nested have bounds. Bounds of text are cut to 32 characters or bytes, and the cut
makes the upper bound greater. A float column has bounds only if its writer counted its NaNs, because a footer
does not count them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import ColumnStats
from lakelog.catalog.core.schema.literals import float_to_json, value_type
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, is_collated

TEXT_LIMIT = 32
COLUMN_LIMIT = 200
"""Only the first columns of a table have statistics, because those of a very wide table cost too much."""

_HIGHEST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column with statistics: its id, its name in the file and the type that it has there."""

    id: int
    physical: str
    type: AtomicType

    @property
    def is_float(self) -> bool:
        return self.type.name in ("float", "double")


def measured_columns(schema: Schema) -> list[MeasuredColumn]:
    """Return the columns of `schema` that have statistics."""
    return [
        MeasuredColumn(field.id, field.physical, field.type)
        for field in schema.fields[:COLUMN_LIMIT]
        if isinstance(field.type, AtomicType)
        and (value_type(field.type) is not None or is_collated(field.type))
    ]


def footer_statistics(
    footer: pq.FileMetaData,
    columns: Sequence[MeasuredColumn],
    groups: Sequence[int],
    nans: Mapping[int, int] | None = None,
) -> dict[int, ColumnStats]:
    """Return the footer's statistics of `columns` in the row groups `groups` together.

    `nans` are the numbers of NaNs in them, by column id. The file is lakelog's own: times are in
    microseconds.
    """
    chunks: list[dict[str, Any]] = []
    for group in groups:
        row_group = footer.row_group(group)
        columns_of_group = [row_group.column(index) for index in range(row_group.num_columns)]
        chunks.append({chunk.path_in_schema: chunk for chunk in columns_of_group})
    column_stats: dict[int, ColumnStats] = {}
    for column in columns:
        if not all(column.physical in by_path for by_path in chunks):
            continue
        statistics = [by_path[column.physical].statistics for by_path in chunks]
        if any(chunk_statistics is None for chunk_statistics in statistics):
            continue
        nan_count = None if nans is None else nans.get(column.id)
        null_counts = [
            chunk_statistics.null_count for chunk_statistics in statistics if chunk_statistics.has_null_count
        ]
        low = high = None
        # Texts with a collation have no bounds, because their order differs from the order of the bytes.
        if not is_collated(column.type) and (not column.is_float or nan_count is not None):
            low, high = _bounds(statistics, column.type)
        column_stats[column.id] = ColumnStats(
            nulls=sum(null_counts) if len(null_counts) == len(statistics) else None,
            min=low,
            max=high,
            nans=nan_count or None,
        )
    return column_stats


def lower_text(text: str) -> str:
    """Return a text of limited length that is not greater than `text`."""
    return text[:TEXT_LIMIT]


def upper_text(text: str) -> str | None:
    """Return a text of limited length that is not less than `text`, or None if there is none."""
    if len(text) <= TEXT_LIMIT:
        return text
    next_character = ord(text[TEXT_LIMIT - 1]) + 1
    if next_character in _SURROGATES:
        next_character = _SURROGATES.stop
    return None if next_character > _HIGHEST_CHARACTER else text[: TEXT_LIMIT - 1] + chr(next_character)


def upper_bytes(data: bytes) -> bytes | None:
    """Return bytes of limited length that are not less than `data`, or None if there are none."""
    if len(data) <= TEXT_LIMIT:
        return data
    next_byte = data[TEXT_LIMIT - 1] + 1
    return None if next_byte > 0xFF else data[: TEXT_LIMIT - 1] + bytes([next_byte])


def _bounds(statistics: Sequence[Any], type: AtomicType) -> tuple[Any, Any]:
    """Return the bounds of several chunks as JSON literals; chunks that hold only NULL need none."""
    with_bounds = [chunk_statistics for chunk_statistics in statistics if chunk_statistics.has_min_max]
    if not with_bounds or any(
        not chunk_statistics.has_min_max and chunk_statistics.num_values for chunk_statistics in statistics
    ):
        return None, None
    lows = [_comparable(chunk_statistics.min_raw, type) for chunk_statistics in with_bounds]
    highs = [_comparable(chunk_statistics.max_raw, type) for chunk_statistics in with_bounds]
    return _json(min(lows), type, upper=False), _json(max(highs), type, upper=True)


def _comparable(raw: Any, type: AtomicType) -> Any:
    match type.family:
        case "decimal" if isinstance(raw, bytes):
            return int.from_bytes(raw, "big", signed=True)
        case "string" | "char" | "varchar" if isinstance(raw, bytes):
            return raw.decode("utf-8")
        case _:
            return raw


def _json(value: Any, type: AtomicType, *, upper: bool) -> Any:
    match type.family:
        case "decimal":
            digits = tuple(map(int, str(abs(value))))
            return format(Decimal((int(value < 0), digits, -type.scale)), "f")
        case "string" | "char" | "varchar":
            return upper_text(value) if upper else lower_text(value)
        case "binary":
            limit = upper_bytes(value) if upper else value[:TEXT_LIMIT]
            return None if limit is None else base64.b64encode(limit).decode("ascii")
        case "float" | "double":
            return float_to_json(value)
        case _:
            return value
