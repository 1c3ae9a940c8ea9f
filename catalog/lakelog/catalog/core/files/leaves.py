"""Leaves of packs (see `manifest_parts`) as the set of files knows them, and how parts of them are read.

Rule: a leaf says the same as a manifest of its entries would. It holds nothing that was read: that is in `Kept`, or
with who asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import EncodedTable
from lakelog.catalog.core.files.data_file import checked_values, is_judged
from lakelog.catalog.core.files.manifest_bounds import BoundsAt
from lakelog.catalog.core.files.manifest_parts import (
    FILES,
    JUDGED,
    RANGES_MAX,
    Kept,
    Part,
    checked_part,
    decoded,
    hash_of,
    kinds_of_columns,
    parts_in,
    ranges_of,
)
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.log import BlobRange
from lakelog.log.errors import FormatError

Fetch = Callable[[Sequence[str]], list[bytes]]
"""Reads manifests by name, or parts of packs, in one parallel round."""

Held = dict[str, EncodedTable | pa.Table]
"""Parts that were read, by their hashes."""


class Leaf:
    """A leaf of a pack: where its parts are."""

    __slots__ = ("stored", "bounds", "directory", "_parts")

    def __init__(self, stored: StoredList, directory: str, bounds: BoundsAt | None = None) -> None:
        self.stored = stored
        self.bounds = bounds
        self.directory = directory
        self._parts: dict[str, Part] | None = None

    @property
    def version(self) -> int:
        """The version that was dumped when it was written, with which its name begins."""
        return int(self.stored.name[:20])

    @property
    def is_read(self) -> bool:
        return False

    @property
    def parts(self) -> dict[str, Part]:
        """Its parts by their kinds. FormatError where its directory is none."""
        if self._parts is None:
            with self.stored.naming():
                self._parts = parts_in(self.directory)
        return self._parts


class LeafContent:
    """What was read of a leaf. The methods are those of a `Manifest`; what is decoded is `kept`."""

    def __init__(self, leaf: Leaf, held: Held, kept: Kept | None) -> None:
        self.leaf = leaf
        self._held = held
        self._kept = kept

    def columns(self, statistics: Collection[int] | None = None, *, keep: bool = True) -> pa.Table:
        """Return all columns, or those that a plan needs (see `is_planned`). FormatError for other values."""
        kinds = kinds_of_columns(self.leaf.parts, statistics)
        found = self._joined([kind for kind in kinds if kind != JUDGED], keep=keep)
        if statistics is None:
            copies = self._part(JUDGED, keep=False)
            with self.leaf.stored.naming():
                if not _are_same(copies, found.select(copies.column_names)):
                    raise FormatError("its part judged says other than its files: another program wrote it")
        return found

    def judged(self, statistics: Collection[int]) -> pa.Table:
        """Return the columns by which files are judged (see `is_judged`)."""
        return self._joined(kinds_of_judged(self.leaf, statistics), keep=True)

    def judged_in_files(self, statistics: Collection[int]) -> pa.Table:
        """As `judged`, where the part `files` was read, and not the copies of its columns. That part stays encoded."""
        part = self.leaf.parts[FILES]
        known = self._held[part.sha256]
        with self.leaf.stored.naming():
            names = [name for name in _names(known) if is_judged(name, ())]
            table = decoded(part, known, names) if isinstance(known, EncodedTable) else known.select(names)
            files = self.leaf.stored.of_its_length(table)
        kinds = [kind for kind in kinds_of_judged(self.leaf, statistics) if kind != JUDGED]
        statistics_of = self._joined(kinds, keep=True)
        return pa.table({name: each[name] for each in (files, statistics_of) for name in each.column_names})

    def decoded(self, kinds: Iterable[str]) -> list[tuple[Part, pa.Table]]:
        """Return those of some parts that are still encoded. Their values are still to be checked."""
        found = []
        for part in (self.leaf.parts[kind] for kind in kinds):
            known = self._held[part.sha256]
            if isinstance(known, EncodedTable):
                with self.leaf.stored.naming():
                    found.append((part, self.leaf.stored.of_its_length(known.columns(known.names))))
        return found

    def hold(self, part: Part, table: pa.Table) -> None:
        """Hold a part that was decoded and checked in place of the encoded one, and keep it."""
        self._held[part.sha256] = table
        if self._kept is not None:
            self._kept.put(part.sha256, table)

    def paths(self) -> pa.ChunkedArray:
        """Return the paths of all entries, to be compared only: nothing holds them to be paths."""
        part = self._held[self.leaf.parts[FILES].sha256]
        with self.leaf.stored.naming():
            table = part.columns(["path"]) if isinstance(part, EncodedTable) else part.select(["path"])
            return self.leaf.stored.of_its_length(table)["path"]

    def taken(self, statistics: Collection[int] | None, rows: pa.Array) -> pa.Table:
        """As `columns`, of some rows: the others are not looked at, and parts stay encoded. Their values are still to
        be checked, by `check_together`."""
        columns = dict[str, pa.ChunkedArray]()
        for kind in kinds_of_columns(self.leaf.parts, statistics):
            known = self._held[self.leaf.parts[kind].sha256]
            if kind == JUDGED:
                continue
            with self.leaf.stored.naming():
                whole = known.columns(known.names) if isinstance(known, EncodedTable) else known
                table = self.leaf.stored.of_its_length(whole).take(rows)
            columns |= {name: table[name] for name in table.column_names}
        return pa.table(columns)

    def _joined(self, kinds: Iterable[str], *, keep: bool) -> pa.Table:
        tables = [self._part(kind, keep=keep) for kind in kinds]
        columns = {name: table[name] for table in tables for name in table.column_names}
        return pa.table(columns)

    def _part(self, kind: str, *, keep: bool) -> pa.Table:
        part = self.leaf.parts[kind]
        known = self._held[part.sha256]
        with self.leaf.stored.naming():
            if not isinstance(known, EncodedTable):
                # It may have been kept for another leaf, which says another length of the same part.
                return self.leaf.stored.of_its_length(known)
            table = self.leaf.stored.of_its_length(decoded(part, known))
        if keep:
            self.hold(part, table)
        return table


def _are_same(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have the same values. To Arrow, NaN is no other NaN's equal."""
    if one.equals(other):
        return True
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    pairs = zip(one.columns, other.columns, strict=True)
    return all(mine.equals(theirs) or _are_same_with_nan(mine, theirs) for mine, theirs in pairs)


