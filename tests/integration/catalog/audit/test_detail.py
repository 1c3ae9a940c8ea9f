"""The metadata table `detail`: its times as far as they can be known, and what it costs to look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, Observation, Table
from lakelog.log import wait_for_background


def detail(table: Table) -> dict[str, Any]:
    [row] = table.inspect("detail").read_all().to_pylist()
    return dict(row)


def times(table: Table) -> tuple[Any, Any]:
    return detail(table)["created_at"], detail(table)["modified_at"]


def test_the_creation_is_one_request_and_none_once_it_has_expired(warehouse: str) -> None:
    seen_observations: list[Observation] = []

    def requests(catalog: Catalog) -> tuple[int, bool]:
        table = catalog.load_table("t")
        seen_observations.clear()
        # To ask for the columns, as Spark does first, costs nothing.
        assert "created_at" in table.inspect("detail").schema.names
        row = detail(table)
        return sum(observation.request_count for observation in seen_observations), row[
            "created_at"
        ] is not None

    catalog = Catalog(warehouse, observe=seen_observations.append)
    table = catalog.create_table("t", SCHEMA)
    for number in range(20):
        table = table.append(rows(number))
    wait_for_background()
    assert requests(Catalog(warehouse, observe=seen_observations.append)) == (1, True)
    catalog.expire("t", version=3, dry_run=False)
    wait_for_background()
    assert requests(Catalog(warehouse, observe=seen_observations.append)) == (0, False)
    assert detail(catalog.load_table("t").at(version=5))["created_at"] is None


def test_a_table_has_its_own_times_and_none_before_its_transaction_is_committed(
    catalog: Catalog, tmp_path: Path
) -> None:
    with catalog.transaction() as tx:
        table = tx.create_table("t", SCHEMA, location=str(tmp_path / "t")).append(rows(1, 2))
        assert detail(table) | {"total_data_file_size_in_bytes": 0} == {
            "version": 1, "created_at": None, "modified_at": None, "record_count": 2, "file_count": 1,
            "total_data_file_size_in_bytes": 0,
        }  # fmt: skip
    created, modified = times(catalog.load_table("t"))
    assert created == modified is not None
    changed_table = catalog.load_table("t").append(rows(3))
    assert times(changed_table)[0] == created < times(changed_table)[1]
    assert times(changed_table.at(version=1)) == (created, created)
    assert detail(changed_table.at(version=1))["file_count"] == 1
    catalog.drop_table("t")
    again = catalog.create_table("t", SCHEMA, location=str(tmp_path / "t"))
    assert times(again)[0] is None and times(again)[1] > times(changed_table)[1]
