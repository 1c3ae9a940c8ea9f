"""Two or more logs of words in one store, and transactions that stop half way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

from tests.unit.log.projections import Clock, Words, WordsProjection, counting_ids, inline, say

from lakelog.log import (
    Commit,
    CommittedChange,
    Draft,
    Log,
    LogOptions,
    LogPart,
    LogView,
    MemoryStore,
    ObjectStore,
    WarehouseDecisions,
    commit_together,
)
from lakelog.log.format import decode_entry
from lakelog.log.grammar import RIGHTS_KEY

IDS = counting_ids("x")


class Crash(BaseException):
    """The coordinator dies."""


class Stopping(MemoryStore):
    """Dies before or after the next creation of an object whose key holds `at`."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock_us=lambda: clock.now_us) if clock else super().__init__()
        self.at = ""
        self.after = False

    def put_if_absent(self, key: str, data: bytes) -> bool:
        stops = bool(self.at) and self.at in key and not key.endswith(RIGHTS_KEY)
        if stops and not self.after:
            self.at = ""
            raise Crash
        is_created = super().put_if_absent(key, data)
        if stops:
            self.at = ""
            raise Crash
        return is_created


def one_by_one(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()


def log_in(
    store: ObjectStore, name: str, *, every: int = 0, clock: Clock | None = None, known: Collection[str] = ()
) -> Log[Words]:
    options = LogOptions(
        clock_us=clock or Clock(),
        new_id=IDS,
        sleep_s=lambda seconds: None,
        in_background=inline,
        in_parallel=one_by_one,
        snapshot_every_versions=every,
    )
    return Log(store, name, WordsProjection(known), options=options)


def logs_in(store: ObjectStore, *names: str, every: int = 0, clock: Clock | None = None) -> list[Log[Words]]:
    """Return logs of one word each, created now."""
    logs = [log_in(store, name, every=every, clock=clock) for name in names]
    for name, log in zip(names, logs, strict=True):
        log.create(Draft(events=({"word": "one"},)), log_id=f"log-{name.replace('/', '-')}")
    return logs


def together(
    logs: Sequence[Log[Words]],
    word: str,
    *,
    views: Sequence[LogView[Words]] | None = None,
    decides: Sequence[Any] | None = None,
    **kwargs: Any,
) -> list[CommittedChange[Words]]:
    """Say `word` in all the logs at once."""
    views = views or [log.load() for log in logs]
    bases = kwargs.pop("bases", [None] * len(logs))
    parts = [
        LogPart(log.keys.folder, log, view, decides[i] if decides else say(word), bases[i])
        for i, (log, view) in enumerate(zip(logs, views, strict=True))
    ]
    return commit_together(parts, decisions=WarehouseDecisions(logs[0].store), **kwargs)


def stopped(
    store: Stopping, logs: Sequence[Log[Words]], at: str, *, after: bool = False, **kwargs: Any
) -> None:
    """Begin a transaction whose coordinator dies at the object `at`."""
    store.at, store.after = at, after
    try:
        together(logs, "lost", **kwargs)
    except Crash:
        return
    raise AssertionError(f"nothing was created at {at}")


def with_options(log: Log[Words], **changes: Any) -> Log[Words]:
    return Log(
        log.store, log.keys.folder, log.projection, options=dataclasses.replace(log.options, **changes)
    )


def decision_keys(store: MemoryStore) -> list[str]:
    return [key for key in store.list_after("") if "_txn/" in key and not key.endswith(RIGHTS_KEY)]


def entry_at(log: Log[Words], version: int) -> Commit:
    entry = decode_entry(log.store.get(log.keys.commit(version)) or b"", "here")
    assert isinstance(entry, Commit)
    return entry
