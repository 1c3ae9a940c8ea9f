"""A Python environment that travels in an archive, and drivers that run elsewhere than where they were submitted.

Spark standalone starts a master, a worker and, in deploy mode cluster, the driver as processes of their own. It takes
programs of the JVM only in that mode, so a small one is compiled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.spark.servers import free_port
from tests.spark.test_use import HOME, QUIET, arguments, home, run
from tests.spark.yarn import mini_cluster

from lakelog.catalog import Catalog
from lakelog.spark import jar, spark_conf

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240
TRAVELLED = "./environment/bin/python"

APP = """
import org.apache.spark.sql.SparkSession
object App {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    spark.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")
    spark.sql("DELETE FROM lake.t WHERE id < 4")
    spark.stop()
  }
}
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with lakelog's wheel, packed as docs/clusters.md says."""
    folder = tmp_path_factory.mktemp("packed")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "environment"], cwd=folder, check=True)
    python = str(folder / "environment/bin/python")
    pip = (
        ["uv", "pip", "install", "--python", python]
        if shutil.which("uv")
        else [python, "-m", "pip", "install"]
    )
    subprocess.run([*pip, str(wheel), "venv-pack"], cwd=folder, check=True, capture_output=True)
    pack = [str(folder / "environment/bin/venv-pack"), "-q", "-p", "environment", "-o", "environment.tar.gz"]
    subprocess.run([*pack, "--compress-level", "1"], cwd=folder, check=True)
    shutil.rmtree(folder / "environment")
    return folder / "environment.tar.gz"


def settings_of(warehouse: Path, python: str) -> dict[str, str]:
    return QUIET | {"spark.executor.memory": "512m"} | spark_conf(warehouse, fsync=False, python=python)


def test_an_environment_that_travels_runs_lakelog_at_the_driver_and_functions_at_executors(
    archive: Path, tmp_path: Path
) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent("""
            import json, pathlib
            from pyspark.sql import SparkSession
            from pyspark.sql.functions import udf
            spark = SparkSession.builder.getOrCreate()
            spark.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")

            @udf("string")
            def where(id):
                import sys, lakelog.catalog
                return f"{sys.prefix} {lakelog.catalog.__file__}"

            at_executors = {row[0] for row in spark.table("lake.t").select(where("id")).collect()}
            commands = [each.read_bytes().split(b"\\0") for each in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
            ours = [each[0].decode() for each in commands if any(b"lakelog.spark.bridge" in part for part in each)]
            print("OUT", json.dumps([sorted(at_executors), [each for each in ours if "userFiles" in each]]))
        """)
    )
    settings = settings_of(tmp_path / "lake", TRAVELLED)
    settings |= {"spark.pyspark.driver.python": sys.executable, "spark.pyspark.python": TRAVELLED}
    spark = home(tmp_path)
    submit = [str(spark / "bin/spark-submit"), "--master", "local-cluster[1,1,1024]"]
    submit += ["--archives", f"{archive}#environment", *arguments(settings), str(job)]
    text = run(submit, SPARK_HOME=str(spark), SPARK_LOCAL_IP="127.0.0.1")
    (line,) = [line for line in text.splitlines() if line.startswith("OUT")]
    (executor,), at_driver = json.loads(line[3:])
    prefix, module = executor.split(" ")
    assert prefix.startswith(str(spark / "work")) and module.startswith(prefix)
    assert all(each.endswith("/environment/bin/python") for each in at_driver) and at_driver
    assert Catalog(str(tmp_path / "lake")).load_table("t").row_count == 10


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    (folder / "App.scala").write_text(APP)
    scala = [jar.java(), "-cp", f"{jar.spark_jars()}/*", "scala.tools.nsc.Main", "-usejavacp"]
    run([*scala, "-d", str(folder / "app.jar"), str(folder / "App.scala")])
    return folder / "app.jar"


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A standalone master with a worker: its address, that of its web interface, and the worker's folder."""
    folder = tmp_path_factory.mktemp("standalone")
    port, web, worker_web = free_port(), free_port(), free_port()
    address, page = f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web}"
    own_texts = ["--host", "127.0.0.1"]
    with (
        daemon("master.Master", folder, *own_texts, "--port", str(port), "--webui-port", str(web)),
        daemon(
            "worker.Worker", folder, *own_texts, "--webui-port", str(worker_web), "--work-dir", str(folder / "work"),
            "--cores", "2", "--memory", "3g", address,
        ),
    ):  # fmt: skip
        waited(lambda: any(worker["state"] == "ALIVE" for worker in asked(page)["workers"]), folder)
        yield address, page, folder


