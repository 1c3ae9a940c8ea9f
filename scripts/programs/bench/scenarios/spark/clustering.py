"""Clustering of TPC-H's lineitem by (l_shipdate, l_partkey): the files that filters read, and the cost of clustering.

The contenders are lakelog (`CLUSTER BY`, `CALL cluster`), Delta (`CLUSTER BY`, OPTIMIZE) and Iceberg
(`rewrite_data_files` by zorder), each in its own Spark, and lakelog in Python. All get the same rows: first most of
them, then a full pass, then the rest in many rounds. The format's own incremental step follows each round.

The footers of the live Parquet files say, for all formats alike, how much a filter has to read. A file counts if its
least and greatest values of both columns allow a matching row. Written bytes are the sizes of all new files. No times
are compared.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog import Catalog
from programs.bench.data import tpch
from programs.bench.places import folder
from programs.bench.scenario import Row, say
from programs.bench.sparks import ENGINES, Worker

FIRST_DAY, DAYS = dt.date(1992, 1, 2), 2_525
KEYS = ("l_shipdate", "l_partkey")
PYTHON = "python"
Files = list[tuple[int, list[tuple[Any, Any]]]]
"""The size of each file, and the least and greatest value of each key in its rows."""

POINTS_EACH = 20
"""The number of rounds between two counts of the files that a look-up of a point opens."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format's statements. `{t}` is the table, and `{n}` its name in the catalog. `{b}` is a file's size, and
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
    # Its writer assumes that rows take as much space on disk as in memory. Files of a single row group would therefore
    # have a fourth of their size, and each step would rewrite all of them.
    "iceberg": Format(
        create="CREATE TABLE {t} USING iceberg TBLPROPERTIES ('format-version' = '3', "
        "'write.target-file-size-bytes' = '{b}', 'write.parquet.row-group-size-bytes' = '{quarter}', "
        "'write.parquet.compression-codec' = 'zstd') " + _SOURCE,
        full=_ZORDER + "'rewrite-all', 'true', 'target-file-size-bytes', '{b}'))",
        step=_ZORDER + "'target-file-size-bytes', '{b}', 'min-file-size-bytes', '{quarter}'))",
    ),
}


