"""Requests and sequential round trips of a cold load of a.b.t: four logs, of any age, with any hint. Exact, on any
machine."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.log import CountingStore, Decisions, Draft, LogOptions, MemoryStore
from lakelog.log.expiry import expire
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2], "name": ["one", "two"]}, schema=SCHEMA)

Work = Callable[[list[TrackedLog[Any]]], None]


def inline(name: str, work: Callable[[], None]) -> None:
    work()


def hint_behind(versions: int) -> Work:
    """Write the hint of each log for the version that is so many before its head."""

    def write(logs: list[TrackedLog[Any]]) -> None:
        for tracked in logs:
            tracked.log.snapshot(tracked.log.view_at(tracked.current().version - versions))

    return write


def without_hint(logs: list[TrackedLog[Any]]) -> None:
    for tracked in logs:
        tracked.store.delete([tracked.log.keys.latest])


def broken_hint(logs: list[TrackedLog[Any]]) -> None:
    for tracked in logs:
        tracked.store.put(tracked.log.keys.latest, b'{"kind":"snapshot"}')


def expired_to(version: int, then: Work) -> Work:
    def run(logs: list[TrackedLog[Any]]) -> None:
        for tracked in logs:
            expire(tracked.log, version)
        then(logs)

    return run


def undecided(logs: list[TrackedLog[Any]]) -> None:
    """Leave an intent of a transaction without a decision at the head of the table's log."""
    tracked = logs[-1]
    _, intents = Decisions(tracked.store).begin(
        tracked.log.options.new_id(), [tracked.location, "elsewhere"], [tracked.location, "elsewhere"]
    )
    view = tracked.current()
    tracked.log.writer.put(view, Draft(), "undecided", base=view.version, intent=intents[0])


def undecided_after_hint(logs: list[TrackedLog[Any]]) -> None:
    hint_behind(0)(logs)
    undecided(logs)


def nothing(logs: list[TrackedLog[Any]]) -> None:
    return


CASES: list[tuple[str, int, int, Work]] = [
    ("just created", 0, 20, nothing),
    ("of 5 versions", 5, 20, nothing),
    ("of 19 versions", 19, 20, nothing),
    ("of 30 versions", 30, 20, nothing),
    ("of 39 versions", 39, 20, nothing),
    *[(f"of {n:,} versions, hint at the head", n, 0, hint_behind(0)) for n in (100, 1000)],
    *[(f"of 1,100 versions, hint {n:,} behind", 1100, 0, hint_behind(n)) for n in (1, 5, 20, 100, 1000)],
    ("of 1,000 versions, without a hint", 1000, 0, without_hint),
    ("of 1,000 versions, broken hint", 1000, 0, broken_hint),
    ("of 1,000, 990 expired, hint at the head", 1000, 0, expired_to(990, hint_behind(0))),
    ("of 1,000, 990 expired, without a hint", 1000, 0, expired_to(990, without_hint)),
    ("of 100, hint at the head, undecided intent", 100, 0, undecided_after_hint),
]  # fmt: skip
"""What is loaded, the versions of each log (0: as they come), how often snapshots are written, and what follows."""


def warehouse_of(versions: int, every: int, work: Work) -> str:
    """Return a warehouse with a.b.t, each of whose four logs has that many versions."""
    url = f"memory://{uuid.uuid4().hex}"
    options = LogOptions(in_background=inline, snapshot_every_versions=every)
    catalog = Catalog(url, log_options=options)
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    table = catalog.create_table("a.b.t", SCHEMA).append(ROWS)
    table = table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    logs: list[TrackedLog[Any]] = [catalog._tree.namespace(path).tracked for path in ((), ("a",), ("a", "b"))]
    logs.append(table.head.tracked)
    for tracked in logs:
        while tracked.current().version < versions:
            if tracked is logs[-1]:
                table = table.alter([{"change": "set-property", "key": "k", "value": uuid.uuid4().hex}])
            else:
                draft = Draft(events=({"event": "namespace-altered", "set": {"k": "v"}},))
                tracked.commit(tracked.current(), lambda view, passed, draft=draft: draft)  # type: ignore[misc]
    work(logs)
    return url


def cold(url: str) -> tuple[Catalog, CountingStore]:
    """Return the warehouse as a new process sees it, and what counts its requests."""
    store = CountingStore(MemoryStore.named(url))
    catalog = Catalog(url, log_options=LogOptions(in_background=inline, in_parallel=store.side_by_side))
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog, store


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench loads", description=__doc__)
    parser.parse_args()
    lines: list[Sequence[str]] = []
    for name, versions, every, work in CASES:
        catalog, store = cold(warehouse_of(versions, every, work))
        catalog.load_table("a.b.t")
        others = {kind: count for kind, count in store.by_kind.items() if kind != "get"}
        lines.append([name, str(store.by_kind["get"]), str(store.rounds), str(others or "–")])
    story.table(["logs", "GETs", "rounds", "other requests"], lines, title=__doc__)


if __name__ == "__main__":
    main()
