"""`lakelog spark-conf`, and spark-sql started with what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.spark import spark_conf

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


def test_spark_sql_creates_and_reads_a_table_with_it(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    settings = subprocess.run(
        [sys.executable, "-m", "lakelog.cli", "spark-conf", "--warehouse", str(warehouse)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    statements = "CREATE TABLE lake.t AS SELECT id FROM range(3); SELECT sum(id) AS total FROM lake.t;"
    spark_sql = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    quiet = ["--conf", "spark.ui.enabled=false", "--conf", f"spark.sql.warehouse.dir={tmp_path}/spark"]
    done = subprocess.run(
        [str(spark_sql), "--master", "local[1]", *settings, *quiet, "-e", statements],
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == "3", done.stdout + done.stderr
    assert Catalog(str(warehouse)).load_table("t").row_count == 3
