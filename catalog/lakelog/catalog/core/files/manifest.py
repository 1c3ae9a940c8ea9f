"""One manifest as the set of files knows it: a stored list, and what was decoded of it.

What is read is checked by the hash that the root names before anything of it is decoded, and values as they are
decoded. Which manifests there are, and when they are merged, is in `manifests`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.core.files.arrow_lists import check_list, decode_table, encode_table
from lakelog.catalog.core.files.data_file import EncodedFiles, is_judged
from lakelog.catalog.core.files.manifest_bounds import BoundsAt, bounds_of
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.log.errors import FormatError


class Manifest:
    """A stored list with its content, once it was read or while it is being written.

    What was read is kept encoded, and by columns as they are asked for; once all are decoded, as a table only.
    """

    __slots__ = ("stored", "bounds", "_read")

    def __init__(
        self, stored: StoredList, table: pa.Table | None = None, bounds: BoundsAt | None = None
    ) -> None:
        self.stored = stored
        self.bounds = bounds
        # Replaced by one assignment, as threads share a manifest.
        self._read: pa.Table | _Partly | None = table

    @property
    def version(self) -> int:
        """The version that was dumped when it was written, with which its name begins."""
        return int(self.stored.name[:20])

    @property
    def is_read(self) -> bool:
        return self._read is not None

    def read(self, blob: bytes, *, removed: bool) -> None:
        """Keep the bytes of the manifest, or of a list of removed paths. FormatError for others than are named."""
        if hashlib.sha256(blob).hexdigest() != self.stored.sha256:
            raise FormatError(
                f"the manifest {self.stored.name} does not have the content that its snapshot names: it was "
                "altered or truncated. Run lakelog fsck --repair, which writes it anew where the log allows that"
            )
        with self.stored.naming():
            self._read = _removed_paths(blob) if removed else _Partly(EncodedFiles(blob), None)

    def columns(self, statistics: Collection[int] | None = None, *, keep: bool = True) -> pa.Table:
        """Return all columns, or at least those that a plan needs (see `is_planned`). FormatError for other values.

        Without `keep`, what is decoded here is decoded again the next time.
        """
        read = self._read
        if read is None:
            raise FormatError(f"the manifest {self.stored.name} was not read before it was used")
        if isinstance(read, pa.Table):
            return read
        with self.stored.naming():
            wider = read.with_columns(statistics)
            known = wider.known
            assert known is not None, "some columns are always needed"
            self.stored.of_its_length(known)
        if keep and statistics is None:
            self._read = known
        elif keep and wider is not read and self._read is read:
            self._read = wider
        return known

    def judged(self, statistics: Collection[int]) -> pa.Table:
        """Return the columns by which files are judged (see `is_judged`), and keep none of them."""
        read = self._read
        if not isinstance(read, _Partly):
            table = self.columns()
            return table.select([name for name in table.column_names if is_judged(name, statistics)])
        with self.stored.naming():
            names = [name for name in read.encoded.names(None) if is_judged(name, statistics)]
            return self.stored.of_its_length(read.encoded.table(names))

    def paths(self) -> pa.ChunkedArray:
        """Return the paths of all entries, to be compared only, and keep none of them."""
        read = self._read
        if not isinstance(read, _Partly):
            return self.columns()["path"]
        with self.stored.naming():
            return self.stored.of_its_length(read.encoded.paths())["path"]

    def taken(self, statistics: Collection[int] | None, rows: pa.Array) -> pa.Table:
        """As `columns`, of some rows: the others are not looked at."""
        read = self._read
        if not isinstance(read, _Partly):
            return self.columns(statistics).take(rows)
        with self.stored.naming():
            return read.encoded.table(read.encoded.names(statistics), rows)

    @staticmethod
    def new(table: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Manifest:
        """Return the manifest of `table`, named by the version that is dumped, and put its bytes into `blobs`."""
        blob = encode_table(table)
        digest = hashlib.sha256(blob).hexdigest()
        name = f"{version:020d}-{digest[:16]}.arrow"
        blobs[name] = blob
        return Manifest(StoredList(name=name, entries=table.num_rows, seq=seq, sha256=digest), table)

    @staticmethod
    def of_files(files: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Manifest:
        """As `new`, of files, with their bounds."""
        manifest = Manifest.new(files, version, seq, blobs)
        manifest.bounds = bounds_of(manifest.stored.name, files)
        return manifest


@dataclass(frozen=True, slots=True)
class _Partly:
    """A manifest of which the columns in `known` are decoded."""

    encoded: EncodedFiles
    known: pa.Table | None

    def with_columns(self, statistics: Collection[int] | None) -> _Partly:
        """Return it with the columns of `EncodedFiles.names`, too; itself where these are decoded."""
        there = set() if self.known is None else set(self.known.column_names)
        missing = [name for name in self.encoded.names(statistics) if name not in there]
        if not missing:
            return self
        found = self.encoded.table(missing)
        if self.known is not None:
            for name in self.known.column_names:
                found = found.append_column(self.known.schema.field(name), self.known[name])
        # As they are stored, so that what is written of them is the same whenever it was decoded.
        return _Partly(
            self.encoded,
            found.select([name for name in self.encoded.names(None) if name in found.column_names]),
        )


def _removed_paths(blob: bytes) -> pa.Table:
    table = decode_table(blob)
    if table.column_names != ["path", "seq"]:
        raise FormatError("a list of removed paths has other columns than path and seq")
    check_list(table, {"path": pa.string(), "seq": pa.int64()})
    return table
