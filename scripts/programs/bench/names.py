"""What names cost in a namespace of many tables, on a folder: changes, look-ups warm and cold, the list, and what is
written for them. The names are linked by a few commits of the namespace's log; no table is behind them but those that
the measured statements make."""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.state import RELATION, TABLE, EntryLinked, encode
from lakelog.log import CountingStore, Draft, LogOptions, open_store, wait_for_background
from programs import story

SCHEMA = pa.schema({"id": pa.int64()})
LINKS_PER_COMMIT = 20_000


class Written(CountingStore):
    """Counts the bytes of snapshots and hints."""

    derived_bytes = 0

    def put(self, key: str, data: bytes) -> None:
        self.derived_bytes += len(data)
        super().put(key, data)


def client(warehouse: str) -> tuple[Catalog, Written]:
    catalog = Catalog(warehouse, log_options=LogOptions())
    store = Written(open_store(warehouse, {}))
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog, store


def link(catalog: Catalog, namespace: str, names: int) -> None:
    """Give names to as many tables as there are not, by valid commits."""
    tracked = catalog._tree.namespace((namespace,)).tracked
    for first in range(0, names, LINKS_PER_COMMIT):
        ids = [
            (number, f"{uuid.uuid4().hex[:26]}")
            for number in range(first, min(names, first + LINKS_PER_COMMIT))
        ]
        events = encode(
            [
                EntryLinked(
                    space=RELATION,
                    name=f"table_{number:07d}",
                    kind=TABLE,
                    id=id,
                    location=f"{tracked.location}/t-{id}",
                )
                for number, id in ids
            ]
        )
        tracked.commit(tracked.current(), lambda view, passed, events=events: Draft(events=events))  # type: ignore[misc]


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measure(names: int, turns: int) -> Sequence[str]:
    with tempfile.TemporaryDirectory() as folder:
        catalog, store = client(folder)
        catalog.create_namespace("n")
        linking = milliseconds(lambda: link(catalog, "n", names))
        wait_for_background()
        store.derived_bytes = 0
        cpu = resource.getrusage(resource.RUSAGE_SELF)
        made = [
            milliseconds(lambda turn=turn: catalog.create_table(f"n.made_{turn}", SCHEMA))  # type: ignore[misc]
            for turn in range(turns)
        ]
        wait_for_background()
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_ms = (used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime) * 1000 / turns
        derived = store.derived_bytes / turns
        renamed = [
            milliseconds(lambda turn=turn: catalog.rename_table(f"n.made_{turn}", f"n.new_{turn}"))  # type: ignore[misc]
            for turn in range(turns)
        ]
        dropped = [
            milliseconds(lambda turn=turn: catalog.drop_table(f"n.new_{turn}"))  # type: ignore[misc]
            for turn in range(turns - 1)
        ]
        warm = [milliseconds(lambda: catalog.table_exists(f"n.new_{turns - 1}")) for _ in range(turns)]
        listed = [milliseconds(lambda: catalog.list_tables("n")) for _ in range(3)]
        wait_for_background()
        gc.collect()
        other, reads = client(folder)
        cold = milliseconds(lambda: other.load_table(f"n.new_{turns - 1}"))
        return [
            f"{names:,}",
            f"{linking:,.0f}",
            *(f"{statistics.median(each):.2f}" for each in (made, renamed, dropped, warm)),
            f"{cpu_ms:.1f}",
            f"{derived / 1024:,.0f}",
            f"{cold:.0f}",
            f"{reads.by_kind['get']}",
            f"{statistics.median(listed):.0f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench names", description=__doc__)
    parser.add_argument(
        "names", nargs="*", type=int, default=[0, 1_000, 10_000, 100_000], help="how many names"
    )
    parser.add_argument("--turns", type=int, default=200, help="how many changes of each kind")
    options = parser.parse_args()
    lines = [measure(names, options.turns) for names in options.names]
    story.table(
        ["names", "link them, ms", "create, ms", "rename", "drop", "look up", "CPU a create", "KB derived a create",
         "cold, ms", "GETs", "list, ms"],
        lines,
        title=__doc__,
    )  # fmt: skip


if __name__ == "__main__":
    main()
