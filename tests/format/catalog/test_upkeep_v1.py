"""The format of definitions, identity values and upkeep: what is stored is read, and today's code says the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.format.catalog.upkeep_v1 import FUNCTION, VIEW, build
from tests.format.catalog.warehouse_v1 import released

from lakelog.catalog import Catalog, NoSuchNamespace, engine
from lakelog.log.errors import NotFound
from lakelog.log.grammar import RIGHTS_KEY

GOLDEN = Path(__file__).parent / "upkeep_v1"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    # A copy: a client that meets what is half purged may write.
    return Catalog(shutil.copytree(GOLDEN, tmp_path / "warehouse"))


def test_today_says_what_was_said() -> None:
    golden, written_data = released(GOLDEN), build()
    # Names of manifests and snapshots have hashes of Arrow's bytes in them, which are Arrow's business.
    assert _plain(written_data).keys() == _plain(golden).keys()
    for key, data in _plain(golden).items():
        if key.endswith(RIGHTS_KEY):
            continue
        ours, theirs = json.loads(written_data[key]), json.loads(data)
        assert (ours["kind"], ours.get("events")) == (theirs["kind"], theirs.get("events")), key


def _plain(objects: dict[str, bytes]) -> dict[str, bytes]:
    derived_texts = ("/manifests/", "/snapshots/", "/data/")
    return {key: data for key, data in objects.items() if not any(part in key for part in derived_texts)}


def test_definitions_are_read(catalog: Catalog) -> None:
    assert catalog.load_view("shop.named") == VIEW == catalog.load_view("views.named")
    assert catalog.load_function("shop.gross") == FUNCTION
    assert [entry.operation for entry in catalog.history("views")] == ["purge", "expire"]


def test_a_table_that_was_kept_up_is_read(catalog: Catalog) -> None:
    table = catalog.load_table("shop.orders")
    assert (table.version, table.row_count, table.clustering) == (7, 3, (("name",),))
    assert engine.identity_values(table) == [{"column": 1, "next": 4}]
    assert engine.estimates(table) is not None and engine.estimates(table).columns[1].distinct == 3
    with pytest.raises(NotFound):
        table.at(version=1)
    assert [entry.operation for entry in table.history()] == [
        "expire", "vacuum", "compute statistics", "take identity values, append",
        "change sort order, change clustering",
    ]  # fmt: skip


def test_what_was_purged_is_gone(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == [("shop",), ("views",)]
    assert [(entry.name, entry.kind) for entry in catalog.dropped()] == [(("old",), "namespace")]
    with pytest.raises(NotFound):
        catalog.undrop_namespace("old")
    with pytest.raises(NoSuchNamespace):
        catalog.list_tables("old")
