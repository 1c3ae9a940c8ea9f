"""Spark: lakelog's session in this process, and the compared engines, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakelog.spark import configure, spark_conf
from lakelog.testing import maven
from programs import story
from programs.bench.scenario import say

ROOT = Path(__file__).resolve().parents[3]
MODES = ("copy-on-write", "merge-on-read")
COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
}


def spark_on(
    warehouse: str | Path, settings: Mapping[str, str] | None = None, **catalog: Any
) -> SparkSession:
    """Return a quiet session on two cores with the catalog `lake`. `spark.jars` are the jars besides the adapter's."""
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    for name, value in {**COMMON, **(settings or {})}.items():
        builder = builder.config(name, value)
    local = Path(warehouse).parent if "://" not in str(warehouse) else None
    with story.errors_to(local / "spark.log" if local else Path(os.devnull)):
        session = configure(builder, warehouse=warehouse, **catalog).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def add_catalog(spark: SparkSession, warehouse: str | Path, name: str, **catalog: Any) -> None:
    """Give a session another lakelog catalog."""
    for key, value in spark_conf(str(warehouse), name=name, jar="unused", **catalog).items():
        if key.startswith("spark.sql.catalog."):
            spark.conf.set(key, value)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A table format on a Spark that it supports.

    `catalog` has its tables, and `packages` come from Maven Central. `settings` may use {folder}, the engine's own
    folder. If `spark` is missing, the engine runs on lakelog's Spark.
    """

    name: str
    spark: str = ""
    version: str = ""
    catalog: str = "lake"
    provider: str
    packages: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """A table's properties for each row-level mode."""

    compact: str = ""
    """The statement that compacts the files of table {n} of its catalog."""

    def clauses(self, mode: str, **more: str) -> str:
        """Return the clauses of a CREATE TABLE, `more` properties included."""
        words = ", ".join(
            f"'{key}' = '{value}'" for key, value in {**self.properties.get(mode, {}), **more}.items()
        )
        return f"USING {self.provider} {f'TBLPROPERTIES ({words})' if words else ''}"


def _each(template: str, value: str) -> dict[str, str]:
    return {template.format(operation): value for operation in ("delete", "update", "merge")}


# The newest Spark for which both peers have releases.
PEERS_SPARK = "4.1"
OWN_CATALOG = {
    "spark.sql.warehouse.dir": "{folder}/warehouse",
    "spark.sql.catalogImplementation": "in-memory",
}
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="lakelog",
            provider="lakelog",
            properties={mode: _each("lakelog.write.{}.mode", mode) for mode in MODES},
            compact="CALL lake.system.compact('{n}')",
        ),
        Engine(
            name="delta",
            spark=PEERS_SPARK,
            version="Delta 4.4.0",
            catalog="spark_catalog",
            provider="delta",
            packages=("io.delta:delta-spark_4.1_2.13:4.4.0",),
            settings={
                **OWN_CATALOG,
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.parquet.compression.codec": "zstd",
                # 50 by default, which takes seconds for the log of a small table on two cores.
                "spark.databricks.delta.snapshotPartitions": "2",
            },
            properties={
                mode: {"delta.enableDeletionVectors": str(mode == "merge-on-read").lower()} for mode in MODES
            },
            compact="OPTIMIZE spark_catalog.{n}",
        ),
        Engine(
            name="iceberg",
            spark=PEERS_SPARK,
            version="Iceberg 1.12.0",
            provider="iceberg",
            packages=("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
            settings={
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "hadoop",
                "spark.sql.catalog.lake.warehouse": "{folder}/warehouse",
            },
            properties={
                mode: {
                    "format-version": "3",
                    "write.parquet.compression-codec": "zstd",
                    **_each("write.{}.mode", mode),
                }
                for mode in MODES
            },
            compact="CALL lake.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))",
        ),
        Engine(name="parquet", catalog="spark_catalog", provider="parquet", settings=OWN_CATALOG),
        Engine(
            name="parquet-peers",
            spark=PEERS_SPARK,
            catalog="spark_catalog",
            provider="parquet",
            settings=OWN_CATALOG,
        ),
    )
}


class Worker:
    """An engine's Spark in a process of its own, until the block ends. `more` are the caller's settings."""

    def __init__(self, engine: Engine, folder: Path, **more: str) -> None:
        self.engine = engine
        own = folder / engine.name
        own.mkdir()
        settings = {**COMMON, "spark.sql.shuffle.partitions": "4", **engine.settings, **more}
        if engine.packages:
            settings["spark.jars"] = ",".join(map(str, _jars(engine.packages)))
        if engine.name == "lakelog":
            settings |= spark_conf(str(own / "warehouse"), python=sys.executable, fsync=False)
        settings = {key: value.format(folder=own) for key, value in settings.items()}
        script = Path(__file__).with_name("spark_worker.py")
        self._log = folder / f"{engine.name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(_python(engine.spark)), "-W", "ignore", str(script), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=own,
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            )
        self.spark_version = self._answer()["spark"]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, sql: str) -> tuple[float, list[list[str]]]:
        """Return the seconds of a statement, and its rows as texts. Raises RuntimeError if it fails."""
        (answer,) = self.side_by_side([[sql]])
        if answer["errors"]:
            raise RuntimeError(f"{self.engine.name}: {answer['errors'][0]}\nin: {sql}")
        return answer["seconds"][0], answer["rows"]

    def check(self, sql: str) -> list[list[str]]:
        return self.run(sql)[1]

    def side_by_side(self, lists: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Run lists of statements in threads.

        Return for each list its `seconds` and `errors`, and the `rows` of its last statement.
        """
        answers: list[dict[str, Any]] = self.ask("statements", lists=lists)
        return answers

    def view(self, name: str, format: str, path: str, columns: Sequence[str], **options: str) -> None:
        """Make a temporary view of expressions over the table or the files at `path`."""
        self.ask("view", name=name, format=format, path=path, columns=columns, options=options)

    def ask(self, request: str, **given: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({request: given}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{self.engine.name}: {answer['error']}\nin: {request} {given}")
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine.name} ended:\n{self._log.read_text()[-4000:]}")
        return json.loads(line)


def _jars(packages: Sequence[str]) -> list[Path]:
    names = (package.split(":", 1)[1].replace(":", "-") for package in packages)
    return maven.jars("-".join(("bench", *names)), packages, ("org.apache.spark:*",))


def _python(spark: str) -> Path:
    """Return the Python of an environment with that Spark. Makes the environment if it is missing."""
    if not spark:
        return Path(sys.executable)
    python = ROOT / f".venv-bench-{spark}" / "bin" / "python"
    if not any(python.parents[1].glob("lib/python*/site-packages/pyspark-*.dist-info")):
        say(f"Setting up Spark {spark} (some minutes) …")
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"pyspark=={spark}.*"], check=True)
    return python
