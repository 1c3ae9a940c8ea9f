"""The set of a table's live data files: immutable, and cheap to change.

The cost of a change grows with the change and not with the set. A set knows its totals and how it came from
its predecessor (files added, paths removed). Arrow rows are made on first use, and cached; a plan that needs
few manifests makes rows of these only. `manifests` has the stored form of a set. A path is in a set at most
once; a removed path may come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, files_to_arrow, is_planned
from lakelog.catalog.core.files.file_tables import are_apart, check_distinct, grouped, joined, tiered, without
from lakelog.catalog.core.files.leaves import Fetch, ManifestLeaf, leaf_of
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import BoundsAt
from lakelog.catalog.core.files.manifest_parts import Directories, PartCache
from lakelog.catalog.core.files.manifests import Entries, FileChoice, ManifestSet, bounds_key
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.catalog.core.schema.partitioning import PartitionSpec
from lakelog.catalog.core.schema.schema import Schema
from lakelog.log.errors import FormatError

T = TypeVar("T")
Specs = Mapping[int, PartitionSpec] | Sequence[PartitionSpec]


MANY_FILES = 10_000
"""Of so many files, a process that asks for some does not keep all columns of all."""

FEW_MANIFESTS = 16
FEW_LEAVES = 40
"""Entries of so many manifests, or leaves of packs, are taken whole.

