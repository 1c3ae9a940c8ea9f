"""Between which values of a column the rows of each file lie, and how much these spans overlap. Pure."""

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
    """Return the columns that rows are clustered by, and those that they are sorted by."""
    ids = (*metadata.clustering, *(field.source_id for field in metadata.sort_order.fields))
    return [id for id in dict.fromkeys(ids) if metadata.schema.has_id(id)]


class KeySpans:
    """The spans of `files` (in the form of `FileSet.chunks`) along one column; `known` are the places of those files
    whose bounds are known."""

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
        """Return how many files may hold a value that one holds, on average: 1 where none overlap."""
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
        """Return how many files may hold one and the same value, at worst."""
        # Files gain only where one begins: the most are met at the low end of one of them.
        return max(
            (
                bisect_right(self.sorted_lows, low) - bisect_left(self.sorted_highs, low)
                for low in self.sorted_lows
            ),
            default=0,
        )


def depths_of(files: pa.Table, metadata: Metadata) -> tuple[KeyDepth, ...]:
    """Return how the files lie along each column that rows are clustered or sorted by, where that is known."""
    found = []
    for id in keys_of(metadata):
        spans = KeySpans(files, id, metadata)
        if spans.overlap is not None:
            found.append(
                KeyDepth(
                    column=spans.name, files=len(spans.known), overlap=spans.overlap, deepest=spans.deepest
                )
            )
    return tuple(found)
