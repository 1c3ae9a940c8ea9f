"""What is cached of a table of lakelog's that has several names: in two catalogs, or by its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.spark.session_catalog import Shared, shared_database

pytestmark = pytest.mark.adapter


@pytest.fixture
def shared(spark, python, tmp_path) -> Iterator[Shared]:
    with shared_database(spark, tmp_path, python) as made:
        yield made
        made.spark.catalog.clearCache()


@pytest.mark.parametrize("cached, catalog", [("spark_catalog", "lake"), ("lake", "spark_catalog")])
def test_what_is_cached_by_one_name_follows_writes_by_the_other(shared, cached, catalog):
    shared.sql("CREATE TABLE t (id INT) USING lakelog")
    shared.sql("INSERT INTO t VALUES (1)")
    cached, written = (f"{name}.{shared.database}.t" for name in (cached, catalog))
    shared.spark.sql(f"CACHE TABLE {cached}")

    def seen() -> list[int]:
        return sorted(row.id for row in shared.spark.table(cached).collect())

    assert seen() == [1]
    shared.spark.sql(f"INSERT INTO {written} VALUES (2)")
    assert seen() == [1, 2]
    shared.spark.sql(f"DELETE FROM {written} WHERE id = 1")
    assert seen() == [2]
    shared.spark.sql(f"CALL {catalog}.system.begin_transaction()")
    shared.spark.sql(f"INSERT INTO {written} VALUES (3)")
    assert seen() == [2], "no other session sees what is not committed"
    shared.spark.sql(f"CALL {catalog}.system.commit_transaction()")
    assert seen() == [2, 3]
    shared.spark.sql(f"ALTER TABLE {written} ADD COLUMN more INT DEFAULT 7")
    assert shared.spark.table(cached).columns == ["id", "more"]
    shared.spark.sql(f"DROP TABLE {written}")
    assert not shared.spark.catalog.tableExists(cached)


@pytest.mark.parametrize("by_place", [False, True])
def test_what_is_cached_by_name_or_place_follows_writes_by_the_other(shared, by_place):
    place = str(shared.folder / "t")
    shared.sql(f"CREATE TABLE t USING lakelog LOCATION '{place}' AS SELECT 1 AS id")
    cached, written = f"spark_catalog.{shared.database}.t", f"lakelog.`{place}`"
    if by_place:
        cached, written = written, cached
    shared.spark.sql(f"CACHE TABLE {cached}")
    assert shared.spark.table(cached).count() == 1
    shared.spark.sql(f"INSERT INTO {written} VALUES (2)")
    assert shared.spark.table(cached).count() == 2
    frame = shared.spark.createDataFrame([(3,)], "id int")
    frame.write.format("lakelog").option("catalog", "spark_catalog").mode("append").save(place)
    assert shared.spark.table(cached).count() == 3
