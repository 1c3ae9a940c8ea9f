"""The folders of examples/ run as their pages say, with the libraries that they name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from lakelog.spark.user_cache import made, user_cache

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.slow


def run(example: Path, folder: Path, *arguments: str, libraries: Path | None = None) -> str:
    """Return what an example prints, run in a folder of its own. `libraries` are beside those of this environment."""
    copy = folder / example.name
    shutil.copytree(example, copy)
    process = subprocess.run(
        [sys.executable, "-W", "ignore", str(copy / "run.py"), *arguments],
        cwd=folder,
        env={**os.environ, **({"PYTHONPATH": str(libraries)} if libraries else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def installed_path(example: Path) -> Path:
    """Return a folder with what the example needs beside lakelog, which is kept for the same requirements."""
    requirements = (example / "requirements.txt").read_bytes()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = made(user_cache()) / f"example-{example.name}-{version}-{zlib.crc32(requirements):08x}"
    if not folder.is_dir():
        temporary = folder.with_name(f"{folder.name}.{os.getpid()}")
        # An environment that uv has made has no pip.
        uv = shutil.which("uv")
        pip = (
            [uv, "pip", "install", "--python", sys.executable]
            if uv
            else [sys.executable, "-m", "pip", "install"]
        )
        wanted_texts = ["--quiet", "--target", str(temporary), "-r", str(example / "requirements.txt")]
        subprocess.run([*pip, *wanted_texts], check=True)
        temporary.rename(folder)
    return folder


def test_dbt_runs_models_snapshots_and_tests_on_lakelog_tables(tmp_path: Path) -> None:
    example = EXAMPLES / "dbt"
    text = run(example, tmp_path, str(tmp_path / "warehouse"), libraries=installed_path(example))
    assert text.count("Completed successfully") == 6
    assert re.search(r"\| +3\| +joan\|570\.00\| +6\|", text), text
    assert len(re.findall(r"\| +3\| +joan\| +(?:Paris|Berlin)\|", text)) == 2
    assert re.search(r"\| +2\| +merge\|", text)
    catalog = json.loads((tmp_path / "dbt/target/catalog.json").read_text(encoding="utf-8"))
    assert {"customer", "amount", "orders"} <= set(catalog["nodes"]["model.shop.totals"]["columns"])


def test_openlineage_names_the_tables_that_a_statement_reads_and_writes(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    text = run(EXAMPLES / "openlineage", tmp_path, warehouse, str(tmp_path / "events"))
    assert f"['{warehouse} shop.orders'] -> ['{warehouse} shop.totals']" in text, text
    assert "openlineage.dataset" not in text


def test_dagster_keeps_assets_and_their_partitions_as_versions_of_tables(tmp_path: Path) -> None:
    example = EXAMPLES / "dagster"
    text = run(example, tmp_path, str(tmp_path / "warehouse"), libraries=installed_path(example))
    assert "shop.orders 2026-01-02: version 5" in text, text
    assert text.count("no_total_is_negative: passed") == 2
    line_before, line_after = (line for line in text.splitlines() if line.startswith("version "))
    assert "joan" not in line_before and "'joan', 'amount': 10.0, 'orders': 1" in line_after
