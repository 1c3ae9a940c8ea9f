"""Aggregates that Spark takes from metadata, held against those that it computes from the rows."""

from __future__ import annotations

import datetime as dt
import threading

import pytest

import lakelog.spark

pytestmark = pytest.mark.adapter

TYPES = {
    "a": ("BOOLEAN", "id % 2 = 0"),
    "b": ("TINYINT", "tinyint(id % 100 - 50)"),
    "c": ("SMALLINT", "smallint(id * 7 - 100)"),
    "d": ("INT", "int(id * 1000 - 5000)"),
    "e": ("BIGINT", "id * 100000000000"),
    "f": ("DECIMAL(9, 2)", "cast(id / 3 AS DECIMAL(9, 2))"),
    "g": ("DECIMAL(30, 5)", "cast(id * 12345678901234567 AS DECIMAL(30, 5)) / 7"),
    "h": ("DATE", "date_add(DATE'1960-01-01', int(id * 100))"),
    "i": ("TIMESTAMP", "timestamp_seconds(id * 100000 - 1000000)"),
    "j": ("TIMESTAMP_NTZ", "cast(timestamp_seconds(id * 100000 - 1000000) AS TIMESTAMP_NTZ)"),
    "k": ("STRING", "repeat(string(id), int(id))"),
    "l": ("DOUBLE", "if(id = 3, double('NaN'), id / 2)"),
    "m": ("BINARY", "cast(string(id) AS BINARY)"),
    "n": ("STRUCT<x: INT, y: STRING>", "named_struct('x', int(id), 'y', string(id))"),
    "o": ("ARRAY<INT>", "array(int(id))"),
}
FROM_METADATA = "abcdefghij"
"""The columns whose bounds are values."""


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def is_from_metadata(lake, query):
    text = plan(lake.frame(query))
    assert ("LocalTableScan" in text) != ("BatchScan" in text), text
    return "LocalTableScan" in text


def same(lake, aggregates, rest="", table="lake.t"):
    """Run a query as it is and where nothing can be taken from metadata; return the rows."""
    text = lake.sorted(f"SELECT {aggregates} FROM {table} {rest}")
    rows = f"(SELECT * FROM {table} WHERE monotonically_increasing_id() >= 0)"
    assert repr(text) == repr(lake.sorted(f"SELECT {aggregates} FROM {rows} {rest}"))
    return text


@pytest.fixture
def all_types(lake):
    columns = ", ".join(f"{name} {type}" for name, (type, _) in TYPES.items())
    lake.sql(f"CREATE TABLE lake.t ({columns})")
    values = ", ".join(f"if(id % 7 = 5, NULL, {value})" for _, value in TYPES.values())
    for first in (1, 10):
        lake.sql(f"INSERT INTO lake.t SELECT {values} FROM range({first}, {first + 12})")
    return lake


def test_counts_and_extremes_of_all_types_are_those_of_the_rows(all_types):
    lake = all_types
    for names in (FROM_METADATA, "klm", "n"):
        assert same(lake, ", ".join(f"min({name}), max({name})" for name in names))
    for names in ("abcdefghijklm", "n", "o"):
        assert same(lake, ", ".join(f"count({name})" for name in names))
    for name in TYPES:
        if name not in "no":
            assert is_from_metadata(lake, f"SELECT count({name}) FROM lake.t"), name
        if name not in "o":
            query = f"SELECT min({name}), max({name}) FROM lake.t"
            assert is_from_metadata(lake, query) == (name in FROM_METADATA), name
    assert same(lake, "count(*), count(a), min(b), max(b), min(h) + INTERVAL 1 DAY, max(c) * 2, count(*) + 1")
    assert is_from_metadata(lake, "SELECT count(*), count(a), min(b), max(b), max(c) * 2 FROM lake.t")


LOOKS = [
    "SELECT count(DISTINCT d) FROM lake.t",
    "SELECT sum(d) FROM lake.t",
    "SELECT avg(d) FROM lake.t",
    "SELECT max(d) FILTER (WHERE a) FROM lake.t",
    "SELECT max(d) FROM lake.t WHERE e > 5",
    "SELECT max(d + 1) FROM lake.t",
    "SELECT a, max(d) FROM lake.t GROUP BY a",
    "SELECT count(n.x) FROM lake.t",
    "SELECT max(k) FROM lake.t",
]


def test_what_takes_a_look_at_the_rows_is_not_taken_from_metadata(all_types):
    for query in LOOKS:
        assert not is_from_metadata(all_types, query), query
        all_types.sql(query)


