"""What a hook for operations costs: appends with a list, with OpenTelemetry and without, in CPU time of the process."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable

import pyarrow as pa

from lakelog.catalog import Catalog, Observation, to_opentelemetry
from lakelog.log import LogOptions
from programs import story
from programs.bench.measure import median

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1], "name": ["one"]}, schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench observe", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    seen: list[Observation] = []
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        options = LogOptions(snapshot_every_versions=0)
        hooks = {"without": None, "a list": seen.append, "OpenTelemetry": to_opentelemetry()}
        appends: dict[str, Callable[[], object]] = {}
        for name, hook in hooks.items():
            catalog = Catalog(f"{folder}/{name}", options={"fsync": "off"}, log_options=options, observe=hook)
            appends[name] = _appending(catalog)
        spent: dict[str, list[float]] = {name: [] for name in hooks}
        names = list(hooks)
        for number in range(arguments.rounds + 20):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                begun = time.process_time()
                appends[name]()
                if number >= 20:
                    spent[name].append(time.process_time() - begun)
    base = median(spent["without"])
    lines = [
        [name, f"{median(each) * 1e3:.3f}", f"{(median(each) / base - 1) * 100:+.1f} %"]
        for name, each in spent.items()
    ]
    story.table(["hook", "median ms of CPU", "beside none"], lines, title="append of one row to a folder")


def _appending(catalog: Catalog) -> Callable[[], object]:
    table = catalog.create_table("t", SCHEMA)

    def append() -> None:
        nonlocal table
        table = table.append(ROWS)

    return append


if __name__ == "__main__":
    main()
