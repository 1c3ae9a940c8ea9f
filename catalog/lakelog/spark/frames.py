"""Messages on the pipes between Spark and Python: JSON, and bytes beside it.

On the wire: the length of all that follows, the length of the JSON (both four bytes, big-endian), the number of the
request that the message is or is about (eight bytes), the JSON, the bytes. So a message is matched with its
request even where its JSON cannot be read. What stands beside an answer may come in parts: frames with a mark in place
of the JSON, in their order, and the last part with the answer, which says how many came before: one that got lost must
not be files that a query passes over. The Scala side of the same is `bridge/Frame.scala`.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

_LENGTHS_AND_NUMBER = struct.Struct(">IIQ")
_COUNTED_BYTES = 12
_LIMIT_BYTES = 2**31 - 1

PART = b"+"
"""In place of the JSON, in a part of what stands beside an answer that is still to come."""

Beside: TypeAlias = bytes | Iterator[bytes]
"""What stands beside an answer: one piece, or parts, each made when the one before it is on its way."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`text` is JSON, empty for a request that has begun, or `PART`. ValueError where it is too large for a JVM."""

    number: int
    text: bytes
    body: bytes = b""

    def __post_init__(self) -> None:
        if self.length > _LIMIT_BYTES:
            raise ValueError(f"a message of {self.length} bytes is larger than a JVM can read")

    @property
    def length(self) -> int:
        return _COUNTED_BYTES + len(self.text) + len(self.body)


def read_frame(stream: IO[bytes]) -> Frame | None:
    """Return the next frame, None at the end of the stream."""
    header = _read(stream, _LENGTHS_AND_NUMBER.size)
    if header is None:
        return None
    length, text_length, number = _LENGTHS_AND_NUMBER.unpack(header)
    payload = _read(stream, length - _COUNTED_BYTES)
    if payload is None:
        return None
    return Frame(number, payload[:text_length], payload[text_length:])


def write_frame(stream: IO[bytes], frame: Frame) -> None:
    """Write one frame and flush. The caller ensures that only one thread writes."""
    stream.write(_LENGTHS_AND_NUMBER.pack(frame.length, len(frame.text), frame.number) + frame.text)
    stream.write(frame.body)
    stream.flush()


def last_part(number: int, beside: Beside, send: Callable[[Frame], None]) -> tuple[bytes, int]:
    """Send all parts but the last, which goes with the answer: few things need more than one. Return it, and how many
    were sent."""
    if isinstance(beside, bytes):
        return beside, 0
    last, sent = next(beside, b""), 0
    for part in beside:
        send(Frame(number, PART, last))
        last = part
        sent += 1
    return last, sent


def _read(stream: IO[bytes], size: int) -> bytes | None:
    """Return exactly `size` bytes, None when the stream ends before."""
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            return None
        data += more
    return data
