"""Bloom filters in files that Arrow writes, where this version of Arrow can write them: pyarrow 24 and newer.

With an older one, files have none, and readers look at their rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow.parquet as pq

from lakelog.catalog.core.schema import BLOOM_FPP, BLOOM_NDV, Schema, bloom_columns, value_of


@dataclass(frozen=True, slots=True)
class BloomFilters:
    """What the filters of a table's new files are like: of which columns, by their paths in files."""

    columns: tuple[str, ...]
    fpp: float
    ndv: int

    def options(self, rows: int) -> dict[str, Any]:
        """Return the options of Arrow's writer for row groups of `rows` rows; nothing where it cannot write any."""
        if not self.columns or not _can_write():
            return {}
        each = {"ndv": max(1, min(rows, self.ndv)), "fpp": self.fpp}
        return {"bloom_filter_options": dict.fromkeys(self.columns, each)}


NONE = BloomFilters((), 1.0, 1)


def bloom_filters_of(schema: Schema, properties: Mapping[str, str]) -> BloomFilters:
    """Return what a table's properties want."""
    columns = [
        ".".join(schema.find(path[: depth + 1], case_sensitive=True).physical for depth in range(len(path)))
        for path in bloom_columns(properties, schema)
    ]
    return BloomFilters(
        tuple(columns), float(value_of(properties, BLOOM_FPP)), int(value_of(properties, BLOOM_NDV))
    )


@cache
def _can_write() -> bool:
    return "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters
