"""What a notebook shows of a catalog: a tree of names, of a bounded size and cost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.integration.catalog.notebooks.test_tables import HOSTILE, Shown

from lakelog.catalog import Catalog, Observation, ViewDefinition, engine
from lakelog.catalog.catalog_names import CatalogNames
from lakelog.log import wait_for_background

SCHEMA = pa.schema({"id": pa.int64()})


def tree(catalog: CatalogNames) -> str:
    return next(text for text in Shown(catalog).texts if "─ " in text)


def test_namespaces_and_tables_as_a_tree(catalog: Catalog) -> None:
    assert Shown(catalog).has("no namespaces and no tables")
    for name in ("a", "a.b", "a.b.c", "a.b.c.d", "z"):
        catalog.create_namespace(name)
    for name in ("t", "a.t", "a.b.`T 1`", "a.b.c.hidden"):
        catalog.create_table(name, SCHEMA)
    engine.create_view(catalog, "a.`a view`", ViewDefinition(text="SELECT 1", columns=()))
    assert tree(catalog).splitlines() == [
        "├─ a/",
        "│  ├─ b/",
        "│  │  ├─ c/  …",
        "│  │  └─ T 1",
        "│  ├─ a view (view)",
        "│  └─ t",
        "├─ z/",
        "└─ t",
    ]


def test_as_of_a_time_and_in_a_transaction(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.early", SCHEMA)
    time_before = catalog.create_table("a.late", SCHEMA).committed_at  # its name is linked after that
    past = Catalog(catalog.warehouse, as_of=time_before)
    shown = Shown(past)
    assert shown.has("as of", "early") and not shown.has("late")
    with catalog.transaction() as tx:
        tx.create_namespace("mine")
        tx.create_table("mine.t", SCHEMA)
        assert "mine/" in tree(tx) and Shown(tx).has("Transaction") and "mine/" not in tree(catalog)
        tx.rollback()
    assert Shown(tx).has("names: Unsupported: this transaction was rolled back")


def test_a_thousand_tables_do_not_hide_the_rest(catalog: Catalog) -> None:
    catalog.create_namespace("big")
    catalog.create_namespace("small")
    catalog.create_table("small.t", SCHEMA)
    with catalog.transaction() as tx:
        for number in range(1_000):
            tx.create_table(f"big.t{number:04}", SCHEMA)
    lines = tree(catalog).splitlines()
    assert "   └─ t" in lines and "│  └─ … and 803 names more" in lines and len(lines) == 201


def test_many_namespaces_are_not_read(client, catalog: Catalog, warehouse: str) -> None:
    with catalog.transaction() as tx:
        for number in range(2_500):  # so many that they are in pages
            tx.create_namespace(f"n{number:04}")
    with catalog.transaction() as tx:
        tx.create_namespace("m-first")
        tx.create_table("n0003.t", SCHEMA)
        tx.drop_namespace("n0000")
    wait_for_background()
    seen_observations: list[Observation] = []
    other_catalog = Catalog(warehouse, observe=seen_observations.append)
    lines = tree(other_catalog).splitlines()
    assert lines[:2] == ["├─ m-first/", "├─ n0001/"]
    assert lines.count("│  └─ t") == 1 and "namespaces more" in lines[-1] and len(lines) < 202
    assert sum(line.endswith("…") for line in lines) == 140
    assert sum(seen_observations[0].requests.values()) <= 60, (
        seen_observations
    )  # the namespaces have no hints


def test_hostile_names_stay_text(catalog: Catalog) -> None:
    catalog.create_namespace(("<b>├─ x\u202e",))
    catalog.create_table(("<b>├─ x\u202e", HOSTILE), SCHEMA)
    assert Shown(catalog).has(HOSTILE, "<b>├─ x\\u202e/")


def test_a_failing_store_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Shown(Catalog(tmp_path / "none")).has("names: NoSuchWarehouse: ")
    warehouse = tmp_path / "warehouse"
    catalog = Catalog(warehouse)
    catalog.create_namespace("good")
    catalog.create_table("good.t", SCHEMA)
    catalog.create_namespace("bad")
    wait_for_background()
    state = catalog._tree.namespace(("bad",))
    for file in (warehouse / state.tracked.location).rglob("*.json"):
        file.write_text("{")
    lines = tree(Catalog(warehouse)).splitlines()
    assert lines[0].startswith("├─ bad/  FormatError: ") and lines[1:] == ["└─ good/", "   └─ t"]
    for file in warehouse.rglob("*.json"):
        file.write_text("{")
    assert Shown(Catalog(warehouse)).has("names: FormatError: ", "warehouse")
