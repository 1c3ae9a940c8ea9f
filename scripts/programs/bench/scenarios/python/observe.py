"""The cost of a hook for operations: CPU time of appends with a list, with OpenTelemetry and without a hook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from lakelog.catalog import Catalog, Observation, to_opentelemetry
from lakelog.log import LogOptions
from programs.bench.measure import beside, seconds, turns
from programs.bench.places import folder
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1], "name": ["one"]}, schema=SCHEMA)


def measure(rounds: int = 300) -> Iterator[Row]:
    observations: list[Observation] = []
    hooks = {"without": None, "a list": observations.append, "OpenTelemetry": to_opentelemetry()}
    options = LogOptions(snapshot_every_versions=0)
    with folder() as place:
        appends = {
            name: _appending(
                Catalog(place / name, options={"fsync": "off"}, log_options=options, observe=hook)
            )
            for name, hook in hooks.items()
        }
        times = turns(appends, rounds, warm_up=20, spent=partial(seconds, clock=time.process_time))
    yield from beside(times, "without", "ms")


def _appending(catalog: Catalog) -> Callable[[], object]:
    table = catalog.create_table("t", SCHEMA)

    def append() -> None:
        nonlocal table
        table = table.append(ROWS)

    return append
