"""Rows of data files, as JSON: columns by their ids, values of older types, deleted rows.

See catalog/README.md, *Schema*, *Files* and *Deleted rows*.
"""

from __future__ import annotations

import base64
import os
import re
import struct
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from file_lists import literals
from stored_forms import Refused

Field = dict[str, Any]

_ARROW = {
    "boolean": pa.bool_(), "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "char": pa.string(), "varchar": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"), "time": pa.time64("us"),
}  # fmt: skip
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def arrow_type(name: str) -> pa.DataType:
    """Return Arrow's type of the values of an atomic type in a data file."""
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", name):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name.startswith("interval"):
        is_months = "year" in name or "month" in name
        return pa.int32() if is_months else pa.int64()
    return _ARROW[re.split(r"[( ]", name)[0]]


def rows_of(
    table_folder: str, warehouse: str, files: dict[str, dict[str, Any]], fields: list[Field]
) -> list[list[Any]]:
    """Return the rows of the files as lists of JSON values, in the order of the fields."""
    rows: list[list[Any]] = []
    for path in sorted(files):
        rows += _FileReader(table_folder, warehouse, files[path]).rows(fields)
    return rows


class _FileReader:
    def __init__(self, table_folder: str, warehouse: str, file: dict[str, Any]) -> None:
        self.folder, self.warehouse, self.file = table_folder, warehouse, file
        self.names: dict[int, str] | None = file["names"]
        self.constants: dict[int, dict[str, Any]] = file["constants"]

    def rows(self, fields: list[Field]) -> list[list[Any]]:
        data = _bytes_at(os.path.join(self.folder, self.file["path"]), f"the data file {self.file['path']}")
        footer = struct.unpack("<I", data[-8:-4])[0] if len(data) >= 12 else 0
        if len(data) != self.file["size"]:
            raise Refused(f"the data file {self.file['path']} has {len(data)} bytes, not {self.file['size']}")
        if self.file["footer"] not in (None, zlib.crc32(data[-8 - footer :])):
            raise Refused(f"the data file {self.file['path']} has another footer than the log says")
        try:
            parquet = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
            table = parquet.read(use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise Refused(f"the data file {self.file['path']} cannot be read: {error}") from None
        deleted = self._deleted()
        if table.num_rows != self.file["rows"] + len(deleted) or max(deleted, default=-1) >= table.num_rows:
            raise Refused(
                f"the data file {self.file['path']} has {table.num_rows} rows, and the log counts others"
            )
        children = {name: table[name].combine_chunks() for name in table.column_names}
        columns = [self._column(children, field, table.num_rows) for field in fields]
        return [
            list(row) for position, row in enumerate(zip(*columns, strict=True)) if position not in deleted
        ]

    def _column(self, children: dict[str, pa.Array], field: Field, count: int) -> list[Any]:
        """Return the values of a field: those of the file, a constant, the default of older rows, or NULL."""
        constant = self.constants.get(field["id"])
        name = field["physical"] if self.names is None else self.names.get(field["id"])
        if constant is None and name in children:
            return self._values(children[name], field["type"], field["name"])
        known = constant or (field["default"] or {}).get("exists")
        return [converted(known, field["type"], field["name"]) if known else None] * count

    def _values(self, array: pa.Array, type: dict[str, Any], name: str) -> list[Any]:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        match type["kind"]:
            case "atomic" if type["name"] == "variant":
                parts = [
                    literals(part.cast(pa.binary())) for part in _parts(array, ("metadata", "value"), name)
                ]
                rows: list[Any] = [
                    dict(zip(("metadata", "value"), row, strict=True)) for row in zip(*parts, strict=True)
                ]
            case "atomic":
                return literals(_cast(array, type["name"], name))
            case "struct":
                if not pa.types.is_struct(array.type):
                    raise Refused(
                        f"the column {name} is {array.type} in a data file, and a struct in the table"
                    )
                children = {array.type.field(i).name: array.field(i) for i in range(array.type.num_fields)}
                columns = [self._column(children, field, len(array)) for field in type["fields"]]
                names = [field["name"] for field in type["fields"]]
                rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
                rows = rows or [{}] * len(array)
            case "list":
                values = self._values(array.values, type["element"], name)
                rows = _slices(array, values)
            case "map":
                keys = self._values(array.keys, type["key"], name)
                items = self._values(array.items, type["value"], name)
                rows = _slices(array, [list(pair) for pair in zip(keys, items, strict=True)])
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]

    def _deleted(self) -> set[int]:
        """Return the positions of deleted rows."""
        deletes = self.file["deletes"]
        if deletes is None:
            return set()
        what = f"the deletion vector of {self.file['path']}"
        if deletes["inline"] is not None:
            vector = base64.b64decode(deletes["inline"])
        else:
            place = os.path.join(self.folder, deletes["path"] or "")
            if not os.path.normpath(place).startswith(f"{os.path.normpath(self.warehouse)}/"):
                raise Refused(f"{what} is outside of the warehouse")
            data = _bytes_at(place, what)
            if len(data) != deletes["object"]:
                raise Refused(f"{what} is in an object of another size")
            vector = data[deletes["offset"] : deletes["offset"] + deletes["size"]]
        if len(vector) != deletes["size"] or zlib.crc32(vector) != deletes["crc"]:
            raise Refused(f"{what} does not have its size and checksum")
        try:
            positions = roaring(vector)
        except (struct.error, IndexError):
            raise Refused(f"{what} is no Roaring bitmap") from None
        if len(positions) != deletes["rows"]:
            raise Refused(f"{what} has {len(positions)} rows, not {deletes['rows']}")
        return positions


