"""Parquet files of other writers, found in folders and read by Arrow: for clients without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.files import ColumnStats, Measured, footer_statistics
from lakelog.catalog.core.parquet.add_files import FoundFile, literal_of
from lakelog.catalog.core.parquet.opening import footer_crc_at, open_parquet
from lakelog.catalog.core.schema import AtomicType, Field, Schema, StructType, type_from_arrow, value_type
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, Unsupported
from lakelog.log.parallel import in_threads
from lakelog.log.stores import ObjectStore

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

OpenUrl = Callable[[str], tuple[ObjectStore, str]]


def found_files(
    source: str, schema: Schema, partition_filter: Mapping[str, str | None], open_url: OpenUrl
) -> list[FoundFile]:
    """Return the Parquet files below the folder `source`, or the file `source`: absolute paths or URLs.

    `partition_filter` names partitions by the values in folders' names. InvalidInput for a folder that is not a
    partition, or a file that is not a Parquet file. Costs a LIST for every 1000 files, and a GET or two for each file
    that is returned.
    """
    url = canonical_url(source)
    store, key = open_url(url)
    keys = dict(store.list_sizes(f"{key}/"))
    if keys:
        around = _around(url, schema)
        listed = [(name, size) for name, size in sorted(keys.items()) if not is_hidden(name, key)]
        parts = {name: around | partition_of(name.removeprefix(f"{key}/"), url) for name, _ in listed}
    else:
        listed = [(name, size) for name, size in store.list_sizes(key) if name == key]
        parts = {key: _around(url.rpartition("/")[0], schema)}
    if not listed:
        raise NotFound(f"there are no files at {source}: check the path")
    taken = []
    wanted = {name.lower(): text for name, text in partition_filter.items()}
    for name, size in listed:
        partition = parts[name]
        unknown = wanted.keys() - {each.lower() for each in partition}
        if unknown:
            raise InvalidInput(
                f"{url} has no partition column {', '.join(sorted(unknown))} in the names of its folders"
            )
        literals = {each: _literal(schema, each, text) for each, text in partition.items()}
        if all(
            _literal(schema, each, wanted[each.lower()]) == literals[each]
            for each in partition
            if each.lower() in wanted
        ):
            taken.append((f"{url}{name.removeprefix(key)}", name, size, literals))
    return list(in_threads(lambda each: _read_footer(store, *each), taken, "lakelog-footers"))


def is_hidden(name: str, root: str) -> bool:
    """Return whether Spark ignores a path: a part of it begins with a dot, or with `_` without being a partition.

    So it does what object stores have in place of a folder.
    """
    if name.endswith(("/", "_$folder$")):
        return True
    parts = name.removeprefix(f"{root}/").split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _around(folder: str, schema: Schema) -> dict[str, str | None]:
    """Return the values of the table's columns in the names of the folders at the end of a path."""
    found: dict[str, str | None] = {}
    for part in reversed(folder.split("/")):
        name, equals, _ = part.partition("=")
        if not equals or schema.get((unquote(name),)) is None:
            break
        found = partition_of(f"{part}/", folder) | found
    return found


def partition_of(below: str, url: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in below.split("/")[:-1]:
        name, equals, text = part.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"{url}/{below} is in the folder {part}, which is not a partition (name=value): add that folder alone"
            )
        if unquote(name) in found:
            raise InvalidInput(
                f"{url}/{below} is in two folders of the partition column {unquote(name)}: move it into one"
            )
        found[unquote(name)] = None if text == NULL_PARTITION else unquote(text)
    return found


def _literal(schema: Schema, name: str, text: str | None) -> Any:
    column = schema.get((name,))
    return text if column is None else literal_of(text, column.type)


def _read_footer(
    store: ObjectStore, path: str, key: str, size_bytes: int, partition: Mapping[str, Any]
) -> FoundFile:
    found, _, old_times = read_footer(store, path, key, size_bytes, partition)
    if old_times:
        raise InvalidInput(
            f"the file {path} cannot be added from Python: it has times of the deprecated type INT96; "
            "CALL system.add_files in Spark adds it"
        )
    return found


def read_footer(
    store: ObjectStore, path: str, key: str, size_bytes: int, partition: Mapping[str, Any]
) -> tuple[FoundFile, pa.Schema, frozenset[str]]:
    """Return what the footer of a file says, its columns as Arrow has them, and the paths of those that are INT96.

    InvalidInput for another file, NotFound where there is none.
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
            found = FoundFile(
                path=path,
                size_bytes=size_bytes,
                rows=footer.num_rows,
                columns=columns,
                partition=partition,
                stats=_statistics(footer, columns),
                footer_crc=footer_crc_at(source, size_bytes),
                old_calendar=_has_old_calendar(footer.metadata or {}),
            )
            return found, arrow, old_times
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
def _shape(serialized: bytes) -> tuple[StructType, str | None, bool]:
    """Return the columns of a schema of Arrow, the first one with nanoseconds, and whether any are timestamps.

    Most files of a folder have one schema: it is looked at once.
    """
    arrow = pa.ipc.read_schema(pa.py_buffer(serialized))
    fine = next((each.name for each in arrow if _has(_is_fine, each.type)), None)
    columns = [
        Field(name=each.name, type=type_from_arrow(each.type, (each.name,)), nullable=each.nullable)
        for each in (arrow if fine is None else ())
        # A column that has a value nowhere in the file has no type, and is read as one that the file lacks.
        if not pa.types.is_null(each.type)
    ]
    return StructType(tuple(columns)), fine, any(_has(pa.types.is_timestamp, each.type) for each in arrow)


def _is_fine(type: pa.DataType) -> bool:
    return bool((pa.types.is_timestamp(type) or pa.types.is_time64(type)) and type.unit == "ns")


def _has(test: Callable[[pa.DataType], bool], type: pa.DataType) -> bool:
    return test(type) or any(_has(test, type.field(i).type) for i in range(type.num_fields))


def _statistics(footer: pq.FileMetaData, columns: StructType) -> dict[tuple[str, ...], ColumnStats]:
    """Return statistics of columns that are not nested. Bounds of a different unit or sign are left out."""
    leaves = {footer.schema.column(i).path: footer.schema.column(i) for i in range(len(footer.schema))}
    measured = [
        (number, each.name, each.type)
        for number, each in enumerate(columns.fields)
        if isinstance(each.type, AtomicType) and value_type(each.type) is not None and each.name in leaves
    ]
    known = footer_statistics(
        footer,
        [Measured(number, name, type) for number, name, type in measured],
        range(footer.num_row_groups),
    )
    found: dict[tuple[str, ...], ColumnStats] = {}
    for number, name, _ in measured:
        stats = known.get(number)
        if stats is not None:
            keeps = _means_the_same(leaves[name])
            found[(name,)] = stats if keeps else ColumnStats(nulls=stats.nulls)
    return found


def _means_the_same(leaf: Any) -> bool:
    return _is_of_lakelog(leaf.logical_type.to_json(), leaf.physical_type)


@lru_cache(maxsize=1024)
def _is_of_lakelog(logical_json: str, physical: str) -> bool:
    """Return whether bounds of a column of these types are those that lakelog would have written."""
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
