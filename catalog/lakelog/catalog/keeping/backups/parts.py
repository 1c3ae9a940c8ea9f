"""Copying and reading by an engine, part by part: what is to be done next, and what has come of it.

What an engine has copied is noted in the lists of the place, so that the backup, which is made afterwards as without an
engine, finds it there. It must not know which engine that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.keeping.backups.making import Making
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace, Listed
from lakelog.catalog.keeping.backups.restoring import begin_restore, is_of_a_log
from lakelog.log.errors import FormatError


@dataclass(frozen=True, slots=True)
class Part:
    """An object: its key, its URL, and the one that it is copied to (None: it is only read)."""

    key: str
    source: str
    target: str | None


Done = tuple[int, str]
"""The size of an object and its SHA-256, "" where it is not there."""


class Parts(Protocol):
    """What an engine does for a backup."""

    def next(self, most: int) -> list[Part]:
        """Return the next part of at most so many objects, [] where all is done."""
        ...

    def note(self, part: Sequence[Part], done: Sequence[Done]) -> None:
        """Take note of what has come of a part. FormatError for an object that is not what it has to be."""
        ...


class ToBackUp:
    """What a backup or a copy has to copy. `resumed`: it goes on with an earlier run. The engine has copied so much."""

    def __init__(self, making: Making, todo: Sequence[tuple[str, int | None]], resumed: bool) -> None:
        self.resumed = resumed
        self._making, self._todo, self._sizes = making, [key for key, _ in reversed(todo)], dict(todo)

    @property
    def copied(self) -> int:
        return self._making.copied

    @property
    def copied_bytes(self) -> int:
        return self._making.copied_bytes

    def next(self, most: int) -> list[Part]:
        source, place = self._making.tree.logs.warehouse, self._making.place
        return [
            Part(key, f"{source}/{key}", f"{place.store.url}/{place.stored_name(key, None)}")
            for key in _popped(self._todo, most)
        ]

    def note(self, part: Sequence[Part], done: Sequence[Done]) -> None:
        copies = []
        for each, (size, sha256) in zip(part, done, strict=True):
            if not sha256:
                continue  # it has expired meanwhile: the backup reads its log again
            known = self._sizes[each.key]
            if known not in (None, size):
                raise FormatError(
                    f"{each.source} has {size:,} bytes, and its log says {known:,}: run lakelog fsck"
                )
            copies.append(Listed(each.key, size, sha256, self._making.place.stored_name(each.key, None)))
        self._making.note(copies)
        self._making.flush()


class ToVerify:
    """The objects of a backup, which are read. `found` has what they are, by their names in its place."""

    def __init__(self, place: BackupPlace, backup: Backup) -> None:
        self.found: dict[str, str] = {}
        self._place, self._todo = place, [each.stored for each in place.objects_of(backup)]

    def next(self, most: int) -> list[Part]:
        return [Part(key, f"{self._place.store.url}/{key}", None) for key in _popped(self._todo, most)]

    def note(self, part: Sequence[Part], done: Sequence[Done]) -> None:
        self.found |= {each.key: sha256 for each, (_, sha256) in zip(part, done, strict=True)}


class ToRestore:
    """The objects of a backup that are not a log's, and that the folder does not have yet."""

    def __init__(self, target: LogCache, place: BackupPlace, backup: Backup) -> None:
        missing = [each for each in begin_restore(target, place, backup) if not is_of_a_log(each)]
        self._known = {each.key: each for each in missing}
        self._todo, self._place, self._target = list(self._known), place, target

    def next(self, most: int) -> list[Part]:
        url = self._place.store.url
        return [
            Part(key, f"{url}/{self._known[key].stored}", f"{self._target.warehouse}/{key}")
            for key in _popped(self._todo, most)
        ]

    def note(self, part: Sequence[Part], done: Sequence[Done]) -> None:
        for each, (_, sha256) in zip(part, done, strict=True):
            if sha256 != self._known[each.key].sha256:
                # As it has the right size, perhaps, the next run would take it for what was restored.
                self._target.places.store(self._target.warehouse).delete([each.key])
                what = "was altered" if sha256 else "is missing"
                raise FormatError(
                    f"{each.source}, which is {each.key} of the warehouse, {what}: restore another backup"
                )


def _popped(todo: list[str], most: int) -> list[str]:
    return [todo.pop() for _ in range(min(most, len(todo)))]
