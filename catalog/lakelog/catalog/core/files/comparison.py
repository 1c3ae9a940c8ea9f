"""Comparing sets of files that were replayed with stored sets, from snapshot to snapshot.

A comparison is as exact as if whole sets were compared. Snapshots of a table name nearly the same manifests.
So the facts about a manifest are kept while snapshots name it: hashes of its paths, eight bytes each, and the
bounds that were found to hold. Each manifest is read when it is new, and again when it was merged away. The
memory of a comparison grows with the files of the table, and not with its versions. Hashes only ever cost
time: if a hash says that a path may be in a manifest, and that matters, all files are compared.
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
from lakelog.catalog.core.files.manifests import Entries, ManifestSet, contents
from lakelog.catalog.core.files.stored_list import StoredList

SHORT = 1000
"""Manifests of fewer entries are kept whole, because they are merged soon."""

Hashes = npt.NDArray[np.int64]


class ManifestComparison:
    """The facts about the manifests of the sets that were compared last."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._paths: dict[StoredList, Hashes] = {}
        self._lists: dict[StoredList, pa.Table] = {}
        self._short: dict[StoredList, pa.Table] = {}
        self._bounds: dict[StoredList, BoundsAt] = {}

    def apart(self, replayed_set: FileSet, stored_set: FileSet) -> tuple[pa.Table, pa.Table] | None:
        """Return the files of both sets that are not in manifests that both go back to.

        If these are the same, so are the sets. None if all files are needed to know that. Raises FormatError
        for a manifest that was altered.
        """
        own_manifests, new_tables, removed_paths = replayed_set.since_manifests()
        stored_manifests, more, less = stored_set.since_manifests()
        if more or less:
            return None  # it differs from the form in snapshots
        if any(
            len({entry.stored for entry in of.entries}) < len(of.entries)
            for of in (own_manifests, stored_manifests)
        ):
            return None  # its entries occur twice
        common = {entry.stored for entry in own_manifests.entries} & {
            entry.stored for entry in stored_manifests.entries
        }
        lists = [self._records(of) for of in (own_manifests, stored_manifests)]
        common_entries = [entry for entry in stored_manifests.entries if entry.stored in common]
        if not self._have_same_left(common_entries, own_manifests, stored_manifests, removed_paths):
            return None
        mine, theirs = (
            [entry for entry in of.entries if entry.stored not in common]
            for of in (own_manifests, stored_manifests)
        )
        paths = pa.array(sorted(removed_paths), pa.string())
        removals = [pa.concat_tables(tables).combine_chunks() if tables else None for tables in lists]
        own_tables = [
            without(_live_of(entry, table, removals[0]), paths) for entry, table in self._read(mine)
        ]
        right = [_live_of(entry, table, removals[1]) for entry, table in self._read(theirs)]
        return joined([*own_tables, *new_tables]), joined(right)

    def with_wrong_bounds(self, stored_set: FileSet) -> str | None:
        """Return the name of a manifest whose bounds leave out values that may be in it, if there is any."""
        bounded_entries = [
            entry for entry in stored_set.since_manifests()[0].entries if entry.bounds is not None
        ]
        same = self._with_known_bounds(bounded_entries)
        for manifest, table in self._read([entry for entry in bounded_entries if entry.stored not in same]):
            assert manifest.bounds is not None, "these have bounds"
            if not holds(bounds_table([manifest.bounds]), table):
                return manifest.stored.name
        self._bounds |= {entry.stored: entry.bounds for entry in bounded_entries if entry.bounds is not None}
        return None

    def keep(self, stored_sets: Iterable[FileSet]) -> None:
        """Forget all manifests that these sets do not have."""
        manifest_sets = [files.since_manifests()[0] for files in stored_sets]
        entries = {stored_list.stored for manifests in manifest_sets for stored_list in manifests.entries}
        lists = {stored_list.stored for manifests in manifest_sets for stored_list in manifests.removed}
        self._paths = {
            stored_list: facts for stored_list, facts in self._paths.items() if stored_list in entries
        }
        self._short = {
            stored_list: facts for stored_list, facts in self._short.items() if stored_list in entries
        }
        self._bounds = {
            stored_list: facts for stored_list, facts in self._bounds.items() if stored_list in entries
        }
        self._lists = {
            stored_list: facts for stored_list, facts in self._lists.items() if stored_list in lists
        }

    def _read(self, manifests: Sequence[Entries]) -> Iterator[tuple[Entries, pa.Table]]:
        """Yield the content of manifests, and note the facts about it."""
        short_manifests = [
            (entry, self._short[entry.stored]) for entry in manifests if entry.stored in self._short
        ]
        long_manifests = [entry for entry in manifests if entry.stored not in self._short]
        for manifest, table in chain(short_manifests, contents(long_manifests, self._fetch)):
            self._note(manifest, table)
            yield manifest, table

    def _note(self, manifest: Entries, table: pa.Table) -> None:
        stored_list, bounds = manifest.stored, manifest.bounds
        if stored_list not in self._paths:
            self._paths[stored_list] = np.sort(hashes_of(table["path"].to_pylist()))
        if stored_list.entries < SHORT:
            self._short[stored_list] = table
        if bounds is not None and stored_list not in self._bounds and holds(bounds_table([bounds]), table):
            self._bounds[stored_list] = bounds

    def _records(self, manifests: ManifestSet) -> list[pa.Table]:
        new = [manifest for manifest in manifests.removed if manifest.stored not in self._lists]
        self._lists |= {
            manifest.stored: table for manifest, table in contents(new, self._fetch, removed=True)
        }
        return [self._lists[manifest.stored] for manifest in manifests.removed]

    def _have_same_left(
        self,
        shared_entries: Sequence[Entries],
        first_set: ManifestSet,
        other_set: ManifestSet,
        removed: Collection[str],
    ) -> bool:
        """Return whether the same entries of the `shared_entries` manifests are live in both sets, as far as known.

        That is known from the lists of removed paths. `removed` are paths that are gone from all of `first_set`.
        """
        in_both = {entry.stored for entry in first_set.removed} & {
            entry.stored for entry in other_set.removed
        }
        apart = [
            _pairs(self._lists[entry.stored] for entry in of.removed if entry.stored not in in_both)
            for of in (first_set, other_set)
        ]
        suspects = sorted({path for path, _ in apart[0] ^ apart[1]} | set(removed))
        if not suspects or not shared_entries:
            return True
        hashes = hashes_of(suspects)
        for _ in self._read([entry for entry in shared_entries if entry.stored not in self._paths]):
            continue  # of a base, from which the check began
        masks = [(entry, are_among(hashes, self._paths[entry.stored])) for entry in shared_entries]
        hit = [suspects[at] for at in np.flatnonzero(np.any([mask for _, mask in masks], axis=0))]
        last = [self._last_of(hit, of) for of in (first_set, other_set)]
        for manifest, mask in masks:
            for at in np.flatnonzero(mask):
                path = suspects[at]
                is_in_one, is_in_other = (entry.get(path, 0) > manifest.stored.seq for entry in last)
                if (is_in_one or path in removed) != is_in_other:
                    return False
        return True

    def _last_of(self, paths: Sequence[str], manifests: ManifestSet) -> dict[str, int]:
        """Return the highest `seq` with which each of these paths was removed from manifests.

        Manifests with a lower `seq` do not have the path.
        """
        path_array, last = pa.array(paths, pa.string()), dict[str, int]()
        for manifest in manifests.removed if paths else ():
            table = self._lists[manifest.stored]
            for path, seq in _pairs([table.filter(pc.is_in(table["path"], value_set=path_array))]):
                last[path] = max(seq, last.get(path, 0))
        return last

    def _with_known_bounds(self, bounded_entries: Sequence[Entries]) -> set[StoredList]:
        """Return the manifests whose present bounds were found to hold before."""
        again = [entry for entry in bounded_entries if entry.stored in self._bounds]
        tables = (
            [
                bounds_table([bounds for entry in again if (bounds := of(entry)) is not None])
                for of in (lambda each: self._bounds[each.stored], lambda each: each.bounds)
            ]
            if again
            else []
        )
        if again and tables[0].equals(tables[1]):
            return {entry.stored for entry in again}
        rows = [[_known(table.slice(at, 1)) for at in range(len(again))] for table in tables]
        return {entry.stored for at, entry in enumerate(again) if rows[0][at] == rows[1][at]}


def hashes_of(paths: Iterable[str | None]) -> Hashes:
    """Return a number for each path, the same for the same path in this process.

    Other processes cannot know it ahead.
    """
    return np.fromiter(map(hash, paths), np.int64)


def are_among(hashes: Hashes, sorted_hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Return for each hash whether it is among other hashes, which are in order."""
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


def _live_of(manifest: Entries, table: pa.Table, removals: pa.Table | None) -> pa.Table:
    if removals is None:
        return table
    return without(
        table, removals.filter(pc.greater(removals["seq"], manifest.stored.seq))["path"].combine_chunks()
    )


def _known(bounds: pa.Table) -> dict[str, pa.Scalar]:
    """Return a row of bounds without unknown bounds, so that the columns of other rows do not matter."""
    return {name: bounds[name][0] for name in bounds.column_names if bounds[name][0].is_valid}
