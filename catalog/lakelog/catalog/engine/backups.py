"""The part of a backup that an engine's jobs do, before the call of `Catalog` that makes, checks or restores
it.

The call then finds the objects there.
"""

from __future__ import annotations

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.core.logs import no_progress
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.keeping.backups import (
    BackupEngine,
    BackupPlace,
    CopyPlace,
    ToBackUp,
    ToRestore,
    ToVerify,
    begun,
    kind_of,
    whole_warehouse,
)
from lakelog.catalog.names import Identifier, Location, Name


@of_catalog
def backup_parts(
    catalog: Catalog, place: Location, name: Name | None = None, *, outside: str = REFUSE
) -> BackupEngine | None:
    """Begin the work of `Catalog.backup`, and return the objects to copy. None if there are none."""
    return _parts(catalog, catalog._backups_at(place), *catalog._chosen(name), outside)


@of_catalog
def copy_parts(
    catalog: Catalog, to: Location, name: Name | None = None, *, outside: str = REFUSE
) -> BackupEngine | None:
    """Begin the work of `Catalog.copy`, and return the objects to copy. None if there are none."""
    path, is_table = catalog._chosen(name)
    place = CopyPlace(catalog._store_at(to), catalog._logs.log_options)
    place.check_of(kind_of(path, is_table=is_table), path)
    outside_choice = LEAVE if outside == CARRY else outside
    return None if place.is_begun() else _parts(catalog, place, path, is_table, outside_choice)


def _parts(
    catalog: Catalog, place: BackupPlace, path: Identifier, is_table: bool, outside: str
) -> BackupEngine | None:
    new_backup = begun(catalog._tree, place, path, is_table=is_table, outside=outside, progress=no_progress)
    return None if new_backup is None else ToBackUp(*new_backup)


@of_catalog
def verify_parts(catalog: Catalog, place: Location, backup: str | None = None) -> ToVerify:
    """Return the objects that `Catalog.verify_backup` has to read."""
    backups = catalog._backups_at(place)
    return ToVerify(backups, backups.backup(backup))


@of_catalog
def restore_parts(catalog: Catalog, place: Location, backup: str | None = None) -> BackupEngine:
    """Begin the work of `Catalog.restore_warehouse`, and return the objects to copy."""
    catalog._logs.check_writable()
    backups = catalog._backups_at(place)
    return ToRestore(catalog._logs, backups, whole_warehouse(catalog._logs, backups, backup))
