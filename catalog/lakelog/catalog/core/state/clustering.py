"""Which files a clustering rewrites: those without an order of today, and runs that are worth to be merged. Pure.

A run is a number of files that do not overlap on the curve; the files of a table make several, since each write adds
one. Once there are more than `RUNS_MIN`, and so many for each tenfold that the table has of the smallest one's rows,
they are merged from the smallest on: two at least, and one goes with all that are smaller where it has at most `SHARE`
of their rows together. Files of older boundaries of the same columns count as one run. Of what is merged, a file that
overlaps no other stays as it is. Where nothing is to be merged, small files that lie side by side in a run are joined.
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

from lakelog.catalog.core.files import CURVE, CURVE_HIGH, CURVE_LOW, converted
from lakelog.catalog.core.schema import (
    CLUSTER_DEPTH,
    COLUMNS_MAX,
    TARGET_FILE_SIZE,
    AtomicType,
    Bounds,
    Curve,
    Metadata,
    Ranks,
    boundaries_below,
    curve_of,
    from_arrow,
    value_of,
    value_type,
)
from lakelog.catalog.core.state.compaction import FileSizes, Group, added_until, tier_of
from lakelog.log.errors import InvalidInput

SHARE = 0.9
RUNS_MIN = 3.0
RUNS_EACH_TENFOLD = 1.2
"""So many runs stay as they are: three, and twelve for each ten tenfolds that the table is of the smallest one."""

SMALL_MIN = 8
"""So many small files of about one size, none of which overlaps another, become one: sizes differ by this factor."""

FILES_AT_ONCE = 64
"""About so many files of the target size are rewritten together, unless a limit says less."""

_NO_GENERATION = 1 << 62

SKEW_MAX = 0.125
"""Boundaries are computed anew once more than this share of the rows has one rank, as the bounds of files say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGoal:
    """Files of about `target_size_bytes`, `limit_bytes` of them at most rewritten together. With `fresh_min`, files
    without an order wait until there are so many of them, or as many bytes as a file has. `full`: all runs are merged,
    whatever that rewrites."""

    target_size_bytes: int
    limit_bytes: int
    fresh_min: int = 1
    full: bool = False


def clustering_goal(
    properties: Mapping[str, str], limit_bytes: int | None, *, full: bool = False
) -> ClusteringGoal:
    """Return the goal for a table with these properties. InvalidInput."""
    if limit_bytes is not None and limit_bytes < 1:
        raise InvalidInput(f"a limit of {limit_bytes} bytes leaves nothing to do: give more than 0")
    target = int(value_of(properties, TARGET_FILE_SIZE))
    return ClusteringGoal(target_size_bytes=target, limit_bytes=FILES_AT_ONCE * target, full=full)


def curve_to_plan_by(metadata: Metadata) -> Curve:
    """Return the curve of a clustered table; where it has no boundaries yet, one of which no file has places."""
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    if curve is not None:
        return curve
    columns = []
    for id in metadata.clustering[:COLUMNS_MAX]:
        type = metadata.schema.field_by_id(id).type
        assert isinstance(type, AtomicType), "other types have no order"
        columns.append(Bounds(id=id, type=type.name))
    ranks = Ranks(generation=_NO_GENERATION, first=_NO_GENERATION, columns=tuple(columns))
    return Curve(ranks, metadata.schema)


@dataclass(frozen=True, slots=True)
class _File:
    place: int
    size: int
    rows: int
    low: int
    high: int


def plan_clustering(
    files: pa.Table, metadata: Metadata, curve: Curve, goal: ClusteringGoal, *, until: int
) -> tuple[pa.Table, list[Group]]:
    """Return the next groups to be rewritten, each of a stretch of a partition, and their files, one group's after the
    other's; none where nothing is worth it. Together they have about `limit_bytes` at most.

    `files` has the form of `FileSet.chunks`. Those that came after the version `until` do not count. A group's `cut` is
    where its new files end, so that what is beyond does not reach into runs that were not read.
    """
    files = files.filter(pc.and_(added_until(files, until), pc.greater(files["rows"], 0))).sort_by("path")
    planned = _Planned(files, metadata, curve, goal)
    taken: list[int] = []
    groups: list[Group] = []
    total = 0
    for chosen, cut in (each for places in planned.partitions() for each in planned.next_of(places)):
        group = planned.group(chosen, cut)
        if groups and total + group.size_bytes > goal.limit_bytes:
            break
        taken += chosen
        groups.append(group)
        total += group.size_bytes
    return files.take(pa.array(taken, pa.int64())), groups


