"""The page about compatibility says which Spark has which feature, as the marks of the tests do."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs.spark_features import PAGE, features, table, with_table

MARKS = """
newer = needs_spark("4.2", "something newer", "needs Spark 4.2")
newest = needs_spark("4.3", "something else", "needs Spark 4.3")
"""
TESTS = """
from tests.spark.versions import newer, newest

@newer
def test_one(): ...

@pytest.mark.adapter
@newer
def test_two(): ...

@newest
def test_three(): ...
"""


def marked(tmp_path: Path, tests: str) -> list[str]:
    marks = tmp_path / "versions.py"
    marks.write_text(MARKS)
    (tmp_path / "test_some.py").write_text(tests)
    return table(features(marks, tmp_path)).splitlines()[2:]


def test_the_page_has_what_the_marks_say():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page, features()), "run `PYTHONPATH=scripts python -m programs.spark_features`"


def test_a_feature_is_there_from_its_version_on(tmp_path):
    assert marked(tmp_path, TESTS) == [
        "| something else | yes | no | no | no | 1 |",
        "| something newer | yes | yes | no | no | 2 |",
    ]


def test_a_mark_without_a_test_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="marks newest"):
        marked(tmp_path, TESTS.replace("@newest", ""))


def test_a_page_without_a_place_for_it_is_an_error():
    with pytest.raises(ValueError, match="no place"):
        with_table("# A page\n", [])
