"""Aggregates computed from facts about files, without reading them.

Exactly, or not at all. Pure. A bound counts as a value only if lakelog's own writers have measured it and
have not cut it. It counts only for types whose equal values are identical: see "Files" in catalog/README.md.
Deleted rows are in a file's statistics, so these say nothing of the live rows, except for their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DELETED, NAMES
from lakelog.catalog.core.files.file_tables import converted, joined
from lakelog.catalog.core.files.statistics import TEXT_LIMIT
from lakelog.catalog.core.planning.bound import Bound, unknown_parts
from lakelog.catalog.core.planning.file_facts import array_of, partition_fields, partition_values
from lakelog.catalog.core.planning.pruning import match
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import IDENTITY, PartitionSpec
from lakelog.catalog.core.schema.types import AtomicType, Field

_VALUES = frozenset(
    ("boolean", "byte", "short", "integer", "long", "decimal", "date", "timestamp", "timestamp_ntz", "string")
)
"""The families of types whose equal values are compared, kept and shown as the same value."""

COUNT, MIN, MAX = "count", "min", "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`kind` is count, min or max; a count without a `column` is of rows."""

    kind: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    """The facts about a column's values in each file: how many are not NULL, the least and the greatest.

    Arrays over files; NULL is unknown, except in `low` and `high` of files whose `count` is 0.
    """

    count: pa.Array
    low: pa.Array
    high: pa.Array


def aggregate(
    chunks: Sequence[pa.Table],
    metadata: Metadata,
    wanted_aggregates: Sequence[Aggregate],
    group_by: Sequence[str] = (),
) -> pa.Table | None:
    """Return the aggregates of all rows, or a row for each group.

    Columns are the values of `group_by`, then those of `wanted_aggregates`; they are called 0, 1 and so on. None if
    rows have to be read. `chunks` are those of `FileSet.chunks`; columns are named as the schema has them.
    """
    fields = {
        name: _field(metadata, name)
        for name in {*group_by, *(item.column for item in wanted_aggregates if item.column)}
    }
    if not all(fields.values()):
        return None
    types = [value_type(fields[name].type) for name in group_by]  # type: ignore[union-attr]
    types += [
        pa.int64() if item.kind == COUNT else value_type(fields[item.column].type)  # type: ignore[index,union-attr]
        for item in wanted_aggregates
    ]
    if None in types:
        # Structs have an order in Spark, and none here; not even if there are no rows.
        return None
    file_parts = []
    for chunk in chunks:
        of_files = _of_files(
            chunk.filter(pc.greater(chunk["rows"], 0)).combine_chunks(),
            metadata,
            wanted_aggregates,
            group_by,
            fields,
        )
        if of_files is None:
            return None
        file_parts.append(of_files)
    names = [str(place) for place in range(len(group_by) + len(wanted_aggregates))]
    schema = pa.schema(list(zip(names, types, strict=True)))
    files = joined([schema.empty_table(), *file_parts])
    keys, values = names[: len(group_by)], names[len(group_by) :]
    how = ["sum" if item.kind == COUNT else item.kind for item in wanted_aggregates]
    if not keys:
        totals = [_total(files.column(name), item) for name, item in zip(values, how, strict=True)]
        # Not through Python's values: its times begin with the year 1 and end with the year 9999.
        return pa.Table.from_arrays([pa.repeat(total, 1) for total in totals], schema=schema)
    try:
        groups = pa.TableGroupBy(files, keys).aggregate(list(zip(values, how, strict=True)))
    except pa.ArrowNotImplementedError:
        return None
    columns = [*keys, *(f"{name}_{item}" for name, item in zip(values, how, strict=True))]
    return groups.select(columns).rename_columns(names).cast(schema)


def decided(
    chunks: Sequence[pa.Table], bound_condition: Bound, specs: Sequence[PartitionSpec]
) -> list[pa.Table] | None:
    """Return the files all of whose rows match; None if some rows of a file match and others do not."""
    if unknown_parts(bound_condition):
        return None
    matching_files = []
    for chunk in chunks:
        result = match(chunk, bound_condition, specs)
        is_certain = pc.or_(pc.or_(result.all, result.none), pc.equal(chunk["rows"], 0))
        if not pc.all(is_certain, min_count=0).as_py():
            return None
        matching_files.append(chunk.filter(result.all))
    return matching_files


def _field(metadata: Metadata, name: str) -> Field | None:
    return next((field for field in metadata.schema.fields if field.name == name), None)


def _total(values: pa.ChunkedArray, how: str) -> pa.Scalar:
    return pc.sum(values, min_count=0) if how == "sum" else pc.min_max(values)[how]


