"""The choice of files for a clustering: files without a present order, and runs that are worth merging. Pure.

A run is a number of files that do not overlap on the curve. A table's files make several runs, since each
write adds a run. A table may keep `RUNS_MIN` runs, and some more for each factor of ten between its rows and
those of its smallest run. If there are more, runs are merged from the smallest on, at least two. A run is
merged with all smaller runs if it has at most `SHARE` of their rows together. Files of older boundaries of
the same columns count as a single run. A file to be merged stays as it is if it overlaps no other. If there
is nothing to merge, small neighbours in a run are joined.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log10
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import CURVE, CURVE_HIGH, CURVE_LOW
from lakelog.catalog.core.files.file_tables import converted
from lakelog.catalog.core.schema.curve import (
    COLUMNS_MAX,
    Bounds,
    ClusteringCurve,
    Ranks,
    boundaries_below,
    curve_of,
)
from lakelog.catalog.core.schema.literals import from_arrow, value_type
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.properties.known import CLUSTER_DEPTH, TARGET_FILE_SIZE
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.catalog.core.state.compaction import FileGroup, FileSizes, added_until, tier_of
from lakelog.log.errors import InvalidInput

SHARE = 0.9
RUNS_MIN = 3.0
RUNS_EACH_TENFOLD = 1.2
"""The limit of runs that stay as they are: three, and twelve for each ten factors of ten from the smallest
run's rows to the table's."""

SMALL_MIN = 8
"""This many small files of similar size that do not overlap become a single file. Sizes are similar within
this factor."""

FILES_AT_ONCE = 64
"""About this many files of the target size are rewritten together, unless a limit says less."""

_NO_GENERATION = 1 << 62

SKEW_MAX = 0.125
"""Boundaries are recomputed if more than this share of the rows has the same rank, by the bounds of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringTarget:
    """The goal: files of about `target_size_bytes`, with at most `limit_bytes` of them rewritten together.

    With `fresh_min`, files without an order wait until there are that many of them, or until they have as
    many bytes as a file. With `full`, all runs are merged, however much that rewrites.
    """

    target_size_bytes: int
    limit_bytes: int
    fresh_min: int = 1
    full: bool = False


def clustering_goal(
    properties: Mapping[str, str], limit_bytes: int | None, *, full: bool = False
) -> ClusteringTarget:
    """Return the goal for a table with these properties. Raises InvalidInput if the limit is below 1."""
    if limit_bytes is not None and limit_bytes < 1:
        raise InvalidInput(f"a limit of {limit_bytes} bytes leaves nothing to do: give more than 0")
    target = TARGET_FILE_SIZE.of(properties)
    return ClusteringTarget(target_size_bytes=target, limit_bytes=FILES_AT_ONCE * target, full=full)


def curve_to_plan_by(metadata: Metadata) -> ClusteringCurve:
    """Return the curve of a clustered table. If it has no boundaries yet, no file has places on the returned
    curve."""
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    if curve is not None:
        return curve
    columns = []
    for id in metadata.clustering[:COLUMNS_MAX]:
        type = metadata.schema.field_by_id(id).type
        assert isinstance(type, AtomicType), "other types have no order"
        columns.append(Bounds(id=id, type=type.name))
    ranks = Ranks(generation=_NO_GENERATION, first=_NO_GENERATION, columns=tuple(columns))
    return ClusteringCurve(ranks, metadata.schema)


@dataclass(frozen=True, slots=True)
class _File:
    place: int
    size: int
    rows: int
    low: int
    high: int


