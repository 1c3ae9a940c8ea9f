"""Other projects' readers of Iceberg. Their answers about an exported table have a common form."""

from __future__ import annotations

import importlib.metadata
import math
import os
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

# polars says once for each query that it could plan faster.
os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"

Rows = list[dict[str, Any]]


def plain(table: pa.Table) -> Rows:
    """Return rows in the order of their ids, with values that compare whatever type of Arrow they came as."""
    return sorted((_plain(row) for row in table.to_pylist()), key=lambda row: row["id"])


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            # A map is pairs, in whatever order.
            pairs = [_plain(each) for each in value]
            is_map = all(isinstance(each, tuple) and len(each) == 2 for each in value) and value
            return sorted(map(tuple, pairs), key=repr) if is_map else pairs
        case float():
            return "NaN" if math.isnan(value) else value
        case Decimal():
            return value.normalize()
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


@cache
def duckdb_with_iceberg() -> Any:
    import duckdb

    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        try:
            files = importlib.metadata.files(f"duckdb-extension-{name}") or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(
                f"no package duckdb-extension-{name}: DuckDB does not read Iceberg here; install lakelog[dev]"
            )
        (path,) = [file.locate() for file in files if file.name.endswith(".duckdb_extension")]
        connection.execute(f"LOAD '{path}'")
    connection.execute("SET TimeZone = 'UTC'")
    # With it, DuckDB 1.5 takes one vector of a file for another, once it has read parts of it: docs/sql/iceberg.md.
    connection.execute("SET enable_external_file_cache = false")
    return connection


def by_duckdb(url: str, snapshot: int | None = None, *, columns: Sequence[str] = ("*",)) -> pa.Table:
    at = "" if snapshot is None else f", snapshot_from_id = {snapshot}::UBIGINT"
    found = duckdb_with_iceberg().execute(f"SELECT {', '.join(columns)} FROM iceberg_scan('{url}'{at})")
    return found.to_arrow_table()


def by_pyiceberg(url: str, snapshot: int | None = None) -> pa.Table:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(url).scan(snapshot_id=snapshot).to_arrow()


def by_polars(url: str, snapshot: int | None = None) -> pa.Table:
    import polars

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return polars.scan_iceberg(url, snapshot_id=snapshot).collect().to_arrow()


Reader = Callable[..., pa.Table]
READERS: dict[str, Reader] = {
    "duckdb": by_duckdb,
    "pyiceberg": by_pyiceberg,
    "polars": by_polars,
}


def refs(url: str) -> dict[str, int]:
    """Return the snapshots of tags and branches, by name."""
    from pyiceberg.table import StaticTable

    return {name: ref.snapshot_id for name, ref in StaticTable.from_metadata(url).metadata.refs.items()}


def hint(folder: Path) -> int:
    return int((folder / "metadata/version-hint.text").read_text())
