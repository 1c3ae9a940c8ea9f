"""docs/merging.md runs from top to bottom and shows what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.spark.sql.pages import printed, programs

from lakelog.catalog import Merge

PAGE = Path(__file__).parents[2] / "docs" / "merging.md"


def test_the_page_runs_and_shows_what_it_says(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    found_programs = list(programs(PAGE))
    assert len(found_programs) > 4
    for program in found_programs:
        text = program.text.replace("/tmp/warehouse", str(tmp_path / "warehouse"))
        shown_text = printed(replace(program, text=text), PAGE, names)
        assert shown_text == (program.output or ""), f"line {program.line} shows\n{shown_text}"


def test_every_clause_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in dir(Merge):
        if name.startswith("when_"):
            assert f"`{name}(" in text, name
