"""The values of identity columns for rows that Python writes: consecutive, without gaps within a write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.identity import (
    ValuesTaken,
    check_range,
    given_to,
    identity_fields,
    next_values,
)
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import Field, Identity
from lakelog.log.errors import InvalidInput


class IdentityNumbering:
    """Makes the values for the rows of a write.

    `taken` has the last values that other writes took, by column id.
    """

    def __init__(self, schema: Schema, taken: Mapping[int, int]) -> None:
        self._columns = identity_fields(schema)
        self._first = next_values(schema, taken)
        self._next = dict(self._first)
        self._given: set[int] = set()

    @property
    def has_columns(self) -> bool:
        return bool(self._columns)

    def fill(self, rows: pa.Table) -> pa.Table:
        """Return `rows`, which have all columns of the table, with a value in every identity column.

        Raises InvalidInput for a given value in a column that is always generated, and if a column is
        exhausted.
        """
        for field, identity in self._columns:
            place = rows.schema.get_field_index(field.name)
            column = self._filled(rows.column(place).combine_chunks(), field, identity)
            rows = rows.set_column(place, field.name, column)
        return rows

    def _filled(self, column: pa.Array, field: Field, identity: Identity) -> pa.Array:
        if column.null_count < len(column):
            if identity.always:
                raise InvalidInput(given_to(field))
            self._given.add(field.id)
        if not column.null_count:
            return column
        begin = self._next[field.id]
        self._next[field.id] = begin + column.null_count * identity.step
        check_range(field, self._next[field.id] - identity.step)
        # All used values are in range, so it does not matter where the numbers between wrap around.
        ranks = pc.subtract(pc.cumulative_sum(column.is_null().cast(pa.int64())), 1)
        return pc.coalesce(column, pc.add(pc.multiply(ranks, identity.step), pa.scalar(begin, pa.int64())))

    def note_given(self, columns: Iterable[int]) -> None:
        """Note that unfilled rows of the write have values of their own in these columns, by ids."""
        self._given.update(columns)

    def taken(self) -> list[ValuesTaken]:
        """Return the values that were taken so far."""
        return [
            ValuesTaken(
                column=field.id,
                first=self._first[field.id],
                last=self._next[field.id] - identity.step,
                given=field.id in self._given,
            )
            for field, identity in self._columns
            if self._next[field.id] != self._first[field.id]
        ]
