"""`lakelog ui`: the answers of its server, who gets them, and limits that it keeps."""

from __future__ import annotations

import _thread
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from tests import s3_servers
from tests.integration.live import TOKEN, live, requested
from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.cli.server import ServerLog
from lakelog.cli.ui.answers import PageAnswers
from lakelog.cli.ui.queries import RunningQueries
from lakelog.log import wait_for_background
from lakelog.log.costs import CostTally, tallied
from lakelog.log.errors import InvalidInput

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"}, writer={"user": "ada"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(pa.table({"id": [1, 2], "name": ["<b>a\u202e", None]}, schema=SCHEMA))
    return catalog


@pytest.fixture
def page(catalog: Catalog) -> Iterator[str]:
    with live(catalog.warehouse) as url:
        yield url


def facts_of(page: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(data)


def asked(page: str, sql: str) -> tuple[int, Any]:
    response, answer = requested(page, "query", sql=sql, id="1")
    return response.status, answer


# Pages


def test_pages_lead_to_each_other(page: str, catalog: Catalog) -> None:
    response, text = requested(page, "")
    warehouse = facts_of(text)
    assert response.status == 200 and warehouse["kind"] == "warehouse"
    pages = {log["name"]: log.get("page") for log in warehouse["logs"]}
    assert pages == {"shop.orders": "at?name=shop.orders", "shop": "at?name=shop", "(root)": None}
    table = facts_of(requested(page, "at", name="shop.orders")[1])
    assert table["above"] == [[catalog.warehouse, "./"], ["shop", "at?name=shop"]]
    assert table["definitions"][0]["columns"][1]["name"] == "name" and table["changes"]["length"] == 2
    assert facts_of(requested(page, "at", name="shop")[1])["kind"] == "namespace"
    assert requested(page, "data", name="shop.orders")[1]["live"] == table["live"]


def test_first_rows_are_text_for_people(page: str) -> None:
    _, answer = requested(page, "rows", name="shop.orders")
    assert answer["columns"] == [["id", "int64", True], ["name", "string", False]]
    assert answer["rows"] == [["1", "<b>a\\u202e"], ["2", None]] and answer["read"] == "version 2"


def test_names_that_lead_nowhere_are_said_in_words(page: str) -> None:
    response, text = requested(page, "at", name="shop.<i>nothing")
    assert response.status == 404 and "there is no table" in text and "<i>" not in text
    response, answer = requested(page, "rows", name="shop.nothing")
    assert response.status == 404 and "there is no table" in answer["error"]["message"]
    assert requested(page, "nothing")[0].status == 404
    assert requested(page, "data", "PUT", name="shop.orders")[0].status == 405


# Versions


def test_the_newest_version_is_sent_only_if_it_is_news(page: str, catalog: Catalog) -> None:
    first, answer = requested(page, "versions", name="shop.orders")
    assert first.status == 200 and answer == {"poll_s": 2}
    tag = {"If-None-Match": first.headers["ETag"]}
    assert requested(page, "versions", headers=tag, name="shop.orders")[0].status == 304
    catalog.load_table("shop.orders").append(pa.table({"id": [3], "name": ["c"]}))
    second, _ = requested(page, "versions", headers=tag, name="shop.orders")
    assert second.status == 200 and second.headers["ETag"] != first.headers["ETag"]
    state = requested(page, "data", name="shop.orders")[1]["live"]["state"]
    assert second.headers["ETag"] == f'"{state}"'


def test_a_table_without_news_costs_one_request(catalog: Catalog) -> None:
    answers = PageAnswers(Catalog(catalog.warehouse), TOKEN, 300)
    target = f"/{TOKEN}/versions?name=shop.orders"
    tag = answers.answer("GET", target).headers["ETag"]
    tally = CostTally()
    with tallied(tally):
        assert answers.answer("GET", target, tag).status == 304
    assert dict(tally.requests) == {"get": 1}


def test_a_warehouse_has_news_if_any_log_has(page: str, catalog: Catalog) -> None:
    tags = []
    for change in (
        lambda: None,
        lambda: catalog.load_table("shop.orders").append(pa.table({"id": [3], "name": ["c"]})),
        lambda: catalog.create_table("shop.more", SCHEMA),
        lambda: catalog.drop_table("shop.more"),
    ):
        change()
        tags.append(requested(page, "versions")[0].headers["ETag"])
    assert len(set(tags)) == 4
    same_pair = requested(page, "versions", headers={"If-None-Match": tags[-1]})
    assert same_pair[0].status == 304


def test_a_table_that_takes_the_name_of_another_is_news(page: str, catalog: Catalog) -> None:
    first, _ = requested(page, "versions", name="shop.orders")
    catalog.drop_table("shop.orders")
    assert requested(page, "versions", name="shop.orders")[0].status == 404
    catalog.create_table("shop.orders", SCHEMA).append(pa.table({"id": [1], "name": ["a"]}))
    second, _ = requested(page, "versions", name="shop.orders")
    assert second.status == 200 and second.headers["ETag"] != first.headers["ETag"]


def test_a_damaged_table_has_its_page(page: str, catalog: Catalog) -> None:
    (commit,) = Path(catalog.load_table("shop.orders").location).glob("_log/*2.json")
    commit.write_bytes(b"{}")
    response, text = requested(page, "at", name="shop.orders")
    assert response.status == 200 and any(advice["level"] == "damage" for advice in facts_of(text)["health"])


# Queries


def test_a_query_reads_tables_and_says_which_versions(page: str) -> None:
    assert asked(page, 'SELECT count(*) AS n FROM "shop"."orders"') == (
        200,
        {
            "columns": [["n", "int64", True]],
            "rows": [["2"]],
            "more": False,
            "read": "`shop`.`orders` in version 2",
        },
    )
    status, answer = asked(page, "SELECT * FROM range(2000)")
    assert status == 200 and len(answer["rows"]) == 1000 and answer["more"]
    status, answer = asked(page, "SELECT repeat('x', 100000) AS long FROM range(900)")
    assert status == 200 and len(json.dumps(answer)) < 5_000_000 and answer["rows"][0][0].endswith("…")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_parquet('https://127.0.0.1:1/x.parquet')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.duckdb' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE mine AS SELECT 1",
        "INSERT INTO shop.orders VALUES (3, 'c')",
        "UPDATE shop.orders SET id = 9",
        "DELETE FROM shop.orders",
        "DROP TABLE shop.orders",
        "EXPORT DATABASE '{folder}/all'",
        "SELECT 1; SELECT 2",
        "SELECT getenv('PATH')",
        "SELECT * FROM shop.nothing",
        "SELECT nothing FROM shop.orders",
        "SELEC",
        "",
    ],
)
def test_no_query_reaches_files_or_changes_anything(
    page: str, catalog: Catalog, tmp_path: Path, sql: str
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\nclassified,2\n")
    wait_for_background()
    paths_before = sorted(tmp_path.rglob("*"))
    status, answer = asked(page, sql.format(secret=secret, folder=tmp_path))
    assert status in (400, 404) and answer["error"]["message"] and "classified" not in str(answer)
    assert sorted(tmp_path.rglob("*")) == paths_before and catalog.load_table("shop.orders").version == 2


SLOW = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = 7"


def test_a_query_is_cancelled_by_its_id_and_others_wait(page: str) -> None:
    answers: list[tuple[int, Any]] = []

    def ask_slowly() -> None:
        # The questions below may be the other query: then this one asks once more.
        while not answers or "another query is running" in str(answers[0]):
            answers[:] = [asked(page, SLOW)]

    thread = threading.Thread(target=ask_slowly)
    thread.start()
    until = time.monotonic() + PATIENCE_S
    while "another query is running" not in str(asked(page, "SELECT 1")) and time.monotonic() < until:
        time.sleep(0.05)
    requested(page, "query", "DELETE", id="2")
    assert thread.is_alive()
    requested(page, "query", "DELETE", id="1")
    thread.join(PATIENCE_S)
    assert answers[0][0] == 400 and answers[0][1]["error"]["message"] == "the query was cancelled"
    assert asked(page, "SELECT 1")[0] == 200


def test_a_query_ends_when_its_time_is_up(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match=r"the query took more than 0\.5 seconds"):
        RunningQueries(0.5).run(catalog, SLOW, "1", 10, list)


def test_without_duckdb_the_message_says_what_to_install(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    status, answer = asked(page, "SELECT 1")
    assert status == 400 and "pip install" in answer["error"]["message"]
    assert requested(page, "at", name="shop.orders")[0].status == 200


# Who is answered


@pytest.mark.parametrize(
    "path", ["/", "/query", "/wrong/", f"/{TOKEN}", f"/{TOKEN}x/", "//", "/favicon.ico", f"/x/{TOKEN}/"]
)
def test_without_the_token_nothing_is_found(page: str, path: str) -> None:
    response, answer = requested(page, path, sql="SELECT 1")
    assert response.status == 404 and "use the address" in answer["error"]["message"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example"])
def test_another_host_s_name_is_refused(page: str, host: str) -> None:
    for path in ("", "query"):
        response, answer = requested(page, path, headers={"Host": host}, sql="SELECT 1")
        assert response.status == 403 and "for clients on its own host" in answer["error"]["message"]


def test_no_other_site_may_read_or_embed_a_page(page: str) -> None:
    for path in ("", "data", "query", "at"):
        response, _ = requested(
            page, path, headers={"Origin": "https://evil.example"}, sql="SELECT 1", name="shop.orders"
        )
        assert not [name for name in response.headers if name.lower().startswith("access-control")]
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    policy = requested(page, "")[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert (
        requested(page, "query", "OPTIONS", headers={"Access-Control-Request-Method": "GET"})[0].status == 405
    )


# The command


def ended_by_ctrl_c(command: list[str]) -> int:
    """Return the exit code of a command that something interrupts. The background of a shell, where suites run, ignores
    Ctrl-C by itself."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run(command)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_the_address_is_an_object_for_programs(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: _thread.interrupt_main())
    assert ended_by_ctrl_c(["ui", "--json", "--warehouse", catalog.warehouse]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["url"] and answer["url"].startswith("http://127.0.0.1:")


def test_the_browser_gets_an_address_that_leads_to_the_page_once(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[tuple[int, str | None]] = []

    def opened_flag(url: str) -> bool:
        for _ in range(2):
            response, _ = requested(url, urlsplit(url).path)
            answers.append((response.status, response.headers["Location"]))
        _thread.interrupt_main()
        return True

    monkeypatch.setattr(webbrowser, "open", opened_flag)
    assert ended_by_ctrl_c(["ui", "--warehouse", catalog.warehouse]) == 0
    address = urlsplit(capsys.readouterr().out.strip())
    assert answers == [(302, address.path), (404, None)]


def test_ctrl_c_ends_it_cleanly_and_nothing_is_written(catalog: Catalog, tmp_path: Path) -> None:
    def state() -> list[tuple[str, bytes]]:
        return [(str(path), path.read_bytes()) for path in sorted(tmp_path.rglob("*")) if path.is_file()]

    wait_for_background()
    state_before = state()
    command = [sys.executable, "-m", "lakelog.cli", "ui", "--no-browser", "--warehouse", catalog.warehouse]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        assert requested(url, "")[0].status == 200
        assert asked(url, "SELECT * FROM shop.orders")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert (
            process.stderr.read()
            == "This address lets users of this computer read every table. Ctrl-C ends it.\nEnded.\n"
        )
    assert state() == state_before


def test_a_port_in_use_is_said(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken_socket:
        taken_socket.bind(("127.0.0.1", 0))
        taken_socket.listen()
        port = taken_socket.getsockname()[1]
        assert run(["ui", "--no-browser", "--port", str(port), "--warehouse", catalog.warehouse]) == 1
    assert f"cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.s3
def test_a_warehouse_on_s3_has_pages_too(tmp_path: Path) -> None:
    with s3_servers.running(s3_servers.NAMES[0], tmp_path / "objects") as (server, bucket):
        catalog = Catalog(f"s3://{bucket}/w", options=server.options)
        catalog.create_namespace("shop")
        catalog.create_table("shop.orders", SCHEMA).append(pa.table({"id": [1], "name": ["a"]}))
        with live(catalog.warehouse, options=server.options) as page:
            assert facts_of(requested(page, "at", name="shop.orders")[1])["kind"] == "table"
            assert requested(page, "rows", name="shop.orders")[1]["rows"] == [["1", "a"]]
            assert asked(page, "SELECT name FROM shop.orders")[1]["rows"] == [["a"]]


def test_no_warehouse_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ui", "--no-browser", "--warehouse", str(tmp_path / "nowhere")]) == 1
    assert "there is no" in capsys.readouterr().err


def test_a_fault_of_the_server_is_on_stderr(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault that no code expects")

    monkeypatch.setattr(PageAnswers, "answer", fail)
    with ServerLog(as_json=False, quiet=True).kept():
        response, _ = requested(page, "")
    assert response.status == 500 and "a fault that no code expects" in capsys.readouterr().err
