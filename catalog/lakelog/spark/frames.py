"""Messages on the pipes between Spark and Python: JSON, and bytes beside it.

On the wire: the length of all that follows, the length of the JSON (both four bytes, big-endian), the JSON, the
bytes. The Scala side of the same is `bridge/Frame.scala`.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec

_LENGTHS = struct.Struct(">II")
_BODY_LIMIT_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Frame:
    json: Mapping[str, Any]
    body: bytes = b""


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next frame, None at the end of the stream."""
    header = _read(stream, _LENGTHS.size)
    if header is None:
        return None
    length, json_length = _LENGTHS.unpack(header)
    payload = _read(stream, length - 4)
    if payload is None:
        return None
    return Frame(msgspec.json.decode(payload[:json_length], type=dict[str, Any]), payload[json_length:])


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write one frame and flush. The caller sees to it that only one thread writes."""
    json = msgspec.json.encode(frame.json)
    length = 4 + len(json) + len(frame.body)
    if length > _BODY_LIMIT_BYTES:
        raise ValueError(f"an answer of {length} bytes is larger than a JVM can take")
    stream.write(_LENGTHS.pack(length, len(json)) + json)
    stream.write(frame.body)
    stream.flush()


def _read(stream: BinaryIO, size: int) -> bytes | None:
    """Return exactly `size` bytes, None when the stream ends before."""
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            return None
        data += more
    return data
