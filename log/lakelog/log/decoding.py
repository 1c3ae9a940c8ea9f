"""Decoding JSON that any client may have written, at a bounded cost: a wrong object is a FormatError that names it.

A valid hash says that an object is what its writer made of it, and nothing of what that costs. So size, depth and
number of values are checked before anything is made of the bytes. Pure.
"""

import re
from typing import Protocol, TypeVar

import msgspec

from lakelog.log.errors import FormatError
from lakelog.log.grammar import shortened

T = TypeVar("T", covariant=True)

DEPTH_MAX = 256
"""Of a commit. What is derived from commits has a few levels more around what they contain."""
DEPTH_MAX_DERIVED = DEPTH_MAX + 16
VALUES_MAX = 2_000_000
SIZE_MAX_DERIVED = 64 * 1024 * 1024
JSON_MAX = SIZE_MAX_DERIVED
"""Of JSON inside of another object, which has limits of its own."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError)
"""What decoding raises for hostile input, with or without a limit before it."""

_PATTERN = re.compile(r"matching regex '.*'(?= - at|$)", re.DOTALL)
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


class Decoder(Protocol[T]):
    def decode(self, data: bytes, /) -> T: ...


def decoded(
    decoder: Decoder[T], data: bytes, location: str, *, size_max: int, depth_max: int = DEPTH_MAX
) -> T:
    """Return what `data`, the object at `location`, contains. FormatError where it is something else, or too much."""
    check_shape(data, location, size_max=size_max, depth_max=depth_max)
    return decoded_of_known_shape(decoder, data, location)


def decoded_of_known_shape(decoder: Decoder[T], data: bytes, location: str) -> T:
    """As `decoded`, after `check_shape`."""
    try:
        return decoder.decode(data)
    except UNREADABLE as error:
        raise FormatError(
            f"{location} is not what the format has there: {said(error)}; find out which client wrote this object"
        ) from None


def said(error: BaseException) -> str:
    """Return what the decoder says, for people: without patterns, and without an object's whole text."""
    return shortened(_PATTERN.sub("of the form that it has", str(error)))


def check_shape(data: bytes, location: str, *, size_max: int, depth_max: int = DEPTH_MAX) -> None:
    """Raise FormatError for JSON that is too long, too deep, or of too many values to be decoded. One pass at most,
    and for small objects hardly that."""
    if len(data) > size_max:
        what = f"has {len(data):,} bytes, and the limit is {size_max:,}"
    else:
        opened = data.count(b"{") + data.count(b"[")
        if opened <= depth_max:
            return
        if opened + data.count(b",") > VALUES_MAX:
            what = f"has more than {VALUES_MAX:,} values"
        elif _is_deeper(data, depth_max):
            what = f"is nested deeper than {depth_max} levels"
        else:
            return
    raise FormatError(f"{location} {what}; find out which client wrote this object")


def _is_deeper(data: bytes, depth_max: int) -> bool:
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    texts_out = b"".join(data.split(b'"')[::2])
    brackets = texts_out.translate(None, _NO_BRACKETS).translate(_ALIKE)
    for _ in range(depth_max):
        # What is innermost goes: one level each time, in all places.
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)
