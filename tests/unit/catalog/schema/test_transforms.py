"""Golden vectors: Iceberg's specification, appendix B, and the examples of its partition transforms."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import InvalidInput

INT_MAX = 2**31 - 1


def apply(transform: str, type: str, values: list[Any]) -> list[Any]:
    source = AtomicType(type)
    result: list[Any] = apply_transform(
        Transform.parse(transform), pa.array(values, value_type(source)), source
    ).to_pylist()
    return result


@pytest.mark.parametrize(
    ("type", "value", "hash"),
    [
        ("integer", 34, 2017239379),
        ("long", 34, 2017239379),
        ("short", 34, 2017239379),
        ("byte", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("decimal(38,2)", Decimal("14.20"), -500754589),
        ("date", date(2017, 11, 16), -653330422),
        ("time(6)", time(22, 31, 8), -662762989),
        ("timestamp_ntz", datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        ("timestamp", datetime(2017, 11, 16, 14, 31, 8, tzinfo=timezone(timedelta(hours=-8))), -2047944441),
        ("timestamp_ntz", datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        ("string", "iceberg", 1210000089),
        ("varchar(20)", "iceberg", 1210000089),
        ("binary", b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_bucket_hashes_as_icebergs_specification_says(type: str, value: Any, hash: int) -> None:
    # With the largest number of buckets, all but one bit of the hash shows.
    assert apply(f"bucket[{INT_MAX}]", type, [value, None]) == [(hash & INT_MAX) % INT_MAX, None]
    assert apply("bucket[16]", type, [value]) == [(hash & INT_MAX) % 16]


@pytest.mark.parametrize(
    ("transform", "type", "value", "result"),
    [
        ("truncate[10]", "integer", 1, 0),
        ("truncate[10]", "integer", -1, -10),
        ("truncate[10]", "long", -(2**62) - 1, -(2**62) - 1 - (-(2**62) - 1) % 10),
        ("truncate[10]", "byte", -120, -120),
        ("truncate[50]", "decimal(9,2)", Decimal("10.65"), Decimal("10.50")),
        ("truncate[50]", "decimal(4,2)", Decimal("-99.99"), Decimal("-100.00")),
        ("truncate[10]", "decimal(38,0)", Decimal(10**37 + 7), Decimal(10**37)),
        ("truncate[3]", "string", "iceberg", "ice"),
        ("truncate[2]", "string", "𝄞ü€", "𝄞ü"),
        ("truncate[3]", "string", "ab", "ab"),
        ("truncate[3]", "binary", b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
        ("year", "date", date(1970, 1, 1), 0),
        ("year", "date", date(1969, 12, 31), -1),
        ("year", "timestamp", datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC), 47),
        ("month", "date", date(2017, 11, 16), 574),
        ("month", "timestamp_ntz", datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        ("day", "date", date(1969, 12, 31), date(1969, 12, 31)),
        ("day", "timestamp_ntz", datetime(1969, 12, 31, 23), date(1969, 12, 31)),
        ("hour", "timestamp_ntz", datetime(1969, 12, 31, 23), -1),
        ("hour", "timestamp", datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC), 419686),
        ("identity", "double", -0.0, -0.0),
    ],
)
def test_the_other_transforms_round_down(transform: str, type: str, value: Any, result: Any) -> None:
    assert apply(transform, type, [value, None]) == [result, None]


def test_slices_chunks_and_empty_columns_are_transformed_too() -> None:
    source, bucket = AtomicType("string"), Transform("bucket", 64)
    words = pa.array(["zero", None, "two", "", "a much longer word than the others"])
    whole_transform = apply_transform(bucket, words, source)
    assert apply_transform(bucket, words.slice(2, 2), source) == whole_transform.slice(2, 2)
    chunked_array = pa.chunked_array([words.slice(0, 1), words.slice(1, 4)])
    assert apply_transform(bucket, chunked_array, source) == whole_transform
    assert apply_transform(bucket, words.dictionary_encode(), source) == whole_transform
    assert len(apply_transform(bucket, pa.chunked_array([], pa.string()), source)) == 0
    decimals = pa.array([Decimal("1.5"), Decimal("-2.5"), None], pa.decimal128(9, 2))
    for transform in (bucket, Transform("truncate", 7)):
        whole_transform = apply_transform(transform, decimals, AtomicType("decimal(9,2)"))
        assert apply_transform(
            transform, decimals.slice(1), AtomicType("decimal(9,2)")
        ) == whole_transform.slice(1)
        assert len(apply_transform(transform, decimals.slice(3), AtomicType("decimal(9,2)"))) == 0


def test_hours_too_far_away_and_decimals_without_room_are_refused() -> None:
    far = pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us"))
    with pytest.raises(InvalidInput, match="too far from 1970"):
        apply_transform(Transform("hour"), far, AtomicType("timestamp_ntz"))
    with pytest.raises(InvalidInput, match="more than 38 digits"):
        apply("truncate[1000]", "decimal(38,0)", [Decimal(-(10**38) + 1)])


def test_a_million_values_take_no_loop_in_python() -> None:
    numbers = pa.array(np.arange(1_000_000))
    assert len(apply_transform(Transform("bucket", 100), numbers, AtomicType("long")).unique()) == 100
