"""Columns whose values are generated from others of the same row: which changes of a table they allow.

Spark computes the values and checks those that are given. The rules here keep them right while the table changes.
"""

from __future__ import annotations

from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import Field, same_shape
from lakelog.log.errors import InvalidInput, Unsupported


def generated_fields(schema: Schema) -> list[Field]:
    """Return the columns whose values are generated."""
    return [field for field in schema.fields if field.generated is not None]


def refuse_generated(schema: Schema, instead: str) -> None:
    """Raise Unsupported for rows that did not pass through Spark, where a column is generated. `instead`: what to
    do."""
    for field in generated_fields(schema):
        assert field.generated is not None
        raise Unsupported(
            f"the column {dotted((field.name,))} is generated from {field.generated.sql}, which Spark computes where "
            f"its own statements write rows: {instead}"
        )


def check_defined(schema: Schema) -> None:
    """Raise InvalidInput unless generated columns of a new table are generated from other columns of it."""
    for field in generated_fields(schema):
        assert field.generated is not None
        if field.default is not None:
            raise InvalidInput(f"the column {dotted((field.name,))} is generated and cannot have a default")
        for name in field.generated.columns:
            source = next((other for other in schema.fields if other.name == name), None)
            if source is None or source.generated is not None:
                raise InvalidInput(
                    f"the column {dotted((field.name,))} is generated from {dotted((name,))}, which is not a column "
                    "with values of its own"
                )


def check_kept(before: Schema, after: Schema) -> None:
    """Raise InvalidInput where changes of a table leave a generated column without what it is generated from.

    The values that are there were computed from the columns as they were, and the expression names them.
    """
    for field in generated_fields(after):
        old = before.field_by_id(field.id)
        name, generated = dotted((field.name,)), field.generated
        assert generated is not None
        if field.default != old.default:
            raise InvalidInput(
                f"cannot change the default of {name}: its values are generated from {generated.sql}"
            )
        if not same_shape(old.type, field.type):
            raise InvalidInput(
                f"cannot change the type of {name}: its values are generated from {generated.sql}"
            )
        for source in generated.columns:
            was = before.find((source,), case_sensitive=True)
            now = after.get((source,), case_sensitive=True)
            if now is None or now.id != was.id or not same_shape(was.type, now.type):
                raise InvalidInput(
                    f"cannot drop, rename or change the type of {dotted((source,))}: {name} is generated from it "
                    f"({generated.sql}); drop that column first"
                )


def not_generated(base: Schema, current: Schema) -> Field | None:
    """Return a column that is generated in `current`, and whose values a writer to `base` did not compute."""
    for field in generated_fields(current):
        if not base.has_id(field.id) or base.field_by_id(field.id).generated != field.generated:
            return field
    return None
