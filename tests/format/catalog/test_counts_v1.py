"""The format of numbers of rows: what a release wrote is read for ever, and today's code writes the same."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.counts_v1 import fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog, RowCounts

GOLDEN = Path(__file__).parent / "counts_v1"


def test_today_writes_what_the_release_wrote() -> None:
    assert build(fill) == released(GOLDEN)


def test_numbers_of_rows_are_read_also_where_a_client_has_counted_none() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    assert [(entry.operation, entry.rows) for entry in table.history()] == [
        ("merge", RowCounts(inserted=None, updated=None, deleted=None, copied=None)),
        ("merge", RowCounts(inserted=3, updated=2, deleted=3, copied=7)),
        ("update", RowCounts(updated=4, copied=6)),
        ("append", RowCounts(inserted=15)),
        ("create", None),
    ]
