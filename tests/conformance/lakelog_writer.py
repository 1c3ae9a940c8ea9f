"""Takes part in the races of the conformance kit by lakelog: `python -m tests.conformance.lakelog_writer WAREHOUSE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from tests.conformance.cases.tables import NAMED
from tests.conformance.races import outcome_of
from tests.conformance.run import Step

from lakelog.catalog import Catalog, Table
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.log.background import wait_for_background


def join(stack: ExitStack, warehouse: str) -> Step:
    """Return a client of a race in this process. Its work after commits ends before the stack does."""
    stack.callback(wait_for_background)
    stack.callback(wait_for_upkeep)
    catalog = Catalog(warehouse, options={"fsync": "off"})
    began: dict[str, Table] = {}

    def step(asked: Mapping[str, Any]) -> str:
        rows = [dict(zip(NAMED.names, row, strict=True)) for row in asked["rows"]]
        return outcome_of(catalog, began, "self", asked["do"], pa.Table.from_pylist(rows, NAMED))

    return step


def main(warehouse: str, lines: Iterable[str]) -> None:
    """Answer each step."""
    step = join(ExitStack(), warehouse)
    for line in lines:
        print(json.dumps({"outcome": step(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin)
