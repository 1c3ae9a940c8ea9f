"""A small warehouse, all that writers do to one, and a store in which they do it between two requests of a check."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO
from unittest import mock

from tests.integration.fsck.world import OPTIONS, SCHEMA, rows

from lakelog.catalog import Catalog, col
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.keeping.maintenance.fsck import Findings, Severity, check_warehouse, data_checks, walk
from lakelog.log import MemoryStore, ObjectStore, open_store

NOW = dt.timedelta(0)
Action = Callable[[Catalog], object]


class Between:
    """See ObjectStore. Passes everything on to `inner`, and calls `before` ahead of each request."""

    def __init__(self, inner: ObjectStore, before: Callable[[], None]) -> None:
        self.inner = inner
        self.url = inner.url
        self.is_bucket = inner.is_bucket
        self.before = before

    def get(self, key: str) -> bytes | None:
        self.before()
        return self.inner.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        # The objects of one round are read in no order, and at different moments.
        return [self.get(key) for key in keys]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.before()
        return self.inner.put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        self.before()
        self.inner.put(key, data)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self.before()
        return self.inner.list_after(prefix, after)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        self.before()
        return self.inner.list_sizes(prefix, after)

    def list_folders(self, prefix: str) -> list[str]:
        self.before()
        return self.inner.list_folders(prefix)

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        self.before()
        return self.inner.list_leftovers(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        self.before()
        self.inner.delete(keys)

    def open_input(self, key: str) -> BinaryIO:
        self.before()
        return self.inner.open_input(key)

    def now_us(self, near: str = "") -> int | None:
        return self.inner.now_us(near)


class Busy:
    """The warehouse, as it was built, in memory."""

    def __init__(self) -> None:
        self.warehouse = f"memory://{uuid.uuid4().hex}"
        self.elsewhere = f"{self.warehouse}-elsewhere"
        build(self.client(), self.elsewhere)
        places = (f"{self.elsewhere}/place", f"{self.elsewhere}/place2")
        self.stores = [MemoryStore.named(url) for url in (self.warehouse, *places)]
        self._kept = [{key: store.get(key) or b"" for key in store.list_after("")} for store in self.stores]

    def client(self) -> Catalog:
        return Catalog(self.warehouse, log_options=OPTIONS)

    def restore(self) -> None:
        for store, kept_data in zip(self.stores, self._kept, strict=True):
            store.delete([key for key in store.list_after("") if key not in kept_data])
            for key, data in kept_data.items():
                if store.get(key) != data:
                    store.put(key, data)

    def check(self, before: Callable[[], None] = lambda: None) -> Findings:
        """Check all of it; `before` is called ahead of each request."""

        def opened_store(url: str, options: dict[str, str]) -> ObjectStore:
            return Between(open_store(url, options), before)

        with mock.patch.object(places, "open_store", opened_store):
            logs = LogCache(WarehouseStores(self.warehouse, {}), {}, OPTIONS)
            return check_warehouse(logs, deep=True, all_versions=True)

    def check_meanwhile(self, action: Action, at: int) -> tuple[Findings, bool]:
        """Check all of it, and do something ahead of request number `at`. Returns whether there were as many."""
        asked, acting = 0, False

        def before() -> None:
            nonlocal asked, acting
            if acting:
                return  # a request of the action, whose clients have threads of their own
            asked += 1
            if asked == at:
                acting = True
                action(self.client())
                acting = False

        # One after the other, so that the requests come in the same order each time.
        with mock.patch.object(walk, "LOGS_AT_ONCE", 1), mock.patch.object(data_checks, "FILES_AT_ONCE", 1):
            return self.check(before), asked >= at


def build(catalog: Catalog, elsewhere: str) -> None:
    for name in ("a", "b", "a.c"):
        catalog.create_namespace(name)
    table = catalog.create_table("a.t", SCHEMA)
    for n in range(5):
        table = table.append(rows(n, n + 10))
    table.delete(col("id") == 3)
    table.create_branch("dev").at(ref="dev").append(rows(50))
    catalog.create_table("b.u", SCHEMA).append(rows(60))
    catalog.create_table("a.c.deep", SCHEMA).append(rows(70))
    catalog.create_table("a.gone", SCHEMA).append(rows(80))
    catalog.drop_table("a.gone")
    catalog.create_table("b.away", SCHEMA, location=f"{elsewhere}/place").append(rows(90))
    with catalog.transaction() as tx:
        for name in ("a.t", "b.u"):
            tx.load_table(name).append(rows(100))
    catalog.save_cut("monday")


def actions(elsewhere: str) -> dict[str, Action]:
    """Return all kinds of work, each done from beginning to end."""
    place = f"{elsewhere}/place"

    def create(catalog: Catalog) -> None:
        for name in ("a.new", "b.new", "a.c.new"):
            catalog.create_table(name, SCHEMA).append(rows(1)).append(rows(2))
        catalog.create_namespace("a.below")
        catalog.create_table("a.below.new", SCHEMA).append(rows(3))

    def create_again(catalog: Catalog) -> None:
        catalog.drop_table("a.t")
        catalog.create_table("a.t", SCHEMA).append(rows(1)).append(rows(2))

    def write(catalog: Catalog) -> None:
        table = catalog.load_table("a.t")
        for n in range(200, 205):
            table = table.append(rows(n))
        table.delete(col("id") == 1).truncate()

    def move(catalog: Catalog) -> None:
        catalog.rename_table("a.t", "b.t")
        catalog.rename_table("b.u", "a.c.u")

    def move_and_back(catalog: Catalog) -> None:
        catalog.rename_table("a.t", "b.t")
        catalog.rename_table("b.t", "a.t")

    def drop_and_restore(catalog: Catalog) -> None:
        catalog.drop_table("a.t")
        catalog.undrop_table("a.t")

    def drop_all(catalog: Catalog) -> None:
        catalog.drop_namespace("a", cascade=True)

    def together(catalog: Catalog) -> None:
        for n in range(2):
            with catalog.transaction() as tx:
                for name in ("a.t", "b.u"):
                    tx.load_table(name).append(rows(300 + n))
                tx.create_table(f"b.in{n}", SCHEMA).append(rows(1))

    def branches(catalog: Catalog) -> None:
        catalog.load_table("a.t", ref="dev").append(rows(400))
        table = catalog.load_table("a.t").create_tag("then").create_branch("other")
        table.at(ref="other").append(rows(401))
        catalog.load_table("a.t").fast_forward("main", "other").drop_branch("dev")

    def expire(catalog: Catalog) -> None:
        catalog.drop_cut("monday")
        catalog.load_table("a.t").truncate().append(rows(1))
        catalog.expire(retain_last=1, dry_run=False)

    def vacuum(catalog: Catalog) -> None:
        expire(catalog)
        catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)

    def vacuum_twice(catalog: Catalog) -> None:
        vacuum(catalog)
        table = catalog.load_table("a.t")
        for n in range(5):
            table = table.append(rows(n))
        catalog.expire(retain_last=1, dry_run=False)
        catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)

    def purge(catalog: Catalog) -> None:
        catalog.drop_cut("monday")
        catalog.drop_table("a.t")
        catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)

    def cuts(catalog: Catalog) -> None:
        catalog.drop_cut("monday")
        catalog.load_table("a.t").append(rows(1))
        catalog.save_cut("monday")

    def at_a_place(catalog: Catalog) -> None:
        catalog.drop_table("b.away")
        catalog.undrop_table("b.away", to="a.away")
        catalog.create_table("b.away", SCHEMA, location=f"{place}2").append(rows(1))

    def compact(catalog: Catalog) -> None:
        catalog.load_table("a.t").compact()
        catalog.alter_namespace("a", set={"owner": "ada"})

    every: tuple[Action, ...] = (
        create,
        create_again,
        write,
        move,
        move_and_back,
        drop_and_restore,
        drop_all,
        together,
        branches,
        expire,
        vacuum,
        vacuum_twice,
        purge,
        cuts,
        at_a_place,
        compact,
    )
    return {action.__name__: action for action in every}


def worse_than_notes(findings: Findings) -> list[str]:
    worse = [*findings.of(Severity.DAMAGE), *findings.of(Severity.REPAIRABLE)]
    return [f"{finding.severity}: {finding.kind}: {finding.where}: {finding.what}" for finding in worse]
