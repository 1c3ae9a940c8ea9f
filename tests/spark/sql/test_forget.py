"""CALL lake.system.forget: rows are erased by Spark's jobs, and Python only learns counts and entries of files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
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


def forgotten(lake, table, more=""):
    before = last_job(lake.spark)
    answer = lake.sql(f"CALL lake.system.forget('{table}', '{WHERE}'{more})")
    return answer, [text for text in descriptions_of_jobs(lake.spark, after=before) if "forget" in text]


def test_rows_are_forgotten_by_jobs(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    planted(lake, "lake.n.t")
    lake.sql("DROP TABLE lake.n.t")
    planted(lake, "lake.n.t")
    lake.sql("CREATE TABLE lake.n.c CLONE lake.n.t")
    said, jobs = forgotten(lake, "n.t")
    assert {row[0] for row in said} >= {
        "table", "clone", "dropped-table", "lost versions", "out of reach"
    }
    assert "receipt" not in {row[0] for row in said} and any("rows in" in text for text in jobs)
    assert rows(lake, "lake.n.t") == [0, 1, 2, 10, 11, 12, 900]
    # Objects are read for versions and files that nothing knows of; Python reads none of them.
    done, jobs = forgotten(lake, "n.t", ", dry_run => false, reference => 'T-7'")
    texts = " ".join(jobs)
    assert all(each in texts for each in ("without such rows", "objects of", "rows in")), jobs
    assert [row for row in done if row[0] == "left"] == []
    table = next(row for row in done if row[0] == "table")
    assert (table[2], table[4]) == (None, 3), table  # on lines, also marked as deleted
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
    values = [value for file in files for column in pq.read_table(file).columns for value in column.to_pylist()]
    assert "ada" not in values
    again, _ = forgotten(lake, "n.t", ", dry_run => false")
    assert again == []


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
