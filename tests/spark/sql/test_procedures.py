"""CALL lake.system.…: the procedures that change tables, seen from Spark, a second session and the Python client."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from tests.patience import wait_until
from tests.spark.sessions import another_session, descriptions_of_jobs

pytestmark = pytest.mark.adapter


def test_procedures_take_names_positions_and_defaults_and_are_shown_and_described(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    assert lake.sql("CALL lake.system.rollback_to_version('t', 1)") == [(2, 1, 3)]
    assert lake.sql("CALL lake.system.rollback_to_version(version => 2, table => 't')") == [(3, 2, 4)]
    assert lake.sql("CALL lake.system.rollback_to_version('t', version => CAST(1 AS TINYINT))") == [(4, 1, 5)]
    names = {row[-1] for row in lake.sql(f"SHOW PROCEDURES IN {lake.name}.system")}
    assert {"rollback_to_version", "rollback_to_timestamp", "set_current_version"} <= names
    described_text = "\n".join(
        line for (line,) in lake.sql("DESCRIBE PROCEDURE lake.system.rollback_to_version")
    )
    assert "version BIGINT: the version to go back to" in described_text
    assert "restored_version BIGINT" in described_text
    for call, condition in {
        "rollback_to_version('t')": "REQUIRED_PARAMETER_NOT_FOUND",
        "rollback_to_version('t', 1, 2)": "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
        "rollback_to_version('t', vers => 2)": "UNRECOGNIZED_PARAMETER_NAME",
        "rollback_to_version('t', array(1))": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    }.items():
        with pytest.raises(AnalysisException) as error:
            lake.sql(f"CALL lake.system.{call}")
        assert error.value.getCondition() == condition


def test_a_rollback_brings_back_rows_columns_and_properties_for_all_clients(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id INT, name STRING) PARTITIONED BY (name) COMMENT 'first'")
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'x')")
    lake.sql("ALTER TABLE lake.a.t RENAME COLUMN id TO key")
    lake.sql("ALTER TABLE lake.a.t ADD COLUMN id STRING")
    lake.sql("ALTER TABLE lake.a.t SET TBLPROPERTIES ('team' = 'me', 'comment' = 'second')")
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'y', 'z')")
    assert lake.sql("CALL lake.system.rollback_to_version('a.t', 2)") == [(6, 2, 7)]
    assert lake.sql("SELECT * FROM lake.a.t") == [(1, "x")]
    assert lake.sql("SELECT * FROM lake.a.t WHERE id = 1") == [(1, "x")]
    assert lake.sorted("SELECT * FROM lake.a.t VERSION AS OF 6") == [(1, "x", None), (2, "y", "z")]
    assert lake.frame("SELECT * FROM lake.a.t").columns == ["id", "name"]
    other_session = another_session(lake)
    assert other_session.sql("SELECT * FROM lake.a.t") == [(1, "x")]
    assert ("Comment", "first", "") in other_session.sql("DESCRIBE TABLE EXTENDED lake.a.t")
    table = lake.catalog.load_table("a.t")
    assert (table.properties, table.comment, table.to_arrow().to_pylist()) == (
        {"owner": lake.spark.sparkContext.sparkUser()},
        "first",
        [{"id": 1, "name": "x"}],
    )
    [entry] = table.history(limit=1)
    assert (entry.operation, entry.details["version"]) == ("rollback", 2)
    assert "rollback_to_version" in str(entry.writer["statement"])
    assert lake.sql("SELECT operation FROM lake.system.audit WHERE version = 7 AND name = '`a`.`t`'") == [
        ("rollback",)
    ]


def test_a_rollback_to_a_time_means_the_newest_version_not_after_it(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("INSERT INTO lake.t VALUES (3)")
    micros = lake.catalog.load_table("t", version=2).table_head.time_us
    call = f"CALL lake.system.rollback_to_timestamp('t', timestamp_micros({micros}))"
    assert lake.sql(call) == [(3, 2, 4)]
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
    with pytest.raises(AnalysisException, match="no version of 1970"):
        lake.sql("CALL lake.system.rollback_to_timestamp('t', TIMESTAMP '1970-01-01 00:00:00')")


def test_setting_the_current_version_brings_back_rows_by_the_columns_of_now(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id, 'a' AS gone")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN id TO key")
    lake.sql("ALTER TABLE lake.t DROP COLUMN gone")
    lake.sql("ALTER TABLE lake.t ADD COLUMN gone STRING")
    lake.sql("TRUNCATE TABLE lake.t")
    assert lake.sql("CALL lake.system.set_current_version('t', 1)") == [(5, 1, 6)]
    assert lake.sql("SELECT key, gone FROM lake.t WHERE key = 1 AND gone IS NULL") == [(1, None)]
    lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT 2 AS id")
    with pytest.raises(AnalysisException, match=r"was replaced after version 1.*rollback_to_version"):
        lake.sql("CALL lake.system.set_current_version('t', 1)")
    assert lake.sql("SELECT * FROM lake.t") == [(2,)]


def test_what_is_cached_is_read_anew_after_a_procedure_changed_it(lake, tmp_path):
    lake.spark.range(7, 8).write.parquet(str(tmp_path / "files"))
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.t AS SELECT 1L AS id")
    lake.sql("CREATE VIEW lake.n.v AS SELECT id + 100 AS id FROM lake.n.t")
    lake.sql("INSERT INTO lake.n.t VALUES (2)")
    lake.sql("CACHE TABLE lake.n.t")
    lake.sql("CACHE TABLE lake.n.v")
    for call, expected in [
        ("rollback_to_version('n.t', 1)", [1]),
        ("set_current_version('n.t', 2)", [1, 2]),
        (f"add_files('n.t', '{tmp_path}/files')", [1, 2, 7]),
    ]:
        lake.sql(f"CALL lake.system.{call}")
        assert lake.sorted("SELECT * FROM lake.n.t") == [(id,) for id in expected], call
        assert lake.sorted("SELECT * FROM lake.n.v") == [(id + 100,) for id in expected], call
        assert "InMemory" in lake.sql("EXPLAIN SELECT * FROM lake.n.t")[0][0]
    lake.sql("ALTER TABLE lake.n.t ADD COLUMN more INT")
    lake.sql("SELECT * FROM lake.n.t")
    lake.sql("CALL lake.system.rollback_to_version('n.t', 1)")
    assert lake.sql("SELECT * FROM lake.n.t") == [(1,)]
    lake.sql("UNCACHE TABLE IF EXISTS lake.n.t")
    lake.sql("UNCACHE TABLE IF EXISTS lake.n.v")


def test_going_back_joins_the_sessions_transaction(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("CALL lake.system.rollback_to_version('t', 1)")
    lake.sql("INSERT INTO lake.t VALUES (3)")
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (3,)]
    assert lake.catalog.load_table("t").row_count == 2
    lake.sql("CALL lake.system.commit_transaction()")
    assert sorted(lake.catalog.load_table("t").to_arrow()["id"].to_pylist()) == [1, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("rollback_to_version('t', 99)", "no version 99: its newest is 1"),
        ("rollback_to_version('t', NULL)", "version of rollback_to_version is NULL"),
        ("rollback_to_version('nowhere', 1)", "nowhere"),
        ("set_current_version('t', -1)", "no version -1"),
        ("rollback_to_timestamp('t', NULL)", "timestamp of rollback_to_timestamp is NULL"),
    ],
)
def test_a_version_or_table_that_there_is_not_is_refused_and_nothing_changes(lake, call, message):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    with pytest.raises(AnalysisException, match=message):
        lake.sql(f"CALL lake.system.{call}")
    assert lake.catalog.load_table("t").version == 1


def test_a_table_that_stands_at_a_place_gets_a_name(lake, tmp_path):
    place = str(tmp_path / "place")
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql(f"CREATE TABLE lake.`{place}` AS SELECT 1 AS id")
    with pytest.raises(AnalysisException, match=r"register_table\('<name>'") as error:
        lake.sql(f"CREATE TABLE lake.a.t (id INT) LOCATION '{place}'")
    assert "a.t" not in lake.catalog.list_tables("a"), error
    assert lake.sql(f"CALL lake.system.register_table('a.t', '{place}')") == [(2, 1, 1)]
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    assert another_session(lake).sorted("SELECT * FROM lake.a.t") == [(1,), (2,)]
    assert lake.catalog.load_table("a.t").row_count == 2
    for call, message in {
        f"register_table('u', '{place}')": "already has the name `t`",
        f"register_table('a.t', '{place}')": "there is a table `a`.`t` already",
        f"register_table('b.t', '{place}')": "b",
        f"register_table('u', '{place}x')": "no table at",
        "register_table('u', NULL)": "location of register_table is NULL",
    }.items():
        with pytest.raises(AnalysisException, match=message):
            lake.sql(f"CALL lake.system.{call}")
    assert lake.catalog.list_tables() == []


def test_fsck_reads_data_files_by_executors_and_repairs(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT id FROM range(0, 1000, 1, 4)")
    lake.sql("INSERT INTO lake.a.t VALUES (1000)")
    assert lake.sql("CALL lake.system.fsck(deep => true)") == []
    assert any("lakelog fsck: all bytes of 5 data files" in text for text in descriptions_of_jobs(lake.spark))
    place = Path(lake.catalog.load_table("a.t").location)
    spoiled_path = sorted(place.glob("data/*"))[0]
    data = spoiled_path.read_bytes()
    spoiled_path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    assert lake.sql("CALL lake.system.fsck()") == []
    [found] = lake.sql("CALL lake.system.fsck(table => 'a.t', deep => true)")
    assert found[:3] == ("damage", "data-file-altered", str(spoiled_path)) and "checksum differs" in found[3]
    spoiled_path.unlink()
    assert [row[1] for row in lake.sql("CALL lake.system.fsck(deep => true)")] == ["data-file-missing"]
    spoiled_path.write_bytes(data)
    hint = place / "_log" / "latest.json"
    hint.write_bytes(b"{}")
    assert [row[:2] for row in lake.sql("CALL lake.system.fsck('a.t')")] == [("repairable", "hint-altered")]
    rows = lake.sql("CALL lake.system.fsck('a.t', repair => true)")
    assert [row[0] for row in rows] == ["repaired", "note"] and "latest.json to " in rows[0][3]
    assert lake.sql("SELECT count(*) FROM lake.a.t") == [(1001,)]


def test_the_statements_that_health_advises_run_and_maintain_finds_nothing_left(lake):
    lake.sql("CREATE TABLE lake.t (id INT) TBLPROPERTIES ('lakelog.maintenance.keep-for' = '30d')")
    for id in range(3):
        lake.sql(f"INSERT INTO lake.t VALUES ({id})")
    [advised] = lake.frame("CALL lake.system.health(table => 't')").collect()
    assert (advised.action, advised.files, advised.saves_files) == ("compact", 3, 2)
    assert lake.sql(advised.statement)[0][:3:2] == (3, 1)
    # An expiry by an inherited age has it in seconds.
    old = "older_than => INTERVAL '2592000' SECOND, dry_run => false"
    assert lake.sql(f"CALL lake.system.expire(table => 't', {old})")[0][3] == 0
    [done] = lake.frame("CALL lake.system.maintain('t', limit_time => INTERVAL '1' MINUTE)").collect()
    assert (done.rewritten_files, done.versions, done.is_left, done.error) == (0, 0, False, None)
    with pytest.raises(AnalysisException, match="shorter than"):
        lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.maintenance.vacuum-age' = '31d')")


@pytest.mark.parametrize("by", ["default", "property"])
def test_spark_compacts_by_itself_after_a_commit_by_default_or_by_a_property(make_lake, by):
    lake = make_lake(**({"maintenance": None} if by == "default" else {}))
    lake.sql("CREATE TABLE lake.t (id INT)")
    table = lake.catalog.load_table("t")
    for id in range(13 if by == "property" else 14):
        table = table.append(pa.table({"id": pa.array([id], pa.int32())}))
    if by == "property":
        lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.maintenance' = 'auto')")
    lake.sql("INSERT INTO lake.t VALUES (14)")
    # Version 16: its writer, which is Spark, looks whether files are due.
    wait_until(lambda: table.refresh().version > 16, "a compaction")
    newest = table.refresh()
    [entry] = newest.history(limit=1)
    assert (entry.operation, str(entry.writer["engine"])[:5], newest.file_count) == ("compact", "spark", 1)
    assert lake.sql("SELECT count(*) FROM lake.t") == [(14 if by == "property" else 15,)]
