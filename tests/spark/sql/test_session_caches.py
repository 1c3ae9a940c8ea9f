"""Cached tables of lakelog: tables with several names, and the rows that statements and frames see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from tests.spark.conftest import Place
from tests.spark.session_catalog import Shared, shared_database

pytestmark = pytest.mark.adapter


@pytest.fixture
def shared(spark, python, tmp_path) -> Iterator[Shared]:
    with shared_database(spark, tmp_path, python) as database:
        yield database
        database.spark.catalog.clearCache()


@pytest.mark.parametrize("cached, catalog", [("spark_catalog", "lake"), ("lake", "spark_catalog")])
def test_what_is_cached_by_one_name_follows_writes_by_the_other(shared, cached, catalog):
    shared.sql("CREATE TABLE t (id INT) USING lakelog")
    shared.sql("INSERT INTO t VALUES (1)")
    cached, text = (f"{name}.{shared.database}.t" for name in (cached, catalog))
    shared.spark.sql(f"CACHE TABLE {cached}")

    def seen_numbers() -> list[int]:
        return sorted(row.id for row in shared.spark.table(cached).collect())

    assert seen_numbers() == [1]
    shared.spark.sql(f"INSERT INTO {text} VALUES (2)")
    assert seen_numbers() == [1, 2]
    shared.spark.sql(f"DELETE FROM {text} WHERE id = 1")
    assert seen_numbers() == [2]
    shared.spark.sql(f"CALL {catalog}.system.begin_transaction()")
    shared.spark.sql(f"INSERT INTO {text} VALUES (3)")
    assert seen_numbers() == [2], "no other session sees what is not committed"
    shared.spark.sql(f"CALL {catalog}.system.commit_transaction()")
    assert seen_numbers() == [2, 3]
    shared.spark.sql(f"ALTER TABLE {text} ADD COLUMN more INT DEFAULT 7")
    assert shared.spark.table(cached).columns == ["id", "more"]
    shared.spark.sql(f"DROP TABLE {text}")
    assert not shared.spark.catalog.tableExists(cached)


@pytest.mark.parametrize("by_place", [False, True])
def test_what_is_cached_by_name_or_place_follows_writes_by_the_other(shared, by_place):
    place = str(shared.folder / "t")
    shared.sql(f"CREATE TABLE t USING lakelog LOCATION '{place}' AS SELECT 1 AS id")
    cached_text, text = f"spark_catalog.{shared.database}.t", f"lakelog.`{place}`"
    if by_place:
        cached_text, text = text, cached_text
    shared.spark.sql(f"CACHE TABLE {cached_text}")
    assert shared.spark.table(cached_text).count() == 1
    shared.spark.sql(f"INSERT INTO {text} VALUES (2)")
    assert shared.spark.table(cached_text).count() == 2
    frame = shared.spark.createDataFrame([(3,)], "id int")
    frame.write.format("lakelog").option("catalog", "spark_catalog").mode("append").save(place)
    assert shared.spark.table(cached_text).count() == 3


def merged(place: Place, source: DataFrame) -> None:
    merge = source.alias("s").mergeInto(f"{place.name}.a.t", expr("t.k = s.k"))
    merge.whenMatched().update({"v": expr("concat(s.v, 1)")}).whenNotMatched().insertAll().merge()


USING = "MERGE INTO lake.a.t USING caches_view s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'm' "
SELF = "MERGE INTO lake.a.t USING lake.a.t s ON t.k = s.k + 1 WHEN MATCHED THEN UPDATE SET v = s.v "
INSERTS = "WHEN NOT MATCHED THEN INSERT *"
INSERT = "INSERT INTO lake.a.t VALUES (5, 'e', 'x')"
UPDATE = "UPDATE lake.a.t SET v = 'u' WHERE k IN (SELECT k FROM caches_view)"
DELETE = "DELETE FROM lake.a.t WHERE k IN (SELECT k FROM caches_view)"
AGAIN = "INSERT INTO lake.a.t SELECT k + 10, v, p FROM caches_view"
OVERWRITE = "INSERT OVERWRITE lake.a.t SELECT k + 10, v, p FROM caches_view"

CHANGES = (
    "ALTER TABLE lake.a.t ADD COLUMN w INT",
    "ALTER TABLE lake.a.t DROP COLUMN v",
    "ALTER TABLE lake.a.t ALTER COLUMN k TYPE BIGINT",
    "again",
)
SCENARIOS = [
    (INSERT, "frame", "DELETE FROM lake.a.t WHERE p = 'x'"),
    *((statement,) for statement in (USING, USING + INSERTS, SELF, SELF + INSERTS, UPDATE, DELETE)),
    *((statement,) for statement in (AGAIN, OVERWRITE, "merge")),
    *((change, "frame", AGAIN, "merge", UPDATE) for change in CHANGES),
]
"""What is done one after the other; then `frame`, `view` and the table are looked at."""

QUICK = {("frame", 0), ("table", 4), ("frame", 11)}
CASES = [
    (cached_name, number) for cached_name in ("nothing", "frame", "table") for number in range(len(SCENARIOS))
]


@pytest.mark.parametrize(
    "cases",
    [
        [case for case in CASES if case in QUICK],
        pytest.param([case for case in CASES if case not in QUICK], marks=pytest.mark.slow),
    ],
    ids=["quick", "rest"],
)
def test_caches_frames_and_views_of_a_table_are_what_they_are_of_sparks_own(lake, memory_rows, cases):
    def outcomes(place: Place, cached: str, number: int) -> list[Any]:
        create = "CREATE TABLE lake.a.t (k INT, v STRING, p STRING) PARTITIONED BY (p)"
        place.sql(create)
        place.sql("INSERT INTO lake.a.t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
        frame = place.frame("SELECT * FROM lake.a.t WHERE k < 3")
        frame.createOrReplaceTempView("caches_view")
        if cached == "frame":
            assert frame.cache().count() == 2
        elif cached == "table":
            place.sql("CACHE TABLE lake.a.t")

        def again() -> None:
            place.sql("DROP TABLE lake.a.t")
            place.sql(create)

        known: dict[str, Callable[[], Any]] = {
            "frame": lambda: sorted(map(tuple, frame.collect()), key=repr),
            "view": lambda: place.sorted("SELECT * FROM caches_view"),
            "merge": lambda: merged(place, frame),
            "again": again,
        }
        found = []
        for step in (*SCENARIOS[number], "frame", "view", "SELECT * FROM lake.a.t"):
            try:
                found.append((step, known[step]() if step in known else place.sorted(step)))
            except PySparkException as error:
                # Spark reads a frame's table anew before it resolves columns, but only for catalogs with transactions.
                refusal = "refused" if step == "merge" else error.getCondition() or str(error)
                found.append((step, refusal))
        place.spark.catalog.clearCache()
        place.sql("DROP TABLE lake.a.t")
        return found

    for place in (lake, memory_rows):
        place.sql("CREATE NAMESPACE lake.a")
    for cached, number in cases:
        own, theirs = (outcomes(place, cached, number) for place in (lake, memory_rows))
        assert own == theirs, (cached, SCENARIOS[number])
