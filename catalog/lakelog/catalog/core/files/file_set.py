"""The set of a table's live data files: immutable, and cheap to change.

The cost of a change grows with the change and not with the set: a set knows its totals and how it came from its
predecessor (files added, paths removed). Arrow rows are made on first use, and cached; a plan that needs few manifests
makes those of these only. `manifests` has how a set is stored. A path is in a set at most once; a removed one may come
back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, files_to_arrow, is_planned
from lakelog.catalog.core.files.file_tables import grouped, joined, tiered, without
from lakelog.catalog.core.files.leaves import Fetch, Leaf, leaf_of
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import BoundsAt
from lakelog.catalog.core.files.manifest_parts import Kept
from lakelog.catalog.core.files.manifests import Choice, Entries, Manifests, bounds_key
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.catalog.core.schema import PartitionSpec, Schema, ready
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Number

T = TypeVar("T")
Specs = Mapping[int, PartitionSpec] | Sequence[PartitionSpec]


MANY_FILES = 10_000
"""Of so many files, a process that asks for some does not keep all columns of all."""

FEW_MANIFESTS = 16
FEW_LEAVES = 40
"""Entries of so many manifests, or leaves of packs, are taken whole; of more, those that a plan needs are looked for
first."""


class Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a snapshot holds of a set of files: exact totals of the live ones, and where the entries are."""

    files: Number
    rows: Number
    bytes: Number
    manifests: list[StoredList]
    removed: list[StoredList] = []


ready(Root)


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
    """Where the entries of a set are stored: manifests, and how many files are added and removed beside those."""

    manifests: Manifests
    added_since: int
    removed_since: int


@dataclass(frozen=True, slots=True)
class _Narrow:
    """The live files without statistics of columns that no plan has looked at."""

    statistics: frozenset[int]
    tables: tuple[pa.Table, ...]


@dataclass(frozen=True, slots=True)
class _Changes:
    """What a set is beside its manifests: the live files added since, and paths that are removed from these."""

    manifests: Manifests
    added: tuple[pa.Table, ...]
    removed: frozenset[str]
    gone: pa.Array


