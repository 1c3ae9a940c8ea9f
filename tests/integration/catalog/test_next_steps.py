"""The advice of errors: each names a call that the user can make, in the words of the user's front."""

from __future__ import annotations

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, Table, engine


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
