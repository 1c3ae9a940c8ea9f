"""Programs that start the first session of a JVM, with the settings of `configure` for a warehouse on a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

START = """
import json, sys
from pyspark.sql import SparkSession
from lakelog.spark import configure
from lakelog.log.errors import InvalidInput

given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "1")
for key, value in given["settings"].items():
    builder = builder.config(key, value)

def started(**more):
    return configure(builder, given["warehouse"], **given["options"], **more).getOrCreate()
"""


def printed(
    program: str, folder: Path, given: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> str:
    """Return what a program prints, behind START. `given` has its warehouse, settings and options."""
    process = subprocess.run(
        [sys.executable, "-c", START + program, json.dumps(given)],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
