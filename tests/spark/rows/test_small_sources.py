"""MERGE of few rows: the same rows as by Spark's own join, without the table's rows being moved."""

from __future__ import annotations

import pytest
from tests.spark.sql.rows import MODES, in_mode

pytestmark = pytest.mark.adapter
in_both_modes = pytest.mark.parametrize("mode", MODES)

ROWS = "VALUES (1, 1.5, 'a'), (2, 2.5, 'b'), (9, 9.5, 'i'), (NULL, 0.5, 'n'), (21, 1.0, 'x'), (22, 1.0, 'y')"
SOURCES = {
    "values": f"(SELECT * FROM {ROWS} AS v(id, d, w))",
    "cached": "kept",
    "lakelog": "lake.s",
    "own": "(SELECT id * 3 AS id, 1.5 AS d, v AS w FROM {table} WHERE id < 12)",
}
CONDITIONS = {
    "some of a key": "t.id = s.id AND t.v <> s.w AND s.d < 9",
    "of the table alone": "t.id = s.id AND t.id > 1",
    "null is null": "t.id <=> s.id",
    "computed": "t.id + 1 = s.id AND lower(t.v) <= s.w",
}
CLAUSES = {
    "update, insert": "WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.w)",
    "delete, insert some": (
        "WHEN MATCHED AND s.d < 2 THEN DELETE WHEN NOT MATCHED AND s.id > 10 THEN INSERT (id, v) VALUES (s.id, s.w)"
    ),
    "all": (
        "WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new') "
        "WHEN NOT MATCHED BY SOURCE AND t.id % 5 = 0 THEN DELETE"
    ),
}
CASES = [
    ("copy-on-write", "values", "null is null", "all"),
    ("merge-on-read", "lakelog", "some of a key", "update, insert"),
    ("copy-on-write", "own", "of the table alone", "delete, insert some"),
    ("merge-on-read", "cached", "computed", "all"),
]


def merged(lake, table, mode, merge):
    """Return the rows that a MERGE leaves of the same table, and what is known of them."""
    lake.sql(
        f"CREATE OR REPLACE TABLE {table} {in_mode(mode)} AS "
        "SELECT IF(id = 7, NULL, id) AS id, concat('v', id) AS v FROM range(0, 20, 1, 3) WHERE id <> 9"
    )
    version, first = lake.sql(f"SELECT max(_version), min(_row_id) FROM {table}")[0]
    lake.sql(merge.format(table=table))
    rows = lake.sorted(
        f"SELECT id, v, _version - {version}, IF(_row_id < {first} + 19, _row_id - {first}, -1), _row_id FROM {table}"
    )
    assert len({row[-1] for row in rows} - {None}) == len(rows)
    return [row[:-1] for row in rows]


@pytest.fixture
def by_sparks_join(lake):
    """Runs something with Spark's own join."""

    def run(work):
        lake.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        try:
            return work()
        finally:
            lake.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")

    return run


def plan_of(lake, statement):
    return lake.sql(f"EXPLAIN {statement}")[0][0].partition("Subqueries")[0]


def last_plan(lake):
    """Return how the last statement that changed rows was carried out, without what it began with."""
    session = lake.spark._jsparkSession
    session.sparkContext().listenerBus().waitUntilEmpty()
    executions = session.sharedState().statusStore().executionsList()
    plans = [executions.apply(i).physicalPlanDescription() for i in range(executions.size())]
    last = [plan for plan in plans if plan and ("ReplaceData" in plan or "WriteDelta" in plan)][-1]
    return last.partition("== Initial Plan ==")[0].partition("\n\n")[0]


