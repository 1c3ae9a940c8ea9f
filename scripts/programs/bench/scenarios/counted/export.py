"""The cost of an export for readers of Iceberg, by the number of files. Requests and bytes are exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelog.catalog import Table, col
from lakelog.log import CountingStore
from programs.bench.data.file_lists import SMALL_SCHEMA, plain_table
from programs.bench.measure import cost
from programs.bench.places import counted, memory
from programs.bench.scenario import Row

ROWS = pa.table({"id": [-1], "day": [1], "name": ["new"]}, SMALL_SCHEMA)


def measure(files: Sequence[int] = (1, 100, 100_000), appends: int = 100) -> Iterator[Row]:
    for number in files:
        catalog, store = counted(memory())
        catalog.create_namespace("bench")
        table = plain_table(catalog, number)
        yield _row(number, "the first", store, table)
        table = table.append(ROWS)
        yield _row(number, "after an append", store, table)
        for _ in range(appends):
            table = table.append(ROWS)
        yield _row(number, f"after {appends} appends", store, table)
        table = table.delete(col("id") == -1)
        yield _row(number, f"after a delete of {appends + 1} files", store, table)
        yield _row(number, "with nothing new", store, table)


def _row(files: int, export: str, store: CountingStore, table: Table) -> Row:
    export_cost = cost(table.export_iceberg, store=store)
    assert store.by_kind.keys() <= {"get", "list", "put", "put_if_absent"}, "other requests have no column"
    columns = ("GETs", "PUTs", "LISTs", "bytes read", "bytes written", "s")
    return {"files": files, "export": export, **{column: export_cost[column] for column in columns}}
