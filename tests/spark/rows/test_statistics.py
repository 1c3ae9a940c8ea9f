"""Statistics that executors take from the files' footers: tight, and never narrower than the values."""

import datetime as dt

import pytest

from lakelog.catalog import col


def planned(lake, filter):
    return lake.catalog.load_table("t").plan(filter).num_rows


@pytest.fixture
def one_file(lake):
    def create(select):
        lake.sql(f"CREATE TABLE lake.t AS SELECT /*+ COALESCE(1) */ * FROM ({select})")
        return lake

    return create


@pytest.mark.parametrize(
    ("values", "inside", "outside"),
    [
        ("(CAST(1 AS TINYINT)), (CAST(5 AS TINYINT))", col("v") == 5, col("v") > 5),
        ("(1L), (5L)", col("v") == 1, col("v") < 1),
        ("(1.5D), (2.5D)", col("v") <= 1.5, col("v") > 2.5),
        ("(CAST(1.5 AS FLOAT)), (CAST(2.5 AS FLOAT))", col("v") == 2.5, col("v") < 1.5),
        ("(1.25BD), (-3.75BD)", col("v") < -3, col("v") < -4),
        (
            "(CAST(12345678901234567890.5 AS DECIMAL(38, 1))), (CAST(-1 AS DECIMAL(38, 1)))",
            col("v") > 5,
            col("v") < -1,
        ),
        ("('b'), ('d')", col("v") == "d", col("v") > "d"),
        ("('ä'), ('z')", col("v") == "ä", col("v") < "z"),
        ("(X'01FF'), (X'02')", col("v") == b"\2", col("v") > b"\2"),
        ("(true), (true)", col("v") == True, col("v") == False),  # noqa: E712
        (
            "(DATE'2020-01-01'), (DATE'2020-02-01')",
            col("v") == dt.date(2020, 2, 1),
            col("v") > dt.date(2020, 2, 1),
        ),
        (
            "(TIMESTAMP'2020-01-01 00:00:00.000001'), (TIMESTAMP'2020-01-01 00:00:00.000002')",
            col("v") == dt.datetime(2020, 1, 1, microsecond=2, tzinfo=dt.UTC),
            col("v") < dt.datetime(2020, 1, 1, microsecond=1, tzinfo=dt.UTC),
        ),
    ],
)
def test_bounds_leave_out_what_lies_outside_only(one_file, values, inside, outside):
    lake = one_file(f"SELECT v FROM VALUES {values} AS t(v)")
    assert planned(lake, inside) == 1
    assert planned(lake, outside) == 0


def test_nan_is_never_left_out(one_file):
    lake = one_file(
        "SELECT v, f FROM VALUES (1.5D, CAST('NaN' AS FLOAT)), (DOUBLE('NaN'), 1.0F), (2.5D, 2.0F) AS t(v, f)"
    )
    for column in ("v", "f"):
        assert lake.sql(f"SELECT count(*) FROM lake.t WHERE {column} > 1000") == [(1,)]
        assert lake.sql(f"SELECT count(*) FROM lake.t WHERE isnan({column})") == [(1,)]
        assert lake.sql(f"SELECT count(*) FROM lake.t WHERE {column} = DOUBLE('NaN')") == [(1,)]


def test_both_zeros_are_found_by_either(one_file):
    lake = one_file("SELECT v FROM VALUES (0.0D) AS t(v)")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE v = -0.0D") == [(1,)]
    lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT -0.0D AS v")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE v = 0.0D") == [(1,)]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE v >= 0.0D") == [(1,)]


def test_infinity_is_a_bound(one_file):
    lake = one_file("SELECT v FROM VALUES (DOUBLE('Infinity')), (1.0D) AS t(v)")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE v > 1e300") == [(1,)]
    assert planned(lake, col("v") < 1.0) == 0


@pytest.mark.adapter
@pytest.mark.parametrize(
    "text", ["'x' || repeat('y', 100)", "repeat('🧊', 60)", "repeat(decode(X'F48FBFBF', 'UTF-8'), 60)"]
)
def test_long_texts_are_found_although_their_bounds_are_cut(one_file, text):
    lake = one_file(f"SELECT {text} AS v")
    assert lake.sql(f"SELECT count(*) FROM lake.t WHERE v = {text}") == [(1,)]
    assert lake.sql(f"SELECT count(*) FROM lake.t WHERE v >= substr({text}, 1, 40)") == [(1,)]
    assert planned(lake, col("v") == "a") == 0


def test_long_binaries_are_found_although_their_bounds_are_cut(one_file):
    lake = one_file("SELECT unhex(repeat('FF', 50)) AS v, unhex(repeat('0A', 50)) AS w")
    assert lake.sql(
        "SELECT count(*) FROM lake.t WHERE v = unhex(repeat('FF', 50)) AND w = unhex(repeat('0A', 50))"
    ) == [(1,)]
    assert planned(lake, col("w") > b"\x0b") == 0


@pytest.mark.adapter
def test_nulls_are_counted_in_nested_fields_too(one_file):
    lake = one_file(
        "SELECT v, s FROM VALUES (CAST(NULL AS INT), named_struct('x', 1)), (NULL, CAST(NULL AS "
        "STRUCT<x: INT>)) AS t(v, s)"
    )
    assert planned(lake, col("v").is_not_null()) == 0
    assert planned(lake, col("v") == 3) == 0
    assert planned(lake, col("s", "x").is_null()) == 1
    assert planned(lake, col("s", "x") == 2) == 0
    assert lake.sql("SELECT count(*) FROM lake.t WHERE s.x IS NULL") == [(1,)]


def test_many_row_groups_have_the_bounds_of_all(lake):
    lake.spark.sparkContext._jsc.hadoopConfiguration().set("parquet.block.size", "20000")
    try:
        lake.sql(
            "CREATE TABLE lake.t AS SELECT id, CAST(50000 - id AS STRING) AS s FROM range(0, 50000, 1, 1)"
        )
    finally:
        lake.spark.sparkContext._jsc.hadoopConfiguration().unset("parquet.block.size")
    assert planned(lake, col("id") == 49999) == 1
    assert planned(lake, col("id") == 50000) == 0
    assert planned(lake, col("s") == "1") == 1
    assert lake.sql("SELECT id FROM lake.t WHERE s = '7'") == [(49993,)]
