"""Whether one line may become another: not if rows are lost, whatever a branch was made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.catalog.conftest import rows
from tests.integration.catalog.writes.test_refs import ids, row_ids, sound

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.errors import CommitConflict, NoSuchRef
from lakelog.log import LogOptions, wait_for_background
from lakelog.log.errors import InvalidInput

Client = Callable[[], Catalog]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", rows().schema).append(rows(1))


def with_tag_of_a_branch(table: Table) -> Table:
    """Make the branch x of main, with a row 2, the tag g of that, and add 3 to x."""
    x = table.create_branch("x").at(ref="x").append(rows(2))
    x.create_tag("g")
    return x.refresh().append(rows(3)).at(ref="main")


def refused(table: Table, branch: str, to: str, why: str) -> None:
    ids_before = {name: ids(table.at(ref=name)) for name in ("main", *table.refs)}
    with pytest.raises(InvalidInput, match=f"{branch} of .* cannot be fast-forwarded to {to}: {why}"):
        table.fast_forward(branch, to)
    current_table = table.refresh()
    assert {name: ids(current_table.at(ref=name)) for name in ("main", *current_table.refs)} == ids_before


def test_a_line_that_has_all_changes_of_another_stays_as_it_is_whatever_was_done_to_it(table: Table) -> None:
    """As a merge in Git that is up to date: even if it has lost rows that the other one still shows."""
    new_table = table.create_branch("b").append(rows(2)).delete(col("id") <= 2)
    finished_table = new_table.fast_forward("main", "b")
    assert (finished_table.version, ids(finished_table), ids(finished_table.at(ref="b"))) == (
        new_table.version,
        [],
        [1],
    )
    # The other way there is something to be had.
    assert ids(finished_table.fast_forward("b", "main").at(ref="b")) == []


def test_a_branch_of_a_tag_of_another_one_keeps_its_rows(table: Table, client: Client) -> None:
    new_table = with_tag_of_a_branch(table).at(ref="g").create_branch("y")
    assert ids(new_table.at(ref="y")) == [1, 2]
    refused(new_table, "y", "main", "it is not known that main ever had all of it")
    # The tag's line has it.
    assert ids(new_table.fast_forward("y", "x").at(ref="y")) == [1, 2, 3]
    sound(client)


def test_a_branch_of_a_tag_of_a_branch_that_is_gone_keeps_its_rows(table: Table, client: Client) -> None:
    new_table = with_tag_of_a_branch(table).drop_branch("x").at(ref="g").create_branch("y").drop_tag("g")
    new_table = new_table.append(rows(4))
    refused(new_table, "y", "main", "it is not known that main ever had all of it")
    refused(new_table, "main", "y", "it is not known that y ever had all of it")
    assert ids(engine.replace_branch(new_table, "y").at(ref="y")) == [1, 4]
    sound(client)


def test_a_branch_of_the_past_of_one_that_is_gone_keeps_its_rows(table: Table, client: Client) -> None:
    x = with_tag_of_a_branch(table).at(ref="x")
    current_table = x.drop_branch("x").append(rows(4))
    new_table = current_table.at(version=x.version, ref="x").create_branch("y")
    refused(new_table, "y", "main", "it is not known that")
    # One of another name and id, in the place of the one before.
    again = new_table.create_branch("x").at(version=x.version, ref="x").create_branch("z")
    refused(again, "z", "x", "it is not known that")
    refused(again, "z", "main", "it is not known that")
    sound(client)


def test_a_tag_of_a_tag_is_of_the_same_line(table: Table, client: Client) -> None:
    of_x = with_tag_of_a_branch(table).at(ref="g").create_tag("h").at(ref="h").create_branch("y")
    refused(of_x, "y", "main", "it is not known that")
    removed_table = (
        of_x.drop_branch("y").drop_branch("x").at(ref="h").create_tag("i").at(ref="i").create_branch("y")
    )
    refused(removed_table, "y", "main", "it is not known that")
    of_main = table.create_tag("j").at(ref="j").create_tag("k").append(rows(5)).at(ref="k").create_branch("z")
    assert ids(of_main.fast_forward("z", "main").at(ref="z")) == [1, 5]
    sound(client)


@pytest.mark.parametrize("every", [1, 100])
def test_a_branch_of_a_tag_of_main_follows_main_though_versions_have_expired(
    warehouse: str, every: int
) -> None:
    catalog = Catalog(warehouse, log_options=LogOptions(snapshot_every_versions=every))
    table = catalog.create_table("t", rows().schema).append(rows(1)).append(rows(2))
    table.create_tag("old", version=2).create_tag("new").append(rows(3))
    wait_for_background()
    catalog.expire("t", retain_last=1, dry_run=False)
    for tag in ("old", "new"):
        other_catalog = Catalog(warehouse)
        new_table = other_catalog.load_table("t", ref=tag).create_branch(f"of_{tag}")
        finished_table = new_table.fast_forward(f"of_{tag}", "main")
        assert ids(finished_table.at(ref=f"of_{tag}")) == [1, 2, 3]


def test_a_branch_that_a_transaction_makes_of_a_tag_keeps_its_rows(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_branch("x").at(ref="x").append(rows(2))
    with catalog.transaction() as tx:
        tx.load_table("t", ref="x").create_tag("g")
        tx.load_table("t").drop_branch("x")
        tx.load_table("t", ref="g").create_branch("y")
        with pytest.raises(InvalidInput, match="it is not known that"):
            tx.load_table("t").fast_forward("y", "main")
    refused(client().load_table("t"), "y", "main", "it is not known that")
    assert ids(client().load_table("t", ref="y")) == [1, 2]
    sound(client)


def test_what_a_transaction_makes_of_its_own_tag_has_what_the_tag_gets_by_its_commit(
    catalog: Catalog, table: Table, client: Client
) -> None:
    with catalog.transaction() as tx:
        tx.load_table("t").append(rows(2)).create_tag("g").delete(col("id") == 2)
        tagged_table = tx.load_table("t", ref="g")
        tagged_table.create_branch("y")
        tagged_table.create_tag("h")
        client().load_table("t").append(rows(3))
    current_table = client().load_table("t")
    assert ids(current_table) == [1, 3]
    assert {ref.version for ref in current_table.refs.values()} == {current_table.version}
    assert [row_ids(current_table.at(ref=name)) for name in "ghy"] == 3 * [{1: 0, 2: 2, 3: 1}]
    sound(client)


def test_a_transaction_makes_nothing_of_its_own_tag_once_that_is_gone(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    tx.load_table("t").append(rows(2)).create_tag("g")
    tagged_table = tx.load_table("t", ref="g")
    tx.load_table("t").drop_tag("g")
    with pytest.raises(NoSuchRef):
        tagged_table.create_branch("y")


def test_what_is_the_same_as_main_goes_on_with_main(table: Table) -> None:
    x = table.create_branch("x").at(ref="x")
    new_table = x.drop_branch("x").at(version=x.version, ref="x").create_branch("y")
    assert ids(new_table.append(rows(2)).fast_forward("y", "main").at(ref="y")) == [1, 2]


def test_the_refusal_says_what_to_do(table: Table) -> None:
    new_table = table.create_branch("b").append(rows(2)).at(ref="b").append(rows(3))
    with pytest.raises(
        InvalidInput, match="was changed since b had all of it.* write the rows that only b has to main$"
    ):
        new_table.fast_forward("main", "b")
    with pytest.raises(InvalidInput, match="or replace the branch b by one created from main$"):
        new_table.fast_forward("b", "main")


# Branches that others have made anew meanwhile


def test_a_transaction_makes_nothing_of_another_branch_of_the_same_name(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_branch("x").at(ref="x").append(rows(2))
    for kind in ("branch", "tag"):
        tx = catalog.begin()
        x = tx.load_table("t", ref="x")
        new_table = x.create_branch("y") if kind == "branch" else x.create_tag("y")
        assert ids(new_table.at(ref="y")) == [1, 2]
        client().load_table("t").create_branch("x", replace=True).at(ref="x").append(rows(9))
        with pytest.raises(NoSuchRef, match="x was dropped or replaced"):
            tx.commit()
        assert "y" not in client().load_table("t").refs
        client().load_table("t").create_branch("x", replace=True).at(ref="x").append(rows(2))


def test_a_transaction_neither_joins_nor_drops_another_branch_of_the_same_name(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_branch("x").at(ref="x").append(rows(2))
    joining_transaction, dropping_transaction = catalog.begin(), client().begin()
    joining_transaction.load_table("t").fast_forward("main", "x")
    dropping_transaction.load_table("t").drop_branch("x")
    client().load_table("t").create_branch("x", replace=True).at(ref="x").append(rows(9))
    for tx in (joining_transaction, dropping_transaction):
        with pytest.raises(CommitConflict, match="x of .* was created, dropped or replaced"):
            tx.commit()
    current_table = client().load_table("t")
    assert (ids(current_table), ids(current_table.at(ref="x"))) == ([1], [1, 9])


@pytest.mark.parametrize("was_there", [True, False])
def test_a_transaction_replaces_no_other_branch_than_it_has_seen(
    catalog: Catalog, table: Table, client: Client, was_there: bool
) -> None:
    if was_there:
        table.create_branch("x").at(ref="x").append(rows(2))
    tx = catalog.begin()
    tx.load_table("t").create_branch("x", replace=True)
    client().load_table("t").create_branch("x", replace=True).at(ref="x").append(rows(9))
    with pytest.raises(CommitConflict, match="x of .* was created, dropped or replaced"):
        tx.commit()
    assert ids(client().load_table("t", ref="x")) == [1, 9]
    # By itself, it replaces whatever there is.
    assert ids(catalog.load_table("t").create_branch("x", replace=True).at(ref="x")) == [1]


def test_a_transaction_drops_and_joins_what_others_have_changed_only(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_branch("z").create_branch("x").at(ref="x").append(rows(3))
    tx = catalog.begin()
    tx.load_table("t").fast_forward("main", "x")
    tx.load_table("t").drop_branch("z")
    for name in ("x", "z"):
        client().load_table("t", ref=name).append(rows(2))
    tx.commit()
    current_table = client().load_table("t")
    assert (ids(current_table), list(current_table.refs)) == ([1, 2, 3], ["x"])
