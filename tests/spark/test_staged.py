"""CREATE TABLE AS SELECT, REPLACE and CREATE OR REPLACE: one commit, or nothing that any client sees."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.functions import lit, udf

pytestmark = pytest.mark.adapter


def condition(error):
    return error.value.getCondition()


def test_a_replace_is_one_commit_in_the_same_log(lake):
    lake.sql("CREATE TABLE lake.t PARTITIONED BY (k) AS SELECT 1 AS id, 'a' AS k")
    before = lake.catalog.load_table("t")
    lake.sql(
        "CREATE OR REPLACE TABLE lake.t USING other PARTITIONED BY (bucket(2, v)) TBLPROPERTIES ('p' = "
        "'q') AS SELECT 5L AS v"
    )
    after = lake.catalog.load_table("t")
    assert (after.id, after.version) == (before.id, before.version + 1)
    assert lake.sql("SELECT * FROM lake.t") == [(5,)]
    assert lake.sql(f"SELECT * FROM lake.t VERSION AS OF {before.version}") == [(1, "a")]
    lake.sql("REPLACE TABLE lake.t (b INT)")
    assert lake.sql("SELECT * FROM lake.t") == []
    assert lake.sql("SHOW TBLPROPERTIES lake.t") == []


def test_a_replace_may_read_the_table_that_it_replaces(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(5)")
    lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT id * 10 AS id FROM lake.t")
    assert lake.sorted("SELECT * FROM lake.t") == [(0,), (10,), (20,), (30,), (40,)]


def test_existing_and_missing_tables_are_distinguished(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    with pytest.raises(AnalysisException) as error:
        lake.sql("CREATE TABLE lake.t AS SELECT 2 AS id")
    assert condition(error) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    lake.sql("CREATE TABLE IF NOT EXISTS lake.t AS SELECT 2 AS id")
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]
    for statement in ("REPLACE TABLE lake.gone AS SELECT 1 AS id", "REPLACE TABLE lake.gone (a INT)"):
        with pytest.raises(AnalysisException) as error:
            lake.sql(statement)
        assert condition(error) == "TABLE_OR_VIEW_NOT_FOUND"
    lake.sql("CREATE OR REPLACE TABLE lake.new AS SELECT 3 AS id")
    assert lake.sql("SELECT * FROM lake.new") == [(3,)]
    with pytest.raises(AnalysisException) as error:
        lake.sql("CREATE TABLE lake.gone.t AS SELECT 1 AS id")
    assert condition(error) == "SCHEMA_NOT_FOUND"


def test_a_table_created_meanwhile_makes_the_commit_fail_and_stays_as_it_is(lake, tmp_path):
    errors: list[AnalysisException] = []
    gate, started = tmp_path / "gate", tmp_path / "started"

    def create():
        try:
            source.writeTo(f"{lake.name}.t").create()
        except AnalysisException as failed:
            errors.append(failed)

    def slow(id):
        started.touch()
        while not gate.exists():
            time.sleep(0.05)
        return id

    source = lake.spark.range(1).select(udf(slow, "BIGINT", useArrow=False)("id").alias("id"))
    thread = threading.Thread(target=create)
    thread.start()
    while not started.exists():
        time.sleep(0.05)
    lake.catalog.create_table("t", pa.schema([("b", pa.int64())]))
    gate.touch()
    thread.join()
    assert [error.getCondition() for error in errors] == ["TABLE_OR_VIEW_ALREADY_EXISTS"]
    assert lake.frame("SELECT * FROM lake.t").columns == ["b"]


def test_the_frame_api_creates_and_replaces(lake):
    frame = lake.spark.range(3)
    frame.writeTo(f"{lake.name}.t").tableProperty("p", "q").create()
    with pytest.raises(AnalysisException) as error:
        frame.writeTo(f"{lake.name}.t").create()
    assert condition(error) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    frame.selectExpr("id + 5 AS id").writeTo(f"{lake.name}.t").replace()
    frame.selectExpr("id + 7 AS x").writeTo(f"{lake.name}.t").createOrReplace()
    assert lake.sorted("SELECT x FROM lake.t") == [(7,), (8,), (9,)]
    frame.write.mode("overwrite").saveAsTable(f"{lake.name}.t")
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (1,), (2,)]
    with pytest.raises(AnalysisException):
        frame.writeTo(f"{lake.name}.gone").replace()


STAGED = {
    "CREATE AS": lambda lake, rows: lake.sql(f"CREATE TABLE lake.t AS {rows}"),
    "CREATE OR REPLACE AS": lambda lake, rows: lake.sql(f"CREATE OR REPLACE TABLE lake.t AS {rows}"),
    "REPLACE AS": lambda lake, rows: lake.sql(f"REPLACE TABLE lake.t AS {rows}"),
    "create": lambda lake, rows: lake.frame(rows).writeTo(f"{lake.name}.t").create(),
    "createOrReplace": lambda lake, rows: lake.frame(rows).writeTo(f"{lake.name}.t").createOrReplace(),
    "replace": lambda lake, rows: lake.frame(rows).writeTo(f"{lake.name}.t").replace(),
    "saveAsTable": lambda lake, rows: lake.frame(rows).write.saveAsTable(f"{lake.name}.t"),
    "overwrite": lambda lake, rows: lake.frame(rows).write.mode("overwrite").saveAsTable(f"{lake.name}.t"),
}


@pytest.mark.parametrize("form", STAGED)
def test_every_form_stages_a_table_that_is_there_or_is_not(lake, form):
    rows = "SELECT CAST('a' AS CHAR(3)) AS c, id FROM range(3)"
    is_there = form.lower() in ("replace as", "replace")
    if is_there:
        lake.sql("CREATE TABLE lake.t AS SELECT 1 AS x")
    STAGED[form](lake, rows)
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (1,), (2,)]
    if is_there or "OR" in form or form in ("createOrReplace", "overwrite"):
        STAGED[form](lake, "SELECT 7 AS y")
        assert lake.sql("SELECT * FROM lake.t") == [(7,)]


def test_a_write_into_a_table_that_is_dropped_meanwhile_fails_and_leaves_no_files(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    place = Path(lake.catalog.load_table("t").location)
    gate, started = tmp_path / "gate", tmp_path / "started"

    def slow(id):
        started.touch()
        while not gate.exists():
            time.sleep(0.05)
        return id

    source = lake.spark.range(1).select(udf(slow, "BIGINT", useArrow=False)("id").alias("id"))
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(lambda: source.writeTo(f"{lake.name}.t").append())
        while not started.exists():
            time.sleep(0.05)
        lake.sql("DROP TABLE lake.t")
        lake.sql("CREATE TABLE lake.t AS SELECT 5 AS other")
        gate.touch()
        with pytest.raises(AnalysisException) as error:
            written.result()
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert list(place.rglob("*.parquet")) == []
    assert lake.sql("SELECT * FROM lake.t") == [(5,)]


def test_a_write_that_conflicts_says_with_what_and_leaves_no_files(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t AS SELECT 1L AS id")
    table = lake.catalog.load_table("t")
    gate, started = tmp_path / "gate", tmp_path / "started"

    def slow(id):
        started.touch()
        while not gate.exists():
            time.sleep(0.05)
        return id

    source = lake.spark.range(1).select(udf(slow, "BIGINT", useArrow=False)("id").alias("id"))
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(lambda: source.writeTo(f"{lake.name}.t").overwrite(lit(True)))
        while not started.exists():
            time.sleep(0.05)
        table.append(pa.table({"id": [7]}))
        gate.touch()
        with pytest.raises(Exception) as error:
            written.result()
    assert f"{table.version + 1}" in str(error.value)
    assert "Traceback" not in str(error.value)
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (7,)]
    assert len(list(Path(table.location).rglob("*.parquet"))) == 2


def test_a_staged_table_that_was_aborted_cannot_be_committed(lake):
    jvm, gateway = lake.spark.sparkContext._jvm, lake.spark.sparkContext._gateway
    catalog = lake.spark._jsparkSession.sessionState().catalogManager().catalog(lake.name)
    connector = jvm.org.apache.spark.sql.connector
    ident = connector.catalog.Identifier.of(gateway.new_array(jvm.String, 0), "t")
    columns = gateway.new_array(connector.catalog.Column, 1)
    columns[0] = connector.catalog.Column.create("id", jvm.org.apache.spark.sql.types.DataTypes.IntegerType)
    partitions = gateway.new_array(connector.expressions.Transform, 0)

    def staged():
        return catalog.stageCreate(ident, columns, partitions, jvm.java.util.HashMap())

    aborted = staged()
    aborted.abortStagedChanges()
    with pytest.raises(Exception, match="was aborted, and its files are deleted: stage it again"):
        aborted.commitStagedChanges()
    assert lake.catalog.list_tables() == []
    staged().commitStagedChanges()
    assert lake.catalog.list_tables() == [("t",)]
