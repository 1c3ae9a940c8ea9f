"""Clones: what a table promises to those that were made of it, and what a clone knows of those that promised. Pure.

A clone has the files of another table at their place. Two logs say so: that of the table, which keeps these files as it
keeps those of a tag until the clone needs them no more; and that of the clone, which names each log that has promised.
Whether a promise still counts, the clone's log says: it is purged, or has released the other. What the promise itself
says of its end only follows that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.core.files import FileSet
from lakelog.catalog.core.schema import Metadata, ready
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Folder, Id, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The files of version `version` of a table, with its columns then, are kept for the clone at `location`."""

    location: str
    version: int
    files: FileSet
    metadata: Metadata


class Origin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log of a table of which a clone has files, and that has promised to keep them: its place, and its id."""

    location: Folder
    id: Id


class Ancestor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log of a table that a clone comes from: rows with ids below `until` are rows of that table too."""

    id: Id
    until: Number


class StoredPromise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A promise as a snapshot has it, with the names of its manifests."""

    location: Folder
    version: Number
    files: Any
    metadata: Metadata


ready(Origin, Ancestor, StoredPromise)


def promised(clones: Mapping[str, Promise], id: str) -> tuple[FileSet, Metadata]:
    """Return what is kept for a clone."""
    if id not in clones:
        raise FormatError(
            f"the log promises what it keeps for the clone {id}, which it does not know: it was written by a faulty "
            "client"
        )
    return clones[id].files, clones[id].metadata


def without_clones(clones: Mapping[str, Promise], ids: Sequence[str]) -> dict[str, Promise]:
    return {id: promise for id, promise in clones.items() if id not in ids}


def without_origins(origins: Sequence[Origin], ids: Sequence[str]) -> tuple[Origin, ...]:
    return tuple(origin for origin in origins if origin.id not in ids)


def stored_promises(
    clones: Mapping[str, Promise], dump: Callable[[FileSet], Any]
) -> dict[str, StoredPromise]:
    """Return promises as a snapshot has them; `dump` stores their files."""
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
    stored: Mapping[str, StoredPromise], load: Callable[[Any], FileSet]
) -> dict[str, Promise]:
    """Return what `stored_promises` made."""
    return {
        id: Promise(
            location=promise.location,
            version=promise.version,
            files=load(promise.files),
            metadata=promise.metadata,
        )
        for id, promise in stored.items()
    }
