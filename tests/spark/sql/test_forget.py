"""CALL lake.system.forget: rows are erased by Spark's jobs, and Python only learns counts and entries of files."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from tests.spark.conftest import children
from tests.spark.sessions import descriptions_of_jobs, last_job
from tests.spark.versions import only_where_spark_computes

pytestmark = pytest.mark.adapter

WHERE = "name = ''ada'' OR id = 903"


def ids(lake, name, ref=None):
    return sorted(lake.catalog.load_table(name, ref=ref).to_arrow().column("id").to_pylist())


def people(*given):
    """Rows for a table of ids, days and names, or without names."""
    columns = list(zip(*given, strict=True))
    names = ["id", "day", "name"][: len(columns)]
    types = [pa.int64(), pa.date32(), pa.string()]
    return pa.table(
        {name: pa.array(column, type) for name, column, type in zip(names, columns, types, strict=False)}
    )


def planted(lake, name):
    """Such rows on a line, on a branch, marked as deleted, in an older version, and in a file without the column, made
    by Python, which is quicker at that than Spark."""
    date, two, three, four, five = (dt.date(2026, 1, day) for day in range(1, 6))
    first = people(*((id, date) for id in range(3)))
    marks = {"lakelog.write.delete.mode": "merge-on-read"}
    table = lake.catalog.create_table(name, first.schema, partition_by=["day"], properties=marks).append(
        first
    )
    table = table.alter([{"change": "add-column", "name": ["name"], "type": "string"}])
    table = table.append(people((900, date, "ada"), (10, two, "bob")))
    table = table.append(people((901, three, "ada"), (11, three, None))).delete("id = 901")
    table = table.create_branch("audit")
    lake.catalog.load_table(name, ref="audit").append(people((902, four, "ada")))
    table = table.refresh().append(people((903, five, "eve")))
    table.overwrite(people((12, five, "eve")), "day = DATE '2026-01-05'")


def kill_python_in_a_job(spark, after):
    """Its process ends while Spark counts or copies rows, and all that a call has in memory with it."""
    while not [text for text in descriptions_of_jobs(spark, after=after) if "forget" in text]:
        time.sleep(0.01)
    for child in children(spark):
        os.kill(child, signal.SIGKILL)


def forgotten(lake, table, more="", *, killing=False):
    last_job_before = last_job(lake.spark)
    if killing:
        threading.Thread(target=kill_python_in_a_job, args=(lake.spark, last_job_before), daemon=True).start()
    answer = lake.sql(f"CALL lake.system.forget('{table}', '{WHERE}'{more})")
    return answer, [
        text for text in descriptions_of_jobs(lake.spark, after=last_job_before) if "forget" in text
    ]


def test_rows_are_forgotten_by_jobs(lake):
    lake.catalog.create_namespace("n")
    planted(lake, "n.t")
    # A file that no version has, of a write that died.
    folder = lake.catalog.load_table("n.t").location
    file = next(path for path in sorted(Path(folder).rglob("*.parquet")) if "-copied" not in path.name)
    shutil.copy(file, file.with_name(f"{file.name[:21]}{'a' * 26}-0.parquet"))
    # Spark reads all files. Python reads ids of rows, of those files alone that have such rows.
    done, jobs = forgotten(lake, "n.t", ", dry_run => false, reference => 'T-7'", killing=True)
    texts = " ".join(jobs)
    assert all(text in texts for text in ("without such rows", "objects of", "rows in")), jobs
    assert {row[0] for row in done} >= {"table", "lost versions", "out of reach"}
    assert [row for row in done if row[0] == "left"] == []
    table = next(row for row in done if row[0] == "table")
    assert (table[2], table[4]) == (None, 3), table  # on lines, also marked as deleted
    assert {row[-1] for row in done} == {False}
    (receipt,) = [row for row in done if row[0] == "receipt"]
    said = json.loads(receipt[2])
    assert said["reference"] == "T-7" and [log["kind"] for log in said["logs"]] == ["table"]
    assert sorted(row[0] for row in lake.sql("SELECT id FROM lake.n.t")) == [0, 1, 2, 10, 11, 12]
    assert ids(lake, "n.t", "audit") == [0, 1, 2, 10, 11]
    assert not [each for each in lake.catalog.fsck("n.t").found if each.severity.name != "NOTE"]
    assert "ada" not in values_in(folder)
    again = lake.catalog.forget("n.t", WHERE.replace("''", "'"))
    assert not again.is_needed and not again.left


def values_in(folder):
    return {
        value
        for file in Path(folder).rglob("*.parquet")
        for column in pq.read_table(file).columns
        for value in column.to_pylist()
    }


def test_copies_that_do_not_match_are_forgotten_too(lake):
    rows = pa.table(
        {"id": range(4), "email": [f"mail{id}" for id in range(4)], "flag": pa.nulls(4, pa.string())}
    )
    table = lake.catalog.create_table(
        "m", rows.schema, properties={"lakelog.write.update.mode": "merge-on-read"}
    )
    table = table.append(rows).update({"flag": "'erase'"}, "id = 1")
    table = table.alter([{"change": "delete-column", "name": ["email"]}])
    table.alter([{"change": "add-column", "name": ["email"], "type": "string"}])
    finished_rows = lake.sql(
        "CALL lake.system.forget('m', \"flag = 'erase' OR email = 'mail2'\", dry_run => false)"
    )
    assert any(row[0] == "lost rows" for row in finished_rows)
    assert [row for row in finished_rows if row[0] == "left"] == [] and ids(lake, "m") == [0, 3]
    values = values_in(lake.catalog.load_table("m").location)
    assert {0, 3} <= values and not values & {"erase", "mail1", "mail2"}


TYPES = {
    "flag": ("BOOLEAN", "flag", "flag = true", "NOT flag"),
    "tiny": ("TINYINT", "CAST(id AS TINYINT)", "tiny < 2.5", "tiny <> 300"),
    "small": ("SMALLINT", "CAST(id AS SMALLINT)", "small IN (1, 2, NULL)"),
    "whole": ("INT", "CAST(id AS INT)", "whole >= 3", "NOT (whole IN (1, 7))"),
    "single": ("FLOAT", "IF(id = 4, float('NaN'), CAST(id / 8 AS FLOAT))", "single > 0.1", "single = 0.25"),
    "real": ("DOUBLE", "IF(id = 4, double('NaN'), id / 10)", "real >= 0.2", "real < 0.2 OR real IS NULL"),
    "exact": ("DECIMAL(9, 2)", "CAST(id / 4 AS DECIMAL(9, 2))", "exact = 0.75", "exact < 1.001"),
    "text": ("STRING", "CONCAT('a', id)", "text LIKE 'a%'", "text > 'a2'"),
    "limited": ("VARCHAR(9)", "CONCAT('b', id, ' ')", "limited = 'b3 '", "limited LIKE '%3%'"),
    "padded": ("CHAR(5)", "CONCAT('c', id)", "padded = 'c3'"),
    "day": ("DATE", "DATE'2026-01-01' + CAST(id AS INT)", "day > DATE'2026-01-03'"),
    "at": ("TIMESTAMP", "timestamp_micros(id * 1000001)", "at <= TIMESTAMP'1970-01-01 00:00:02.000002Z'"),
}


def test_jobs_find_the_rows_that_a_query_finds(lake):
    """Each condition has six rows of its own, so that one erasure shows what Spark's jobs make of all of them."""
    table = lake.name + ".t"
    lake.sql(
        f"CREATE TABLE {table} (part INT, id BIGINT, {', '.join(f'{name} {each[0]}' for name, each in TYPES.items())})"
    )
    conditions = [condition for each in TYPES.values() for condition in each[2:]]
    values = ", ".join(f"IF(id = 5, NULL, {each[1]})" for each in TYPES.values())
    lake.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(part AS INT), id, {values} FROM "
        f"(SELECT id % 6 AS id, id DIV 6 AS part, id % 2 = 0 AS flag FROM range({6 * len(conditions)}))"
    )
    all_of_them = [f"(part = {part} AND ({condition}))" for part, condition in enumerate(conditions)]
    found_rows = lake.sql(f"SELECT part, id FROM {table} WHERE {' OR '.join(all_of_them)}")
    expected = {tuple(row) for row in found_rows}
    for part, condition in enumerate(conditions):
        assert 0 < len([row for row in expected if row[0] == part]) < 6, condition
    # Spark compares a CHAR in its own way: the process reads such a column itself.
    padded_part = next(part for part, condition in enumerate(conditions) if condition.startswith("padded"))
    last_job_before = last_job(lake.spark)
    for some in (all_of_them[:padded_part] + all_of_them[padded_part + 1 :], [all_of_them[padded_part]]):
        quoted_text = " OR ".join(some).replace("'", "\\'")
        lake.sql(f"CALL lake.system.forget('t', '{quoted_text}', dry_run => false)")
    assert any(
        "without such rows" in text for text in descriptions_of_jobs(lake.spark, after=last_job_before)
    )
    remaining_rows = lake.catalog.load_table("t").to_arrow()
    remaining_rows = {*zip(remaining_rows["part"].to_pylist(), remaining_rows["id"].to_pylist(), strict=True)}
    assert remaining_rows == {(part, id) for part in range(len(conditions)) for id in range(6)} - expected


def test_what_cannot_be_forgotten_is_said(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, CAST(id AS STRING) AS name FROM range(3)")
    for call, why in (
        ("'none', 'id = 1'", "none"),
        ("'t', 'nom = 1'", "nom"),
        ("'t', 'length(name) = 1'", "length|only an engine"),
        ("'t', NULL", "NULL"),
        ("'t', 'id = 1', key => '/no/such.pem'", "openssl"),
    ):
        with pytest.raises(PySparkException, match=why):
            lake.sql(f"CALL lake.system.forget({call})")
    lake.sql("CALL lake.system.begin_transaction()")
    with pytest.raises(PySparkException, match="transaction"):
        lake.sql("CALL lake.system.forget('t', 'id = 1')")
    lake.sql("CALL lake.system.rollback_transaction()")
    assert ids(lake, "t") == [0, 1, 2]


@only_where_spark_computes
def test_what_was_computed_from_forgotten_values_is_gone_too(lake):
    """Values of a generated column, which partitions the table, with bounds and changes made of them by Spark."""
    name = f"{lake.name}.g"
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, mail STRING, host STRING GENERATED ALWAYS AS (upper(mail))) "
        "PARTITIONED BY (host) TBLPROPERTIES ('lakelog.bloom-filter.columns' = 'mail')"
    )
    lake.sql(f"INSERT INTO {name} (id, mail) VALUES (1, 'b'), (2, 'zqxj@home'), (3, 'c'), (4, 'zqxj@work')")
    lake.sql(f"UPDATE {name} SET mail = 'zqxj@moved' WHERE id = 4")
    lake.catalog.forget("g", "mail LIKE 'zqxj%'", dry_run=False)
    assert lake.sorted(f"SELECT * FROM {name}") == [(1, "b", "B"), (3, "c", "C")]
    for file in Path(lake.catalog.load_table("g").location).rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(each_data in data for each_data in (b"zqxj", b"ZQXJ")), file
            if file.suffix == ".parquet":
                assert "zqxj" not in str(pq.read_table(file).to_pydict()).lower(), file
