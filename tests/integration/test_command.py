"""The `lakelog` command over warehouses that the Python client made."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.printing import objects

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.log import Draft
from lakelog.log.errors import NotFound
from lakelog.log.format import PROPOSALS

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("at", pa.timestamp("us", "UTC"))]
)


def rows(*ids: int, month: int = 1) -> pa.Table:
    at = datetime(2026, month, 1, tzinfo=UTC)
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids], "at": [at] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = Catalog(
        str(tmp_path / "warehouse"), options={"fsync": "off"}, writer={"engine": "test", "user": "ada"}
    )
    catalog.create_namespace("shop", {"owner": "ada"})
    catalog.create_namespace(("shop", "dotted.name"))
    months = {"transform": "months", "args": [], "column": ["at"]}
    table = catalog.create_table("shop.orders", SCHEMA, partition_by=[months], comment="What was ordered")
    stale = table.append(rows(1, 2))
    stale.append(rows(3, month=2))
    stale.append(rows(4, month=3))
    table.refresh().alter(
        [
            {"change": "rename-column", "name": ["name"], "new_name": "label"},
            {"change": "add-column", "name": ["note"], "type": "string", "comment": "by hand"},
        ]
    )
    catalog.create_table("shop.empty", SCHEMA)
    return str(tmp_path / "warehouse")


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command line that succeeds and return what it printed."""
    code = run(arguments)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, ""), printed.err
    return printed.out


def output_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return the object that a command prints."""
    [answer] = output_list(capsys, *arguments)
    return answer


def output_list(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Return the objects that a command lists."""
    return objects(output(capsys, *arguments, "--json"))


