"""Defaults of added columns: what older rows have in them, of every type, at the ends of its range."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.spark.sql.rows import in_mode, in_one_mode
from tests.spark.streaming.conftest import Streams
from tests.spark.versions import read_changes

pytestmark = pytest.mark.adapter

VECTORISED = "spark.sql.parquet.enableVectorizedReader"


def decimals() -> list[tuple[str, str]]:
    """Return for each precision and scale the ends of its range, and the value that is next to zero."""
    cells = []
    for precision, scale in (
        (1, 0), (9, 9), (10, 0), (18, 0), (18, 18), (19, 0), (19, 19), (20, 2), (37, 5), (38, 0), (38, 18), (38, 38),
    ):  # fmt: skip
        most, least = f"{'9' * precision}E-{scale}", f"-1E-{scale}"
        for value in (most, f"-{most}", least):
            cells.append((f"DECIMAL({precision},{scale})", f"{Decimal(value):f}"))
    return cells


CELLS: list[tuple[str, str]] = [
    ("BOOLEAN", "true"), ("BOOLEAN", "false"), ("TINYINT", "-128"), ("TINYINT", "127"), ("SMALLINT", "-32768"),
    ("SMALLINT", "32767"), ("INT", "-2147483648"), ("INT", "2147483647"), ("BIGINT", "-9223372036854775808"),
    ("BIGINT", "9223372036854775807"), ("FLOAT", "1.1"), ("FLOAT", "float('NaN')"), ("FLOAT", "float('-0.0')"),
    ("FLOAT", "float('-Infinity')"), ("FLOAT", "-3.4028235E38"), ("FLOAT", "1.4E-45"), ("DOUBLE", "double('NaN')"),
    ("DOUBLE", "-0.0D"), ("DOUBLE", "double('Infinity')"), ("DOUBLE", "4.9E-324D"),
    ("DOUBLE", "-1.7976931348623157E308D"), ("DATE", "DATE'0001-01-01'"), ("DATE", "DATE'9999-12-31'"),
    ("DATE", "DATE'1582-10-10'"), ("TIMESTAMP", "TIMESTAMP'0001-01-01 00:00:00.000001'"),
    ("TIMESTAMP", "TIMESTAMP'9999-12-31 23:59:59.999999'"), ("TIMESTAMP", "TIMESTAMP'1582-10-10 12:00:00'"),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'0001-01-01 00:00:00'"),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"), ("TIME", "TIME'00:00:00'"),
    ("TIME", "TIME'23:59:59.999999'"), ("STRING", "''"), ("STRING", "'a\\'b\\\\c ü😀'"), ("STRING", f"'{'x' * 5000}'"),
    ("STRING COLLATE UTF8_LCASE", "'ABC'"), ("CHAR(5)", "'ab'"), ("CHAR(5)", "''"), ("VARCHAR(5)", "'ab '"),
    ("VARCHAR(5)", "''"), ("BINARY", "X''"), ("BINARY", "X'00FF10'"), ("INTERVAL YEAR", "INTERVAL '-178956970' YEAR"),
    ("INTERVAL YEAR TO MONTH", "INTERVAL '178956970-7' YEAR TO MONTH"),
    ("INTERVAL DAY TO SECOND", "INTERVAL '-106751991 04:00:54.775807' DAY TO SECOND"),
    ("ARRAY<INT>", "NULL"), ("STRUCT<a: DECIMAL(38,18)>", "NULL"), ("VARIANT", "NULL"), *decimals(),
]  # fmt: skip
HALVES = [CELLS[::2], CELLS[1::2]]


@pytest.fixture(autouse=True)
def with_times(spark):
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")


def added(lake, mode: str, cells: list[tuple[str, str]]) -> None:
    """Make a table with four rows that are older than its columns, and two that are not."""
    lake.sql(f"CREATE TABLE lake.t (id INT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3), (4)")
    columns = ", ".join(f"c{i} {type} DEFAULT {value}" for i, (type, value) in enumerate(cells))
    lake.sql(f"ALTER TABLE lake.t ADD COLUMNS ({columns})")
    lake.sql("INSERT INTO lake.t (id) VALUES (5)")
    lake.sql(f"INSERT INTO lake.t VALUES (6{', NULL' * len(cells)})")


def expected(cells: list[tuple[str, str]], ids: tuple[int, ...]) -> str:
    """Return a query whose rows are these and the one of NULLs, without any table."""

    def value(type: str, text: str) -> str:
        return f"rpad({text}, 5, ' ')" if type.startswith("CHAR") else f"CAST({text} AS {type})"

    columns = [f"{value(*cell)} AS c{i}" for i, cell in enumerate(cells)]
    nulls = [
        f"CAST(NULL AS {type.replace('CHAR', 'VARCHAR', 1) if type.startswith('CHAR') else type})"
        for type, _ in cells
    ]
    full = f"SELECT explode(array({', '.join(map(str, ids))})) AS id, {', '.join(columns)}"
    return f"{full} UNION ALL SELECT 6, {', '.join(nulls)}"


def shown(cells: list[tuple[str, str]]) -> str:
    """Return all columns as texts, by which both zeros and all NaNs differ."""

    def text(i: int, type: str) -> str:
        return f"hex(c{i})" if type == "BINARY" else f"CAST(c{i} AS STRING)"

    return ", ".join(["id", *(text(i, type) for i, (type, _) in enumerate(cells))])


def compared(cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (f"c{i}", f"CAST({value} AS {type})")
        for i, (type, value) in enumerate(cells)
        if value != "NULL" and "CHAR" not in type and "COLLATE" not in type
    ]


@in_one_mode
def test_older_rows_have_the_default_of_every_type_by_both_readers(lake, mode, tmp_path):
    streams = Streams(lake, tmp_path)
    for number, cells in enumerate(HALVES):
        if number:
            lake.sql("DROP TABLE lake.t PURGE")
        added(lake, mode, cells)
        query = f"SELECT {shown(cells)} FROM"
        wanted_text = lake.sorted(f"{query} ({expected(cells, (1, 2, 3, 4, 5))})")
        equal = " AND ".join(f"{column} = {value}" for column, value in compared(cells))
        other_text = " OR ".join(f"{column} <> {value}" for column, value in compared(cells))
        ends = ", ".join(f"count({c}), min({c}) = {v}, max({c}) = {v}" for c, v in compared(cells))
        for vectorised_name in ("true", "false"):
            lake.spark.conf.set(VECTORISED, vectorised_name)
            try:
                assert lake.sorted(f"{query} lake.t") == wanted_text
                assert lake.sorted(f"SELECT id FROM lake.t WHERE {equal}") == [(1,), (2,), (3,), (4,), (5,)]
                assert lake.sql(f"SELECT id FROM lake.t WHERE {other_text}") == []
                assert set(lake.sql(f"SELECT {ends} FROM lake.t")[0]) == {5, True}
            finally:
                lake.spark.conf.unset(VECTORISED)
        rows = lake.catalog.load_table("t").scan().to_arrow().sort_by("id")
        # Python reads those of the first file as Spark has written that of the second one.
        assert {repr({**row, "id": 0}) for row in rows.slice(0, 5).to_pylist()} == {
            repr({**rows.slice(4, 1).to_pylist()[0], "id": 0})
        }
        text = f"concat_ws(' ', {shown(cells)})"
        streamed_batches = streams.batches(streams.table("t").selectExpr(text))
        assert sorted(sum(streamed_batches, [])) == [
            row[0] for row in lake.sorted(f"SELECT {text} FROM ({expected(cells, (1, 2, 3, 4, 5))})")
        ]
        lake.sql(f"UPDATE lake.t SET id = 12 WHERE id = 2 AND {equal}")
        lake.sql(f"DELETE FROM lake.t WHERE id = 3 AND {equal}")
        lake.sql("MERGE INTO lake.t USING (SELECT 4 AS k) ON id = k WHEN MATCHED THEN UPDATE SET id = 14")
        remaining_text = lake.sorted(f"{query} ({expected(cells, (1, 5, 12, 14))})")
        assert lake.sorted(f"{query} lake.t") == remaining_text
        changes = read_changes(
            lake.spark.read.options(startingVersion=2, computeUpdates=True), f"{lake.name}.t"
        )
        changes.createOrReplaceTempView("changes")
        assert lake.sorted(f"{query} changes WHERE _change_type = 'update_preimage'") == [
            row for row in wanted_text if row[0] in (2, 4)
        ]


WIDENED = [
    ("FLOAT", "1.1", "DOUBLE"), ("FLOAT", "float('NaN')", "DOUBLE"), ("TINYINT", "-128", "BIGINT"),
    ("INT", "5", "DOUBLE"), ("DECIMAL(5,2)", "1.25", "DECIMAL(30,4)"), ("DECIMAL(38,18)", "10", "DECIMAL(38,18)"),
    ("INT", "7", "DECIMAL(38,10)"), ("DATE", "DATE'2020-01-01'", "TIMESTAMP_NTZ"), ("CHAR(3)", "'a\\''", "VARCHAR(5)"),
    ("CHAR(3)", "'a\\\\'", "STRING"),
]  # fmt: skip


def test_a_default_becomes_what_values_become_when_their_column_is_widened(lake):
    columns = ", ".join(f"c{i} {type} DEFAULT {value}" for i, (type, value, _) in enumerate(WIDENED))
    lake.sql("CREATE TABLE lake.t (id INT)")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    lake.sql(f"ALTER TABLE lake.t ADD COLUMNS ({columns})")
    lake.sql("INSERT INTO lake.t (id) VALUES (2)")
    lake.sql(
        "ALTER TABLE lake.t ALTER COLUMN "
        + ", ".join(f"c{i} TYPE {to}" for i, (*_, to) in enumerate(WIDENED))
    )
    query = ", ".join(f"c{i}" for i in range(len(WIDENED)))
    for vectorised_name in ("true", "false"):
        lake.spark.conf.set(VECTORISED, vectorised_name)
        try:
            old, new = (lake.sql(f"SELECT {query} FROM lake.t WHERE id = {i}") for i in (1, 2))
        finally:
            lake.spark.conf.unset(VECTORISED)
        assert repr(old) == repr(new)
    rows = lake.catalog.load_table("t").scan().to_arrow().drop_columns(["id"])
    assert repr(rows.slice(0, 1).to_pylist()) == repr(rows.slice(1, 1).to_pylist())
