"""Whether a backup is whole: each object is read, and has the hash that the backup's list says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lakelog.catalog.core.logs import LogCache, Progress
from lakelog.catalog.keeping.backups.making import COPIES_AT_ONCE
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace, Listed
from lakelog.log.errors import FormatError
from lakelog.log.stores import ObjectStore

MISSING, ALTERED = "missing", "altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupProblem:
    """An object that is not as it was backed up: its place, and what of the warehouse it is."""

    what: str
    place: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBackup:
    """What a check has read, and what was wrong."""

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
    """Read every object of a backup, and compare it with its hash; not those whose hashes, by their names there, an
    engine has `found`, "" for what is missing."""
    backup = place.backup(id)
    objects = place.objects_of(backup)
    problems: list[BackupProblem] = []
    for begin in range(0, len(objects), COPIES_AT_ONCE):
        progress(f"object {begin:,} of {len(objects):,}")
        batch = objects[begin : begin + COPIES_AT_ONCE]
        for listed, wrong in zip(
            batch, logs.in_parallel(lambda each: _wrong(place.store, each, found or {}), batch), strict=True
        ):
            if wrong is not None:
                problems.append(
                    BackupProblem(what=wrong, place=f"{place.store.url}/{listed.stored}", key=listed.key)
                )
    return CheckedBackup(
        backup=backup,
        objects=len(objects),
        size_bytes=sum(each.size for each in objects),
        problems=tuple(problems),
    )


def _wrong(store: ObjectStore, listed: Listed, found: Mapping[str, str]) -> str | None:
    known = found.get(listed.stored)
    if known is not None:
        return MISSING if not known else None if known == listed.sha256 else ALTERED
    data = store.get(listed.stored)
    if data is None:
        return MISSING
    return None if hashlib.sha256(data).hexdigest() == listed.sha256 else ALTERED


def sound(store: ObjectStore, listed: Listed) -> bytes:
    """Return the bytes of an object of a backup. FormatError, which names it, where they are not what was backed up."""
    data = store.get(listed.stored)
    if data is None or hashlib.sha256(data).hexdigest() != listed.sha256:
        what = "is missing" if data is None else "was altered"
        raise FormatError(
            f"{store.url}/{listed.stored}, which is {listed.key} of the warehouse, {what}: restore another backup"
        )
    return data
