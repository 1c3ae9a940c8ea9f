"""Merge, upsert and update from Python: the resulting rows, and refusals."""

from __future__ import annotations

import builtins
import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lakelog.catalog import (
    Catalog,
    CheckViolated,
    CommitConflict,
    NoSuchColumn,
    Table,
    Token,
    col,
)
from lakelog.catalog.core.schema import schema_from_spark
from lakelog.catalog.core.writes import merge as merging
from lakelog.catalog.core.writes.sql import engine as sql_engine
from lakelog.log.errors import InvalidInput, LakelogError, StorageError, Unsupported

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "n": pa.int32()})
NAN, OTHER_NAN = float("nan"), struct.unpack("d", struct.pack("Q", 0xFFF8000000000001))[0]


def source(*ids: int | None, **more: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **more})


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=repr)


def seen(table: Table) -> dict[int, tuple[Any, ...]]:
    rows = table.to_arrow().to_pylist()
    return {each.pop("id"): tuple(each.values()) for each in rows}


@pytest.fixture(params=["merge-on-read", "copy-on-write"])
def table(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    modes = {f"lakelog.write.{operation}.mode": request.param for operation in ("merge", "update")}
    table = catalog.create_table("t", SCHEMA, properties=modes)
    for ids in ([1, 2, 3], [4, 5]):
        n = pa.array(ids, pa.int32())
        table = table.append(pa.table({"id": ids, "name": [f"n{id}" for id in ids], "n": n}))
    return table


def table_of(catalog: Catalog, types: dict[str, str], *required: str, **metadata: Any) -> Table:
    """Return a table with columns of Spark's types."""
    fields = [
        {"name": name, "type": type, "nullable": name not in required, "metadata": metadata.get(name, {})}
        for name, type in types.items()
    ]
    return catalog.create_table("t", schema_from_spark({"type": "struct", "fields": fields}))


# What happens to rows


def test_an_upsert_updates_rows_by_their_keys_and_inserts_the_others(table: Table) -> None:
    table_after = table.upsert(source(2, 5, 6, name=["two", "five", "six"]), on="id")
    assert seen(table_after) == {
        1: ("n1", 1), 2: ("two", 2), 3: ("n3", 3), 4: ("n4", 4), 5: ("five", 5), 6: ("six", None)
    }  # fmt: skip
    assert table_after.version == table.version + 1
    assert next(iter(table_after.history())).operation == "merge"
    ids = table_after.scan(row_ids=True).to_arrow().sort_by("id")
    assert ids["_row_id"].to_pylist()[:5] == [0, 1, 2, 3, 4], "rows keep their ids"
    versions = dict(zip(ids["id"].to_pylist(), ids["_row_version"].to_pylist(), strict=True))
    assert versions == {1: 2, 2: 4, 3: 2, 4: 3, 5: 4, 6: 4}, "and what is only copied its version"


def test_the_first_clause_applies_whose_predicate_is_true(table: Table) -> None:
    table_after = (
        table.merge(source(1, 2, 3, 7, 8, x=[1, None, 30, 7, 80]), on="id")
        .when_matched_delete("source.x > 20")
        .when_matched_update({"name": "target.name || '!'", "n": "target.n + source.x"}, "source.x > 0")
        .when_matched_update({"name": None, "n": 0})
        .when_not_matched_insert({"id": "source.id", "name": "'much'"}, "source.x > 20")
        .when_not_matched_insert({"id": "-source.id", "n": 9})
        .when_not_matched_by_source_delete("target.id = 4")
        .when_not_matched_by_source_update({"name": "upper(target.name)"})
        .execute()
    )
    assert seen(table_after) == {1: ("n1!", 2), 2: (None, 0), 5: ("N5", 5), 8: ("much", None), -7: (None, 9)}


def test_conditions_that_are_null_are_not_true(table: Table) -> None:
    merge = table.merge(source(1, 2, None, 9, x=[None, 1, 1, None]), on="id")
    table_after = (
        merge.when_matched_delete("source.x = 1")
        .when_not_matched_insert_all("source.x = 1", except_cols=["x"])
        .execute()
    )
    assert sorted(table_after.to_arrow()["id"].to_pylist(), key=str) == [1, 3, 4, 5, None]


def test_rows_match_by_an_expression(table: Table) -> None:
    table_after = (
        table.merge(pa.table({"key": [0, 1, 4], "low": [0, 5, 0]}), "target.id = source.key + 1 AND n > low"
                    .replace("n >", "target.n >").replace("low", "source.low"))
        .when_matched_update({"name": "'hit'"})
        .execute()
    )  # fmt: skip
    assert {id for id, (name, _) in seen(table_after).items() if name == "hit"} == {1, 5}


def test_rows_match_by_a_range(table: Table) -> None:
    ranges = pa.table({"low": [2, 5], "high": [3, 9]})
    merge = table.merge(ranges, "target.id BETWEEN source.low AND source.high")
    assert seen(merge.when_matched_delete().execute()).keys() == {1, 4}


def test_a_merge_that_changes_nothing_makes_no_version(table: Table) -> None:
    merge = table.merge(source(9), on="id").when_matched_delete().when_not_matched_insert_all("source.id < 9")
    assert merge.execute().version == table.version
    assert table.upsert(source(), on="id").version == table.version
    assert table.update({"n": 1}, col("id") > 9).version == table.version


def test_an_update_sets_columns_of_rows_that_match(table: Table) -> None:
    table = table.update({"n": "n * 10 + id", "name": None}, where=col("id") > 3)
    assert seen(table) == {1: ("n1", 1), 2: ("n2", 2), 3: ("n3", 3), 4: (None, 44), 5: (None, 55)}
    table = table.update({"name": "'x'"})
    assert {name for name, _ in seen(table).values()} == {"x"}
    assert next(iter(table.history())).operation == "update"


def test_plain_values_are_set_without_duckdb(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_duckdb(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return imported(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    assert seen(table.update({"n": 7}, col("id") == 1))[1] == ("n1", 7)
    with pytest.raises(Unsupported, match="pip install 'duckdb<3,>=1.4'"):
        table.upsert(source(1), on="id")


def test_a_source_is_read_once_as_it_comes(table: Table) -> None:
    reads = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal reads
        for first in range(0, 100, 10):
            reads += 1
            yield pa.RecordBatch.from_pydict({"id": list(range(first, first + 10))})

    schema = pa.schema({"id": pa.int64()})
    table_after = table.upsert(pa.RecordBatchReader.from_batches(schema, batches()), on="id")
    assert reads == 10 and table_after.row_count == 100


def test_a_source_has_its_rows_where_none_of_its_columns_is_needed(table: Table) -> None:
    rows = source(7, 8)
    merged_table = table.merge(rows, on="1 = 0").when_not_matched_insert({"id": "9"}).execute()
    assert sorted(merged_table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 9, 9]
    assert seen(
        merged_table.merge(rows.slice(1), on="target.id = 9").when_matched_delete().execute()
    ) == seen(table)
    with pytest.raises(InvalidInput, match="matches several rows of the source"):
        table.refresh().merge(rows, on="target.id = 1").when_matched_update({"n": "7"}).execute()


def test_a_wide_table_takes_few_rows(catalog: Catalog) -> None:
    types = {"id": pa.int64(), **{f"c{at}": pa.list_(pa.int64()) for at in range(300)}}
    rows = pa.schema(types).empty_table()
    assert catalog.create_table("t", rows.schema).upsert(rows, on="id").to_arrow().num_rows == 0


def test_a_source_that_fails_is_the_error_and_nothing_is_changed(table: Table) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": [1]})
        raise StorageError("the disk is gone", location="there")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())
    with pytest.raises(StorageError, match="the disk is gone"):
        table.upsert(reader, on="id")
    assert table.refresh().version == table.version


def test_files_that_the_keys_rule_out_are_not_read(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA)
    for first in range(0, 50, 10):
        table = table.append(source(*range(first, first + 10)))
    store, prefix = table.table_head.tracked.store, table.table_head.tracked.prefix
    for path in table.plan(col("id") < 40)["path"].to_pylist():
        if path not in table.plan(col("id").is_in([12, 45]))["path"].to_pylist():
            store.delete([f"{prefix}/{path}"])
    table_after = table.upsert(source(12, 45, name=["x", "y"]), on="id")
    changed_rows = table_after.scan(filter=col("name").is_not_null()).to_arrow()
    assert sorted(changed_rows["id"].to_pylist()) == [12, 45]


# Keys


def test_one_row_that_matches_two_rows_of_the_source_is_refused(table: Table) -> None:
    twice = source(1, 1, 9, name=["a", "b", "c"])
    with pytest.raises(InvalidInput, match=r"matches several rows of the source.*rows 0 and 1"):
        table.merge(twice, "target.id = source.id").when_matched_update_all().execute()
    with pytest.raises(InvalidInput, match="matches several rows"):
        table.merge(twice, on="id").when_matched_delete("source.name = 'z'").execute()
    with pytest.raises(InvalidInput, match=r"several rows with the key \(1\)"):
        table.upsert(twice, on="id")
    assert table.refresh().version == table.version
    table_after = table.merge(twice, on="id").when_matched_delete().execute()
    assert 1 not in seen(table_after)


def test_two_new_rows_of_one_key_are_inserted_by_a_merge_and_refused_by_an_upsert(table: Table) -> None:
    twice = source(9, 9)
    with pytest.raises(InvalidInput, match="several rows with the key"):
        table.upsert(twice, on="id")
    table_after = table.merge(twice, on="id").when_not_matched_insert_all().execute()
    assert table_after.to_arrow()["id"].to_pylist().count(9) == 2


UTC = dt.UTC
# A type of the table's column and its values, a type of the source's and its values, and which of the former match.
KEYS: dict[str, tuple[pa.DataType, list[Any], pa.DataType, list[Any], list[int]]] = {
    "floats as in Spark": (
        pa.float64(), [NAN, 0.0, -0.0, 1.5, None], pa.float64(), [OTHER_NAN, -0.0, 1.5, None], [0, 1, 2, 3]
    ),
    "float and double": (pa.float32(), [0.1, 0.5], pa.float64(), [0.1, 0.5], [1]),
    "only NaN": (pa.float64(), [NAN, 1.0], pa.float32(), [NAN], [0]),
    "integers of other widths": (pa.int8(), [1, -1], pa.uint64(), [1, 2**64 - 1], [0]),
    "decimals of other scales": (
        pa.decimal128(10, 2), [Decimal("1.10"), Decimal("2.00")], pa.decimal128(12, 4),
        [Decimal("1.1000"), Decimal("2.0001")], [0],
    ),
    "decimal and integer": (pa.decimal128(20, 0), [Decimal(2**63), Decimal(7)], pa.int64(), [7], [1]),
    "texts with their blanks": (pa.string(), ["a", "a ", "ä", ""], pa.large_string(), ["a ", "ä", ""], [1, 2, 3]),
    "texts of a dictionary": (pa.string(), ["a", "b"], pa.dictionary(pa.int8(), pa.string()), ["b"], [1]),
    "bytes": (pa.binary(), [b"a", b"\0"], pa.binary(1), [b"\0"], [1]),
    "booleans": (pa.bool_(), [True, False, None], pa.bool_(), [False, None], [1]),
    "days": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1, 1, 1)], pa.date64(), [dt.date(1, 1, 1)], [1]),
    "days that Python does not have": (pa.date32(), [2**31 - 1, 5], pa.date32(), [2**31 - 1], [0]),
    "times": (
        pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 2, tzinfo=UTC)],
        pa.timestamp("ns", "Europe/Berlin"), [dt.datetime(2024, 1, 2, tzinfo=UTC)], [1],
    ),
    "local times": (pa.timestamp("us"), [dt.datetime(2024, 1, 1)], pa.timestamp("s"), [dt.datetime(2024, 1, 1)], [0]),
    "times of day": (pa.time64("us"), [dt.time(1), dt.time(2)], pa.time32("s"), [dt.time(2)], [1]),
}  # fmt: skip


