"""Constraints from Python: storage, checks of rows, and conflicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, Table, engine
from lakelog.catalog.core.schema.constraints import CheckConstraint, ForeignKey, PrimaryKey
from lakelog.catalog.errors import (
    CheckViolated,
    ConstraintExists,
    MultiplePrimaryKeys,
    NoSuchColumn,
    NoSuchConstraint,
    RowsUnproven,
)
from lakelog.log import InvalidInput, Unsupported

Client = Callable[[], Catalog]

ID = {"col": ["id"]}


def over(bound: int) -> dict[str, Any]:
    """id > bound, as Spark says it."""
    return {
        "kind": "check",
        "name": f"over_{bound}",
        "columns": [["id"]],
        "sql": f"id > {bound}",
        "predicate": {"op": ">", "args": [ID, {"lit": bound, "type": "integer"}]},
    }


OPAQUE = {"kind": "check", "name": "odd", "columns": [["id"]], "sql": "id % 2 = 1"}
KEY = {"kind": "primary-key", "name": "pk", "columns": [["id"]]}


def add(constraint: dict[str, Any]) -> dict[str, Any]:
    return {"change": "add-constraint", "constraint": constraint}


def drop(name: str, **more: Any) -> dict[str, Any]:
    return {"change": "drop-constraint", "name": name, **more}


def require(*path: str) -> dict[str, Any]:
    return {"change": "update-column-nullability", "name": list(path), "nullable": False}


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", SCHEMA)


@pytest.fixture
def other(client: Client, table: Table) -> Table:
    return client().load_table("t")


def test_constraints_are_kept_and_seen_by_others(client: Client, table: Table, other: Table) -> None:
    foreign = {
        "kind": "foreign-key",
        "name": "fk",
        "columns": [["region"]],
        "rely": True,
        "table": ["geo", "regions"],
        "referenced": ["code"],
    }
    table = table.alter([add(over(0)), add(KEY), add(foreign)])
    check, key, reference = other.refresh().constraints
    assert isinstance(check, CheckConstraint) and (check.sql, check.columns) == ("id > 0", (1,))
    assert isinstance(key, PrimaryKey) and not key.rely
    assert isinstance(reference, ForeignKey) and (reference.table, reference.rely) == (
        ("geo", "regions"),
        True,
    )
    assert [entry.operation for entry in table.history()] == ["add constraint", "create"]
    table.table_head.tracked.log.snapshot(table.table_head.view)
    assert client().load_table("t").constraints == table.constraints
    table = table.alter([drop("PK")])
    assert [constraint.name for constraint in other.refresh().constraints] == ["over_0", "fk"]
    assert next(iter(table.history())).details == {"name": "pk"}


def test_a_table_without_constraints_is_stored_as_it_was_before_there_were_any(table: Table) -> None:
    root = json.dumps(table.table_head.tracked.log.projection.dump(table.table_head.view.state, 1).root)
    assert "constraints" not in root
    table = table.alter([add(KEY)])
    assert "constraints" in json.dumps(
        table.table_head.tracked.log.projection.dump(table.table_head.view.state, 2).root
    )


def test_a_staged_table_has_its_constraints_from_its_first_version(catalog: Catalog, client: Client) -> None:
    stage = engine.stage(catalog, "create", "s", SCHEMA, constraints=[over(5), KEY])
    assert [constraint.name for constraint in engine.commit_stage(catalog, stage).constraints] == [
        "over_5",
        "pk",
    ]
    table = client().load_table("s")
    with pytest.raises(CheckViolated):
        table.append(rows(5))
    replaced_table = engine.commit_stage(
        catalog, engine.stage(catalog, "replace", "s", SCHEMA, constraints=[over(1)])
    )
    assert [constraint.name for constraint in replaced_table.constraints] == ["over_1"]
    assert engine.commit_stage(catalog, engine.stage(catalog, "replace", "s", SCHEMA)).constraints == ()


def test_names_are_taken_once_and_columns_have_to_be_there(table: Table) -> None:
    table = table.alter([add(KEY)])
    version = table.version
    for wrong, error in [
        (add({**OPAQUE, "name": "PK"}), ConstraintExists),
        (add({**KEY, "name": "pk2"}), MultiplePrimaryKeys),
        (add({**KEY, "kind": "unique", "name": "u", "columns": [["nope"]]}), NoSuchColumn),
        (add({**OPAQUE, "columns": [["t", "id"]]}), NoSuchColumn),
        (add({**KEY, "kind": "unique", "name": "u", "columns": []}), InvalidInput),
        (add({**KEY, "kind": "foreign-key", "name": "f"}), InvalidInput),
        (add({"kind": "check", "name": "c", "columns": []}), InvalidInput),
        (add({**KEY, "name": ""}), InvalidInput),
        (
            {"change": "add-constraint", "constraint": {"kind": "guess", "name": "x", "columns": []}},
            InvalidInput,
        ),
        (drop("nope"), NoSuchConstraint),
    ]:
        with pytest.raises(error):
            table.alter([wrong])
    assert table.alter([drop("nope", if_exists=True)]).version == version


def test_rows_that_violate_a_check_are_refused_with_its_name(table: Table, other: Table) -> None:
    table = table.alter([add(over(1))])
    empty_table = pa.table({"id": [None], "region": ["EU"], "amount": [None]}, schema=SCHEMA)
    table = table.append(rows(2, 3)).append(empty_table)
    for write in (table.append, table.overwrite, table.overwrite_partitions):
        with pytest.raises(
            CheckViolated, match=r"1 rows of the data violate the constraint over_1 CHECK \(id > 1\)"
        ):
            write(rows(2, 1))
    assert other.refresh().row_count == 3


def test_a_check_that_only_spark_understands_refuses_rows_from_python(table: Table) -> None:
    table = table.alter([add(OPAQUE)])
    with pytest.raises(Unsupported, match=r"the constraint odd CHECK \(id % 2 = 1\).*in Spark"):
        table.append(rows(1))
    table = table.alter([drop("odd")]).append(rows(2))
    assert table.row_count == 1


def test_a_check_on_a_char_column_is_sparks(catalog: Catalog) -> None:
    from lakelog.catalog.core.schema.spark_types import schema_from_spark

    fields = [{"name": "c", "type": "char(4)", "nullable": True, "metadata": {}}]
    table = catalog.create_table("c", schema_from_spark({"type": "struct", "fields": fields}))
    predicate = {"op": "=", "args": [{"col": ["c"]}, {"lit": "ab", "type": "string"}]}
    check = {"kind": "check", "name": "k", "columns": [["c"]], "sql": "c = 'ab'", "predicate": predicate}
    table = table.alter([add(check)])
    with pytest.raises(Unsupported, match="constraint k"):
        table.append(pa.table({"c": ["ab"]}))


def test_a_check_needs_a_proof_for_the_rows_that_are_there(table: Table) -> None:
    table = table.append(rows(3, 5))
    assert table.alter([add(over(2))]).constraints[0].name == "over_2"
    with pytest.raises(RowsUnproven, match=r"CHECK \(id > 3\)"):
        table.alter([add(over(3))])
    with pytest.raises(RowsUnproven):
        table.alter([add(OPAQUE)])
    assert table.alter([add(OPAQUE)], looked_at=table.refresh()).constraints[1].name == "odd"


def test_an_empty_partition_has_no_rows_that_need_a_proof(catalog: Catalog) -> None:
    table = catalog.create_table("parts", SCHEMA, partition_by=["id"])
    table = engine.add_partitions(table.append(rows(3, 5)), [{"id": -1}, {"id": None}])
    with_check = table.alter([add(over(2)), require("id")])
    assert not with_check.schema.find(["id"]).nullable and with_check.row_count == 2
    emptied_table = engine.truncate_partitions(with_check, [{"id": 3}])
    assert [constraint.name for constraint in emptied_table.alter([add(over(4))]).constraints] == [
        "over_2",
        "over_4",
    ]
    with pytest.raises(RowsUnproven):
        emptied_table.alter([add(over(5))])


def test_what_was_looked_at_is_one_version(table: Table, other: Table) -> None:
    seen_table = table.append(rows(1))
    other.refresh().append(rows(2))
    with pytest.raises(CommitConflict, match="rows were added since"):
        seen_table.alter([add(OPAQUE)], looked_at=seen_table)
    # What the statistics prove needs no look.
    altered_table = seen_table.alter([add(over(0))], looked_at=seen_table)
    assert [constraint.name for constraint in altered_table.constraints] == ["over_0"]
    # Nor do rows that are gone.
    altered_table = altered_table.delete([("id", "=", 2)])
    assert altered_table.alter([add(OPAQUE)], looked_at=seen_table).constraints[1].name == "odd"


OTHER_COLUMNS = {
    "swapped": [
        {"change": "rename-column", "name": ["a"], "new_name": "c"},
        {"change": "rename-column", "name": ["b"], "new_name": "a"},
    ],
    "added again": [
        {"change": "delete-column", "name": ["a"]},
        {"change": "add-column", "name": ["a"], "type": "integer"},
    ],
    "of another type": [{"change": "update-column-type", "name": ["a"], "type": "double"}],
}
DEMANDS = {"check": add(OPAQUE | {"columns": [["a"]], "sql": "a % 2 = 1"}), "not null": require("a")}


@pytest.mark.parametrize(
    ("demand", "change"),
    [("check", change) for change in OTHER_COLUMNS] + [("not null", "swapped"), ("not null", "added again")],
)
def test_what_was_looked_at_is_the_columns_of_one_version(catalog: Catalog, demand: str, change: str) -> None:
    table = catalog.create_table("ab", pa.schema([("a", pa.int32()), ("b", pa.int32())]))
    seen_table = table.append(pa.table({"a": [1, 3], "b": [2, None]}, schema=table.arrow_schema))
    changed_table = catalog.load_table("ab").alter(OTHER_COLUMNS[change])
    with pytest.raises(CommitConflict, match="its columns were changed since"):
        seen_table.alter([DEMANDS[demand]], looked_at=seen_table)
    assert changed_table.refresh().version == changed_table.version


def test_what_was_looked_at_counts_after_changes_of_other_columns(catalog: Catalog) -> None:
    table = catalog.create_table("ab", pa.schema([("a", pa.int32()), ("b", pa.int32())]))
    seen_table = table.append(pa.table({"a": [1, 3], "b": [2, None]}, schema=table.arrow_schema))
    catalog.load_table("ab").rename_column("b", "c").add_column("b", "double")
    assert seen_table.alter([DEMANDS["check"]], looked_at=seen_table).constraints[0].name == "odd"


def test_rows_written_before_a_check_was_added_conflict_with_it(table: Table, other: Table) -> None:
    write = engine.begin_write(other)
    table.alter([add(over(0))])
    with pytest.raises(CommitConflict, match="added a CHECK"):
        engine.commit_write(other, write, "append", [])
    for change in (other.overwrite, other.overwrite_partitions):
        with pytest.raises(CommitConflict, match="added a CHECK"):
            change(rows(-1))
    assert other.refresh().row_count == 0
    assert other.truncate().refresh().constraints


def test_keys_and_drops_of_constraints_conflict_with_no_writer(table: Table, other: Table) -> None:
    write = engine.begin_write(other)
    table.alter([add(KEY)]).alter([drop("pk")])
    engine.commit_write(other, write, "append", [])
    base = other.refresh()
    table.refresh().alter([add(KEY)])
    base.overwrite(rows(1))
    assert (table.refresh().row_count, len(table.refresh().constraints)) == (1, 1)


def test_columns_of_keys_are_renamed_and_those_of_checks_stay(table: Table) -> None:
    table = table.alter([add(KEY), {"change": "rename-column", "name": ["id"], "new_name": "key"}])
    assert table.schema.path_of(table.constraints[0].columns[0]) == ("key",)
    with pytest.raises(InvalidInput, match="cannot drop key: the constraint pk"):
        table.alter([{"change": "delete-column", "name": ["key"]}])
    amount = {"kind": "check", "name": "c", "columns": [["amount"]], "sql": "amount > 0"}
    table = table.alter([add(amount)])
    for change in (
        {"change": "delete-column", "name": ["amount"]},
        {"change": "rename-column", "name": ["amount"], "new_name": "sum"},
        {"change": "update-column-type", "name": ["amount"], "type": "decimal(10,2)"},
    ):
        with pytest.raises(InvalidInput, match="amount: the constraint c needs it"):
            table.alter([change])
    table = table.alter([{"change": "update-column-comment", "name": ["amount"], "comment": "in euros"}])
    table = table.alter([drop("c"), {"change": "delete-column", "name": ["amount"]}])
    assert table.schema.names == ("key", "region")


def test_not_null_needs_a_proof(table: Table, other: Table) -> None:
    empty_table = pa.table({"id": [1], "region": [None], "amount": [None]}, schema=SCHEMA)
    table = table.append(rows(1, 2))
    assert not table.alter([require("id")]).schema.find(["id"]).nullable
    write = engine.begin_write(other)
    table = table.refresh().append(empty_table)
    with pytest.raises(RowsUnproven, match="region IS NOT NULL"):
        table.alter([require("region")])
    # Rows of a write that began before may have no value.
    with pytest.raises(CommitConflict, match="id is NOT NULL now"):
        engine.commit_write(other, write, "append", [])
    with pytest.raises(InvalidInput, match="NOT NULL"):
        table.append(pa.table({"id": [None], "region": ["EU"], "amount": [1.0]}, schema=SCHEMA))


def test_not_null_looks_at_what_was_added_since(table: Table, other: Table) -> None:
    empty_table = pa.table({"id": [1], "region": [None], "amount": [None]}, schema=SCHEMA)
    seen_table = table.append(rows(1))
    other.refresh().append(rows(2))
    assert not seen_table.alter([require("region")], looked_at=seen_table).schema.find(["region"]).nullable
    other.refresh().append(empty_table.set_column(1, "region", pa.array(["x"])))
    with pytest.raises(CommitConflict, match="amount IS NOT NULL"):
        seen_table.alter([require("amount")], looked_at=seen_table)


def test_in_a_transaction_constraints_hold_from_their_step_on(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    with catalog.transaction() as tx:
        table_before = tx.load_table("t")
        tx.load_table("t").alter([add(over(0))])
        with pytest.raises(CheckViolated):
            tx.load_table("t").append(rows(0))
        with pytest.raises(CommitConflict, match="added a CHECK"):
            table_before.overwrite(rows(0))
        tx.load_table("t").append(rows(1))
    table = client().load_table("t")
    assert (table.row_count, table.constraints[0].name) == (1, "over_0")


def test_a_transaction_that_adds_a_check_conflicts_with_rows_that_others_added(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    tx = catalog.begin()
    tx.load_table("t").alter([add(over(0))])
    client().load_table("t").append(rows(-1))
    with pytest.raises((CommitConflict, RowsUnproven)):
        tx.commit()
    assert client().load_table("t").constraints == ()
    tx = catalog.begin()
    tx.load_table("t").append(rows(-2))
    client().load_table("t").truncate().alter([add(over(0))])
    with pytest.raises(CommitConflict, match="added a CHECK"):
        tx.commit()
    assert client().load_table("t").row_count == 0


def test_going_back_brings_back_no_rows_that_a_check_forbids(table: Table, other: Table) -> None:
    table = table.append(rows(1)).append(rows(-1))
    table = table.delete([("id", "=", -1)]).alter([add(over(0))])
    with pytest.raises(InvalidInput, match=r"rows of version 3 may violate CHECK \(id > 0\)"):
        table.set_current_version(3)
    assert table.set_current_version(2).row_count == 1
    write = engine.begin_write(other)
    back = table.refresh().rollback_to_version(3)
    assert (back.constraints, back.row_count) == ((), 2)
    forward = back.rollback_to_version(5)
    assert [constraint.name for constraint in forward.constraints] == ["over_0"]
    with pytest.raises(CommitConflict):
        engine.commit_write(other, write, "append", [])
