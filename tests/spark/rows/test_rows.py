"""Changes of rows: the files that they touch, no lost or doubled rows, and concurrent changes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from pyspark.errors import PySparkException
from tests.spark.sessions import another_session
from tests.spark.sql.rows import MODES, in_mode, in_one_mode

import lakelog.spark
from lakelog.catalog import engine
from lakelog.catalog.core.writes import prepared_rows

in_both_modes = pytest.mark.parametrize("mode", MODES)


def files(lake, name="t"):
    """The data files of a table, with what is said of their deleted rows."""
    plan = lake.catalog.load_table(name).plan()
    deletes = plan["deletes"].to_pylist() if "deletes" in plan.column_names else [None] * plan.num_rows
    return dict(zip(plan["path"].to_pylist(), deletes, strict=True))


@pytest.mark.adapter
@in_both_modes
def test_all_rows_beside_a_deleted_one_are_read_whatever_parquet_could_pass_over(lake, mode):
    # Several pages, of which a filter of Parquet's would read one.
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id FROM range(0, 300000, 1, 1)")
    lake.sql("DELETE FROM lake.t WHERE id = 5")
    lake.sql("UPDATE lake.t SET id = -6 WHERE id = 6")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 7L AS id) s ON t.id = s.id AND t.id < 8 WHEN MATCHED THEN DELETE"
    )
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t") == [(299998, 299999 * 150000 - 5 - 12 - 7)]
    assert lake.catalog.load_table("t").row_count == 299998


@in_both_modes
def test_columns_that_took_over_a_name_are_distinguished(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, concat('old', id) AS a FROM range(0, 4, 1, 1)"
    )
    lake.sql("ALTER TABLE lake.t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE lake.t ADD COLUMN a STRING DEFAULT 'new'")
    lake.sql("UPDATE lake.t SET a = 'x' WHERE b = 'old1' AND a = 'new'")
    lake.sql("DELETE FROM lake.t WHERE a = 'old2'")
    lake.sql("DELETE FROM lake.t WHERE a = 'new' AND b = 'old3'")
    assert lake.sorted("SELECT * FROM lake.t") == [(0, "old0", "new"), (1, "old1", "x"), (2, "old2", "new")]


@in_both_modes
def test_files_without_matching_rows_are_left_alone(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id % 10 AS k, id FROM range(0, 400, 1, 4)")
    files_before = files(lake)
    # Statistics cannot show which file has the row.
    lake.sql("UPDATE lake.t SET k = -1 WHERE cast(id AS STRING) = '250'")
    lake.sql("DELETE FROM lake.t WHERE id IN (SELECT 251L)")
    files_after = files(lake)
    untouched_paths = [
        path for path, deletes in files_before.items() if files_after.get(path, "gone") == deletes
    ]
    assert len(untouched_paths) == 3
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t WHERE k >= 0") == [(398, 399 * 200 - 501)]


@pytest.mark.adapter
def test_a_copy_on_write_without_a_first_look_is_right_too(lake):
    lake.sql(f"CREATE TABLE lake.t {in_mode('copy-on-write')} AS SELECT id, 0 AS v FROM range(0, 100, 1, 4)")
    setting = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
    lake.spark.conf.set(setting, "false")
    try:
        lake.sql("UPDATE lake.t SET v = 1 WHERE id IN (SELECT explode(array(3L, 60L)))")
        lake.sql("DELETE FROM lake.t WHERE id % 50 = 7")
    finally:
        lake.spark.conf.unset(setting)
    assert lake.sql("SELECT count(*), sum(id), sum(v) FROM lake.t") == [(98, 4950 - 64, 2)]


@pytest.mark.adapter
@in_both_modes
def test_a_delete_of_whole_files_reads_and_writes_none(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t PARTITIONED BY (k) {in_mode(mode)} AS SELECT id, id % 3 AS k FROM range(0, 9, 1, 1)"
    )
    files_before = files(lake)
    lake.sql("DELETE FROM lake.t WHERE k = 1")
    files_after = files(lake)
    assert len(files_after) == 2 and files_after.items() <= files_before.items()
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (2,), (3,), (5,), (6,), (8,)]


@pytest.mark.adapter
@in_both_modes
def test_rows_are_kept_once_however_many_of_the_source_match_them(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id FROM range(0, 10, 1, 1)")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT explode(array(1, 1, 1, 2, 3)) AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN DELETE"
    )
    assert lake.sorted("SELECT id FROM lake.t") == [(id,) for id in range(6)]


@pytest.mark.adapter
@in_both_modes
def test_checks_not_null_and_defaults_hold(lake, mode):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT NOT NULL, v INT DEFAULT 42, CONSTRAINT c CHECK (v IS NOT NULL AND id > 0)) "
        + in_mode(mode)
    )
    lake.sql("INSERT INTO lake.t VALUES (1, 1), (2, 2), (3, 3)")
    version = lake.catalog.load_table("t").version
    merge = "MERGE INTO lake.t USING"
    if_matched, missing = "ON t.id = s.id WHEN MATCHED THEN", "ON t.id = s.id WHEN NOT MATCHED THEN INSERT"
    for statement, error in {
        "UPDATE lake.t SET v = NULL WHERE id = 1": "CHECK_CONSTRAINT_VIOLATION",
        "UPDATE lake.t SET id = -1 WHERE id = 1": "CHECK_CONSTRAINT_VIOLATION",
        "UPDATE lake.t SET id = NULL WHERE id = 1": "NOT_NULL_ASSERT_VIOLATION",
        f"{merge} (SELECT 1L AS id) s {if_matched} UPDATE SET id = -7": "CHECK_CONSTRAINT_VIOLATION",
        f"{merge} (SELECT 1L AS id) s {if_matched} UPDATE SET id = NULL": "NOT_NULL_ASSERT_VIOLATION",
        f"{merge} (SELECT 1L AS id) s {if_matched} UPDATE SET v = 3000000000": "CAST_OVERFLOW_IN_TABLE_INSERT",
        f"{merge} (SELECT -9L AS id) s {missing} (id) VALUES (s.id)": "CHECK_CONSTRAINT_VIOLATION",
        f"{merge} (SELECT 9L AS id) s {missing} (id) VALUES (nullif(s.id, 9))": "NOT_NULL_ASSERT_VIOLATION",
        f"{merge} (SELECT 9L AS id) s {missing} (id, v) VALUES (1, s.id + 3000000000)": "CAST_OVERFLOW_IN_TABLE_INSERT",
        f"{merge} (SELECT explode(array(1L, 1L)) AS id) s {if_matched} UPDATE SET v = 5": "MERGE_CARDINALITY_VIOLATION",
    }.items():
        with pytest.raises(PySparkException) as failed_error:
            lake.sql(statement)
        assert failed_error.value.getCondition() == error, statement
    assert lake.catalog.load_table("t").version == version
    assert another_session(lake).sorted("SELECT * FROM lake.t") == [(1, 1), (2, 2), (3, 3)]
    lake.sql("DELETE FROM lake.t WHERE id = 2")
    # A row that goes needs no values.
    lake.sql(
        "MERGE INTO lake.t USING (SELECT explode(array(3L, 1L, 9L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = DEFAULT "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert lake.sorted("SELECT * FROM lake.t") == [(1, 42), (9, 42)]
    lake.sql("INSERT INTO lake.t SELECT id, 1 FROM range(20, 24, 1, 1)")
    lake.sql("MERGE INTO lake.t USING (SELECT 20L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert ("deletes" in lake.catalog.load_table("t").plan().column_names) == (mode == "merge-on-read")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 21L AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert lake.sql("SELECT * FROM lake.t") == [(21, 1)]


@pytest.mark.adapter
@in_one_mode
def test_cached_tables_and_chars_are_changed_like_others(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, c CHAR(3), w VARCHAR(3)) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t SELECT id, 'a', 'b' FROM range(0, 6, 1, 1)")
    lake.sql("CACHE TABLE lake.t")
    assert lake.sql("SELECT count(*) FROM lake.t") == [(6,)]
    version = lake.catalog.load_table("t").version
    lake.sql("DELETE FROM lake.t WHERE c = 'b' OR id % 7 = 6")
    assert lake.catalog.load_table("t").version == version
    lake.sql("DELETE FROM lake.t WHERE c = 'a' AND id = 1")
    lake.sql("UPDATE lake.t SET c = 'bb', w = 'xyz' WHERE c = 'a' AND id = 2")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        lake.sql("UPDATE lake.t SET w = 'wxyz' WHERE id = 2")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 4L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = 'c'"
    )
    rows = [(0, "a  ", "b"), (2, "bb ", "xyz"), (3, "a  ", "b"), (4, "c  ", "b"), (5, "a  ", "b")]
    assert lake.sorted("SELECT * FROM lake.t") == rows
    lake.sql("UNCACHE TABLE lake.t")
    assert lake.sorted("SELECT * FROM lake.t") == rows
    lake.sql("DELETE FROM lake.t WHERE id >= 0")
    assert lake.sql("SELECT * FROM lake.t") == []
    for all_rows in (
        "DELETE FROM lake.t",
        "DELETE FROM lake.t WHERE true",
        "DELETE FROM lake.t AS x WHERE 1 = 1",
    ):
        lake.sql("INSERT INTO lake.t VALUES (7, 'a', 'b')")
        lake.sql(all_rows)
        assert lake.sql("SELECT * FROM lake.t") == []


@in_both_modes
def test_files_of_several_layouts_and_of_others_are_changed_together(lake, tmp_path, mode):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, k STRING) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t SELECT id, 'old' FROM range(0, 10, 1, 1)")
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD k")
    lake.sql("INSERT INTO lake.t SELECT id + 10, 'new' FROM range(0, 10, 1, 1)")
    (tmp_path / "foreign" / "k=far").mkdir(parents=True)
    pq.write_table(
        pa.table({"id": pa.array(range(20, 30), pa.int64())}), tmp_path / "foreign" / "k=far" / "f.parquet"
    )
    lake.sql(f"CALL lake.system.add_files(table => 't', source => 'parquet.`{tmp_path}/foreign`')")
    lake.sql("DELETE FROM lake.t WHERE id % 10 = 1")
    lake.sql("UPDATE lake.t SET k = concat(k, '!') WHERE id % 10 = 2")
    lake.sql("DELETE FROM lake.t WHERE id % 10 = 3 AND k <> 'nothing'")
    expected = [
        (id, ("old", "new", "far")[id // 10] + ("!" if id % 10 == 2 else ""))
        for id in range(30)
        if id % 10 not in (1, 3)
    ]
    assert sorted(lake.sql("SELECT * FROM lake.t")) == expected
    arrow = lake.catalog.load_table("t").to_arrow().select(["id", "k"])
    assert sorted(tuple(row.values()) for row in arrow.to_pylist()) == expected
    assert (tmp_path / "foreign" / "k=far" / "f.parquet").exists()


@pytest.mark.adapter
@in_both_modes
def test_a_merge_of_many_tasks_leaves_few_files(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 4000, 1, 4)")
    lake.spark.conf.set("spark.sql.shuffle.partitions", "40")
    try:
        lake.sql(
            "MERGE INTO lake.t USING (SELECT id * 2 AS id FROM range(0, 4000)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 2)"
        )
    finally:
        lake.spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert lake.sql("SELECT count(*), sum(v) FROM lake.t") == [(6000, 2000 + 4000)]
    assert lake.catalog.load_table("t").file_count <= (6 if mode == "merge-on-read" else 2)


@in_both_modes
def test_a_statement_that_fails_leaves_no_commit_and_no_files(lake, tmp_path, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 'a' AS k FROM range(0, 100, 1, 1)")
    paths = sorted(path for path in (tmp_path / "warehouse").rglob("*") if path.is_file())
    for statement in (
        "UPDATE lake.t SET k = IF(id > 50, raise_error('boom'), 'b')",
        "DELETE FROM lake.t WHERE IF(id > 50, raise_error('boom'), id > 5)",
        "MERGE INTO lake.t USING (SELECT id FROM range(200)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, IF(s.id > 150, raise_error('boom'), 'n'))",
    ):
        with pytest.raises(Exception, match="boom"):
            lake.sql(statement)
    assert sorted(path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()) == paths
    assert lake.sql("SELECT count(*) FROM lake.t WHERE k = 'a'") == [(100,)]


@in_both_modes
def test_a_transaction_sees_its_own_changes_of_rows_and_makes_one_commit(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 100, 1, 2)")
    version, other_session = lake.catalog.load_table("t").version, another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("DELETE FROM lake.t WHERE id % 7 = 0")
        lake.sql("UPDATE lake.t SET v = 1 WHERE id % 7 = 1")
        lake.sql("DELETE FROM lake.t WHERE v = 1 AND id > 50")
        lake.sql("INSERT INTO lake.t VALUES (1000, 5)")
        lake.sql(
            "MERGE INTO lake.t USING (SELECT id * 20 AS id FROM range(52)) s ON t.id = s.id "
            "WHEN MATCHED AND t.v = 5 THEN UPDATE SET v = 6 WHEN MATCHED THEN DELETE"
        )
        inside = lake.sql("SELECT count(*), sum(id), sum(v) FROM lake.t")
        assert other_session.sql("SELECT count(*), sum(v) FROM lake.t") == [(100, 0)]
    rows = {id: int(id % 7 == 1) for id in range(100) if id % 7 and not (id % 7 == 1 and id > 50) and id % 20}
    assert inside == [(len(rows) + 1, sum(rows) + 1000, sum(rows.values()) + 6)]
    assert other_session.sql("SELECT count(*), sum(id), sum(v) FROM lake.t") == inside
    assert lake.catalog.load_table("t").version == version + 1


@in_both_modes
def test_what_was_rolled_back_changes_nothing(lake, tmp_path, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 100, 1, 2)")
    names = sorted(path.name for path in (tmp_path / "warehouse").rglob("*.parquet"))
    with pytest.raises(ZeroDivisionError), lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("UPDATE lake.t SET v = 1 WHERE id % 2 = 0")
        lake.sql("DELETE FROM lake.t WHERE id = 7")
        _ = 1 // 0
    assert lake.sql("SELECT count(*), sum(v) FROM lake.t") == [(100, 0)]
    assert sorted(path.name for path in (tmp_path / "warehouse").rglob("*.parquet")) == names


def test_rows_that_others_changed_conflict_and_other_rows_do_not(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, 0 AS v FROM range(0, 100, 1, 1)")
    other_session = another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("DELETE FROM lake.t WHERE id = 1")
        other_session.sql("DELETE FROM lake.t WHERE id = 2")
        other_session.sql("INSERT INTO lake.t VALUES (500, 500)")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE id IN (1, 2, 500)") == [(1,)]
    with pytest.raises(Exception, match="conflict"), lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("UPDATE lake.t SET v = 1 WHERE id = 10")
        other_session.sql("UPDATE lake.t SET v = 2 WHERE id = 10")
    assert lake.sql("SELECT v FROM lake.t WHERE id = 10") == [(2,)]
    # Of two merges that add what is not there, the second one would add it again.
    merge = (
        "MERGE INTO lake.t USING (SELECT 900L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 9)"
    )
    with pytest.raises(Exception, match="conflict"), lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql(merge)
        other_session.sql(merge)
    assert lake.sql("SELECT count(*) FROM lake.t WHERE id = 900") == [(1,)]


@pytest.mark.adapter
@in_both_modes
def test_metadata_columns_name_rows_in_conditions(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT 'mine' AS _file, id FROM range(0, 10, 1, 2)")
    lake.sql("DELETE FROM lake.t WHERE _pos = 0 AND _file = 'mine'")
    # What is written anew has new positions.
    changed = {"merge-on-read": {3, 8}, "copy-on-write": {4, 9}}[mode]
    lake.sql("UPDATE lake.t SET _file = __file WHERE _pos = 3")
    assert dict(lake.sql("SELECT id, _file LIKE '%.parquet' FROM lake.t")) == {
        id: id in changed for id in range(10) if id not in (0, 5)
    }


class TestDeletionVectors:
    """Files some of whose rows are deleted, as Spark reads them."""

    COLUMNS = (
        "id, struct(id AS a, named_struct('b', concat('b', id)) AS n) AS s, array(id, id + 1) AS l, map('k', id) AS m, "
        "CAST(id AS DECIMAL(30, 2)) AS d, timestamp_seconds(id) AS t, IF(id % 3 = 0, NULL, CAST(id AS STRING)) AS x, "
        "encode(CAST(id AS STRING), 'utf-8') AS y"
    )

    @pytest.mark.parametrize("vectorized", ["true", pytest.param("false", marks=pytest.mark.slow)])
    def test_all_types_are_read_past_deleted_rows(self, lake, vectorized):
        lake.sql(f"CREATE TABLE lake.t AS SELECT {self.COLUMNS} FROM range(0, 3000, 1, 1)")
        lake.sql(f"CREATE TABLE lake.u AS SELECT {self.COLUMNS} FROM range(0, 3000, 1, 1)")
        lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0 OR id BETWEEN 700 AND 1900")
        lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        lake.spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "100")
        try:
            for label in ("*", "id, s.n.b, _pos", "x", "count(*), sum(l[1]), max(m['k'])", "y, d"):
                for filter in ("true", "id > 2500", "x IS NULL"):
                    assert lake.sorted(f"SELECT {label} FROM lake.t WHERE {filter}") == lake.sorted(
                        f"SELECT {label} FROM lake.u "
                        f"WHERE NOT (hash(id) % 3 = 0 OR id BETWEEN 700 AND 1900) AND {filter}"
                    )
        finally:
            lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
            lake.spark.conf.unset("spark.sql.parquet.columnarReaderBatchSize")
        (deletes,) = files(lake).values()
        assert "path" in deletes  # more than fits into the log

    def test_a_scan_that_is_as_wide_as_columns_may_be_reads_all_files_alike(self, lake):
        lake.sql("CREATE TABLE lake.t AS SELECT id, id AS a, id AS b FROM range(0, 20, 1, 2)")
        lake.sql("DELETE FROM lake.t WHERE id = 3")
        for fields in ("2", "3", "4", "5"):
            lake.spark.conf.set("spark.sql.codegen.maxFields", fields)
            try:
                assert lake.sql("SELECT count(id), sum(a + b) FROM lake.t WHERE a = b") == [(19, 374)]
                assert len(lake.sql("SELECT *, _pos, _file FROM lake.t")) == 19
            finally:
                lake.spark.conf.unset("spark.sql.codegen.maxFields")

    def test_a_limit_and_a_count_are_of_rows_that_are_left(self, lake):
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 20, 1, 2)")
        lake.sql("DELETE FROM lake.t WHERE id BETWEEN 1 AND 9")
        assert len(lake.sql("SELECT * FROM lake.t LIMIT 11")) == 11
        assert lake.sql("SELECT count(*) FROM lake.t") == [(11,)]

    def test_a_vector_that_was_altered_is_an_error(self, lake):
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 20000, 1, 1)")
        lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0")
        table = lake.catalog.load_table("t")
        (vector,) = Path(table.location).rglob("*.puffin")
        content = vector.read_bytes()
        vector.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        with pytest.raises(Exception, match="deletion vector.*altered"):
            lake.sql("SELECT count(id), max(id) FROM lake.t WHERE id > -1")
        vector.unlink()
        with pytest.raises(Exception, match=r"\.puffin"):
            lake.sql("SELECT max(id) FROM lake.t WHERE id > -1")

    def test_a_vector_of_rows_that_the_file_does_not_have_is_an_error(self, lake, monkeypatch):
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 20, 1, 1)")
        # No writer that looks at what it writes makes one.
        monkeypatch.setattr(prepared_rows.PreparedChange, "_check_input", lambda self: None)
        table, (path,) = lake.catalog.load_table("t"), files(lake)
        positions = base64.b64encode(BitMap([3, 20]).serialize()).decode()
        engine.commit_rows(
            table, engine.begin_write(table), "delete", deletes=[{"path": path, "positions": positions}]
        )
        with pytest.raises(Exception, match="row at 20 of a file of 20 rows"):
            lake.sql("SELECT id FROM lake.t")

    def test_vectors_of_several_files_share_an_object(self, lake):
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 60000, 1, 3)")
        lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0")
        assert len({json.loads(deletes)["offset"] for deletes in files(lake).values()}) == 3
        lake.sql("DELETE FROM lake.t WHERE id BETWEEN 15000 AND 25000")
        assert len(list(Path(lake.catalog.load_table("t").location).rglob("*.puffin"))) == 2
        assert lake.sorted("SELECT id FROM lake.t") == lake.sorted(
            "SELECT id FROM range(60000) WHERE hash(id) % 3 <> 0 AND id NOT BETWEEN 15000 AND 25000"
        )


@in_both_modes
def test_a_partition_without_rows_stays_where_those_of_others_change(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t PARTITIONED BY (k) {in_mode(mode)} AS SELECT id, 'a' AS k FROM range(0, 3, 1, 1)"
    )
    lake.sql("ALTER TABLE lake.t ADD PARTITION (k = 'empty')")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 0L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET id = 7 WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (7,)]
    assert lake.sorted("SHOW PARTITIONS lake.t") == [("k=a",), ("k=empty",)]


@in_both_modes
def test_values_that_are_made_stay_when_rows_beside_them_go(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (n BIGINT GENERATED ALWAYS AS IDENTITY, k STRING) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t (k) SELECT concat('k', id) FROM range(0, 6, 1, 1)")
    rows_before = dict(lake.sql("SELECT k, n FROM lake.t"))
    lake.sql("DELETE FROM lake.t WHERE k IN ('k1', 'k4')")
    assert dict(lake.sql("SELECT k, n FROM lake.t")) == {
        k: n for k, n in rows_before.items() if k not in ("k1", "k4")
    }
    lake.sql("UPDATE lake.t SET k = concat('x', k)")
    assert dict(lake.sql("SELECT k, n FROM lake.t")) == {
        f"x{k}": n for k, n in rows_before.items() if k not in ("k1", "k4")
    }
