"""Transactions: all or nothing, one cut, own changes seen, conflicts named."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, CommitConflict, NamespaceExists, NoSuchTable, TableExists, col, engine
from lakelog.catalog.core.logs import cache
from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction
from lakelog.log import ConflictError, Draft, InvalidInput, LogOptions, NotFound, Unsupported

Client = Callable[[], Catalog]
SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.int64())])


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [i for i, _ in pairs], "amount": [a for _, a in pairs]}, schema=SCHEMA)


def total(catalog: CatalogNames, *names: str) -> int:
    return sum(sum(catalog.load_table(name).to_arrow()["amount"].to_pylist()) for name in names)


@pytest.fixture
def bank(catalog: Catalog) -> Catalog:
    catalog.create_namespace("bank")
    for name in ("savings", "checking"):
        catalog.create_table(f"bank.{name}", SCHEMA).append(rows((1, 100)))
    return catalog


def test_what_a_transaction_does_appears_at_once_and_only_when_it_commits(
    bank: Catalog, client: Client
) -> None:
    other_catalog = client()
    with bank.transaction() as tx:
        tx.load_table("bank.savings").append(rows((2, -30)))
        tx.load_table("bank.checking").append(rows((2, 30)))
        assert total(tx, "bank.savings") == 70
        assert total(other_catalog, "bank.savings") == 100
        assert total(bank, "bank.checking") == 100
    assert total(other_catalog, "bank.savings") == 70
    assert total(other_catalog, "bank.checking") == 130
    savings, checking_table = (other_catalog.load_table(f"bank.{name}") for name in ("savings", "checking"))
    assert savings.committed_at == checking_table.committed_at
    assert next(savings.history()).commit_id == next(checking_table.history()).commit_id == tx.commit_id


def test_an_exception_rolls_back_and_nothing_has_happened(bank: Catalog, client: Client) -> None:
    with pytest.raises(ZeroDivisionError), bank.transaction() as tx:
        tx.load_table("bank.savings").append(rows((2, -30)))
        tx.create_table("bank.new", SCHEMA)
        tx.drop_table("bank.checking")
        raise ZeroDivisionError
    other_client = client()
    assert total(other_client, "bank.savings", "bank.checking") == 200
    assert other_client.list_tables("bank") == [("bank", "checking"), ("bank", "savings")]
    with pytest.raises(Unsupported, match="rolled back"):
        tx.load_table("bank.savings")


def test_a_transaction_creates_alters_fills_renames_and_drops(bank: Catalog, client: Client) -> None:
    other_catalog = client()
    with bank.transaction() as tx:
        tx.create_namespace("archive", {"owner": "me"})
        table = tx.create_table("archive.old", SCHEMA).append(rows((1, 1), (2, 2)))
        table = table.alter([{"change": "add-column", "name": ["note"], "type": "string"}])
        table.append(pa.table({"id": [3], "amount": [3], "note": ["x"]}))
        tx.load_table("archive.old").delete(col("id") >= 0)
        tx.load_table("archive.old").append(rows((9, 9)))
        tx.rename_table("bank.savings", "archive.savings")
        tx.drop_table("bank.checking")
        assert tx.list_tables("archive") == [("archive", "old"), ("archive", "savings")]
        assert tx.list_tables("bank") == []
        assert not other_catalog.namespace_exists("archive")
    assert other_catalog.list_tables("archive") == [("archive", "old"), ("archive", "savings")]
    assert other_catalog.list_tables("bank") == []
    assert other_catalog.load_namespace("archive") == {"owner": "me"}
    old = other_catalog.load_table("archive.old")
    assert old.version == 1
    assert old.to_arrow().to_pylist() == [{"id": 9, "amount": 9, "note": None}]
    assert total(other_catalog, "archive.savings") == 100


def test_names_that_were_dropped_and_created_again_in_one_transaction_lead_to_the_new_table(
    bank: Catalog, client: Client
) -> None:
    with bank.transaction() as tx:
        tx.drop_table("bank.savings")
        assert not tx.table_exists("bank.savings")
        tx.create_table("bank.savings", SCHEMA).append(rows((7, 7)))
        tx.create_table("bank.brief", SCHEMA)
        tx.drop_table("bank.brief")
    assert total(client(), "bank.savings") == 7
    assert client().list_tables("bank") == [("bank", "checking"), ("bank", "savings")]
    with pytest.raises(NotFound):
        client().undrop_table("bank.brief")


def test_many_steps_on_one_table_are_one_version(bank: Catalog) -> None:
    version_before = bank.load_table("bank.savings").version
    with bank.transaction() as tx:
        for i in range(5):
            tx.load_table("bank.savings").append(rows((10 + i, i)))
        tx.load_table("bank.savings").alter([{"change": "set-property", "key": "a", "value": "b"}])
        tx.load_table("bank.savings").overwrite(rows((1, 1)))
        tx.load_table("bank.savings").append(rows((2, 2)))
    table_after = bank.load_table("bank.savings")
    assert table_after.version == version_before + 1
    assert sorted(table_after.to_arrow()["id"].to_pylist()) == [1, 2]
    assert table_after.properties == {"a": "b"}


def test_bulk_in_several_steps_keeps_its_sidecars_apart(bank: Catalog, client: Client) -> None:
    schema = pa.schema([("p", pa.int64()), ("v", pa.int64())])
    bank.create_table("bank.wide", schema, partition_by=["p"])
    many = pa.table({"p": list(range(250)), "v": [1] * 250}, schema=schema)
    with bank.transaction() as tx:
        tx.load_table("bank.wide").append(many)
        tx.load_table("bank.wide").delete(col("p") < 100)
        tx.load_table("bank.wide").append(many.slice(0, 220))
        assert tx.load_table("bank.wide").row_count == 370
    assert client().load_table("bank.wide").row_count == 370
    assert sum(client().load_table("bank.wide").to_arrow()["v"].to_pylist()) == 370


def test_appends_rebase_over_what_others_appended_meanwhile(bank: Catalog, client: Client) -> None:
    other_catalog = client()
    with bank.transaction() as tx:
        tx.load_table("bank.savings").append(rows((2, 1)))
        tx.load_table("bank.checking").append(rows((2, 1)))
        other_catalog.load_table("bank.savings").append(rows((3, 1000)))
        assert total(tx, "bank.savings") == 101
    assert total(other_catalog, "bank.savings") == 1101
    assert total(other_catalog, "bank.checking") == 101


def test_a_conflict_in_one_table_undoes_all_and_says_whose(bank: Catalog, client: Client) -> None:
    other_catalog = client()
    tx = bank.begin()
    tx.load_table("bank.checking").append(rows((2, 50)))
    tx.load_table("bank.savings").overwrite(rows((1, 50)))
    other_catalog.load_table("bank.savings").append(rows((3, 1000)))
    with pytest.raises(
        CommitConflict, match=r"overwrite of .*savings.* conflicts with version 3.*by engine=test"
    ):
        tx.commit()
    assert total(other_catalog, "bank.checking") == 100
    assert total(other_catalog, "bank.savings") == 1100
    assert not tx.is_open
    with pytest.raises(Unsupported, match="not committed"):
        tx.commit()


def test_a_table_dropped_meanwhile_fails_the_transaction(bank: Catalog, client: Client) -> None:
    tx = bank.begin()
    tx.load_table("bank.checking").append(rows((2, 50)))
    tx.load_table("bank.savings").append(rows((2, -50)))
    client().drop_table("bank.savings")
    with pytest.raises((ConflictError, NoSuchTable)):
        tx.commit()
    assert total(bank, "bank.checking") == 100


def test_a_name_taken_meanwhile_fails_the_transaction(bank: Catalog, client: Client) -> None:
    tx = bank.begin()
    tx.create_table("bank.new", SCHEMA)
    tx.load_table("bank.savings").append(rows((2, 50)))
    client().create_table("bank.new", SCHEMA)
    with pytest.raises(TableExists):
        tx.commit()
    assert total(bank, "bank.savings") == 100
    tx = bank.begin()
    tx.create_namespace("n")
    client().create_namespace("n")
    with pytest.raises(NamespaceExists):
        tx.commit()


def test_all_reads_are_of_one_moment(bank: Catalog, client: Client) -> None:
    other_catalog = client()
    tx = bank.begin()
    assert total(tx, "bank.savings") == 100
    with other_catalog.transaction() as theirs:
        theirs.load_table("bank.savings").append(rows((2, -30)))
        theirs.load_table("bank.checking").append(rows((2, 30)))
    other_catalog.load_table("bank.checking").append(rows((3, 5)))
    assert total(tx, "bank.savings", "bank.checking") == 200
    tx.rollback()
    assert total(bank, "bank.savings", "bank.checking") == 205


def test_a_table_moved_between_two_namespaces_is_seen_in_exactly_one(bank: Catalog, client: Client) -> None:
    bank.create_namespace("other")
    tx = client().begin()
    tables_before = tx.list_tables("other")
    bank.rename_table("bank.savings", "other.savings")
    assert tables_before + tx.list_tables("bank") == [("bank", "checking"), ("bank", "savings")]
    tx.rollback()


def test_a_statement_that_fails_leaves_the_rest_of_the_transaction_as_it_was(
    bank: Catalog, client: Client
) -> None:
    with bank.transaction() as tx:
        tx.load_table("bank.savings").append(rows((2, 1)))
        with pytest.raises(TableExists):
            tx.create_table("bank.savings", SCHEMA)
        with pytest.raises(InvalidInput):
            tx.load_table("bank.savings").append(pa.table({"nothing": [1]}))
        with pytest.raises(NoSuchTable):
            tx.rename_table("bank.no", "bank.yes")
        with pytest.raises(TableExists):
            tx.rename_table("bank.savings", "bank.checking")
    assert total(client(), "bank.savings") == 101


def test_serializable_fails_when_what_was_read_has_changed(bank: Catalog, client: Client) -> None:
    def skewed(isolation: str) -> None:
        transaction, two = bank.begin(isolation), client().begin(isolation)
        assert total(transaction, "bank.savings", "bank.checking") >= 0
        assert total(two, "bank.savings", "bank.checking") >= 0
        transaction.load_table("bank.savings").append(rows((5, -10)))
        two.load_table("bank.checking").append(rows((5, -10)))
        transaction.commit()
        two.commit()

    skewed("snapshot")
    with pytest.raises(CommitConflict, match=r"serializable transaction read .* other rows now"):
        skewed("serializable")


def test_serializable_looks_at_the_rows_that_were_read_only(bank: Catalog, client: Client) -> None:
    def read_some(other_id: int) -> None:
        with bank.transaction("serializable") as tx:
            tx.load_table("bank.savings").scan(filter=col("id") < 1000).to_arrow()
            tx.load_table("bank.checking").append(rows((5, 1)))
            client().load_table("bank.savings").append(rows((other_id, 1)))

    read_some(5000)
    with pytest.raises(CommitConflict):
        read_some(500)


def test_serializable_is_a_property_of_tables_too(bank: Catalog, client: Client) -> None:
    bank.load_table("bank.savings").alter(
        [{"change": "set-property", "key": "lakelog.isolation", "value": "serializable"}]
    )
    with pytest.raises(CommitConflict), bank.transaction() as tx:
        total(tx, "bank.savings")
        tx.load_table("bank.checking").append(rows((5, 1)))
        client().load_table("bank.savings").append(rows((6, 1)))
    with pytest.raises(InvalidInput, match="isolation"):
        bank.begin("read-committed")


def test_serializable_sees_names_that_appeared(bank: Catalog, client: Client) -> None:
    with pytest.raises(CommitConflict), bank.transaction("serializable") as tx:
        assert not tx.table_exists("bank.new")
        tx.load_table("bank.checking").append(rows((5, 1)))
        client().create_table("bank.new", SCHEMA)


def test_a_transaction_that_changes_nothing_writes_nothing(bank: Catalog) -> None:
    versions_before = {name: bank.load_table(f"bank.{name}").version for name in ("savings", "checking")}
    with bank.transaction("serializable") as tx:
        total(tx, "bank.savings", "bank.checking")
    assert versions_before == {
        name: bank.load_table(f"bank.{name}").version for name in ("savings", "checking")
    }


def test_transactions_do_not_nest_and_refuse_what_they_cannot_do(bank: Catalog, tmp_path: object) -> None:
    with bank.transaction() as tx:
        with pytest.raises(Unsupported, match="within another"):
            tx.begin()
        with pytest.raises(Unsupported, match="without a name"):
            engine.commit_stage(tx, engine.stage(tx, "create", None, SCHEMA, location=f"{tmp_path}/place"))


def test_each_log_of_a_transaction_says_which_statements_changed_it(bank: Catalog, client: Client) -> None:
    with bank.transaction() as tx:
        for number, name in enumerate(("bank.savings", "bank.checking", "bank.savings")):
            with engine.writing_as({"statement": f"INSERT {number}", "query": str(number)}):
                tx.load_table(name).append(rows((9, number)))
        with engine.writing_as({"statement": "CREATE"}):
            tx.create_table("bank.new", SCHEMA)
    writers = {
        name: next(client().load_table(f"bank.{name}").history()).writer for name in ("savings", "new")
    }
    assert writers["savings"] == {"engine": "test", "statement": "INSERT 0; INSERT 2", "query": "2"}
    assert writers["new"] == {"engine": "test", "statement": "CREATE"}
    assert next(client().history("bank")).writer == {"engine": "test", "statement": "CREATE"}
    bank.load_table("bank.savings").append(rows((1, 1)))
    assert next(client().load_table("bank.savings").history()).writer == {"engine": "test"}


def test_steps_of_several_threads_in_one_transaction_are_all_there(bank: Catalog, client: Client) -> None:
    with bank.transaction() as tx, ThreadPoolExecutor(4) as pool:
        works = [
            pool.submit(lambda n: tx.load_table("bank.savings").append(rows((n, 1))), n) for n in range(20)
        ]
        for work in works:
            work.result()
        assert tx.load_table("bank.savings").row_count == 21
    assert client().load_table("bank.savings").row_count == 21


@pytest.mark.parametrize(("isolation", "attempts"), [("snapshot", 1), ("serializable", 2)])
def test_only_a_serializable_reader_does_not_pass_over_what_is_about_to_be_decided(
    warehouse: str, isolation: str, attempts: int
) -> None:
    """Else it could see what follows from a transaction, in a table that this one read, and not the transaction."""
    catalog = Catalog(warehouse, log_options=LogOptions(sleep_s=lambda seconds: None))
    for name in ("a", "b"):
        catalog.create_table(name, SCHEMA)
    reader = Catalog(warehouse, log_options=LogOptions(sleep_s=lambda seconds: None))
    seen_numbers: list[int] = []

    def read_meanwhile() -> None:
        if not seen_numbers:
            with reader.begin(isolation) as tx:
                seen_numbers.append(total(tx, "a", "b"))
        else:
            seen_numbers.append(-1)

    logs = catalog._logs
    changes = []
    for name in ("a", "b"):
        table = catalog.load_table(name)
        decide = Draft(events=({"event": "table-altered", "set": {"k": "v"}},))
        changes.append(
            JointLogChange(
                table.table_head.tracked,
                table.table_head.view,
                lambda view, passed, draft=decide: draft,  # type: ignore[misc]
            )
        )
    logs.commit_together(changes, validate=read_meanwhile)
    assert len(seen_numbers) == attempts
    assert seen_numbers[0] == 0
    assert catalog.load_table("a").properties == {"k": "v"}


def test_what_was_read_in_one_round_is_checked_before_the_next_question(
    bank: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace was read before another transaction, the table after it, both for the first question."""
    reader, other_catalog = client(), client()
    reader.load_table("bank.savings")
    refresh = cache.refresh_many  # type: ignore[attr-defined]
    late: list[bool] = []

    def one_after_another(pairs: Any) -> list[Any]:
        views = []
        for number, pair in enumerate(pairs):
            views += refresh([pair])
            if len(pairs) == 3 and number == 1 and not late:
                late.append(True)
                with other_catalog.transaction() as tx:
                    tx.create_table("bank.new", SCHEMA)
                    tx.load_table("bank.savings").append(rows((2, 1)))
        return views

    monkeypatch.setattr(cache, "refresh_many", one_after_another)
    tx = reader.begin()
    assert total(tx, "bank.savings") == 101
    with pytest.raises(CommitConflict, match="one moment"):
        tx.table_exists("bank.new")


