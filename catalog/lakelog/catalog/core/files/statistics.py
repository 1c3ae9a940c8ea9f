"""Statistics of a data file, from its Parquet footer.

Only columns that are not nested have bounds. Bounds of text are cut to 32 characters or bytes; the upper one is made
greater by that. A float column has bounds only where its writer counted its NaNs, because a footer does not count them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import ColumnStats
from lakelog.catalog.core.schema import AtomicType, Schema, float_to_json, is_collated, value_type

TEXT_LIMIT = 32
COLUMN_LIMIT = 200
"""Only the first columns of a table have statistics, at most this many: those of a very wide table cost too much."""

_HIGHEST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Measured:
    """A column with statistics: its id, its name in the file and the type that it has there."""

    id: int
    physical: str
    type: AtomicType

    @property
    def is_float(self) -> bool:
        return self.type.name in ("float", "double")


def measured_columns(schema: Schema) -> list[Measured]:
    """Return the columns of `schema` that have statistics."""
    return [
        Measured(field.id, field.physical, field.type)
        for field in schema.fields[:COLUMN_LIMIT]
        if isinstance(field.type, AtomicType)
        and (value_type(field.type) is not None or is_collated(field.type))
    ]


def footer_statistics(
    footer: pq.FileMetaData,
    columns: Sequence[Measured],
    groups: Sequence[int],
    nans: Mapping[int, int] | None = None,
) -> dict[int, ColumnStats]:
    """Return what the footer says of `columns` in the row groups `groups` together.

    `nans` are the numbers of NaNs in them, by column id. The file is one of lakelog's: times are in microseconds.
    """
    chunks: list[dict[str, Any]] = []
    for group in groups:
        row_group = footer.row_group(group)
        each = [row_group.column(index) for index in range(row_group.num_columns)]
        chunks.append({chunk.path_in_schema: chunk for chunk in each})
    found: dict[int, ColumnStats] = {}
    for column in columns:
        if not all(column.physical in by_path for by_path in chunks):
            continue
        statistics = [by_path[column.physical].statistics for by_path in chunks]
        if any(each is None for each in statistics):
            continue
        counted = None if nans is None else nans.get(column.id)
        nulls = [each.null_count for each in statistics if each.has_null_count]
        low = high = None
        # Of texts with a collation there are no bounds: in its order they are others than those of the bytes.
        if not is_collated(column.type) and (not column.is_float or counted is not None):
            low, high = _bounds(statistics, column.type)
        found[column.id] = ColumnStats(
            nulls=sum(nulls) if len(nulls) == len(statistics) else None,
            min=low,
            max=high,
            nans=counted or None,
        )
    return found


def lower_text(text: str) -> str:
    """Return a text of limited length that is not greater than `text`."""
    return text[:TEXT_LIMIT]


def upper_text(text: str) -> str | None:
    """Return a text of limited length that is not less than `text`, or None where there is none."""
    if len(text) <= TEXT_LIMIT:
        return text
    following = ord(text[TEXT_LIMIT - 1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return None if following > _HIGHEST_CHARACTER else text[: TEXT_LIMIT - 1] + chr(following)


def upper_bytes(data: bytes) -> bytes | None:
    """Return bytes of limited length that are not less than `data`, or None where there are none."""
    if len(data) <= TEXT_LIMIT:
        return data
    following = data[TEXT_LIMIT - 1] + 1
    return None if following > 0xFF else data[: TEXT_LIMIT - 1] + bytes([following])


def _bounds(statistics: Sequence[Any], type: AtomicType) -> tuple[Any, Any]:
    """Return the bounds of several chunks as JSON literals; chunks that hold only NULL need none."""
    known = [each for each in statistics if each.has_min_max]
    if not known or any(not each.has_min_max and each.num_values for each in statistics):
        return None, None
    lows = [_comparable(each.min_raw, type) for each in known]
    highs = [_comparable(each.max_raw, type) for each in known]
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
            bound = upper_bytes(value) if upper else value[:TEXT_LIMIT]
            return None if bound is None else base64.b64encode(bound).decode("ascii")
        case "float" | "double":
            return float_to_json(value)
        case _:
            return value
