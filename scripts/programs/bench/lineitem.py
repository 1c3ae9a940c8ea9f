"""CTAS, queries, DELETE, UPDATE and MERGE on TPC-H's lineitem: lakelog, Delta and Iceberg, in both row-level modes.

Each format has a Spark of its own, of a version that it supports; they take turns statement by statement, so that a
busy machine hits all of them alike. Answers are compared: a quick but wrong format does not count.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from programs import story
from programs.bench.data import tpch
from programs.bench.measure import median
from programs.bench.rows.engines import ENGINES, MODES, Engine
from programs.bench.rows.process import Worker
from programs.bench.rows.statements import CHECK, CTAS, SOURCE, STEPS

CHANGES = ("CTAS", "DELETE 1 %", "UPDATE 1 %", "MERGE 10,000")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench lineitem",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor; 1 has 6 million rows")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds; one more before them is not")
    parser.add_argument("--engines", default=",".join(ENGINES), help="names with commas (%(default)s)")
    parser.add_argument("--modes", default=",".join(MODES), help="names with commas (%(default)s)")
    parser.add_argument("--spark", default="4.3", help="lakelog's Spark (%(default)s)")
    parser.add_argument(
        "--environments", default=".", help="the folder of the formats' virtual environments (%(default)s)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        folder = Path(name)
        data = tpch.lineitem(folder, arguments.scale)
        chosen = [ENGINES[name] for name in arguments.engines.split(",")]
        workers = {
            engine.name: Worker(engine, folder, Path(arguments.environments), arguments.spark)
            for engine in chosen
        }
        source = folder / "source"
        first = next(iter(workers.values()))
        first.check(f"INSERT OVERWRITE DIRECTORY '{source}' USING parquet {SOURCE.format(data=data)}")
        for worker in workers.values():
            worker.check(f"CREATE TEMPORARY VIEW source AS SELECT * FROM parquet.`{source}`")
        for mode in arguments.modes.split(","):
            _run(workers, data, mode, arguments.rounds, arguments.scale)
        for worker in workers.values():
            worker.close()


def _run(workers: Mapping[str, Worker], data: Path, mode: str, rounds: int, scale: float) -> None:
    times: dict[tuple[str, str], list[float]] = {}
    names = list(workers)
    for number in range(rounds + 1):
        tables = {
            name: f"{workers[name].engine.catalog}.default.lineitem_{mode.replace('-', '_')}_{number}"
            for name in names
        }
        for worker in workers.values():
            worker.check(f"CREATE NAMESPACE IF NOT EXISTS {worker.engine.catalog}.default")
        for step, text in STEPS.items():
            answers: dict[str, list[list[str]]] = {}
            first = number % len(names)
            for name in names[first:] + names[:first]:
                worker = workers[name]
                spent, answers[name] = worker.run(_statement(text, worker.engine, tables[name], data, mode))
                if number:
                    times.setdefault((step, name), []).append(spent)
                if step in CHANGES:
                    answers[name] = worker.check(CHECK.format(table=tables[name]))
            _compare(step, answers)
        for name, worker in workers.items():
            worker.check(f"DROP TABLE {tables[name]}")
        story.say(f"{mode}: round {number} of {rounds} done" + ("" if number else " (not counted)"))
    _report(times, workers, mode, rounds, scale)


def _statement(text: str, engine: Engine, table: str, data: Path, mode: str) -> str:
    if text is CTAS:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in engine.properties[mode].items())
        return text.format(table=table, provider=engine.provider, properties=properties, data=data)
    return text.format(table=table)


def _compare(step: str, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
    first, *others = answers
    for other in others:
        if answers[other] != answers[first]:
            raise RuntimeError(
                f"after {step}, {first} and {other} differ: {answers[first]!r} and {answers[other]!r}"
            )


def _report(
    times: Mapping[tuple[str, str], list[float]],
    workers: Mapping[str, Worker],
    mode: str,
    rounds: int,
    scale: float,
) -> None:
    names = list(workers)
    others = [name for name in names if name != "lakelog"] if "lakelog" in names else []
    lines = []
    for step in STEPS:
        found = {name: median(times[step, name]) for name in names}
        ratios = [f"{found['lakelog'] / found[other]:.2f}" for other in others]
        lines.append([step, *(f"{found[name]:.2f}" for name in names), *ratios])
    title = f"lineitem, scale factor {scale:g}, {mode}: seconds, medians of {rounds} rounds in turns"
    heads = [
        f"{name} ({worker.engine.version or worker.version}, Spark {worker.version})"
        for name, worker in workers.items()
    ]
    story.table(["", *heads, *(f"lakelog / {other}" for other in others)], lines, title=title)


if __name__ == "__main__":
    main()
