"""What a catalog knows of its logs is gone with it: no cycle keeps it until the interpreter looks for cycles."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.log.background import wait_for_background

Client = Callable[[], Catalog]


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def change(catalog: Catalog) -> None:
    table = catalog.load_table("n.t")
    table.append(rows(1, 2))
    table.delete("id = 1")


def read(catalog: Catalog) -> None:
    table = catalog.load_table("n.t")
    assert table.plan("id > 2").num_rows
    assert table.scan(filter="id > 2").to_arrow().num_rows
    assert len(list(table.history())) == 2 and table.at(version=1).row_count == 0


def commit(catalog: Catalog) -> None:
    with catalog.transaction("serializable") as tx:
        assert tx.load_table("n.t").to_arrow().num_rows
        tx.load_table("n.t").append(rows(3))
        tx.create_table("n.u", SCHEMA).append(rows(3))


def give_up(catalog: Catalog) -> None:
    tx = catalog.begin()
    tx.load_table("n.t").append(rows(3))
    tx.rollback()


def export(catalog: Catalog) -> None:
    catalog.load_table("n.t").alter(
        [{"change": "set-property", "key": "lakelog.iceberg", "value": "on"}]
    ).append(rows(4))
    wait_for_background()


def look_back(catalog: Catalog) -> None:
    catalog.save_cut("then")
    past = Catalog(catalog.warehouse, as_of="then")
    assert past.load_table("n.t").to_arrow().num_rows


@pytest.mark.parametrize("use", [change, read, commit, give_up, export, look_back])
def test_a_catalog_that_is_dropped_releases_all_that_it_knows(
    client: Client, use: Callable[[Catalog], None]
) -> None:
    first = client()
    first.create_namespace("n")
    first.create_table("n.t", SCHEMA).append(rows(3, 4))
    catalog = client()
    use(catalog)
    logs = catalog._logs
    known_catalogs = [catalog, logs, *logs._namespaces.values(), *logs._tables.values()]
    sets = [log.known.state.files for log in logs._tables.values() if log.known]
    files = [table for each in sets for table in each._tables or (each._narrow and each._narrow.tables) or ()]
    assert len(known_catalogs) > 4 and (files or use is not read)
    wait_for_background()
    remaining_refs = [weakref.ref(each) for each in (*known_catalogs, *files)]
    del catalog, logs, known_catalogs, sets, files
    assert [each_ref for each_ref in (ref() for ref in remaining_refs) if each_ref is not None] == []
