"""What operations cost in requests that another engine would see too: exact, and independent of the machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state import NAMESPACE, EntryLinked, NamespaceState, StoredEntry, encode
from lakelog.log import CountingStore, Draft, LogOptions, ObjectStore, open_store, wait_for_background


class Counted:
    """A warehouse whose clients' requests are counted."""

    def __init__(self, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warehouse = warehouse
        self.stores: list[CountingStore] = []
        monkeypatch.setattr(places, "open_store", self._open)

    def _open(self, url: str, options: dict[str, str]) -> ObjectStore:
        store = CountingStore(open_store(url, options))
        self.stores.append(store)
        return store

    def client(self, **options: Any) -> Catalog:
        return Catalog(self.warehouse, log_options=LogOptions(**options))

    def cold(self) -> Catalog:
        """Return a new client, for which what happens side by side counts as one round."""
        return self.client(in_parallel=lambda works: self.stores[-1].side_by_side(works))

    @contextmanager
    def cost(self, *, requests: int, rounds: int, puts: int = 0, lists: int = 0) -> Iterator[None]:
        wait_for_background()
        for store in self.stores:
            store.reset()
        yield
        wait_for_background()
        by_kind: dict[str, int] = {}
        for store in self.stores:
            for kind, count in store.by_kind.items():
                by_kind[kind] = by_kind.get(kind, 0) + count
        seen_totals = (
            sum(store.requests for store in self.stores),
            sum(store.rounds for store in self.stores),
            by_kind.get("put_if_absent", 0) + by_kind.get("put", 0),
            by_kind.get("list", 0),
        )
        assert seen_totals == (requests, rounds, puts, lists), by_kind


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(f"memory://{uuid.uuid4().hex}", monkeypatch)


@pytest.fixture
def warm(counted: Counted) -> Catalog:
    catalog = counted.client()
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    catalog.create_table("a.b.t", SCHEMA)
    return catalog


def test_a_warm_table_is_resolved_in_one_round_with_one_get_per_level(
    counted: Counted, warm: Catalog
) -> None:
    with counted.cost(requests=4, rounds=1):
        warm.load_table("a.b.t")


def test_a_warm_table_is_refreshed_by_one_get(counted: Counted, warm: Catalog) -> None:
    table = warm.load_table("a.b.t")
    with counted.cost(requests=1, rounds=1):
        table.refresh()


def logs_of(catalog: Catalog) -> list[TrackedLog[Any]]:
    """Return the four logs that lead to a.b.t."""
    spaces = [catalog._tree.namespace(path).tracked for path in ((), ("a",), ("a", "b"))]
    return [*spaces, catalog.load_table("a.b.t").table_head.tracked]


def test_a_cold_table_takes_three_rounds_however_many_levels_there_are(
    counted: Counted, warm: Catalog
) -> None:
    # The namespaces have hints of their heads; of the table, which has none, eight versions are asked for.
    cold = counted.cold()
    with counted.cost(requests=18, rounds=3):
        cold.load_table("a.b.t")
    table = logs_of(warm)[-1]
    table.log.snapshot(table.current())
    cold = counted.cold()
    with counted.cost(requests=12, rounds=3):
        cold.load_table("a.b.t")
    # The manifests of a table with files may have been given up by a newer base.
    table.log.snapshot(warm.load_table("a.b.t").append(rows(1)).table_head.view)
    cold = counted.cold()
    with counted.cost(requests=13, rounds=3):
        cold.load_table("a.b.t")


def test_a_namespace_at_another_place_than_its_name_leads_to_costs_a_guess_and_its_own_round(
    counted: Counted, warm: Catalog
) -> None:
    warm.create_namespace("a.renamed")
    warm.rename_table("a.b.t", "a.renamed.t")
    warm.drop_namespace("a.b")
    warm.create_namespace("a.b")  # where its name leads to is the one that was dropped
    warm.rename_table("a.renamed.t", "a.b.t")
    for namespace in ("a", "a.b"):
        warm.alter_namespace(namespace, set={"k": "v"})
    table = warm.load_table("a.b.t").alter([{"change": "set-property", "key": "k", "value": "v"}])
    table.table_head.tracked.log.snapshot(table.table_head.view)
    cold = counted.cold()
    with counted.cost(requests=13, rounds=4):
        assert cold.load_table("a.b.t").id == table.id


def test_hints_that_are_far_behind_cost_two_rounds_more_for_all_levels_together(
    counted: Counted, warm: Catalog
) -> None:
    *spaces, table = logs_of(warm)
    for tracked_spaces in (*spaces, table):
        kind = "table-altered" if tracked_spaces is table else "namespace-altered"
        draft = Draft(events=({"event": kind, "set": {"k": "v"}},))
        for _ in range(200):
            tracked_spaces.commit(tracked_spaces.current(), lambda view, passed, draft=draft: draft)  # type: ignore[misc]
        wait_for_background()
        tracked_spaces.log.snapshot(tracked_spaces.log.view_at(tracked_spaces.current().version - 200))
    cold = counted.cold()
    with counted.cost(requests=4 * 263, rounds=3 + 2):
        cold.load_table("a.b.t")


def test_the_next_table_of_a_known_namespace_takes_two_rounds(counted: Counted, warm: Catalog) -> None:
    warm.create_table("a.b.u", SCHEMA)
    cold = counted.cold()
    cold.load_table("a.b.t")
    with counted.cost(requests=3 + 1 + 8, rounds=2):
        cold.load_table("a.b.u")


def test_a_namespace_without_a_hint_is_read_from_its_first_versions(counted: Counted, warm: Catalog) -> None:
    wait_for_background()
    for tracked_log in logs_of(warm):
        tracked_log.store.delete([tracked_log.log.keys.latest])
    cold = counted.cold()
    with counted.cost(requests=4 * 9, rounds=6):
        cold.load_table("a.b.t")


def test_a_name_that_a_hint_does_not_have_or_leads_elsewhere_is_found(
    counted: Counted, warm: Catalog
) -> None:
    namespace = logs_of(warm)[2]
    wait_for_background()
    old = namespace.store.get(namespace.log.keys.latest)
    assert old is not None
    warm.rename_table("a.b.t", "a.b.old")
    table = warm.create_table("a.b.t", SCHEMA)
    added_table = warm.create_table("a.b.added", SCHEMA)
    wait_for_background()
    namespace.store.put(namespace.log.keys.latest, old)
    assert counted.cold().load_table("a.b.t").id == table.id
    assert counted.cold().load_table("a.b.added").id == added_table.id
    with pytest.raises(NoSuchTable):
        counted.cold().load_table("a.b.none")


def test_a_change_of_names_is_followed_by_one_put_of_the_hint(counted: Counted, warm: Catalog) -> None:
    wait_for_background()
    counted.stores[0].reset()
    warm.alter_namespace("a", set={"k": "v"})
    wait_for_background()
    assert counted.stores[0].by_kind["put"] == 1


def test_hints_of_many_names_are_rare() -> None:
    entry = StoredEntry(kind="table", id="i", location="t-i")
    sizes = {
        n: NamespaceState(entries={"relation": dict.fromkeys(map(str, range(n)), entry)})
        for n in (0, 99, 100, 5000)
    }
    assert {n: state.versions_per_hint for n, state in sizes.items()} == {0: 1, 99: 1, 100: 2, 5000: 51}


def test_an_append_to_a_warm_table_is_one_put_and_the_data_file(counted: Counted, warm: Catalog) -> None:
    table = warm.load_table("a.b.t")
    with counted.cost(requests=2, rounds=2, puts=2):
        table.append(rows(1))


def test_a_lost_race_costs_one_get_and_one_put_more(counted: Counted, warm: Catalog) -> None:
    table = warm.load_table("a.b.t")
    counted.client().load_table("a.b.t").append(rows(1))
    with counted.cost(requests=4, rounds=4, puts=3):
        table.append(rows(2))


@pytest.mark.parametrize("count", [1, 30])
def test_listing_tables_is_one_get_a_level_however_many_there_are(
    counted: Counted, warm: Catalog, count: int
) -> None:
    for n in range(count):
        warm.create_table(f"a.b.t{n}", SCHEMA)
    with counted.cost(requests=3, rounds=1):
        assert len(warm.list_tables("a.b")) == count + 1


@pytest.mark.parametrize(("count", "pages"), [(1, 0), (2_500, 4)])
def test_names_in_one_of_many_namespaces_cost_what_they_cost_in_one_of_few(
    counted: Counted, count: int, pages: int
) -> None:
    """From 2,000 names on they are in pages: a cold look-up reads one of these more, and a list each of them once."""
    maker = counted.client()
    maker.create_namespace("a")
    tracked_log = maker._tree.namespace(("a",)).tracked
    links = [
        EntryLinked(
            space=NAMESPACE,
            name=f"n{n:04}",
            kind=NAMESPACE,
            id=f"i{n}",
            location=f"{tracked_log.location}/n-i{n}",
        )
        for n in range(count)
    ]
    tracked_log.commit(tracked_log.current(), lambda view, passed: Draft(events=encode(links)))
    maker.create_namespace("a.m")
    maker.create_table("a.m.t", SCHEMA)
    wait_for_background()
    for at in ("", tracked_log.location):
        log = maker._logs.namespace(at).log
        log.snapshot(log.load())
    cold = counted.cold()
    with counted.cost(requests=18 + min(1, pages), rounds=3):
        cold.load_table("a.m.t")
    with counted.cost(requests=2 + max(0, pages - 1), rounds=1 + min(1, pages)):
        assert len(cold.list_namespaces("a")) == count + 1
    for operation, most in (
        (lambda: cold.load_table("a.m.t"), 4),
        (lambda: cold.list_namespaces("a"), 2),
        (lambda: cold.create_namespace("a.new"), 6),
        (lambda: cold.create_table("a.new.t", SCHEMA), 7),
        (lambda: cold.rename_table("a.new.t", "a.m.u"), 20),
        (lambda: cold.drop_namespace("a.new"), 9),
    ):
        counted.stores[-1].reset()
        operation()
        wait_for_background()  # its hint is one of them
        assert counted.stores[-1].requests <= most


def test_metadata_changes_of_a_warm_table_are_one_put(counted: Counted, warm: Catalog) -> None:
    table = warm.load_table("a.b.t")
    with counted.cost(requests=1, rounds=1, puts=1):
        table.alter([{"change": "set-property", "key": "k", "value": "v"}])


Operation = Callable[[Catalog], object]


@pytest.mark.parametrize(
    ("operation", "puts"),
    [
        (lambda catalog: catalog.create_table("a.b.u", SCHEMA), 2),
        (lambda catalog: catalog.drop_table("a.b.t"), 4),
        (lambda catalog: catalog.rename_table("a.b.t", "a.b.u"), 4),
        (lambda catalog: catalog.rename_table("a.b.t", "a.u"), 5),
        (lambda catalog: catalog.create_namespace("a.c"), 2),
        (lambda catalog: catalog.alter_namespace("a", set={"k": "v"}), 1),
    ],
    ids=["create table", "drop table", "rename table", "move table", "create namespace", "alter namespace"],
)
def test_what_changes_names_first_writes_what_it_has_to(
    counted: Counted, warm: Catalog, operation: Operation, puts: int
) -> None:
    assert put_if_absents(counted, lambda: operation(warm)) == puts


def put_if_absents(counted: Counted, work: Callable[[], object]) -> int:
    wait_for_background()
    for store in counted.stores:
        store.reset()
    work()
    return sum(store.by_kind.get("put_if_absent", 0) for store in counted.stores)


def test_the_first_transaction_in_a_folder_is_one_put_more_for_each_process(
    counted: Counted, warm: Catalog
) -> None:
    warm.create_namespace("c")
    for name in ("a.b.u", "a.b.v", "c.t", "c.u"):
        warm.create_table(name, SCHEMA).append(rows(1))

    def together(*names: str) -> Callable[[], None]:
        def run() -> None:
            with warm.transaction() as transaction:
                for name in names:
                    transaction.load_table(name).append(rows(1))

        return run

    def puts(work: Callable[[], object]) -> int:
        return put_if_absents(counted, work)

    # A drop or a rename is decided in the namespace's folder, as is a transaction of tables in it.
    assert [puts(lambda name=name: warm.drop_table(name)) for name in ("a.b.t", "a.b.v")] == [4, 3]  # type: ignore[misc]
    assert [puts(lambda: warm.rename_table("a.b.u", "a.b.v"))] == [3]
    assert [puts(together("c.t", "c.u")) for _ in range(2)] == [4, 3]
    # What is in two namespaces is decided in the warehouse's own.
    assert [puts(together("a.b.v", "c.t")) for _ in range(2)] == [4, 3]
    assert [puts(lambda: warm.rename_table("a.b.v", "c.v"))] == [4]


def test_tags_and_branches_of_the_newest_version_are_one_put_whatever_the_table_has(counted: Counted) -> None:
    catalog = counted.client()
    table = catalog.create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    table.table_head.tracked.log.snapshot(table.table_head.view)
    # A client that has not read the lists of files.
    table = counted.client().load_table("t")
    with counted.cost(requests=1, rounds=1, puts=1):
        table = table.create_tag("first")
    with counted.cost(requests=1, rounds=1, puts=1):
        table = table.create_branch("b")
    branch = table.at(ref="b")
    with counted.cost(requests=2, rounds=2, puts=2):
        branch = branch.append(rows(3))
    with counted.cost(requests=1, rounds=1, puts=1):
        branch.drop_tag("first")