@pytest.mark.parametrize("what", KEYS)
def test_keys_are_compared_as_what_they_are(catalog: Catalog, what: str) -> None:
    type, values, of_source, given, hit = KEYS[what]
    table = catalog.create_table("t", pa.schema({"k": type, "at": pa.int64()}))
    for at, value in enumerate(values):
        table = table.append(pa.table({"k": pa.array([value], type), "at": [at]}))
    keys = pa.table({"k": pa.array(given, of_source)})
    for name, on in (("names", "k"), ("text", "target.k = source.k")):
        table.create_branch(name)
        branch = catalog.load_table("t", ref=name)
        table_after = branch.merge(keys, on=on).when_matched_update({"at": -1}).execute()
        assert sorted(table_after.to_arrow()["at"].to_pylist()).count(-1) == len(hit)
        assert sorted(set(range(len(values))) - set(table_after.to_arrow()["at"].to_pylist())) == hit


@pytest.mark.parametrize("removed", [None, "fenced", "_DISABLED"])
def test_filters_on_floats_stay_with_duckdb(
    catalog: Catalog, removed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if removed == "fenced":
        monkeypatch.setattr(merging, "fenced", lambda stream: stream)
    elif removed is not None:
        monkeypatch.setattr(sql_engine, removed, "join_order,build_side_probe_side")
    schema = pa.schema({"k": pa.float64(), "n": pa.int64()})
    table = catalog.create_table("t", schema).append(
        pa.table({"k": [NAN, 0.0, 1.5, -1.0], "n": [1, 2, 3, 4]})
    )
    keys = pa.table({"k": [OTHER_NAN, -0.0, 1.5, -1.0]})
    found_table = (
        table.merge(keys, on="target.k = source.k AND target.k >= 0.0").when_matched_delete().execute()
    )
    # DuckDB 2 would do without.
    is_needed = int(duckdb.__version__.split(".")[0]) < 2
    assert (found_table.to_arrow()["n"].to_pylist() == [4]) == (removed is None or not is_needed)


def test_keys_without_values_match_nothing(catalog: Catalog) -> None:
    schema = pa.schema({"k": pa.string(), "n": pa.int64()})
    table = catalog.create_table("t", schema).append(pa.table({"k": ["a", None], "n": [1, 2]}))
    empty_table = pa.table({"k": pa.nulls(1), "n": [3]})
    assert table.merge(empty_table, on="k").when_matched_delete().execute().version == table.version
    assert sorted(table.upsert(empty_table, on="k").to_arrow()["n"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("type", "of_source"),
    [
        (pa.int64(), pa.float64()),
        (pa.float32(), pa.int32()),
        (pa.string(), pa.int64()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us")),
    ],
)
def test_keys_that_would_be_cast_are_refused(
    catalog: Catalog, type: pa.DataType, of_source: pa.DataType
) -> None:
    table = catalog.create_table("t", pa.schema({"k": type}))
    with pytest.raises(InvalidInput, match="rows cannot be matched by k.*cast the source's column"):
        table.upsert(pa.table({"k": pa.array([], of_source)}), on="k")


@pytest.mark.parametrize("type", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_keys_that_have_parts_are_refused(catalog: Catalog, type: pa.DataType) -> None:
    table = catalog.create_table("t", pa.schema({"k": type}))
    with pytest.raises(Unsupported, match="rows cannot be matched by the column k of type .*simple types"):
        table.upsert(pa.table({"k": pa.array([], type)}), on="k")


# Values


def test_values_of_all_types_come_through_unchanged(catalog: Catalog) -> None:
    kinds: dict[str, tuple[pa.DataType, Any]] = {
        "double": (pa.float64(), OTHER_NAN), "float": (pa.float32(), -0.0), "long": (pa.int64(), -(2**63)),
        "decimal": (pa.decimal128(38, 10), Decimal("-12345678901234567890.0123456789")),
        "text": (pa.string(), "ä\0😀 "), "bytes": (pa.binary(), b"\xff\0"), "day": (pa.date32(), 2**31 - 1),
        "instant": (pa.timestamp("us", "UTC"), 2**63 - 1), "local": (pa.timestamp("us"), -(2**63)),
        "time": (pa.time64("us"), dt.time(23, 59, 59, 999999)), "span": (pa.duration("us"), -5),
        "list": (pa.list_(pa.string()), ["a", None]), "map": (pa.map_(pa.string(), pa.int32()), [("a", None)]),
        "struct": (pa.struct([("a", pa.duration("us")), ("b", pa.list_(pa.float64()))]), {"a": None, "b": [1.5]}),
    }  # fmt: skip
    schema = pa.schema([("id", pa.int64()), *((name, type) for name, (type, _) in kinds.items())])
    columns = {name: pa.array([value], type) for name, (type, value) in kinds.items()}
    nulls = {name: pa.nulls(1, type) for name, (type, _) in kinds.items()}
    values = pa.table({"id": [1], **columns}, schema=schema)
    table = catalog.create_table("t", schema).append(pa.table({"id": [1], **nulls}, schema=schema))
    table = table.upsert(values, on="id").upsert(pa.table({"id": [2], **columns}, schema=schema), on="id")
    table = table.merge(source(1), on="id").when_matched_update({"id": "target.id"}).execute()
    for id in (1, 2):
        rows = table.scan(filter=col("id") == id).to_arrow()
        for name, expected in columns.items():
            (one,) = rows[name].chunks
            assert one.buffers()[-1] is None or one.equals(expected) or bits(one) == bits(expected), name


def bits(array: pa.Array) -> bytes:
    return bytes(array.buffers()[1])[: array.nbytes]


def test_new_values_are_held_against_the_table(catalog: Catalog) -> None:
    table = table_of(catalog, {"id": "long", "word": "varchar(3)", "flag": "char(2)", "n": "short"}, "id")
    small = {
        "kind": "check",
        "name": "small",
        "columns": [["n"]],
        "sql": "n < 100",
        "predicate": (col("n") < 100).to_json(),
    }
    table = table.alter([{"change": "add-constraint", "constraint": small}])
    table = table.upsert(pa.table({"id": [1], "word": ["ab     "], "flag": ["x"], "n": [1]}), on="id")
    assert rows_of(table) == [{"id": 1, "word": "ab ", "flag": "x ", "n": 1}]
    for values, error, why in (
        ({"id": None}, InvalidInput, "id is NOT NULL"),
        ({"word": "'abcd'"}, InvalidInput, "shorten it"),
        ({"n": 100}, CheckViolated, "small CHECK"),
        ({"n": "target.n + 99"}, CheckViolated, "small CHECK"),
        ({"n": 40_000}, InvalidInput, "does not fit"),
        ({"n": "1e9"}, InvalidInput, "out of its range"),
        ({"n": "target.word"}, InvalidInput, "does not assign"),
    ):
        with pytest.raises(error, match=why):
            table.merge(source(1), on="id").when_matched_update(values).execute()
    with pytest.raises(InvalidInput, match="no column id, which is NOT NULL"):
        table.merge(source(7), on="id").when_not_matched_insert({"n": 5}).execute()
    table = table.merge(source(1), on="id").when_matched_update({"word": "target.flag"}).execute()
    assert rows_of(table)[0]["word"] == "x "
    # CHAR is compared padded by Spark.
    for refused in ({"on": "flag"}, {"on": "target.flag = 'x'"}):
        with pytest.raises(Unsupported, match="CHAR is not compared here as in Spark"):
            table.merge(pa.table({"flag": ["x"]}), **refused).when_matched_delete().execute()


def test_a_merge_keeps_and_takes_identity_values(catalog: Catalog) -> None:
    identity = {"identity.start": 1, "identity.step": 1, "identity.allowExplicitInsert": False}
    table = table_of(catalog, {"id": "long", "key": "string"}, id=identity)
    table = table.append(pa.table({"key": ["a", "b"]}))
    table = table.upsert(pa.table({"key": ["b", "c"]}), on="key")
    assert rows_of(table) == [{"id": 1, "key": "a"}, {"id": 2, "key": "b"}, {"id": 3, "key": "c"}]
    with pytest.raises(InvalidInput, match="GENERATED ALWAYS AS IDENTITY"):
        table.update({"id": 7})


# What is refused before a row is read


@pytest.mark.parametrize(
    ("predicate", "error", "why"),
    [
        ("source.x >", InvalidInput, "is not an expression in SQL"),
        ("source.id = 1) OR (TRUE", None, ""),
        ("1), (2", InvalidInput, "not one expression"),
        ("TRUE) FROM range(3) WHERE (TRUE", InvalidInput, "not one expression"),
        ("id = 1", InvalidInput, "names id: name columns as target.<column> and source.<column> here"),
        ("target.nope = 1", NoSuchColumn, "nope"),
        ("source.nope = 1", InvalidInput, "the source has no column nope: its columns are id"),
        ("source.id IN (SELECT 1)", Unsupported, "a subquery"),
        ("random() < 1", Unsupported, "the function random, which does not have one result for a row"),
        ("sum(source.id) > 1", Unsupported, "the function sum"),
        ("row_number() OVER () = 1", Unsupported, "a window function"),
        ("nonsense(source.id)", InvalidInput, "the function nonsense, which DuckDB does not have"),
        ("target.name COLLATE NOCASE = 'a'", Unsupported, "a collation"),
        ("source.id = $1", Unsupported, "a parameter"),
        ("target.name > 1 + source.id", InvalidInput, "DuckDB cannot compute the change"),
        ("read_text('/etc/passwd') = ''", Unsupported, "the function read_text"),
    ],
)
def test_predicates_that_make_no_sense_are_refused(
    table: Table, predicate: str, error: type[LakelogError] | None, why: str
) -> None:
    merge = table.merge(source(1), on="id").when_matched_delete(predicate)
    if error is None:
        merge.execute()
        return
    with pytest.raises(error, match=why):
        merge.execute()
    assert table.refresh().version == table.version


def test_clauses_that_make_no_sense_are_refused(table: Table) -> None:
    merge = table.merge(source(1, x=[1]), on="id")
    for refused, why in (
        (merge, "the merge has no clauses"),
        (merge.when_matched_delete().when_matched_update({"n": 1}), "only the last matched clause"),
        (merge.when_not_matched_insert_all(), "the source has x, which the table does not have"),
        (merge.when_not_matched_insert_all(except_cols=["y"]), "neither the source nor the table has the column y"),
        (merge.when_matched_update({}), "the update has no values"),
        (merge.when_matched_update({"n": 1, "N": 2}), "the column n gets two values"),
        (merge.when_not_matched_insert({"n": "target.n"}), "names target.n: name columns as source"),
        (merge.when_not_matched_by_source_delete("source.x = 1"), "names source.x: name columns as target"),
        (table.merge(source(1), on=[]).when_matched_delete(), "no columns to match rows by"),
        (table.merge(source(1), on=["n"]).when_matched_delete(), "the source has no column n"),
        (table.merge(pa.table([[1], [1]], ["id", "ID"]), on="id").when_matched_delete(), "two columns named ID"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=why):
            refused.execute()
    for bad, why in (({}, "sets no column"), ({"n": "target.n +"}, "not an expression")):
        with pytest.raises(InvalidInput, match=why):
            table.update(bad)
    with pytest.raises(InvalidInput, match="the past is read-only"):
        table.at(version=2).upsert(source(1), on="id")


@pytest.mark.parametrize("value", [object(), col("id"), 2**70, [1, "a"]])
def test_values_that_no_row_can_have_are_refused(table: Table, value: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be a value of a row"):
        table.update({"n": value})
    with pytest.raises(InvalidInput, match="cannot be a value of a row"):
        table.merge(source(1), on="id").when_matched_update({"n": value}).execute()


def test_what_is_not_a_name_or_a_dict_is_refused(table: Table) -> None:
    for on in (None, [1], col("id") == 1):
        with pytest.raises(InvalidInput, match="columns to match rows by"):
            table.upsert(source(1), on=on)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="give a dict"):
        table.update([("n", 1)])  # type: ignore[arg-type]
    table_after = (
        table.merge(source(1, name=["x"]), on="id").when_matched_update_all(except_cols="name").execute()
    )
    assert seen(table_after)[1] == ("n1", 1)


def test_rows_match_by_a_quotient_and_a_divisor_of_zero_is_an_error(table: Table) -> None:
    on = "target.id = 6 / source.x"
    quotient = table.merge(pa.table({"x": [2, 4, None]}), on=on).when_matched_delete()
    assert seen(quotient.execute()).keys() == {1, 2, 4, 5}
    with pytest.raises(InvalidInput, match="division by zero"):
        table.merge(pa.table({"x": [2, 0]}), on=on).when_matched_delete().execute()


def test_values_that_microseconds_cannot_hold_are_refused(catalog: Catalog) -> None:
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "at": pa.timestamp("us")}))
    with pytest.raises(InvalidInput, match=r"the data's column at.*cannot hold"):
        table.upsert(source(1, at=pa.array([1], pa.timestamp("ns"))), on="id")
    assert rows_of(table.upsert(source(1, at=pa.array([1000], pa.timestamp("ns"))), on="id"))


# With others


def test_merges_of_other_keys_both_happen_and_of_one_key_only_one(table: Table) -> None:
    first, second, third = (table.merge(source(id, name=["new"]), on="id") for id in (7, 8, 8))
    for merge in (first, second):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    with pytest.raises(CommitConflict):
        third.when_matched_update_all().when_not_matched_insert_all().execute()
    for id in (1, 2):
        table.upsert(source(id, name=["one"]), on="id")
    with pytest.raises(CommitConflict):
        table.upsert(source(2, name=["two"]), on="id")
    with pytest.raises(CommitConflict):
        table.update({"n": "n + 1"}, col("id") == 2)
    table_after = table.update({"n": "n + 1"}, col("id") == 3)
    assert (
        table_after.row_count == 7
        and seen(table_after)[2] == ("one", 2)
        and seen(table_after)[3] == ("n3", 4)
    )
    assert {
        finding.kind for finding in Catalog(table_after.table_head.logs.warehouse).fsck(deep=True).found
    } <= {"data-file-unused"}


def test_a_merge_that_is_retried_happens_once(catalog: Catalog, table: Table) -> None:
    token: Token = catalog.token("t")
    for _ in range(2):
        table.upsert(source(9), on="id", token=token)
    assert table.refresh().row_count == 6


def test_a_transaction_merges_into_what_it_has_written(catalog: Catalog, table: Table) -> None:
    with catalog.transaction() as tx:
        inside = tx.load_table("t").append(source(6, name=["six"]))
        inside = inside.upsert(source(6, 7, name=["SIX", "seven"]), on="id")
        inside.merge(source(1, 7), on="id").when_matched_update({"name": "target.name || '+'"}).execute()
    state = seen(catalog.load_table("t"))
    assert state[6][0] == "SIX" and state[7][0] == "seven+" and state[1][0] == "n1+" and len(state) == 7


def test_a_branch_is_merged_into_by_itself(catalog: Catalog, table: Table) -> None:
    table.create_branch("dev")
    branch = catalog.load_table("t", ref="dev")
    branch.upsert(source(1, name=["dev"]), on="id")
    assert seen(table.refresh())[1] == ("n1", 1)
