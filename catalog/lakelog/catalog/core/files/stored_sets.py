"""The stored form of sets of files in a snapshot's root. Several sets of a root have most manifests in common.

A manifest is named by each set that has it. A pack is described once in the root, for all sets (see
`manifest_parts`). Sets name its leaves by numbers, so a tag of a large table takes little room.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import msgspec

from lakelog.catalog.core.files.file_set import FileSetRoot
from lakelog.catalog.core.files.leaves import ManifestLeaf
from lakelog.catalog.core.files.manifest_parts import Directories, LeafDirectory, StoredPack, directories_in
from lakelog.catalog.core.files.manifests import ManifestSet
from lakelog.catalog.core.files.stored_list import StoredList, is_pack, object_hash
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log.errors import FormatError
from lakelog.log.grammar import BlobName, Hash, Number


class StoredEntries(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A manifest, with its length and its hash. Of a pack, the numbers of `leaves` instead."""

    name: BlobName
    entries: Number | None = None
    seq: Number
    sha256: Hash | None = None
    leaves: tuple[Number, ...] = ()


class StoredFileSet(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Exact totals of the live files, their manifests, and the lists of removed paths."""

    files: Number
    rows: Number
    bytes: Number
    manifests: tuple[StoredEntries, ...]
    removed: tuple[StoredList, ...] = ()

    @property
    def objects(self) -> dict[str, str]:
        """The SHA-256 of each object that the set has, by the object's name."""
        hashes = {entries.name: object_hash(entries.name, entries.sha256 or "") for entries in self.manifests}
        return hashes | {paths.name: paths.sha256 for paths in self.removed}


ready(StoredFileSet)


class PackNumbers:
    """Numbers the leaves of packs for a new root, in the order in which its sets name them."""

    def __init__(self) -> None:
        self._leaves: dict[str, dict[str, tuple[int, ManifestLeaf]]] = {}

    def stored(self, root: FileSetRoot, manifests: ManifestSet) -> StoredFileSet:
        """Return the stored form of a set that was dumped."""
        stored_entries: list[StoredEntries] = []
        for (name, seq), group in groupby(
            manifests.entries, lambda entries: (entries.stored.name, entries.stored.seq)
        ):
            manifest_group = list(group)
            leaves = [self._number(leaf) for leaf in manifest_group if isinstance(leaf, ManifestLeaf)]
            if leaves:
                stored_entries.append(StoredEntries(name=name, seq=seq, leaves=tuple(leaves)))
            else:
                stored_entries += (_stored(manifest.stored) for manifest in manifest_group)
        return StoredFileSet(
            files=root.files,
            rows=root.rows,
            bytes=root.bytes,
            manifests=tuple(stored_entries),
            removed=tuple(root.removed),
        )

    def packs(self) -> dict[str, StoredPack]:
        """Return the packs that the sets name, by their names."""
        return {
            name: StoredPack.of([(leaf.stored.entries, leaf.directory) for _, leaf in leaves.values()])
            for name, leaves in self._leaves.items()
        }

    def _number(self, leaf: ManifestLeaf) -> int:
        leaves = self._leaves.setdefault(leaf.stored.name, {})
        return leaves.setdefault(leaf.stored.sha256, (len(leaves), leaf))[0]


class PackLeaves:
    """The leaves of the packs of a root, by their numbers. Raises FormatError for a wrong pack."""

    def __init__(self, packs: Mapping[str, StoredPack]) -> None:
        self._leaves: dict[str, list[tuple[int, LeafDirectory]]] = {
            name: list(zip(pack.entries, directories_in(name, pack), strict=True))
            for name, pack in packs.items()
        }

    @property
    def directories(self) -> Directories:
        return {
            (name, directory.sha256): directory
            for name, leaves in self._leaves.items()
            for _, directory in leaves
        }

    def root_of(self, stored_set: StoredFileSet) -> FileSetRoot:
        """Return the root of a set, with a list for each leaf. Raises FormatError if a pack lacks a leaf."""
        return FileSetRoot(
            files=stored_set.files,
            rows=stored_set.rows,
            bytes=stored_set.bytes,
            manifests=[item for entries in stored_set.manifests for item in self._lists(entries)],
            removed=list(stored_set.removed),
        )

    def _lists(self, entries: StoredEntries) -> list[StoredList]:
        name, seq = entries.name, entries.seq
        if is_pack(name) and entries.leaves and entries.entries is None and entries.sha256 is None:
            leaves = self._leaves.get(name, [])
            if any(number >= len(leaves) for number in entries.leaves):
                raise FormatError(
                    f"a snapshot names a part of {name}, and does not say where it is: another program wrote it. Run "
                    "lakelog fsck --repair, which writes it anew where the log allows that"
                )
            numbered_leaves = (leaves[number] for number in entries.leaves)
            return [
                StoredList(name=name, entries=length, seq=seq, sha256=directory.sha256)
                for length, directory in numbered_leaves
            ]
        if is_pack(name) or entries.leaves or entries.entries is None or entries.sha256 is None:
            raise FormatError(
                f"a snapshot names {name} in the form of another kind of manifest: another program wrote it"
            )
        return [StoredList(name=name, entries=entries.entries, seq=seq, sha256=entries.sha256)]


def _stored(manifest: StoredList) -> StoredEntries:
    return StoredEntries(
        name=manifest.name, entries=manifest.entries, seq=manifest.seq, sha256=manifest.sha256
    )
