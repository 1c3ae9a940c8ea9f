"""Appends of small Arrow tables per second from Python, without Spark: lakelog, deltalake and pyiceberg.

lakelog forces every commit and data file to disk by default (fsync=on); the others never do. Both are shown.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from lakelog.catalog import Catalog
from programs import story
from programs.bench.measure import median, taking_turns


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench append", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--appends", type=int, default=20, help="appends of each contender in a round")
    parser.add_argument("--rows", type=int, default=100, help="rows of an append")
    arguments = parser.parse_args()
    data = pa.table(
        {
            "id": pa.array(range(arguments.rows), pa.int64()),
            "name": [f"name-{number}" for number in range(arguments.rows)],
            "price": pa.array([number / 7 for number in range(arguments.rows)], pa.float64()),
        }
    )
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        contenders = {
            "lakelog fsync=off": _lakelog(Path(folder), data, "off"),
            "lakelog fsync=on": _lakelog(Path(folder), data, "on"),
            "deltalake": _deltalake(Path(folder), data),
            "pyiceberg": _pyiceberg(Path(folder), data),
        }
        several = {name: _several(append, arguments.appends) for name, append in contenders.items()}
        times = taking_turns(several, arguments.rounds)
    lines = []
    for name, spent in times.items():
        rate = [arguments.appends / one for one in spent]
        lines.append([name, f"{median(rate):.0f}", f"{rate[0]:.0f}", f"{rate[-1]:.0f}"])
    title = f"appends of {arguments.rows} rows a second, {arguments.rounds} rounds of {arguments.appends}"
    story.table(["", "median", "first round", "last round"], lines, title=title)


def _several(append: Callable[[], object], number: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(number):
            append()

    return run


def _lakelog(folder: Path, data: pa.Table, fsync: str) -> Callable[[], object]:
    catalog = Catalog(str(folder / f"lakelog-{fsync}"), options={"fsync": fsync})
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.t", data.schema)
    return lambda: table.append(data)


def _deltalake(folder: Path, data: pa.Table) -> Callable[[], object]:
    return lambda: write_deltalake(str(folder / "delta"), data, mode="append")


def _pyiceberg(folder: Path, data: pa.Table) -> Callable[[], object]:
    (folder / "iceberg").mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/iceberg.db", warehouse=f"file://{folder}/iceberg")
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.t", data.schema)
    return lambda: table.append(data)


if __name__ == "__main__":
    main()
