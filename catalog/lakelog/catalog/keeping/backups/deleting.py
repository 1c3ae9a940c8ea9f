"""Deleting backups at a place, and objects that no other backup there needs, while runs may make new backups.

A run relies on objects that it finds. So each side announces its intent before it looks at the other. A run
notes that it has begun, then reads the doomed names, and uses none of them. A deletion dooms names, then
looks for runs, and ends without any deletion if there is a run. A run that has ended in between is among the
backups, which are read again after that. Doomed names stay doomed, so a deletion that sleeps for a day does
no harm.

If a deletion stops anywhere, the next deletion deletes the rest: all objects that no backup needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from lakelog.catalog.core.logs import Progress
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace
from lakelog.catalog.names import quoted
from lakelog.log.errors import FormatError, InvalidInput, NotFound

DELETED_AT_ONCE = 1000
TRIES_MAX = 3


class DeletedBackups(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the backups that were deleted, or would be, oldest first.

    `kept` is the number of the others.

    `objects` with `size_bytes` are the objects that only these backups had, or that abandoned runs left.
    """

    backups: tuple[str, ...]
    objects: int
    size_bytes: int
    kept: int


def delete_backups(
    place: BackupPlace, ids: Sequence[str], keep_last: int | None, *, dry_run: bool, progress: Progress
) -> DeletedBackups:
    """Delete these backups, and all but the newest `keep_last` others of each backed-up name.

    See `Catalog.delete_backups`.
    """
    if keep_last is not None and (type(keep_last) is not int or keep_last < 1):
        raise InvalidInput(f"keep_last is {keep_last!r}: give how many backups stay, at least 1")
    place.required()
    for _ in range(TRIES_MAX):
        _check_no_run(place)
        backups = place.backups_by_id()
        doomed_ids = _chosen(place, backups, ids, keep_last)
        sizes = place.sizes()
        unneeded = sizes.keys() - _needed(place, backups, doomed_ids)
        result = DeletedBackups(
            backups=tuple(sorted(doomed_ids, key=lambda id: (_time_us(backups[id]), id))),
            objects=len(unneeded),
            size_bytes=sum(sizes[name] for name in unneeded),
            kept=len(backups) - len(doomed_ids),
        )
        if dry_run or not (unneeded or doomed_ids):
            return result
        if _delete(place, doomed_ids, sorted(unneeded), progress):
            return result
    raise InvalidInput(f"backups were made at {place.store.url} meanwhile: nothing was deleted, run it again")


def _delete(
    place: BackupPlace,
    going: Collection[str],
    names: Sequence[str],
    progress: Progress,
) -> bool:
    """Return whether no new backup needs any of these objects. Otherwise nothing was deleted."""
    id = place.options.new_id()
    place.doom(names, id)
    try:
        _check_no_run(place)
        has_user = not _needed(place, place.backups_by_id(), going).isdisjoint(names)
    except BaseException:
        place.spare(id)
        raise
    if has_user:
        place.spare(id)
        return False
    for backup_id in going:
        place.delete_backup(backup_id)
    for begin in range(0, len(names), DELETED_AT_ONCE):
        progress(f"object {begin:,} of {len(names):,}")
        place.store.delete(list(names[begin : begin + DELETED_AT_ONCE]))
    place.delete_lists()
    return True


def _check_no_run(place: BackupPlace) -> None:
    for run in place.running():
        title = f"the {run.kind} {quoted(run.name)}" if run.name else "the warehouse"
        raise InvalidInput(
            f"a backup of {title} to {place.store.url} has begun and not ended, and may need what would be deleted: "
            "nothing was deleted. Run this backup again, which goes on with it, then delete"
        )


def _chosen(
    place: BackupPlace, there: dict[str, Backup | None], ids: Sequence[str], keep_last: int | None
) -> set[str]:
    """Return the ids of the backups to delete."""
    for id in ids:
        if id not in there and not place.is_gone(id):
            newest_ids = ", ".join(list(there)[-5:]) or "none"
            raise NotFound(f"there is no backup {id} at {place.store.url}: there are {newest_ids}")
    doomed_ids = {id for id in ids if id in there}
    if keep_last is not None:
        alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        whole = [backup for id, backup in there.items() if backup is not None and id not in doomed_ids]
        for backup in sorted(whole, key=lambda backup: (backup.time_us, backup.id)):
            alike.setdefault((backup.kind, backup.name), []).append(backup.id)
        for backup_ids in alike.values():
            doomed_ids.update(backup_ids[:-keep_last])
    return doomed_ids


def _time_us(backup: Backup | None) -> int:
    return 0 if backup is None else backup.time_us


def _needed(place: BackupPlace, there: dict[str, Backup | None], going: Collection[str]) -> set[str]:
    """Return the names of all objects of the remaining backups. Raises FormatError if they are not known."""
    names: set[str] = set()
    for id, backup in there.items():
        if id in going:
            continue
        if backup is None:
            raise FormatError(
                f"the backup {id} at {place.store.url} was altered, and what it needs is not known: nothing was "
                "deleted. Delete it too, by its id"
            )
        try:
            names.update(entry.stored for entry in place.objects_of(backup))
        except FormatError as error:
            raise FormatError(f"{error}. Nothing was deleted: delete that one too, by its id") from error
    return names
