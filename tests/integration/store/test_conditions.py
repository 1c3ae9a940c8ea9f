"""Servers that ignore the condition of a put are refused before the first commit, at the cost of two requests."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import cloud_servers
from tests.processes.faulty_proxy import FaultyProxy, faulty_proxy

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.log import LogOptions, PermissionDenied, StorageError, Unsupported, open_store
from lakelog.log.stores import CountingStore, unknown_server
from lakelog.log.stores.s3_place import is_of_aws
from lakelog.testing.moto_server import moto_server

pytestmark = pytest.mark.s3

ROWS = pa.table({"id": [1, 2]})
OPTIONS = LogOptions(sleep_s=lambda seconds: None, snapshot_every_versions=0)
PROOF = "_txn/_rights"


@dataclasses.dataclass(frozen=True)
class Place:
    """A bucket behind a proxy that can ignore conditions."""

    proxy: FaultyProxy
    url: str
    options: dict[str, str]

    def catalog(self, name: str = "w") -> Catalog:
        return Catalog(f"{self.url}/{name}", options=self.options, log_options=OPTIONS)

    def keys(self, name: str = "w") -> list[str]:
        return list(open_store(f"{self.url}/{name}", self.options).list_after(""))

    def puts(self, work: Callable[[], object]) -> list[int]:
        """Return the status of each put of a proof while something is done."""
        self.proxy.answers = []
        work()
        answers, self.proxy.answers = self.proxy.answers, None
        return [
            status
            for command, path, status, _ in answers
            if command == "PUT" and unquote(path).endswith(f"/{PROOF}")
        ]


@pytest.fixture(scope="module", params=("moto", *cloud_servers.NAMES))
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FaultyProxy, str, dict[str, str]]]:
    if request.param == "moto":
        bucket = f"lake-{uuid.uuid4().hex[:12]}"
        with moto_server(bucket) as s3, s3.credentials(), faulty_proxy(s3.endpoint) as proxy:
            yield proxy, f"s3://{bucket}", {**s3.options, "endpoint": proxy.endpoint}
        return
    with (
        cloud_servers.running(request.param, tmp_path_factory.mktemp("objects")) as cloud,
        faulty_proxy(cloud.endpoint) as proxy,
    ):
        yield proxy, cloud.url, cloud.options_at(proxy.endpoint)


@pytest.fixture
def place(running: tuple[FaultyProxy, str, dict[str, str]]) -> Iterator[Place]:
    proxy, url, options = running
    yield Place(proxy, f"{url}/{uuid.uuid4().hex}", options)
    proxy.ignores_conditions, proxy.faults, proxy.answers = False, [], None
    proxy.refuse = lambda command, path, size: None


@pytest.fixture
def ignoring(place: Place) -> Place:
    place.proxy.ignores_conditions = True
    return place


def test_nothing_is_committed_on_a_server_that_ignores_the_condition(ignoring: Place) -> None:
    for work in (
        lambda catalog: catalog.create_table("t", ROWS.schema),
        lambda catalog: catalog.create_namespace("a"),
    ):
        with pytest.raises(Unsupported, match=r"ignores the condition of a put.*lakelog doctor") as refusal:
            work(ignoring.catalog())
        assert f"{ignoring.url}/w cannot hold a log: the server at {ignoring.proxy.endpoint}" in str(
            refusal.value
        )
    assert ignoring.keys() == [PROOF]


def test_the_command_says_so_in_a_line(
    ignoring: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    endpoint = next(value for name, value in ignoring.options.items() if name.endswith("endpoint"))
    where = ["--warehouse", f"{ignoring.url}/w", "--endpoint", endpoint]
    where += ["--region", ignoring.options["region"], "--path-style"] if "region" in ignoring.options else []
    assert run(["import", str(tmp_path), "t", "--format", "parquet", *where]) == 1
    message = capsys.readouterr().err
    assert "ignores the condition of a put" in message and "Traceback" not in message
    assert ignoring.keys() == [PROOF]


def test_a_place_that_was_refused_is_usable_once_its_server_holds_conditions(
    ignoring: Place, tmp_path: Path
) -> None:
    for name in ("w", "restored", "copied"):
        with pytest.raises(Unsupported):
            ignoring.catalog(name).create_table("t", ROWS.schema)
    assert not ignoring.catalog().fsck().found
    ignoring.proxy.ignores_conditions = False
    catalog = ignoring.catalog()
    catalog.create_table("t", ROWS.schema).append(ROWS)
    catalog.backup(str(tmp_path / "backups"))
    ignoring.catalog("restored").restore_warehouse(str(tmp_path / "backups"))
    catalog.copy(f"{ignoring.url}/copied")
    for name in ("w", "restored", "copied"):
        assert ignoring.catalog(name).load_table("t").to_arrow() == ROWS
        assert PROOF in ignoring.keys(name)
        ignoring.catalog(name).vacuum(dry_run=False)
        assert not ignoring.catalog(name).fsck(deep=True).found


def test_a_restore_and_a_copy_are_refused_before_they_make_a_warehouse(place: Place, tmp_path: Path) -> None:
    catalog = place.catalog()
    catalog.create_namespace("a")
    catalog.create_table("a.t", ROWS.schema).append(ROWS)
    catalog.backup(str(tmp_path / "backups"))
    place.proxy.ignores_conditions = True
    with pytest.raises(Unsupported, match="ignores the condition"):
        place.catalog("restored").restore_warehouse(str(tmp_path / "backups"))
    assert place.keys("restored") == [PROOF]
    for name in ("a.t", None):
        with pytest.raises(Unsupported, match="ignores the condition"):
            Catalog(catalog.warehouse, options=place.options).copy(
                f"{place.url}/copied", *([name] if name else [])
            )
        assert not any("_log/" in key for key in place.keys("copied"))


def test_the_proof_takes_two_requests_once_for_a_warehouse(place: Place) -> None:
    statuses = place.puts(lambda: place.catalog().create_table("t", ROWS.schema))
    assert len(statuses) == 2 and statuses[0] in (200, 201) and statuses[1] in (409, 412)
    catalog = place.catalog()  # as in another process, since a proof is remembered by its store

    def write() -> None:
        catalog.create_table("u", ROWS.schema).append(ROWS)
        catalog.create_namespace("a")

    assert place.puts(write) == []


def test_the_first_transaction_of_a_process_proves_the_server_again(place: Place) -> None:
    place.catalog().create_table("t", ROWS.schema)
    [status] = place.puts(lambda: place.catalog().rename_table("t", "u"))
    assert status in (409, 412)
    place.proxy.ignores_conditions = True
    with pytest.raises(Unsupported, match="ignores the condition"):
        place.catalog().rename_table("u", "v")
    place.proxy.ignores_conditions = False
    assert place.catalog().list_tables() == [("u",)]


def test_two_clients_at_once_set_up_one_warehouse(place: Place) -> None:
    catalogs = [place.catalog() for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: pair[1].create_table(f"t{pair[0]}", ROWS.schema), enumerate(catalogs)))
    assert len(place.catalog().list_tables()) == 2
    place.proxy.ignores_conditions = True
    others = [place.catalog("other") for _ in range(2)]

    def refused(catalog: Catalog) -> bool:
        with pytest.raises(Unsupported):
            catalog.create_table("t", ROWS.schema)
        return True

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(refused, others))
    assert place.keys("other") == [PROOF]


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize(
    "faults",
    [
        ["lost-503", "lost-reset"],
        ["500", "lost-500"],
        ["409", "409"],
        ["reset", "lost-409"],
    ],
    ids=" ".join,
)
def test_lost_answers_change_no_verdict(place: Place, faults: list[str], ignores: bool) -> None:
    place.proxy.ignores_conditions, place.proxy.faults = ignores, list(faults)
    if not ignores:
        place.catalog().create_table("t", ROWS.schema)
        assert place.catalog().load_table("t").version == 1
        return
    with pytest.raises(Unsupported, match="ignores the condition"):
        place.catalog().create_table("t", ROWS.schema)
    assert place.keys() == [PROOF] and not place.proxy.faults


def test_a_server_without_a_usable_answer_gets_no_commit(place: Place) -> None:
    place.proxy.faults = ["500"] * OPTIONS.put_tries
    with pytest.raises(StorageError):
        place.catalog().create_table("t", ROWS.schema)
    assert not place.proxy.faults and place.keys() == []


def test_a_client_needs_the_right_to_write_the_proof_and_no_right_to_delete(place: Place) -> None:
    place.proxy.refuse = lambda command, path, size: (
        (403, "AccessDenied") if command == "PUT" and unquote(path).endswith(f"/{PROOF}") else None
    )
    with pytest.raises(PermissionDenied, match="_txn/_rights"):
        place.catalog().create_table("t", ROWS.schema)
    assert place.keys() == []
    place.proxy.refuse = lambda command, path, size: (
        (403, "AccessDenied") if command == "DELETE" or "delete" in path else None
    )
    place.catalog().create_table("t", ROWS.schema)
    assert place.catalog().list_tables() == [("t",)]


def test_a_table_outside_of_its_warehouse_is_refused_too(place: Place, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"), options=place.options, log_options=OPTIONS)
    place.proxy.ignores_conditions = True
    with pytest.raises(Unsupported, match="ignores the condition"):
        catalog.create_table("t", ROWS.schema, location=f"{place.url}/t")
    assert place.keys("t") == [PROOF] and catalog.list_tables() == []
    place.proxy.ignores_conditions = False
    statuses = place.puts(
        lambda: catalog.create_table("t", ROWS.schema, location=f"{place.url}/t").append(ROWS)
    )
    assert len(statuses) == 1 and statuses[0] in (409, 412)
    # The bucket's server is proven now, for all tables there.
    assert place.puts(lambda: catalog.create_table("u", ROWS.schema, location=f"{place.url}/u")) == []
    catalog.vacuum(dry_run=False)
    assert not catalog.fsck(deep=True).found
    catalog.drop_table("t", purge=True)
    assert catalog.create_table("t", ROWS.schema, location=f"{place.url}/t").append(ROWS).to_arrow() == ROWS


def test_only_the_clouds_own_servers_are_known(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"{place.url}/w", place.options)
    assert unknown_server(store) == unknown_server(CountingStore(store)) != ""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    for url in ("s3://b/w", "gs://b/w", "abfss://c@account.dfs.core.windows.net/w", "/w", "memory://w"):
        assert unknown_server(open_store(url, {"region": "eu-central-1"})) == ""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://user:pass@127.0.0.1:9")
    assert (
        unknown_server(open_store("s3://b/w", {"region": "eu-central-1"}))
        == "the address that AWS's settings name"
    )
    assert is_of_aws("b.s3.eu-central-1.amazonaws.com") and is_of_aws("s3.cn-north-1.amazonaws.com.cn")
    assert not is_of_aws("amazonaws.com.example.org")
    assert not is_of_aws("a.op-1.s3-outposts.us-west-2.amazonaws.com")
