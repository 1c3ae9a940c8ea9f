"""Input that cannot be right ends in one clear error of lakelog's own, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA

from lakelog.catalog import Catalog, NoSuchTable
from lakelog.log import InvalidInput

Call = Callable[[Any], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.create_table("", SCHEMA),
        lambda c: c.load_table(()),
        lambda c: c.table_exists(""),
        lambda c: c.load_table(None),
        lambda c: c.list_tables(7),
        lambda c: c.create_table("x", {"id": "long"}),
        lambda c: c.create_table("x", SCHEMA, properties={"k": "\ud800"}),
        lambda c: c.create_table("x", SCHEMA, properties={"k": 1}),
        lambda c: c.create_table("x", SCHEMA, properties={"location": "/x"}),
        lambda c: c.create_table("x", SCHEMA, properties={"provider": "delta"}),
        lambda c: c.create_namespace("n", {"k": 1}),
        lambda c: c.alter_namespace((), remove="key"),
        lambda c: c.load_table("t").alter(["x"]),
        lambda c: c.load_table("t").alter("abc"),
        lambda c: c.load_table("t").alter(None),
        lambda c: c.load_table("t").at(version="1"),
        lambda c: c.load_table("t").at(timestamp_us="now"),
        lambda c: c.load_table("t").at(),
        lambda c: c.load_table("t").scan(limit=-1),
        lambda c: list(c.load_table("t").history(limit=-1)),
    ],
)
def test_it_is_refused(catalog: Catalog, call: Call) -> None:
    table = catalog.create_table("t", SCHEMA)
    with pytest.raises(InvalidInput):
        call(catalog)
    assert catalog.list_tables() == [("t",)]
    assert catalog.list_namespaces() == []
    assert table.refresh().version == table.version


def test_a_token_for_what_is_not_there_says_so(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        catalog.token_at("memory://nowhere/t")


def test_a_path_object_is_a_warehouse_too(tmp_path: Path) -> None:
    Catalog(tmp_path / "w").create_namespace("a")
    assert Catalog(str(tmp_path / "w")).list_namespaces() == [("a",)]


def test_a_comment_is_kept_once(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={"comment": "a"}, comment="b")
    assert (table.comment, dict(table.properties)) == ("b", {})
    table = table.alter([{"change": "remove-property", "key": "comment"}])
    assert table.comment is None