Of more, a plan searches for its files first.
"""


@dataclass(frozen=True, slots=True)
class FileSetRoot:
    """Exact totals of the live files, their manifests, and the lists of removed paths.

    See `stored_sets` for the stored form.
    """

    files: int
    rows: int
    bytes: int
    manifests: list[StoredList]
    removed: list[StoredList]


@dataclass(frozen=True, slots=True)
class _Added:
    files: Sequence[DataFile] | pa.Table
    schema: Schema
    specs: Specs


@dataclass(frozen=True, slots=True)
class _Step:
    parent: FileSet
    change: _Added | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredIn:
    """The manifests that store a set's entries, and the numbers of files added and removed apart from
    them.
    """

    manifests: ManifestSet
    added_since: int
    removed_since: int


@dataclass(frozen=True, slots=True)
class _Narrow:
    """The live files without statistics of columns that no plan has used."""

    statistics: frozenset[int]
    tables: tuple[pa.Table, ...]


@dataclass(frozen=True, slots=True)
class _Changes:
    """The difference of a set from its manifests: live files added since, and paths removed from them."""

    manifests: ManifestSet
    added: tuple[pa.Table, ...]
    removed: frozenset[str]
    gone: pa.Array


class FileSet:
    """The live data files of a version of a table. See the module for its costs."""

    __slots__ = (
        "file_count",
        "row_count",
        "size_bytes",
        "_origin",
        "_tables",
        "_narrow",
        "_changes",
        "_is_distinct",
    )

    def __init__(self, file_count: int, row_count: int, size_bytes: int, origin: ManifestSet | _Step) -> None:
        self.file_count = file_count
        self.row_count = row_count
        self.size_bytes = size_bytes
        # These are caches of the same content in another form, and whether its paths were found to differ. Each
        # is replaced in a single assignment, so that threads that share a set see the old form or the new form.
        self._origin = origin
        self._tables: tuple[pa.Table, ...] | None = None
        self._narrow: _Narrow | None = None
        self._changes: _Changes | None = None
        self._is_distinct = False

    @staticmethod
    def empty() -> FileSet:
        return FileSet(0, 0, 0, ManifestSet())

    def added(self, files: Sequence[DataFile] | pa.Table, schema: Schema, specs: Specs) -> FileSet:
        """Return the set with `files`, whose paths are not in it.

        `schema` and `specs` are those of their commit.
        """
        if isinstance(files, pa.Table):
            count, rows, size = (
                files.num_rows,
                pc.sum(files["rows"]).as_py() or 0,
                pc.sum(files["size"]).as_py() or 0,
            )
        else:
            count, rows = len(files), sum(file.rows for file in files)
            size = sum(file.size_bytes for file in files)
        if not count:
            return self
        step = _Step(self, _Added(files, schema, specs))
        return FileSet(self.file_count + count, self.row_count + rows, self.size_bytes + size, step)

    def removed(self, files: Sequence[RemovedFile]) -> FileSet:
        """Return the set without `files`, which are in it."""
        if not files:
            return self
        step = _Step(self, tuple(file.path for file in files))
        rows, size = sum(file.rows for file in files), sum(file.size_bytes for file in files)
        return FileSet(self.file_count - len(files), self.row_count - rows, self.size_bytes - size, step)

    def cleared(self) -> FileSet:
        """Return the set of no files."""
        return FileSet.empty()

    def chunks(
        self, fetch: Fetch, statistics: Collection[int] | None = None, choice: FileChoice | None = None
    ) -> list[pa.Table]:
        """Return the live files as tables (see `data_file`), with differing columns.

        The first call reads manifests. The tables have all columns, or at least those that a plan with some
        `statistics` needs (see `is_planned`). Of many files and columns, to decode them all would take most
        of the time and of the memory. Files outside of `choice` may be missing. Raises FormatError if a file is
        there twice.
        """
        if choice is not None and self._tables is None:
            chosen_tables = self._chosen(fetch, None if statistics is None else frozenset(statistics), choice)
            if chosen_tables is not None:
                if not self._is_distinct:
                    check_distinct(chosen_tables)
                return chosen_tables
        tables = self._all(fetch, statistics)
        if not self._is_distinct:
            check_distinct(tables)
            self._is_distinct = True
        return list(tables)

    def _all(self, fetch: Fetch, statistics: Collection[int] | None = None) -> tuple[pa.Table, ...]:
        tables = self._tables
        if tables is None and statistics is None:
            tables = self._made(lambda files: files._tables, fetch, None)
            self._tables, self._narrow = tables, None
        elif tables is None:
            tables = self._with_statistics(frozenset(statistics or ()), fetch)
        return tables

    def _with_statistics(self, statistics: frozenset[int], fetch: Fetch) -> tuple[pa.Table, ...]:
        own = self._narrow
        if own is not None and statistics <= own.statistics:
            return own.tables
        column_ids = statistics if own is None else statistics | own.statistics

        def known(files: FileSet) -> tuple[pa.Table, ...] | None:
            narrow = files._narrow
            if narrow is not None and column_ids <= narrow.statistics:
                return narrow.tables
            return files._tables

        nearest = self._nearest(known)
        if nearest is not None and nearest._tables is not None:
            # A set with all columns goes on with all: a commit that comes between two plans may need them.
            return self._all(fetch)
        tables = self._made(known, fetch, column_ids)
        self._narrow = _Narrow(column_ids, tables)
        return tables

    def named(self, fetch: Fetch, paths: pa.Array) -> list[pa.Table]:
        """Return the live files that have these paths, with all columns.

        Of many files, only the paths of the other files are decoded, in manifests that can have these paths.
        """
        if self._tables is not None or (self.file_count < MANY_FILES and self._manifests().is_read):
            live_tables: Sequence[pa.Table] = self.chunks(fetch)
        else:
            changes = self._since_manifests()
            new_paths = [table["path"].combine_chunks() for table in changes.added]
            changed_paths = pa.concat_arrays([changes.gone, *new_paths])
            stored_paths = paths.filter(pc.invert(pc.is_in(paths, value_set=changed_paths)))
            live_tables = (*changes.manifests.named(stored_paths, fetch), *changes.added)
        matching_tables = (table.filter(pc.is_in(table["path"], value_set=paths)) for table in live_tables)
        return [table for table in matching_tables if table.num_rows]

    def _chosen(
        self, fetch: Fetch, statistics: frozenset[int] | None, choice: FileChoice
    ) -> list[pa.Table] | None:
        """Return the live files of the manifests that are chosen, and the files added since.

        None if it takes less time, or has taken less before, to know all files.
        """
        manifests = self._manifests()
        entries = manifests.chosen(choice)
        if _are_few(entries) and len(entries) == len(manifests.entries):
            return None
        changes = self._since_manifests()
        if changes.manifests is not manifests:
            # Another thread has stored a set on the way back in the meantime.
            manifests = changes.manifests
            entries = manifests.chosen(choice)
        tables: list[pa.Table] | None = None
        if _are_few(entries) and len(entries) < len(manifests.entries):
            tables = manifests.live_in(entries, fetch, statistics)
        elif not _are_few(entries) and not self._is_known(manifests, statistics):
            tables = manifests.matching_in(entries, fetch, statistics, choice)
            if tables is None and len(entries) < len(manifests.entries):
                tables = manifests.live_in(entries, fetch, statistics)
        if tables is None:
            return None
        return [*grouped(without(table, changes.gone) for table in tables), *changes.added]

    def _is_known(self, manifests: ManifestSet, statistics: frozenset[int] | None) -> bool:
        """Return whether all files are known by the columns that a plan uses, or are from now on.

        The latter holds for manifests that were searched before. Parts of packs are kept as they were read.
        """
        if statistics is None:
            return False
        narrow = self._narrow
        if manifests.is_packed:
            return narrow is not None and statistics <= narrow.statistics
        return narrow is not None or manifests.was_searched

    def _manifests(self) -> ManifestSet:
        """Return the newest manifests on the way back."""
        files = self
        while not isinstance(files._origin, ManifestSet):
            files = files._origin.parent
        return files._origin

    def _since_manifests(self) -> _Changes:
        """Return the changes since the newest manifests on the way back, made from a predecessor's."""
        newest = self._manifests()

        def known(files: FileSet) -> _Changes | None:
            changes = files._changes
            return changes if changes is not None and changes.manifests is newest else None

        own = known(self)
        if own is not None:
            return own
        base, new_tables, later_paths = self._since(known)
        # Another thread may just have stored newer manifests. Then the changes are since those.
        if isinstance(base, ManifestSet):
            manifests, tables, removed_paths = base, tiered(new_tables), frozenset(later_paths)
        else:
            manifests = base.manifests
            tables = tiered([*(without(table, later_paths) for table in base.added), *new_tables])
            removed_paths = base.removed | frozenset(later_paths)
            older = self._nearest(known)
            if older is not None:
                older._changes = None  # as `_release_predecessor` does
        changes = _Changes(manifests, tables, removed_paths, pa.array(sorted(removed_paths), pa.string()))
        self._changes = changes
        return changes

    def _nearest(self, known: Callable[[FileSet], T | None]) -> FileSet | None:
        """Return the nearest set on the way back to manifests for which `known` returns a value."""
        files = self
        while known(files) is None:
            if isinstance(files._origin, ManifestSet):
                return None
            files = files._origin.parent
        return files

    def _made(
        self,
        known: Callable[[FileSet], tuple[pa.Table, ...] | None],
        fetch: Fetch,
        statistics: frozenset[int] | None,
    ) -> tuple[pa.Table, ...]:
        """Return the live files, made from manifests or from the `known` tables of a predecessor.

        The predecessor is then released.
        """
        predecessor = self._nearest(known)
        nearest_base, new_tables, removed_paths = self._since(known)
        if isinstance(nearest_base, ManifestSet):
            base = nearest_base.live(fetch, statistics)
        else:
            base = nearest_base
            self._release_predecessor(known)
        if statistics is not None:
            new_tables = [_narrowed(table, statistics) for table in new_tables]
        base = tuple(without(table, removed_paths) for table in base)
        if predecessor is not None and predecessor._is_distinct and are_apart(base, new_tables):
            self._is_distinct = True
        tables = tiered([*base, *new_tables])
        self._check_totals(tables)
        return tables

    def _check_totals(self, tables: Sequence[pa.Table]) -> None:
        """Raise FormatError if the entries do not match the totals: an error instead of wrong rows."""
        count = sum(table.num_rows for table in tables)
        rows = sum(pc.sum(table["rows"]).as_py() or 0 for table in tables)
        self._check(count, rows)

    def _check(self, count: int, rows: int) -> None:
        if (count, rows) != (self.file_count, self.row_count):
            raise FormatError(
                f"the manifests and commits of a version have {count} live files with {rows} rows, but its totals say "
                f"{self.file_count} with {self.row_count}: run lakelog fsck --repair, which writes snapshots anew "
                "where the log allows that"
            )

    def _release_predecessor(self, known: Callable[[FileSet], tuple[pa.Table, ...] | None]) -> None:
        """Release the tables that this set's were made from.

        A reader of the older version makes them again. So a process that reads every version keeps a single
        copy.
        """
        files = self._nearest(known)
        if files is not None and files is not self:
            files._tables = files._narrow = None

    def table(self, fetch: Fetch) -> pa.Table:
        """Return the live files as a single table."""
        return joined(self.chunks(fetch))

    def parts(self, fetch: Fetch) -> Iterator[pa.Table]:
        """Yield the live files with all columns, in parts, and keep few of them.

        Each call reads manifests. Raises FormatError at the end if the files do not match the totals. A file that
        is there twice comes twice.
        """
        if self._tables is not None or self.file_count < MANY_FILES:
            yield from self._all(fetch)
            return
        manifests, new_tables, removed_paths = self.since_manifests()
        path_array, count, rows = pa.array(sorted(removed_paths), pa.string()), 0, 0
        for table in chain((without(part, path_array) for part in manifests.parts(fetch)), new_tables):
            count += table.num_rows
            rows += pc.sum(table["rows"]).as_py() or 0
            yield table
        self._check(count, rows)

    def dump(
        self,
        version: int,
        fetch: Fetch | None = None,
        order: Sequence[int] = (),
        kept: PartCache | None = None,
        since: int = 0,
        *,
        sorts_anew: bool = True,
    ) -> tuple[FileSetRoot, dict[str, bytes], ManifestSet]:
        """Return the root to be stored at `version`, the new objects that it needs, by name, and its
        manifests.

        With `fetch`, small manifests that are not in memory are read and merged too. Within partitions, files
        are in the `order` of these columns, by their ids. Parts that are read of the manifests are in `kept`.
        Manifests from before the version `since` are rewritten, so that no entry of a removed file is left.
        With `sorts_anew`, some manifests that overlap many others are rewritten in order.
        """
        if self.file_count:
            manifests, new_tables, removed_paths = self.since_manifests()
            manifests, blobs = manifests.after(
                version, joined(new_tables), removed_paths, fetch, order, kept, since, sorts_anew=sorts_anew
            )
        else:
            manifests, blobs = ManifestSet(), {}
        root = FileSetRoot(
            files=self.file_count,
            rows=self.row_count,
            bytes=self.size_bytes,
            manifests=[manifest.stored for manifest in manifests.entries],
            removed=[manifest.stored for manifest in manifests.removed],
        )
        return root, blobs, manifests

    def stored(self, manifests: ManifestSet) -> None:
        """Note that the manifests which a dump of this very set returned are durable.

        Sets that come from this set then build on them, and the changes that led to it are released.
        """
        self._origin = manifests

    def stored_in(self) -> StoredIn:
        """Return the manifests that store the entries, as far as this process knows. Reads nothing."""
        manifests, new_tables, removed_paths = self.since_manifests()
        return StoredIn(manifests, sum(table.num_rows for table in new_tables), len(removed_paths))

    def since_manifests(self) -> tuple[ManifestSet, list[pa.Table], Collection[str]]:
        """Return the manifests that this set goes back to, the live files added since, and the paths removed.

        The paths were removed from these manifests. Reads nothing.
        """
        manifests, new_tables, removed_paths = self._since(lambda files: None)
        assert isinstance(manifests, ManifestSet), "every set goes back to manifests"
        return manifests, new_tables, removed_paths

    def rest_on(self, stored_set: FileSet) -> None:
        """Go back to the manifests of a stored set that was found to be the same, as after `stored_set`."""
        if isinstance(stored_set._origin, ManifestSet):
            self._origin = stored_set._origin

    @staticmethod
    def load(
        root: FileSetRoot,
        known_entries: dict[StoredList, Entries] | None = None,
        bounds: Mapping[str, BoundsAt] | None = None,
        directories: Directories | None = None,
        kept: PartCache | None = None,
    ) -> FileSet:
        """Return the set that `dump` described; its manifests are read on demand.

        Sets that are loaded with the same `known_entries` share the manifests that they have in common. `bounds` are
        those of manifests, by their names, and `directories` those of leaves. Parts that were read are `kept`.
        """
        entries_by_list = {} if known_entries is None else known_entries

        def entries_of(each_list: StoredList) -> Entries:
            entries = entries_by_list.get(each_list)
            if entries is None:
                own = (bounds or {}).get(bounds_key(each_list))
                entries = (
                    leaf_of(each_list, directories or {}, own)
                    if each_list.is_leaf
                    else Manifest(each_list, bounds=own)
                )
                entries_by_list[each_list] = entries
            return entries

        removal_lists = [entries_of(entry) for entry in root.removed]
        manifests = ManifestSet(
            tuple(entries_of(entry) for entry in root.manifests),
            tuple(entry for entry in removal_lists if isinstance(entry, Manifest)),
            PartCache() if kept is None else kept,
        )
        if len(manifests.removed) < len(removal_lists):
            raise FormatError("a snapshot has a list of removed paths in a pack: another program wrote it")
        return FileSet(root.files, root.rows, root.bytes, manifests)

    def _since(
        self, known: Callable[[FileSet], T | None]
    ) -> tuple[T | ManifestSet, list[pa.Table], Collection[str]]:
        """Return the nearest base on the way back, the live files added since, and the paths removed from it.

        A base is the value of `known` for a set, or its manifests.
        """
        files, removed_paths, changes = self, Counter[str](), list[_Added]()
        while (base := known(files)) is None:
            origin = files._origin
            if isinstance(origin, ManifestSet):
                return origin, _to_tables(reversed(changes)), removed_paths
            if isinstance(origin.change, tuple):
                removed_paths.update(origin.change)
            else:
                changes.append(_surviving(origin.change, removed_paths))
            files = origin.parent
        return base, _to_tables(reversed(changes)), removed_paths