def test_a_serializable_reader_that_fits_into_no_order_fails_at_its_end(
    bank: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deposit into savings reads checking, a transfer changes checking before the deposit is decided."""
    bank.create_table("bank.cash", SCHEMA).append(rows((1, 100)))
    reader = client().begin("serializable")
    assert total(reader, "bank.savings") == 100
    deposit = client().begin("serializable")
    assert total(deposit, "bank.savings", "bank.checking") == 200
    deposit.load_table("bank.savings").append(rows((2, 15)))
    validate, transfers = Transaction._validate_read, list[Transaction]()

    def overtaken(transaction: Transaction, read: Any) -> None:
        validate(transaction, read)
        if not transfers:
            transfers.append(client().begin("serializable"))
            for name, amount in (("bank.checking", 20), ("bank.cash", -20)):
                assert total(transfers[0], name) == 100
                transfers[0].load_table(name).append(rows((2, amount)))
            transfers[0].commit()

    monkeypatch.setattr(Transaction, "_validate_read", overtaken)
    deposit.commit()
    # The deposit comes first, as it read what the transfer changed, but the transfer has the earlier time.
    assert [total(reader, "bank.checking"), total(reader, "bank.cash")] == [120, 80]
    with pytest.raises(CommitConflict, match="savings.* has other rows now"):
        reader.commit()
    late = client().begin("serializable")
    assert total(late, "bank.savings", "bank.checking", "bank.cash") == 315
    late.commit()


def test_a_serializable_reader_of_what_stayed_the_same_succeeds(bank: Catalog, client: Client) -> None:
    with bank.transaction("serializable") as reader:
        assert total(reader, "bank.savings") == 100
        client().load_table("bank.checking").append(rows((2, 1)))
        assert total(reader, "bank.checking") == 101
    with bank.transaction("serializable") as reader:
        assert total(reader, "bank.savings") == 100
        client().create_table("bank.another", SCHEMA)
        assert total(reader, "bank.checking") == 101
