"""Creations that never came to their end: what they left goes, and a client that merely took long fails cleanly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.ddl.staging import StagedTable
from lakelog.catalog.core.logs import TrackedLog, scope
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.core.schema import Metadata
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance import orphans, purge
from lakelog.catalog.transaction import Transaction
from lakelog.log import CountingStore, LakelogError, NotFound, ObjectStore, open_store


class Death(BaseException):
    """No handler catches it by accident."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Callable[[], Catalog]:
    return lambda: clock.client(warehouse)


@pytest.fixture
def store(warehouse: str) -> ObjectStore:
    return open_store(warehouse)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def written(catalog: Catalog, stage: StagedTable, *numbers: int) -> Any:
    """The files of a CREATE TABLE AS SELECT before its commit."""
    metadata = Metadata(
        schema=stage.schema, specs=(stage.spec,), sort_order=stage.sort_order, properties=stage.properties
    )
    return written_files(catalog._logs.table(stage.location), metadata, stage.write, rows(*numbers))


def unlinked(answers: list[Any]) -> list[tuple[str, int, int]]:
    return [(a.kind, a.files, a.waiting) for a in answers if a.kind.startswith("unlinked")]


@pytest.fixture
def stuck(client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Creates the log of a table `a.t` and stops before its link; returns what goes on with it."""

    def stop(stage: Any, namespace: Any) -> None:
        raise Death

    def begin() -> Any:
        creator = client()
        stage = engine.stage(creator, "create", "a.t", SCHEMA)
        files = written(creator, stage, 1)
        with monkeypatch.context() as patch, pytest.raises(Death):
            patch.setattr(staging, "_link", stop)
            engine.commit_stage(creator, stage, files)
        return lambda: engine.commit_stage(creator, stage, files)

    return begin


def test_a_log_that_was_never_linked_is_purged_after_the_limit(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore, stuck: Callable[[], Any]
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    go_on = stuck()
    clock.days_later(2)
    assert unlinked(catalog.vacuum(dry_run=False)) == []
    clock.days_later(2)
    assert unlinked(catalog.vacuum()) == [("unlinked-table", 1, 0)]
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 1, 0)]
    assert not [key for key in store.list_after("") if "/data/" in key]
    with pytest.raises((CommitConflict, NotFound), match="took so long|dropped"):
        go_on()
    assert catalog.list_tables("a") == [] and unlinked(catalog.vacuum()) == []
    assert ids(catalog.create_table("a.t", SCHEMA).append(rows(2))) == [2]


def test_a_link_that_lands_before_it_is_forgotten_keeps_the_table(
    client: Callable[[], Catalog],
    clock: Clock,
    stuck: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    go_on, note = stuck(), orphans.note

    def late(namespace: Any, found: Any) -> None:
        if namespace.path == ("a",):
            assert len(found.logs) == 1
            go_on()
        note(namespace, found)

    clock.days_later(4)
    monkeypatch.setattr(orphans, "note", late)
    assert unlinked(catalog.vacuum(dry_run=False)) == []
    assert ids(client().load_table("a.t")) == [1]


def test_a_link_after_it_was_forgotten_fails_even_before_the_log_is_sealed(
    client: Callable[[], Catalog], clock: Clock, stuck: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    go_on, do = stuck(), purge.do

    def late(tree: Any, planned: Any, **how: Any) -> bool:
        with pytest.raises(CommitConflict, match="took so long that vacuum took it for abandoned"):
            go_on()
        return do(tree, planned, **how)

    clock.days_later(4)
    monkeypatch.setattr(purge, "do", late)
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 1, 0)]
    assert catalog.list_tables("a") == []


def test_a_namespace_that_was_never_linked_is_purged_after_the_limit(
    client: Callable[[], Catalog], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = client()
    catalog.create_namespace("a")

    def stop(*arguments: Any) -> None:
        raise Death

    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr("lakelog.catalog.core.ddl.namespaces.commit_in", stop)
        client().create_namespace("a.lost")
    clock.days_later(4)
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-namespace", 0, 0)]
    assert unlinked(catalog.vacuum(dry_run=False)) == []
    catalog.create_namespace("a.lost")


def test_files_without_a_log_go_when_they_were_met_longer_ago_than_the_limit(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog, creator = client(), client()
    catalog.create_namespace("a")
    stage = engine.stage(creator, "create", "a.t", SCHEMA)
    files = written(creator, stage, 1)
    clock.days_later(30)
    # Nothing shows how old they are: the age counts from here on.
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 0, 1)]
    clock.days_later(2)
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 0, 1)]
    clock.days_later(2)
    assert unlinked(catalog.vacuum()) == [("unlinked-table", 1, 0)]
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 1, 0)]
    assert not [key for key in store.list_after("") if "/data/" in key]
    with pytest.raises(CommitConflict, match="took so long"):
        engine.commit_stage(creator, stage, files)
    assert catalog.list_tables("a") == []
    # The log that this attempt made all the same is the next run's.
    clock.days_later(4)
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 0, 0)]
    assert unlinked(catalog.vacuum(dry_run=False)) == []


def test_lists_of_files_of_a_first_commit_that_was_never_made_go_with_the_folder(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    stage = engine.stage(catalog, "create", "a.t", SCHEMA)
    keys = catalog._logs.table(stage.location).log.keys
    store.put(keys.sidecar(f"{1:020d}-{'a' * 26}-{'0' * 16}.bin"), b"files")
    catalog.vacuum(dry_run=False)
    clock.days_later(4)
    catalog.vacuum(dry_run=False)
    assert not list(store.list_after(f"{stage.location}/"))


@pytest.mark.parametrize("what", ["bases", "snapshots", "manifests"])
def test_what_is_left_of_a_log_without_commits_is_reported_and_left_alone(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore, what: str
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    stage = engine.stage(catalog, "create", "a.t", SCHEMA)
    written(catalog, stage, 1)
    key = f"{stage.location}/_log/{what}/{1:020d}.json"
    store.put(key, b"all that is left of a table")
    for _ in range(3):
        [answer] = [a for a in catalog.vacuum(dry_run=False) if a.kind.startswith("unlinked")]
        assert key in answer.error and "commits are missing" in answer.error
        clock.days_later(4)
    assert len(list(store.list_after(f"{stage.location}/"))) == 2


def test_a_first_commit_that_comes_while_its_folder_is_listed_stays(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, creator = client(), client()
    catalog.create_namespace("a")
    stage = engine.stage(creator, "create", "a.t", SCHEMA)
    files = written(creator, stage, 1)
    catalog.vacuum(dry_run=False)
    clock.days_later(4)
    list_all = purge.all_of

    def late(*given: Any) -> Any:
        monkeypatch.setattr(orphans, "all_of", list_all)
        assert ids(engine.commit_stage(creator, stage, files)) == [1]
        return list_all(*given)

    monkeypatch.setattr(orphans, "all_of", late)
    catalog.vacuum(dry_run=False)
    assert ids(client().load_table("a.t")) == [1]
    assert not [finding for finding in client().fsck().found if finding.severity.name != "NOTE"]


def test_a_slow_create_as_select_that_ends_in_time_is_not_disturbed(
    client: Callable[[], Catalog], clock: Clock
) -> None:
    catalog, creator = client(), client()
    catalog.create_namespace("a")
    stage = engine.stage(creator, "create", "a.t", SCHEMA)
    files = written(creator, stage, 1)
    clock.days_later(2)
    catalog.vacuum(dry_run=False)
    clock.days_later(2)
    assert ids(engine.commit_stage(creator, stage, files)) == [1]
    clock.days_later(30)
    catalog.vacuum(dry_run=False)
    assert ids(client().load_table("a.t")) == [1]
    assert not client()._tree.namespace(("a",)).view.state.begun


def test_a_table_that_moved_away_is_not_taken_for_unlinked(
    client: Callable[[], Catalog], clock: Clock
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    catalog.create_namespace("b")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.rename_table("a.t", "b.t")
    clock.days_later(30)
    assert unlinked(client().vacuum(namespace="a", dry_run=False)) == []
    # Also when its creation has expired, so that only the move shows where it belongs.
    catalog.expire("b.t", retain_last=2, dry_run=False)
    assert unlinked(client().vacuum(namespace="a", dry_run=False)) == []
    catalog.expire("b.t", retain_last=1, dry_run=False)
    assert unlinked(client().vacuum(namespace="a", dry_run=False)) == []
    assert ids(client().load_table("b.t")) == [1]
    catalog.drop_table("b.t")
    clock.days_later(1)
    assert unlinked(client().vacuum(namespace="a", dry_run=False)) == []
    catalog.undrop_table("b.t")
    assert ids(client().load_table("b.t")) == [1]


def test_a_table_that_is_only_known_by_its_place_is_not_taken_for_unlinked(
    client: Callable[[], Catalog], clock: Clock, warehouse: str
) -> None:
    catalog = client()
    place = f"{warehouse}/mine"
    engine.commit_stage(catalog, engine.stage(catalog, "create", None, SCHEMA, location=place)).append(
        rows(1)
    )
    clock.days_later(30)
    assert unlinked(catalog.vacuum(dry_run=False)) == []
    assert ids(client().table_at(place)) == [1]


def old_table(catalog: Catalog, clock: Clock) -> Table:
    """Return `a.t`, which is older than what vacuum leaves alone, beside a namespace `b`."""
    for namespace in ("a", "b"):
        catalog.create_namespace(namespace)
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    clock.days_later(4)
    return table


def test_a_move_between_the_look_and_the_seal_keeps_the_table(
    client: Callable[[], Catalog], clock: Clock
) -> None:
    catalog, other_catalog = client(), client()
    table = old_table(catalog, clock)
    home = catalog._logs.namespace(table.table_head.tracked.location.split("/")[0])
    planned = purge.plan_purge(
        catalog._tree,
        "table",
        "t",
        NamespaceEntry(kind="table", id=table.id, location=table.table_head.tracked.location),
        link=None,
    )
    assert planned is not None
    # As after a look that came between two moves of another client.
    other_catalog.rename_table("a.t", "b.t")
    assert not orphans.remove(catalog._tree, orphans.OrphanLog(table.id, home, planned))
    assert ids(client().load_table("b.t")) == [1]
    # And what was forgotten in a namespace by mistake can still come back there by a move.
    other_catalog.rename_table("b.t", "a.t")
    assert ids(client().load_table("a.t").append(rows(2))) == [1, 2]


def test_a_move_between_the_looks_at_a_table_and_at_its_namespace_keeps_the_table(
    client: Callable[[], Catalog], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its namespace was named by the version before the move, and the plan to purge it is of the one after."""
    catalog, other_catalog = client(), client()
    table = old_table(catalog, clock)
    location, real, looks = table.table_head.tracked.location, TrackedLog.at_its_place, list[str]()

    def then_moved(tracked: TrackedLog[Any]) -> Any:
        view = real(tracked)
        if tracked.location == location and not looks:
            looks.append(location)
            other_catalog.rename_table("a.t", "b.t")
        return view

    fresh = client()
    [home] = [
        namespace for namespace in scope.chosen_scope(fresh._tree).namespaces if namespace.path == ("a",)
    ]
    with monkeypatch.context() as patch:
        patch.setattr(TrackedLog, "at_its_place", then_moved)
        # As where the namespaces were read in the course of the move: the one too late, the other too early.
        found_orphans = orphans.find(fresh._tree, home, set(), clock.now_us, clock.now_us)
    assert looks == [location]
    assert not [orphan for orphan in found_orphans.logs if orphans.remove(fresh._tree, orphan)]
    assert found_orphans == orphans.NamespaceOrphans()
    assert ids(client().load_table("b.t")) == [1]


def test_what_cannot_be_judged_is_reported_and_left_alone(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore, stuck: Callable[[], Any]
) -> None:
    catalog = client()
    catalog.create_namespace("a")
    stuck()
    clock.days_later(4)
    [commit] = [key for key in store.list_after("n-") if "/t-" in key and key.endswith(f"{1:020d}.json")]
    store.put(commit, b"nonsense")
    sizes_before = dict(store.list_sizes("n-"))
    [answer] = [a for a in catalog.vacuum(dry_run=False) if a.kind.startswith("unlinked")]
    assert "truncated or altered" in answer.error
    assert {key: size for key, size in store.list_sizes("n-") if "/t-" in key} == {
        key: size for key, size in sizes_before.items() if "/t-" in key
    }


def test_a_purged_folder_costs_one_get_in_later_runs(client: Callable[[], Catalog], clock: Clock) -> None:
    catalog = client()
    for number in range(5):
        catalog.create_table(f"t{number}", SCHEMA)
        catalog.drop_table(f"t{number}")
    clock.days_later(8)
    catalog.vacuum(dry_run=False)
    fresh = client()
    found_scope = scope.chosen_scope(fresh._tree)
    places = fresh._logs.places
    counting_store = places.stores[fresh.warehouse] = CountingStore(places.store(fresh.warehouse))
    looked_orphans = orphans.find(fresh._tree, found_scope.namespaces[0], set(), clock.now_us, clock.now_us)
    assert looked_orphans == orphans.NamespaceOrphans()
    assert counting_store.by_kind == {"list": 1, "get": 5} and counting_store.rounds == 2


@pytest.mark.parametrize("ends", ["by a conflict", "by its death", "while vacuum looks"])
def test_a_transaction_that_created_and_moved_a_table_leaves_nothing_that_stays(
    ends: str,
    client: Callable[[], Catalog],
    clock: Clock,
    store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = client()
    for namespace in ("a", "b"):
        catalog.create_namespace(namespace)
    began = catalog.begin()
    began.create_table("a.t", SCHEMA).append(rows(1))
    began.create_namespace("a.n")
    began.rename_table("a.t", "b.t")
    before = Transaction._commit_changed

    def stop(*asked: Any) -> None:
        if ends == "by its death":
            raise Death
        clock.days_later(9)
        assert len(unlinked(client().vacuum(dry_run=False))) == 2
        before(*asked)

    with monkeypatch.context() as patch, pytest.raises((Death, LakelogError)):
        if ends == "by a conflict":
            catalog.create_table("b.t", SCHEMA)
        else:
            patch.setattr(Transaction, "_commit_changed", stop)
        began.commit()
    clock.days_later(9)
    for _ in range(2):
        assert [each.error for each in client().vacuum(dry_run=False) if each.error] == []
    assert not [key for key in store.list_after("") if "/data/" in key]


def test_a_table_that_was_created_and_moved_in_a_transaction_is_where_it_moved(
    client: Callable[[], Catalog], clock: Clock
) -> None:
    catalog = client()
    for namespace in ("a", "b"):
        catalog.create_namespace(namespace)
    with catalog.begin() as began:
        began.create_table("a.t", SCHEMA).append(rows(1))
        began.rename_table("a.t", "b.t")
        began.rename_table("b.t", "b.u")
    clock.days_later(9)
    assert unlinked(client().vacuum(dry_run=False)) == []
    assert ids(client().load_table("b.u")) == [1] and not client().fsck().found
    assert client().drop_table("b.u", purge=True)
