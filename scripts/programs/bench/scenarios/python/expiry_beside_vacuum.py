"""Expiry of many versions and vacuum of many objects of a table at once, by two Python processes or in Spark.

Each way has a table of its own, with a history that is written directly. Empty objects in its folder have names of
writes that began long ago. The peak covers all memory of a process. For the two Python processes, it leaves out their
memory before the work. In Spark both calls run in a single session, and its executors in the JVM.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from lakelog.catalog import Catalog
from programs.bench.data import long_log
from programs.bench.measure import cost, peak_mb, seconds, together
from programs.bench.places import counted, folder, litter
from programs.bench.scenario import Row, say
from programs.bench.sparks import spark_on

LATER = 10_000
"""Versions that stay."""


def measure(
    ways: Sequence[Literal["python", "spark"]] = ("python",),
    expired: Annotated[int, "versions"] = 100_000,
    objects: Annotated[int, "that a vacuum deletes"] = 1_000_000,
) -> Iterator[Row]:
    with folder() as place:
        for way in ways:
            warehouse = str(place / way)
            end_us = int(time.time() * 1e6) - 3_600_000_000
            long_log.write_history(warehouse, expired + LATER, lambda done: None, end_us=end_us)
            data = Path(Catalog(warehouse).load_table(long_log.NAME).location) / "data"
            litter(data, objects)
            say(f"{way}: {expired + LATER:,} versions and {objects:,} objects made")
            if way == "python":
                rows = together(_work, [(warehouse, "expire", expired), (warehouse, "vacuum", objects)])
                for call, row in zip(("expire", "vacuum"), rows, strict=True):
                    yield {"way": way, "what": call, **row}
            else:
                yield from _in_spark(warehouse, expired)
            table = Catalog(warehouse).load_table(long_log.NAME)
            assert table.table_head.view.state.expired == expired, table.table_head.view.state.expired
            file_count = sum(1 for _ in data.iterdir())
            assert file_count < objects + LATER and table.changes(table.version - 9).to_arrow().num_rows, (
                file_count
            )


def _work(warehouse: str, what: str, count: int) -> dict[str, Any]:
    catalog, store = counted(warehouse, options={"fsync": "off"})
    limits = {"version": count} if what == "expire" else {"older_than": dt.timedelta(0)}
    call = getattr(catalog, what)
    row = cost(
        lambda: call(long_log.NAME, dry_run=False, trust_clock=True, **limits),
        "s", "peak MB", "of which", "requests", store=store,
    )  # fmt: skip
    return {**row, "requests for each": row["requests"] / count}


def _in_spark(warehouse: str, expired: int) -> Iterator[Row]:
    # This is Spark's default. With more memory, the JVM would collect later, and take more.
    spark = spark_on(warehouse, {"spark.driver.memory": "1g"}, fsync=False)
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    both = f"table => '{long_log.NAME}', dry_run => false, trust_clock => true"
    calls = {
        "expire": f"CALL lake.system.expire({both}, version => {expired})",
        "vacuum": f"CALL lake.system.vacuum({both}, older_than => INTERVAL '0' DAY)",
    }
    spark.sql("SELECT 1").collect()
    with ThreadPoolExecutor(2) as pool:
        took = pool.map(lambda text: seconds(lambda: spark.sql(text).collect()), calls.values())
        seconds_by_call = dict(zip(calls, took, strict=True))
    peaks = ", ".join(f"{name} {mb:.0f}" for name, mb in _peaks_below(process).items())
    spark.stop()
    for call in calls:
        yield {"way": "spark", "what": call, "s": seconds_by_call[call], "peak MB": peaks}


def _peaks_below(process: int) -> dict[str, float]:
    """Return the memory peak of each descendant of a process, by its name."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            parents[int(status.parent.name)] = int(facts["PPid"])
            names[int(status.parent.name)] = facts["Name"]
    peaks: dict[str, float] = {}
    for pid, name in names.items():
        above = pid
        while above not in (0, process):
            above = parents.get(above, 0)
        if above == process:
            with suppress(OSError, ValueError, IndexError):
                peaks[name] = max(peak_mb(pid), peaks.get(name, 0))
    return peaks
