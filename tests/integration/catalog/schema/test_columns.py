"""Clustering and generated columns, from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, NoSuchColumn, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.log.errors import InvalidInput, Unsupported

Client = Callable[[], Catalog]


def generated_table(catalog: Catalog, name: str = "t") -> None:
    """A table whose column `plus` is generated from `id`."""
    generated = {"lakelog.generated": {"sql": "id + 1", "columns": ["id"]}}
    fields = [
        {"name": column, "type": "long", "nullable": True, "metadata": metadata}
        for column, metadata in (("id", {}), ("plus", generated), ("other", {}))
    ]
    engine.commit_stage(
        catalog,
        engine.stage(catalog, "create", name, schema_from_spark({"type": "struct", "fields": fields})),
    )


def test_rows_are_sorted_by_the_clustering_before_the_sort_order(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA, cluster_by=["region"], sort_by=["id"])
    mixed_batches = rows(3, 1, region="b").to_batches() + rows(4, 2, region="a").to_batches()
    table = table.append(type(rows()).from_batches(mixed_batches))
    assert client().load_table("t").to_arrow()["id"].to_pylist() == [2, 4, 1, 3]
    assert table.clustering == (("region",),)


def test_clustering_is_changed_and_ended(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA, cluster_by=["region"])
    version_before = table.version
    table = table.alter([{"change": "set-clustering", "columns": [["amount"], ["id"]]}])
    assert table.version == version_before + 1
    assert client().load_table("t").clustering == (("amount",), ("id",))
    assert client().load_table("t").at(version=version_before).clustering == (("region",),)
    assert next(iter(table.history())).operation == "change clustering"
    with pytest.raises(InvalidInput, match="clustered by it"):
        table.alter([{"change": "delete-column", "name": ["amount"]}])
    with pytest.raises(NoSuchColumn):
        table.alter([{"change": "set-clustering", "columns": [["gone"]]}])
    table = table.alter([{"change": "set-clustering", "columns": []}])
    assert table.clustering == ()
    table.alter([{"change": "delete-column", "name": ["amount"]}])


def test_an_append_goes_over_a_change_of_the_clustering(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA)
    client().load_table("t").alter([{"change": "set-clustering", "columns": [["id"]]}])
    assert table.append(rows(1)).clustering == (("id",),)


def test_clustering_comes_back_with_a_rollback_and_goes_with_a_replace(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, cluster_by=["id"])
    replaced_table = engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", SCHEMA))
    assert replaced_table.clustering == ()
    assert replaced_table.rollback_to_version(table.version).clustering == (("id",),)


def test_a_snapshot_remembers_clustering_and_generated_columns(catalog: Catalog, client: Client) -> None:
    generated_table(catalog)
    catalog.load_table("t").alter([{"change": "set-clustering", "columns": [["id"]]}])
    for number in range(40):
        catalog.load_table("t").alter([{"change": "set-property", "key": "k", "value": str(number)}])
    table = client().load_table("t")
    assert table.clustering == (("id",),)
    generated = table.schema.find(["plus"]).generated
    assert generated is not None and (generated.sql, generated.columns) == ("id + 1", ("id",))


@pytest.mark.parametrize(
    "change",
    [
        {"change": "rename-column", "name": ["id"], "new_name": "key"},
        {"change": "delete-column", "name": ["id"]},
        {"change": "update-column-default", "name": ["plus"], "default": {"current": "1"}},
    ],
)
def test_what_a_column_is_generated_from_stays(catalog: Catalog, change: dict[str, object]) -> None:
    generated_table(catalog)
    with pytest.raises(InvalidInput, match="generated from"):
        catalog.load_table("t").alter([change])


def test_both_go_together_in_any_order(catalog: Catalog) -> None:
    generated_table(catalog)
    table = catalog.load_table("t").alter(
        [{"change": "delete-column", "name": ["id"]}, {"change": "delete-column", "name": ["plus"]}]
    )
    assert table.schema.names == ("other",)


def test_python_writes_no_rows_whose_values_it_cannot_compute(catalog: Catalog) -> None:
    generated_table(catalog)
    with pytest.raises(Unsupported, match="write these by INSERT"):
        catalog.load_table("t").append(rows(1).select(["id"]))


def test_files_whose_values_have_not_been_checked_are_not_added(catalog: Catalog, tmp_path: Path) -> None:
    generated_table(catalog)
    values = pa.array([1], pa.int64())
    pq.write_table(pa.table({"id": values, "plus": values, "other": values}), tmp_path / "f.parquet")
    with pytest.raises(Unsupported, match="INSERT INTO … SELECT"):
        catalog.load_table("t").add_files(str(tmp_path))


def test_rows_that_were_written_without_the_column_do_not_meet_it(catalog: Catalog, client: Client) -> None:
    generated_table(catalog)
    first = catalog.load_table("t")
    without = first.alter([{"change": "delete-column", "name": ["plus"]}])
    filled_table = without.append(rows(1).select(["id"]).append_column("other", rows(5)["id"]))
    client().load_table("t").rollback_to_version(first.version)
    with pytest.raises(CommitConflict, match="generated now"):
        without.append(rows(2).select(["id"]).append_column("other", rows(5)["id"]))
    with pytest.raises(InvalidInput, match="generated now"):
        client().load_table("t").set_current_version(filled_table.version)


def test_a_table_that_is_staged_by_hand_needs_the_columns_that_it_names(catalog: Catalog) -> None:
    fields = [
        {
            "name": "a",
            "type": "long",
            "nullable": True,
            "metadata": {"lakelog.generated": {"sql": "b", "columns": ["b"]}},
        }
    ]
    schema = schema_from_spark({"type": "struct", "fields": fields})
    with pytest.raises(InvalidInput, match="generated from b"):
        engine.stage(catalog, "create", "t", schema)
