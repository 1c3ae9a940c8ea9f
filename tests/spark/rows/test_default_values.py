"""Defaults of added columns as values: Spark gives and takes the same ones, whatever a session's settings are."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.spark.rows.test_old_row_defaults import CELLS, shown

from lakelog.catalog.core.schema import schema_to_spark
from lakelog.catalog.core.schema.types import TypedValue

pytestmark = pytest.mark.adapter

FAR = [
    ("DATE", "DATE'-0044-03-15'"), ("DATE", "DATE'+10000-01-01'"), ("DATE", "DATE'1969-12-31'"),
    ("TIMESTAMP", "TIMESTAMP'-0001-12-31 23:59:59.999999'"), ("TIMESTAMP", "TIMESTAMP'+10000-01-01 00:00:00'"),
    ("TIMESTAMP", "TIMESTAMP'1969-12-31 23:59:59.999999'"), ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'+10000-01-01 00:00:00'"),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'-0044-03-15 00:00:00.5'"), ("STRING", "'a\\n\\tb\"c\\u0000'"),
    ("STRING", "r'\\n\\'"), ("TIME(3)", "TIME'01:02:03.456'"), ("INTERVAL MONTH", "INTERVAL '-7' MONTH"),
    ("INTERVAL DAY", "INTERVAL '3' DAY"), ("INTERVAL HOUR", "INTERVAL '-30' HOUR"),
    ("INTERVAL HOUR TO SECOND", "INTERVAL '30:00:00.000001' HOUR TO SECOND"),
    ("INTERVAL MINUTE TO SECOND", "INTERVAL '-61:01.5' MINUTE TO SECOND"), ("INTERVAL SECOND", "INTERVAL '61' SECOND"),
    ("DECIMAL(10,2)", "7"), ("DOUBLE", "1"), ("BIGINT", "1"),
]  # fmt: skip


@contextlib.contextmanager
def settings(spark, **values: str) -> Iterator[None]:
    spark_settings = {"spark.sql." + name.replace("_", "."): value for name, value in values.items()}
    for name, value in spark_settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in spark_settings:
            spark.conf.unset(name)
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(autouse=True)
def with_times(spark):
    with settings(spark, timeType_enabled="true"):
        yield


def columns_of(cells: list[tuple[str, str]]) -> str:
    return ", ".join(f"c{i} {type} DEFAULT {value}" for i, (type, value) in enumerate(cells))


def values_of(lake, name: str) -> list[TypedValue | None]:
    fields = lake.catalog.load_table(name).schema.fields[1:]
    return [field.default.exists for field in fields]


def test_spark_gives_and_takes_the_same_value_of_every_type(lake):
    cells = [*CELLS, *FAR]
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql(f"ALTER TABLE lake.t ADD COLUMNS ({columns_of(cells)})")
    values = values_of(lake, "t")
    assert [value is None for value in values] == [text == "NULL" for _, text in cells]
    query = f"SELECT {shown(cells)} FROM lake.t"
    rows = lake.sql(query)
    # What a session is set to changes how Spark reads the SQL of a literal, and no value.
    with settings(lake.spark, parser_escapedStringLiterals="true", timestampType="TIMESTAMP_NTZ"):
        assert lake.sql(query) == rows
    with settings(lake.spark, session_timeZone="America/New_York"):
        lake.sql("CREATE TABLE lake.u LIKE lake.t")
    assert values_of(lake, "u") == values
    lake.sql(lake.sql("SHOW CREATE TABLE lake.t")[0][0].replace(".t (", ".v (", 1))
    assert values_of(lake, "v") == values
    described = {
        row[0]: row[2] for row in lake.sql("DESCRIBE TABLE EXTENDED lake.t") if row[0].startswith("c")
    }
    assert [described[f"c{i}"] for i in range(len(cells))] == [value for _, value in cells]


def test_the_sql_of_a_value_is_the_value_in_every_session(lake):
    cells = [cell for cell in (*CELLS, *FAR) if cell[1] != "NULL"]
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql(f"ALTER TABLE lake.t ADD COLUMNS ({columns_of(cells)})")
    fields = schema_to_spark(lake.catalog.load_table("t").schema)["fields"][1:]
    texts = [field["metadata"]["EXISTS_DEFAULT"] for field in fields]
    query = ", ".join(
        f"CAST({text} AS {type.replace('CHAR', 'VARCHAR').replace('VARVAR', 'VAR')}) AS c{i}"
        for i, ((type, _), text) in enumerate(zip(cells, texts, strict=True))
    )
    for zone in ("UTC", "Asia/Tokyo"):
        with settings(lake.spark, session_timeZone=zone, timestampType="TIMESTAMP_NTZ"):
            assert lake.sql(f"SELECT {shown(cells)} FROM (SELECT 1 AS id, {query})") == lake.sql(
                f"SELECT {shown(cells)} FROM lake.t"
            )


OF_PYTHON: list[tuple[str, Any]] = [
    ("boolean", True), ("tinyint", -128), ("bigint", -(2**63)), ("bigint", 2**63 - 1), ("float", float("nan")),
    ("float", -0.0), ("float", 1e-45), ("float", 3.4028234663852886e38), ("double", float("-inf")), ("double", -0.0),
    ("double", 5e-324), ("double", 1.7976931348623157e308), ("double", 0.1), ("decimal(38,0)", 10**38 - 1),
    ("decimal(38,38)", Decimal("1e-38")), ("decimal(5,2)", Decimal("-1.5")), ("string", "it's \\ \n\"%_\u0000ä😀"),
    ("char(5)", "a'"), ("varchar(5)", ""), ("string collate UTF8_LCASE", "A"), ("binary", b""),
    ("binary", b"\x00\xff"), ("date", dt.date(1, 1, 1)), ("date", dt.date(9999, 12, 31)),
    ("timestamp", dt.datetime(1, 1, 1, 0, 0, 0, 1, dt.UTC)),
    ("timestamp", dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)),
    ("timestamp_ntz", dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)), ("time(6)", dt.time(23, 59, 59, 999_999)),
    ("interval year to month", -14), ("interval day to second", dt.timedelta(days=-1, microseconds=1)),
    ("interval second", dt.timedelta(seconds=-1, microseconds=-5)),
]  # fmt: skip


def test_a_default_of_python_is_what_spark_makes_of_its_sql_in_new_rows(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    table = lake.catalog.load_table("t")
    for i, (type, value) in enumerate(OF_PYTHON):
        table = table.add_column(f"c{i}", type, default=value)
    with settings(lake.spark, session_timeZone="America/New_York"):
        lake.sql("INSERT INTO lake.t (id) VALUES (2)")
    query = shown([(type.upper(), "") for type, _ in OF_PYTHON]).removeprefix("id, ")
    old, new = (lake.sql(f"SELECT {query} FROM lake.t WHERE id = {id}") for id in (1, 2))
    assert old == new
    rows = lake.catalog.load_table("t").scan().to_arrow().sort_by("id").drop_columns(["id"])
    assert repr(rows.slice(0, 1).to_pylist()) == repr(rows.slice(1, 1).to_pylist())


def test_older_rows_read_as_those_of_sparks_own_parquet_table(lake):
    # Spark's own reader takes no binary default, and no decimal of more than 18 digits.
    cells = [
        (type, value)
        for type, value in (*CELLS, *FAR)
        if type != "BINARY" and not (type.startswith("DECIMAL") and int(type[8:].split(",")[0]) > 18)
    ]
    theirs = "spark_catalog.default.old_rows"
    try:
        for name, provider in (("lake.t", ""), (theirs, "USING parquet")):
            lake.sql(f"CREATE TABLE {name} {provider} AS SELECT 1 AS id")
            lake.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns_of(cells)})")
        assert lake.sql(f"SELECT {shown(cells)} FROM lake.t") == lake.sql(
            f"SELECT {shown(cells)} FROM {theirs}"
        )
    finally:
        lake.sql(f"DROP TABLE IF EXISTS {theirs}")


def test_a_default_that_is_no_single_value_is_for_new_rows_alone(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, l ARRAY<INT> DEFAULT array(1, 2), v VARIANT DEFAULT parse_json('1'))"
    )
    lake.sql("INSERT INTO lake.t (id) VALUES (1)")
    assert lake.sql("SELECT l, CAST(v AS INT) FROM lake.t") == [([1, 2], 1)]
    assert values_of(lake, "t") == [None, None]
    for type, value in (
        ("ARRAY<INT>", "array(1)"),
        ("MAP<INT, INT>", "map()"),
        ("VARIANT", "parse_json('1')"),
    ):
        with pytest.raises(Exception, match="only NULL can"):
            lake.sql(f"ALTER TABLE lake.t ADD COLUMN n {type} DEFAULT {value}")
    lake.sql("ALTER TABLE lake.t ADD COLUMN n ARRAY<INT> DEFAULT nullif(array(1), array(1))")
    assert lake.sql("SELECT n FROM lake.t") == [(None,)]
    with pytest.raises(Exception, match="not a"):
        lake.sql("ALTER TABLE lake.t ADD COLUMN s STRING DEFAULT CAST(X'80' AS STRING)")
