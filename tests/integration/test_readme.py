"""The code of the README and of the pages that it leads to runs, and their tables are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.sql.pages import same_output, statements

from lakelog.catalog import Catalog, CommitUnknown, Table
from lakelog.catalog.core.schema.properties.known import KNOWN
from lakelog.spark.s3a import EXCLUDED, packages
from lakelog.testing import fixtures

ROOT = Path(__file__).parents[2]
TOUR = "docs/tour.md"
HOME = "scripts/programs/site/pages/index.md"


def page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(after: str, path: str = TOUR) -> list[str]:
    """Return the Python blocks after a heading."""
    return re.findall(r"```python\n(.*?)```", page(path).split(after, 1)[1], re.S)


def block(after: str, path: str = TOUR) -> str:
    """Return the first Python block after a heading."""
    return blocks(after, path)[0]


def test_the_python_tour_runs(tmp_path: Path) -> None:
    code = block("## Python, without Spark").replace("/tmp/warehouse", str(tmp_path / "warehouse"))
    names: dict[str, object] = {}
    exec(compile(code, TOUR, "exec"), names)
    table = names["table"]
    assert table.to_arrow().to_pydict() == {"id": [1], "name": ["ada"]}  # type: ignore[attr-defined]
    exec(compile(block("## Several tables, or none"), TOUR, "exec"), names)
    catalog = Catalog(str(tmp_path / "warehouse"))
    assert [catalog.load_table(f"lab.{name}").row_count for name in ("archive", "people")] == [1, 0]


def test_the_pages_about_branches_transactions_and_what_was_dropped_run_one_after_another(
    tmp_path: Path,
) -> None:
    names: dict[str, object] = {}
    warehouse = str(tmp_path / "warehouse")
    code = [block("## Python, without Spark")]
    code += ['catalog.create_namespace("shop")']
    code += [block("# Tags and branches", "docs/branches.md")]
    code += [block("# Transactions", "docs/transactions.md"), *blocks("# Undo", "docs/undo.md")]
    for text in code:
        exec(compile(text.replace("/tmp/warehouse", warehouse), "docs", "exec"), names)
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
    code = block("## Python, without Spark").replace("/tmp/warehouse", warehouse)
    exec(compile(code, TOUR, "exec"), names)
    load, overwrite, calls = Catalog.load_table, Table.overwrite, 0

    def overtaken(self: Catalog, *arguments: object) -> Table:
        loaded_table = load(self, *arguments)  # type: ignore[arg-type]
        if calls == 0:
            load(Catalog(warehouse), "lab.people").append(pa.table({"id": [1], "name": ["eve"]}))
        return loaded_table

    def unanswered_table(self: Table, *arguments: object, **named: object) -> Table:
        nonlocal calls
        calls += 1
        table = overwrite(self, *arguments, **named)  # type: ignore[arg-type]
        if calls == 2:
            raise CommitUnknown("no answer", commit_id=named["token"].commit_id, location="here")  # type: ignore[attr-defined]
        return table

    monkeypatch.setattr(Catalog, "load_table", overtaken)
    monkeypatch.setattr(Table, "overwrite", unanswered_table)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    version_before = load(Catalog(warehouse), "lab.people").version
    capsys.readouterr()
    code = block("## Conflicts and unknown outcomes", "docs/transactions.md").replace(
        "/tmp/warehouse", warehouse
    )
    exec(compile(code, TOUR, "exec"), names)
    table_after = load(Catalog(warehouse), "lab.people")
    assert table_after.to_arrow().to_pydict() == {"id": [1], "name": ["ada lovelace"]}
    assert (calls, table_after.version) == (3, version_before + 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"version {version_before + 1} by ") and lines[1].startswith(
        "no answer from here for"
    )


@pytest.mark.adapter
@pytest.mark.first_use
def test_what_new_users_type_in_spark_runs(tmp_path: Path) -> None:
    # In a process of its own: they make their sessions as a user would, whatever sessions other tests have.
    places = {"tour": blocks("## Spark\n")[:1], "quick": blocks("# Quick start", "docs/quick-start.md")}
    places["home"] = [tab("Spark", "python")]
    readme = list(statements(ROOT / "README.md"))
    texts = [f"print(spark.sql({statement.text!r})._show_string(99, False))" for statement in readme]
    places["readme"] = [places["tour"][0].partition("\n\nspark.sql")[0], *texts]
    code = "\nspark.stop()\n".join(
        "\n".join([*parts, f"print('end of {name}')"]).replace("/tmp/warehouse", str(tmp_path / name))
        for name, parts in places.items()
    )
    finished_process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert finished_process.returncode == 0, finished_process.stdout + finished_process.stderr
    assert "|  1|     ada| 12.50|2026-01-02 10:00:00|    web|" in finished_process.stdout
    quick = finished_process.stdout.partition("end of tour")[2].partition("end of quick")[0]
    promised_matches = re.findall(r"```text\n(.*?)```", page("docs/quick-start.md"), re.S)
    assert same_output(quick, "\n".join(promised_matches).replace("\n\n\n", "\n\n")), quick
    last = (
        finished_process.stdout.partition("end of home")[2]
        .partition("end of readme")[0]
        .strip()
        .split("\n\n")[-1]
    )
    assert readme[-1].output is not None and same_output(last, readme[-1].output), last


def tab(name: str, language: str) -> str:
    """Return the code of a tab of the site's home page."""
    match = re.search(rf'=== "{name}"\n\n    ```{language}\n(.*?)\n    ```', page(HOME), re.S)
    assert match is not None, name
    return textwrap.dedent(match[1])


