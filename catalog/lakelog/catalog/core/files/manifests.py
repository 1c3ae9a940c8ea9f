"""Manifests: the stored form of a set of files, and when manifests are merged.

A manifest is an immutable Arrow object with the entries of some files, in the order of their partitions, and at most
`LEAF_ENTRIES` of them: what a dump writes becomes several, so that a plan reads those whose bounds it needs (see
`manifest_bounds`). What is new is joined with the last ones, those that one dump has written together, so that each run
is at least twice as long as the next: n files are in about log2(n) runs, and an entry is rewritten about log2(n) times.
Removed paths stand in lists beside the manifests, which are joined alike, until they are an eighth of the entries; then
the manifests that hold them are rewritten. Manifests and removed paths carry a `seq`, the number of
the dump that wrote them: a path is gone from the manifests with a lower one only, so a restored file can come back.
It is the version that is dumped, or more: what a tag or branch has is stored with newer versions too, and an older one
of main, read by another thread, may come from that. So each number is higher than all that a dump builds on.
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
    Leaf,
    LeafContent,
    Reading,
    Wanted,
    check_together,
    decode_judged,
)
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import BoundsAt, bounds_of, bounds_table, is_bounded
from lakelog.catalog.core.files.manifest_parts import PARTS_MAX, Kept, hash_of, packed, parts_of
from lakelog.catalog.core.files.overlaps import overlapping
from lakelog.catalog.core.files.stored_list import PACK, StoredList
from lakelog.log.errors import FormatError, NotFound


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files a plan needs: `manifests` says of each row of bounds of manifests (see `manifest_bounds`) whether it
    needs files of it, and `files` of each file, by its partition and the statistics of the columns `looked_at`."""

    manifests: Callable[[pa.Table], pa.Array]
    files: Callable[[pa.Table], pa.Array]
    looked_at: frozenset[int]


ALWAYS_MERGED_BELOW = 256
RUN_LIMIT = 100_000
"""What would be more entries than these is no longer merged."""

SELECTIVE = 16
"""Where bounds leave less than one of so many, what files are judged by is not read first, in a round of its own."""

PACKED_FROM = 20_000
PACK_LEAF_ENTRIES = 4_000
"""So many entries of one dump or more are packs of such leaves, read by their parts; fewer are manifests."""
PACK_LEAF_PARTS = 64  # a leaf of more has as many times more entries, as roots say where each part is
LEAF_ENTRIES = 10_000
LEAF_BYTES = 4 * 1024 * 1024
"""A manifest has at most so many entries, and about so many bytes before it is encoded: entries of wide tables are
large."""

READ_AT_ONCE = 8
"""What goes through all manifests holds so many of them."""

SORTED_ANEW_TIMES = 2
"""So many entries are sorted anew for one that was added, where a dump adds many (see `overlaps`)."""

REMOVED_FRACTION = 8
REMOVED_MINIMUM = 1000


Entries: TypeAlias = Manifest | Leaf
"""The entries of some files, as a root names them."""

