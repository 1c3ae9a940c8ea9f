"""Random lives of a warehouse: two clients change it, and the command has to report exactly what happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.printing import objects

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.names import quoted_where_needed
from lakelog.cli.main import run

STEPS = 30
SCHEMA = pa.schema({"id": pa.int64(), "kind": pa.string()})


class Life:
    """A warehouse with two clients, and what its tables should hold: one plain record for each version."""

    def __init__(self, warehouse: str, seed: int) -> None:
        self.warehouse = warehouse
        self.random = random.Random(seed)
        self.clients = [
            Catalog(warehouse, options={"fsync": "off"}, writer={"engine": name}) for name in ("one", "two")
        ]
        self.clients[0].create_namespace("ns")
        self.tables: dict[str, list[tuple[str, list[int]]]] = {}
        self.next_id = 0

    def step(self) -> None:
        actions: list[Callable[[], None]] = [self.create]
        if self.tables:
            actions += [self.append] * 5 + [
                self.delete,
                self.truncate,
                self.rename,
                self.drop,
                self.add_column,
            ]
        self.random.choice(actions)()

    def client(self) -> Catalog:
        return self.random.choice(self.clients)

    def some_table(self) -> tuple[str, Table]:
        name = self.random.choice(sorted(self.tables))
        return name, self.client().load_table(("ns", name))

    def create(self) -> None:
        self.next_id += 1
        name = self.random.choice(("t", "a.b", "späte Tabelle", "t/x")) + str(self.next_id)
        kind = {"transform": "identity", "args": [], "column": ["kind"]}
        self.client().create_table(("ns", name), SCHEMA, partition_by=[kind])
        self.tables[name] = [("create", [])]

    def append(self) -> None:
        name, table = self.some_table()
        ids = list(range(self.next_id, self.next_id + self.random.randint(1, 5)))
        self.next_id += len(ids)
        table.append(pa.table({"id": ids, "kind": ["even" if id % 2 == 0 else "odd" for id in ids]}))
        self.tables[name].append(("append", sorted(self.tables[name][-1][1] + ids)))

    def delete(self) -> None:
        name, table = self.some_table()
        numbers_before = self.tables[name][-1][1]
        table_after = table.delete(col("kind") == "odd")
        if table_after.version > table.version:
            self.tables[name].append(("delete", [id for id in numbers_before if id % 2 == 0]))
        else:
            assert all(id % 2 == 0 for id in numbers_before), (
                "nothing was committed, so nothing may have matched"
            )

    def truncate(self) -> None:
        name, table = self.some_table()
        table.truncate()
        self.tables[name].append(("truncate", []))

    def add_column(self) -> None:
        name, table = self.some_table()
        self.next_id += 1
        table.alter([{"change": "add-column", "name": [f"c{self.next_id}"], "type": "string"}])
        self.tables[name].append(("change schema", self.tables[name][-1][1]))

    def rename(self) -> None:
        name = self.random.choice(sorted(self.tables))
        self.next_id += 1
        new = f"renamed {self.next_id}"
        self.client().rename_table(("ns", name), ("ns", new))
        self.tables[new] = self.tables.pop(name)
        self.tables[new].append(("move", self.tables[new][-1][1]))

    def drop(self) -> None:
        name = self.random.choice(sorted(self.tables))
        assert self.client().drop_table(("ns", name))
        del self.tables[name]


def check(life: Life, command: Callable[..., Any]) -> None:
    """Compare what the command reports, and every version, with what should be there."""
    assert command("ls", "ns") == [
        {"kind": "table", "name": quoted_where_needed(("ns", name))} for name in sorted(life.tables)
    ]
    fresh = Catalog(life.warehouse)
    for name, versions in life.tables.items():
        reference = f"ns.`{name}`"
        history = command("history", reference)
        assert [entry["operation"] for entry in reversed(history)] == [operation for operation, _ in versions]
        assert [entry["version"] for entry in reversed(history)] == list(range(1, len(versions) + 1))
        assert command("show", reference)["rows"] == len(versions[-1][1])
        assert sum(file["rows"] for file in command("files", reference)) == len(versions[-1][1])
        table = fresh.load_table(("ns", name))
        for version, (_, ids) in enumerate(versions, start=1):
            assert sorted(table.at(version=version).to_arrow()["id"].to_pylist()) == ids


def live(seed: int, warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    def command(*arguments: str) -> Any:
        assert run([*arguments, "--json", "--warehouse", warehouse]) == 0, capsys.readouterr().err
        answers = objects(capsys.readouterr().out)
        return answers[0] if arguments[0] == "show" else answers

    life = Life(warehouse, seed)
    for _ in range(STEPS):
        life.step()
    check(life, command)


@pytest.mark.parametrize("seed", range(8))
def test_the_command_reports_what_two_clients_did(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live(seed, str(tmp_path / "warehouse"), capsys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 200))
def test_the_command_reports_what_two_clients_did_in_many_lives(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live(seed, str(tmp_path / "warehouse"), capsys)
