"""What names cost in a namespace of many tables, on a folder: changes, look-ups warm and cold, the list, and what is
written for them. The names are linked by a few commits of the namespace's log; no table is behind them but those that
the measured statements make."""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.core.state import RELATION, TABLE, EntryLinked, encode
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
    store = Written(open_store(warehouse, {}))
    catalog = Catalog(warehouse, log_options=LogOptions())
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog, store


def link(catalog: Catalog, namespace: str, names: int, *, space: str = RELATION, kind: str = TABLE) -> None:
    """Give names to as many tables, or namespaces, as there are not, by valid commits."""
    tracked = catalog._tree.namespace((namespace,)).tracked
    for first in range(0, names, LINKS_PER_COMMIT):
        ids = [
            (number, f"{uuid.uuid4().hex[:26]}")
            for number in range(first, min(names, first + LINKS_PER_COMMIT))
        ]
        events = encode(
            [
                EntryLinked(
                    space=space,
                    name=f"{kind}_{number:07d}",
                    kind=kind,
                    id=id,
                    location=f"{tracked.location}/{kind[0]}-{id}",
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
        other = [sys.executable, "-m", __spec__.name, "--cold", folder, f"new_{turns - 1}"]
        cold = json.loads(subprocess.run(other, check=True, capture_output=True, text=True).stdout)
        return [
            f"{names:,}",
            f"{linking:,.0f}",
            *(f"{statistics.median(each):.2f}" for each in (made, renamed, dropped, warm)),
            f"{cpu_ms:.1f}",
            f"{derived / 1024:,.0f}",
            *(f"{cold[name]:.0f}" for name in COLD),
            f"{statistics.median(listed):.0f}",
        ]


COLD = ("first_ms", "gets", "rounds", "rss_mb", "all_ms", "array_ms", "texts_ms", "all_rss_mb")


def measure_cold(folder: str, name: str) -> dict[str, float]:
    """Return what a client costs that has just begun: one name, then all names, and these once more."""
    catalog, reads = client(folder)
    pa.array([""])  # imports what is not lakelog's
    found = {"first_ms": milliseconds(lambda: catalog.load_table(f"n.{name}"))}
    found |= {"gets": reads.by_kind["get"], "rounds": reads.rounds, "rss_mb": rss_mb()}
    found["all_ms"] = milliseconds(lambda: catalog.table_names("n"))
    found["array_ms"] = statistics.median(milliseconds(lambda: catalog.table_names("n")) for _ in range(5))
    state = catalog._tree.namespace(("n",)).view.state
    found["texts_ms"] = statistics.median(
        milliseconds(lambda: state.names(RELATION, TABLE)) for _ in range(5)
    )
    return found | {"all_rss_mb": rss_mb()}


def rss_mb() -> float:
    """Return the most memory that this process had; what `getrusage` says begins with that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench names", description=__doc__)
    parser.add_argument(
        "names", nargs="*", type=int, default=[0, 1_000, 10_000, 100_000, 1_000_000], help="how many names"
    )
    parser.add_argument("--turns", type=int, default=200, help="how many changes of each kind")
    parser.add_argument("--cold", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold is not None:
        print(json.dumps(measure_cold(*options.cold)))
        return
    lines = [measure(names, options.turns) for names in options.names]
    story.table(
        ["names", "link them, ms", "create, ms", "rename", "drop", "look up", "CPU a create", "KB derived a create",
         "cold, ms", "GETs", "rounds", "MB", "all, cold", "array, warm", "texts", "MB", "list, ms"],
        lines,
        title=__doc__,
    )  # fmt: skip


if __name__ == "__main__":
    main()
