"""A version of a table with its log and its name: commits on it, and the conflicts that they meet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, Table, Token, col, engine
from lakelog.catalog.core.logs import NothingToDo, OperationFacts
from lakelog.catalog.core.state import OperationKind
from lakelog.catalog.errors import NoSuchTable
from lakelog.log import Draft
from lakelog.log.errors import NotFound


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", SCHEMA, partition_by=["region"]).append(rows(1, 2))


def empty_draft(*_: object) -> Draft:
    return Draft()


def test_it_is_what_the_table_is(table: Table) -> None:
    head = table.table_head
    assert (head.id, head.version, head.name, head.url) == (table.id, 2, "`t`", table.location)
    assert head.at_version(1).state.files.row_count == 0 and head.at_version(2) == head
    with pytest.raises(NotFound, match="has no version 3: its newest is 2"):
        head.at_version(3)


def test_a_commit_on_an_old_version_follows_what_was_committed_since(table: Table) -> None:
    old, newer = table.table_head, table.append(rows(3))
    seen_numbers: list[int] = []

    def decide(view: object, passed: Sequence[object]) -> Draft:
        seen_numbers.append(len(passed))
        return Draft()

    assert old.commit(decide).version == newer.version + 1
    assert seen_numbers == [1]
    assert old.newest_known().version == old.refreshed().version == newer.version + 1


def test_the_same_token_is_the_same_commit(table: Table) -> None:
    token = Token(commit_id="once", bases={table.table_head.tracked.location: 2})
    assert (
        table.table_head.commit(empty_draft, token).version
        == table.table_head.commit(empty_draft, token).version
        == 3
    )


def test_where_there_is_nothing_to_do_the_newest_version_is_returned(table: Table) -> None:
    def decide(*_: object) -> Draft:
        raise NothingToDo("there is nothing to change")

    newer = table.append(rows(3))
    assert table.table_head.commit_or_refresh(decide, None).version == newer.version


def test_a_dropped_table_is_distinguished_from_another_one_at_its_place(
    catalog: Catalog, tmp_path: object
) -> None:
    place = f"{tmp_path}/own"
    old = catalog.create_table("own", SCHEMA, location=place)
    catalog.drop_table("own")
    with pytest.raises(NoSuchTable, match="it was dropped"):
        old.table_head.commit(empty_draft)
    catalog.create_table("own", SCHEMA, location=place)
    for attempt in (lambda: old.table_head.commit(empty_draft), lambda: old.table_head.at_least(1)):
        with pytest.raises(NoSuchTable, match="another one is at its place"):
            attempt()


def test_a_branch_leads_back_to_the_table(table: Table) -> None:
    table = table.create_branch("b")
    on = table.table_head.on("b")
    assert (on.ref, on.ref_id, table.table_head.ref_id) == ("b", table.refs["b"].id, None)
    assert on.whole == table.table_head == table.table_head.whole == on.on("main")
    write = on.begin_write()
    moved_table_head = table.at(ref="b").append(rows(3)).table_head
    assert (moved_table_head.at_write(write).version, moved_table_head.at_write(write).ref) == (
        on.version,
        "b",
    )
    assert len(moved_table_head.files_only_here(on.view)) == 1 and not len(
        on.files_only_here(moved_table_head.view)
    )


def test_a_handle_of_before_an_earlier_step_of_a_transaction_conflicts(
    catalog: Catalog, table: Table
) -> None:
    with catalog.begin() as transaction:
        old = transaction.load_table("t").table_head
        operation_facts = OperationFacts(old.version, old.schema, lambda kind: True)
        old.check_own_steps(OperationKind.OVERWRITE, operation_facts)
        transaction.load_table("t").append(rows(3))
        with pytest.raises(CommitConflict, match="an earlier change in the same transaction"):
            old.check_own_steps(OperationKind.OVERWRITE, operation_facts)
        transaction.rollback()


def test_only_files_that_match_in_part_have_to_be_read(table: Table) -> None:
    table = table.append(rows(3, 4))
    path = set(table.plan(col("id") == 4)["path"].to_pylist())
    assert set(engine.plan_partial(table, col("id") == 4)["path"].to_pylist()) == path
    assert not engine.plan_partial(table, col("id") < 100).num_rows
