"""Statements that write while their table is renamed, and its name given to another: none reaches the renamed one.

They are planned again, and reach the table that has the name by then, or fail by name if that is not safe."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import IntegerType
from tests.spark.conftest import Lake, children
from tests.spark.hooks import meanwhile

from lakelog.catalog import Catalog


@pytest.fixture
def tables(lake: Lake) -> Lake:
    return filled_lake(lake)


def filled_lake(lake: Lake) -> Lake:
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
def gated(
    tables: Lake, tmp_path: Path
) -> Iterator[Callable[[str | Callable[[], Any], Callable[[], object]], Any]]:
    """Runs a statement, and something else while the statement computes its rows by the function `slow`."""
    gate, started_path = tmp_path / "gate", tmp_path / "started"

    def slow(id: int) -> int:
        started_path.touch()
        while not gate.exists():
            time.sleep(0.02)
        return id

    tables.spark.udf.register("slow", slow, IntegerType())

    def run(statement: str | Callable[[], Any], meanwhile: Callable[[], object]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(partial(tables.sql, statement) if isinstance(statement, str) else statement)
            while not started_path.exists() and not future.done():
                time.sleep(0.02)
            meanwhile()
            gate.touch()
            return future.result()

    yield run
    tables.spark.sql("DROP TEMPORARY FUNCTION IF EXISTS slow")


OLD, NEW = [(1, 1), (2, 2), (3, 3)], [(100, 100)]
LOST = "`n`.`t` was renamed to `n`.`t_old` since it was loaded"
STATEMENTS = {
    "insert": ("INSERT INTO lake.n.t SELECT slow(9), 9", [(100, 100), (9, 9)]),
    "insert by name": ("INSERT INTO lake.n.t BY NAME SELECT slow(8) AS v, 9 AS id", [(100, 100), (9, 8)]),
    "insert with": (
        "WITH s AS (SELECT slow(9), 9) INSERT INTO lake.n.t SELECT * FROM s",
        [(100, 100), (9, 9)],
    ),
    "overwrite": ("INSERT OVERWRITE lake.n.t SELECT slow(9), 9", [(9, 9)]),
    "replace where": (
        "INSERT INTO lake.n.t REPLACE WHERE id = 100 SELECT slow(100), 9",
        [(100, 9)],
    ),
    "delete": ("DELETE FROM lake.n.t WHERE slow(id) IN (1, 100)", []),
    "update": ("UPDATE lake.n.t SET v = slow(id) + 1", [(100, 101)]),
    "merge": (
        "MERGE INTO lake.n.t USING (SELECT slow(1) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)",
        [(1, 0), (100, 100)],
    ),
    "create or replace": ("CREATE OR REPLACE TABLE lake.n.t AS SELECT slow(9) AS id", [(9,)]),
    "replace": ("REPLACE TABLE lake.n.t AS SELECT slow(9) AS id", [(9,)]),
}


@pytest.mark.parametrize("statement, after", STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_goes_to_the_table_that_got_its_name_while_it_ran(
    tables: Lake, gated: Any, statement: str, after: list[Any]
) -> None:
    place = Path(tables.catalog.load_table("n.t").location)
    files, id = len(list(place.rglob("*.parquet"))), tables.catalog.load_table("n.t_new").id
    gated(statement, lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD
    assert tables.sorted("SELECT * FROM lake.n.t") == after
    current_table = tables.catalog.load_table("n.t")
    assert (current_table.id, current_table.version) == (id, 4), (
        "one commit after the rename, on the table that has the name"
    )
    assert len(list(place.rglob("*.parquet"))) == files, "the files of the first attempt are deleted"


SWAP = """
other.rename_table("n.t", "n.t_old")
other.rename_table("n.t_new", "n.t")
"""


def test_so_do_statements_that_compute_no_rows(make_lake: Any, warm: Any, tmp_path: Path) -> None:
    armed_path, warehouse = tmp_path / "armed", tmp_path / "warehouse"
    text = meanwhile(["commit_stage", "delete", "truncate"], armed_path, warehouse, SWAP)
    program = warm.program(tmp_path, text)
    lake = filled_lake(make_lake(str(warehouse), python=program))
    columns = "(z INT)"
    for statement in (
        "TRUNCATE TABLE lake.n.t", "DELETE FROM lake.n.t", "DELETE FROM lake.n.t AS x WHERE id > 0",
        f"REPLACE TABLE lake.n.t {columns}", f"CREATE OR REPLACE TABLE lake.n.t {columns}",
    ):  # fmt: skip
        armed_path.touch()
        lake.sql(statement)
        assert not armed_path.exists(), statement
        assert lake.sorted("SELECT * FROM lake.n.t_old") == OLD, statement
        assert lake.sql("SELECT * FROM lake.n.t") == [], statement
        assert (lake.frame("SELECT * FROM lake.n.t").columns == ["z"]) == statement.endswith(columns), (
            statement
        )
        # The next one finds both tables as this one did.
        lake.sql("CREATE OR REPLACE TABLE lake.n.t AS SELECT 100 AS id, 100 AS v")
        lake.catalog.rename_table("n.t", "n.t_new")
        lake.catalog.rename_table("n.t_old", "n.t")


@pytest.mark.parametrize("by", ["append", "numbered", "insertInto", "saveAsTable"])
def test_so_do_frames_that_are_written_to_a_name(tables: Lake, gated: Any, by: str) -> None:
    frame, name = tables.frame("SELECT slow(9) AS id, 9 AS v"), f"{tables.name}.n.t"
    write: dict[str, Callable[[], object]] = {
        "append": lambda: frame.writeTo(name).append(),
        "numbered": lambda: frame.writeTo(name).options(txnAppId="job", txnVersion=1).append(),
        "insertInto": lambda: frame.write.insertInto(name),
        "saveAsTable": lambda: frame.write.mode("append").saveAsTable(name),
    }
    if by != "append":
        # By its number a write is known to one table; the others Spark has loaded before it makes a statement of them.
        with pytest.raises(PySparkException, match=LOST):
            gated(write[by], lambda: swap(tables))
    else:
        gated(write[by], lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t") == ([*NEW, (9, 9)] if by == "append" else NEW)
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD


def test_it_goes_there_though_the_process_that_had_loaded_the_table_is_gone(tables: Lake, gated: Any) -> None:
    def meanwhile() -> None:
        swap(tables)
        for child in children(tables.spark):
            os.kill(child, signal.SIGKILL)

    statement, after = STATEMENTS["insert"]
    gated(statement, meanwhile)
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD
    assert tables.sorted("SELECT * FROM lake.n.t") == after


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.n.t SELECT slow(9), CAST(rand() * 9 AS INT)",
        "INSERT WITH SCHEMA EVOLUTION INTO lake.n.t BY NAME SELECT slow(9) AS id, 9 AS v, 1 AS x",
        "INSERT INTO lake.n.t.branch_b SELECT slow(9), 9",
        "INSERT INTO lake.n.t WITH (txnAppId = 'job', txnVersion = 1) SELECT slow(9), 9",
    ],
    ids=["chance", "schema evolution", "branch", "numbered"],
)
def test_what_may_not_run_again_fails_by_name(tables: Lake, gated: Any, statement: str) -> None:
    tables.sql("ALTER TABLE lake.n.t CREATE BRANCH b")
    with pytest.raises(PySparkException, match="was renamed to `n`.`t_old`"):
        gated(statement, lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD
    assert tables.sorted("SELECT * FROM lake.n.t_old.branch_b") == OLD
    assert tables.sorted("SELECT * FROM lake.n.t") == NEW


def test_rows_that_a_frame_has_read_of_the_table_go_to_no_other(tables: Lake, gated: Any) -> None:
    frame = tables.spark.table(f"{tables.name}.n.t").selectExpr("slow(id) + 10 AS id", "v")
    with pytest.raises(PySparkException, match=LOST):
        gated(lambda: frame.writeTo(f"{tables.name}.n.t").append(), lambda: swap(tables))
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD
    assert tables.sorted("SELECT * FROM lake.n.t") == NEW


def test_a_statement_that_the_table_of_the_name_does_not_take_fails_by_name(tables: Lake, gated: Any) -> None:
    def meanwhile() -> None:
        tables.catalog.rename_table("n.t", "n.t_old")

    with pytest.raises(PySparkException, match=LOST):
        gated(STATEMENTS["insert"][0], meanwhile)
    assert tables.sorted("SELECT * FROM lake.n.t_old") == OLD


def test_a_table_that_loses_its_name_each_time_is_given_up(tables: Lake, tmp_path: Path) -> None:
    def waiting(id: int) -> int:
        number = len(list(tmp_path.glob("run-*")))
        (tmp_path / f"run-{number}").touch()
        while not (tmp_path / f"go-{number}").exists():
            time.sleep(0.02)
        return id

    tables.spark.udf.register("waiting", waiting, IntegerType())
    catalog, runs = tables.catalog, 0
    schema = pa.schema([("id", pa.int32()), ("v", pa.int32())])
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(tables.sql, "INSERT INTO lake.n.t SELECT waiting(7), 7")
        while not future.done():
            if (tmp_path / f"run-{runs}").exists():
                catalog.rename_table("n.t", f"n.old_{runs}")
                catalog.create_table("n.t", schema)
                (tmp_path / f"go-{runs}").touch()
                runs += 1
            time.sleep(0.02)
        with pytest.raises(PySparkException, match="was renamed to `n`.`old_3` since it was loaded"):
            future.result()
    tables.spark.sql("DROP TEMPORARY FUNCTION waiting")
    assert runs == 4, "it ran once, and three times again"
    for name in ("t", *(f"old_{number}" for number in range(runs))):
        assert (7, 7) not in tables.sql(f"SELECT * FROM lake.n.{name}")


def test_a_statement_by_place_goes_on(tables: Lake, gated: Any) -> None:
    place = tables.catalog.load_table("n.t").location
    gated(f"INSERT INTO lake.`{place}` SELECT slow(9), 9", lambda: swap(tables))
    assert tables.sorted("SELECT id FROM lake.n.t_old") == [(1,), (2,), (3,), (9,)]
    assert tables.sorted("SELECT * FROM lake.n.t") == [(100, 100)]


def test_a_statement_goes_on_where_the_rename_was_undone(tables: Lake, gated: Any) -> None:
    def meanwhile() -> None:
        tables.catalog.rename_table("n.t", "n.x")
        tables.catalog.rename_table("n.x", "n.t")

    gated(STATEMENTS["insert"][0], meanwhile)
    assert tables.sorted("SELECT id FROM lake.n.t") == [(1,), (2,), (3,), (9,)]


def absent(catalog: Catalog) -> None:
    catalog.drop_table("n.t")


def created(catalog: Catalog) -> None:
    catalog.create_table("n.t", pa.schema([("other", pa.int64())]))


def recreated(catalog: Catalog) -> None:
    absent(catalog)
    created(catalog)


@pytest.mark.parametrize(
    "before, meanwhile",
    [(absent, created), (None, absent), (None, recreated)],
    ids=["created", "dropped", "dropped and created"],
)
@pytest.mark.parametrize("by", ["statement", "frame"])
def test_create_or_replace_takes_what_is_there_at_its_commit(
    tables: Lake, gated: Any, before: Any, meanwhile: Any, by: str
) -> None:
    if before is not None:
        before(tables.catalog)
    query = "SELECT slow(9) AS id"
    frame = tables.frame(query)
    gated(
        f"CREATE OR REPLACE TABLE lake.n.t AS {query}"
        if by == "statement"
        else lambda: frame.writeTo(f"{tables.name}.n.t").createOrReplace(),
        lambda: meanwhile(tables.catalog),
    )
    assert tables.sorted("SELECT * FROM lake.n.t") == [(9,)]
    versions = 1 if meanwhile is absent else 2
    assert tables.catalog.load_table("n.t").version == versions, "a table that is there is replaced"


def test_a_swap_between_two_statements_of_a_session_is_followed(tables: Lake) -> None:
    frame = tables.frame("SELECT * FROM lake.n.t")
    assert frame.count() == 3
    swap(tables)
    for statement, _ in STATEMENTS.values():
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
