"""The format of clones: what a release wrote is read for ever, and today's code says the same."""

from __future__ import annotations

import json
from pathlib import Path

from tests.format.catalog.clones_v1 import fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog

GOLDEN = Path(__file__).parent / "clones_v1"


def test_today_says_what_was_said() -> None:
    golden, written_data = released(GOLDEN), build(fill)
    # Names of manifests and snapshots have hashes of Arrow's bytes in them, which are Arrow's business.
    assert _plain(written_data).keys() == _plain(golden).keys()
    for key, data in _plain(golden).items():
        ours, theirs = json.loads(written_data[key]), json.loads(data)
        assert (ours["kind"], ours.get("events")) == (theirs["kind"], theirs.get("events")), key


def _plain(objects: dict[str, bytes]) -> dict[str, bytes]:
    derived_texts = ("/manifests/", "/snapshots/", "/sidecars/")
    return {key: data for key, data in objects.items() if not any(part in key for part in derived_texts)}


def test_what_is_kept_and_borrowed_is_read() -> None:
    catalog = Catalog(str(GOLDEN))
    source, clone, free = (catalog.load_table(name) for name in ("a", "b", "c"))
    assert [table.row_count for table in (source, clone, free)] == [11, 12, 11]
    assert list(source.table_head.state.clones) == [clone.id] and not clone.table_head.state.clones
    assert [origin.id for origin in clone.table_head.state.origins] == [
        source.id
    ] and not free.table_head.state.origins
    own = [path.startswith("data/") for path in sorted(clone.plan()["path"].to_pylist())]
    assert own == [True, False, False]
    assert [entry.operation for entry in clone.history()] == [
        "append", "release clones", "promise a clone", "create, clone"
    ]  # fmt: skip
