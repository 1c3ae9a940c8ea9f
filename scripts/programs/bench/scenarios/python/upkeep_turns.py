"""The upkeep that several writers of a table waste: clients of a process append, each with its own upkeep.

Each client has a catalog of its own and appends some rows again and again. Each request to the store in memory takes
10 ms. Bytes are those of data files. Written are the files that upkeep committed. Thrown away are the files of steps
that another client's upkeep committed first. `default` is the mode of Spark sessions without a property: a tenth of the
time of writes. `property` is `auto` by a property: a tenth of all time.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from lakelog.catalog import Catalog, engine
from lakelog.catalog.keeping.upkeep import automatic
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.catalog.keeping.upkeep.compacting import Compacted, step
from lakelog.log import CountingStore, MemoryStore
from programs.bench.places import memory
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "what": pa.string()})
REQUEST_S = 0.010
PAUSE_S = 0.050
ROWS = 200


class SlowStore(CountingStore):
    """A store whose rounds each take some time."""

    def _count(self, kind: str, requests: int = 1, *, written: int = 0) -> None:
        super()._count(kind, requests, written=written)
        time.sleep(REQUEST_S)


def measure(writers: Sequence[int] = (2, 4, 8), seconds: float = 20.0) -> Iterator[Row]:
    for number in writers:
        for mode in ("default", "property"):
            yield {"writers": number, "by": mode, **_run(number, mode, seconds)}


def _run(writers: int, mode: str, seconds: float) -> Row:
    warehouse = memory()
    properties = {"lakelog.maintenance": "auto"} if mode == "property" else {}
    Catalog(warehouse).create_table("t", SCHEMA, properties=properties)
    steps: list[Compacted] = []
    appends = [0] * writers

    def counted_step(*given: Any, **how: Any) -> Any:
        head, compaction = step(*given, **how)
        steps.append(compaction)
        return head, compaction

    def append(at: int) -> None:
        catalog = Catalog(warehouse, maintenance="auto" if mode == "default" else "on-demand")
        engine.places(catalog).stores[warehouse] = SlowStore(MemoryStore.named(warehouse))
        table, until = catalog.load_table("t"), time.monotonic() + seconds
        while time.monotonic() < until:
            ids = range(appends[at] * ROWS, (appends[at] + 1) * ROWS)
            table = table.append(pa.table({"id": list(ids), "what": [uuid.uuid4().hex for _ in ids]}, SCHEMA))
            appends[at] += 1
            time.sleep(PAUSE_S)

    with patch.object(automatic, "step", counted_step):
        threads = [threading.Thread(target=append, args=(at,)) for at in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for_upkeep()
    table = Catalog(warehouse).load_table("t")
    assert table.row_count == sum(appends) * ROWS, "no append is lost"
    written_bytes = sum(outcome.written_bytes for outcome in steps)
    wasted_bytes = sum(outcome.wasted_bytes for outcome in steps)
    return {
        "appends": sum(appends),
        "files": table.file_count,
        "steps": len(steps),
        "lost": sum(outcome.lost for outcome in steps),
        "MB written": written_bytes / 1e6,
        "MB thrown away": wasted_bytes / 1e6,
        "%": 100 * wasted_bytes / (written_bytes + wasted_bytes) if written_bytes + wasted_bytes else 0.0,
    }
