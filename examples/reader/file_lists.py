"""Lists of files as Arrow: sidecars, manifests, leaves of packs, removed paths. See catalog/README.md, *Files*.

All become entries as JSON has them, so that the rest of the reader knows a single form.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import pyarrow as pa
from log_reader import Log, check_bytes
from stored_forms import Refused, parsed, taken

_NUMBERS = (
    "size",
    "rows",
    "spec",
    "crc",
    "footer",
    "deleted",
    "first_row",
    "version",
    "curve",
    "curve_low",
    "curve_high",
)
_TEXTS = ("path", "write", "names", "constants", "deletes")
_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def table_of(data: bytes, what: str) -> pa.Table:
    """Return the table of an Arrow stream."""
    try:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Refused(f"{what} is no Arrow stream: {error}") from None
    if len(set(table.column_names)) < table.num_columns:
        raise Refused(f"{what} has a column twice")
    return table


def entries_of(table: pa.Table, what: str) -> list[dict[str, Any]]:
    """Return the entries of a list of files. Statistics are left out: they only make plans shorter."""
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        if name in _NUMBERS or name in _TEXTS or re.fullmatch(r"p\d+", name):
            columns[name] = literals(table[name].combine_chunks())
        elif not re.fullmatch(r"(lo|hi|nulls|nans)\d+", name):
            raise Refused(f"{what} has the unknown column {name:.80}: a newer writer wrote it")
    missing = {"path", "size", "rows", "spec", "write"} - columns.keys()
    if missing or ("deleted" in columns) != ("deletes" in columns):
        raise Refused(f"{what} lacks the column {', '.join(missing) or 'deleted or deletes'}")
    entries = []
    deleted = columns.get("deleted") or [None] * table.num_rows
    for row in range(table.num_rows):
        entry: dict[str, Any] = {"partition": {}}
        for name, values in columns.items():
            value = values[row]
            if name[0] == "p" and name[1:].isdigit():
                entry["partition"][name[1:]] = value
            elif value is not None and name != "deleted":
                entry[name] = parsed(value, what) if name in ("names", "constants", "deletes") else value
        file = taken(entry, "File", what)
        if deleted[row] != (file["deletes"] and file["deletes"]["rows"]):
            raise Refused(f"{what} counts other deleted rows of {file['path']} than its vector has")
        entries.append(file)
    return entries


def removed_of(table: pa.Table, what: str) -> list[dict[str, Any]]:
    """Return the removed files of a sidecar."""
    return [taken(row, "Removed", what) for row in table.to_pylist()]


def literals(array: pa.Array) -> list[Any]:
    """Return values of a type without parts as JSON has them."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type = array.type
    if pa.types.is_date32(type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(type) or pa.types.is_time64(type) or pa.types.is_duration(type):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    if pa.types.is_floating(type):
        return [_FLOATS.get(str(value), value) for value in values]
    if pa.types.is_decimal(type):
        return [None if value is None else format(value, "f") for value in values]
    if pa.types.is_binary(type):
        return [None if value is None else base64.b64encode(value).decode() for value in values]
    return values


def live_files(files: dict[str, Any], log: Log, packs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of a snapshot's `files` by path: those of its manifests, less the removed paths."""
    removed: dict[str, int] = {}
    for stored in files["removed"]:
        for row in _read(stored, log).to_pylist():
            removed[row["path"]] = max(row["seq"], removed.get(row["path"], 0))
    live: dict[str, dict[str, Any]] = {}
    for stored in files["manifests"]:
        tables = _leaves(stored, log, packs) if stored["name"].endswith(".pack") else [_read(stored, log)]
        for entry in (
            entry for table in tables for entry in entries_of(table, f"the manifest {stored['name']}")
        ):
            if removed.get(entry["path"], 0) <= stored["seq"]:
                live[entry["path"]] = entry
    totals = (
        len(live),
        sum(entry["rows"] for entry in live.values()),
        sum(entry["size"] for entry in live.values()),
    )
    if totals != (files["files"], files["rows"], files["bytes"]):
        raise Refused(f"the lists of files of {log.root} do not add up to the totals of their snapshot")
    return live


def _read(stored: dict[str, Any], log: Log) -> pa.Table:
    data = _manifest(stored["name"], log)
    check_bytes(data, len(data), stored["sha256"] or "", f"the manifest {stored['name']}")
    return _of_length(table_of(data, stored["name"]), stored)


def _leaves(stored: dict[str, Any], log: Log, packs: dict[str, Any]) -> list[pa.Table]:
    """Return the columns of leaves of a pack, except for statistics, from the parts that `packs` lists."""
    name, data, tables = stored["name"], _manifest(stored["name"], log), []
    pack = packs.get(name, {"kinds": [], "entries": [], "places": [], "sha256": []})
    if not {"files", "rest"} <= set(pack["kinds"]) or stored["leaves"] is None:
        raise Refused(f"`packs` does not have the pack {name}")
    for leaf in stored["leaves"]:
        if leaf >= min(len(pack[member]) for member in ("entries", "places", "sha256")):
            raise Refused(f"`packs` does not have the leaf {leaf} of {name}")
        columns, digests = {}, base64.b64decode(pack["sha256"][leaf])
        for at, (kind, (first, size)) in enumerate(zip(pack["kinds"], pack["places"][leaf], strict=True)):
            if kind.isdigit():
                continue  # statistics
            part = data[first : first + size]
            check_bytes(part, size, digests[32 * at : 32 * at + 32].hex(), f"the part {kind} of {name}")
            table = _of_length(table_of(part, name), {"name": name, "entries": pack["entries"][leaf]})
            columns |= {column: table[column] for column in table.column_names}
        tables.append(pa.table(columns))
    return tables


def _manifest(name: str, log: Log) -> bytes:
    data = log.get(f"manifests/{name}")
    if data is None:
        raise Refused(f"the manifest {name} of {log.root} is missing")
    return data


def _of_length(table: pa.Table, stored: dict[str, Any]) -> pa.Table:
    if table.num_rows != stored["entries"]:
        raise Refused(f"the manifest {stored['name']} has {table.num_rows} entries, not {stored['entries']}")
    return table
