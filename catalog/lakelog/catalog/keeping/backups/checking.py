"""Whether a backup is intact: each object is read, and has the hash in the backup's list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lakelog.catalog.core.logs import LogCache, Progress
from lakelog.catalog.keeping.backups.making import COPIES_AT_ONCE
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace, ListedObject
from lakelog.log.errors import FormatError
from lakelog.log.stores import ObjectStore

MISSING, ALTERED = "missing", "altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupProblem:
    """An object that differs from its backup: the problem, its place, and its key in the warehouse."""

    what: str
    place: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBackup:
    """The objects that a check has read, and the problems that it found."""

    backup: Backup
    objects: int
    size_bytes: int
    problems: tuple[BackupProblem, ...]


def verify_backup(
    logs: LogCache,
    place: BackupPlace,
    id: str | None,
    progress: Progress,
    found: Mapping[str, str] | None = None,
) -> CheckedBackup:
    """Read every object of a backup, and compare its hash.

    `found` has hashes that an engine computed, by the objects' names in the place; "" means a missing object.
    These objects are not read.
    """
    backup = place.backup(id)
    objects = place.objects_of(backup)
    problems: list[BackupProblem] = []
    for begin in range(0, len(objects), COPIES_AT_ONCE):
        progress(f"object {begin:,} of {len(objects):,}")
        batch = objects[begin : begin + COPIES_AT_ONCE]
        for item, problem in zip(
            batch, logs.in_parallel(lambda item: _wrong(place.store, item, found or {}), batch), strict=True
        ):
            if problem is not None:
                problems.append(
                    BackupProblem(what=problem, place=f"{place.store.url}/{item.stored}", key=item.key)
                )
    return CheckedBackup(
        backup=backup,
        objects=len(objects),
        size_bytes=sum(entry.size for entry in objects),
        problems=tuple(problems),
    )


def _wrong(store: ObjectStore, listed_object: ListedObject, found: Mapping[str, str]) -> str | None:
    sha256 = found.get(listed_object.stored)
    if sha256 is not None:
        return MISSING if not sha256 else None if sha256 == listed_object.sha256 else ALTERED
    data = store.get(listed_object.stored)
    if data is None:
        return MISSING
    return None if hashlib.sha256(data).hexdigest() == listed_object.sha256 else ALTERED


def sound(store: ObjectStore, listed_object: ListedObject) -> bytes:
    """Return the bytes of an object of a backup. Raises FormatError, naming it, if it is missing or altered."""
    data = store.get(listed_object.stored)
    if data is None or hashlib.sha256(data).hexdigest() != listed_object.sha256:
        problem = "is missing" if data is None else "was altered"
        raise FormatError(
            f"{store.url}/{listed_object.stored}, which is {listed_object.key} of the warehouse, {problem}: "
            "restore another backup"
        )
    return data
