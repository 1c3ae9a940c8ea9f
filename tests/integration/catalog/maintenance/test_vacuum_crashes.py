"""A cleaner that dies at any of its writes: all that can be read is right, and the next run finishes the work."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO
from unittest.mock import patch

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.maintenance.executors import executors

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.core.schema import Metadata
from lakelog.catalog.keeping.maintenance import engine as bulk
from lakelog.log import MemoryStore, NotFound, ObjectStore, open_store, wait_for_background
from lakelog.log.burial import windows

ROWS = {1: [], 2: [1], 3: [1, 2], 4: [3], 5: [3, 4], 6: [3, 4], 7: [3, 4, 5]}
"""What `a.t` has at each version; 6 is a change of metadata."""

KEPT = 6
"""The first version that expiry keeps: 7 days ago it was what readers saw."""


class Death(BaseException):
    """No handler catches it by accident."""


class DyingStore:
    """Dies before write number `at` (from 0), which is after the one before; a deletion of many keys is as many."""

    def __init__(self, inner: ObjectStore, at: int) -> None:
        self.inner, self.at = inner, at
        self.url = inner.url
        self.is_bucket = inner.is_bucket

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, key: str) -> bytes | None:
        return self.inner.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.inner.get_many(keys)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return self.inner.list_after(prefix, after)

    def open_input(self, key: str) -> BinaryIO:
        return self.inner.open_input(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return bool(self._write(lambda: self.inner.put_if_absent(key, data)))

    def put(self, key: str, data: bytes) -> None:
        self._write(lambda: self.inner.put(key, data))

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._write(lambda key=key: self.inner.delete([key]))  # type: ignore[misc]

    def _write(self, request: Callable[[], object]) -> object:
        self.at -= 1
        if self.at < 0:
            raise Death
        return request()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


def prepared(warehouse: str, clock: Clock) -> None:
    """Something of everything that expiry and vacuum are for."""
    catalog = clock.client(warehouse)
    for namespace in ("a", "gone", "gone.sub"):
        catalog.create_namespace(namespace)
    table = catalog.create_table("a.t", SCHEMA).append(rows(1)).append(rows(2))
    table = table.overwrite(rows(3)).append(rows(4))
    written_files(table.table_head.tracked, table.metadata, engine.begin_write(table), rows(90))
    table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    for name in ("a.dropped", "gone.t", "gone.sub.u"):
        catalog.create_table(name, SCHEMA).append(rows(80))
    catalog.drop_table("a.dropped")
    catalog.drop_namespace("gone", cascade=True)
    stuck(catalog, "a.lost")
    stage = engine.stage(catalog, "create", "a.begun", SCHEMA)
    written(catalog, stage)
    catalog.vacuum(namespace="a", dry_run=False)
    clock.days_later(10)
    assert ids(catalog.load_table("a.t").append(rows(5))) == ROWS[7]


def written(catalog: Catalog, stage: Any) -> Any:
    metadata = Metadata(
        schema=stage.schema, specs=(stage.spec,), sort_order=stage.sort_order, properties=stage.properties
    )
    return written_files(catalog._logs.table(stage.location), metadata, stage.write, rows(70))


def stuck(catalog: Catalog, name: str) -> None:
    def stop(stage: Any, namespace: Any) -> None:
        raise Death

    stage = engine.stage(catalog, "create", name, SCHEMA)
    files = written(catalog, stage)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Death):
        patch.setattr(staging, "_link", stop)
        engine.commit_stage(catalog, stage, files)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def check(warehouse: str, clock: Clock) -> list[int]:
    """Read all that can be read; return the versions of `a.t` that can."""
    catalog = clock.client(warehouse)
    assert catalog.list_tables("a") == [("a", "t")] and catalog.list_namespaces() == [("a",)]
    table = catalog.load_table("a.t")
    assert ids(table) == ROWS[7]
    readable = []
    for version in range(1, table.version + 1):
        try:
            assert ids(table.at(version=version)) == ROWS[min(version, 7)], version
            readable.append(version)
        except NotFound as error:
            assert "has expired" in str(error)
    # Those before it may be gone in any order.
    assert readable[-table.version + KEPT - 1 :] == list(range(KEPT, table.version + 1))
    return readable


def expire(catalog: Catalog) -> None:
    catalog.expire(dry_run=False)


def expire_in_jobs(catalog: Catalog) -> None:
    workers = executors(engine.places(catalog).warehouse, random.Random(1))
    with patch.object(windows, "BURIED_TOGETHER", 3), patch.object(bulk, "MANY_VERSIONS", 1):
        catalog.expire(dry_run=False, engine=workers)


def vacuum(catalog: Catalog) -> None:
    catalog.vacuum(dry_run=False)


def nothing(catalog: Catalog) -> None:
    return


@pytest.mark.parametrize(
    ("before", "operation"),
    [
        pytest.param(nothing, expire, id="expire"),
        pytest.param(nothing, expire_in_jobs, id="expire-in-jobs"),
        pytest.param(expire, vacuum, id="vacuum"),
        pytest.param(nothing, vacuum, id="vacuum-without-expiry", marks=pytest.mark.slow),
    ],
)
def test_a_cleaner_that_dies_leaves_everything_right_and_the_next_one_finishes(
    before: Callable[[Catalog], None],
    operation: Callable[[Catalog], None],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deaths = 0
    warehouse = f"memory://{uuid.uuid4().hex}"
    prepared(warehouse, clock)
    before(clock.client(warehouse))
    store = MemoryStore.named(warehouse)
    objects = dict(store._objects)
    while True:
        wait_for_background()
        store._objects = dict(objects)
        with monkeypatch.context() as patch:
            patch.setattr(
                places,
                "open_store",
                lambda url, options, n=deaths: DyingStore(open_store(url, options), n),
            )
            try:
                operation(clock.client(warehouse))
            except Death:
                has_died = True
            else:
                has_died = False
        check(warehouse, clock)
        finish(warehouse, clock, operation)
        if not has_died:
            assert deaths > 15, "the operation writes something"
            return
        deaths += 1


def finish(warehouse: str, clock: Clock, operation: Callable[[Catalog], None]) -> None:
    """What a second run leaves behind, or the second after it if a limit has to pass anew."""
    catalog = clock.client(warehouse)
    operation(catalog)
    readable = check(warehouse, clock)
    if operation in (expire, expire_in_jobs):
        assert readable[0] == KEPT
        expired_report = clock.client(warehouse).expire()
        assert all(answer.versions == 0 and answer.error is None for answer in expired_report), expired_report
        return
    again = clock.client(warehouse).vacuum()
    assert [(answer.kind, answer.files, answer.objects) for answer in again] == [
        ("namespace", 0, 0),
        ("namespace", 0, 0),
        ("table", 0, 0),
    ], again
    data = [key for key in open_store(warehouse).list_after("") if "/data/" in key]
    expected = 3 if readable[0] == KEPT else 5
    assert len(data) == expected, data
