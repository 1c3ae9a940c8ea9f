"""Transactions whose Python side dies: they are lost as a whole, and a commit is found again."""

import os
import signal
import sys
import threading

import pytest
from tests.patience import wait_until
from tests.spark.conftest import children
from tests.spark.hooks import HOOK
from tests.spark.sessions import another_session, wrapper
from tests.spark.versions import evolving_writes

import lakelog.spark


@pytest.fixture
def python() -> str:
    """Not warm, so that what is killed by its process id is what answers."""
    return sys.executable


def prepare(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    for name in ("t", "u"):
        lake.sql(f"CREATE TABLE lake.a.{name} AS SELECT 1 AS id")


def kill(lake):
    for child in children(lake.spark):
        os.kill(child, signal.SIGKILL)


def counts(lake):
    return [lake.catalog.load_table(f"a.{name}").row_count for name in ("t", "u")]


def test_a_transaction_dies_with_its_python_side_and_every_statement_says_so_until_it_is_ended(lake):
    prepare(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    kill(lake)
    for statement in ("INSERT INTO lake.a.u VALUES (2)", "SELECT * FROM lake.a.t", "DROP TABLE lake.a.t"):
        with pytest.raises(Exception, match=r"(?s)transaction .* is lost.*roll it back"):
            lake.sql(statement)
    assert another_session(lake).sql("SELECT * FROM lake.a.t") == [(1,)]
    lake.sql("CALL lake.system.rollback_transaction()")
    assert counts(lake) == [1, 1]
    lake.sql("INSERT INTO lake.a.t VALUES (3)")
    assert lake.sorted("SELECT * FROM lake.a.t") == [(1,), (3,)]


def test_the_commit_of_a_lost_transaction_says_that_nothing_was_committed(lake):
    prepare(lake)
    with (
        pytest.raises(Exception, match=r"(?s)is lost.*Nothing of it was committed"),
        lakelog.spark.transaction(lake.spark, lake.name),
    ):
        lake.sql("INSERT INTO lake.a.t VALUES (2)")
        lake.sql("INSERT INTO lake.a.u VALUES (2)")
        kill(lake)
    assert counts(lake) == [1, 1]
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2)")
    assert counts(lake) == [2, 1]


# Dies in the first commit of a transaction after the file `armed` appeared: before or after it took effect.
DEADLY = """
import os, pathlib, signal
from lakelog.catalog.transaction import Transaction
armed, original = pathlib.Path({armed!r}), Transaction.commit
def deadly(self):
    if not armed.exists():
        return original(self)
    armed.unlink()
    if {after!r}:
        original(self)
    os.kill(os.getpid(), signal.SIGKILL)
Transaction.commit = deadly
"""


@pytest.mark.parametrize(
    ("tables", "after"),
    [
        pytest.param(("t",), False, id="one-log-before"),
        pytest.param(("t", "u"), True, id="two-logs-after"),
        pytest.param(("t",), True, id="one-log-after", marks=pytest.mark.slow),
        pytest.param(("t", "u"), False, id="two-logs-before", marks=pytest.mark.slow),
    ],
)
def test_a_commit_whose_answer_was_lost_is_retried(make_lake, tmp_path, after, tables):
    armed_path = tmp_path / "armed"
    lake = make_lake(python=wrapper(tmp_path, DEADLY.format(armed=str(armed_path), after=after)))
    prepare(lake)

    def change():
        with lakelog.spark.transaction(lake.spark, lake.name):
            for table in tables:
                lake.sql(f"INSERT INTO lake.a.{table} VALUES (2)")
            armed_path.touch()

    if after:
        change()
    else:
        with pytest.raises(Exception, match="Nothing of it was committed"):
            change()
    assert not armed_path.exists()
    assert counts(lake) == [1 + (after and name in tables) for name in ("t", "u")]


@evolving_writes
def test_a_schema_and_data_that_change_together_survive_or_fail_together(make_lake, tmp_path):
    armed_path = tmp_path / "armed"
    lake = make_lake(python=wrapper(tmp_path, DEADLY.format(armed=str(armed_path), after=False)))
    prepare(lake)
    armed_path.touch()
    insert = "INSERT WITH SCHEMA EVOLUTION INTO lake.a.t BY NAME SELECT 2 AS id, 'new' AS more"
    with pytest.raises(Exception, match="lost"):
        lake.sql(insert)
    assert lake.sql("SELECT * FROM lake.a.t") == [(1,)]
    lake.sql(insert)
    assert lake.sorted("SELECT * FROM lake.a.t") == [(1, None), (2, "new")]
    assert lake.catalog.load_table("a.t").version == 2


# The first commit after the file `armed` appeared happens, and says that its outcome is not known.
UNKNOWN = """
import pathlib
from lakelog.catalog.transaction import Transaction
from lakelog.log.errors import CommitUnknown
armed, original = pathlib.Path({armed!r}), Transaction._commit
def unknown(self, was_unknown):
    original(self, was_unknown)
    if armed.exists():
        armed.unlink()
        raise CommitUnknown("no answer came", commit_id=self.commit_id, location="")
Transaction._commit = unknown
"""


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_a_commit_of_unknown_outcome_can_be_retried_but_not_rolled_back(make_lake, tmp_path, dies):
    armed_path = tmp_path / "armed"
    lake = make_lake(python=wrapper(tmp_path, UNKNOWN.format(armed=str(armed_path))))
    prepare(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    for table in ("t", "u"):
        lake.sql(f"INSERT INTO lake.a.{table} VALUES (2)")
    armed_path.touch()
    with pytest.raises(Exception, match="no answer came"):
        lake.sql("CALL lake.system.commit_transaction()")
    if dies:
        kill(lake)
    with pytest.raises(Exception, match="is not known.*commit_transaction"):
        lake.sql("CALL lake.system.rollback_transaction()")
    lake.sql("CALL lake.system.commit_transaction()")
    assert counts(lake) == [2, 2]
    assert lake.sorted("SELECT * FROM lake.a.t") == [(1,), (2,)]


# Once the file `armed` appeared, the commit of a write waits until it is gone.
WAITING = (
    HOOK
    + """
import pathlib, time
armed, waits = pathlib.Path({armed!r}), pathlib.Path({waits!r})
def waiting(commit):
    def call(at, asked):
        while armed.exists():
            waits.touch()
            time.sleep(0.01)
        return commit(at, asked)
    return call
hook("commit_write", waiting)
"""
)


def test_a_statement_whose_transaction_is_committed_while_it_runs_fails_and_says_so(make_lake, tmp_path):
    armed_path, waits = tmp_path / "armed", tmp_path / "waits"
    lake = make_lake(python=wrapper(tmp_path, WAITING.format(armed=str(armed_path), waits=str(waits))))
    prepare(lake)
    errors = []

    def insert():
        try:
            lake.sql("INSERT INTO lake.a.u VALUES (2)")
        except Exception as error:
            errors.append(str(error))

    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2)")
        armed_path.touch()
        late = threading.Thread(target=insert)
        late.start()
        wait_until(waits.exists)
    armed_path.unlink()
    late.join()
    assert counts(lake) == [2, 1]
    [error] = errors
    assert "ended while this statement was running" in error
    assert "lost" not in error