Content: TypeAlias = Manifest | LeafContent
"""What was read of them: a manifest keeps it."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of one dump, and the lists of paths that are removed from them."""

    entries: tuple[Entries, ...] = ()
    removed: tuple[Manifest, ...] = ()
    kept: Kept = field(default_factory=Kept, compare=False)
    _live: list[tuple[pa.Table, ...]] = field(default_factory=list, compare=False)
    _bounds: list[tuple[tuple[int, ...], pa.Table]] = field(default_factory=list, compare=False)
    _staying: dict[Entries, pa.Array | None] = field(default_factory=dict, compare=False)
    _searches: list[int] = field(default_factory=list, compare=False)

    def live(self, fetch: Fetch, statistics: Collection[int] | None = None) -> tuple[pa.Table, ...]:
        """Return the live entries. Reads the manifests that are not in memory yet in one round, and keeps them.

        With all columns, or those that a plan needs which looks at some `statistics` (see `is_planned`), and perhaps
        others. FormatError for an object that was altered or truncated.
        """
        if self._live:
            return self._live[0]
        found = self._load(self.entries, fetch, Wanted.columns(statistics), keep=False)
        gone = self._gone()
        # The caller has a copy of what it asked for in longer tables.
        live = (
            _live_of(manifest, found[manifest], gone, statistics, keep=False) for manifest in self.entries
        )
        tables = grouped(live)
        if statistics is None:
            self._live.append(tables)
        return tables

    def bounds(self) -> dict[str, BoundsAt]:
        """Return the bounds that these have, by their names."""
        return {bounds_key(each.stored): each.bounds for each in self.entries if each.bounds is not None}

    def directories(self) -> list[str]:
        """Return those of the leaves among these."""
        return [each.directory for each in self.entries if isinstance(each, Leaf)]

    @property
    def is_packed(self) -> bool:
        """Whether there are leaves among these: what a plan needs of them is read and kept by parts."""
        return any(isinstance(each, Leaf) for each in self.entries)

    def parts(self, fetch: Fetch) -> Iterator[pa.Table]:
        """Yield the live entries of one manifest after the other, with all columns, and keep none of them."""
        self._load((), fetch, Wanted.paths())
        gone = self._gone()
        for manifest, table in contents(self.entries, fetch):
            yield table if gone is None else without(table, _gone_from(manifest, gone))

    def chosen(self, choice: Choice) -> tuple[Entries, ...]:
        """Return the manifests that a plan needs, by their bounds."""
        if not self._bounds:
            places = tuple(place for place, each in enumerate(self.entries) if each.bounds is not None)
            known = [each.bounds for each in self.entries if each.bounds is not None]
            self._bounds.append((places, bounds_table(known)))
        places, bounds = self._bounds[0]
        if not places:
            return self.entries
        out = {
            place for place, may in zip(places, choice.manifests(bounds).to_pylist(), strict=True) if not may
        }
        return tuple(each for place, each in enumerate(self.entries) if place not in out)

    def live_in(
        self,
        chosen: Sequence[Entries],
        fetch: Fetch,
        statistics: Collection[int] | None,
        held: Held | None = None,
    ) -> list[pa.Table]:
        """As `live`, of some of the manifests: no others are read, nor what is `held` of them."""
        found = self._load(chosen, fetch, Wanted.columns(statistics), held=held)
        tables = []
        for manifest in chosen:
            files = found[manifest].columns(statistics)
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
        return all(each.is_read for each in self.entries)

    @property
    def was_searched(self) -> bool:
        """Whether files were looked for in many manifests before, and all are in memory by now."""
        return bool(self._searches) and self.is_read

    def matching_in(
        self, chosen: Sequence[Entries], fetch: Fetch, statistics: Collection[int] | None, choice: Choice
    ) -> list[pa.Table] | None:
        """As `live_in`, of the files that are chosen: of the others, only what they are judged by is decoded.

        None where most files are chosen, of many manifests.
        """
        # Where bounds leave few, most of these have such files: what a plan returns of them is read at once.
        at_once = len(chosen) * SELECTIVE <= len(self.entries)
        wanted = Wanted.columns({*(statistics or ()), *choice.looked_at})
        held: Held = {}
        found = self._load(chosen, fetch, wanted if at_once else Wanted.judged(choice.looked_at), held=held)
        if not at_once:
            leaves = (content for content in found.values() if isinstance(content, LeafContent))
            decode_judged(leaves, choice.looked_at)
        judged = grouped(_judged(found[manifest], choice.looked_at, at_once) for manifest in chosen)
        needed = pa.chunked_array([choice.files(table) for table in judged], pa.bool_())
        if 2 * pc.sum(needed, min_count=0).as_py() > len(needed):
            return self.live_in(chosen, fetch, statistics, held) if at_once else None
        self._searches.append(len(chosen))
        rows, first = [], 0
        for manifest in chosen:
            rows.append(pc.indices_nonzero(needed.slice(first, manifest.stored.entries)))
            first += manifest.stored.entries
        return self._live_rows(chosen, rows, fetch, statistics, held)

    def named(self, paths: pa.Array, fetch: Fetch) -> list[pa.Table]:
        """As `live`, of the files of these paths: of the others, only their paths are decoded.

        The name of a file of lakelog's has a version before that of its commit, and the name of a manifest the last
        version that it can have files of. So recent files are looked for in the manifests that were written since, in
        one round, and in the others only where one was not found.
        """
        since = min((started_at(path) or 0 for path in paths.to_pylist()), default=0)
        recent = [each for each in self.entries if each.version > since]
        others = [each for each in self.entries if each.version <= since]
        found: list[pa.Table] = []
        for manifests in (recent, others):
            if sum(table.num_rows for table in found) == len(paths):
                break
            read = self._load(manifests, fetch, Wanted.paths())
            rows = [pc.indices_nonzero(pc.is_in(read[each].paths(), value_set=paths)) for each in manifests]
            found += self._live_rows(manifests, rows, fetch, None)
        return found

    def _live_rows(
        self,
        manifests: Sequence[Entries],
        rows: Sequence[pa.Array],
        fetch: Fetch,
        statistics: Collection[int] | None,
        held: Held | None = None,
    ) -> list[pa.Table]:
        needed = [manifest for manifest, some in zip(manifests, rows, strict=True) if len(some)]
        found = self._load(needed, fetch, Wanted.columns(statistics), held=held)
        taken = [
            (manifest, found[manifest].taken(statistics, some))
            for manifest, some in zip(manifests, rows, strict=True)
            if len(some)
        ]
        check_together([(entry, files) for entry, files in taken if isinstance(entry, Leaf)])
        gone = self._gone()
        tables = [
            files if gone is None else without(files, _gone_from(manifest, gone)) for manifest, files in taken
        ]
        return [table for table in tables if table.num_rows]

    def after(
        self,
        version: int,
        added: pa.Table,
        removed: Collection[str],
        fetch: Fetch | None,
        order: Sequence[int] = (),
        kept: Kept | None = None,
        since: int = 0,
        *,
        sorts_anew: bool = True,
    ) -> tuple[Manifests, dict[str, bytes]]:
        """Return the manifests of the dump at `version`, and the objects to be written for them.

        `removed` are paths of these manifests. Without `fetch`, only what is in memory is merged. Within partitions,
        files are in the `order` of these columns, by their ids. What is read of the new ones is in `kept`. Where some
        are from before the version `since`, all are written anew. With `sorts_anew`, leaves that lie over many others
        are sorted anew, some at a time (see `overlaps`).
        """
        blobs: dict[str, bytes] = {}
        seq = max([version, *(each.stored.seq + 1 for each in (*self.entries, *self.removed))])
        base = self._with_removed(version, seq, removed, fetch, blobs) if removed else self
        entries, lists, tail = base.entries, base.removed, [added]
        old = base._is_from_before(since)
        if old and (found := base._available(base.entries, fetch)) is not None:
            # Bounds of what was erased may be in any of them: in entries of files that are gone.
            gone = base._gone()
            live = [_live_of(each, found[each], gone, keep=False) for each in base.entries]
            entries, lists, tail = (), (), [*live, added]
            blobs.clear()
        elif base._worth_rewriting() and (found := base._available(base.entries, fetch)) is not None:
            entries, rewritten = base._rewritten(found)
            lists, tail = (), [*rewritten, added]
            blobs.clear()
        length = sum(table.num_rows for table in tail)
        while length and entries:
            run = _last_run(entries)
            found = base._available(run, fetch) if _merges(run, length) else None
            if found is None:
                break
            tables = [_live_of(manifest, found[manifest], base._gone()) for manifest in run]
            length += sum(table.num_rows for table in tables)
            entries, tail = entries[: -len(run)], [*tables, *tail]
        if sorts_anew and fetch is not None:
            before = entries
            entries = base._sorted_anew(entries, added.num_rows, fetch, order, version, seq, blobs)
            seq += entries is not before  # what comes after is a run of its own
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
        return Manifests(entries, lists if entries else (), self.kept if kept is None else kept), blobs

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
        """Return `entries` with some leaves sorted anew, as packs that are put into `blobs`: of one pack, and where
        many files were `added`, of more, so that what overlaps does not become more."""
        done = 0
        while not done or done < SORTED_ANEW_TIMES * added:
            leaves = (each for each in entries if isinstance(each, Leaf) and each.stored.name not in blobs)
            some = overlapping(leaves, RUN_LIMIT)
            if not some:
                break
            try:
                found = self._load(some, fetch, _EVERYTHING, keep=False)
                gone = self._gone()
                tables = [_live_of(leaf, found[leaf], gone, keep=False) for leaf in some]
                whole = joined([table for table in tables if table.num_rows])
            except (FormatError, NotFound):
                break  # damaged, or given up meanwhile: a plan says so, and no snapshot fails for want of an order
            if parts_of(whole) > PARTS_MAX:
                break
            new = _packs(in_order(whole, order), version, seq, blobs) if whole.num_rows else ()
            oldest = min(map(entries.index, some))
            rest = (each for each in entries[oldest:] if each not in some)
            entries = (*entries[:oldest], *new, *rest)
            done += sum(leaf.stored.entries for leaf in some)
        return entries

    def _load(
        self,
        manifests: Sequence[Entries],
        fetch: Fetch,
        wanted: Wanted,
        *,
        keep: bool = True,
        held: Held | None = None,
    ) -> dict[Entries, Content]:
        """Read what is `wanted` and not in memory yet, and the lists of removed paths, in one round. With `keep`, parts
        of leaves are kept as far as there is room; what is `held` already is not read, whatever room there is."""
        whole = [
            each for each in (*manifests, *self.removed) if isinstance(each, Manifest) and not each.is_read
        ]
        parts = Reading((each for each in manifests if isinstance(each, Leaf)), wanted, self.kept, held)
        names: list[str] = [*(each.stored.name for each in whole), *parts.ranges]
        blobs = fetch(names) if names else []
        for manifest, blob in zip(whole, blobs, strict=False):
            manifest.read(blob, removed=manifest in self.removed)
        parts.read(blobs[len(whole) :], keep=keep)
        kept = self.kept if keep else None
        return {
            each: LeafContent(each, parts.held, kept) if isinstance(each, Leaf) else each
            for each in manifests
        }

    def _available(self, manifests: Sequence[Entries], fetch: Fetch | None) -> dict[Entries, Content] | None:
        """Return what these hold, where that and what is removed is in memory or can be read."""
        if fetch is not None:
            return self._load(manifests, fetch, _EVERYTHING, keep=False)
        if not all(each.is_read for each in (*manifests, *self.removed)):
            return None
        return {each: each for each in manifests if isinstance(each, Manifest)}

    def _gone(self) -> pa.Table | None:
        """Return all removed paths with their `seq`."""
        return (
            pa.concat_tables([each.columns() for each in self.removed]).combine_chunks()
            if self.removed
            else None
        )

    def _with_removed(
        self, version: int, seq: int, removed: Collection[str], fetch: Fetch | None, blobs: dict[str, bytes]
    ) -> Manifests:
        """Return these manifests with a list of `removed` too, in one with the last lists where these can be read and
        are short: each path is rewritten a few times only, though every snapshot names all lists."""
        paths = sorted(removed)
        table = pa.table(
            {"path": pa.array(paths, pa.string()), "seq": pa.array([seq] * len(paths), pa.int64())}
        )
        lists, tail = self.removed, [table]
        while (
            lists
            and _merges(lists[-1:], sum(each.num_rows for each in tail))
            and self._available((), fetch) is not None
        ):
            lists, tail = lists[:-1], [lists[-1].columns(), *tail]
        merged = pa.concat_tables(tail).combine_chunks()
        return Manifests(self.entries, (*lists, Manifest.new(merged, version, seq, blobs)), self.kept)

    def _is_from_before(self, version: int) -> bool:
        return any(each.version < version for each in (*self.entries, *self.removed))

    def _worth_rewriting(self) -> bool:
        entries = sum(manifest.stored.entries for manifest in self.entries)
        gone = sum(manifest.stored.entries for manifest in self.removed)
        return gone > max(REMOVED_MINIMUM, entries // REMOVED_FRACTION)

    def _rewritten(self, found: Mapping[Entries, Content]) -> tuple[tuple[Entries, ...], list[pa.Table]]:
        """Return the manifests that hold no removed path, and what is live of the others."""
        gone = self._gone()
        entries, tables = [], []
        for manifest in self.entries:
            live = _live_of(manifest, found[manifest], gone, keep=False)
            if live.num_rows == manifest.stored.entries:
                entries.append(manifest)
            else:
                tables.append(live)
        return tuple(entries), tables


def contents(
    manifests: Sequence[Entries], fetch: Fetch, *, removed: bool = False
) -> Iterator[tuple[Entries, pa.Table]]:
    """Yield what manifests, or lists of `removed` paths, hold. Reads a few at once, or a pack, and keeps none."""
    for some in _read_together(manifests):
        parts = Reading((each for each in some if isinstance(each, Leaf)), _EVERYTHING, Kept(0))
        whole = [each for each in some if isinstance(each, Manifest)]
        blobs = fetch([*(each.stored.name for each in whole), *parts.ranges])
        parts.read(blobs[len(whole) :], keep=False)
        of = dict(zip(whole, blobs, strict=False))
        for manifest in some:
            if isinstance(manifest, Leaf):
                yield manifest, LeafContent(manifest, parts.held, None).columns(keep=False)
            else:
                read = Manifest(manifest.stored)
                read.read(of[manifest], removed=removed)
                yield manifest, read.columns(keep=False)


def _read_together(manifests: Sequence[Entries]) -> Iterator[list[Entries]]:
    """Yield manifests in groups: the leaves of one pack, or some others."""
    group: list[Entries] = []
    for each in manifests:
        is_next = (
            bool(group) and each.stored.name == group[0].stored.name
            if isinstance(each, Leaf)
            else len(group) < READ_AT_ONCE and not any(isinstance(other, Leaf) for other in group)
        )
        if group and not is_next:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _live_of(
    manifest: Entries,
    content: Content,
    gone: pa.Table | None,
    statistics: Collection[int] | None = None,
    *,
    keep: bool = True,
) -> pa.Table:
    table = content.columns(statistics, keep=keep)
    return table if gone is None else without(table, _gone_from(manifest, gone))


def _gone_from(manifest: Entries, gone: pa.Table) -> pa.Array:
    return gone.filter(pc.greater(gone["seq"], manifest.stored.seq))["path"].combine_chunks()


def _staying(manifest: Entries, files: pa.Table, gone: pa.Table | None) -> pa.Array | None:
    """Return which entries of a manifest are live; None: all."""
    paths = None if gone is None else _gone_from(manifest, gone)
    if paths is None or not len(paths):
        return None
    out = pc.is_in(files["path"], value_set=paths)
    return pc.invert(out) if pc.any(out, min_count=0).as_py() else None


def _judged(content: Content, statistics: Collection[int], in_files: bool) -> pa.Table:
    if in_files and isinstance(content, LeafContent):
        return content.judged_in_files(statistics)
    return content.judged(statistics)


def _last_run(manifests: Sequence[Entries]) -> tuple[Entries, ...]:
    """Return the manifests at the end that one dump has written."""
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
    """Yield files as those of manifests, all of about the same size."""
    count = max(-(-files.num_rows // LEAF_ENTRIES), -(-files.nbytes // LEAF_BYTES))
    step = -(-files.num_rows // min(count, files.num_rows))
    for first in range(0, files.num_rows, step):
        yield files.slice(first, step).combine_chunks()


def _packs(files: pa.Table, version: int, seq: int, blobs: dict[str, bytes]) -> Iterator[Leaf]:
    """Yield the leaves of packs of all these files, and put the bytes of the packs into `blobs`."""
    entries = PACK_LEAF_ENTRIES * -(-parts_of(files) // PACK_LEAF_PARTS)
    for first in range(0, files.num_rows, RUN_LIMIT):
        some = files.slice(first, RUN_LIMIT)
        step = -(-some.num_rows // -(-some.num_rows // entries))
        leaves = [some.slice(at, step).combine_chunks() for at in range(0, some.num_rows, step)]
        blob, directories = packed(leaves)
        name = f"{version:020d}-{hashlib.sha256(blob).hexdigest()}{PACK}"
        blobs[name] = blob
        for leaf, directory in zip(leaves, directories, strict=True):
            stored = StoredList(name=name, entries=leaf.num_rows, seq=seq, sha256=hash_of(directory))
            yield Leaf(stored, directory, bounds_of(bounds_key(stored), leaf))


def bounds_key(stored: StoredList) -> str:
    """Return the name of a manifest, or of a leaf, in a table of bounds."""
    return f"{stored.name}/{stored.sha256[:16]}" if stored.is_leaf else stored.name


_EVERYTHING = Wanted(lambda leaf: leaf.parts, ranges=16)
"""Single leaves, whose parts of each kind lie apart, are read without what is between."""