def _are_few(chosen_entries: Sequence[Entries]) -> bool:
    leaves = sum(isinstance(entry, ManifestLeaf) for entry in chosen_entries)
    return leaves <= FEW_LEAVES and len(chosen_entries) - leaves <= FEW_MANIFESTS


def _narrowed(table: pa.Table, statistics: Collection[int]) -> pa.Table:
    return table.select([name for name in table.column_names if is_planned(name, statistics)])


def _surviving(change: _Added, removals: Counter[str]) -> _Added:
    """Return `change` without the files that were removed later; those paths then concern no older change.

    A path that was there twice, by another client's mistake, was removed twice, so removals are counted.
    """
    if not removals:
        return change
    if isinstance(change.files, pa.Table):
        files = without(change.files, removals)
        if files is not change.files:
            removals.subtract(path for path in change.files["path"].to_pylist() if path in removals)
            _drop_settled(removals)
        return _Added(files, change.schema, change.specs)
    removed_files = [file for file in change.files if file.path in removals]
    if not removed_files:
        return change
    kept_files = [file for file in change.files if file.path not in removals]
    removals.subtract(file.path for file in removed_files)
    _drop_settled(removals)
    return _Added(kept_files, change.schema, change.specs)


def _drop_settled(removals: Counter[str]) -> None:
    for path in [path for path, count in removals.items() if count <= 0]:
        del removals[path]


def _to_tables(changes: Iterable[_Added]) -> list[pa.Table]:
    """Return the files of `changes` in order; neighbours with the same schema become a single table."""
    tables: list[pa.Table] = []
    run: list[DataFile] = []
    last: _Added | None = None
    for change in changes:
        if isinstance(change.files, pa.Table):
            _end_run(run, last, tables)
            tables.append(change.files)
            continue
        if last is not None and (change.schema is not last.schema or change.specs is not last.specs):
            _end_run(run, last, tables)
        run += change.files
        last = change
    _end_run(run, last, tables)
    return [table for table in tables if table.num_rows]


def _end_run(run: list[DataFile], last: _Added | None, tables: list[pa.Table]) -> None:
    if run and last is not None:
        tables.append(files_to_arrow(run, last.schema, last.specs))
        run.clear()
