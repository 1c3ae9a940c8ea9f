"""The format of clones: what a release wrote is read for ever, and today's code says the same."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.clones_v1 import fill
from tests.format.catalog.warehouse_v1 import check_says_the_same

from lakelog.catalog import Catalog

GOLDEN = Path(__file__).parent / "clones_v1"


def test_today_says_what_was_said() -> None:
    check_says_the_same(GOLDEN, fill)


def test_what_is_kept_and_borrowed_is_read() -> None:
    catalog = Catalog(str(GOLDEN))
    source, clone, free = (catalog.load_table(name) for name in ("a", "b", "c"))
    assert [table.row_count for table in (source, clone, free)] == [11, 12, 11]
    assert list(source.head.state.clones) == [clone.id] and not clone.head.state.clones
    assert [origin.id for origin in clone.head.state.origins] == [source.id] and not free.head.state.origins
    own = [path.startswith("data/") for path in sorted(clone.plan()["path"].to_pylist())]
    assert own == [True, False, False]
    assert [entry.operation for entry in clone.history()] == [
        "append", "release clones", "promise a clone", "create, clone"
    ]  # fmt: skip
