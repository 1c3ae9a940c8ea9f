"""CLONE and MATERIALIZE: statements of lakelog's own, in Delta's words."""

from __future__ import annotations

import pytest
from pyspark.errors import ParseException
from tests.spark.sessions import descriptions_of_jobs, last_job

pytestmark = pytest.mark.adapter


def ids(lake, table):
    return sorted(row[0] for row in lake.sql(f"SELECT id FROM {table}"))


def test_a_table_is_cloned_changed_and_materialized(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.a (id BIGINT, day DATE) PARTITIONED BY (day)")
    lake.sql("INSERT INTO lake.n.a SELECT id, DATE'2026-01-01' FROM range(4)")
    lake.sql("DELETE FROM lake.n.a WHERE id = 3")
    lake.sql("CREATE TABLE lake.n.b CLONE lake.n.a")
    lake.sql("CREATE TABLE IF NOT EXISTS lake.n.b SHALLOW CLONE lake.n.a")
    lake.sql("CREATE TABLE lake.n.old CLONE lake.n.a VERSION AS OF 2")
    lake.sql("USE lake.n")
    lake.sql("CREATE TABLE `it's` SHALLOW CLONE a TIMESTAMP AS OF current_timestamp()")
    assert [ids(lake, f"lake.n.{name}") for name in ("b", "old", "`it's`")] == [
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2],
    ]
    lake.sql("INSERT INTO lake.n.b VALUES (7, DATE'2026-01-02')")
    lake.sql("UPDATE lake.n.b SET id = 10 WHERE id = 1")
    lake.sql("DELETE FROM lake.n.b WHERE id = 0")
    assert (ids(lake, "lake.n.a"), ids(lake, "lake.n.b")) == ([0, 1, 2], [2, 7, 10])
    last_job_before = last_job(lake.spark)
    lake.sql("ALTER TABLE lake.n.b MATERIALIZE")
    assert any(
        "lakelog materialize of n.b" in text
        for text in descriptions_of_jobs(lake.spark, after=last_job_before)
    )
    clone = lake.catalog.load_table("n.b")
    assert all(path.startswith("data/") for path in clone.plan()["path"].to_pylist())
    assert ids(lake, "lake.n.b") == [2, 7, 10]
    lake.sql("INSERT INTO lake.n.a VALUES (8, DATE'2026-01-03')")
    lake.sql("CREATE TABLE lake.n.some CLONE lake.n.a")
    copied_rows = [
        row[0::5]
        for _ in range(3)
        for row in lake.sql("CALL lake.system.materialize('n.some', limit_bytes => 1)")
    ]
    assert copied_rows == [(1, True), (1, False), (0, False)] and ids(lake, "lake.n.some") == [0, 1, 2, 8]
    (copied_rows,) = lake.sql("CALL lake.system.materialize('n.old')")
    assert (copied_rows[0], copied_rows[3], len(copied_rows[4]), copied_rows[5]) == (1, [], 1, False)
    (made,) = lake.sql("CALL lake.system.clone(source => 'n.a', target => 'n.d')")
    assert made[:2] == (1, 4)


def test_what_is_no_clone_of_lakelogs_is_refused(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.a AS SELECT id FROM range(3)")
    for statement, why in (
        ("CREATE OR REPLACE TABLE lake.n.b CLONE lake.n.a", "drop the one of that name first"),
        ("CREATE TABLE lake.n.b DEEP CLONE lake.n.a", "MATERIALIZE"),
        ("CREATE TABLE lake.n.b CLONE spark_catalog.default.t", "not in the catalog"),
        ("CREATE TABLE lake.n.b CLONE lake.n.a VERSION AS OF", "end of input"),
    ):
        with pytest.raises(ParseException, match=why):
            lake.sql(statement)
    with pytest.raises(Exception, match="there is a table"):
        lake.sql("CREATE TABLE lake.n.a CLONE lake.n.a")
    lake.sql("CALL lake.system.begin_transaction()")
    with pytest.raises(Exception, match="transaction"):
        lake.sql("CREATE TABLE lake.n.c CLONE lake.n.a")
    lake.sql("CALL lake.system.rollback_transaction()")
    assert [row[1] for row in lake.sql("SHOW TABLES IN lake.n")] == ["a"]
