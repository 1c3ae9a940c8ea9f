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
    files = FoundFiles([table, table.slice(0, 0)])
    assert (foreign, files.count, files.size_bytes, files.oldest) == (1, 4, 6, 1)
    assert list(files.keys("n/t/")) == [key for key, _ in own]
    assert list(files.before(10).keys("n/t/")) == [own[0][0], own[1][0], own[3][0]]
    assert files.before(10, {own[1][0].removeprefix("n/t/")}).count == 2
    assert files.before(11).tables[0] is table, "nothing is copied where all stay"
    empty_files = FoundFiles()
    assert (
        empty_files.count,
        empty_files.size_bytes,
        empty_files.oldest,
        list(empty_files.before(5).keys("")),
    ) == (
        0,
        0,
        0,
        [],
    )
