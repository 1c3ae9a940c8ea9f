"""Metadata of Iceberg tables that other writers have made in other ways is found and read, or refused by name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType
from tests.integration.catalog.imports.written import Folder

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.foreign_properties import ForeignPropertyWarning
from lakelog.catalog.formats.imports.iceberg import manifests
from lakelog.log.errors import FormatError, InvalidInput, Unsupported


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "source")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "w")


def test_metadata_is_found_by_a_hint_however_it_is_compressed(
    folder: Folder, catalog: Catalog, tmp_path: Path
) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    copy = tmp_path / "copy/metadata"
    copy.mkdir(parents=True)
    (copy / "v1.gz.metadata.json").write_bytes(gzip.compress(Path(table.metadata_location).read_bytes()))
    table.append(pa.table({"id": [1]}))
    newest = Path(table.metadata_location).read_bytes()
    (copy / "v2.gz.metadata.json").write_bytes(gzip.compress(newest))
    for number, hint in enumerate(("1", "2\n", "")):
        (copy / "version-hint.text").write_text(hint)
        assert catalog.import_table(tmp_path / "copy", f"t{number}", format="iceberg").rows == 1
    (copy / "v3.metadata.json.gz").write_bytes(gzip.compress(newest))
    (copy / "version-hint.text").write_text("2")
    catalog.import_table(tmp_path / "copy", "last", format="iceberg")


@pytest.mark.parametrize("versions", [100, 1])
@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_file_that_is_there_twice_is_refused(
    folder: Folder, catalog: Catalog, tmp_path: Path, scheme: str, versions: int
) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), path)
    for place in (str(path), f"{scheme}{path}"):
        table.add_files([place], check_duplicate_files=False)
    with pytest.raises(InvalidInput, match=rf"has the file .*{path} twice in one snapshot"):
        catalog.import_table(table.metadata_location, "t", format="iceberg", versions=versions)
    assert not (tmp_path / "w").exists()


def test_columns_of_files_without_ids_may_have_the_names_of_nested_ones(
    folder: Folder, catalog: Catalog, tmp_path: Path
) -> None:
    nested = StructType(NestedField(4, "x", IntegerType()))
    columns = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "x", StringType()), NestedField(3, "s", nested)
    )
    names: list[dict[str, Any]] = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["x"]}]
    names.append({"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]})
    table = folder.create(columns, properties={"schema.name-mapping.default": json.dumps(names)})
    type = pa.struct([("x", pa.int32())])
    rows = {"id": [1], "x": ["a"], "s": pa.array([{"x": 7}], type)}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    table.add_files([str(tmp_path / "a.parquet")])
    catalog.import_table(table.metadata_location, "t", format="iceberg")
    assert catalog.load_table("t").to_arrow().to_pylist() == table.scan().to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda it: it.pop("location"), "KeyError: 'location'"),
        (lambda it: it.update({"schemas": 5}), "TypeError"),
        (lambda it: it.update({"current-schema-id": 9}), "KeyError: 9"),
        (lambda it: it.update({"default-spec-id": 9}), "KeyError: 9"),
        (lambda it: it["schemas"][0]["fields"][0].pop("type"), "KeyError: 'type'"),
        (lambda it: it["snapshots"][0].pop("snapshot-id"), "KeyError: 'snapshot-id'"),
    ],
)
def test_metadata_that_is_not_icebergs_is_refused_by_its_place(
    folder: Folder, catalog: Catalog, change: Any, error: str
) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    metadata = json.loads(Path(table.metadata_location).read_bytes())
    change(metadata)
    path = folder.folder / "metadata/v1.metadata.json"
    path.write_text(json.dumps(metadata))
    with pytest.raises(
        FormatError, match=rf"the metadata at {path} is not as Iceberg's format has it \({error}"
    ):
        catalog.import_table(path, "t", format="iceberg")


def test_a_partition_field_that_lakelog_does_not_have_is_named(folder: Folder, catalog: Catalog) -> None:
    table = folder.create(pa.schema([("id", pa.int64())]))
    metadata = json.loads(Path(table.metadata_location).read_bytes())
    field = {"source-id": 1, "field-id": 1000, "name": "z", "transform": "zorder[3]"}
    metadata["partition-specs"].append({"spec-id": 1, "fields": [field]})
    metadata["default-spec-id"] = 1
    path = folder.folder / "metadata/v1.metadata.json"
    path.write_text(json.dumps(metadata))
    with pytest.raises(Unsupported, match=r"the partition field z of the source is by zorder\[3\]"):
        catalog.import_table(path, "t", format="iceberg")


def test_properties_that_are_parts_of_a_definition_are_left_out(folder: Folder, catalog: Catalog) -> None:
    properties = {"provider": "iceberg", "location": "x", "external": "true", "owner": "ada", "": "nothing"}
    table = folder.create(pa.schema([("id", pa.int64())]), properties=properties)
    catalog.import_table(table.metadata_location, "t", format="iceberg")
    assert catalog.load_table("t").properties == {"owner": "ada"}


def test_properties_that_would_be_ignored_are_left_out_and_said(folder: Folder, catalog: Catalog) -> None:
    properties = {"gc.enabled": "false", "history.expire.max-snapshot-age-ms": "1", "owner": "ada"}
    table = folder.create(pa.schema([("id", pa.int64())]), properties=properties)
    with pytest.warns(ForeignPropertyWarning, match="the imported table does not have it") as heard:
        catalog.import_table(table.metadata_location, "t", format="iceberg")
    assert {str(message.message).split()[2] for message in heard} == {
        "gc.enabled",
        "history.expire.max-snapshot-age-ms",
    }
    assert catalog.load_table("t").properties == {"owner": "ada"}
    lines: list[str] = []
    catalog.import_table(table.metadata_location, "u", format="iceberg", progress=lines.append)
    assert sum("the imported table does not have it" in line for line in lines) == 2


def test_an_entry_without_a_value_of_its_partitioning_is_refused(
    folder: Folder, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    columns = Schema(NestedField(1, "id", LongType()))
    table = folder.create(columns, PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "a.b")))
    table.append(pa.table({"id": [1]}))
    # Not each writer gives ids to the fields, and writers differ in how they spell a name that Avro does not take.
    monkeypatch.setattr(manifests, "partition_names", lambda schema: {})
    monkeypatch.setattr(manifests, "avro_name", lambda name: name)
    with pytest.raises(FormatError, match=r"lacks the partition field a\.b of the partitioning 0"):
        catalog.import_table(table.metadata_location, "t", format="iceberg")