def test_the_commands_for_new_users_run(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    names: dict[str, object] = {}
    exec(compile(tab("Python", "python").replace("/tmp/warehouse", warehouse), HOME, "exec"), names)
    catalog = Catalog(warehouse)
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1, 2], "item": ["tea", "cake"]})
    catalog.create_table("shop.orders", rows.schema).append(rows).append(rows)
    looked_match = re.findall(r"```sh\n(.*?)```", page("docs/quick-start.md"), re.S)[1]
    script = "\n".join(["set -e", looked_match, tab("Command", "sh")]).replace("/tmp/warehouse", warehouse)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "orders.html").is_file()
    assert catalog.load_table("shop.orders").row_count == 2


def test_readme_is_short_and_begins_with_what_to_type() -> None:
    text = page("README.md")
    assert text.count("\n") <= 100
    assert len(text.partition("```")[0].split()) <= 60
    claims = text.partition("## What it does\n")[2].partition("\n## ")[0]
    for line in claims.splitlines():
        assert not line.startswith("| **") or (len(line) <= 150 and "](docs/" in line), line


PAGES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("docs", "examples")
    for path in sorted((ROOT / folder).rglob("*.md"))
    if "design" not in path.parts
]


@pytest.mark.parametrize("path", ["README.md", HOME, *PAGES])
def test_pages_install_lakelog_from_what_users_have(path: str) -> None:
    """A clone or a wheel, with extras that there are: lakelog is on no index of packages."""
    project = tomllib.loads(page("pyproject.toml"))["project"]
    extras = set(project["optional-dependencies"])
    for line in page(path).splitlines():
        for match in re.findall(r"\bpip install ([^`|#]*)", line):
            assert not re.search(r"(?<![/.\w-])lakelog(?![\w.-]*-\d)", match) or "finds nothing" in line, line
        for named_match in re.findall(r"(?:'\.|\.whl|lakelog)\[([\w,]+)\]", line):
            assert set(named_match.split(",")) <= extras, line
        for version in re.findall(r"lakelog-(\d[\d.]*\d)-py3", line):
            assert version == project["version"], line


def test_the_jars_of_s3a_are_those_that_the_tests_use() -> None:
    assert f"spark.jars.packages  {','.join(packages())}\n" in page("docs/spark.md")
    assert f"spark.jars.excludes  {','.join(EXCLUDED)}\n" in page("docs/spark.md")


def test_every_fixture_for_users_is_in_the_table() -> None:
    code = Path(fixtures.__file__).read_text(encoding="utf-8")
    offered_matches = re.findall(r"^def (lakelog_\w+)\(", code, re.M)
    assert sorted(offered_matches) == sorted(
        re.findall(r"^\| `(lakelog_\w+)` \|", page("docs/testing.md"), re.M)
    )


def test_every_property_of_a_table_is_in_the_table() -> None:
    for known_property in KNOWN.values():
        default = f"`{known_property.default}`" if known_property.default else ""
        assert f"| `{known_property.name}` | {default} | {known_property.about} |" in page(
            "docs/properties.md"
        )
