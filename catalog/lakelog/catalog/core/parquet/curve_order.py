"""Any number of rows in the order of a curve, in bounded memory: by sorted pieces on the local disk.

Pieces of rows are sorted as they come, and written to a temporary folder once there are several. The rows of
each stretch of the curve are counted on the way, so that stretches of about a piece can be read back in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.parquet.row_order import places_on
from lakelog.catalog.core.parquet.temporary import temporary_folder
from lakelog.catalog.core.schema.curve import ClusteringCurve, Ints
from lakelog.catalog.core.schema.schema import Schema

PIECE_BYTES = 64 * 1024 * 1024
_STRETCHES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows in the order of the curve, and the row at which each stretch of the curve begins."""

    rows: pa.Table
    starts: Ints


def along_curve(
    batches: Iterable[pa.Table], curve: ClusteringCurve, schema: Schema, *, piece_bytes: int = PIECE_BYTES
) -> Iterator[pa.Table]:
    """Yield the rows of `batches` in the order of the curve, in tables of about `piece_bytes`.

    Rows of the same place come in any order. Rows of a stretch that is larger than a piece are not sorted.
    """
    with temporary_folder("cluster") as folder:
        pieces: list[_Piece] = []
        size_bytes = 0
        for part in _parts(batches, piece_bytes):
            size_bytes += part.nbytes
            if len(pieces) == 1:
                pieces[0] = _on_disk(pieces[0], folder, 0)
            piece = _sorted_piece(part, curve, schema)
            pieces.append(_on_disk(piece, folder, len(pieces)) if pieces else piece)
        yield from _merged(pieces, size_bytes, curve, schema, piece_bytes)
        del pieces


def _parts(batches: Iterable[pa.Table], piece_bytes: int) -> Iterator[pa.Table]:
    part_batches: list[pa.Table] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        part_batches.append(batch)
        size += batch.nbytes
        if size >= piece_bytes:
            yield pa.concat_tables(part_batches)
            part_batches, size = [], 0
    if part_batches:
        yield pa.concat_tables(part_batches)


def _stretches(places: Ints, curve: ClusteringCurve) -> Ints:
    return places * _STRETCHES // curve.ranks.places if curve.ranks.places > _STRETCHES else places


def _sorted_piece(part: pa.Table, curve: ClusteringCurve, schema: Schema) -> _Piece:
    places = places_on(curve, part, schema)
    order = np.argsort(places, kind="stable")
    stretches = _stretches(places[order], curve)
    starts = np.searchsorted(stretches, np.arange(_STRETCHES + 1)).astype(np.int64)
    return _Piece(part.take(pa.array(order)), starts)


def _on_disk(piece: _Piece, folder: Path, number: int) -> _Piece:
    path = str(folder / f"{number}.arrow")
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, piece.rows.schema) as writer:
        writer.write_table(piece.rows, max_chunksize=64 * 1024)
    memory = pa.memory_map(path)
    return _Piece(pa.ipc.open_file(memory).read_all(), piece.starts)


def _merged(
    pieces: list[_Piece], size_bytes: int, curve: ClusteringCurve, schema: Schema, piece_bytes: int
) -> Iterator[pa.Table]:
    if len(pieces) < 2:
        yield from (piece.rows for piece in pieces)
        return
    ends: Ints = np.sum([piece.starts for piece in pieces], axis=0)
    total = int(ends[-1])
    most = max(1, total * piece_bytes // max(1, size_bytes))
    start = 0
    while start < _STRETCHES:
        # As many stretches as have the rows of a piece together, but at least the next that has any.
        end = int(np.searchsorted(ends, int(ends[start]) + most, side="right")) - 1
        end = min(max(end, start + 1), _STRETCHES)
        parts = [
            piece.rows.slice(int(piece.starts[start]), int(piece.starts[end] - piece.starts[start]))
            for piece in pieces
        ]
        rows = int(ends[end] - ends[start])
        if rows > 2 * most:
            yield from (part for part in parts if part.num_rows)
        elif rows:
            together = pa.concat_tables(parts)
            order = np.argsort(places_on(curve, together, schema), kind="stable")
            yield together.take(pa.array(order))
        start = end
