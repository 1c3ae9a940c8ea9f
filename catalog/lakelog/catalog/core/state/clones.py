"""Clones: a table's promises to its clones, and a clone's records of the tables that promised. Pure.

A clone uses files of another table in their place. Two logs record it. The table's log keeps these files,
like the files of a tag, until the clone needs them no more. The clone's log names each log that has promised.
Whether a promise still counts is decided by the clone's log: it ends if the clone is purged, or has released
the other log. The end in the promising log only follows that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.stored_sets import StoredFileSet
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Folder, Id, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonePromise:
    """A promise: the files of a table's version `version`, with its columns then, are kept for the clone at
    `location`."""

    location: str
    version: int
    files: FileSet
    metadata: Metadata


class CloneOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log of a table that has promised to keep files for a clone: its location and its id."""

    location: Folder
    id: Id


class TableAncestor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log of a table that a clone comes from. Rows with ids below `until` are also rows of that table."""

    id: Id
    until: Number


class StoredPromise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A promise in a snapshot, with the names of its manifests."""

    location: Folder
    version: Number
    files: StoredFileSet
    metadata: Metadata


ready(CloneOrigin, TableAncestor, StoredPromise)


def promised(clones: Mapping[str, ClonePromise], id: str) -> tuple[FileSet, Metadata]:
    """Return the files and metadata that are kept for a clone."""
    if id not in clones:
        raise FormatError(
            f"the log promises what it keeps for the clone {id}, which it does not know: it was written by a faulty "
            "client"
        )
    return clones[id].files, clones[id].metadata


def without_clones(clones: Mapping[str, ClonePromise], ids: Sequence[str]) -> dict[str, ClonePromise]:
    return {id: promise for id, promise in clones.items() if id not in ids}


def without_origins(origins: Sequence[CloneOrigin], ids: Sequence[str]) -> tuple[CloneOrigin, ...]:
    return tuple(origin for origin in origins if origin.id not in ids)


def stored_promises(
    clones: Mapping[str, ClonePromise], dump: Callable[[FileSet], StoredFileSet]
) -> dict[str, StoredPromise]:
    """Return promises in the form of a snapshot. `dump` stores their files."""
    return {
        id: StoredPromise(
            location=promise.location,
            version=promise.version,
            files=dump(promise.files),
            metadata=promise.metadata,
        )
        for id, promise in sorted(clones.items())
    }


def loaded_promises(
    stored: Mapping[str, StoredPromise], load: Callable[[StoredFileSet], FileSet]
) -> dict[str, ClonePromise]:
    """Return the promises that `stored_promises` stored."""
    return {
        id: ClonePromise(
            location=promise.location,
            version=promise.version,
            files=load(promise.files),
            metadata=promise.metadata,
        )
        for id, promise in stored.items()
    }
