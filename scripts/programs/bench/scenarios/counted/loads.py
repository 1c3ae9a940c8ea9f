"""Requests and sequential round trips of a cold load of a.b.t: four logs, of any age, with any hint. They are exact on
any machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.log import Draft, LogOptions, WarehouseDecisions
from lakelog.log.expiry import expire
from programs.bench.places import counted, memory
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2], "name": ["one", "two"]}, schema=SCHEMA)

Work = Callable[[list[TrackedLog[Any]]], None]


def inline(name: str, work: Callable[[], None]) -> None:
    work()


def hint_behind(versions: int) -> Work:
    """Write the hint of each log for the version that lies so many versions before its head."""

    def write(logs: list[TrackedLog[Any]]) -> None:
        for tracked_log in logs:
            tracked_log.log.snapshot(tracked_log.log.view_at(tracked_log.current().version - versions))

    return write


def without_hint(logs: list[TrackedLog[Any]]) -> None:
    for tracked_log in logs:
        tracked_log.store.delete([tracked_log.log.keys.latest])


def broken_hint(logs: list[TrackedLog[Any]]) -> None:
    for tracked_log in logs:
        tracked_log.store.put(tracked_log.log.keys.latest, b'{"kind":"snapshot"}')


def expired_to(version: int, then: Work) -> Work:
    def run(logs: list[TrackedLog[Any]]) -> None:
        for tracked_log in logs:
            expire(tracked_log.log, version)
        then(logs)

    return run


def undecided(logs: list[TrackedLog[Any]]) -> None:
    """Leave an intent of a transaction without a decision at the head of the table's log."""
    tracked_log = logs[-1]
    _, intents = WarehouseDecisions(tracked_log.store).begin(
        tracked_log.log.options.new_id(),
        [tracked_log.location, "elsewhere"],
        [tracked_log.location, "elsewhere"],
    )
    view = tracked_log.current()
    tracked_log.log.writer.put(view, Draft(), "undecided", base=view.version, intent=intents[0])


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
"""The loaded table, the versions of each log (0: as they come), the interval of snapshots, and the last step."""


def warehouse_of(versions: int, every: int, work: Work) -> str:
    """Return a warehouse with a.b.t, with that many versions in each of its four logs."""
    url = memory()
    catalog = Catalog(url, log_options=LogOptions(in_background=inline, snapshot_every_versions=every))
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    table = catalog.create_table("a.b.t", SCHEMA).append(ROWS)
    table = table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    logs: list[TrackedLog[Any]] = [catalog._tree.namespace(path).tracked for path in ((), ("a",), ("a", "b"))]
    logs.append(table.table_head.tracked)
    for tracked_log in logs:
        while tracked_log.current().version < versions:
            if tracked_log is logs[-1]:
                table = table.alter([{"change": "set-property", "key": "k", "value": uuid.uuid4().hex}])
            else:
                draft = Draft(events=({"event": "namespace-altered", "set": {"k": "v"}},))
                tracked_log.commit(tracked_log.current(), lambda view, passed, draft=draft: draft)  # type: ignore[misc]
    work(logs)
    return url


def measure() -> Iterator[Row]:
    for name, versions, every, work in CASES:
        catalog, store = counted(warehouse_of(versions, every, work), in_background=inline)
        catalog.load_table("a.b.t")
        other_counts = {kind: count for kind, count in store.by_kind.items() if kind != "get"}
        yield {
            "logs": name,
            "GETs": store.by_kind["get"],
            "rounds": store.rounds,
            "other requests": str(other_counts or "–"),
        }
