"""Appends of small Arrow tables per second from Python, without Spark: lakelog, deltalake and pyiceberg.

lakelog forces every commit and data file to disk by default (fsync=on), but the peers never do. lakelog is shown with
and without it. The range is that of single rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import pyarrow as pa
from deltalake import write_deltalake

from lakelog.catalog import Catalog
from programs.bench.measure import turns
from programs.bench.places import folder
from programs.bench.scenario import Row


def measure(
    rounds: int = 10,
    appends: Annotated[int, "of each contender in a round"] = 20,
    rows: Annotated[int, "of an append"] = 100,
) -> Iterator[Row]:
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "name": [f"name-{number}" for number in range(rows)],
        "price": pa.array([number / 7 for number in range(rows)], pa.float64()),
    }
    data = pa.table(columns)
    with folder() as place:
        contenders: dict[str, Callable[[], object]] = {
            "lakelog fsync=off": _lakelog(place, data, "off"),
            "lakelog fsync=on": _lakelog(place, data, "on"),
            "deltalake": partial(write_deltalake, str(place / "delta"), data, mode="append"),
            "pyiceberg": _pyiceberg(place, data),
        }
        several = {name: partial(_several, append, appends) for name, append in contenders.items()}
        for name, durations in turns(several, rounds).items():
            yield {"": name, "appends a second": [appends / duration for duration in durations]}


def _several(append: Callable[[], object], number: int) -> None:
    for _ in range(number):
        append()


def _lakelog(place: Path, data: pa.Table, fsync: str) -> Callable[[], object]:
    catalog = Catalog(str(place / f"lakelog-{fsync}"), options={"fsync": fsync})
    return partial(catalog.create_table("t", data.schema).append, data)


def _pyiceberg(place: Path, data: pa.Table) -> Callable[[], object]:
    from pyiceberg.catalog.sql import SqlCatalog

    (place / "iceberg").mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{place}/iceberg.db", warehouse=f"file://{place}/iceberg")
    catalog.create_namespace("bench")
    return partial(catalog.create_table("bench.t", data.schema).append, data)
