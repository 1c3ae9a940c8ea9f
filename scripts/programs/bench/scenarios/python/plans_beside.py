"""Plans of a table of many files: lakelog beside PyIceberg and delta-rs, and with `--spark` beside Iceberg in Spark.

All three tables have the same files, only in their metadata, in commits of 10,000 files. Each question is planned cold
in a process of its own, then again there. Times are in milliseconds. In Spark, each cold plan loads the table anew, in
a session that has planned before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog import Catalog, col
from programs.bench.data import file_lists
from programs.bench.data.file_lists import PLACE, FileList
from programs.bench.measure import apart, peak_mb
from programs.bench.places import folder
from programs.bench.scenario import Rows, say
from programs.bench.scenarios.python.plans import ready
from programs.bench.spark_plans import iceberg_plans, lakelog_plans

MAKERS: dict[str, Callable[[Path, FileList], None]] = {
    "lakelog": file_lists.lakelog,
    "iceberg": file_lists.iceberg,
    "delta": file_lists.delta,
}


def measure(
    files: int = 1_000_000,
    days: int = 1000,
    arrival: Annotated[Literal["by-day", "mixed"], "the order of commits"] = "by-day",
    tables: Annotated[str, "a folder with the tables that is kept; made if it is missing"] = "",
    spark: Annotated[bool, "how long Spark plans, in place of Python"] = False,
    rounds: Annotated[int, "how often Spark, and each process, is asked"] = 5,
) -> Rows:
    of = FileList(files, days, by_day=arrival == "by-day")
    with folder() as temporary:
        place = Path(tables or temporary / "tables")
        for name, make in MAKERS.items():
            if not (place / name).exists() and not (spark and name == "delta"):
                say(f"Making the table of {name} …")
                make(place / name, of)
        if spark:
            texts = {name: f"{column} = {value}" for name, (column, value) in of.questions.items()}
            metadata = (place / "iceberg" / "metadata").read_text()
            ours = lakelog_plans(place / "lakelog", temporary, texts, rounds)
            theirs = iceberg_plans(metadata, temporary, texts, rounds)
            for question in texts:
                yield {"": question, "in": "lakelog", **ours[question]}
                yield {"": question, "in": "iceberg", **theirs[question]}
            return
        for question, (column, value) in of.questions.items():
            for name in MAKERS:
                results = [apart(_plan, place / name, column, value) for _ in range(rounds)]
                if len({result["files"] for result in results}) > 1:
                    raise RuntimeError(f"{name} finds other files each time for {question}: {results}")
                several = {
                    key: [result[key] for result in results] for key in ("cold, ms", "again, ms", "peak MB")
                }
                yield {"": question, "in": name, "files": results[0]["files"], **several}


def _plan(place: Path, column: str, value: int) -> dict[str, float]:
    load, plan = READERS[place.name]
    if place.name == "lakelog":
        ready()
    before_mb, cold = peak_mb(), time.perf_counter()
    table = load(place)
    files = plan(table, column, value)
    again = time.perf_counter()
    plan(table, column, value)
    end = time.perf_counter()
    return {
        "files": files,
        "cold, ms": (again - cold) * 1000,
        "again, ms": (end - again) * 1000,
        "peak MB": peak_mb() - before_mb,
    }


def _load_iceberg(place: Path) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata((place / "metadata").read_text())


def _load_delta(place: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(place))


def _of_lakelog(table: Any, column: str, value: int) -> int:
    return int(table.plan(col(column) == value).num_rows)


def _of_iceberg(table: Any, column: str, value: int) -> int:
    return len(list(table.scan(row_filter=f"{column} == {value}").plan_files()))


def _of_delta(table: Any, column: str, value: int) -> int:
    """Plan with the file list as Arrow, because delta-rs has no plan apart from its scans."""
    if column == "day":
        return len(table.file_uris([("day", "=", str(value))]))
    files = pa.table(table.get_add_actions(flatten=True))
    low, high = files[f"min.{column}"], files[f"max.{column}"]
    fits = pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
    return int(pc.sum(fits).as_py() or 0)


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, str, int], int]]] = {
    "lakelog": (lambda place: Catalog(str(place)).table_at(f"{place}/{PLACE}"), _of_lakelog),
    "iceberg": (_load_iceberg, _of_iceberg),
    "delta": (_load_delta, _of_delta),
}
"""The functions that load a contender's table, and that count the files of a plan."""
