"""`lakelog audit`, `dropped` and `undrop`, over warehouses in folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.definition import FunctionDefinition, ViewColumn, ViewDefinition
from lakelog.cli.main import run

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("LAKELOG_WAREHOUSE", str(tmp_path / "warehouse"))
    return Catalog(
        tmp_path / "warehouse", options={"fsync": "off"}, writer={"engine": "spark 4.3.0", "user": "ada"}
    )


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA)
    with engine.writing_as({"application": "nightly", "query": "7", "statement": "INSERT INTO t VALUES (?)"}):
        table.append(pa.table({"id": [1]}))
    return catalog


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(arguments)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, ""), printed.err
    return printed.out


def output_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Return the objects that a command prints, one a line."""
    return [json.loads(line) for line in output(capsys, *arguments, "--json").splitlines()]


def fail(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(arguments)
    return code, capsys.readouterr().err


def test_audit_prints_who_did_what_with_which_statement(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, "audit")
    [line] = [line for line in text.splitlines() if "append" in line]
    assert "shop.orders" in line and "ada spark 4.3.0 nightly" in line and "+1 row in 1 file" in line
    assert "INSERT INTO t VALUES (?)" in text and "(root)" in text


def test_audit_in_json_is_one_object_a_line_with_the_same_members(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = output_json(capsys, "audit")
    assert len(entries) == len(list(shop.audit())) and len({tuple(entry) for entry in entries}) == 1
    newest = entries[0]
    assert newest["name"] == "shop.orders" and newest["operations"] == ["append"]
    assert (newest["user"], newest["query"], newest["statement"]) == ("ada", "7", "INSERT INTO t VALUES (?)")
    assert newest["committed_at"].endswith("+00:00")
    assert output_json(capsys, "audit", "--oldest-first") == entries[::-1]
    assert output_json(capsys, "audit", "--limit", "2") == entries[:2]


def test_audit_is_narrowed_by_its_options(shop: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    def versions(*options: str) -> list[int]:
        return [entry["version"] for entry in output_json(capsys, "audit", *options)]

    newest = output_json(capsys, "audit")[0]
    assert versions("--since", newest["committed_at"]) == [2]
    assert versions("--until", "2000-01-01") == [] and "Nothing" in output(
        capsys, "audit", "--until", "2000-01-01"
    )
    assert versions("--operation", "append", "--user", "a*") == [2]
    assert versions("--namespace", "shop", "--operation", "create*") == [1, 1]
    location = shop.load_table("shop.orders").location
    assert versions("--table", location) == [2, 1]
    shop.rename_table("shop.orders", "shop.sales")
    entries = output_json(capsys, "audit", "--table", "shop.orders")
    assert {entry["name"] for entry in entries} == {"shop", "shop.sales"}


def test_audit_of_a_place_needs_no_warehouse(
    shop: Catalog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKELOG_WAREHOUSE")
    location = shop.load_table("shop.orders").location
    assert [entry["version"] for entry in output_json(capsys, "audit", "--table", location)] == [2, 1]
    assert fail(capsys, "audit")[0] == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--since", "yesterday"), "2026-11-20"),
        (("--since", "2026-11-21", "--until", "2026-11-20"), "later"),
        (("--operation", "apend"), "append"),
        (("--table", "shop.nothing"), "nothing"),
        (("--namespace", "nowhere"), "nowhere"),
        (("--table", "a", "--namespace", "b"), "one of them"),
    ],
)
def test_a_question_without_an_answer_is_one_line_on_stderr(
    shop: Catalog, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], named: str
) -> None:
    code, message = fail(capsys, "audit", *options)
    assert code == 1 and named in message and message.count("\n") == 1


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_tampered_commit_is_reported_where_it_is_and_the_exit_code_says_so(
    shop: Catalog, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    commit = Path(shop.load_table("shop.orders").location, "_log", f"{1:020}.json")
    commit.write_bytes(commit.read_bytes().replace(b'"ada"', b'"eve"'))
    assert run(["audit", *form]) == 4
    printed = capsys.readouterr()
    assert str(commit) in printed.out and "1 of these entries report damage" in printed.err
    assert "append" in printed.out and "create namespace" in printed.out


def test_dropped_lists_what_can_be_restored_and_undrop_restores_it(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Nothing" in output(capsys, "dropped")
    shop.drop_table("shop.orders")
    text = output(capsys, "dropped")
    [entry] = output_json(capsys, "dropped")
    assert "shop.orders" in text and "ada" in text and entry["id"] in text
    assert entry["kind"] == "table" and entry["name"] == "shop.orders" and entry["writer"]["user"] == "ada"
    assert entry["kept_until"] > entry["dropped_at"]
    assert output_json(capsys, "dropped", "shop") == [entry]
    assert "Restored the table shop.orders" in output(capsys, "undrop", "shop.orders")
    assert shop.load_table("shop.orders").row_count == 1
    assert "Nothing" in output(capsys, "dropped")


def test_the_one_that_was_dropped_earlier_is_restored_by_its_id_under_another_name(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    first = shop.load_table("shop.orders").id
    shop.drop_table("shop.orders")
    shop.create_table("shop.orders", SCHEMA)
    shop.drop_table("shop.orders")
    shop.create_table("shop.orders", SCHEMA)
    assert [entry["id"] for entry in output_json(capsys, "dropped")][1] == first
    code, message = fail(capsys, "undrop", "shop.orders", "--id", first)
    assert code == 1 and "already" in message
    output(capsys, "undrop", "shop.orders", "--id", first, "--to", "shop.first")
    assert shop.load_table("shop.first").row_count == 1


def test_a_namespace_is_restored_with_all_that_was_dropped_with_it(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.drop_namespace("shop", cascade=True)
    [entry] = output_json(capsys, "dropped")
    assert (entry["kind"], entry["name"]) == ("namespace", "shop")
    assert output_json(capsys, "undrop", "shop") == [{"kind": "namespace", "name": "shop"}]
    assert shop.load_table("shop.orders").row_count == 1


def test_views_and_functions_are_listed_and_restored_too(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    view = ViewDefinition(text="SELECT 1 AS a", columns=(ViewColumn(name="a", type="integer"),))
    engine.create_view(shop, "shop.v", view)
    engine.create_function(shop, "shop.v", FunctionDefinition(language="sql", body="1", returns="INT"))
    shop.drop_view("shop.v")
    shop.drop_function("shop.v")
    entries = output_json(capsys, "dropped", "shop")
    assert {(entry["kind"], entry["name"]) for entry in entries} == {
        ("view", "shop.v"),
        ("function", "shop.v"),
    }
    code, message = fail(capsys, "undrop", "shop.v")
    assert code == 2 and "A function and a view were dropped as shop.v" in message
    ids = {entry["kind"]: entry["id"] for entry in entries}
    restored_output = output_json(capsys, "undrop", "shop.v", "--id", ids["view"], "--to", "shop.w")
    assert restored_output == [{"kind": "view", "name": "shop.w"}]
    assert "Restored the function shop.v" in output(capsys, "undrop", "shop.v")
    assert shop.load_view("shop.w") == view and shop.function_exists("shop.v")
    assert "Nothing" in output(capsys, "dropped")


def test_a_name_that_both_a_table_and_a_namespace_had_needs_an_id(
    shop: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.create_namespace("shop.orders")
    shop.drop_namespace("shop.orders")
    shop.drop_table("shop.orders")
    code, message = fail(capsys, "undrop", "shop.orders")
    assert code == 2 and "--id" in message
    [namespace] = [entry for entry in shop.dropped("shop") if entry.kind == "namespace"]
    assert "namespace shop.orders" in output(capsys, "undrop", "shop.orders", "--id", namespace.id)
    code, message = fail(capsys, "undrop", "shop.nothing")
    assert code == 1 and "nothing" in message
