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
def test_rows_that_match_twice_are_told_wherever_they_are_joined(lake, mode):
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