def fail(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(arguments)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lakelog: ") and printed.err.count("\n") == 1, printed.err
    return code, printed.err


def test_ls_lists_namespaces_and_tables(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output_list(capsys, "ls", "--warehouse", warehouse) == [{"kind": "namespace", "name": "shop"}]
    assert output_list(capsys, "ls", "shop", "--warehouse", warehouse) == [
        {"kind": "namespace", "name": "shop.`dotted.name`"},
        {"kind": "table", "name": "shop.empty"},
        {"kind": "table", "name": "shop.orders"},
    ]
    text = output(capsys, "ls", "shop", "--warehouse", warehouse)
    assert "shop.orders" in text and "shop.`dotted.name`" in text


def test_ls_of_a_folder_without_anything_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output_list(capsys, "ls", "--warehouse", str(tmp_path)) == []
    assert not list(tmp_path.iterdir())


def test_the_warehouse_may_come_from_the_environment(
    warehouse: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_WAREHOUSE", warehouse)
    assert "shop" in output(capsys, "ls")


def test_show_prints_columns_partitioning_and_size(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown_output = output_json(capsys, "show", "shop.orders", "--warehouse", warehouse)
    assert shown_output["rows"] == 4 and shown_output["files"] == 3 and shown_output["version"] == 5
    assert [column["name"] for column in shown_output["columns"]] == ["id", "label", "at", "note"]
    assert shown_output["partitioning"] == [{"name": "at_month", "transform": "month", "column": "at"}]
    text = output(capsys, "show", "shop.orders", "--warehouse", warehouse)
    assert (
        "4 rows in 3 files" in text
        and "month of at" in text
        and "NOT NULL" in text
        and "What was ordered" in text
    )


def test_show_at_a_version_prints_the_table_as_it_was(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = output_json(capsys, "show", "shop.orders", "--version", "2", "--warehouse", warehouse)
    assert output["rows"] == 2 and [column["name"] for column in output["columns"]] == ["id", "name", "at"]


def test_show_names_what_clients_have_to_know(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Catalog(warehouse).load_table("shop.orders")
    assert "features" not in output(capsys, "show", "shop.orders", "--warehouse", warehouse)
    draft = Draft(events=({"event": "table-altered", "set": {"owner": "ada"}},), proposals=True)
    table.table_head.tracked.commit(table.table_head.view, lambda view, passed: draft)
    assert "proposals" in output(capsys, "show", "shop.orders", "--warehouse", warehouse)
    shown_output = output_json(capsys, "show", "shop.orders", "--warehouse", warehouse)
    assert shown_output["writer_features"] == ["proposals"]
    assert Catalog(warehouse).load_table("shop.orders").writer_features == (PROPOSALS,)
    older = output_json(capsys, "show", "shop.orders", "--version", "5", "--warehouse", warehouse)
    assert older["writer_features"] == []


def test_history_explains_every_commit_of_a_table(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "history", "shop.orders", "--warehouse", warehouse)
    newest, *older = [line for line in text.splitlines() if line.strip().startswith(tuple("12345"))]
    assert "renamed name to label" in newest and "added note" in newest and "ada test" in newest
    assert "append: +1 row in 1 file" in older[0] and "rebased" not in older[-1]
    entries = output_list(capsys, "history", "shop.orders", "--warehouse", warehouse, "--limit", "2")
    assert [entry["version"] for entry in entries] == [5, 4]


def test_history_of_a_namespace_prints_what_was_linked(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "table orders" in output(capsys, "history", "shop", "--warehouse", warehouse)
    assert "namespace shop" in output(capsys, "history", "", "--warehouse", warehouse)


def test_cat_prints_the_very_bytes_of_a_commit(
    warehouse: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    location = Catalog(warehouse).load_table("shop.orders").location
    assert run(["cat", "shop.orders", "2", "--json", "--warehouse", warehouse]) == 0
    assert capfdbinary.readouterr().out == Path(location, "_log", f"{2:020}.json").read_bytes()


def test_cat_without_json_indents(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "cat", "shop.orders", "2", "--warehouse", warehouse)
    assert json.loads(text)["version"] == 2 and text.startswith("{\n  ")


def test_cat_looks_into_a_log_by_its_place_even_when_the_table_was_dropped(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = Catalog(warehouse)
    location = catalog.load_table("shop.orders").location
    catalog.drop_table("shop.orders")
    assert json.loads(output(capsys, "cat", location, "6"))["seals"] is True
    assert json.loads(output(capsys, "cat", warehouse, "1"))["version"] == 1


def test_files_prints_partitions_as_people_write_them(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = output_list(capsys, "files", "shop.orders", "--warehouse", warehouse)
    assert sorted(file["partition"]["at_month"] for file in listing) == ["2026-01", "2026-02", "2026-03"]
    location = Catalog(warehouse).load_table("shop.orders").location
    assert all(Path(location, file["path"]).stat().st_size == file["size_bytes"] for file in listing)
    assert "and 2 more" in output(capsys, "files", "shop.orders", "--limit", "1", "--warehouse", warehouse)


def test_a_table_is_found_by_its_place_without_a_warehouse(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    location = Catalog(warehouse).load_table("shop.orders").location
    assert output_json(capsys, "show", location)["rows"] == 4
    assert len(output_list(capsys, "history", location)) == 5
    assert len(output_list(capsys, "files", location)) == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("show", "shop.nothing"), "shop"),
        (("show", "nowhere.t"), "nowhere"),
        (("ls", "nowhere"), "nowhere"),
        (("history", "nothing"), "nothing"),
        (("cat", "shop.orders", "99"), "99"),
        (("show", "shop.orders", "--version", "99"), "99"),
        (("show", "shop.`open"), "backtick"),
    ],
)
def test_what_is_not_there_is_one_line_on_stderr(
    warehouse: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], named: str
) -> None:
    code, message = fail(capsys, *arguments, "--warehouse", warehouse)
    assert code == 1 and named in message


@pytest.mark.parametrize(
    "arguments", [("ls",), ("show",), ("nonsense",), ("ls", "--nonsense"), ("cat", "t", "zero")]
)
def test_a_wrong_command_line_ends_with_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.delenv("LAKELOG_WAREHOUSE", raising=False)
    assert fail(capsys, *arguments)[0] == 2


def test_a_damaged_log_is_one_line_on_stderr(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    location = Path(Catalog(warehouse).load_table("shop.orders").location)
    for broken_path in location.glob("_log/*.json"):
        broken_path.write_bytes(broken_path.read_bytes()[:-20])
    code, message = fail(capsys, "show", "shop.orders", "--warehouse", warehouse)
    assert code == 1 and "shop" in message or str(location) in message


def test_the_installed_command_answers_in_a_process_of_its_own(warehouse: str) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "lakelog.cli", "ls", "shop", "--warehouse", warehouse],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "shop.orders" in process.stdout and process.stderr == ""


def test_inspect_shows_the_metadata_tables(warehouse, capsys):
    place = ("--warehouse", warehouse)
    files = output_list(capsys, "inspect", "shop.orders", "files", *place)
    assert [file["record_count"] for file in files] == [2, 1, 1]
    assert [file["readable_metrics"]["at"]["lower_bound"] for file in files] == [
        f"2026-0{month}-01T00:00:00+00:00" for month in (1, 2, 3)
    ]
    text = output(capsys, "inspect", "shop.orders", "files", "--columns", "partition,record_count", *place)
    assert text.split()[:2] == ["partition", "record_count"]
    assert '{"at_month": 672}' in text
    snapshots = output_list(capsys, "inspect", "shop.orders", "snapshots", "--version", "2", *place)
    assert [(row["version"], row["summary"]["total-records"]) for row in snapshots] == [(1, "0"), (2, "2")]
    assert len(output_list(capsys, "inspect", "shop.orders", "log", "--limit", "3", *place)) == 3
    [main] = output_list(capsys, "inspect", "shop.orders", "refs", "--version", "1", *place)
    assert main == {"name": "main", "type": "BRANCH", "version": 1}
    assert run(("inspect", "shop.orders", "files", "--columns", "nothing", *place)) == 1
    assert "nothing" in capsys.readouterr().err


def test_what_is_inspected_is_json_that_every_program_reads(tmp_path, capsys):
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    table = catalog.create_table("t", pa.schema({"x": pa.float64(), "b": pa.binary(), "d": pa.date32()}))
    table.append(
        pa.table(
            {"x": [float("-inf"), 1.0], "b": [b"\xff", b"\xfe"], "d": [None, None]},
            table.scan().to_arrow().schema,
        )
    )
    [file] = output_list(capsys, "inspect", "t", "files", "--warehouse", str(tmp_path / "w"))
    metrics = file["readable_metrics"]
    assert metrics["x"] == {
        "null_value_count": 0,
        "nan_value_count": None,
        "lower_bound": "-inf",
        "upper_bound": 1.0,
    }
    assert metrics["b"]["lower_bound"] == "fe" and metrics["d"]["null_value_count"] == 2


@pytest.mark.parametrize(
    "command", ["ls", "ls a", "show a.t", "history a.t", "audit", "dropped", "fsck", "vacuum", "expire"]
)
def test_a_warehouse_that_does_not_exist_is_an_error_and_is_not_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    warehouse = tmp_path / "wharehouse"
    assert run([*command.split(), "--warehouse", str(warehouse)]) == 1
    assert f"there is no warehouse at {warehouse}: check the path" in capsys.readouterr().err
    assert not warehouse.exists()
    with pytest.raises(NotFound, match="there is no warehouse"):
        Catalog(warehouse).list_tables()
    warehouse.mkdir()
    assert Catalog(warehouse).list_tables() == Catalog(warehouse).list_namespaces() == []


def test_audit_takes_an_age_and_advises_on_a_name(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    recent = output_list(capsys, "audit", "--warehouse", warehouse, "--since", "1h")
    assert recent == output_list(capsys, "audit", "--warehouse", warehouse)
    assert run(["audit", "shop.orders", "--warehouse", warehouse]) == 2
    assert "write --table shop.orders, or --namespace shop.orders" in capsys.readouterr().err


def test_a_condition_for_all_rows_is_not_shown_and_notes_are_counted(
    warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Catalog(warehouse).load_table("shop.orders")
    table.overwrite(table.to_arrow())
    assert "ALWAYS_TRUE" not in output(capsys, "history", "shop.orders", "--warehouse", warehouse)
    for number in range(2):
        Path(warehouse, f"left{number}").write_bytes(b"x")
    assert ": 2 notes" in output(capsys, "fsck", "--warehouse", warehouse)