@contextmanager
def daemon(name: str, folder: Path, *options: str) -> Iterator[None]:
    command = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *options]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log,
            env={**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def asked(page: str) -> Mapping[str, Any]:
    try:
        with urllib.request.urlopen(f"{page}/json/", timeout=TIMEOUT_S) as answer:
            found: Mapping[str, Any] = json.load(answer)
    except OSError:
        found = {"workers": [], "completeddrivers": []}
    return found


def waited(done: Callable[[], bool], folder: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not done():
        logs = "".join(log.read_text(errors="replace")[-2000:] for log in folder.glob("*.log"))
        assert time.monotonic() < end, logs
        time.sleep(0.3)


def submitted(
    master: tuple[str, str, Path], app: Path, settings: Mapping[str, str], *options: str
) -> tuple[str, str]:
    """Run the application in deploy mode cluster; return the state that its driver ends in, and what it has said."""
    address, page, folder = master
    ids_before = {each["id"] for each in asked(page)["completeddrivers"]}
    submit = [
        str(HOME / "bin/spark-submit"),
        "--master",
        address,
        "--deploy-mode",
        "cluster",
        "--driver-memory",
        "1g",
    ]
    # The driver is not where this is run: what it may not find by accident is taken from its environment.
    text = run([*submit, "--class", "App", *options, *arguments(settings), str(app)], SPARK_HOME=str(HOME))
    ended: list[Mapping[str, Any]] = []

    def done_flag() -> bool:
        ended[:] = [each for each in asked(page)["completeddrivers"] if each["id"] not in ids_before]
        return bool(ended)

    waited(done_flag, folder)
    reported_folder = folder / "work" / ended[0]["id"] / "stderr"
    return ended[0]["state"], text + reported_folder.read_text(errors="replace")


def test_a_driver_on_a_standalone_cluster_has_lakelog_from_an_archive(
    master: tuple[str, str, Path], app: Path, archive: Path, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "lake", TRAVELLED)
    state, text = submitted(master, app, settings, "--archives", f"{archive}#environment")
    assert state == "FINISHED", "\n".join(re.findall(r".*(?:Exception|Error|Caused by).*", text))
    assert sorted(Catalog(str(tmp_path / "lake")).load_table("t").to_arrow()["id"].to_pylist()) == list(
        range(4, 10)
    )


def test_where_the_driver_has_no_python_one_error_names_each_place(
    master: tuple[str, str, Path], app: Path, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "lake", TRAVELLED) | {"spark.pyspark.python": "/nowhere/python3"}
    state, text = submitted(master, app, settings)
    assert state == "FAILED"
    (line, *_) = [line for line in text.splitlines() if "lakelog's Python side did not start" in line]
    places = (
        f"'{TRAVELLED}'", "spark.sql.catalog.<name>.python", "spark.pyspark.driver.python (not set)",
        "PYSPARK_DRIVER_PYTHON (", "spark.pyspark.python (/nowhere/python3)", "PYSPARK_PYTHON (", "python3 on the PATH",
        "pip install /path/to/clone", "A relative path is looked for in /", "where archives are unpacked, /",
    )  # fmt: skip
    assert [place for place in places if place not in line] == []


def test_a_driver_on_yarn_is_run_by_the_environment_that_travels(archive: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent("""
            import sys
            from pyspark.sql import SparkSession
            from pyspark.sql.functions import udf
            spark = SparkSession.builder.getOrCreate()
            spark.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")

            @udf("string")
            def where(id):
                import lakelog.catalog
                return lakelog.catalog.__file__

            rows = spark.table("lake.t").select(where("id").alias("executors")).distinct()
            rows.selectExpr("executors", f"'{sys.prefix}' AS driver").writeTo("lake.places").create()
        """)
    )
    settings = settings_of(tmp_path / "lake", TRAVELLED) | {"spark.pyspark.python": TRAVELLED}
    del settings["spark.driver.host"], settings["spark.driver.bindAddress"]
    submit = [
        str(HOME / "bin/spark-submit"),
        "--master",
        "yarn",
        "--deploy-mode",
        "cluster",
        "--driver-memory",
        "1g",
    ]
    submit += ["--archives", f"{archive}#environment", *arguments(settings), str(job)]
    with mini_cluster(tmp_path) as conf:
        run(submit, HADOOP_CONF_DIR=str(conf), SPARK_HOME=str(HOME))
    places = Catalog(str(tmp_path / "lake")).load_table("places").to_arrow().to_pylist()
    assert places
    for row in places:
        assert row["driver"].endswith("/environment") and "/container_" in row["driver"]
        assert "/container_" in row["executors"] and "/environment/" in row["executors"]