CONSTANTS = [
    "SELECT count(1) FROM (SELECT sum(d) FROM {t})",
    "SELECT EXISTS (SELECT max(d) FROM {t})",
    "SELECT NOT EXISTS (SELECT count(*) FROM {t} HAVING false)",
    "SELECT 1 WHERE 1 IN (SELECT 1 FROM (SELECT min(d) FROM {t}))",
    "SELECT 7 FROM (SELECT max(d) FROM {t})",
    "SELECT 1 FROM {t} HAVING 1 < 2",
    "SELECT 1 FROM {t} HAVING 1 > 2",
    "SELECT c IS NOT NULL FROM (SELECT count(*) c FROM {t})",
    "SELECT count(*) FROM (SELECT 1 FROM {t} HAVING true)",
    "SELECT 1 FROM {t} HAVING true UNION ALL SELECT 2 FROM {t} HAVING true",
    "SELECT x FROM VALUES (1), (2) AS v(x) CROSS JOIN (SELECT max(d) FROM {t})",
    "SELECT x, (SELECT 3 FROM (SELECT sum(d) FROM {t})) FROM VALUES (1), (2) AS v(x)",
    "SELECT 1 FROM {t} GROUP BY GROUPING SETS ((), ())",
    "SELECT 1 FROM {t} GROUP BY 'x'",
    "SELECT DISTINCT 1 FROM {t}",
    "SELECT 1 FROM {t} LIMIT 1",
]


def test_a_global_aggregate_of_which_only_constants_are_left_is_one_row(lake):
    lake.sql("CREATE TABLE lake.empty (d INT)")
    lake.sql("CREATE TABLE lake.t (d INT)")
    lake.sql("INSERT INTO lake.t VALUES (1), (2), (NULL)")
    for table in ("lake.empty", "lake.t"):
        for query in CONSTANTS:
            by_rows = query.replace(
                "{t}", f"(SELECT * FROM {table} WHERE monotonically_increasing_id() >= 0)"
            )
            assert lake.sorted(query.replace("{t}", table)) == lake.sorted(by_rows), query
    assert lake.sql("SELECT count(1) FROM (SELECT sum(d) FROM lake.t)") == [(1,)]
    assert lake.sql("SELECT EXISTS (SELECT max(d) FROM lake.t)") == [(True,)]


def test_a_table_without_rows_has_a_count_and_no_extremes(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    assert same(lake, "count(*), count(id), min(id), max(k)") == [(0, 0, None, None)]
    assert same(lake, "k, count(*)", "GROUP BY k") == []
    lake.sql("ALTER TABLE lake.t ADD PARTITION (k = 'empty')")
    assert same(lake, "count(*), max(k)") == [(0, None)]
    assert same(lake, "k, count(*)", "GROUP BY k") == []
    assert is_from_metadata(lake, "SELECT k, count(*) FROM lake.t GROUP BY k")


def test_types_without_values_in_metadata_are_aggregated_by_spark_where_there_are_no_rows_too(all_types):
    lake = all_types
    lake.sql("CREATE TABLE lake.empty LIKE lake.t")
    for name in TYPES:
        for aggregates in (f"min({name}), max({name})", f"count({name}), count(*)", f"{name}, max({name})"):
            remaining_text = f"GROUP BY {name}" if aggregates.startswith(f"{name},") else ""
            same(lake, aggregates, remaining_text, "lake.empty")
        same(lake, f"{name}, count(*)", f"GROUP BY {name}", "lake.empty")
    lake.sql("DELETE FROM lake.t")
    for name in TYPES:
        assert same(lake, f"min({name}), max({name}), count({name})") == [(None, None, 0)]


def test_groups_by_partition_columns_come_from_metadata(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING, d DATE) PARTITIONED BY (k, d, bucket(2, id))")
    lake.sql(
        "INSERT INTO lake.t SELECT nullif(id, 3), nullif(concat('k', id % 3), 'k2'), DATE'2026-01-01' + int(id % 2) "
        "FROM range(30)"
    )
    for keys in ("k", "d", "k, d"):
        query = f"{keys}, count(*), count(id), min(id), max(id), max(d), min(k)"
        assert same(lake, query, f"GROUP BY {keys}")
        assert is_from_metadata(lake, f"SELECT {query} FROM lake.t GROUP BY {keys}"), keys
    assert len(same(lake, "k, max(id)", "GROUP BY k ORDER BY k LIMIT 2")) == 2
    assert same(lake, "DISTINCT k") and same(lake, "k", "GROUP BY k HAVING count(*) > 9")
    lake.sql("ALTER TABLE lake.t DROP PARTITION FIELD d")
    lake.sql("INSERT INTO lake.t VALUES (100, 'k1', DATE'2026-01-01'), (101, 'k1', DATE'2026-01-02')")
    assert same(lake, "d, count(*)", "GROUP BY d")
    assert not is_from_metadata(lake, "SELECT d, count(*) FROM lake.t GROUP BY d")
    assert is_from_metadata(lake, "SELECT k, count(*) FROM lake.t GROUP BY k")


def test_evolved_columns_are_right(lake):
    lake.sql("CREATE TABLE lake.t (a INT, b INT, c DATE)")
    lake.sql("INSERT INTO lake.t VALUES (1, 10, DATE'2020-01-01'), (2, 20, NULL)")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN a TYPE BIGINT")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN b TO old")
    lake.sql("ALTER TABLE lake.t ADD COLUMN b INT DEFAULT 7")
    assert same(lake, "count(*), min(a), max(a), min(old), max(old), min(c)") == [
        (2, 1, 2, 10, 20, dt.date(2020, 1, 1))
    ]
    assert is_from_metadata(lake, "SELECT min(a), max(old) FROM lake.t")
    assert same(lake, "count(b), min(b), max(b)") == [(2, 7, 7)]
    lake.sql("INSERT INTO lake.t (a, old, c, b) VALUES (5000000000, 1, NULL, 3)")
    assert same(lake, "count(*), max(a), min(old), count(b), min(b), max(b)") == [(3, 5000000000, 1, 3, 3, 7)]
    lake.sql("ALTER TABLE lake.t DROP COLUMN old")
    lake.sql("ALTER TABLE lake.t ADD COLUMN old INT")
    assert same(lake, "count(old), max(old), count(*)") == [(0, None, 3)]


