"""Single partition fields, added, dropped and replaced. Each change makes a new spec for new files.

A field is given by its name, as users see it, or by its transform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import msgspec

from lakelog.catalog.core.schema.partitioning import (
    IDENTITY,
    PartitionField,
    PartitionSpec,
    StatedField,
    Written,
    shown_names,
    source_of,
    spec_from_transforms,
    stated,
    transform_to_json,
)
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.table_changes import (
    AddPartitionField,
    DropPartitionField,
    ReplacePartitionField,
)
from lakelog.log.errors import InvalidInput

FieldChange: TypeAlias = AddPartitionField | DropPartitionField | ReplacePartitionField


def evolved(
    specs: Sequence[PartitionSpec], schema: Schema, change: FieldChange, case_sensitive: bool = False
) -> PartitionSpec:
    """Return the last of `specs` after a change. Raises InvalidInput if an added field exists, or a dropped
    one does not."""
    spec = specs[-1]
    fields = [_written(field, schema) for field in spec.fields]
    match change:
        case AddPartitionField():
            _refuse_known(spec, schema, change.field, case_sensitive)
            fields.append(_named(change.field, change.name))
        case DropPartitionField():
            del fields[_find(spec, schema, change.field, case_sensitive)]
        case ReplacePartitionField():
            index = _find(spec, schema, change.field, case_sensitive)
            _refuse_known(spec, schema, change.by, case_sensitive, but=index)
            fields[index] = _named(change.by, change.name)
        case _:
            assert_never(change)
    return spec_from_transforms(fields, schema, existing=specs, case_sensitive=case_sensitive)


def _written(field: PartitionField, schema: Schema) -> StatedField:
    """Return a field of the present spec as a stated field. Its column exists, because the spec is the
    present spec."""
    statement = stated(transform_to_json(schema, field.source_id, field.transform))
    return statement if field.transform == IDENTITY else _named(statement, field.name)


def _named(written: Written, name: str | None) -> StatedField:
    field = stated(written)
    return field if name is None else msgspec.structs.replace(field, name=name)


def _refuse_known(
    spec: PartitionSpec, schema: Schema, written: Written, case_sensitive: bool, but: int | None = None
) -> None:
    source_id, transform = source_of(written, schema, case_sensitive)
    for index, field in enumerate(spec.fields):
        if index != but and (field.source_id, field.transform) == (source_id, transform):
            raise InvalidInput(
                f"the table is partitioned by {_text(field, schema)} already, as {shown_names(spec, schema)[index]}"
            )


def _find(spec: PartitionSpec, schema: Schema, written: Written, case_sensitive: bool) -> int:
    """Return the index of the given field in the spec. A text is looked up among the names first."""
    names = shown_names(spec, schema)
    if isinstance(written, str):
        lower_name = written if case_sensitive else written.lower()
        for index, name in enumerate(names):
            if (name if case_sensitive else name.lower()) == lower_name:
                return index
    if not isinstance(written, str) or "(" in written:
        source = source_of(written, schema, case_sensitive)
        for index, field in enumerate(spec.fields):
            if (field.source_id, field.transform) == source:
                return index
    existing_fields = ", ".join(
        f"{name} ({_text(field, schema)})" for name, field in zip(names, spec.fields, strict=True)
    )
    raise InvalidInput(
        f"there is no partition field {written if isinstance(written, str) else _as_text(stated(written))}: the "
        "table is " + (f"partitioned by {existing_fields}" if existing_fields else "not partitioned")
    )


def _text(field: PartitionField, schema: Schema) -> str:
    return f"{field.transform} of {'.'.join(schema.path_of(field.source_id))}"


def _as_text(field: StatedField) -> str:
    arguments = ", ".join(map(str, field.args))
    columns = (field.column or "",) if field.columns is None else field.columns
    column_names = ", ".join(column if isinstance(column, str) else ".".join(column) for column in columns)
    if field.transform == "identity":
        return column_names
    return f"{field.transform}({arguments}{', ' if arguments else ''}{column_names})"