def test_a_small_source_gives_the_rows_of_sparks_join(lake, by_sparks_join):
    lake.sql(f"CREATE TABLE lake.s AS SELECT * FROM {ROWS} AS v(id, d, w)")
    lake.spark.sql(f"CACHE TABLE kept AS SELECT * FROM {ROWS} AS v(id, d, w)")
    try:
        for mode, source, condition, clauses in CASES:
            merge = (
                f"MERGE INTO {{table}} AS t USING {SOURCES[source]} AS s "
                f"ON {CONDITIONS[condition]} {CLAUSES[clauses]}"
            )
            found = merged(lake, "lake.t", mode, merge)
            assert found == by_sparks_join(lambda m=mode, merge=merge: merged(lake, "lake.u", m, merge)), (
                merge
            )
            plan = plan_of(lake, merge.format(table="lake.t"))
            assert "BroadcastHashJoin" in plan and "SortMergeJoin" not in plan, plan
    finally:
        lake.spark.sql("UNCACHE TABLE kept")


@in_both_modes
def test_rows_that_match_twice_are_reported_wherever_they_are_joined(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id FROM range(0, 10, 1, 1)")
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        lake.sql(
            "MERGE INTO lake.t USING (VALUES (1L), (1L), (99L) AS s(id)) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
    lake.sql(
        "MERGE INTO lake.t USING (VALUES (1L), (1L), (99L) AS s(id)) ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY SOURCE AND t.id > 7 THEN DELETE"
    )
    assert lake.sorted("SELECT id FROM lake.t") == [*((id,) for id in range(8)), (99,)]


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT max(id) AS id FROM lake.s GROUP BY id)",
        "(SELECT id FROM lake.s WHERE id IN (SELECT id FROM lake.s))",
        "(SELECT id, double(id) AS d FROM lake.s) AS s ON t.id = s.id AND double(t.id) = s.d --",
    ],
)
def test_what_could_be_dear_or_cannot_be_compared_is_joined_by_spark(lake, source):
    lake.sql(f"CREATE TABLE lake.t {in_mode('copy-on-write')} AS SELECT id FROM range(0, 10, 1, 1)")
    lake.sql("CREATE TABLE lake.s AS SELECT id FROM range(5, 15, 1, 1)")
    merge = (
        f"MERGE INTO lake.t USING {source} AS s ON t.id = s.id\n"
        "WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert "FullOuter" in plan_of(lake, merge)


def test_what_may_be_others_when_it_is_read_again_is_joined_by_spark(lake, tmp_path):
    lake.sql(f"CREATE TABLE lake.t {in_mode('merge-on-read')} AS SELECT id FROM range(0, 10, 1, 1)")
    lake.sql("CREATE TABLE lake.s AS SELECT id FROM range(5, 15, 1, 1)")
    lake.spark.udf.register("called", lambda id: id, "bigint")
    lake.spark.sql("CACHE LAZY TABLE by_call AS SELECT called(id) AS id FROM range(9)")
    lake.spark.sql("CACHE LAZY TABLE any_three AS SELECT id FROM range(9) LIMIT 3")
    lake.spark.sql(
        "CREATE TABLE spark_catalog.default.by_day (id BIGINT, k INT) USING parquet PARTITIONED BY (k) "
        f"LOCATION '{tmp_path / 'by_day'}'"
    )
    merge = (
        "MERGE INTO lake.t USING {} AS s ON t.id = s.id\n"
        "WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    try:
        for source in [
            "(SELECT called(id) AS id FROM lake.s)",
            "by_call",
            "any_three",
            "spark_catalog.default.by_day",
        ]:
            plan = plan_of(lake, merge.format(source))
            assert "RightOuter" in plan and "LeftAnti" not in plan, plan
        assert "LeftAnti" in plan_of(lake, merge.format("lake.s"))
    finally:
        lake.spark.sql("UNCACHE TABLE by_call")
        lake.spark.sql("UNCACHE TABLE any_three")
        lake.spark.sql("DROP TABLE spark_catalog.default.by_day")
        lake.spark.sql("DROP TEMPORARY FUNCTION called")


@in_both_modes
def test_sorted_and_partitioned_tables_keep_their_layout(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t PARTITIONED BY (k) {in_mode(mode)} AS SELECT id, id % 3 AS k FROM range(0, 9, 1, 1)"
    )
    lake.sql(
        "MERGE INTO lake.t USING (VALUES (1L, 7L), (4L, 7L), (50L, 8L) AS s(id, k)) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *"
    )
    assert lake.sorted("SELECT * FROM lake.t WHERE k > 2") == [(1, 7), (4, 7), (50, 8)]
    assert lake.sql("SELECT count(*), count(DISTINCT _file) FROM lake.t WHERE k = 7") == [(2, 1)]
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t WHERE k < 3") == [(7, 36 - 5)]


@pytest.mark.parametrize("target, files", [(8192, 5), (100_000_000, 2)])
def test_large_files_that_are_written_anew_keep_their_rows_and_small_ones_meet(lake, target, files):
    lake.sql(
        "CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.merge.mode' = 'copy-on-write', "
        f"'lakelog.write.target-file-size-bytes' = '{target}') AS SELECT id, id AS v FROM range(0, 400, 1, 4)"
    )
    lake.sql(
        "MERGE INTO lake.t USING (VALUES (5L), (106L), (206L), (306L), (900L), (901L) AS s(id)) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)"
    )
    assert lake.catalog.load_table("t").file_count <= files
    if target == 8192:
        # Spark may read several files in one task, but does not part the rows of one.
        assert lake.sql("SELECT count(DISTINCT _file) FROM lake.t GROUP BY id DIV 100") == [(1,)] * 5
    assert lake.sql("SELECT count(*), sum(_row_id), sum(v) FROM lake.t WHERE id < 400") == [
        (400, 399 * 200, 399 * 200 - 5 - 106 - 206 - 306 - 4)
    ]


@in_both_modes
def test_what_the_condition_wants_of_the_table_alone_chooses_files(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t PARTITIONED BY (k) {in_mode(mode)} AS "
        "SELECT * FROM VALUES ('n', '1'), ('n', '2'), ('w', 'one') AS v(k, v)"
    )
    merge = (
        "MERGE INTO lake.t USING (VALUES (1), (3) AS s(id)) ON t.k = 'n' AND CAST(t.v AS INT) = s.id "
        "WHEN MATCHED THEN UPDATE SET v = '10' WHEN NOT MATCHED THEN INSERT (k, v) VALUES ('n', s.id)"
    )
    scans = [line for line in plan_of(lake, merge).splitlines() if "BatchScan" in line]
    assert len(scans) > 1 and all("filters: k" in scan for scan in scans), scans
    lake.sql(merge)
    assert lake.sorted("SELECT k, v FROM lake.t") == [("n", "10"), ("n", "2"), ("n", "3"), ("w", "one")]


@in_both_modes
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_source_is_read_once_and_no_broadcast_waits_for_the_table(lake, mode, adaptive):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id FROM range(0, 10, 1, 2)")
    lake.sql("CREATE TABLE lake.s AS SELECT id FROM range(5, 15, 1, 1)")
    lake.spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    before = lake.spark.conf.get("spark.sql.ui.explainMode")
    lake.spark.conf.set("spark.sql.ui.explainMode", "formatted")
    try:
        lake.sql(
            "MERGE INTO lake.t USING lake.s ON t.id = s.id "
            "WHEN MATCHED AND t.id < 8 THEN UPDATE SET id = -s.id WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
    finally:
        lake.spark.conf.unset("spark.sql.adaptive.enabled")
        lake.spark.conf.set("spark.sql.ui.explainMode", before)
    assert {id for (id,) in lake.sql("SELECT id FROM lake.t")} == {*range(-7, -4), *range(5), *range(10, 15)}
    plan = last_plan(lake)
    assert "ShuffledHashJoin LeftAnti" in plan, plan
    assert plan.count("ReusedExchange (") == 2, plan
