"""Spark's page of statements shows the rows that a write has changed, and the cost of its commit."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.adapter


def metrics(lake, pattern: str = "^rows ") -> dict[str, int]:
    """Return the numbers that the newest statement shows by such descriptions, those of rows by default."""
    store = lake.spark._jsparkSession.sharedState().statusStore()
    lake.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    executions = store.executionsList()
    found: dict[str, int] = {}
    for at in reversed(range(executions.length())):
        execution = executions.apply(at)
        values = store.executionMetrics(execution.executionId())
        shown_metrics = execution.metrics()
        for each in (shown_metrics.apply(number) for number in range(shown_metrics.length())):
            if re.search(pattern, each.name()) and values.contains(each.accumulatorId()):
                found[each.name()] = int(values.apply(each.accumulatorId()).replace(",", ""))
        if found:
            return found
    return found


def counted(**numbers: int) -> dict[str, int]:
    """Return all numbers of a write; those that are not given are 0."""
    names = ("written", "inserted", "updated", "deleted", "copied")
    return {f"rows {name}": numbers.get(name, 0) for name in names}


def test_a_write_shows_how_many_rows_it_has_written(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(3)")
    assert metrics(lake) == {"rows written": 3}
    lake.sql("INSERT INTO lake.t SELECT id FROM range(10, 15)")
    assert metrics(lake) == counted(written=5, inserted=5)
    lake.sql("INSERT OVERWRITE lake.t SELECT 1L")
    assert metrics(lake) == counted(written=1, inserted=1, deleted=8)


def test_a_change_of_rows_shows_what_became_of_them(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, 'a' AS what FROM range(10)")
    lake.sql("DELETE FROM lake.t WHERE id IN (1, 2, 3)")
    assert metrics(lake) == counted(deleted=3)
    lake.sql("UPDATE lake.t SET what = 'b' WHERE id IN (3, 4, 5)")
    assert metrics(lake) == counted(written=2, updated=2)
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT id FROM range(7, 12)) AS s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET what = 'c' "
        "WHEN NOT MATCHED THEN INSERT (id, what) VALUES (s.id, 'd')"
    )
    assert metrics(lake) == counted(written=4, inserted=2, updated=2, deleted=1)


def test_files_that_are_written_anew_show_which_rows_were_only_copied(lake):
    lake.sql(
        "CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.update.mode' = 'copy-on-write') "
        "AS SELECT /*+ COALESCE(1) */ id, 'a' AS what FROM range(10)"
    )
    lake.sql("UPDATE lake.t SET what = 'b' WHERE id = 3")
    assert metrics(lake) == counted(written=10, updated=1, copied=9)


def test_a_write_shows_what_its_commit_took(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")
    for statement in ("INSERT INTO lake.t VALUES (11)", "DELETE FROM lake.t WHERE id = 3"):
        lake.sql(statement)
        found_metrics = metrics(lake, "the commit")
        assert found_metrics["attempts of the commit"] == 1
        assert (
            found_metrics["requests of the commit"] >= 1
            and found_metrics["bytes written by the commit"] > 100
        )
        still = ("times that the commit was rebased over others", "waits of the commit")
        assert [found_metrics[name] for name in still] == [0, 0]
        assert {"time that the commit waited (ms)", "bytes read by the commit"} <= found_metrics.keys()
