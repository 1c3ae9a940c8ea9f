"""Views in transactions, in the past, in the audit, dropped and restored, and changed by several at once."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from pyspark.errors import AnalysisException
from tests.spark.hooks import meanwhile
from tests.spark.sessions import another_session

import lakelog.spark
from lakelog.catalog import Catalog, engine

pytestmark = pytest.mark.adapter


class Rollback(Exception):
    """Ends a transaction without a commit."""


@pytest.fixture
def shop(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE VIEW lake.a.v AS SELECT id FROM lake.a.t")
    return lake


def change(lake):
    lake.sql("CREATE VIEW lake.a.w AS SELECT id + 1 AS next FROM lake.a.v")
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    lake.sql("CREATE OR REPLACE VIEW lake.a.v AS SELECT id * 10 AS id FROM lake.a.t")
    lake.sql("ALTER VIEW lake.a.v SET TBLPROPERTIES ('k' = 'v')")
    lake.sql("ALTER VIEW lake.a.w RENAME TO a.x")


def test_a_transaction_makes_and_changes_views_for_itself_until_it_commits(shop):
    other_session = another_session(shop)
    with lakelog.spark.transaction(shop.spark, shop.name):
        change(shop)
        assert shop.sorted("SELECT * FROM lake.a.x") == [(11,), (21,)]
        assert shop.sorted("SHOW VIEWS IN lake.a") == [("a", "v", False), ("a", "x", False)]
        assert shop.sql("SHOW TBLPROPERTIES lake.a.v ('k')") == [("k", "v")]
        assert other_session.sql("SELECT * FROM lake.a.v") == [(1,)]
        assert other_session.sql("SHOW VIEWS IN lake.a") == [("a", "v", False)]
    assert other_session.sorted("SELECT * FROM lake.a.x") == [(11,), (21,)]
    assert shop.catalog.list_views("a") == [("a", "v"), ("a", "x")]
    entries = [entry.transaction for entry in shop.catalog.audit() if entry.transaction]
    assert len(set(entries)) == 1


def test_a_transaction_that_is_rolled_back_leaves_no_view(shop):
    with pytest.raises(Rollback), lakelog.spark.transaction(shop.spark, shop.name):
        change(shop)
        shop.sql("DROP VIEW lake.a.v")
        raise Rollback
    for session in (shop, another_session(shop)):
        assert session.sql("SELECT * FROM lake.a.v") == [(1,)]
        assert session.sql("SHOW VIEWS IN lake.a") == [("a", "v", False)]


def test_a_view_of_the_past_reads_the_tables_of_the_past(shop, make_lake):
    session = another_session(shop)
    try:
        session.sql(f"USE {shop.name}.a")
        session.sql("CREATE VIEW near AS SELECT id FROM t")
    finally:
        session.sql("USE spark_catalog.default")
    shop.sql("CALL lake.system.save_cut('then')")
    change(shop)
    assert shop.sorted("SELECT * FROM lake.a.near") == [(1,), (2,)]
    past_lake = make_lake(shop.warehouse, as_of="then")
    assert past_lake.sql("SELECT * FROM lake.a.near") == [(1,)]
    assert past_lake.sql("SHOW VIEWS IN lake.a") == [("a", "near", False), ("a", "v", False)]
    assert Catalog(shop.warehouse, as_of="then").load_view("a.v").text == f"SELECT id FROM {shop.name}.a.t"
    for statement in (
        "CREATE VIEW lake.a.y AS SELECT 1 AS x",
        "CREATE OR REPLACE VIEW lake.a.v AS SELECT 1 AS x",
        "ALTER VIEW lake.a.v AS SELECT 1 AS x",
        "ALTER VIEW lake.a.v RENAME TO a.z",
        "DROP VIEW lake.a.v",
        "CALL lake.system.undrop_view('a.v')",
    ):
        with pytest.raises(Exception, match="as of|read-only"):
            past_lake.sql(statement)
    assert shop.catalog.list_views("a") == [("a", "near"), ("a", "v"), ("a", "x")]


def test_a_view_means_its_own_catalog_whatever_that_is_called(shop, make_lake):
    session = another_session(shop)
    try:
        session.sql(f"USE {shop.name}.a")
        session.sql("CREATE VIEW near AS SELECT id FROM t")
    finally:
        session.sql("USE spark_catalog.default")
    assert shop.catalog.load_view("a.near").catalog is None
    again = make_lake(shop.warehouse)
    assert again.name != shop.name
    described = {row[0]: row[1] for row in again.sql("DESCRIBE EXTENDED lake.a.near")}
    assert described["View Current Catalog"] == again.name
    assert again.sql("SELECT * FROM lake.a.near") == [(1,)]


def test_a_statement_over_a_view_reads_all_its_tables_at_one_moment(make_lake, warm, tmp_path):
    from tests.spark.test_one_moment import MOVING

    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    lake = make_lake(
        warehouse, python=warm.program(tmp_path, MOVING.format(armed=str(armed_path), warehouse=warehouse))
    )
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.u (id INT)")
    lake.sql("CREATE VIEW lake.ns.both AS SELECT * FROM lake.t UNION ALL SELECT * FROM lake.u")
    armed_path.write_text("2")
    assert lake.sql("SELECT count(*) FROM lake.ns.both") == [(1,)]
    assert not armed_path.exists(), "nothing moved meanwhile"
    assert lake.sql("SELECT count(*) FROM lake.u") == [(1,)]


def test_the_audit_shows_who_made_which_view_by_which_statement(shop):
    shop.sql("CREATE VIEW lake.a.w AS SELECT 1 AS x")
    shop.sql("ALTER VIEW lake.a.w SET TBLPROPERTIES ('k' = 'v')")
    shop.sql("ALTER VIEW lake.a.w RENAME TO a.x")
    shop.sql("DROP VIEW lake.a.x")
    rows = shop.sql(
        "SELECT operation, details, statement FROM lake.system.audit ORDER BY committed_at DESC LIMIT 4"
    )
    assert [row[0] for row in rows] == ["unlink", "rename", "define", "define"]


def test_a_dropped_view_is_listed_and_restored_also_under_another_name(shop):
    shop.sql("DROP VIEW lake.a.v")
    ((id, kind, name, dropped, kept_until, _),) = shop.sql("CALL lake.system.dropped('a')")
    assert (kind, name) == ("view", "`a`.`v`")
    assert kept_until - dropped == dt.timedelta(days=7)
    shop.sql("CREATE VIEW lake.a.v AS SELECT 'new' AS other")
    with pytest.raises(AnalysisException, match="`v`"):
        shop.sql("CALL lake.system.undrop_view('a.v')")
    assert shop.sql(f"CALL lake.system.undrop_view('a.v', id => '{id}', to => 'a.back')") == [("`a`.`back`",)]
    assert another_session(shop).sql("SELECT * FROM lake.a.back") == [(1,)]
    assert shop.sql("SELECT * FROM lake.a.v") == [("new",)]
    assert shop.sql("CALL lake.system.dropped('a')") == []
    with pytest.raises(AnalysisException, match="never"):
        shop.sql("CALL lake.system.undrop_view('a.never')")


def test_a_dropped_function_is_listed_and_restored(shop):
    from lakelog.catalog.core.schema.definition import FunctionDefinition

    catalog = shop.catalog
    engine.create_function(catalog, "a.f", FunctionDefinition(language="sql", body="1", returns="INT"))
    catalog.drop_function("a.f")
    ((id, kind, name, *_),) = shop.sql("CALL lake.system.dropped('a')")
    assert (kind, name) == ("function", "`a`.`f`")
    assert shop.sql(f"CALL lake.system.undrop_function('a.f', id => '{id}')") == [("`a`.`f`",)]
    assert shop.catalog.function_exists("a.f")


def test_views_restored_in_a_transaction_are_there_with_it_or_not_at_all(shop):
    shop.sql("DROP VIEW lake.a.v")
    with pytest.raises(Rollback), lakelog.spark.transaction(shop.spark, shop.name):
        shop.sql("CALL lake.system.undrop_view('a.v')")
        assert shop.sql("SELECT * FROM lake.a.v") == [(1,)]
        raise Rollback
    assert shop.catalog.list_views("a") == []


# Between the analysis of an ALTER VIEW and the change.
THEIRS = """
import msgspec
from lakelog.catalog import engine
view = other.load_view("a.v")
properties = view.properties | {"theirs": "1"}
engine.replace_view(other, "a.v", msgspec.structs.replace(view, properties=properties))
"""


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER VIEW lake.a.v SET TBLPROPERTIES ('ours' = '1')",
        "ALTER VIEW lake.a.v UNSET TBLPROPERTIES IF EXISTS ('ours')",
        "ALTER VIEW lake.a.v WITH SCHEMA EVOLUTION",
        "ALTER VIEW lake.a.v AS SELECT 2 AS id",
    ],
)
def test_no_change_of_a_view_is_lost_to_another_one(make_lake, warm, tmp_path, statement):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    text = meanwhile(["define_view"], armed_path, warehouse, THEIRS)
    lake = make_lake(warehouse, python=warm.program(tmp_path, text))
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE VIEW lake.a.v AS SELECT 1 AS id")
    armed_path.touch()
    with pytest.raises(Exception, match="changed by another client in the meantime"):
        lake.sql(statement)
    assert lake.catalog.load_view("a.v").properties["theirs"] == "1"
    lake.sql(statement)
    assert lake.catalog.load_view("a.v").properties["theirs"] == "1"


def test_a_view_whose_namespace_is_gone_says_so(shop):
    shop.sql("CREATE NAMESPACE lake.b")
    shop.sql("CREATE VIEW lake.b.v AS SELECT * FROM lake.a.v")
    shop.sql("DROP NAMESPACE lake.a CASCADE")
    with pytest.raises(AnalysisException) as error:
        shop.sql("SELECT * FROM lake.b.v")
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    shop.sql("CALL lake.system.undrop_namespace('a')")
    assert shop.sql("SELECT * FROM lake.b.v") == [(1,)]


def test_show_tables_asks_once_however_many_views_there_are(shop):
    for number in range(5):
        engine.create_view(shop.catalog, f"a.w{number}", shop.catalog.load_view("a.v"))
    assert len(shop.sql("SHOW TABLES IN lake.a")) == 7
    assert [row[1] for row in shop.sql("SHOW VIEWS IN lake.a LIKE 'w*'")] == [f"w{n}" for n in range(5)]
    assert re.match("v|w", shop.sql("SHOW VIEWS IN lake.a")[0][1])
