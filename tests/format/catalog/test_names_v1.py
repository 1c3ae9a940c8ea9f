"""The format of namespaces in pages: what a release wrote is read for ever, and today's code says the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.format.catalog.names_v1 import NAMES, VIEWS, build, defined
from tests.format.catalog.warehouse_v1 import released

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.state import RELATION, TABLE

GOLDEN = Path(__file__).parent / "names_v1"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(shutil.copytree(GOLDEN, tmp_path / "warehouse"))


def test_today_says_what_was_said() -> None:
    golden, written_data = released(GOLDEN), build()
    for key, data in golden.items():
        if key.endswith(".json") and "/_log/0" in key:
            ours, theirs = json.loads(written_data[key]), json.loads(data)
            assert (ours["kind"], ours.get("events")) == (theirs["kind"], theirs.get("events")), key
    [base, ours] = (
        json.loads(objects[next(filter(is_base, objects))])["root"]["state"]
        for objects in (golden, written_data)
    )
    # Names of pages have hashes of Arrow's bytes in them, which are Arrow's business.
    assert [[page[:3] for page in each.pop("pages")] for each in base["paged"]] == [
        [page[:3] for page in each.pop("pages")] for each in ours["paged"]
    ]
    assert base == ours
    assert {each["of"] for each in base["paged"]} == {"entries", "dropped"}


def is_base(key: str) -> bool:
    return key.startswith("n-") and "/_log/bases/" in key


def test_all_names_are_read(catalog: Catalog) -> None:
    again = [f"{name}-again" for name in NAMES]
    live = sorted({*NAMES[:20], *again, "t20", "renamed", "last"} - {"t03", "t04", "t05"})
    assert engine.table_names(catalog, "n").to_pylist() == live
    assert catalog.list_views("n") == [("n", name) for name in VIEWS]
    state = catalog._tree.namespace(("n",)).view.state
    renamed_entry, first = state.entry(RELATION, "renamed"), state.entry(RELATION, "t00")
    assert renamed_entry is not None and (renamed_entry.id, renamed_entry.kind, renamed_entry.location) == (
        "id-t03",
        TABLE,
        "n/t-id-t03",
    )
    assert first is not None and first.id == "id-t00"
    assert catalog.load_view("n.v03").text == "SELECT 'v03'"
    assert {(log.entry.id, log.name) for log in state.dropped_logs()} == {
        (f"id-{name}", name) for name in ["t04", *NAMES[21:]]
    }
    dropped_views = sorted(state.dropped_definitions(), key=lambda each: each.name)
    assert [(dropped_view.entry.id, dropped_view.name) for dropped_view in dropped_views] == [
        (f"id-{name}", name) for name in VIEWS
    ]
    assert [dropped_view.entry.definition for dropped_view in dropped_views] == [
        defined(name).definition for name in VIEWS
    ]


def test_without_the_hint_it_is_read_from_the_base(catalog: Catalog) -> None:
    rows_before = engine.table_names(catalog, "n").to_pylist()
    for path in Path(catalog.warehouse).glob("n-*/_log/latest.json"):
        path.unlink()
    assert engine.table_names(Catalog(catalog.warehouse), "n").to_pylist() == rows_before
