"""The four workloads of LST-Bench in small: how lakelog's, Iceberg's and Delta's tables slow down as they are changed.

LST-Bench (SIGMOD 2024) runs tasks on TPC-DS in phases: queries, changes of data, and the format's own compaction.

- longevity: queries, then five times two changes and the queries again.
- resilience: queries, then 2, 4 and 6 changes, each with queries before and after a compaction.
- concurrency: queries beside 2, 4 and 6 changes, and beside a compaction after each.
- time travel: two changes at a time, each followed by the queries at every earlier state, the newest first.

This scenario has the phases, and less of the work. It runs some queries of the store channel, and changes its two fact
tables alone, which have no partitions. A change deletes the rows of two days (MERGE of the returns, DELETE of the
sales) and inserts the same rows again. So all states have the same rows, which is checked after each phase, and only
the files make a phase slower. The dimensions are Parquet files for every engine.

Each engine has a Spark in a process of its own, and they take turns at each phase. A phase shows its seconds, and their
ratio to the engine's first queries. The degradation rate is LST-Bench's: the mean of (this - previous) / previous
over the phases with queries. lakelog keeps its upkeep, which a session does by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean
from typing import Annotated, Literal

from programs.bench.data import tpcds
from programs.bench.measure import rotated
from programs.bench.places import folder
from programs.bench.scenario import Row, Rows
from programs.bench.sparks import ENGINES, Worker

FACTS = ("store_sales", "store_returns")
QUERIES = (1, 7, 42, 50, 65, 79, 93, 98)
DAYS = (2_450_820, 1_800)
"""The first of the days that have sales, and the number of days that changes choose from."""

WARM_UP = 5
"""Times that the queries run before the first phase. After a single time, phases still got quicker."""


@dataclass(frozen=True)
class Phase:
    """The work that runs side by side: queries, changes, a compaction.

    `at` is an earlier phase. The queries then read the state at its end.
    """

    name: str
    queries: bool = False
    changes: int = 0
    compaction: bool = False
    at: str = ""


def _longevity() -> Iterator[Phase]:
    yield Phase("queries 1", queries=True)
    for number in range(1, 6):
        yield Phase(f"changes {number}", changes=2)
        yield Phase(f"queries {number + 1}", queries=True)


def _resilience() -> Iterator[Phase]:
    yield Phase("queries 1", queries=True)
    for number in range(1, 4):
        yield Phase(f"changes {number}", changes=2 * number)
        yield Phase(f"queries {number + 1}", queries=True)
        yield Phase(f"compaction {number}", compaction=True)
        yield Phase(f"queries {number + 1}, compacted", queries=True)


def _concurrency() -> Iterator[Phase]:
    for number in range(1, 4):
        yield Phase(f"queries beside {2 * number} changes", queries=True, changes=2 * number)
        yield Phase(f"queries beside compaction {number}", queries=True, compaction=True)


def _time_travel() -> Iterator[Phase]:
    for number in range(1, 5):
        yield Phase(f"changes {number}", changes=2)
        for back in range(number - 1, -1, -1):
            at = f"changes {back}" if back else "build"
            yield Phase(f"queries at {at}, after changes {number}", queries=True, at=at)


WORKLOADS = {
    "longevity": _longevity,
    "resilience": _resilience,
    "concurrency": _concurrency,
    "time-travel": _time_travel,
}


@dataclass
class Contender:
    """An engine with the fact tables of a workload, and the times of its phases."""

    worker: Worker
    queries: Sequence[str]
    namespace: str = ""
    changes: int = 0
    moments: dict[str, str] = field(default_factory=dict)

    def build(self, workload: str, clauses: str) -> None:
        self.namespace, self.changes = workload.replace("-", "_"), 0
        place = f"{self.worker.engine.catalog}.{self.namespace}"
        self.worker.check(f"CREATE NAMESPACE {place}")
        self.worker.check(f"USE {place}")
        for name in FACTS:
            self.worker.check(f"CREATE TABLE {place}.{name} {clauses} AS SELECT * FROM source_{name}")
        self.moments = {}
        self._remember("build")

    def run(self, phase: Phase) -> float:
        """Return the seconds of the queries, or of the phase if it has none."""
        sides = []
        if phase.queries:
            if phase.at:
                self._go_to(phase.at)
            sides.append(list(self.queries))
        if phase.changes:
            first, self.changes = self.changes, self.changes + phase.changes
            sides.append([text for number in range(first, self.changes) for text in change(number)])
        if phase.compaction:
            sides.append([self.worker.engine.compact.format(n=f"{self.namespace}.{name}") for name in FACTS])
        answers = self.worker.side_by_side(sides)
        if errors := [error for answer in answers for error in answer["errors"]]:
            raise RuntimeError(f"{self.worker.engine.name}, {phase.name}: {errors[0]}")
        self._remember(phase.name)
        self.check()
        if phase.at:
            for name in FACTS:
                self.worker.check(f"DROP VIEW {name}")
        return float(sum(answers[0]["seconds"]))

    def check(self) -> None:
        """Raise RuntimeError unless the names of the tables stand for the rows with which they began."""
        for name in FACTS:
            sums = "count(*), sum(CAST(xxhash64(*) AS DECIMAL(38)))"
            rows, source_rows = (
                self.worker.check(f"SELECT {sums} FROM {at}") for at in (name, f"source_{name}")
            )
            if rows != source_rows:
                raise RuntimeError(f"{self.worker.engine.name}: {name} has {rows}, not {source_rows}")

    def _remember(self, phase: str) -> None:
        ((self.moments[phase],),) = self.worker.check("SELECT current_timestamp()")

    def _go_to(self, phase: str) -> None:
        """Let names of fact tables stand for what they were after a phase."""
        for name in FACTS:
            table = f"{self.worker.engine.catalog}.{self.namespace}.{name}"
            moment = self.moments[phase]
            self.worker.check(
                f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM {table} TIMESTAMP AS OF '{moment}'"
            )


def change(number: int) -> Iterator[str]:
    """Delete two days of sales and their returns, and insert the same rows."""
    first, count = DAYS
    day = first + number * 607 % count
    dates = f"ss_sold_date_sk BETWEEN {day} AND {day + 1}"
    tickets = f"SELECT DISTINCT ss_ticket_number FROM source_store_sales WHERE {dates}"
    yield f"MERGE INTO store_returns USING ({tickets}) ON sr_ticket_number = ss_ticket_number WHEN MATCHED THEN DELETE"
    yield f"DELETE FROM store_sales WHERE {dates}"
    yield f"INSERT INTO store_sales SELECT * FROM source_store_sales WHERE {dates}"
    yield f"INSERT INTO store_returns SELECT * FROM source_store_returns WHERE sr_ticket_number IN ({tickets})"


def measure(
    scale: Annotated[float, "TPC-DS' scale factor"] = 0.1,
    workloads: Sequence[Literal["longevity", "resilience", "concurrency", "time-travel"]] = (
        "longevity",
        "resilience",
        "concurrency",
        "time-travel",
    ),
    queries: Annotated[Sequence[int], "of TPC-DS, of the store channel"] = QUERIES,
    contenders: Sequence[Literal["lakelog", "iceberg", "delta"]] = ("lakelog", "iceberg", "delta"),
    mode: Annotated[Literal["merge-on-read", "copy-on-write"], "of changes of rows"] = "merge-on-read",
) -> Rows:
    small = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    with folder() as place, ExitStack() as stack:
        sources, texts = tpcds.generate(place / "source", scale), tpcds.queries(queries)
        rivals = []
        for name in contenders:
            worker = stack.enter_context(Worker(ENGINES[name], place, **small))
            for table, path in sources.items():
                view = f"source_{table}" if table in FACTS else table
                worker.check(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM parquet.`{path}`")
            rivals.append(Contender(worker, list(texts.values())))
        yield ", ".join(f"{rival.worker.engine.name}: Spark {rival.worker.spark_version}" for rival in rivals)
        for workload in workloads:
            yield from _run(workload, rivals, mode)


def _run(workload: str, rivals: Sequence[Contender], mode: str) -> Iterator[Row]:
    for rival in rivals:
        rival.build(workload, rival.worker.engine.clauses(mode))
        for _ in range(WARM_UP):
            rival.run(Phase("warm-up", queries=True))
    series: dict[str, list[float]] = {rival.worker.engine.name: [] for rival in rivals}
    for turn, phase in enumerate(WORKLOADS[workload]()):
        seconds = {rival.worker.engine.name: rival.run(phase) for rival in rotated(rivals, turn)}
        for name in series:
            if phase.queries:
                series[name].append(seconds[name])
        yield {
            "workload": workload,
            "phase": phase.name,
            **{f"{name}, s": seconds[name] for name in series},
            **{
                f"{name}, of first": seconds[name] / series[name][0] if phase.queries else None
                for name in series
            },
        }
    yield {
        "workload": workload,
        **{
            f"degradation rate, {name}": mean(
                after_s / before_s - 1 for before_s, after_s in pairwise(durations)
            )
            for name, durations in series.items()
        },
    }
