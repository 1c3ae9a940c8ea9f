"""`lakelog sql`: rows as every other reader has them, one moment, and nothing that changes something."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, col
from lakelog.cli.main import run
from lakelog.cli.ui.answers import PageAnswers

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    catalog.create_namespace("shop.old")
    catalog.create_namespace("shop.old.very")
    table = catalog.create_table("shop.orders", SCHEMA)
    table = table.append(pa.table({"id": [1, 2, 3], "name": ["ada", "bob", None]}))
    table = table.alter(
        [
            {"change": "rename-column", "name": ["name"], "new_name": "label"},
            {
                "change": "add-column",
                "name": ["pieces"],
                "type": "integer",
                "default": {"current": "7"},
            },
        ]
    )
    table.delete(col("id") == 2)
    for name in ("root", "shop.old.orders", "shop.old.very.orders"):
        catalog.create_table(name, SCHEMA).append(pa.table({"id": [9], "name": [name]}))
    return catalog


@pytest.fixture
def ask(catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def answer(*arguments: str, code: int = 0) -> Any:
        assert run(["sql", "--warehouse", str(tmp_path / "warehouse"), *arguments]) == code
        out, err = capsys.readouterr()
        return err if code else json.loads(out) if "--json" in arguments else out + err

    return answer


def test_deleted_rows_defaults_and_renamed_columns_are_as_in_every_read(ask):
    found = ask("SELECT * FROM shop.orders ORDER BY id", "--json")
    assert found["columns"] == ["id", "label", "pieces"]
    assert found["rows"] == [[1, "ada", 7], [3, None, 7]]
    assert found["versions"] == {"`shop`.`orders`": 4}


def test_people_see_a_table_and_which_versions_were_read(ask):
    shown = ask("SELECT count(*) AS n FROM shop.orders WHERE pieces = 7")
    assert "n" in shown and "2" in shown and "Read `shop`.`orders` in version 4." in shown


def test_tables_of_all_depths_are_joined_and_those_of_the_query_itself_are_not_looked_up(ask):
    query = """
        WITH root AS (SELECT 9 AS id)
        SELECT o.name, v.name FROM shop.old.orders o JOIN root USING (id) JOIN "shop.old.very.orders" v USING (id)
        WHERE id NOT IN (SELECT id FROM shop.orders)"""
    found = ask(query, "--json")
    assert found["rows"] == [["shop.old.orders", "shop.old.very.orders"]]
    assert sorted(found["versions"]) == [
        "`shop`.`old`.`orders`", "`shop`.`old`.`very`.`orders`", "`shop`.`orders`",
    ]  # fmt: skip
    assert ask("FROM root", "--json")["rows"] == [[9, "root"]]


def test_the_past_is_read_as_of_a_cut(ask, catalog):
    catalog.save_cut("before")
    catalog.load_table("root").append(pa.table({"id": [10], "name": ["new"]}))
    assert ask("SELECT max(id) FROM root", "--json", "--as-of", "before")["rows"] == [[9]]
    assert ask("SELECT max(id) FROM root", "--json")["rows"] == [[10]]


def test_rows_beyond_the_limit_are_not_shown_and_that_is_said(ask):
    found = ask("SELECT id FROM shop.orders ORDER BY id", "--json", "--limit", "1")
    assert found["rows"] == [[1]] and found["more"]
    assert "There are more rows" in ask("SELECT id FROM shop.orders", "--limit", "1")
    assert not ask("SELECT id FROM shop.orders", "--json", "--limit", "2")["more"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("DELETE FROM shop.orders", "is not a SELECT"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("COPY (SELECT 1) TO 'here.csv'", "is not a SELECT"),
        (f"SELECT 1 {'+ 1 ' * 900}", "nested too deeply"),
        ("SELEC", "syntax error"),
        ("SELECT nothing FROM shop.orders", "nothing"),
        ("SELECT * FROM shop.nothing", "there is no table `shop`.`nothing`"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("SELECT * FROM '/etc/passwd'", "there is no table"),
        ("SELECT * FROM shop.orders AT (VERSION => 1)", "--as-of"),
        ("SHOW TABLES", "`lakelog ls` lists"),
        ("SELECT id / 0 + CAST(name AS INT) FROM shop.old.orders", "shop.old.orders"),
    ],
)
def test_what_is_not_a_query_over_tables_is_refused(ask, query, words):
    error = ask(query, code=1)
    assert error.startswith("lakelog: ") and words in error


@pytest.mark.parametrize(
    ("query", "rows", "is_read"),
    [
        ("WITH root AS (SELECT 1 AS id) SELECT id FROM root", [[1]], False),
        ("WITH root AS (SELECT id + 1 AS id FROM root) SELECT id FROM root", [[10]], True),
        ("SELECT u.id, root.id FROM (WITH root AS (SELECT 1 AS id) FROM root) AS u, root", [[1, 9]], True),
        ("WITH a AS (SELECT 5 AS id), b AS (FROM a) SELECT b.id FROM b, root", [[5]], True),
        (
            "WITH RECURSIVE root AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM root WHERE id < 3) "
            "SELECT max(id) FROM root",
            [[3]],
            False,
        ),
    ],
)
def test_a_name_that_a_part_of_the_query_has_itself_is_the_tables_elsewhere(ask, query, rows, is_read):
    found = ask(query, "--json")
    assert (found["rows"], "`root`" in found["versions"]) == (rows, is_read)


def test_columns_of_the_same_name_are_all_shown(ask):
    assert ask("SELECT 1 AS a, 2 AS a", "--json")["rows"] == [[1, 2]]


@pytest.mark.parametrize("name", ["memory", "system", "temp", "main", "information_schema", "memory.temp"])
def test_namespaces_may_be_called_as_what_duckdb_has(ask, catalog, name):
    catalog.create_namespace(name.partition(".")[0], if_not_exists=True)
    catalog.create_namespace(name, if_not_exists=True)
    catalog.create_table(f"{name}.t", SCHEMA).append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    query = f"SELECT {name}.t.name, o.id FROM {name}.t JOIN shop.orders o ON o.id = {name}.t.id WHERE {name}.t.id > 0"
    assert ask(query, "--json")["rows"] == [["a", 1]]


LONG = 50_000
"""The characters of a long cell."""

LONG_CELLS = 150


@pytest.mark.parametrize("cell", ["repeat('ü', {})", "repeat('x', {})::BLOB", "[{{'a': repeat('x', {})}}]"])
def test_of_long_cells_no_more_is_held_than_is_shown(catalog, capsys, cell):
    query = f"SELECT {cell.format(LONG)} AS long FROM range({LONG_CELLS})"
    tracemalloc.start()
    try:
        assert run(["sql", "--warehouse", catalog.warehouse, query]) == 0
        _, command_bytes = tracemalloc.get_traced_memory()
        capsys.readouterr()
        tracemalloc.reset_peak()
        answer = PageAnswers(catalog, "token", 10).answer("GET", f"/token/query?id=1&sql={quote(query)}")
        _, page_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status == 200 and len(json.loads(answer.body)["rows"]) == LONG_CELLS
    assert page_bytes < LONG * LONG_CELLS / 2 and command_bytes < LONG * LONG_CELLS


@pytest.mark.parametrize(
    "past", ["VERSION AS OF 2", "FOR system_time as of '2026-01-01'", "AT (VERSION => 2)"]
)
def test_the_past_in_the_words_of_other_engines_is_refused_with_the_way_to_it(ask, past):
    error = ask(f"SELECT * FROM shop.orders {past}", code=1)
    assert "give a time by --as-of TIME" in error and "lakelog head TABLE --version N" in error


def test_a_name_with_the_catalogs_name_says_to_leave_it_out(ask):
    assert "leave the catalog's name out, as in `shop`.`orders`" in ask(
        "SELECT * FROM lake.shop.orders", code=1
    )
