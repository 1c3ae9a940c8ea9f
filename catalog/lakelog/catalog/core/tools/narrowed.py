"""The interface by which other libraries hand down columns, conditions and limits to a read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.schema import Schema


class NarrowableRows(Protocol):
    """Rows that can be read in part. Each read starts again, from the same version."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns and their types in Arrow."""
        ...

    @property
    def _row_schema(self) -> Schema:
        """The columns that conditions name, and their types."""
        ...

    def _narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        """Return these columns of the rows for which all conditions are true, and perhaps of other rows. At
        most `limit` rows.

        A condition counts if it is known to mean the same here and in the library that has it.
        """
        ...
