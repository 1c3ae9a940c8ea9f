"""Definitions that were changed in Python's words, as Spark understands them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

DEFAULTS: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), True),
    (pa.float64(), 1e-7),
    (pa.float64(), float("-inf")),
    (pa.float32(), 0.1),
    (pa.string(), "it's \\ \n"),
    (pa.binary(), b"\x00f"),
    (pa.decimal128(10, 2), Decimal("1.50")),
    (pa.date32(), dt.date(2020, 1, 31)),
    (pa.timestamp("us"), dt.datetime(2020, 1, 31, 12, 0, 0, 6)),
    (pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 31, 12, tzinfo=dt.UTC)),
    (pa.duration("us"), dt.timedelta(days=-1, seconds=5)),
]


def test_spark_writes_the_defaults_and_holds_the_checks_of_python(lake):
    lake.sql("CREATE TABLE lake.t (id INT)")
    with lake.catalog.load_table("t").alteration() as change:
        for number, (type, value) in enumerate(DEFAULTS):
            change.add_column(f"c{number}", type, default=value)
        change.add_constraint("positive", check="id > 0 AND c4 <> 'x'")
    lake.sql("INSERT INTO lake.t (id) VALUES (1)")
    table = change.table.append(pa.table({"id": pa.array([2], pa.int32())}))
    of_spark, of_python = table.to_arrow().drop_columns("id").to_pylist()
    assert of_spark == of_python
    assert list(of_python.values())[4:] == [value for _, value in DEFAULTS[4:]]
    with pytest.raises(Exception, match="positive"):
        lake.sql("INSERT INTO lake.t (id) VALUES (-1)")
