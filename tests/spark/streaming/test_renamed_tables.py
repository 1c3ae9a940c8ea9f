"""Queries over tables that are renamed, and whose name is given to another table, while they run."""

from __future__ import annotations

import pytest


@pytest.fixture
def tables(lake):
    for name in ("s", "t"):
        lake.sql(f"CREATE TABLE lake.{name} (x INT)")
        lake.sql(f"CREATE TABLE lake.{name}_new (x INT)")
    lake.sql("INSERT INTO lake.s VALUES (1)")
    lake.sql("INSERT INTO lake.s_new VALUES (100)")
    return lake


def swap(lake, name):
    catalog = lake.catalog
    catalog.rename_table(name, f"{name}_old")
    catalog.rename_table(f"{name}_new", name)


def values(lake, table):
    return sorted(row[0] for row in lake.sql(f"SELECT * FROM lake.{table}"))


def test_a_query_that_writes_fails_and_writes_to_the_new_table_when_it_is_started_again(tables, streams):
    query = streams.to_table(streams.table("s"), "t")
    query.processAllAvailable()
    swap(tables, "t")
    tables.sql("INSERT INTO lake.s VALUES (2)")
    failure = streams.failure(query)
    # From 4.3 on, Spark looks at the table's id before each batch, and fails by that.
    assert "`t` was renamed to `t_old` since it was loaded" in failure or "TABLE_ID_MISMATCH" in failure
    assert (values(tables, "t_old"), values(tables, "t")) == ([1], [])
    streams.copy(streams.table("s"), "t")
    assert (values(tables, "t_old"), values(tables, "t")) == ([1], [2])


def test_a_query_that_writes_by_place_goes_on(tables, streams):
    place = tables.catalog.load_table("t").location
    tables.spark.catalog.setCurrentCatalog(tables.name)
    try:
        writer = streams.table("s").writeStream.format("lakelog")
        query = streams.kept(writer.option("checkpointLocation", streams.checkpoint("c")).start(place))
        query.processAllAvailable()
        swap(tables, "t")
        tables.sql("INSERT INTO lake.s VALUES (2)")
        query.processAllAvailable()
    finally:
        tables.spark.catalog.setCurrentCatalog("spark_catalog")
    assert (values(tables, "t_old"), values(tables, "t")) == ([1, 2], [])


def test_a_function_for_each_batch_finds_the_table_anew(tables, streams):
    def write(batch, number):
        batch.writeTo(f"{tables.name}.t").append()

    writer = streams.table("s").writeStream.foreachBatch(write)
    query = streams.kept(writer.option("checkpointLocation", streams.checkpoint("c")).start())
    query.processAllAvailable()
    swap(tables, "t")
    tables.sql("INSERT INTO lake.s VALUES (2)")
    query.processAllAvailable()
    assert (values(tables, "t_old"), values(tables, "t")) == ([1], [2])


def test_a_query_that_reads_goes_on_with_its_table_until_it_is_started_again(tables, streams):
    query = streams.to_table(streams.table("s"), "t")
    query.processAllAvailable()
    swap(tables, "s")
    tables.sql("INSERT INTO lake.s VALUES (101)")
    tables.sql("INSERT INTO lake.s_old VALUES (2)")
    query.processAllAvailable()
    assert values(tables, "t") == [1, 2]
    query.stop()
    again = streams.to_table(streams.table("s"), "t")
    assert "the checkpoint is of another table" in streams.failure(again)
    assert values(tables, "t") == [1, 2]
