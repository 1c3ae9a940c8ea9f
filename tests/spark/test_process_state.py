"""What the adapter keeps for the whole process goes with what it is about: see `ProcessState.scala`."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.spark.conftest import Lake

pytestmark = pytest.mark.adapter

HELD = 5


@pytest.fixture
def lake(make_lake) -> Lake:
    lake = make_lake()
    lake.sql("CREATE NAMESPACE lake.a")
    for table in ("t", "u"):
        lake.sql(f"CREATE TABLE lake.a.{table} (x BIGINT)")
    return lake


def kept_number(lake: Lake) -> int:
    """Return of how many statements something is kept after garbage is collected."""
    jvm: Any = lake.spark.sparkContext._jvm
    gc.collect()  # for what Python holds in the JVM
    jvm.java.lang.System.gc()
    return int(jvm.org.apache.spark.sql.lakelog.process.ProcessState.statementCount())


def reach(lake: Lake, most: int) -> int:
    end = time.monotonic() + PATIENCE_S
    while (number := kept_number(lake)) > most and time.monotonic() < end:
        time.sleep(0.2)
    return number


def test_what_is_kept_of_a_statement_goes_with_it(lake):
    before = kept_number(lake)
    frames = [lake.frame("SELECT * FROM lake.a.t JOIN lake.a.u USING (x)") for _ in range(HELD)]
    assert all(frame.collect() == [] for frame in frames)
    assert kept_number(lake) >= HELD
    frames.clear()
    assert reach(lake, before) <= before


def test_many_statements_of_many_catalogs_leave_nothing_behind(lake, make_lake, tmp_path):
    before = kept_number(lake)
    for number in range(HELD):
        other_lake = make_lake(str(tmp_path / str(number)))
        other_lake.sql("CREATE NAMESPACE lake.a")
        other_lake.sql("CREATE TABLE lake.a.t AS SELECT 1L AS x")
        other_lake.sql("SELECT * FROM lake.a.t a JOIN lake.a.t b USING (x)")
    assert reach(lake, before) <= before
