"""docs/iceberg-readers.md says what readers do."""

from __future__ import annotations

from tests.integration.iceberg.matrix import PAGE, page


def test_the_page_says_what_readers_make_of_each_feature() -> None:
    assert PAGE.read_text().startswith(page()), "run python -m tests.integration.iceberg.matrix"
