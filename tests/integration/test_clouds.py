"""Google Cloud Storage and Azure as the places of warehouses: tables, maintenance, backups, and the command."""

from __future__ import annotations

import json
import pickle
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import cloud_servers, s3_servers
from tests.cloud_servers import CloudServer

from lakelog.catalog import Catalog, NotFound, StorageError, Table, col
from lakelog.catalog.core.logs import WarehouseStores
from lakelog.cli.main import run
from lakelog.log import open_store, wait_for_background
from lakelog.log.doctor import CheckVerdict, examine
from lakelog.log.stores import list_stamps
from lakelog.rest import BucketTree

pytestmark = pytest.mark.s3
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "ü", "c/d"]})


@pytest.fixture(scope="module", params=cloud_servers.NAMES)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    with cloud_servers.running(request.param, tmp_path_factory.mktemp("objects")) as server:
        yield server
        wait_for_background()


@pytest.fixture
def catalog(cloud: CloudServer) -> Catalog:
    return Catalog(f"{cloud.url}/{uuid4().hex}/w", options=cloud.options)


def test_a_table_lives_there_from_its_first_row_to_its_vacuum(catalog: Catalog) -> None:
    table = catalog.create_table("t", ROWS.schema, partition_by=["name"]).append(ROWS)
    table.delete("id = 2")
    table = catalog.load_table("t").update({"id": "id + 10"}, col("id") > 2)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 13]
    catalog.clone("t", "c")
    assert catalog.load_table("c").materialize().files > 0
    catalog.drop_table("c")
    with pytest.raises(NotFound):
        catalog.load_table("c")
    table = catalog.load_table("t").overwrite(ROWS)
    catalog.expire(older_than=timedelta(0))
    catalog.vacuum(older_than=timedelta(0), dropped_older_than=timedelta(0))
    assert catalog.load_table("t").to_arrow().num_rows == 3
    assert not catalog.fsck().found


def test_writers_of_one_table_lose_no_rows_and_propose_their_changes(
    cloud: CloudServer, catalog: Catalog
) -> None:
    catalog.create_table("t", ROWS.schema)

    def write(writer: int) -> None:
        own = Catalog(catalog.warehouse, options=cloud.options)
        for _ in range(5):
            own.load_table("t").append(ROWS)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    wait_for_background()
    assert catalog.load_table("t").to_arrow().num_rows == 60
    assert not catalog.fsck().found


def test_a_table_is_sent_to_another_process_without_its_keys(catalog: Catalog) -> None:
    table = catalog.create_table("t", ROWS.schema).append(ROWS)
    sent = pickle.dumps(table)
    assert cloud_servers.ACCOUNT_KEY.encode() not in sent
    received: Table = pickle.loads(sent)
    assert received.to_arrow() == ROWS


