"""Tables that other writers of Iceberg have made have the same rows after an import as for Iceberg's own readers."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)
from tests.integration.catalog.imports.written import Folder
from tests.integration.iceberg.readers import by_duckdb, plain

from lakelog.catalog import Catalog, SourceDiverged
from lakelog.catalog.core.schema import PartitionSpec as OurSpec
from lakelog.catalog.formats.iceberg import read_all
from lakelog.catalog.formats.iceberg.avro_files import (
    ADDED,
    DELETES,
    POSITION_DELETES,
    manifest,
    manifest_list,
)
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, Unsupported

EVERY = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "boolean", BooleanType()),
    NestedField(3, "int", IntegerType()),
    NestedField(4, "float", FloatType()),
    NestedField(5, "double", DoubleType()),
    NestedField(6, "decimal", DecimalType(20, 3)),
    NestedField(7, "date", DateType()),
    NestedField(8, "time", TimeType()),
    NestedField(9, "timestamp", TimestampType()),
    NestedField(10, "timestamptz", TimestamptzType()),
    NestedField(11, "string", StringType()),
    NestedField(12, "binary", BinaryType()),
    NestedField(13, "fixed", FixedType(3)),
    NestedField(14, "list", ListType(20, StructType(NestedField(21, "x", IntegerType())))),
    NestedField(15, "map", MapType(22, StringType(), 23, LongType())),
    NestedField(16, "struct", StructType(NestedField(24, "a b", StringType()))),
)


def every(id: int) -> dict[str, Any]:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999) + dt.timedelta(days=id)
    return {
        "id": id,
        "boolean": id % 2 == 0,
        "int": -id,
        "float": float("nan") if id % 3 == 0 else -0.0,
        "double": id / 7,
        "decimal": Decimal(id - 3).scaleb(-3) * 10**12,
        "date": moment.date(),
        "time": moment.time(),
        "timestamp": moment,
        "timestamptz": moment.replace(tzinfo=dt.UTC),
        "string": "é" * id + "x" * 40,
        "binary": bytes([id]) * 40,
        "fixed": bytes([id]) * 3,
        "list": [{"x": id}, None],
        "map": {"k": id},
        "struct": {"a b": str(id)},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "source")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "w")
    catalog.create_namespace("shop")
    return catalog


def import_it(catalog: Catalog, table: IcebergTable, **options: Any) -> pa.Table:
    catalog.import_table(table.metadata_location, "t", format="iceberg", **options)
    return catalog.load_table("t").to_arrow()


def rows(table: IcebergTable, values: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(values, table.schema().as_arrow())


@pytest.mark.parametrize("version", ["1", "2"])
def test_every_type_has_the_values_that_pyiceberg_reads(
    folder: Folder, catalog: Catalog, version: str
) -> None:
    table = folder.create(EVERY, properties={"format-version": version})
    table.append(rows(table, [every(1), every(2)]))
    table.append(rows(table, [every(3), {"id": 4}]))
    expected = plain(table.scan().to_arrow())
    assert plain(import_it(catalog, table)) == expected
    for name, value in every(2).items():
        if isinstance(value, bytes | bool | list | dict):
            continue
        for operator in ("<=", ">="):
            found_rows = (
                catalog.load_table("t").scan(filter=f"`{name}` {operator} {_sql(name, value)}").to_arrow()
            )
            assert 2 in found_rows["id"].to_pylist(), name


def _sql(name: str, value: Any) -> str:
    if name in ("date", "time"):
        return f"{name.upper()} '{value.isoformat()}'"
    if name == "timestamp":
        return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
    if name == "timestamptz":
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    return (
        f"'{value}'" if isinstance(value, str) else f"{value:f}" if isinstance(value, Decimal) else str(value)
    )


def test_partitions_and_their_evolution_come_along(folder: Folder, catalog: Catalog) -> None:
    names = ["boolean", "int", "decimal", "date", "time", "timestamp", "timestamptz", "string", "binary"]
    ids = {field.name: field.field_id for field in EVERY.fields}
    parts = [PartitionField(ids[name], 1000 + n, IdentityTransform(), name) for n, name in enumerate(names)]
    table = folder.create(EVERY, PartitionSpec(*parts))
    table.append(rows(table, [every(n) for n in range(1, 5)]))
    with table.update_spec() as update:
        for name in names[:-1]:
            update.remove_field(name)
    table.append(rows(table, [{"id": 5}, every(6)]))
    assert plain(import_it(catalog, table)) == plain(table.scan().to_arrow())
    ours = catalog.load_table("t")
    assert [part.name for part in ours.spec.fields] == ["binary"]
    for name, value in every(3).items():
        if name in names and not isinstance(value, bytes):
            found_rows = ours.scan(filter=f"`{name}` = {_sql(name, value)}").to_arrow()["id"].to_pylist()
            assert 3 in found_rows and (5 not in found_rows), name
    assert ours.plan("date = DATE '1970-01-02'").num_rows == 1


def test_columns_are_found_by_ids_whatever_they_were_called(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(
        pa.schema([("id", pa.int64()), ("a", pa.int32()), ("s", pa.struct([("x", pa.int64())]))])
    )
    table.append(pa.table({"id": [1], "a": pa.array([1], pa.int32()), "s": [{"x": 1}]}))
    with table.update_schema() as update:
        update.rename_column("a", "b")
        update.update_column("a", LongType())
        update.rename_column(("s", "x"), "y")
    with table.update_schema() as update:
        update.add_column("a", StringType())
        update.add_column(("s", "x"), StringType())
    table.append(rows(table, [{"id": 2, "a": "new", "b": 1 << 40, "s": {"x": "new", "y": 2}}]))
    assert plain(import_it(catalog, table)) == plain(table.scan().to_arrow())
    first = catalog.load_table("t", version=1)
    assert first.to_arrow().to_pylist() == [{"id": 1, "a": 1, "s": {"x": 1}}]
    details = [entry.details for entry in catalog.load_table("t").history()]
    snapshots = [str(snapshot.snapshot_id) for snapshot in table.snapshots()]
    assert [detail["source_snapshot"] for detail in details] == snapshots[::-1]
    assert [detail["source_time_us"] for detail in details] == [
        snapshot.timestamp_ms * 1_000 for snapshot in reversed(table.snapshots())
    ]


def test_the_newest_versions_come_along_with_older_ones_in_the_first(
    folder: Folder, catalog: Catalog
) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    for number in range(6):
        table.append(pa.table({"id": [number]}))
    table.delete("id = 2")
    tried_table = catalog.import_table(
        table.metadata_location, "t", format="iceberg", versions=3, dry_run=True
    )
    assert (tried_table.versions, tried_table.rows, tried_table.added_files, tried_table.version) == (
        3,
        5,
        5,
        None,
    )
    assert catalog.list_tables() == []
    finished_table = catalog.import_table(folder.folder, "t", format="iceberg", versions=3)
    assert (
        finished_table.versions,
        finished_table.rows,
        finished_table.added_files,
        finished_table.version,
    ) == (3, 5, 5, 3)
    counts = [catalog.load_table("t", version=version).row_count for version in (1, 2, 3)]
    assert counts == [5, 6, 5]


def test_a_table_without_rows_is_imported_and_gets_some_later(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]), properties={"comment": "of elsewhere"})
    assert import_it(catalog, table).num_rows == 0
    assert catalog.load_table("t").comment == "of elsewhere"
    table.append(pa.table({"id": [1]}))
    assert import_it(catalog, table)["id"].to_pylist() == [1]


def with_deletes(folder: Folder, table: IcebergTable, positions: list[tuple[str, int]], **more: Any) -> str:
    """Write a snapshot with a file of deleted positions after the newest one, and return the new metadata's path."""
    metadata = json.loads(Path(table.metadata_location).read_bytes())
    path = str(folder.folder / "data/deletes.parquet")
    pq.write_table(
        pa.table({"file_path": [name for name, _ in positions], "pos": [n for _, n in positions]}), path
    )
    snapshot = metadata["snapshots"][-1]
    number = snapshot["sequence-number"] + 1
    entry = {
        "status": ADDED, "snapshot_id": 77, "sequence_number": number, "file_sequence_number": number,
        "data_file": {
            "content": POSITION_DELETES, "file_path": path, "file_format": "PARQUET", "partition": {},
            "record_count": len(positions), "file_size_in_bytes": Path(path).stat().st_size, **more,
        },
    }  # fmt: skip
    data = manifest([entry], OurSpec(id=0), metadata["schemas"][0], DELETES)
    deletes = folder.folder / "metadata/deletes.avro"
    deletes.write_bytes(data)
    record = {
        "manifest_path": str(deletes), "manifest_length": len(data), "partition_spec_id": 0, "content": DELETES,
        "sequence_number": number, "min_sequence_number": number, "added_snapshot_id": 77, "added_files_count": 1,
        "existing_files_count": 0, "deleted_files_count": 0, "added_rows_count": len(positions),
        "existing_rows_count": 0, "deleted_rows_count": 0, "partitions": [], "key_metadata": None,
        "first_row_id": None,
    }  # fmt: skip
    older = read_all(Path(snapshot["manifest-list"]).read_bytes()).records
    new = {
        **snapshot, "snapshot-id": 77, "parent-snapshot-id": snapshot["snapshot-id"], "sequence-number": number,
        "manifest-list": str(folder.folder / "metadata/list.avro"), "summary": {"operation": "delete"},
    }  # fmt: skip
    listed = manifest_list(
        [*({"first_row_id": None, **each} for each in older), record], {**new, "first-row-id": 0}
    )
    Path(new["manifest-list"]).write_bytes(listed)
    metadata |= {
        "snapshots": [*metadata["snapshots"], new], "current-snapshot-id": 77, "last-sequence-number": number,
        "refs": {"main": {"snapshot-id": 77, "type": "branch"}},
    }  # fmt: skip
    folder_after = folder.folder / f"metadata/{99:05d}-deletes.metadata.json"
    folder_after.write_text(json.dumps(metadata))
    return str(folder_after)


