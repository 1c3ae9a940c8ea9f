"""Leaves of packs (see `manifest_parts`) as the set of files knows them, and how parts of them are read.

Rule: a leaf says the same as a manifest of its entries would. It holds no parts that were read: they are in
`PartCache`, or with the caller that asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import EncodedTable
from lakelog.catalog.core.files.data_file import checked_values, is_judged
from lakelog.catalog.core.files.manifest_bounds import BoundsAt
from lakelog.catalog.core.files.manifest_parts import (
    FILES,
    RANGES_MAX,
    Directories,
    LeafDirectory,
    ManifestPart,
    PartCache,
    checked_part,
    decoded,
    kinds_of_columns,
    ranges_of,
)
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.log import BlobRange
from lakelog.log.errors import FormatError

Fetch = Callable[[Sequence[str]], list[bytes]]
"""Reads manifests by name, or parts of packs, in a single parallel round."""

Held = dict[str, EncodedTable | pa.Table]
"""Parts that were read, by their hashes."""

MANY_ROWS, NO_SPEC = pa.scalar(2**62, pa.int64()), pa.scalar(-1, pa.int32())
"""They stand for the rows and the spec of a file of which only statistics were read."""


class ManifestLeaf:
    """A leaf of a pack, with the places of its parts."""

    __slots__ = ("stored", "bounds", "directory", "_parts")

    def __init__(
        self, stored_list: StoredList, directory: LeafDirectory, bounds: BoundsAt | None = None
    ) -> None:
        self.stored = stored_list
        self.bounds = bounds
        self.directory = directory
        self._parts: dict[str, ManifestPart] | None = None

    @property
    def version(self) -> int:
        """The version that was dumped when it was written. Its name begins with that version."""
        return int(self.stored.name[:20])

    @property
    def is_read(self) -> bool:
        return False

    @property
    def parts(self) -> dict[str, ManifestPart]:
        """Its parts by their kinds."""
        if self._parts is None:
            self._parts = self.directory.parts()
        return self._parts

    def statistics(self, column_ids: Collection[int]) -> list[str]:
        """Return the kinds of the parts with statistics of these columns."""
        return [kind for kind in kinds_of_columns(self.directory.kinds, column_ids) if kind != FILES]


class LeafContent:
    """The parts that were read of a leaf. Its methods are those of a `Manifest`; decoded parts are `kept`."""

    def __init__(self, leaf: ManifestLeaf, held: Held, kept: PartCache | None) -> None:
        self.leaf = leaf
        self._held = held
        self._kept = kept

    def columns(self, statistics: Collection[int] | None = None, *, keep: bool = True) -> pa.Table:
        """Return all columns, or those that a plan needs (see `is_planned`).

        Raises FormatError for invalid values.
        """
        return self._joined(kinds_of_columns(self.leaf.directory.kinds, statistics), keep=keep)

    def judged(self, statistics: Collection[int]) -> pa.Table:
        """Return the columns by which files are judged (see `is_judged`).

        If the part `files` was not read, each file may have any partition and any number of rows.
        """
        statistics_table = self._joined(self.leaf.statistics(statistics), keep=True)
        part = self.leaf.parts[FILES]
        part_content = self._held.get(part.sha256)
        if part_content is None:
            count = self.leaf.stored.entries
            files = pa.table({"rows": pa.repeat(MANY_ROWS, count), "spec": pa.repeat(NO_SPEC, count)})
            statistics_table = self._with_empty_files(statistics_table, statistics)
        else:
            # The part stays encoded.
            with self.leaf.stored.naming():
                names = [name for name in _names(part_content) if is_judged(name, ())]
                files = self.leaf.stored.of_its_length(
                    decoded(part, part_content, names)
                    if isinstance(part_content, EncodedTable)
                    else part_content.select(names)
                )
        return pa.table(
            {name: table[name] for table in (files, statistics_table) for name in table.column_names}
        )

    def _with_empty_files(self, table: pa.Table, column_ids: Collection[int]) -> pa.Table:
        """Return statistics in which files without any value in a column have as many NULLs as rows.

        The lower bound of a leaf is known only if that of each file with a value is.
        """
        bounds = self.leaf.bounds
        for id in column_ids if bounds is not None else ():
            lo, nulls, nans = (f"{kind}{id}" for kind in ("lo", "nulls", "nans"))
            if bounds is None or not bounds.has(lo) or not {lo, nulls} <= set(table.column_names):
                continue
            is_empty = pc.is_null(table[lo])
            if nans in table.column_names:
                is_empty = pc.and_(is_empty, pc.equal(pc.fill_null(table[nans], 0), 0))
            column = pc.if_else(is_empty, MANY_ROWS, table[nulls])
            table = table.set_column(table.column_names.index(nulls), nulls, column)
        return table

    def decoded(self, kinds: Iterable[str]) -> list[tuple[ManifestPart, pa.Table]]:
        """Return the parts that are still encoded. Their values are still to be checked."""
        part_tables = []
        for part in (self.leaf.parts[kind] for kind in kinds):
            part_content = self._held[part.sha256]
            if isinstance(part_content, EncodedTable):
                with self.leaf.stored.naming():
                    part_tables.append(
                        (part, self.leaf.stored.of_its_length(part_content.columns(part_content.names)))
                    )
        return part_tables

    def hold(self, part: ManifestPart, table: pa.Table) -> None:
        """Hold a part that was decoded and checked in place of the encoded part, and keep it."""
        self._held[part.sha256] = table
        if self._kept is not None:
            self._kept.put(part.sha256, table)

    def paths(self) -> pa.ChunkedArray:
        """Return the paths of all entries, only to compare them: nothing checks that they are paths."""
        part = self._held[self.leaf.parts[FILES].sha256]
        with self.leaf.stored.naming():
            table = part.columns(["path"]) if isinstance(part, EncodedTable) else part.select(["path"])
            return self.leaf.stored.of_its_length(table)["path"]

    def taken(self, statistics: Collection[int] | None, rows: pa.Array) -> pa.Table:
        """Return `columns` of some rows.

        Other rows are ignored, and parts stay encoded. The values are still to be checked, by
        `check_together`.
        """
        columns = dict[str, pa.ChunkedArray]()
        for kind in kinds_of_columns(self.leaf.directory.kinds, statistics):
            part_content = self._held[self.leaf.parts[kind].sha256]
            with self.leaf.stored.naming():
                whole = (
                    part_content.columns(part_content.names)
                    if isinstance(part_content, EncodedTable)
                    else part_content
                )
                table = self.leaf.stored.of_its_length(whole).take(rows)
            columns |= {name: table[name] for name in table.column_names}
        return pa.table(columns)

    def _joined(self, kinds: Iterable[str], *, keep: bool) -> pa.Table:
        tables = [self._part(kind, keep=keep) for kind in kinds]
        columns = {name: table[name] for table in tables for name in table.column_names}
        return pa.table(columns)

    def _part(self, kind: str, *, keep: bool) -> pa.Table:
        part = self.leaf.parts[kind]
        part_content = self._held[part.sha256]
        with self.leaf.stored.naming():
            if not isinstance(part_content, EncodedTable):
                # It may have been kept for another leaf, which says another length of the same part.
                return self.leaf.stored.of_its_length(part_content)
            table = self.leaf.stored.of_its_length(decoded(part, part_content))
        if keep:
            self.hold(part, table)
        return table


def _names(part: EncodedTable | pa.Table) -> list[str]:
    names: list[str] = part.names if isinstance(part, EncodedTable) else part.column_names
    return names


def decode_statistics(contents: Iterable[LeafContent], statistics: Collection[int]) -> None:
    """Have leaves hold the statistics of these columns decoded.

    Raises FormatError for values that no list of files may have.
    """
    by_kind: dict[str, list[tuple[LeafContent, ManifestPart, pa.Table]]] = {}
    for content in contents:
        for part, table in content.decoded(content.leaf.statistics(statistics)):
            by_kind.setdefault(part.kind, []).append((content, part, table))
    for parts_of_kind in by_kind.values():
        check_together([(content.leaf, table) for content, _, table in parts_of_kind])
        for content, part, table in parts_of_kind:
            content.hold(part, table)


def check_together(taken: Sequence[tuple[ManifestLeaf, pa.Table]]) -> None:
    """Check rows of leaves.

    Raises FormatError for values that no list of files may have. To check each table on its own costs more
    than to decode it. So tables with the same schema are checked as a single table, and on their own only if
    that has failed.
    """
    alike = [table for _, table in taken if table.schema.equals(taken[0][1].schema)]
    try:
        if alike:
            checked_values(pa.concat_tables(alike))
    except FormatError:
        alike = []
    if len(alike) < len(taken):
        for leaf, table in taken:
            with leaf.stored.naming():
                checked_values(table)


class LeafQuery:
    """A request for parts of leaves: the kinds of parts, by leaf, in at most so many ranges of a pack."""

    def __init__(self, kinds: Callable[[ManifestLeaf], Iterable[str]], ranges: int = RANGES_MAX) -> None:
        self.kinds = kinds
        self.ranges = ranges

    @staticmethod
    def columns(statistics: Collection[int] | None) -> LeafQuery:
        return LeafQuery(lambda leaf: kinds_of_columns(leaf.directory.kinds, statistics))

    @staticmethod
    def statistics(column_ids: Collection[int]) -> LeafQuery:
        return LeafQuery(lambda leaf: leaf.statistics(column_ids))

    @staticmethod
    def paths() -> LeafQuery:
        return LeafQuery(lambda leaf: [FILES])


class LeafReadRound:
    """A round that reads parts of leaves: `ranges` are requested, and `read` adds the answers to `held`."""

    def __init__(
        self,
        leaves: Iterable[ManifestLeaf],
        wanted_query: LeafQuery,
        kept: PartCache,
        held: Held | None = None,
    ) -> None:
        self._kept = kept
        self.held: Held = {} if held is None else held
        self._missing: list[tuple[ManifestLeaf, ManifestPart]] = []
        for leaf in leaves:
            for kind in wanted_query.kinds(leaf):
                part = leaf.parts[kind]
                part_content = self.held.get(part.sha256)
                part_content = kept.get(part.sha256) if part_content is None else part_content
                if part_content is None:
                    self._missing.append((leaf, part))
                else:
                    self.held[part.sha256] = part_content
        self.ranges = ranges_of(
            ((leaf.stored.name, part) for leaf, part in self._missing), wanted_query.ranges
        )

    def read(self, blobs: Sequence[bytes], *, keep: bool) -> None:
        """Take the parts from the ranges. Raises FormatError for other bytes than directories name."""
        blobs_by_name: dict[str, list[tuple[BlobRange, bytes]]] = {}
        for range, blob in zip(self.ranges, blobs, strict=True):
            blobs_by_name.setdefault(range, []).append((range, range.of(blob)))
        for leaf, part in self._missing:
            range, blob = next(
                (range, blob)
                for range, blob in blobs_by_name[leaf.stored.name]
                if range.first <= part.first < range.first + range.size
            )
            first = part.first - range.first
            with leaf.stored.naming():
                table = checked_part(part, blob[first : first + part.size])
            self.held[part.sha256] = table
            if keep:
                self._kept.put(part.sha256, table)


def leaf_of(stored_list: StoredList, directories: Directories, bounds: BoundsAt | None) -> ManifestLeaf:
    """Return the leaf that a root names. Raises FormatError if the root has no directory of it."""
    directory = directories.get((stored_list.name, stored_list.sha256))
    if directory is None:
        raise FormatError(
            f"a snapshot names a part of {stored_list.name}, and does not say where it is: another program wrote it. "
            "Run "
            "lakelog fsck --repair, which writes it anew where the log allows that"
        )
    return ManifestLeaf(stored_list, directory, bounds)
