"""Random changes of rows by two clients, held against a dict of rows with ids and versions; then all of the past."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.integration.catalog.rows_changed import deletes_of, paths_of
from tests.property.examples import examples

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.predicate import ALWAYS_FALSE
from lakelog.catalog.engine import DataFile
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import WriteRef

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
Model = dict[int, tuple[str, int, int]]
"""Of an id: its name, row id and row version."""


def seen(table: Table) -> Model:
    found_columns = table.scan(row_ids=True).to_arrow().to_pydict()
    columns = (found_columns[name] for name in ("name", "_row_id", "_row_version"))
    assert len(set(found_columns["id"])) == len(found_columns["id"]), "a row is there twice"
    return dict(zip(found_columns["id"], zip(*columns, strict=True), strict=True))


class RowsModel(RuleBasedStateMachine):
    @initialize(partitioned=st.booleans(), mode=st.sampled_from(["merge-on-read", "copy-on-write"]))
    def start(self, partitioned: bool, mode: str) -> None:
        warehouse = f"memory://{uuid.uuid4().hex}"
        self.clients = [Catalog(warehouse), Catalog(warehouse)]
        by: list[Any] = [{"transform": "bucket", "args": [2], "column": ["id"]}] if partitioned else []
        self.clients[0].create_table(
            "t", SCHEMA, partition_by=by, properties={"lakelog.write.delete.mode": mode}
        )
        self.numbers = itertools.count()
        self.rows: Model = {}
        self.next_row = 0
        self.past: dict[int, Model] = {1: {}}

    def table(self, client: int) -> Table:
        return self.clients[client].load_table("t")

    def committed(self, table: Table, rows: Model) -> None:
        self.rows = rows
        self.past[table.version] = dict(rows)

    def chosen(self, data: st.DataObject) -> list[int]:
        return sorted(data.draw(st.sets(st.sampled_from(sorted(self.rows)), min_size=1)))

    def written(self, table: Table, write: WriteRef, ids: Sequence[int], name: str) -> list[DataFile]:
        """Write updated rows as an engine does: with their ids, and the version of their commit."""
        schema = pa.schema([*SCHEMA, ("_row_id", pa.int64()), ("_row_version", pa.int64())])
        columns = [ids, [name] * len(ids), [self.rows[id][1] for id in ids], [None] * len(ids)]
        metadata = table.metadata
        return write_files(
            table.table_head.tracked.store,
            table.table_head.tracked.prefix,
            write,
            pa.table(columns, schema=schema).to_reader(),
            metadata.schema,
            metadata.spec,
            metadata.sort_order,
            properties={},
            row_ids=True,
        )

    @rule(client=st.integers(0, 1), count=st.integers(1, 5))
    def append(self, client: int, count: int) -> None:
        ids = [next(self.numbers) for _ in range(count)]
        table = self.table(client).append(pa.table({"id": ids, "name": ["new"] * count}, schema=SCHEMA))
        state = seen(table)
        new = {id: state[id] for id in ids}
        assert {row_id for _, row_id, _ in new.values()} == set(range(self.next_row, self.next_row + count))
        assert {version for _, _, version in new.values()} == {table.version}
        self.next_row += count
        self.committed(table, self.rows | new)

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data(), apart=st.booleans())
    def delete_by_position(self, client: int, data: st.DataObject, apart: bool) -> None:
        ids, table = self.chosen(data), self.table(client)
        with patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0 if apart else 512):
            table = engine.commit_rows(
                table, engine.begin_write(table), "delete", deletes=deletes_of(table, ids)
            )
        self.committed(table, {id: row for id, row in self.rows.items() if id not in ids})

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data())
    def delete_by_filter(self, client: int, data: st.DataObject) -> None:
        ids = self.chosen(data)
        table = self.table(client).delete(col("id").is_in(ids))
        self.next_row = table.table_head.view.state.next_row  # copies take some
        self.committed(table, {id: row for id, row in self.rows.items() if id not in ids})

    @precondition(lambda self: self.rows)
    @rule(
        client=st.integers(0, 1),
        data=st.data(),
        count=st.integers(0, 3),
        stale=st.booleans(),
        moved=st.booleans(),
    )
    def overwrite_by_filter(
        self, client: int, data: st.DataObject, count: int, stale: bool, moved: bool
    ) -> None:
        """Overwrite some rows of files, while others may delete one of them, or of those beside them, and compact."""
        removed_numbers, new = self.chosen(data), [next(self.numbers) for _ in range(count)]
        table = self.table(client)
        if stale:
            other_row = data.draw(st.sampled_from(sorted(self.rows)))
            theirs = self.table(1 - client).delete(col("id") == other_row)
            self.next_row = theirs.table_head.view.state.next_row
            self.committed(theirs, {id: row for id, row in self.rows.items() if id != other_row})
        if moved:
            theirs = self.table(1 - client).compact(deleted_ratio=0)
            self.next_row = theirs.table_head.view.state.next_row
            self.committed(theirs, self.rows)
        rows = pa.table({"id": new, "name": ["over"] * count}, schema=SCHEMA)
        try:
            table = table.overwrite(rows, col("id").is_in(removed_numbers))
        except CommitConflict:
            assert stale
            return
        assert not stale or other_row not in removed_numbers
        state = seen(table)
        added = {id: state[id] for id in new}
        assert min([row_id for _, row_id, _ in added.values()], default=self.next_row) >= self.next_row
        assert {version for _, _, version in added.values()} <= {table.version}
        self.next_row = table.table_head.view.state.next_row
        self.committed(table, {id: row for id, row in self.rows.items() if id not in removed_numbers} | added)

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data(), name=st.sampled_from("abc"))
    def update(self, client: int, data: st.DataObject, name: str) -> None:
        ids, table = self.chosen(data), self.table(client)
        write = engine.begin_write(table)
        files = self.written(table, write, ids, name)
        table = engine.commit_rows(table, write, "update", files, deletes=deletes_of(table, ids))
        self.next_row = table.table_head.view.state.next_row
        self.committed(table, self.rows | {id: (name, self.rows[id][1], table.version) for id in ids})

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data())
    def compact(self, client: int, data: st.DataObject) -> None:
        table = self.table(client)
        removed_texts = sorted(data.draw(st.sets(st.sampled_from(paths_of(table)), min_size=1)))
        write, plan = engine.begin_write(table), table.plan()
        some_plan = plan.filter(pa.array([path in removed_texts for path in plan["path"].to_pylist()]))
        condition = bind(ALWAYS_FALSE, table.schema)
        files = copied_files(table.table_head, some_plan, condition, write)
        table = engine.commit_rows(table, write, "compact", files, removed=removed_texts)
        self.next_row = table.table_head.view.state.next_row
        self.committed(table, dict(self.rows))

    @rule(client=st.integers(0, 1), data=st.data(), rows_only=st.booleans())
    def go_back(self, client: int, data: st.DataObject, rows_only: bool) -> None:
        version, table = data.draw(st.sampled_from(sorted(self.past))), self.table(client)
        table = table.set_current_version(version) if rows_only else table.rollback_to_version(version)
        self.committed(table, dict(self.past[version]))

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data())
    def transaction_of_overwrites(self, client: int, data: st.DataObject) -> None:
        """Overwrite rows twice in a transaction, the second time what the first one has brought, too."""
        first, second = self.chosen(data), self.chosen(data)
        new = [next(self.numbers) for _ in range(3)]
        tx = self.clients[client].begin()
        table = tx.load_table("t")
        rows = pa.table({"id": new[:2], "name": ["tx"] * 2}, schema=SCHEMA)
        table = table.overwrite(rows, col("id").is_in(first))
        rows = pa.table({"id": new[2:], "name": ["tx"]}, schema=SCHEMA)
        table.overwrite(rows, col("id").is_in([*second, new[0]]))
        tx.commit()
        table = self.table(client)
        state, removed_numbers = seen(table), {*first, *second}
        added = {id: state[id] for id in new[1:]}
        assert all(row_id >= self.next_row for _, row_id, _ in added.values())
        self.next_row = table.table_head.view.state.next_row
        self.committed(table, {id: row for id, row in self.rows.items() if id not in removed_numbers} | added)

    @precondition(lambda self: self.rows)
    @rule(client=st.integers(0, 1), data=st.data())
    def transaction(self, client: int, data: st.DataObject) -> None:
        """Delete some rows and add one in a transaction, while others are deleted outside of it."""
        mine = self.chosen(data)
        remaining_rows = sorted(self.rows.keys() - set(mine))
        theirs = sorted(data.draw(st.sets(st.sampled_from(remaining_rows)))) if remaining_rows else []
        id = next(self.numbers)
        tx = self.clients[client].begin()
        table = tx.load_table("t")
        table = engine.commit_rows(
            table, engine.begin_write(table), "delete", deletes=deletes_of(table, mine)
        )
        table.append(pa.table({"id": [id], "name": ["tx"]}, schema=SCHEMA))
        other_table = self.table(1 - client)
        if theirs:
            other_table = engine.commit_rows(
                other_table,
                engine.begin_write(other_table),
                "delete",
                deletes=deletes_of(other_table, theirs),
            )
            self.committed(other_table, {id: row for id, row in self.rows.items() if id not in theirs})
        tx.commit()
        table = self.table(client)
        rows = {id: row for id, row in self.rows.items() if id not in mine}
        self.committed(table, rows | {id: ("tx", self.next_row, table.version)})
        self.next_row += 1

    @invariant()
    def both_clients_see_what_the_model_has(self) -> None:
        for client in (0, 1) if hasattr(self, "clients") else ():
            table = self.table(client)
            assert seen(table) == self.rows
            assert table.row_count == len(self.rows)

    def teardown(self) -> None:
        if not hasattr(self, "clients"):
            return
        table = Catalog(self.clients[0].warehouse).load_table("t")
        for version, rows in self.past.items():
            assert seen(table.at(version=version)) == rows
        findings = fsck.check_warehouse(self.clients[0]._logs, deep=True, all_versions=True).found
        # What a conflict or a later step of a transaction has made useless is left to vacuum.
        assert {finding.kind for finding in findings} <= {"data-file-unused"}


RowsModel.TestCase.settings = settings(
    max_examples=examples(12, full=120), stateful_step_count=25, deadline=None
)
TestRowsModel = RowsModel.TestCase