class FileSet:
    """The live data files of one version of a table. See the module for what is cheap."""

    __slots__ = (
        "file_count",
        "row_count",
        "size_bytes",
        "_origin",
        "_tables",
        "_narrow",
        "_changes",
    )

    def __init__(self, file_count: int, row_count: int, size_bytes: int, origin: Manifests | _Step) -> None:
        self.file_count = file_count
        self.row_count = row_count
        self.size_bytes = size_bytes
        # These four are caches of the same content in another form. Each is replaced by one assignment, so that
        # threads that share a set see the old form or the new one.
        self._origin = origin
        self._tables: tuple[pa.Table, ...] | None = None
        self._narrow: _Narrow | None = None
        self._changes: _Changes | None = None

    @staticmethod
    def empty() -> FileSet:
        return FileSet(0, 0, 0, Manifests())

    def added(self, files: Sequence[DataFile] | pa.Table, schema: Schema, specs: Specs) -> FileSet:
        """Return the set with `files`, whose paths are not in it. `schema` and `specs` are those of their commit."""
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
        self, fetch: Fetch, statistics: Collection[int] | None = None, choice: Choice | None = None
    ) -> list[pa.Table]:
        """Return the live files as tables (see `data_file`), with differing columns. The first call reads manifests.

        With all columns, or those that a plan needs which looks at some `statistics` (see `is_planned`), and perhaps
        others: of many files and columns, to decode them all would take most of the time and of the memory. Files that
        are not chosen may be missing.
        """
        if choice is not None and self._tables is None:
            some = self._chosen(fetch, None if statistics is None else frozenset(statistics), choice)
            if some is not None:
                return some
        tables = self._tables
        if tables is None and statistics is None:
            tables = self._made(lambda files: files._tables, fetch, None)
            self._tables, self._narrow = tables, None
        elif tables is None:
            tables = self._with_statistics(frozenset(statistics or ()), fetch)
        return list(tables)

    def _with_statistics(self, statistics: frozenset[int], fetch: Fetch) -> tuple[pa.Table, ...]:
        own = self._narrow
        if own is not None and statistics <= own.statistics:
            return own.tables
        wanted = statistics if own is None else statistics | own.statistics

        def known(files: FileSet) -> tuple[pa.Table, ...] | None:
            narrow = files._narrow
            if narrow is not None and wanted <= narrow.statistics:
                return narrow.tables
            return files._tables

        nearest = self._nearest(known)
        if nearest is not None and nearest._tables is not None:
            # What has all columns goes on with all: a commit that comes between two plans may need them.
            return tuple(self.chunks(fetch))
        tables = self._made(known, fetch, wanted)
        self._narrow = _Narrow(wanted, tables)
        return tables

    def named(self, fetch: Fetch, paths: pa.Array) -> list[pa.Table]:
        """Return those of the live files that have these paths, with all columns.

        Of many files, only the paths of the others are decoded, of the manifests that can have them.
        """
        if self._tables is not None or (self.file_count < MANY_FILES and self._manifests().is_read):
            known: Sequence[pa.Table] = self.chunks(fetch)
        else:
            changes = self._since_manifests()
            come = [table["path"].combine_chunks() for table in changes.added]
            beside = pa.concat_arrays([changes.gone, *come])
            before = paths.filter(pc.invert(pc.is_in(paths, value_set=beside)))
            known = (*changes.manifests.named(before, fetch), *changes.added)
        found = (table.filter(pc.is_in(table["path"], value_set=paths)) for table in known)
        return [table for table in found if table.num_rows]

    def _chosen(
        self, fetch: Fetch, statistics: frozenset[int] | None, choice: Choice
    ) -> list[pa.Table] | None:
        """Return the live files of the manifests that are chosen, and those added since; None where it takes less time,
        or has taken less before, to know all files."""
        manifests = self._manifests()
        chosen = manifests.chosen(choice)
        if _are_few(chosen) and len(chosen) == len(manifests.entries):
            return None
        changes = self._since_manifests()
        if changes.manifests is not manifests:
            # Another thread has stored a set on the way back meanwhile.
            manifests = changes.manifests
            chosen = manifests.chosen(choice)
        tables: list[pa.Table] | None = None
        if _are_few(chosen) and len(chosen) < len(manifests.entries):
            tables = manifests.live_in(chosen, fetch, statistics)
        elif not _are_few(chosen) and not self._is_known(manifests, statistics):
            tables = manifests.matching_in(chosen, fetch, statistics, choice)
            if tables is None and len(chosen) < len(manifests.entries):
                tables = manifests.live_in(chosen, fetch, statistics)
        if tables is None:
            return None
        return [*grouped(without(table, changes.gone) for table in tables), *changes.added]

    def _is_known(self, manifests: Manifests, statistics: frozenset[int] | None) -> bool:
        """Return whether all files are known by what a plan looks at, or are from now on: of manifests that were
        searched before. What was looked at in packs is kept as it is."""
        if statistics is None:
            return False
        narrow = self._narrow
        if manifests.is_packed:
            return narrow is not None and statistics <= narrow.statistics
        return narrow is not None or manifests.was_searched

    def _manifests(self) -> Manifests:
        """Return the newest manifests on the way back."""
        files = self
        while not isinstance(files._origin, Manifests):
            files = files._origin.parent
        return files._origin

    def _since_manifests(self) -> _Changes:
        """Return the changes since the newest manifests on the way back, made from those of a predecessor."""
        newest = self._manifests()

        def known(files: FileSet) -> _Changes | None:
            changes = files._changes
            return changes if changes is not None and changes.manifests is newest else None

        own = known(self)
        if own is not None:
            return own
        base, added, removed = self._since(known)
        # These may be newer manifests, where another thread has just stored them: the changes are since those.
        if isinstance(base, Manifests):
            manifests, tables, gone = base, tiered(added), frozenset(removed)
        else:
            manifests = base.manifests
            tables = tiered([*(without(table, removed) for table in base.added), *added])
            gone = base.removed | frozenset(removed)
            older = self._nearest(known)
            if older is not None:
                older._changes = None  # as `_release_predecessor` does
        changes = _Changes(manifests, tables, gone, pa.array(sorted(gone), pa.string()))
        self._changes = changes
        return changes

    def _nearest(self, known: Callable[[FileSet], T | None]) -> FileSet | None:
        """Return the nearest set on the way back to manifests of which something is known."""
        files = self
        while known(files) is None:
            if isinstance(files._origin, Manifests):
                return None
            files = files._origin.parent
        return files

    def _made(
        self,
        known: Callable[[FileSet], tuple[pa.Table, ...] | None],
        fetch: Fetch,
        statistics: frozenset[int] | None,
    ) -> tuple[pa.Table, ...]:
        """Return the live files from what is `known` of a predecessor, which is then released, or from manifests."""
        found, added, removed = self._since(known)
        if isinstance(found, Manifests):
            base = found.live(fetch, statistics)
        else:
            base = found
            self._release_predecessor(known)
        if statistics is not None:
            added = [_narrowed(table, statistics) for table in added]
        tables = tiered([*(without(table, removed) for table in base), *added])
        self._check_totals(tables)
        return tables

    def _check_totals(self, tables: Sequence[pa.Table]) -> None:
        """Raise FormatError where the entries are not those that the totals are of: an error instead of wrong rows."""
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
        """Release the tables that this set's were made from: a process that reads every version keeps one copy.

        A reader of the older version makes them again.
        """
        files = self._nearest(known)
        if files is not None and files is not self:
            files._tables = files._narrow = None

    def table(self, fetch: Fetch) -> pa.Table:
        """Return the live files as one table."""
        return joined(self.chunks(fetch))

    def parts(self, fetch: Fetch) -> Iterator[pa.Table]:
        """Yield the live files with all columns, in parts, and keep few of them. Each call reads manifests.

        FormatError at the end where the files are not those that the totals are of.
        """
        if self._tables is not None or self.file_count < MANY_FILES:
            yield from self.chunks(fetch)
            return
        manifests, added, removed = self.since_manifests()
        gone, count, rows = pa.array(sorted(removed), pa.string()), 0, 0
        for table in chain((without(part, gone) for part in manifests.parts(fetch)), added):
            count += table.num_rows
            rows += pc.sum(table["rows"]).as_py() or 0
            yield table
        self._check(count, rows)

    def dump(
        self,
        version: int,
        fetch: Fetch | None = None,
        order: Sequence[int] = (),
        kept: Kept | None = None,
        since: int = 0,
        *,
        sorts_anew: bool = True,
    ) -> tuple[Any, dict[str, bytes], Manifests]:
        """Return the root, to be stored at `version`, the new objects that it needs, by name, and its manifests.

        With `fetch`, small manifests that are not in memory are read and merged too. Within partitions, files are in
        the `order` of these columns, by their ids. What is read of the manifests is in `kept`. Manifests from before
        the version `since` are written anew, so that no entry of a file that is gone is left. With `sorts_anew`, some
        that overlap many others are written anew, in order.
        """
        if self.file_count:
            manifests, added, removed = self.since_manifests()
            manifests, blobs = manifests.after(
                version, joined(added), removed, fetch, order, kept, since, sorts_anew=sorts_anew
            )
        else:
            manifests, blobs = Manifests(), {}
        root = Root(
            files=self.file_count,
            rows=self.row_count,
            bytes=self.size_bytes,
            manifests=[manifest.stored for manifest in manifests.entries],
            removed=[manifest.stored for manifest in manifests.removed],
        )
        return msgspec.to_builtins(root), blobs, manifests

    def stored(self, manifests: Manifests) -> None:
        """Note that the manifests which a dump of this very set returned are durable.

        Sets that come from this one then build on them, and the changes that led to it are released.
        """
        self._origin = manifests

    def stored_in(self) -> StoredIn:
        """Return where the entries are stored, as far as this process knows. Reads nothing."""
        manifests, added, removed = self.since_manifests()
        return StoredIn(manifests, sum(table.num_rows for table in added), len(removed))

    def since_manifests(self) -> tuple[Manifests, list[pa.Table], Collection[str]]:
        """Return the manifests that this set goes back to, the live files that were added since, and the paths that
        were removed from these manifests. Reads nothing."""
        manifests, added, removed = self._since(lambda files: None)
        assert isinstance(manifests, Manifests), "every set goes back to manifests"
        return manifests, added, removed

    def rest_on(self, stored: FileSet) -> None:
        """Go back to the manifests of a stored set that was found to be the same, as after `stored`."""
        if isinstance(stored._origin, Manifests):
            self._origin = stored._origin

    @staticmethod
    def load(
        root: Any,
        known: dict[StoredList, Entries] | None = None,
        bounds: Mapping[str, BoundsAt] | None = None,
        directories: Mapping[str, str] | None = None,
        kept: Kept | None = None,
    ) -> FileSet:
        """Return the set that `dump` described; its manifests are read when they are needed.

        Sets that are loaded with the same `known` share the manifests that they have in common. `bounds` are those of
        manifests, by their names, and `directories` those of leaves, by their hashes. Parts that were read are `kept`.
        """
        stored = root if isinstance(root, Root) else msgspec.convert(root, Root)
        shared = {} if known is None else known

        def entries_of(each: StoredList) -> Entries:
            found = shared.get(each)
            if found is None:
                own = (bounds or {}).get(bounds_key(each))
                found = leaf_of(each, directories or {}, own) if each.is_leaf else Manifest(each, bounds=own)
                shared[each] = found
            return found

        removed = [entries_of(each) for each in stored.removed]
        manifests = Manifests(
            tuple(entries_of(each) for each in stored.manifests),
            tuple(each for each in removed if isinstance(each, Manifest)),
            Kept() if kept is None else kept,
        )
        if len(manifests.removed) < len(removed):
            raise FormatError("a snapshot has a list of removed paths in a pack: another program wrote it")
        return FileSet(stored.files, stored.rows, stored.bytes, manifests)

    def _since(
        self, known: Callable[[FileSet], T | None]
    ) -> tuple[T | Manifests, list[pa.Table], Collection[str]]:
        """Return the nearest base on the way back, the live files added since, and the paths removed from the base.

        A base is what is `known` of a set, or its manifests.
        """
        files, removed, changes = self, set[str](), list[_Added]()
        while (base := known(files)) is None:
            origin = files._origin
            if isinstance(origin, Manifests):
                return origin, _to_tables(reversed(changes)), removed
            if isinstance(origin.change, tuple):
                removed.update(origin.change)
            else:
                changes.append(_surviving(origin.change, removed))
            files = origin.parent
        return base, _to_tables(reversed(changes)), removed


def _are_few(chosen: Sequence[Entries]) -> bool:
    leaves = sum(isinstance(each, Leaf) for each in chosen)
    return leaves <= FEW_LEAVES and len(chosen) - leaves <= FEW_MANIFESTS


def _narrowed(table: pa.Table, statistics: Collection[int]) -> pa.Table:
    return table.select([name for name in table.column_names if is_planned(name, statistics)])


def _surviving(change: _Added, removed: set[str]) -> _Added:
    """Return `change` without the files that were removed later; those paths then concern no older change."""
    if not removed:
        return change
    if isinstance(change.files, pa.Table):
        files = without(change.files, removed)
        if files is not change.files:
            removed.difference_update(change.files["path"].to_pylist())
        return _Added(files, change.schema, change.specs)
    gone = {file.path for file in change.files if file.path in removed}
    removed -= gone
    return _Added([file for file in change.files if file.path not in gone], change.schema, change.specs)


def _to_tables(changes: Iterable[_Added]) -> list[pa.Table]:
    """Return the files of `changes` in order; neighbours of one schema become one table."""
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
