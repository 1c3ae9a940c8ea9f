"""Lists of tables: what they cost, and tables that cannot be read."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.spark.hooks import HOOK
from tests.spark.sessions import another_session
from tests.spark.test_requests import COUNTING

pytestmark = pytest.mark.adapter


def test_a_list_is_one_round_for_the_namespaces_above_however_many_tables_there_are(
    make_lake, warm, tmp_path
):
    log = tmp_path / "requests"
    lake = make_lake(python=warm.program(tmp_path, COUNTING.format(log=str(log))))
    lake.sql("CREATE NAMESPACE lake.a")

    def cost(statement):
        log.write_text("")
        lake.sql(statement)
        return sorted(log.read_text().split())

    costs = []
    for number in range(12):
        lake.sql(f"CREATE TABLE lake.a.t{number} (id INT)")
        if number in (0, 1, 11):
            costs.append(cost("SHOW TABLES IN lake.a"))
            assert cost("SHOW TABLES IN lake.a LIKE 'none'") == costs[-1]
            assert cost("SHOW VIEWS IN lake.a") == costs[-1]
    # The root, which says where the namespace is, and the namespace: it has not changed since it was known.
    assert costs == [["get", "get"]] * 3
    assert len(lake.sql("SHOW TABLES IN lake.a")) == 12


def test_creating_and_dropping_a_table_ask_no_more_than_they_need(make_lake, warm, tmp_path):
    log = tmp_path / "requests"
    lake = make_lake(python=warm.program(tmp_path, COUNTING.format(log=str(log))))
    lake.sql("CREATE NAMESPACE lake.a")

    def cost(statement):
        log.write_text("")
        lake.sql(statement)
        return Counter(log.read_text().split())

    for number in range(2):
        created_cost = cost(f"CREATE TABLE lake.a.t{number} (id INT)")
        dropped_cost = cost(f"DROP TABLE lake.a.t{number}")
    # A look at two levels each: for the namespace's collation, the table that may be there, and to place the new one.
    assert created_cost["put_if_absent"] == 2 and created_cost["get"] <= 9
    assert dropped_cost["put_if_absent"] == 3 and dropped_cost["get"] <= 5


@pytest.mark.parametrize("damage", ["removed", "emptied", "corrupt", "foreign"])
def test_a_broken_table_is_listed_with_the_others_and_said_to_be_broken(lake, damage):
    lake.sql("CREATE NAMESPACE lake.a")
    for name in ("before", "more"):
        lake.sql(f"CREATE TABLE lake.a.{name} AS SELECT 1 AS id")
    # By Python, so that the session knows no version of it yet.
    place = Path(lake.catalog.create_table("a.broken", pa.schema({"id": pa.int64()})).location)
    if damage == "removed":
        shutil.rmtree(place)
    else:
        for path in (place / "_log").rglob("*.json"):
            path.write_bytes({"emptied": b"", "corrupt": b"\0garbage", "foreign": b'{"format": 99}'}[damage])
    for session in (another_session(lake), lake):
        tables = [("a", name, False) for name in ("before", "broken", "more")]
        assert session.sql("SHOW TABLES IN lake.a") == tables
        rows = session.sql("SHOW TABLE EXTENDED IN lake.a LIKE '*'")
        assert [row[:3] for row in rows] == tables
        assert ["Comment: cannot be read: " in row[3] for row in rows] == [False, True, False]
        assert [t.name for t in session.spark.catalog.listTables(f"{lake.name}.a")] == [
            row[1] for row in tables
        ]
        assert session.sql("SELECT * FROM lake.a.more") == [(1,)]
        with pytest.raises(PySparkException) as error:
            session.sql("SELECT * FROM lake.a.broken")
        assert error.value.getCondition() != "TABLE_OR_VIEW_NOT_FOUND"
    assert lake.catalog.list_tables("a") == [("a", "before"), ("a", "broken"), ("a", "more")]


def test_a_pattern_is_taken_by_the_list_and_not_only_by_what_spark_makes_of_it(make_lake, warm, tmp_path):
    log = tmp_path / "answered"
    counting_text = f"""{HOOK}
def counted(original):
    def answer(at, asked):
        found = original(at, asked)
        with open({str(log)!r}, "a") as log:
            log.write(f"{{len(found.tables)}} ")
        return found
    return answer
for method in ("list_relations", "list_tables"):
    hook(method, counted)
"""
    lake = make_lake(python=warm.program(tmp_path, counting_text))
    lake.sql("CREATE NAMESPACE lake.a")
    for name in ("t1", "T2", "u1"):
        lake.sql(f"CREATE TABLE lake.a.{name} (id INT)")
    lake.sql("CREATE VIEW lake.a.tv AS SELECT 1 AS one")

    def listed(pattern):
        log.write_text("")
        names = [row[1] for row in lake.sql(f"SHOW TABLES IN lake.a {pattern}")]
        return sorted(names), log.read_text().split()[-1]

    assert listed("LIKE 't*'") == (["T2", "t1", "tv"], "2")
    assert listed("LIKE 'u1|none'") == (["u1"], "1")
    assert listed("LIKE '[tu]1'") == (["t1", "u1"], "3")
    assert listed("") == (["T2", "t1", "tv", "u1"], "3")
