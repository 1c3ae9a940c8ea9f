"""Files that were found, as many as there may be, without making texts of them."""

from __future__ import annotations

from lakelog.catalog.keeping.maintenance.found_files import FoundFiles, own_files
from lakelog.log import new_id


def test_files_are_distinguished_by_the_version_in_their_names() -> None:
    own = [
        (f"n/t/data/{version:020d}-{new_id()}-00000.parquet", size)
        for size, version in enumerate((9, 1, 10, 9))
    ]
    table, foreign = own_files([*own, ("n/t/data/other.parquet", 7)], "n/t/")
    found = FoundFiles([table, table.slice(0, 0)])
    assert (foreign, found.count, found.size_bytes, found.oldest) == (1, 4, 6, 1)
    assert list(found.keys("n/t/")) == [key for key, _ in own]
    assert list(found.before(10).keys("n/t/")) == [own[0][0], own[1][0], own[3][0]]
    assert found.before(10, {own[1][0].removeprefix("n/t/")}).count == 2
    assert found.before(11).tables[0] is table, "nothing is copied where all stay"
    nothing = FoundFiles()
    assert (nothing.count, nothing.size_bytes, nothing.oldest, list(nothing.before(5).keys(""))) == (
        0,
        0,
        0,
        [],
    )
