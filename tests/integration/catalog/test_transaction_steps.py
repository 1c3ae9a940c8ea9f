"""Steps that depend on each other, and what others commit in between: nothing is lost, and nothing lands elsewhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, NoSuchTable, Transaction, col, engine
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.schema.predicate import ALWAYS_TRUE
from lakelog.catalog.core.schema.table_changes import AddColumn, SetPartitioning, SetProperty
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.errors import LocationTaken
from lakelog.log import (
    CommitUnknown,
    ConflictError,
    InvalidInput,
    MemoryStore,
    NotFound,
    PermissionDenied,
    StorageError,
    Unsupported,
)

Client = Callable[[], Catalog]


@pytest.fixture
def other(client: Client, catalog: Catalog) -> Catalog:
    catalog.create_table("t", SCHEMA).append(rows(1))
    return client()


def ids(catalog: CatalogNames, name: str = "t") -> list[int]:
    return sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())


def with_column(name: str) -> pa.Table:
    return rows(2).append_column(name, pa.array(["x"]))


def test_rows_of_a_column_that_the_transaction_added_never_land_in_another_one(
    catalog: Catalog, other: Catalog
) -> None:
    transaction, two = catalog.begin(), other.begin()
    transaction.load_table("t").alter([AddColumn(name=("x",), type="string")]).append(with_column("x"))
    two.load_table("t").alter([AddColumn(name=("y",), type="string")]).append(with_column("y"))
    transaction.commit()
    with pytest.raises(CommitConflict, match="changes columns"):
        two.commit()
    assert catalog.load_table("t").to_arrow()["x"].to_pylist() == [None, "x"]


@pytest.mark.parametrize(
    "change",
    [
        {
            "change": "add-constraint",
            "constraint": {
                "kind": "check",
                "name": "positive",
                "columns": [["id"]],
                "sql": "id > 0",
                "predicate": {"op": ">", "args": [{"col": ["id"]}, {"lit": 0, "type": "integer"}]},
            },
        },
        {"change": "update-column-nullability", "name": ["region"], "nullable": False},
    ],
    ids=["check", "not-null"],
)
def test_rows_of_a_later_step_are_not_proven_by_a_scan_of_an_earlier_one(
    catalog: Catalog, change: dict[str, Any]
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    tx = catalog.begin()
    scanned_table = tx.load_table("t")
    scanned_table = scanned_table.append(rows(2))
    violating_table = pa.table({"id": [-5], "region": [None], "amount": [0.0]}, schema=SCHEMA)
    tx.load_table("t").append(violating_table)
    with pytest.raises(CommitConflict, match="rows were added since"):
        tx.load_table("t").alter([change], looked_at=scanned_table)
    tx.rollback()


def test_files_of_a_partitioning_that_the_transaction_chose_never_count_as_another_one(
    catalog: Catalog, other: Catalog
) -> None:
    with pytest.raises(CommitConflict), catalog.transaction() as tx:
        tx.load_table("t").alter([SetPartitioning(fields=("id",))]).append(rows(5))
        other.load_table("t").alter([SetPartitioning(fields=("region",))])
    assert ids(catalog) == [1]


def test_a_lone_change_of_columns_goes_on_over_another_one(catalog: Catalog, other: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.load_table("t").alter([AddColumn(name=("x",), type="string")])
        other.load_table("t").alter([AddColumn(name=("y",), type="string")])
    assert catalog.load_table("t").schema.names[-2:] == ("y", "x")


@pytest.mark.parametrize("remove", ["truncate", "delete", "truncate and overwrite"])
def test_rows_that_the_transaction_has_not_seen_are_not_removed_by_it(
    catalog: Catalog, other: Catalog, remove: str
) -> None:
    with pytest.raises(CommitConflict), catalog.transaction() as tx:
        table = tx.load_table("t")
        assert ids(tx) == [1]
        if remove == "delete":
            table.delete(col("id") >= 0)
        else:
            table = table.truncate()
        if remove == "truncate and overwrite":
            table.overwrite(rows(9))
        other.load_table("t").append(rows(3))
    assert ids(catalog) == [1, 3]


def test_two_that_read_a_row_and_put_another_in_its_place_do_not_both_commit(
    catalog: Catalog, other: Catalog
) -> None:
    both = catalog.begin(), other.begin()
    for tx in both:
        tx.load_table("t").delete(col("id") == 1)
        tx.load_table("t").append(rows(2))
    both[0].commit()
    with pytest.raises(CommitConflict):
        both[1].commit()
    assert ids(catalog) == [2]


def test_what_was_prepared_before_the_transaction_is_held_against_what_came_since(
    catalog: Catalog, other: Catalog
) -> None:
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    table = catalog.load_table("t")
    write = engine.begin_write(table)
    other.load_table("t").append(rows(2))
    with pytest.raises(CommitConflict), catalog.transaction() as tx:
        engine.commit_stage(tx, stage)
    with pytest.raises(CommitConflict), catalog.transaction() as tx:
        engine.commit_write(tx.load_table("t"), write, "overwrite", (), filter=ALWAYS_TRUE)
    assert ids(catalog) == [1, 2]


def test_a_handle_of_before_a_step_does_not_overwrite_what_that_did(catalog: Catalog, other: Catalog) -> None:
    with catalog.transaction() as tx:
        table = tx.load_table("t")
        table.append(rows(2))
        with pytest.raises(CommitConflict):
            table.overwrite(rows(3))
        tx.load_table("t").overwrite(rows(4))
        engine.commit_stage(tx, engine.stage(tx, "replace", "t", SCHEMA))
        with pytest.raises(CommitConflict):
            table.append(rows(7))
        tx.load_table("t").append(rows(8))
    assert ids(other) == [8]


def test_a_write_is_one_write_also_in_a_transaction(catalog: Catalog, other: Catalog) -> None:
    token = catalog.token("t")
    with catalog.transaction() as tx:
        tx.load_table("t").append(rows(2), token=token)
        tx.load_table("t").append(rows(2), token=token)
    assert ids(other) == [1, 2]
    token = catalog.token("t")
    catalog.load_table("t").append(rows(3), token=token)
    with catalog.transaction() as tx:
        tx.load_table("t").append(rows(3), token=token)
        tx.load_table("t").append(rows(4))
    assert ids(other) == [1, 2, 3, 4]


def test_one_place_is_one_table_in_a_transaction_too(
    catalog: Catalog, other: Catalog, tmp_path: Path
) -> None:
    place = f"{tmp_path}/place"
    with catalog.transaction() as tx:
        tx.create_table("a", SCHEMA, location=place).append(rows(1, 2))
        with pytest.raises(LocationTaken):
            tx.create_table("b", SCHEMA, location=place)
    assert ids(other, "a") == [1, 2]
    with catalog.transaction() as tx:
        tx.drop_table("a")
        with pytest.raises(Unsupported, match="in the same transaction"):
            tx.create_table("b", SCHEMA, location=place)
    with catalog.transaction() as tx:
        tx.create_table("b", SCHEMA, location=place).append(rows(9))
    assert ids(other, "b") == [9]
    assert not other.table_exists("a")


def test_a_place_that_was_taken_meanwhile_leaves_nothing_of_the_transaction_behind(
    catalog: Catalog, other: Catalog, tmp_path: Path
) -> None:
    text, two = f"{tmp_path}/one", f"{tmp_path}/two"
    with pytest.raises(LocationTaken), catalog.transaction() as tx:
        tx.create_table("a", SCHEMA, location=text)
        tx.create_table("b", SCHEMA, location=two)
        other.create_table("c", SCHEMA, location=two)
    with pytest.raises(NoSuchTable):
        other.table_at(text)
    other.create_table("d", SCHEMA, location=text)


def test_the_same_change_by_another_client_is_no_conflict_and_nothing_to_do(
    catalog: Catalog, other: Catalog
) -> None:
    with catalog.transaction() as tx:
        tx.load_table("t").alter([SetProperty(key="k", value="v")])
        tx.load_table("t").append(rows(2))
        other.load_table("t").alter([SetProperty(key="k", value="v")])
    assert ids(other) == [1, 2]


def test_a_change_that_an_old_handle_takes_for_done_is_done(catalog: Catalog, other: Catalog) -> None:
    old = catalog.load_table("t").alter([SetProperty(key="a", value="1")])
    other.load_table("t").alter([{"change": "remove-property", "key": "a"}])
    assert old.alter([SetProperty(key="a", value="1")]).properties == {"a": "1"}


def test_a_cut_cannot_be_saved_in_a_transaction(catalog: Catalog, other: Catalog) -> None:
    with catalog.transaction() as tx, pytest.raises(Unsupported, match="cut"):
        tx.save_cut("x")


@pytest.mark.parametrize("what", ["rows", "listing", "properties", "namespace", "schema"])
def test_serializable_sees_all_that_can_be_read(catalog: Catalog, other: Catalog, what: str) -> None:
    catalog.create_namespace("n", {"k": "1"})
    catalog.create_table("n.a", SCHEMA)
    tx = catalog.begin("serializable")
    reads: dict[str, Callable[[], object]] = {
        "rows": lambda: tx.load_table("n.a").row_count,
        "listing": lambda: tx.list_tables("n"),
        "properties": lambda: tx.load_table("n.a").properties,
        "namespace": lambda: tx.load_namespace("n"),
        "schema": lambda: tx.load_table("n.a").schema,
    }
    reads[what]()
    tx.load_table("t").append(rows(5))
    changes: dict[str, Callable[[], object]] = {
        "rows": lambda: other.load_table("n.a").append(rows(1)),
        "listing": lambda: other.create_table("n.b", SCHEMA),
        "properties": lambda: other.load_table("n.a").alter([SetProperty(key="k", value="2")]),
        "namespace": lambda: other.alter_namespace("n", set={"k": "2"}),
        "schema": lambda: other.load_table("n.a").alter([AddColumn(name=("x",), type="string")]),
    }
    changes[what]()
    with pytest.raises(CommitConflict, match="serializable"):
        tx.commit()
    assert ids(catalog) == [1]


def test_the_past_in_a_transaction_is_what_was_committed_up_to_its_cut(
    catalog: Catalog, other: Catalog
) -> None:
    with catalog.transaction() as tx:
        table = tx.load_table("t").append(rows(2))
        other.load_table("t").append(rows(3))
        assert table.at(version=table.version).row_count == 1
        with pytest.raises(NotFound):
            table.at(version=table.version + 1)
        assert table.at(timestamp=2**51).row_count == 1
        assert list(tx.create_table("new", SCHEMA).history()) == []


def test_a_catalog_as_of_before_its_beginning_is_empty(
    catalog: Catalog, other: Catalog, warehouse: str
) -> None:
    for moment in ("2020-01-01", dt.date(2020, 1, 1)):
        assert Catalog(warehouse, as_of=moment).list_tables() == []  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Catalog(warehouse, as_of=1.5)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="read-only"):
        Catalog(warehouse, as_of="2020-01-01").begin()


def test_a_table_replaced_by_drop_and_create_in_one_transaction_is_there_at_every_moment(
    catalog: Catalog, other: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.core.logs import cache

    catalog.load_table("t")
    refresh, late = cache.refresh_many, [True]  # type: ignore[attr-defined]

    def namespace_first(pairs: Any) -> list[Any]:
        views = []
        for number, pair in enumerate(pairs):
            if number == 1 and late:
                late.pop()
                with other.transaction() as tx:
                    tx.drop_table("t")
                    tx.create_table("t", SCHEMA).append(rows(8))
            views += refresh([pair])
        return views

    monkeypatch.setattr(cache, "refresh_many", namespace_first)
    assert ids(catalog) == [8]


class Losing(MemoryStore):
    """Loses the answer of one put of a commit after it took effect, or refuses puts for certain."""

    lose = refuse = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.refuse and "_log/" in key:
            raise PermissionDenied("the credentials have expired", location=key)
        is_done = super().put_if_absent(key, data)
        if self.lose and key.startswith("_log/"):
            Losing.lose -= 1
            Losing.refuse_reads = True
            raise StorageError("no answer", location=key)
        return is_done

    refuse_reads = False

    def get(self, key: str) -> bytes | None:
        if Losing.refuse_reads and "_log/" in key:
            raise StorageError("no answer", location=key)
        return super().get(key)


@pytest.fixture
def losing(warehouse: str, monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> Iterator[Catalog]:
    store = Losing(warehouse)
    store._objects = catalog._logs.places.store(warehouse)._objects  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(places, "open_store", lambda url, options: store)
        new_catalog = Catalog(warehouse)
        new_catalog._logs.log_options = new_catalog._logs.log_options
    Losing.lose = Losing.refuse = 0
    Losing.refuse_reads = False
    yield new_catalog
    Losing.lose = Losing.refuse = 0
    Losing.refuse_reads = False


def begun_without_an_answer(losing: Catalog, monkeypatch: pytest.MonkeyPatch) -> Transaction:
    """Return a transaction with a new table, whose commit ended with an unknown outcome."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    losing.load_table("t")
    tx = losing.begin()
    tx.create_table("new", SCHEMA).append(rows(1, 2))
    Losing.lose = 1
    with pytest.raises(CommitUnknown):
        tx.commit()
    return tx


