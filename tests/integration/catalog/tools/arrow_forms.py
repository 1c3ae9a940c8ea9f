"""Columns of every type of Arrow, as libraries hand them over, each with the values that have to come back.

A column is made of one atomic form, in none, one or two nested ones. `REFUSED` has those that no write takes.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 6
DAY, MOMENT, CLOCK = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3), dt.time(1, 2, 3)
ZONED = MOMENT.replace(tzinfo=dt.UTC)
DIGITS = [Decimal("1.25"), Decimal("-3.50"), None, Decimal("0.00")]


@dataclass(frozen=True)
class Column:
    """`kept` are the values that a read returns, `stored` is the type of the table's column; None: the array's."""

    name: str
    array: pa.Array
    kept: list[Any]
    stored: pa.DataType | None = None


def _filled(values: list[Any]) -> list[Any]:
    return list(itertools.islice(itertools.cycle(values), ROWS))


ATOMS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, None, False]),
    **{f"int{n}": (getattr(pa, f"int{n}")(), [-(2 ** (n - 1)), None, 2 ** (n - 1) - 1]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), [0, None, 2**n - 1]) for n in (8, 16, 32, 64)},
    "half float": (pa.float16(), [np.float16(1.5), None, np.float16(-2.25)]),
    "float": (pa.float32(), [1.5, None, -2.25]),
    "double": (pa.float64(), [0.1, None, -1e300]),
    "decimal32": (pa.decimal32(5, 2), DIGITS),
    "decimal64": (pa.decimal64(12, 2), DIGITS),
    "decimal128": (pa.decimal128(38, 2), [Decimal("9" * 36 + ".99"), *DIGITS]),
    "decimal256": (pa.decimal256(38, 2), [Decimal("9" * 36 + ".99"), *DIGITS]),
    "string": (pa.string(), ["a", None, "Ä", ""]),
    "large string": (pa.large_string(), ["a", None, "Ä", ""]),
    "string view": (pa.string_view(), ["a", None, "longer than twelve bytes", ""]),
    "binary": (pa.binary(), [b"\xff", None, b""]),
    "large binary": (pa.large_binary(), [b"\xff", None, b""]),
    "binary view": (pa.binary_view(), [b"\xff", None, b"longer than twelve bytes"]),
    "fixed binary": (pa.binary(2), [b"ab", None, b"\xff\0"]),
    "date32": (pa.date32(), [DAY, None, dt.date(1, 1, 1)]),
    "date64": (pa.date64(), [DAY, None]),
    **{f"time {unit}": (pa.time32(unit), [CLOCK, None]) for unit in ("s", "ms")},
    **{f"time {unit}": (pa.time64(unit), [CLOCK, None]) for unit in ("us", "ns")},
    **{f"timestamp {unit}": (pa.timestamp(unit), [MOMENT, None]) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp {unit} of a zone": (pa.timestamp(unit, "Asia/Tokyo"), [ZONED, None]) for unit in ("s", "ns")},
    "timestamp of an offset": (pa.timestamp("us", "+01:00"), [ZONED, None]),
    **{f"duration {unit}": (pa.duration(unit), [dt.timedelta(1, 2), None]) for unit in ("s", "ms", "us", "ns")},
}  # fmt: skip

CODED = ("bool", "int64", "uint64", "half float", "decimal64", "string", "string view", "binary view", "fixed binary",
         "date64", "time s", "timestamp ns of a zone", "duration ms")  # fmt: skip
"""Of these, dictionaries and run ends are made too, and nested forms."""


def atoms() -> Iterator[Column]:
    for name, (type, values) in ATOMS.items():
        yield Column(name, pa.array(_filled(values), type), _filled(values))
    for name in CODED:
        type, values = ATOMS[name]
        yield from _coded_columns(name, pa.array(values, type), values)
    yield from _coded_columns(
        "list", pa.array([[1, None], None, []], pa.list_view(pa.int8())), [[1, None], None, []]
    )
    yield Column("null", pa.nulls(ROWS), [None] * ROWS, pa.string())
    bits = pa.ExtensionArray.from_storage(pa.bool8(), pa.array(_filled([1, None, 0]), pa.int8()))
    yield Column("bool8", bits, _filled([True, None, False]))
    ids = pa.array(_filled([b"0" * 16, None]), pa.binary(16))
    yield Column("uuid", pa.ExtensionArray.from_storage(pa.uuid(), ids), ids.to_pylist())
    texts = pa.array(_filled(["{}", None]), pa.string_view())
    yield Column("json", pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), texts), texts.to_pylist())
    tensor = pa.array(_filled([[1.0, 2.0], [3.0, 4.0]]), pa.list_(pa.float32(), 2))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), tensor)
    yield Column("tensor", tensors, tensor.to_pylist())


def _coded_columns(name: str, values: pa.Array, kept: list[Any]) -> Iterator[Column]:
    places = [*range(len(values)), None, *reversed(range(len(values)))]
    places = _filled(places)
    indices = pa.array(places, pa.uint32())
    yield Column(
        f"dictionary of {name}",
        pa.DictionaryArray.from_arrays(indices, values),
        [None if at is None else kept[at] for at in places],
    )
    ends = pa.array([2, 3, ROWS], pa.int16())
    runs = pa.RunEndEncodedArray.from_arrays(ends, pa.concat_arrays([values, values, values]).slice(0, 3))
    kept = (kept * 3)[:3]
    yield Column(f"runs of {name}", runs, [kept[0], kept[0], kept[1], kept[2], kept[2], kept[2]])


OFFSETS = [0, 2, 2, 3, 5, 6, 6]
SIZES = [end - start for start, end in itertools.pairwise(OFFSETS)]
LOST = 3
"""The row that is NULL; below it there are values."""


def _rows_of(kept: list[Any], starts: list[int], sizes: list[int]) -> list[Any]:
    found: list[Any] = [kept[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return [None if at == LOST else each for at, each in enumerate(found)]


def _mask() -> pa.Array:
    return pa.array([at == LOST for at in range(ROWS)])


def _lists(make: Any, offsets: pa.DataType) -> Callable[[Column], tuple[pa.Array, list[Any]]]:
    def of(column: Column) -> tuple[pa.Array, list[Any]]:
        array = make.from_arrays(pa.array(OFFSETS, offsets), column.array, mask=_mask())
        return array, _rows_of(column.kept, OFFSETS[:-1], SIZES)

    return of


def _views(make: Any, offsets: pa.DataType, form: str) -> Callable[[Column], tuple[pa.Array, list[Any]]]:
    starts, sizes = {
        "ordered": (OFFSETS[:-1], SIZES),
        "reordered": (OFFSETS[-2::-1], SIZES[::-1]),
        "shared": ([1] * ROWS, [2, 1, 0, 2, 2, 3]),
    }[form]

    def of(column: Column) -> tuple[pa.Array, list[Any]]:
        array = make.from_arrays(
            pa.array(starts, offsets), pa.array(sizes, offsets), column.array, mask=_mask()
        )
        return array, _rows_of(column.kept, starts, sizes)

    return of


def _struct(column: Column) -> tuple[pa.Array, list[Any]]:
    numbers = list(range(ROWS))
    array = pa.StructArray.from_arrays([column.array, pa.array(numbers)], ["x", "y"], mask=_mask())
    pairs: list[Any] = [{"x": x, "y": y} for x, y in zip(column.kept, numbers, strict=True)]
    return array, [None if at == LOST else each_pair for at, each_pair in enumerate(pairs)]


def _map(column: Column) -> tuple[pa.Array, list[Any]]:
    keys = [f"k{at}" for at in range(ROWS)]
    array = pa.MapArray.from_arrays(pa.array(OFFSETS, pa.int32()), pa.array(keys), column.array, mask=_mask())
    pairs = list(zip(keys, column.kept, strict=True))
    return array, _rows_of(pairs, OFFSETS[:-1], SIZES)


def _fixed(column: Column) -> tuple[pa.Array, list[Any]]:
    twice = pa.concat_arrays([column.array, column.array])
    array = pa.FixedSizeListArray.from_arrays(twice, 2, mask=_mask())
    both = column.kept * 2
    return array, _rows_of(both, list(range(0, 2 * ROWS, 2)), [2] * ROWS)


NESTED: dict[str, Callable[[Column], tuple[pa.Array, list[Any]]]] = {
    "struct": _struct,
    "list": _lists(pa.ListArray, pa.int32()),
    "large list": _lists(pa.LargeListArray, pa.int64()),
    "fixed list": _fixed,
    **{f"{form} list view": _views(pa.ListViewArray, pa.int32(), form) for form in ("ordered", "reordered", "shared")},
    "reordered large list view": _views(pa.LargeListViewArray, pa.int64(), "reordered"),
    "shared large list view": _views(pa.LargeListViewArray, pa.int64(), "shared"),
    "map": _map,
}  # fmt: skip


def nested_column(column: Column, form: str) -> Column:
    array, kept = NESTED[form](column)
    stored = None
    if column.stored is not None:
        of_nulls = Column("", pa.nulls(ROWS, column.stored), column.kept)
        stored = NESTED[form](of_nulls)[0].type
    return Column(f"{form} of {column.name}", array, kept, stored)


def columns(depth: int) -> Iterator[Column]:
    """Yield columns of up to so many nested forms."""
    level = list(atoms())
    yield from level
    wanted_texts = {*CODED, "null", "bool8"}
    level = [
        column
        for column in level
        if column.name.split(" of ")[-1] in wanted_texts or column.name in wanted_texts
    ]
    for _ in range(depth):
        level = [nested_column(column, form) for column in level for form in NESTED]
        yield from level


def sliced(column: Column) -> Column:
    """The same rows, as a part of a longer array."""
    more = pa.concat_arrays([column.array.slice(1, 2), column.array, column.array.slice(0, 1)])
    return Column(column.name, more.slice(2, ROWS), column.kept, column.stored)


def table_of(given: list[Column], *, chunked: bool = False) -> pa.Table:
    """Return rows with an id, which columns are named after."""
    arrays: dict[str, Any] = {"id": pa.array(np.arange(ROWS))}
    for column in given:
        parts = [column.array.slice(0, 2), column.array.slice(2)] if chunked else [column.array]
        arrays[column.name] = pa.chunked_array(parts)
    return pa.table(arrays)


def stored_schema(given: list[Column]) -> pa.Schema:
    fields = [
        (column.name, column.array.type if column.stored is None else column.stored) for column in given
    ]
    return pa.schema([("id", pa.int64()), *fields])


def comparable(value: Any) -> Any:
    """Return a value with lists in place of the tuples of maps."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(each) for each in value]
    return value


