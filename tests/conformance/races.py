"""Races of writers, as scripts: the steps of each client in their order, their outcomes, and the rows at the end.

lakelog goes through them when the kit is made. `run.py --writer` has another client go through them.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from tests.conformance import lakelog_reader
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case

from lakelog.catalog import Catalog, NoSuchTable, Table
from lakelog.catalog.core.state import FilesVacuumed, encode
from lakelog.log import Draft
from lakelog.log.errors import ConflictError


def fill(bench: Bench) -> None:
    bench.catalog.create_table("t", NAMED).append(named(0))


CASE = Case("race", "the warehouse that races of writers begin with", fill)

Steps = list[tuple[str, str, int]]
"""The client, what it does, and the first id of the rows that it appends."""

RACES: dict[str, tuple[str, Steps]] = {
    "two-appends": (
        "two appends that began at the same version: both are there",
        [("one", "begin", 0), ("two", "begin", 0), ("one", "append", 10), ("two", "append", 20)],
    ),
    "last-of-three": (
        "an append that began before others, and commits after them",
        [
            ("one", "begin", 0),
            ("two", "begin", 0),
            ("two", "append", 10),
            ("two", "append", 20),
            ("one", "append", 30),
        ],
    ),
    "append-to-nothing": (
        "an append to a table that was dropped since",
        [("one", "begin", 0), ("two", "drop", 0), ("one", "append", 10)],
    ),
    "append-behind-a-fence": (
        "an append that began before a fence: its files may be deleted",
        [("one", "begin", 0), ("two", "append", 10), ("two", "fence", 0), ("one", "append", 20)],
    ),
}


def script_of(name: str, warehouse: str) -> dict[str, Any]:
    """Go through a race in a warehouse of the case `race`. Returns its script with all outcomes."""
    about, steps = RACES[name]
    writes: dict[str, Any] = {}
    outcomes = []
    for client, what, first in steps:
        step: dict[str, Any] = {"client": client, "do": what}
        if what == "append":
            step["rows"] = [list(row.values()) for row in named(first).to_pylist()]
        outcomes.append(
            step | {"outcome": outcome_of(Catalog(warehouse), writes, client, what, named(first))}
        )
    try:
        end: dict[str, Any] = {"answer": lakelog_reader.answer([warehouse, "rows", "t"])}
    except NoSuchTable:
        end = {"exit": lakelog_reader.ABSENT}
    return {
        "about": about,
        "case": CASE.name,
        "table": "t",
        "steps": outcomes,
        "then": {"ask": ["rows", "t"], **end},
    }


def outcome_of(catalog: Catalog, began: dict[str, Table], client: str, what: str, rows: pa.Table) -> str:
    """Do a step of a race, and return its outcome. `began` has the table that each client has loaded."""
    try:
        match what:
            case "begin":
                began[client] = catalog.load_table("t")
            case "append":
                table = began.pop(client) if client in began else catalog.load_table("t")
                table.append(rows)
            case "drop":
                catalog.drop_table("t")
            case "fence":
                head = catalog.load_table("t").table_head
                draft = Draft(events=encode([FilesVacuumed(files=0, size_bytes=0)]), fence=head.version + 1)
                head.tracked.commit(head.view, lambda view, passed: draft)
    except NoSuchTable:
        return "gone"
    except ConflictError:
        return "conflict"
    return "done"


def script_json(script: dict[str, Any]) -> bytes:
    return (json.dumps(script, indent=2, ensure_ascii=False) + "\n").encode()
