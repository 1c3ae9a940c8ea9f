"""The curve of a clustering: places are points and points places, ranks keep the order of values, for every type."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.schema import bounds_from, from_arrow, value_type
from lakelog.catalog.core.schema.curve import BITS, BOUNDS_BYTES_MAX, Bounds, hilbert, ranks_of
from lakelog.catalog.core.schema.literals import to_arrow
from lakelog.catalog.core.schema.types import AtomicType

GOLDEN = {
    # By J. Skilling's algorithm.
    (8, (0, 0)): 0, (8, (255, 0)): 65535, (8, (0, 255)): 21845, (8, (255, 255)): 43690, (8, (3, 200)): 20549,
    (8, (1, 2, 3)): 22, (8, (200, 100, 50)): 16334538, (8, (255, 255, 255)): 11983725,
    (8, (1, 2, 3, 4)): 3940, (8, (255, 0, 128, 7)): 3239122602,
}  # fmt: skip


@pytest.mark.parametrize("axes, bits", [(2, 1), (2, 3), (2, 5), (3, 1), (3, 3), (4, 2)])
def test_neighbours_on_the_curve_are_neighbours_and_each_point_has_a_place_of_its_own(
    axes: int, bits: int
) -> None:
    points = np.array(list(product(range(1 << bits), repeat=axes)), np.int64)
    places = hilbert(list(points.T), bits)
    assert sorted(places.tolist()) == list(range(1 << (bits * axes)))
    along = points[np.argsort(places)]
    assert all(int(np.abs(one - other).sum()) == 1 for one, other in pairwise(along))


def test_places_are_those_that_every_client_computes() -> None:
    for (bits, point), place in GOLDEN.items():
        assert hilbert([np.array([number], np.int64) for number in point], bits).tolist() == [place]


def values(type: str) -> st.SearchStrategy[Any]:
    match type:
        case "long" | "timestamp":
            return st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
        case "date" | "integer":
            return st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
        case "double":
            return st.floats(allow_infinity=True, allow_nan=True) | st.sampled_from([0.0, -0.0])
        case "boolean":
            return st.booleans()
        case "decimal(20,2)":
            return st.integers(-(10**19), 10**19).map(lambda value: f"{value // 100}.{value % 100:02d}")
        case "binary":
            return st.sampled_from(["", "AA==", "AAA=", "/w==", "QUI=", "QQ=="])
        case _:
            common = st.just("a common beginning of all/")
            return st.tuples(common | st.just(""), st.text(max_size=3)).map("".join)


TYPES = ["long", "integer", "date", "timestamp", "double", "boolean", "decimal(20,2)", "string", "binary"]


def _plain(array: pa.Array) -> list[Any]:
    integer = pa.types.is_date32(array.type) or pa.types.is_timestamp(array.type)
    values: list[Any] = from_arrow(array) if integer else array.to_pylist()
    return values


def key(value: Any) -> Any:
    """A plain key by which Spark orders such values."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, str):
        return (1, value.encode("utf-8"))
    return (1, value)


@pytest.mark.parametrize("type", TYPES)
@given(data=st.data())
def test_ranks_are_total_and_keep_the_order_of_values(type: str, data: st.DataObject) -> None:
    known_lists = st.lists(st.none() | values(type), max_size=40)
    made = value_type(AtomicType(type))
    sample = to_arrow([None if v == "NaN" or v != v else v for v in data.draw(known_lists)], made)
    bounds = bounds_from(sample, 7, AtomicType(type), 3)
    assert len(bounds.values) < 8 and (bounds.id, bounds.type) == (7, type)
    stored_prefixes = (
        [bounds.prefix + str(v) for v in bounds.values] if bounds.prefix else list(bounds.values)
    )
    limits = pa.array(stored_prefixes, made) if bounds.prefix else to_arrow(stored_prefixes, made)
    rows = to_arrow(from_arrow(sample) + data.draw(known_lists), made)
    ranks = ranks_of(rows, limits, 3).tolist()
    plain, ends = _plain(rows), [key(each) for each in _plain(limits)]
    assert all(one < other for one, other in pairwise(ends)), "each boundary is above the one before"
    below = [0 if v is None else bisect_right(ends, key(v)) for v in plain]
    assert ranks == [number * 7 // max(1, len(ends)) for number in below]
    assert all(0 <= rank < 8 for rank in ranks)


def test_boundaries_divide_what_they_were_made_of() -> None:
    skewed_array = pa.array([0] * 5_000 + list(range(1, 5_001)), pa.int64())
    bounds = bounds_from(skewed_array, 1, AtomicType("long"), BITS[2])
    assert 120 < len(bounds.values) < 140, "half of the rows has one value, and one rank"
    ranks = ranks_of(skewed_array, to_arrow(bounds.values, pa.int64()), 8)
    assert max(np.bincount(ranks[5_000:])) < 50


def test_texts_with_a_long_common_beginning_have_small_boundaries_that_divide() -> None:
    texts = pa.array([f"https://example.org/{'x' * 3_000}/{number:06d}/rest" for number in range(20_000)])
    bounds = bounds_from(texts, 1, AtomicType("string"), 8)
    assert len(bounds.values) == 255 and len(bounds.prefix) > 3_000
    assert max(len(str(value)) for value in bounds.values) <= 7
    ranks = ranks_of(texts, pa.array([bounds.prefix + str(value) for value in bounds.values]), 8)
    assert max(np.bincount(ranks)) < 200


def test_long_boundaries_that_differ_are_fewer() -> None:
    texts = pa.array([f"{number % 7}{'y' * 900}{number:06d}" for number in range(4_000)])
    bounds = bounds_from(texts, 1, AtomicType("string"), 8)
    assert 1 <= len(bounds.values) < 30
    assert sum(len(str(value)) for value in bounds.values) <= BOUNDS_BYTES_MAX
    huge = pa.array(["a", "b" * 100_000 + "c", "b" * 100_000 + "d"])
    assert bounds_from(huge, 1, AtomicType("string"), 8) == Bounds(id=1, type="string", values=("b",))
