"""The part of a catalog's front door that makes backups and copies, and restores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakelog.catalog.catalog_erasure import CatalogErasure
from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import NameTree, TableHead, Token, no_progress, observed
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Identifier, Location, Name, identifier, quoted, spelled, table_identifier
from lakelog.catalog.transaction import Transaction
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput
from lakelog.log.stores import ObjectStore

if TYPE_CHECKING:
    from lakelog.catalog.keeping.backups import (
        BackedUp,
        Backup,
        BackupPlace,
        CheckedBackup,
        Copied,
        CopiedTable,
        DeletedBackups,
        LeftOut,
        RestoredTable,
        RestoredWarehouse,
    )


@observed(lambda catalog: catalog._logs)
@explaining
class CatalogBackups(CatalogErasure):
    """A catalog that can be backed up, copied and restored."""

    def backup(
        self,
        place: Location,
        name: Name | None = None,
        *,
        outside: str = REFUSE,
        progress: Callable[[str], None] | None = None,
    ) -> BackedUp:
        """Copy a table, or a namespace with all below it, to `place`, another folder or URL.

        Without a name, copy the whole warehouse. The backup is as of a single moment, with all versions that
        can be read. Objects that exist at `place` are not copied again. A saved cut keeps the versions until
        the backup has ended. After a stopped run, the next run goes on. Objects outside of the warehouse's
        folder are not copied. With `outside` "leave", the backup names them. Otherwise raises InvalidInput.
        """
        from lakelog.catalog.keeping.backups import create_backup

        path, is_table = self._chosen(name)
        return create_backup(
            self._tree,
            self._backups_at(place),
            path,
            is_table=is_table,
            outside=outside,
            progress=progress or no_progress,
        )

    def copy(
        self,
        to: Location,
        name: Name | None = None,
        *,
        finish: bool = True,
        outside: str = REFUSE,
        progress: Callable[[str], None] | None = None,
    ) -> Copied:
        """Make the folder or URL `to`, which has to be empty, a copy of this warehouse, of a table, or of a
        namespace.

        The copy is as of a single moment, with the same history, ids, tags and branches. A namespace comes
        with all below it. Objects of an earlier run are not copied again. With `finish` false the folder is
        not a warehouse yet, and further runs may bring it up to date. The last run, or `finish_copy`,
        finishes it. Data is copied once. A saved cut keeps it during the copy, and `outside` is as for
        `backup`. With "carry", tables at places of their own become tables in the copy's folder. Tables with
        files of imports have these files copied, with a single version. Raises InvalidInput if the folder is
        a warehouse, or holds something else.
        """
        from lakelog.catalog.keeping.backups import (
            CopyPlace,
            LeftOut,
            carry,
            create_backup,
            finish_copy,
            kind_of,
            outcome,
            remade_clones,
        )

        path, is_table = self._chosen(name)
        if is_table and is_elsewhere(self.load_table(path).table_head.tracked.location):
            raise InvalidInput(
                f"{quoted(path)} is at a place of its own, outside of the warehouse's folder, so it has no part of it: "
                "copy it into a warehouse in use (copy_table; lakelog copy --as; as_table)"
            )
        place = CopyPlace(self._store_at(to), self._logs.log_options)
        place.check_of(kind_of(path, is_table=is_table), path)
        show, carried_tables = progress or no_progress, list[LeftOut]()
        tree = NameTree(self._logs.beside(place.store.url))
        carries, outside = outside == CARRY, LEAVE if outside == CARRY else outside

        def carry_on(backup: Backup) -> None:
            remade_clones(tree, place, backup)
            if carries:
                carried_tables.extend(carry(tree, backup, self._source_of))

        new_backup: BackedUp | None = None
        with place.as_own():
            if not place.is_begun():
                new_backup = create_backup(
                    self._tree, place, path, is_table=is_table, outside=outside, progress=show
                )
                if not finish:
                    return outcome(new_backup, new_backup.backup, place.store.url, finished=False)
            backup = finish_copy(
                tree.logs, place, carry_on, show, None if new_backup is None else new_backup.backup.id
            )
        return outcome(new_backup, backup, place.store.url, finished=True, carried=carried_tables)

    def _source_of(self, left: LeftOut, version: int | None) -> TableHead | None:
        try:
            return self.load_table(left.name, version=version).table_head
        except NoSuchTable:
            return None

    def copy_table(
        self,
        to: Location,
        table: Name,
        *,
        target: Name | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> CopiedTable:
        """Copy a table into a warehouse in use at `to`, under its own name or as `target`.

        The copy has the same rows and definition, and its own log. Raises TableExists, NoSuchTable or
        NoSuchNamespace.
        """
        from lakelog.catalog.keeping.backups import copy_table, has_root

        head = self.load_table(table).table_head
        store = self._store_at(to)
        if not has_root(store):
            raise InvalidInput(
                f"there is no warehouse at {store.url}: copy to it without a name for the table"
            )
        path = table_identifier(table if target is None else target)
        return copy_table(NameTree(self._logs.beside(store.url)), head, path, progress or no_progress)

    def finish_copy(self, *, progress: Callable[[str], None] | None = None) -> Copied:
        """Make this folder, which has an unfinished copy, a warehouse as of the last complete run.

        That needs nothing of the source. Raises NotFound if no run was complete. Raises InvalidInput if it is
        a warehouse.
        """
        from lakelog.catalog.keeping.backups import CopyPlace, finish_copy, outcome, remade_clones

        self._logs.check_writable()
        place = CopyPlace(self._logs.places.store(self._logs.warehouse), self._logs.log_options)
        if place.has_root() and not place.is_begun():
            raise InvalidInput(f"{place.store.url} is a warehouse: there is no copy to finish")
        place.required()
        target = self._logs.beside(place.store.url)
        clones = partial(remade_clones, NameTree(target), place)
        with place.as_own():
            backup = finish_copy(target, place, clones, progress or no_progress)
        return outcome(None, backup, place.store.url, finished=True)

    def _chosen(self, name: Name | None) -> tuple[Identifier, bool]:
        """Return the path of a name, and whether it is a table."""
        path = () if name is None else identifier(name)
        is_table = bool(path) and self.table_exists(path)
        if path and not is_table and self._tree.find_namespace(path) is None:
            raise self._tree.missing_table(path)
        if not path:
            self._tree.namespace(path)
        return path, is_table

    def backups(self, place: Location) -> list[Backup]:
        """Return the backups at a place, oldest first. Raises NotFound if there are none."""
        return self._backups_at(place).backups()

    def delete_backups(
        self,
        place: Location,
        ids: Sequence[str] = (),
        *,
        keep_last: int | None = None,
        dry_run: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> DeletedBackups:
        """Delete the backups `ids` at a place.

        With `keep_last`, also delete the other backups of each table, namespace or warehouse, except the
        newest `keep_last` of it. Objects that no other backup there has are deleted, and so are objects of
        runs that were given up. Only reports them, unless `dry_run` is false. The next call, even without
        ids, finishes a stopped deletion. Raises InvalidInput while a backup to the place has begun and not
        ended. Raises FormatError if a backup that stays cannot be read.
        """
        from lakelog.catalog.keeping.backups import delete_backups

        if isinstance(ids, str) or not isinstance(ids, Sequence):
            raise InvalidInput(f"ids is {ids!r}: give a list of ids")
        show = progress or no_progress
        return delete_backups(self._backups_at(place), ids, keep_last, dry_run=dry_run, progress=show)

    def verify_backup(
        self,
        place: Location,
        backup: str | None = None,
        *,
        found: Mapping[str, str] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> CheckedBackup:
        """Read every object of a backup, by its id or the newest, and name missing or altered objects.

        `found` are hashes that an engine has computed for `verify_parts`.
        """
        from lakelog.catalog.keeping.backups import verify_backup

        return verify_backup(self._logs, self._backups_at(place), backup, progress or no_progress, found)

    def restore_warehouse(
        self, place: Location, backup: str | None = None, *, progress: Callable[[str], None] | None = None
    ) -> RestoredWarehouse:
        """Restore a backup, with its history, into this warehouse, which has to be an empty folder.

        Names that lead out of the folder are removed. After a stopped restore, the next call goes on. Raises
        InvalidInput.
        """
        from lakelog.catalog.keeping.backups import remade_clones, restore_warehouse

        self._logs.check_writable()
        backups = self._backups_at(place)
        return restore_warehouse(
            self._logs, backups, backup, partial(remade_clones, self._tree, backups), progress or no_progress
        )

    def restore_table(
        self,
        place: Location,
        table: Name,
        *,
        to: Name | None = None,
        backup: str | None = None,
        replace: bool = False,
        token: Token | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> RestoredTable:
        """Restore `table` from a backup, under that name or as `to`, with its rows and definition and its own
        log.

        With `replace`, the same commit drops the table that has the name. It can be restored. Without it,
        raises TableExists. Raises NoSuchTable if the backup does not have the table.
        """
        from lakelog.catalog.keeping.backups import RestoredTable, name_beside, restore_table

        path = table_identifier(table)
        target = path if to is None else table_identifier(to)
        backups, show = self._backups_at(place), progress or no_progress
        if not replace or not self.table_exists(target):
            return restore_table(self._tree, backups, backup, path, target, token, show)
        temporary_name = name_beside(target, self._logs.new_id()[:12])
        restored = restore_table(self._tree, backups, backup, path, temporary_name, None, show)
        with Transaction(self._logs, None) as transaction:
            transaction.drop_table(target, missing_ok=True)
            transaction.rename_table(temporary_name, target)
        return RestoredTable(
            self.load_table(target).table_head, restored.backup, restored.files, restored.size_bytes
        )

    def _backups_at(self, place: Location) -> BackupPlace:
        from lakelog.catalog.keeping.backups import BackupPlace

        return BackupPlace(self._store_at(place), self._logs.log_options)

    def _store_at(self, place: Location) -> ObjectStore:
        return self._logs.places.store(canonical_url(spelled(place)))

    def _check_there(self, location: Location | None) -> None:
        """Raise NoSuchWarehouse if there is none, unless a place is given.

        So a path with a typo does not look like a warehouse without events or problems.
        """
        if location is None:
            self._logs.places.check_there()
