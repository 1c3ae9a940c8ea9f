"""A table format's Spark: its environment, and its process, which is asked in SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from lakelog.spark import spark_conf
from lakelog.testing import maven
from programs import story
from programs.bench.rows.engines import Engine


class Worker:
    """A format's Spark in a process of its own. `more` are settings of the caller's."""

    def __init__(self, engine: Engine, folder: Path, environments: Path, spark: str, **more: str) -> None:
        self.engine = engine
        own = folder / engine.name
        own.mkdir()
        python, settings = environment(engine, environments, spark)
        common = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "4g",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "4",
        }
        settings = {**common, **engine.settings, **settings, **more}
        if engine.name == "lakelog":
            settings |= spark_conf(str(own / "warehouse"), python=sys.executable)
        settings = {key: value.format(folder=own) for key, value in settings.items()}
        worker = Path(__file__).with_name("worker.py")
        with (folder / f"{engine.name}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(worker), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=own,
            )
        self._log = folder / f"{engine.name}.log"
        self.version = self._answer()["spark"]

    def run(self, sql: str) -> tuple[float, list[list[str]]]:
        """Return the seconds that a statement took, and its rows as texts. RuntimeError where it failed."""
        answer = self._asked({"sql": sql})
        return answer["seconds"], answer["rows"]

    def view(self, name: str, format: str, path: str, columns: Sequence[str], **options: str) -> None:
        """Make a temporary view of expressions over what is at `path`."""
        request = {"view": name, "format": format, "path": path, "columns": columns, "options": options}
        self._asked(request)

    def check(self, sql: str) -> list[list[str]]:
        return self.run(sql)[1]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        orders: IO[str] | None = self._process.stdin
        assert orders is not None
        orders.write(json.dumps(request) + "\n")
        orders.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{self.engine.name}: {answer['error']}\nin: {request}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine.name} ended:\n{self._log.read_text()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def environment(engine: Engine, environments: Path, spark: str) -> tuple[Path, dict[str, str]]:
    """Return the Python of an engine's environment, and the settings that its jars need."""
    if engine.name == "lakelog":
        return Path(sys.executable), {}
    python = environments / f".venv-bench-{engine.spark}" / "bin" / "python"
    if not any(python.parents[1].glob("lib/python*/site-packages/pyspark-*.dist-info")):
        story.say(f"Setting up Spark {engine.spark} for {engine.name} …")
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"pyspark=={engine.spark}.*"], check=True)
    jars = maven.jars(
        "-".join(("bench", *(package.split(":", 1)[1].replace(":", "-") for package in engine.packages))),
        engine.packages,
        ("org.apache.spark:*",),
    )
    return python, {"spark.jars": ",".join(map(str, jars))}
