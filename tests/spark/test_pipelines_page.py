"""docs/pipelines.md runs: its settings, its two files, and its commands, twice, by Spark's own launcher."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.spark.jar import jar_path

pytest.importorskip("yaml")
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
COMMAND = Path(sys.executable).with_name("spark-pipelines")


def block(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert match is not None, language
    return match[1]


def test_a_pipeline_writes_to_tables_and_goes_on_in_its_next_run(tmp_path: Path) -> None:
    jar_path()
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    orders = catalog.create_table("shop.orders", pa.schema({"id": pa.int64(), "amount": pa.int64()}))
    orders = orders.append(pa.table({"id": [1, 2, 3], "amount": [10, 20, 30]}))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "shop.sql").write_text(block("sql"))
    (tmp_path / "spark-pipeline.yml").write_text(
        block("yaml").replace("/tmp/pipeline-storage", str(tmp_path / "storage"))
    )
    lines = [line for line in block("sh").splitlines() if not line.startswith("pip ")]
    script = "\n".join(["set -e", *lines, "spark-pipelines run"]).replace(
        "/tmp/warehouse", str(tmp_path / "warehouse")
    )
    environment = {
        **os.environ,
        "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
    }

    def run() -> None:
        process = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stdout + process.stderr

    run()
    assert catalog.load_table("shop.totals").to_arrow().to_pylist() == [{"orders": 2, "amount": 50}]
    orders.append(pa.table({"id": [4], "amount": [40]}))
    run()
    assert catalog.load_table("shop.large").row_count == 3
    assert catalog.load_table("shop.totals").to_arrow().to_pylist() == [{"orders": 3, "amount": 90}]
