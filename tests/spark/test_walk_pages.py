"""The walk through a whole pipeline runs and shows what it says, and calls for those who know DeltaTable work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from tests.spark.conftest import active_session, add_catalog
from tests.spark.sql.pages import printed, programs, same_output

pytestmark = pytest.mark.adapter

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def session(make_lake, spark, tmp_path) -> Iterator[SparkSession]:
    make_lake()  # for what it does at the end
    with active_session(spark) as session:
        add_catalog(session, str(tmp_path / "warehouse"))
        yield session


def test_the_walk_from_bronze_to_gold_runs_and_shows_what_it_says(session, tmp_path):
    page = DOCS / "bronze-to-gold.md"
    names = {"spark": session}
    ran = 0
    for program in programs(page):
        text = re.sub(
            "/tmp/(?:checkpoints|landing)", lambda found: str(tmp_path / found[0][5:]), program.text
        )
        shown = printed(replace(program, text=text), page, names)
        if program.output is not None:
            assert same_output(shown, program.output), f"line {program.line} shows\n{shown}"
        ran += 1
    assert ran > 9


def test_the_calls_in_place_of_those_of_deltatable_work(session):
    text = (DOCS / "from-python-libraries.md").read_text(encoding="utf-8")
    section = text.split("## DeltaTable in Spark")[1].split("\n## ")[0]
    calls = [
        code for line in section.splitlines() for code in re.findall(r"`((?:spark|news)\.[^`]+)` \|$", line)
    ]
    assert len(calls) == 12
    session.sql("CREATE NAMESPACE lake.shop")
    session.sql("CREATE TABLE lake.shop.orders (id BIGINT, day STRING)")
    session.sql("INSERT INTO lake.shop.orders VALUES (1, 'mo')")
    session.sql("INSERT INTO lake.shop.orders VALUES (2, 'tu')")
    described_rows = session.sql("DESCRIBE EXTENDED lake.shop.orders")
    news = session.createDataFrame([(1, "we"), (3, "th")], "id BIGINT, day STRING")
    names = {"spark": session, "news": news, "expr": expr}
    names["path"] = described_rows.where("col_name = 'Location'").first().data_type
    for code in calls:
        result = eval(code, names)
        if isinstance(result, DataFrame):
            result.collect()
    rows = session.table("lake.shop.orders").collect()
    assert sorted(row.id for row in rows) == [1, 2], "the third version has come back"
