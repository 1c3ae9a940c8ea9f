"""Partition values in the manifests of Iceberg's clients, compared with the statistics of the files. Pure.

Rule: a value is refused if the footer shows that a row has another. Readers leave files out by these values, and take
some for the rows' own. If the footer shows nothing, such as for buckets of many values, the client is believed, as
every reader of Iceberg does.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from lakelog.catalog.core.files import EXACT_BELOW_BYTES, ColumnStats, DataFile
from lakelog.catalog.core.schema import (
    AtomicType,
    PartitionField,
    PartitionSpec,
    Scalar,
    Schema,
    apply_transform,
    dotted,
    from_arrow,
    to_arrow,
    value_type,
)
from lakelog.log.errors import InvalidInput

_TEXTS = ("string", "binary")


def checked_partition(file: DataFile, spec: PartitionSpec, schema: Schema) -> dict[int, Scalar]:
    """Return the partition values of a new file, each in the form of its type.

    Raises InvalidInput for a value of another type, and for a value that the file's statistics contradict.
    """
    return {field.id: _checked(file, field, schema) for field in spec.fields}


def _checked(file: DataFile, field: PartitionField, schema: Schema) -> Scalar:
    result = value_type(field.result)
    assert result is not None, "every type that can be transformed has an order"
    values = to_arrow([file.partition[field.id]], result)
    value: Scalar = from_arrow(values)[0]
    stats = file.stats.get(field.source_id, ColumnStats())
    contradiction = (
        _beyond_transform(value, field)
        or _other_nulls(value, stats, file.rows)
        or _other_values(values, field, stats, schema.field_by_id(field.source_id).type)
    )
    if contradiction is not None:
        raise InvalidInput(
            f"the file {file.path} is said to have {value!r} for the partition field {field.name} "
            f"({field.transform} of {dotted(schema.path_of(field.source_id))}), and {contradiction}: write each row "
            "into a file of its own partition"
        )
    return value


def _beyond_transform(value: Scalar, field: PartitionField) -> str | None:
    argument = field.transform.argument
    if value is None or argument is None:
        return None
    if field.transform.name == "bucket" and not (isinstance(value, int) and 0 <= value < argument):
        return f"there are the buckets 0 to {argument - 1}"
    if field.transform.name == "truncate" and isinstance(value, str) and field.result.family == "string":
        return f"that has more than {argument} characters" if len(value) > argument else None
    return None


def _other_nulls(value: Scalar, stats: ColumnStats, rows: int) -> str | None:
    if stats.nulls is None:
        return None
    if value is None:
        return None if stats.nulls == rows else f"{rows - stats.nulls:,} of its rows have a value"
    return f"{stats.nulls:,} of its rows have none" if stats.nulls else None


def _other_values(value: Any, field: PartitionField, stats: ColumnStats, source: Any) -> str | None:
    """Return the contradiction of the bounds of a file's rows to the partition value. None if there is none."""
    if stats.min is None or stats.max is None or not value.is_valid()[0].as_py():
        return None
    assert isinstance(source, AtomicType), "only single values are transformed"
    column = value_type(source)
    assert column is not None
    bounds = to_arrow([stats.min, stats.max], column)
    is_exact = source.family not in _TEXTS or all(map(_is_short, bounds))
    if field.transform.name == "bucket" and not (is_exact and bounds[0] == bounds[1]):
        return None
    low, high = apply_transform(field.transform, bounds, source)
    wanted = value[0]
    shown = f"its rows have values from {stats.min!r} to {stats.max!r}"
    if is_exact:
        return None if low == wanted == high else shown
    # The bounds were cut. They are below and above all rows, and so are their transforms. Some writers cut the upper
    # bound just as the lower bound.
    is_below = pc.less(wanted, low).as_py()
    is_above = pc.greater(wanted, high).as_py() and bounds[0] != bounds[1]
    return shown if is_below or is_above else None


def _is_short(bound: Any) -> bool:
    """Return whether a text bound was not cut."""
    value = bound.as_py()
    return len(value.encode() if isinstance(value, str) else value) < EXACT_BELOW_BYTES
