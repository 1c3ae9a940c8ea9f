"""TPC-DS: its 99 queries on lakelog's tables, beside Spark's own Parquet tables with the same rows.

All tables are in the same session, and the fact tables are partitioned by day. A DELETE took about 6 % of the rows
from each of lakelog's fact tables. It made deletion vectors (merge-on-read) or new files (copy-on-write). The Parquet
tables were written without these rows. The contenders take turns at each query. If an answer differs from that of the
Parquet tables, the command fails after the last query. The goal is a ratio of at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

from pyspark.sql import SparkSession

from programs.bench.data import tpcds
from programs.bench.data.tpcds import Answer
from programs.bench.measure import rotated, seconds, turns
from programs.bench.places import folder
from programs.bench.scenario import Row, Rows, say
from programs.bench.sparks import ENGINES, spark_on

PARQUET = "Parquet"
Mode = Literal["merge-on-read", "copy-on-write"]


def measure(
    scale: Annotated[float, "TPC-DS' scale factor; 1 has 20 million rows"] = 1,
    rounds: int = 3,
    queries: Annotated[Sequence[int], "some alone"] = (),
    modes: Sequence[Mode] = ("merge-on-read", "copy-on-write"),
    unpartitioned: Annotated[bool, "fact tables without partitions"] = False,
) -> Rows:
    with folder() as place:
        settings = {
            # This is lakelog's default. Spark's is snappy, and a comparison of codecs would say nothing about catalogs.
            "spark.sql.parquet.compression.codec": "zstd",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(place / "parquet"),
            "spark.sql.catalogImplementation": "in-memory",
        }
        spark = spark_on(place / "warehouse", settings, fsync=False, maintenance="on-demand")
        contest = Contest(spark, modes)
        contest.build(tpcds.generate(place / "source", scale), "" if unpartitioned else "{day}")
        for number, text in tpcds.queries(queries).items():
            yield contest.row(f"query {number}", contest.run(number, text, rounds))
        yield contest.row("all", contest.totals())
        yield from contest.remarks()
        spark.stop()
        if contest.differences:
            raise RuntimeError("\n".join(contest.differences))


class Contest:
    """Namespaces of one session with the same rows, and the seconds of each query."""

    def __init__(self, spark: SparkSession, modes: Sequence[Mode]) -> None:
        self._spark = spark
        self._places = {
            PARQUET: "spark_catalog.tpcds",
            **{str(mode): f"lake.{mode.replace('-', '_')}" for mode in modes},
        }
        self._times: dict[int, dict[str, list[float]]] = {}
        self._answers: dict[str, Answer] = {}
        self.differences: list[str] = []
        self.empty: list[int] = []

    def build(self, sources: Mapping[str, Path], by: str) -> None:
        for name, place in self._places.items():
            say(f"· writing {name}")
            self._spark.sql(f"CREATE NAMESPACE {place}")
            is_lakelog = name != PARQUET
            clauses = ENGINES["lakelog" if is_lakelog else "parquet"].clauses(name)
            tpcds.create_tables(self._spark.sql, place, sources, clauses, by=by, deleted=not is_lakelog)
            if is_lakelog:
                tpcds.delete_rows(self._spark.sql, place)

    def run(self, number: int, text: str, rounds: int) -> dict[str, list[float]]:
        self._spark.sql(f"USE {self._places[PARQUET]}")
        query = tpcds.in_total_order(text, len(self._spark.sql(text).columns))
        contenders = {name: partial(self._once, name, query) for name in rotated(list(self._places), number)}
        times = turns(contenders, rounds, spent=lambda once: once())  # type: ignore[arg-type, return-value]
        self._times[number] = {name: times[name] for name in self._places}
        for name, answer in self._answers.items():
            if difference := tpcds.difference(answer, self._answers[PARQUET]):
                self.differences.append(f"query {number}, {name}: {difference}")
        self.empty += [] if self._answers[PARQUET].rows else [number]
        return self._times[number]

    def _once(self, name: str, text: str) -> float:
        self._spark.sql(f"USE {self._places[name]}")

        def ask() -> None:
            self._answers[name] = tpcds.answer(self._spark.sql(text))

        return seconds(ask)

    def totals(self) -> dict[str, list[float]]:
        """Return the seconds of all queries in each round."""
        return {
            name: [
                sum(rounds) for rounds in zip(*(times[name] for times in self._times.values()), strict=True)
            ]
            for name in self._places
        }

    def row(self, name: str, times: Mapping[str, Sequence[float]]) -> Row:
        return {
            "": name,
            **{f"{contender}, s": durations for contender, durations in times.items()},
            **{
                f"{contender} of {PARQUET}": [
                    duration / base for duration, base in zip(times[contender], times[PARQUET], strict=True)
                ]
                for contender in times
                if contender != PARQUET
            },
        }

    def remarks(self) -> Rows:
        for name in self._places:
            ratios = sorted(median(times[name]) / median(times[PARQUET]) for times in self._times.values())
            quick = sum(ratio <= 1 for ratio in ratios)
            if name != PARQUET:
                yield (
                    f"{name}: {quick} of {len(ratios)} queries take no longer than on {PARQUET}, by their medians. "
                    f"The ratio of a query is {median(ratios):.2f} by the median, and {ratios[-1]:.2f} at most."
                )
        yield f"Queries without a row: {', '.join(map(str, self.empty)) or 'none'}."
