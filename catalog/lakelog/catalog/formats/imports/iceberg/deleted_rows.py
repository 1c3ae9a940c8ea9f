"""The deleted rows of an Iceberg table by data file: its deletion vectors, and its position files as vectors.

A deletion vector of a data file stands for all of its deleted rows. A position file applies to the data files
that it names, if these are not newer. Source: the specification of Iceberg's table format, "Scan Planning".
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lakelog.catalog.core.files import POSITION_LIMIT, bitmap_in
from lakelog.catalog.core.parquet import open_parquet
from lakelog.catalog.formats.imports.iceberg.manifests import IcebergEntry
from lakelog.log.errors import FormatError

_PATH, _POSITION = "file_path", "pos"

Key = tuple[str, int]


class DeletedRows:
    """The rows that the live delete files delete.

    `open` returns an object, `name_of` the unique name of a data file.
    """

    def __init__(self, open: Callable[[str], BinaryIO], name_of: Callable[[str], str]) -> None:
        self._open = open
        self._name_of = name_of
        self._live: dict[Key, IcebergEntry] = {}
        self._of_file: defaultdict[str, set[Key]] = defaultdict(set)
        self._positions: dict[Key, dict[str, BitMap]] = {}

    def add(self, entry: IcebergEntry) -> Iterable[str]:
        """Return the data files that a delete file applies to. It counts from now on."""
        self._live[entry.key] = entry
        if entry.vector is not None:
            if entry.about is None:
                raise FormatError(f"the deletion vector in {entry.path} does not name its data file")
            about: Iterable[str] = (self._name_of(entry.about),)
        else:
            self._positions[entry.key] = position_vectors(entry, self._open, self._name_of)
            about = self._positions[entry.key].keys()
        for name in about:
            self._of_file[name].add(entry.key)
        return about

    def remove(self, entry: IcebergEntry) -> Iterable[str]:
        """Return the data files that a delete file applied to. It does not count any more."""
        del self._live[entry.key]
        positions = self._positions.pop(entry.key, None)
        about = (self._name_of(entry.about),) if entry.about and entry.vector else tuple(positions or ())
        for name in about:
            self._of_file[name].discard(entry.key)
        return about

    def are_of(self, name: str) -> bool:
        """Return whether a live delete file applies to a data file."""
        return bool(self._of_file.get(name))

    def of(self, name: str, sequence: int) -> BitMap:
        """Return the deleted positions of a data file that was added with that sequence number."""
        keys = [key for key in self._of_file.get(name, ()) if self._live[key].sequence >= sequence]
        vectors = [self._live[key] for key in keys if self._live[key].vector is not None]
        if vectors:
            newest = max(vectors, key=lambda entry: entry.sequence)
            return vector_at(newest, self._open)
        return BitMap.union(*(self._positions[key][name] for key in keys)) if keys else BitMap()


def vector_at(entry: IcebergEntry, open: Callable[[str], BinaryIO]) -> BitMap:
    """Return the deleted rows in a deletion vector. Raises FormatError."""
    assert entry.vector is not None
    offset, size = entry.vector
    with open(entry.path) as source:
        if offset + size > source.seek(0, os.SEEK_END):
            raise FormatError(f"the deletion vector in {entry.path} is at {offset}, beyond its end")
        source.seek(offset)
        blob = source.read(size)
    try:
        bitmap = bitmap_in(blob)
        return BitMap.deserialize(bitmap) if bitmap else BitMap()
    except ValueError:
        raise FormatError(f"the deletion vector in {entry.path} is not a Roaring bitmap") from None


def position_vectors(
    entry: IcebergEntry, open: Callable[[str], BinaryIO], name_of: Callable[[str], str]
) -> dict[str, BitMap]:
    """Return the deleted rows in a position file, by the names of their data files. Raises FormatError."""
    bitmaps: defaultdict[str, BitMap] = defaultdict(BitMap)
    try:
        with open(entry.path) as source:
            file = open_parquet(source, entry.size_bytes, None)
            _check_columns(file.schema_arrow, entry.path)
            for batch in file.iter_batches(columns=[_PATH, _POSITION]):
                _add_positions(batch, bitmaps, entry.path, name_of)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(
            f"the file of deleted rows {entry.path} cannot be read as Parquet ({error})"
        ) from error
    return dict(bitmaps)


def _check_columns(schema: pa.Schema, path: str) -> None:
    if not {_PATH, _POSITION} <= set(schema.names):
        raise FormatError(f"the file of deleted rows {path} has no columns file_path and pos")
    path_type, position_type = schema.field(_PATH).type, schema.field(_POSITION).type
    if pa.types.is_dictionary(path_type):
        path_type = path_type.value_type
    is_text = pa.types.is_string(path_type) or pa.types.is_large_string(path_type)
    if not is_text or not pa.types.is_integer(position_type):
        raise FormatError(
            f"the file of deleted rows {path} has {path_type} for file_path and {position_type} for pos, and not texts "
            "and whole numbers"
        )


def _add_positions(
    batch: pa.RecordBatch, bitmaps: defaultdict[str, BitMap], path: str, name_of: Callable[[str], str]
) -> None:
    if batch.column(_PATH).null_count or batch.column(_POSITION).null_count:
        raise FormatError(f"the file of deleted rows {path} has rows without a file or position")
    paths = batch.column(_PATH)
    if not pa.types.is_dictionary(paths.type):
        paths = pc.dictionary_encode(paths)
    positions = batch.column(_POSITION).to_numpy(zero_copy_only=False)
    if len(positions) and not 0 <= positions.min() <= positions.max() < POSITION_LIMIT:
        raise FormatError(f"the file of deleted rows {path} has positions that no file has")
    places = paths.indices.to_numpy(zero_copy_only=False)
    for place, name in enumerate(paths.dictionary.to_pylist()):
        bitmaps[name_of(name)] |= BitMap(positions[places == place].astype(np.uint32))
