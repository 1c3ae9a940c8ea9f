"""Ids and versions of rows: given once, and kept wherever the row goes."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.rows_changed import deleted, deletes_of, paths_of

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files.data_file import DataFile, file_path
from lakelog.catalog.core.files.row_ids import ROW_ID, ROW_VERSION
from lakelog.catalog.core.logs import commits
from lakelog.catalog.core.parquet.opening import footer_crc_of
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import WriteRef

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
Known = dict[int, tuple[int | None, int | None]]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", SCHEMA)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


def known(table: Table, **scan: object) -> Known:
    """Return the row id and version of each id."""
    columns = table.scan(["id"], row_ids=True, **scan).to_arrow().to_pydict()  # type: ignore[arg-type]
    return dict(
        zip(columns["id"], zip(columns["_row_id"], columns["_row_version"], strict=True), strict=True)
    )


def copied_file(table: Table, write: WriteRef, ids: Sequence[int], own: Known, name: str | None) -> DataFile:
    """Write a file as an engine does that copies rows (or updates them, if they get a name) with their ids."""
    fields = {field.name: field.physical for field in table.schema.fields}
    data = pa.table(
        {
            fields["id"]: pa.array(ids, pa.int64()),
            fields["name"]: pa.array([name or f"n{id}" for id in ids]),
            ROW_ID: pa.array([own[id][0] for id in ids], pa.int64()),
            ROW_VERSION: pa.array([None if name else own[id][1] for id in ids], pa.int64()),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink)
    content = sink.getvalue().to_pybytes()
    path = file_path(write, "00000")
    table.table_head.tracked.store.put(f"{table.table_head.tracked.prefix}/{path}", content)
    return DataFile(path=path, size_bytes=len(content), rows=len(ids), footer_crc=footer_crc_of(content))


def test_every_row_has_an_id_and_the_version_that_wrote_it(table: Table) -> None:
    table = table.append(rows(1, 2)).append(rows(3)).append(rows(4, 5))
    assert known(table) == {1: (0, 2), 2: (1, 2), 3: (2, 3), 4: (3, 4), 5: (4, 4)}
    assert known(table, filter=col("id") > 3) == {4: (3, 4), 5: (4, 4)}


def test_ids_stay_when_others_of_the_file_are_deleted(table: Table) -> None:
    table = table.append(rows(1, 2, 3)).append(rows(4))
    table = deleted(table, [2])
    assert known(table) == {1: (0, 2), 3: (2, 2), 4: (3, 3)}
    assert known(table.append(rows(5)))[5] == (4, 5)


def test_copied_rows_keep_both_and_updated_rows_keep_their_id(table: Table) -> None:
    table = table.append(rows(1, 2, 3)).append(rows(4))
    own = known(table)
    write = engine.begin_write(table)
    file = copied_file(table, write, [1, 2, 3], own, None)
    first = next(path for path in paths_of(table) if "0000000001-" in path)
    table = engine.commit_rows(table, write, "compact", [file], removed=[first])
    assert known(table) == own
    write = engine.begin_write(table)
    file = copied_file(table, write, [2], own, "new")
    table = engine.commit_rows(table, write, "update", [file], deletes=deletes_of(table, [2]))
    assert known(table) == {**own, 2: (1, table.version)}
    assert table.scan(filter=col("name") == "new", row_ids=True).to_arrow().to_pydict() == {
        "id": [2], "name": ["new"], "_row_id": [1], "_row_version": [5]
    }  # fmt: skip


def test_no_id_is_given_twice(catalog: Catalog, table: Table) -> None:
    seen: set[int | None] = set()
    table = table.append(rows(1, 2))
    seen |= {id for id, _ in known(table).values()}
    past_version = table.version
    for change in (
        lambda: table.overwrite(rows(3, 4)),
        lambda: table.refresh().truncate().append(rows(5)),
        lambda: table.refresh().rollback_to_version(past_version).append(rows(6)),
    ):
        current_table = change()
        new = {id for row, (id, _) in known(current_table).items() if row > 2}
        assert not new & seen and None not in new
        seen |= new
    assert known(current_table)[1] == (0, 2), "a rollback brings back the ids of then"
    stage = engine.stage(catalog, "replace", "t", table.schema)
    engine.commit_stage(catalog, stage)
    table = catalog.load_table("t").append(rows(7))
    assert known(table)[7][0] not in seen


def test_appends_that_race_get_different_ids(catalog: Catalog, table: Table) -> None:
    other_table = Catalog(catalog.warehouse).load_table("t")
    table.append(rows(1, 2))
    assert known(other_table.append(rows(3, 4))) == {1: (0, 2), 2: (1, 2), 3: (2, 3), 4: (3, 3)}


def test_transactions_give_ids_and_versions_when_they_commit(catalog: Catalog, table: Table) -> None:
    with catalog.transaction() as tx:
        mine = tx.load_table("t").append(rows(1, 2, 3))
        assert known(mine) == dict.fromkeys((1, 2, 3), (None, None))
        mine = deleted(mine, [2]).append(rows(4))
        tx.create_table("new", SCHEMA).append(rows(8)).append(rows(9))
        table.append(rows(5))
    assert known(table.refresh()) == {5: (0, 2), 1: (1, 3), 3: (3, 3), 4: (4, 3)}
    assert known(catalog.load_table("new")) == {8: (0, 1), 9: (1, 1)}


def test_what_a_transaction_copies_of_its_own_rows_gets_no_id_of_others(
    catalog: Catalog, table: Table
) -> None:
    mode = {"change": "set-property", "key": "lakelog.write.delete.mode", "value": "copy-on-write"}
    table = table.alter([mode]).append(rows(1, 2))
    own = known(table)
    with catalog.transaction() as tx:
        mine = tx.load_table("t").append(rows(3, 4, 5))
        mine.delete(col("id").is_in([1, 3]))
        table.append(rows(6, 7))
    facts = known(table.refresh())
    assert facts[2] == own[2]
    assert sorted(facts) == [2, 4, 5, 6, 7]
    assert len({id for id, _ in facts.values()}) == 5 and None not in {id for id, _ in facts.values()}


def test_ids_are_in_snapshots_and_sidecars(catalog: Catalog, table: Table) -> None:
    with patch.object(commits, "SIDECAR_FROM_FILES", 1):
        table = catalog.create_table("many", SCHEMA, partition_by=["id"]).append(rows(*range(5)))
        table = deleted(table.append(rows(7)), [2])
        table = table.delete(col("id") == 3)
    expected = known(table)
    assert sorted(id for id, _ in expected.values() if id is not None) == [0, 1, 4, 5]
    table.table_head.tracked.log.snapshot(table.table_head.view)
    fresh = Catalog(catalog.warehouse).load_table("many")
    assert known(fresh) == expected
    assert known(fresh.append(rows(9)))[9][0] == 6
    assert fsck.check_warehouse(catalog._logs, deep=True).found == []


def test_a_copy_on_write_delete_keeps_ids_and_leaves_nothing_deleted_behind(
    catalog: Catalog, table: Table
) -> None:
    mode = {"change": "set-property", "key": "lakelog.write.delete.mode", "value": "copy-on-write"}
    table = table.append(rows(1, 2, 3)).append(rows(4, 5)).append(rows(6))
    table = deleted(table, [1])
    own = known(table)
    table = table.alter([mode]).delete(col("id").is_in([2, 6]))
    assert known(table) == {id: own[id] for id in (3, 4, 5)}
    assert table.file_count == 2 and "deletes" not in table.plan().column_names
    assert next(iter(table.history())).details["removed_files"] == 2
    table = table.append(rows(7)).delete(col("name") == "n5")
    assert known(table) == {id: own[id] for id in (3, 4)} | {7: (7, table.version - 1)}
    assert fsck.check_warehouse(catalog._logs, deep=True).found == []
