"""Deleting backups at a place, and the objects that no other one there needs, beside runs that make new ones.

A run relies on what it finds there. So both sides say what they are about to do before they look at the other: a run
notes that it has begun, then reads which names are doomed, and uses none of these; a deletion dooms names, then looks
for runs, and ends without having deleted anything where there is one. A run that has ended in between is among the
backups, which are read once more after that. What is doomed stays so: a deletion that sleeps for a day does no harm.

Stopped anywhere, the next one deletes the rest: all that no backup needs.
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
    """The ids of the backups that were deleted, or would be, oldest first; what only they had, and what runs that were
    given up have left: `objects` with `size_bytes`. `kept` others stay."""

    backups: tuple[str, ...]
    objects: int
    size_bytes: int
    kept: int


def delete_backups(
    place: BackupPlace, ids: Sequence[str], keep_last: int | None, *, dry_run: bool, progress: Progress
) -> DeletedBackups:
    """Delete these backups, and of the others all but the newest `keep_last` of each thing that there are backups of:
    `Catalog.delete_backups`."""
    if keep_last is not None and (type(keep_last) is not int or keep_last < 1):
        raise InvalidInput(f"keep_last is {keep_last!r}: give how many backups stay, at least 1")
    place.required()
    for _ in range(TRIES_MAX):
        _check_no_run(place)
        there = place.backups_by_id()
        going = _chosen(place, there, ids, keep_last)
        sizes = place.sizes()
        left = sizes.keys() - _needed(place, there, going)
        done = DeletedBackups(
            backups=tuple(sorted(going, key=lambda id: (_time_us(there[id]), id))),
            objects=len(left),
            size_bytes=sum(sizes[name] for name in left),
            kept=len(there) - len(going),
        )
        if dry_run or not (left or going):
            return done
        if _delete(place, going, sorted(left), progress):
            return done
    raise InvalidInput(f"backups were made at {place.store.url} meanwhile: nothing was deleted, run it again")


def _delete(
    place: BackupPlace,
    going: Collection[str],
    names: Sequence[str],
    progress: Progress,
) -> bool:
    """Whether no backup was made meanwhile that needs any of these; else nothing was deleted."""
    id = place.options.new_id()
    place.doom(names, id)
    try:
        _check_no_run(place)
        is_needed = not _needed(place, place.backups_by_id(), going).isdisjoint(names)
    except BaseException:
        place.spare(id)
        raise
    if is_needed:
        place.spare(id)
        return False
    for each in going:
        place.delete_backup(each)
    for begin in range(0, len(names), DELETED_AT_ONCE):
        progress(f"object {begin:,} of {len(names):,}")
        place.store.delete(list(names[begin : begin + DELETED_AT_ONCE]))
    place.delete_lists()
    return True


def _check_no_run(place: BackupPlace) -> None:
    for running in place.running():
        what = f"the {running.kind} {quoted(running.name)}" if running.name else "the warehouse"
        raise InvalidInput(
            f"a backup of {what} to {place.store.url} has begun and not ended, and may need what would be deleted: "
            "nothing was deleted. Run this backup again, which goes on with it, then delete"
        )


def _chosen(
    place: BackupPlace, there: dict[str, Backup | None], ids: Sequence[str], keep_last: int | None
) -> set[str]:
    """Return the ids of those that go."""
    for id in ids:
        if id not in there and not place.is_gone(id):
            listed = ", ".join(list(there)[-5:]) or "none"
            raise NotFound(f"there is no backup {id} at {place.store.url}: there are {listed}")
    going = {id for id in ids if id in there}
    if keep_last is not None:
        alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        whole = [each for id, each in there.items() if each is not None and id not in going]
        for each in sorted(whole, key=lambda each: (each.time_us, each.id)):
            alike.setdefault((each.kind, each.name), []).append(each.id)
        for found in alike.values():
            going.update(found[:-keep_last])
    return going


def _time_us(backup: Backup | None) -> int:
    return 0 if backup is None else backup.time_us


def _needed(place: BackupPlace, there: dict[str, Backup | None], going: Collection[str]) -> set[str]:
    """Return the names of all objects that backups have which stay. FormatError where that is not known."""
    needed: set[str] = set()
    for id, backup in there.items():
        if id in going:
            continue
        if backup is None:
            raise FormatError(
                f"the backup {id} at {place.store.url} was altered, and what it needs is not known: nothing was "
                "deleted. Delete it too, by its id"
            )
        try:
            needed.update(each.stored for each in place.objects_of(backup))
        except FormatError as error:
            raise FormatError(f"{error}. Nothing was deleted: delete that one too, by its id") from error
    return needed
