"""Transforms of whole columns against the plainest reading of Iceberg's specification, one value at a time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.files.data_file import DataFile, files_to_arrow
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.pruning import match, may_match
from lakelog.catalog.core.schema.literals import from_arrow, value_type
from lakelog.catalog.core.schema.partitioning import (
    FIRST_FIELD_ID,
    Transform,
    result_type,
    spec_from_transforms,
)
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Predicate
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType, Field

EPOCH = datetime(1970, 1, 1)
US = timedelta(microseconds=1)
EXACT = Context(prec=60)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (
        st.integers(low, high)
        | st.integers(low, low + 20)
        | st.integers(high - 20, high)
        | st.integers(-20, 20)
    )


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound_number = 10**precision - 1
    return st.integers(-bound_number, bound_number).map(
        lambda unscaled: Decimal(unscaled).scaleb(-scale, EXACT)
    )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "byte": integers(8),
    "short": integers(16),
    "integer": integers(32),
    "long": integers(64),
    "decimal(9,2)": decimals(9, 2),
    "decimal(18,0)": decimals(18, 0),
    "decimal(37,10)": decimals(37, 10).filter(lambda value: abs(value) < Decimal(10) ** 26),
    "string": st.text(max_size=12),
    "binary": st.binary(max_size=12),
    "date": st.dates(),
    "time(6)": st.times(),
    "timestamp_ntz": st.datetimes(),
}
TEXTS, INTEGERS = ("string", "binary"), ("byte", "short", "integer", "long")
TIMES = ("date", "timestamp_ntz")


def murmur3(data: bytes) -> int:
    def rotated_number(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & 0xFFFFFFFF

    def scrambled_number(x: int) -> int:
        return rotated_number(x * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    hash, count = 0, len(data) // 4 * 4
    for i in range(0, count, 4):
        hash = (
            rotated_number(hash ^ scrambled_number(int.from_bytes(data[i : i + 4], "little")), 13) * 5
            + 0xE6546B64
        ) & 0xFFFFFFFF
    if count < len(data):
        hash ^= scrambled_number(int.from_bytes(data[count:], "little"))
    hash ^= len(data)
    hash = (hash ^ hash >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    hash = (hash ^ hash >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return hash ^ hash >> 16


def unscaled_number(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, EXACT))


def hashed_data(type: AtomicType, value: Any) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case Decimal():
            number = unscaled_number(value, type.scale)
            size = next(n for n in range(1, 17) if -(2 ** (8 * n - 1)) <= number < 2 ** (8 * n - 1))
            return number.to_bytes(size, "big", signed=True)
        case datetime():
            number = (value - EPOCH) // US
        case date():
            number = (value - EPOCH.date()).days
        case time():
            number = (datetime.combine(EPOCH, value) - EPOCH) // US
        case _:
            number = value
    return number.to_bytes(8, "little", signed=True)


def expected(transform: Transform, type: AtomicType, value: Any) -> Any:
    argument = transform.argument
    if value is None:
        return None
    if transform.name == "bucket":
        assert argument is not None
        return (murmur3(hashed_data(type, value)) & 0x7FFFFFFF) % argument
    if transform.name == "truncate":
        assert argument is not None
        if isinstance(value, str | bytes):
            return value[:argument]
        if isinstance(value, Decimal):
            number = unscaled_number(value, type.scale)
            return Decimal(number - number % argument).scaleb(-type.scale, EXACT)
        bits = {"byte": 8, "short": 16, "integer": 32, "long": 64}[type.family]
        return (value - value % argument + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    day = value.date() if isinstance(value, datetime) else value
    return {
        "year": lambda: day.year - 1970,
        "month": lambda: (day.year - 1970) * 12 + day.month - 1,
        "day": lambda: day,
        "hour": lambda: (value - EPOCH) // timedelta(hours=1),
    }[transform.name]()


@st.composite
def transformed(draw: st.DrawFn) -> tuple[Transform, AtomicType]:
    name = draw(st.sampled_from(list(VALUES)))
    kinds = ["bucket"]
    if name in TIMES:
        kinds += ["year", "month", "day"] + (["hour"] if name != "date" else [])
    elif name != "time(6)":
        kinds.append("truncate")
    kind = draw(st.sampled_from(kinds))
    small = st.integers(1, 12)
    argument = draw(small | st.integers(1, 2**31 - 1)) if kind in ("bucket", "truncate") else None
    return Transform(kind, argument), AtomicType(name)


def array(type: AtomicType, values: list[Any]) -> pa.Array:
    return pa.array(values, value_type(type))


@given(transformed(), st.data())
def test_a_whole_column_gives_what_each_value_gives(
    chosen: tuple[Transform, AtomicType], data: st.DataObject
) -> None:
    transform, type = chosen
    values = data.draw(st.lists(st.none() | VALUES[type.name], max_size=8))
    skipped_number = data.draw(st.integers(0, len(values)))
    result = apply_transform(transform, array(type, values).slice(skipped_number), type)
    assert result.type == value_type(result_type(transform, type))
    assert result.to_pylist() == [expected(transform, type, value) for value in values[skipped_number:]]


def holds(op: str, value: Any, literals: list[Any]) -> bool:
    if op in ("IS_NULL", "IS_NOT_NULL"):
        return (value is None) == (op == "IS_NULL")
    if op == "<=>":
        return bool(value == literals[0])
    if value is None or (op not in ("IN", "NOT IN") and None in literals):
        return False
    first = literals[0] if literals else None
    match op:
        case "=":
            return bool(value == first)
        case "<>":
            return bool(value != first)
        case "<":
            return bool(value < first)
        case "<=":
            return bool(value <= first)
        case ">":
            return bool(value > first)
        case ">=":
            return bool(value >= first)
        case "IN":
            return value in literals
        case _:
            return value not in literals and None not in literals


OPS = ("=", "<=>", "<>", "<", "<=", ">", ">=", "IN", "NOT IN", "IS_NULL", "IS_NOT_NULL")


@given(
    transformed() | st.sampled_from([(Transform("identity"), AtomicType(name)) for name in VALUES]), st.data()
)
def test_partition_values_alone_never_lose_a_row_nor_prove_too_much(
    chosen: tuple[Transform, AtomicType], data: st.DataObject
) -> None:
    transform, type = chosen
    op = data.draw(st.sampled_from(OPS))
    values = data.draw(st.lists(st.none() | VALUES[type.name], min_size=1, max_size=8))
    # Literals close to the values are the ones that distinguish a right bound from a wrong one.
    count = {"IN": 3, "NOT IN": 3, "IS_NULL": 0, "IS_NOT_NULL": 0}.get(op, 1)
    literal = st.sampled_from(values) | VALUES[type.name]
    literals = data.draw(st.lists(literal, min_size=count, max_size=count))

    schema = assign_ids([Field(name="c", type=type)])
    arguments = [transform.argument] if transform.argument else []
    spec = spec_from_transforms([{"transform": transform.name, "args": arguments, "column": ["c"]}], schema)
    partitions = from_arrow(apply_transform(transform, array(type, values), type))
    files = files_to_arrow(
        [
            DataFile(path=str(i), size_bytes=1, rows=1, partition={FIRST_FIELD_ID: value})
            for i, value in enumerate(partitions)
        ],
        schema,
        [spec],
    )
    named_literals = [FilterLiteral(value, type.name) for value in from_arrow(array(type, literals))]
    predicate = Predicate("IN" if op == "NOT IN" else op, (Column(("c",)), *named_literals))
    bound_condition = bind(Predicate("NOT", (predicate,)) if op == "NOT IN" else predicate, schema)
    proven = match(files, bound_condition, [spec])
    possible, certain = may_match(files, bound_condition, [spec]).to_pylist(), proven.all.to_pylist()
    for i, value in enumerate(values):
        matches = holds(op, value, literals)
        assert possible[i] or not matches, (op, value, literals)
        assert matches or not certain[i], (op, value, literals)
        assert not (matches and proven.none[i].as_py()), (op, value, literals)
