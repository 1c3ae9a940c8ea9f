"""The pages of `lakelog ui` in a real browser: they follow new versions, and keep what was typed and chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.browser import Looked, browser
from tests.integration.live import live

from lakelog.catalog import Catalog, Table

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e <b>bold</b>"
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"}, writer={"user": HOSTILE})
    catalog.create_namespace("shop")
    return catalog.create_table("shop.orders", SCHEMA).append(
        pa.table({"id": [1, 2], "name": [HOSTILE, None]})
    )


@pytest.fixture
def first_page(table: Table, tmp_path: Path) -> Iterator[str]:
    with live(str(tmp_path / "warehouse")) as url:
        yield url


def more(table: Table, *ids: int) -> Table:
    return table.append(pa.table({"id": list(ids), "name": ["x"] * len(ids)}))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_every_view_opens_and_asks_only_its_own_server(
    started: Any, first_page: str, scheme: str, width: int
) -> None:
    page = Looked(started, first_page, color_scheme=scheme, viewport={"width": width, "height": 800})
    for view in ("tables", "sql", "changes", "writers", "health", "dropped"):
        page.open(view)
        assert page.tab.locator(f"#view-{view}").is_visible() and not page.is_too_wide()
    page.open("tables")
    page.tab.click("td a:has-text('shop.orders')")
    page.tab.wait_for_selector("#view-rows td")
    assert page.texts("#view-rows td")[1] == HOSTILE.replace("\u202e", "\\u202e")
    for view in ("rows", "sql", "changes", "writers", "definition", "files", "health"):
        page.open(view)
        assert page.tab.locator(f"#view-{view}").is_visible() and not page.is_too_wide()
        assert page.tab.locator("main img, main b b, main script").count() == 0
    page.tab.click("nav a:has-text('shop')")
    assert page.texts("h1") == ["shop"]
    assert page.problems == [] and all(url.startswith(first_page) for url in page.requested)


def test_a_new_version_is_drawn_and_what_was_typed_and_chosen_stays(
    started: Any, first_page: str, table: Table
) -> None:
    page = Looked(started, f"{first_page}at?name=shop.orders")
    page.tab.wait_for_selector("#view-rows td")
    page.open("sql")
    page.tab.fill("#query", "SELECT 'half a que")
    page.open("definition")
    page.tab.fill("#from", "2")
    page.open("changes")
    page.tab.locator(".row").nth(1).click()
    assert "Version 1" in page.texts("#detail")[0]
    page.tab.fill("#search", "append")
    page.tab.wait_for_selector("#found:has-text('1 change of')")
    page.tab.evaluate("document.querySelector('#search').setSelectionRange(2, 4)")
    more(table, 3)
    page.tab.wait_for_selector("#found:has-text('2 changes of')", timeout=PATIENCE_MS)
    assert page.texts(".row .number") == ["3", "2"] and page.texts(".facts b")[0] == "3"
    caret = "[document.activeElement.id, document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    assert page.tab.evaluate(caret) == ["search", 2, 4]
    assert "Version 1" in page.texts("#detail")[0]
    page.open("definition")
    assert page.tab.input_value("#from") == "2" and page.tab.input_value("#to") == "3"
    page.open("sql")
    assert page.tab.input_value("#query") == "SELECT 'half a que"
    page.open("rows")
    page.tab.wait_for_selector("#view-rows p:has-text('3 rows of version 3')", timeout=PATIENCE_MS)
    page.tab.keyboard.press("Home")
    assert page.problems == []


def test_typing_goes_on_while_versions_come(started: Any, first_page: str, table: Table) -> None:
    page = Looked(started, f"{first_page}at?name=shop.orders")
    page.open("sql")
    page.tab.fill("#query", "")
    page.tab.focus("#query")
    for number, letters in enumerate(["SELECT count(*) ", "AS n ", "FROM shop.orders"]):
        page.tab.keyboard.type(letters)
        table = more(table, 10 + number)
        page.tab.wait_for_selector(
            f".facts li:has-text('version'):has-text('{table.version}')", timeout=PATIENCE_MS
        )
    assert page.tab.input_value("#query") == "SELECT count(*) AS n FROM shop.orders"
    page.tab.keyboard.press("Control+Enter")
    page.tab.wait_for_selector("#answer td")
    assert page.texts("#answer td") == ["5"]
    assert f"read `shop`.`orders` in version {table.version}" in page.texts("#answered")[0]
    assert page.problems == []


def test_a_mistake_is_said_and_a_slow_query_is_cancelled(started: Any, first_page: str) -> None:
    page = Looked(started, first_page)
    page.open("sql")
    page.tab.fill("#query", "SELECT * FROM read_csv('/etc/passwd')")
    page.tab.click("button:has-text('Run')")
    page.tab.wait_for_selector("#answered.damage")
    assert "the query fails" in page.texts("#answered")[0]
    page.tab.fill(
        "#query", "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = 7"
    )
    page.tab.click("button:has-text('Run')")
    page.tab.click("button:has-text('Cancel'):enabled")
    page.tab.wait_for_selector("#answered:has-text('the query was cancelled')", timeout=PATIENCE_MS)
    # The browser says of each refusal that there was one.
    assert all("400" in problem for problem in page.problems)


def test_a_new_table_comes_to_the_warehouse_s_page_and_an_ended_server_is_said(
    started: Any, first_page: str, tmp_path: Path
) -> None:
    page = Looked(started, first_page)
    Catalog(str(tmp_path / "warehouse")).create_table("shop.more", SCHEMA)
    page.tab.wait_for_selector("td a:has-text('shop.more')", timeout=PATIENCE_MS)
    page.tab.context.set_offline(True)
    page.tab.wait_for_selector("#live:has-text('cannot be reached')", timeout=PATIENCE_MS)
