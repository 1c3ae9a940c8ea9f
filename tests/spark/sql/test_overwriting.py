"""Overwriting by conditions that cut through files, beside what Spark computes of the rows that were there."""

from __future__ import annotations

import pytest
from pyspark.sql.functions import col
from tests.spark.sessions import descriptions_of_jobs

pytestmark = pytest.mark.adapter

ROWS = """SELECT id, IF(id % 5 = 0, NULL, concat('k', id % 4)) AS k, CAST(id % 3 AS INT) AS p,
  CAST(concat('c', id % 4) AS CHAR(4)) AS c, CAST(id AS DECIMAL(9, 2)) / 4 AS d FROM range(40)"""
CONDITIONS = [
    "id = 3",
    "k IN ('k1', 'k3') AND id > 20",
    "K <> 'k0'",
    "NOT (k = 'k2' OR d >= 4.5)",
    "k IS NULL AND p = 1",
    "c = 'c1' OR k LIKE 'k3%'",
]


def seen(lake):
    """The rows, of which Python has to see the same."""
    rows = sorted(map(tuple, lake.frame("SELECT * FROM lake.t").collect()), key=repr)
    python = [tuple(row.values()) for row in lake.catalog.load_table("t").to_arrow().to_pylist()]
    assert sorted(python, key=repr) == rows
    return rows


def rows(lake, condition):
    return lake.frame(f"SELECT * FROM lake.t WHERE NOT coalesce({condition}, false)")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_match_give_way_and_all_others_stay(lake, mode):
    lake.sql(f"""CREATE TABLE lake.t (id BIGINT, k STRING, p INT, c CHAR(4), d DECIMAL(14, 6)) PARTITIONED BY (p)
        TBLPROPERTIES ('lakelog.write.delete.mode' = '{mode}')""")
    lake.sql(f"INSERT INTO lake.t {ROWS}")
    for number, condition in enumerate(CONDITIONS if mode == "merge-on-read" else CONDITIONS[2:5]):
        new = (100 + number, "new", number % 3, "n   ", None)
        expected = [tuple(row) for row in rows(lake, condition).collect()] + [new]
        value = f"({100 + number}, 'new', {number % 3}, 'n', NULL)"
        lake.sql(f"INSERT INTO lake.t REPLACE WHERE {condition} VALUES {value}")
        assert seen(lake) == sorted(expected, key=repr), condition
    texts = descriptions_of_jobs(lake.spark)
    assert any(f"lakelog overwrite of {lake.name}.t: rows to be replaced in" in text for text in texts)
    deleted_plan = lake.catalog.load_table("t").plan()
    assert ("deletes" in deleted_plan.column_names) == (mode == "merge-on-read")
    # A query of the rows that it replaces, by the table itself and as a DataFrame.
    expected = [(id + 1000 if id < 10 else id, *rest) for id, *rest in seen(lake)]
    lake.frame("SELECT id + 1000 AS id, k, p, c, d FROM lake.t WHERE id < 10").writeTo(
        f"{lake.name}.t"
    ).overwrite(col("id") < 10)
    assert seen(lake) == sorted(expected, key=repr)


def test_rows_that_stay_are_copied_by_a_job_with_their_ids(lake):
    lake.sql("""CREATE TABLE lake.t (id BIGINT, p INT)
        TBLPROPERTIES ('lakelog.write.delete.mode' = 'copy-on-write')""")
    lake.sql("INSERT INTO lake.t SELECT id, id % 3 FROM range(20)")
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD p")
    lake.sql("INSERT INTO lake.t SELECT id, id % 3 FROM range(20, 40)")
    ids = "SELECT id, p, _row_id, _version FROM lake.t WHERE id < 5 OR id > 24 ORDER BY id"
    rows_before = lake.frame(ids).collect()
    lake.sql("INSERT INTO lake.t REPLACE WHERE id BETWEEN 5 AND 24 VALUES (24, 0)")
    assert (
        lake.frame(ids).collect() == rows_before
        and lake.frame("SELECT * FROM lake.t").count() == len(rows_before) + 1
    )
    assert any("copies of the rows that stay in" in text for text in descriptions_of_jobs(lake.spark))
    plan = lake.catalog.load_table("t").plan()
    assert "deletes" not in plan.column_names
    # Those that Python writes have it in their names.
    assert not [path for path in plan["path"].to_pylist() if "-copied" in path]
    assert not lake.catalog.fsck(deep=True).found


