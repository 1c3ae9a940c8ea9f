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
        for reader, answer in filters.answers(type, all_of_them=False).items():
            assert all(text in said[type][reader] for text in answer), (type, reader, answer)


@pytest.mark.slow
def test_the_page_says_what_readers_find_by_filters() -> None:
    found_filters_page = filters_page()
    assert filters.OTHER_ROWS not in found_filters_page
    assert found_filters_page + OF_SPARK in PAGE.read_text(), MAKE


@pytest.mark.parametrize("type", ["long", "string", "decimal(9,2)", "timestamp"])
def test_files_are_left_out_by_their_bounds(tmp_path: Path, type: str) -> None:
    """Otherwise, that the right rows are found would say nothing of the bounds."""
    from pyiceberg.table import StaticTable

    values = filters.VALUES[type]
    table = filters.filled(Catalog(tmp_path), "t", type, values, [])
    scanned_table = StaticTable.from_metadata(table.export_iceberg().url)
    asked = filters.of_pyiceberg(filters.Filter("=", (values[0],)))
    left_files = list(scanned_table.scan(row_filter=asked).plan_files())
    assert len(left_files) < len(list(scanned_table.scan().plan_files())) - 3