def test_positions_of_deleted_rows_become_vectors(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    table.append(pa.table({"id": range(10, 13)}))
    paths = {task.file.record_count: task.file.file_path for task in table.scan().plan_files()}
    removed_paths = (
        [(paths[10], n) for n in (0, 4, 9)] + [(paths[3], n) for n in range(3)] + [("/nowhere", 1)]
    )
    url = with_deletes(folder, table, removed_paths)
    catalog.import_table(url, "t", format="iceberg")
    expected = [1, 2, 3, 5, 6, 7, 8]
    assert sorted(by_duckdb(url)["id"].to_pylist()) == expected
    ours = catalog.load_table("t")
    assert sorted(ours.to_arrow()["id"].to_pylist()) == expected
    assert ours.row_count == 7
    assert [catalog.load_table("t", version=n).row_count for n in (1, 2, 3)] == [10, 13, 7]
    for position in (10, -1, 1 << 40):
        with pytest.raises(FormatError, match=r"deletes the row at 10 of|has positions that no file has"):
            catalog.import_table(
                with_deletes(folder, table, [(paths[10], position)]), "other", format="iceberg"
            )


def test_equality_deletes_are_refused_where_they_are_live(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    url = with_deletes(folder, table, [("x", 1)], content=2)
    with pytest.raises(Unsupported, match=r"equality deletes, in .*/data/deletes\.parquet"):
        catalog.import_table(url, "t", format="iceberg")
    url = with_deletes(folder, table, [("x", 1)], file_format="AVRO")
    with pytest.raises(Unsupported, match=r"deletes\.parquet of the source is AVRO"):
        catalog.import_table(url, "t", format="iceberg")
    assert catalog.list_tables() == []


def test_files_without_ids_are_read_by_the_names_that_the_table_says(
    folder: Folder, catalog: Catalog, tmp_path: Path
) -> None:
    table = folder.create(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    path = tmp_path / "files/a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), path)
    table.add_files([str(path)])
    with table.update_schema() as update:
        update.rename_column("name", "title")
    assert plain(import_it(catalog, table)) == [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}]
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(Unsupported, match="has no ids of columns"):
        catalog.import_table(table.metadata_location, "other", format="iceberg")


def spoiled_text(folder: Folder, change: Any) -> str:
    """Return the path of the newest metadata, changed."""
    newest = max((folder.folder / "metadata").glob("0000*.metadata.json"))
    metadata = json.loads(newest.read_bytes())
    change(metadata)
    path = newest.with_name("99998-spoiled.metadata.json")
    path.write_text(json.dumps(metadata))
    return str(path)


def test_what_lakelog_cannot_have_is_refused_by_name(
    folder: Folder, catalog: Catalog, tmp_path: Path
) -> None:
    table = folder.create(pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    table.append(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))

    def refusal(source: str | Path, error: type[LakelogError] = Unsupported, **options: Any) -> str:
        with pytest.raises(error) as caught:
            catalog.import_table(source, "t", **{"format": "iceberg", **options})
        assert catalog.list_tables() == []
        return str(caught.value)

    def column_type(name: str) -> str:
        return spoiled_text(folder, lambda it: it["schemas"][0]["fields"][1].update(type=name))

    assert "the column n is uuid" in refusal(column_type("uuid"))
    assert "the column n is timestamp_ns" in refusal(column_type("timestamp_ns"))
    assert "has int for the column n" in refusal(column_type("date")).replace("integer", "int")
    assert "clashes with" in refusal(
        spoiled_text(folder, lambda it: it["schemas"][0]["fields"][1].update(name="ID")), LakelogError
    )
    assert "is encrypted" in refusal(
        spoiled_text(folder, lambda it: it["snapshots"][0].update({"key-id": "1"}))
    )
    assert "by zorder[n], which" in refusal(
        spoiled_text(folder, lambda it: it["partition-specs"][0]["fields"].append(OTHER_PART))
    )
    assert "version 4 of Iceberg's format" in refusal(
        spoiled_text(folder, lambda it: it.update({"format-version": 4})), InvalidInput
    )
    assert "there is no metadata" in refusal(tmp_path / "none/v1.metadata.json", NotFound)
    assert "there is no Iceberg table at" in refusal(tmp_path / "none", NotFound)
    assert "does not take the name of its source (migrate)" in refusal(folder.folder, mode="migrate")
    assert "of the format csv" in refusal(folder.folder, format="csv")
    (data,) = (folder.folder / "data").glob("*.parquet")
    shutil.move(data, tmp_path)
    assert f"has the data file {data}, which is not there" in refusal(table.metadata_location, NotFound)


OTHER_PART = {"name": "z", "transform": "zorder[n]", "source-id": 2, "field-id": 2000}


def test_what_a_table_declares_and_does_not_use_is_no_reason_to_refuse_it(
    folder: Folder, catalog: Catalog
) -> None:
    table = folder.create(pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    table.append(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    table.append(pa.table({"id": [2], "n": pa.array([2], pa.int32())}))

    def declared(it: dict[str, Any]) -> None:
        it["encryption-keys"] = [{"key-id": "1"}]
        it["partition-specs"].append({"spec-id": 7, "fields": [OTHER_PART]})
        later = {"id": 9, "name": "v", "required": False, "type": "variant"}
        it["schemas"].append({"type": "struct", "schema-id": 7, "fields": [later]})

    def declared_then(it: dict[str, Any]) -> None:
        declared(it)
        it["snapshots"][0]["schema-id"] = 7

    path = spoiled_text(folder, declared)
    assert catalog.import_table(path, "t", format="iceberg").rows == 2
    path = spoiled_text(folder, declared_then)
    with pytest.raises(Unsupported, match="the column v is variant.*import fewer versions"):
        catalog.import_table(path, "then", format="iceberg")
    assert catalog.import_table(path, "now", format="iceberg", versions=1).rows == 2


def test_two_metadata_files_of_one_number_are_not_guessed_between(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    newest = Path(table.metadata_location)
    shutil.copy(newest, newest.with_name("00000-other.metadata.json"))
    with pytest.raises(InvalidInput, match="has 2 metadata files of the highest number"):
        catalog.import_table(folder.folder, "t", format="iceberg")
    (newest.parent / "version-hint.text").write_text(newest.name.removesuffix(".metadata.json"))
    assert catalog.import_table(folder.folder, "t", format="iceberg").rows == 0


def test_rewritten_files_replace_the_old_ones_unless_rows_of_these_were_deleted_here(
    folder: Folder, catalog: Catalog
) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    table.append(pa.table({"id": range(10, 20)}))
    import_it(catalog, table)
    table.delete("id in (3, 4)")
    ids = import_it(catalog, table)["id"].to_pylist()
    assert sorted(ids) == [0, 1, 2, *range(5, 20)]
    catalog.load_table("t").delete("id = 12")
    table.delete("id = 0")
    assert sorted(import_it(catalog, table)["id"].to_pylist()) == [1, 2, *range(5, 12), *range(13, 20)]
    table.delete("id = 13")
    with pytest.raises(SourceDiverged, match=r"rows of the file .*\.parquet were deleted or rewritten"):
        import_it(catalog, table)
