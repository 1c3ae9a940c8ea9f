"""The page of `lakelog view` in a real browser: every view opens without an error, and shows what the log has.

What is compared is the structure, never pixels.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.browser import Looked, browser
from tests.unit.catalog.pictures.pictures import many

from lakelog.catalog import Catalog, Sheet
from lakelog.catalog.core.tools import visible
from lakelog.catalog.looking.pictures import definition_of, differences
from lakelog.catalog.looking.pictures.page import page_of
from lakelog.cli.main import run

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.date32()})
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e <b>bold</b>"
TABLE_VIEWS = ["changes", "writers", "definition", "files", "health"]
NAMESPACE_VIEWS = ["tables", "changes", "writers", "health", "dropped"]


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "name": [HOSTILE] * len(ids), "day": [dt.date(2026, 1, 1 + id % 3) for id in ids]},
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of a table and of its warehouse, with all that a page can show."""
    folder = tmp_path_factory.mktemp("pages")
    catalog = Catalog(
        str(folder / "warehouse"), options={"fsync": "off"}, writer={"user": HOSTILE, "engine": "test"}
    )
    catalog.create_namespace("shop")
    table = catalog.create_table(
        "shop.orders",
        SCHEMA,
        partition_by=["day"],
        cluster_by=["id"],
        comment=HOSTILE,
        properties={"note": HOSTILE},
    ).append(rows(1, 2, 3))
    other_table = Catalog(catalog.warehouse, options={"fsync": "off"}, writer={"user": "joan"}).load_table(
        "shop.orders"
    )
    table = table.append(rows(4)).append(rows(5))
    other_table.append(rows(6))  # version 5, prepared on 2
    table = table.refresh().create_tag("checked").create_branch("trial")
    table.at(ref="trial").append(rows(7))
    table = table.refresh().fast_forward("main", "trial").delete("id = 2")
    table = table.alter(
        [
            {"change": "rename-column", "name": ["name"], "new_name": HOSTILE},
            {"change": "add-column", "name": ["more"], "type": "string"},
        ]
    )
    catalog.create_table("shop.archive", SCHEMA)
    with catalog.transaction() as tx:
        tx.load_table("shop.archive").append(rows(1))
        tx.load_table("shop.orders").delete("id = 1")
    catalog.create_table("shop.gone", SCHEMA)
    catalog.drop_table("shop.gone")
    (folder / "table.html").write_text(catalog.picture("shop.orders").to_html(), encoding="utf-8")
    (folder / "warehouse.html").write_text(catalog.picture().to_html(), encoding="utf-8")
    (folder / "notebook.html").write_text(catalog.picture("shop.orders")._repr_html_(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("file", "views"), [("table", TABLE_VIEWS), ("warehouse", NAMESPACE_VIEWS)])
def test_every_view_opens_without_an_error_or_a_request(
    started: Any, pages: Path, file: str, views: list[str], scheme: str
) -> None:
    page = Looked(started, pages / f"{file}.html", color_scheme=scheme)
    assert [tab.get_attribute("id") for tab in page.tab.locator("[role=tab]").all()] == [
        f"tab-{view}" for view in views
    ]
    for view in views:
        page.open(view)
        shown = page.tab.locator(f"#view-{view}")
        assert shown.is_visible() and len(shown.inner_text()) > 20, view
        assert "[object" not in shown.inner_text() and "undefined" not in shown.inner_text(), view
        assert page.tab.locator("[role=tab][aria-selected=true]").get_attribute("id") == f"tab-{view}"
    assert page.problems == []
    assert page.requested == [(pages / f"{file}.html").as_uri()]
    back = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") is (scheme == "light")
    page.tab.click("#theme")
    assert page.tab.evaluate("getComputedStyle(document.body).backgroundColor") != back


def test_a_click_on_a_version_shows_its_commit(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html")
    numbers = page.texts(".row .number")
    assert numbers == [str(version) for version in range(len(numbers), 0, -1)]
    page.tab.locator(".row").nth(numbers.index("3")).click()
    detail = page.tab.locator("#detail").inner_text()
    assert "Version 3" in detail and "append: +1 row in 1 file" in detail and "commit" in detail
    assert "lakelog restore shop.orders 2" in detail and "lakelog restore shop.orders 3" in detail
    page.tab.locator(".row").nth(numbers.index("5")).click()
    detail = page.tab.locator("#detail").inner_text()
    assert "It was prepared on version 2 and committed as version 5" in detail and "joan" in detail
    assert page.texts("#detail ul button") == ["4", "3"]
    page.tab.locator("#detail ul button").first.click()
    assert "Version 4" in page.tab.locator("#detail").inner_text()
    assert page.tab.evaluate("document.activeElement.querySelector('.number').textContent") == "4"
    assert page.problems == []


def test_a_warehouse_s_transaction_leads_to_its_other_tables(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "warehouse.html")
    page.open("changes")
    page.tab.check("#together")
    rows = page.tab.locator(".row")
    place = next(at for at, text in enumerate(page.texts(".row")) if "shop.archive" in text)
    rows.nth(place).click()
    assert "together with changes of 1 other log" in page.tab.locator("#detail").inner_text()
    (other_text,) = page.texts("#detail ul button")
    assert other_text.startswith("shop.orders ")
    page.tab.locator("#detail ul button").click()
    assert "shop.orders" in page.tab.locator("#detail dl").inner_text()
    assert page.problems == []


def test_names_comments_and_values_of_others_stay_text(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html")
    for view in TABLE_VIEWS:
        page.open(view)
        assert page.tab.locator("main img, main b b, main script").count() == 0
    page.open("definition")
    shown_text = HOSTILE.replace("\u202e", "\\u202e")
    assert any(shown_text in text for text in page.texts("#view-definition td"))
    assert page.problems == []


def test_search_and_filters_leave_what_they_name(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html")
    page.tab.check("#rebased")
    assert page.texts(".row .number") == ["5"]
    page.tab.uncheck("#rebased")
    page.tab.select_option("#branch", "trial")
    assert page.texts(".row .number") == ["8", "7"]
    page.tab.select_option("#branch", "")
    page.tab.fill("#search", "joan append")
    page.tab.wait_for_selector("#found:has-text('1 change of')")
    assert page.texts(".row .number") == ["5"] and "1 change" in page.texts("#found")[0]


def test_any_two_versions_can_be_compared(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html")
    page.open("definition")
    page.tab.fill("#from", "1")
    page.tab.fill("#to", "11")
    lines = page.texts("#differences tbody tr")
    assert (
        len(lines) == 2
        and lines[0].startswith("~ changed column ")
        and lines[1].startswith("+ added column more")
    )
    catalog = Catalog(str(pages / "warehouse"))
    past_tables = [catalog.load_table("shop.orders", version=version) for version in (1, 11)]
    definitions = [definition_of(table.metadata, table.version) for table in past_tables]
    texts = [
        f"{difference.kind} {difference.what} {difference.name} {difference.before} {difference.after}"
        for difference in differences(*definitions)
    ]
    assert [" ".join(visible(text).split()) for text in texts] == [line[2:] for line in lines], (
        "both have the same rules"
    )
    page.tab.fill("#from", "11")
    page.tab.fill("#to", "2")
    assert page.texts("#differences tbody tr")[-1].startswith("− removed column more")
    page.tab.fill("#from", "2")
    assert "Nothing of its definition differs" in page.texts("#differences")[0]


def test_the_keyboard_suffices(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html")
    page.tab.keyboard.press("Tab")
    assert page.tab.evaluate("document.activeElement.className") == "skip"
    page.tab.focus("#tab-changes")
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.evaluate("document.activeElement.id") == "tab-writers"
    assert page.tab.locator("#view-writers").is_visible()
    page.tab.keyboard.press("Home")
    page.tab.locator(".row").first.focus()
    newest = page.tab.locator(".row").count()
    page.tab.keyboard.press("ArrowDown")
    assert f"Version {newest - 1}" in page.tab.locator("#detail").inner_text()
    page.tab.keyboard.press("End")
    assert "Version 1\n" in page.tab.locator("#detail").inner_text()
    named_text = "main button, main input, main select"
    for part in page.tab.locator(named_text).all():
        assert part.evaluate("part => Boolean(part.innerText || part.labels && part.labels.length)")
    for drawing in page.tab.locator("main svg").all():
        assert drawing.get_attribute("aria-hidden") or drawing.get_attribute("aria-label")


def test_a_notebook_s_frame_draws_the_page_without_rights(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "notebook.html")
    frame = page.tab.frame_locator("iframe")
    frame.locator(".row").first.click()
    assert "Version" in frame.locator("#detail").inner_text()
    assert page.problems == []


def test_ten_thousand_versions_open_soon_and_are_drawn_as_they_are_looked_at(
    started: Any, tmp_path: Path, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "many.html"
    file.write_text(page_of(many(10_000)), encoding="utf-8")
    start_time = time.monotonic()
    page = Looked(started, file)
    page.tab.wait_for_selector(".row")
    took_s = time.monotonic() - start_time
    record_property("opened_s", round(took_s, 2))
    with capsys.disabled():
        print(f"\n10,000 versions, {file.stat().st_size:,} bytes: open after {took_s:.2f} s")
    # A count rather than a clock: what is drawn does not grow with the history.
    assert page.tab.locator("*").count() < 6_000
    assert page.texts("#found") == ["10,000 changes"]
    page.tab.click("#more")
    assert page.tab.locator(".row").count() == 400
    page.tab.fill("#search", "append 5000")
    page.tab.wait_for_selector("#found:has-text('of 10,000 rows')")
    assert "5000" in page.texts(".row .number")
    assert page.problems == []


def test_a_damaged_log_is_shown_with_its_damage(started: Any, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA).append(rows(1)).append(rows(2))
    (commit,) = Path(table.location).glob("_log/*3.json")
    commit.write_bytes(commit.read_bytes()[:-9])
    sheet: Sheet = Catalog(catalog.warehouse).picture("shop.orders")
    (tmp_path / "page.html").write_text(sheet.to_html(), encoding="utf-8")
    page = Looked(started, tmp_path / "page.html")
    assert page.texts(".row .number") == ["3", "2", "1"]
    assert "damage" in (page.tab.locator(".row").first.get_attribute("class") or "")
    page.open("health")
    assert any("lakelog fsck" in text for text in page.texts("#view-health code"))
    assert page.problems == []


PHONE = {"has_touch": True, "is_mobile": True}
LONG = "analytics_of_the_whole_company.daily_revenue-by-country_and_product_category_v2"


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of a warehouse whose names are long."""
    folder = tmp_path_factory.mktemp("long")
    catalog = Catalog(str(folder / "warehouse"), options={"fsync": "off"}, writer={"user": "ada" * 9})
    namespace, _, name = LONG.partition(".")
    catalog.create_namespace(namespace)
    columns = {"id": pa.int64(), "amount_in_minor_currency_units_of_the_customer": pa.string()}
    table = catalog.create_table((namespace, name), pa.schema(columns), cluster_by=["id"])
    table = table.append(pa.table({"id": [1, 2], table.schema.fields[1].name: ["a", "b"]}))
    table.create_branch("a_branch_to_try_what_the_new_pipeline_does")
    catalog.create_table((namespace, "gone_and_dropped_" + name), pa.schema(columns))
    catalog.drop_table((namespace, "gone_and_dropped_" + name))
    (folder / "table.html").write_text(catalog.picture((namespace, name)).to_html(), encoding="utf-8")
    (folder / "warehouse.html").write_text(catalog.picture().to_html(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("width", [360, 414])
@pytest.mark.parametrize(("file", "views"), [("table", TABLE_VIEWS), ("warehouse", NAMESPACE_VIEWS)])
def test_a_phone_scrolls_down_only_and_its_controls_are_large(
    started: Any, long_names: Path, file: str, views: list[str], width: int
) -> None:
    size = {"width": width, "height": 740}
    page = Looked(started, long_names / f"{file}.html", viewport=size, **PHONE)
    assert not page.is_too_wide()
    for view in views:
        page.open(view)
        assert not page.is_too_wide(), view
        for control in page.tab.locator(
            f"#view-{view} :is(button, select, input:not([type=checkbox]))"
        ).all():
            assert not control.is_visible() or control.bounding_box()["height"] >= 44, view
    assert page.problems == []


@pytest.mark.parametrize("width", [360, 700, 1200])
def test_names_wrap_at_their_parts_and_never_within(started: Any, long_names: Path, width: int) -> None:
    page = Looked(started, long_names / "warehouse.html", viewport={"width": width, "height": 900})
    (name,) = [cell for cell in page.tab.locator("td span.text").all() if cell.inner_text() == LONG]
    lines = name.evaluate(
        """element => {
            const lines = new Map(), walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                for (let at = 0; at < walk.currentNode.length; at += 1) {
                    const range = document.createRange();
                    range.setStart(walk.currentNode, at);
                    range.setEnd(walk.currentNode, at + 1);
                    const top = Math.round(range.getBoundingClientRect().top);
                    lines.set(top, (lines.get(top) || "") + walk.currentNode.data[at]);
                }
            }
            return [...lines.values()];
        }"""
    )
    assert "".join(lines) == LONG and all(line[-1] in "._-" for line in lines[:-1])


def test_on_a_phone_the_chosen_change_opens_below_its_row(started: Any, pages: Path) -> None:
    page = Looked(started, pages / "table.html", viewport={"width": 360, "height": 740}, **PHONE)
    row = page.tab.locator(".row").nth(4)
    row.tap()
    detail = row.locator("xpath=following-sibling::section")
    assert detail.is_visible() and "Version" in detail.inner_text()
    page.tab.fill("#search", "create")
    page.tab.wait_for_selector("#found:has-text('of')")
    assert page.tab.locator("#detail").count() == 1
    assert page.problems == []


def test_a_folder_s_pages_lead_to_each_other(
    started: Any, pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["view", "--warehouse", str(pages / "warehouse"), "--folder", str(tmp_path / "pages")]) == 0
    page = Looked(started, tmp_path / "pages/index.html")
    page.tab.click("#view-tables td a:has-text('shop.orders')")
    assert page.texts("h1") == ["shop.orders"]
    page.tab.click("nav a")
    assert page.tab.locator("#view-tables").is_visible() and page.problems == []
