"""A folder of Parquet files becomes a table, with columns and partitions found."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog, SourceDiverged
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.parquet import is_hidden
from lakelog.catalog.core.schema import AtomicType, Field, StructType
from lakelog.catalog.formats.imports import FolderTable, KnownFolder
from lakelog.log.errors import InvalidInput, NotFound, Unsupported
from lakelog.log.stores.memory_store import MemoryStore


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "w")
    catalog.create_namespace("shop")
    return catalog


def put(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def rows(catalog: Catalog, name: str = "t", filter: str | None = None) -> list[dict]:
    found_rows = catalog.load_table((name,)).scan(filter=filter).to_arrow().to_pylist()
    return sorted(found_rows, key=lambda row: row["id"])


def test_columns_of_all_files_and_partitions_of_folders_are_found(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    put(source / "day=2024-05-01/n=1/a.parquet", id=pa.array([1, 2], pa.int32()), what=["a", None])
    put(source / "day=2024-05-02/n=%2B7/b.parquet", id=pa.array([3], pa.int64()), more=[{"x": 1}])
    put(source / "day=__HIVE_DEFAULT_PARTITION__/n=3000000000/c.parquet", id=pa.array([4], pa.int32()))
    put(source / "_temporary/day=x/d.parquet", id=pa.array([9], pa.int32()))
    finished_table = catalog.import_table(source, "t", format="parquet")
    assert (
        finished_table.added_files,
        finished_table.rows,
        finished_table.is_new,
        finished_table.version,
    ) == (3, 4, True, 1)
    table = catalog.load_table("t")
    assert {field.name: str(field.type) for field in table.schema.fields} == {
        "id": "long",
        "what": "string",
        "more": "struct<x: long>",
        "day": "date",
        "n": "long",
    }
    assert [part.name for part in table.spec.fields] == ["day", "n"]
    found_rows = rows(catalog)
    assert [(row["id"], str(row["day"]), row["n"]) for row in found_rows] == [
        (1, "2024-05-01", 1),
        (2, "2024-05-01", 1),
        (3, "2024-05-02", 7),
        (4, "None", 3_000_000_000),
    ]
    assert [row["id"] for row in rows(catalog, filter="day >= '2024-05-02'")] == [3]
    assert [row["id"] for row in rows(catalog, filter="id > 2 AND n < 100")] == [3]


def test_an_import_again_takes_what_came_and_leaves_what_went(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    put(source / "a.parquet", id=[1, 2])
    put(source / "b.parquet", id=[3])
    catalog.import_table(source, "t", format="parquet")
    (source / "b.parquet").unlink()
    put(source / "c.parquet", id=[4], what=["new"])
    catalog.load_table("t").append(pa.table({"id": [100]}))
    tried_table = catalog.import_table(source, "t", format="parquet", dry_run=True)
    assert (tried_table.added_files, tried_table.removed_files, tried_table.version) == (1, 1, None)
    with pytest.raises(NotFound, match=r"files/b\.parquet, which another writer has put there, is gone"):
        rows(catalog)
    table = catalog.import_table(source, "t", format="parquet")
    assert (table.added_files, table.removed_files, table.version) == (1, 1, 3)
    assert [(row["id"], row["what"]) for row in rows(catalog)] == [
        (1, None),
        (2, None),
        (4, "new"),
        (100, None),
    ]
    assert catalog.import_table(source, "t", format="parquet").version == 3


def test_a_folder_with_another_partitioning_is_another_source(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    put(source / "a.parquet", id=[1], day=pa.array([1], pa.int32()))
    catalog.import_table(source, "t", format="parquet")
    catalog.load_table("t").append(pa.table({"id": [100], "day": pa.array([7], pa.int32())}))
    (source / "a.parquet").unlink()
    put(source / "day=1/a.parquet", id=[1])
    with pytest.raises(SourceDiverged, match="the partitioning of .*/files is another one"):
        catalog.import_table(source, "t", format="parquet")
    assert catalog.load_table("t").version == 2


def test_partitions_that_were_text_stay_text(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    put(source / "n=01/a.parquet", id=[1])
    put(source / "n=x/a.parquet", id=[2])
    catalog.import_table(source, "t", format="parquet")
    (source / "n=x/a.parquet").unlink()
    put(source / "n=02/a.parquet", id=[3])
    catalog.import_table(source, "t", format="parquet")
    assert rows(catalog) == [{"id": 1, "n": "01"}, {"id": 3, "n": "02"}]


def test_folders_that_cannot_be_one_table_are_refused(tmp_path: Path, catalog: Catalog) -> None:
    def refusal(name: str) -> str:
        with pytest.raises((InvalidInput, NotFound)) as caught:
            catalog.import_table(tmp_path / name, "t", format="parquet")
        assert catalog.list_tables() == []
        return str(caught.value)

    put(tmp_path / "types/a.parquet", id=[1])
    put(tmp_path / "types/b.parquet", id=["x"])
    assert "the column id is string in the file" in refusal("types")
    put(tmp_path / "case/a.parquet", id=[1])
    put(tmp_path / "case/b.parquet", ID=[1])
    assert "differs in upper and lower case" in refusal("case")
    put(tmp_path / "parts/day=1/a.parquet", id=[1])
    put(tmp_path / "parts/b.parquet", id=[1])
    assert "import the folders of one partitioning" in refusal("parts")
    put(tmp_path / "other/a.parquet", id=[1])
    (tmp_path / "other/notes.txt").write_text("no parquet")
    assert "other/notes.txt" in refusal("other")
    assert "there are no files in the folder" in refusal("nothing")

    put(tmp_path / "delta/a.parquet", id=[1])
    put(tmp_path / "delta/_delta_log/00000000000000000000.checkpoint.parquet", id=[1])
    assert "is a table of Delta" in refusal("delta")
    put(tmp_path / "twice/a=1/a=2/a.parquet", id=[1])
    assert "is in two folders of the partition column a" in refusal("twice")
    assert "give a folder rather than a file" in refusal("twice/a=1/a=2/a.parquet")


def test_times_of_the_type_int96_have_a_zone_at_any_depth(tmp_path: Path, catalog: Catalog) -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    time = pa.timestamp("ns")
    columns = {
        "id": [1],
        "a": pa.array([moment], time),
        "b": pa.array([[{"x": moment}]], pa.list_(pa.struct([("x", time)]))),
        "c": pa.array([[("k", [moment])]], pa.map_(pa.string(), pa.list_(time))),
    }
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "files/a.parquet", use_deprecated_int96_timestamps=True)
    catalog.import_table(tmp_path / "files", "t", format="parquet")
    moment = moment.replace(tzinfo=dt.UTC)
    assert rows(catalog) == [{"id": 1, "a": moment, "b": [{"x": moment}], "c": [("k", [moment])]}]


def test_columns_without_a_value_in_one_file_have_the_type_of_others(
    tmp_path: Path, catalog: Catalog
) -> None:
    put(tmp_path / "files/a.parquet", id=[1], what=pa.nulls(1))
    put(tmp_path / "files/b.parquet", id=[2], what=["x"])
    catalog.import_table(tmp_path / "files", "t", format="parquet")
    assert rows(catalog) == [{"id": 1, "what": None}, {"id": 2, "what": "x"}]
    assert rows(catalog, filter="what IS NULL") == [{"id": 1, "what": None}]


def test_a_whole_bucket_is_a_folder() -> None:
    bucket = MemoryStore.named("memory://of-others")
    for key in ("day=1/a.parquet", "day=2/a.parquet"):
        content = io.BytesIO()
        pq.write_table(pa.table({"id": [int(key[4])]}), content)
        bucket.put(key, content.getvalue())
    catalog = Catalog("memory://of-ours")
    tried_table = catalog.import_table("memory://of-others", "t", format="parquet", dry_run=True)
    assert (tried_table.added_files, tried_table.rows) == (2, 2)
    store, key = WarehouseStores("memory://of-ours", {}).open_url("s3a://bucket/")
    assert (store.url, key) == ("s3://bucket", "")


def test_what_object_stores_have_in_place_of_folders_is_no_file() -> None:
    # Object stores have them, and a file system cannot.
    assert all(is_hidden(f"files/{name}", "files") for name in ("", "day=1/", "day=1_$folder$"))
    assert not is_hidden("files/day=1/a.parquet", "files")


@pytest.mark.parametrize(
    ("texts", "type"),
    [
        (["1", "02", None], "int"),
        (["1", "3000000000"], "bigint"),
        (["1", "1" * 25], "decimal(25,0)"),
        (["1", "1.5"], "double"),
        (["3000000000", "1.5"], "string"),
        (["1" * 25, "1.5"], "string"),
        (["2024-01-31"], "date"),
        (["2024-01-31", "2024-02-31"], "string"),
        (["2024-01-31", "1"], "string"),
        (["2024-01-31 10:00:00"], "string"),
        (["1", "x"], "string"),
        ([None], "string"),
    ],
)
def test_types_of_partitions_are_those_that_spark_infers(texts: list[str | None], type: str) -> None:
    from lakelog.catalog.formats.imports.folder_columns import partition_type

    sql = {"int": "integer", "bigint": "long"}
    assert partition_type(texts).name == sql.get(type, type)


def test_a_catalog_s_table_has_its_columns_and_partitions(tmp_path: Path, catalog: Catalog) -> None:
    source, away = tmp_path / "files", tmp_path / "away"
    put(source / "day=01/a.parquet", ID=pa.array([1], pa.int32()), more=["x"])
    put(source / "day=02/b.parquet", ID=pa.array([2], pa.int32()))
    put(source / "day=03/forgotten.parquet", ID=pa.array([9], pa.int32()))
    put(away / "c.parquet", id=pa.array([3], pa.int64()))
    columns = StructType(
        tuple(
            Field(name=name, type=AtomicType(type))
            for name, type in (("id", "long"), ("later", "string"), ("Day", "string"))
        )
    )
    places = (
        (str(source / "day=01"), {"day": "01"}),
        (str(source / "day=02"), {"day": "02"}),
        (str(away), {"day": None}),
    )
    table = FolderTable(columns=columns, partitioned_by=("Day",), places=places)
    known_folder = KnownFolder(table=table)
    catalog.import_table(source, "t", format="parquet", known=known_folder)
    assert [str(field.type) for field in catalog.load_table("t").schema.fields] == [
        "long",
        "string",
        "string",
    ]
    assert rows(catalog) == [
        {"id": 1, "later": None, "Day": "01"},
        {"id": 2, "later": None, "Day": "02"},
        {"id": 3, "later": None, "Day": None},
    ]
    assert [row["id"] for row in rows(catalog, filter="Day = '02'")] == [2]
    fewer = replace(known_folder, table=replace(table, places=places[1:]))
    finished_table = catalog.import_table(source, "t", format="parquet", known=fewer)
    assert (finished_table.added_files, finished_table.removed_files) == (0, 1)
    numbers = StructType((*columns.fields[:2], Field(name="day", type=AtomicType("integer"))))
    bad = ((str(source / "day=01"), {"day": "x"}),)
    with pytest.raises(InvalidInput, match="not a valid integer"):
        wrong = KnownFolder(table=FolderTable(columns=numbers, partitioned_by=("day",), places=bad))
        catalog.import_table(source, "u", format="parquet", known=wrong)


def test_a_folder_of_another_table_s_log_is_no_catalog_s_table(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    put(source / "day=1/a.parquet", id=[1])
    put(source / "_delta_log/00000000000000000000.checkpoint.parquet", id=[1])
    columns = StructType(tuple(Field(name=name, type=AtomicType("long")) for name in ("id", "day")))
    for places in (None, ((str(source / "day=1"), {"day": "1"}),)):
        table = FolderTable(columns=columns, partitioned_by=("day",), places=places)
        with pytest.raises(Unsupported, match="files is a table of Delta"):
            catalog.import_table(source, "t", format="parquet", known=KnownFolder(table=table))


def test_what_a_catalog_has_of_a_folder_is_another_source_than_the_folder(
    tmp_path: Path, catalog: Catalog
) -> None:
    source = tmp_path / "source"
    put(source / "day=1" / "a.parquet", id=[1])
    put(source / "day=2" / "a.parquet", id=[2])  # dropped in the catalog
    put(tmp_path / "elsewhere" / "a.parquet", id=[3])
    columns = StructType(
        (Field(name="id", type=AtomicType("long")), Field(name="day", type=AtomicType("string")))
    )
    places = ((f"{source}/day=1", {"day": "1"}), (f"{tmp_path}/elsewhere", {"day": "3"}))
    table = FolderTable(columns=columns, partitioned_by=("day",), places=places)
    catalog.import_table(source, "t", format="parquet", known=KnownFolder(table=table))
    with pytest.raises(InvalidInput, match="by the name of a table, and not by its path"):
        catalog.import_table(source, "t", format="parquet")
    assert [row["id"] for row in rows(catalog)] == [1, 3]
    catalog.import_table(source, "t", format="parquet", known=KnownFolder(table=table))
    moved_table = replace(table, places=((f"{source}/day=1", {"day": "2"}), places[1]))
    with pytest.raises(
        SourceDiverged, match="a.parquet is in another partition by day than at the last import, 2"
    ):
        catalog.import_table(source, "t", format="parquet", known=KnownFolder(table=moved_table))
    catalog.import_table(source, "u", format="parquet")
    with pytest.raises(InvalidInput, match="by its path, and not by the name of a table"):
        catalog.import_table(source, "u", format="parquet", known=KnownFolder(table=table))

    twice = replace(table, places=(*places, (f"file://{source}/day=1/", {"day": "2"})))
    with pytest.raises(InvalidInput, match="two partitions of the table at .* have the folder .*/day=1"):
        catalog.import_table(source, "v", format="parquet", known=KnownFolder(table=twice))
    put(source / "day=1" / "deeper" / "a.parquet", id=[4])
    with pytest.raises(InvalidInput, match="deeper/a.parquet is in a folder within that of a partition"):
        catalog.import_table(source, "v", format="parquet", known=KnownFolder(table=table))
    within = replace(table, places=(*places, (f"{source}/day=1/deeper", {"day": "4"})))
    catalog.import_table(source, "v", format="parquet", known=KnownFolder(table=within))
    assert sorted((row["id"], row["day"]) for row in rows(catalog, "v")) == [(1, "1"), (3, "3"), (4, "4")]
