"""A table's partitions: which exist, and statements about single ones.

A partition is the rows that have the same value in each field of the present spec. Files show which those are: by
their partition where their spec has the field, by their statistics where an older spec does not. A partition without
rows is a file without rows. Values are JSON literals by the name of their field (see `literals` and `shown_names`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Term
from lakelog.catalog.core.planning.file_facts import (
    array_of,
    column_of,
    facts_of,
    partition_values,
    single_result,
)
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.schema import (
    ALWAYS_FALSE,
    IDENTITY,
    AtomicType,
    Column,
    Literal,
    Metadata,
    Operand,
    PartitionField,
    PartitionSpec,
    Predicate,
    Schema,
    Transformed,
    apply_transform,
    from_arrow,
    shown_names,
    to_arrow,
    value_type,
)
from lakelog.log.errors import InvalidInput, Unsupported

Values: TypeAlias = Mapping[str, bool | int | float | str | None]

FILES, ROWS, BYTES = "files", "rows", "bytes"
"""The columns after those of the fields: the size of each partition."""


def fields_of(metadata: Metadata) -> dict[str, PartitionField]:
    """Return the fields of the present spec by the names that they are shown with."""
    return dict(zip(shown_names(metadata.spec, metadata.schema), metadata.spec.fields, strict=True))


def predicate_of(metadata: Metadata, partitions: Sequence[Values]) -> Predicate:
    """Return the filter that is true for the rows of `partitions`, each of which may name some of the fields only.

    InvalidInput for a name that no field has.
    """
    each = [_of_one(metadata, values) for values in partitions]
    return each[0] if len(each) == 1 else Predicate("OR", tuple(each)) if each else ALWAYS_FALSE


def _of_one(metadata: Metadata, values: Values) -> Predicate:
    fields = fields_of(metadata)
    _check_names(fields, values)
    parts: list[Operand] = []
    for name, value in values.items():
        field = fields[name]
        column = Column(metadata.schema.path_of(field.source_id))
        left = column if field.transform == IDENTITY else Transformed(field.transform, column)
        parts.append(Predicate("<=>", (left, Literal(value, field.result.name))))
    return Predicate("AND", tuple(parts)) if parts else Predicate("ALWAYS_TRUE")


def key_of(metadata: Metadata, values: Values) -> tuple[Any, ...]:
    """Return the values of one whole partition in the order of the spec's fields.

    InvalidInput where a field is missing, and for a value that no row can have.
    """
    fields = fields_of(metadata)
    _check_names(fields, values)
    missing = [name for name in fields if name not in values]
    if missing or not fields:
        raise InvalidInput(
            f"a partition has a value for each of {', '.join(fields)}: {', '.join(missing)} is missing"
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
    """Return the filter that is true for the rows of whole partitions, given by their values in the fields' order."""
    names = list(fields_of(metadata))
    return predicate_of(metadata, [dict(zip(names, key, strict=True)) for key in keys])


def list_partitions(chunks: Sequence[pa.Table], metadata: Metadata, where: Values | None = None) -> pa.Table:
    """Return the partitions, a row each: a column for each field, and how many files, rows and bytes there are.

    With `where`, those that have these values. Unsupported where a file of an older partitioning may have rows of
    several of them. `chunks` are those of `FileSet.chunks`.
    """
    fields = fields_of(metadata)
    predicate = predicate_of(metadata, [where or {}])
    bound = bind(predicate, metadata.schema, case_sensitive=True)
    names = [*(str(index) for index in range(len(fields))), FILES, ROWS, BYTES]
    found = [
        _partitions_in(chunk.filter(may_match(chunk, bound, metadata.specs)), metadata) for chunk in chunks
    ]
    empty = [value_type(field.result) for field in fields.values()]
    schema = pa.schema(list(zip(names, [*empty, pa.int64(), pa.int64(), pa.int64()], strict=True)))
    all_files = pa.concat_tables([schema.empty_table(), *(pa.table(each, schema=schema) for each in found)])
    grouped = pa.TableGroupBy(all_files, names[: len(fields)]).aggregate(
        [(FILES, "sum"), (ROWS, "sum"), (BYTES, "sum")]
    )
    return grouped.select(
        [*names[: len(fields)], *(f"{name}_sum" for name in (FILES, ROWS, BYTES))]
    ).rename_columns([*fields, FILES, ROWS, BYTES])


