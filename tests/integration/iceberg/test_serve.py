"""Clients of Iceberg's REST catalog, before a server of a warehouse."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from tests.integration.iceberg.readers import duckdb_with_iceberg
from tests.integration.iceberg.serving import served
from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema import FunctionDefinition, ViewColumn, ViewDefinition
from lakelog.rest import WarehouseAnswers, serve
from lakelog.rest.serving import RunningServer


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("shop", properties={"comment": "of tea"})
    catalog.create_namespace(("shop", "old/er"))
    for name, ids in ((("shop", "orders"), [1, 2, 3]), (("shop", "old/er", "t"), [7])):
        catalog.create_table(name, pa.schema({"id": pa.int64()})).append(pa.table({"id": ids}))
    catalog.create_table("shop.pauses", pa.schema({"pause": pa.duration("us")}))
    return str(tmp_path / "w")


@pytest.fixture
def url(warehouse: str) -> Iterator[str]:
    with served(warehouse) as url:
        yield url


def test_pyiceberg_finds_namespaces_and_tables_and_reads(url: str, warehouse: str) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError, RESTError

    catalog = load_catalog("lake", type="rest", uri=url, **{"snapshot-loading-mode": "refs"})
    assert catalog.list_namespaces() == [("shop",)]
    assert catalog.list_namespaces("shop") == [("shop", "old/er")]
    assert catalog.load_namespace_properties("shop")["comment"] == "of tea"
    assert sorted(catalog.list_tables("shop")) == [("shop", "orders"), ("shop", "pauses")]
    orders = catalog.load_table("shop.orders")
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
    assert catalog.load_table(("shop", "old/er", "t")).scan().to_arrow()["id"].to_pylist() == [7]
    # What is committed later, a client finds when it loads again.
    Catalog(warehouse).load_table("shop.orders").append(pa.table({"id": [4]}))
    assert orders.refresh().scan().to_arrow().num_rows == 4
    assert catalog.table_exists("shop.orders") and not catalog.table_exists("shop.none")
    with pytest.raises(NoSuchTableError, match="there is no table"):
        catalog.load_table("shop.none")
    with pytest.raises(RESTError, match=r"Iceberg cannot have this table \(the column pause"):
        catalog.load_table("shop.pauses")
    with pytest.raises((RESTError, NotImplementedError)):
        catalog.create_namespace("more")
    assert Catalog(warehouse).list_namespaces() == [("shop",)]


def test_views_with_a_plain_query_are_shown(url: str, warehouse: str) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchViewError

    catalog = Catalog(warehouse)
    column = ViewColumn(name="n", type="long")
    plain = ViewDefinition(text="SELECT count(*) AS n FROM orders", columns=(column,), namespace=("shop",))
    engine.create_view(catalog, "shop.first", plain)
    catalog.rename_view("shop.first", "shop.total")
    engine.create_view(catalog, "shop.gross", replace(plain, text="SELECT sum(_row_id) AS n FROM orders"))
    engine.create_function(catalog, "shop.tax", FunctionDefinition(language="sql", body="1"))
    engine.create_view(catalog, "shop.taxed", replace(plain, text="SELECT tax(id) AS n FROM orders"))
    lake = load_catalog("lake", type="rest", uri=url)
    assert lake.list_views("shop") == [("shop", "total")]
    assert lake.list_views(("shop", "old/er")) == []
    assert lake.view_exists("shop.total") and not lake.view_exists("shop.none")
    view = lake.load_view("shop.total")
    (version,) = view.metadata.versions
    assert version.representations[0].root.sql == "SELECT count(*) AS n FROM orders"
    assert version.default_namespace == ("shop",) and version.timestamp_ms > 1_700_000_000_000
    assert [field.name for field in view.metadata.schemas[0].fields] == ["n"]
    engine.replace_view(catalog, "shop.total", replace(plain, properties={"comment": "all"}))
    replaced_metadata = lake.load_view("shop.total").metadata
    assert (
        replaced_metadata.properties == {"comment": "all"}
        and replaced_metadata.view_uuid == view.metadata.view_uuid
    )
    assert replaced_metadata.current_version_id > version.version_id
    with pytest.raises(NoSuchViewError):
        lake.load_view("shop.none")
    for name, why in (("gross", "_row_id"), ("taxed", "the function tax")):
        status, said = asked(f"{url}/v1/namespaces/shop/views/{name}")
        assert status == 400 and why in said["error"]["message"]


def test_duckdb_attaches_the_warehouse(url: str) -> None:
    connection = duckdb_with_iceberg().cursor()
    connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{url}', AUTHORIZATION_TYPE 'none')")
    try:
        assert connection.execute("SELECT sum(id) FROM lake.shop.orders").fetchall() == [(6,)]
    finally:
        connection.execute("DETACH lake")


def asked(url: str, method: str = "GET") -> tuple[int, dict]:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method, data=b"{}" if method == "POST" else None)
        ) as got:
            body = got.read()
            return got.status, json.loads(body) if body else {}
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def test_what_is_no_read_is_refused_and_says_why(url: str) -> None:
    status, found = asked(f"{url}/v1/namespaces", "POST")
    assert status == 405 and "read only" in found["error"]["message"]
    assert asked(f"{url}/v1/config")[1]["endpoints"][0] == "GET /v1/{prefix}/namespaces"
    assert asked(f"{url}/v1/namespaces/shop", "HEAD") == (204, {})
    assert asked(f"{url}/v1/namespaces/nothing", "HEAD")[0] == 404
    assert asked(f"{url}/v1/namespaces/nothing/tables")[1]["error"]["type"] == "NoSuchNamespaceException"
    for path in (
        "",
        "/v2/config",
        "/v1/namespaces/shop/tables/orders/more",
        "/v1/namespaces/..%2F..%2Fetc/tables/x",
    ):
        assert asked(url + path)[0] == 404, path
    assert asked(f"{url}/v1/namespaces?parent=%00%1f")[0] in (400, 404)


def test_what_a_request_brings_along_is_not_taken_for_the_next_one(url: str) -> None:
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10) as connection:
        inner = b"GET /v1/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n"
        fields = b"Host: localhost\r\nConnection: close\r\nContent-Length: %d" % len(inner)
        connection.sendall(b"GET /v1/config HTTP/1.1\r\n%s\r\n\r\n" % fields + inner)
        data = b"".join(iter(lambda: connection.recv(65536), b""))
    assert data.count(b"HTTP/1.1 200") == 1


def sent(url: str, data: bytes) -> tuple[int, dict]:
    """Return the answer to these bytes; a server that resets the connection fails the test."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10) as connection:
        connection.sendall(data)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST:99", "lake.localhost", "[::1]:99", "10.1.2.3"]
)
def test_a_client_on_this_host_is_served(url: str, host: str) -> None:
    status, _ = sent(url, f"GET /v1/config HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert status == 200


@pytest.mark.parametrize(
    "host", ["example.com", "localhost.example.com", "127.0.0.1.example.com", "", "[", "a@b"]
)
def test_a_web_page_that_is_led_here_by_a_name_of_its_own_is_refused(url: str, host: str) -> None:
    """The name's address was changed to this host's after the page was loaded: then a browser lets the page read."""
    status, found = sent(
        url, f"GET /v1/namespaces HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    )
    assert status == 403 and "use localhost or 127.0.0.1" in found["error"]["message"]


def test_a_large_write_is_refused_with_the_reason_and_no_reset(url: str) -> None:
    fields = b"Host: localhost\r\nConnection: close\r\nContent-Length: %d" % (30 << 20)
    head = b"POST /v1/namespaces/shop/tables HTTP/1.1\r\n%s\r\n\r\n" % fields
    status, found = sent(url, head + bytes(30 << 20))
    assert status == 405 and "read only" in found["error"]["message"]


def test_what_is_no_request_is_answered_in_json_too(url: str) -> None:
    for status, data in (
        (431, b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * 70_000)),
        (431, b"GET /v1/config HTTP/1.1\r\nX: %s\r\n\r\n" % (b"y" * 70_000)),
        (400, b"GET /%s HTTP/1.1\r\n\r\n" % bytes(7)),
        (400, b"GET /v1/config HTTP/1.1\r\n\r\n"),
        (405, b"BREW /v1/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    ):
        number, error = sent(url, data)
        assert (number, error["error"]["code"]) == (status, status)


def test_a_client_that_goes_away_is_not_in_the_log(url: str, capfd: pytest.CaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10) as connection:
        connection.sendall(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert asked(f"{url}/v1/config")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_failure_of_the_server_itself_is_answered(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WarehouseAnswers, "answer", lambda *arguments: 1 // 0)
    status, found = asked(f"{url}/v1/config")
    assert (status, found["error"]["type"]) == (500, "InternalServerError")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.skipif(not socket.has_ipv6, reason="Python was built without IPv6")
def test_a_host_of_ipv6_is_served(warehouse: str) -> None:
    found_pairs: list[tuple[str, int]] = []

    def began(url: str, server: RunningServer) -> None:
        def ask() -> None:
            found_pairs.append((url, asked(f"{url}/v1/config")[0]))
            server.shutdown()

        threading.Thread(target=ask).start()

    serve(WarehouseAnswers(Catalog(warehouse)), "::1", 0, began=began)
    assert found_pairs[0][0].startswith("http://[::1]:") and found_pairs[0][1] == 200


def test_the_command_serves_until_it_is_interrupted(warehouse: str) -> None:
    command = [sys.executable, "-m", "lakelog.cli", "serve", "--warehouse", warehouse, "--port", "0"]
    server = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # Where the tests run in the background of a shell, it is ignored, and would be here.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert server.stderr is not None
    try:
        match = re.search(r"at (http://127\.0\.0\.1:\d+), read only", server.stderr.readline())
        assert match is not None
        assert asked(f"{match[1]}/v1/namespaces")[1] == {"namespaces": [["shop"]]}
        assert "/v1/namespaces" in server.stderr.readline()
        process = subprocess.run(
            [*command[:-1], match[1].rpartition(":")[2]],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert process.returncode == 1 and "choose another --host or --port" in process.stderr
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) == 130
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
