"""Statements in Spark: lakelog beside Iceberg and Delta, and plain Parquet tables of the same two Sparks.

Every contender has a Spark session in a process and an environment of its own. In each round they take turns, so that a
busy machine hits all of them alike. Peers run on the newest Spark that both have releases for. This command makes its
environment, `.venv-bench-4.1`, and the jars come from Maven Central. Parquet tables on both Sparks show the effect of
the Spark version alone. The final rows are compared, because a quick but wrong statement does not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Literal

from programs.bench.measure import rotated
from programs.bench.places import folder
from programs.bench.scenario import Row, Rows
from programs.bench.sparks import ENGINES, Engine, Worker

ROW = (
    "id, id % 200 AS day, id % 97 AS k, CAST(id AS DOUBLE) / 2 AS v, concat('name ', id % 1000) AS s, "
    "CAST(timestamp_seconds(1700000000 + id) AS TIMESTAMP) AS at"
)


@dataclass(frozen=True)
class Dialect:
    """An engine's own statements about changed rows."""

    changes: str = ""
    feed: str = ""
    """The property that turns on the record of changes."""


DIALECTS = {
    "lakelog": Dialect(
        changes="SELECT count(*) FROM {t} CHANGES FROM VERSION 2 WITH (computeUpdates = 'true')",
    ),
    "delta": Dialect(
        changes="SELECT count(*) FROM table_changes('{t}', 1)",
        feed="delta.enableChangeDataFeed",
    ),
}

Statement = Callable[[Engine], str]
"""A statement is empty if an engine has none for it."""


class Contest:
    """The contenders, and their seconds for each statement."""

    def __init__(self, workers: Sequence[Worker], mode: str) -> None:
        self.workers, self.mode = workers, mode
        self.times: dict[str, dict[str, list[float]]] = {}
        self._turn = 0

    def turns(self, name: str, statement: Statement) -> None:
        """Run a statement once for each contender. Another contender begins each time."""
        self._turn += 1
        for worker in rotated(self.workers, self._turn):
            if text := statement(worker.engine):
                self.times.setdefault(name, {}).setdefault(worker.engine.name, []).append(worker.run(text)[0])

    def same(self, statement: Statement) -> None:
        """Raise RuntimeError unless a query returns the same rows for every contender that can run it."""
        texts = {worker: statement(worker.engine) for worker in self.workers}
        rows_by_engine = {worker.engine.name: worker.check(text) for worker, text in texts.items() if text}
        if len({json.dumps(rows) for rows in rows_by_engine.values()}) > 1:
            raise RuntimeError(f"the contenders' tables differ: {rows_by_engine}")

    def rows(self, names: Sequence[str], unit: str, factor: float) -> Iterator[Row]:
        for name in names:
            cells = {
                worker.engine.name: [
                    duration * factor for duration in self.times[name].get(worker.engine.name, [])
                ]
                for worker in self.workers
            }
            yield {unit: name, **cells}

    def properties(self, engine: Engine, feed: bool = False) -> str:
        key = _dialect(engine).feed
        return engine.clauses(self.mode, **({key: str(feed).lower()} if key else {}))


def _dialect(engine: Engine) -> Dialect:
    return DIALECTS.get(engine.name, Dialect())


def _table(engine: Engine, name: str) -> str:
    return f"{engine.catalog}.bench.{name}"


def measure(
    parts: Sequence[Literal["definitions", "rows", "contention"]] = ("definitions", "rows", "contention"),
    contenders: Annotated[Sequence[str], "some alone"] = tuple(ENGINES),
    mode: Annotated[Literal["merge-on-read", "copy-on-write"], "of changes of rows"] = "merge-on-read",
    tables: int = 50,
    rows: int = 2_000_000,
    rounds: int = 5,
    warm_up: Annotated[int, "tables that are not measured"] = 10,
) -> Rows:
    small = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    with folder() as place, ExitStack() as stack:
        workers = [stack.enter_context(Worker(ENGINES[name], place, **small)) for name in contenders]
        yield ", ".join(
            f"{worker.engine.name}: {worker.engine.version} Spark {worker.spark_version}"
            for worker in workers
        )
        for worker in workers:
            worker.check(f"CREATE NAMESPACE {worker.engine.catalog}.bench")
        if "definitions" in parts:
            yield from _definitions(Contest(workers, mode), tables, warm_up)
        if "rows" in parts:
            yield from _rows(Contest(workers, mode), rows, rounds)
        if "contention" in parts:
            yield from _contention(Contest(workers, mode), threads=4, each=10)


# Of {t}, which is table {n} of the catalog {c}
DEFINITIONS = {
    "CREATE TABLE": "CREATE TABLE {t} (id BIGINT, name STRING, at TIMESTAMP) USING {p}",
    "ADD COLUMN": "ALTER TABLE {t} ADD COLUMN more STRING COMMENT 'new'",
    "SET TBLPROPERTIES": "ALTER TABLE {t} SET TBLPROPERTIES ('k' = 'w')",
    "DESCRIBE": "DESCRIBE TABLE {t}",
    "SHOW TABLES": "SHOW TABLES IN {c}.bench",
    "INSERT of one row": "INSERT INTO {t} SELECT 1, 'x', TIMESTAMP '2026-01-01', 'y'",
    "SELECT of that row": "SELECT * FROM {t}",
}


