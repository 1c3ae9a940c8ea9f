"""Bloom filters in data files: who writes them, what is left out by them, and that no row is lost by them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.rows.test_scan_metrics import metrics
from tests.spark.sql.rows import MODES, in_mode

pytestmark = pytest.mark.adapter

ASKED, LEFT_OUT = "row groups looked up in Bloom filters", "row groups left out by Bloom filters"
COLUMNS = "lakelog.bloom-filter.columns"
DAY, MOMENT = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 12)
TYPES = {
    "TINYINT": (pa.int8(), lambda n: n % 100 - 50),
    "SMALLINT": (pa.int16(), lambda n: n * 20 - 5000),
    "INT": (pa.int32(), lambda n: n * 1000 - 5000),
    "BIGINT": (pa.int64(), lambda n: n * 10**10 - 5 * 10**11),
    "DATE": (pa.date32(), lambda n: DAY - dt.timedelta(days=50000) + dt.timedelta(days=n * 100)),
    "TIMESTAMP": (
        pa.timestamp("us", "UTC"),
        lambda n: MOMENT.replace(tzinfo=dt.UTC) + dt.timedelta(days=n - 90, microseconds=n),
    ),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), lambda n: MOMENT + dt.timedelta(days=n - 90, microseconds=n)),
    "DECIMAL(7,2)": (pa.decimal128(7, 2), lambda n: Decimal(n * 7 - 900) / 100),
    "DECIMAL(18,4)": (pa.decimal128(18, 4), lambda n: Decimal(n * 10**9 - 10**11) / 10**4),
    "DECIMAL(38,3)": (pa.decimal128(38, 3), lambda n: Decimal(n * 10**20 - 10**22).scaleb(-3)),
    "STRING": (pa.string(), lambda n: f"key ß {n * n}"),
    "VARCHAR(20)": (pa.string(), lambda n: f"{n * n} "),
    "BINARY": (pa.binary(), lambda n: b"\x00\xff" + str(n).encode()),
}


def literal(value, type):
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {type})"
    if isinstance(value, dt.date):
        return f"{type.replace('VARCHAR(20)', 'STRING')} '{str(value).removesuffix('+00:00')}'"
    return f"'{value}'" if isinstance(value, str) else f"CAST({value} AS {type})"


def looked_up(frame):
    found_metrics = metrics(frame)
    return [found_metrics.get(ASKED, 0), found_metrics.get(LEFT_OUT, 0)]


@pytest.fixture
def four_files(lake):
    lake.sql(f"CREATE TABLE lake.t (k BIGINT, s STRING) TBLPROPERTIES ('{COLUMNS}' = 'k, s')")
    for file in range(4):
        lake.sql(
            f"INSERT INTO lake.t SELECT /*+ COALESCE(1) */ id * 8 + {file}, 'x' || (id * 8 + {file}) FROM range(500)"
        )
    return lake


def test_point_queries_leave_out_row_groups_without_the_value(four_files):
    lake = four_files
    for condition in (
        "k = 9",
        "s = 'x9'",
        "k IN (9, 17)",
        "k = 9 AND s = 'x9'",
        "k = 9 OR s = 'x17'",
        "k <=> 9L",
    ):
        frame = lake.frame(f"SELECT k FROM lake.t WHERE {condition}")
        assert looked_up(frame) == [4, 3], condition
        assert {row[0] for row in frame.collect()} in ({9}, {9, 17})
    # What filters do not know is read.
    for condition in ("k > 9", "k <> 9", "NOT k = 9", "k = 9 OR s LIKE '%9'", "k + 1 = 10"):
        assert looked_up(lake.frame(f"SELECT k FROM lake.t WHERE {condition}"))[1] == 0, condition
    # A join with rows that are chosen asks for their keys.
    lake.sql("CREATE TABLE lake.d (k BIGINT, w STRING) ")
    lake.sql("INSERT INTO lake.d SELECT id, 'w' || id FROM range(4000)")
    joined_text = "SELECT t.k, d.w FROM lake.t JOIN lake.d ON t.k = d.k WHERE d.w IN ('w9', 'w18', 'w5')"
    assert left_out(lake, joined_text) == 2
    assert sorted(lake.sql(joined_text)) == [(9, "w9"), (18, "w18")]
    lake.spark.conf.set("parquet.filter.bloom.enabled", "false")
    try:
        assert looked_up(lake.frame("SELECT k FROM lake.t WHERE k = 9")) == [0, 0]
    finally:
        lake.spark.conf.unset("parquet.filter.bloom.enabled")


def test_values_of_all_types_are_found_in_files_of_both_writers(lake):
    names = {f"c{i}": type for i, type in enumerate(TYPES)}
    defined_text = ", ".join(f"{name} {type}" for name, type in names.items())
    lake.sql(
        f"CREATE TABLE lake.t (n INT, s STRUCT<x: BIGINT>, {defined_text}) "
        f"TBLPROPERTIES ('{COLUMNS}' = 's.x, {', '.join(names)}')"
    )

    def rows(numbers):
        columns = {"n": pa.array(numbers, pa.int32())}
        columns["s"] = pa.array([{"x": n * 3} for n in numbers], pa.struct([("x", pa.int64())]))
        for name, type in names.items():
            arrow, of = TYPES[type]
            columns[name] = pa.array([None if n % 7 == 0 else of(n) for n in numbers], arrow)
        return pa.table(columns)

    table = lake.catalog.load_table("t")
    table = table.append(rows(range(1, 180, 3)))
    table.append(rows(range(2, 180, 3)))
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM lake.t WHERE n % 2 = 0")
    lake.sql("REFRESH TABLE lake.t")
    said = {}
    for name, type in names.items():
        of = TYPES[type][1]

        def query(*numbers, name=name, type=type, of=of):
            wanted_text = ", ".join(literal(of(n), type) for n in numbers)
            return lake.frame(f"SELECT n FROM lake.t WHERE {name} IN ({wanted_text})")

        there = [n for n in range(180) if n % 3 and n % 7 and of(n) in (of(50), of(61))]
        assert sorted(row[0] for row in query(50, 61, 93).collect()) == sorted(
            there + [n for n in there if n % 2 == 0]
        )
        said[type] = looked_up(query(93, 96))
    # Each of the three files has a filter that says so.
    assert said == dict.fromkeys(TYPES, [3, 3])
    assert looked_up(lake.frame("SELECT n FROM lake.t WHERE s.x = 94")) == [3, 3]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE s.x = 150") == [(2,)]


def test_columns_keep_their_rows_through_changes_of_name_and_type(lake):
    lake.sql(
        "CREATE TABLE lake.t (i INT, d DECIMAL(7, 2), s STRING, gone INT) "
        f"TBLPROPERTIES ('{COLUMNS}' = 'i, d, s, gone')"
    )
    lake.sql("INSERT INTO lake.t VALUES (5, 1.50, 'a', 1), (-7, 2.50, 'b', 2), (9, 3.50, 'c', 3)")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN i TYPE BIGINT")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN d TYPE DECIMAL(12, 2)")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN s TO text")
    lake.sql("ALTER TABLE lake.t DROP COLUMN gone")
    assert dict(lake.sql("SHOW TBLPROPERTIES lake.t"))[COLUMNS] == "i, d, text"
    lake.sql("ALTER TABLE lake.t ADD COLUMN gone INT DEFAULT 1")
    lake.sql("INSERT INTO lake.t VALUES (50000000000, 12345678.50, 'A', 4), (6, 4.5, 'd', 5)")

    def found(condition):
        return sorted(lake.sql(f"SELECT i FROM lake.t WHERE {condition}"))

    assert found("i = -7") == [(-7,)]
    assert found("i = 50000000000") == [(50000000000,)]
    assert found("i IN (9, 50000000000, 7000000000)") == [(9,), (50000000000,)]
    assert found("d = 2.5") == [(-7,)]
    assert found("d = 12345678.50") == [(50000000000,)]
    assert found("text = 'a'") == [(5,)]
    assert found("gone = 1") == [(-7,), (5,), (9,)]
    assert looked_up(lake.frame("SELECT i FROM lake.t WHERE i = 6"))[1] == 1
    lake.sql("ALTER TABLE lake.t ALTER COLUMN text TYPE STRING COLLATE UTF8_LCASE")
    assert found("text = 'A'") == [(5,), (50000000000,)]
    lake.sql("INSERT INTO lake.t VALUES (1, 1.0, 'D', 6)")
    assert found("text = 'd'") == [(1,), (6,)]
    lake.sql("ALTER TABLE lake.t RENAME COLUMN i TO `the id`")
    assert lake.sql("SELECT d FROM lake.t WHERE `the id` = 9") == [(Decimal("3.50"),)]


def test_parts_of_files_are_left_out_and_rows_keep_their_places(lake):
    lake.sql(
        "CREATE TABLE lake.t (k BIGINT, v STRING) "
        f"TBLPROPERTIES ('{COLUMNS}' = 'k', 'lakelog.bloom-filter.ndv' = '1000')"
    )
    # Each row group of 1,000 rows has keys of the whole range.
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ id * 7919 % 10007, 'v' || id FROM range(10000)")
    wanted_numbers = [50, 2500, 2501, 9999]
    keys = ", ".join(str(id * 7919 % 10007) for id in wanted_numbers)
    frame = lake.frame(f"SELECT _pos, v FROM lake.t WHERE k IN ({keys})")
    assert looked_up(frame) == [10, 7]
    assert sorted(frame.collect()) == [(id, f"v{id}") for id in wanted_numbers]
    lake.sql(f"DELETE FROM lake.t WHERE k = {2500 * 7919 % 10007}")
    assert sorted(lake.sql(f"SELECT _pos, v FROM lake.t WHERE k IN ({keys})")) == [
        (id, f"v{id}") for id in wanted_numbers if id != 2500
    ]
    assert lake.sql("SELECT count(*) FROM lake.t") == [(9999,)]


def test_tasks_side_by_side_ask_for_values_of_their_own(four_files):
    keys = [id * 8 + file for file in range(4) for id in range(0, 500, 2)]
    query = f"SELECT count(*) FROM lake.t WHERE k IN ({', '.join(map(str, keys))})"
    assert [four_files.sql(query)[0][0] for _ in range(4)] == [len(keys)] * 4


def test_what_cannot_have_a_filter_is_refused(lake):
    with pytest.raises(Exception, match=r"names the column c of type char\(3\), which has no Bloom filters"):
        lake.sql(f"CREATE TABLE lake.x (k INT, c CHAR(3)) TBLPROPERTIES ('{COLUMNS}' = 'k, c')")
    lake.sql("CREATE TABLE lake.t (k INT, l ARRAY<INT>, n STRING COLLATE UNICODE)")
    for name, words in (
        ("n", "of type string collate UNICODE, which"),
        ("l.element", "of which a row has many"),
    ):
        with pytest.raises(Exception, match=f"{COLUMNS} names the column {name},? {words}"):
            lake.sql(f"ALTER TABLE lake.t SET TBLPROPERTIES ('{COLUMNS}' = '{name}')")


def test_foreign_filters_of_floats_lose_no_zero(lake, tmp_path):
    rows = pa.table({"d": [-0.0, 1.5, 2.5], "k": pa.array([1, 2, 3], pa.int64())})
    (tmp_path / "rows").mkdir()
    with pq.ParquetWriter(
        tmp_path / "rows" / "a.parquet", rows.schema, bloom_filter_options={"d": True, "k": True}
    ) as writer:
        writer.write_table(rows)
    lake.sql("CREATE TABLE lake.t (d DOUBLE, k BIGINT)")
    lake.sql(f"CALL lake.system.add_files('t', '{tmp_path / 'rows'}')")
    assert lake.sql("SELECT k FROM lake.t WHERE d = 0.0D") == [(1,)]
    assert lake.sql("SELECT d FROM lake.t WHERE k = 3") == [(2.5,)]
    lake.sql("DELETE FROM lake.t WHERE k = 3")
    lake.sql("INSERT INTO lake.t VALUES (9.5, 9)")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE k = 2") == [(1,)]


SOURCE = "(SELECT * FROM VALUES (9L, 'new'), (17L, 'new'), (4001L, 'new'), (NULL, 'none') AS v(k, s))"
INSERTING = "WHEN NOT MATCHED THEN INSERT (k, s) VALUES (s.k, s.s)"


@pytest.mark.parametrize("mode", MODES)
def test_changes_of_rows_look_for_the_keys_they_are_about(four_files, mode):
    lake = four_files
    lake.sql("ALTER TABLE lake.t SET " + in_mode(mode))
    before = {k: s for k, s in lake.sql("SELECT * FROM lake.t")}

    def rows():
        return {k: s for k, s in lake.sql("SELECT * FROM lake.t WHERE k IS NOT NULL")}

    upsert = f"MERGE INTO lake.t AS t USING {SOURCE} AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET s = s.s {INSERTING}"
    # Where the rows are read, and where those of the source are looked for that match nothing.
    assert left_out(lake, upsert) >= 6
    assert rows() == before | {9: "new", 17: "new", 4001: "new"}
    assert lake.sql("SELECT count(*) FROM lake.t WHERE k IS NULL") == [(1,)]
    # Rows that match nothing count here.
    lake.sql(
        f"MERGE INTO lake.t AS t USING {SOURCE} AS s ON t.k = s.k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.k < 9 THEN UPDATE SET s = 'low'"
    )
    expected = {k: "low" if k < 9 else s for k, s in before.items() if k not in (9, 17)}
    assert rows() == expected
    # A source of lakelog's, with keys of another type, that reads the target too.
    lake.sql("CREATE TABLE lake.s AS SELECT CAST(k AS INT) AS k, s FROM lake.t WHERE k IN (24, 33)")
    lake.sql("MERGE INTO lake.t AS t USING lake.s AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET s = 'of s'")
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT k + 8 AS k FROM lake.t WHERE k = 24) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET s = 'of t'"
    )
    expected |= {24: "of s", 33: "of s", 32: "of t"}
    assert rows() == expected
    lake.sql("UPDATE lake.t SET s = 'up' WHERE k = 40")
    lake.sql("DELETE FROM lake.t WHERE k IN (41, 42)")
    lake.sql("DELETE FROM lake.t WHERE k IN (SELECT k + 1 FROM lake.s)")
    expected |= {40: "up"}
    assert rows() == {k: s for k, s in expected.items() if k not in (41, 42, 25, 34)}


def left_out(lake, statement):
    """Run a statement, and return how many row groups its scans have left out."""
    session = lake.spark._jsparkSession
    store = session.sharedState().statusStore()

    def newer_than(before):
        session.sparkContext().listenerBus().waitUntilEmpty()
        executions = store.executionsList()
        found = {each.executionId(): each for each in map(executions.apply, range(executions.size()))}
        return {id: execution for id, execution in found.items() if id > before}

    before = max(newer_than(-1), default=-1)
    lake.sql(statement)
    found = {}
    # Only the newest: Spark forgets old executions at any time, also between their list and their metrics.
    for id, execution in newer_than(before).items():
        values = store.executionMetrics(id)
        names = execution.metrics()
        for metric in map(names.apply, range(names.size())):
            if metric.name() == LEFT_OUT and values.contains(metric.accumulatorId()):
                found[metric.accumulatorId()] = int(values.apply(metric.accumulatorId()))
    return sum(found.values())
