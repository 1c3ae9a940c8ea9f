"""The code of the README and of the pages that it leads to runs, and their tables are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, CommitUnknown, Table
from lakelog.catalog.core.schema.properties import KNOWN
from lakelog.testing import fixtures
from lakelog.testing.s3a import EXCLUDED, PACKAGES

ROOT = Path(__file__).parents[2]


def page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(after: str, path: str = "README.md") -> list[str]:
    """Return the Python blocks after a heading."""
    return re.findall(r"```python\n(.*?)```", page(path).split(after, 1)[1], re.S)


def block(after: str, path: str = "README.md") -> str:
    """Return the first Python block after a heading."""
    return blocks(after, path)[0]


def test_the_python_tour_runs(tmp_path: Path) -> None:
    code = block("### Python, without Spark").replace("/tmp/warehouse", str(tmp_path / "warehouse"))
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    table = names["table"]
    assert table.to_arrow().to_pydict() == {"id": [1], "name": ["ada"]}  # type: ignore[attr-defined]
    exec(compile(block("### Several tables, or none"), "README.md", "exec"), names)
    catalog = Catalog(str(tmp_path / "warehouse"))
    assert [catalog.load_table(f"lab.{name}").row_count for name in ("archive", "people")] == [1, 0]


def test_the_pages_about_branches_transactions_and_what_was_dropped_run_one_after_another(
    tmp_path: Path,
) -> None:
    names: dict[str, object] = {}
    warehouse = str(tmp_path / "warehouse")
    code = [block("### Python, without Spark")]
    code += ['catalog.create_namespace("shop")']
    code += [block("# Tags and branches", "docs/branches.md")]
    code += [block("# Transactions", "docs/transactions.md"), *blocks("# Undo", "docs/undo.md")]
    for each in code:
        exec(compile(each.replace("/tmp/warehouse", warehouse), "docs", "exec"), names)
    catalog = Catalog(warehouse)
    assert catalog.load_table("lab.guests").row_count == 0
    assert catalog.load_table("lab.archive").to_arrow()["id"].to_pylist() == [1, 3]
    stock = catalog.load_table("lab.stock").to_arrow().sort_by("id")
    assert stock["pieces"].to_pylist() == [0, 20, 30, 40]


def test_the_example_of_errors_starts_over_after_a_conflict_and_never_writes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = str(tmp_path / "warehouse")
    names: dict[str, object] = {}
    code = block("### Python, without Spark").replace("/tmp/warehouse", warehouse)
    exec(compile(code, "README.md", "exec"), names)
    load, overwrite, calls = Catalog.load_table, Table.overwrite, 0

    def overtaken(self: Catalog, *arguments: object) -> Table:
        loaded = load(self, *arguments)  # type: ignore[arg-type]
        if calls == 0:
            load(Catalog(warehouse), "lab.people").append(pa.table({"id": [1], "name": ["eve"]}))
        return loaded

    def unanswered(self: Table, *arguments: object, **named: object) -> Table:
        nonlocal calls
        calls += 1
        done = overwrite(self, *arguments, **named)  # type: ignore[arg-type]
        if calls == 2:
            raise CommitUnknown("no answer", commit_id=named["token"].commit_id, location="here")  # type: ignore[attr-defined]
        return done

    monkeypatch.setattr(Catalog, "load_table", overtaken)
    monkeypatch.setattr(Table, "overwrite", unanswered)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    before = load(Catalog(warehouse), "lab.people").version
    capsys.readouterr()
    code = block("## Conflicts and unknown outcomes", "docs/transactions.md").replace(
        "/tmp/warehouse", warehouse
    )
    exec(compile(code, "README.md", "exec"), names)
    after = load(Catalog(warehouse), "lab.people")
    assert after.to_arrow().to_pydict() == {"id": [1], "name": ["ada lovelace"]}
    assert (calls, after.version) == (3, before + 2)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"version {before + 1} by ") and said[1].startswith("no answer from here for")


@pytest.mark.adapter
@pytest.mark.first_use
def test_the_spark_tour_and_the_quick_start_run(tmp_path: Path) -> None:
    # In a process of its own: they make their sessions as a user would, whatever sessions other tests have.
    tour = block("### Spark\n").replace("/tmp/warehouse", str(tmp_path / "tour"))
    quick = [
        each.replace("/tmp/warehouse", str(tmp_path / "quick"))
        for each in blocks("# Quick start", "docs/quick-start.md")
    ]
    code = "\n".join([tour, "spark.stop()", *quick])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "|  1|     ada| 12.50|2026-01-02 10:00:00|    web|" in done.stdout
    assert "|  2| pie|" in done.stdout and "|  2|cake|" in done.stdout
    assert re.search(r"^1 +2 +pie$", done.stdout, re.M)


def test_the_jars_of_s3a_are_those_that_the_tests_use() -> None:
    assert f"spark.jars.packages  {','.join(PACKAGES)}\n" in page("docs/spark.md")
    assert f"spark.jars.excludes  {','.join(EXCLUDED)}\n" in page("docs/spark.md")


def test_every_fixture_for_users_is_in_the_table() -> None:
    code = Path(fixtures.__file__).read_text(encoding="utf-8")
    offered = re.findall(r"^def (lakelog_\w+)\(", code, re.M)
    assert sorted(offered) == sorted(re.findall(r"^\| `(lakelog_\w+)` \|", page("docs/testing.md"), re.M))


def test_every_property_of_a_table_is_in_the_table() -> None:
    for known in KNOWN.values():
        default = f"`{known.default}`" if known.default else ""
        assert f"| `{known.name}` | {default} | {known.about} |" in page("docs/properties.md")
