"""A table that Python has clustered: Spark reads, writes, changes and compacts it, and Python clusters it again."""

from __future__ import annotations

from typing import Any


def test_spark_goes_on_with_a_table_that_python_has_clustered(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.t (a BIGINT, b STRING) CLUSTER BY (a, b)")
    for first in (0, 1, 2):
        lake.sql(f"INSERT INTO lake.t SELECT id * 3 + {first}, concat('x', id * 7 % 100) FROM range(1000)")
    table = lake.catalog.load_table("t").cluster()
    assert table.metadata.ranks is not None
    assert tuple(lake.sql("SELECT count(*), sum(a) FROM lake.t")[0]) == (3000, sum(range(3000)))
    lake.sql("INSERT INTO lake.t SELECT id + 3000, 'y' FROM range(10)")
    lake.sql("DELETE FROM lake.t WHERE a = 5")
    lake.sql("CALL lake.system.compact('t')")
    again = table.refresh().cluster()
    rows = again.scan().to_arrow()
    assert sorted(rows["a"].to_pylist()) == [each for each in range(3010) if each != 5]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE a >= 3000 AND b = 'y'")[0][0] == 10