def _are_same_with_nan(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(one.type):
        return False
    values = [pc.if_else(pc.is_nan(each), pa.scalar(0, each.type), each) for each in (one, other)]
    return bool(pc.is_nan(one).equals(pc.is_nan(other)) and values[0].equals(values[1]))


def _names(part: EncodedTable | pa.Table) -> list[str]:
    names: list[str] = part.names if isinstance(part, EncodedTable) else part.column_names
    return names


def decode_judged(contents: Iterable[LeafContent], statistics: Collection[int]) -> None:
    """Have leaves hold decoded what they are judged by. FormatError for values that no list of files may have."""
    by_kind: dict[str, list[tuple[LeafContent, Part, pa.Table]]] = {}
    for content in contents:
        for part, table in content.decoded(kinds_of_judged(content.leaf, statistics)):
            by_kind.setdefault(part.kind, []).append((content, part, table))
    for found in by_kind.values():
        check_together([(content.leaf, table) for content, _, table in found])
        for content, part, table in found:
            content.hold(part, table)


def kinds_of_judged(leaf: Leaf, statistics: Collection[int]) -> list[str]:
    """Return the kinds of a leaf's parts by which files are judged (see `is_judged`)."""
    return [JUDGED if kind == FILES else kind for kind in kinds_of_columns(leaf.parts, statistics)]


def check_together(taken: Sequence[tuple[Leaf, pa.Table]]) -> None:
    """Check what was taken of leaves. FormatError for values that no list of files may have.

    To check each table by itself costs more than to decode it: those of one schema are checked as one, and by
    themselves only where that has failed.
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


class Wanted:
    """What is asked of leaves: the kinds of parts, by those that a leaf has, in at most so many ranges of a pack."""

    def __init__(self, kinds: Callable[[Leaf], Iterable[str]], ranges: int = RANGES_MAX) -> None:
        self.kinds = kinds
        self.ranges = ranges

    @staticmethod
    def columns(statistics: Collection[int] | None) -> Wanted:
        return Wanted(lambda leaf: kinds_of_columns(leaf.parts, statistics))

    @staticmethod
    def judged(statistics: Collection[int]) -> Wanted:
        return Wanted(lambda leaf: kinds_of_judged(leaf, statistics))

    @staticmethod
    def paths() -> Wanted:
        return Wanted(lambda leaf: [FILES])


class Reading:
    """One round that reads parts of leaves: `ranges` are asked for, and `read` takes the answers, to those `held`."""

    def __init__(self, leaves: Iterable[Leaf], wanted: Wanted, kept: Kept, held: Held | None = None) -> None:
        self._kept = kept
        self.held: Held = {} if held is None else held
        self._missing: list[tuple[Leaf, Part]] = []
        for leaf in leaves:
            for kind in wanted.kinds(leaf):
                part = leaf.parts[kind]
                known = self.held.get(part.sha256)
                known = kept.get(part.sha256) if known is None else known
                if known is None:
                    self._missing.append((leaf, part))
                else:
                    self.held[part.sha256] = known
        self.ranges = ranges_of(((leaf.stored.name, part) for leaf, part in self._missing), wanted.ranges)

    def read(self, blobs: Sequence[bytes], *, keep: bool) -> None:
        """Take what the ranges hold. FormatError for other bytes than directories name."""
        found: dict[str, list[tuple[BlobRange, bytes]]] = {}
        for range, blob in zip(self.ranges, blobs, strict=True):
            found.setdefault(range, []).append((range, range.of(blob)))
        for leaf, part in self._missing:
            range, blob = next(
                (range, blob)
                for range, blob in found[leaf.stored.name]
                if range.first <= part.first < range.first + range.size
            )
            first = part.first - range.first
            with leaf.stored.naming():
                table = checked_part(part, blob[first : first + part.size])
            self.held[part.sha256] = table
            if keep:
                self._kept.put(part.sha256, table)


def leaf_of(stored: StoredList, directories: Mapping[str, str], bounds: BoundsAt | None) -> Leaf:
    """Return the leaf that a root names. FormatError where the root has no directory of it."""
    directory = directories.get(stored.sha256)
    if directory is None or hash_of(directory) != stored.sha256:
        raise FormatError(
            f"a snapshot names a part of {stored.name}, and does not say where it is: another program wrote it. Run "
            "lakelog fsck --repair, which writes it anew where the log allows that"
        )
    return Leaf(stored, directory, bounds)
