"""`lakelog head`, `diff`, `restore` and `completion`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.printing import objects, printed_by

from lakelog.catalog import Catalog, col
from lakelog.cli.main import run

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    catalog.create_namespace("shop.e u")
    table = catalog.create_table("shop.orders", SCHEMA, properties={"a": "1", "db.password": "hunter2"})
    table = table.append(pa.table({"id": [1, 2], "name": ["ada", "\x1b[31m[b]"]}))
    table = table.append(pa.table({"id": [3], "name": [None]}))
    table.alter(
        [
            {"change": "rename-column", "name": ["name"], "new_name": "label"},
            {"change": "set-property", "key": "a", "value": "2"},
            {"change": "set-property", "key": "db.password", "value": "hunter3"},
        ]
    )
    return catalog


@pytest.fixture
def lakelog(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> Any:
    return printed_by(catalog, capsys)


def test_head_shows_times_that_python_has_none_of_and_walls_clocks_as_they_are(
    catalog: Catalog, lakelog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    walls, years = pa.timestamp("us"), 366 * 86400 * 1_000_000 * 10_000
    moments = pa.timestamp("us", "UTC")
    columns = {
        "wall": pa.array([1_704_110_400_000_001, years], walls),
        "at": pa.array([1_704_110_400_000_000, years], moments),
        "day": pa.array([0, 366 * 10_000], pa.date32()),
        "in": pa.StructArray.from_arrays([pa.array([0, -years], walls)], ["wall"]),
    }
    catalog.create_table("shop.times", pa.table(columns).schema).append(pa.table(columns))
    try:
        first, second = objects(lakelog("head", "shop.times", "--json"))
        output = lakelog("head", "shop.times", "--columns", "wall,at", "--where", "day < DATE '2000-01-01'")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "2024-01-01 12:00:00.000001 " in output and "2024-01-01 12:00:00Z" in output
    assert first["wall"].endswith("12:00:00.000001") and first["day"] == "1970-01-01"
    assert second["day"].startswith("119") and second["in"]["wall"].startswith("-")


def test_as_many_as_no_list_has_are_all(lakelog: Any) -> None:
    many = str(10**20)
    assert len(objects(lakelog("head", "shop.orders", "--limit", many, "--json"))) == 3
    for command in (["history"], ["history", "--graph"], ["files"]):
        lakelog(*command, "shop.orders", "--limit", many)
    lakelog("inspect", "shop.orders", "refs", "--limit", many)
    lakelog("audit", "--limit", many)
    lakelog("sql", "SELECT 1", "--limit", many)
    lakelog("diff", "shop.orders", "1", "--rows", "--limit", many)
    assert len(json.loads(lakelog("view", "shop.orders", "--versions", many, "--json"))["changes"]) == 4


def test_json_has_nothing_that_a_terminal_obeys(catalog: Catalog, lakelog: Any) -> None:
    evil = "\x9b31m\u202ea\u2028\u00fc"
    catalog.create_table("shop.evil", pa.schema({"s": pa.string()}), comment=evil).append(
        pa.table({"s": [evil]})
    )
    output = lakelog("head", "shop.evil", "--json")
    assert objects(output) == [{"s": evil}] and output.replace("\n", "").isprintable() and "\u00fc" in output
    output = lakelog("cat", "shop.evil", "1")
    assert output.replace("\n", "").isprintable() and "\\u202e" in output
    assert lakelog("audit", "--json").replace("\n", "").isprintable()


def test_head_shows_rows_as_text(lakelog: Any) -> None:
    rows = objects(lakelog("head", "shop.orders", "--json"))
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "label": "ada"},
        {"id": 2, "label": "\x1b[31m[b]"},
        {"id": 3, "label": None},
    ]
    assert "\\x1b[31m[b]" in lakelog("head", "shop.orders")
    assert objects(lakelog("head", "shop.orders", "--columns", "id", "--where", "id > 2", "--json")) == [
        {"id": 3}
    ]
    assert len(objects(lakelog("head", "shop.orders", "--limit", "1", "--json"))) == 1
    assert len(objects(lakelog("head", "shop.orders", "--version", "2", "--json"))) == 2
    assert "No rows." in lakelog("head", "shop.orders", "--version", "1")
    assert "nothing" in lakelog("head", "shop.orders", "--columns", "nothing", code=1)


def test_diff_compares_what_the_table_was(lakelog: Any) -> None:
    said = json.loads(lakelog("diff", "shop.orders", "2", "4", "--json"))
    assert said["differences"] == [
        {
            "kind": "changed",
            "what": "column",
            "name": "label",
            "before": "named name",
            "after": "named label",
        },
        {"kind": "changed", "what": "property", "name": "a", "before": "1", "after": "2"},
    ], "a secret is masked before and after, so that it does not differ"
    assert said["rows"] == {"before": 2, "after": 3} and said["files"] == {"before": 1, "after": 2}
    text = lakelog("diff", "shop.orders", "2")
    assert "named label" in text and "+1" in text
    assert "Nothing of its definition differs" in lakelog("diff", "shop.orders", "1", "3")
    assert "hunter" not in text and "has no version 9" in lakelog("diff", "shop.orders", "2", "9", code=1)


def test_diff_shows_the_rows_that_differ(catalog: Catalog, lakelog: Any) -> None:
    table = catalog.load_table("shop.orders")
    first = table.version
    table.delete(col("id") == 1).update({"label": "'new'"}, col("id") == 2).append(pa.table({"id": [9]}))
    rows_of = ("diff", "shop.orders", str(first), "--rows")
    lines = [line.split() for line in lakelog(*rows_of).splitlines() if line[:1] in "+−<>"]
    assert sorted((line[0], line[1]) for line in lines if line) == [
        ("+", "9"),
        ("<", "2"),
        (">", "2"),
        ("−", "1"),
    ]
    assert [line[2] for line in lines if line and line[0] == ">"] == ["new"]
    answer = json.loads(lakelog(*rows_of, "--json", "--limit", "1"))
    assert len(answer["rows"]) == 1 and answer["more"] and answer["columns"][:2] == ["_change_type", "id"]
    newest = str(catalog.load_table("shop.orders").version)
    assert "No row differs" in lakelog("diff", "shop.orders", newest, "--rows")
    assert "from an older version" in lakelog("diff", "shop.orders", newest, str(first), "--rows", code=1)


def test_restore_makes_a_new_version_and_can_be_undone(catalog: Catalog, lakelog: Any) -> None:
    table = catalog.load_table("shop.orders")
    assert (
        lakelog("restore", "shop.orders", "2")
        == "shop.orders is as it was at version 2 again, in version 5.\n"
    )
    assert table.refresh().row_count == 2 and table.refresh().schema.fields[1].name == "name"
    assert json.loads(lakelog("restore", "shop.orders", "4", "--json")) == {
        "restored": 4,
        "version": 6,
        "rows": 3,
    }
    lakelog("restore", "shop.orders", "2", "--rows-only")
    assert table.refresh().row_count == 2 and table.refresh().schema.fields[1].name == "label"
    assert "no version 99" in lakelog("restore", "shop.orders", "99", code=1)


def of_bash(line: str, warehouse: str) -> dict[str, str]:
    """Return the variables by which bash asks for what it offers at the end of a line."""
    return {
        "_LAKELOG_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "LAKELOG_WAREHOUSE": warehouse,
    }


def offered_texts(printed: str) -> list[str]:
    return [line.partition(",")[2] for line in printed.splitlines() if line]


def test_shells_complete_commands_options_and_names(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def completed_texts(line: str, warehouse: str) -> list[str]:
        for name, value in of_bash(line, warehouse).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            run([])
        printed = capsys.readouterr()
        assert printed.err == ""
        return offered_texts(printed.out)

    assert completed_texts("lakelog vi", catalog.warehouse) == ["view"]
    assert completed_texts("lakelog history --g", catalog.warehouse) == ["--graph"]
    assert completed_texts("lakelog view sh", catalog.warehouse) == ["shop."]
    assert completed_texts("lakelog view shop.o", catalog.warehouse) == ["shop.orders"]
    assert completed_texts("lakelog view shop.", "/nowhere/at/all") == []


def test_bash_is_offered_no_name_that_it_would_run(catalog: Catalog) -> None:
    for name in ("$(id)", "x;id", "curl a.b"):
        catalog.create_table(("shop", name), SCHEMA)
    command = [sys.executable, "-m", "lakelog.cli"]
    environment = os.environ | of_bash("lakelog view shop.", catalog.warehouse)
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert offered_texts(process.stdout) == ["shop.orders"] and process.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    printed = capsys.readouterr()
    assert "_LAKELOG_COMPLETE" in printed.out and printed.err == ""


def test_a_time_that_history_shows_reads_the_rows_of_its_version(catalog: Catalog, lakelog: Any) -> None:
    table = catalog.load_table("shop.orders")
    for entry in table.history():
        if entry.operation != "append":
            continue
        shown = next(
            line
            for line in lakelog("history", "shop.orders").splitlines()
            if line.split()[:1] == [str(entry.version)]
        )
        said = " ".join(shown.split()[1:3])
        assert table.at(timestamp=said).version == entry.version
