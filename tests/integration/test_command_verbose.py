"""`--verbose` prints a command's cost on stderr, and leaves its answer unchanged."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.core.logs import places
from lakelog.cli import inspection
from lakelog.cli.main import run
from lakelog.log import CountingStore, ObjectStore, open_store, wait_for_background


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    for number in range(3):
        table = table.append(pa.table({"id": [number]}))
    wait_for_background()
    return catalog.warehouse


@pytest.mark.parametrize(
    ("command", "code", "operations"),
    [
        (("ls", "--json"), 0, ["list_namespaces", "list_tables"]),
        (("cat", "shop.orders", "2", "--json"), 0, ["load_table"]),  # and a store that it opens by itself
        (("head", "shop.orders", "--json"), 0, ["load_table", "scan"]),
        (("compact", "shop.orders", "--json"), 0, ["load_table", "compact", "history"]),
        (("fsck", "--json"), 0, []),
        (("show", "shop.none", "--json"), 1, ["load_table"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_all_requests_of_a_command_are_printed_beside_its_answer(
    command: tuple[str, ...],
    code: int,
    operations: list[str],
    warehouse: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores: list[CountingStore] = []

    def opened_store(url: str, options: dict[str, str]) -> ObjectStore:
        stores.append(CountingStore(open_store(url, options)))
        return stores[-1]

    monkeypatch.setattr(places, "open_store", opened_store)
    monkeypatch.setattr(inspection, "open_store", opened_store)
    assert run([*command, "--warehouse", warehouse, "--verbose"]) == code
    answer, text = capsys.readouterr()
    assert all(map(json.loads, answer.splitlines()))
    lines = [line.removeprefix("lakelog: ") for line in text.splitlines()]
    assert [line.partition(":")[0].split(" (")[0] for line in lines if " in " in line] == [
        *operations,
        "in all",
    ]
    whole_line = next(line for line in lines if line.startswith("in all"))
    total = sum((store.by_kind for store in stores), Counter())
    assert dict(re.findall(r"(\w+) (\d+)[,)]", whole_line)) == {
        kind: str(number) for kind, number in total.items()
    }


def test_without_it_nothing_is_printed_beside_the_answer(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ls", "--warehouse", warehouse]) == 0
    assert capsys.readouterr().err == ""
