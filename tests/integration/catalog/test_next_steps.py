"""The advice of errors: each names a call that the user can make, in the words of the user's front."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, InvalidInput, LakelogError, Table, engine


def conflicting(catalog: Catalog) -> Table:
    """Return a handle of a table in which another change has deleted the row 1 since."""
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA).append(rows(1, 2))
    table.delete("id = 1")
    return table


def test_a_conflict_advises_to_load_the_handle_again(catalog: Catalog) -> None:
    table = conflicting(catalog)
    with pytest.raises(CommitConflict, match=r"load the table again, by `table = table.refresh\(\)`"):
        table.update({"amount": 1.0}, "id = 1")
    table = table.refresh()
    table.update({"amount": 1.0}, "id = 1")


@pytest.mark.parametrize("advice", [engine.RUN_STATEMENT, engine.RUN_COMMAND])
def test_another_front_has_its_own_words(catalog: Catalog, advice: str) -> None:
    table = conflicting(catalog)
    with engine.advising(advice), pytest.raises(CommitConflict, match=f"Nothing was changed: {advice}\n"):
        table.update({"amount": 1.0}, "id = 1")


def test_a_transaction_is_run_again(catalog: Catalog) -> None:
    conflicting(catalog)
    transaction = catalog.begin()
    transaction.load_table("shop.orders").update({"amount": 1.0}, "id = 2")
    catalog.load_table("shop.orders").delete("id = 2")
    with pytest.raises(CommitConflict, match="Nothing was changed: run the transaction again\n"):
        transaction.commit()


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda catalog, table: catalog.drop_namespace("shop"), "or give cascade=True"),
        (lambda catalog, table: catalog.create_namespace("shop"), "or give if_not_exists=True"),
        (lambda catalog, table: table.delete("1 = 1"), "write true for all rows"),
        (lambda catalog, table: table.scan(limit="5"), "the limit '5' is not a number of rows"),
        (lambda catalog, table: table.scan(limit=2.5), "the limit 2.5 is not a number of rows"),
        (lambda catalog, table: table.history(limit="5"), "the limit '5' is not a number of changes"),
        (lambda catalog, table: table.changes("1"), "'1' is not a version: give a whole number"),
        (lambda catalog, table: table.changes(1, "2"), "'2' is not a version: give a whole number"),
    ],
)
def test_a_refusal_says_what_to_write(catalog: Catalog, call: Any, advice: str) -> None:
    table = conflicting(catalog)
    with pytest.raises(LakelogError, match=re.escape(advice)):
        call(catalog, table)


def test_a_statement_has_other_words(catalog: Catalog) -> None:
    conflicting(catalog)
    with engine.advising(engine.RUN_STATEMENT):
        with pytest.raises(InvalidInput, match="or use CASCADE"):
            catalog.drop_namespace("shop")
        with pytest.raises(LakelogError, match="or write IF NOT EXISTS"):
            catalog.create_namespace("shop")


def test_a_dry_run_says_that_it_was_one(catalog: Catalog) -> None:
    conflicting(catalog)
    for dry in (catalog.expire(retain_last=1), catalog.vacuum()):
        assert isinstance(dry, list) and repr(dry).startswith("<dry run: nothing was changed")
    assert not repr(catalog.expire(retain_last=1, dry_run=False)).startswith("<dry run")


def test_an_expired_version_is_named_by_its_table(catalog: Catalog) -> None:
    table = conflicting(catalog).refresh()
    catalog.expire("shop.orders", retain_last=1, dry_run=False)
    table = table.refresh()
    for call in (
        lambda: table.at(version=1),
        lambda: catalog.load_table("shop.orders", version=1),
        lambda: table.rollback_to_version(1),
        lambda: table.create_tag("old", 1),
        lambda: table.changes(1, 2),
    ):
        with pytest.raises(LakelogError, match="^version [12] of `shop`.`orders` has expired: versions from"):
            call()
