"""A catalog on S3 from end to end: Python client, many writers, the command."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests import s3_servers
from tests.integration.printing import objects

from lakelog.catalog import Catalog, col
from lakelog.cli.main import run
from lakelog.testing.moto_server import S3Server, moto_server

pytestmark = pytest.mark.s3

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


@dataclass(frozen=True, slots=True)
class Place:
    server: S3Server
    warehouse: str

    def catalog(self) -> Catalog:
        return Catalog(self.warehouse, options=self.server.options)


@pytest.fixture(scope="module", params=s3_servers.NAMES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[S3Server, str]]:
    with s3_servers.running(request.param, tmp_path_factory.mktemp("s3") / "objects") as running_pair:
        yield running_pair


@pytest.fixture
def place(server: tuple[S3Server, str]) -> Place:
    """A warehouse that was never used before."""
    return Place(server[0], f"s3://{server[1]}/{uuid.uuid4().hex}/warehouse")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


def test_a_table_on_s3_is_written_read_changed_and_looked_back_at(place: Place) -> None:
    catalog = place.catalog()
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, 2)).append(rows(3))
    table = table.alter([{"change": "rename-column", "name": ["name"], "new_name": "label"}])
    again = place.catalog().load_table("a.t")
    assert again.scan(columns=["label"], filter=col("id") >= 2).to_arrow().to_pydict() == {
        "label": ["n2", "n3"]
    }
    assert again.at(version=2).to_arrow().to_pydict() == {"id": [1, 2], "name": ["n1", "n2"]}
    assert place.catalog().table_at(again.location.replace("s3://", "s3a://") + "/").row_count == 3


def test_many_writers_append_and_nothing_is_lost_or_doubled(place: Place) -> None:
    place.catalog().create_table("t", SCHEMA)

    def write(writer: int) -> None:
        table = place.catalog().load_table("t")
        for number in range(4):
            table.append(rows(writer * 100 + number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    table = place.catalog().load_table("t")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [w * 100 + n for w in range(4) for n in range(4)]
    assert table.version <= 17


def test_the_command_reads_s3(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.catalog().create_table("t", SCHEMA).append(rows(1))
    where = ["--endpoint", place.server.endpoint, "--region", place.server.region, "--path-style", "--json"]
    assert run(["history", "t", "--warehouse", place.warehouse, *where]) == 0
    assert [entry["operation"] for entry in objects(capsys.readouterr().out)] == ["append", "create"]
    assert run(["files", place.catalog().load_table("t").location, *where]) == 0
    assert objects(capsys.readouterr().out)[0]["rows"] == 1


def test_a_missing_bucket_is_one_clear_line(
    server: tuple[S3Server, str], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = f"s3://no-such-bucket-{uuid.uuid4().hex[:8]}/w"
    assert run(["ls", "--warehouse", missing, "--endpoint", server[0].endpoint, "--path-style"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("lakelog: ") and message.count("\n") == 1 and "bucket" in message


def test_a_backup_goes_from_a_bucket_to_a_folder_and_back(place, tmp_path):
    catalog = place.catalog()
    catalog.create_table("t", SCHEMA).append(pa.table({"id": [1, 2], "name": ["a", "b"]})).delete("id = 1")
    for index, at in enumerate(
        (str(tmp_path / "backups"), place.warehouse.replace("/warehouse", "/backups"))
    ):
        catalog.backup(at)
        assert not catalog.verify_backup(at).problems
        target = place.warehouse.replace("/warehouse", f"/restored-{index}")
        restored_catalog = Catalog(target, options=place.server.options)
        restored_catalog.restore_warehouse(at)
        assert restored_catalog.load_table("t").to_arrow().to_pylist() == [{"id": 2, "name": "b"}]
        assert not restored_catalog.fsck(deep=True).found


def test_a_bucket_that_encrypts_by_a_key_of_kms_needs_nothing_to_be_set() -> None:
    kms = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:us-east-1:1:key/k"}
    rule = {"ApplyServerSideEncryptionByDefault": kms, "BucketKeyEnabled": True}
    with moto_server("encrypted") as server, server.credentials(), server.client() as client:
        client.put_bucket_encryption(Bucket="encrypted", ServerSideEncryptionConfiguration={"Rules": [rule]})
        catalog = Catalog("s3://encrypted/w", options=server.options)
        catalog.create_table("t", SCHEMA).append(rows(1, 2)).delete(col("id") == 1)
        assert Catalog("s3://encrypted/w", options=server.options).load_table("t").to_arrow()[
            "id"
        ].to_pylist() == [2]
        keys = [content["Key"] for content in client.list_objects_v2(Bucket="encrypted")["Contents"]]
        found = [client.head_object(Bucket="encrypted", Key=key).get("ServerSideEncryption") for key in keys]
        assert set(found) == {"aws:kms"} and len(found) > 4
