"""CALL lake.system.add_files: Parquet files of others in a table, where they are, whatever happens to its columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from tests.spark.sessions import another_session


def written_text(lake, sql: str, place, *partitions: str) -> str:
    lake.frame(sql).coalesce(1).write.partitionBy(*partitions).parquet(str(place), mode="overwrite")
    return str(place)


@pytest.fixture(params=["true", "false"], ids=["columns", "rows"])
def vectorized(request, lake):
    """Reads in columns and in rows."""
    lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", request.param)
    yield
    lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.adapter
def test_files_are_read_where_they_are_by_all_clients(lake, tmp_path):
    query = "SELECT id, CAST(id AS STRING) AS NAME, timestamp_micros(id * 1000001) AS at FROM range(10)"
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        place = written_text(lake, query, tmp_path / "src")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.outputTimestampType")
    lake.sql("CREATE TABLE lake.t (id BIGINT, name STRING, at TIMESTAMP, more INT DEFAULT 7)")
    lake.sql("INSERT INTO lake.t VALUES (100, 'own', NULL, 1)")
    [(files, rows, size, version)] = lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    assert (files, rows, version) == (1, 10, 3) and size > 0
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t") == [(11, 145)]
    assert lake.sql("SELECT name FROM lake.t WHERE id = 3") == [("3",)]
    assert lake.sql("SELECT id FROM lake.t WHERE name = '4'") == [(4,)]
    assert lake.sql("SELECT id FROM lake.t WHERE at = timestamp_micros(5000005)") == [(5,)]
    assert another_session(lake).sql("SELECT count(*) FROM lake.t VERSION AS OF 2") == [(1,)]
    table = lake.catalog.load_table("t")
    found = {row["id"]: row["at"] for row in table.to_arrow().to_pylist()}
    assert len(found) == 11 and found[7] == dt.datetime.fromtimestamp(7.000007, dt.UTC)
    assert len(table.plan({"op": "=", "args": [{"col": ["id"]}, {"lit": 3}]})) == 1
    assert not lake.catalog.fsck(deep=True).found
    with pytest.raises(AnalysisException, match="already: its rows would be added twice"):
        lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    lake.sql("DELETE FROM lake.t WHERE id < 50")
    assert lake.sql("SELECT id FROM lake.t") == [(100,)]
    assert lake.sql(f"CALL lake.system.add_files(source => 'parquet.`{place}`', table => 't')")[0][1] == 10


def test_what_is_renamed_dropped_and_added_again_later_reads_right(lake, tmp_path, vectorized):
    place = written_text(
        lake,
        "SELECT 1 AS id, 'old' AS name, named_struct('x', 1, 'y', 'in') AS s, array(named_struct('x', 5)) AS l, "
        "map('k', named_struct('x', 6)) AS m",
        tmp_path / "src",
    )
    lake.sql(
        "CREATE TABLE lake.t (id INT, name STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<x: INT>>, "
        "m MAP<STRING, STRUCT<x: INT>>)"
    )
    lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    for change in (
        "RENAME COLUMN id TO key", "ADD COLUMN id STRING", "DROP COLUMN name", "ADD COLUMN name STRING",
        "RENAME COLUMN s.x TO z", "ADD COLUMN s.x INT", "DROP COLUMN s.y", "ADD COLUMN s.y STRING",
        "RENAME COLUMN l.element.x TO w", "ADD COLUMN l.element.x INT", "RENAME COLUMN m.value.x TO v",
    ):  # fmt: skip
        lake.sql(f"ALTER TABLE lake.t {change}")
    lake.sql(
        "INSERT INTO lake.t (key, id, name, s) VALUES (2, 'i', 'new', named_struct('z', 3, 'x', 4, 'y', 'why'))"
    )
    assert lake.sql(
        "SELECT key, id, name, s.z, s.x, s.y, l[0].w, l[0].x, m['k'].v FROM lake.t ORDER BY key"
    ) == [(1, None, None, 1, None, None, 5, None, 6), (2, "i", "new", 3, 4, "why", None, None, None)]
    assert lake.sql("SELECT name, key FROM lake.t WHERE key = 1") == [(None, 1)]
    assert lake.sql("SELECT key FROM lake.t WHERE name = 'old' OR id = '1' OR s.y = 'in' OR s.x = 1") == []
    assert lake.sql("SELECT key FROM lake.t WHERE s.z = 1") == [(1,)]
    assert lake.sql("SELECT key FROM lake.t WHERE name IS NULL AND s.x IS NULL") == [(1,)]
    [row] = [row for row in lake.catalog.load_table("t").to_arrow().to_pylist() if row["key"] == 1]
    assert row["s"] == {"z": 1, "x": None, "y": None} and row["l"] == [{"w": 5, "x": None}]


@pytest.mark.adapter
def test_names_of_folders_are_columns_and_partitions(lake, tmp_path, vectorized):
    place = written_text(
        lake,
        "SELECT id, DATE'2024-01-01' + CAST(id AS INT) AS day, CAST(id / 2 AS DECIMAL(5,2)) AS part, "
        "IF(id = 2, NULL, concat('a b/', id)) AS kind FROM range(3)",
        tmp_path / "src", "day", "part", "kind",
    )  # fmt: skip
    lake.sql(
        "CREATE TABLE lake.p (part DECIMAL(5,2), id BIGINT, kind STRING, day DATE) PARTITIONED BY (kind, months(day))"
    )
    assert lake.sql(f"CALL lake.system.add_files('p', '{place}')")[0][:2] == (3, 3)
    expected = [
        (0, dt.date(2024, 1, 1), Decimal("0.00"), "a b/0"),
        (1, dt.date(2024, 1, 2), Decimal("0.50"), "a b/1"),
        (2, dt.date(2024, 1, 3), Decimal("1.00"), None),
    ]
    assert lake.sql("SELECT id, day, part, kind FROM lake.p ORDER BY id") == expected
    assert lake.sql("SELECT id FROM lake.p WHERE day = DATE'2024-01-02' AND kind = 'a b/1'") == [(1,)]
    assert lake.sql("SELECT part FROM lake.p WHERE kind IS NULL") == [(Decimal("1.00"),)]
    assert lake.sql("SELECT day, day FROM lake.p WHERE part > 0.7") == [(dt.date(2024, 1, 3),) * 2]
    lake.sql("CREATE TABLE lake.q (id BIGINT, kind STRING, part DECIMAL(5,2), day DATE)")
    lake.sql(f"CALL lake.system.add_files('q', '{place}', partition_filter => map('day', '2024-01-02'))")
    lake.sql("ALTER TABLE lake.q ALTER COLUMN part TYPE DECIMAL(9,4)")
    lake.sql("ALTER TABLE lake.q ALTER COLUMN day TYPE TIMESTAMP_NTZ")
    lake.sql(f"CALL lake.system.add_files('q', '{place}/day=2024-01-03')")
    lake.sql("ALTER TABLE lake.q RENAME COLUMN kind TO sort")
    assert lake.sql("SELECT id, sort, part, day FROM lake.q ORDER BY id") == [
        (1, "a b/1", Decimal("0.5000"), dt.datetime(2024, 1, 2)),
        (2, None, Decimal("1.0000"), dt.datetime(2024, 1, 3)),
    ]
    assert lake.sql("SELECT count(*) FROM lake.q WHERE day = TIMESTAMP_NTZ'2024-01-02 00:00:00'") == [(1,)]
    assert lake.sql("SELECT sort FROM lake.q LIMIT 1") in ([("a b/1",)], [(None,)])
    assert sorted(row["id"] for row in lake.catalog.load_table("q").to_arrow().to_pylist()) == [1, 2]
    lake.sql("DELETE FROM lake.p WHERE kind = 'a b/0'")
    assert lake.sql("SELECT id FROM lake.p ORDER BY id") == [(1,), (2,)]
    lake.sql("CREATE TABLE lake.d (kind STRING, n INT)")
    lake.sql("INSERT INTO lake.d VALUES ('a b/1', 9)")
    assert lake.sql("SELECT p.id, n FROM lake.p JOIN lake.d ON p.kind = d.kind") == [(1, 9)]
    for call, message in {
        f"add_files('q', '{place}', map('hour', '1'))": "no partition column hour",
        f"add_files('p', '{place}', map('day', 'x'))": "'x', in the name of a folder, is not a DATE",
        f"add_files('p', '{place}x')": "no files at",
        "add_files('p', NULL)": "argument source of add_files is NULL",
        "add_files('p', '')": "source is empty",
        "add_files('p', 'a.b.c')": "neither an absolute path nor a table",
    }.items():
        with pytest.raises(AnalysisException, match=message):
            lake.sql(f"CALL lake.system.{call}")


@pytest.mark.adapter
def test_the_files_of_a_table_of_the_session_catalog(lake, tmp_path):
    name = f"source_{lake.name}"
    lake.sql(
        f"CREATE TABLE spark_catalog.default.{name} (id BIGINT, kind STRING) USING parquet PARTITIONED BY (kind) "
        f"LOCATION '{tmp_path / 'table'}'"
    )
    try:
        lake.sql(f"INSERT INTO spark_catalog.default.{name} VALUES (1, 'a'), (2, 'b'), (3, NULL)")
        lake.sql(
            f"ALTER TABLE spark_catalog.default.{name} ADD PARTITION (kind='c') LOCATION "
            f"'{written_text(lake, 'SELECT 4L AS id', tmp_path / 'elsewhere')}'"
        )
        lake.sql("CREATE TABLE lake.t (id BIGINT, kind STRING) PARTITIONED BY (kind)")
        assert lake.sql(f"CALL lake.system.add_files('t', 'spark_catalog.default.{name}')")[0][1] == 4
        assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (2, "b"), (3, None), (4, "c")]
        lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_{name} AS SELECT 1 AS id")
        for other_text in (f"no_{name}", f"v_{name}"):
            with pytest.raises(AnalysisException):
                lake.sql(f"CALL lake.system.add_files('t', '{other_text}')")
    finally:
        lake.sql(f"DROP VIEW IF EXISTS v_{name}")
        lake.sql(f"DROP TABLE spark_catalog.default.{name}")


def test_files_of_other_writers_with_other_types_units_and_ids_read_right(lake, tmp_path, vectorized):
    when = dt.datetime(2024, 5, 6, 7, 8, 9)
    data = pa.table(
        {
            "note_2": ["foreign"] * 2,
            "I": pa.array([1, None], pa.int16()),
            "f": pa.array([1.5, float("nan")], pa.float32()),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
            "at": pa.array([when, None], pa.timestamp("ms")),
            "u": pa.array([2**31 + 5, 1], pa.uint32()),
            "text": pa.array(["x", "y"]).dictionary_encode(),
        },
    )
    fields = [
        field.with_metadata({"PARQUET:field_id": str(len(data.schema) - i)})
        for i, field in enumerate(data.schema)
    ]
    (tmp_path / "src").mkdir()
    pq.write_table(data.cast(pa.schema(fields)), tmp_path / "src" / "f.parquet", coerce_timestamps="ms")
    lake.sql(
        "CREATE TABLE lake.t (text STRING, note STRING, i BIGINT, f DOUBLE, d DECIMAL(9,3), at TIMESTAMP_NTZ, u BIGINT)"
    )
    call = f"CALL lake.system.add_files('t', '{tmp_path / 'src'}'"
    with pytest.raises(AnalysisException, match="has note_2, which the table does not have"):
        lake.sql(f"{call})")
    assert lake.sql(f"{call}, ignore_extra_columns => true)")[0][:2] == (1, 2)
    expected = [("x", None, 1, 1.5, Decimal("1.250"), when, 2**31 + 5)]
    for condition in (
        "i = 1", "f = 1.5", "d = 1.25", "at = TIMESTAMP_NTZ'2024-05-06 07:08:09'", "u = 2147483653", "text = 'x'",
    ):  # fmt: skip
        assert lake.sql(f"SELECT * FROM lake.t WHERE {condition}") == expected, condition
    assert lake.sql("SELECT text FROM lake.t WHERE f > 100") == [("y",)]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE note IS NOT NULL") == [(0,)]


@pytest.mark.parametrize(
    ("columns", "query", "message"),
    [
        ("id BIGINT", "SELECT 'x' AS id", "has string for id, which is long"),
        ("id BIGINT", "SELECT 1L AS id, 2 AS more", "has more, which the table does not have"),
        ("id BIGINT NOT NULL", "SELECT CAST(NULL AS BIGINT) AS id", "holds 1 NULLs in id, which is NOT NULL"),
        ("id BIGINT NOT NULL, x INT", "SELECT 1 AS x", "lacks the column id"),
        ("s STRUCT<x: INT>", "SELECT named_struct('x', 1, 'y', 2) AS s", "has s.y, which the table"),
        ("s STRUCT<x: INT>", "SELECT 1 AS s", "has integer for s"),
        ("c VARCHAR(3)", "SELECT 'long' AS c", "a footer does not show whether the texts fit"),
        ("at TIMESTAMP", "SELECT TIMESTAMP_NTZ'2024-01-01 00:00:00' AS at", "has timestamp_ntz for at"),
    ],
)
def test_files_that_do_not_fit_are_refused_and_nothing_changes(lake, tmp_path, columns, query, message):
    place = written_text(lake, query, tmp_path / "src")
    lake.sql(f"CREATE TABLE lake.t ({columns})")
    with pytest.raises(AnalysisException, match=message):
        lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    assert lake.catalog.load_table("t").version == 1


def test_what_is_no_parquet_file_or_names_no_partition_is_refused(lake, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "f.txt").write_text("no Parquet file")
    lake.sql("CREATE TABLE lake.t (id BIGINT, name STRING) PARTITIONED BY (name)")
    with pytest.raises(AnalysisException, match="f.txt cannot be added: it cannot be read as Parquet"):
        lake.sql(f"CALL lake.system.add_files('t', '{tmp_path / 'src'}')")
    place = written_text(lake, "SELECT id, CAST(id AS STRING) AS name FROM range(2)", tmp_path / "two")
    with pytest.raises(
        AnalysisException,
        match="does not prove that all of its rows have one value of the partition field name",
    ):
        lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    place = written_text(lake, "SELECT id, 'one' AS name FROM range(2)", tmp_path / "one")
    lake.sql(f"CALL lake.system.add_files('t', '{place}')")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE name = 'one'") == [(2,)]
    lake.sql("CREATE TABLE lake.u (id BIGINT, name STRING)")
    own = lake.catalog.load_table("u").location
    lake.sql("INSERT INTO lake.u VALUES (1, 'a')")
    with pytest.raises(AnalysisException, match="belongs to a lakelog table"):
        lake.sql(f"CALL lake.system.add_files('t', '{own}/data')")


def test_adding_files_joins_the_sessions_transaction_and_leaves_the_files_when_that_is_rolled_back(
    lake, tmp_path
):
    place = written_text(lake, "SELECT id FROM range(3)", tmp_path / "src")
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    for end, count in (("rollback", 0), ("commit", 4)):
        lake.sql("CALL lake.system.begin_transaction()")
        lake.sql("INSERT INTO lake.t VALUES (9)")
        lake.sql(f"CALL lake.system.add_files('t', '{place}')")
        assert lake.sql("SELECT count(*) FROM lake.t") == [(4,)]
        assert lake.catalog.load_table("t").row_count == 0
        lake.sql(f"CALL lake.system.{end}_transaction()")
        assert lake.catalog.load_table("t").to_arrow().num_rows == count
        assert lake.spark.read.parquet(place).count() == 3
