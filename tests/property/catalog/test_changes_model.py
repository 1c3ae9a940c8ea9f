"""Random changes of rows, columns and contents: the changes between any two versions make the one of the other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.integration.catalog.rows_changed import deletes_of
from tests.property.catalog.test_rows_model import SCHEMA, RowsModel, seen
from tests.property.examples import examples

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.engine import DataFile
from lakelog.catalog.looking.changelog.changelog import Changelog, changes_schema
from lakelog.log import WriteRef

Row = tuple[Any, ...]
PAIRS = 12
"""So many pairs of versions are looked at in each example, beside all neighbours."""


class ChangesModel(RowsModel):
    def __init__(self) -> None:
        super().__init__()
        self.columns = itertools.count()

    def written(self, table: Table, write: WriteRef, ids: Sequence[int], name: str) -> list[DataFile]:
        more = table.schema.names[2:]
        ids_of_rows = [self.rows[id][1] for id in ids]
        data = {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([name] * len(ids)),
            **{column: pa.array([8] * len(ids), pa.int32()) for column in more},
            "_row_id": pa.array(ids_of_rows, pa.int64()),
            "_row_version": pa.nulls(len(ids), pa.int64()),
        }
        metadata = table.metadata
        return write_files(
            table.table_head.tracked.store,
            table.table_head.tracked.prefix,
            write,
            pa.table(data).to_reader(),
            metadata.schema,
            metadata.spec,
            metadata.sort_order,
            properties={},
            row_ids=True,
        )

    @rule(client=st.integers(0, 1), count=st.integers(0, 4))
    def overwrite(self, client: int, count: int) -> None:
        ids = [next(self.numbers) for _ in range(count)]
        table = self.table(client).overwrite(pa.table({"id": ids, "name": ["over"] * count}, schema=SCHEMA))
        self.next_row = table.table_head.view.state.next_row
        self.committed(table, seen(table))
        assert self.rows.keys() == set(ids)

    @rule(client=st.integers(0, 1), data=st.data())
    def change_columns(self, client: int, data: st.DataObject) -> None:
        table = self.table(client)
        extra: list[str] = list(table.schema.names[2:])
        removes: bool = data.draw(st.booleans())
        if extra and removes:
            change: dict[str, Any] = {"change": "delete-column", "name": [data.draw(st.sampled_from(extra))]}
        else:
            name = f"c{next(self.columns)}"
            default = data.draw(st.sampled_from([None, {"current": "7"}]))
            change = {"change": "add-column", "name": [name], "type": "integer", "default": default}
        self.committed(table.alter([change]), dict(self.rows))

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data())
    def update_twice_in_a_transaction(self, client: int, data: st.DataObject) -> None:
        ids = self.chosen(data)
        again, removed_id = (data.draw(st.sampled_from(ids)) for _ in range(2))
        tx = self.clients[client].begin()
        table = tx.load_table("t")
        for step, chosen_ids in enumerate((ids, [again])):
            write = engine.begin_write(table)
            files = self.written(table, write, chosen_ids, f"step {step}")
            table = engine.commit_rows(table, write, "update", files, deletes=deletes_of(table, chosen_ids))
        engine.commit_rows(
            table, engine.begin_write(table), "delete", deletes=deletes_of(table, [removed_id])
        )
        tx.commit()
        table = self.table(client)
        self.next_row = table.table_head.view.state.next_row
        rows = self.rows | {id: ("step 0", self.rows[id][1], table.version) for id in ids}
        rows[again] = ("step 1", self.rows[again][1], table.version)
        del rows[removed_id]
        self.committed(table, rows)

    def teardown(self) -> None:
        if not hasattr(self, "clients"):
            return
        table = Catalog(self.clients[0].warehouse).load_table("t")
        versions = sorted(self.past)
        pairs = list(itertools.combinations(versions, 2))
        for number_before, number_after in {
            *itertools.pairwise(versions),
            *pairs[:: max(1, len(pairs) // PAIRS)],
        }:
            check_changes(table, number_before, number_after)


def check_changes(table: Table, before: int, after: int) -> None:
    """Hold all ways of reading the changes between two versions against the rows of both."""
    other_rows, own_rows = rows_at(table, before, after), rows_at(table, after, after)
    every = table.changes(before + 1, after)
    check_said(every._log, read(table, every._log.plan(), every._log))
    assert applied_rows(other_rows, every.to_arrow()) == own_rows
    updates = table.changes(before + 1, after, updates=True).to_arrow()
    assert applied_rows(other_rows, updates) == own_rows
    check_halves(updates, halves=("update_preimage", "update_postimage"), by=["_row_id", "_commit_version"])
    for has_names in (False, True):
        net = table.changes(before + 1, after, net=True, updates=has_names).to_arrow()
        assert applied_rows(other_rows, net, net=True) == own_rows
        halves = ("update_preimage", "update_postimage") if has_names else ("delete", "insert")
        check_halves(net, halves=halves, by=["_row_id"])


def check_said(log: Changelog, raw: pa.Table) -> None:
    """Hold what is said of changes before they are read against the changes that are planned."""
    pairs: dict[tuple[int, int], list[int]] = {}
    columns = (raw[name].to_pylist() for name in ("_row_id", "_commit_version", "_row_version"))
    for id, version, of_row in zip(*columns, strict=True):
        pairs.setdefault((id, version), []).append(of_row)
    twice = [numbers for numbers in pairs.values() if len(numbers) > 1]
    assert all(len(numbers) == 2 for numbers in twice)
    assert log.may_carry or all(number != other_number for number, other_number in twice)
    assert log.may_update or not twice
    assert log.may_repeat or len({id for id, _ in pairs}) == len(pairs)


def check_halves(changes: pa.Table, *, halves: tuple[str, str], by: list[str]) -> None:
    """Of what `by` distinguishes, each has one change, or both halves of one."""
    found: dict[Row, list[str]] = {}
    for row in changes.select([*by, "_change_type"]).to_pylist():
        found.setdefault(tuple(row[name] for name in by), []).append(row["_change_type"])
    assert all(len(types) == 1 or sorted(types) == sorted(halves) for types in found.values())


def applied_rows(rows: dict[int, Row], changes: pa.Table, *, net: bool = False) -> dict[int, Row]:
    """Apply changes to rows by their ids. What is deleted has to be there as the change has it."""
    rows = dict(rows)
    versions, types = (changes[name].to_pylist() for name in ("_commit_version", "_change_type"))
    given_rows = changes.drop_columns(["_change_type", "_commit_version", "_commit_timestamp"]).to_pylist()
    assert net or versions == sorted(versions)
    comes = [each in ("insert", "update_postimage") for each in types]
    for i in sorted(range(len(given_rows)), key=lambda i: (0 if net else versions[i], comes[i])):
        id, row = given_rows[i]["_row_id"], tuple(given_rows[i].values())
        if comes[i]:
            assert id not in rows
            rows[id] = row
        else:
            assert rows.pop(id) == row
    return rows


def rows_at(table: Table, version: int, columns_of: int) -> dict[int, Row]:
    """Return the rows of a version by their ids, in the columns of another one."""
    log = Changelog(table.table_head, columns_of + 1, columns_of)
    assert log.schema == changes_schema(table.at(version=columns_of).schema)
    found = read(table, table.at(version=version).plan(), log, table.at(version=columns_of).schema.names)
    return {row["_row_id"]: tuple(row.values()) for row in found.to_pylist()}


def read(table: Table, plan: pa.Table, log: Changelog, columns: Sequence[str] | None = None) -> pa.Table:
    tracked_log = table.table_head.tracked
    schema, batches = read_files(
        tracked_log.store, tracked_log.prefix, plan, log.schema, (), columns=columns, row_ids=True
    )
    return pa.Table.from_batches(batches, schema)


ChangesModel.TestCase.settings = settings(
    max_examples=examples(6, full=40), stateful_step_count=14, deadline=None
)
TestChangesModel = ChangesModel.TestCase
