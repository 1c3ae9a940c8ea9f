"""Every page of docs/sql runs from top to bottom, in a fresh catalog called `lake`, and shows what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.integration.iceberg.serving import served
from tests.spark.conftest import active_session, add_catalog
from tests.spark.sql.pages import Statement, printed, programs, same_output, statements

pytestmark = pytest.mark.adapter

DOCS = Path(__file__).parents[3] / "docs" / "sql"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if path.name != "README.md")
FIRST = {"reading.md", "session.md", "tables.md", "writing.md"}
"""What is looked up first. The other pages are on Spark 4.3 with each change, and on 4.2 in the full form."""
SERVER = "http://127.0.0.1:8181"
"""The server that a page has started by `lakelog serve --write`."""
SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])


@pytest.fixture
def session(make_lake, spark, tmp_path, page) -> Iterator[SparkSession]:
    make_lake()  # for what it does at the end
    shares = page == "session.md"
    own = {"session_catalog": shares, "stored_code": "all" if page == "functions.md" else None}
    with active_session(spark) as session:
        add_catalog(session, str(tmp_path / "warehouse"), **own)
        yield session
    if shares:  # All sessions have the same databases.
        for (database,) in spark.sql("SHOW DATABASES").collect():
            if database != "default":
                spark.sql(f"DROP DATABASE {database} CASCADE")


def shown_text(frame: DataFrame) -> str:
    """Return what `show(truncate=False)` prints; a text of several lines that stands alone is shown as it is."""
    if len(frame.columns) == 1 and len(rows := frame.collect()) == 1 and "\n" in (text := str(rows[0][0])):
        return text
    return str(frame._show_string(1000, False))  # type: ignore[operator]


def run(session: SparkSession, statement: Statement, warehouse: str) -> None:
    sql = statement.text.replace("/tmp/warehouse", warehouse)
    if statement.fails is None:
        frame = session.sql(sql)
        if statement.output is not None:
            text = shown_text(frame).replace(warehouse, "/tmp/warehouse")
            assert same_output(text, statement.output), f"shows\n{text}"
        else:
            frame.collect()
        return
    with pytest.raises((PySparkException, Py4JJavaError)) as error:
        session.sql(sql).collect()
    known_condition = isinstance(error.value, PySparkException) and error.value.getCondition()
    assert (known_condition or type(error.value).__name__) == statement.fails, str(error.value)


def run_python(program: Statement, page: str, names: dict[str, Any], warehouse: str) -> None:
    text = program.text.replace("/tmp/warehouse", warehouse)
    with served(warehouse, writes=True) if SERVER in text else nullcontext(SERVER) as url:
        text = printed(replace(program, text=text.replace(SERVER, url)), DOCS / page, names)
    if program.output is not None:
        assert same_output(text, program.output), f"shows\n{text}"


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.first_use] if page in FIRST else []) for page in PAGES]
)
def test_a_page_runs_and_shows_what_it_says(session, page, tmp_path):
    ran = 0
    names = {"spark": session}
    sql, python = list(statements(DOCS / page)), list(programs(DOCS / page))
    for statement in sorted([*sql, *python], key=lambda each: each.line):
        if statement.since <= SPARK:
            try:
                if statement in python:
                    run_python(statement, page, names, str(tmp_path / "warehouse"))
                else:
                    run(session, statement, str(tmp_path / "warehouse"))
            except BaseException as error:
                error.add_note(f"docs/sql/{page}:{statement.line}: {statement.text}")
                raise
            ran += 1
        elif statement in python:
            with pytest.raises(AttributeError):
                run_python(statement, page, names, str(tmp_path / "warehouse"))
    assert ran > 0


def test_the_index_names_every_page():
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+\.md)\)", text)) == PAGES


def test_a_page_is_read_as_the_statements_that_it_shows(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n```sql\nSELECT ';',\n 1;\n-- fails: OOPS\nSELECT x\n```\n\n```text\n+-+\n```\nwords\n"
        "```python\nno\n```\n```sql\n-- since Spark 4.3\nSELECT 2\n```\n"
    )
    found_statements = list(statements(page))
    assert [(s.text, s.fails, s.output) for s in found_statements] == [
        ("SELECT ';',\n 1", None, None),
        ("SELECT x", "OOPS", "+-+\n"),
        ("-- since Spark 4.3\nSELECT 2", None, None),
    ]
    assert [s.since for s in found_statements] == [(), (), (4, 3)]
    assert [s.line for s in found_statements] == [3, 5, 17]


@pytest.mark.parametrize(
    ("ours", "promised", "same"),
    [
        ("+--+\n|a |\n+--+\n", "+-----+\n|a    |\n+-----+", True),
        ("+--+\n|ab|\n+--+", "+--+\n|a |\n+--+", False),
        ("|Owner|root|\n", "|Owner|…|", True),
        ("|Owner|root|\n|x|", "|Owner|…|", False),
    ],
)
def test_outputs_are_compared_except_for_their_widths(ours, promised, same):
    assert same_output(ours, promised) is same