def _partitions_in(files: pa.Table, metadata: Metadata) -> list[pa.Array]:
    """Return each file's value of every field, and 1, its rows and its size."""
    values, known = partition_of_files(files, metadata)
    rows = array_of(files, "rows")
    if pc.any(pc.and_not(pc.greater(rows, 0), known), min_count=0).as_py():
        raise Unsupported(
            "the table holds files of an earlier partitioning, with rows of several of today's partitions in one file: "
            "rewrite them, by INSERT OVERWRITE of the table with all of its rows"
        )
    ones = pa.repeat(pa.scalar(1, pa.int64()), files.num_rows)
    # The files left over have no rows: an empty partition of an earlier partitioning is not one of today's.
    return [each.filter(known) for each in (*values, ones, rows, array_of(files, "size"))]


def partition_of_files(files: pa.Table, metadata: Metadata) -> tuple[list[pa.Array], pa.Array]:
    """Return each file's values of the present spec's fields, and whether all of its rows have them for certain."""
    known = pa.repeat(pa.scalar(True), files.num_rows)
    values = []
    for field in metadata.spec.fields:
        own = pc.is_in(
            array_of(files, "spec"), value_set=pa.array(_specs_with(metadata.specs, field), pa.int32())
        )
        value = partition_values(files, field)
        if not pc.all(own, min_count=0).as_py():
            proven, is_proven = _from_facts(files, field, metadata)
            value = pc.if_else(own, value, proven)
            known = pc.and_(known, pc.or_(own, is_proven))
        values.append(value)
    return values, known


def keys_of(values: Sequence[pa.Array], count: int) -> list[tuple[Any, ...]]:
    """Return the values of `count` files as JSON literals, a tuple for each, as `planning.partition_key` does."""
    return list(zip(*map(from_arrow, values), strict=True)) if values else [()] * count


def _specs_with(specs: Sequence[PartitionSpec], field: PartitionField) -> list[int]:
    return [spec.id for spec in specs if any(other.id == field.id for other in spec.fields)]


def _from_facts(files: pa.Table, field: PartitionField, metadata: Metadata) -> tuple[pa.Array, pa.Array]:
    """Return the value of a field that all rows of a file have for certain, and whether there is one."""
    source = metadata.schema.field_by_id(field.source_id).type
    assert isinstance(source, AtomicType)
    path = metadata.schema.path_of(field.source_id)
    facts = facts_of(files, column_of(Term(field.source_id, path, source, None)), metadata.specs)
    only_null = pc.and_(facts.may_null, pc.invert(pc.or_(facts.may_nan, facts.may_value)))
    only_value = pc.and_(facts.may_value, pc.invert(pc.or_(facts.may_nan, facts.may_null)))
    value, is_single = single_result(facts, field.transform, source)
    single = pc.and_(only_value, is_single)
    result = value.cast(value_type(field.result))
    return pc.if_else(single, result, pa.scalar(None, result.type)), pc.or_(single, only_null)


def renamed_columns(metadata: Metadata, old: Values, new: Values) -> dict[str, pa.Scalar]:
    """Return the columns that a rename of the partition `old` to `new` gives another value, with that value.

    Unsupported where a value of a transform would have to change: it does not determine the column's values.
    """
    fields = fields_of(metadata)
    before, after = key_of(metadata, old), key_of(metadata, new)
    changed = {
        name: value
        for name, was, value in zip(fields, before, after, strict=True)
        if to_arrow([was, value], value_type(fields[name].result) or pa.null()).unique().__len__() > 1
    }
    moved = {fields[name].source_id for name in changed}
    for name, field in fields.items():
        if field.source_id in moved and field.transform != IDENTITY:
            raise Unsupported(
                f"partitions cannot be renamed by the partition field {name}, which is {field.transform} of a column: "
                "write the rows with their new values instead"
            )
        if name in changed and len(metadata.schema.path_of(field.source_id)) > 1:
            raise Unsupported(
                f"partitions cannot be renamed by the partition field {name}, which is a nested field: update the "
                "rows instead"
            )
    return {
        metadata.schema.path_of(fields[name].source_id)[0]: to_arrow(
            [value], value_type(fields[name].result) or pa.null()
        )[0]
        for name, value in changed.items()
    }


def with_values(rows: pa.RecordBatch, values: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """Return `rows` with one value in all rows of each of these columns."""
    for name, value in values.items():
        field = rows.schema.field(name)
        rows = rows.set_column(
            rows.schema.get_field_index(name), field, pa.repeat(value, rows.num_rows).cast(field.type)
        )
    return rows
