"""CALL lake.system.import_table: sources by the name of a table of the session catalog, and footers read by Spark."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from lakelog.catalog import Catalog

NAME = "spark_catalog.default.events"


@pytest.fixture
def events(lake, tmp_path):
    """A partitioned table, one of whose partitions is elsewhere; its texts look like numbers."""
    lake.sql(f"DROP TABLE IF EXISTS {NAME}")
    lake.sql(
        f"CREATE TABLE {NAME} (Id BIGINT, what STRING, day STRING) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{tmp_path}/events'"
    )
    lake.sql(f"INSERT INTO {NAME} VALUES (1, 'a', '01'), (2, 'b', '02'), (3, NULL, NULL)")
    lake.sql(f"ALTER TABLE {NAME} ADD PARTITION (day = '03') LOCATION '{tmp_path}/elsewhere'")
    lake.sql(f"INSERT INTO {NAME} PARTITION (day = '03') VALUES (4, 'd')")
    yield NAME
    lake.sql(f"DROP TABLE {NAME}")


@pytest.mark.adapter
def test_a_table_of_the_session_catalog_comes_in_by_its_name(lake, events):
    query = "SELECT Id, what, day FROM {} ORDER BY Id"
    [(_, versions, added, *_)] = lake.sql(f"CALL lake.system.import_table('{events}', 'parquet', 'events')")
    assert (versions, added) == (1, 4)
    assert lake.sql(query.format("lake.events")) == lake.sql(query.format(events))
    assert lake.sql("SELECT what FROM lake.events WHERE day = '02' AND Id > 1") == [("b",)]
    schema = {field.name: str(field.type) for field in lake.catalog.load_table("events").schema.fields}
    assert schema == {"Id": "long", "what": "string", "day": "string"}
    lake.sql(f"ALTER TABLE {events} ADD COLUMN more INT")
    lake.sql(f"ALTER TABLE {events} DROP PARTITION (day = '01')")
    lake.sql(f"INSERT INTO {events} (Id, what, more, day) VALUES (5, 'e', 7, '04')")
    lake.sql("DELETE FROM lake.events WHERE Id = 2")
    lake.sql("CALL lake.system.import_table('default.events', 'parquet', 'events')")
    assert lake.sql("SELECT Id, what, more, day FROM lake.events ORDER BY Id") == [
        (3, None, None, None),
        (4, "d", None, "03"),
        (5, "e", 7, "04"),
    ]
    with pytest.raises(AnalysisException, match="is not a table of the format delta, but parquet"):
        lake.sql(f"CALL lake.system.import_table('{events}', 'delta', 'other')")
    with pytest.raises(AnalysisException, match="metadata_log_entries"):
        lake.sql("CALL lake.system.import_table('ice.db.events', 'iceberg', 'other')")


def jobs_of(lake, statement: str) -> list[int]:
    """Run a statement; return the jobs of Spark that it took."""
    context, group = lake.spark.sparkContext, f"jobs of {uuid.uuid4()}"
    context.setJobGroup(group, statement)
    try:
        lake.sql(statement)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    return list(context.statusTracker().getJobIdsForGroup(group))


def test_executors_read_the_footers_of_a_new_folder_alone(lake, tmp_path):
    place = f"{tmp_path}/files"
    lake.frame("SELECT id, CAST(id % 3 AS INT) AS n, CAST(id AS STRING) AS s FROM range(100)").repartition(
        5
    ).write.partitionBy("n").parquet(place)
    for source in (place, f"parquet.`{place}`"):
        name = f"t{len(source)}"
        assert jobs_of(lake, f"CALL lake.system.import_table('{source}', 'parquet', '{name}')")
        assert not jobs_of(lake, f"CALL lake.system.import_table('{source}', 'parquet', '{name}')")
        by_python = Catalog(tmp_path / name)
        by_python.import_table(place, "t", format="parquet")
        rows, other_rows = (
            table.scan().to_arrow() for table in (lake.catalog.load_table(name), by_python.load_table("t"))
        )
        assert rows.schema == other_rows.schema and rows.sort_by("id") == other_rows.sort_by("id")
        assert lake.sql(f"SELECT max(s) FROM lake.{name} WHERE n = 1 AND id > 90") == [("97",)]


def test_executors_find_in_footers_what_python_finds(lake, tmp_path):
    """Columns that have a value in no row of a file, and times of the type INT96 in lists."""
    folder, times = tmp_path / "files", pa.array([[1_000]], pa.list_(pa.timestamp("ns")))
    folder.mkdir()
    for name, nulls in (("a", pa.nulls(1)), ("b", pa.array(["x"]))):
        table = pa.table({"id": [1], "what": nulls, "times": times})
        pq.write_table(table, folder / f"{name}.parquet", use_deprecated_int96_timestamps=True)
    lake.sql(f"CALL lake.system.import_table('{folder}', 'parquet', 'odd')")
    by_python = Catalog(tmp_path / "odd")
    by_python.import_table(folder, "t", format="parquet")
    rows, other_rows = (
        table.scan().to_arrow() for table in (lake.catalog.load_table("odd"), by_python.load_table("t"))
    )
    assert rows.schema == other_rows.schema and rows.to_pylist() == other_rows.to_pylist()
    assert lake.sql("SELECT count(*) FROM lake.odd WHERE what IS NULL") == [(1,)]


def test_an_iceberg_table_of_hive_s_metastore_is_found_by_its_metadata(lake, tmp_path):
    """The metastore says in a property where the metadata is; Iceberg itself is not needed for it."""
    origin = Catalog(tmp_path / "origin").create_table("t", pa.schema([("id", pa.int64())]))
    url = origin.append(pa.table({"id": [1, 2]})).export_iceberg().url
    name = "spark_catalog.default.of_hive"
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT) USING parquet LOCATION '{tmp_path}/unused' "
        f"TBLPROPERTIES ('metadata_location' = '{url}')"
    )
    try:
        lake.sql(f"CALL lake.system.import_table('{name}', 'iceberg', 'ice')")
        assert lake.sql("SELECT id FROM lake.ice ORDER BY id") == [(1,), (2,)]
    finally:
        lake.sql(f"DROP TABLE {name}")
