"""Files of another writer that a table has adopted. The table owns them, and they are deleted if no version
has them.

Rule: only files that a commit names are adopted. A file stays in the set until a commit says that it was
deleted, whatever happens to the table's contents. It must not know how it is proven that a file has no other
owner. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, decode_removed, encode_removed
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.stored_sets import StoredFileSet
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.state.events import AdoptedDeleted, FilesAdopted
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.log.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class AdoptedFiles:
    """The source that the files were imported from, and its files that are not deleted yet. Their rows are
    not counted."""

    source: ImportedSource
    files: FileSet = field(default_factory=FileSet.empty)

    def may_have(self, path: str) -> bool:
        """Return whether a file may be, or have been, an adopted file, by its path alone."""
        return path.startswith(f"{self.source.url}/")


class StoredAdopted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored form in a snapshot. `files` is stored like the table's own files."""

    source: ImportedSource
    files: StoredFileSet


ready(StoredAdopted)

FILES_INLINE_MAX = 200

_Naming = TypeVar("_Naming", FilesAdopted, AdoptedDeleted)


def naming(event: _Naming, sizes: Mapping[str, int]) -> tuple[_Naming, tuple[bytes, ...]]:
    """Return an event that names these files, by path with their sizes, and the sidecars of its commit.

    If there are many files, a sidecar has them (see `listed`).
    """
    files = tuple(RemovedFile(path=path, rows=0, size_bytes=size) for path, size in sorted(sizes.items()))
    if len(files) <= FILES_INLINE_MAX:
        return msgspec.structs.replace(event, files=files), ()
    return msgspec.structs.replace(event, files_sidecar=0), (encode_removed(files),)


def with_adopted(event: FilesAdopted, blobs: Sequence[bytes]) -> AdoptedFiles:
    entries = [DataFile(path=file.path, size_bytes=file.size_bytes, rows=0) for file in listed(event, blobs)]
    return AdoptedFiles(event.source, FileSet.empty().added(entries, Schema(fields=(), last_id=0), ()))


def without_deleted(
    adopted: AdoptedFiles | None, event: AdoptedDeleted, blobs: Sequence[bytes]
) -> AdoptedFiles | None:
    if adopted is None:
        return None
    return AdoptedFiles(adopted.source, adopted.files.removed(listed(event, blobs)))


def listed(event: FilesAdopted | AdoptedDeleted, blobs: Sequence[bytes]) -> Sequence[RemovedFile]:
    """Return the files that an event names. If there are many, they are in its commit's sidecar."""
    return event.files if event.files_sidecar is None else decode_removed(blobs[event.files_sidecar])


def check_not_adopted(adopted: AdoptedFiles | None, files: Sequence[DataFile]) -> None:
    """Raise InvalidInput for a file that a vacuum of this table may delete already."""
    for file in files if adopted is not None else ():
        assert adopted is not None
        if adopted.may_have(file.path):
            raise InvalidInput(
                f"the file {file.path} is in {adopted.source.url}, whose files this table has adopted, so that its "
                "vacuum may delete it: insert the file's rows by a query"
            )
