"""Cleaners beside writers, in threads: acknowledged writes exist, refused writes do not, and no other file is left."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Callable
from functools import partial

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.maintenance.executors import executors

from lakelog.catalog import Catalog
from lakelog.catalog.keeping.maintenance import engine, vacuum
from lakelog.log import ConflictError, NotFound, WriteFenced, open_store, wait_for_background
from lakelog.log.burial import windows

WRITERS, WRITES, CLEANINGS = 3, 12, 8
NOW = dt.timedelta(0)


@pytest.mark.parametrize(
    ("dropping", "in_jobs"),
    [(False, False), (True, False), (False, True)],
    ids=["append", "drop-and-restore", "by-executors"],
)
def test_writers_beside_cleaners_lose_and_double_nothing(
    warehouse: str,
    client: Callable[[], Catalog],
    dropping: bool,
    in_jobs: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name, few in (
        (windows, "BURIED_TOGETHER", 5),
        (engine, "MANY_VERSIONS", 1),
        (vacuum, "MANY_OBJECTS", 1),
    ):
        monkeypatch.setattr(module, name, few)
    client().create_table("t", SCHEMA)
    acknowledged_numbers: set[int] = set()
    refused_exceptions: list[Exception] = []
    failures: list[BaseException] = []

    def write(catalog: Catalog, writer: int) -> None:
        for number in range(writer * 1000, writer * 1000 + WRITES):
            try:
                catalog.load_table("t").append(rows(number))
                acknowledged_numbers.add(number)
            except (WriteFenced, ConflictError, NotFound) as error:
                refused_exceptions.append(error)

    def clean(catalog: Catalog, seed: int) -> None:
        workers = executors(warehouse, random.Random(seed)) if in_jobs else None
        for _ in range(CLEANINGS):
            for answers in (
                catalog.expire(retain_last=2, dry_run=False, engine=workers),
                catalog.vacuum(older_than=NOW, dry_run=False, engine=workers),
            ):
                # A run that is overtaken says so, and the next one goes on.
                errors = [answer.error for answer in answers if answer.error]
                assert all("dropped" in e or "expire" in e or "no table" in e for e in errors), errors

    def drop_and_restore(catalog: Catalog) -> None:
        for _ in range(CLEANINGS):
            for change in (catalog.drop_table, catalog.undrop_table):
                again(lambda change=change: change("t"))  # type: ignore[misc]

    def again(change: Callable[[], object]) -> None:
        """Versions go so fast here that what a change began on may have expired: then it begins anew."""
        while True:
            try:
                change()
                return
            except ConflictError:
                continue

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return run

    works: list[Callable[[], None]] = [partial(write, client(), writer) for writer in range(WRITERS)]
    works += [partial(clean, client(), seed) for seed in range(2)]
    works += [partial(drop_and_restore, client())] if dropping else []
    threads = [threading.Thread(target=guarded(work)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for_background()
    assert not failures, failures
    table = client().load_table("t")
    assert set(table.to_arrow()["id"].to_pylist()) == acknowledged_numbers
    assert (
        table.row_count == len(acknowledged_numbers)
        and len(acknowledged_numbers) + len(refused_exceptions) == WRITERS * WRITES
    )
    for version in range(table.version - 1, table.version + 1):
        table.at(version=version).to_arrow()
    client().vacuum(older_than=NOW, dry_run=False)
    client().expire(retain_last=1, dry_run=False)
    client().vacuum(older_than=NOW, dry_run=False)
    data = [key for key in open_store(warehouse).list_after("") if "/data/" in key]
    assert len(data) == client().load_table("t").file_count
