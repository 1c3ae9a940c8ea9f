"""A table's partitions: which exist, and statements about single partitions.

A partition is the rows that have the same value in each field of the present spec. Files show which values
exist: by their partition if their spec has the field, by their statistics if an older spec does not. A
partition without rows is a file without rows. Values are JSON literals by the name of their field (see
`literals` and `shown_names`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import BoundTerm
from lakelog.catalog.core.planning.file_facts import (
    array_of,
    column_of,
    facts_of,
    partition_values,
    single_result,
)
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.schema.literals import from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import IDENTITY, PartitionField, PartitionSpec, shown_names
from lakelog.catalog.core.schema.predicate import (
    ALWAYS_FALSE,
    Column,
    FilterLiteral,
    Operand,
    Predicate,
    TransformedColumn,
)
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import InvalidInput, Unsupported

Values: TypeAlias = Mapping[str, bool | int | float | str | None]

FILES, ROWS, BYTES = "files", "rows", "bytes"
"""The columns after those of the fields: the size of each partition."""


def fields_of(metadata: Metadata) -> dict[str, PartitionField]:
    """Return the fields of the present spec by the names that they are shown with."""
    return dict(zip(shown_names(metadata.spec, metadata.schema), metadata.spec.fields, strict=True))


def predicate_of(metadata: Metadata, partitions: Sequence[Values]) -> Predicate:
    """Return the filter that is true for the rows of `partitions`.

    Each may name only some of the fields. Raises InvalidInput for a name that no field has.
    """
    conditions = [_of_one(metadata, values) for values in partitions]
    return (
        conditions[0]
        if len(conditions) == 1
        else Predicate("OR", tuple(conditions))
        if conditions
        else ALWAYS_FALSE
    )


def _of_one(metadata: Metadata, values: Values) -> Predicate:
    fields = fields_of(metadata)
    _check_names(fields, values)
    parts: list[Operand] = []
    for name, value in values.items():
        field = fields[name]
        column = Column(metadata.schema.path_of(field.source_id))
        operand = column if field.transform == IDENTITY else TransformedColumn(field.transform, column)
        parts.append(Predicate("<=>", (operand, FilterLiteral(value, field.result.name))))
    return Predicate("AND", tuple(parts)) if parts else Predicate("ALWAYS_TRUE")


def key_of(metadata: Metadata, values: Values) -> tuple[Any, ...]:
    """Return the values of a whole partition in the order of the spec's fields.

    Raises InvalidInput if a field is missing, and for a value that no row can have.
    """
    fields = fields_of(metadata)
    _check_names(fields, values)
    absent_names = [name for name in fields if name not in values]
    if absent_names or not fields:
        raise InvalidInput(
            f"a partition has a value for each of {', '.join(fields)}: {', '.join(absent_names)} is missing"
            if fields
            else "the table has no partitions: it is not partitioned"
        )
    for name, field in fields.items():
        _check_possible(metadata.schema, field, name, values[name])
    return tuple(values[name] for name in fields)


def _check_names(fields: Mapping[str, PartitionField], values: Values) -> None:
    for name in values:
        if name not in fields:
            raise InvalidInput(f"{name} is not a partition field: these are {', '.join(fields) or 'none'}")


def _check_possible(schema: Schema, field: PartitionField, name: str, value: Any) -> None:
    array = to_arrow([value], value_type(field.result) or pa.null())
    possible = True
    if value is not None and field.transform.name == "bucket":
        possible = 0 <= value < (field.transform.argument or 0)
    elif value is not None and field.transform.name == "truncate":
        source = schema.field_by_id(field.source_id).type
        assert isinstance(source, AtomicType)
        cut = apply_transform(field.transform, array.cast(value_type(source)), source)
        possible = pc.equal(cut, array)[0].as_py()
    if not possible:
        raise InvalidInput(f"{value!r} is not a value of the partition field {name}: it is {field.transform}")


def predicate_of_keys(metadata: Metadata, keys: Iterable[tuple[Any, ...]]) -> Predicate:
    """Return the filter for the rows of whole partitions, given by their values in the fields' order."""
    names = list(fields_of(metadata))
    return predicate_of(metadata, [dict(zip(names, key, strict=True)) for key in keys])


def list_partitions(chunks: Sequence[pa.Table], metadata: Metadata, where: Values | None = None) -> pa.Table:
    """Return the partitions, a row each: a column for each field, and the numbers of files, rows and bytes.

    With `where`, return only the partitions that have these values. Raises Unsupported if a file of an older
    partitioning may have rows of several of them. `chunks` are those of `FileSet.chunks`.
    """
    fields = fields_of(metadata)
    predicate = predicate_of(metadata, [where or {}])
    condition = bind(predicate, metadata.schema, case_sensitive=True)
    names = [*(str(index) for index in range(len(fields))), FILES, ROWS, BYTES]
    part_arrays = [
        _partitions_in(chunk.filter(may_match(chunk, condition, metadata.specs)), metadata)
        for chunk in chunks
    ]
    empty = [value_type(field.result) for field in fields.values()]
    schema = pa.schema(list(zip(names, [*empty, pa.int64(), pa.int64(), pa.int64()], strict=True)))
    all_files = pa.concat_tables(
        [schema.empty_table(), *(pa.table(arrays, schema=schema) for arrays in part_arrays)]
    )
    sums = pa.TableGroupBy(all_files, names[: len(fields)]).aggregate(
        [(FILES, "sum"), (ROWS, "sum"), (BYTES, "sum")]
    )
    return sums.select(
        [*names[: len(fields)], *(f"{name}_sum" for name in (FILES, ROWS, BYTES))]
    ).rename_columns([*fields, FILES, ROWS, BYTES])


