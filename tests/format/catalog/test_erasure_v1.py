"""The format of erasures: what a release wrote is read for ever, and today's code says the same."""

from __future__ import annotations

import json
from pathlib import Path

from tests.format.catalog.erasure_v1 import STATEMENT, fill
from tests.format.catalog.test_clones_v1 import _plain
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog

GOLDEN = Path(__file__).parent / "erasure_v1"


def test_today_says_what_was_said() -> None:
    golden, written_data = released(GOLDEN), build(fill)
    assert _plain(written_data).keys() == _plain(golden).keys()
    for key, data in _plain(golden).items():
        ours, theirs = json.loads(written_data[key]), json.loads(data)
        assert (ours["kind"], ours.get("events")) == (theirs["kind"], theirs.get("events")), key


def test_a_table_is_read_past_a_base_without_a_state() -> None:
    catalog = Catalog(str(GOLDEN))
    table = catalog.load_table("a")
    state = table.table_head.state
    assert (table.row_count, state.erasing, state.erased) == (4, "erasure-2", table.version)
    bases = [json.loads(path.read_bytes()) for path in sorted(GOLDEN.rglob("bases/*.json"))]
    assert ["state" in base["root"] for base in bases] == [False, True]
    entries = [entry for entry in table.history() if entry.operation == "end of forgetting"]
    assert [entry.details["statement"] for entry in entries] == [STATEMENT]
