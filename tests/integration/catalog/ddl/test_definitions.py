"""Views and functions: names that stand for definitions, in the logs of their namespaces."""

import datetime as dt

import pytest
from tests.integration.catalog.conftest import SCHEMA

from lakelog.catalog import Catalog, CommitConflict, NamespaceNotEmpty, NoSuchTable, TableExists, engine
from lakelog.catalog.core.schema.definition import FunctionDefinition, ViewColumn, ViewDefinition
from lakelog.catalog.errors import FunctionExists, NoSuchFunction, NoSuchView, ViewExists
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

ONE = ViewDefinition(text="SELECT 1 AS a", columns=(ViewColumn(name="a", type="integer", comment="one"),))
TWO = ViewDefinition(text="SELECT 2 AS a", columns=(ViewColumn(name="a", type="integer"),), namespace=("n",))
PLUS = FunctionDefinition(language="sql", body="a + 1", parameters="a INT", returns="INT")


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog(tmp_path)
    catalog.create_namespace("n")
    return catalog


def another(catalog):
    return Catalog(catalog.warehouse)


def test_a_view_is_there_for_all_clients_as_it_was_defined(catalog):
    engine.create_view(catalog, "n.v", ONE)
    assert another(catalog).load_view("n.v") == ONE
    assert another(catalog).list_views("n") == [("n", "v")]
    assert catalog.list_tables("n") == []
    assert engine.load_relation(catalog, "n.v") == ONE
    assert not catalog.table_exists("n.v")
    assert catalog.view_exists("n.v")
    assert not catalog.view_exists("n.w")
    with pytest.raises(NoSuchView, match="n`.`w"):
        catalog.load_view("n.w")
    with pytest.raises(NoSuchTable, match="`n`.`v` is a view.*load_view"):
        catalog.load_table("n.v")


def test_a_view_is_replaced_only_where_that_is_wanted(catalog):
    engine.create_view(catalog, "n.v", ONE)
    with pytest.raises(ViewExists):
        engine.create_view(catalog, "n.v", TWO)
    engine.create_view(catalog, "n.v", TWO, if_not_exists=True)
    assert another(catalog).load_view("n.v") == ONE
    engine.create_view(catalog, "n.v", TWO, or_replace=True)
    assert another(catalog).load_view("n.v") == TWO
    engine.replace_view(catalog, "n.v", ONE, expected=TWO)
    with pytest.raises(CommitConflict, match="changed by another client"):
        engine.replace_view(another(catalog), "n.v", TWO, expected=TWO)
    with pytest.raises(NoSuchView):
        engine.replace_view(catalog, "n.w", ONE)
    assert another(catalog).load_view("n.v") == ONE


def test_tables_and_views_share_their_names(catalog):
    engine.create_view(catalog, "n.v", ONE)
    catalog.create_table("n.t", SCHEMA)
    with pytest.raises(TableExists):
        catalog.create_table("n.v", SCHEMA)
    with pytest.raises(TableExists):
        engine.stage(catalog, "create-or-replace", "n.v", SCHEMA)
    with pytest.raises(TableExists):
        catalog.rename_table("n.t", "n.v")
    with pytest.raises(TableExists):
        engine.create_view(catalog, "n.t", ONE, or_replace=True)
    with pytest.raises(TableExists):
        catalog.rename_view("n.v", "n.t")
    with pytest.raises(NoSuchView):
        engine.replace_view(catalog, "n.t", ONE)
    assert not catalog.drop_table("n.v", missing_ok=True)
    with pytest.raises(NoSuchView):
        catalog.drop_view("n.t")
    catalog.drop_table("n.t")
    engine.create_view(catalog, "n.t", TWO)
    with pytest.raises(TableExists):
        catalog.undrop_table("n.t")
    engine.create_function(catalog, "n.v", PLUS)
    assert another(catalog).list_views("n") == [("n", "t"), ("n", "v")]
    assert another(catalog).list_functions("n") == [("n", "v")]


def test_a_view_that_was_staged_against_wins_over_the_table(catalog):
    stage = engine.stage(catalog, "create", "n.x", SCHEMA)
    engine.create_view(another(catalog), "n.x", ONE)
    with pytest.raises(TableExists):
        engine.commit_stage(catalog, stage)
    assert another(catalog).load_view("n.x") == ONE


def test_renames_keep_what_is_defined(catalog):
    catalog.create_namespace("m")
    engine.create_view(catalog, "n.v", ONE)
    catalog.rename_view("n.v", "n.w")
    catalog.rename_view("n.w", "m.w")
    assert another(catalog).list_views("n") == []
    assert another(catalog).load_view("m.w") == ONE
    with pytest.raises(NoSuchView):
        catalog.rename_view("n.v", "n.y")
    engine.create_view(catalog, "n.w", TWO)
    with pytest.raises(ViewExists):
        catalog.rename_view("n.w", "m.w")
    assert another(catalog).load_view("n.w") == TWO


