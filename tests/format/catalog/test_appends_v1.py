"""The format of appends that went together: what a release wrote is read for ever, and today's code writes the same."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.appends_v1 import fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog

GOLDEN = Path(__file__).parent / "appends_v1"


def test_today_writes_what_the_release_wrote() -> None:
    assert build(fill) == released(GOLDEN)


def test_each_author_has_an_entry_and_the_sums_are_those_of_the_files() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    history = [
        (entry.version, entry.writer["user"], entry.operation, entry.details) for entry in table.history()
    ]
    files = {"added_files": 1, "added_bytes": 2000}
    assert history[:-1] == [
        (3, "ada", "append", {"added_files": 1, "added_rows": 3, "added_bytes": 2000}),
        (2, "ada", "append", {**files, "of_changes": 2}),
        (2, "bob", "append", {"added_rows": 2}),
        (2, "ada", "append", {"added_rows": 1}),
    ]
    assert table.plan().num_rows == 2 and table.row_count == 6
