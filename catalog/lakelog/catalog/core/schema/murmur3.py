"""murmur3_x86_32 with seed 0, the hash of Iceberg's bucket transform, over whole columns at once.

The algorithm is Austin Appleby's MurmurHash3, which is in the public domain. Iceberg's specification,
appendix B, says which bytes of each type are hashed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Uint32s: TypeAlias = npt.NDArray[np.uint32]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)


def hash_longs(values: npt.NDArray[np.int64]) -> _Uint32s:
    """Return the hash of each value's eight bytes, the lowest first."""
    bits = values.astype(np.int64, copy=False).view(np.uint64)
    hashes = np.zeros(len(values), dtype=np.uint32)
    for half in (bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)):
        hashes = _mixed(hashes, half.astype(np.uint32))
    return _finished(hashes, np.uint32(8))


def hash_slices(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> _Uint32s:
    """Return the hash of each slice of `data`.

    Costs a single pass over the bytes, for any distribution of lengths.
    """
    # Longest first, so that the slices that still have a block i are always the first slices.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    # Four more bytes, so that a tail can be read as a whole block and masked.
    padded_data = np.concatenate([data, np.zeros(4, dtype=np.uint8)])
    blocks = lengths // 4
    hashes = np.zeros(len(starts), dtype=np.uint32)
    longest = int(blocks[0]) if len(blocks) else 0
    slices_left = np.searchsorted(-blocks, -np.arange(1, longest + 1), side="right")
    for block in range(longest):
        active = int(slices_left[block])
        hashes[:active] = _mixed(hashes[:active], _block(padded_data, starts[:active] + 4 * block))
    tails = lengths % 4
    tail = _block(padded_data, starts + 4 * blocks) & _TAIL_MASKS[tails]
    hashes = np.where(tails > 0, hashes ^ _scrambled(tail), hashes)
    result = np.empty_like(hashes)
    result[order] = _finished(hashes, lengths.astype(np.uint32))
    return result


def _block(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> _Uint32s:
    block = data[starts].astype(np.uint32)
    for byte in (1, 2, 3):
        block |= data[starts + byte].astype(np.uint32) << np.uint32(8 * byte)
    return block


def _scrambled(block: _Uint32s) -> _Uint32s:
    product: _Uint32s = _rotated(block * _C1, 15) * _C2
    return product


def _mixed(hashes: _Uint32s, block: _Uint32s) -> _Uint32s:
    result: _Uint32s = _rotated(hashes ^ _scrambled(block), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return result


def _finished(hashes: _Uint32s, lengths: Any) -> _Uint32s:
    hashes = hashes ^ lengths
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    result: _Uint32s = hashes ^ (hashes >> np.uint32(16))
    return result


def _rotated(values: _Uint32s, by: int) -> _Uint32s:
    result: _Uint32s = (values << np.uint32(by)) | (values >> np.uint32(32 - by))
    return result
