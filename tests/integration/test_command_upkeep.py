"""`lakelog health` and `lakelog maintain`: their answers in both forms, and their work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.printing import objects, printed_by

from lakelog.catalog import Catalog

SCHEMA = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA, cluster_by=["id"])
    for id in range(9):
        table = table.append(pa.table({"id": [id]}, schema=SCHEMA))
    catalog.create_table("shop.empty", SCHEMA)
    return catalog


@pytest.fixture
def lakelog(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> Any:
    return printed_by(catalog, capsys)


def test_health_of_a_table_has_its_facts_and_the_commands(lakelog: Any) -> None:
    text = " ".join(lakelog("health", "shop.orders", "--list").split())
    for reported_text in (
        "9 of",
        "a file overlaps 0.0 others; at worst 1 may hold one value",
        "10 commits, 0 of upkeep; 0 lost races",
        "0 objects",
        "lakelog cluster shop.orders",
        "CALL lake.system.cluster(table => '`shop`.`orders`')",
    ):
        assert reported_text in text, reported_text


def test_health_of_a_namespace_has_a_line_for_each_table(lakelog: Any) -> None:
    text = lakelog("health", "shop")
    assert "shop.orders " in text and "shop.empty " in text and "cluster" in text
    tables = objects(lakelog("health", "--json"))
    assert {table["name"]: table.get("files", 0) for table in tables} == {
        "shop.orders": 9,
        "shop.empty": 0,
    }
    assert "there is no table" in lakelog("health", "shop.nothing", code=1)


def test_maintain_reports_and_does_what_is_due(catalog: Catalog, lakelog: Any) -> None:
    reported_output = lakelog("maintain", "--dry-run")
    assert "Nothing was changed. To do it: lakelog maintain --apply" in reported_output
    assert "--dry-run" not in reported_output
    assert catalog.load_table("shop.orders").file_count == 9
    finished_tables = json.loads(lakelog("maintain", "shop", "--json"))["tables"]
    assert [each["compacted"]["read_files"] for each in finished_tables] == [0, 9]
    assert lakelog("maintain", "shop") == "Nothing is due.\n"
    assert catalog.load_table("shop.orders").file_count == 1


def test_cluster_reports_what_it_would_do_and_does_it(catalog: Catalog, lakelog: Any) -> None:
    text = " ".join(lakelog("cluster", "shop.orders", "--dry-run").split())
    for reported_text in (
        "Of 9 files (",
        "9 would be rewritten, in about 1 commit:",
        "written to 1 file.",
        "First, id of some files would be read",
        "id 1.0 1.0",
        "Nothing was changed. To do it: lakelog cluster --apply shop.orders",
    ):
        assert reported_text in text, reported_text
    found = json.loads(lakelog("cluster", "shop.orders", "--dry-run", "--limit-bytes", "1B", "--json"))
    assert (found["dry_run"], found["read_files"], found["is_left"], len(found["paths"])) == (
        True,
        1,
        True,
        1,
    )
    assert "More would be left" in lakelog("cluster", "shop.orders", "--dry-run", "--limit-bytes", "1B")
    assert catalog.load_table("shop.orders").file_count == 9
    assert "9 files became 1 file" in lakelog("cluster", "shop.orders")
    assert "No file needs to be rewritten." in lakelog("cluster", "shop.orders", "--dry-run")
    assert "no columns to be clustered by" in lakelog("cluster", "shop.empty", "--dry-run", code=1)


def test_maintain_stops_at_a_limit_and_says_that_more_is_left(lakelog: Any) -> None:
    assert "may have more to do: run this again." in lakelog("maintain", "--limit-bytes", "1B")
    assert "is not a size" in lakelog("maintain", "--limit-bytes", "much", code=2)
    assert "exclude each other" in lakelog("maintain", "--watch", "--dry-run", code=2)


def test_maintain_watches_until_it_is_interrupted(
    catalog: Catalog, lakelog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        table = catalog.load_table("shop.empty")
        for id in range(8):
            table = table.append(pa.table({"id": [id]}, schema=SCHEMA))
        if len(slept) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("lakelog.cli.maintain.time.sleep", sleep)
    lakelog("maintain", "--watch", "--every", "5m", code=130)
    assert slept == [300.0, 300.0] and catalog.load_table("shop.empty").file_count == 9


def test_a_table_that_fails_makes_the_exit_code(catalog: Catalog, lakelog: Any) -> None:
    change = {"change": "set-property", "key": "lakelog.maintenance.keep-for", "value": "1d"}
    catalog.load_table("shop.orders").alter([change])
    catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "2d"})
    assert "`shop`.`orders` failed: the property lakelog.maintenance.keep-for" in lakelog("maintain", code=1)
