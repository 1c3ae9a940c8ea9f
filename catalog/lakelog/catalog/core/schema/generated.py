"""Generated columns, computed from other columns of the same row: which changes of a table they allow.

Spark computes the values, and checks given values. These rules keep the values right while the table changes.
"""

from __future__ import annotations

from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import Field, same_shape
from lakelog.log.errors import InvalidInput, Unsupported


def generated_fields(schema: Schema) -> list[Field]:
    """Return the generated columns."""
    return [field for field in schema.fields if field.generated is not None]


def refuse_generated(schema: Schema, instead: str) -> None:
    """Raise Unsupported for rows that did not pass through Spark, if a column is generated. `instead` says
    what to do."""
    for field in generated_fields(schema):
        assert field.generated is not None
        raise Unsupported(
            f"the column {dotted((field.name,))} is generated from {field.generated.sql}, which Spark computes where "
            f"its own statements write rows: {instead}"
        )


def check_defined(schema: Schema) -> None:
    """Raise InvalidInput unless every generated column of a new table is generated from other columns of
    it."""
    for field in generated_fields(schema):
        assert field.generated is not None
        if field.default is not None:
            raise InvalidInput(f"the column {dotted((field.name,))} is generated and cannot have a default")
        for name in field.generated.columns:
            source = next(
                (field_of_name for field_of_name in schema.fields if field_of_name.name == name), None
            )
            if source is None or source.generated is not None:
                raise InvalidInput(
                    f"the column {dotted((field.name,))} is generated from {dotted((name,))}, which is not a column "
                    "with values of its own"
                )


def check_kept(schema_before: Schema, schema_after: Schema) -> None:
    """Raise InvalidInput if changes of a table break the source of a generated column.

    The existing values were computed from the source columns as they were, and the expression names these
    columns.
    """
    for field in generated_fields(schema_after):
        old_field = schema_before.field_by_id(field.id)
        name, generation = dotted((field.name,)), field.generated
        assert generation is not None
        if field.default != old_field.default:
            raise InvalidInput(
                f"cannot change the default of {name}: its values are generated from {generation.sql}"
            )
        if not same_shape(old_field.type, field.type):
            raise InvalidInput(
                f"cannot change the type of {name}: its values are generated from {generation.sql}"
            )
        for source in generation.columns:
            old_source = schema_before.find((source,), case_sensitive=True)
            new_source = schema_after.get((source,), case_sensitive=True)
            if (
                new_source is None
                or new_source.id != old_source.id
                or not same_shape(old_source.type, new_source.type)
            ):
                raise InvalidInput(
                    f"cannot drop, rename or change the type of {dotted((source,))}: {name} is generated from it "
                    f"({generation.sql}); drop that column first"
                )


def not_generated(base: Schema, current: Schema) -> Field | None:
    """Return a column that is generated in `current`, and whose values a writer to `base` did not compute."""
    for field in generated_fields(current):
        if not base.has_id(field.id) or base.field_by_id(field.id).generated != field.generated:
            return field
    return None