class Measured:
    """A format's table, and the bytes written for it."""

    def __init__(self, worker: Worker, folder: Path, file_bytes: int) -> None:
        self.worker, self.format, self.name = worker, FORMATS[worker.engine.name], worker.engine.name
        catalog = worker.engine.catalog
        self.table = f"{catalog}.bench.items"
        self._names = {"n": "bench.items", "b": file_bytes, "quarter": file_bytes // 4}
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
        """Return the bytes of data files that came since the last call."""
        sizes = {path: path.stat().st_size for path in self._folder.rglob("*.parquet")}
        new = sum(size for path, size in sizes.items() if path not in self._known)
        self._known = sizes
        return new

    def insert(self, where: str) -> None:
        self.run(f"INSERT INTO {{t}} SELECT * FROM source WHERE {where}")
        self.asked += self._came()

    def differs_from(self, where: str) -> str | None:
        """Return how the table differs from the source's rows that match `where`, or None if it does not."""
        count = self.worker.check(f"SELECT count(*), sum(l_partkey) FROM {self.table}")
        source_count = self.worker.check(f"SELECT count(*), sum(l_partkey) FROM source WHERE {where}")
        return None if count == source_count else f"{self.name} has {count}, not {source_count}"

    def pass_over(self, sql: str) -> None:
        self.run(sql)
        self.rewritten += self._came()

    def reset(self) -> None:
        self.asked = self.rewritten = 0

    def files(self) -> Files:
        """Return the size of each live file, and the least and greatest value of each key in its rows."""
        live_files = []
        for path in self._paths():
            if path not in self._spans:
                place = Path(unquote(urlparse(path).path))
                footer, order = pq.read_metadata(place), self._order()
                # Columns are read by position: lakelog names them by id in files. All formats keep the table's order.
                self._spans[path] = (place.stat().st_size, [_span(footer, order.index(key)) for key in KEYS])
            live_files.append(self._spans[path])
        return live_files

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
        source_count = self._source.execute(
            f"SELECT count(*), sum(l_partkey) FROM source WHERE {where}"
        ).fetchone()
        return None if count == source_count else f"{self.name} has {count}, not {source_count}"

    def _paths(self) -> list[str]:
        return [f"{self._table.location}/{path}" for path in self._table.plan()["path"].to_pylist()]

    def _order(self) -> list[str]:
        return [field.name for field in self._table.schema.fields]


def _span(footer: pq.FileMetaData, column: int) -> tuple[Any, Any]:
    statistics = [footer.row_group(at).column(column).statistics for at in range(footer.num_row_groups)]
    return min(part.min for part in statistics), max(part.max for part in statistics)


def _read(files: Files, wanted: Sequence[tuple[Any, Any]]) -> tuple[int, int]:
    """Return how many files may have rows within the `wanted` range of each key, and their bytes."""
    sizes = [
        size
        for size, spans in files
        if all(
            low <= last and first <= high for (low, high), (first, last) in zip(spans, wanted, strict=True)
        )
    ]
    return len(sizes), sum(sizes)


def looked_at(files: Files, parts: int) -> tuple[dict[str, str], float]:
    """Return the files and bytes that filters read, and the number of files for a point.

    Each is the average over 100 filters: by a month, by 1 % of the parts, or by a point.
    """
    chance, times = random.Random(1), 100
    totals = {"a month": [0, 0], "1 % of parts": [0, 0], "a point": [0, 0]}
    for _ in range(times):
        day = FIRST_DAY + dt.timedelta(days=chance.randrange(60, DAYS - 60))
        part = chance.randrange(1, parts)
        month, few = day + dt.timedelta(days=30), part + parts // 100
        all_days = (FIRST_DAY, FIRST_DAY + dt.timedelta(days=2 * DAYS))
        for name, ranges in {
            "a month": ((day, month), (0, parts)),
            "1 % of parts": (all_days, (part, few)),
            "a point": ((day, day), (part, part)),
        }.items():
            count, size = _read(files, ranges)
            totals[name][0] += count
            totals[name][1] += size
    cells = {"live files": f"{len(files)}, {sum(size for size, _ in files) / 1e6:.0f} MB"}
    for name, (count, size) in totals.items():
        cells[name] = f"{count / times:.1f}, {size / times / 1e6:.1f} MB"
    return cells, totals["a point"][0] / times


def measure(
    scale: Annotated[float, "TPC-H's scale factor; 1 has 6 million rows"] = 1,
    rounds: Annotated[int, "how many inserts come after the full pass"] = 100,
    minutes: Annotated[float, "begin no more rounds of a format after so long; 0 is no end"] = 0,
    share: Annotated[float, "of the rows, that come in these rounds"] = 0.4,
    file_mb: Annotated[float, "about how large files shall be"] = 4,
    engines: Sequence[str] = (*FORMATS, PYTHON),
) -> Iterator[Row]:
    with folder() as place:
        data = tpch.lineitem(place, scale)
        file_bytes, arrival = int(file_mb * 1e6), Arrival(share, rounds, minutes, int(200_000 * scale))
        for engine in engines:
            if engine == PYTHON:
                yield from _one(InPython(data, place, file_bytes), arrival)
                continue
            settings = {key: value.format(b=file_bytes) for key, value in FORMATS[engine].settings.items()}
            with Worker(ENGINES[engine], place, **settings) as worker:
                worker.check(f"CREATE TEMPORARY VIEW source AS SELECT * FROM parquet.`{data}`")
                yield from _one(Measured(worker, place, file_bytes), arrival)


@dataclass(frozen=True)
class Arrival:
    """Rows come in the order of the orders, a share of them at a time, with all days and parts."""

    share: float
    rounds: int
    minutes: float
    parts: int

    @property
    def base(self) -> str:
        return f"pmod(hash(l_orderkey), 1000) >= {int(1000 * self.share)}"

    def of_round(self, number: int) -> str:
        return (
            f"pmod(hash(l_orderkey), 1000) < {int(1000 * self.share)} AND "
            f"pmod(hash(l_orderkey, 2), {self.rounds}) = {number}"
        )


def _one(table: Measured, arrival: Arrival) -> Iterator[Row]:
    def row(when: str, cells: dict[str, str], points: Sequence[float] = ()) -> Row:
        times = table.rewritten / table.asked if when != "before" else None
        mean = f"{sum(points) / len(points):.1f}, {max(points):.1f}" if points else None
        return {
            "": table.name,
            "when": when,
            **cells,
            "a point, mean and most": mean,
            "written / asked": times,
        }

    for at in range(5):
        table.insert(f"{arrival.base} AND pmod(hash(l_orderkey, 1), 5) = {at}")
    yield row("before", looked_at(table.files(), arrival.parts)[0])
    table.pass_over(table.format.full)
    yield row("after a full pass", looked_at(table.files(), arrival.parts)[0])
    table.reset()
    began, points, rounds, is_last = time.monotonic(), list[float](), 0, False
    while not is_last:
        table.insert(arrival.of_round(rounds))
        table.pass_over(table.format.step)
        rounds += 1
        say(
            f"{table.name}: round {rounds} of {arrival.rounds}, {table.rewritten / table.asked:.2f} times rewritten"
        )
        is_last = rounds == arrival.rounds or 0 < 60 * arrival.minutes < time.monotonic() - began
        if is_last or rounds % POINTS_EACH == 0:
            cells, point = looked_at(table.files(), arrival.parts)
            points.append(point)
    yield row(f"after {rounds} rounds", cells, points)
    come = " OR ".join(["false", *(f"({arrival.of_round(number)})" for number in range(rounds))])
    wrong = table.differs_from(f"{arrival.base} OR {come}")
    if wrong is not None:
        raise RuntimeError(wrong)
