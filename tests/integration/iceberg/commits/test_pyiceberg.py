"""Pyiceberg writes through the REST catalog, as a user would, and lakelog has the same rows and a clean log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.readers import by_duckdb
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog, Severity
from lakelog.catalog.engine.exports import iceberg_metadata

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "w")


@pytest.fixture
def lake(warehouse: str) -> Iterator[Any]:
    """Return a pyiceberg catalog of the warehouse, with the namespace `ns`."""
    with served(warehouse, writes=True) as url:
        catalog = opened(url)
        catalog.create_namespace("ns", {"owner": "me"})
        yield catalog


def opened(url: str) -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=url)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


def check_clean(catalog: Catalog) -> None:
    """Check the logs. Files that no version names are noted: clients leave those of steps between."""
    assert [finding for finding in catalog.fsck().found if finding.severity is not Severity.NOTE] == []


def check_same(table: Any, warehouse: str, name: str = "ns.t") -> None:
    """Compare what pyiceberg and lakelog read, and check the log."""
    catalog = Catalog(warehouse)
    assert rows_of(table.refresh()) == rows_of(catalog.load_table(name))
    check_clean(catalog)


def test_rows_are_appended_overwritten_deleted_and_upserted(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema, properties={"owner": "you"})
    assert table.properties["owner"] == "you" and table.format_version == 2
    table.append(ROWS, snapshot_properties={"job": "7"})
    snapshot = table.current_snapshot()
    assert snapshot.summary["job"] == "7" and snapshot.summary["total-records"] == "3"
    check_same(table, warehouse)
    table.delete("id = 2")
    assert rows_of(table) == [{"id": 1, "s": "a"}, {"id": 3, "s": "c"}]
    check_same(table, warehouse)
    table.overwrite(pa.table({"id": pa.array([9], pa.int64()), "s": ["z"]}), overwrite_filter="id = 3")
    assert rows_of(table) == [{"id": 1, "s": "a"}, {"id": 9, "s": "z"}]
    ids_done = table.upsert(
        pa.table({"id": pa.array([9, 10], pa.int64()), "s": ["Z", "y"]}), join_cols=["id"]
    )
    assert (ids_done.rows_updated, ids_done.rows_inserted) == (1, 1)
    check_same(table, warehouse)
    history = list(Catalog(warehouse).load_table("ns.t").history())
    assert [entry.operation for entry in history[::-1]] == [
        "create",
        "append",
        "overwrite",
        "overwrite",
        "overwrite",
    ]
    assert {entry.writer["engine"] for entry in history} == {history[0].writer["engine"]}
    assert str(history[0].writer["engine"]).startswith("PyIceberg/")
    # An older snapshot is found by the id that its client gave it.
    assert table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == 3


def test_a_commit_without_files_leaves_its_snapshot(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema)
    table.append(ROWS.slice(0, 0))
    assert table.current_snapshot() is not None and rows_of(table) == []
    table.append(ROWS)
    table.append(ROWS.slice(0, 0))
    assert len(table.metadata.snapshots) == 3
    check_same(table, warehouse)


def test_columns_evolve_and_old_rows_stay_readable(lake: Any, warehouse: str) -> None:
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType

    rows = pa.table(
        {"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int32()), "gone": ["x", "y"]}
    )
    table = lake.create_table("ns.t", schema=rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        update.add_column("at", StructType(NestedField(1, "x", IntegerType(), required=False)), doc="a place")
        update.rename_column("id", "key")
        update.update_column("n", LongType())
        update.delete_column("gone")
        update.move_first("n")
    with table.update_schema() as update:
        update.add_column("gone", StringType())
        update.add_column(("at", "y"), StringType())
    table.append(
        pa.table(
            {
                "n": pa.array([1 << 40], pa.int64()),
                "key": pa.array([3], pa.int64()),
                "at": [{"x": 1, "y": "q"}],
                "gone": ["new"],
            },
            schema=table.schema().as_arrow(),
        )
    )
    table.refresh()
    assert sorted(row["key"] for row in rows_of(table)) == [1, 2, 3]
    check_same(table, warehouse)
    lakelog_table = Catalog(warehouse).load_table("ns.t")
    assert lakelog_table.schema.names == ("n", "key", "at", "gone")
    assert [field.id for field in lakelog_table.schema.fields] == [
        field.field_id for field in table.schema().fields
    ]
    assert lakelog_table.schema.find(("at",)).comment == "a place"
    # Lakelog's own rows and files are the same for both.
    place = pa.array([{"x": 2, "y": "r"}], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    lakelog_table.append(pa.table({"n": [5], "key": [6], "at": place, "gone": ["z"]}))
    check_same(table, warehouse)
    table.delete("key = 6")
    check_same(table, warehouse)


def test_partitionings_evolve_and_files_of_each_are_found(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema)
    table.append(ROWS)
    with table.update_spec() as update:
        update.add_identity("s")
    table.append(ROWS)
    with table.update_spec() as update:
        update.remove_field("s")
        update.add_identity("id")
    table.append(ROWS)
    table.delete("s = 'b'")
    table.overwrite(pa.table({"id": pa.array([1], pa.int64()), "s": ["new"]}), overwrite_filter="id = 1")
    assert len(rows_of(table)) == 4
    check_same(table, warehouse)
    lakelog_table = Catalog(warehouse).load_table("ns.t")
    assert len(lakelog_table.specs) == 3 and [field.name for field in lakelog_table.spec.fields] == ["id"]
    assert lakelog_table.scan(filter="id = 3").to_arrow().num_rows == 3


def test_a_transaction_of_a_table_is_one_version(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema)
    with table.transaction() as change:
        change.set_properties(owner="them")
        change.append(ROWS)
        change.delete("id = 1")
    assert Catalog(warehouse).load_table("ns.t").version == 2
    assert [row["id"] for row in rows_of(table)] == [2, 3]
    check_same(table, warehouse)
    assert table.properties["owner"] == "them"


def test_a_staged_creation_appears_with_its_rows(lake: Any, warehouse: str) -> None:
    creation = lake.create_table_transaction("ns.t", schema=ROWS.schema, properties={"owner": "me"})
    assert lake.list_tables("ns") == []
    creation.append(ROWS)
    creation.commit_transaction()
    table = lake.load_table("ns.t")
    assert rows_of(table) == ROWS.to_pylist() and table.properties["owner"] == "me"
    assert Catalog(warehouse).load_table("ns.t").version == 1
    check_same(table, warehouse)
    late = lake.create_table_transaction("ns.u", schema=ROWS.schema)
    lake.create_table("ns.u", schema=ROWS.schema)
    with pytest.raises(Exception, match="there is a table `ns`.`u` already"):
        late.commit_transaction()


def test_properties_names_and_drops(lake: Any, warehouse: str) -> None:
    from pyiceberg.exceptions import (
        NamespaceAlreadyExistsError,
        NamespaceNotEmptyError,
        TableAlreadyExistsError,
    )

    with pytest.raises(NamespaceAlreadyExistsError):
        lake.create_namespace("ns")
    summary = lake.update_namespace_properties(
        "ns", removals={"owner", "none"}, updates={"comment": "of tea"}
    )
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["comment"], ["none"])
    assert lake.load_namespace_properties("ns") == {"comment": "of tea"}
    lake.create_namespace(("ns", "below"))
    table = lake.create_table("ns.t", schema=ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table("ns.t", schema=ROWS.schema)
    with pytest.raises(NamespaceNotEmptyError):
        lake.drop_namespace("ns")
    with table.transaction() as change:
        change.set_properties(**{"owner": "me", "comment": "rows"})
    with table.transaction() as change:
        change.remove_properties("owner")
    assert table.properties["comment"] == "rows" and "owner" not in table.properties
    assert Catalog(warehouse).load_table("ns.t").comment == "rows"
    lake.rename_table("ns.t", ("ns", "below", "u"))
    assert lake.list_tables(("ns", "below")) == [("ns", "below", "u")]
    lake.drop_table(("ns", "below", "u"))
    assert Catalog(warehouse).undrop_table(("ns", "below", "u")) == ("ns", "below", "u")
    lake.purge_table(("ns", "below", "u"))
    lake.drop_namespace(("ns", "below"))
    lake.drop_namespace("ns")
    assert lake.list_namespaces() == []
    check_clean(Catalog(warehouse))


def test_tags_branches_and_rollbacks_show_the_snapshots_that_were_named(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema)
    table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    second = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "old").create_branch(second, "b").commit()
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == {
        "main": second,
        "old": first,
        "b": second,
    }
    table.append(ROWS.slice(0, 1), branch="b")
    assert table.scan(snapshot_id=table.metadata.refs["b"].snapshot_id).to_arrow().num_rows == 7
    assert Catalog(warehouse).load_table("ns.t", ref="b").scan().to_arrow().num_rows == 7
    assert Catalog(warehouse).load_table("ns.t", ref="old").scan().to_arrow().num_rows == 3
    check_same(table, warehouse)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert table.current_snapshot().snapshot_id == first and rows_of(table) == ROWS.to_pylist()
    check_same(table, warehouse)
    table.append(ROWS.slice(0, 1))
    assert table.current_snapshot().parent_snapshot_id == first
    check_same(table, warehouse)
    table.manage_snapshots().remove_tag("old").remove_branch("b").commit()
    assert list(table.refresh().metadata.refs) == ["main"]
    check_same(table, warehouse)


def test_of_two_racing_writers_none_is_lost_or_doubled(lake: Any, warehouse: str) -> None:
    from pyiceberg.exceptions import CommitFailedException

    table = lake.create_table("ns.t", schema=ROWS.schema)
    table.append(ROWS.slice(0, 1))
    failures: list[Exception] = []
    ids_done: list[int] = []

    def write(number: int) -> None:
        own = lake.load_table("ns.t")
        for turn in range(5):
            id = 100 * number + turn
            for _ in range(50):
                try:
                    own.append(pa.table({"id": pa.array([id], pa.int64()), "s": ["w"]}))
                    ids_done.append(id)
                    break
                except CommitFailedException:
                    own.refresh()
                except Exception as error:
                    failures.append(error)
                    return

    def write_with_lakelog() -> None:
        catalog = Catalog(warehouse)
        for turn in range(5):
            catalog.load_table("ns.t").append(pa.table({"id": [300 + turn], "s": ["l"]}))
            ids_done.append(300 + turn)

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    threads.append(threading.Thread(target=write_with_lakelog))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(ids_done) == 15
    assert [row["id"] for row in rows_of(Catalog(warehouse).load_table("ns.t"))] == sorted([1, *ids_done])
    check_same(table, warehouse)


def test_lakelog_compacts_and_deletes_rows_of_a_clients_files(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema)
    for number in range(3):
        table.append(pa.table({"id": pa.array([number * 10, number * 10 + 1], pa.int64()), "s": ["a", "b"]}))
    lakelog_table = Catalog(warehouse).load_table("ns.t")
    ids_before = lakelog_table.scan(["id"], row_ids=True).to_arrow().sort_by("id")
    compaction = lakelog_table.compact()
    assert compaction is not None
    lakelog_table = lakelog_table.refresh()
    assert lakelog_table.file_count == 1
    assert lakelog_table.scan(["id"], row_ids=True).to_arrow().sort_by("id") == ids_before
    check_same(table, warehouse)
    table.append(ROWS)
    check_same(table, warehouse)
    # Deleted rows in vectors need version 3 of the format, which pyiceberg reads.
    Catalog(warehouse).load_table("ns.t").delete("id = 2")
    assert table.refresh().format_version == 3
    check_same(table, warehouse)


def test_row_ids_are_those_that_other_readers_see(lake: Any, warehouse: str) -> None:
    table = lake.create_table("ns.t", schema=ROWS.schema, properties={"format-version": "2"})
    table.append(ROWS)
    table.append(ROWS)
    lakelog_table = Catalog(warehouse).load_table("ns.t")
    url, _ = iceberg_metadata(lakelog_table)
    theirs = by_duckdb(url, columns=("id", "_row_id", "_last_updated_sequence_number AS v"))
    ours = lakelog_table.scan(["id"], row_ids=True).to_arrow()
    assert sorted(map(tuple, (row.values() for row in theirs.to_pylist()))) == sorted(
        map(tuple, (row.values() for row in ours.to_pylist()))
    )
