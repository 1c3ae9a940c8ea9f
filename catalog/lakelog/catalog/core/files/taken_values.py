"""Values of identity columns that a write has taken, compared with the files that it wrote. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.schema.identity import ValuesTaken, check_steps, identity_fields
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.log.errors import InvalidInput


def check_taken(values: Sequence[ValuesTaken], files: Sequence[DataFile], schema: Schema) -> None:
    """Raise InvalidInput for values that a write cannot have taken, and for rows that have none."""
    for field, _ in identity_fields(schema):
        for file in files:
            known_stats = file.stats.get(field.id)
            if known_stats is not None and known_stats.nulls:
                raise InvalidInput(
                    f"rows of {file.path} have no value of the identity column {dotted((field.name,))}: take values "
                    "for them, and name these"
                )
    check_steps(values, schema)
