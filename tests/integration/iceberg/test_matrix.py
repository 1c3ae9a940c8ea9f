"""docs/iceberg-readers.md says what readers do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.iceberg import filters
from tests.integration.iceberg.matrix import OF_SPARK, PAGE, filters_page, page

from lakelog.catalog import Catalog

MAKE = "run python -m tests.integration.iceberg.matrix"


def test_the_page_says_what_readers_make_of_each_feature() -> None:
    assert PAGE.read_text().startswith(page() + filters.HEAD), MAKE


def test_readers_find_by_some_filters_what_the_page_says() -> None:
    said = filters.said_in(PAGE.read_text())
    for type in filters.VALUES:
        for reader, found in filters.answers(type, all_of_them=False).items():
            assert all(each in said[type][reader] for each in found), (type, reader, found)


@pytest.mark.slow
def test_the_page_says_what_readers_find_by_filters() -> None:
    found = filters_page()
    assert filters.OTHER_ROWS not in found
    assert found + OF_SPARK in PAGE.read_text(), MAKE


@pytest.mark.parametrize("type", ["long", "string", "decimal(9,2)", "timestamp"])
def test_files_are_left_out_by_their_bounds(tmp_path: Path, type: str) -> None:
    """Otherwise, that the right rows are found would say nothing of the bounds."""
    from pyiceberg.table import StaticTable

    values = filters.VALUES[type]
    table = filters.filled(Catalog(tmp_path), "t", type, values, [])
    scanned = StaticTable.from_metadata(table.export_iceberg().url)
    asked = filters.of_pyiceberg(filters.Filter("=", (values[0],)))
    left = list(scanned.scan(row_filter=asked).plan_files())
    assert len(left) < len(list(scanned.scan().plan_files())) - 3
