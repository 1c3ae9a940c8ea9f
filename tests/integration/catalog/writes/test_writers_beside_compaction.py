"""Writers that a compaction has overtaken: all of them go on, and only what others have changed is in their way."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import deleted, rows, rows_of, two_files, updated

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.writes import row_reader

EVERY = list(range(20))


@pytest.fixture(params=["merge-on-read", "copy-on-write"])
def table(request: pytest.FixtureRequest, catalog: Catalog) -> Table:
    return two_files(catalog).alter(
        [
            {"change": "set-property", "key": f"lakelog.write.{operation}.mode", "value": request.param}
            for operation in ("delete", "update", "merge")
        ]
        + [{"change": "set-property", "key": "lakelog.isolation", "value": "serializable"}]
    )


def ids(table: Table) -> list[int]:
    return [id for id, _ in rows_of(table.refresh())]


def compact(table: Table) -> Table:
    table_after = table.refresh().compact(deleted_ratio=0)
    [last] = table_after.history(limit=1)
    assert last.operation == "compact"
    return table_after


def overwrite_some(table: Table) -> Table:
    return table.overwrite(rows(range(50, 53)), col("id") < 3)


def overwrite_a_file(table: Table) -> Table:
    return table.overwrite(rows(range(50, 53)), col("id") < 10)


def overwrite_more(table: Table) -> Table:
    return table.overwrite(rows(range(50, 53)), col("id") < 13)


def overwrite_all(table: Table) -> Table:
    return table.overwrite(rows(range(50, 53)))


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda table: table.delete(col("id") < 3), EVERY[3:]),
        (lambda table: table.delete(col("id") < 10), EVERY[10:]),
        (lambda table: table.update({"name": "'new'"}, col("id") < 3), EVERY),
        (lambda table: table.upsert(rows(range(18, 22)), on="id"), [*EVERY, 20, 21]),
        (overwrite_some, [*EVERY[3:], 50, 51, 52]),
        (overwrite_a_file, [*EVERY[10:], 50, 51, 52]),
        (overwrite_more, [*EVERY[13:], 50, 51, 52]),
        (overwrite_all, [50, 51, 52]),
        (lambda table: table.truncate(), []),
    ],
)
@pytest.mark.parametrize("is_step", [False, True])
def test_a_writer_goes_on_where_a_compaction_has_moved_its_rows(
    catalog: Catalog,
    table: Table,
    is_step: bool,
    write: Callable[[Table], Table],
    expected: list[int],
) -> None:
    if is_step:
        with catalog.transaction() as tx:
            assert ids(write(tx.load_table("t"))) == expected
            compacted_table = compact(table)
            assert ids(tx.load_table("t")) == expected
        table_after = table.refresh()
    else:
        compacted_table = compact(table)
        table_after = write(table)
    assert ids(table_after) == expected and table_after.version == compacted_table.version + 1
    assert not [finding for finding in catalog.fsck(deep=True).found if finding.kind != "data-file-unused"]


@pytest.mark.parametrize(
    ("write", "left"),
    [
        (lambda table: table.update({"name": "'new'"}, col("id") < 3), EVERY),
        (lambda table: deleted(table, [5], condition=col("id") == 5), [*EVERY[:5], *EVERY[6:]]),
    ],
)
def test_no_values_are_read_of_rows_that_have_moved(
    table: Table, monkeypatch: pytest.MonkeyPatch, write: Callable[[Table], Table], left: list[int]
) -> None:
    monkeypatch.setattr(row_reader, "ROWS_LIMIT", 0)
    compact(table)
    assert ids(write(table)) == left


def test_a_replacement_does_not_fail_over_a_compaction(catalog: Catalog, table: Table) -> None:
    stage = engine.stage(catalog, "replace", "t", table.schema)
    compact(table)
    engine.commit_stage(catalog, stage)
    assert catalog.load_table("t").row_count == 0


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("write", [overwrite_some, overwrite_a_file, overwrite_all])
def test_what_others_did_before_or_after_the_compaction_is_in_the_way(
    table: Table, write: Callable[[Table], Table], first: bool
) -> None:
    for change in (
        lambda: table.refresh().append(rows(range(1, 2))),
        lambda: deleted(table.refresh(), [ids(table)[0]]),
        lambda: updated(table.refresh(), [ids(table)[1]], "new"),
    ):
        current_table = table.refresh()
        if first:
            change()
        compact(table)
        if not first:
            change()
        rows_before = rows_of(table.refresh())
        with pytest.raises(CommitConflict):
            write(current_table)
        assert rows_of(table.refresh()) == rows_before


TAKING: list[Callable[[Table], Table]] = [
    lambda table: table.delete(col("id") < 10),
    lambda table: table.truncate(),
    overwrite_a_file,
]


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("write", TAKING)
def test_rows_that_a_step_should_have_seen_are_a_conflict_and_no_other_error(
    catalog: Catalog, table: Table, write: Callable[[Table], Table], compacts: bool
) -> None:
    for change in (
        lambda: table.refresh().append(rows(range(9, 11))),
        lambda: deleted(table.refresh(), [ids(table)[0]]),
        lambda: updated(table.refresh(), [ids(table)[1]], "new"),
    ):
        tx = catalog.begin("snapshot")
        write(tx.load_table("t"))
        change()
        if compacts:
            compact(table)
        rows_before = rows_of(table.refresh())
        with pytest.raises(CommitConflict):
            tx.commit()
        assert rows_of(table.refresh()) == rows_before


def test_steps_on_a_branch_go_on_where_a_compaction_of_it_has_moved_their_rows(
    catalog: Catalog, table: Table
) -> None:
    table.create_branch("b")
    with catalog.transaction() as tx:
        branch = tx.load_table("t").at(ref="b")
        branch = (
            branch.update({"name": "'new'"}, col("id") < 3).delete(col("id") == 2).append(rows(range(40, 41)))
        )
        branch.delete(col("id") >= 18)
        table.refresh().at(ref="b").compact(deleted_ratio=0)
        compact(table)
    table_after = table.refresh()
    assert ids(table_after) == EVERY
    found_rows = rows_of(table_after.at(ref="b"))
    assert [id for id, name in found_rows if name == "new"] == [0, 1]
    assert [id for id, _ in found_rows] == [id for id in EVERY if id not in (2, 18, 19)]


def test_what_others_did_elsewhere_is_not_in_the_way_of_an_overwrite(catalog: Catalog) -> None:
    table = catalog.create_table("p", rows(range(1)).schema, partition_by=["name"])
    for name in "ab":
        for id in range(3):
            table = table.append(rows(range(id, id + 1)).set_column(1, "name", [[name]]))
    mine = table
    table = table.append(rows(range(9, 10)).set_column(1, "name", [["a"]]))
    table = compact(table).delete((col("name") == "a") & (col("id") == 9))
    table_after = mine.overwrite(rows(range(5, 6)).set_column(1, "name", [["b"]]), col("name") == "b")
    assert rows_of(table_after) == [(0, "a"), (1, "a"), (2, "a"), (5, "b")]


@pytest.mark.parametrize("others", ["nothing", "an append", "a delete", "an append elsewhere"])
def test_a_serializable_transaction_that_has_read_rows_goes_on_where_they_have_only_moved(
    catalog: Catalog, table: Table, others: str
) -> None:
    other_table = catalog.create_table("u", table.schema)
    tx = catalog.begin("serializable")
    assert tx.load_table("t").scan(filter=col("id") < 15).to_arrow().num_rows == 15
    tx.load_table("u").append(rows(range(1)))
    if others == "an append":
        table.refresh().append(rows(range(1, 2)))
    elif others == "an append elsewhere":
        table.refresh().append(rows(range(70, 71)))
    compact(table)
    if others == "a delete":
        table.refresh().delete(col("id") == 2)
    if others in ("an append", "a delete"):
        with pytest.raises(CommitConflict, match="has other rows now"):
            tx.commit()
    else:
        tx.commit()
    assert other_table.refresh().row_count == (others in ("nothing", "an append elsewhere"))


def test_a_delete_goes_over_a_compaction_of_dates_beyond_those_of_python(catalog: Catalog) -> None:
    days = pa.array([-719_163, 0, 2_932_897], pa.int32()).cast(pa.date32())
    data = pa.table({"n": [1, 2, 3], "day": days})
    table = catalog.create_table("far", data.schema).append(data).append(data)
    Catalog(catalog.warehouse).load_table("far").compact()
    assert sorted(table.delete("n = 1").to_arrow()["n"].to_pylist()) == [2, 2, 3, 3]
