"""A writer that was made from docs/minimal-writer.md alone writes tables that lakelog takes for its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest
from tests.format import minimal_writer
from tests.format.minimal_writer import Refused, append, create_table, read

from lakelog.catalog import Catalog

ROWS = pa.table({"id": [1, 2], "word": ["é", None]})
MORE = pa.table({"id": [3], "word": ["w"]})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    Catalog(str(tmp_path)).create_namespace("a")
    return tmp_path


def namespace_folder(warehouse: Path) -> str:
    return next(warehouse.glob("n-*")).name


def test_lakelog_reads_and_continues_a_table_of_the_minimal_writer(warehouse: Path) -> None:
    table_folder = create_table(warehouse, namespace_folder(warehouse), "t", {"id": "long", "word": "string"})
    assert append(table_folder, read(table_folder), [ROWS, MORE]) == 2
    catalog = Catalog(str(warehouse))
    table = catalog.load_table("a.t")
    assert table.to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3], "word": ["é", None, "w"]}
    table.append(ROWS)
    assert append(table_folder, read(table_folder), [MORE]) == 4
    assert catalog.load_table("a.t").to_arrow().num_rows == 6
    assert [entry.operation for entry in catalog.load_table("a.t").history()] == [*["append"] * 3, "create"]
    assert not catalog.fsck(deep=True, all_versions=True).found


def test_its_appends_that_lose_a_race_come_after_the_winners(warehouse: Path) -> None:
    table_folder = create_table(warehouse, namespace_folder(warehouse), "t", {"id": "long", "word": "string"})
    base = read(table_folder)
    Catalog(str(warehouse)).load_table("a.t").append(ROWS)
    assert append(table_folder, base, [MORE]) == 3
    assert append(table_folder, base, [MORE]) == 4
    catalog = Catalog(str(warehouse))
    assert sorted(catalog.load_table("a.t").to_arrow()["id"].to_pylist()) == [1, 2, 3, 3]
    assert not catalog.fsck(deep=True, all_versions=True).found


def test_its_appends_fail_after_a_change_that_its_files_do_not_fit(warehouse: Path) -> None:
    catalog, space = Catalog(str(warehouse)), namespace_folder(warehouse)
    for name, change in {
        "renamed": lambda: catalog.rename_table("a.renamed", "a.other"),
        "dropped": lambda: catalog.drop_table("a.dropped"),
    }.items():
        table_folder = create_table(warehouse, space, name, {"id": "long", "word": "string"})
        base = read(table_folder)
        change()
        with pytest.raises(Refused):
            append(table_folder, base, [MORE])


def test_it_settles_a_transaction_that_it_meets(warehouse: Path) -> None:
    catalog = Catalog(str(warehouse))
    table_folder = create_table(warehouse, namespace_folder(warehouse), "t", {"id": "long", "word": "string"})
    catalog.rename_table("a.t", "a.u")
    assert append(table_folder, read(table_folder), [ROWS]) == 3
    catalog.load_table("a.u").append(MORE)
    assert catalog.load_table("a.u").to_arrow().num_rows == 3
    assert not catalog.fsck(deep=True, all_versions=True).found


def test_it_creates_no_second_table_of_a_name(warehouse: Path) -> None:
    space = namespace_folder(warehouse)
    create_table(warehouse, space, "t", {"id": "long"})
    with pytest.raises(Refused, match="taken"):
        create_table(warehouse, space, "t", {"id": "long"})


def test_it_has_no_code_of_lakelog() -> None:
    tree = ast.parse(Path(minimal_writer.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert not [module for module in modules if module and module.startswith(("lakelog", "tests"))]
