"""The last release and this checkout, both changing one warehouse at once: nothing is lost, doubled or refused.

The release's wheel is built from the commit that `docs/releases.md` names. Before there is a release, the wheel is
that of the last commit here, which shows that the test itself works.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.log.checks.findings import Severity

ROOT = Path(__file__).resolve().parents[3]
CLIENT = Path(__file__).with_name("client.py")
COMMIT = re.compile(r"^\| \[?[0-9.]+\]?[^|]*\|[^|]*\| `([0-9a-f]{40})` \|", re.MULTILINE)
STEPS = 30


def released_commit() -> str:
    """Return the commit of the newest release, the first in the table of releases; HEAD if there is none."""
    page = ROOT / "docs/releases.md"
    commits = COMMIT.findall(page.read_text(encoding="utf-8")) if page.exists() else []
    return commits[0] if commits else "HEAD"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the last release's packages, out of its wheel."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "sources").mkdir()
    commit = released_commit()
    if subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, check=False).returncode:
        pytest.skip(f"this clone is too shallow: it lacks the commit {commit} of the last release")
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder / "sources")], input=archive, check=True)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=folder / "sources", check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(folder / "packages")], check=True)
    return folder / "packages"


def running_process(warehouse: str, name: str, seed: int, packages: Path | None) -> subprocess.Popen[str]:
    """Start a client of the packages in a folder, or of this checkout."""
    paths = (
        [str(ROOT / part) for part in ("catalog", "log", "scripts")] if packages is None else [str(packages)]
    )
    return subprocess.Popen(
        # Without site's editable install, whose paths would come first for one of the two.
        [sys.executable, str(CLIENT), warehouse, name, str(seed), str(STEPS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines_of(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    for line in output.splitlines():
        yield json.loads(line)


@pytest.mark.parametrize("seed", [1, 2])
def test_both_change_one_warehouse_at_once(tmp_path: Path, release: Path, seed: int) -> None:
    warehouse = str(tmp_path / "w")
    catalog = Catalog(warehouse)
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", pa.schema([("id", pa.string()), ("n", pa.int64())]))
    clients = {
        "old_a": running_process(warehouse, "old_a", seed, release),
        "new_a": running_process(warehouse, "new_a", seed, None),
        "old_b": running_process(warehouse, "old_b", seed + 100, release),
        "new_b": running_process(warehouse, "new_b", seed + 100, None),
    }
    expected_ids, tables = set[str](), dict[str, int]()
    for name, process in clients.items():
        for line in lines_of(process):
            if "uses" in line:
                assert Path(line["uses"]).is_relative_to(release) == name.startswith("old")
            assert "error" not in line, line
            expected_ids |= set(line.get("appended", ()))
            expected_ids -= set(line.get("deleted", ()))
            tables |= {line["own"]: line["rows"]} if "own" in line else {}
    ids = Catalog(warehouse).load_table("shop.orders").to_arrow()["id"].to_pylist()
    assert sorted(ids) == sorted(expected_ids) and len(ids) > STEPS
    assert {name: Catalog(warehouse).load_table(name).row_count for name in tables} == tables
    assert [finding for finding in Catalog(warehouse).fsck().of(Severity.DAMAGE)] == []
    # The release's own check, of all that both have written.
    checked_process = subprocess.run(
        [sys.executable, "-m", "lakelog.cli", "fsck", "--warehouse", warehouse],
        env={**os.environ, "PYTHONPATH": str(release)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked_process.returncode == 0, checked_process.stdout + checked_process.stderr
