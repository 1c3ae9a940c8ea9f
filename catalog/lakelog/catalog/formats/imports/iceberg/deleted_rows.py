"""The deleted rows of an Iceberg table by data file: its deletion vectors, and its position files as vectors.

A deletion vector of a data file stands for all of its deleted rows. A position file applies to the data files
that it names, if these are not newer. Source: the specification of Iceberg's table format, "Scan Planning".
"""

from __future__ import annotations

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
    with open(entry.path) as source:
        file = open_parquet(source, entry.size_bytes, None)
        if not {_PATH, _POSITION} <= set(file.schema_arrow.names):
            raise FormatError(f"the file of deleted rows {entry.path} has no columns file_path and pos")
        for batch in file.iter_batches(columns=[_PATH, _POSITION]):
            paths = pc.dictionary_encode(batch.column(_PATH))
            positions = batch.column(_POSITION).to_numpy(zero_copy_only=False)
            if len(positions) and not 0 <= positions.min() <= positions.max() < POSITION_LIMIT:
                raise FormatError(f"the file of deleted rows {entry.path} has positions that no file has")
            if pa.types.is_dictionary(batch.column(_PATH).type):
                paths = batch.column(_PATH)
            places = paths.indices.to_numpy(zero_copy_only=False)
            for place, path in enumerate(paths.dictionary.to_pylist()):
                bitmaps[name_of(path)] |= BitMap(positions[places == place].astype(np.uint32))
    return dict(bitmaps)
