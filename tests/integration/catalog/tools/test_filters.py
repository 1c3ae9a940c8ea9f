"""Filters as text and as expressions of libraries, wherever a filter is taken; what notebooks show."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.integration.catalog.tools.tables import make_table

from lakelog.catalog import Catalog, InvalidInput, NoSuchColumn, Table, Unsupported, col, engine

FORMS: list[Any] = [
    "id > 12 AND `word` <> 'é'",
    (pc.field("id") > 12) & (pc.field("Word") != "é"),
    (pl.col("id") > 12) & (pl.col("Word") != "é"),
    (col("id") > 12) & (col("Word") != "é"),
    [("id", ">", 12), "Word <> 'é'"],
]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return make_table(catalog)


@pytest.mark.parametrize("filter", FORMS, ids=lambda form: type(form).__module__.split(".")[0])
def test_each_form_of_a_filter_is_taken_wherever_a_filter_is(table: Table, filter: Any) -> None:
    def rest(changed: Table) -> list[int | None]:
        return sorted(changed.to_arrow()["id"].to_pylist(), key=lambda id: (id is None, id))

    assert table.scan(filter=filter).to_arrow()["id"].to_pylist() == [13, 23]
    assert table.plan(filter).num_rows == table.scan(filter=filter).plan().num_rows == 2
    assert engine.plan_partial(table, filter).num_rows == 2
    assert not engine.can_delete(table, filter) and engine.can_overwrite(table, filter)
    assert rest(table.compact(filter)) == [1, 2, 3, 11, 12, 13, 21, 23, None]
    table = table.refresh().overwrite(pa.table({"id": [31], "Word": ["new"]}), filter)
    assert rest(table) == [1, 2, 3, 11, 12, 21, 31, None]
    table = table.delete(filter)
    assert rest(table) == [1, 2, 3, 11, 12, 21, None]
    assert str(next(table.history()).details["filter"]).lower().endswith("and word <> ?)")


def test_a_transaction_sees_what_a_text_has_read(catalog: Catalog, table: Table) -> None:
    with pytest.raises(Exception, match="changed|conflict"), catalog.transaction("serializable") as tx:
        read = tx.load_table("lab.lived").scan(filter="id = 1").to_arrow()
        catalog.load_table("lab.lived").delete(pc.field("id") == 1)
        tx.create_table("lab.copy", read.schema).append(read)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (pc.field("id").cast("int32") > 1, "calls cast"),
        (pc.utf8_upper(pc.field("Word")) == "A", "calls utf8_upper"), (pc.field(0) == 1, "name columns"),
        (pc.field("id") + 1 > 2, "calls add"), (pc.scalar(5), "in place of a condition"),
        (pc.starts_with(pc.field("Word"), "a", ignore_case=True), "calls starts_with"),
        (pc.is_null(pc.field("id") > 1), "calls is_null of"),
        (pc.field("id").isin([{"x": 1}]), "cannot compare a column with"),
        (pc.field("moment") == pa.scalar(1, pa.timestamp("ns", "UTC")), "lose data"),
        (pl.col("id") + 1 > 2, "has Plus"), (pl.col("Word").str.to_uppercase() == "A", "StringExpr Uppercase"),
        (pl.col("id").cast(pl.Int8) == 1, "has Cast"), (pl.col("real") == float("nan"), "use is_nan"),
        (pl.col("Word").str.contains("a.b"), "StringExpr Contains"), (pl.lit(5), "in place of a condition"),
        (pl.col("id").max() > 2, "has Agg"), (pl.all_horizontal("id", "flag"), "AllHorizontal"),
        (pl.col("id").is_in(pl.col("small")), "IsIn"), ((pl.col("id") > 2).is_null(), "test a column"),
        (pl.col("moment") == pl.lit(1, dtype=pl.Datetime("ns", "UTC")), "lose data"),
        ("id > 'x' AND", "expected a column"), (5, "is not a filter"), (b"id > 1", "is not a filter"),
    ],
)  # fmt: skip
def test_what_a_predicate_cannot_say_is_refused_by_its_name(table: Table, filter: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        table.scan(filter=filter)
    with pytest.raises(InvalidInput, match=message):
        table.delete(filter)
    assert table.refresh().version == table.version


def test_names_and_types_are_checked_against_the_table(table: Table) -> None:
    with pytest.raises(NoSuchColumn, match="there is no column idd: did you mean id.; the columns are id"):
        table.scan(filter="idd > 1")
    with pytest.raises(InvalidInput, match="cannot compare the column id, which is a long, with 'x'"):
        table.scan(filter="id > 'x'")
    with pytest.raises(Unsupported, match="the condition id = small is not supported when rows are read"):
        table.scan(filter="id = small").to_arrow()
    with pytest.raises(Unsupported, match="the condition folded = 'A' is not supported when rows are read"):
        table.scan(filter="folded = 'A'").to_arrow()


def test_a_text_is_spark_s_where_python_s_habits_differ(table: Table) -> None:
    def found(filter: str) -> list[int | None]:
        ids: list[int | None] = table.scan(filter=filter).to_arrow()["id"].to_pylist()
        return ids

    assert found("FIXED = 'ab'") == found("fixed = 'ab '") == [1, 3, 11, 13, 21, 23]
    assert found("fixed LIKE 'ab'") == [] and len(found("fixed LIKE 'ab  '")) == 6
    assert found("real > 100 AND id > 0") == [2, 13]
    assert found("real = -0.0D") == found("real IN (0)") == [3, 11]
    assert found("part.x >= 3") == found("`part`.`X` >= 3.0") == [3, 11, 23]
    assert found("NOT (Word = 'ada') AND id < 12") == [2]
    assert found("single = 0.1F") == [21] and found("single = 0.1D") == []
    assert found("moment >= TIMESTAMP'2026-01-11 13:00:00+01:00' AND id < 13") == [11]


def test_notebooks_show_what_is_known_without_any_html_of_a_user_s(catalog: Catalog) -> None:
    catalog.create_namespace("lab")
    schema = pa.schema({"<b>": pa.int64(), **{f"c{index}": pa.string() for index in range(30)}})
    table = catalog.create_table("lab.t", schema, comment="<script>x</script>").append(
        pa.table({"<b>": [1, 2]})
    )
    table = table.delete("`<b>` = 2")
    html: dict[str, str] = {
        "catalog": catalog._repr_html_(),
        "table": table._repr_html_(),
        "scan": table.scan(filter="`<b>` > 1 AND c1 = '<i>'", limit=5)._repr_html_(),
        "history": table.history()._repr_html_(),
        "history of a namespace": catalog.history("lab")._repr_html_(),
    }
    assert repr(catalog) == f"<Catalog of {catalog.warehouse}>"
    for name, text in html.items():
        assert "<b><" not in text and "<script" not in text and "<i>" not in text, name
        assert len(text) < 4000, name
    assert "&lt;script&gt;" in html["table"] and "<td>1 in 1 file," in html["table"]
    assert "11 more" in html["table"] and "&lt;i&gt;" in html["scan"]
    assert "<td>3</td>" in html["history"] and "<td>2</td>" not in html["history"]
    history = table.history()
    assert [entry.version for entry in history] == [3, 2, 1]
    assert "<td>1</td>" in history._repr_html_() and "list(…)" not in history._repr_html_()
    with catalog.transaction() as tx:
        changed_table = tx.load_table("lab.t").append(pa.table({"<b>": [3]}))
        assert "2 in 2 files" in changed_table._repr_html_()
        assert "History of" in changed_table.history()._repr_html_()
