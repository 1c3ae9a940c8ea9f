"""From nothing to the first query, in each way of installing: a clone's demo, a release's wheel, Maven's coordinates.

Each way begins with a folder of its own, without an environment and without a built jar; packages come from the
caches and registries of this machine, so that a second run is what a second machine of a team sees. Clones are of the
last commit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from programs import story

ROOT = Path(__file__).resolve().parents[4]
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
    def __init__(self, folder: Path, with_uv: bool) -> None:
        self._folder = folder
        path = os.environ["PATH"]
        if not with_uv:
            # Wherever uv stands on the PATH, the scripts take pip then.
            path = os.pathsep.join(
                each for each in path.split(os.pathsep) if not (Path(each) / "uv").exists()
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

    def wheel(self, dist: Path) -> None:
        """install the wheel of scripts/release, a first table and query"""
        (wheel,) = dist.glob("*.whl")
        self._query(self._installed(f"{wheel}[spark]"))

    def maven(self, dist: Path) -> None:
        """the same, with the adapter by spark.jars.packages from the release's Maven repository"""
        (wheel,) = dist.glob("*.whl")
        version = wheel.name.split("-")[1]
        settings = (
            f"spark.jars.repositories={(dist / 'maven').as_uri()}",
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
        done = subprocess.run(
            command, cwd=cwd or self._folder, env=self._env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench installs.first_query", description=__doc__)
    parser.add_argument(
        "--dist", type=Path, help="what scripts/release has built; without it, its two ways are left out"
    )
    parser.add_argument("--pip", action="store_true", help="by pip although uv is there")
    arguments = parser.parse_args()
    rows = []
    for way in ("demo", "source", "wheel", "maven"):
        if way in ("wheel", "maven") and arguments.dist is None:
            continue
        with tempfile.TemporaryDirectory(prefix="lakelog-first-") as folder:
            ways = Ways(Path(folder), not arguments.pip)
            step: Callable[..., None] = getattr(ways, way)
            began = time.perf_counter()
            step(*([arguments.dist.absolute()] if way in ("wheel", "maven") else []))
            rows.append((step.__doc__ or "", f"{time.perf_counter() - began:.0f}"))
            story.say(f"{rows[-1][0]}: {rows[-1][1]} s")


if __name__ == "__main__":
    main()
