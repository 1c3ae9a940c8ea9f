"""CALL lake.system.maintain: what is due is done by jobs, a step of each table at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from tests.spark.sessions import descriptions_of_jobs, last_job

from lakelog.catalog import engine

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def filled(lake, name, files=9, **properties):
    """A table of small files, from Python."""
    table = lake.catalog.create_table(name, SCHEMA, properties=properties)
    for id in range(files):
        table = table.append(pa.table({"id": [id], "name": [f"n{id}"]}, schema=SCHEMA))
    return table


def maintained(lake, arguments=""):
    rows = lake.frame(f"CALL lake.system.maintain({arguments})").collect()
    return {row.name: row for row in rows}


def test_it_compacts_by_jobs_and_then_nothing_is_due(lake):
    lake.sql("CREATE NAMESPACE lake.shop")
    table = filled(lake, "shop.orders")
    few = filled(lake, "shop.few", files=7)
    off = filled(lake, "shop.off", **{"lakelog.maintenance": "off"})
    last_job_before = last_job(lake.spark)
    planned = maintained(lake, "namespace => 'shop', dry_run => true")
    assert planned["`shop`.`orders`"].rewritten_files == 9 and table.refresh().file_count == 9
    found = maintained(lake, "namespace => 'shop'")
    row = found["`shop`.`orders`"]
    assert (row.rewritten_files, row.added_files, row.is_left, row.error) == (9, 1, False, None)
    assert row.rewritten_bytes == planned["`shop`.`orders`"].rewritten_bytes
    assert found["`shop`.`few`"].rewritten_files == 0, "fewer than eight of one size wait for others"
    assert found["`shop`.`off`"].note == "lakelog.maintenance is off"
    assert any(
        "lakelog compaction of" in text and "9 files" in text
        for text in descriptions_of_jobs(lake.spark, after=last_job_before)
    )
    assert [each_table.refresh().file_count for each_table in (table, few, off)] == [1, 7, 9]
    assert lake.sql("SELECT count(*), sum(id) FROM lake.shop.orders") == [(9, 36)]
    again = maintained(lake, "namespace => 'shop'")
    assert {row.rewritten_files for row in again.values()} == {0}


def test_a_limit_stops_it_and_the_next_call_goes_on(lake):
    for name in ("a", "b"):
        filled(lake, name)
    first = maintained(lake, "limit_bytes => 1")
    assert sorted(row.rewritten_files for row in first.values()) == [0, 9]
    assert all(row.is_left for row in first.values())
    second = maintained(lake, "limit_bytes => 1000000000")
    assert sorted(row.rewritten_files for row in second.values()) == [0, 9]
    assert not any(row.is_left for row in second.values())
    filled(lake, "c")
    third = maintained(lake, "limit_time => INTERVAL '106751991' DAY")
    assert (third["`c`"].rewritten_files, third["`c`"].is_left) == (9, False), (
        "it is the longest limit there is"
    )
    for wrong in ("limit_bytes => 0", "limit_time => INTERVAL '0' SECOND"):
        with pytest.raises(AnalysisException, match="limit"):
            maintained(lake, wrong)


def test_a_table_that_fails_hides_no_other(lake):
    lake.sql("CREATE NAMESPACE lake.shop")
    bad = filled(lake, "shop.bad", **{"lakelog.maintenance.keep-for": "1d"})
    lake.catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "2d"})
    broken, good = filled(lake, "shop.broken"), filled(lake, "good")
    path = broken.plan()["path"][0].as_py()
    broken.table_head.tracked.store.delete([f"{broken.table_head.tracked.prefix}/{path}"])
    found = maintained(lake)
    assert "shorter than" in found["`shop`.`bad`"].error and bad.refresh().file_count == 9
    assert found["`shop`.`broken`"].error is not None and found["`good`"].error is None
    assert good.refresh().file_count == 1


def test_statistics_that_were_computed_once_are_computed_anew_when_a_tenth_is_new(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, id % 10 AS kind FROM range(100)")
    lake.sql("CREATE TABLE lake.without AS SELECT id FROM range(100)")
    lake.sql("CALL lake.system.compute_statistics('t')")
    lake.sql("INSERT INTO lake.t SELECT 1000 + id, id FROM range(9)")
    assert maintained(lake, "'t'")["`t`"].statistics == 0
    lake.sql("INSERT INTO lake.t VALUES (5000, 77)")
    assert maintained(lake, "'t', dry_run => true")["`t`"].statistics == 2
    found = maintained(lake)
    assert (found["`t`"].statistics, found["`without`"].statistics) == (2, 0)
    known_estimates = engine.estimates(lake.catalog.load_table("t"))
    assert known_estimates is not None and (known_estimates.rows, known_estimates.added_since) == (110, 0)
    assert maintained(lake, "'t'")["`t`"].statistics == 0
