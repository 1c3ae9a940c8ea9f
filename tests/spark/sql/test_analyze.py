"""ANALYZE TABLE: what Spark has for its own catalog only, by the session extension."""

from __future__ import annotations

import pytest
from pyspark.errors import UnsupportedOperationException

from lakelog.catalog import engine

pytestmark = pytest.mark.adapter


def analyzed(lake):
    table = lake.catalog.load_table("a.it's")
    columns = engine.estimates(table).columns if engine.estimates(table) else {}
    return table.version, sorted(table.schema.path_of(id)[0] for id in columns)


def test_columns_are_counted_and_whole_tables_need_not_be(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.`it's` AS SELECT id, id % 10 AS kind, array(id) AS list FROM range(100)")
    version, _ = analyzed(lake)
    lake.sql("ANALYZE TABLE lake.a.`it's` COMPUTE STATISTICS")
    lake.sql("ANALYZE TABLE lake.a.`it's` COMPUTE STATISTICS NOSCAN")
    assert analyzed(lake) == (version, [])
    lake.sql("ANALYZE TABLE lake.a.`it's` COMPUTE STATISTICS FOR COLUMNS kind")
    assert analyzed(lake) == (version + 1, ["kind"])
    lake.sql("ANALYZE TABLE lake.a.`it's` COMPUTE STATISTICS FOR ALL COLUMNS")
    assert analyzed(lake) == (version + 2, ["id", "kind"])
    with pytest.raises(Exception, match="nope"):
        lake.sql("ANALYZE TABLE lake.a.`it's` COMPUTE STATISTICS FOR COLUMNS nope")
    with pytest.raises(UnsupportedOperationException, match="leave PARTITION out"):
        lake.sql("ANALYZE TABLE lake.a.`it's` PARTITION (id = 1) COMPUTE STATISTICS")
    assert analyzed(lake)[0] == version + 2
