"""Random changes of namespaces and tables by two clients, held against a model of plain dicts; then all of the past."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.examples import examples

from lakelog.catalog import (
    Catalog,
    ColumnExists,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)

NAMES = ["a", "b", "x.y"]
COLUMNS = ["p", "q", "r"]
Row = dict[int, Any]
Past = tuple[int, dict[str, int], list[Row]]


@dataclass
class ModelTable:
    """A table as a dict would have it: columns by name with a number that is never used again, rows by number."""

    columns: dict[str, int]
    rows: list[Row] = field(default_factory=list)
    past: list[Past] = field(default_factory=list)

    def seen(self) -> list[dict[str, Any]]:
        return shown(self.columns, self.rows)

    def remember(self, version: int) -> None:
        self.past.append((version, dict(self.columns), [dict(row) for row in self.rows]))


def shown(columns: dict[str, int], rows: list[Row]) -> list[dict[str, Any]]:
    return [{name: row.get(number) for name, number in columns.items()} for row in rows]


def read(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


names = st.sampled_from(NAMES)
columns = st.sampled_from(COLUMNS)


class CatalogModel(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        warehouse = f"memory://{uuid.uuid4().hex}"
        self.clients = [Catalog(warehouse), Catalog(warehouse)]
        self.namespaces: dict[str, dict[str, ModelTable]] = {}
        self.numbers = itertools.count()
        self.create_namespace(0, "a")
        self.create_table(0, "a", "a")
        self.create_table(1, "a", "b")

    @property
    def tables(self) -> list[tuple[str, str, ModelTable]]:
        return [
            (namespace, name, model)
            for namespace, all_namespace in self.namespaces.items()
            for name, model in all_namespace.items()
        ]

    @rule(client=st.integers(0, 1), name=names)
    def create_namespace(self, client: int, name: str) -> None:
        try:
            self.clients[client].create_namespace((name,))
        except NamespaceExists:
            assert name in self.namespaces
        else:
            assert name not in self.namespaces
            self.namespaces[name] = {}

    @rule(client=st.integers(0, 1), name=names, cascade=st.booleans())
    def drop_namespace(self, client: int, name: str, cascade: bool) -> None:
        try:
            dropped_namespace = self.clients[client].drop_namespace((name,), missing_ok=True, cascade=cascade)
        except NamespaceNotEmpty:
            assert self.namespaces[name]
            assert not cascade
        else:
            assert dropped_namespace == (name in self.namespaces)
            assert cascade or not self.namespaces.get(name)
            self.namespaces.pop(name, None)

    @rule(client=st.integers(0, 1), namespace=names, name=names)
    def create_table(self, client: int, namespace: str, name: str) -> None:
        schema = pa.schema([("id", pa.int64()), ("p", pa.int64())])
        try:
            table = self.clients[client].create_table((namespace, name), schema)
        except NoSuchNamespace:
            assert namespace not in self.namespaces
        except TableExists:
            assert name in self.namespaces[namespace]
        else:
            assert name not in self.namespaces[namespace]
            new_table = ModelTable({"id": next(self.numbers), "p": next(self.numbers)})
            self.namespaces[namespace][name] = new_table
            new_table.remember(table.version)

    @rule(client=st.integers(0, 1), namespace=names, name=names)
    def drop_table(self, client: int, namespace: str, name: str) -> None:
        dropped_table = self.clients[client].drop_table((namespace, name), missing_ok=True)
        assert dropped_table == (self.namespaces.get(namespace, {}).pop(name, None) is not None)

    @rule(client=st.integers(0, 1), namespace=names, old=names, new=names)
    def rename_table(self, client: int, namespace: str, old: str, new: str) -> None:
        tables = self.namespaces.get(namespace)
        try:
            self.clients[client].rename_table((namespace, old), (namespace, new))
        except NoSuchNamespace:
            assert tables is None
        except NoSuchTable:
            assert tables is not None
            assert old not in tables
        except TableExists:
            assert tables is not None
            assert new in tables
        else:
            assert tables is not None
            tables[new] = tables.pop(old)

    @precondition(lambda self: self.tables)
    @rule(client=st.integers(0, 1), data=st.data(), count=st.integers(1, 3), over=st.booleans())
    def write(self, client: int, data: st.DataObject, count: int, over: bool) -> None:
        namespace, name, model = data.draw(st.sampled_from(self.tables))
        table = self.clients[client].load_table((namespace, name))
        new = [{number: next(self.numbers) for number in model.columns.values()} for _ in range(count)]
        rows = pa.Table.from_pylist(shown(model.columns, new))
        table = table.overwrite(rows) if over else table.append(rows)
        model.rows = new if over else model.rows + new
        model.remember(table.version)

    @precondition(lambda self: self.tables)
    @rule(client=st.integers(0, 1), data=st.data())
    def truncate(self, client: int, data: st.DataObject) -> None:
        namespace, name, model = data.draw(st.sampled_from(self.tables))
        table = self.clients[client].load_table((namespace, name)).truncate()
        model.rows = []
        model.remember(table.version)

    @precondition(lambda self: self.tables)
    @rule(client=st.integers(0, 1), data=st.data(), column=columns)
    def add_column(self, client: int, data: st.DataObject, column: str) -> None:
        change = {"change": "add-column", "name": [column], "type": "long", "nullable": True}
        self.alter(client, data, change, column, None)

    @precondition(lambda self: self.tables)
    @rule(client=st.integers(0, 1), data=st.data(), column=columns)
    def drop_column(self, client: int, data: st.DataObject, column: str) -> None:
        change = {"change": "delete-column", "name": [column], "if_exists": True}
        self.alter(client, data, change, None, column)

    @precondition(lambda self: self.tables)
    @rule(client=st.integers(0, 1), data=st.data(), old=columns, new=columns)
    def rename_column(self, client: int, data: st.DataObject, old: str, new: str) -> None:
        if old != new:
            change = {"change": "rename-column", "name": [old], "new_name": new}
            self.alter(client, data, change, new, old)

    def alter(
        self, client: int, data: st.DataObject, change: dict[str, Any], new: str | None, old: str | None
    ) -> None:
        namespace, name, model = data.draw(st.sampled_from(self.tables))
        if change["change"] == "rename-column" and old not in model.columns:
            return
        try:
            table = self.clients[client].load_table((namespace, name)).alter([change])
        except ColumnExists:
            assert new in model.columns
            return
        assert new not in model.columns
        number = model.columns.pop(old, None) if old is not None else None
        if new is not None:
            model.columns[new] = next(self.numbers) if number is None else number
        if not model.past or model.past[-1][0] != table.version:
            model.remember(table.version)

    @invariant()
    def both_clients_see_what_the_model_has(self) -> None:
        for client in self.clients:
            assert client.list_namespaces() == sorted((name,) for name in self.namespaces)
            for namespace, tables in self.namespaces.items():
                assert client.list_tables((namespace,)) == sorted((namespace, name) for name in tables)
                for name, model in tables.items():
                    table = client.load_table((namespace, name))
                    assert sorted(table.schema.names) == sorted(model.columns)
                    assert table.row_count == len(model.rows)

    def teardown(self) -> None:
        for namespace, tables in getattr(self, "namespaces", {}).items():
            for name, model in tables.items():
                table = Catalog(self.clients[0].warehouse).load_table((namespace, name))
                for version, seen_columns, rows in model.past:
                    expected = sorted(shown(seen_columns, rows), key=repr)
                    found = [
                        {column: row[column] for column in seen_columns}
                        for row in table.at(version=version).to_arrow().to_pylist()
                    ]
                    assert sorted(found, key=repr) == expected


CatalogModel.TestCase.settings = settings(
    max_examples=examples(16, full=160), stateful_step_count=40, deadline=None
)
TestCatalogModel = CatalogModel.TestCase
