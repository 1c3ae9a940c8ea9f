"""`lakelog forget`: what it says before and after, in both forms, and the receipt that it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.printing import printed_by

from lakelog.catalog import Catalog

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("email", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.people", SCHEMA)
    people = {"id": [1, 2], "email": ["ada@example.com", "bob@example.com"]}
    table.append(pa.table(people, schema=SCHEMA)).create_tag("before")
    catalog.save_cut("friday")
    return catalog


@pytest.fixture
def lakelog(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> Any:
    return printed_by(catalog, capsys)


def test_it_says_what_goes_before_it_goes(lakelog: Any, catalog: Catalog, tmp_path: Path) -> None:
    where = "email = 'ada@example.com'"
    text = lakelog("forget", "shop.people", where)
    for reported_text in (
        "Will be lost: cut friday",
        "tag `shop`.`people`, before",
        "To do it: lakelog forget --apply shop.people",
        "Out of reach",
    ):
        assert reported_text in text, reported_text
    assert catalog.load_table("shop.people").row_count == 2
    receipt = tmp_path / "receipt.json"
    text = lakelog(
        "forget", "shop.people", where, "--apply", "--receipt", str(receipt), "--reference", "ticket 7"
    )
    assert "The receipt is in version" in text and "Lost: cut friday" in text
    reported_text = json.loads(receipt.read_text())
    assert json.loads(reported_text["statement"])["reference"] == "ticket 7"
    assert catalog.load_table("shop.people").refresh().row_count == 1
    assert "No such row is anywhere" in lakelog("forget", "shop.people", where, "--apply")
    assert not [
        path for path in Path(catalog.warehouse).rglob("*") if path.is_file() and b"ada@" in path.read_bytes()
    ]
    answer = json.loads(lakelog("forget", "shop.people", where, "--json"))
    assert answer["dry_run"] and answer["table"] == "shop.people"


def test_what_is_wrong_is_one_line(lakelog: Any) -> None:
    assert "there is no column mail" in lakelog("forget", "shop.people", "mail = 'x'", code=1)
    assert "shop.none" in lakelog("forget", "shop.none", "id = 1", code=1).replace("`", "")
