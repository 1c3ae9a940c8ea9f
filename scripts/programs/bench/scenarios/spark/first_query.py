"""From nothing to the first query, by each installation: a clone's demo, a release's wheel, Maven's coordinates.

Each way begins with a folder of its own, without an environment or a built jar. Packages come from the caches and
registries of this machine. A second run therefore shows the time on a team's second machine. Clones are of the last
commit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from programs.bench.measure import seconds
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import ROOT

QUERY = """
import sys
from pyspark.sql import SparkSession
from lakelog.spark import configure
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
chosen = {"jar": ""} if len(sys.argv) > 2 else {}
spark = configure(builder, warehouse=sys.argv[1], **chosen).getOrCreate()
spark.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
assert spark.sql("SELECT * FROM lake.t").collect()[0].id == 1
"""


class Ways:
    def __init__(self, folder: Path, dist: Path, with_uv: bool) -> None:
        self._folder, self._dist = folder, dist
        path = os.environ["PATH"]
        if not with_uv:
            # Folders with uv leave the PATH, so that the scripts use pip.
            path = os.pathsep.join(
                path_folder
                for path_folder in path.split(os.pathsep)
                if not (Path(path_folder) / "uv").exists()
            )
        self._uv = shutil.which("uv", path=path)
        self._env = {
            **os.environ,
            "PATH": path,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHON": sys.executable,
        }
        if self._uv:
            cache = subprocess.run([self._uv, "cache", "dir"], capture_output=True, text=True, check=True)
            self._env["UV_CACHE_DIR"] = cache.stdout.strip()
        pip = subprocess.run([sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True)
        if pip.returncode == 0:
            self._env["PIP_CACHE_DIR"] = pip.stdout.strip()

    def clone(self) -> Path:
        to = self._folder / "clone"
        self._run("git", "clone", "--quiet", str(ROOT), str(to))
        return to

    def demo(self) -> None:
        """git clone, scripts/demo"""
        self._run("scripts/demo", cwd=self.clone())

    def source(self) -> None:
        """git clone, install '.[spark]', a first table and query"""
        clone = self.clone()
        self._query(self._installed(f"{clone}[spark]"))

    def wheel(self) -> None:
        """install the wheel of scripts/release, a first table and query"""
        (wheel,) = self._dist.glob("*.whl")
        self._query(self._installed(f"{wheel}[spark]"))

    def maven(self) -> None:
        """the same, with the adapter by spark.jars.packages from the release's Maven repository"""
        (wheel,) = self._dist.glob("*.whl")
        version = wheel.name.split("-")[1]
        settings = (
            f"spark.jars.repositories={(self._dist / 'maven').as_uri()}",
            f"spark.jars.packages=org.lakelog:lakelog-spark-4.3_2.13:{version}",
            f"spark.jars.ivy={self._folder / 'ivy'}",
        )
        self._query(self._installed(f"{wheel}[spark]"), *settings)

    def _installed(self, what: str) -> Path:
        environment = self._folder / "environment"
        if self._uv:
            self._run(self._uv, "venv", "--quiet", "--python", sys.executable, str(environment))
            python = environment / "bin/python"
            self._run(self._uv, "pip", "install", "--quiet", "--python", str(python), what)
        else:
            self._run(sys.executable, "-m", "venv", str(environment))
            python = environment / "bin/python"
            self._run(str(python), "-m", "pip", "install", "--quiet", what)
        return python

    def _query(self, python: Path, *settings: str) -> None:
        self._run(str(python), "-c", QUERY, str(self._folder / "warehouse"), *settings)

    def _run(self, *command: str, cwd: Path | None = None) -> None:
        outcome = subprocess.run(
            command, cwd=cwd or self._folder, env=self._env, capture_output=True, text=True, check=False
        )
        if outcome.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{outcome.stdout[-2000:]}{outcome.stderr[-2000:]}")


def measure(
    dist: Annotated[str, "what scripts/release has built; without it, its two ways are left out"] = "",
    pip: Annotated[bool, "by pip although uv is there"] = False,
) -> Iterator[Row]:
    for name in ("demo", "source", "wheel", "maven") if dist else ("demo", "source"):
        with folder() as place:
            way = getattr(Ways(place, Path(dist).absolute(), not pip), name)
            yield {"way": way.__doc__, "s": seconds(way)}
