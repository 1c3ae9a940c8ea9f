"""Which files a clustering rewrites: those without an order of today, and runs that are worth to be merged. Pure.

A run is a number of files that do not overlap on the curve; the files of a table make several, since each write adds
one. Runs are merged from the smallest on: one goes with all that are smaller where it has at most `SHARE` of their size
together. So a row that is rewritten is in a run more than twice as large then, at least, and a run that stays has more
than that share of all that are smaller. Files of older boundaries of the same columns count as one run. Of what is
merged, a file that overlaps no other stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.files import CURVE, CURVE_HIGH, CURVE_LOW, converted
from lakelog.catalog.schema import (
    TARGET_FILE_SIZE,
    Curve,
    Metadata,
    boundaries_below,
    from_arrow,
    value_of,
    value_type,
)
from lakelog.catalog.state.compaction import FileSizes, Group, added_until
from lakelog.log.errors import InvalidInput

SHARE = 0.75

FILES_AT_ONCE = 64
"""About so many files of the target size are rewritten together, unless a limit says less."""

SKEW_MAX = 0.125
"""Boundaries are computed anew once more than this share of the rows has one rank, as the bounds of files say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGoal:
    """Files of about `target_size_bytes`, `limit_bytes` of them at most rewritten together. With `fresh_min`, files
    without an order wait until there are so many of them, or as many bytes as a file has."""

    target_size_bytes: int
    limit_bytes: int
    fresh_min: int = 1


def clustering_goal(properties: Mapping[str, str], limit_bytes: int | None) -> ClusteringGoal:
    """Return the goal for a table with these properties. InvalidInput."""
    if limit_bytes is not None and limit_bytes < 1:
        raise InvalidInput(f"a limit of {limit_bytes} bytes leaves nothing to do: give more than 0")
    target = int(value_of(properties, TARGET_FILE_SIZE))
    return ClusteringGoal(target_size_bytes=target, limit_bytes=FILES_AT_ONCE * target)


@dataclass(frozen=True, slots=True)
class _File:
    place: int
    size: int
    low: int
    high: int


def plan_clustering(
    files: pa.Table, metadata: Metadata, curve: Curve, goal: ClusteringGoal, *, until: int
) -> tuple[pa.Table, list[Group]]:
    """Return the next files to be rewritten together, and their group; none where nothing is worth it.

    `files` has the form of `FileSet.chunks`. Those that came after the version `until` do not count. A group's `cut` is
    where its new files end, so that what is beyond does not reach into runs that were not read.
    """
    files = files.filter(pc.and_(added_until(files, until), pc.greater(files["rows"], 0))).sort_by("path")
    planned = _Planned(files, metadata, curve, goal)
    for places in planned.partitions():
        found = planned.next_of(places)
        if found is not None:
            chosen, cut = found
            return files.take(pa.array(chosen, pa.int64())), [planned.group(chosen, cut)]
    return files.slice(0, 0), []


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


class _Planned:
    def __init__(self, files: pa.Table, metadata: Metadata, curve: Curve, goal: ClusteringGoal) -> None:
        self._files, self._metadata, self._curve, self._goal = files, metadata, curve, goal
        self._sizes = FileSizes(files)
        self._writes: list[str] = files["write"].to_pylist()
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

    def next_of(self, places: Sequence[int]) -> tuple[list[int], int | None] | None:
        """Return the next files of one partition to be rewritten, and where the new ones are cut."""
        ranks = self._curve.ranks
        fresh, old, ordered = [], [], []
        for place in places:
            generation = self._generations[place]
            low, high = self._lows[place], self._highs[place]
            if generation == ranks.generation and low is not None and high is not None:
                ordered.append(_File(place, self._sizes.live_bytes(place), low, high))
            elif generation is not None and ranks.first <= generation < ranks.generation:
                old.append(place)
            else:
                fresh.append(place)
        fresh = self._worth(fresh)
        taken_bytes = self._bytes(fresh)
        if taken_bytes >= self._goal.limit_bytes:
            return self._up_to_limit(fresh), None
        merged, old = self._merged(taken_bytes, old, self._runs(ordered), bool(fresh))
        if fresh or old:
            taken = [*fresh, *old]
            within = [file for run in merged for file in run]
            if self._bytes(taken) >= self._goal.limit_bytes:
                return self._up_to_limit(taken), None
            return self._cut(taken, within)
        return self._cut([], _overlapping([file for run in merged for file in run]))

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

    def _runs(self, ordered: Sequence[_File]) -> list[list[_File]]:
        """Return runs, each by its files in the order of the curve: those of large writes first, so that what was
        written in place of a part of a run is in that run again."""
        written: dict[str, int] = {}
        for file in ordered:
            write = self._writes[file.place]
            written[write] = written.get(write, 0) + file.size
        runs: list[list[_File]] = []
        lows: list[list[int]] = []
        for file in sorted(
            ordered, key=lambda file: (-written[self._writes[file.place]], file.low, file.high, file.place)
        ):
            for run, starts in zip(runs, lows, strict=True):
                at = bisect_left(starts, file.low)
                if not _meets(run, at, file):
                    run.insert(at, file)
                    starts.insert(at, file.low)
                    break
            else:
                runs.append([file])
                lows.append([file.low])
        return runs

    def _merged(
        self, fresh_bytes: int, old: list[int], runs: list[list[_File]], has_fresh: bool
    ) -> tuple[list[list[_File]], list[int]]:
        """Return the runs that are merged with what is fresh, and the files of older boundaries, if they are too."""
        sizes = [(sum(file.size for file in run), number) for number, run in enumerate(runs)]
        if old:
            sizes.append((self._bytes(old), -1))
        sizes.sort()
        total, count = fresh_bytes, 0
        for number, (size, _) in enumerate(sizes):
            if (has_fresh or number) and size <= SHARE * total:
                count = number + 1
            total += size
        if count == 1 and not has_fresh:
            count = 0
        chosen = [number for _, number in sizes[:count]]
        return [runs[number] for number in chosen if number >= 0], old if -1 in chosen else []

    def _cut(self, always: list[int], ordered: list[_File]) -> tuple[list[int], int | None] | None:
        """Return what is rewritten now: `always`, and of `ordered` as much of the curve as the limit allows."""
        if not always and not ordered:
            return None
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
        return self._sizes.group(places, tasks=tasks, spread=True, cut=cut)


def _overlap(one: _File, other: _File) -> bool:
    """Whether both may have rows of several places of the curve: files that meet in one place do not overlap."""
    return one.low < other.high and other.low < one.high


def _meets(run: Sequence[_File], at: int, file: _File) -> bool:
    """Whether a file overlaps one of a run, in which it would come at the place `at`."""
    if at and _overlap(run[at - 1], file):
        return True
    while at < len(run) and run[at].low < file.high:
        if _overlap(run[at], file):
            return True
        at += 1
    return False


def _overlapping(files: list[_File]) -> list[_File]:
    """Return those files that overlap another one."""
    by_low = sorted(files, key=lambda file: (file.low, file.high))
    reach: _File | None = None
    marked: set[int] = set()
    for file in by_low:
        if reach is not None and _overlap(reach, file):
            marked.update((reach.place, file.place))
        if reach is None or file.high > reach.high:
            reach = file
    return [file for file in by_low if file.place in marked]
