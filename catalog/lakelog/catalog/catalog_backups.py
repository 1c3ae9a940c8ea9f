"""The part of a catalog's front door that makes backups and copies, and restores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakelog.catalog.catalog_erasure import CatalogErasure
from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import NameTree, TableHead, Token, no_progress, no_such_table, observed
from lakelog.catalog.errors import NoSuchTable
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
        Parts,
        RestoredTable,
        RestoredWarehouse,
        ToVerify,
    )


@observed(lambda catalog: catalog._logs)
class CatalogBackups(CatalogErasure):
    """A catalog that can be brought elsewhere, and back."""

    def backup(
        self,
        place: Location,
        name: Name | None = None,
        *,
        outside: str = REFUSE,
        progress: Callable[[str], None] | None = None,
    ) -> BackedUp:
        """Copy a table, or a namespace with all below it, to `place`, another folder or URL, as of one moment and with
        all versions that can be read; without a name, the whole warehouse. What is there already is not copied again.

        A saved cut keeps the versions until it has ended; a run that was stopped goes on with the next. What is outside
        of the warehouse's folder is not copied: with `outside` "leave" it is named in the backup, else InvalidInput.
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
        """Make the folder or URL `to`, which has to be empty, a warehouse with a table, or a namespace with all below
        it, or without a name with all of this one, as of one moment: with the same history, ids, tags and branches.

        What an earlier run has brought is not copied again. With `finish` false the folder is no warehouse yet, and may
        be brought up to date by further runs; the last one, or `finish_copy`, finishes it. Data is copied once; a saved
        cut keeps it meanwhile, as for `backup`, which says what `outside` is. With "carry", tables at places of their
        own become tables in the copy's folder, and those with files of imports have these copied, with one version.
        InvalidInput where the folder is a warehouse, or holds something else.
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
        if is_table and is_elsewhere(self.load_table(path).head.tracked.location):
            raise InvalidInput(
                f"{quoted(path)} is at a place of its own, outside of the warehouse's folder, so it has no part of it: "
                "copy it into a warehouse in use (copy_table; lakelog copy --as; as_table)"
            )
        place = CopyPlace(self._store_at(to), self._logs.log_options)
        place.check_of(kind_of(path, is_table=is_table), path)
        show, carried = progress or no_progress, list[LeftOut]()
        tree = NameTree(self._logs.beside(place.store.url))
        carries, outside = outside == CARRY, LEAVE if outside == CARRY else outside

        def carry_on(backup: Backup) -> None:
            remade_clones(tree, place, backup)
            if carries:
                carried.extend(carry(tree, backup, self._source_of))

        done: BackedUp | None = None
        with place.as_own():
            if not place.is_begun():
                done = create_backup(
                    self._tree, place, path, is_table=is_table, outside=outside, progress=show
                )
                if not finish:
                    return outcome(done, done.backup, place.store.url, finished=False)
            backup = finish_copy(tree.logs, place, carry_on, show, None if done is None else done.backup.id)
        return outcome(done, backup, place.store.url, finished=True, carried=carried)

    def _source_of(self, left: LeftOut, version: int | None) -> TableHead | None:
        try:
            return self.load_table(left.name, version=version).head
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
        """Make a table of a warehouse in use at `to`, under its own name or as `target`, with the rows and definition
        of one of this warehouse, and a log of its own. TableExists, NoSuchTable, NoSuchNamespace."""
        from lakelog.catalog.keeping.backups import copy_table, has_root

        head = self.load_table(table).head
        store = self._store_at(to)
        if not has_root(store):
            raise InvalidInput(
                f"there is no warehouse at {store.url}: copy to it without a name for the table"
            )
        path = table_identifier(table if target is None else target)
        return copy_table(NameTree(self._logs.beside(store.url)), head, path, progress or no_progress)

    def finish_copy(self, *, progress: Callable[[str], None] | None = None) -> Copied:
        """Make this folder, which has an unfinished copy, a warehouse as of the last run that was whole. That needs
        nothing of the source. NotFound where none was; InvalidInput where it is a warehouse."""
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
        """Return what a name is of, and whether it is a table."""
        path = () if name is None else identifier(name)
        is_table = bool(path) and self.table_exists(path)
        if path and not is_table and self._tree.find_namespace(path) is None:
            raise no_such_table(path)
        self._check_there(None)
        return path, is_table

    def backups(self, place: Location) -> list[Backup]:
        """Return the backups at a place, oldest first. NotFound where there are none."""
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
        """Delete backups at a place: these, and with `keep_last` of the others all but the newest so many of each thing
        that is backed up there. Objects go that no other backup there has, those of runs that were given up too.

        Only reports what would go, unless `dry_run` is false. A deletion that was stopped is finished by the next call,
        also by one without ids. InvalidInput while a backup to the place has begun and not ended; FormatError where one
        that stays cannot be read.
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
        """Read every object of a backup, by its id or the newest, and name those that are missing or were altered.
        `found` are hashes that an engine has found for `verify_parts`."""
        from lakelog.catalog.keeping.backups import verify_backup

        return verify_backup(self._logs, self._backups_at(place), backup, progress or no_progress, found)

    # What an engine does before: the calls above then find it done

    def backup_parts(
        self, place: Location, name: Name | None = None, *, outside: str = REFUSE
    ) -> Parts | None:
        """Begin what `backup` does, and return what is to be copied for it; None where nothing is."""
        return self._parts(self._backups_at(place), *self._chosen(name), outside)

    def copy_parts(self, to: Location, name: Name | None = None, *, outside: str = REFUSE) -> Parts | None:
        """Begin what `copy` does, and return what is to be copied for it; None where nothing is."""
        from lakelog.catalog.keeping.backups import CopyPlace, kind_of

        path, is_table = self._chosen(name)
        place = CopyPlace(self._store_at(to), self._logs.log_options)
        place.check_of(kind_of(path, is_table=is_table), path)
        left = LEAVE if outside == CARRY else outside
        return None if place.is_begun() else self._parts(place, path, is_table, left)

    def _parts(self, place: BackupPlace, path: Identifier, is_table: bool, outside: str) -> Parts | None:
        from lakelog.catalog.keeping.backups import ToBackUp, begun

        found = begun(self._tree, place, path, is_table=is_table, outside=outside, progress=no_progress)
        return None if found is None else ToBackUp(*found)

    def verify_parts(self, place: Location, backup: str | None = None) -> ToVerify:
        """Return what is to be read for `verify_backup`."""
        from lakelog.catalog.keeping.backups import ToVerify

        found = self._backups_at(place)
        return ToVerify(found, found.backup(backup))

    def restore_parts(self, place: Location, backup: str | None = None) -> Parts:
        """Begin what `restore_warehouse` does, and return what is to be copied for it."""
        from lakelog.catalog.keeping.backups import ToRestore, whole_warehouse

        self._logs.check_writable()
        found = self._backups_at(place)
        return ToRestore(self._logs, found, whole_warehouse(self._logs, found, backup))

    def restore_warehouse(
        self, place: Location, backup: str | None = None, *, progress: Callable[[str], None] | None = None
    ) -> RestoredWarehouse:
        """Make this warehouse, which has to be an empty folder, what a backup has, with its history. Names that lead
        out of the folder are removed. A restore that was stopped goes on with the next call. InvalidInput."""
        from lakelog.catalog.keeping.backups import remade_clones, restore_warehouse

        self._logs.check_writable()
        found = self._backups_at(place)
        return restore_warehouse(
            self._logs, found, backup, partial(remade_clones, self._tree, found), progress or no_progress
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
        """Make a table of what a backup has of `table`, under that name or as `to`, with its rows and definition and a
        log of its own. With `replace`, the table that has the name is dropped by the same commit, and can be restored.

        TableExists without that; NoSuchTable where the backup does not have it.
        """
        from lakelog.catalog.keeping.backups import RestoredTable, name_beside, restore_table

        path = table_identifier(table)
        wanted = path if to is None else table_identifier(to)
        found, show = self._backups_at(place), progress or no_progress
        if not replace or not self.table_exists(wanted):
            return restore_table(self._tree, found, backup, path, wanted, token, show)
        beside = name_beside(wanted, self._logs.new_id()[:12])
        done = restore_table(self._tree, found, backup, path, beside, None, show)
        with Transaction(self._logs, None) as transaction:
            transaction.drop_table(wanted)
            transaction.rename_table(beside, wanted)
        return RestoredTable(self.load_table(wanted).head, done.backup, done.files, done.size_bytes)

    def _backups_at(self, place: Location) -> BackupPlace:
        from lakelog.catalog.keeping.backups import BackupPlace

        return BackupPlace(self._store_at(place), self._logs.log_options)

    def _store_at(self, place: Location) -> ObjectStore:
        return self._logs.places.store(canonical_url(spelled(place)))

    def _check_there(self, location: Location | None) -> None:
        """NoSuchWarehouse where there is none, unless the question is of a place by itself: of a path with a typo it is
        not said that nothing has happened there, or that all is well."""
        if location is None:
            self._logs.places.check_there()
