"""Clustering of TPC-H's lineitem by (l_shipdate, l_partkey): what filters read, and what it costs to keep it so.

lakelog (`CLUSTER BY`, `CALL cluster`), Delta (`CLUSTER BY`, OPTIMIZE) and Iceberg (`rewrite_data_files` by zorder),
each in a Spark of its own, and lakelog in Python get the same rows: most of them at once, a full pass, then the rest in
many rounds, each followed by the format's own incremental step. What a filter has to read is counted from the footers
of the live Parquet files, in one way for all: a file counts whose least and greatest values of both columns allow such
a row. What was written is counted from the sizes of all files that came. No times are compared.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog import Catalog
from programs import story
from programs.bench.data import tpch
from programs.bench.rows.engines import ENGINES
from programs.bench.rows.process import Worker

FIRST_DAY, DAYS = dt.date(1992, 1, 2), 2_525
KEYS = ("l_shipdate", "l_partkey")
PYTHON = "python"
POINTS_EACH = 20
"""Every so many rounds it is counted how many files a look-up of a point opens."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a format says what is measured; `{t}` is the table, `{n}` its name in the catalog, `{b}` a file's size,
    `{quarter}` a fourth of that."""

    create: str
    full: str
    step: str
    settings: dict[str, str] = field(default_factory=dict)
    before: str | None = None


_ZORDER = (
    "CALL lake.system.rewrite_data_files(table => '{n}', strategy => 'sort', "
    "sort_order => 'zorder(l_shipdate, l_partkey)', options => map("
)
_SOURCE = "AS SELECT * FROM source WHERE false"

FORMATS = {
    "lakelog": Format(
        create="CREATE TABLE {t} TBLPROPERTIES ('lakelog.write.target-file-size-bytes' = '{b}') " + _SOURCE,
        before="ALTER TABLE {t} CLUSTER BY (l_shipdate, l_partkey)",
        full="CALL lake.system.cluster('{n}')",
        step="CALL lake.system.cluster('{n}')",
    ),
    "delta": Format(
        create="CREATE TABLE {t} USING delta CLUSTER BY (l_shipdate, l_partkey) " + _SOURCE,
        full="OPTIMIZE {t} FULL",
        step="OPTIMIZE {t}",
        settings={
            "spark.databricks.delta.optimize.maxFileSize": "{b}",
            "spark.databricks.delta.optimize.minFileSize": "{b}",
        },
    ),
    # Its writer takes what is in memory for as large as it will be on disk, so that files of one row group have
    # a fourth of their size, and each step would rewrite all of them.
    "iceberg": Format(
        create="CREATE TABLE {t} USING iceberg TBLPROPERTIES ('format-version' = '3', "
        "'write.target-file-size-bytes' = '{b}', 'write.parquet.row-group-size-bytes' = '{quarter}', "
        "'write.parquet.compression-codec' = 'zstd') " + _SOURCE,
        full=_ZORDER + "'rewrite-all', 'true', 'target-file-size-bytes', '{b}'))",
        step=_ZORDER + "'target-file-size-bytes', '{b}', 'min-file-size-bytes', '{quarter}'))",
    ),
}


class Measured:
    """A format's table, and what was written for it."""

    def __init__(self, worker: Worker, folder: Path, file_bytes: int) -> None:
        self.worker, self.format, self.name = worker, FORMATS[worker.engine.name], worker.engine.name
        catalog = worker.engine.catalog
        self.table, self._names = (
            f"{catalog}.bench.items",
            {"n": "bench.items", "b": file_bytes, "quarter": file_bytes // 4},
        )
        self._folder = folder / worker.engine.name / "warehouse"
        self._known: dict[Path, int] = {}
        self._spans: dict[str, tuple[int, list[tuple[Any, Any]]]] = {}
        self.asked = self.rewritten = 0
        worker.check(f"CREATE NAMESPACE {catalog}.bench")
        self.run(self.format.create)
        if self.format.before is not None:
            self.run(self.format.before)
        self._came()

    def run(self, sql: str) -> None:
        self.worker.check(sql.format(t=self.table, **self._names))

    def _came(self) -> int:
        """Return how many bytes of data files came since it was asked last."""
        there = {path: path.stat().st_size for path in self._folder.rglob("*.parquet")}
        new = sum(size for path, size in there.items() if path not in self._known)
        self._known = there
        return new

    def insert(self, where: str) -> None:
        self.run(f"INSERT INTO {{t}} SELECT * FROM source WHERE {where}")
        self.asked += self._came()

    def differs_from(self, where: str) -> str | None:
        """Return what is wrong with the table's rows, which should be these."""
        count = self.worker.check(f"SELECT count(*), sum(l_partkey) FROM {self.table}")
        whole = self.worker.check(f"SELECT count(*), sum(l_partkey) FROM source WHERE {where}")
        return None if count == whole else f"{self.name} has {count}, not {whole}"

    def pass_over(self, sql: str) -> None:
        self.run(sql)
        self.rewritten += self._came()

    def reset(self) -> None:
        self.asked = self.rewritten = 0

    def files(self) -> list[tuple[int, list[tuple[Any, Any]]]]:
        """Return the size of each live file, and between which values of the keys its rows are."""
        found = []
        for path in self._paths():
            if path not in self._spans:
                place = Path(unquote(urlparse(path).path))
                footer, order = pq.read_metadata(place), self._order()
                # lakelog names columns in files by their ids, and all formats write them in the table's order.
                self._spans[path] = (place.stat().st_size, [_span(footer, order.index(key)) for key in KEYS])
            found.append(self._spans[path])
        return found

    def _paths(self) -> list[str]:
        return [row[0] for row in self.worker.check(f"SELECT DISTINCT input_file_name() FROM {self.table}")]

    def _order(self) -> list[str]:
        return [row[0] for row in self.worker.check(f"DESCRIBE TABLE {self.table}")]


class InPython(Measured):
    """lakelog's table by its Python interface, in this process: `append`, and `cluster`."""

    name, format = "lakelog in Python", FORMATS["lakelog"]

    def __init__(self, data: Path, folder: Path, file_bytes: int) -> None:
        self._folder = folder / "python"
        self._known: dict[Path, int] = {}
        self.asked = self.rewritten = 0
        self._spans = {}
        self._source = duckdb.connect()
        self._source.execute(f"CREATE VIEW source AS SELECT * FROM '{data}/*.parquet'")
        self._source.execute("CREATE MACRO pmod(a, b) AS a % b")
        catalog = Catalog(str(self._folder), options={"fsync": "off"})
        schema = self._rows("false").schema
        properties = {"lakelog.write.target-file-size-bytes": str(file_bytes)}
        self._table = catalog.create_table("items", schema, cluster_by=KEYS, properties=properties)

    def _rows(self, where: str) -> pa.Table:
        return self._source.execute(f"SELECT * FROM source WHERE {where}").to_arrow_table()

    def insert(self, where: str) -> None:
        self._table = self._table.append(self._rows(where))
        self.asked += self._came()

    def pass_over(self, sql: str) -> None:
        self._table = self._table.cluster()
        self.rewritten += self._came()

    def differs_from(self, where: str) -> str | None:
        keys = self._table.scan(columns=["l_partkey"]).to_arrow()["l_partkey"]
        count = (len(keys), pc.sum(keys).as_py())
        whole = self._source.execute(f"SELECT count(*), sum(l_partkey) FROM source WHERE {where}").fetchone()
        return None if count == whole else f"{self.name} has {count}, not {whole}"

    def _paths(self) -> list[str]:
        return [f"{self._table.location}/{path}" for path in self._table.plan()["path"].to_pylist()]

    def _order(self) -> list[str]:
        return [field.name for field in self._table.schema.fields]


def _span(footer: pq.FileMetaData, column: int) -> tuple[Any, Any]:
    found = [footer.row_group(at).column(column).statistics for at in range(footer.num_row_groups)]
    return min(each.min for each in found), max(each.max for each in found)


def _read(
    files: Sequence[tuple[int, list[tuple[Any, Any]]]], wanted: Sequence[tuple[Any, Any]]
) -> tuple[int, int]:
    """Return how many files may have rows with values between those that are wanted of each key, and their bytes."""
    sizes = [
        size
        for size, spans in files
        if all(
            low <= last and first <= high for (low, high), (first, last) in zip(spans, wanted, strict=True)
        )
    ]
    return len(sizes), sum(sizes)


def looked_at(
    files: Sequence[tuple[int, list[tuple[Any, Any]]]], parts: int, seed: int = 1
) -> tuple[list[str], float]:
    """Return what filters read, on average over several: by a month, by 1 % of the parts, by a point; and of a point
    the files alone."""
    chance = random.Random(seed)
    totals = {"month": [0, 0], "parts": [0, 0], "point": [0, 0]}
    times = 100
    for _ in range(times):
        day = FIRST_DAY + dt.timedelta(days=chance.randrange(60, DAYS - 60))
        part = chance.randrange(1, parts)
        month, few = day + dt.timedelta(days=30), part + parts // 100
        days, all_days = (day, month), (FIRST_DAY, FIRST_DAY + dt.timedelta(days=2 * DAYS))
        for name, wanted in {
            "month": (days, (0, parts)),
            "parts": (all_days, (part, few)),
            "point": ((day, day), (part, part)),
        }.items():
            count, size = _read(files, wanted)
            totals[name][0] += count
            totals[name][1] += size
    whole = sum(size for size, _ in files)
    said = [
        f"{len(files)}, {whole / 1e6:.0f} MB",
        *(f"{count / times:.1f}, {size / times / 1e6:.1f} MB" for count, size in totals.values()),
    ]
    return said, totals["point"][0] / times


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench clustering",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor; 1 has 6 million rows")
    parser.add_argument("--rounds", type=int, default=100, help="how many inserts come after the full pass")
    parser.add_argument("--minutes", type=float, help="begin no more rounds of a format after so long")
    parser.add_argument("--share", type=float, default=0.4, help="of the rows, that come in these rounds")
    parser.add_argument("--file-mb", type=float, default=4, help="about how large files shall be")
    parser.add_argument(
        "--engines", default=",".join([*FORMATS, PYTHON]), help="names with commas (%(default)s)"
    )
    parser.add_argument("--spark", default="4.3", help="lakelog's Spark (%(default)s)")
    parser.add_argument(
        "--environments", default=".", help="the folder of the peers' environments (%(default)s)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        folder = Path(name)
        data = tpch.lineitem(folder, arguments.scale)
        file_bytes = int(arguments.file_mb * 1e6)
        lines = []
        for engine in arguments.engines.split(","):
            if engine == PYTHON:
                lines += _one(InPython(data, folder, file_bytes), arguments)
                continue
            settings = {key: value.format(b=file_bytes) for key, value in FORMATS[engine].settings.items()}
            worker = Worker(
                ENGINES[engine], folder, Path(arguments.environments), arguments.spark, **settings
            )
            worker.check(f"CREATE TEMPORARY VIEW source AS SELECT * FROM parquet.`{data}`")
            lines += _one(Measured(worker, folder, file_bytes), arguments)
            worker.close()
    headings = [
        *("", "", "live files", "a month", "1 % of parts", "a point", "a point, mean and most"),
        "written / asked",
    ]
    story.table(headings, lines, title=f"lineitem, scale {arguments.scale:g}: files and bytes that are read")


def _one(table: Measured, arguments: argparse.Namespace) -> list[list[str]]:
    name, parts = table.name, int(200_000 * arguments.scale)
    # Rows come as they were ordered, a part of the orders at a time: of all days and parts.
    base = f"pmod(hash(l_orderkey), 1000) >= {int(1000 * arguments.share)}"
    for at in range(5):
        table.insert(f"{base} AND pmod(hash(l_orderkey, 1), 5) = {at}")
    lines = [[name, "before", *looked_at(table.files(), parts)[0], "–", "–"]]
    table.pass_over(table.format.full)
    said, _ = looked_at(table.files(), parts)
    lines.append([name, "after a full pass", *said, "–", f"{table.rewritten / table.asked:.2f}"])
    table.reset()
    began, points, done = time.monotonic(), [], 0
    while done < arguments.rounds:
        table.insert(_of_round(arguments, done))
        table.pass_over(table.format.step)
        done += 1
        times = f"{table.rewritten / table.asked:.2f}"
        story.say(f"{name}: round {done} of {arguments.rounds}, {times} times rewritten")
        is_last = done == arguments.rounds or (
            arguments.minutes is not None and time.monotonic() - began > 60 * arguments.minutes
        )
        if is_last or done % POINTS_EACH == 0:
            said, point = looked_at(table.files(), parts)
            points.append(point)
        if is_last:
            break
    mean = f"{sum(points) / len(points):.1f}, {max(points):.1f}"
    lines.append([name, f"after {done} rounds", *said, mean, times])
    come = " OR ".join(["false", *(f"({_of_round(arguments, number)})" for number in range(done))])
    wrong = table.differs_from(f"{base} OR {come}")
    if wrong is not None:
        raise RuntimeError(wrong)
    return lines


def _of_round(arguments: argparse.Namespace, number: int) -> str:
    """Return which rows come in a round."""
    return (
        f"pmod(hash(l_orderkey), 1000) < {int(1000 * arguments.share)} AND "
        f"pmod(hash(l_orderkey, 2), {arguments.rounds}) = {number}"
    )


if __name__ == "__main__":
    main()
