"""Where a row is: the metadata columns `_file` and `_pos`."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog

pytestmark = pytest.mark.adapter


def rows_by_place(warehouse, name):
    """What is at each place, read without Spark."""
    table = Catalog(warehouse).load_table(name)
    found = {}
    for path in table.plan()["path"].to_pylist():
        place = path if path.startswith("/") else f"{table.location}/{path}"
        for position, id in enumerate(pq.ParquetFile(place).read().column(0).to_pylist()):
            found[place, position] = id
    return found


def test_file_and_position_are_those_of_the_row(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, id % 3 AS k FROM range(0, 1000, 1, 3)")
    lake.sql("INSERT INTO lake.t SELECT id + 1000, 7 FROM range(0, 500, 1, 2)")
    places = rows_by_place(lake.warehouse, "t")
    assert {(file, pos): id for file, pos, id in lake.sql("SELECT _file, _pos, id FROM lake.t")} == places
    # A filter that passes over row groups and pages does not move what is left.
    assert lake.sorted("SELECT id, _pos FROM lake.t WHERE id > 1200 AND id < 1210") == sorted(
        (id, position) for (_, position), id in places.items() if 1200 < id < 1210
    )
    assert lake.frame("SELECT * FROM lake.t").columns == ["id", "k"]
    assert lake.sql("SELECT COUNT(DISTINCT _file) FROM lake.t") == [(5,)]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_are_read_like_columns(lake, vectorized):
    lake.sql("CREATE TABLE lake.t AS SELECT id, named_struct('a', id) AS s FROM range(0, 100, 1, 2)")
    lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        found = lake.sql("SELECT _pos, s.a, _file, id, _pos FROM lake.t")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    places = rows_by_place(lake.warehouse, "t")
    assert all(
        places[file, position] == id == a and position == again for position, a, file, id, again in found
    )
    assert len(found) == 100


def test_a_filter_by_file_reads_that_file_only(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 100, 1, 4)")
    (file,) = lake.sql("SELECT _file FROM lake.t WHERE id = 70")[0]
    frame = lake.frame(f"SELECT id FROM lake.t WHERE _file = '{file}'")
    assert sorted(id for (id,) in frame.collect()) == list(range(50, 75))
    assert lake.sql(f"SELECT COUNT(*) FROM lake.t WHERE _file IN ('{file}', 'nowhere') AND _pos < 3") == [
        (3,)
    ]
    assert lake.sql("SELECT COUNT(*) FROM lake.t WHERE _file = 'nowhere'") == [(0,)]
    assert lake.sql(f"SELECT COUNT(*) FROM lake.t WHERE _file <> '{file}' OR id = 50") == [(76,)]


def test_files_of_others_have_a_name_and_positions_too(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    lake.sql("INSERT INTO lake.t VALUES (0, 'own')")
    for key in ("a", "b"):
        (tmp_path / "foreign" / f"k={key}").mkdir(parents=True)
        pq.write_table(
            pa.table({"_file": [1, 2], "id": pa.array([5, 6], pa.int64())}),
            tmp_path / "foreign" / f"k={key}" / "f.parquet",
        )
    lake.sql(
        f"CALL lake.system.add_files(table => 't', source => 'parquet.`{tmp_path}/foreign`', "
        "ignore_extra_columns => true)"
    )
    assert lake.sorted("SELECT id, _pos, k, _file FROM lake.t WHERE k <> 'own'") == [
        (id, position, key, f"{tmp_path}/foreign/k={key}/f.parquet")
        for id, position in ((5, 0), (6, 1))
        for key in ("a", "b")
    ]
    assert lake.sorted("SELECT k, _pos, id FROM lake.t") == [
        ("a", 0, 5), ("a", 1, 6), ("b", 0, 5), ("b", 1, 6), ("own", 0, 0),
    ]  # fmt: skip


def test_a_column_of_the_table_keeps_its_name(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 'mine' AS _FILE, id FROM range(0, 3, 1, 1)")
    assert lake.sql("SELECT DISTINCT _file FROM lake.t") == [("mine",)]
    assert lake.sorted("SELECT id, _pos, __file LIKE '%.parquet' FROM lake.t WHERE _file = 'mine'") == [
        (0, 0, True), (1, 1, True), (2, 2, True),
    ]  # fmt: skip
