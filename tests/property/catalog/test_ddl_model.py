"""Random definitions and changes of a table through the Python client, and every version of it read afterwards.

`tests/ddl` has the model and the statements; what a table is called here may be another table after a drop, whose
versions are read once it is restored.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from tests.ddl.columns import Refused
from tests.ddl.model import COMPARE, Condition, Model, Row, State, Step
from tests.ddl.steps import Draw, draw_condition, draw_step, first_step
from tests.property.examples import examples

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.table import Table
from lakelog.log import LakelogError


def predicate(condition: Condition) -> Predicate:
    column = col(condition.column)
    if condition.op == "IS NULL":
        return column.is_null()
    compare = COMPARE[condition.op](column, condition.value)
    assert isinstance(compare, Predicate)
    return compare


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


class Client:
    """Does steps through the Python client, to the table `t`. `handles` are of its versions, for late writes."""

    def __init__(self) -> None:
        self.catalog = Catalog(f"memory://{uuid.uuid4().hex}")
        self.handles: dict[int, Table] = {}

    @property
    def table(self) -> Table:
        return self.catalog.load_table("t")

    def do(self, step: Step) -> None:
        match step["do"]:
            case "alter":
                self.table.alter([self._change(change) for change in step["changes"]])
            case "append":
                self.table.append(_arrow(self.table, step))
            case "append-late":
                # An append of a handle would begin on the newest version that the client knows.
                handle = self.handles[step["at"]]
                write = engine.begin_write(handle)
                rows = _arrow(handle, step)
                files = written_files(handle.table_head.tracked, handle.metadata, write, rows)
                engine.commit_write(handle, write, "append", files)
            case "overwrite-late":
                handle = self.handles[step["at"]]
                handle.overwrite(_arrow(handle, step), predicate(step["where"]))
            case "compact":
                self.table.compact()
            case "overwrite":
                self.table.overwrite(_arrow(self.table, step))
            case "overwrite-partitions":
                self.table.overwrite_partitions(_arrow(self.table, step))
            case "truncate":
                self.table.truncate()
            case "delete":
                self.table.delete(predicate(step["where"]))
            case "rollback":
                self.table.rollback_to_version(step["version"])
            case "set-current":
                self.table.set_current_version(step["version"])
            case "rename-table":
                self.catalog.rename_table("t", "u")
                assert not self.catalog.table_exists("t")
                self.catalog.rename_table("u", "t")
            case "create":
                self.catalog.drop_table("t", missing_ok=True)
                self.catalog.create_table("t", _schema(step), partition_by=step["partitions"])
            case _:
                assert step["do"] == "replace"
                stage = engine.stage(
                    self.catalog, "replace", "t", _schema(step), partitioning=step["partitions"]
                )
                engine.commit_stage(self.catalog, stage)

    def _change(self, change: dict[str, Any]) -> dict[str, Any]:
        condition = change.get("condition")
        if condition is None:
            return change
        check = {
            "kind": "check",
            "columns": [[condition.column]],
            "sql": f"`{condition.column}` {condition.op} {condition.value!r}",
            "predicate": predicate(condition).to_json(),
        }
        return {"change": "add-constraint", "constraint": {**change["constraint"], **check}}


def _arrow(table: Table, step: Step) -> pa.Table:
    schema = schema_to_arrow(table.schema)
    given_schema = pa.schema([schema.field(name) for name in step["columns"]])
    return pa.Table.from_pylist(step["rows"], given_schema)


def _schema(step: Step) -> Any:
    return schema_from_spark({"type": "struct", "fields": step["columns"]})


def check_version(table: Table, state: State, where: Condition | None) -> None:
    found_rows = table.to_arrow()
    assert list(found_rows.schema.names) == [column.name for column in state.columns]
    rows = state.seen()
    assert in_order(found_rows.to_pylist()) == in_order(rows)
    assert table.row_count == len(rows)
    assert dict(table.properties) == dict(state.properties)
    if where is not None:
        matching_rows = table.scan(filter=predicate(where)).to_arrow().to_pylist()
        assert in_order(matching_rows) == in_order([row for row in rows if where.holds(row)]), where


def run(draw: Draw, count: int) -> None:
    client = Client()
    first = first_step(draw)
    note(str(first))
    client.do(first)
    client.handles[1] = client.table
    model = Model(State((), (), 0))
    model.state = model.made(first)
    model.past = {1: model.state}
    removed_pairs: list[tuple[str, dict[int, State]]] = []
    for _ in range(count):
        step = draw_step(draw, model, with_late=True)
        table_before = client.table
        try:
            state_after, may_be_refused = model.after(step)
            expected = "either" if may_be_refused else "done"
        except Refused:
            state_after, expected = model.state, "refused"
        note(f"{step}  # {expected}")
        try:
            client.do(step)
            is_done = True
        except LakelogError as error:
            is_done = False
            note(f"# {error}")
        event(f"{step['do']} {step.get('changes', [{}])[-1].get('change', '')} {expected}, {is_done}")
        assert is_done is {"done": True, "refused": False, "either": is_done}[expected]
        table = client.table
        if is_done and step["do"] == "create":
            removed_pairs.append((table_before.id, model.past))
            model.past, client.handles = {1: state_after}, {}
        elif is_done and table.version != table_before.version:
            # A rename is a version too, and this step makes two of them.
            new_number = 2 if step["do"] == "rename-table" else 1
            assert table.version == table_before.version + new_number
            model.past |= {table_before.version + n: state_after for n in range(1, new_number + 1)}
        elif is_done:  # what changes nothing makes no version
            assert in_order(state_after.seen()) == in_order(model.state.seen())
        else:
            assert (table.id, table.version) == (table_before.id, table_before.version)
        model.state = state_after if is_done else model.state
        # A rename makes two versions, which have the same definition.
        client.handles |= dict.fromkeys(
            (version for version in model.past if version not in client.handles), table
        )
        check_version(table, model.state, None)
    fresh = Catalog(client.catalog.warehouse)
    for version, state in model.past.items():
        check_version(fresh.load_table("t", version=version), state, draw_condition(draw, state.columns))
    for number, (id, past) in enumerate(removed_pairs):
        fresh.undrop_table("t", id=id, to=f"old {number}")
        for version, state in past.items():
            old = fresh.load_table((f"old {number}",), version=version)
            check_version(old, state, draw_condition(draw, state.columns))


@settings(max_examples=examples(50, full=2000))
@given(data=st.data())
def test_every_version_has_the_columns_and_rows_of_the_model(data: st.DataObject) -> None:
    run(data.draw, data.draw(st.integers(1, 20)))