def plan_clustering(
    files: pa.Table, metadata: Metadata, curve: ClusteringCurve, goal: ClusteringTarget, *, until: int
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the next groups to rewrite, and their files in the order of the groups.

    Returns no groups if nothing is worth a rewrite. Each group covers a stretch of a partition. Together they
    have at most about `limit_bytes`. `files` has the form of `FileSet.chunks`. Files from after the version
    `until` do not count. A group's `cut` is the place at which its new files end, so that rows beyond it do
    not reach into runs that were not read.
    """
    files = files.filter(pc.and_(added_until(files, until), pc.greater(files["rows"], 0))).sort_by("path")
    plan = _Planned(files, metadata, curve, goal)
    places: list[int] = []
    groups: list[FileGroup] = []
    total = 0
    for group_places, cut in (
        choice for partition_places in plan.partitions() for choice in plan.next_of(partition_places)
    ):
        group = plan.group(group_places, cut)
        if groups and total + group.size_bytes > goal.limit_bytes:
            break
        places += group_places
        groups.append(group)
        total += group.size_bytes
    return files.take(pa.array(places, pa.int64())), groups


def is_skewed(files: pa.Table, metadata: Metadata, curve: ClusteringCurve) -> bool:
    """Return whether the boundaries no longer divide the rows: too many of them, by their files' bounds, have
    one rank."""
    rows = files["rows"].to_numpy()
    total = int(rows.sum())
    if not total:
        return False
    for id, bounds in zip(curve.ids, curve.bounds, strict=True):
        ends = _ends(files, id, metadata)
        if ends is None:
            continue
        lows, highs = ends
        has_bounds = np.asarray(pc.and_(lows.is_valid(), highs.is_valid()))
        differ = np.asarray(pc.fill_null(pc.not_equal(lows, highs), False))
        low, high = (boundaries_below(values, bounds) for values in (lows, highs))
        alike = has_bounds & differ & (low == high)
        if not alike.any():
            continue
        most = np.bincount(low[alike], weights=rows[alike]).max()
        if most > SKEW_MAX * total:
            return True
    return False


def _ends(files: pa.Table, id: int, metadata: Metadata) -> tuple[pa.Array, pa.Array] | None:
    type = value_type(metadata.schema.field_by_id(id).type)
    names = (f"lo{id}", f"hi{id}")
    if any(name not in files.column_names for name in names):
        return None
    lows, highs = (converted(files[name].combine_chunks(), type) for name in names)
    return lows, highs


class _Run:
    """Files that do not overlap, in the order of the curve."""

    def __init__(self, files: list[_File]) -> None:
        self.files = files
        self.rows = sum(file.rows for file in files)
        self._lows = [file.low for file in files]

    def takes(self, file: _File) -> bool:
        """Add a file, unless it overlaps a file of the run. Return whether it was added."""
        at = bisect_left(self._lows, file.low)
        if at and _overlap(self.files[at - 1], file):
            return False
        end = at
        while end < len(self.files) and self.files[end].low < file.high:
            if _overlap(self.files[end], file):
                return False
            end += 1
        self.files.insert(at, file)
        self._lows.insert(at, file.low)
        self.rows += file.rows
        return True

    def between(self, low: int, high: int) -> list[_File]:
        """Return the files that overlap the stretch between two places."""
        at = max(0, bisect_left(self._lows, low) - 1)
        end = bisect_left(self._lows, high)
        return [file for file in self.files[at:end] if file.high > low]


class _Planned:
    def __init__(
        self, files: pa.Table, metadata: Metadata, curve: ClusteringCurve, goal: ClusteringTarget
    ) -> None:
        self._files, self._metadata, self._curve, self._goal = files, metadata, curve, goal
        self._depth = CLUSTER_DEPTH.of(metadata.properties)
        self._sizes = FileSizes(files)
        # A list of files that was made only for their bounds has no such column. Then the file names identify
        # the writes.
        self._writes: list[str] = (
            files["write"].to_pylist()
            if "write" in files.column_names
            else ["-".join(path.split("-")[:2]) for path in files["path"].to_pylist()]
        )
        self._specs: list[int] = files["spec"].to_pylist()
        count = files.num_rows
        self._generations, self._lows, self._highs = (
            files[name].to_pylist() if name in files.column_names else [None] * count
            for name in (CURVE, CURVE_LOW, CURVE_HIGH)
        )

    def partitions(self) -> list[list[int]]:
        """Return the files of each partition. All files of earlier partitionings are together, first."""
        values = []
        for field in self._metadata.spec.fields:
            name = f"p{field.id}"
            has = name in self._files.column_names
            values.append(
                from_arrow(self._files[name].combine_chunks()) if has else [None] * self._files.num_rows
            )
        places_by_key: dict[Any, list[int]] = {}
        for place in range(self._files.num_rows):
            is_earlier = bool(values) and self._specs[place] != self._metadata.spec.id
            key = None if is_earlier else tuple(column[place] for column in values)
            places_by_key.setdefault(key, []).append(place)
        return sorted(
            places_by_key.values(), key=lambda places: self._specs[places[0]] == self._metadata.spec.id
        )

    def next_of(self, places: Sequence[int]) -> list[tuple[list[int], int | None]]:
        """Return the files of a partition that are rewritten together next, and the place at which the new
        files are cut."""
        ranks = self._curve.ranks
        fresh, old, placed_files = [], [], []
        for place in places:
            generation = self._generations[place]
            low, high = self._lows[place], self._highs[place]
            if generation == ranks.generation and low is not None and high is not None:
                size, rows = self._sizes.live_bytes(place), self._sizes.rows[place]
                placed_files.append(_File(place, size, rows, low, high))
            elif generation is not None and ranks.first <= generation < ranks.generation:
                old.append(place)
            else:
                fresh.append(place)
        fresh = self._worth(fresh)
        taken_bytes = self._bytes(fresh)
        if taken_bytes >= self._goal.limit_bytes:
            return [(self._up_to_limit(fresh), None)]
        runs = self._runs(placed_files)
        old_all = old
        within, old = self._merged(fresh, old, runs)
        if fresh or old:
            candidates = [*fresh, *old]
            if self._bytes(candidates) >= self._goal.limit_bytes:
                return [(self._up_to_limit(candidates), None)]
            return [self._cut(candidates, within)]
        due = [self._cut([], stretch) for stretch in _overlapping(within)]
        # The files of a run are neighbours. Files of older boundaries may have rows anywhere, and become a
        # run.
        small_old = [place for place in old_all if self._tier(place) is not None]
        neighbours = [*([file.place for file in run.files] for run in runs), small_old]
        return due or [(small, None) for places in neighbours if (small := self._small(places))]

    def _worth(self, fresh: list[int]) -> list[int]:
        is_enough = len(fresh) >= self._goal.fresh_min or self._bytes(fresh) >= self._goal.target_size_bytes
        return fresh if is_enough else []

    def _bytes(self, places: Sequence[int]) -> int:
        return sum(map(self._sizes.live_bytes, places))

    def _up_to_limit(self, places: Sequence[int]) -> list[int]:
        result: list[int] = []
        total = 0
        for place in places:
            if result and total + self._sizes.live_bytes(place) > self._goal.limit_bytes:
                break
            result.append(place)
            total += self._sizes.live_bytes(place)
        return result

    def _runs(self, ordered: Sequence[_File]) -> list[_Run]:
        """Return the runs. Files of large writes come first, so that files that replaced a part of a run
        rejoin that run."""
        write_bytes: dict[str, int] = {}
        for file in ordered:
            write = self._writes[file.place]
            write_bytes[write] = write_bytes.get(write, 0) + file.size
        runs: list[_Run] = []
        for file in sorted(
            ordered,
            key=lambda file: (-write_bytes[self._writes[file.place]], file.low, file.high, file.place),
        ):
            if not any(run.takes(file) for run in runs):
                runs.append(_Run([file]))
        return runs

    def _merged(self, fresh: list[int], old: list[int], runs: list[_Run]) -> tuple[list[_File], list[int]]:
        """Return the files of runs to merge with the fresh files, and the files of older boundaries if these
        are merged too."""
        if self._goal.full:
            merges = fresh or old or len(runs) > 1
            return ([file for run in runs for file in run.files] if merges else []), old
        by_size = sorted(runs, key=lambda run: run.rows)
        if old:
            # They may have rows anywhere, and count as a run.
            places = _Run([_File(-1, 0, self._rows(old), 0, self._curve.ranks.places)])
            at = bisect_left([run.rows for run in by_size], places.rows)
            by_size.insert(at, places)
        if fresh:
            places = _Run([_File(-2, 0, self._rows(fresh), 0, self._curve.ranks.places)])
            files_to_merge = [*places.files, *_joined(places, by_size, 1, self._depth)]
        else:
            files_to_merge = next(
                filter(
                    None, (_joined(run, by_size[at + 1 :], 0, self._depth) for at, run in enumerate(by_size))
                ),
                [],
            )
        return [file for file in files_to_merge if file.place >= 0], old if any(
            f.place == -1 for f in files_to_merge
        ) else []

    def _small(self, places: Sequence[int]) -> list[int]:
        """Return small neighbours, if there are enough files of similar size.

        So a row is rewritten about once for each time that its file grows by that factor.
        """
        sizes = [self._tier(place) for place in places]
        counts = Counter(file_tier for file_tier in sizes if file_tier is not None)
        for tier in sorted(file_tier for file_tier, count in counts.items() if count >= SMALL_MIN):
            is_small = [file_tier is not None and file_tier <= tier for file_tier in sizes]
            for is_small_stretch, numbers in groupby(range(len(sizes)), key=is_small.__getitem__):
                stretch = list(numbers)
                if is_small_stretch and sum(sizes[number] == tier for number in stretch) >= SMALL_MIN:
                    result = self._up_to_limit([places[number] for number in stretch])
                    return result if len(result) >= SMALL_MIN // 2 else []
        return []

    def _tier(self, place: int) -> int | None:
        """Return the size tier of a file, or None if it is large enough."""
        size = self._sizes.live_bytes(place)
        return tier_of(size, SMALL_MIN) if size < self._goal.target_size_bytes // 2 else None

    def _rows(self, places: Sequence[int]) -> int:
        return sum(self._sizes.rows[place] for place in places)

    def _cut(self, always: list[int], ordered: list[_File]) -> tuple[list[int], int | None]:
        """Return the files to rewrite now: `always`, and as much of `ordered` along the curve as the limit
        allows."""
        room = self._goal.limit_bytes - self._bytes(always)
        if sum(file.size for file in ordered) <= room:
            return [*always, *(file.place for file in ordered)], None
        if always:
            # They have no order and may have rows anywhere, so they become a run of their own first.
            return always, None
        cut_files: list[_File] = []
        total, reach = 0, -1
        by_low = sorted(ordered, key=lambda file: (file.low, file.high))
        for number, file in enumerate(by_low):
            if total + file.size > room and number > 1:
                break
            cut_files.append(file)
            total += file.size
            reach = file.low
        later_files = by_low[len(cut_files) :]
        cut = later_files[0].low if later_files else None
        if cut is not None and cut <= reach and len(cut_files) < 2:
            cut = None
        return [file.place for file in cut_files], cut

    def group(self, places: Sequence[int], cut: int | None) -> FileGroup:
        tasks = max(1, -(-self._bytes(places) // self._goal.target_size_bytes))
        # Rows of an earlier partitioning belong to several present partitions, because files there mix all
        # partitions before they are split.
        is_spread = tasks > 1 or self._specs[places[0]] != self._metadata.spec.id
        cell = self._cell(places, tasks)
        return self._sizes.group(places, tasks=tasks, spread=is_spread, cut=cut, cell=cell)

    def _cell(self, places: Sequence[int], tasks: int) -> int:
        """Return the places of the curve for each task, if rows are spread evenly over the files' places.

        It is rounded down to a power of two.
        """
        ranks = self._curve.ranks
        are_known = all(self._generations[place] == ranks.generation for place in places)
        ends = [(self._lows[place], self._highs[place]) for place in places] if are_known else []
        file_ends = [(low, high) for low, high in ends if low is not None and high is not None]
        span = ranks.places
        if file_ends and len(file_ends) == len(places):
            span = max(high for _, high in file_ends) + 1 - min(low for low, _ in file_ends)
        return 1 << max(0, (span // tasks).bit_length() - 1)


def _joined(first: _Run, larger: Sequence[_Run], count: int, depth_max: int) -> list[_File]:
    """Return the files of `first`, and the overlapping files of larger runs that they are merged with.

    Larger runs join from the smallest on. Returns no files if a merge is not worth it, or has fewer than
    `count` runs. At most `depth_max` runs stay over a place.
    """
    files, low, high = list(first.files), first.files[0].low, first.files[-1].high
    rows, depth, ends = first.rows, 1, []
    for run in larger:
        part = run.between(low, high)
        if not part:
            continue
        depth += 1
        size = sum(file.rows for file in part)
        ends.append((len(files) + len(part), size <= SHARE * rows))
        files += part
        rows += size
        low, high = min(low, part[0].low), max(high, part[-1].high)
    most = min(depth_max, round(RUNS_MIN + RUNS_EACH_TENFOLD * log10(max(1, rows / max(1, first.rows)))))
    if depth <= most and not count:
        return []
    worth = max((end for end, is_small in ends if is_small), default=0)
    least = ends[0][0] if depth > most and ends else 0
    end = max(worth, least)
    return files[:end]


def _overlap(one: _File, other: _File) -> bool:
    """Return whether both files may have rows at several common places. Files that meet in one place do not
    overlap."""
    return one.low < other.high and other.low < one.high


def _overlapping(files: list[_File]) -> list[list[_File]]:
    """Return the files that overlap another file, by stretches of the curve.

    Between two stretches there are files that overlap no other. New files must not reach across these.
    """
    by_low = sorted(files, key=lambda file: (file.low, file.high))
    stretches: list[list[_File]] = []
    together: list[_File] = []
    reach = -1
    is_apart = True
    for file in by_low:
        if together and file.low >= reach:
            is_apart = _ended(together, stretches, is_apart)
            together = []
        together.append(file)
        reach = max(reach, file.high)
    if together:
        _ended(together, stretches, is_apart)
    return stretches


def _ended(together: list[_File], stretches: list[list[_File]], is_apart: bool) -> bool:
    """Record files that each overlap the next. Return whether later files are apart from earlier files."""
    if len(together) == 1:
        return True
    if is_apart or not stretches:
        stretches.append(together)
    else:
        stretches[-1].extend(together)
    return False
