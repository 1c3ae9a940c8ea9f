"""Parquet files of other writers, found in folders and read by Arrow, for clients without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import ColumnStats
from lakelog.catalog.core.files.statistics import MeasuredColumn, footer_statistics
from lakelog.catalog.core.parquet.add_files import FoundFile, literal_of
from lakelog.catalog.core.parquet.opening import footer_crc_at, open_parquet
from lakelog.catalog.core.schema.arrow_types import type_from_arrow
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType
from lakelog.log import OpenUrl, canonical_url
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, Unsupported
from lakelog.log.parallel import in_threads
from lakelog.log.stores import ObjectStore

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def found_files(
    source: str, schema: Schema, partition_filter: Mapping[str, str | None], open_url: OpenUrl
) -> list[FoundFile]:
    """Return the Parquet files below the folder `source`, or the file `source`: absolute paths or URLs.

    `partition_filter` names partitions by the values in folders' names. Raises InvalidInput for a folder that
    is not a partition, or a file that is not a Parquet file. Costs a LIST for every 1000 files, and a GET or
    two for each file that is returned.
    """
    url = canonical_url(source)
    store, key = open_url(url)
    keys = dict(store.list_sizes(f"{key}/"))
    if keys:
        around = _around(url, schema)
        names_and_sizes = [(name, size) for name, size in sorted(keys.items()) if not is_hidden(name, key)]
        parts = {
            name: around | partition_of(name.removeprefix(f"{key}/"), url) for name, _ in names_and_sizes
        }
    else:
        names_and_sizes = [(name, size) for name, size in store.list_sizes(key) if name == key]
        parts = {key: _around(url.rpartition("/")[0], schema)}
    if not names_and_sizes:
        raise NotFound(f"there are no files at {source}: check the path")
    footer_args = []
    filter_texts = {name.lower(): text for name, text in partition_filter.items()}
    for name, size in names_and_sizes:
        partition = parts[name]
        unknown = filter_texts.keys() - {column_name.lower() for column_name in partition}
        if unknown:
            raise InvalidInput(
                f"{url} has no partition column {', '.join(sorted(unknown))} in the names of its folders"
            )
        literals = {
            column_name: _literal(schema, column_name, text) for column_name, text in partition.items()
        }
        if all(
            _literal(schema, column_name, filter_texts[column_name.lower()]) == literals[column_name]
            for column_name in partition
            if column_name.lower() in filter_texts
        ):
            footer_args.append((f"{url}{name.removeprefix(key)}", name, size, literals))
    return list(in_threads(lambda each: _read_footer(store, *each), footer_args, "lakelog-footers"))


def is_hidden(name: str, root: str) -> bool:
    """Return whether Spark ignores a path.

    It does if a part begins with a dot, or with `_` without being a partition. It also ignores the objects
    that stand for folders in object stores.
    """
    if name.endswith(("/", "_$folder$")):
        return True
    parts = name.removeprefix(f"{root}/").split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _around(folder: str, schema: Schema) -> dict[str, str | None]:
    """Return the values of the table's columns in the names of the folders at the end of a path."""
    values: dict[str, str | None] = {}
    for part in reversed(folder.split("/")):
        name, equals, _ = part.partition("=")
        if not equals or schema.get((unquote(name),)) is None:
            break
        values = partition_of(f"{part}/", folder) | values
    return values


def partition_of(below: str, url: str) -> dict[str, str | None]:
    """Return the partition values in the folders of a path, by column name (`region=EU/…`); NULL is None."""
    values: dict[str, str | None] = {}
    for part in below.split("/")[:-1]:
        name, equals, text = part.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"{url}/{below} is in the folder {part}, which is not a partition (name=value): add that folder alone"
            )
        if unquote(name) in values:
            raise InvalidInput(
                f"{url}/{below} is in two folders of the partition column {unquote(name)}: move it into one"
            )
        values[unquote(name)] = None if text == NULL_PARTITION else unquote(text)
    return values


def _literal(schema: Schema, name: str, text: str | None) -> Any:
    column = schema.get((name,))
    return text if column is None else literal_of(text, column.type)


def _read_footer(
    store: ObjectStore, path: str, key: str, size_bytes: int, partition: Mapping[str, Any]
) -> FoundFile:
    file, _, old_times = read_footer(store, path, key, size_bytes, partition)
    if old_times:
        raise InvalidInput(
            f"the file {path} cannot be added from Python: it has times of the deprecated type INT96; "
            "CALL system.add_files in Spark adds it"
        )
    return file


