"""lakelog with one protection removed, in writers and readers alike: the run must notice, or it proves nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lakelog.catalog.core.logs import cache, consistent_cut
from lakelog.catalog.transaction import Transaction
from lakelog.log import log, placing
from lakelog.log.stores import local_store
from lakelog.log.together import LogPart

MUTATIONS: dict[str, Callable[[], None]] = {}


def mutation(remove: Callable[[], None]) -> Callable[[], None]:
    MUTATIONS[remove.__name__.replace("_", "-")] = remove
    return remove


@mutation
def put_without_a_condition() -> None:
    """The later one of two writers wins."""

    def put_if_absent(store: local_store.LocalStore, key: str, data: bytes) -> bool:
        store.put(key, data)
        return True

    local_store.LocalStore.put_if_absent = put_if_absent  # type: ignore[method-assign, assignment]


@mutation
def put_in_place() -> None:
    """Objects are written under their own names, so that a crash leaves half of one."""

    def write_slowly(store: local_store.LocalStore, key: str, data: bytes) -> bool:
        path = store._path(key)
        store._make_directory(path.rpartition("/")[0])
        try:
            with open(path, "xb", buffering=0) as target:
                target.write(data[: len(data) // 2])
                time.sleep(0.01)
                target.write(data[len(data) // 2 :])
        except FileExistsError:
            return False
        return True

    local_store.LocalStore.put_if_absent = write_slowly  # type: ignore[method-assign, assignment]


@mutation
def a_retry_is_taken_for_a_new_request() -> None:
    """No writer looks whether the commit has happened already."""
    placing.is_same_commit = log.is_same_commit = lambda entry, commit_id: False  # type: ignore[attr-defined]


@mutation
def one_log_after_the_other() -> None:
    """A transaction is several commits."""

    def commit_one_by_one(parts: Sequence[LogPart[Any]], **named: Any) -> list[Any]:
        if named["validate"] is not None:
            named["validate"]()
        return [
            part.log.commit(part.view, part.decide, commit_id=named["commit_id"], base=part.base)
            for part in parts
        ]

    cache.commit_together = commit_one_by_one  # type: ignore[attr-defined]


@mutation
def what_was_read_may_change() -> None:
    """Serializable transactions are not."""
    Transaction._validate = lambda *_: None  # type: ignore[method-assign]


@mutation
def each_log_at_its_head() -> None:
    """What is read together is not of one moment."""

    def view_of(self: consistent_cut.ConsistentCut, tracked: Any, *, fresh: bool = False) -> Any:
        return tracked.current()

    consistent_cut.ConsistentCut.view_of = view_of  # type: ignore[method-assign]


@mutation
def a_known_version_is_taken_for_the_head() -> None:
    """A process that has read a log does not look for newer versions of it."""
    log.Log.refresh = lambda self, view: view  # type: ignore[method-assign]
    cache.refresh_many = lambda pairs: [view for _, view in pairs]  # type: ignore[attr-defined]
