"""The README's own code runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.catalog.schema.properties import KNOWN
from lakelog.testing import fixtures
from lakelog.testing.s3a import EXCLUDED, PACKAGES

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(after: str) -> str:
    """Return the first Python block after a heading."""
    found = re.search(r"```python\n(.*?)```", README.split(after, 1)[1], re.S)
    assert found is not None, after
    return found[1]


def test_the_python_tour_runs(tmp_path: Path) -> None:
    code = block("### Python, without Spark").replace("/tmp/warehouse", str(tmp_path / "warehouse"))
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    table = names["table"]
    assert table.to_arrow().to_pydict() == {"id": [1], "name": ["ada"]}  # type: ignore[attr-defined]


@pytest.mark.adapter
@pytest.mark.first_use
def test_the_spark_tour_runs(tmp_path: Path) -> None:
    # In a process of its own: it makes its session as a user would, whatever sessions other tests have.
    code = block("### Spark\n").replace("/tmp/warehouse", str(tmp_path / "warehouse"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "|  1|     ada| 12.50|2026-01-02 10:00:00|    web|" in done.stdout


def test_the_jars_of_s3a_are_those_that_the_tests_use() -> None:
    assert f"spark.jars.packages  {','.join(PACKAGES)}\n" in README
    assert f"spark.jars.excludes  {','.join(EXCLUDED)}\n" in README


def test_every_fixture_for_users_is_in_the_table() -> None:
    code = Path(fixtures.__file__).read_text(encoding="utf-8")
    offered = re.findall(r"^def (lakelog_\w+)\(", code, re.M)
    assert sorted(offered) == sorted(re.findall(r"^\| `(lakelog_\w+)` \|", README, re.M))


def test_every_property_of_a_table_is_in_the_table() -> None:
    for known in KNOWN.values():
        assert f"| `{known.name}` | `{known.default}` | {known.about} |" in README