def is_skewed(files: pa.Table, metadata: Metadata, curve: Curve) -> bool:
    """Whether the boundaries no longer divide the rows: too many are, by the bounds of their files, of one rank."""
    rows = files["rows"].to_numpy()
    total = int(rows.sum())
    if not total:
        return False
    for id, bounds in zip(curve.ids, curve.bounds, strict=True):
        ends = _ends(files, id, metadata)
        if ends is None:
            continue
        lows, highs = ends
        known = np.asarray(pc.and_(lows.is_valid(), highs.is_valid()))
        differ = np.asarray(pc.fill_null(pc.not_equal(lows, highs), False))
        low, high = (boundaries_below(each, bounds) for each in (lows, highs))
        alike = known & differ & (low == high)
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
        """Add a file, unless it overlaps one that is there."""
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
        """Return the files that overlap what lies between two places."""
        at = max(0, bisect_left(self._lows, low) - 1)
        end = bisect_left(self._lows, high)
        return [file for file in self.files[at:end] if file.high > low]


class _Planned:
    def __init__(self, files: pa.Table, metadata: Metadata, curve: Curve, goal: ClusteringGoal) -> None:
        self._files, self._metadata, self._curve, self._goal = files, metadata, curve, goal
        self._depth = int(value_of(metadata.properties, CLUSTER_DEPTH))
        self._sizes = FileSizes(files)
        # Where a list of files has been made for their bounds alone, their names say which write they are of.
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
        """Return the files of each partition, those of earlier partitionings together, first."""
        values = []
        for field in self._metadata.spec.fields:
            name = f"p{field.id}"
            has = name in self._files.column_names
            values.append(
                from_arrow(self._files[name].combine_chunks()) if has else [None] * self._files.num_rows
            )
        found: dict[Any, list[int]] = {}
        for place in range(self._files.num_rows):
            other = bool(values) and self._specs[place] != self._metadata.spec.id
            key = None if other else tuple(each[place] for each in values)
            found.setdefault(key, []).append(place)
        return sorted(found.values(), key=lambda places: self._specs[places[0]] == self._metadata.spec.id)

    def next_of(self, places: Sequence[int]) -> list[tuple[list[int], int | None]]:
        """Return which files of one partition are rewritten together next, and where the new ones are cut."""
        ranks = self._curve.ranks
        fresh, old, ordered = [], [], []
        for place in places:
            generation = self._generations[place]
            low, high = self._lows[place], self._highs[place]
            if generation == ranks.generation and low is not None and high is not None:
                size, rows = self._sizes.live_bytes(place), self._sizes.rows[place]
                ordered.append(_File(place, size, rows, low, high))
            elif generation is not None and ranks.first <= generation < ranks.generation:
                old.append(place)
            else:
                fresh.append(place)
        fresh = self._worth(fresh)
        taken_bytes = self._bytes(fresh)
        if taken_bytes >= self._goal.limit_bytes:
            return [(self._up_to_limit(fresh), None)]
        runs = self._runs(ordered)
        old_all = old
        within, old = self._merged(fresh, old, runs)
        if fresh or old:
            taken = [*fresh, *old]
            if self._bytes(taken) >= self._goal.limit_bytes:
                return [(self._up_to_limit(taken), None)]
            return [self._cut(taken, within)]
        due = [self._cut([], stretch) for stretch in _overlapping(within)]
        # Files of a run lie side by side. Those of older boundaries may have rows anywhere, and become a run.
        small_old = [place for place in old_all if self._tier(place) is not None]
        beside = [*([file.place for file in run.files] for run in runs), small_old]
        return due or [(small, None) for places in beside if (small := self._small(places))]

    def _worth(self, fresh: list[int]) -> list[int]:
        is_enough = len(fresh) >= self._goal.fresh_min or self._bytes(fresh) >= self._goal.target_size_bytes
        return fresh if is_enough else []

    def _bytes(self, places: Sequence[int]) -> int:
        return sum(map(self._sizes.live_bytes, places))

    def _up_to_limit(self, places: Sequence[int]) -> list[int]:
        chosen: list[int] = []
        total = 0
        for place in places:
            if chosen and total + self._sizes.live_bytes(place) > self._goal.limit_bytes:
                break
            chosen.append(place)
            total += self._sizes.live_bytes(place)
        return chosen

    def _runs(self, ordered: Sequence[_File]) -> list[_Run]:
        """Return runs: those of large writes first, so that what was written in place of a part of a run is in that run
        again."""
        written: dict[str, int] = {}
        for file in ordered:
            write = self._writes[file.place]
            written[write] = written.get(write, 0) + file.size
        runs: list[_Run] = []
        for file in sorted(
            ordered, key=lambda file: (-written[self._writes[file.place]], file.low, file.high, file.place)
        ):
            if not any(run.takes(file) for run in runs):
                runs.append(_Run([file]))
        return runs

    def _merged(self, fresh: list[int], old: list[int], runs: list[_Run]) -> tuple[list[_File], list[int]]:
        """Return the files of runs that are merged with what is fresh, and those of older boundaries, if they are
        too."""
        if self._goal.full:
            merged = fresh or old or len(runs) > 1
            return ([file for run in runs for file in run.files] if merged else []), old
        by_size = sorted(runs, key=lambda run: run.rows)
        if old:
            # They may have rows anywhere, and count as a run.
            places = _Run([_File(-1, 0, self._rows(old), 0, self._curve.ranks.places)])
            at = bisect_left([run.rows for run in by_size], places.rows)
            by_size.insert(at, places)
        if fresh:
            places = _Run([_File(-2, 0, self._rows(fresh), 0, self._curve.ranks.places)])
            found = [*places.files, *_joined(places, by_size, 1, self._depth)]
        else:
            found = next(
                filter(
                    None, (_joined(run, by_size[at + 1 :], 0, self._depth) for at, run in enumerate(by_size))
                ),
                [],
            )
        return [file for file in found if file.place >= 0], old if any(f.place == -1 for f in found) else []

    def _small(self, places: Sequence[int]) -> list[int]:
        """Return small files of those that lie side by side, once there are enough of about one size. So rows are
        rewritten about once for each time that their file grows by that factor."""
        sizes = [self._tier(place) for place in places]
        counts = Counter(each for each in sizes if each is not None)
        for tier in sorted(each for each, count in counts.items() if count >= SMALL_MIN):
            is_joined = [each is not None and each <= tier for each in sizes]
            for joined, numbers in groupby(range(len(sizes)), key=is_joined.__getitem__):
                found = list(numbers)
                if joined and sum(sizes[number] == tier for number in found) >= SMALL_MIN:
                    chosen = self._up_to_limit([places[number] for number in found])
                    return chosen if len(chosen) >= SMALL_MIN // 2 else []
        return []

    def _tier(self, place: int) -> int | None:
        """Return of which size a file is; None for one that is large enough."""
        size = self._sizes.live_bytes(place)
        return tier_of(size, SMALL_MIN) if size < self._goal.target_size_bytes // 2 else None

    def _rows(self, places: Sequence[int]) -> int:
        return sum(self._sizes.rows[place] for place in places)

    def _cut(self, always: list[int], ordered: list[_File]) -> tuple[list[int], int | None]:
        """Return what is rewritten now: `always`, and of `ordered` as much of the curve as the limit allows."""
        room = self._goal.limit_bytes - self._bytes(always)
        if sum(file.size for file in ordered) <= room:
            return [*always, *(file.place for file in ordered)], None
        if always:
            # Without an order, they may have rows anywhere: they become a run of their own first.
            return always, None
        chosen: list[_File] = []
        total, reach = 0, -1
        by_low = sorted(ordered, key=lambda file: (file.low, file.high))
        for number, file in enumerate(by_low):
            if total + file.size > room and number > 1:
                break
            chosen.append(file)
            total += file.size
            reach = file.low
        left = by_low[len(chosen) :]
        cut = left[0].low if left else None
        if cut is not None and cut <= reach and len(chosen) < 2:
            cut = None
        return [file.place for file in chosen], cut

    def group(self, places: Sequence[int], cut: int | None) -> Group:
        tasks = max(1, -(-self._bytes(places) // self._goal.target_size_bytes))
        # Rows of an earlier partitioning are of several partitions of today, as files are of any before they are split.
        is_spread = tasks > 1 or self._specs[places[0]] != self._metadata.spec.id
        cell = self._cell(places, tasks)
        return self._sizes.group(places, tasks=tasks, spread=is_spread, cut=cut, cell=cell)

    def _cell(self, places: Sequence[int], tasks: int) -> int:
        """Return how many places of the curve one task has, if rows are spread evenly between those that the files
        have: down to a power of two."""
        ranks = self._curve.ranks
        are_known = all(self._generations[place] == ranks.generation for place in places)
        ends = [(self._lows[place], self._highs[place]) for place in places] if are_known else []
        known = [(low, high) for low, high in ends if low is not None and high is not None]
        span = ranks.places
        if known and len(known) == len(places):
            span = max(high for _, high in known) + 1 - min(low for low, _ in known)
        return 1 << max(0, (span // tasks).bit_length() - 1)


def _joined(first: _Run, larger: Sequence[_Run], count: int, depth_max: int) -> list[_File]:
    """Return what the files of `first` are merged with, and themselves: of larger runs, from the smallest on, what
    overlaps. None where that is not worth it, or fewer than `count`; no more than `depth_max` stay over a place."""
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
    """Whether both may have rows of several places of the curve: files that meet in one place do not overlap."""
    return one.low < other.high and other.low < one.high


def _overlapping(files: list[_File]) -> list[list[_File]]:
    """Return those files that overlap another one, by stretches of the curve between which there are files that do not:
    new files must not reach across these."""
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
    """Note files of which each overlaps the next; return whether what follows is apart from what came before."""
    if len(together) == 1:
        return True
    if is_apart or not stretches:
        stretches.append(together)
    else:
        stretches[-1].extend(together)
    return False
