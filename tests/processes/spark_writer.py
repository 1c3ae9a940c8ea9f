"""A writer in Spark: SQL through the adapter, until it is killed. Its statements cannot be given ids.

So every request bears a mark of its own that shows in the log: its key in its rows or properties, or in a table's name.
Its own tables' names are used once. Nothing is retried, except by the adapter itself when its Python side was killed.

    python -m tests.processes.spark_writer <world.json> <writer> <incarnation>
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.processes.journal import DONE, FAILED, UNKNOWN, Journal, Journals
from tests.processes.work import ROWS_MAX, Request
from tests.processes.world import PARTS, SHARED, World, first_id, load_world, own, shared_tables

from lakelog.spark import spark_conf
from lakelog.testing.s3a import s3a_settings

OWN_TABLES_MAX = 5
PREPARES_MAX = 100
NOT_KNOWN = ("retry with the same commit id", "may have happened", "outcome")


def session(world: World) -> SparkSession:
    options: dict[str, Any] = dict(world.options)
    fsync = options.pop("fsync", None)
    path_style = options.pop("path_style", None)
    conf = spark_conf(
        world.warehouse,
        maintenance="on-demand",
        fsync=None if fsync is None else fsync == "on",
        path_style=None if path_style is None else path_style == "true",
        s3a=False,
        **options,
    )
    if world.warehouse.startswith("s3://"):
        s3a = s3a_settings()
        conf["spark.jars"] = ",".join(filter(None, [conf["spark.jars"], s3a.pop("spark.jars", "")]))
        conf |= s3a
    builder = SparkSession.builder.master("local[2]").appName("lakelog kills")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        **conf,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class SparkWriter:
    def __init__(self, world: World, writer: str, incarnation: int) -> None:
        self._name = f"{writer}.{incarnation}"
        self._journal = Journal(world.journals / f"{writer}.{incarnation:06}.jsonl")
        self._writer = writer
        self._rng = random.Random(f"{world.seed} {self._name}")
        self._next_id = first_id(world.writers.index(writer), incarnation)
        # Only to see which shared table is the newest: statements go through Spark.
        self._catalog = world.catalog()
        self._tables = _own_tables(Journals(world.journals), writer)
        self._spark = session(world)

    def work(self) -> None:
        number = 0
        while True:
            number += 1
            key = f"{self._name}.{number}"
            kinds: list[Callable[[str], tuple[Request, str] | None]] = [
                self._append,
                self._append,
                self._overwrite,
                self._create,
                self._drop,
                self._rename,
                self._alter,
            ]
            prepared_kind = self._rng.choice(kinds)(key)
            if prepared_kind is not None:
                self._ask(key, *prepared_kind)

    def _ask(self, key: str, request: Request, statement: str) -> None:
        self._journal.write({"key": key, "request": request})
        try:
            self._spark.sql(statement)
            answer, noted = DONE, {}
        except PySparkException as error:
            text = str(error)
            answer = UNKNOWN if any(words in text for words in NOT_KNOWN) else FAILED
            noted = {"error": f"{type(error).__name__}: {text[:500]}"}
        self._journal.write({"key": key, "answer": answer} | noted)
        if answer == DONE and request["op"] == "create":
            self._tables.append(request["table"])

    def _append(self, key: str) -> tuple[Request, str]:
        name = shared_tables(self._catalog)[-1]
        request, rows = self._rows("append", key, name)
        return request, f"INSERT INTO lake.{name} {rows}"

    def _overwrite(self, key: str) -> tuple[Request, str]:
        request, rows = self._rows("overwrite", key, f"{SHARED}.{PARTS}")
        target = f"lake.{SHARED}.{PARTS} PARTITION (owner = '{self._writer}')"
        return request, f"INSERT OVERWRITE {target} SELECT id, op, value FROM ({rows})"

    def _create(self, key: str) -> tuple[Request, str] | None:
        if len(self._tables) >= OWN_TABLES_MAX:
            return None
        name = f"{own(self._writer)}.c_{key.replace('.', '_')}"
        request, rows = self._rows("create", key, name)
        return request | {"mark": f"link {_short(name)}"}, f"CREATE TABLE lake.{name} AS {rows}"

    def _drop(self, key: str) -> tuple[Request, str] | None:
        if not self._tables:
            return None
        name = self._tables.pop(self._rng.randrange(len(self._tables)))
        return {"op": "drop", "table": name, "mark": f"unlink {_short(name)}"}, f"DROP TABLE lake.{name}"

    def _rename(self, key: str) -> tuple[Request, str] | None:
        if not self._tables:
            return None
        name = self._tables.pop(self._rng.randrange(len(self._tables)))
        new = f"{own(self._writer)}.r_{key.replace('.', '_')}"
        request = {"op": "rename", "table": name, "new": new, "mark": f"rename {_short(new)}"}
        return request, f"ALTER TABLE lake.{name} RENAME TO {new}"

    def _alter(self, key: str) -> tuple[Request, str]:
        name = f"{SHARED}.{PARTS}"
        request = {"op": "alter", "table": name, "property": self._writer, "value": key, "mark": f"set {key}"}
        return request, f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('{self._writer}' = '{key}')"

    def _rows(self, op: str, key: str, name: str) -> tuple[Request, str]:
        first, count = self._next_id, self._rng.randint(1, ROWS_MAX)
        self._next_id += count
        request = {"op": op, "table": name, "first": first, "count": count, "key": key, "owner": self._writer}
        # One task writes all rows, or each of two its part: a statement is one commit in either way.
        rows = (
            f"SELECT id, '{key}' AS op, '{self._writer}' AS owner, 0L AS value "
            f"FROM range({first}, {first + count}, 1, {self._rng.randint(1, 2)})"
        )
        return request, rows


def _own_tables(journals: Journals, writer: str) -> list[str]:
    """The writer's tables that are there for certain: nothing doubtful was asked about them."""
    journals.read_on()
    tables: list[str] = []
    for asked_request in journals.asked.values():
        request = asked_request.request
        if asked_request.key.partition(".")[0] == writer:
            if request["op"] == "create" and asked_request.outcome == DONE:
                tables.append(request["table"])
            elif request["op"] in ("drop", "rename") and request["table"] in tables:
                tables.remove(request["table"])
    return tables


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def main() -> None:
    world = load_world(sys.argv[1])
    SparkWriter(world, sys.argv[2], int(sys.argv[3])).work()


if __name__ == "__main__":
    main()
