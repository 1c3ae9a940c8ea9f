"""Decoding JSON from any client at a bounded cost: a wrong object is a FormatError that names it.

A valid hash says that an object is as its writer made it, not how much decoding costs. So size, depth and
number of values are checked before the bytes are decoded. Pure.
"""

import re
from typing import Protocol, TypeVar

import msgspec

from lakelog.log.errors import FormatError, UnsupportedFormat
from lakelog.log.grammar import shortened

T = TypeVar("T", covariant=True)

DEPTH_MAX = 256
"""Levels of a commit. Objects derived from commits have a few levels more around them."""
DEPTH_MAX_DERIVED = DEPTH_MAX + 16
VALUES_MAX = 2_000_000
SIZE_MAX_DERIVED = 64 * 1024 * 1024
JSON_MAX = SIZE_MAX_DERIVED
"""JSON inside of another object, which has limits of its own."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError)
"""The errors of decoding hostile input, with or without a limit before it."""

_PATTERN = re.compile(r"matching regex '.*'(?= - at|$)", re.DOTALL)
_UNKNOWN = ("Object contains unknown field", "Invalid value ", "Invalid enum value ")
"""The beginnings of msgspec's messages about members and kinds that a type does not have."""
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


class ObjectDecoder(Protocol[T]):
    def decode(self, data: bytes, /) -> T: ...


def decoded(
    decoder: ObjectDecoder[T], data: bytes, location: str, *, size_max: int, depth_max: int = DEPTH_MAX
) -> T:
    """Return the content of `data`, the object at `location`. Raises FormatError if it is malformed or too large."""
    check_shape(data, location, size_max=size_max, depth_max=depth_max)
    return decoded_of_known_shape(decoder, data, location)


def decoded_of_known_shape(decoder: ObjectDecoder[T], data: bytes, location: str) -> T:
    """Do the same as `decoded`, after `check_shape`."""
    try:
        return decoder.decode(data)
    except UNREADABLE as error:
        if is_unknown(error):
            raise UnsupportedFormat(
                f"{location} has something that this lakelog does not know ({said(error)}): upgrade lakelog to use it"
            ) from None
        raise FormatError(
            f"{location} is not what the format has there: {said(error)}; find out which client wrote this object"
        ) from None


def is_unknown(error: BaseException) -> bool:
    """Return whether a decoder refused a member, a kind or a word that it does not know.

    Then a newer writer is likely. The rest has its form.
    """
    return str(error).startswith(_UNKNOWN)


def said(error: BaseException) -> str:
    """Return the decoder's message for people: without patterns, and without an object's whole text."""
    return shortened(_PATTERN.sub("of the form that it has", str(error)))


def check_shape(data: bytes, location: str, *, size_max: int, depth_max: int = DEPTH_MAX) -> None:
    """Raise FormatError if JSON is too long, too deep, or has too many values to decode.

    Reads the bytes at most once; small objects cost almost nothing.
    """
    if len(data) > size_max:
        problem = f"has {len(data):,} bytes, and the limit is {size_max:,}"
    else:
        brackets = data.count(b"{") + data.count(b"[")
        if brackets <= depth_max:
            return
        if brackets + data.count(b",") > VALUES_MAX:
            problem = f"has more than {VALUES_MAX:,} values"
        elif _is_deeper(data, depth_max):
            problem = f"is nested deeper than {depth_max} levels"
        else:
            return
    raise FormatError(f"{location} {problem}; find out which client wrote this object")


def _is_deeper(data: bytes, depth_max: int) -> bool:
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    without_texts = b"".join(data.split(b'"')[::2])
    brackets = without_texts.translate(None, _NO_BRACKETS).translate(_ALIKE)
    for _ in range(depth_max):
        # Each pass removes the innermost level, in all places.
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)
