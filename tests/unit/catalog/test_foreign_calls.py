"""Calls in the words of other libraries, and mistyped names: each error says what to write."""

from __future__ import annotations

import copy
import inspect
import pickle
import uuid

import pyarrow as pa
import pytest

import lakelog.catalog
from lakelog.catalog import Catalog, InvalidInput, LakelogError, Table
from lakelog.catalog.foreign_words import ATTRIBUTES, KEYWORDS, MODULE, ON_METHODS

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(f"memory://{uuid.uuid4().hex}")


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", ROWS.schema).append(ROWS)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ('table.scan(row_filter="id > 1")', "scan(…) takes no row_filter=: write filter="),
        ('table.scan(selected_fields=("id",))', "write columns="),
        ("table.scan(snapshot_id=1)", "write table.at(version=…).scan()"),
        ("table.scan(colums=['id'])", "did you mean columns=?"),
        ("table.at(1)", 'write at(version=…), at(timestamp="…") or at(ref="…")'),
        ('table.at("2026-12-01")', "at(timestamp="),
        ('catalog.load_table("t", as_of="2026-12-01")', "write version=, or timestamp="),
        ('catalog.load_table("t", 1)', "version="),
        ('table.delete(where="id = 1")', "write filter="),
        ("table.delete()", "it is called as delete(filter)"),
        ('table.update(updates={"id": "1"}, predicate="id = 1")', "write set="),
        ('table.upsert(ROWS, join_cols=["id"])', "write on="),
        ('table.append(ROWS, schema_mode="merge")', "call table.add_column(…) first"),
        ('table.overwrite(ROWS, overwrite_filter="id = 1")', "write filter="),
        ('table.merge(ROWS, predicate="id = 1")', "write on="),
        ('table.merge(ROWS, on="id", source_alias="s")', "source.… and target.…"),
        ('table.to_pandas(columns=["id"])', "write table.scan(columns, filter)"),
        ('catalog.create_table("t", ROWS.schema, exist_ok=True)', "write if_not_exists=True"),
        ('catalog.drop_table("t", if_exists=True)', "write missing_ok=True"),
        ("table.history(n=5)", "history(…) takes no n=: write limit="),
        ("catalog.history(n=5)", "history(…) takes no n=: it is called as history(namespace=…)"),
        ("catalog.history((), 5)", "it is called as history(namespace=…)"),
        ('table.inspect.snapshots()', 'write table.inspect("snapshots")'),
        ("table.alter.add_columns([])", "write table.add_column(name, type)"),
        ("table.schema()", "write table.schema"),
        ("table.spec()", "write table.spec"),
        ("table.refs()", "write table.refs"),
        ("len(table)", "write table.row_count"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_a_type_error_with_advice(
    code: str, advice: str, table: Table, catalog: Catalog
) -> None:
    with pytest.raises(TypeError) as failed:
        eval(code, {"table": table, "catalog": catalog, "ROWS": ROWS})
    assert advice in str(failed.value)
    if isinstance(failed.value, LakelogError):
        assert isinstance(failed.value, InvalidInput) and failed.value.kind == "invalid-input"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("table.columns", "Table has no columns: write table.arrow_schema.names"),
        ("table.optimize.compact()", "write table.compact()"),
        ("table.restore(1)", "write table.rollback_to_version(…)"),
        ("table.load_as_version(1)", "write table.at(version=…)"),
        ("table.manage_snapshots()", "write table.create_tag(name)"),
        ("table.update_schema()", "write table.alteration()"),
        ("table.vacuum()", "write catalog.vacuum(name, dry_run=False)"),
        ("table.to_pyarrow_table()", "write table.to_arrow()"),
        ("table.apend(ROWS)", "did you mean append?"),
        ('table.merge(ROWS, on="id").whenMatchedUpdateAll()', "did you mean when_matched_update_all"),
        ("table.scan().to_table()", "write to_arrow()"),
        ('catalog.purge_table("t")', "write drop_table(name, purge=True)"),
        ('catalog.create_table_if_not_exists("t", ROWS.schema)', "if_not_exists=True"),
        ('catalog.create_namespace_if_not_exists("n")', "if_not_exists=True"),
        ('catalog.begin().load_tabel("t")', "Transaction has no load_tabel: did you mean load_table?"),
        ('catalog.begin().purge_table("t")', "write drop_table(name, purge=True)"),
    ],
)
def test_a_missing_attribute_is_an_attribute_error_with_advice(
    code: str, advice: str, table: Table, catalog: Catalog
) -> None:
    with pytest.raises(AttributeError) as failed:
        eval(code, {"table": table, "catalog": catalog, "ROWS": ROWS})
    assert advice in str(failed.value)


def test_an_error_inside_of_a_call_stays_as_it_is(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_given: object) -> None:
        raise TypeError("inside")

    monkeypatch.setattr("lakelog.catalog.table.delete.delete", fails)
    with pytest.raises(TypeError, match="^inside$"):
        table.delete("true")
    monkeypatch.setattr(Table, "clustering", property(lambda table: table.table_head.absent))
    with pytest.raises(AttributeError, match="absent"):
        table.clustering  # noqa: B018


def test_nothing_else_is_changed(table: Table) -> None:
    assert table and not hasattr(table, "columns") and not hasattr(table, "__array__")
    assert (
        copy.copy(table) is table
        and pickle.loads(pickle.dumps(Catalog("/tmp/none"))).warehouse == "/tmp/none"
    )
    public = [name for name in dir(table) if not name.startswith("_")]
    assert "columns" not in public and "__len__" not in dir(table)
    assert Table.append.__doc__ and "data" in inspect.signature(Table.append).parameters


def test_a_name_of_another_library_is_no_import() -> None:
    for name, advice in MODULE.items():
        with pytest.raises(ImportError, match=f"lakelog.catalog has no {name}: write Catalog"):
            exec(f"from lakelog.catalog import {name}")
        assert advice
    assert not hasattr(lakelog.catalog, "nothing_like_it")


def test_the_words_are_not_lakelogs_own() -> None:
    classes = {"Table": Table, "Scan": lakelog.catalog.Scan, "CatalogNames": Catalog}
    for owner, words in ATTRIBUTES.items():
        assert not [name for name in words if hasattr(classes[owner], name)]
    methods = {name for each in (Table, Catalog, lakelog.catalog.Scan) for name in dir(each)}
    assert KEYWORDS.keys() | ON_METHODS.keys() <= methods