def _not_text() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())


def _of_offsets(type: pa.DataType, offsets: list[int], values: bytes | pa.Array) -> pa.Array:
    """Return two values. Arrow looks at the last of their offsets only."""
    places = pa.py_buffer(np.array(offsets, np.int32).tobytes())
    if isinstance(values, bytes):
        return pa.Array.from_buffers(type, 2, [None, places, pa.py_buffer(values)])
    return pa.Array.from_buffers(type, 2, [None, places], children=[values])


def _too_many_digits() -> pa.Array:
    return pa.Array.from_buffers(pa.decimal128(38, 0), 1, [None, pa.py_buffer(b"\xff" * 15 + b"\x7f")])


REFUSED: dict[str, Callable[[], pa.Array]] = {
    "text that is not UTF-8": _not_text,
    "a part of it": lambda: pa.StructArray.from_arrays([_not_text()], ["x"]),
    "a list of it": lambda: pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), _not_text()),
    "a dictionary of it": lambda: pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), _not_text(), safe=False),
    "an integer of 128 bits in a decimal": _too_many_digits,
    "a decimal of 39 digits": lambda: pa.array([Decimal("9" * 39)], pa.decimal256(39, 0)),
    "nanoseconds": lambda: pa.array([1], pa.timestamp("ns")),
    "nanoseconds of a time": lambda: pa.array([1], pa.time64("ns")),
    "nanoseconds of a duration": lambda: pa.array([[1]], pa.list_(pa.duration("ns"))),
    "a time after a day": lambda: pa.array([86_400_000_000], pa.time64("us")),
    "a part of a day": lambda: pa.array([1], pa.date64()),
    "bytes that end before they begin": lambda: _of_offsets(pa.binary(), [0, 50, 3], b"abc"),
    "lists that end before they begin": lambda: _of_offsets(pa.list_(pa.int64()), [0, 50, 3], pa.array([1, 2, 3])),
    "lists that go on after their values": lambda: _of_offsets(
        pa.list_(pa.string()), [0, -1, 3], pa.array(["a", "b", "c"])
    ),
    "a view outside of its values": lambda: pa.ListViewArray.from_arrays(
        pa.array([2**30], pa.int32()), pa.array([2], pa.int32()), pa.array([1, 2, 3])
    ),
    "an interval": lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "a union": lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "a union in a list": lambda: pa.ListArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    ),
    "opaque bytes": lambda: pa.ExtensionArray.from_storage(
        pa.opaque(pa.binary(16), "hugeint", "DuckDB"), pa.array([b"0" * 16], pa.binary(16))
    ),
}  # fmt: skip
