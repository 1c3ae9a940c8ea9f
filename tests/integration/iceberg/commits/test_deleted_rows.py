"""Clients that delete rows in files: position deletes and deletion vectors, as lakelog's own vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from tests.integration.iceberg.commits.test_forged_commits import Client, is_clean
from tests.integration.iceberg.readers import by_duckdb
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog
from lakelog.catalog.core.files import AROUND_BYTES, HEAD_BYTES, PuffinVector, puffin_of_vectors
from lakelog.catalog.core.schema import PartitionSpec
from lakelog.catalog.engine.exports import iceberg_metadata
from lakelog.catalog.formats.iceberg import avro_files


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(str(tmp_path / "w"), writes=True) as url:
        yield Client(url, str(tmp_path / "w"))


def ids(warehouse: str) -> list[int]:
    return sorted(Catalog(warehouse).load_table("ns.t").scan().to_arrow()["id"].to_pylist())


def commit_of_deletes(
    client: Client, entries: list[dict[str, Any]], *, keeps: bool = True
) -> tuple[int, Any]:
    """Commit a snapshot with a new manifest of delete files. If it `keeps`, the old deletes stay, too."""
    metadata = client.lake.load_table("ns.t").metadata
    location = metadata.location
    present = metadata.snapshot_by_id(metadata.current_snapshot_id)
    document = {
        "snapshot-id": (1 << 61) + metadata.last_sequence_number,
        "sequence-number": metadata.last_sequence_number + 1,
    }
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    data = avro_files.manifest(entries, PartitionSpec(), schema, avro_files.DELETES)
    number = document["snapshot-id"]
    manifest, place = (f"{location}/metadata/{name}-{number}.avro" for name in ("deletes", "snap"))
    Path(manifest).write_bytes(data)
    records = [
        record
        for record in avro_files.read(Path(present.manifest_list).read_bytes())
        if keeps or record["content"] == avro_files.DATA
    ]
    counts = dict.fromkeys(
        [f"{kind}_{unit}_count" for kind in ("added", "existing", "deleted") for unit in ("files", "rows")], 0
    )
    new = {
        "manifest_path": manifest, "manifest_length": len(data), "partition_spec_id": 0, "content": 1,
        "sequence_number": document["sequence-number"], "min_sequence_number": document["sequence-number"],
        "added_snapshot_id": number, **counts, "partitions": [], "key_metadata": None, "first_row_id": None,
    }  # fmt: skip
    list_data = avro_files.manifest_list([*records, new], {**document, "first-row-id": 0})
    Path(place).write_bytes(list_data)
    snapshot = {
        **document,
        "parent-snapshot-id": metadata.current_snapshot_id,
        "timestamp-ms": 1,
        "manifest-list": place,
        "summary": {"operation": "delete"},
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    ]
    return client.send({"requirements": [], "updates": updates})


def entry(path: str, size: int, rows: int, **more: Any) -> dict[str, Any]:
    data_file = {
        "content": 1, "file_path": path, "file_format": "PARQUET", "partition": {}, "record_count": rows,
        "file_size_in_bytes": size, **more,
    }  # fmt: skip
    return {
        "status": 1,
        "snapshot_id": None,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": data_file,
    }


def data_file(client: Client) -> str:
    (task,) = client.lake.load_table("ns.t").scan().plan_files()
    return str(task.file.file_path)


def positions(client: Client, rows_deleted: list[int], name: str = "p") -> dict[str, Any]:
    """Write a position file, and return its entry."""
    path = Path(client.table.location()) / "data" / f"{name}.parquet"
    rows = pa.table(
        {"file_path": [data_file(client)] * len(rows_deleted), "pos": pa.array(rows_deleted, pa.int64())}
    )
    pq.write_table(rows, path)
    return entry(str(path), path.stat().st_size, len(rows_deleted))


def vector(client: Client, rows_deleted: list[int], name: str = "v") -> dict[str, Any]:
    """Write a puffin file with a deletion vector, and return its entry."""
    about = data_file(client)
    content, offsets = puffin_of_vectors(
        {"x": PuffinVector(BitMap(rows_deleted).serialize(), len(rows_deleted), about)}
    )
    path = Path(client.table.location()) / "data" / f"{name}.puffin"
    path.write_bytes(content)
    size = len(BitMap(rows_deleted).serialize()) + AROUND_BYTES
    return entry(
        str(path), len(content), len(rows_deleted), file_format="PUFFIN", referenced_data_file=about,
        content_offset=offsets["x"] - HEAD_BYTES, content_size_in_bytes=size,
    )  # fmt: skip


def test_position_deletes_become_vectors(client: Client) -> None:
    status, answer = commit_of_deletes(client, [positions(client, [0])])
    assert status == 200, answer
    assert ids(client.warehouse) == [2, 3] and answer["metadata"]["format-version"] == 3
    status, answer = commit_of_deletes(client, [positions(client, [2], "q")])
    assert status == 200 and ids(client.warehouse) == [2]
    catalog = Catalog(client.warehouse)
    url, _ = iceberg_metadata(catalog.load_table("ns.t"))
    assert by_duckdb(url)["id"].to_pylist() == [2]
    assert client.lake.load_table("ns.t").scan().to_arrow()["id"].to_pylist() == [2]
    assert is_clean(catalog)
    history = [entry_of_history.operation for entry_of_history in catalog.load_table("ns.t").history()]
    assert history[:2] == ["delete", "delete"]


def test_a_file_without_a_live_row_goes(client: Client) -> None:
    assert commit_of_deletes(client, [positions(client, [0, 1, 2])])[0] == 200
    table = Catalog(client.warehouse).load_table("ns.t")
    assert (table.row_count, table.file_count) == (0, 0)
    assert is_clean(Catalog(client.warehouse))


def test_vectors_are_taken_over_and_replaced(client: Client) -> None:
    assert commit_of_deletes(client, [vector(client, [1])])[0] == 200
    assert ids(client.warehouse) == [1, 3]
    # A second vector of the file stands beside the first: that is no table of Iceberg's.
    status, error = commit_of_deletes(client, [vector(client, [1, 2], "w")])
    assert status == 400 and "two deletion vectors" in error["message"]
    assert commit_of_deletes(client, [vector(client, [1, 2], "w")], keeps=False)[0] == 200
    assert ids(client.warehouse) == [1]
    assert client.lake.load_table("ns.t").scan().to_arrow()["id"].to_pylist() == [1]
    # Deleted rows do not come back.
    status, error = commit_of_deletes(client, [vector(client, [2], "x")], keeps=False)
    assert status == 400 and "would come back" in error["message"]
    status, error = commit_of_deletes(client, [], keeps=False)
    assert status == 400 and "would come back" in error["message"]
    assert ids(client.warehouse) == [1] and is_clean(Catalog(client.warehouse))


@pytest.mark.parametrize("rows_deleted", [[7], [1 << 31]])
def test_rows_that_a_file_does_not_have_are_not_deleted(client: Client, rows_deleted: list[int]) -> None:
    for forgery in (positions(client, rows_deleted), vector(client, rows_deleted)):
        status, error = commit_of_deletes(client, [forgery])
        assert status == 400, error
    assert client.is_unchanged()


def test_a_vector_that_counts_other_rows_than_it_has_is_refused(client: Client) -> None:
    forgery = vector(client, [1])
    forgery["data_file"]["record_count"] = 2
    status, error = commit_of_deletes(client, [forgery])
    assert status == 400 and "its manifest says 2" in error["message"]
    assert client.is_unchanged()


def test_positions_beside_a_new_vector_of_the_file_are_refused(client: Client) -> None:
    status, error = commit_of_deletes(client, [vector(client, [0]), positions(client, [1])])
    assert status == 400 and "readers ignore" in error["message"]
    assert client.is_unchanged()


TEXT, NUMBER = pa.string(), pa.int64()


@pytest.mark.parametrize(
    ("paths", "numbers"),
    [
        (pa.array(["FILE"]), pa.array([1.5])),
        (pa.array(["FILE"]), pa.array(["1"])),
        (pa.array(["FILE"]), pa.array([None], NUMBER)),
        (pa.array([None], TEXT), pa.array([1])),
        (pa.array([7]), pa.array([1])),
    ],
)
def test_position_files_of_other_columns_are_refused(
    client: Client, paths: pa.Array, numbers: pa.Array
) -> None:
    if paths.to_pylist() == ["FILE"]:
        paths = pa.array([data_file(client)])
    path = Path(client.table.location()) / "data" / "p.parquet"
    pq.write_table(pa.table({"file_path": paths, "pos": numbers}), path)
    status, error = commit_of_deletes(client, [entry(str(path), path.stat().st_size, 1)])
    assert status == 400 and "file of deleted rows" in error["message"]
    assert client.is_unchanged()


def test_a_position_file_that_is_not_parquet_is_refused(client: Client) -> None:
    path = Path(client.table.location()) / "data" / "p.parquet"
    path.write_bytes(b"PAR1" * 9)
    status, error = commit_of_deletes(client, [entry(str(path), path.stat().st_size, 1)])
    assert status == 400 and "cannot be read as Parquet" in error["message"]
    assert client.is_unchanged()


def test_damaged_vectors_are_refused(client: Client) -> None:
    for number, damage in enumerate(
        (
            {"content_offset": 1 << 40},
            {"content_offset": 1 << 62},
            {"content_size_in_bytes": 3},
            {"content_offset": -5},
        )
    ):
        forgery = vector(client, [1], f"d{number}")
        forgery["data_file"].update(damage)
        status, error = commit_of_deletes(client, [forgery])
        assert status == 400, error
    elsewhere = vector(client, [1])
    elsewhere["data_file"]["referenced_data_file"] = "/etc/hostname"
    assert commit_of_deletes(client, [elsewhere])[0] == 400
    assert client.is_unchanged()