def test_one_transaction_commits_to_stores_of_two_kinds(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("here", ROWS.schema)
    catalog.create_table("elsewhere", ROWS.schema, location=str(tmp_path / "elsewhere"))
    with catalog.begin() as transaction:
        for name in ("here", "elsewhere"):
            transaction.load_table(name).append(ROWS)
    for name in ("here", "elsewhere"):
        assert catalog.load_table(name).to_arrow() == ROWS


def test_one_transaction_commits_to_both_clouds(cloud: CloudServer, catalog: Catalog, tmp_path: Path) -> None:
    other_name = next(
        name for name in cloud_servers.NAMES if (name == "azurite") == cloud.url.startswith("gs:")
    )
    with cloud_servers.running(other_name, tmp_path / "objects") as second_server:
        both = Catalog(catalog.warehouse, options={**cloud.options, **second_server.options})
        both.create_table("here", ROWS.schema)
        both.create_table("elsewhere", ROWS.schema, location=f"{second_server.url}/{uuid4().hex}/t")
        with both.begin() as transaction:
            for name in ("here", "elsewhere"):
                transaction.load_table(name).append(ROWS)
        for name in ("here", "elsewhere"):
            assert both.load_table(name).to_arrow() == ROWS
        assert not both.fsck().found
        wait_for_background()


def test_a_backup_in_a_folder_is_restored_there_and_back(
    cloud: CloudServer, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create_table("t", ROWS.schema).append(ROWS)
    catalog.backup(str(tmp_path / "backup"))
    other = Catalog(f"{cloud.url}/{uuid4().hex}/restored", options=cloud.options)
    other.restore_warehouse(str(tmp_path / "backup"))
    assert other.load_table("t").to_arrow() == ROWS
    place = f"{cloud.url}/{uuid4().hex}/backup"
    other.backup(place)
    home = Catalog(str(tmp_path / "home"), options=cloud.options)
    home.restore_warehouse(place)
    assert home.load_table("t").to_arrow() == ROWS and not home.fsck().found


def test_a_backup_goes_from_s3_to_the_cloud_and_back(cloud: CloudServer, tmp_path: Path) -> None:
    with s3_servers.running(s3_servers.NAMES[0], tmp_path / "objects") as (server, bucket):
        options = {**server.options, **cloud.options}
        on_s3 = Catalog(f"s3://{bucket}/{uuid4().hex}/w", options=options)
        on_s3.create_table("t", ROWS.schema).append(ROWS)
        place = f"{cloud.url}/{uuid4().hex}/backup"
        on_s3.backup(place)
        back = Catalog(f"s3://{bucket}/{uuid4().hex}/w", options=options)
        back.restore_warehouse(place)
        assert back.load_table("t").to_arrow() == ROWS
        wait_for_background()


def test_tables_are_exported_imported_and_copied_there(cloud: CloudServer, catalog: Catalog) -> None:
    table = catalog.create_table("t", ROWS.schema).append(ROWS)
    metadata = table.export_iceberg().url
    files = open_store(f"{cloud.url}/{uuid4().hex}", cloud.options)
    content = BytesIO()
    pq.write_table(ROWS, content)
    for name in ("a", "b"):
        files.put(f"p/{name}.parquet", content.getvalue())
    other = Catalog(f"{cloud.url}/{uuid4().hex}/w", options=cloud.options)
    other.import_table(metadata, "iceberg", format="iceberg")
    other.import_table(f"{files.url}/p", "parquet", format="parquet", copy=True)
    assert other.load_table("iceberg").to_arrow() == ROWS
    assert other.load_table("parquet").to_arrow().num_rows == 6
    place = f"{cloud.url}/{uuid4().hex}/copy"
    catalog.copy(place)
    copied = Catalog(place, options=cloud.options)
    assert copied.load_table("t").to_arrow() == ROWS and not copied.fsck().found


def test_the_command_has_the_server_by_one_option(
    cloud: CloudServer, catalog: Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog.create_table("t", ROWS.schema).append(ROWS)
    (endpoint,) = cloud.options.values()
    shared = ["--warehouse", catalog.warehouse, "--endpoint", endpoint]
    assert run(["ls", *shared]) == 0
    assert "t" in capfd.readouterr().out
    assert run(["fsck", *shared]) == 0
    capfd.readouterr()
    assert run(["cat", catalog.load_table("t").location, "1", "--endpoint", endpoint]) == 0
    capfd.readouterr()
    # The settings are not read, so the answer is that something is unknown.
    assert run(["doctor", catalog.warehouse, "--endpoint", endpoint, "--json"]) == 3
    answer = json.loads(capfd.readouterr().out)
    assert answer["can_be_used"]
    assert [each["name"] for each in answer["checks"] if each["verdict"] != "good"] == ["settings"]


def test_the_doctor_finds_a_server_that_ignores_conditions(
    cloud: CloudServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{cloud.url}/{uuid4().hex}"
    kind = type(open_store(url, cloud.options))
    monkeypatch.setattr(kind, "put_if_absent", lambda self, key, data: self.put(key, data) or True)
    report = examine(lambda: open_store(url, cloud.options), races_max=2)
    assert report.worst is CheckVerdict.BAD
    (check,) = [each for each in report.checks if each.name == "put-if-absent: sent twice"]
    assert check.verdict is CheckVerdict.BAD and "was created once more" in check.what
    assert list(open_store(url, cloud.options).list_after("")) == []


def test_a_catalog_for_readers_of_iceberg_is_published_there(
    cloud: CloudServer, catalog: Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog.create_namespace("shop")
    catalog.create_namespace(("shop", "inner"))
    metadata = catalog.create_table("shop.t", ROWS.schema).append(ROWS).export_iceberg().url
    catalog.create_table("shop.inner.u", ROWS.schema)
    (endpoint,) = cloud.options.values()
    command = ["publish", "--warehouse", catalog.warehouse, "--endpoint", endpoint]
    assert run(command) == 0
    # obstore takes no control character, which the key of a namespace inside another has.
    assert "no key for a namespace inside another" in "".join(capfd.readouterr())
    tree = open_store(f"{catalog.warehouse}/_rest", cloud.options)
    document = json.loads(tree.get("v1/namespaces/shop/tables/t") or b"")
    assert document["metadata-location"] == metadata
    assert json.loads(tree.get("v1/namespaces") or b"") == {"namespaces": [["shop"]]}
    stamps_before = dict(list_stamps(tree, ""))
    catalog.drop_table("shop.t")
    assert run([*command, "--json"]) == 0
    stamps_after = dict(list_stamps(tree, ""))
    assert stamps_before.keys() - stamps_after.keys() == {"v1/namespaces/shop/tables/t"}
    if cloud.url.startswith("gs:"):
        # An ETag is the MD5 there, so a new process writes what has changed alone.
        changed = {key for key, stamp in stamps_after.items() if stamps_before.get(key) != stamp}
        assert changed == {"v1/namespaces/shop/tables"}
        address = f"{endpoint}/{catalog.warehouse.removeprefix('gs://')}/_rest/v1/namespaces"
        assert BucketTree(WarehouseStores(catalog.warehouse, cloud.options), tree.url).uri in address
        with urllib.request.urlopen(address) as answer:
            assert answer.headers["Content-Type"] == "application/json"


def test_a_missing_bucket_names_itself(cloud: CloudServer) -> None:
    scheme, _, place = cloud.url.partition("://")
    _, at, host = place.partition("@")
    missing = Catalog(f"{scheme}://no-such-{uuid4().hex[:8]}{at}{host}/w", options=cloud.options)
    with pytest.raises(StorageError, match="no bucket or container"):
        missing.create_table("t", ROWS.schema)