def test_what_was_dropped_is_listed_and_comes_back(catalog):
    catalog.create_namespace("m")
    engine.create_view(catalog, "n.v", ONE)
    engine.create_function(catalog, "n.f", PLUS)
    assert catalog.drop_view("n.v")
    assert not catalog.drop_view("n.v", missing_ok=True)
    assert catalog.drop_function("n.f")
    assert {(entry.kind, entry.name) for entry in another(catalog).dropped("n")} == {
        ("view", ("n", "v")),
        ("function", ("n", "f")),
    }
    engine.create_view(catalog, "n.v", TWO)
    with pytest.raises(ViewExists):
        catalog.undrop_view("n.v")
    assert catalog.undrop_view("n.v", to="m.v") == ("m", "v")
    assert catalog.undrop_function("n.f") == ("n", "f")
    assert another(catalog).load_view("m.v") == ONE
    assert another(catalog).load_function("n.f") == PLUS
    assert another(catalog).dropped(recursive=True) == []
    with pytest.raises(NotFound, match="nothing that can be restored"):
        catalog.undrop_view("n.v", to="n.x")


def test_functions_are_there_for_all_clients(catalog):
    engine.create_function(catalog, "n.f", PLUS)
    with pytest.raises(FunctionExists):
        engine.create_function(catalog, "n.f", PLUS)
    engine.create_function(catalog, "n.f", PLUS, if_not_exists=True)
    assert another(catalog).load_function("n.f") == PLUS
    assert another(catalog).function_exists("n.f")
    assert not another(catalog).drop_function("n.g", missing_ok=True)
    with pytest.raises(NoSuchFunction):
        catalog.load_function("n.g")


def test_a_namespace_with_a_view_is_not_empty_and_comes_back_with_it(catalog):
    engine.create_view(catalog, "n.v", ONE)
    with pytest.raises(NamespaceNotEmpty, match="`v`"):
        catalog.drop_namespace("n")
    catalog.drop_namespace("n", cascade=True)
    catalog.undrop_namespace("n")
    assert another(catalog).load_view("n.v") == ONE


def test_they_survive_a_snapshot_and_an_expiry(catalog):
    engine.create_view(catalog, "n.v", ONE)
    engine.create_function(catalog, "n.f", PLUS)
    catalog.drop_function("n.f")
    for number in range(30):
        catalog.alter_namespace("n", set={"k": str(number)})
    catalog.expire(namespace="n", retain_last=1, dry_run=False)
    fresh = another(catalog)
    assert fresh.load_view("n.v") == ONE
    assert fresh.undrop_function("n.f") == ("n", "f")
    assert fresh.fsck().found == []


def test_vacuum_forgets_what_was_dropped_too_long_ago(catalog):
    engine.create_view(catalog, "n.v", ONE)
    catalog.drop_view("n.v")
    report = catalog.vacuum(dropped_older_than=dt.timedelta(0), dry_run=True)
    assert "dropped-view" in {each.kind for each in report}
    assert len(another(catalog).dropped("n")) == 1
    catalog.vacuum(dropped_older_than=dt.timedelta(0), dry_run=False)
    assert another(catalog).dropped("n") == []


def test_a_transaction_has_them_all_or_none(catalog):
    engine.create_view(catalog, "n.old", ONE)
    with catalog.transaction() as tx:
        tx.create_table("n.t", SCHEMA)
        engine.create_view(tx, "n.v", ONE)
        engine.replace_view(tx, "n.v", TWO)
        engine.create_function(tx, "f", PLUS)
        tx.rename_view("n.old", "new")
        assert tx.load_view("n.v") == TWO
        assert engine.load_relation(tx, "n.v") == TWO
        assert not another(catalog).view_exists("n.v")
        assert tx.list_views() == [("new",)]
    fresh = another(catalog)
    assert (fresh.load_view("n.v"), fresh.load_function("f"), fresh.load_view("new")) == (TWO, PLUS, ONE)
    with pytest.raises(ZeroDivisionError), catalog.transaction() as tx:
        tx.drop_view("n.v")
        _ = 1 / 0
    assert another(catalog).view_exists("n.v")


def test_a_transaction_loses_against_another_of_the_same_name(catalog):
    tx = catalog.transaction()
    engine.create_view(tx, "n.v", ONE)
    engine.create_view(another(catalog), "n.v", TWO)
    with pytest.raises(ViewExists):
        tx.commit()
    tx = catalog.transaction("serializable")
    assert tx.load_view("n.v") == TWO
    tx.create_table("n.t", SCHEMA)
    engine.replace_view(another(catalog), "n.v", ONE)
    with pytest.raises(CommitConflict):
        tx.commit()
    assert not another(catalog).table_exists("n.t")


def test_the_past_shows_them_as_they_were(catalog):
    engine.create_view(catalog, "n.v", ONE)
    catalog.save_cut("then")
    engine.create_view(catalog, "n.v", TWO, or_replace=True)
    past_catalog = Catalog(catalog.warehouse, as_of="then")
    assert past_catalog.load_view("n.v") == ONE
    for change in (
        lambda: engine.create_view(past_catalog, "n.w", ONE),
        lambda: engine.replace_view(past_catalog, "n.v", TWO),
        lambda: past_catalog.rename_view("n.v", "n.w"),
        lambda: past_catalog.drop_view("n.v"),
        lambda: past_catalog.undrop_view("n.v"),
    ):
        with pytest.raises(Unsupported, match="read-only|as of"):
            change()
    assert another(catalog).load_view("n.v") == TWO


