"""How long Spark plans a scan, cold and again. It covers lakelog's catalogs, and Iceberg's tables by their metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakelog.spark import spark_conf
from programs.bench.data.file_lists import PLACE
from programs.bench.scenario import Row
from programs.bench.sparks import ENGINES, Worker

WARM_UP = 200
"""Plans before the first counted plan. The JVM has compiled the planning code then, as after a while in service."""


def lakelog_plans(warehouse: Path, folder: Path, texts: Mapping[str, str], rounds: int) -> dict[str, Row]:
    """Plan in catalogs that have read nothing, each with another path to the same warehouse."""
    with Worker(ENGINES["lakelog"], folder, **{"spark.driver.memory": "1g"}) as worker:

        def catalogs() -> Iterator[dict[str, str]]:
            number = 0
            while True:
                name, number = f"c{number}", number + 1
                (folder / name).symlink_to(warehouse.resolve())
                for key, value in spark_conf(
                    str(folder / name), name=name, jar="unused", fsync=False
                ).items():
                    if key.startswith("spark.sql.catalog."):
                        worker.check(f"SET {key}={value}")
                yield {"table": f"{name}.{PLACE}"}

        return _plans(worker, catalogs(), texts, rounds)


def iceberg_plans(metadata: str, folder: Path, texts: Mapping[str, str], rounds: int) -> dict[str, Row]:
    with Worker(ENGINES["iceberg"], folder) as worker:

        def tables() -> Iterator[dict[str, str]]:
            while True:
                yield {"format": "iceberg", "path": metadata}

        return _plans(worker, tables(), texts, rounds)


def _plans(
    worker: Worker, new: Iterator[dict[str, str]], texts: Mapping[str, str], rounds: int
) -> dict[str, Row]:
    """Return the tasks and the milliseconds of plans for each question. The first round does not count."""
    warm = f"{worker.engine.catalog}.warm.t"
    worker.check(f"CREATE NAMESPACE {worker.engine.catalog}.warm")
    worker.check(
        f"CREATE TABLE {warm} (day INT, id BIGINT, customer BIGINT) USING {worker.engine.provider} PARTITIONED BY (day)"
    )
    worker.check(f"INSERT INTO {warm} SELECT int(id % 10), id, id FROM range(100)")
    for number in range(WARM_UP):
        worker.ask("plan", where=f"day = {number % 10}", table=warm)
    rows: dict[str, Any] = {}
    for name, text in texts.items():
        answers = [worker.ask("plan", where=text, **next(new)) for _ in range(1 + rounds)][1:]
        rows[name] = {
            "tasks": answers[0]["tasks"],
            **{f"{kind}, ms": [plan[kind] * 1e3 for plan in answers] for kind in ("cold", "again")},
        }
    return rows
