"""Joins and aggregates of tables that are partitioned alike move no rows, and give what they give when they do."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.adapter

ENABLED = "spark.sql.sources.v2.bucketing.enabled"
PARTIAL = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled"
SUBSET = "spark.sql.sources.v2.bucketing.allowKeysSubsetOfPartitionKeys.enabled"
SHUFFLE_ONE = "spark.sql.sources.v2.bucketing.shuffle.enabled"


@contextmanager
def settings(spark, **values):
    """Set what is given for the time of a block; other settings of joins are such that Spark would rather shuffle."""
    wanted = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
        ENABLED: "true",
    }
    wanted |= {key: str(value) for key, value in values.items()}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in wanted:
            spark.conf.unset(key)


def exchanges(frame):
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return plan.count("Exchange hashpartitioning")


def same_without(lake, query, expected, **more):
    """Run a query with the setting and without; give the rows."""
    with settings(lake.spark, **more):
        frame = lake.frame(query)
        assert exchanges(frame) == expected, frame._jdf.queryExecution().executedPlan().toString()
        rows = sorted(map(tuple, frame.collect()), key=repr)
    with settings(lake.spark, **{ENABLED: "false"}):
        plain = lake.frame(query)
        assert sorted(map(tuple, plain.collect()), key=repr) == rows
    return rows


def tables(lake, left, right, columns="id BIGINT, k STRING, ts TIMESTAMP, d DECIMAL(10, 2)"):
    lake.sql("CREATE NAMESPACE lake.a")
    for name, spec in (("l", left), ("r", right)):
        lake.sql(f"CREATE TABLE lake.a.{name} ({columns}, v STRING) PARTITIONED BY ({spec})")
        # Two files in many a partition, rows without a partner, and NULLs.
        for part in range(2):
            lake.sql(
                f"INSERT INTO lake.a.{name} SELECT nullif(id, 7), nullif(concat('k', id % 5), 'k4'), "
                f"timestamp_seconds(id * 7200 + 1700000000), id % 6 + 0.5, '{name}{part}' "
                f"FROM range({part * 10}, {30 + part * 10}, {2 if name == 'l' else 3})"
            )


@pytest.mark.parametrize(
    ("spec", "on"),
    [
        ("bucket(4, id)", "l.id = r.id"),
        ("k", "l.k = r.k"),
        ("days(ts)", "l.ts = r.ts"),
        pytest.param("months(ts)", "l.ts = r.ts", marks=pytest.mark.slow),
        pytest.param("years(ts)", "l.ts = r.ts", marks=pytest.mark.slow),
        pytest.param("hours(ts)", "l.ts = r.ts", marks=pytest.mark.slow),
        pytest.param("d", "l.d = r.d", marks=pytest.mark.slow),
        ("k, bucket(3, id)", "l.k = r.k AND l.id = r.id"),
    ],
)
def test_tables_that_are_partitioned_alike_are_joined_where_they_lie(lake, spec, on):
    tables(lake, spec, spec)
    rows = same_without(lake, f"SELECT l.id, l.k, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON {on}", 0)
    assert rows
    same_without(lake, f"SELECT l.id, l.k, l.v, r.v FROM lake.a.l l FULL JOIN lake.a.r r ON {on}", 0)
    same_without(lake, f"SELECT l.id, l.v FROM lake.a.l l LEFT ANTI JOIN lake.a.r r ON {on}", 0)


def test_other_partitionings_are_joined_by_moving_rows(lake):
    tables(lake, "bucket(4, id)", "bucket(6, id)")
    same_without(lake, "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.id = r.id", 2)
    lake.sql("ALTER TABLE lake.a.l REPLACE PARTITION FIELD bucket(4, id) WITH truncate(2, k)")
    lake.sql("ALTER TABLE lake.a.r REPLACE PARTITION FIELD bucket(6, id) WITH truncate(2, k)")
    same_without(lake, "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.k = r.k", 2)


def test_grouping_by_the_partition_moves_no_rows(lake):
    tables(lake, "k", "k")
    rows = same_without(lake, "SELECT k, count(*), sum(id) FROM lake.a.l GROUP BY k", 0)
    assert len(rows) == 5


def test_a_setting_that_joins_by_some_of_the_keys_is_obeyed(lake):
    tables(lake, "k, bucket(3, id)", "k, bucket(3, id)")
    query = "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.id = r.id"
    same_without(lake, query, 0, **{SUBSET: "true"})


def test_skewed_partitions_are_split_and_joined_with_copies_of_the_other_side(lake):
    tables(lake, "k", "k")
    for _ in range(4):
        lake.sql("INSERT INTO lake.a.l SELECT id, 'k1', NULL, NULL, 'more' FROM range(100)")
    query = "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.k = r.k"
    assert same_without(lake, query, 0, **{PARTIAL: "true"})
    same_without(
        lake, "SELECT l.id, r.v FROM lake.a.l l LEFT JOIN lake.a.r r ON l.k = r.k", 0, **{PARTIAL: "true"}
    )


def test_files_of_several_partitionings_are_apart_by_what_they_share(lake):
    tables(lake, "k, bucket(4, id)", "k")
    for name in "lr":
        lake.sql(f"ALTER TABLE lake.a.{name} ADD PARTITION FIELD days(ts)")
        lake.sql(f"INSERT INTO lake.a.{name} SELECT id, 'k1', now(), 1.5, 'new' FROM range(10)")
    query = "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.ts = r.ts"
    same_without(lake, query, 2)
    lake.sql("ALTER TABLE lake.a.l DROP PARTITION FIELD k")
    lake.sql("INSERT INTO lake.a.l SELECT id, concat('k', id % 3), now(), 1.5, 'newest' FROM range(10)")
    same_without(lake, "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.k = r.k", 2)


def test_values_that_are_equal_in_different_forms_are_not_distinguished(lake):
    tables(lake, "x", "x", columns="id BIGINT, k STRING, ts TIMESTAMP, x DOUBLE")
    for name in "lr":
        zero = "0.0D" if name == "l" else "-0.0D"
        lake.sql(
            f"INSERT INTO lake.a.{name} VALUES (1, 'a', NULL, {zero}, 'zero'), (2, 'a', NULL, double('NaN'), 'nan')"
        )
    query = "SELECT l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.x = r.x WHERE l.v IN ('zero', 'nan')"
    assert same_without(lake, query, 2) == [("nan", "nan"), ("zero", "zero")]


@pytest.mark.parametrize("spec", ["bucket(4, i)", "i"])
def test_a_widened_column_keeps_its_partitions(lake, spec):
    tables(lake, spec, spec, columns="id BIGINT, k STRING, ts TIMESTAMP, i INT")
    for name in "lr":
        lake.sql(f"ALTER TABLE lake.a.{name} ALTER COLUMN i TYPE BIGINT")
        lake.sql(
            f"INSERT INTO lake.a.{name} VALUES (1, 'a', NULL, 3, 'wide'), (1, 'a', NULL, 5000000000, 'wide')"
        )
    same_without(lake, "SELECT l.i, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.i = r.i", 0)


def test_filters_at_run_time_leave_the_keys_as_they_are(lake):
    tables(lake, "k", "k")
    lake.sql("CREATE TABLE lake.a.dim AS SELECT * FROM VALUES ('k1', 1), ('k2', 2) AS t(k, n)")
    query = (
        "SELECT l.id, l.v, r.v FROM lake.a.l l JOIN lake.a.r r ON l.k = r.k JOIN lake.a.dim d ON l.k = d.k "
        "WHERE d.n = 1"
    )
    with settings(lake.spark, **{"spark.sql.autoBroadcastJoinThreshold": "10485760"}):
        assert "dynamicpruning" in lake.frame(query)._jdf.queryExecution().executedPlan().toString().lower()
    rows = sorted(lake.sql(query), key=repr)
    with settings(lake.spark, **{"spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}):
        assert sorted(lake.sql(query), key=repr) == rows


def test_a_scan_alone_is_packed_as_before(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t SELECT id, concat('k', id) FROM range(40)")
    assert lake.frame("SELECT * FROM lake.t").rdd.getNumPartitions() < 10
    with settings(lake.spark):
        assert lake.frame("SELECT * FROM lake.t").rdd.getNumPartitions() == 40
    assert lake.sql("SELECT count(*), count(DISTINCT k) FROM lake.t") == [(40, 40)]


def test_what_becomes_one_row_is_packed_unless_it_is_grouped_first(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t SELECT id, concat('k', id) FROM range(40)")
    queries = {
        "SELECT sum(length(k)), max(id) FROM lake.t WHERE k <> 'k1'": False,
        "SELECT count(DISTINCT k) + sum(id) FROM lake.t WHERE id <> 1": True,
        "SELECT k, sum(id) FROM lake.t WHERE id <> 1 GROUP BY k": True,
        "SELECT sum(l.id) FROM lake.t l JOIN lake.t r ON l.k = r.k": True,
    }
    for query, is_apart in queries.items():
        with settings(lake.spark):
            frame = lake.frame(query)
            scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
            assert (scan.inputPartitions().length() >= 39) == is_apart, query
            rows = sorted(frame.collect())
        with settings(lake.spark, **{ENABLED: "false"}):
            assert sorted(lake.frame(query).collect()) == rows


def test_one_side_is_shuffled_to_the_other_where_that_is_asked_for(lake):
    tables(lake, "k", "k")
    lake.sql("CREATE TABLE lake.a.plain AS SELECT k, count(*) AS n FROM lake.a.r GROUP BY k")
    query = "SELECT l.id, p.n FROM lake.a.l l JOIN lake.a.plain p ON l.k = p.k"
    same_without(lake, query, 0, **{SHUFFLE_ONE: "true"})
