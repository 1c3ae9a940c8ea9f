"""Upkeep, backups and erasures of tables to which clients of Iceberg write."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.integration.iceberg.commits.test_forged_commits import ROWS, Client, is_clean
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog
from lakelog.log.errors import InvalidInput

NOW = dt.timedelta(0)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(str(tmp_path / "w"), writes=True) as url:
        yield Client(url, str(tmp_path / "w"))


def rows(catalog: Catalog, name: str = "ns.t") -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def test_expiry_and_vacuum_keep_what_the_table_and_its_clients_need(client: Client) -> None:
    table = client.lake.load_table("ns.t")
    table.append(ROWS)
    table.delete("id = 2")
    catalog = Catalog(client.warehouse)
    catalog.load_table("ns.t").compact()
    for _ in range(2):
        catalog.expire("ns.t", retain_last=1, dry_run=False, trust_clock=True)
        catalog.vacuum("ns.t", older_than=NOW, dry_run=False, trust_clock=True)
        assert rows(catalog) == [1, 1, 3, 3]
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]
    table.append(ROWS.slice(0, 1))
    assert rows(Catalog(client.warehouse)) == [1, 1, 1, 3, 3]
    assert is_clean(Catalog(client.warehouse))


def test_a_backup_has_the_files_of_clients(client: Client, tmp_path: Path) -> None:
    catalog = Catalog(client.warehouse)
    place = str(tmp_path / "backup")
    catalog.backup(place)
    client.lake.load_table("ns.t").append(ROWS)
    restored = Catalog(str(tmp_path / "again"))
    restored.restore_warehouse(place)
    assert rows(restored) == [1, 2, 3] and is_clean(restored)
    with served(str(tmp_path / "again"), writes=True) as url:
        from pyiceberg.catalog import load_catalog

        load_catalog("lake", type="rest", uri=url).load_table("ns.t").append(ROWS)
    assert rows(Catalog(str(tmp_path / "again"))) == [1, 1, 2, 2, 3, 3]


def test_an_erasure_does_not_say_that_rows_in_objects_of_clients_are_gone(client: Client) -> None:
    catalog = Catalog(client.warehouse)
    with pytest.raises(InvalidInput, match="clients of Iceberg have written"):
        catalog.forget("ns.t", "id = 2", dry_run=False)
    report = catalog.forget("ns.t", "id = 2", dry_run=False, leave_foreign=True)
    assert any("data/" in text and "stays" in text for text in report.left)
    assert any("metadata/" in text and "stays" in text for text in report.left)
    assert rows(Catalog(client.warehouse)) == [1, 3]


def test_a_clone_of_a_clients_table_has_its_rows(client: Client) -> None:
    catalog = Catalog(client.warehouse)
    catalog.clone("ns.t", "ns.clone")
    client.lake.load_table("ns.t").append(ROWS)
    catalog.load_table("ns.clone").append(pa.table({"id": [9], "s": ["x"]}))
    assert rows(Catalog(client.warehouse), "ns.clone") == [1, 2, 3, 9]
    assert is_clean(Catalog(client.warehouse))
