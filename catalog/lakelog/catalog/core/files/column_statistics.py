"""Statistics of a whole table that no file's footer has, such as the number of distinct values.

They are computed on demand. They are estimates for query planners, of the version that they name, and serve
no other purpose. Rows that were added or removed since make them less exact, never wrong.
"""

from __future__ import annotations

import msgspec

from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log.grammar import Int32, Number


class ColumnEstimates(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Estimates of a column; None is unknown.

    `distinct` is an estimate, and does not count NULL. `min` and `max` are JSON literals of the type `type`,
    which is the column's type at that version.
    """

    type: str
    distinct: Number | None = None
    nulls: Number | None = None
    min: bool | int | float | str | None = None
    max: bool | int | float | str | None = None
    average_bytes: Number | None = None
    most_bytes: Number | None = None


class TableEstimates(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Estimates of the table at `version`, by column id.

    `size_bytes` is the size of its files. `added_since` rows were added later. Then planners should not rely
    on the estimates, as values may lie outside of their bounds.
    """

    version: Number
    rows: Number
    size_bytes: Number
    columns: dict[Int32, ColumnEstimates]
    added_since: Number = 0

    def with_added(self, rows: int) -> TableEstimates:
        """Return these estimates after so many rows were added."""
        return msgspec.structs.replace(self, added_since=self.added_since + rows) if rows else self

    def with_older(self, older: TableEstimates | None) -> TableEstimates:
        """Return these estimates with the estimates of other columns that still hold."""
        if older is None or older.added_since:
            return self
        return msgspec.structs.replace(self, columns={**older.columns, **self.columns})


ready(TableEstimates)
