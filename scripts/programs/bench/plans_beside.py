"""Plans of a table of many files: lakelog beside PyIceberg and delta-rs, and with `--spark` beside Iceberg in Spark.

All three tables have the same files, which are in their metadata only, in commits of 10,000 files. Each question is
asked cold in a process of its own, then again there. From Spark each cold plan is of a table that was loaded anew, in
a session that has planned before.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

from lakelog.catalog import Catalog, col
from programs import story
from programs.bench import plans
from programs.bench.measure import median
from programs.bench.peers import ICEBERG, peers_environment, settings_of

SPARK_TYPES = {"int32": "integer", "int64": "long", "double": "double", "string": "string"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench plans_beside", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument(
        "--arrival", choices=("by-day", "mixed"), default="by-day", help="the order of commits"
    )
    parser.add_argument("--folder", help="a folder with the tables that is kept; made where it is not there")
    parser.add_argument("--spark", action="store_true", help="how long Spark plans, in place of Python")
    parser.add_argument("--rounds", type=int, default=5, help="how often Spark, and each process, is asked")
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.columns = len(plans.MEASURED)
    if arguments.ask:
        print(json.dumps(_asked(Path(arguments.folder), arguments.ask[0], arguments.ask[1], arguments)))
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as temporary:
        folder = Path(arguments.folder or f"{temporary}/tables")
        for name, make in MAKERS.items():
            if not (folder / name).exists():
                story.say(f"Making the table of {name} …")
                make(folder / name, arguments)
        if arguments.spark:
            _spark(folder, Path(temporary), arguments)
        else:
            _python(folder, arguments)


# The tables


def _iceberg(folder: Path, arguments: argparse.Namespace) -> None:
    folder.mkdir(parents=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")
    table = catalog.create_table(
        "bench.t", plans.schema(arguments.columns), properties={"write.metadata.metrics.default": "full"}
    )
    with table.update_spec() as spec:
        spec.add_identity("day")
    fields = table.schema().fields
    ids = {field.name: field.field_id for field in fields}
    types: dict[str, Any] = {field.name: field.field_type for field in fields}
    for numbers, chance in _commits(arguments):
        with table.transaction() as whole, whole.update_snapshot().fast_append() as append:
            for at, partition, bounds in plans.files_of(numbers, arguments, chance):
                counted = [ids[name] for name in bounds]
                ends = [
                    {ids[name]: to_bytes(types[name], each[end]) for name, each in bounds.items()}
                    for end in (0, 1)
                ]
                append.append_data_file(
                    DataFile.from_args(
                        content=DataFileContent.DATA,
                        file_path=f"file://{folder}/data/day={partition}/{at}.parquet",
                        file_format=FileFormat.PARQUET,
                        partition=Record(partition),
                        record_count=plans.ROWS,
                        file_size_in_bytes=plans.SIZE_BYTES,
                        column_sizes={},
                        value_counts=dict.fromkeys(counted, plans.ROWS),
                        null_value_counts=dict.fromkeys(counted, 0),
                        nan_value_counts={},
                        lower_bounds=ends[0],
                        upper_bounds=ends[1],
                        key_metadata=None,
                        split_offsets=None,
                        equality_ids=None,
                        sort_order_id=None,
                        spec_id=table.spec().spec_id,
                    )
                )
    (folder / "metadata").write_text(table.metadata_location)


def _delta(folder: Path, arguments: argparse.Namespace) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    fields = [
        {"name": field.name, "type": SPARK_TYPES[str(field.type)], "nullable": True, "metadata": {}}
        for field in plans.schema(arguments.columns)
    ]
    begin: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "00000000-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": ["day"],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    for number, (numbers, chance) in enumerate(_commits(arguments)):
        actions = list(begin) if number == 0 else []
        for at, day, bounds in plans.files_of(numbers, arguments, chance):
            stats = {
                "numRecords": plans.ROWS,
                "minValues": {name: each[0] for name, each in bounds.items()},
                "maxValues": {name: each[1] for name, each in bounds.items()},
                "nullCount": dict.fromkeys(bounds, 0),
            }
            add = {
                "path": f"day={day}/{at}.parquet",
                "partitionValues": {"day": str(day)},
                "size": plans.SIZE_BYTES,
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
            actions.append({"add": add})
        (log / f"{number:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    DeltaTable(str(folder)).create_checkpoint()


def _lakelog(folder: Path, arguments: argparse.Namespace) -> None:
    plans.make(str(folder), arguments)


MAKERS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "lakelog": _lakelog,
    "Iceberg": _iceberg,
    "Delta": _delta,
}


def _commits(arguments: argparse.Namespace) -> Any:
    chance = random.Random(7)
    for first in range(0, arguments.files, plans.STEP):
        yield range(first, min(first + plans.STEP, arguments.files)), chance


def _title(where: str, arguments: argparse.Namespace) -> str:
    files = f"{arguments.files:,} files, {arguments.days:,} days, {arguments.arrival}"
    return f"{files}; from {where}, ms: median (least–most)"


# From Python


def _python(folder: Path, arguments: argparse.Namespace) -> None:
    lines = []
    for question in plans.questions(arguments):
        for name in MAKERS:
            found = [_in_a_process(folder, name, question) for _ in range(arguments.rounds)]
            if len({each["files"] for each in found}) > 1:
                raise RuntimeError(f"{name} finds other files each time for {question}: {found}")
            cold, again = ([each[key] for each in found] for key in ("cold", "again"))
            peak = median([each["peak"] for each in found])
            lines.append(
                [
                    question,
                    name,
                    f"{found[0]['files']:,}",
                    plans.spread(cold),
                    plans.spread(again),
                    f"{peak:.0f}",
                ]
            )
    title = _title("Python", arguments)
    story.table(["", "", "files", "cold", "again", "peak MB more"], lines, title=title)


def _in_a_process(folder: Path, name: str, question: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "programs.bench.plans_beside", *sys.argv[1:]]
    done = subprocess.run(
        [*command, "--folder", str(folder), "--ask", name, question],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _asked(folder: Path, name: str, question: str, arguments: argparse.Namespace) -> dict[str, float]:
    column, value = plans.questions(arguments)[question]
    load, plan = READERS[name]
    if name == "lakelog":
        plans.ready()
    before = plans.peak_mb()
    cold = time.perf_counter()
    table = load(folder / name)
    files = plan(table, column, value)
    again = time.perf_counter()
    plan(table, column, value)
    end = time.perf_counter()
    return {
        "files": files,
        "cold": (again - cold) * 1000,
        "again": (end - again) * 1000,
        "peak": plans.peak_mb() - before,
    }


def _of_lakelog(table: Any, column: str, value: int) -> int:
    return int(table.plan(col(column) == value).num_rows)


def _of_iceberg(table: Any, column: str, value: int) -> int:
    return len(list(table.scan(row_filter=f"{column} == {value}").plan_files()))


def _of_delta(table: Any, column: str, value: int) -> int:
    """By its list of files as Arrow: its own scans have no plan that could be asked for alone."""
    if column == "day":
        return len(table.file_uris([("day", "=", str(value))]))
    files = pa.table(table.get_add_actions(flatten=True))
    low, high = files[f"min.{column}"], files[f"max.{column}"]
    fits = pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
    return int(pc.sum(fits).as_py() or 0)


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, str, int], int]]] = {
    "lakelog": (lambda folder: Catalog(str(folder)).table_at(f"{folder}/{plans.PLACE}"), _of_lakelog),
    "Iceberg": (lambda folder: StaticTable.from_metadata((folder / "metadata").read_text()), _of_iceberg),
    "Delta": (lambda folder: DeltaTable(str(folder)), _of_delta),
}
"""How a contender's table is loaded, and how many files a plan of it has."""


