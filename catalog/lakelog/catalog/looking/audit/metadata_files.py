"""The metadata tables about a version's data files: files, partitions and manifests. Vectorised over Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import converted, is_elsewhere, measured_columns
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.planning import array_of, partition_values
from lakelog.catalog.core.schema import Metadata, PartitionField, shown_names, value_type
from lakelog.log.keys import LogKeys, blob_version

ROWS_PER_CHUNK = 16_384

MANIFESTS = pa.schema(
    [
        pa.field("content", pa.string(), nullable=False),
        pa.field("path", pa.string()),
        pa.field("added_version", pa.int64()),
        pa.field("entries_count", pa.int64(), nullable=False),
    ]
)
"""`content` is `added` for lists of data files, or `removed` for lists of files removed from earlier lists.

An entry without a `path` is not in a manifest, but in later commits.
"""

_FILES_HEAD = [
    pa.field("file_path", pa.string(), nullable=False),
    pa.field("file_format", pa.string(), nullable=False),
    pa.field("spec_id", pa.int32(), nullable=False),
]
_FILES_TAIL = [
    pa.field("record_count", pa.int64(), nullable=False),
    pa.field("file_size_in_bytes", pa.int64(), nullable=False),
    pa.field("deleted_record_count", pa.int64(), nullable=False),
]
_PARTITION, _METRICS = "partition", "readable_metrics"
_COUNTS = [
    pa.field("record_count", pa.int64(), nullable=False),
    pa.field("file_count", pa.int64(), nullable=False),
    pa.field("total_data_file_size_in_bytes", pa.int64(), nullable=False),
]


def partition_names(metadata: Metadata) -> dict[str, PartitionField]:
    """Return the partition fields of all specs by their shown names, the present spec first."""
    named_fields: dict[int, tuple[str, PartitionField]] = {}
    for spec in (metadata.spec, *reversed(metadata.specs)):
        for name, field in zip(shown_names(spec, metadata.schema), spec.fields, strict=True):
            named_fields.setdefault(field.id, (name, field))
    shown_fields: dict[str, PartitionField] = {}
    for name, field in named_fields.values():
        lower_names = {other.lower() for other in shown_fields}
        shown_fields[name if name.lower() not in lower_names else f"{name}_{field.id}"] = field
    return shown_fields


def _partition_field(metadata: Metadata) -> list[pa.Field]:
    fields = partition_names(metadata)
    if not fields:
        return []
    parts = [pa.field(name, _shown(value_type(field.result))) for name, field in fields.items()]
    return [pa.field(_PARTITION, pa.struct(parts), nullable=False)]


def _shown(type: pa.DataType | None) -> pa.DataType:
    """Return the type that values are shown in. Engines have different types for a time of day."""
    return pa.string() if type is None or pa.types.is_time(type) else type


def files_schema(table: TableHead) -> pa.Schema:
    metadata = table.metadata
    metrics = [
        pa.field(column.name, _metrics_type(column.name, metadata), nullable=False)
        for column in _measured(metadata).values()
    ]
    struct = [pa.field(_METRICS, pa.struct(metrics), nullable=False)] if metrics else []
    return pa.schema([*_FILES_HEAD, *_partition_field(metadata), *_FILES_TAIL, *struct])


def _measured(metadata: Metadata) -> dict[int, pa.Field]:
    """Return the columns that have statistics, by id, each with the type for comparisons."""
    return {
        column.id: pa.field(metadata.schema.field_by_id(column.id).name, value_type(column.type))
        for column in measured_columns(metadata.schema)
        if value_type(column.type) is not None
    }


def _metrics_type(name: str, metadata: Metadata) -> pa.DataType:
    type = next(field.type for field in _measured(metadata).values() if field.name == name)
    parts = [pa.field("null_value_count", pa.int64())]
    if pa.types.is_floating(type):
        parts.append(pa.field("nan_value_count", pa.int64()))
    return pa.struct([*parts, pa.field("lower_bound", _shown(type)), pa.field("upper_bound", _shown(type))])


def files(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    table.note_rows_read(None)
    for chunk in table.chunks():
        for start in range(0, chunk.num_rows, ROWS_PER_CHUNK):
            part = chunk.slice(start, ROWS_PER_CHUNK).combine_chunks()
            yield pa.Table.from_arrays(
                [_column(part, field, table) for field in wanted_schema], schema=wanted_schema
            )


def _column(files: pa.Table, field: pa.Field, table: TableHead) -> pa.Array:
    match field.name:
        case "file_path":
            return _urls(array_of(files, "path"), table.url)
        case "file_format":
            return pa.repeat(pa.scalar("PARQUET"), files.num_rows)
        case "spec_id":
            return array_of(files, "spec")
        case "partition":
            return _partitions_of(files, table.metadata, field.type)
        case "record_count":
            return array_of(files, "rows")
        case "file_size_in_bytes":
            return array_of(files, "size")
        case "deleted_record_count":
            counts = array_of(files, "deleted") if "deleted" in files.column_names else None
            return (
                pa.repeat(pa.scalar(0, pa.int64()), files.num_rows)
                if counts is None
                else pc.fill_null(counts, 0)
            )
        case _:
            return _metrics(files, table.metadata, field.type)


def _urls(paths: pa.Array, location: str) -> pa.Array:
    below = pc.binary_join_element_wise(location.rstrip("/"), paths, "/")
    if not any(map(is_elsewhere, paths.to_pylist())):
        return below
    elsewhere = pa.array([is_elsewhere(path) for path in paths.to_pylist()])
    return pc.if_else(elsewhere, paths, below)


def _partitions_of(files: pa.Table, metadata: Metadata, type: pa.StructType) -> pa.Array:
    partition_fields = partition_names(metadata)
    parts = [type.field(place) for place in range(type.num_fields)]
    values = [_as_shown(partition_values(files, partition_fields[part.name]), part.type) for part in parts]
    return pa.StructArray.from_arrays(values, fields=parts)


def _as_shown(values: pa.Array, type: pa.DataType) -> pa.Array:
    return values if values.type == type else values.cast(type)


def _metrics(files: pa.Table, metadata: Metadata, type: pa.StructType) -> pa.Array:
    typed_columns = {field.name: (id, field.type) for id, field in _measured(metadata).items()}
    columns = [type.field(place) for place in range(type.num_fields)]
    arrays = []
    for column in columns:
        id, stored_type = typed_columns[column.name]
        stats = {
            "null_value_count": "nulls",
            "nan_value_count": "nans",
            "lower_bound": "lo",
            "upper_bound": "hi",
        }
        parts = [column.type.field(place) for place in range(column.type.num_fields)]
        values = [_statistic(files, f"{stats[part.name]}{id}", stored_type, part.type) for part in parts]
        arrays.append(pa.StructArray.from_arrays(values, fields=parts))
    return pa.StructArray.from_arrays(arrays, fields=columns)


def _statistic(files: pa.Table, name: str, kept: pa.DataType, data_type: pa.DataType) -> pa.Array:
    if name not in files.column_names:
        return pa.nulls(files.num_rows, data_type)
    values = array_of(files, name)
    return _as_shown(values if name.startswith("n") else converted(values, kept), data_type)


def partitions_schema(table: TableHead) -> pa.Schema:
    partition = _partition_field(table.metadata)
    spec = [pa.field("spec_id", pa.int32(), nullable=False)] if partition else []
    return pa.schema([*partition, *spec, *_COUNTS])


def partitions(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield a row for each partition of each spec that has files.

    A table without partitioning has a single row.
    """
    metadata = table.metadata
    partition_fields = partition_names(metadata)
    keys = ["spec", *(str(place) for place in range(len(partition_fields)))] if partition_fields else []
    counts = ["record_count", "file_count", "total_data_file_size_in_bytes"]
    types = (
        [pa.int32(), *(value_type(field.result) for field in partition_fields.values())]
        if partition_fields
        else []
    )
    schema = pa.schema(list(zip([*keys, *counts], [*types, *[pa.int64()] * len(counts)], strict=True)))
    tables = [schema.empty_table()]
    table.note_rows_read(None)
    for chunk in table.chunks():
        values = (
            [
                array_of(chunk, "spec"),
                *(partition_values(chunk, field) for field in partition_fields.values()),
            ]
            if partition_fields
            else []
        )
        ones = pa.repeat(pa.scalar(1, pa.int64()), chunk.num_rows)
        arrays = [*values, array_of(chunk, "rows"), ones, array_of(chunk, "size")]
        tables.append(_grouped(pa.Table.from_arrays(arrays, schema=schema), keys, counts))
    groups = _grouped(pa.concat_tables(tables), keys, counts).combine_chunks()
    if not groups.num_rows or not (keys or table.state.files.file_count):
        return
    columns = dict(zip(counts, (array_of(groups, name) for name in counts), strict=True))
    for field in wanted_schema:
        if field.name == _PARTITION:
            parts = [field.type.field(place) for place in range(field.type.num_fields)]
            shown_values = [
                _as_shown(array_of(groups, str(place)), part.type) for place, part in enumerate(parts)
            ]
            columns[_PARTITION] = pa.StructArray.from_arrays(shown_values, fields=parts)
        elif field.name == "spec_id":
            columns["spec_id"] = array_of(groups, "spec")
    yield pa.Table.from_arrays([columns[field.name] for field in wanted_schema], schema=wanted_schema)


def _grouped(files: pa.Table, keys: list[str], counts: list[str]) -> pa.Table:
    sums = pa.TableGroupBy(files, keys).aggregate([(name, "sum") for name in counts])
    return sums.select([*keys, *(f"{name}_sum" for name in counts)]).rename_columns([*keys, *counts])


def manifests(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield a row for each manifest that a cold reader of this version would read, and for later commits."""
    file_lists = table.state.files.stored_in()
    rows = [
        {
            "content": content,
            "path": f"{table.url.rstrip('/')}/{LogKeys('').manifest(manifest_entry.name)}",
            "added_version": blob_version(manifest_entry.name),
            "entries_count": manifest_entry.entries,
        }
        for content, lists in (
            ("added", file_lists.manifests.entries),
            ("removed", file_lists.manifests.removed),
        )
        for manifest_entry in (manifest.stored for manifest in lists)
    ]
    rows += [
        {"content": content, "path": None, "added_version": None, "entries_count": count}
        for content, count in (("added", file_lists.added_since), ("removed", file_lists.removed_since))
        if count
    ]
    if rows:
        yield pa.Table.from_pylist(
            [{name: row[name] for name in wanted_schema.names} for row in rows], schema=wanted_schema
        )
