"""Lists of files and bitmaps of deleted rows are known to be sound before their libraries read them."""

from __future__ import annotations

import contextlib
import random
import zlib

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap
from tests.integration.forging import hostile

from lakelog.catalog.core.files import arrow_lists
from lakelog.catalog.core.files.deletion_vectors import DeletionVector, decoded_vector
from lakelog.log import FormatError


def test_a_hostile_bitmap_is_refused_or_sound() -> None:
    """The library verifies what it reads; without that, some of these would be read for ever, or beyond their end."""
    rng = random.Random(2)
    good = [BitMap(range(0, 300, 3)), BitMap([1, 70_000, *range(400_000, 470_000)])]
    good[1].run_optimize()
    blobs = [hostile.damaged(rng.choice(good).serialize(), rng) for _ in range(1_000)]
    refused_number = 0
    for blob in (*blobs, *(make() for label, make in hostile.VECTORS.items() if label != "a run of 2^32")):
        deletes = DeletionVector(rows=0, size_bytes=len(blob), crc=zlib.crc32(blob))
        with contextlib.suppress(ValueError, IndexError):
            deletes = msgspec.structs.replace(deletes, rows=len(BitMap.deserialize(blob)))
        try:
            positions = np.asarray(decoded_vector(deletes, blob, 2**32), dtype=np.int64)
        except FormatError:
            refused_number += 1
            continue
        assert len(positions) == deletes.rows and (np.diff(positions) > 0).all()
    assert refused_number > 500 + len(hostile.VECTORS) - 3


def test_what_a_list_of_files_expands_to_is_known_before() -> None:
    blob = hostile.bomb()
    assert len(blob) < 20_000
    usual = pa.default_memory_pool()
    proxy_memory_pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(proxy_memory_pool)
    try:
        with pytest.raises(FormatError, match="expands to 400,000,000 bytes"):
            arrow_lists.decode_table(blob)
    finally:
        pa.set_memory_pool(usual)
    assert proxy_memory_pool.max_memory() < 1_000_000


def test_a_list_that_would_expand_too_far_is_written_uncompressed() -> None:
    table = pa.table({"size": np.zeros(10_000_000, dtype=np.int64)})
    blob = arrow_lists.encode_table(table)
    assert len(blob) > table.nbytes and arrow_lists.decode_table(blob).equals(table)


@pytest.mark.parametrize("compression", ["zstd", None])
def test_a_list_is_read_as_it_was_written(compression: str | None) -> None:
    table = pa.table({"path": ["a", None, "c" * 1_000], "rows": [1, 2, None], "x": [True, None, False]})
    assert arrow_lists.decode_table(arrow_lists._written(table, compression)).equals(table)


def test_a_damaged_list_is_refused_or_valid() -> None:
    rng = random.Random(3)
    blob = arrow_lists.encode_table(pa.table({"path": ["data/a", "data/b"] * 50, "rows": list(range(100))}))
    for _ in range(500):
        try:
            arrow_lists.decode_table(hostile.damaged(blob, rng)).to_pylist()
        except FormatError as error:
            assert len(str(error)) < 500
