"""Manifests: the stored form of a set of files, and when manifests are merged.

A manifest is an immutable Arrow object with the entries of some files, in the order of their partitions, and
at most `LEAF_ENTRIES` of them. A dump writes several manifests, so that a plan reads only those whose bounds
it needs (see `manifest_bounds`). New entries are joined with the last run, the manifests that a single dump
has written together, so that each run is at least twice as long as the next. So n files are in about log2(n)
runs, and an entry is rewritten about log2(n) times.

Removed paths stand in lists apart from the manifests, which are joined alike, until they are an eighth of the
entries. Then the manifests that hold them are rewritten. Manifests and removed paths carry a `seq`, the
number of the dump that wrote them. A path is gone only from the manifests with a lower `seq`, so a restored
file can come back.

`seq` is the version that is dumped, or more. Tags and branches are stored with newer versions too, and an
older version of main, read by another thread, may come from there. So each number is higher than all numbers
that a dump builds on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import started_at
from lakelog.catalog.core.files.file_tables import TIER_RATIO, grouped, in_order, joined, without
from lakelog.catalog.core.files.leaves import (
    Fetch,
    Held,
    LeafContent,
    LeafQuery,
    LeafReadRound,
    ManifestLeaf,
    check_together,
    decode_statistics,
)
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import BoundsAt, bounds_of, bounds_table, is_bounded
from lakelog.catalog.core.files.manifest_parts import PARTS_MAX, PartCache, packed, parts_of
from lakelog.catalog.core.files.overlaps import overlapping
from lakelog.catalog.core.files.stored_list import PACK, StoredList
from lakelog.log.errors import FormatError, NotFound


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files a plan needs.

    `manifests` says for each row of bounds of manifests (see `manifest_bounds`) whether the plan needs files
    of it. `files` says it for each file, by its partition and the statistics of the columns `looked_at`.
    """

    manifests: Callable[[pa.Table], pa.Array]
    files: Callable[[pa.Table], pa.Array]
    looked_at: frozenset[int]


ALWAYS_MERGED_BELOW = 256
RUN_LIMIT = 100_000
"""Runs are not merged beyond so many entries."""

SELECTIVE = 16
"""If bounds leave less than 1 of so many manifests, statistics are not read in a round of their own first."""

PACKED_FROM = 20_000
PACK_LEAF_ENTRIES = 4_000
"""So many entries of a dump, or more, are packs of such leaves, read by their parts; fewer are manifests."""
# a leaf of more parts has as many times more entries, because roots have the place of each part
PACK_LEAF_PARTS = 64
LEAF_ENTRIES = 10_000
LEAF_BYTES = 4 * 1024 * 1024
"""A manifest has at most so many entries, and about so many unencoded bytes, as wide tables have large
entries.
"""

READ_AT_ONCE = 8
"""A walk through all manifests holds so many of them."""

SORTED_ANEW_TIMES = 2
"""So many entries are sorted again for each entry that was added, if a dump adds many (see `overlaps`)."""

REMOVED_FRACTION = 8
REMOVED_MINIMUM = 1000


Entries: TypeAlias = Manifest | ManifestLeaf
"""The entries of some files, as a root names them."""

Content: TypeAlias = Manifest | LeafContent
"""The content that was read of them, which a manifest keeps itself."""