def _of_files(
    files: pa.Table,
    metadata: Metadata,
    wanted_aggregates: Sequence[Aggregate],
    group_by: Sequence[str],
    fields: Mapping[str, Field | None],
) -> pa.Table | None:
    """Return the contribution of each file, or None if it is not known for any of them."""
    arrays = []
    for name in group_by:
        key = _key(files, metadata, fields[name])
        if key is None:
            return None
        arrays.append(key)
    columns: dict[str, _Column] = {}
    for item in wanted_aggregates:
        if item.column is None:
            arrays.append(array_of(files, "rows"))
            continue
        if item.column not in columns:
            columns[item.column] = _column(files, metadata, fields[item.column])
        column = columns[item.column]
        array = {COUNT: column.count, MIN: column.low, MAX: column.high}[item.kind]
        sure = (
            pc.is_valid(array) if item.kind == COUNT else pc.or_(pc.is_valid(array), _is_zero(column.count))
        )
        if not pc.all(sure, min_count=0).as_py():
            return None
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])


def _key(files: pa.Table, metadata: Metadata, field: Field | None) -> pa.Array | None:
    """Return the value of a column in all rows of each file, None if the rows of any file may differ."""
    assert field is not None
    if not _is_of_values(field):
        return None
    partition = _partition(files, metadata, field)
    if partition is None or not pc.all(partition[0], min_count=0).as_py():
        return None
    return partition[1]


def _partition(files: pa.Table, metadata: Metadata, field: Field) -> tuple[pa.Array, pa.Array] | None:
    """Return which files are partitioned by a column, and its value in these."""
    mask, values = None, None
    for partition_field, has in partition_fields(files, field.id, metadata.specs):
        if partition_field.transform == IDENTITY:
            field_values = converted(partition_values(files, partition_field), value_type(field.type))
            values = field_values if values is None else pc.if_else(has, field_values, values)
            mask = has if mask is None else pc.or_(mask, has)
    return None if mask is None else (mask, values)


def _column(files: pa.Table, metadata: Metadata, field: Field | None) -> _Column:
    assert field is not None
    rows = array_of(files, "rows")
    statistics = _from_statistics(files, field, rows)
    partition = _partition(files, metadata, field) if _is_of_values(field) else None
    if partition is None:
        return statistics
    mask, value = partition
    count = pc.if_else(pc.is_valid(value), rows, pa.scalar(0, pa.int64()))
    return _Column(
        count=pc.if_else(mask, count, statistics.count),
        low=pc.if_else(mask, value, statistics.low),
        high=pc.if_else(mask, value, statistics.high),
    )


def _from_statistics(files: pa.Table, field: Field, rows: pa.Array) -> _Column:
    type = value_type(field.type) or pa.null()
    nulls = _of(files, f"nulls{field.id}", pa.int64())
    deleted_rows = pc.fill_null(_of(files, DELETED, pa.int64()), 0)
    is_whole = pc.equal(deleted_rows, 0)
    # It is unknown how many of the deleted rows were NULL, unless none or all of the file's rows are.
    count = pc.if_else(is_whole, pc.subtract(rows, nulls), pa.scalar(None, pa.int64()))
    count = pc.if_else(pc.fill_null(pc.equal(nulls, 0), False), rows, count)
    all_null = pc.fill_null(pc.equal(nulls, pc.add(rows, deleted_rows)), False)
    count = pc.if_else(all_null, pa.scalar(0, pa.int64()), count)
    if not _is_of_values(field):
        return _Column(count, pa.nulls(files.num_rows, type), pa.nulls(files.num_rows, type))
    own = (
        pc.is_null(array_of(files, NAMES)) if NAMES in files.column_names else pa.repeat(True, files.num_rows)
    )
    is_exact = pc.and_(own, is_whole)
    low, high = _of(files, f"lo{field.id}", type), _of(files, f"hi{field.id}", type)
    if pa.types.is_string(type):
        # A text that is cut has just this length; an upper bound that is made of it may have any length.
        measured_low = pc.and_(is_exact, pc.fill_null(pc.less(pc.utf8_length(low), TEXT_LIMIT), False))
        return _Column(count, _where(measured_low, low), pa.nulls(files.num_rows, type))
    return _Column(count, _where(is_exact, low), _where(is_exact, high))


def _is_of_values(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.family in _VALUES


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _of(files: pa.Table, name: str, type: pa.DataType) -> pa.Array:
    return (
        converted(array_of(files, name), type)
        if name in files.column_names
        else pa.nulls(files.num_rows, type)
    )


def _is_zero(count: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(count, 0), False)
