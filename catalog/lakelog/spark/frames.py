"""Messages on the pipes between Spark and Python: JSON, and bytes that go with it.

On the wire: the length of all that follows, the length of the JSON (both four bytes, big-endian), the number
of the request that the message is or is about (eight bytes), the JSON, the bytes. So a message is matched
with its request even if its JSON cannot be read. An answer's bytes may come in parts: frames in their order,
with a mark in place of the JSON. The last part comes with the answer, which says how many parts came before.
So a lost part cannot make a query skip files. `bridge/Frame.scala` is the Scala side of the same.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

_LENGTHS_AND_NUMBER = struct.Struct(">IIQ")
_COUNTED_BYTES = 12
_LIMIT_BYTES = 2**31 - 1

PART = b"+"
"""Stands in place of the JSON, in a part of the bytes of an answer that is still to come."""

Beside: TypeAlias = bytes | Iterator[bytes]
"""The bytes of an answer: a single piece, or parts. Each part is made after the part before it was sent."""


@dataclass(frozen=True, slots=True)
class BridgeFrame:
    """A message.

    `text` is JSON, empty for a request that has begun, or `PART`. Raises ValueError if the message is too
    large for a JVM.
    """

    number: int
    text: bytes
    body: bytes = b""

    def __post_init__(self) -> None:
        if self.length > _LIMIT_BYTES:
            raise ValueError(f"a message of {self.length} bytes is larger than a JVM can read")

    @property
    def length(self) -> int:
        return _COUNTED_BYTES + len(self.text) + len(self.body)


def read_frame(stream: IO[bytes]) -> BridgeFrame | None:
    """Return the next frame, or None at the end of the stream."""
    header = _read(stream, _LENGTHS_AND_NUMBER.size)
    if header is None:
        return None
    length, text_length, number = _LENGTHS_AND_NUMBER.unpack(header)
    payload = _read(stream, length - _COUNTED_BYTES)
    if payload is None:
        return None
    return BridgeFrame(number, payload[:text_length], payload[text_length:])


def write_frame(stream: IO[bytes], frame: BridgeFrame) -> None:
    """Write a frame and flush. The caller ensures that only a single thread writes."""
    stream.write(_LENGTHS_AND_NUMBER.pack(frame.length, len(frame.text), frame.number) + frame.text)
    stream.write(frame.body)
    stream.flush()


def last_part(number: int, beside: Beside, send: Callable[[BridgeFrame], None]) -> tuple[bytes, int]:
    """Send all parts but the last, which goes with the answer.

    Return the last part, and how many were sent. Few answers have more than a single part.
    """
    if isinstance(beside, bytes):
        return beside, 0
    last, sent_count = next(beside, b""), 0
    for part in beside:
        send(BridgeFrame(number, PART, last))
        last = part
        sent_count += 1
    return last, sent_count


def _read(stream: IO[bytes], size: int) -> bytes | None:
    """Return exactly `size` bytes, or None if the stream ends before."""
    data = stream.read(size)
    while len(data) < size:
        chunk = stream.read(size - len(data))
        if not chunk:
            return None
        data += chunk
    return data
