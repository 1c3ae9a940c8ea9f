"""Statements in Spark: lakelog beside Iceberg and Delta, and plain Parquet tables of the same two Sparks.

Every contender has a Spark session in a process and an environment of its own; in each round they take turns, so that
a busy machine hits all of them alike. Peers run on the newest Spark that both have releases for (`.venv-peers`, made
by this command, and jars from Maven Central); Parquet tables on both Sparks show what another Spark alone changes.
What the tables hold in the end is compared: a quick but wrong statement does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelog.spark import spark_conf
from lakelog.testing import maven
from programs import story
from programs.bench.measure import median

ROOT = Path(__file__).resolve().parents[3]
PEERS_SPARK = "4.1"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"

ROW = (
    "id, id % 200 AS day, id % 97 AS k, CAST(id AS DOUBLE) / 2 AS v, concat('name ', id % 1000) AS s, "
    "CAST(timestamp_seconds(1700000000 + id) AS TIMESTAMP) AS at"
)


@dataclass(frozen=True)
class Contender:
    """How statements name a contender's tables, and what its dialect has; None for what it cannot say."""

    name: str
    catalog: str
    using: str = ""
    changes_rows: bool = True
    properties: str = ""
    changes: str | None = None
    compact: str | None = None
    on_peers_spark: bool = True

    def table(self, name: str) -> str:
        return f"{self.catalog}.bench.{name}"


CONTENDERS = (
    Contender(
        name="lakelog",
        catalog="lake",
        changes="SELECT count(*) FROM {t} CHANGES FROM VERSION 2 WITH (computeUpdates = 'true')",
        compact="CALL lake.system.compact('bench.{n}')",
        on_peers_spark=False,
    ),
    Contender(
        name="Iceberg",
        catalog="ice",
        using="USING iceberg",
        properties="'format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'",
        compact="CALL ice.system.rewrite_data_files(table => 'bench.{n}', options => map('rewrite-all', 'true'))",
    ),
    Contender(
        name="Delta",
        catalog="spark_catalog",
        using="USING delta",
        properties="'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = '{feed}'",
        changes="SELECT count(*) FROM table_changes('{t}', 1)",
        compact="OPTIMIZE {t}",
    ),
    Contender(name="Parquet, same Spark", catalog="spark_catalog", using="USING parquet", changes_rows=False,
              on_peers_spark=False),
    Contender(name="Parquet, peers' Spark", catalog="spark_catalog", using="USING parquet", changes_rows=False),
)  # fmt: skip


class Worker:
    """A contender's process."""

    def __init__(self, contender: Contender, folder: Path, peers_python: Path) -> None:
        self.contender = contender
        folder.mkdir()
        python = peers_python if contender.on_peers_spark else Path(sys.executable)
        self._errors = (folder / "errors.log").open("w")
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", str(Path(__file__).parent / "workers" / "peer_worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        self.spark: str = self._ask(settings_of(contender.name, folder))["spark"]

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.contender.name} ended: {Path(self._errors.name).read_text()[-2000:]}")
        return json.loads(line)

    def run(self, *statements: str) -> dict[str, Any]:
        """Run statements one after another; raise RuntimeError for one that fails."""
        found: dict[str, Any] = self._ask([statements])[0]
        if found["errors"]:
            raise RuntimeError(f"{self.contender.name}: {found['errors'][0]}")
        return found

    def side_by_side(self, lists: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask(lists)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


def settings_of(name: str, folder: Path) -> dict[str, str]:
    """Return the settings of a contender's session, whose warehouse is in `folder`."""
    plain = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    match name:
        case "lakelog":
            return plain | spark_conf(str(folder / "warehouse"), name="lake", fsync=False)
        case "Iceberg":
            return plain | {
                "spark.jars": _jars("bench-iceberg", ICEBERG),
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.ice.type": "hadoop",
                "spark.sql.catalog.ice.warehouse": str(folder / "warehouse"),
            }
        case "Delta":
            return plain | {
                "spark.jars": _jars("bench-delta", DELTA),
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                # 50 by default, which takes seconds for the log of a small table on two cores.
                "spark.databricks.delta.snapshotPartitions": "2",
            }
    return plain


def _jars(name: str, package: str) -> str:
    version = package.rpartition(":")[2]
    return ",".join(str(each) for each in maven.jars(f"{name}-{version}", [package], ["org.apache.spark:*"]))


def peers_environment() -> Path:
    """Return the Python of the peers' environment, which is made where it is missing."""
    folder = ROOT / ".venv-peers"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if not stamp.is_file() or stamp.read_text() != PEERS_SPARK:
        story.say(f"Setting up .venv-peers with Spark {PEERS_SPARK} (some minutes) …")
        if not python.is_file():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={PEERS_SPARK}.*"], check=True
        )
        stamp.write_text(PEERS_SPARK)
    return python


# What is measured


