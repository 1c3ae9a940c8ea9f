"""The requests of a forget, its bytes read and written, and the memory of its process, on a folder.

There are two tables, with ten rows a commit. A table has many versions: appends, then updates of a row each. The other
has many files in a few commits. A single row matches, in the first file. The erasure runs in a process of its own. Its
memory is the peak of that process, less its memory before it read the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import wait_for_background
from programs.bench.measure import apart, cost
from programs.bench.places import counted, folder
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.int32()})
FILES_AT_ONCE = 500
ROWS = 10


def measure(appends: int = 1000, updates: int = 200, files: int = 2000) -> Iterator[Row]:
    for name in ("versions", "files"):
        with folder() as place:
            if name == "versions":
                _many_versions(Catalog(place), appends, updates)
            else:
                _many_files(Catalog(place), files)
            wait_for_background()
            for dry_run in (True, False):
                row = apart(_forget, place, dry_run)
                yield {"table": f"many {name}", "it": "looks" if dry_run else "erases", **row}


def _rows(number: int) -> pa.Table:
    numbers = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {"id": numbers, "name": [f"name{row_id}" for row_id in numbers], "day": [number] * ROWS}, SCHEMA
    )


def _many_versions(catalog: Catalog, appends: int, updates: int) -> None:
    table = catalog.create_table("t", SCHEMA)
    for number in range(appends):
        table = table.append(_rows(number))
    for number in range(updates):
        table = table.update({"name": "'changed'"}, f"id = {number * ROWS + 5}")


def _many_files(catalog: Catalog, files: int) -> None:
    table = catalog.create_table("t", SCHEMA, partition_by=["day"])
    for start in range(0, files, FILES_AT_ONCE):
        table = table.append(
            pa.concat_tables(
                _rows(start_row) for start_row in range(start, min(start + FILES_AT_ONCE, files))
            )
        )


def _forget(place: Path, dry_run: bool) -> Row:
    catalog, store = counted(place)
    catalog.load_table("t")

    def forget() -> None:
        outcome = catalog.forget("t", "name = 'name0'", dry_run=dry_run)
        assert outcome.is_needed and not outcome.left, outcome

    return cost(forget, "requests", "of which", "MB read", "MB written", "peak MB", "s", store=store)
