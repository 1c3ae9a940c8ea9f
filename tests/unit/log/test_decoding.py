"""JSON of any writer: refused if it is too long, too deep or of too many values, before anything is made of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lakelog.log import FormatError
from lakelog.log.decoding import DEPTH_MAX, VALUES_MAX, check_shape, decoded

ANYTHING = msgspec.json.Decoder(Any)


def nested_data(depth: int, opened: bytes = b"[", closed: bytes = b"]") -> bytes:
    return opened * depth + closed * depth


@pytest.mark.parametrize("around", [b"", b'"[[[[{{{{\\"[[[","]]]]",', b'"\\\\",'])
def test_depth_is_counted_to_the_level_outside_of_texts(around: bytes) -> None:
    many = b"[]," * 1_000  # so many that they have to be counted
    check_shape(b"[" + around + many + nested_data(DEPTH_MAX - 1) + b"]", "here", size_max=10**6)
    with pytest.raises(FormatError, match=f"^here is nested deeper than {DEPTH_MAX} levels"):
        check_shape(b"[" + around + many + nested_data(DEPTH_MAX) + b"]", "here", size_max=10**6)


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 900, 100_000])
def test_what_is_too_deep_is_refused_whatever_it_is_made_of(depth: int) -> None:
    for opened_data, closed_data in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")):
        with pytest.raises(FormatError, match="^here "):
            decoded(ANYTHING, nested_data(depth, opened_data, closed_data), "here", size_max=10**8)


def test_size_and_number_of_values_are_limited() -> None:
    with pytest.raises(FormatError, match="has 11 bytes, and the limit is 10"):
        decoded(ANYTHING, b'"123456789"', "here", size_max=10)
    with pytest.raises(FormatError, match=f"more than {VALUES_MAX:,} values"):
        check_shape(b"[" + b"[]," * VALUES_MAX + b"[]]", "here", size_max=10**8)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\xff", b'"\\ud800"', b"1" * 5_000, b"[1", b"]["])
def test_what_is_not_json_is_one_line_that_names_the_object(data: bytes) -> None:
    with pytest.raises(FormatError, match="^here is not what the format has there: .{1,400}(\n|$)"):
        decoded(ANYTHING, data, "here", size_max=10**6)
