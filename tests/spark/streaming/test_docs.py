"""docs/streaming.md runs from top to bottom and shows what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.spark.conftest import add_catalog
from tests.spark.sql.pages import printed, programs, same_output

pytestmark = pytest.mark.adapter

PAGE = Path(__file__).parents[3] / "docs" / "streaming.md"


def test_the_page_runs_and_shows_what_it_says(make_lake, spark, tmp_path):
    make_lake()  # for what it does at the end
    session = spark.newSession()
    add_catalog(session, str(tmp_path / "warehouse"))
    names = {"spark": session}
    ran = 0
    for program in programs(PAGE):
        text = re.sub("/tmp/(?:checkpoints|streams)", str(tmp_path), program.text)
        shown = printed(replace(program, text=text), PAGE, names)
        if program.output is not None:
            assert same_output(shown, program.output), f"line {program.line} shows\n{shown}"
        ran += 1
    assert ran > 4


def test_every_option_is_on_the_page():
    source = PAGE.parents[1] / "catalog" / "spark"
    text = PAGE.read_text(encoding="utf-8")
    for name in ("read/StreamOptions.scala", "write/NumberedWrites.scala"):
        for option in re.findall(r'"((?:starting|max|skip|txn)[A-Z]\w+)"', (source / name).read_text()):
            assert f"`{option}`" in text, option
