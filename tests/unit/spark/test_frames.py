from __future__ import annotations

import io
import struct
from typing import BinaryIO, cast

import pytest

from lakelog.spark.frames import BridgeFrame, read_frame, write_frame


def test_a_frame_is_read_as_it_was_written():
    pipe = io.BytesIO()
    first, second = BridgeFrame(1, '{"text":"ünï"}'.encode(), b"\x00\x01"), BridgeFrame(2**40, b"{}")
    write_frame(pipe, first)
    write_frame(pipe, second)
    pipe.seek(0)
    assert [read_frame(pipe), read_frame(pipe), read_frame(pipe)] == [first, second, None]


def test_the_bytes_are_two_lengths_the_number_json_and_body():
    pipe = io.BytesIO()
    write_frame(pipe, BridgeFrame(9, b'{"a":7}', b"xyz"))
    assert pipe.getvalue() == struct.pack(">IIQ", 4 + 8 + 7 + 3, 7, 9) + b'{"a":7}xyz'


def test_a_frame_that_no_jvm_can_take_is_refused_before_it_is_written():
    class Large(bytes):
        def __len__(self) -> int:
            return 2**31 - 12

    with pytest.raises(ValueError, match="2147483650 bytes"):
        BridgeFrame(1, b"{}", Large())


class Trickle(io.RawIOBase):
    """Gives one byte at a time, as a pipe may."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(1 if size else 0)


def test_a_frame_that_comes_in_pieces_is_put_together():
    pipe = io.BytesIO()
    write_frame(pipe, BridgeFrame(3, b"{}", b"abc"))
    assert read_frame(cast(BinaryIO, Trickle(pipe.getvalue()))) == BridgeFrame(3, b"{}", b"abc")


@pytest.mark.parametrize("kept", [1, 7, 9, 15, 17, 20])
def test_a_stream_that_ends_within_a_frame_is_at_its_end(kept):
    pipe = io.BytesIO()
    write_frame(pipe, BridgeFrame(3, b"{}", b"abc"))
    assert read_frame(io.BytesIO(pipe.getvalue()[:kept])) is None
