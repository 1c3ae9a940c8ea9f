"""`lakelog view` and `lakelog history --graph`: files, JSON, exit codes."""

from __future__ import annotations

import json
import re
import webbrowser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.cli.main import run

SCHEMA = pa.schema({"id": pa.int64()})


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    catalog = Catalog(
        str(tmp_path / "warehouse"), options={"fsync": "off"}, writer={"user": "ada", "engine": "test"}
    )
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA).append(pa.table({"id": [1, 2]}))
    table.create_branch("trial").at(ref="trial").append(pa.table({"id": [3]}))
    monkeypatch.setenv("LAKELOG_WAREHOUSE", catalog.warehouse)
    monkeypatch.chdir(tmp_path)
    return catalog


def test_a_page_of_a_table_a_namespace_and_a_warehouse(
    catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["view", "shop.orders"]) == 0
    assert capsys.readouterr().out.startswith("shop.orders.html (")
    assert "<title>shop.orders · lakelog</title>" in (tmp_path / "shop.orders.html").read_text()
    assert run(["view", "shop", "-o", "there.html"]) == 0 and (tmp_path / "there.html").exists()
    assert run(["view"]) == 0 and (tmp_path / "warehouse.html").exists()
    location = catalog.load_table("shop.orders").location
    assert run(["view", location, "-o", "place.html"]) == 0 and (tmp_path / "place.html").exists()


def test_a_folder_has_a_page_of_each_table_with_links_both_ways(
    catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog.create_namespace("Shop")
    catalog.create_table("Shop.orders", SCHEMA)
    catalog.create_table("shop.gone", SCHEMA)
    catalog.drop_table("shop.gone")
    assert run(["view", "--folder", "all/pages"]) == 0
    files = sorted(path.name for path in (tmp_path / "all/pages").iterdir())
    assert files == ["Shop.orders.html", "index.html", "shop.orders-2.html"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("all/pages/index.html (")
    index, *tables = (facts_of(tmp_path / "all/pages" / name) for name in ("index.html", *files[::2]))
    assert {log["name"]: log.get("page") for log in index["logs"] if log["kind"] == "table"} == {
        "Shop.orders": "Shop.orders.html",
        "shop.orders": "shop.orders-2.html",
        "shop.gone": None,
    }
    assert all(table["above"] == [[index["name"], "index.html"]] for table in tables)


def facts_of(page: Path) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)
    return json.loads(data)


def test_json_has_the_facts_of_the_page(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["view", "shop.orders", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == catalog.picture("shop.orders").to_dict() | {"made_us": said["made_us"]}
    assert said["format"] == 1 and [change["version"] for change in said["changes"]] == [4, 3, 2, 1]
    assert not list(Path().glob("*.html"))


def test_the_code_of_the_page_about_looking_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/view.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    warehouse = str(tmp_path / "other")
    other_catalog = Catalog(warehouse, options={"fsync": "off"})
    other_catalog.create_namespace("lab")
    other_catalog.create_table("lab.people", SCHEMA)
    names: dict[str, Any] = {}
    exec(compile(code.replace("/tmp/warehouse", warehouse), "view.md", "exec"), names)
    assert names["sheet"].facts.name == "lab.people"


def test_the_graph_of_a_history(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "shop.orders", "--graph"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "Z " in line]
    assert [line[:3] for line in lines] == [
        ["│", "●", "4"],
        ["╰", "●", "3"],
        ["●", "2", lines[2][2]],
        ["●", "1", lines[3][2]],
    ]
    assert "[trial]" in lines[0] and "[main]" in lines[2]
    assert run(["history", "shop", "--graph", "--limit", "2"]) == 0
    text = capsys.readouterr().out
    assert "shop.orders: append" in text and ": older changes were not read: only the newest 2" not in text
    assert "older changes were not read: only the newest 2" in text


def test_a_damaged_log_is_drawn_and_the_exit_code_says_so(
    catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = Path(catalog.load_table("shop.orders").location)
    (location / "_log" / f"{4:020}.json").write_bytes(b"{}")
    assert run(["view", "shop.orders"]) == 4
    assert (tmp_path / "shop.orders.html").stat().st_size > 10_000
    assert run(["view"]) == 4


def test_open_hands_the_file_to_the_browser(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened_texts: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened_texts.append(url) or True)
    assert run(["view", "shop.orders", "--open", "-o", "a.html"]) == 0
    assert opened_texts == [Path("a.html").absolute().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert run(["view", "shop.orders", "--open", "-o", "a.html"]) == 1
    assert "there is no browser" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["view", "shop.nothing"], 1, "there is no table"),
        (["view", "shop.orders", "-o", "/nowhere/at/all.html"], 1, "cannot write /nowhere/at/all.html"),
        (["view", "shop.orders", "--versions", "0"], 2, "--versions"),
        (["view", "shop.orders", "--folder", "pages"], 2, "shop.orders is a table"),
        (["view", "--folder", "/proc/pages"], 1, "cannot make /proc/pages"),
        (["view", "--folder", "pages", "--json"], 2, "--folder excludes --output and --json"),
    ],
)
def test_what_is_wrong_is_one_line(
    catalog: Catalog, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert run(arguments) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
