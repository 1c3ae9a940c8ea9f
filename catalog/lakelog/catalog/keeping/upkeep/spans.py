"""The range of a column's values in each file, and how much these ranges overlap. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import converted
from lakelog.catalog.core.planning import array_of
from lakelog.catalog.core.schema import Metadata, dotted, from_arrow, value_type
from lakelog.catalog.keeping.upkeep.model import KeyDepth


def keys_of(metadata: Metadata) -> list[int]:
    """Return the columns by which rows are clustered, and the columns by which they are sorted."""
    ids = (*metadata.clustering, *(field.source_id for field in metadata.sort_order.fields))
    return [id for id in dict.fromkeys(ids) if metadata.schema.has_id(id)]


class KeySpans:
    """The spans of `files` (in the form of `FileSet.chunks`) along a column.

    `known` are the places of the files whose bounds are known.
    """

    def __init__(self, files: pa.Table, id: int, metadata: Metadata) -> None:
        self.name = dotted(metadata.schema.path_of(id))
        type = value_type(metadata.schema.field_by_id(id).type)
        names = (f"lo{id}", f"hi{id}")
        if type is None or any(name not in files.column_names for name in names):
            self.lows: Sequence[Any] = []
            self.highs: Sequence[Any] = []
        else:
            self.lows, self.highs = (from_arrow(converted(array_of(files, name), type)) for name in names)
        self.known = [
            place
            for place, (low, high) in enumerate(zip(self.lows, self.highs, strict=True))
            if low is not None and high is not None
        ]
        self.sorted_lows = sorted(self.lows[place] for place in self.known)
        self.sorted_highs = sorted(self.highs[place] for place in self.known)

    @property
    def overlap(self) -> float | None:
        """Return how many files may hold a value of a file, on average: 1 if none overlap."""
        if not self.known:
            return None
        met = sum(
            bisect_right(self.sorted_lows, self.highs[place])
            - bisect_left(self.sorted_highs, self.lows[place])
            for place in self.known
        )
        return round(met / len(self.known), 2)

    @property
    def deepest(self) -> int:
        """Return how many files may hold the same value, at worst."""
        # The number of files only grows at the low end of a file, so the maximum is at a low end.
        return max(
            (
                bisect_right(self.sorted_lows, low) - bisect_left(self.sorted_highs, low)
                for low in self.sorted_lows
            ),
            default=0,
        )


def depths_of(files: pa.Table, metadata: Metadata) -> tuple[KeyDepth, ...]:
    """Return how the files lie along each column by which rows are clustered or sorted, if that is known."""
    depths = []
    for id in keys_of(metadata):
        spans = KeySpans(files, id, metadata)
        if spans.overlap is not None:
            depths.append(
                KeyDepth(
                    column=spans.name, files=len(spans.known), overlap=spans.overlap, deepest=spans.deepest
                )
            )
    return tuple(depths)
