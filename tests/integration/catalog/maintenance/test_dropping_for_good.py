"""Drops with purge: nothing is left to restore, however often they are asked for and wherever they are stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.keeping.maintenance import purge
from lakelog.log import NotFound
from lakelog.log.errors import Unsupported

Client = Callable[[], Catalog]


def data_files(catalog: Catalog, location: str) -> list[str]:
    tracked_table = catalog._logs.table(catalog._logs.location(location))
    return [
        key for key in tracked_table.store.list_after(f"{tracked_table.prefix}/") if key.endswith(".parquet")
    ]


def test_nothing_is_left_of_a_purged_table_to_read_or_restore(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, 2))
    assert data_files(catalog, table.location)
    assert catalog.drop_table("a.t", purge=True)
    assert catalog.dropped("a") == []
    assert not client().table_exists("a.t")
    assert data_files(catalog, table.location) == []
    with pytest.raises(NotFound):
        client().undrop_table("a.t", id=table.id)
    assert not catalog.drop_table("a.t", purge=True, missing_ok=True)
    assert client().create_table("a.t", SCHEMA).append(rows(3)).row_count == 1


def test_what_was_dropped_before_under_the_name_stays_restorable(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.drop_table("t")
    catalog.create_table("t", SCHEMA).append(rows(2))
    assert catalog.drop_table("t", purge=True)
    client().undrop_table("t")
    assert client().load_table("t").to_arrow() == rows(1)


@pytest.mark.parametrize("step", ["do", "take_off_the_list"])
def test_a_purge_that_was_stopped_goes_on_when_it_is_retried(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    token = catalog.token("t")

    def stops(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(purge, step, stops)
        with pytest.raises(KeyboardInterrupt):
            catalog.drop_table("t", purge=True, token=token)
    client().create_table("t", SCHEMA).append(rows(7))
    assert len(client().dropped()) == 1
    assert client().drop_table("t", purge=True, token=token)
    assert client().dropped() == []
    assert data_files(catalog, table.location) == []
    assert client().load_table("t").to_arrow() == rows(7)


def test_a_purge_is_refused_where_it_would_take_something_from_others(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.save_cut("then")
    with pytest.raises(Unsupported, match="saved cut"):
        catalog.drop_table("t", purge=True)
    assert catalog.load_table("t").row_count == 1
    catalog.drop_cut("then")
    with catalog.transaction() as transaction, pytest.raises(Unsupported, match="transaction"):
        transaction.drop_table("t", purge=True)
    assert catalog.drop_table("t", purge=True)


def test_a_catalog_as_of_the_past_says_that_it_is_read_only(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA)
    catalog.save_cut("then")
    with pytest.raises(Unsupported, match="read-only"):
        Catalog(catalog.warehouse, as_of="then").drop_table("t", purge=True)
