"""A published catalog in a bucket: by the command, and before clients that sign their requests, or do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.readers import duckdb_with_iceberg
from tests.integration.iceberg.serving import readable_by_all

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.testing.moto_server import S3Server, moto_server
from lakelog.testing.versitygw import INSTALL, find_versitygw, versitygw, versitygw_before

pytestmark = [
    pytest.mark.s3,
    pytest.mark.skipif(find_versitygw() is None, reason=f"no versitygw, which checks signatures: {INSTALL}"),
]
WAREHOUSE = "s3://lake/w"
ID = pa.schema({"id": pa.int64()})
ODD = ("ä b+c%d", "ü")
UNSIGNED: dict[str, Any] = {"auth": {"type": "noop"}}
"""Without this pyiceberg sends a header that S3 takes for a signature."""


def command(server: S3Server, *arguments: str) -> int:
    place = [
        "--warehouse",
        WAREHOUSE,
        "--endpoint",
        server.endpoint,
        "--region",
        server.region,
        "--path-style",
    ]
    return run(["publish", *place, *arguments])


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[S3Server, S3Server]]:
    """A server with a published warehouse, and one before it, which checks signatures."""
    with moto_server() as server, server.credentials():
        catalog = Catalog(WAREHOUSE, options=server.options)
        for namespace in ("shop", ("shop", "old"), ODD[:1]):
            catalog.create_namespace(namespace)
        for name, ids in ((("shop", "orders"), [1, 2, 3]), (("shop", "old", "t"), [7]), (ODD, [8])):
            catalog.create_table(name, ID).append(pa.table({"id": ids}))
        assert command(server) == 0
        with versitygw_before(server, tmp_path_factory.mktemp("gateway") / "log") as gateway:
            yield server, gateway


@pytest.fixture
def public(servers: tuple[S3Server, S3Server]) -> Iterator[S3Server]:
    """The gateway, while clients without a name may read the bucket."""
    _, gateway = servers
    with readable_by_all(gateway, "lake"):
        yield gateway


def uri(server: S3Server) -> str:
    return f"{server.endpoint}/lake/w/_rest"


def for_files(server: S3Server) -> dict[str, str]:
    return {
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": server.access_key,
        "s3.secret-access-key": server.secret_key,
        "s3.region": server.region,
    }


def ids(table) -> list[int]:
    return table.scan().to_arrow()["id"].to_pylist()


def test_pyiceberg_reads_a_public_tree_without_a_signature(public: S3Server) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    lake = load_catalog("lake", type="rest", uri=uri(public), **UNSIGNED, **for_files(public))
    assert lake.list_namespaces() == [("shop",), ("shop", "old"), ODD[:1]]
    assert lake.list_tables(("shop", "old")) == [("shop", "old", "t")]
    assert (ids(lake.load_table("shop.orders")), ids(lake.load_table(("shop", "old", "t")))) == (
        [1, 2, 3],
        [7],
    )
    assert ids(lake.load_table(ODD)) == [8]
    assert lake.table_exists("shop.orders") and not lake.table_exists("shop.none")
    with pytest.raises(NoSuchTableError):
        lake.load_table("shop.none")
    with pytest.raises(NoSuchNamespaceError):
        lake.list_tables("none")
    with pytest.raises(NotImplementedError, match="does not support endpoint: POST"):
        lake.create_namespace("more")


def test_pyiceberg_signs_requests_for_names_that_need_no_escapes(servers: tuple[S3Server, S3Server]) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import ForbiddenError

    _, gateway = servers
    signing = {
        "rest.sigv4-enabled": "true",
        "rest.signing-name": "s3",
        "rest.signing-region": gateway.region,
        "client.access-key-id": gateway.access_key,
        "client.secret-access-key": gateway.secret_key,
        "client.region": gateway.region,
    }
    lake = load_catalog("lake", type="rest", uri=uri(gateway), **for_files(gateway), **signing)
    assert ids(lake.load_table("shop.orders")) == [1, 2, 3]
    # It signs an escaped path as other services want it, and not as S3 does.
    with pytest.raises(ForbiddenError, match="SignatureDoesNotMatch"):
        lake.load_table(("shop", "old", "t"))
    with pytest.raises(ForbiddenError):
        load_catalog("lake", type="rest", uri=uri(gateway), **UNSIGNED)


SIGNED = "AUTHORIZATION_TYPE 'sigv4', SECRET 'of_publish', SIGV4_SERVICE 's3', SIGV4_REGION 'us-east-1'"


@pytest.mark.parametrize("authorization", ["AUTHORIZATION_TYPE 'none'", SIGNED])
def test_duckdb_attaches_a_tree(
    servers: tuple[S3Server, S3Server], request: pytest.FixtureRequest, authorization: str
) -> None:
    _, gateway = servers
    if authorization != SIGNED:
        request.getfixturevalue("public")
    duckdb = duckdb_with_iceberg().cursor()
    duckdb.execute(
        f"CREATE OR REPLACE SECRET of_publish (TYPE s3, KEY_ID '{gateway.access_key}', SECRET '{gateway.secret_key}', "
        f"ENDPOINT '{gateway.endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1', "
        "SCOPE 's3://lake/w')"
    )
    duckdb.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{uri(gateway)}', {authorization})")
    try:
        rows = duckdb.execute("SELECT schema, name FROM (SHOW ALL TABLES) WHERE database = 'lake'").fetchall()
        assert rows == [("shop", "orders"), ("shop.old", "t"), ODD]
        for name, total in (("shop.orders", 6), ('"shop.old".t', 7), ('"ä b+c%d"."ü"', 8)):
            assert duckdb.execute(f"SELECT sum(id) FROM lake.{name}").fetchall() == [(total,)]
        with pytest.raises(Exception, match="MethodNotAllowed_405"):
            duckdb.execute("CREATE SCHEMA lake.more")
    finally:
        duckdb.execute("DETACH lake")
        duckdb.execute("DROP SECRET of_publish")


def test_the_command_says_what_it_did(
    servers: tuple[S3Server, S3Server], capsys: pytest.CaptureFixture
) -> None:
    server, _ = servers
    catalog = Catalog(WAREHOUSE, options=server.options)
    catalog.create_table("shop.pauses", pa.schema({"pause": pa.duration("us")}))
    catalog.create_namespace(("shop", "new"))
    assert command(server) == 0
    said = capsys.readouterr()
    assert said.out == f"{uri(server)}\n"
    assert (
        "3 tables and 0 views in 4 namespaces; 4 objects written (" in said.err
        and "), 0 removed." in said.err
    )
    assert "left out: shop.pauses: " in said.err
    catalog.drop_namespace(("shop", "new"))
    assert command(server, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    # Keys that a request to delete many cannot name.
    assert (found["written"], found["removed"]) == (1, 3)
    assert found["left_out"][0]["name"] == "shop.pauses" and found["uri"] == uri(server)
    assert command(server, "shop.old", "--to", "s3://lake/old") == 0
    assert capsys.readouterr().out == f"{server.endpoint}/lake/old\n"
    with server.client() as client:
        got = client.get_object(Bucket="lake", Key="old/v1/namespaces")
    assert json.loads(got["Body"].read()) == {"namespaces": [["shop", "old"]]}
    assert got["ContentType"] == "application/json"
    assert command(server, "shop") == 2
    assert "give --to" in capsys.readouterr().err
    assert command(server, "--to", "s3://lake/old") == 1
    assert "another warehouse or namespace" in capsys.readouterr().err


def test_a_place_that_cannot_hold_a_tree_is_refused(
    servers: tuple[S3Server, S3Server], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    server, _ = servers
    assert command(server, "--to", str(tmp_path / "tree")) == 1
    assert "run lakelog serve" in capsys.readouterr().err and not (tmp_path / "tree").exists()
    with versitygw(tmp_path / "objects") as over_folders:
        catalog = Catalog(WAREHOUSE, options=over_folders.options)
        catalog.create_namespace("shop")
        catalog.create_table("shop.orders", ID)
        assert command(over_folders) == 1
    assert "no objects at and below one name" in capsys.readouterr().err


def test_credentials_of_another_bucket_are_an_error_that_says_so(
    servers: tuple[S3Server, S3Server], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    _, gateway = servers
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-another-bucket")
    assert command(gateway) == 1
    assert "the store refuses these credentials" in capsys.readouterr().err
