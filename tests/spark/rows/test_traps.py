"""Wrong results that an adapter of Spark can give: where each is tested, and the tests that are at home nowhere else.

| what | tests |
|---|---|
| a copy-on-write scan that lets Parquet filter loses rows | `test_rows.test_all_rows_beside…`; here, row groups |
| filters by field ids find another column's statistics | `test_reads.test_a_column_added_under_the_name…`, |
| | `test_pushdown.test_fields_of_structs…`, `test_rows.test_columns_that_took_over_a_name…` |
| "may match" is not "must match" | `test_writes.test_a_static_partition…`, `test_overwrite_by_a_filter…`; here, NULL |
| a commit that failed may have happened, and an abort follows | `test_child.test_files_stay_when_it_is_not_known…` |
| old rows lack the default of a new column | `test_tables.test_a_list_of_changes…`, `test_rows` as above |
| columns that are declared to be made, and are NULL | `sql/test_generated.py`, `sql/test_identity.py` |
| timestamps without statistics | `test_writes.test_the_sessions_settings_do_not_change…` |
| a transaction that begins and is never ended | here |
| files that are read in columns beside others | `test_rows.TestDeletionVectors.test_a_scan_that_is_as_wide…` |
| absolute places of files in the log | here |
| files of a scan's first plan, not of its last | `test_rows.test_files_without_matching_rows_are_left_alone` |
| a runtime filter names NULL in a list, if it finds nothing | here |
| a rule of the analyzer that changes again what it has changed | here |
"""

from __future__ import annotations

import shutil

import pytest
from tests.spark.sql.rows import MODES, in_mode
from tests.spark.versions import SPARK_4_3, evolving_writes

pytestmark = pytest.mark.adapter
in_both_modes = pytest.mark.parametrize("mode", MODES)
NOT_EQUAL = "IF(id % 2 = 0, double('NaN'), -0.0D)"


@in_both_modes
def test_no_row_group_is_passed_over_where_rows_are_changed(lake, mode):
    hadoop = lake.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("parquet.block.size", "20000")
    try:
        lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 20000, 1, 1)")
        rows = {id: 0 for id in range(20000) if id % 9 and not 3000 <= id < 8000}
        lake.sql("DELETE FROM lake.t WHERE id % 9 = 0 OR id BETWEEN 3000 AND 7999")
        lake.sql("UPDATE lake.t SET v = 1 WHERE id BETWEEN 9000 AND 9010 OR id = 19999")
        rows |= {id: 1 for id in [*range(9000, 9011), 19999] if id in rows}
        lake.sql(
            "MERGE INTO lake.t USING (SELECT id * 5 AS id FROM range(3000, 4001)) s ON t.id = s.id "
            "WHEN MATCHED AND t.id < 16000 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 2 "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 3)"
        )
    finally:
        hadoop.unset("parquet.block.size")
    for id in range(15000, 20001, 5):
        if id in rows and id < 16000:
            del rows[id]
        else:
            rows[id] = 2 if id in rows else 3
    settings = {"spark.sql.files.maxPartitionBytes": "30000", "spark.sql.parquet.enableVectorizedReader": ""}
    for vectorized_name in ("true", "false"):
        for key, value in settings.items():
            lake.spark.conf.set(key, value or vectorized_name)
        try:
            assert dict(lake.sql("SELECT * FROM lake.t")) == rows
            for low in (0, 2990, 7990, 15990, 19990):
                found_rows = dict(lake.sql(f"SELECT * FROM lake.t WHERE id BETWEEN {low} AND {low + 20}"))
                assert found_rows == {id: v for id, v in rows.items() if low <= id <= low + 20}
        finally:
            for key in settings:
                lake.spark.conf.unset(key)
    assert {row["id"]: row["v"] for row in lake.catalog.load_table("t").to_arrow().to_pylist()} == rows


# Each mode and each value once; with one another in the full form.
@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("copy-on-write", "'a'"),
        ("merge-on-read", NOT_EQUAL),
        pytest.param("merge-on-read", "'a'", marks=pytest.mark.slow),
        pytest.param("copy-on-write", NOT_EQUAL, marks=pytest.mark.slow),
    ],
)
def test_rows_of_the_partition_null_are_changed_like_others(lake, mode, value):
    # Spark finds out first which partitions have such rows, NULL among them, and filters the scan by a list of these.
    lake.sql(
        f"CREATE TABLE lake.t PARTITIONED BY (k) {in_mode(mode)} AS "
        f"SELECT id, 0 AS v, IF(id % 3 = 0, NULL, {value}) AS k FROM range(0, 12, 1, 1)"
    )
    lake.sql("CREATE TABLE lake.s AS SELECT id, k FROM lake.t")
    for number, statement in enumerate(
        (
            "UPDATE lake.t SET v = v + 1 WHERE CAST(id AS STRING) <> '50'",
            "MERGE INTO lake.t USING lake.s ON t.k <=> s.k AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1",
            "MERGE INTO lake.t USING lake.s ON t.k <=> s.k AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1 "
            "WHEN NOT MATCHED THEN INSERT (id, v, k) VALUES (s.id, 100, s.k)",
        ),
        start=1,
    ):
        lake.sql(statement)
        assert lake.sql("SELECT count(*), min(v), max(v) FROM lake.t") == [(12, number, number)], statement
    lake.sql("DELETE FROM lake.t WHERE (k IS NULL OR k IS NOT NULL) AND id IN (SELECT id FROM lake.s)")
    assert lake.sql("SELECT * FROM lake.t") == []


