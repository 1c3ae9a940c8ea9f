"""The name of a stored list of files in a root: a manifest, a leaf of a pack, or a list of removed paths."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pyarrow as pa

from lakelog.log.errors import FormatError
from lakelog.log.grammar import BlobName, Hash, Number

PACK = ".pack"
"""The suffix of names of packs."""


class StoredList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name of an object, with the hash of its content, or of the hashes of a leaf's parts.

    See `manifest_parts` for leaves, which have another form in a root (see `stored_sets`).
    """

    name: BlobName
    entries: Number
    seq: Number
    sha256: Hash

    @property
    def is_leaf(self) -> bool:
        return is_pack(self.name)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Have each FormatError name the manifest."""
        try:
            yield
        except FormatError as error:
            raise FormatError(f"the manifest {self.name}: {error.message}") from error

    def of_its_length(self, table: pa.Table) -> pa.Table:
        """Return a table that was read of it. Raises FormatError if its length differs from the root's."""
        if table.num_rows != self.entries:
            raise FormatError(
                f"it has {table.num_rows:,} entries, and its snapshot says {self.entries:,}: find out which client "
                "wrote it"
            )
        return table


def is_pack(name: str) -> bool:
    return name.endswith(PACK)


def object_hash(name: str, sha256: str) -> str:
    """Return the SHA-256 of a whole object, which the name of a pack contains."""
    return name[21:].removesuffix(PACK) if is_pack(name) else sha256