# From Spark


def _spark(folder: Path, temporary: Path, arguments: argparse.Namespace) -> None:
    texts = {name: f"{column} = {value}" for name, (column, value) in plans.questions(arguments).items()}
    ours = plans.from_spark(folder / "lakelog", temporary, texts, arguments.rounds)
    settings = settings_of("Iceberg", temporary) | {"spark.driver.memory": "4g"}
    asked = {
        "settings": settings,
        "place": (folder / "Iceberg" / "metadata").read_text(),
        "questions": texts,
        "rounds": arguments.rounds,
        "warm_up": plans.SPARK_WARM_UP,
    }
    worker = Path(__file__).parent / "workers" / "plan_worker.py"
    done = subprocess.run(
        [str(peers_environment()), "-W", "ignore", str(worker)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        cwd=temporary,
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    lines = []
    for question in texts:
        for name, found in (
            ("lakelog", ours[question]),
            (f"Iceberg {ICEBERG.rpartition(':')[2]}", theirs[question]),
        ):
            lines.append(
                [
                    question,
                    name,
                    f"{found['tasks']:,}",
                    plans.spread(found["cold"]),
                    plans.spread(found["again"]),
                ]
            )
    title = _title("Spark", arguments)
    story.table(["", "", "tasks", "cold", "again"], lines, title=title)


if __name__ == "__main__":
    main()
