"""Files of clients are taken only if every reader reads them as lakelog does, and their partition values hold."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.commits.handwriting import HandWriter, column, part
from tests.integration.iceberg.commits.test_forged_commits import is_clean
from tests.integration.iceberg.readers import by_duckdb, by_pyiceberg

ID = column(1, "id", "long")
STRUCT = column(2, "v", {"type": "struct", "fields": [column(3, "x", "int")]})
STRICT = column(2, "v", {"type": "struct", "fields": [column(3, "x", "int", required=True)]})
LIST = column(2, "v", {"type": "list", "element-id": 3, "element": "int", "element-required": False})
FULL_LIST = column(2, "v", {"type": "list", "element-id": 3, "element": "int", "element-required": True})
MAP = column(
    2,
    "v",
    {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value": "string", "value-required": False},
)


def committed(client: HandWriter, field: pa.Field, values: list[Any], **how: Any) -> tuple[int, Any]:
    """Commit a file with the column 1, `id`, and another column."""
    schema = pa.schema([part("id", pa.int64(), 1), field])
    rows = pa.Table.from_arrays(
        [pa.array(range(len(values)), pa.int64()), pa.array(values, field.type)], schema=schema
    )
    return client.commit([client.entry(client.file(rows, **how))])


def struct_of(*fields: pa.Field, id: int | None = 2) -> pa.Field:
    return part("v", pa.struct(list(fields)), id)


def check_same(client: HandWriter) -> None:
    """Check that lakelog, pyiceberg and DuckDB read the same rows."""
    rows = client.catalog.load_table("ns.t").scan().to_arrow().to_pylist()
    url, _ = client.loaded()
    for read in (by_pyiceberg, by_duckdb):
        assert sorted(map(repr, read(url).to_pylist())) == sorted(map(repr, rows))
    assert is_clean(client.catalog)


X = pa.int32()
KEY, VALUE = (
    (lambda id: part("key", pa.string(), id, nullable=False)),
    (lambda id: part("value", pa.string(), id)),
)
NESTED = [
    (STRUCT, struct_of(part("x", X, 3)), [{"x": 1}, {"x": None}, None], None),
    (STRUCT, struct_of(part("x", pa.int8(), 3)), [{"x": 1}], None),
    (STRUCT, struct_of(part("x", pa.int64(), 3)), [{"x": 1 << 40}], "int64 for v.x"),
    (STRUCT, struct_of(part("x", pa.string(), 3)), [{"x": "q"}], "string for v.x"),
    (STRUCT, struct_of(part("x", pa.list_(part("element", X, 9)), 3)), [{"x": [1]}], "has the id 9"),
    (STRUCT, struct_of(part("x", X, None)), [{"x": 1}], "has no id for v.x"),
    (STRUCT, struct_of(part("x", X, 3), part("y", X, None)), [{"x": 1, "y": 2}], "has no id for v.y"),
    (STRUCT, struct_of(part("x", X, 3), part("y", X, 3)), [{"x": 1, "y": 2}], "has the id 3 twice"),
    (STRUCT, struct_of(part("x", X, 3), part("y", X, 4)), [{"x": 1, "y": 2}], "has the id 4"),
    (STRUCT, part("x", X, 3), [1], "has v.x in x"),
    (STRUCT, part("v", X, 2), [1], "int32 for v"),
    (STRICT, struct_of(part("x", X, 3, nullable=False)), [{"x": 1}, None], None),
    (STRICT, struct_of(part("x", X, 3)), [{"x": None}], "may have NULLs in v.x"),
    (LIST, part("v", pa.list_(part("element", X, 3)), 2), [[1, None], [], None], None),
    (LIST, part("v", pa.list_(part("element", X, None)), 2), [[1, 2]], "has no id for v.element"),
    (LIST, part("v", pa.list_(part("element", pa.string(), 3)), 2), [["1"]], "string for v.element"),
    (FULL_LIST, part("v", pa.list_(part("element", X, 3)), 2), [[1, None]], "may have NULLs in v.element"),
    (MAP, part("v", pa.map_(KEY(3), VALUE(4)), 2), [[("a", "b")]], None),
    (MAP, part("v", pa.map_(KEY(4), VALUE(3)), 2), [[("a", "b")]],
     "has the id 4 for v.key"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "field", "values", "words"), NESTED)
def test_parts_of_columns_have_the_tables_ids_and_types(
    tmp_path: Path, wanted: Any, field: pa.Field, values: list[Any], words: str | None
) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, wanted])[0] == 200
    status, answer = committed(client, field, values)
    if words is None:
        assert status == 200, answer
        check_same(client)
    else:
        assert status == 400 and words in answer["message"], answer
        assert client.rows() == []


UTC = pa.timestamp("us", "UTC")
TYPES: list[tuple[str, pa.DataType, Any, bool]] = [
    ("int", pa.int16(), 5, True),
    ("int", pa.int64(), 5, False),
    ("int", pa.uint32(), 5, False),
    ("long", pa.int32(), 5, True),
    ("double", pa.float32(), 0.1, True),
    ("double", pa.float16(), 0.5, False),
    ("double", pa.int32(), 5, False),
    ("float", pa.float64(), 0.1, False),
    ("decimal(10, 2)", pa.decimal128(8, 2), Decimal("1.23"), True),
    ("decimal(10, 2)", pa.decimal128(10, 1), Decimal("1.2"), False),
    ("decimal(30, 2)", pa.int64(), 7, False),
    ("timestamp", pa.timestamp("us"), dt.datetime(1960, 1, 2, 3), True),
    ("timestamp", pa.timestamp("ms"), dt.datetime(1960, 1, 2, 3), True),
    ("timestamp", UTC, dt.datetime(1960, 1, 2, 3, tzinfo=dt.UTC), False),
    ("timestamp", pa.date32(), dt.date(1960, 1, 2), False),
    ("timestamptz", UTC, dt.datetime(1960, 1, 2, 3, tzinfo=dt.UTC), True),
    ("timestamptz", pa.timestamp("us"), dt.datetime(1960, 1, 2, 3), False),
    (
        "timestamptz",
        pa.timestamp("us", "Europe/Berlin"),
        dt.datetime(1960, 1, 2, 3, tzinfo=dt.UTC),
        False,
    ),
    ("date", pa.timestamp("us"), dt.datetime(1960, 1, 2), False),
    ("time", pa.time64("us"), dt.time(1, 2, 3, 4), True),
    ("time", pa.time32("ms"), dt.time(1, 2, 3), False),
    ("string", pa.large_string(), "ä", True),
    ("string", pa.binary(), b"\xff", False),
    ("binary", pa.binary(), b"\xff", True),
    ("binary", pa.binary(2), b"\xff\x00", False),
]


@pytest.mark.parametrize(("wanted", "type", "value", "is_taken"), TYPES)
def test_columns_have_a_type_that_all_readers_read_as_the_tables(
    tmp_path: Path, wanted: str, type: pa.DataType, value: Any, is_taken: bool
) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, column(2, "v", wanted)])[0] == 200
    status, answer = committed(client, part("v", type, 2), [value, None])
    assert status == (200 if is_taken else 400), answer
    if is_taken:
        check_same(client)
    else:
        assert "write the table's type" in answer["message"] and client.rows() == []


def test_times_of_the_deprecated_type_are_refused(tmp_path: Path) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, column(2, "v", "timestamp")])[0] == 200
    status, error = committed(
        client,
        part("v", pa.timestamp("us"), 2),
        [dt.datetime(2020, 1, 1)],
        use_deprecated_int96_timestamps=True,
    )
    assert status == 400 and "INT96" in error["message"]


def test_two_columns_of_the_same_id_are_refused(tmp_path: Path) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, column(2, "v", "long")])[0] == 200
    status, error = committed(client, part("v", pa.int64(), 1), [7])
    assert status == 400 and "has the id 1 twice" in error["message"]


EARLY = dt.datetime(1969, 12, 31, 12)
PARTITIONS: list[tuple[str, str, list[Any], Any, str | None]] = [
    ("string", "identity", ["b", "b"], "b", None),
    ("string", "identity", ["b"], "a", "from 'b' to 'b'"),
    ("string", "identity", ["a", "b"], "a", "from 'a' to 'b'"),
    ("string", "identity", ["b"], None, "1 of its rows have a value"),
    ("string", "identity", [None, None], None, None),
    ("string", "identity", ["b", None], "b", "1 of its rows have none"),
    ("string", "identity", ["z" * 70], "z" * 70, None),
    ("string", "identity", ["z" * 70], "a" * 70, "is said to have"),
    ("string", "truncate[2]", ["abc", "abd"], "ab", None),
    ("string", "truncate[2]", ["abc"], "abc", "more than 2 characters"),
    ("string", "truncate[2]", ["ab" + "z" * 70, "ab" + "y" * 70], "ab", None),
    ("string", "truncate[2]", ["ac" + "z" * 70], "ab", "is said to have"),
    ("long", "bucket[4]", [1, 1], 0, None),
    ("long", "bucket[4]", [1], 3, "from 1 to 1"),
    ("long", "bucket[4]", [1, 7], -7, "the buckets 0 to 3"),
    ("timestamp", "day", [EARLY], -1, None),
    ("timestamp", "day", [EARLY], 0, "is said to have"),
    ("timestamp", "hour", [EARLY], -12, None),
    ("timestamp", "month", [EARLY, dt.datetime(1970, 1, 1)], -1, "is said to have"),
    ("date", "year", [dt.date(1960, 1, 1)], -10, None),
    ("date", "identity", [dt.date(1960, 1, 1)], -3653, None),
    ("decimal(9, 2)", "identity", [Decimal("-0.07")], Decimal("-0.07"), None),
    ("decimal(9, 2)", "identity", [Decimal("-0.07")], Decimal("0.07"), "is said to have"),
]
ARROW_TYPES = {
    "string": pa.string(), "long": pa.int64(), "timestamp": pa.timestamp("us"), "date": pa.date32(),
    "decimal(9, 2)": pa.decimal128(9, 2),
}  # fmt: skip


@pytest.mark.parametrize(("type", "transform", "values", "said", "words"), PARTITIONS)
def test_partition_values_are_those_of_the_rows(
    tmp_path: Path, type: str, transform: str, values: list[Any], said: Any, words: str | None
) -> None:
    client = HandWriter(str(tmp_path / "w"))
    partitioning = {"source-id": 2, "field-id": 1000, "name": "p", "transform": transform}
    assert client.create([ID, column(2, "v", type)], [partitioning])[0] == 200
    arrow_type = ARROW_TYPES[type]
    schema = pa.schema([part("id", pa.int64(), 1), part("v", arrow_type, 2)])
    arrays = [pa.array(range(len(values)), pa.int64()), pa.array(values, arrow_type)]
    file = client.file(pa.Table.from_arrays(arrays, schema=schema))
    status, answer = client.commit([client.entry(file, {"p": said})])
    if words is None:
        assert status == 200, answer
        check_same(client)
    else:
        assert status == 400 and words in answer["message"], answer
        assert client.rows() == []


def test_a_check_is_not_lost_when_its_column_gets_another_name(tmp_path: Path) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create()[0] == 200
    with client.catalog.load_table("ns.t").alteration() as change:
        change.add_constraint("positive", check="id > 0")
    for columns in (
        [column(1, "key", "long"), column(2, "s", "string")],
        [column(1, "key", "long"), column(2, "s", "string"), column(3, "id", "long")],
        [column(2, "s", "string")],
    ):
        status, error = client.redefine(*columns)
        assert status == 400 and "the constraint positive needs it" in error["message"]
    # Other columns are as free as before.
    assert client.redefine(column(1, "id", "long"), column(2, "t", "string"))[0] == 200
    assert client.commit([client.ids(5)])[0] == 200
    status, error = client.commit([client.ids(-5)])
    assert status == 400 and "does not prove" in error["message"]
    assert client.rows() == [5]


def test_a_part_of_the_keys_of_a_map_is_not_dropped(tmp_path: Path) -> None:
    def keyed(*names: str) -> dict[str, Any]:
        fields = [column(number, name, "int") for number, name in enumerate(names, start=5)]
        keys = {"type": "struct", "fields": fields}
        return column(
            2,
            "m",
            {"type": "map", "key-id": 3, "key": keys, "value-id": 4, "value": "int", "value-required": False},
        )

    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, keyed("a", "b")])[0] == 200
    status, error = client.redefine(ID, keyed("a"))
    assert status == 400 and "two keys of a map may become one" in error["message"]
    assert client.redefine(ID)[0] == 200


def rewritten(client: HandWriter, path: str, columns: list[pa.Field], by: str) -> tuple[int, Any]:
    """Commit a new file of these columns in the place of the rows of `path`, by its removal or by a vector."""
    rows = pa.table({field.name: pa.array([7], field.type) for field in columns}, schema=pa.schema(columns))
    new = client.entry(client.file(rows))
    if by == "removal":
        return client.commit([new], keeps=lambda record: False)
    return client.commit([new], [client.vector(f"{client.metadata['location']}/{path}", [0])])


@pytest.mark.parametrize("by", ["removal", "vector"])
@pytest.mark.parametrize("writer", ["client", "lakelog"])
def test_rows_do_not_lose_a_column_that_a_rollback_brings_back(tmp_path: Path, by: str, writer: str) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create()[0] == 200
    table = client.catalog.load_table("ns.t")
    if writer == "client":
        assert client.commit([client.ids(7)])[0] == 200
    else:
        table.append(pa.table({"id": [7], "s": ["7"]}))
    version = client.catalog.load_table("ns.t").version
    assert client.redefine(ID)[0] == 200
    (file,) = client.catalog.load_table("ns.t").table_head.all_files().to_pylist()
    present = client.present()
    client.catalog.load_table("ns.t").rollback_to_version(version)
    assert client.present() == present  # no requirement of a client sees that the columns changed
    status, error = rewritten(client, file["path"], [part("id", pa.int64(), 1)], by)
    assert status == 409 and "lacks the column s" in error["message"], error
    assert client.catalog.load_table("ns.t").scan().to_arrow().to_pylist() == [{"id": 7, "s": "7"}]
    both = [part("id", pa.int64(), 1), part("s", pa.string(), 2)]
    rows = pa.table({"id": [8], "s": ["8"]}, schema=pa.schema(both))
    assert client.commit([client.entry(client.file(rows))], keeps=lambda record: False)[0] == 200
    check_same(client)


def test_maps_do_not_come_without_a_part_of_their_keys(tmp_path: Path) -> None:
    keyed = {
        "type": "map",
        "key-id": 3,
        "key": {"type": "struct", "fields": [column(5, "a", "int")]},
        "value-id": 4,
        "value": "int",
        "value-required": False,
    }
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, column(2, "m", keyed)])[0] == 200
    table = client.catalog.load_table("ns.t")
    wide = table.alter([{"change": "add-column", "name": ["m", "key", "b"], "type": "integer"}])
    ids = {path: field.id for path, field in wide.schema.walk()}
    key = pa.struct([part(name, pa.int32(), ids["m", "key", name]) for name in ("a", "b")])
    maps = pa.map_(
        part("key", key, ids["m", "key"], nullable=False), part("value", pa.int32(), ids["m", "value"])
    )
    columns = pa.schema([part("id", pa.int64(), ids["id",]), part("m", maps, ids["m",])])
    rows = [{"id": 1, "m": [({"a": 1, "b": 1}, 1), ({"a": 1, "b": 2}, 2)]}]
    wide.rollback_to_version(table.version)
    status, error = client.commit([client.entry(client.file(pa.Table.from_pylist(rows, columns)))])
    assert (
        status == 400 and "has m.key.b, which the keys of that map do not have any more" in error["message"]
    ), error
    assert client.rows() == []


def test_rows_do_not_lose_a_field_of_a_struct(tmp_path: Path) -> None:
    struct = column(2, "v", {"type": "struct", "fields": [column(3, "x", "int"), column(4, "y", "int")]})
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID, struct])[0] == 200
    full, short = (
        [part("id", pa.int64(), 1), part("v", pa.struct(fields), 2)]
        for fields in ([part("x", X, 3), part("y", X, 4)], [part("x", X, 3)])
    )
    rows = pa.table({"id": [7], "v": [{"x": 1, "y": 2}]}, schema=pa.schema(full))
    assert client.commit([client.entry(client.file(rows))])[0] == 200
    shorter = pa.table({"id": [7], "v": [{"x": 1}]}, schema=pa.schema(short))
    status, error = client.commit([client.entry(client.file(shorter))], keeps=lambda record: False)
    assert status == 409 and "lacks the column v.y" in error["message"], error


def test_a_file_may_lack_a_column_that_no_row_has(tmp_path: Path) -> None:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create([ID])[0] == 200
    client.catalog.load_table("ns.t").append(pa.table({"id": [7]}))
    assert client.redefine(ID, column(2, "s", "string"))[0] == 200
    (file,) = client.catalog.load_table("ns.t").table_head.all_files().to_pylist()
    assert rewritten(client, file["path"], [part("id", pa.int64(), 1)], "removal")[0] == 200
    # A new row has no value to lose.
    client.catalog.load_table("ns.t").append(pa.table({"id": [8], "s": ["8"]}))
    new = pa.table({"id": [9]}, schema=pa.schema([part("id", pa.int64(), 1)]))
    assert client.commit([client.entry(client.file(new))])[0] == 200
    assert client.rows() == [7, 8, 9]
    check_same(client)
