"""Whether bytes are a Roaring bitmap in its portable form, checked before the library that reads bitmaps sees them.

The library checks lengths only, and goes through its containers for ever, or beyond their ends, where their values are
not in order. Rule: every container is what its header says, and in order. Pure; see
https://github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_CONTAINERS_MAX = 2**16
_ARRAY_MAX = 4096
_BITSET_BYTES = 8192
_OFFSETS_FROM = 4
"""With runs, offsets are there from this number of containers on; without, always."""


def is_portable(blob: bytes) -> bool:
    """Return whether `blob` is one bitmap and nothing else. Costs a pass over it."""
    try:
        return _end(blob) == len(blob)
    except (struct.error, ValueError, IndexError):
        return False


def _end(blob: bytes) -> int:
    """Return where the bitmap ends. ValueError where it is not one."""
    cookie = _number(blob, 0, "<I")
    at, runs = 4, b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = blob[at : at + (count + 7) // 8]
        at += len(runs)
    elif cookie == _WITHOUT_RUNS:
        count = _number(blob, at, "<I")
        at += 4
    else:
        raise ValueError(cookie)
    if count > _CONTAINERS_MAX:
        raise ValueError(count)
    heads = _numbers(blob, at, 2 * count).reshape(count, 2)
    at += 4 * count
    _check_rising(heads[:, 0])
    offsets = None
    if not runs or count >= _OFFSETS_FROM:
        offsets = np.frombuffer(blob, "<u4", count, at)
        at += 4 * count
    for number, cardinality in enumerate(heads[:, 1].astype(np.int64).tolist()):
        if offsets is not None and offsets[number] != at:
            raise ValueError(at)
        is_run = bool(runs) and bool(runs[number // 8] >> (number % 8) & 1)
        at = _container_end(blob, at, cardinality + 1, is_run)
    return at


def _container_end(blob: bytes, at: int, cardinality: int, is_run: bool) -> int:
    if is_run:
        count = _number(blob, at, "<H")
        parts = _numbers(blob, at + 2, 2 * count).reshape(count, 2).astype(np.int64)
        ends = parts[:, 0] + parts[:, 1]
        if (
            (ends > 0xFFFF).any()
            or (parts[1:, 0] <= ends[:-1]).any()
            or parts[:, 1].sum() + count != cardinality
        ):
            raise ValueError(at)
        return at + 2 + 4 * count
    if cardinality <= _ARRAY_MAX:
        _check_rising(_numbers(blob, at, cardinality))
        return at + 2 * cardinality
    bits = np.frombuffer(blob, np.uint8, _BITSET_BYTES, at)
    if int(np.unpackbits(bits).sum()) != cardinality:
        raise ValueError(at)
    return at + _BITSET_BYTES


def _number(blob: bytes, at: int, form: str) -> int:
    return int(struct.unpack_from(form, blob, at)[0])


def _numbers(blob: bytes, at: int, count: int) -> npt.NDArray[np.uint16]:
    return np.frombuffer(blob, "<u2", count, at) if count else np.empty(0, np.uint16)


def _check_rising(values: npt.NDArray[np.uint16]) -> None:
    if (values[1:] <= values[:-1]).any():
        raise ValueError("not in order")
