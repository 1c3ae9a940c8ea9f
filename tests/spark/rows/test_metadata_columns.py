"""The metadata columns `_file`, `_pos`, `_row_id` and `_version`: the place and identity of a row."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog, col

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
        rows = lake.sql("SELECT _pos, s.a, _file, id, _pos FROM lake.t")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    places = rows_by_place(lake.warehouse, "t")
    assert all(
        places[file, position] == id == a and position == again for position, a, file, id, again in rows
    )
    assert len(rows) == 100


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


def known(lake, name="t"):
    """The id and version of each row by its column `id`, read without Spark."""
    columns = lake.catalog.load_table(name).scan(["id"], row_ids=True).to_arrow().to_pydict()
    return sorted(zip(columns["id"], columns["_row_id"], columns["_row_version"], strict=True), key=repr)


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_ids_and_versions_are_those_that_python_sees(lake, vectorized):
    lake.sql("CREATE TABLE lake.t AS SELECT id, id % 3 AS k FROM range(0, 1000, 1, 3)")
    lake.sql("INSERT INTO lake.t SELECT id + 1000, 7 FROM range(0, 500, 1, 2)")
    table = lake.catalog.load_table("t")
    # A file with copies of rows, which bring ids and versions along, beside files of which rows are deleted.
    copies = [{"change": "set-property", "key": "lakelog.write.delete.mode", "value": "copy-on-write"}]
    table = table.alter(copies).delete((col("id") >= 20) & (col("id") < 30))
    back = [{"change": "remove-property", "key": "lakelog.write.delete.mode"}]
    table.alter(back).delete(col("id").is_in([0, 999, 1200]))
    lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert lake.sorted("SELECT id, _row_id, _version FROM lake.t") == known(lake)
        assert lake.sorted("SELECT _version, id, _pos IS NULL, _row_id, k FROM lake.t WHERE k = 7") == sorted(
            ((version, id, False, row, 7) for id, row, version in known(lake) if id >= 1000), key=repr
        )
        first_row = next(row for row in known(lake) if row[0] == 15)
        assert lake.sql(f"SELECT id, _row_id, _version FROM lake.t WHERE _row_id = {first_row[1]}") == [
            first_row
        ]
        assert lake.sql("SELECT COUNT(DISTINCT _row_id), MIN(_version), MAX(_version) FROM lake.t") == [
            (1487, 1, 2)
        ]
    finally:
        lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_ids_are_right_where_row_groups_and_pages_are_passed_over(lake):
    lake.spark.conf.set("parquet.block.size", "65536")
    lake.spark.conf.set("parquet.page.size", "4096")
    try:
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 100000, 1, 1)")
    finally:
        lake.spark.conf.unset("parquet.block.size")
        lake.spark.conf.unset("parquet.page.size")
    path = next(iter(lake.catalog.load_table("t").plan()["path"].to_pylist()))
    file = pq.ParquetFile(f"{lake.catalog.load_table('t').location}/{path}")
    assert file.metadata.num_row_groups > 1
    lake.sql("DELETE FROM lake.t WHERE id % 1000 = 7")
    own = {id: row for id, row, _ in known(lake)}
    rows = lake.sql("SELECT id, _row_id FROM lake.t WHERE id > 90000 AND id < 90100 OR id = 5")
    assert {id for id, _ in rows} == {5} | set(range(90001, 90100)) - {90007}
    assert all(own[id] == row for id, row in rows)


def test_rows_have_no_ids_where_none_are_known(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    # A file of others may have a column that is called like lakelog's own.
    pq.write_table(
        pa.table({"id": pa.array([5, 6], pa.int64()), "_lakelog_row_id": pa.array([0, 0], pa.int64())}),
        tmp_path / "foreign.parquet",
    )
    lake.sql(
        f"CALL lake.system.add_files(table => 't', source => 'parquet.`{tmp_path}/foreign.parquet`', "
        "ignore_extra_columns => true)"
    )
    assert lake.sorted("SELECT id, _row_id, _version FROM lake.t") == [(1, 0, 2), (5, 1, 3), (6, 2, 3)]
    lake.sql("CALL lake.system.begin_transaction()")
    try:
        lake.sql("INSERT INTO lake.t VALUES (2)")
        assert lake.sorted("SELECT id, _row_id, _version FROM lake.t") == [
            (1, 0, 2), (2, None, None), (5, 1, 3), (6, 2, 3),
        ]  # fmt: skip
    finally:
        lake.sql("CALL lake.system.commit_transaction()")
    assert lake.sql("SELECT _row_id, _version FROM lake.t WHERE id = 2") == [(3, 4)]


def test_columns_of_ids_are_no_columns_of_a_new_table(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, 'mine' AS _Version FROM range(0, 3, 1, 1)")
    lake.sql("CREATE TABLE lake.u AS SELECT *, _row_id, __version FROM lake.t")
    assert lake.sorted("SELECT * FROM lake.u") == [(i, "mine", i, 1) for i in range(3)]
    schema = lake.frame("SELECT _row_id, __version FROM lake.t").schema
    assert schema.simpleString() == "struct<_row_id:bigint,__version:bigint>"
    assert lake.catalog.load_table("u").schema.names == ("id", "_Version", "_row_id", "__version")
    assert lake.sql("SELECT ___row_id, ___version, _version, __version FROM lake.u WHERE id = 2") == [
        (2, 1, "mine", 1)
    ]
