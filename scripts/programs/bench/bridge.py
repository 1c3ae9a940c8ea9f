"""What the bridge between Spark and Python costs: a round trip, and a plan of many files, without Spark."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lakelog.catalog import Catalog
from lakelog.spark.frames import Frame, read_frame, write_frame
from lakelog.spark.jar import version
from programs import story
from programs.bench.measure import median, seconds
from programs.bench.plan import SCHEMA, big_table


class Child:
    """The Python side as Spark runs it, with one catalog open."""

    def __init__(self, warehouse: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakelog.spark.bridge"], stdin=pipe, stdout=pipe
        )
        self._catalog: dict[str, int] = {}
        self.ask("hello", {"version": version(), "spark": "4.3.0"})
        settings = {"warehouse": warehouse, "fsync": "off"}
        self._catalog = self.ask("open_catalog", {"settings": settings})[0]["ok"]

    def ask(self, method: str, params: dict[str, Any]) -> tuple[Any, int]:
        """Return the answer, and how many bytes came beside it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"method": method, "params": params, **self._catalog}
        write_frame(self._process.stdin, Frame(1, json.dumps(request).encode()))
        answer = read_frame(self._process.stdout)
        assert answer is not None, "the Python side has ended"
        return json.loads(answer.text), len(answer.body)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench bridge", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--round-trips", type=int, default=20_000)
    parser.add_argument("--plans", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        warehouse = str(Path(folder) / "warehouse")
        catalog = Catalog(warehouse, options={"fsync": "off"})
        catalog.create_namespace("bench")
        catalog.create_table("bench.small", SCHEMA)
        big_table(catalog, arguments.files)
        child = Child(warehouse)
        try:
            lines = _measured(child, arguments)
        finally:
            child.close()
    story.table(["", "median µs", "95 % within µs"], lines, title=__doc__)


def _measured(child: Child, arguments: argparse.Namespace) -> list[list[str]]:
    facts = child.ask("load_table", {"identifier": ["bench", "big"]})[0]["ok"]
    named = {key: facts[key] for key in ("location", "id", "version", "past", "step")}
    everything = {"op": "ALWAYS_TRUE", "args": []}
    small = {"identifier": ["bench", "small"]}
    questions: list[tuple[str, int, Callable[[], object]]] = [
        (
            "a request that does nothing",
            arguments.round_trips,
            partial(child.ask, "abandon_transaction", {"transaction": "none"}),
        ),
        ("load a small table", arguments.round_trips // 20, partial(child.ask, "load_table", small)),
        (
            f"plan {arguments.files:,} files",
            arguments.plans,
            partial(child.ask, "plan", {**named, "predicate": everything}),
        ),
    ]
    return [_line(name, rounds, question) for name, rounds, question in questions]


def _line(name: str, rounds: int, question: Callable[[], object]) -> list[str]:
    question()
    spent = sorted(seconds(question) for _ in range(rounds))
    slow = spent[int(len(spent) * 0.95)]
    return [name, *(f"{value * 1_000_000:,.1f}" for value in (median(spent), slow))]


if __name__ == "__main__":
    main()
