"""Copying and reading by an engine in parts: the next part to process, and the results of a part.

The engine's copies are noted in the lists of the place. The backup, which is then made as without an engine,
finds them there. This module must not know which engine it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.keeping.backups.making import BackupRun
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace, ListedObject
from lakelog.catalog.keeping.backups.restoring import begin_restore, is_of_a_log
from lakelog.log.errors import FormatError


@dataclass(frozen=True, slots=True)
class BackupObject:
    """An object: its key, its URL, and the URL of its copy (None: it is only read)."""

    key: str
    source: str
    target: str | None


PartResult = tuple[int, str]
"""The size of an object and its SHA-256. The hash is "" if the object is missing."""


class BackupEngine(Protocol):
    """An engine's work for a backup."""

    def next(self, most: int) -> list[BackupObject]:
        """Return the next part of at most so many objects, [] if all are done."""
        ...

    def note(self, part: Sequence[BackupObject], part_results: Sequence[PartResult]) -> None:
        """Record the results of a part. Raises FormatError for an object with the wrong content."""
        ...


class ToBackUp:
    """The objects to copy for a backup or a copy.

    `resumed`: it continues an earlier run. Counts the engine's copies.
    """

    def __init__(self, making_run: BackupRun, todo: Sequence[tuple[str, int | None]], resumed: bool) -> None:
        self.resumed = resumed
        self._making, self._todo, self._sizes = making_run, [key for key, _ in reversed(todo)], dict(todo)

    @property
    def copied(self) -> int:
        return self._making.copied

    @property
    def copied_bytes(self) -> int:
        return self._making.copied_bytes

    def next(self, most: int) -> list[BackupObject]:
        source, place = self._making.tree.logs.warehouse, self._making.place
        return [
            BackupObject(key, f"{source}/{key}", f"{place.store.url}/{place.stored_name(key, None)}")
            for key in _popped(self._todo, most)
        ]

    def note(self, part: Sequence[BackupObject], part_results: Sequence[PartResult]) -> None:
        copies = []
        for item, (size, sha256) in zip(part, part_results, strict=True):
            if not sha256:
                continue  # the object expired during the copy: the backup reads its log again
            required_size = self._sizes[item.key]
            if required_size not in (None, size):
                raise FormatError(
                    f"{item.source} has {size:,} bytes, and its log says {required_size:,}: run lakelog fsck"
                )
            copies.append(
                ListedObject(item.key, size, sha256, self._making.place.stored_name(item.key, None))
            )
        self._making.note(copies)
        self._making.flush()


class ToVerify:
    """The objects of a backup that are read. `found` has their hashes by their names in the place."""

    def __init__(self, place: BackupPlace, backup: Backup) -> None:
        self.found: dict[str, str] = {}
        self._place, self._todo = place, [entry.stored for entry in place.objects_of(backup)]

    def next(self, most: int) -> list[BackupObject]:
        return [
            BackupObject(key, f"{self._place.store.url}/{key}", None) for key in _popped(self._todo, most)
        ]

    def note(self, part: Sequence[BackupObject], part_results: Sequence[PartResult]) -> None:
        self.found |= {item.key: sha256 for item, (_, sha256) in zip(part, part_results, strict=True)}


class ToRestore:
    """The objects of a backup that do not belong to a log, and that the folder does not have yet."""

    def __init__(self, target: LogCache, place: BackupPlace, backup: Backup) -> None:
        pending = [entry for entry in begin_restore(target, place, backup) if not is_of_a_log(entry)]
        self._known = {entry.key: entry for entry in pending}
        self._todo, self._place, self._target = list(self._known), place, target

    def next(self, most: int) -> list[BackupObject]:
        url = self._place.store.url
        return [
            BackupObject(key, f"{url}/{self._known[key].stored}", f"{self._target.warehouse}/{key}")
            for key in _popped(self._todo, most)
        ]

    def note(self, part: Sequence[BackupObject], part_results: Sequence[PartResult]) -> None:
        for item, (_, sha256) in zip(part, part_results, strict=True):
            if sha256 != self._known[item.key].sha256:
                # With the right size, the next run might take it for a restored object.
                self._target.places.store(self._target.warehouse).delete([item.key])
                problem = "was altered" if sha256 else "is missing"
                raise FormatError(
                    f"{item.source}, which is {item.key} of the warehouse, {problem}: restore another backup"
                )


def _popped(todo: list[str], most: int) -> list[str]:
    return [todo.pop() for _ in range(min(most, len(todo)))]
