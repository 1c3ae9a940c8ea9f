"""Checks of identity columns: that no value was taken twice, and that rows have only values that were taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema import dotted, identity_fields
from lakelog.catalog.core.state import IdentityTaken, TableCreated, TableEvent, TableState


@dataclass(slots=True)
class TakenValues:
    """Follows the values that the commits of a table took, as a range for each column."""

    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def begins(self, taken: Mapping[int, int]) -> None:
        self.ranges = {column: (last, last) for column, last in taken.items()}

    def passed(self, event: TableEvent, version: int) -> None:
        if isinstance(event, TableCreated):
            self.ranges = {}
        if not isinstance(event, IdentityTaken):
            return
        low, high = sorted((event.first, event.last))
        taken_range = self.ranges.get(event.column)
        if taken_range is not None and low <= taken_range[1] and taken_range[0] <= high:
            self.problems.append(
                f"version {version} took the values {event.first} to {event.last} of the column {event.column}, "
                f"and some of {taken_range[0]} to {taken_range[1]} were taken before"
            )
        lows, highs = (
            (low, high) if taken_range is None else (min(low, taken_range[0]), max(high, taken_range[1]))
        )
        self.ranges[event.column] = lows, highs


def not_taken(state: TableState, files: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield files, by path, whose bounds show values that no commit took, though every value is generated."""
    for column, identity in identity_fields(state.current.schema):
        names = f"lo{column.id}", f"hi{column.id}"
        if not identity.always or any(name not in files.column_names for name in names):
            continue
        last = state.identities.get(column.id)
        # If nothing was taken, every value is beyond the range, even the first.
        ends = sorted((identity.start, identity.start if last is None else last))
        below = pc.less(files[names[0]], pa.scalar(ends[0], pa.int64()))
        above = pc.greater(files[names[1]], pa.scalar(ends[1], pa.int64()))
        outside = pc.or_kleene(below, above) if last is not None else pc.is_valid(files[names[0]])
        for path in files["path"].filter(pc.fill_null(outside, False)).to_pylist():
            yield path, f"has values of the identity column {dotted((column.name,))} that no commit took"
