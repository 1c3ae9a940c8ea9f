"""How a root names a list of files: a manifest, a leaf of a pack, or a list of removed paths."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pyarrow as pa

from lakelog.log.errors import FormatError
from lakelog.log.grammar import BlobName, Hash, Number

PACK = ".pack"
"""How names of packs end."""


class StoredList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`name` is an object's. `sha256` is that of its content, or of a leaf's directory (see `manifest_parts`)."""

    name: BlobName
    entries: Number
    seq: Number
    sha256: Hash

    @property
    def is_leaf(self) -> bool:
        return self.name.endswith(PACK)

    @property
    def object_sha256(self) -> str:
        """The SHA-256 of the whole object. Of a pack, its name has it."""
        return self.name[21:].removesuffix(PACK) if self.is_leaf else self.sha256

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Say of what is wrong where it is."""
        try:
            yield
        except FormatError as error:
            raise FormatError(f"the manifest {self.name}: {error.message}") from error

    def of_its_length(self, table: pa.Table) -> pa.Table:
        """Return what was read of it. FormatError for another length than its root says."""
        if table.num_rows != self.entries:
            raise FormatError(
                f"it has {table.num_rows:,} entries, and its snapshot says {self.entries:,}: find out which client "
                "wrote it"
            )
        return table