def test_after_an_unknown_outcome_only_the_same_commit_is_possible_and_it_happens_once(
    catalog: Catalog, other: Catalog, losing: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = begun_without_an_answer(losing, monkeypatch)
    with pytest.raises(Unsupported, match="was begun"):
        tx.create_table("more", SCHEMA)
    with pytest.raises(InvalidInput, match="not known whether"):
        tx.rollback()
    Losing.refuse_reads, Losing.refuse = False, 1
    assert ids(other, "new") == [1, 2]
    tx.commit()
    assert ids(other, "new") == [1, 2]
    assert not tx.is_open


def test_a_retry_is_still_unknown_if_a_newer_client_has_written_since(
    catalog: Catalog, other: Catalog, losing: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = begun_without_an_answer(losing, monkeypatch)
    Losing.refuse_reads = False
    assert ids(other, "new") == [1, 2]
    root = other._tree.find_namespace(())
    assert root is not None
    newer = root.tracked.log.keys.commit(root.view.version + 1)
    root.tracked.store.put(newer, b"of a newer client")
    with pytest.raises(CommitUnknown, match="still not known"):
        tx.commit()
    root.tracked.store.delete([newer])
    tx.commit()
    assert not tx.is_open and ids(other, "new") == [1, 2]


def test_a_retry_that_is_refused_for_certain_still_finds_what_the_first_request_did(
    catalog: Catalog, other: Catalog, losing: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    losing.load_namespace(())
    token = losing.token()
    Losing.lose = 1
    with pytest.raises(CommitUnknown):
        losing.alter_namespace((), set={"k": "v"}, token=token)
    Losing.refuse_reads, Losing.refuse = False, 1
    losing.alter_namespace((), set={"k": "v"}, token=token)
    assert other.load_namespace(()) == {"k": "v"}
    with pytest.raises((PermissionDenied, ConflictError)):
        losing.alter_namespace((), set={"k": "w"})
