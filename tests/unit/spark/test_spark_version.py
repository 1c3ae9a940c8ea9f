"""The first look at a version of Spark: its sources, the errors of the compiler, the numbers of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelog.log.errors import InvalidInput
from lakelog.spark import jar
from programs.spark_version import (
    Fault,
    copy_checkout,
    counts_of,
    faults_in,
    give_sources,
    nearest,
    report,
    suite_report,
)

COMPILER = """\
NOTE: Picked up JDK_JAVA_OPTIONS: -Xlog:cds=off
{folder}/versions/4.4/internals/seam/Columns.scala:17: error: type mismatch;
 found   : Int
{folder}/versions/4.4/internals/seam/Columns.scala:20: error: not found: value x
{folder}/LakeCatalog.scala:3: error: object creation impossible.
3 errors
"""


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_a_new_version_begins_with_the_newest_sources() -> None:
    assert nearest("4.4") == nearest("5.0") == jar.SUPPORTED[-1]
    assert nearest("4.1") == "4.1" and nearest("3.5") == jar.SUPPORTED[0]


def test_the_sources_of_a_version_count_as_those_of_another(tmp_path: Path) -> None:
    make(
        tmp_path, "A.scala", "versions/4.0/B.scala", "versions/4.1-4.3/B.scala", "versions/4.2-4.3/seam/C.scala",
        "versions/4.0-4.1/seam/C.scala",
    )  # fmt: skip
    give_sources(tmp_path, "4.4", "4.3")
    assert {
        path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.scala")
    } == {
        "A.scala": "A.scala",
        "versions/4.4/B.scala": "versions/4.1-4.3/B.scala",
        "versions/4.4/seam/C.scala": "versions/4.2-4.3/seam/C.scala",
    }


def test_the_copy_supports_the_version(tmp_path: Path) -> None:
    make(tmp_path, "left.over", ".venv-4.4/bin/python")
    copy_checkout(tmp_path, "4.4", "4.3")
    assert '"4.3", "4.4")' in (tmp_path / "catalog/lakelog/spark/jar.py").read_text()
    assert '"pyspark[connect]>=4.0,<4.5"' in (tmp_path / "pyproject.toml").read_text()
    assert [path.name for path in (tmp_path / "catalog/spark/versions").iterdir()] == ["4.4"]
    assert not (tmp_path / "left.over").exists() and (tmp_path / ".venv-4.4/bin/python").exists()
    with pytest.raises(InvalidInput, match=r"no sources for Spark 3.5: take those for 4.0"):
        copy_checkout(tmp_path, "4.4", "3.5")


def test_errors_are_listed_by_file_and_room(tmp_path: Path) -> None:
    faults = faults_in(COMPILER.format(folder=tmp_path), tmp_path)
    assert faults[0] == Fault("internals/seam/Columns.scala", 17, "type mismatch;")
    assert list(report(faults, 330)) == [
        "  3 errors in 2 of 330 files: 2 in internals/seam, 1 in elsewhere",
        "     2  internals/seam/Columns.scala:17  type mismatch;",
        "     1  LakeCatalog.scala:3  object creation impossible.",
    ]
    assert list(report([], 330)) == ["  330 files compile"]


def test_tests_are_counted_by_file(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.spark.test_a" name="one"/>'
        '<testcase classname="tests.spark.test_a" name="two"><failure/></testcase>'
        '<testcase classname="tests.spark.test_b" name="three"><skipped/></testcase>'
        '<testcase classname="tests.spark.test_b" name="four"><error/></testcase>'
        "</testsuite></testsuites>"
    )
    counts = counts_of(results)
    assert counts == {"tests.spark.test_a": (1, 1), "tests.spark.test_b": (0, 1)}
    assert list(suite_report(counts)) == [
        "  1 tests passed, 2 failed",
        "     1  tests.spark.test_a",
        "     1  tests.spark.test_b",
    ]
    assert list(suite_report({})) == ["  the tests did not run"]
