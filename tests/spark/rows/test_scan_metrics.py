"""Spark's UI and EXPLAIN show the files of a scan, their deleted rows, and the cost of planning."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.internals

FILES = ("files planned", "files left out", "deleted rows in planned files")


def metrics(frame):
    """Run a query, and return what its scan has reported to Spark, as the UI gets it."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    scans = plan.collectLeaves()
    plan = scans.head()
    while plan.nodeName().startswith("AdaptiveSparkPlan"):
        plan = plan.executedPlan().collectLeaves().head()
    found = {}
    every = plan.metrics().values().iterator()
    while every.hasNext():
        metric = every.next()
        if metric.name().isDefined():
            found[metric.name().get()] = metric.value()
    return found


def test_a_scan_says_which_files_it_reads_and_what_planning_cost(lake):
    lake.sql("CREATE TABLE lake.t (id INT, day INT) PARTITIONED BY (day)")
    for day in range(4):
        lake.sql(f"INSERT INTO lake.t SELECT /*+ COALESCE(1) */ id, {day} FROM range(10)")
    lake.sql("DELETE FROM lake.t WHERE id = 3 AND day < 2")
    frame = lake.frame("SELECT id FROM lake.t WHERE day = 1")
    found_metrics = metrics(frame)
    assert [found_metrics[name] for name in FILES] == [1, 3, 1]
    assert {"time of planning (ms)", "requests of planning", "bytes read by planning"} <= set(found_metrics)
    assert len(frame.collect()) == 9
    shown = lake.sql("EXPLAIN SELECT id FROM lake.t WHERE day = 1")[0][0]
    assert "1 of 4 files (left out: 3 by partition)" in shown
    how = ("files left out by partition", "files left out by statistics")
    assert [found_metrics[name] for name in how] == [3, 0]
    found_metrics = metrics(lake.frame("SELECT id FROM lake.t WHERE day > 1 AND id > 100"))
    assert [found_metrics[name] for name in how] == [2, 2]
    found_metrics = metrics(lake.frame("SELECT id FROM lake.t WHERE id > 100"))
    assert [found_metrics[name] for name in how] == [0, 4]
    path = lake.sql("SELECT first(_file) FROM lake.t")[0][0]
    for query, why in ((f"WHERE _file = '{path}'", "by name"), ("LIMIT 1", "by the limit")):
        frame = lake.frame(f"SELECT id FROM lake.t {query}")
        found_metrics = metrics(frame)
        assert [found_metrics[name] for name in (*FILES[:2], *how)] == [1, 3, 0, 0]
        assert f"1 of 4 files (left out: 3 {why})" in lake.sql(f"EXPLAIN SELECT id FROM lake.t {query}")[0][0]
