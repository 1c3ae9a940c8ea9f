"""What upkeep by several writers of one table throws away: clients of one process that append, each with its upkeep.

Each client has a catalog of its own and appends some rows again and again; each request to the store in memory takes
10 ms. Bytes are those of data files: what upkeep wrote and committed, and what it wrote for steps that another client's
upkeep had committed first. `default` is what sessions of Spark do without a property, a tenth of the time of writes;
`property` is `auto` by a property, a tenth of all time.
"""

from __future__ import annotations

import argparse
import threading
import time
import uuid
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.keeping.upkeep import automatic
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.catalog.keeping.upkeep.compacting import Compacted, step
from lakelog.log import CountingStore, MemoryStore
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "what": pa.string()})
REQUEST_S = 0.010
PAUSE_S = 0.050
ROWS = 200


class Slow(CountingStore):
    """A store each of whose rounds takes some time."""

    def _count(self, kind: str, requests: int = 1, *, written: int = 0) -> None:
        super()._count(kind, requests, written=written)
        time.sleep(REQUEST_S)


def run(writers: int, mode: str, seconds: float) -> list[str]:
    warehouse = f"memory://{uuid.uuid4().hex}"
    properties = {"lakelog.maintenance": "auto"} if mode == "property" else {}
    Catalog(warehouse).create_table("t", SCHEMA, properties=properties)
    done: list[Compacted] = []

    def counted(*given: Any, **how: Any) -> Any:
        head, came = step(*given, **how)
        done.append(came)
        return head, came

    appends = [0] * writers

    def append(at: int) -> None:
        catalog = Catalog(warehouse, maintenance="auto" if mode == "default" else "on-demand")
        catalog.places.stores[warehouse] = Slow(MemoryStore.named(warehouse))
        table, until = catalog.load_table("t"), time.monotonic() + seconds
        while time.monotonic() < until:
            ids = range(appends[at] * ROWS, (appends[at] + 1) * ROWS)
            table = table.append(pa.table({"id": list(ids), "what": [uuid.uuid4().hex for _ in ids]}, SCHEMA))
            appends[at] += 1
            time.sleep(PAUSE_S)

    with patch.object(automatic, "step", counted):
        threads = [threading.Thread(target=append, args=(at,)) for at in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for_upkeep()
    table = Catalog(warehouse).load_table("t")
    assert table.row_count == sum(appends) * ROWS, "no append is lost"
    written = sum(each.written_bytes for each in done)
    wasted = sum(each.wasted_bytes for each in done)
    share = 100 * wasted / (written + wasted) if written + wasted else 0.0
    lost = sum(each.lost for each in done)
    return [
        f"{writers}",
        mode,
        f"{sum(appends):,}",
        f"{table.file_count:,}",
        f"{len(done):,}",
        f"{lost:,}",
        f"{written / 1e6:.2f}",
        f"{wasted / 1e6:.2f}",
        f"{share:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench upkeep_turns", description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    columns = ["writers", "by", "appends", "files", "steps", "lost", "MB written", "MB thrown away", "%"]
    modes = ("default", "property")
    lines = [run(writers, mode, arguments.seconds) for writers in arguments.writers for mode in modes]
    story.table(columns, lines, title=__doc__)


if __name__ == "__main__":
    main()
