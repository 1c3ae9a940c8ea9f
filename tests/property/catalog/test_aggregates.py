"""Aggregates from metadata are those of the rows, or none: held against Arrow's own over all rows that are read."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.catalog.rows_changed import positions
from tests.property.examples import examples

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.files.data_file import ColumnStats, DataFile
from lakelog.catalog.core.planning.aggregates import Aggregate

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "n": pa.int32(),
        "l": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.binary(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "m": pa.decimal128(20, 2),
        "f": pa.bool_(),
        "deep": pa.struct({"a": pa.int32()}),
    }
)
LAST = "\U0010ffff"
TEXTS = st.sampled_from(
    ["", "a", "b" * 31, "b" * 32, "b" * 33, "ä" * 40, LAST * 33, f"z{LAST}", "a" + LAST * 40]
)
VALUES = {
    "k": st.sampled_from(["p", "q", "r" * 40]),
    "n": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "x": st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -1.5]),
    "s": TEXTS,
    "b": st.binary(max_size=40),
    "d": st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "t": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)).map(
        lambda t: t.replace(tzinfo=dt.UTC)
    ),
    "m": st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-2)),
    "f": st.booleans(),
    "deep": st.integers(0, 5).map(lambda a: {"a": a}),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=8
)


def is_same(one, other) -> bool:
    return one == other or (one != one and other != other)


def truth(rows: pa.Table, wanted: Aggregate):
    if wanted.column is None:
        return rows.num_rows
    column = rows[wanted.column]
    if wanted.kind == "count":
        return len(column) - column.null_count
    values = [value for value in column.to_pylist() if value is not None]
    return (min if wanted.kind == "min" else max)(values, default=None)


@settings(max_examples=examples(60, full=500))
@given(
    parts=st.lists(ROWS, max_size=4),
    changes=st.booleans(),
    partitioning=st.sampled_from([(), ("k",), ("k", "bucket"), ("n",)]),
    later=st.integers(0, 9),
    gone=st.sets(st.integers(0, 7), max_size=3),
)
def test_aggregates_are_those_of_the_rows_or_none(parts, changes, partitioning, later, gone):
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    bucket = {"transform": "bucket", "args": [3], "column": ["l"]}
    table = catalog.create_table(
        "t", SCHEMA, partition_by=[bucket if name == "bucket" else name for name in partitioning]
    )
    for place, rows in enumerate(parts):
        data = pa.Table.from_pylist(rows, SCHEMA)
        if changes and place >= 1:
            if place == 1:
                table = table.alter(CHANGES)
            data = data.set_column(1, "n", data["n"].cast(pa.int64()))
            data = data.append_column("later", pa.array([later] * len(rows), pa.int32()))
        table = table.append(data)
    table = without_some(table, gone)
    held_rows = table.to_arrow()
    for name in [*held_rows.column_names, None]:
        for kind in ("count",) if name in (None, "deep") else ("count", "min", "max"):
            check(
                table,
                held_rows,
                Aggregate(kind, name),
                must=not gone and name in MUST and (kind == "count" or name in VALUED),
            )
    if "k" in partitioning:
        check_groups(table, held_rows, [Aggregate("count")], must=True)
        check_groups(
            table,
            held_rows,
            [Aggregate("count", "x"), Aggregate("min", "l"), Aggregate("max", "d")],
            must=not gone,
        )
        check_filtered(table, held_rows)


MUST = frozenset(VALUES) - {"deep"} | {None}
VALUED = ("n", "l", "d", "t", "m", "f")
CHANGES = [
    {"change": "update-column-type", "name": ["n"], "type": "long"},
    {"change": "add-column", "name": ["later"], "type": "integer"},
]


def without_some(table, gone):
    """Delete the rows at these positions of all files that have as many."""
    deletes = [
        positions(file["path"], hit)
        for file in table.plan().to_pylist()
        if (hit := sorted(place for place in gone if place < file["rows"]))
    ]
    return (
        engine.commit_rows(table, engine.begin_write(table), "delete", deletes=deletes) if deletes else table
    )


def check(table, held, wanted, *, must):
    aggregates = table.scan().aggregate([wanted])
    assert aggregates is not None or not must, wanted
    if aggregates is not None:
        assert aggregates.num_rows == 1
        assert is_same(aggregates["0"][0].as_py(), truth(held, wanted)), (wanted, aggregates)


def check_groups(table, held, wanted, *, must):
    aggregates = table.scan().aggregate(wanted, ["k"])
    assert aggregates is not None or not must
    if aggregates is not None:
        groups = {row["0"]: list(row.values())[1:] for row in aggregates.to_pylist()}
        assert len(groups) == aggregates.num_rows and set(groups) == set(held["k"].to_pylist())
        for key, values in groups.items():
            of_key = held.filter(pc.is_null(held["k"]) if key is None else pc.equal(held["k"], key))
            assert values == [truth(of_key, each) for each in wanted]


def check_filtered(table, held):
    for filter, mask in (
        (col("k") == "p", pc.equal(held["k"], "p")),
        (col("k").is_null(), pc.is_null(held["k"])),
    ):
        aggregates = table.scan(filter=filter).aggregate([Aggregate("count")])
        assert aggregates is not None and aggregates["0"][0].as_py() == held.filter(mask).num_rows


def test_bounds_of_others_and_of_deleted_rows_are_no_values():
    table = Catalog(f"memory://{uuid.uuid4()}").create_table(
        "t", pa.schema({"n": pa.int64(), "s": pa.string()})
    )
    table = table.append(pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]}))
    assert table.scan().aggregate([Aggregate("min", "n"), Aggregate("max", "n")]) is not None
    deleted = without_some(table, {0})
    assert deleted.scan().aggregate([Aggregate("min", "n")]) is None
    assert deleted.scan().aggregate([Aggregate("count", "s")]) is None
    [found] = deleted.scan().aggregate([Aggregate("count"), Aggregate("count", "n")]).to_pylist()
    assert found == {"0": 2, "1": 2}
    foreign = DataFile(
        path="/elsewhere/x.parquet", size_bytes=1, rows=3, names={1: "n"},
        stats={1: ColumnStats(nulls=1, min=0, max=9)},
    )  # fmt: skip
    mixed = engine.commit_write(table, engine.begin_write(table), "append", [foreign])
    assert mixed.scan().aggregate([Aggregate("max", "n")]) is None
    [found] = mixed.scan().aggregate([Aggregate("count"), Aggregate("count", "n")]).to_pylist()
    assert found == {"0": 5, "1": 4}


def test_times_beyond_those_of_python_are_aggregated_too() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    micros = [-62_135_607_600_000_000, 300_000_000_000_000_000]  # in the years 0 and 11476
    table = catalog.create_table("t", pa.schema({"t": SCHEMA.field("t").type, "d": pa.date32()})).append(
        pa.table(
            {
                "t": pa.array(micros, pa.int64()).cast(SCHEMA.field("t").type),
                "d": pa.array([-800_000, 4_000_000], pa.int32()).cast(pa.date32()),
            }
        )
    )
    wanted_aggregates = [Aggregate(kind, column) for column in "td" for kind in ("min", "max")]
    aggregates = table.scan().aggregate(wanted_aggregates)
    assert aggregates is not None
    columns = enumerate(aggregates.columns)
    assert [column.cast(pa.int32() if i > 1 else pa.int64())[0].as_py() for i, column in columns] == [
        *micros, -800_000, 4_000_000,
    ]  # fmt: skip
