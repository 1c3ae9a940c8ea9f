"""Which views readers of Iceberg are shown, and how."""

from __future__ import annotations

import json

import pytest

from lakelog.catalog.core.schema import Dependency, ViewColumn, ViewDefinition
from lakelog.catalog.formats.iceberg import view_document
from lakelog.log.errors import InvalidInput, Unsupported


def document(text: str = "SELECT 1", *, functions: tuple[str, ...] = (), **members) -> dict:
    members.setdefault("columns", (ViewColumn(name="id", type="long"),))
    view = view_document(
        ViewDefinition(text=text, **members),
        name="v",
        id="i" * 26,
        location="s3://b/w/n-x",
        version=4,
        time_us=1_700_000_000_000_000,
        functions=functions,
    )
    return json.loads(view.metadata) | {"url": view.url}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, count(*) FROM shop.orders WHERE id IN (1, 2) GROUP BY id",
        "WITH few AS (SELECT 1 AS n) SELECT n FROM few",
        "SELECT 'VERSION AS OF 3', \"_row_id\", 'it''s \\' CHANGES FROM' FROM t -- WITH (x) _file",
        "SELECT /* t.history, gross(1) */ version, timestamp AS at, a/2 FROM t",
        "SELECT grossly(1), gross FROM files AS log",
        "SELECT x.id FROM VALUES (1) AS x(id)",
    ],
)
def test_a_plain_query_is_shown_as_it_is(text: str) -> None:
    (version,) = document(text, functions=("gross",), namespace=("shop",))["versions"]
    assert version["representations"] == [{"type": "sql", "sql": text, "dialect": "spark"}]
    assert version["default-namespace"] == ["shop"] and "default-catalog" not in version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM t VERSION  as\n OF 3", "VERSION AS OF"),
        ("SELECT * FROM t timestamp AS OF '2026-01-01'", "TIMESTAMP AS OF"),
        ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 3", "SYSTEM_VERSION AS OF"),
        ("SELECT * FROM lake.`/data/t`", "the place /data/t"),
        ("SELECT * FROM t CHANGES FROM VERSION 1", "CHANGES FROM"),
        ("SELECT * FROM t WITH ('versionAsOf' = '2')", "options of a table"),
        ("SELECT t.`_row_id` FROM t", "_row_id"),
        ("SELECT __row_id FROM t", "the metadata column __row_id"),
        ("SELECT * FROM shop.orders.history", "history"),
        ("SELECT * FROM orders.`tag_end of 2025`", "tag_end of 2025"),
        ("SELECT lake.days(at) FROM t", "the function days"),
        ("SELECT Gross (1) FROM t", "the function Gross"),
        ("SELECT * FROM `gross`(1)", "the function gross"),
        ("SELECT * FROM IDENTIFIER('t.history')", "IDENTIFIER"),
        # Where texts and comments end.
        (r"SELECT r'\', _row_id, '' FROM t", "_row_id"),
        (r'SELECT R"\", _row_id, "" FROM t', "_row_id"),
        ("SELECT $$it's$$, _row_id, $of$'$of$ FROM t", r"the mark \$"),
        ("SELECT 1 " + r"\"" * 400_000, 'the mark "'),
        ("SELECT 1 -- one\r, _row_id FROM t", "_row_id"),
        ("SELECT 1 /* /* ' */ ' */, _row_id /* ' */ FROM t", "a comment in a comment"),
    ],
)
def test_a_query_with_what_only_lakelog_has_is_not(text: str, said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        document(text, functions=("gross",))


def test_names_in_double_quotes_are_no_texts_where_the_query_was_parsed_so() -> None:
    text = 'SELECT "_row_id" FROM t'
    assert document(text, configs={"spark.sql.ansi.doubleQuotedIdentifiers": "false"})
    with pytest.raises(Unsupported, match="names in double quotes"):
        document(text, configs={"spark.sql.ansi.doubleQuotedIdentifiers": "true"})


def test_what_the_engine_says_a_query_uses_counts_too() -> None:
    assert document(dependencies=(Dependency(table=("lake", "shop", "orders")),))
    with pytest.raises(Unsupported, match="the function net"):
        document(dependencies=(Dependency(function=("lake", "shop", "net")),))


def test_a_view_has_columns_properties_and_where_its_names_are_looked_up() -> None:
    found_document = document(
        columns=(
            ViewColumn(name="who", type="string", comment="of the order"),
            ViewColumn(name="n", type="decimal(10,2)", nullable=False, metadata={"x": 1}),
            ViewColumn(name="all", type={"type": "array", "elementType": "short", "containsNull": True}),
        ),
        query_columns=("customer", "amount", "all"),
        properties={"comment": "what counts"},
        catalog="spark_catalog",
        namespace=("default",),
    )
    who, n, all_of_them = found_document["schemas"][0]["fields"]
    assert (who["id"], who["doc"], who["required"]) == (1, "of the order", False)
    assert (n["type"], n["required"]) == ("decimal(10, 2)", True)
    assert all_of_them["type"]["element"] == "int"
    assert found_document["properties"] == {
        "comment": "what counts",
        "spark.query-column-names": "customer,amount,all",
    }
    (version,) = found_document["versions"]
    assert (version["default-catalog"], version["default-namespace"]) == ("spark_catalog", ["default"])
    assert (version["version-id"], version["timestamp-ms"]) == (4, 1_700_000_000_000)
    assert (
        found_document["url"] != document()["url"] and found_document["view-uuid"] == document()["view-uuid"]
    )


@pytest.mark.parametrize("type", ["interval day to second", "void", "variant"])
def test_a_view_with_a_column_that_iceberg_has_no_type_for_is_not_shown(type: str) -> None:
    with pytest.raises(InvalidInput, match="column"):
        document(columns=(ViewColumn(name="x", type=type),))