def _said(text: str, number: int) -> Statement:
    return lambda e: text.format(t=_table(e, f"t{number}"), c=e.catalog, p=e.provider)


def _definitions(contest: Contest, tables: int, warm_up: int) -> Iterator[Row]:
    for number in range(warm_up + tables):
        if number == warm_up:
            contest.times.clear()
        for name, text in DEFINITIONS.items():
            contest.turns(name, _said(text, number))
    for number in range(warm_up + tables):
        contest.turns("DROP TABLE", _said("DROP TABLE {t}", number))
    yield from contest.rows([*DEFINITIONS, "DROP TABLE"], "ms", 1000)


def _rows(contest: Contest, rows: int, rounds: int) -> Iterator[Row]:
    """Create, read and change tables of some million rows."""

    def created(name: str, feed: bool = False, partitioned: bool = False) -> Statement:
        clauses = ("PARTITIONED BY (day)", "DISTRIBUTE BY day") if partitioned else ("", "")
        return lambda e: (
            f"CREATE TABLE {_table(e, name)} {contest.properties(e, feed)} {clauses[0]} "
            f"AS SELECT {ROW} FROM range({rows}) {clauses[1]}"
        )

    def reading(text: str, name: str = "c0") -> Statement:
        return lambda e: text.format(t=_table(e, name))

    def changing(text: str, number: int = 0, name: str = "c0") -> Statement:
        return lambda e: text.format(t=_table(e, name), r=number) if e.properties else ""

    # Each part begins with a round that does not count, because a JVM is slow at first.
    for number in range(1 + rounds):
        contest.turns("CTAS" if number else "", created(f"c{number}"))
    for number in range(max(1, rounds // 2)):
        contest.turns("CTAS, 200 partitions", created(f"p{number}", partitioned=True))
    scan = "SELECT count(*), sum(v), max(s), min(at) FROM {t}"
    contest.turns("", reading(scan))
    for _ in range(rounds):
        contest.turns("scan", reading(scan))
        contest.turns("scan of one partition", reading(scan + " WHERE day = 77", "p0"))
        contest.turns("count of all", reading("SELECT count(*) FROM {t}"))
    contest.same(reading(scan, "p0"))
    changes = {
        "UPDATE of 1 %": "UPDATE {t} SET v = v + 1 WHERE id % 100 = {r}",
        "DELETE of 1 %": "DELETE FROM {t} WHERE id % 100 = 50 + {r}",
        "MERGE of 1 %": f"MERGE INTO {{t}} t USING (SELECT {ROW} FROM (SELECT id * 50 + {{r}} AS id FROM "
        f"range({rows // 50}))) s ON t.id = s.id AND s.id % 100 < 50 WHEN MATCHED THEN UPDATE SET v = s.v + 7 "
        "WHEN NOT MATCHED THEN INSERT *",
    }
    for number in range(1 + rounds):
        for name, text in changes.items():
            contest.turns(name if number else "", changing(text, number))
    for _ in range(rounds):
        contest.turns("scan after these", changing(scan))
    contest.same(changing(scan))
    contest.turns("compaction", lambda e: e.compact.format(n="bench.c0"))
    contest.same(changing(scan))

    def of_changes(statement: Statement) -> Statement:
        return lambda e: statement(e) if _dialect(e).changes else ""

    contest.turns("", of_changes(created("f", feed=True)))
    for number in range(3):
        for name in ("UPDATE of 1 %", "DELETE of 1 %"):
            contest.turns("", of_changes(changing(changes[name], number, "f")))
    for _ in range(rounds):
        contest.turns("changes of rows", lambda e: _dialect(e).changes.format(t=_table(e, "f")))
    yield from contest.rows([name for name in contest.times if name], "s", 1)


def _contention(contest: Contest, threads: int, each: int) -> Iterator[Row]:
    """Let threads of a session write to a table at once."""
    kinds = {
        "INSERTs": "INSERT INTO {t} VALUES ({w}, {n})",
        "UPDATEs of different rows": "UPDATE {t} SET n = n + 1 WHERE w = {w}",
    }
    for worker in contest.workers:
        engine, table = worker.engine, _table(worker.engine, "busy")
        if not engine.properties:
            continue
        worker.check(f"CREATE TABLE {table} (w BIGINT, n BIGINT) {contest.properties(engine)}")
        cells: dict[str, object] = {}
        for name, text in kinds.items():
            lists = [[text.format(t=table, w=w, n=n) for n in range(each)] for w in range(threads)]
            parts = worker.side_by_side(lists)
            failures = sum(len(part["errors"]) for part in parts)
            took_s = max(sum(part["seconds"]) for part in parts)
            cells[f"{name} a second"] = (threads * each - failures) / took_s
            cells[f"failed {name}"] = f"{failures} of {threads * each}"
        row_count, updates = worker.check(f"SELECT count(*), sum(n) FROM {table}")[0]
        yield {f"{threads} threads": engine.name, **cells, "rows": row_count, "sum": updates}