def _partitions_in(files: pa.Table, metadata: Metadata) -> list[pa.Array]:
    """Return each file's value of every field, and 1, its rows and its size."""
    values, is_certain = partition_of_files(files, metadata)
    rows = array_of(files, "rows")
    if pc.any(pc.and_not(pc.greater(rows, 0), is_certain), min_count=0).as_py():
        raise Unsupported(
            "the table holds files of an earlier partitioning, with rows of several of today's partitions in one file: "
            "rewrite them, by INSERT OVERWRITE of the table with all of its rows"
        )
    ones = pa.repeat(pa.scalar(1, pa.int64()), files.num_rows)
    # The other files have no rows: an empty partition of an earlier partitioning is not a partition of today.
    return [array.filter(is_certain) for array in (*values, ones, rows, array_of(files, "size"))]


def partition_of_files(files: pa.Table, metadata: Metadata) -> tuple[list[pa.Array], pa.Array]:
    """Return each file's values of the present spec's fields, and whether all of its rows have them."""
    is_certain = pa.repeat(pa.scalar(True), files.num_rows)
    values = []
    for field in metadata.spec.fields:
        own = pc.is_in(
            array_of(files, "spec"), value_set=pa.array(_specs_with(metadata.specs, field), pa.int32())
        )
        value = partition_values(files, field)
        if not pc.all(own, min_count=0).as_py():
            proven, is_proven = _from_facts(files, field, metadata)
            value = pc.if_else(own, value, proven)
            is_certain = pc.and_(is_certain, pc.or_(own, is_proven))
        values.append(value)
    return values, is_certain


def keys_of(values: Sequence[pa.Array], count: int) -> list[tuple[Any, ...]]:
    """Return the values of `count` files as tuples of JSON literals, as `planning.partition_key` does."""
    return list(zip(*map(from_arrow, values), strict=True)) if values else [()] * count


def _specs_with(specs: Sequence[PartitionSpec], field: PartitionField) -> list[int]:
    return [spec.id for spec in specs if any(spec_field.id == field.id for spec_field in spec.fields)]


def _from_facts(files: pa.Table, field: PartitionField, metadata: Metadata) -> tuple[pa.Array, pa.Array]:
    """Return the value of a field that all rows of a file have for certain, and whether there is any."""
    source = metadata.schema.field_by_id(field.source_id).type
    assert isinstance(source, AtomicType)
    path = metadata.schema.path_of(field.source_id)
    facts = facts_of(files, column_of(BoundTerm(field.source_id, path, source, None)), metadata.specs)
    only_null = pc.and_(facts.may_null, pc.invert(pc.or_(facts.may_nan, facts.may_value)))
    only_value = pc.and_(facts.may_value, pc.invert(pc.or_(facts.may_nan, facts.may_null)))
    value, is_single = single_result(facts, field.transform, source)
    single = pc.and_(only_value, is_single)
    result = value.cast(value_type(field.result))
    return pc.if_else(single, result, pa.scalar(None, result.type)), pc.or_(single, only_null)


def renamed_columns(metadata: Metadata, old: Values, new: Values) -> dict[str, pa.Scalar]:
    """Return the columns whose value a rename of the partition `old` to `new` changes, with the new value.

    Raises Unsupported if a value of a transform would have to change, because it does not determine the
    column's values.
    """
    fields = fields_of(metadata)
    old_key, new_key = key_of(metadata, old), key_of(metadata, new)
    new_values = {
        name: value
        for name, old_value, value in zip(fields, old_key, new_key, strict=True)
        if to_arrow([old_value, value], value_type(fields[name].result) or pa.null()).unique().__len__() > 1
    }
    source_ids = {fields[name].source_id for name in new_values}
    for name, field in fields.items():
        if field.source_id in source_ids and field.transform != IDENTITY:
            raise Unsupported(
                f"partitions cannot be renamed by the partition field {name}, which is {field.transform} of a column: "
                "write the rows with their new values instead"
            )
        if name in new_values and len(metadata.schema.path_of(field.source_id)) > 1:
            raise Unsupported(
                f"partitions cannot be renamed by the partition field {name}, which is a nested field: update the "
                "rows instead"
            )
    return {
        metadata.schema.path_of(fields[name].source_id)[0]: to_arrow(
            [value], value_type(fields[name].result) or pa.null()
        )[0]
        for name, value in new_values.items()
    }


def with_values(rows: pa.RecordBatch, values: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """Return `rows` with the same value in all rows of each of these columns."""
    for name, value in values.items():
        field = rows.schema.field(name)
        rows = rows.set_column(
            rows.schema.get_field_index(name), field, pa.repeat(value, rows.num_rows).cast(field.type)
        )
    return rows
