"""What is there before the first writer starts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.processes import moves
from tests.processes.journal import DONE, Journal
from tests.processes.world import COMMON, PARTS, SCHEMA, SHARED, World, own, rows_from


def set_up(world: World) -> None:
    """Make what every writer relies on. No writer drops or renames any of it."""
    catalog = world.catalog("setup")
    journal = Journal(world.journals / "setup.000001.jsonl")
    for namespace in (SHARED, COMMON, *map(own, world.writers)):
        catalog.create_namespace(namespace)
    catalog.create_table((SHARED, "t0"), SCHEMA)
    catalog.create_table((SHARED, PARTS), SCHEMA, partition_by=["owner"])

    def fill(table: str, cells: Sequence[tuple[int, str, int]]) -> None:
        token, key = catalog.token(table), f"setup.1.{table}"
        request = {"op": "fill", "table": table, "commit": token.commit_id, "cells": cells}
        journal.write({"key": key, "request": request})
        data = rows_from([(id, key, owner, value) for id, owner, value in cells])
        catalog.load_table(table).append(data, token=token)
        journal.write({"key": key, "answer": DONE})

    moves.set_up(catalog, fill)
