"""Input that cannot be right ends in one clear error of lakelog's own, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, col, engine
from lakelog.log import InvalidInput, NotFound, Unsupported

Call = Callable[[Any], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.create_table("", SCHEMA),
        lambda c: c.load_table(()),
        lambda c: c.table_exists(""),
        lambda c: c.load_table(None),
        lambda c: c.list_tables(7),
        lambda c: c.create_table("x", "id long"),
        lambda c: c.create_table("x", {"id": "lnog"}),
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
        lambda c: c.load_table("t").at(timestamp="now"),
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
        engine.token_at(catalog, "memory://nowhere/t")


def test_a_path_object_is_a_warehouse_too(tmp_path: Path) -> None:
    Catalog(tmp_path / "w").create_namespace("a")
    assert Catalog(str(tmp_path / "w")).list_namespaces() == [("a",)]


def test_a_comment_is_kept_once(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={"comment": "a"}, comment="b")
    assert (table.comment, dict(table.properties)) == ("b", {})
    table = table.alter([{"change": "remove-property", "key": "comment"}])
    assert table.comment is None


def test_a_version_that_is_not_there_is_reported_with_the_tables_name(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA)
    with pytest.raises(NotFound, match=r"^`t` has no version 99: its newest is 1$"):
        table.at(version=99)
    with pytest.raises(
        NotFound, match=r"^`t` has no version of 1970-01-01 00:00:00\.000007\+00:00 or before"
    ):
        table.at(timestamp=7)
    with pytest.raises(
        NotFound, match=r"^`t` has no version of -9223372036854775808 µs since 1970 or before"
    ):
        table.at(timestamp=-(1 << 63))


@pytest.mark.parametrize("name", ["s", "a", "m"])
def test_nested_columns_are_asked_for_null(catalog: Catalog, name: str) -> None:
    inner = pa.struct([("x", pa.int64())])
    schema = pa.schema(
        [("id", pa.int64()), ("s", inner), ("a", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    )
    data = pa.table(
        {"id": [1, 2], "s": [{"x": 1}, None], "a": [[{"x": 1}], None], "m": [[("k", {"x": 1})], None]},
        schema=schema,
    )
    table = catalog.create_table("t", schema).append(data)
    for filter, expected in ((col(name).is_null(), [2]), (col(name).is_not_null(), [1])):
        assert table.scan(columns=["id"], filter=filter).to_arrow()["id"].to_pylist() == expected


def test_days_beyond_pythons_are_found_and_deleted(catalog: Catalog) -> None:
    schema = pa.schema([("day", pa.date32())])
    table = catalog.create_table("t", schema, partition_by=["day"])
    far = pa.array([2_932_897, 5], pa.int32()).cast(pa.date32())
    table = table.append(pa.table({"day": far}))
    for op, value in (("=", 2_932_897), ("<=>", 2_932_897)):
        filter = {"op": op, "args": [{"col": ["day"]}, {"lit": value, "type": "date"}]}
        assert table.scan(filter=filter).to_arrow().num_rows == 1
    among = {
        "op": "IN",
        "args": [{"col": ["day"]}, {"lit": 2_932_897, "type": "date"}, {"lit": 7, "type": "date"}],
    }
    assert table.delete(among).row_count == 1


def test_a_filter_of_any_depth_is_answered(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1, 500))
    filter = col("id") != 0
    for n in range(2, 400):
        filter = filter & (col("id") != n)
    assert table.plan(filter).num_rows == 1


def test_defaults_that_would_be_read_differently_are_refused(catalog: Catalog) -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int64())]))])
    table = catalog.create_table("t", schema)
    default: dict[str, Any] = {"current": "'d'"}
    nested = {
        "change": "add-column",
        "name": ["s", "y"],
        "type": "string",
        "nullable": True,
        "default": default,
    }
    with pytest.raises(Unsupported, match="nested"):
        table.alter([nested])
    binary = {"change": "add-column", "name": ["b"], "type": "binary", "nullable": True}
    for default in (
        {"current": "X'0g'"},
        {"current": "X'00'", "exists": {"type": "binary", "value": "*"}},
        {"current": "X'00'", "exists": {"type": "binary", "value": 7}},
        {"current": "X'00'", "exists": {"type": "string", "value": "AA=="}},
        {"current": "X'00'", "exists": {"type": "bytes", "value": "AA=="}},
    ):
        with pytest.raises(InvalidInput):
            table.alter([binary | {"default": default}])
    assert table.alter([binary]).schema.names == ("s", "b")
