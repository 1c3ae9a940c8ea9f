"""Statements that write while their table is renamed, and its name given to another: none reaches the renamed one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import IntegerType
from tests.spark.conftest import Lake, children


@pytest.fixture
def tables(lake: Lake) -> Lake:
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.t (id INT, v INT)")
    lake.sql("INSERT INTO lake.n.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1), (2, 2), (3, 3)")
    lake.sql("CREATE TABLE lake.n.t_new (id INT, v INT)")
    lake.sql("INSERT INTO lake.n.t_new VALUES (100, 100)")
    return lake


def swap(lake: Lake) -> None:
    catalog = lake.catalog
    catalog.rename_table("n.t", "n.t_old")
    catalog.rename_table("n.t_new", "n.t")


@pytest.fixture
def gated(tables: Lake, tmp_path: Path) -> Iterator[Callable[[str, Callable[[], object]], Any]]:
    """Runs a statement, and something else while the statement computes its rows by the function `slow`."""
    gate, started = tmp_path / "gate", tmp_path / "started"

    def slow(id: int) -> int:
        started.touch()
        while not gate.exists():
            time.sleep(0.02)
        return id

    tables.spark.udf.register("slow", slow, IntegerType())

    def run(statement: str, meanwhile: Callable[[], object]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(tables.sql, statement)
            while not started.exists() and not done.done():
                time.sleep(0.02)
            meanwhile()
            gate.touch()
            return done.result()

    yield run
    tables.spark.sql("DROP TEMPORARY FUNCTION IF EXISTS slow")


STATEMENTS = {
    "insert": "INSERT INTO lake.n.t SELECT slow(9), 9",
    "insert by name": "INSERT INTO lake.n.t BY NAME SELECT slow(9) AS v, 9 AS id",
    "overwrite": "INSERT OVERWRITE lake.n.t SELECT slow(9), 9",
    "replace where": "INSERT INTO lake.n.t REPLACE WHERE id = 1 SELECT slow(1), 9",
    "delete": "DELETE FROM lake.n.t WHERE slow(id) = 1",
    "update": "UPDATE lake.n.t SET v = slow(id) + 1",
    "merge": (
        "MERGE INTO lake.n.t USING (SELECT slow(1) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)"
    ),
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_fails_where_its_table_lost_the_name_while_it_ran(
    tables: Lake, gated: Any, statement: str
) -> None:
    place = Path(tables.catalog.load_table("n.t").location)
    files = len(list(place.rglob("*.parquet")))
    with pytest.raises(PySparkException, match="`n`.`t` was renamed to `n`.`t_old` since it was loaded"):
        gated(statement, lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t_old") == [(1, 1), (2, 2), (3, 3)]
    assert tables.sorted("SELECT * FROM lake.n.t") == [(100, 100)]
    assert len(list(place.rglob("*.parquet"))) == files, "the files of the statement are deleted"
    # Run again, it goes to the table that has the name now.
    tables.sql(statement)
    assert tables.sorted("SELECT * FROM lake.n.t_old") == [(1, 1), (2, 2), (3, 3)]


def test_it_fails_so_though_the_process_that_had_loaded_the_table_is_gone(tables: Lake, gated: Any) -> None:
    def meanwhile() -> None:
        swap(tables)
        for child in children(tables.spark):
            os.kill(child, signal.SIGKILL)

    with pytest.raises(PySparkException, match="`n`.`t` was renamed to `n`.`t_old`"):
        gated(STATEMENTS["insert"], meanwhile)
    assert tables.sorted("SELECT * FROM lake.n.t_old") == [(1, 1), (2, 2), (3, 3)]
    assert tables.sorted("SELECT * FROM lake.n.t") == [(100, 100)]


def test_a_statement_on_a_branch_fails_too(tables: Lake, gated: Any) -> None:
    tables.sql("ALTER TABLE lake.n.t CREATE BRANCH b")
    with pytest.raises(PySparkException, match="was renamed to `n`.`t_old`"):
        gated("INSERT INTO lake.n.t.branch_b SELECT slow(9), 9", lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t_old.branch_b") == [(1, 1), (2, 2), (3, 3)]


def test_a_statement_by_place_goes_on(tables: Lake, gated: Any) -> None:
    place = tables.catalog.load_table("n.t").location
    gated(f"INSERT INTO lake.`{place}` SELECT slow(9), 9", lambda: swap(tables))
    assert tables.sorted("SELECT id FROM lake.n.t_old") == [(1,), (2,), (3,), (9,)]
    assert tables.sorted("SELECT * FROM lake.n.t") == [(100, 100)]


def test_a_statement_goes_on_where_the_rename_was_undone(tables: Lake, gated: Any) -> None:
    def meanwhile() -> None:
        tables.catalog.rename_table("n.t", "n.x")
        tables.catalog.rename_table("n.x", "n.t")

    gated(STATEMENTS["insert"], meanwhile)
    assert tables.sorted("SELECT id FROM lake.n.t") == [(1,), (2,), (3,), (9,)]


def test_create_or_replace_says_so_and_replaces_what_has_the_name_when_it_is_run_again(
    tables: Lake, gated: Any
) -> None:
    statement = "CREATE OR REPLACE TABLE lake.n.t AS SELECT slow(9) AS id"
    with pytest.raises(PySparkException, match="run the statement again to replace the table of that name"):
        gated(statement, lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t") == [(100, 100)]
    tables.sql(statement)
    assert tables.sorted("SELECT * FROM lake.n.t") == [(9,)]
    assert tables.sorted("SELECT * FROM lake.n.t_old") == [(1, 1), (2, 2), (3, 3)]


def test_a_swap_between_two_statements_of_a_session_is_followed(tables: Lake) -> None:
    frame = tables.frame("SELECT * FROM lake.n.t")
    assert frame.count() == 3
    swap(tables)
    for statement in STATEMENTS.values():
        tables.sql(statement.replace("slow", "abs"))
    assert tables.sorted("SELECT * FROM lake.n.t_old") == [(1, 1), (2, 2), (3, 3)]


def test_a_transaction_whose_table_lost_its_name_fails_as_a_whole(tables: Lake) -> None:
    tables.sql("CALL lake.system.begin_transaction()")
    tables.sql("INSERT INTO lake.n.t VALUES (9, 9)")
    tables.sql("INSERT INTO lake.n.t_new VALUES (9, 9)")
    swap(tables)
    with pytest.raises(PySparkException, match="was renamed to"):
        tables.sql("CALL lake.system.commit_transaction()")
    assert tables.sorted("SELECT id FROM lake.n.t_old") == [(1,), (2,), (3,)]
    assert tables.sorted("SELECT id FROM lake.n.t") == [(100,)]
