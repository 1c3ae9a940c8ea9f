"""Transactions over several tables that keep something true which no single table can show.

    bank   accounts in three tables; money moves between them: the sum never changes
    ring   nodes in three tables, each naming the next one; links are changed three at a time: it stays one ring
    duty   pairs over two tables; one that goes looks whether the other one stays: never are both gone

A cell is one row, alone in its partition. A request says what it read in which cell, and what it wrote there, so that
the verifier can put all transactions in the order of their times and see whether each one read what was there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.processes.world import SCHEMA, rows_from

from lakelog.catalog import col
from lakelog.catalog.engine import CatalogNames

BANK, RING, DUTY = "bank", "ring", "duty"
TABLES = {BANK: ("a", "b", "c"), RING: ("a", "b", "c"), DUTY: ("a", "b")}
ACCOUNTS, NODES, PAIRS = 9, 9, 4
BALANCE = 100
ON, OFF = 1, 0

Cell = tuple[str, int]  # the table's name and the row's id


def cells(kind: str) -> dict[Cell, int]:
    """Return the cells of a kind with their values at the beginning."""
    if kind == DUTY:
        return {(f"duty.{table}", pair): ON for table in TABLES[DUTY] for pair in range(PAIRS)}
    count = ACCOUNTS if kind == BANK else NODES
    values = [BALANCE] * count if kind == BANK else [(node + 1) % count for node in range(count)]
    return {place(kind, number): values[number] for number in range(count)}


def place(kind: str, number: int) -> Cell:
    """Neighbours are in different tables."""
    tables = TABLES[kind]
    return f"{kind}.{tables[number % len(tables)]}", number


def wrong_in(kind: str, found: Mapping[Cell, int]) -> str | None:
    """Say what is not true any more of all cells of a kind, as they were at one moment."""
    if found.keys() != cells(kind).keys():
        return f"the {kind} has the cells {sorted(found)}"
    match kind:
        case "bank":
            total = sum(found.values())
            return None if total == ACCOUNTS * BALANCE else f"the bank has {total} in all"
        case "ring":
            at, length = 0, 0
            while length <= NODES:
                at, length = found[place(RING, at)], length + 1
                if at == 0:
                    break
            return None if length == NODES else f"the ring closes after {length} nodes: {dict(found)}"
        case _:
            removed_numbers = [
                p for p in range(PAIRS) if all(found[f"duty.{t}", p] == OFF for t in TABLES[DUTY])
            ]
            return f"both are gone of the pairs {removed_numbers}" if removed_numbers else None


@dataclass(frozen=True)
class Plan:
    """What a transaction is to do: new values for some cells, relying on the present values of all that it read."""

    read: dict[Cell, int]
    write: dict[Cell, int]


def isolation(kind: str) -> str | None:
    """Only a serializable transaction may rely on what it does not write."""
    return "serializable" if kind == DUTY else None


def draw(catalog: CatalogNames, kind: str, rng: random.Random) -> Plan | None:
    """Read some cells in `catalog`, a transaction, and decide what to change. None if nothing can be."""
    return {BANK: _transfer, RING: _relink, DUTY: _take_turns}[kind](catalog, rng)


def _transfer(catalog: CatalogNames, rng: random.Random) -> Plan | None:
    """From one account to one or two others, all in different tables."""
    first = rng.randrange(ACCOUNTS)
    places = [place(BANK, (first + step) % ACCOUNTS) for step in range(rng.choice([2, 3]))]
    read = {cell: value_of(catalog, cell) for cell in places}
    source, *targets = places
    amount = rng.randint(1, 20)
    if read[source] < amount * len(targets):
        return None
    write = {source: read[source] - amount * len(targets)}
    return Plan(read, write | {cell: read[cell] + amount for cell in targets})


def _relink(catalog: CatalogNames, rng: random.Random) -> Plan:
    """Let the two nodes after one change places: r0 → r1 → r2 → r3 becomes r0 → r2 → r1 → r3."""
    r0 = rng.randrange(NODES)
    first = place(RING, r0)
    r1 = value_of(catalog, first)
    second = place(RING, r1)
    r2 = value_of(catalog, second)
    third = place(RING, r2)
    r3 = value_of(catalog, third)
    read = {first: r1, second: r2, third: r3}
    return Plan(read, {first: r2, second: r3, third: r1})


def _take_turns(catalog: CatalogNames, rng: random.Random) -> Plan:
    """Leave if the other one stays, or come back."""
    pair = rng.randrange(PAIRS)
    read = {cell: value_of(catalog, cell) for cell in (("duty.a", pair), ("duty.b", pair))}
    removed_cells = [cell for cell, value in read.items() if value == OFF]
    return Plan(read, {removed_cells[0]: ON} if removed_cells else {rng.choice(list(read)): OFF})


def write(catalog: CatalogNames, plan: Plan, key: str) -> None:
    """Stage the new values of `plan` in `catalog`, a transaction."""
    for (table, id), value in plan.write.items():
        catalog.load_table(table).overwrite_partitions(rows_from([(id, key, owner(id), value)]))


def owner(id: int) -> str:
    """The partition of a cell."""
    return f"cell{id}"


def value_of(catalog: CatalogNames, cell: Cell) -> int:
    table, id = cell
    rows = catalog.load_table(table).scan(["value"], filter=col("owner") == owner(id)).to_arrow()
    [value] = rows["value"].to_pylist()
    return int(value)


def found_in(catalog: CatalogNames, kind: str) -> Iterator[tuple[Cell, int]]:
    """Yield all cells of a kind as `catalog` shows them."""
    for letter in TABLES[kind]:
        table = catalog.load_table(f"{kind}.{letter}")
        for row in table.to_arrow().to_pylist():
            yield (f"{kind}.{letter}", row["id"]), row["value"]


def as_request(catalog: CatalogNames, plan: Plan) -> dict[str, Any]:
    """Return the plan as a journal keeps it: tables by the ids of their logs."""

    def noted(values: Mapping[Cell, int]) -> list[list[Any]]:
        return [[catalog.load_table(table).id, id, value] for (table, id), value in values.items()]

    return {"read": noted(plan.read), "write": noted(plan.write)}


def set_up(catalog: CatalogNames, fill: Any) -> None:
    """Make the tables, and have `fill` append the first rows to them."""
    for kind, letters in TABLES.items():
        catalog.create_namespace(kind)
        for letter in letters:
            name = f"{kind}.{letter}"
            catalog.create_table(name, SCHEMA, partition_by=["owner"])
            fill(
                name, [(id, owner(id), value) for (table, id), value in cells(kind).items() if table == name]
            )