def test_the_partition_null_is_overwritten_alone_and_stays_when_others_are(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    lake.sql("INSERT OVERWRITE lake.t PARTITION (k = 'b') SELECT 20")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (20, "b"), (3, None)]
    lake.sql("INSERT OVERWRITE lake.t PARTITION (k = NULL) SELECT 30")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (20, "b"), (30, None)]


@evolving_writes
def test_no_statement_leaves_a_transaction_open(make_lake, warm, tmp_path):
    text = "import lakelog.spark.open_transactions as each\neach.OPEN_LIMIT = 1\n"
    lake = make_lake(python=warm.program(tmp_path, text))
    for _ in range(2):
        lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT 1 AS id")
    with pytest.raises(Exception, match="boom"):
        lake.sql("CREATE TABLE lake.u AS SELECT int(raise_error('boom')) AS id")
    with pytest.raises(Exception, match="boom"):
        lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT int(raise_error('boom')) AS id")
    with pytest.raises(Exception, match="boom"):
        lake.sql("INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT int(raise_error('boom')) AS more")
    lake.sql("INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 2 AS id, 3 AS more")
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT 2 AS id, 4 AS most) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    lake.sql("EXPLAIN INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 5 AS other")
    # There is room for this one only.
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("DELETE FROM lake.t WHERE id = 1")
    lake.sql("CALL lake.system.commit_transaction()")
    assert lake.sql("SELECT * FROM lake.t") == [(2, 3, 4)]


@in_both_modes
def test_a_warehouse_is_used_where_its_folder_was_moved_to(lake, make_lake, tmp_path, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id FROM range(0, 20000, 1, 2)")
    lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0")
    rows = lake.sorted("SELECT id FROM lake.t")
    shutil.move(tmp_path / "warehouse", tmp_path / "moved to")
    moved_lake = make_lake(str(tmp_path / "moved to"))
    assert moved_lake.sorted("SELECT id FROM lake.t") == rows
    moved_lake.sql("DELETE FROM lake.t WHERE id % 2 = 0")
    assert moved_lake.sorted("SELECT id FROM lake.t") == [(id,) for (id,) in rows if id % 2]
    assert not moved_lake.catalog.fsck(deep=True).found


@pytest.fixture
def spark_checks_rules(spark):
    """Spark looks at rules as in its own tests: how they walk over plans, and that a second time changes nothing."""
    system = spark._jvm.java.lang.System
    system.setProperty("spark.testing", "true")
    yield
    system.clearProperty("spark.testing")


def test_rules_pass_the_checks_that_spark_makes_in_tests(lake, tmp_path, spark_checks_rules):
    lake.sql("CREATE TABLE lake.t (k BIGINT, s STRING DEFAULT concat('a', 'b'))")
    generated_text = ", g BIGINT GENERATED ALWAYS AS (k + 1)" if SPARK_4_3 else ""
    lake.sql(f"CREATE TABLE lake.g (k BIGINT, s STRING{generated_text})")
    lake.sql("CREATE TABLE lake.s AS SELECT id AS k FROM range(3)")
    for statement in (
        "UPDATE lake.g SET k = 5, s = uuid() WHERE k IN (SELECT k * round(rand()) FROM lake.s)",
        "MERGE INTO lake.t AS t USING (SELECT k, uuid() AS u FROM lake.s) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET s = u WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)",
    ):
        [(plan,)] = lake.sql(f"EXPLAIN {statement}")
        assert "== Physical Plan ==" in plan and "Exception" not in plan, plan
    rows = lake.spark.readStream.table(f"{lake.name}.s").writeStream.option(
        "checkpointLocation", f"{tmp_path}/c"
    )
    rows.trigger(availableNow=True).toTable(f"{lake.name}.t").awaitTermination()
    assert lake.sorted("SELECT * FROM lake.t") == [(k, "ab") for k in range(3)]