def test_a_retry_is_one_change(catalog):
    token = catalog.token("n.v")
    engine.create_view(catalog, "n.v", ONE, token=token)
    engine.create_view(another(catalog), "n.v", ONE, token=token)
    dropping_token = catalog.token("n.v")
    assert catalog.drop_view("n.v", token=dropping_token)
    assert another(catalog).drop_view("n.v", token=dropping_token)
    restoring_token = catalog.token("n.v")
    catalog.undrop_view("n.v", token=restoring_token)
    assert another(catalog).undrop_view("n.v", token=restoring_token) == ("n", "v")
    renaming_token = catalog.token("n.v")
    catalog.rename_view("n.v", "n.w", token=renaming_token)
    another(catalog).rename_view("n.v", "n.w", token=renaming_token)
    assert another(catalog).list_views("n") == [("n", "w")]


def test_the_audit_lists_definitions_and_drops(catalog):
    engine.create_view(catalog, "n.v", ONE)
    catalog.drop_view("n.v")
    operations = [(entry.operations, entry.details.get("name")) for entry in catalog.audit(namespace="n")]
    assert (("define",), "v") in operations
    assert (("unlink",), "v") in operations


def test_what_cannot_be_stored_is_refused(catalog):
    with pytest.raises(InvalidInput, match="is not a definition|give a ViewDefinition"):
        engine.create_view(catalog, "n.v", "SELECT 1")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="language"):
        engine.create_function(catalog, "n.f", FunctionDefinition(language="cobol", body=""))
    with pytest.raises(InvalidInput, match="limit"):
        engine.create_view(catalog, "n.v", ViewDefinition(text="x" * 2_000_000, columns=()))
    with pytest.raises(InvalidInput, match="empty"):
        engine.create_view(catalog, ("n", ""), ONE)
    with pytest.raises(InvalidInput, match=r"lakelog\.x is not known"):
        engine.create_view(catalog, "n.v", ViewDefinition(text="", columns=(), properties={"lakelog.x": "1"}))
    assert another(catalog).list_views("n") == []


def test_a_dropped_table_and_a_dropped_view_of_a_name_are_restored_apart(catalog):
    catalog.create_table("n.x", SCHEMA)
    catalog.drop_table("n.x")
    engine.create_view(catalog, "n.x", ONE)
    catalog.drop_view("n.x")
    ids = {each.kind: each.id for each in another(catalog).dropped("n")}
    with pytest.raises(NotFound, match="no view named"):
        catalog.undrop_view("n.x", id=ids["table"])
    with pytest.raises(NotFound, match="nothing named"):
        catalog.undrop_table("n.x", id=ids["view"])
    assert catalog.undrop_table("n.x") == ("n", "x")
    assert catalog.undrop_view("n.x", to="n.y") == ("n", "y")
    assert another(catalog).table_exists("n.x") and another(catalog).load_view("n.y") == ONE


def test_all_that_follows_names_to_logs_passes_views_and_functions(catalog, tmp_path):
    catalog.create_namespace("n.below")
    for space in ("n", "n.below"):
        for name in ("t", "gone"):
            catalog.create_table(f"{space}.{name}", SCHEMA)
        for name in ("v", "w"):
            engine.create_view(catalog, f"{space}.{name}", ONE)
            engine.create_function(catalog, f"{space}.{name}", PLUS)
        catalog.drop_table(f"{space}.gone")
        catalog.drop_view(f"{space}.w")
        catalog.drop_function(f"{space}.w")
    catalog.clone_namespace("n", "copied")
    catalog.save_cut("all")
    place = tmp_path.with_name(f"{tmp_path.name}-backup")
    catalog.backup(place)
    restored_catalog = Catalog(tmp_path.with_name(f"{tmp_path.name}-restored"))
    restored_catalog.restore_warehouse(place)
    for each in (another(catalog), Catalog(catalog.warehouse, as_of="all"), restored_catalog):
        assert each.load_view("n.below.v") == ONE and each.load_function("n.v") == PLUS
        assert each.list_tables("n.below") == [("n", "below", "t")]
        assert each.list_views("n.below") == [("n", "below", "v")]
        assert len(each.dropped("n", recursive=True)) == 6
    catalog.drop_cut("all")
    catalog.expire(retain_last=1, dry_run=False)
    catalog.vacuum(dropped_older_than=dt.timedelta(0), dry_run=False)
    assert another(catalog).dropped(recursive=True) == []
    assert {each.kind for each in catalog.fsck(deep=True).found} == {"log-unlinked"}  # of the purged tables
    assert {entry.kind for entry in catalog.audit()} == {"table", "namespace"}
    catalog.drop_namespace("n", cascade=True)
    catalog.undrop_namespace("n")
    assert another(catalog).load_view("n.below.v") == ONE and another(catalog).table_exists("n.below.t")
