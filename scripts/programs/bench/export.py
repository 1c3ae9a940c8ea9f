"""What an export for readers of Iceberg costs, by the number of files: requests and bytes are exact."""

from __future__ import annotations

import argparse
import uuid

import pyarrow as pa

from lakelog.catalog import Table, col
from lakelog.log import wait_for_background
from programs import story
from programs.bench.measure import seconds
from programs.bench.plan import big_table
from programs.bench.requests import Client

ROWS = pa.table({"id": pa.array([-1], pa.int64()), "day": pa.array([1], pa.int32()), "name": ["new"]})


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench export", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 100, 100_000])
    arguments = parser.parse_args()
    lines = [line for files in arguments.files for line in _measure(files)]
    names = ["files", "export", "GET", "PUT", "LIST", "bytes read", "bytes written", "seconds"]
    story.table(names, lines, title=__doc__)


def _measure(files: int) -> list[list[str]]:
    client = Client(f"memory://{uuid.uuid4().hex}")
    client.catalog.create_namespace("bench")
    table = big_table(client.catalog, files)
    lines = [_counted(client, f"{files:,}", "the first", table)]
    table = table.append(ROWS)
    lines.append(_counted(client, "", "after an append", table))
    for _ in range(100):
        table = table.append(ROWS)
    lines.append(_counted(client, "", "after 100 appends", table))
    table = table.delete(col("id") == -1)
    lines.append(_counted(client, "", "after a delete of 101 files", table))
    lines.append(_counted(client, "", "with nothing new", table))
    return lines


def _counted(client: Client, files: str, what: str, table: Table) -> list[str]:
    wait_for_background()
    client.store.reset()
    spent = seconds(table.export_iceberg)
    kinds, read, written = client.store.by_kind, client.store.bytes_read, client.store.bytes_written
    puts = kinds["put"] + kinds["put_if_absent"]
    assert kinds.keys() <= {"get", "list", "put", "put_if_absent"}, "other requests have no column"
    counts = [str(kinds["get"]), str(puts), str(kinds["list"])]
    return [files, what, *counts, f"{read:,}", f"{written:,}", f"{spent:.2f}"]


if __name__ == "__main__":
    main()