class Bench:
    """The contenders that were asked for, and the seconds that each needed for each thing."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = list(workers)
        self.times: dict[str, dict[str, list[float]]] = {}
        self._turn = 0

    def turns(self, name: str, statement: Callable[[Contender], str | None]) -> None:
        """Let each contender run a statement once; another one begins each time."""
        self._turn += 1
        first = self._turn % len(self.workers)
        for worker in self.workers[first:] + self.workers[:first]:
            text = statement(worker.contender)
            if text is not None:
                spent = worker.run(text)["seconds"][0]
                self.times.setdefault(name, {}).setdefault(worker.contender.name, []).append(spent)

    def same(self, statement: Callable[[Contender], str | None]) -> None:
        """Raise RuntimeError unless a query returns the same rows wherever it can be asked."""
        found = {}
        for worker in self.workers:
            text = statement(worker.contender)
            if text is not None:
                found[worker.contender.name] = worker.run(text)["rows"]
        if len({json.dumps(rows) for rows in found.values()}) > 1:
            raise RuntimeError(f"the contenders' tables differ: {found}")

    def show(self, title: str, names: Sequence[str], *, unit: float, digits: int) -> None:
        headings = [worker.contender.name for worker in self.workers]
        lines = []
        for name in names:
            cells = []
            for heading in headings:
                found = sorted(self.times[name].get(heading, []))
                cells.append(_spread(found, unit, digits))
            lines.append([name, *cells])
        story.table(["", *headings], lines, title=title)


def _spread(found: list[float], unit: float, digits: int) -> str:
    """Return the median, and between which times the middle half lies."""
    if not found:
        return "–"
    low, high = found[len(found) // 4], found[(3 * len(found) - 1) // 4]
    return f"{median(found) * unit:.{digits}f} ({low * unit:.{digits}f}–{high * unit:.{digits}f})"


DEFINITIONS: dict[str, Callable[[Contender, int], str]] = {
    "CREATE TABLE": lambda c, n: f"CREATE TABLE {c.table(f't{n}')} (id BIGINT, name STRING, at TIMESTAMP) {c.using}",
    "ADD COLUMN": lambda c, n: f"ALTER TABLE {c.table(f't{n}')} ADD COLUMN more STRING COMMENT 'new'",
    "SET TBLPROPERTIES": lambda c, n: f"ALTER TABLE {c.table(f't{n}')} SET TBLPROPERTIES ('k' = 'w')",
    "DESCRIBE": lambda c, n: f"DESCRIBE TABLE {c.table(f't{n}')}",
    "SHOW TABLES": lambda c, n: f"SHOW TABLES IN {c.catalog}.bench",
    "INSERT of one row": lambda c, n: f"INSERT INTO {c.table(f't{n}')} SELECT 1, 'x', TIMESTAMP '2026-01-01', 'y'",
    "SELECT of that row": lambda c, n: f"SELECT * FROM {c.table(f't{n}')}",
}  # fmt: skip


def _definitions(bench: Bench, tables: int, warm_up: int) -> None:
    for number in range(warm_up + tables):
        if number == warm_up:
            bench.times.clear()
        for name, statement in DEFINITIONS.items():
            bench.turns(name, lambda c, s=statement, n=number: s(c, n))  # type: ignore[misc]
    for number in range(warm_up + tables):
        bench.turns("DROP TABLE", lambda c, n=number: f"DROP TABLE {c.table(f't{n}')}")  # type: ignore[misc]
    title = f"{tables} tables, ms: median (middle half)"
    bench.show(title, [*DEFINITIONS, "DROP TABLE"], unit=1000, digits=0)


def _rows(bench: Bench, rows: int, rounds: int) -> None:
    """Create, read and change tables of some million rows."""

    def created(c: Contender, name: str, feed: bool = False, partitioned: bool = False) -> str:
        properties = c.properties.format(feed=str(feed).lower())
        return (
            f"CREATE TABLE {c.table(name)} {c.using} {'PARTITIONED BY (day)' if partitioned else ''} "
            f"{f'TBLPROPERTIES ({properties})' if properties else ''} AS SELECT {ROW} FROM range({rows}) "
            f"{'DISTRIBUTE BY day' if partitioned else ''}"
        )

    # Each part begins with a round that does not count: a JVM is slow at first.
    for number in range(1 + rounds):
        if number == 1:
            bench.times.clear()
        bench.turns("CTAS", lambda c, n=number: created(c, f"c{n}"))  # type: ignore[misc]
    for number in range(max(1, rounds // 2)):
        bench.turns("CTAS, 200 partitions", lambda c, n=number: created(c, f"p{n}", partitioned=True))  # type: ignore[misc]
    scan = "SELECT count(*), sum(v), max(s), min(at) FROM {t}"
    bench.turns("", lambda c: scan.format(t=c.table("c0")))
    for _ in range(rounds):
        bench.turns("scan", lambda c: scan.format(t=c.table("c0")))
        bench.turns("scan of one partition", lambda c: scan.format(t=c.table("p0")) + " WHERE day = 77")
        bench.turns("count of all", lambda c: f"SELECT count(*) FROM {c.table('c0')}")
    bench.same(lambda c: scan.format(t=c.table("p0")))

    def changing(statement: str, number: int) -> Callable[[Contender], str | None]:
        return lambda c: statement.format(t=c.table("c0"), r=number) if c.changes_rows else None

    changes = {
        "UPDATE of 1 %": "UPDATE {t} SET v = v + 1 WHERE id % 100 = {r}",
        "DELETE of 1 %": "DELETE FROM {t} WHERE id % 100 = 50 + {r}",
        "MERGE of 1 %": f"MERGE INTO {{t}} t USING (SELECT {ROW} FROM (SELECT id * 50 + {{r}} AS id FROM "
        f"range({rows // 50}))) s ON t.id = s.id AND s.id % 100 < 50 WHEN MATCHED THEN UPDATE SET v = s.v + 7 "
        "WHEN NOT MATCHED THEN INSERT *",
    }
    for number in range(1 + rounds):
        for name, statement in changes.items():
            bench.turns(name if number else "", changing(statement, number))
    for _ in range(rounds):
        bench.turns("scan after these", changing(scan, 0))
    bench.same(changing(scan, 0))
    bench.turns("compaction", lambda c: c.compact and c.compact.format(t=c.table("c0"), n="c0"))
    bench.same(changing(scan, 0))

    bench.turns("", lambda c: created(c, "f", feed=True) if c.changes else None)
    for number in range(3):
        for name in ("UPDATE of 1 %", "DELETE of 1 %"):
            bench.turns("", lambda c, s=changes[name], n=number: c.changes and s.format(t=c.table("f"), r=n))  # type: ignore[misc]
    for _ in range(rounds):
        bench.turns("changes of rows", lambda c: c.changes and c.changes.format(t=c.table("f")))
    names = ["CTAS", "CTAS, 200 partitions", "scan", "scan of one partition", "count of all", *changes,
             "scan after these", "compaction", "changes of rows"]  # fmt: skip
    bench.show(f"{rows:,} rows, seconds: median (middle half)", names, unit=1, digits=2)


def _contention(bench: Bench, threads: int, each: int) -> None:
    """Let threads of one session write to one table at once."""
    kinds = {
        "INSERT": "INSERT INTO {t} VALUES ({w}, {n})",
        "UPDATE of different rows": "UPDATE {t} SET n = n + 1 WHERE w = {w}",
    }
    lines = []
    for worker in bench.workers:
        c = worker.contender
        if not c.changes_rows:
            continue
        properties = c.properties.format(feed="false")
        worker.run(
            f"CREATE TABLE {c.table('busy')} (w BIGINT, n BIGINT) {c.using} "
            f"{f'TBLPROPERTIES ({properties})' if properties else ''}"
        )
        cells = [c.name]
        for statement in kinds.values():
            lists = [
                [statement.format(t=c.table("busy"), w=w, n=n) for n in range(each)] for w in range(threads)
            ]
            found = worker.side_by_side(lists)
            failed = sum(len(part["errors"]) for part in found)
            seconds = max(sum(part["seconds"]) for part in found)
            cells += [f"{(threads * each - failed) / seconds:.1f}", f"{failed} of {threads * each}"]
        inserted, updates = worker.run(f"SELECT count(*), sum(n) FROM {c.table('busy')}")["rows"][0]
        lines.append([*cells, inserted, updates])
    headings = ["", "INSERTs a second", "failed", "UPDATEs a second", "failed", "rows", "sum"]
    story.table(headings, lines, title=f"{threads} threads of one session, {each} statements each, one table")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=["definitions", "rows", "contention"],
                        default=["definitions", "rows", "contention"])  # fmt: skip
    parser.add_argument("--contenders", nargs="+", metavar="NAME", help="some alone: " + ", ".join(
        each.name for each in CONTENDERS))  # fmt: skip
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    wanted = [each for each in CONTENDERS if each.name in (arguments.contenders or [each.name])]
    if not wanted:
        parser.error("no contender has such a name")
    python = peers_environment()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        workers = [Worker(each, Path(name) / str(at), python) for at, each in enumerate(wanted)]
        try:
            story.say(", ".join(f"{worker.contender.name}: Spark {worker.spark}" for worker in workers))
            for worker in workers:
                worker.run(f"CREATE NAMESPACE {worker.contender.catalog}.bench")
            if "definitions" in arguments.parts:
                _definitions(Bench(workers), arguments.tables, warm_up=10)
            if "rows" in arguments.parts:
                _rows(Bench(workers), arguments.rows, arguments.rounds)
            if "contention" in arguments.parts:
                _contention(Bench(workers), threads=4, each=10)
        finally:
            for worker in workers:
                worker.close()


if __name__ == "__main__":
    main()
