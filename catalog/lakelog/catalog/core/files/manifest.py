"""A manifest as the set of files knows it: a stored list, and its decoded columns.

Bytes are checked by the hash that the root names before anything of them is decoded, and values as they are
decoded. `manifests` decides which manifests there are, and when they are merged.
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

    The bytes are kept encoded, and columns are decoded on demand. Once all are decoded, only the table is
    kept.
    """

    __slots__ = ("stored", "bounds", "_read")

    def __init__(
        self, stored_list: StoredList, table: pa.Table | None = None, bounds: BoundsAt | None = None
    ) -> None:
        self.stored = stored_list
        self.bounds = bounds
        # Replaced in a single assignment, as threads share a manifest.
        self._read: pa.Table | _Partly | None = table

    @property
    def version(self) -> int:
        """The version that was dumped when it was written. Its name begins with that version."""
        return int(self.stored.name[:20])

    @property
    def is_read(self) -> bool:
        return self._read is not None

    def read(self, blob: bytes, *, removed: bool) -> None:
        """Keep the bytes of the manifest, or of a list of removed paths.

        Raises FormatError for bytes with another hash.
        """
        if hashlib.sha256(blob).hexdigest() != self.stored.sha256:
            raise FormatError(
                f"the manifest {self.stored.name} does not have the content that its snapshot names: it was "
                "altered or truncated. Run lakelog fsck --repair, which writes it anew where the log allows that"
            )
        with self.stored.naming():
            self._read = _removed_paths(blob) if removed else _Partly(EncodedFiles(blob), None)

    def columns(self, statistics: Collection[int] | None = None, *, keep: bool = True) -> pa.Table:
        """Return all columns, or at least those that a plan needs (see `is_planned`).

        Raises FormatError for invalid values. Without `keep`, the next call decodes the columns again.
        """
        content = self._read
        if content is None:
            raise FormatError(f"the manifest {self.stored.name} was not read before it was used")
        if isinstance(content, pa.Table):
            return content
        with self.stored.naming():
            wider = content.with_columns(statistics)
            live_columns = wider.known
            assert live_columns is not None, "some columns are always needed"
            self.stored.of_its_length(live_columns)
        if keep and statistics is None:
            self._read = live_columns
        elif keep and wider is not content and self._read is content:
            self._read = wider
        return live_columns

    def judged(self, statistics: Collection[int]) -> pa.Table:
        """Return the columns by which files are judged (see `is_judged`), and keep none of them."""
        content = self._read
        if not isinstance(content, _Partly):
            table = self.columns()
            return table.select([name for name in table.column_names if is_judged(name, statistics)])
        with self.stored.naming():
            names = [name for name in content.encoded.names(None) if is_judged(name, statistics)]
            return self.stored.of_its_length(content.encoded.table(names))

    def paths(self) -> pa.ChunkedArray:
        """Return the paths of all entries, only to compare them, and keep none of them."""
        content = self._read
        if not isinstance(content, _Partly):
            return self.columns()["path"]
        with self.stored.naming():
            return self.stored.of_its_length(content.encoded.paths())["path"]

    def taken(self, statistics: Collection[int] | None, rows: pa.Array) -> pa.Table:
        """Return `columns` of some rows. Other rows are ignored."""
        content = self._read
        if not isinstance(content, _Partly):
            return self.columns(statistics).take(rows)
        with self.stored.naming():
            return content.encoded.table(content.encoded.names(statistics), rows)

    @staticmethod
    def new(table: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Manifest:
        """Return the manifest of `table`, named by the version of the dump, and put its bytes into
        `blobs`.
        """
        blob = encode_table(table)
        digest = hashlib.sha256(blob).hexdigest()
        name = f"{version:020d}-{digest[:16]}.arrow"
        blobs[name] = blob
        return Manifest(StoredList(name=name, entries=table.num_rows, seq=seq, sha256=digest), table)

    @staticmethod
    def of_files(files: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Manifest:
        """Return `new` for files, with their bounds."""
        manifest = Manifest.new(files, version, seq, blobs)
        manifest.bounds = bounds_of(manifest.stored.name, files)
        return manifest


@dataclass(frozen=True, slots=True)
class _Partly:
    """A manifest of which the columns in `known` are decoded."""

    encoded: EncodedFiles
    known: pa.Table | None

    def with_columns(self, statistics: Collection[int] | None) -> _Partly:
        """Return it with the columns of `EncodedFiles.names`, too; itself if these are decoded."""
        decoded_names = set() if self.known is None else set(self.known.column_names)
        absent_names = [name for name in self.encoded.names(statistics) if name not in decoded_names]
        if not absent_names:
            return self
        new_table = self.encoded.table(absent_names)
        if self.known is not None:
            for name in self.known.column_names:
                new_table = new_table.append_column(self.known.schema.field(name), self.known[name])
        # In their stored order, so that the bytes written of them are the same whenever they were decoded.
        return _Partly(
            self.encoded,
            new_table.select([name for name in self.encoded.names(None) if name in new_table.column_names]),
        )


def _removed_paths(blob: bytes) -> pa.Table:
    table = decode_table(blob)
    if table.column_names != ["path", "seq"]:
        raise FormatError("a list of removed paths has other columns than path and seq")
    check_list(table, {"path": pa.string(), "seq": pa.int64()})
    return table
