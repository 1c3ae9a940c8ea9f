"""Each row of the tables of `docs/coming-from-*.md` is a case: it works, or its error says what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from tests.spark.conftest import active_session, add_catalog

from lakelog.catalog import Catalog

pytestmark = pytest.mark.adapter

DOCS = Path(__file__).parents[3] / "docs"
_ROW = re.compile(r"^\| `(?P<typed>[^|]+)` \| (?P<is>works|fails: `[^|]+`) \| (?P<own>[^|]*)\|$", re.M)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_RUNS = ("SELECT * ", "SELECT name", "CALL ", "ALTER TABLE ", "spark.", "frame.", "wider.", "OPTIMIZE ")


@dataclass(frozen=True)
class Case:
    """What is typed, the text that its error has (None: it works), and what lakelog's own words for it are."""

    typed: str
    fails: str | None
    own: tuple[str, ...]


def cases(page: str) -> list[Case]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found_cases = [
        Case(
            row["typed"],
            row["is"].removeprefix("fails: ").strip("`") if row["is"] != "works" else None,
            tuple(code for code in _CODE.findall(row["own"]) if code.startswith(_RUNS)),
        )
        for row in _ROW.finditer(text)
    ]
    heads = text.count("|---|---|---|")
    rows = sum(line.startswith("|") for line in text.splitlines()) - 2 * heads
    assert len(found_cases) == rows, f"{page} has rows that are not read"
    return found_cases


ALL = [
    pytest.param(case, id=case.typed[:90])
    for page in ("coming-from-delta.md", "coming-from-hudi.md", "coming-from-iceberg.md")
    for case in cases(page)
]

SCHEMA = pa.schema({"id": pa.int64(), "day": pa.string(), "amount": pa.float64()})


@pytest.fixture(scope="module")
def session(spark: SparkSession, python: str, tmp_path_factory) -> Iterator[tuple[SparkSession, Catalog]]:
    place = str(tmp_path_factory.mktemp("warehouse"))
    catalog = Catalog(place)
    catalog.create_namespace("shop")
    with active_session(spark) as session:
        add_catalog(session, place, python=python)
        yield session, catalog


@pytest.fixture(scope="module")
def fresh(session: tuple[SparkSession, Catalog]) -> Callable[[], None]:
    """Makes the tables of the pages; nothing if they are as they were made."""
    _, catalog = session
    made: dict[str, int] = {}

    def make() -> None:
        if made and made == {name: catalog.load_table(f"shop.{name}").version for name in made}:
            return
        for name, layout in (("orders", ()), ("clustered", ("day", "id"))):
            if catalog.table_exists(f"shop.{name}"):
                catalog.drop_table(f"shop.{name}")
            table = catalog.create_table(f"shop.{name}", SCHEMA, cluster_by=layout)
            rows = [{"id": 1, "day": "mo", "amount": 1.5}, {"id": 2, "day": "tu", "amount": 2.5}]
            for row in rows:
                table = table.append(pa.Table.from_pylist([row], SCHEMA))
            made[name] = table.version

    return make


def run(session: SparkSession, code: str, place: str) -> list[tuple[Any, ...]]:
    """Run a statement, or an expression of Python, and return its rows, sorted."""
    is_python = code.startswith(("spark.", "frame.", "wider."))
    result = evaluate(session, code, place) if is_python else session.sql(code)
    return sorted((tuple(row) for row in result.collect()), key=repr) if isinstance(result, DataFrame) else []


def evaluate(session: SparkSession, code: str, place: str) -> Any:
    frame = session.createDataFrame([(3, "fr", 0.5)], "id long, day string, amount double")
    names = {"spark": session, "frame": frame, "place": place, "col": col}
    names["wider"] = frame.selectExpr("*", "'web' AS channel")
    return eval(code, names)


@pytest.mark.parametrize("case", ALL)
def test_a_row_of_a_page_says_what_happens(case: Case, session, fresh, tmp_path):
    spark, catalog = session
    fresh()
    place = str(tmp_path / "place")
    if case.fails is None:
        before = run(spark, case.typed, place)
        rows = catalog.load_table("shop.orders").scan().to_arrow().sort_by("id").to_pylist()
    else:
        with pytest.raises((PySparkException, Py4JJavaError)) as error:
            if case.typed.startswith("spark."):
                evaluate(spark, case.typed, place)  # It fails before a row is asked for.
            else:
                run(spark, case.typed, place)
        assert case.fails in str(error.value)
        assert catalog.load_table("shop.orders").version == 3, "an error changes nothing"
    if not case.own:
        return
    if case.fails is None:
        fresh()
    for code in case.own:
        after = run(spark, code, place)
    if case.fails is None:
        assert catalog.load_table("shop.orders").scan().to_arrow().sort_by("id").to_pylist() == rows
        if case.typed.startswith(("SELECT", "SHOW", "spark.read")):
            assert _plain(after) == _plain(before)


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows without times, which differ between two tables of the same life."""
    return [tuple(value for value in row if not hasattr(value, "isoformat")) for row in rows]