def test_cut_texts_are_not_taken_for_values(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT concat(repeat('x', 32), id) AS s FROM range(3)")
    assert same(lake, "min(s), max(s)") == [("x" * 32 + "0", "x" * 32 + "2")]
    lake.sql("INSERT INTO lake.t VALUES ('short')")
    assert same(lake, "min(s)") == [("short",)]


def test_files_of_others_give_counts_and_no_extremes(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT, p STRING) PARTITIONED BY (p)")
    lake.spark.range(10).selectExpr("id", "'x' AS p").write.partitionBy("p").parquet(str(tmp_path / "theirs"))
    lake.sql(f"CALL {lake.name}.system.add_files('t', '{tmp_path}/theirs')")
    lake.sql("INSERT INTO lake.t VALUES (99, 'y')")
    assert same(lake, "count(*), count(id), max(p)") == [(11, 11, "y")]
    assert is_from_metadata(lake, "SELECT count(*), count(id), max(p) FROM lake.t")
    assert same(lake, "max(id), min(id)") == [(99, 0)]
    assert not is_from_metadata(lake, "SELECT max(id) FROM lake.t")
    assert same(lake, "p, count(*)", "GROUP BY p") == [("x", 10), ("y", 1)]


def test_versions_and_transactions_have_their_own(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(5)")
    lake.sql("INSERT INTO lake.t VALUES (100)")
    assert lake.sql("SELECT count(*), max(id) FROM lake.t VERSION AS OF 1") == [(5, 4)]
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.t VALUES (200)")
        assert lake.sql("SELECT count(*), max(id) FROM lake.t") == [(7, 200)]
    assert lake.sql("SELECT count(*), max(id) FROM lake.t") == [(7, 200)]


def test_aggregates_of_several_tables_are_of_one_moment(lake):
    """A writer moves rows between two tables in one commit; their counts always sum to the same."""
    lake.sql("CREATE TABLE lake.l AS SELECT id FROM range(100)")
    lake.sql("CREATE TABLE lake.r (id BIGINT)")
    stop = threading.Event()

    def move() -> None:
        catalog = lake.catalog
        while not stop.is_set():
            with catalog.transaction() as tx:
                left_table, right = tx.load_table("l"), tx.load_table("r")
                rows = left_table.to_arrow(), right.to_arrow()
                left_table.overwrite(rows[1])
                tx.load_table("r").overwrite(rows[0])

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(15):
            query = "SELECT (SELECT count(*) FROM lake.l), (SELECT count(*) FROM lake.r)"
            joined_text = (
                "SELECT l.n, r.n FROM (SELECT count(*) n FROM lake.l) l, (SELECT count(*) n FROM lake.r) r"
            )
            for text in (query, joined_text):
                try:
                    assert sum(lake.sql(text)[0]) == 100
                except Exception as error:
                    if "run it again" not in str(error):
                        raise
    finally:
        stop.set()
        mover.join()


def test_deleted_rows_are_not_counted(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, nullif(id % 5, 0) AS n FROM range(0, 50, 1, 1)")
    lake.sql("DELETE FROM lake.t WHERE id > 40 OR id = 0")
    assert same(lake, "count(*), count(id), count(n), min(id), max(id)") == [(40, 40, 32, 1, 40)]
    assert is_from_metadata(lake, "SELECT count(*), count(id) FROM lake.t")
    assert not is_from_metadata(lake, "SELECT max(id) FROM lake.t")
    lake.sql("DELETE FROM lake.t WHERE id = (SELECT max(id) FROM lake.t)")
    assert same(lake, "count(*), max(id)") == [(39, 39)]
