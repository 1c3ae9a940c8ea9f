"""The cost of the bridge between Spark and Python: a round trip, and a plan of many files, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lakelog.catalog import Catalog
from lakelog.spark.frames import BridgeFrame, read_frame, write_frame
from lakelog.spark.jar import version
from programs.bench.data.file_lists import SMALL_SCHEMA, plain_table
from programs.bench.measure import seconds, within
from programs.bench.places import folder
from programs.bench.scenario import Row


class Child:
    """The Python side as Spark runs it, with an open catalog, until the block ends."""

    def __init__(self, warehouse: Path) -> None:
        command = [sys.executable, "-m", "lakelog.spark.bridge"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._catalog: dict[str, int] = {}
        self.ask("hello", {"version": version(), "spark": "4.3.0"})
        settings = {"warehouse": str(warehouse), "fsync": "off"}
        self._catalog = self.ask("open_catalog", {"settings": settings})["ok"]

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"method": method, "params": params, **self._catalog}
        write_frame(self._process.stdin, BridgeFrame(1, json.dumps(request).encode()))
        answer = read_frame(self._process.stdout)
        assert answer is not None, "the Python side has ended"
        return json.loads(answer.text)


def measure(files: int = 100_000, round_trips: int = 20_000, plans: int = 10) -> Iterator[Row]:
    with folder() as place:
        catalog = Catalog(place, options={"fsync": "off"})
        catalog.create_namespace("bench")
        catalog.create_table("bench.small", SMALL_SCHEMA)
        plain_table(catalog, files)
        with Child(place) as child:
            facts = child.ask("load_table", {"identifier": ["bench", "big"]})["ok"]
            table_facts = {key: facts[key] for key in ("location", "id", "version", "past", "step")}
            predicate = {"op": "ALWAYS_TRUE", "args": []}
            small = {"identifier": ["bench", "small"]}
            questions: dict[str, tuple[int, Callable[[], object]]] = {
                "a request that does nothing": (
                    round_trips,
                    partial(child.ask, "abandon_transaction", {"transaction": "none"}),
                ),
                "load a small table": (round_trips // 20, partial(child.ask, "load_table", small)),
                f"plan {files:,} files": (
                    plans,
                    partial(child.ask, "plan", {**table_facts, "predicate": predicate}),
                ),
            }
            for name, (times, question) in questions.items():
                question()
                yield {"": name, **within([seconds(question) for _ in range(times)], "µs")}
