"""Comparing sets of files that were replayed with stored ones, from snapshot to snapshot: as exactly as if whole.

Snapshots of a table name nearly the same manifests, so what was found out about one is kept while snapshots name it:
hashes of its paths, eight bytes each, and the bounds that were found to hold. Each is read when it is new, and again
when it was merged away. What a comparison holds grows with the files of the table, and not with its versions. Hashes
only ever cost time: where one of them says that a path may be in a manifest, and that matters, all files are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.file_tables import joined, without
from lakelog.catalog.core.files.leaves import Fetch
from lakelog.catalog.core.files.manifest_bounds import BoundsAt, bounds_table, holds
from lakelog.catalog.core.files.manifests import Entries, Manifests, contents
from lakelog.catalog.core.files.stored_list import StoredList

SHORT = 1000
"""Manifests of fewer entries are kept whole: they are merged soon."""

Hashes = npt.NDArray[np.int64]


class Comparison:
    """What is known of the manifests of the sets that were compared last."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._paths: dict[StoredList, Hashes] = {}
        self._lists: dict[StoredList, pa.Table] = {}
        self._short: dict[StoredList, pa.Table] = {}
        self._bounds: dict[StoredList, BoundsAt] = {}

    def apart(self, replayed: FileSet, stored: FileSet) -> tuple[pa.Table, pa.Table] | None:
        """Return the files of both sets that are not in manifests that both go back to: if these are the same, so are
        the sets. None where it takes all files to know that. FormatError for a manifest that was altered.
        """
        one, added, removed = replayed.since_manifests()
        other, more, less = stored.since_manifests()
        if more or less:
            return None  # it is not as a snapshot has it
        if any(len({each.stored for each in of.entries}) < len(of.entries) for of in (one, other)):
            return None  # its entries are there twice
        common = {each.stored for each in one.entries} & {each.stored for each in other.entries}
        lists = [self._records(of) for of in (one, other)]
        shared = [each for each in other.entries if each.stored in common]
        if not self._have_same_left(shared, one, other, removed):
            return None
        mine, theirs = ([each for each in of.entries if each.stored not in common] for of in (one, other))
        paths = pa.array(sorted(removed), pa.string())
        gone = [pa.concat_tables(tables).combine_chunks() if tables else None for tables in lists]
        left = [without(_live_of(each, table, gone[0]), paths) for each, table in self._read(mine)]
        right = [_live_of(each, table, gone[1]) for each, table in self._read(theirs)]
        return joined([*left, *added]), joined(right)

    def with_wrong_bounds(self, stored: FileSet) -> str | None:
        """Return the name of a manifest whose bounds leave out what may be in it, None where there is none."""
        bounded = [each for each in stored.since_manifests()[0].entries if each.bounds is not None]
        same = self._with_known_bounds(bounded)
        for manifest, table in self._read([each for each in bounded if each.stored not in same]):
            assert manifest.bounds is not None, "these have bounds"
            if not holds(bounds_table([manifest.bounds]), table):
                return manifest.stored.name
        self._bounds |= {each.stored: each.bounds for each in bounded if each.bounds is not None}
        return None

    def keep(self, stored: Iterable[FileSet]) -> None:
        """Forget all manifests but those of these sets."""
        named = [files.since_manifests()[0] for files in stored]
        entries = {each.stored for manifests in named for each in manifests.entries}
        lists = {each.stored for manifests in named for each in manifests.removed}
        self._paths = {each: known for each, known in self._paths.items() if each in entries}
        self._short = {each: known for each, known in self._short.items() if each in entries}
        self._bounds = {each: known for each, known in self._bounds.items() if each in entries}
        self._lists = {each: known for each, known in self._lists.items() if each in lists}

    def _read(self, manifests: Sequence[Entries]) -> Iterator[tuple[Entries, pa.Table]]:
        """Yield the content of manifests, and note what there is to know of it."""
        known = [(each, self._short[each.stored]) for each in manifests if each.stored in self._short]
        others = [each for each in manifests if each.stored not in self._short]
        for manifest, table in chain(known, contents(others, self._fetch)):
            self._note(manifest, table)
            yield manifest, table

    def _note(self, manifest: Entries, table: pa.Table) -> None:
        stored, bounds = manifest.stored, manifest.bounds
        if stored not in self._paths:
            self._paths[stored] = np.sort(hashes_of(table["path"].to_pylist()))
        if stored.entries < SHORT:
            self._short[stored] = table
        if bounds is not None and stored not in self._bounds and holds(bounds_table([bounds]), table):
            self._bounds[stored] = bounds

    def _records(self, manifests: Manifests) -> list[pa.Table]:
        new = [each for each in manifests.removed if each.stored not in self._lists]
        self._lists |= {each.stored: table for each, table in contents(new, self._fetch, removed=True)}
        return [self._lists[each.stored] for each in manifests.removed]

    def _have_same_left(
        self, shared: Sequence[Entries], one: Manifests, other: Manifests, removed: Collection[str]
    ) -> bool:
        """Return whether the same entries of manifests that both have are live in both, as far as that is known from
        the lists of removed paths: `removed` are paths that are gone from all of `one`."""
        in_both = {each.stored for each in one.removed} & {each.stored for each in other.removed}
        apart = [
            _pairs(self._lists[each.stored] for each in of.removed if each.stored not in in_both)
            for of in (one, other)
        ]
        suspects = sorted({path for path, _ in apart[0] ^ apart[1]} | set(removed))
        if not suspects or not shared:
            return True
        hashes = hashes_of(suspects)
        for _ in self._read([each for each in shared if each.stored not in self._paths]):
            continue  # of a base, from which the check began
        found = [(each, are_among(hashes, self._paths[each.stored])) for each in shared]
        hit = [suspects[at] for at in np.flatnonzero(np.any([mask for _, mask in found], axis=0))]
        last = [self._last_of(hit, of) for of in (one, other)]
        for manifest, mask in found:
            for at in np.flatnonzero(mask):
                path = suspects[at]
                before, after = (each.get(path, 0) > manifest.stored.seq for each in last)
                if (before or path in removed) != after:
                    return False
        return True

    def _last_of(self, paths: Sequence[str], manifests: Manifests) -> dict[str, int]:
        """Return the highest `seq` with which each of these paths was removed from manifests: those with a lower one
        do not have it."""
        wanted, last = pa.array(paths, pa.string()), dict[str, int]()
        for each in manifests.removed if paths else ():
            table = self._lists[each.stored]
            for path, seq in _pairs([table.filter(pc.is_in(table["path"], value_set=wanted))]):
                last[path] = max(seq, last.get(path, 0))
        return last

    def _with_known_bounds(self, bounded: Sequence[Entries]) -> set[StoredList]:
        """Return the manifests of which these very bounds were found to hold."""
        again = [each for each in bounded if each.stored in self._bounds]
        tables = (
            [
                bounds_table([bounds for each in again if (bounds := of(each)) is not None])
                for of in (lambda each: self._bounds[each.stored], lambda each: each.bounds)
            ]
            if again
            else []
        )
        if again and tables[0].equals(tables[1]):
            return {each.stored for each in again}
        rows = [[_known(table.slice(at, 1)) for at in range(len(again))] for table in tables]
        return {each.stored for at, each in enumerate(again) if rows[0][at] == rows[1][at]}


def hashes_of(paths: Iterable[str | None]) -> Hashes:
    """Return a number for each path, in this process the same for the same path: others know none of them ahead."""
    return np.fromiter(map(hash, paths), np.int64)


def are_among(hashes: Hashes, sorted_hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Return of each hash whether it is among others, which are in order."""
    if not len(sorted_hashes):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(sorted_hashes, hashes), len(sorted_hashes) - 1)
    return np.equal(sorted_hashes[at], hashes)


def _pairs(tables: Iterable[pa.Table]) -> set[tuple[str, int]]:
    return {
        pair
        for table in tables
        for pair in zip(*(table[name].to_pylist() for name in ("path", "seq")), strict=True)
    }


def _live_of(manifest: Entries, table: pa.Table, gone: pa.Table | None) -> pa.Table:
    if gone is None:
        return table
    return without(table, gone.filter(pc.greater(gone["seq"], manifest.stored.seq))["path"].combine_chunks())


def _known(bounds: pa.Table) -> dict[str, pa.Scalar]:
    """Return one row of bounds without what is not known, so that it does not matter which columns others have."""
    return {name: bounds[name][0] for name in bounds.column_names if bounds[name][0].is_valid}
