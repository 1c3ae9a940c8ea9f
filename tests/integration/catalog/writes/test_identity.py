"""Identity columns as Python writes them: every value is given once, whatever happens to the table."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files.data_file import ColumnStats
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.schema.identity import ValuesTaken, refuse_given
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.state.events import IdentityTaken, encode
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import Draft
from lakelog.log.checks.findings import Severity
from lakelog.log.errors import InvalidInput, Unsupported


def create(
    catalog: CatalogNames, name: str = "t", *, start: int = 1, step: int = 1, always: bool = True, kind: str = "create",
    **more: Any,
) -> Table:  # fmt: skip
    """A table as Spark asks for one: `id`, whose values are made, and the text `of`."""
    identity = {
        "identity.start": start,
        "identity.step": step,
        "identity.allowExplicitInsert": not always,
    }
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": identity},
        {"name": "of", "type": "string", "nullable": True, "metadata": {}},
    ]
    schema = schema_from_spark({"type": "struct", "fields": fields})
    return engine.commit_stage(catalog, engine.stage(catalog, kind, name, schema, **more))


def of(*names: str | None) -> pa.Table:
    return pa.table({"of": pa.array(names, pa.string())})


def given(*ids: int | None, name: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "of": [name] * len(ids)})


def fsck_finds(catalog: Catalog) -> list[str]:
    return [
        f"{finding.kind}: {finding.what}"
        for finding in fsck.check_warehouse(catalog._logs, deep=True).of(Severity.DAMAGE)
    ]


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().to_arrow()["id"].to_pylist())


def test_values_are_made_in_order_and_go_on(catalog: Catalog) -> None:
    table = create(catalog)
    table = table.append(of("a", "b"))
    table = table.append(pa.table({"id": pa.nulls(1, pa.int64()), "of": ["c"]}))
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "of": "a"},
        {"id": 2, "of": "b"},
        {"id": 3, "of": "c"},
    ]
    assert not table.schema.find(("id",)).nullable
    assert next(table.history()).operation == "take identity values, append"


@pytest.mark.parametrize(("start", "step"), [(5, 3), (0, -2), (-7, 10), (2**63 - 3, 1), (-(2**63), 2**62)])
def test_start_and_step_may_be_any(catalog: Catalog, start: int, step: int) -> None:
    table = create(catalog, start=start, step=step)
    table = table.append(of("a")).append(of("b", "c"))
    assert ids(table) == sorted(start + step * n for n in range(3))
    assert (
        engine.identity_values(Catalog(catalog._logs.warehouse).load_table("t"))[0]["next"]
        == start + 3 * step
    )


def test_values_end_where_a_bigint_does(catalog: Catalog) -> None:
    table = create(catalog, start=2**63 - 2)
    table = table.append(of("a"))
    with pytest.raises(InvalidInput, match="is exhausted"):
        table.append(of("b", "c"))
    table = table.append(of("d"))
    with pytest.raises(InvalidInput, match="is exhausted"):
        table.append(of("e"))
    assert ids(table) == [2**63 - 2, 2**63 - 1]


def test_a_value_is_given_only_where_that_is_allowed(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(InvalidInput, match="GENERATED ALWAYS"):
        table.append(given(7))
    with pytest.raises(InvalidInput, match="GENERATED ALWAYS"):
        table.append(given(None, 7))
    other_table = create(catalog, "u", always=False)
    other_table = other_table.append(given(7, None, 1, None))
    assert sorted(ids(other_table)) == [1, 1, 2, 7]
    assert ids(other_table.append(of("a"))) == [1, 1, 2, 3, 7]


def test_an_overwrite_goes_on_counting(catalog: Catalog) -> None:
    table = create(catalog).append(of("a", "b"))
    table = table.overwrite(of("c"))
    assert ids(table) == [3]
    assert ids(table.truncate().append(of("d"))) == [4]


def test_what_was_taken_is_never_taken_again_whatever_the_table_goes_back_to(catalog: Catalog) -> None:
    table = create(catalog).append(of("a"))
    first = table.version
    table = table.append(of("b"))
    table = table.rollback_to_version(first)
    assert ids(table) == [1]
    table = table.append(of("c"))
    assert ids(table) == [1, 3]
    table = table.set_current_version(first)
    assert ids(table.append(of("d"))) == [1, 4]
    catalog.drop_table("t")
    catalog.undrop_table("t")
    assert ids(catalog.load_table("t").append(of("e"))) == [1, 4, 5]


def test_a_table_that_replaces_another_begins_anew_and_one_that_comes_back_goes_on(catalog: Catalog) -> None:
    table_before = create(catalog).append(of("a", "b"))
    table = create(catalog, kind="replace", start=100).append(of("c"))
    assert ids(table) == [100]
    table = table.rollback_to_version(table_before.version).append(of("d"))
    assert ids(table) == [1, 2, 3]


def test_a_dropped_column_that_comes_back_goes_on(catalog: Catalog) -> None:
    table_before = create(catalog).append(of("a", "b"))
    table = table_before.alter([{"change": "delete-column", "name": ["id"]}]).append(of("c"))
    with pytest.raises(InvalidInput, match="did not exist then"):
        table_before.rollback_to_version(table_before.version).set_current_version(table.version)
    assert ids(table_before.refresh().append(of("d"))) == [1, 2, 3]


def test_marks_survive_a_snapshot(catalog: Catalog, client: Callable[[], Catalog]) -> None:
    table = create(catalog)
    for n in range(70):
        table = table.append(of(str(n)))
    assert client().load_table("t").append(of("x")).version == table.version + 1
    assert ids(table) == list(range(1, 72))


def test_two_writers_never_give_the_same_value(catalog: Catalog, client: Callable[[], Catalog]) -> None:
    create(catalog)
    mine, theirs = catalog.load_table("t"), client().load_table("t")
    for n in range(5):
        mine = mine.append(of(f"mine {n}"))
        theirs = theirs.append(of(f"theirs {n}", f"theirs {n}"))
    assert len(set(ids(mine))) == 15


def test_a_write_that_mixes_values_of_its_own_with_some_that_are_taken_conflicts(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    create(catalog, always=False)
    mine, theirs = catalog.load_table("t"), client().load_table("t")
    late = written(theirs, given(9, None), {})
    mine.append(of("a"))
    with pytest.raises(CommitConflict, match="values of id from 1 on"):
        engine.commit_write(theirs, **late)
    assert ids(mine) == [1]


def test_a_transaction_takes_values_that_no_other_writer_takes(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    create(catalog)
    with catalog.transaction() as tx:
        tx.load_table("t").append(of("a"))
        tx.load_table("t").append(of("b"))
        other_table = client().load_table("t").append(of("c"))
    assert len(set(ids(other_table))) == 3
    with pytest.raises(ZeroDivisionError), catalog.transaction() as tx:
        tx.load_table("t").append(of("gone"))
        raise ZeroDivisionError
    assert len(set(ids(other_table.refresh().append(of("d"))))) == 4


def test_a_table_of_the_same_transaction_has_values_too(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        create(tx).append(of("a", "b")).append(of("c"))
    assert ids(catalog.load_table("t")) == [1, 2, 3]
    with catalog.transaction() as tx:
        create(tx, kind="replace", start=10).append(of("a")).append(of("c"))
    assert ids(catalog.load_table("t")) == [10, 11]


def test_an_identity_column_stays_one(catalog: Catalog) -> None:
    table = create(catalog)
    for change in (
        {"change": "update-column-nullability", "name": ["id"], "nullable": True},
        {"change": "update-column-default", "name": ["id"], "default": {"current": "5", "exists": None}},
        {"change": "update-column-type", "name": ["id"], "type": "decimal(20,0)"},
        {"change": "set-partitioning", "fields": ["id"]},
        {"change": "set-sort-order", "fields": ["id"]},
        {"change": "set-clustering", "columns": [["id"]]},
        {
            "change": "add-constraint",
            "constraint": {"kind": "check", "name": "c", "columns": [["id"]], "sql": "id > 0"},
        },
    ):
        with pytest.raises(InvalidInput, match="id"):
            table.alter([change])
    assert table.refresh().version == table.version
    table = table.alter([{"change": "rename-column", "name": ["id"], "new_name": "key"}]).append(of("a"))
    assert table.to_arrow().to_pylist() == [{"key": 1, "of": "a"}]


def test_what_cannot_be_an_identity_column_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match="the step 0"):
        create(catalog, step=0)
    with pytest.raises(InvalidInput, match="partition"):
        create(catalog, partitioning=["id"])
    with pytest.raises(InvalidInput, match="BIGINT"):
        create(catalog, start=2**63)
    assert catalog.list_tables() == []


def test_files_of_others_cannot_be_added(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(Unsupported, match="identity column"):
        engine.add_found_files(table, [SimpleNamespace(path="elsewhere/a.parquet")])  # type: ignore[list-item]


def written(table: Table, rows: pa.Table, taken: dict[int, int]) -> dict[str, Any]:
    """What a write that knew of these values hands over to its commit."""
    numbering = IdentityNumbering(table.schema, taken)
    write = engine.begin_write(table)
    files = written_files(table.table_head.tracked, table.metadata, write, rows, numbering)
    return {"write": write, "operation": "append", "files": files, "values": numbering.taken()}


def test_a_writer_that_loses_the_race_takes_other_values(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    create(catalog, step=3)
    mine, theirs = catalog.load_table("t"), client().load_table("t")
    late = written(theirs, of("c", "d", "e"), {})
    mine.append(of("a", "b"))
    theirs = engine.commit_write(theirs, **late)
    assert theirs.to_arrow().sort_by("id").to_pydict() == {"id": [1, 4, 7, 10, 13], "of": list("abcde")}
    assert [entry.operation for entry in theirs.history()][:2] == ["append", "take identity values"]
    assert theirs.scan(filter=col("id") == 13).to_arrow()["of"].to_pylist() == ["e"]
    assert theirs.plan(col("id") < 7).num_rows == 1
    assert fsck_finds(catalog) == []
    # The same request is the same commit, whatever became of its files.
    assert engine.commit_write(theirs, **late).version == theirs.version
    assert list(fsck.check_warehouse(catalog._logs).of(Severity.NOTE)) == []


def test_a_write_that_loses_the_race_and_then_fails_leaves_nothing(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    create(catalog)
    mine, theirs = catalog.load_table("t"), client().load_table("t")
    late = written(theirs, of("c"), {})
    mine.append(of("a")).alter([{"change": "update-column-nullability", "name": ["of"], "nullable": False}])
    with pytest.raises(CommitConflict, match="NOT NULL now"):
        engine.commit_write(theirs, **late)
    assert ids(mine) == [1]


def test_a_merge_takes_values_for_the_rows_that_it_adds(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    table = create(catalog).append(of("a"))
    merged = written(table, of("b"), {1: 1})
    table_after = engine.commit_rows(
        table, merged["write"], "merge", merged["files"], values=merged["values"]
    )
    assert ids(table_after) == [1, 2]
    late = written(table_after, of("c"), {1: 2})
    client().load_table("t").append(of("d"))
    table_after = engine.commit_rows(
        table_after, late["write"], "merge", late["files"], values=late["values"]
    )
    assert table_after.to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3, 4], "of": list("abdc")}
    again = engine.commit_rows(table_after, late["write"], "merge", late["files"], values=late["values"])
    assert again.version == table_after.version
    assert fsck_finds(catalog) == []


def test_a_merge_that_takes_other_values_still_sees_rows_like_its_own(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    table = create(catalog).append(of("a"))
    late = written(table, of("c"), {1: 1})
    other = written(client().load_table("t"), of("c"), {1: 1})
    engine.commit_rows(
        client().load_table("t"),
        other["write"],
        "merge",
        other["files"],
        values=other["values"],
        condition=col("of") == "c",
    )
    with pytest.raises(CommitConflict, match="should have seen"):
        engine.commit_rows(
            table, late["write"], "merge", late["files"], values=late["values"], condition=col("of") == "c"
        )
    assert ids(table) == [1, 2]
    assert fsck_finds(catalog) == []


def test_a_merge_in_a_transaction_takes_values_that_no_other_writer_takes(
    catalog: Catalog, client: Callable[[], Catalog]
) -> None:
    create(catalog).append(of("a"))
    with catalog.transaction() as transaction:
        table = transaction.load_table("t")
        merged = written(table, of("b"), {1: 1})
        engine.commit_rows(table, merged["write"], "merge", merged["files"], values=merged["values"])
        client().load_table("t").append(of("c"))
        transaction.load_table("t").append(of("d"))
    assert catalog.load_table("t").to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 2, 3, 4],
        "of": list("abcd"),
    }
    assert fsck_finds(catalog) == []


@pytest.mark.parametrize("operation", ["append", "merge"])
def test_rows_without_values_are_never_committed(catalog: Catalog, operation: str) -> None:
    table = create(catalog)
    late = written(table, of("a"), {})
    [file] = late["files"]
    empty_text = msgspec.structs.replace(file, stats={**file.stats, 1: ColumnStats(nulls=1)})
    with pytest.raises(InvalidInput, match="no value of the identity column id"):
        if operation == "merge":
            engine.commit_rows(table, late["write"], "merge", [empty_text])
        else:
            engine.commit_write(table, late["write"], "append", [empty_text])
    assert ids(table) == []


def test_values_that_are_taken_twice_are_damage(catalog: Catalog) -> None:
    table = create(catalog).append(of("a"))
    twice = Draft(events=encode([IdentityTaken(column=1, first=1, last=1)]))
    table.table_head.tracked.commit(table.table_head.tracked.current(), lambda view, passed: twice)
    assert fsck_finds(catalog) == [
        "identity-taken-twice: version 3 took the values 1 to 1 of the column 1, and some of 1 to 1 were taken before"
    ]


def test_rows_with_values_that_no_writer_took_are_damage(catalog: Catalog) -> None:
    table = create(catalog)
    late = written(table, of("a", "b"), {1: 7})
    engine.commit_write(table, **{**late, "values": ()})
    assert [fsck_find.partition(":")[0] for fsck_find in fsck_finds(catalog)] == ["identity-not-taken"]


def test_a_client_cannot_say_that_it_took_what_it_cannot_have_taken(catalog: Catalog) -> None:
    table = create(catalog, start=1, step=2)
    for values in (
        [ValuesTaken(column=9, first=1, last=1)],
        [ValuesTaken(column=1, first=1, last=4)],
        [ValuesTaken(column=1, first=5, last=1)],
        [ValuesTaken(column=1, first=1, last=2**63 + 1)],
        [ValuesTaken(column=1, first=1, last=1), ValuesTaken(column=1, first=3, last=3)],
    ):
        with pytest.raises(InvalidInput):
            engine.commit_write(table, engine.begin_write(table), "append", (), values=values)
    assert table.refresh().version == table.version


def test_writers_that_change_rows_can_ask_which_columns_stay(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match="GENERATED ALWAYS"):
        refuse_given(create(catalog).schema, [2, 1])
    refuse_given(create(catalog, "u", always=False).schema, [1])
    refuse_given(catalog.load_table("t").schema, [2])
