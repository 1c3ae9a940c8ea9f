"""A table that has had a life: several files, deleted rows, renamed and added columns, types that libraries lack."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import AtomicType, Catalog, Field, Schema, StructType, Table
from lakelog.catalog.core.parquet import read_files
from lakelog.catalog.core.schema.schema import assign_ids

TYPES = {
    "id": "long", "small": "short", "real": "double", "single": "float", "price": "decimal(10,2)", "text": "string",
    "fixed": "char(4)", "folded": "string collate UTF8_LCASE", "data": "binary", "day": "date", "moment": "timestamp",
    "local": "timestamp_ntz", "clock": "time(6)", "flag": "boolean", "lasting": "interval day to second",
}  # fmt: skip
NAN, INFINITY = math.nan, math.inf


def schema() -> Schema:
    part = StructType(
        (Field(name="x", type=AtomicType("integer")), Field(name="y", type=AtomicType("string")))
    )
    fields = [Field(name=name, type=AtomicType(type)) for name, type in TYPES.items()]
    return assign_ids([*fields, Field(name="part", type=part)])


def row(id: int, real: float, text: str | None, day: int = 1) -> dict[str, Any]:
    at = dt.datetime(2026, 1, day, 12, id % 60)
    return {
        "id": id, "small": id % 3, "real": real, "single": real if math.isfinite(real) else NAN,
        "price": Decimal(id) / 4, "text": text, "fixed": "ab" if id % 2 else "abcd", "folded": "A" if id % 2 else "a",
        "data": b"\xff" * (id % 3), "day": at.date(), "moment": at.replace(tzinfo=dt.UTC), "local": at,
        "clock": at.time(), "flag": id % 2 == 0, "lasting": dt.timedelta(seconds=id),
        "part": None if id % 4 == 0 else {"x": None if id % 4 == 1 else id, "y": text},
    }  # fmt: skip


FILES = (
    [row(1, 1.0, "ada"), row(2, NAN, "grace"), row(3, -0.0, None)],
    [row(11, 0.0, "ada", 11), {"id": 12}, row(13, INFINITY, "x%_", 11)],
    [
        row(21, 0.1, "é", 21),
        row(22, -INFINITY, "b" * 40, 21),
        row(23, 2.5, "", 21),
        {"id": None, "real": NAN},
    ],
)


def make_table(catalog: Catalog, name: str = "lab.lived") -> Table:
    catalog.create_namespace("lab")
    table = catalog.create_table(name, schema(), partition_by=[{"transform": "month", "column": ["day"]}])
    for rows in FILES:
        table = table.append(pa.Table.from_pylist(rows, schema=table.arrow_schema))
    table = table.delete("id = 22")
    return table.alter(
        [
            {"change": "rename-column", "name": ["text"], "new_name": "Word"},
            {
                "change": "add-column",
                "name": ["added"],
                "type": "integer",
                "default": {"current": "7"},
            },  # fmt: skip
        ]
    )


@contextmanager
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, list[str]]]]:
    """Note, for each read, how many files it has and which columns."""
    noted_pairs: list[tuple[int, list[str]]] = []

    def noting(store: Any, prefix: str, plan: pa.Table, *rest: Any, **how: Any) -> Any:
        noted_pairs.append((plan.num_rows, how["columns"]))
        return read_files(store, prefix, plan, *rest, **how)

    with monkeypatch.context() as patch:
        patch.setattr("lakelog.catalog.scan.read_files", noting)
        yield noted_pairs