def test_files_of_another_partitioning_are_cut_by_partitions(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, p INT)")
    lake.sql("INSERT INTO lake.t SELECT id, id % 3 FROM range(9)")
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD p")
    lake.sql("INSERT OVERWRITE lake.t PARTITION (p = 1) SELECT 100")
    expected = [(0, 0), (100, 1), (2, 2), (3, 0), (5, 2), (6, 0), (8, 2)]
    assert seen(lake) == sorted(expected, key=repr)
    lake.spark.table(f"{lake.name}.t").selectExpr("id + 200 AS id", "p").where("p = 2").writeTo(
        f"{lake.name}.t"
    ).overwritePartitions()
    expected = [(0, 0), (100, 1), (202, 2), (3, 0), (205, 2), (6, 0), (208, 2)]
    assert seen(lake) == sorted(expected, key=repr)


BY_SPARK = [
    "length(K) = 2 AND id < 10",
    "k LIKE '_1' AND CAST(p AS STRING) <> '1'",
    "id % 7 = p",
    "upper(c) LIKE 'C%2  '",
    "st.x + 1 = id AND id > 30",
    "lake.bucket(4, id + 1) = 1",
    "id = 8 OR is_odd(id)",
]
"""What Spark does not hand down, or only in forms that lakelog does not know."""


@pytest.fixture
def is_odd(lake):
    lake.spark.udf.register("is_odd", lambda id: id % 2 == 1, "boolean")
    yield
    lake.sql("DROP TEMPORARY FUNCTION is_odd")


@pytest.mark.usefixtures("is_odd")
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_conditions_that_only_spark_evaluates_replace_the_rows_of_which_they_are_true(lake, mode):
    lake.sql(f"""CREATE TABLE lake.t (id BIGINT, k STRING, p INT, c CHAR(4), d DECIMAL(14, 6), st STRUCT<x: BIGINT>)
        PARTITIONED BY (p) TBLPROPERTIES ('lakelog.write.delete.mode' = '{mode}')""")
    lake.sql(f"INSERT INTO lake.t SELECT *, named_struct('x', id - id % 2) FROM ({ROWS})")
    for number, condition in enumerate(BY_SPARK if mode == "merge-on-read" else BY_SPARK[2::2]):
        new = (100 + number, "new", number % 3, "n   ", None, None)
        expected = [tuple(row) for row in rows(lake, condition).collect()]
        assert len(expected) < lake.catalog.load_table("t").row_count, condition
        value = f"({100 + number}, 'new', {number % 3}, 'n', NULL, NULL)"
        lake.sql(f"INSERT INTO lake.t REPLACE WHERE {condition} VALUES {value}")
        assert sorted(map(tuple, lake.frame("SELECT * FROM lake.t").collect()), key=repr) == sorted(
            [*expected, new], key=repr
        ), condition
    frame = lake.frame("SELECT 7L AS id, 'x' AS k, 1 AS p, 'n' AS c, NULL AS d, NULL AS st")
    frame.writeTo(f"{lake.name}.t").overwrite(col("id") * 2 > 20)
    assert (
        lake.sql("SELECT count(*), count(id * 2 > 20 OR NULL) FROM lake.t WHERE k <> 'x' OR k IS NULL")[0][1]
        == 0
    )
    assert not lake.catalog.fsck(deep=True).found


def test_metadata_columns_choose_no_rows_to_be_replaced(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a')")
    for condition in ("_row_id = 0", "id = 1 AND _File LIKE '%parquet'"):
        with pytest.raises(
            Exception, match="by their columns, and not by the metadata column _(row_id|File)"
        ):
            lake.sql(f"INSERT INTO lake.t REPLACE WHERE {condition} VALUES (2, 'b')")
    with pytest.raises(Exception, match="by their columns, and not by the metadata column _row_id"):
        lake.frame("SELECT 2L AS id, 'b' AS k").writeTo(f"{lake.name}.t").overwrite(col("_row_id") == 0)
    assert lake.sql("SELECT * FROM lake.t") == [(1, "a")]


def test_a_session_without_the_extension_says_which_part_of_a_condition_it_cannot_replace_by(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    excluded_text = "spark.sql.optimizer.excludedRules"
    lake.spark.conf.set(excluded_text, "org.apache.spark.sql.lakelog.write.OverwriteByRows$$anon$1")
    try:
        with pytest.raises(
            Exception, match=r"the condition .*LENGTH.* in a session without lakelog's extension"
        ):
            lake.sql("INSERT INTO lake.t REPLACE WHERE id > 1 AND length(k) = 2 VALUES (1, 'a')")
    finally:
        lake.spark.conf.unset(excluded_text)
