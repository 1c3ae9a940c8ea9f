"""A client that dies at any of its requests, before or after the request took effect: what others see then.

Every operation is either there or not, a name never leads to half of something, and the next client can do the same
operation again: with the same token it happens once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NamespaceExists, TableExists, engine
from lakelog.catalog.core.logs import places
from lakelog.log import LogOptions, ObjectStore, open_store


class Death(BaseException):
    """No handler catches it by accident."""


class DyingStore:
    """Dies at a write: at number `at` of them (from 0), before or after its effect."""

    def __init__(self, inner: ObjectStore, at: int, after: bool) -> None:
        self.inner, self.at, self.after = inner, at, after
        self.url = inner.url
        self.is_bucket = inner.is_bucket

    def get(self, key: str) -> bytes | None:
        return self.inner.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.inner.get_many(keys)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return self.inner.list_after(prefix, after)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        return self.inner.list_sizes(prefix, after)

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self.inner.list_leftovers(prefix)

    def open_input(self, key: str) -> BinaryIO:
        return self.inner.open_input(key)

    def now_us(self, near: str = "") -> int | None:
        return self.inner.now_us(near)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return bool(self._write(lambda: self.inner.put_if_absent(key, data)))

    def put(self, key: str, data: bytes) -> None:
        self._write(lambda: self.inner.put(key, data))

    def delete(self, keys: Sequence[str]) -> None:
        self._write(lambda: self.inner.delete(keys))

    def _write(self, request: Callable[[], object]) -> object:
        self.at -= 1
        if self.at < -1:
            raise Death
        if self.at == -1 and not self.after:
            raise Death
        finished_request = request()
        if self.at == -1:
            raise Death
        return finished_request


def prepared(warehouse: str) -> None:
    catalog = Catalog(warehouse)
    catalog.create_namespace("a")
    catalog.create_namespace("a.sub")
    catalog.create_table("a.sub.u", SCHEMA)
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.create_table("a.dropped", SCHEMA).append(rows(4))
    catalog.drop_table("a.dropped")
    catalog.create_namespace("gone")
    catalog.create_table("gone.t", SCHEMA)
    catalog.drop_namespace("gone", cascade=True)


def create_namespace(catalog: Catalog) -> None:
    catalog.create_namespace("a.new")


def create_table(catalog: Catalog) -> None:
    catalog.create_table("a.new", SCHEMA)


def append(catalog: Catalog) -> None:
    catalog.load_table("a.t").append(rows(2))


def rename(catalog: Catalog) -> None:
    catalog.rename_table("a.t", "a.new")


def drop_table(catalog: Catalog) -> None:
    catalog.drop_table("a.t")


def drop_namespace(catalog: Catalog) -> None:
    catalog.drop_namespace("a", cascade=True)


def replace(catalog: Catalog) -> None:
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "a.t", SCHEMA))


def move(catalog: Catalog) -> None:
    catalog.rename_table("a.t", "a.sub.new")


def undrop_table(catalog: Catalog) -> None:
    catalog.undrop_table("a.dropped")


def undrop_namespace(catalog: Catalog) -> None:
    catalog.undrop_namespace("gone")


def transaction(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.create_namespace("b")
        tx.create_table("b.new", SCHEMA).append(rows(5))
        tx.load_table("a.t").append(rows(7))
        tx.load_table("a.sub.u").append(rows(8))
        tx.rename_table("a.sub.u", "b.u")


Look = dict[str, object]


def quick(warehouse: str) -> Catalog:
    """A client that does not wait: what stands undecided here is of dead clients."""
    return Catalog(warehouse, log_options=LogOptions(sleep_s=lambda seconds: None))


def look(catalog: Catalog) -> Look:
    """All that a client can see; fails if it sees half of something."""
    seen: Look = {}
    pending_texts: list[tuple[str, ...]] = [()]
    while pending_texts:
        namespace = pending_texts.pop()
        seen[".".join(namespace)] = catalog.load_namespace(namespace)
        pending_texts.extend(catalog.list_namespaces(namespace))
        for name in catalog.list_tables(namespace):
            table = catalog.load_table(name)
            seen[".".join(name)] = (sorted(table.to_arrow().to_pydict()["id"]), table.metadata.generation > 1)
    return seen


def outcome(operation: Callable[[Catalog], None] | None) -> Look:
    warehouse = f"memory://{uuid.uuid4().hex}"
    prepared(warehouse)
    if operation is not None:
        operation(Catalog(warehouse))
    return look(Catalog(warehouse))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "operation",
    [
        create_namespace,
        create_table,
        append,
        rename,
        move,
        drop_table,
        drop_namespace,
        undrop_table,
        undrop_namespace,
        replace,
        transaction,
    ],
)
def test_a_client_that_dies_leaves_all_or_nothing(
    operation: Callable[[Catalog], None], after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_outcome, all_outcome = outcome(None), outcome(operation)
    deaths = 0
    while True:
        warehouse = f"memory://{uuid.uuid4().hex}"
        prepared(warehouse)
        with monkeypatch.context() as patch:
            patch.setattr(
                places,
                "open_store",
                lambda url, options, n=deaths: DyingStore(open_store(url, options), n, after),
            )
            try:
                operation(Catalog(warehouse))
            except Death:
                has_died = True
            else:
                has_died = False
        seen = look(Catalog(warehouse))
        assert seen in (empty_outcome, all_outcome), f"death at write {deaths}"
        assert has_died or seen == all_outcome
        if seen == empty_outcome:
            operation(quick(warehouse))
        assert look(Catalog(warehouse)) == all_outcome
        # What a crash left behind was finished, so names are free and things can be made again.
        again = quick(warehouse)
        for make in (create_namespace, create_table):
            try:
                if again.namespace_exists("a"):
                    make(again)
            except (NamespaceExists, TableExists):
                assert "a.new" in all_outcome
        if not has_died:
            assert deaths > 0, "the operation writes something"
            return
        deaths += 1