def converted(known: dict[str, Any], type: dict[str, Any], name: str) -> Any:
    """Return a literal of the type that it was stored with as one of the column's present type."""
    if known["value"] is None or type["kind"] != "atomic":
        return known["value"]
    stored, value = arrow_type(known["type"]), known["value"]
    if pa.types.is_floating(stored):
        value = _FLOATS.get(value, value)
    elif pa.types.is_binary(stored):
        value = base64.b64decode(value)
    if pa.types.is_decimal(stored):
        array = pa.array([value]).cast(stored)
    else:
        array = pa.array([value], pa.int32() if pa.types.is_date32(stored) else None).cast(stored)
    return literals(_cast(array, type["name"], name))[0]


def _cast(array: pa.Array, type_name: str, name: str) -> pa.Array:
    try:
        return array.cast(arrow_type(type_name))
    except pa.ArrowException as error:
        raise Refused(
            f"the column {name} is {array.type} in a file, and {type_name} in the table: {error}"
        ) from None


def _parts(array: pa.Array, names: tuple[str, ...], column: str) -> list[pa.Array]:
    if not pa.types.is_struct(array.type) or {field.name for field in array.type} != set(names):
        raise Refused(
            f"the column {column} is {array.type} in a data file: shredded variants are not read here"
        )
    return [array.field(name) for name in names]


def _slices(array: pa.Array, values: list[Any]) -> list[list[Any]]:
    """Return the part of `values` that each list or map has."""
    offsets = array.offsets.to_pylist()
    return [values[first:end] for first, end in zip(offsets, offsets[1:], strict=False)]


def _bytes_at(path: str, what: str) -> bytes:
    if "://" in path:
        raise Refused(f"{what} is at {path}, and this reader reads local folders only")
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise Refused(f"{what} is missing at {path}") from None


def roaring(data: bytes) -> set[int]:
    """Return the numbers in a 32-bit Roaring bitmap in its portable form."""
    cookie, at = struct.unpack_from("<I", data)[0], 4
    if cookie & 0xFFFF == 12347:  # some containers are runs, as a bitmap of flags says
        count = (cookie >> 16) + 1
        flags, at = data[at : at + (count + 7) // 8], at + (count + 7) // 8
        has_offsets = count >= 4
    elif cookie == 12346:
        count, at = struct.unpack_from("<I", data, at)[0], at + 4
        flags, has_offsets = bytes((count + 7) // 8), True
    else:
        raise struct.error("another cookie")
    if count > 65536:
        raise struct.error("too many containers")
    heads = [struct.unpack_from("<HH", data, at + 4 * place) for place in range(count)]
    at += count * (8 if has_offsets else 4)
    numbers: set[int] = set()
    for place, (high, size) in enumerate(heads):
        base, size = high << 16, size + 1
        if flags[place // 8] >> place % 8 & 1:
            runs = struct.unpack_from("<H", data, at)[0]
            for run in range(runs):
                first, more = struct.unpack_from("<HH", data, at + 2 + 4 * run)
                numbers.update(range(base + first, base + first + more + 1))
            at += 2 + 4 * runs
        elif size > 4096:
            words = struct.unpack_from("<1024Q", data, at)
            numbers.update(
                base + 64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1
            )
            at += 8192
        else:
            numbers.update(base + low for low in struct.unpack_from(f"<{size}H", data, at))
            at += 2 * size
    return numbers
