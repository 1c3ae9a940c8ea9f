"""`lakelog spark-conf`, and spark-sql started with what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from lakelog.catalog import Catalog, InvalidInput
from lakelog.cli.main import run
from lakelog.spark import SparkSettings, spark_conf
from lakelog.spark.jar import jar_path

pytestmark = pytest.mark.adapter


def test_the_command_prints_what_configure_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s3 = ["--endpoint", "http://127.0.0.1:9", "--region", "eu-west-1", "--path-style"]
    assert run(["spark-conf", "--catalog", "ice", "--warehouse", "s3://b/w", *s3, "--json"]) == 0
    expected = spark_conf(
        "s3://b/w", name="ice", endpoint="http://127.0.0.1:9", region="eu-west-1", path_style=True
    )
    assert json.loads(capsys.readouterr().out) == expected
    assert run(["spark-conf", "--warehouse", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"--conf {name}={value}" for name, value in spark_conf(str(tmp_path)).items()]


def test_places_are_given_as_paths(tmp_path: Path) -> None:
    python, jar = tmp_path / "python", tmp_path / "a.jar"
    assert spark_conf(tmp_path, python=python, jar=jar) == spark_conf(
        str(tmp_path), python=str(python), jar=str(jar)
    )


OPTIONS = {
    "warehouse": (["--warehouse", "s3://b/w"], "s3://b/w"),
    "name": (["--catalog", "ice"], "ice"),
    "endpoint": (["--endpoint", "http://127.0.0.1:9"], "http://127.0.0.1:9"),
    "region": (["--region", "eu-west-1"], "eu-west-1"),
    "path_style": (["--path-style"], True),
    "fsync": (["--no-fsync"], False),
    "as_of": (["--as-of", "2026-11-20 18:00"], "2026-11-20 18:00"),
    "as_of_namespace": (["--as-of-namespace", "a.b"], "a.b"),
    "maintenance": (["--maintenance", "off"], "off"),
    "proposals": (["--proposals", "on"], "on"),
    "statement_text": (["--statement-text", "full"], "full"),
    "stored_code": (["--stored-code", "none"], "none"),
    "python": (["--python", "/usr/bin/other"], "/usr/bin/other"),
    "jar": (["--adapter-jar", "/a.jar"], "/a.jar"),
    "session_catalog": (["--session-catalog"], True),
    "s3a": (["--no-s3a"], False),
}


def test_the_command_has_an_option_for_all_that_configure_takes(capsys: pytest.CaptureFixture[str]) -> None:
    of_other_clouds = {"gcs_endpoint", "azure_endpoint"}  # --endpoint too, for a warehouse there
    settings = [name for name in SparkSettings.__annotations__ if name not in of_other_clouds]
    assert ["warehouse", *settings] == list(OPTIONS)
    with pytest.raises(TypeError, match="there is no setting region_: give one of name, endpoint, region"):
        spark_conf("/w", region_="eu")  # type: ignore[call-arg]
    of_past = {"as_of", "as_of_namespace"}
    for left_out in (of_past, {"session_catalog"}):  # which exclude each other
        options = {name: option for name, option in OPTIONS.items() if name not in left_out}
        arguments = [part for option, _ in options.values() for part in option]
        assert run(["spark-conf", *arguments, "--json"]) == 0
        values: dict[str, Any] = {name: value for name, (_, value) in options.items()}
        assert json.loads(capsys.readouterr().out) == spark_conf(**values)
        for name in options.keys() - {"warehouse", "path_style", "as_of"}:
            assert spark_conf(**values) != spark_conf(
                **{key: value for key, value in values.items() if key != name}
            )


def test_a_namespace_is_one_of_a_cut() -> None:
    with pytest.raises(InvalidInput, match="give the name of a cut of that namespace"):
        spark_conf("s3://b/w", as_of_namespace="a.b")


def test_own_jars_stand_beside_lakelogs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["spark-conf", "--warehouse", str(tmp_path), "--jars", "/a.jar,/b.jar", "--json"]) == 0
    ours = spark_conf(str(tmp_path))["spark.jars"]
    assert json.loads(capsys.readouterr().out)["spark.jars"] == f"/a.jar,/b.jar,{ours}"


def test_spark_sql_creates_and_reads_a_table_with_it_where_all_paths_have_spaces(tmp_path: Path) -> None:
    """Those of the warehouse, of lakelog's jar in the cache, of the environment's Python and of a jar of the user's."""
    root = tmp_path / "a folder"
    (root / "cache").mkdir(parents=True)
    (root / "cache" / "lakelog").symlink_to(jar_path().parent)
    (root / "venv").symlink_to(Path(sys.prefix))
    with zipfile.ZipFile(root / "own.jar", "w") as own:
        own.writestr("own.txt", "own")
    command = (
        'eval "$SPARK_SQL --master local[1] $("$PYTHON" -m lakelog.cli spark-conf --warehouse "$ROOT/warehouse" '
        '--jars "$ROOT/own.jar") --conf spark.ui.enabled=false --conf spark.sql.warehouse.dir=spark -f statements.sql"'
    )
    statements = (
        "CREATE TABLE lake.t AS SELECT id FROM range(3);"
        "SELECT sum(id), java_method('java.lang.System', 'getProperty', 'sun.java.command') FROM lake.t; LIST JARS;"
    )
    (tmp_path / "statements.sql").write_text(statements)
    process = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SQL": str(Path(pyspark.__file__).parent / "bin" / "spark-sql"),
            "PYTHON": str(root / "venv" / "bin" / "python"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "ROOT": str(root),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "write eval" in process.stderr
    table, *_ = (line for line in process.stdout.splitlines() if line.startswith("3\t"))
    assert f"{root}/venv/bin/python" in table and f"{root}/cache/lakelog/" in table
    assert "own.jar" in process.stdout.partition(table)[2]
    assert Catalog(str(root / "warehouse")).load_table("t").row_count == 3
