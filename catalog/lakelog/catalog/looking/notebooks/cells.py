"""Values of rows as short texts for people: bounded in time and length, whatever a value holds. Pure."""

from __future__ import annotations

import datetime as dt
from itertools import islice
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.tools import NULL_CELL, NullCell, shortened_text

CELL_MAX = 60
"""So many characters a cell has at most."""

_BYTES_MAX = 16
_PARTS_MAX = 10
"""So many elements of a list, entries of a map or fields of a struct are shown, and so many levels."""


def cell_of(value: pa.Scalar) -> str | NullCell:
    """Return a value as text, or the mark of a NULL."""
    return shortened_text(_text(value, 0), CELL_MAX) if value.is_valid else NULL_CELL


def counted(number: int, kind: str) -> str:
    """Return a number of things: 1 row, 2,000 rows."""
    return f"{number:,} {kind}{'' if number == 1 else 's'}"


def _text(value: Any, level: int) -> str:
    if not value.is_valid:
        return "NULL"
    kind = value.type
    if level == _PARTS_MAX:
        return "…"
    if pa.types.is_struct(kind):
        names = [kind.field(place).name for place in range(min(kind.num_fields, _PARTS_MAX))]
        parts = [f"{name}: {_text(value[place], level + 1)}" for place, name in enumerate(names)]
        return f"{{{_joined(parts, kind.num_fields)}}}"
    if pa.types.is_map(kind):
        entries = value.values
        parts = [
            f"{_text(entry[0], level + 1)}: {_text(entry[1], level + 1)}"
            for entry in islice(entries, _PARTS_MAX)
        ]
        return f"{{{_joined(parts, len(entries))}}}"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        elements = value.values
        parts = [_text(element, level + 1) for element in islice(elements, _PARTS_MAX)]
        return f"[{_joined(parts, len(elements))}]"
    return _atom(value)


def _atom(value: Any) -> str:
    kind = value.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        data = value.as_buffer()
        size_text = f"… ({data.size:,} bytes)" if data.size > _BYTES_MAX else ""
        return f"0x{data.slice(0, min(data.size, _BYTES_MAX)).to_pybytes().hex()}{size_text}"
    try:
        plain = value.as_py()
    except (OverflowError, ValueError):
        return str(value.cast(pa.string()))  # Python's dates and times end with the year 9999
    if isinstance(plain, dt.datetime):
        return plain.isoformat(" ").replace("+00:00", "Z")
    if isinstance(plain, bool):
        return str(plain).lower()
    return str(plain)


def _joined(parts: list[str], count: int) -> str:
    return ", ".join([*parts, f"… {count - len(parts):,} more"] if count > len(parts) else parts)
