"""Puffin files of deletion vectors, byte for byte as their specification has them."""

from __future__ import annotations

import json
import struct
import zlib

from pyroaring import BitMap

from lakelog.catalog.core.files.deletion_vectors import packed_vectors
from lakelog.catalog.core.files.puffin import AROUND_BYTES, HEAD_BYTES
from lakelog.log import WriteRef

WRITE = WriteRef(id="a" * 26, version=3)


def test_vectors_without_room_in_the_log_are_blobs_that_iceberg_reads() -> None:
    vectors = {
        "data/b": BitMap(range(0, 40_000, 7)),
        "/else/c": BitMap([*range(0, 9_000, 3), 70_000, 2**32 - 1]),
        "data/small": BitMap([1, 2]),
    }
    found_vectors, path, content = packed_vectors(WRITE, vectors, lambda file: f"s3://b/{file}")
    assert path is not None and path.endswith(".puffin") and found_vectors["data/small"].path is None

    assert content[:4] == content[-4:] == b"PFA1"
    size, flags = struct.unpack("<ii", content[-12:-4])
    assert flags == 0
    footer = json.loads(content[-12 - size : -12])
    assert content[-16 - size : -12 - size] == b"PFA1"
    end = 4
    for blob, file in zip(footer["blobs"], ("/else/c", "data/b"), strict=True):
        assert blob["type"] == "deletion-vector-v1"
        assert (blob["snapshot-id"], blob["sequence-number"], blob["fields"]) == (-1, -1, [])
        assert blob["properties"] == {
            "referenced-data-file": f"s3://b/{file}", "cardinality": str(len(vectors[file])),
        }  # fmt: skip
        assert blob["offset"] == end
        end += blob["length"]
        bytes_ = content[blob["offset"] : end]
        length, magic, bitmaps, key = struct.unpack(">I4s", bytes_[:8]) + struct.unpack("<qi", bytes_[8:20])
        assert (length, magic, bitmaps, key) == (len(bytes_) - 8, b"\xd1\xd3\x39\x64", 1, 0)
        assert struct.unpack(">I", bytes_[-4:]) == (zlib.crc32(bytes_[4:-4]),)
        assert BitMap.deserialize(bytes_[20:-4]) == vectors[file]
        deletes = found_vectors[file]
        assert deletes.offset == blob["offset"] + HEAD_BYTES
        assert deletes.size_bytes == blob["length"] - AROUND_BYTES
    assert end == len(content) - 16 - size
