"""The format of row ids and deleted rows: what a release wrote is read for ever, and today's code writes the same."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.rows_v1 import SCATTERED, fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog, col
from lakelog.catalog.core.files.data_file import files_from_arrow
from lakelog.catalog.core.files.deletion_vectors import deletes_from_json
from lakelog.catalog.core.logs.stored_vectors import read_vector

GOLDEN = Path(__file__).parent / "rows_v1"


def test_today_writes_what_the_release_wrote() -> None:
    golden = released(GOLDEN)
    written_data = build(fill)
    assert written_data.keys() == golden.keys()
    for key, data in golden.items():
        # Bytes of Arrow, and all that hashes them, are Arrow's business: the other tests read them.
        if not _holds_arrow(key):
            assert written_data[key] == data, key


def _holds_arrow(key: str) -> bool:
    name = key.rpartition("/")[2]
    return "/_log/" in key and not (name[:20].isdigit() and int(name[:20]) < 7 and "/_log/0" in key)


def test_vectors_and_ids_of_every_version_are_read() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")

    def at(version: int) -> list[tuple[int, int | None, int | None, list[int]]]:
        plan = table.at(version=version).plan()
        found = []
        for file in plan.to_pylist():
            deletes = deletes_from_json(file["deletes"]) if file.get("deletes") else None
            rows = file["rows"] + (file.get("deleted") or 0)
            vector = read_vector(
                table.table_head.tracked.store, table.table_head.tracked.prefix, deletes, rows
            )
            found.append((file["rows"], file["first_row"], file["version"], list(vector)))
        return sorted(found, key=lambda each: each[1] or 0)

    scattered_numbers = sorted(set(SCATTERED))
    large = (40_000 - len(scattered_numbers), 10, 2, scattered_numbers)
    assert at(2) == [(10, 0, 2, []), (40_000, 10, 2, []), (3, 40_010, 2, [])]
    assert at(3) == [(8, 0, 2, [0, 9]), large, (1, 40_010, 2, [0, 1])]
    assert at(5) == [(6, 0, 2, [0, 4, 5, 9]), large, (2, 40_013, 5, [])]
    assert at(6) == [large, (2, 40_013, 5, []), (6, 40_015, 6, [])]
    assert at(7) == at(3)
    assert table.table_head.view.state.next_row == 40_021
    assert [entry.operation for entry in table.history()] == [
        "rollback", "compact", "update", "change schema", "delete", "append", "create",
    ]  # fmt: skip


def test_files_are_planned_by_what_was_written_of_them_in_another_type() -> None:
    table = Catalog(str(GOLDEN)).load_table("t").at(version=5)
    assert table.plan(col("id") == 100_000)["first_row"].to_pylist() == [10]
    assert len(files_from_arrow(table.plan(col("name").is_null()))) == 3
