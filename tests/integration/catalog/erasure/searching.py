"""A search for values in everything that a store holds: decoded, and as bytes.

Each object is taken apart by what it is: Parquet into its values, the statistics of its footer and its unpacked pages,
Arrow streams into their values, JSON into its texts, Avro into its records. What is compressed by gzip or Zstandard
is taken apart, too, and so are texts that are Base64 or hexadecimal digits.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.log import MemoryStore

Value = str | int | Decimal


def found_in(store: MemoryStore, values: list[Value]) -> dict[str, set[str]]:
    """Return the keys of the objects that have any of the values, each with what of it has them."""
    found: dict[str, set[str]] = {}
    for key, data in sorted(store._objects.items()):
        for label, part in parts_of(data):
            if has_any(part, values):
                found.setdefault(key, set()).add(label)
    return found


def parts_of(data: bytes, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield what an object consists of, each with a word for it."""
    yield "bytes", data
    if depth > 3:
        return
    unpacked_data = _unpacked_data(data)
    if unpacked_data is not None:
        yield from parts_of(unpacked_data, depth + 1)
    if data[:4] == b"PAR1":
        yield from _parquet(data)
    elif data[:3] == b"Obj":
        for record in fastavro.reader(io.BytesIO(data)):
            yield "avro", record
    elif (values := _json(data)) is not None:
        for text in _texts(values):
            yield "json", text
            for label, part in _encoded(text, depth):
                yield f"{label} in json", part
    else:
        table = _arrow(data)
        if table is not None:
            yield "arrow", table.to_pydict()


def _parquet(data: bytes) -> Iterator[tuple[str, Any]]:
    file = pq.ParquetFile(io.BytesIO(data))
    yield "values", file.read().to_pydict()
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            statistics = file.metadata.row_group(group).column(column).statistics
            if statistics is not None and statistics.has_min_max:
                yield "footer", [statistics.min, statistics.max]
    # Dictionaries keep values that no row has: they are read as such.
    names = file.schema_arrow.names
    flat = [name for name in names if pa.types.is_string(file.schema_arrow.field(name).type)]
    for batch in pq.ParquetFile(io.BytesIO(data), read_dictionary=flat).iter_batches(columns=flat):
        for values in batch.columns:
            if isinstance(values, pa.DictionaryArray):
                yield "dictionary", values.dictionary.to_pylist()


def _arrow(data: bytes) -> pa.Table | None:
    try:
        return pa.ipc.open_stream(data).read_all()
    except (pa.ArrowException, OSError):
        return None


def _json(data: bytes) -> Any:
    """Return the values of an object of JSON; None if it only begins so, as an id may that is decoded."""
    with suppress(ValueError):
        return json.loads(data) if data[:2] == b'{"' else None
    return None


def _unpacked_data(data: bytes) -> bytes | None:
    """Return what is in a whole object that is compressed; None if it only begins so, as an id may that is decoded."""
    for magic, codec in ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if data.startswith(magic):
            with suppress(OSError):
                return pa.CompressedInputStream(pa.BufferReader(data), codec).read()
    return None


def _encoded(text: str, depth: int) -> Iterator[tuple[str, Any]]:
    for decode in (lambda: base64.b64decode(text, validate=True), lambda: bytes.fromhex(text)):
        try:
            data = decode()
        except ValueError:
            continue
        if len(data) > 16:
            yield from parts_of(data, depth + 1)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    else:
        yield str(value)


def has_any(part: Any, values: list[Value]) -> bool:
    if isinstance(part, bytes):
        return any(form in part for value in values for form in _forms(value))
    if isinstance(part, dict):
        return any(has_any(each, values) for pair in part.items() for each in pair)
    if isinstance(part, list | tuple):
        return any(has_any(each, values) for each in part)
    return any(part == value or str(value) in str(part) for value in values)


def _forms(value: Value) -> list[bytes]:
    """Return how a value may stand in bytes: as text, and as numbers of both orders."""
    forms = [str(value).encode()]
    number = int(value.scaleb(2)) if isinstance(value, Decimal) else value
    if isinstance(number, int):
        forms += [number.to_bytes(8, order, signed=True) for order in ("little", "big")]
        forms += [number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)]
    return forms