@dataclass(frozen=True, slots=True)
class ManifestSet:
    """The manifests of a dump, and the lists of paths that are removed from them."""

    entries: tuple[Entries, ...] = ()
    removed: tuple[Manifest, ...] = ()
    kept: PartCache = field(default_factory=PartCache, compare=False)
    _live: list[tuple[pa.Table, ...]] = field(default_factory=list, compare=False)
    _bounds: list[tuple[tuple[int, ...], pa.Table]] = field(default_factory=list, compare=False)
    _staying: dict[Entries, pa.Array | None] = field(default_factory=dict, compare=False)
    _searches: list[int] = field(default_factory=list, compare=False)

    def live(self, fetch: Fetch, statistics: Collection[int] | None = None) -> tuple[pa.Table, ...]:
        """Return the live entries.

        Reads the manifests that are not in memory yet in a single round, and keeps them. The entries have all
        columns, or at least those that a plan with some `statistics` needs (see `is_planned`). Raises
        FormatError for an object that was altered or truncated.
        """
        if self._live:
            return self._live[0]
        content = self._load(self.entries, fetch, LeafQuery.columns(statistics), keep=False)
        removals = self._gone()
        # The caller has a copy of the requested columns in longer tables.
        live = (
            _live_of(manifest, content[manifest], removals, statistics, keep=False)
            for manifest in self.entries
        )
        tables = grouped(live)
        if statistics is None:
            self._live.append(tables)
        return tables

    def bounds(self) -> dict[str, BoundsAt]:
        """Return the bounds of these manifests, by their names."""
        return {
            bounds_key(entries.stored): entries.bounds
            for entries in self.entries
            if entries.bounds is not None
        }

    @property
    def is_packed(self) -> bool:
        """Whether there are leaves among these. A plan reads and keeps them by parts."""
        return any(isinstance(entries, ManifestLeaf) for entries in self.entries)

    def parts(self, fetch: Fetch) -> Iterator[pa.Table]:
        """Yield the live entries of each manifest in turn, with all columns, and keep none of them."""
        self._load((), fetch, LeafQuery.paths())
        removals = self._gone()
        for manifest, table in contents(self.entries, fetch):
            yield table if removals is None else without(table, _gone_from(manifest, removals))

    def chosen(self, choice: FileChoice) -> tuple[Entries, ...]:
        """Return the manifests that a plan needs, by their bounds."""
        if not self._bounds:
            places = tuple(place for place, entries in enumerate(self.entries) if entries.bounds is not None)
            bounds_rows = [entries.bounds for entries in self.entries if entries.bounds is not None]
            self._bounds.append((places, bounds_table(bounds_rows)))
        places, bounds = self._bounds[0]
        if not places:
            return self.entries
        out = {
            place for place, may in zip(places, choice.manifests(bounds).to_pylist(), strict=True) if not may
        }
        return tuple(entries for place, entries in enumerate(self.entries) if place not in out)

    def live_in(
        self,
        chosen_entries: Sequence[Entries],
        fetch: Fetch,
        statistics: Collection[int] | None,
        held: Held | None = None,
    ) -> list[pa.Table]:
        """Return `live` for some of the manifests. Reads no other manifests, and no parts that are `held`."""
        content = self._load(chosen_entries, fetch, LeafQuery.columns(statistics), held=held)
        tables = []
        for manifest in chosen_entries:
            files = content[manifest].columns(statistics)
            if self.removed:
                if manifest not in self._staying:
                    self._staying[manifest] = _staying(manifest, files, self._gone())
                mask = self._staying[manifest]
                files = files if mask is None else files.filter(mask)
            tables.append(files)
        return [table for table in tables if table.num_rows]

    @property
    def is_read(self) -> bool:
        """Whether all of them are in memory."""
        return all(entries.is_read for entries in self.entries)

    @property
    def was_searched(self) -> bool:
        """Whether files were searched in many manifests before, and all are in memory by now."""
        return bool(self._searches) and self.is_read

    def matching_in(
        self,
        chosen_entries: Sequence[Entries],
        fetch: Fetch,
        statistics: Collection[int] | None,
        choice: FileChoice,
    ) -> list[pa.Table] | None:
        """Return `live_in` of the chosen files.

        Of other files, only the columns that judge them are decoded. None if most files are chosen, of many
        manifests.
        """
        # If bounds leave few manifests, most of these have such files: the columns that a plan returns are
        # read at once. So they are if there are no statistics that could rule files out.
        looked_at, leaves = (
            choice.looked_at,
            [entry for entry in chosen_entries if isinstance(entry, ManifestLeaf)],
        )
        at_once = len(chosen_entries) * SELECTIVE <= len(self.entries) or not any(
            leaf.statistics(looked_at) for leaf in leaves
        )
        columns = LeafQuery.columns({*(statistics or ()), *looked_at})
        cache: Held = {}
        content_of = self._load(
            chosen_entries, fetch, columns if at_once else LeafQuery.statistics(looked_at), held=cache
        )
        decode_statistics(
            (content for content in content_of.values() if isinstance(content, LeafContent)), looked_at
        )
        judged_tables = grouped(content_of[manifest].judged(looked_at) for manifest in chosen_entries)
        is_match = pa.chunked_array([choice.files(table) for table in judged_tables], pa.bool_())
        if 2 * pc.sum(is_match, min_count=0).as_py() > len(is_match):
            return self.live_in(chosen_entries, fetch, statistics, cache) if at_once else None
        self._searches.append(len(chosen_entries))
        rows, first = [], 0
        for manifest in chosen_entries:
            rows.append(pc.indices_nonzero(is_match.slice(first, manifest.stored.entries)))
            first += manifest.stored.entries
        return self._live_rows(chosen_entries, rows, fetch, statistics, cache)

    def named(self, paths: pa.Array, fetch: Fetch) -> list[pa.Table]:
        """Return `live` of the files of these paths.

        Of other files, only their paths are decoded. The name of lakelog's own file has a version before that
        of its commit. The name of a manifest has the last version whose files it can have. So recent files
        are searched in the manifests that were written since, in a single round. The other manifests are
        searched only if a file was not found.
        """
        since = min((started_at(path) or 0 for path in paths.to_pylist()), default=0)
        recent = [entries for entries in self.entries if entries.version > since]
        older = [entries for entries in self.entries if entries.version <= since]
        file_tables: list[pa.Table] = []
        for manifests in (recent, older):
            if sum(table.num_rows for table in file_tables) == len(paths):
                break
            content_of = self._load(manifests, fetch, LeafQuery.paths())
            rows = [
                pc.indices_nonzero(pc.is_in(content_of[entries].paths(), value_set=paths))
                for entries in manifests
            ]
            file_tables += self._live_rows(manifests, rows, fetch, None)
        return file_tables

    def _live_rows(
        self,
        manifests: Sequence[Entries],
        rows: Sequence[pa.Array],
        fetch: Fetch,
        statistics: Collection[int] | None,
        held: Held | None = None,
    ) -> list[pa.Table]:
        needed_manifests = [
            manifest for manifest, row_numbers in zip(manifests, rows, strict=True) if len(row_numbers)
        ]
        content = self._load(needed_manifests, fetch, LeafQuery.columns(statistics), held=held)
        parts = [
            (manifest, content[manifest].taken(statistics, row_numbers))
            for manifest, row_numbers in zip(manifests, rows, strict=True)
            if len(row_numbers)
        ]
        check_together([(entry, files) for entry, files in parts if isinstance(entry, ManifestLeaf)])
        removals = self._gone()
        tables = [
            files if removals is None else without(files, _gone_from(manifest, removals))
            for manifest, files in parts
        ]
        return [table for table in tables if table.num_rows]

    def after(
        self,
        version: int,
        added: pa.Table,
        removed: Collection[str],
        fetch: Fetch | None,
        order: Sequence[int] = (),
        kept: PartCache | None = None,
        since: int = 0,
        *,
        sorts_anew: bool = True,
    ) -> tuple[ManifestSet, dict[str, bytes]]:
        """Return the manifests of the dump at `version`, and the objects to be written for them.

        `removed` are paths of these manifests. Without `fetch`, only manifests in memory are merged. Within
        partitions, files are in the `order` of these columns, by their ids. Parts that are read of the new
        manifests are in `kept`.

        If some are from before the version `since`, all are rewritten. With `sorts_anew`, leaves that lie
        over many others are sorted again, some at a time (see `overlaps`).
        """
        blobs: dict[str, bytes] = {}
        seq = max([version, *(entry.stored.seq + 1 for entry in (*self.entries, *self.removed))])
        base = self._with_removed(version, seq, removed, fetch, blobs) if removed else self
        entries, lists, tail = base.entries, base.removed, [added]
        old = base._is_from_before(since)
        if old and (content := base._available(base.entries, fetch)) is not None:
            # Bounds of erased values may be in any of them, in entries of removed files.
            removals = base._gone()
            live = [_live_of(entry, content[entry], removals, keep=False) for entry in base.entries]
            entries, lists, tail = (), (), [*live, added]
            blobs.clear()
        elif base._worth_rewriting() and (content := base._available(base.entries, fetch)) is not None:
            entries, rewritten = base._rewritten(content)
            lists, tail = (), [*rewritten, added]
            blobs.clear()
        length = sum(table.num_rows for table in tail)
        while length and entries:
            run = _last_run(entries)
            content = base._available(run, fetch) if _merges(run, length) else None
            if content is None:
                break
            tables = [_live_of(manifest, content[manifest], base._gone()) for manifest in run]
            length += sum(table.num_rows for table in tables)
            entries, tail = entries[: -len(run)], [*tables, *tail]
        if sorts_anew and fetch is not None:
            entries_before = entries
            entries = base._sorted_anew(entries, added.num_rows, fetch, order, version, seq, blobs)
            seq += entries is not entries_before  # later entries are a run of their own
        if length:
            whole = joined([table for table in tail if table.num_rows])
            if is_bounded(whole):
                whole = in_order(whole, order)
            if length >= PACKED_FROM and parts_of(whole) <= PARTS_MAX:
                entries = (*entries, *_packs(whole, version, seq, blobs))
            else:
                entries = (
                    *entries,
                    *(Manifest.of_files(leaf, version, seq, blobs) for leaf in _leaves(whole)),
                )
        if entries == self.entries and lists == self.removed:
            return self, {}
        return ManifestSet(entries, lists if entries else (), self.kept if kept is None else kept), blobs

    def _sorted_anew(
        self,
        entries: tuple[Entries, ...],
        added: int,
        fetch: Fetch,
        order: Sequence[int],
        version: int,
        seq: int,
        blobs: dict[str, bytes],
    ) -> tuple[Entries, ...]:
        """Return `entries` with some leaves sorted again, as packs that are put into `blobs`.

        The leaves make a single pack, or if many files were `added`, several packs, so that overlaps do not
        grow.
        """
        entry_count = 0
        while not entry_count or entry_count < SORTED_ANEW_TIMES * added:
            leaves = (
                entry
                for entry in entries
                if isinstance(entry, ManifestLeaf) and entry.stored.name not in blobs
            )
            chosen_leaves = overlapping(leaves, RUN_LIMIT)
            if not chosen_leaves:
                break
            try:
                content = self._load(chosen_leaves, fetch, _EVERYTHING, keep=False)
                removals = self._gone()
                tables = [_live_of(leaf, content[leaf], removals, keep=False) for leaf in chosen_leaves]
                whole = joined([table for table in tables if table.num_rows])
            except (FormatError, NotFound):
                # damaged, or given up: a plan says so, and no snapshot fails for want of an order
                break
            if parts_of(whole) > PARTS_MAX:
                break
            new = _packs(in_order(whole, order), version, seq, blobs) if whole.num_rows else ()
            oldest = min(map(entries.index, chosen_leaves))
            later_entries = (entry for entry in entries[oldest:] if entry not in chosen_leaves)
            entries = (*entries[:oldest], *new, *later_entries)
            entry_count += sum(leaf.stored.entries for leaf in chosen_leaves)
        return entries

    def _load(
        self,
        manifests: Sequence[Entries],
        fetch: Fetch,
        wanted_query: LeafQuery,
        *,
        keep: bool = True,
        held: Held | None = None,
    ) -> dict[Entries, Content]:
        """Read the `wanted_query` parts that are not in memory, and the lists of removed paths, in a single round.

        With `keep`, parts of leaves are kept as far as there is room. `held` parts are not read, whatever
        room there is.
        """
        whole = [
            entry
            for entry in (*manifests, *self.removed)
            if isinstance(entry, Manifest) and not entry.is_read
        ]
        parts = LeafReadRound(
            (entry for entry in manifests if isinstance(entry, ManifestLeaf)),
            wanted_query,
            self.kept,
            held,
        )
        names: list[str] = [*(entry.stored.name for entry in whole), *parts.ranges]
        blobs = fetch(names) if names else []
        for manifest, blob in zip(whole, blobs, strict=False):
            manifest.read(blob, removed=manifest in self.removed)
        parts.read(blobs[len(whole) :], keep=keep)
        leaf_cache = self.kept if keep else None
        return {
            entry: LeafContent(entry, parts.held, leaf_cache) if isinstance(entry, ManifestLeaf) else entry
            for entry in manifests
        }

    def _available(self, manifests: Sequence[Entries], fetch: Fetch | None) -> dict[Entries, Content] | None:
        """Return the content of these manifests, if it and the removed paths are in memory or can be read."""
        if fetch is not None:
            return self._load(manifests, fetch, _EVERYTHING, keep=False)
        if not all(manifest.is_read for manifest in (*manifests, *self.removed)):
            return None
        return {manifest: manifest for manifest in manifests if isinstance(manifest, Manifest)}

    def _gone(self) -> pa.Table | None:
        """Return all removed paths with their `seq`."""
        return (
            pa.concat_tables([manifest.columns() for manifest in self.removed]).combine_chunks()
            if self.removed
            else None
        )

    def _with_removed(
        self, version: int, seq: int, removed: Collection[str], fetch: Fetch | None, blobs: dict[str, bytes]
    ) -> ManifestSet:
        """Return these manifests with a list of `removed` too.

        It is joined with the last lists if these can be read and are short. So each path is rewritten a few
        times only, though every snapshot names all lists.
        """
        paths = sorted(removed)
        table = pa.table(
            {"path": pa.array(paths, pa.string()), "seq": pa.array([seq] * len(paths), pa.int64())}
        )
        lists, tail = self.removed, [table]
        while (
            lists
            and _merges(lists[-1:], sum(part.num_rows for part in tail))
            and self._available((), fetch) is not None
        ):
            lists, tail = lists[:-1], [lists[-1].columns(), *tail]
        path_table = pa.concat_tables(tail).combine_chunks()
        return ManifestSet(self.entries, (*lists, Manifest.new(path_table, version, seq, blobs)), self.kept)

    def _is_from_before(self, version: int) -> bool:
        return any(manifest.version < version for manifest in (*self.entries, *self.removed))

    def _worth_rewriting(self) -> bool:
        entries = sum(manifest.stored.entries for manifest in self.entries)
        removed_count = sum(manifest.stored.entries for manifest in self.removed)
        return removed_count > max(REMOVED_MINIMUM, entries // REMOVED_FRACTION)

    def _rewritten(self, content: Mapping[Entries, Content]) -> tuple[tuple[Entries, ...], list[pa.Table]]:
        """Return the manifests that hold no removed path, and the live entries of the others."""
        removals = self._gone()
        entries, tables = [], []
        for manifest in self.entries:
            live = _live_of(manifest, content[manifest], removals, keep=False)
            if live.num_rows == manifest.stored.entries:
                entries.append(manifest)
            else:
                tables.append(live)
        return tuple(entries), tables


def contents(
    manifests: Sequence[Entries], fetch: Fetch, *, removed: bool = False
) -> Iterator[tuple[Entries, pa.Table]]:
    """Yield the content of manifests, or of lists of `removed` paths.

    Reads a few at once, or a pack, and keeps none.
    """
    for group in _read_together(manifests):
        parts = LeafReadRound(
            (entries for entries in group if isinstance(entries, ManifestLeaf)), _EVERYTHING, PartCache(0)
        )
        whole = [entries for entries in group if isinstance(entries, Manifest)]
        blobs = fetch([*(entries.stored.name for entries in whole), *parts.ranges])
        parts.read(blobs[len(whole) :], keep=False)
        of = dict(zip(whole, blobs, strict=False))
        for manifest in group:
            if isinstance(manifest, ManifestLeaf):
                yield manifest, LeafContent(manifest, parts.held, None).columns(keep=False)
            else:
                manifest_copy = Manifest(manifest.stored)
                manifest_copy.read(of[manifest], removed=removed)
                yield manifest, manifest_copy.columns(keep=False)


def _read_together(manifests: Sequence[Entries]) -> Iterator[list[Entries]]:
    """Yield manifests in groups: the leaves of a pack, or some others."""
    group: list[Entries] = []
    for entries in manifests:
        is_next = (
            bool(group) and entries.stored.name == group[0].stored.name
            if isinstance(entries, ManifestLeaf)
            else len(group) < READ_AT_ONCE and not any(isinstance(member, ManifestLeaf) for member in group)
        )
        if group and not is_next:
            yield group
            group = []
        group.append(entries)
    if group:
        yield group


def _live_of(
    manifest: Entries,
    content: Content,
    removals: pa.Table | None,
    statistics: Collection[int] | None = None,
    *,
    keep: bool = True,
) -> pa.Table:
    table = content.columns(statistics, keep=keep)
    return table if removals is None else without(table, _gone_from(manifest, removals))


def _gone_from(manifest: Entries, removals: pa.Table) -> pa.Array:
    return removals.filter(pc.greater(removals["seq"], manifest.stored.seq))["path"].combine_chunks()


def _staying(manifest: Entries, files: pa.Table, removals: pa.Table | None) -> pa.Array | None:
    """Return which entries of a manifest are live; None if all are."""
    paths = None if removals is None else _gone_from(manifest, removals)
    if paths is None or not len(paths):
        return None
    out = pc.is_in(files["path"], value_set=paths)
    return pc.invert(out) if pc.any(out, min_count=0).as_py() else None


def _last_run(manifests: Sequence[Entries]) -> tuple[Entries, ...]:
    """Return the manifests at the end that a single dump has written."""
    seq, first = manifests[-1].stored.seq, len(manifests)
    while first and manifests[first - 1].stored.seq == seq:
        first -= 1
    return tuple(manifests[first:])


def _merges(run: Sequence[Entries], length: int) -> bool:
    entries = sum(manifest.stored.entries for manifest in run)
    if entries + length > RUN_LIMIT:
        return False
    return entries < ALWAYS_MERGED_BELOW or entries < TIER_RATIO * length


def _leaves(files: pa.Table) -> Iterator[pa.Table]:
    """Yield files as the entries of manifests, all of about the same size."""
    count = max(-(-files.num_rows // LEAF_ENTRIES), -(-files.nbytes // LEAF_BYTES))
    step = -(-files.num_rows // min(count, files.num_rows))
    for first in range(0, files.num_rows, step):
        yield files.slice(first, step).combine_chunks()


def _packs(files: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Iterator[ManifestLeaf]:
    """Yield the leaves of packs of all these files, and put the bytes of the packs into `blobs`."""
    entries = PACK_LEAF_ENTRIES * -(-parts_of(files) // PACK_LEAF_PARTS)
    for first in range(0, files.num_rows, RUN_LIMIT):
        pack_files = files.slice(first, RUN_LIMIT)
        step = -(-pack_files.num_rows // -(-pack_files.num_rows // entries))
        leaves = [pack_files.slice(at, step).combine_chunks() for at in range(0, pack_files.num_rows, step)]
        blob, directories = packed(leaves)
        name = f"{version:020d}-{hashlib.sha256(blob).hexdigest()}{PACK}"
        blobs[name] = blob
        for leaf, directory in zip(leaves, directories, strict=True):
            stored_list = StoredList(name=name, entries=leaf.num_rows, seq=seq, sha256=directory.sha256)
            yield ManifestLeaf(stored_list, directory, bounds_of(bounds_key(stored_list), leaf))


def bounds_key(stored_list: StoredList) -> str:
    """Return the name of a manifest, or of a leaf, in a table of bounds."""
    return f"{stored_list.name}/{stored_list.sha256[:16]}" if stored_list.is_leaf else stored_list.name


_EVERYTHING = LeafQuery(lambda leaf: leaf.parts, ranges=16)
"""Single leaves, whose parts of each kind lie apart, are read without the gaps."""
