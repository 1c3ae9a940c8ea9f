"""The cost of names in a namespace of many tables, on a folder: changes, look-ups warm and cold, the list, and bytes
written.

A few commits of the namespace's log link the names. Only the measured statements make tables for them. A cold client
has a process of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa

from lakelog.catalog import engine
from lakelog.catalog.core.state import RELATION, TABLE
from lakelog.log import CountingStore, wait_for_background
from programs.bench.data.links import link
from programs.bench.measure import apart, cost, peak_mb, seconds
from programs.bench.places import counted, folder
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64()})


class DerivedStore(CountingStore):
    """A store that counts the bytes of snapshots and hints."""

    derived_bytes = 0

    def put(self, key: str, data: bytes) -> None:
        self.derived_bytes += len(data)
        super().put(key, data)


def measure(
    names: Annotated[Sequence[int], "how many names"] = (0, 1_000, 10_000, 100_000, 1_000_000),
    turns: Annotated[int, "how many changes of each kind"] = 200,
) -> Iterator[Row]:
    for number in names:
        with folder() as place:
            yield {
                "names": number,
                **_changes(place, number, turns),
                **apart(_cold, place, f"new_{turns - 1}"),
            }


def _changes(place: Path, names: int, turns: int) -> Row:
    catalog, store = counted(place, DerivedStore)
    assert isinstance(store, DerivedStore)
    catalog.create_namespace("n")
    link_ms = _ms(1, lambda _: link(catalog, "n", names))
    wait_for_background()
    store.derived_bytes = 0

    create_times: list[float] = []
    creation_cost = cost(
        lambda: create_times.extend(_ms(turns, lambda at: catalog.create_table(f"n.made_{at}", SCHEMA))),
        "CPU ms",
    )
    row = {
        "link them, ms": link_ms,
        "create, ms": create_times,
        "rename, ms": _ms(turns, lambda at: catalog.rename_table(f"n.made_{at}", f"n.new_{at}")),
        "drop, ms": _ms(turns - 1, lambda at: catalog.drop_table(f"n.new_{at}")),
        "look up, ms": _ms(turns, lambda _: catalog.table_exists(f"n.new_{turns - 1}")),
        "CPU ms a create": creation_cost["CPU ms"] / turns,
        "KB derived a create": store.derived_bytes / turns / 1024,
        "list, ms": _ms(3, lambda _: catalog.list_tables("n")),
    }
    wait_for_background()
    gc.collect()
    return row


def _cold(place: Path, name: str) -> Row:
    """Return the cost of a new client: a name, then all names, then all names again."""
    catalog, store = counted(place)
    pa.array([""])  # Imports other libraries ahead of the measurement.
    row = cost(lambda: catalog.load_table(f"n.{name}"), "ms", "GETs", "rounds", store=store)
    row = {f"cold, {column}": value for column, value in row.items()} | {"MB": peak_mb()}
    row["all, cold, ms"] = seconds(lambda: engine.table_names(catalog, "n")) * 1e3
    row["array, warm, ms"] = _ms(5, lambda _: engine.table_names(catalog, "n"))
    state = catalog._tree.namespace(("n",)).view.state
    row["texts, ms"] = _ms(5, lambda _: state.names(RELATION, TABLE))
    return row | {"MB, all": peak_mb()}


def _ms(times: int, work: Callable[[int], object]) -> list[float]:
    return [seconds(lambda at=at: work(at)) * 1e3 for at in range(times)]  # type: ignore[misc]
