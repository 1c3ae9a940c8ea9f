"""Bloom filters in files that Arrow writes, if this version of Arrow can write them: pyarrow 24 and newer.

With an older version, files have none, and readers check their rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow.parquet as pq

from lakelog.catalog.core.schema.properties.checking import bloom_columns
from lakelog.catalog.core.schema.properties.known import BLOOM_FPP, BLOOM_NDV
from lakelog.catalog.core.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class BloomFilters:
    """The filters of a table's new files: their columns, by paths in files, and their sizes."""

    columns: tuple[str, ...]
    fpp: float
    ndv: int

    def options(self, rows: int) -> dict[str, Any]:
        """Return the options of Arrow's writer for row groups of `rows` rows; nothing if it writes no
        filters.
        """
        if not self.columns or not _can_write():
            return {}
        column_options = {"ndv": max(1, min(rows, self.ndv)), "fpp": self.fpp}
        return {"bloom_filter_options": dict.fromkeys(self.columns, column_options)}


NONE = BloomFilters((), 1.0, 1)


def bloom_filters_of(schema: Schema, properties: Mapping[str, str]) -> BloomFilters:
    """Return the filters that a table's properties ask for."""
    columns = [
        ".".join(schema.find(path[: depth + 1], case_sensitive=True).physical for depth in range(len(path)))
        for path in bloom_columns(properties, schema)
    ]
    return BloomFilters(tuple(columns), BLOOM_FPP.of(properties), BLOOM_NDV.of(properties))


@cache
def _can_write() -> bool:
    return "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters
