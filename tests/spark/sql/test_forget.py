"""CALL lake.system.forget: rows are erased by Spark's jobs, and Python only learns counts and entries of files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from tests.spark.conftest import children
from tests.spark.sessions import descriptions_of_jobs, last_job

pytestmark = pytest.mark.adapter

WHERE = "name = ''ada'' OR id = 903"


def rows(lake, table):
    return sorted(row[0] for row in lake.sql(f"SELECT id FROM {table}"))


def planted(lake, name):
    """Such rows on a line, on a branch, marked as deleted, in an older version, in a file without the column, in a
    clone, and in a dropped table."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT, day DATE) PARTITIONED BY (day)")
    lake.sql(f"INSERT INTO {name} SELECT id, DATE'2026-01-01' FROM range(3)")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN name STRING")
    lake.sql(f"INSERT INTO {name} VALUES (900, DATE'2026-01-01', 'ada'), (10, DATE'2026-01-02', 'bob')")
    lake.sql(f"INSERT INTO {name} VALUES (901, DATE'2026-01-03', 'ada'), (11, DATE'2026-01-03', NULL)")
    lake.sql(f"DELETE FROM {name} WHERE id = 901")
    lake.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
    lake.sql(f"INSERT INTO {name}.branch_audit VALUES (902, DATE'2026-01-04', 'ada')")
    lake.sql(f"INSERT INTO {name} VALUES (903, DATE'2026-01-05', 'eve')")
    lake.sql(f"INSERT OVERWRITE {name} PARTITION (day = DATE'2026-01-05') VALUES (12, 'eve')")


def kill_python_in_a_job(spark, after):
    """Its process ends while Spark counts or copies rows, and all that a call has in memory with it."""
    while not [text for text in descriptions_of_jobs(spark, after=after) if "forget" in text]:
        time.sleep(0.01)
    for child in children(spark):
        os.kill(child, signal.SIGKILL)


def forgotten(lake, table, more="", *, killing=False):
    before = last_job(lake.spark)
    if killing:
        threading.Thread(target=kill_python_in_a_job, args=(lake.spark, before), daemon=True).start()
    answer = lake.sql(f"CALL lake.system.forget('{table}', '{WHERE}'{more})")
    return answer, [text for text in descriptions_of_jobs(lake.spark, after=before) if "forget" in text]


def test_rows_are_forgotten_by_jobs(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    planted(lake, "lake.n.t")
    lake.sql("DROP TABLE lake.n.t")
    planted(lake, "lake.n.t")
    lake.sql("CREATE TABLE lake.n.c CLONE lake.n.t")
    said, jobs = forgotten(lake, "n.t")
    assert {row[0] for row in said} >= {"table", "clone", "dropped-table", "lost versions", "out of reach"}
    assert {row[-1] for row in said} == {True}, "it only reports, and says so"
    assert "receipt" not in {row[0] for row in said} and any("rows in" in text for text in jobs)
    assert rows(lake, "lake.n.t") == [0, 1, 2, 10, 11, 12, 900]
    # A file that no version has, of a write that died.
    folder = lake.catalog.load_table("n.t").location
    file = next(each for each in sorted(Path(folder).rglob("*.parquet")) if "-copied" not in each.name)
    shutil.copy(file, file.with_name(f"{file.name[:21]}{'a' * 26}-0.parquet"))
    # Spark reads all files. Python reads ids of rows, of those files alone that have such rows.
    done, jobs = forgotten(lake, "n.t", ", dry_run => false, reference => 'T-7'", killing=True)
    texts = " ".join(jobs)
    assert all(each in texts for each in ("without such rows", "objects of", "rows in")), jobs
    assert [row for row in done if row[0] == "left"] == []
    table = next(row for row in done if row[0] == "table")
    assert (table[2], table[4]) == (None, 3), table  # on lines, also marked as deleted
    assert {row[-1] for row in done} == {False}
    (receipt,) = [row for row in done if row[0] == "receipt"]
    said = json.loads(receipt[2])
    assert said["reference"] == "T-7" and {each["kind"] for each in said["logs"]} >= {"table", "clone"}
    assert rows(lake, "lake.n.t") == [0, 1, 2, 10, 11, 12]
    assert rows(lake, "lake.n.t.branch_audit") == [0, 1, 2, 10, 11]
    assert rows(lake, "lake.n.c") == [0, 1, 2, 10, 11, 12]
    found = lake.catalog.load_table("n.t").to_arrow()
    assert sorted(found.column("id").to_pylist()) == [0, 1, 2, 10, 11, 12]
    assert not [each for each in lake.catalog.fsck().found if each.severity.name != "NOTE"]
    files = Path(lake.warehouse).rglob("*.parquet")
    values = [
        value for file in files for column in pq.read_table(file).columns for value in column.to_pylist()
    ]
    assert "ada" not in values
    again, _ = forgotten(lake, "n.t", ", dry_run => false")
    # Other processes that were killed may have left such folders on this machine.
    assert [row for row in again if row[0] != "lost temporary-folder"] == []


def test_copies_that_do_not_match_are_forgotten_too(lake):
    lake.sql("CREATE TABLE lake.m (id BIGINT, email STRING, flag STRING)")
    lake.sql("INSERT INTO lake.m SELECT /*+ COALESCE(1) */ id, CONCAT('mail', id), NULL FROM range(4)")
    lake.sql("UPDATE lake.m SET flag = 'erase' WHERE id = 1")
    lake.sql("ALTER TABLE lake.m DROP COLUMN email")
    lake.sql("ALTER TABLE lake.m ADD COLUMN email STRING")
    call = "CALL lake.system.forget('m', \"flag = 'erase' OR email = 'mail2'\""
    assert any(row[0] == "lost rows" for row in lake.sql(f"{call})"))
    done = lake.sql(f"{call}, dry_run => false)")
    assert [row for row in done if row[0] == "left"] == [] and rows(lake, "lake.m") == [0, 3]
    files = Path(lake.catalog.load_table("m").location).rglob("*.parquet")
    values = {
        value for file in files for column in pq.read_table(file).columns for value in column.to_pylist()
    }
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
    lake.sql(
        f"CREATE TABLE lake.t (id BIGINT, {', '.join(f'{name} {each[0]}' for name, each in TYPES.items())})"
    )
    values = ", ".join(f"IF(id = 5, NULL, {each[1]})" for each in TYPES.values())
    lake.sql(
        f"INSERT INTO lake.t SELECT /*+ COALESCE(1) */ id, {values} FROM (SELECT id, id % 2 = 0 AS flag FROM range(6))"
    )
    for condition in (condition for each in TYPES.values() for condition in each[2:]):
        (expected,) = lake.sql(f"SELECT count(*) FROM lake.t WHERE {condition}")[0]
        quoted = condition.replace("'", "\\'")
        found = lake.sql(f"CALL lake.system.forget('t', '{quoted}')")
        assert [row[4] for row in found if row[0] == "table"] == [expected] and 0 < expected < 6, condition


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
    assert rows(lake, "lake.t") == [0, 1, 2]


def test_what_was_computed_from_forgotten_values_is_gone_too(lake):
    """Values of a generated column, which partitions the table, with bounds, statistics and changes made of them."""
    name = f"{lake.name}.g"
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, mail STRING, host STRING GENERATED ALWAYS AS (upper(mail))) "
        "PARTITIONED BY (host) TBLPROPERTIES ('lakelog.bloom-filter.columns' = 'mail')"
    )
    lake.sql(f"INSERT INTO {name} (id, mail) VALUES (1, 'b'), (2, 'zqxj@home')")
    lake.sql(f"INSERT INTO {name} (id, mail) VALUES (3, 'c'), (4, 'zqxj@work')")
    lake.sql(f"UPDATE {name} SET mail = 'zqxj@moved' WHERE id = 4")
    lake.sql("CALL lake.system.compute_statistics('g')")
    lake.sql("CALL lake.system.forget('g', 'mail LIKE ''zqxj%''', dry_run => false)")
    assert lake.sorted(f"SELECT * FROM {name}") == [(1, "b", "B"), (3, "c", "C")]
    for file in Path(lake.catalog.warehouse).rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(each in data for each in (b"zqxj", b"ZQXJ")), file
            if file.suffix == ".parquet":
                assert "zqxj" not in str(pq.read_table(file).to_pydict()).lower(), file