def read_footer(
    store: ObjectStore, path: str, key: str, size_bytes: int, partition: Mapping[str, Any]
) -> tuple[FoundFile, pa.Schema, frozenset[str]]:
    """Return the facts in a file's footer, its columns as Arrow has them, and the paths of INT96 columns.

    Raises InvalidInput for another file, NotFound if there is none.
    """
    try:
        with store.open_input(key) as source:
            file = open_parquet(source, size_bytes, None)
            footer = file.metadata
            arrow = file.schema_arrow
            columns, fine, has_times = _shape(arrow.serialize().to_pybytes())
            if fine is not None:
                raise InvalidInput(
                    f"the file {path} cannot be added: {fine} has nanoseconds, which Spark does not read"
                )
            leaves = (footer.schema.column(i) for i in range(len(footer.schema) if has_times else 0))
            old_times = frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")
            found_file = FoundFile(
                path=path,
                size_bytes=size_bytes,
                rows=footer.num_rows,
                columns=columns,
                partition=partition,
                stats=_statistics(footer, columns),
                footer_crc=footer_crc_at(source, size_bytes),
                old_calendar=_has_old_calendar(footer.metadata or {}),
            )
            return found_file, arrow, old_times
    except Unsupported as error:
        raise Unsupported(f"the file {path} cannot be added: {error.message}") from None
    except (pa.ArrowInvalid, OSError, LakelogError) as error:
        if isinstance(error, InvalidInput | NotFound) or (
            isinstance(error, OSError) and error.errno is not None
        ):
            raise
        raise InvalidInput(
            f"the file {path} cannot be added: it cannot be read as Parquet ({error})"
        ) from error


@lru_cache(maxsize=1024)
def _shape(serialized_data: bytes) -> tuple[StructType, str | None, bool]:
    """Return the columns of an Arrow schema, the first with nanoseconds, and whether any are timestamps.

    Most files of a folder have the same schema, which is read once.
    """
    arrow = pa.ipc.read_schema(pa.py_buffer(serialized_data))
    fine = next((column.name for column in arrow if _has(_is_fine, column.type)), None)
    columns = [
        Field(name=column.name, type=type_from_arrow(column.type, (column.name,)), nullable=column.nullable)
        for column in (arrow if fine is None else ())
        # A column without any value in the file has no type, and is read as a column that the file lacks.
        if not pa.types.is_null(column.type)
    ]
    return StructType(tuple(columns)), fine, any(_has(pa.types.is_timestamp, column.type) for column in arrow)


def _is_fine(type: pa.DataType) -> bool:
    return bool((pa.types.is_timestamp(type) or pa.types.is_time64(type)) and type.unit == "ns")


def _has(test: Callable[[pa.DataType], bool], type: pa.DataType) -> bool:
    return test(type) or any(_has(test, type.field(i).type) for i in range(type.num_fields))


def _statistics(footer: pq.FileMetaData, columns: StructType) -> dict[tuple[str, ...], ColumnStats]:
    """Return statistics of columns that are not nested. Bounds of a different unit or sign are left out."""
    leaves = {footer.schema.column(i).path: footer.schema.column(i) for i in range(len(footer.schema))}
    numbered_columns = [
        (number, column.name, column.type)
        for number, column in enumerate(columns.fields)
        if isinstance(column.type, AtomicType)
        and value_type(column.type) is not None
        and column.name in leaves
    ]
    stats_by_number = footer_statistics(
        footer,
        [MeasuredColumn(number, name, type) for number, name, type in numbered_columns],
        range(footer.num_row_groups),
    )
    stats_by_path: dict[tuple[str, ...], ColumnStats] = {}
    for number, name, _ in numbered_columns:
        stats = stats_by_number.get(number)
        if stats is not None:
            keeps = _means_the_same(leaves[name])
            stats_by_path[(name,)] = stats if keeps else ColumnStats(nulls=stats.nulls)
    return stats_by_path


def _means_the_same(leaf: Any) -> bool:
    return _is_of_lakelog(leaf.logical_type.to_json(), leaf.physical_type)


@lru_cache(maxsize=1024)
def _is_of_lakelog(logical_json: str, physical: str) -> bool:
    """Return whether bounds of a column of these types are the same that lakelog would have written."""
    logical: Mapping[str, Any] = msgspec.json.decode(logical_json)
    match logical.get("Type"):
        case "None" | "String" | "Date" | "Decimal":
            return physical in ("BOOLEAN", "INT32", "INT64", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
        case "Int":
            return bool(logical["isSigned"])
        case "Timestamp":
            return bool(logical["timeUnit"] == "microseconds")
        case _:
            return False


def _has_old_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    version = metadata.get(b"org.apache.spark.version", b"3").split(b".")[0]
    marks = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    return version in (b"1", b"2") or any(mark in metadata for mark in marks)
