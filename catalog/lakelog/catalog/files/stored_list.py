"""How a root names a list of files: a manifest, a leaf of a pack, or a list of removed paths."""

from __future__ import annotations

import msgspec

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
