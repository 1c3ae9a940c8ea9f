"""What other libraries hand down to a read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakelog.catalog.core.schema import Predicate, Schema


class Narrowed(Protocol):
    """Rows of which a part can be read. Each read starts anew, from the same version."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns and their types in Arrow."""
        ...

    @property
    def row_schema(self) -> Schema:
        """The columns that conditions name, and their types."""
        ...

    def narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        """Return these columns of the rows for which all conditions are true, and perhaps of others; at most `limit`.

        A condition counts where it is known to mean the same here and in the library that has it.
        """
        ...
