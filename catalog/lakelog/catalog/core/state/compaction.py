"""The choice of files for a compaction: small files that fit together, and files with many deleted rows.
Pure.

A group has files with rows of the same partition, in the order of their paths, which is that of their writes.
So rows of about the same time stay together. Each group becomes a single file, so a second compaction does
nothing. A group becomes several files only if its rows are spread by range, over the files of a clustered
table or over the present partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import VERSION, physical_rows
from lakelog.catalog.core.files.row_ids import UNCOMMITTED
from lakelog.catalog.core.schema.literals import from_arrow
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.properties.known import DELETED_RATIO, TARGET_FILE_SIZE
from lakelog.log.errors import InvalidInput

SMALL = 0.75
"""Files below this share of the target size are combined with others."""

HELD_BYTES = 32 * 1024 * 1024
"""About how many bytes of a file a writer of Parquet holds in memory."""

SPREAD_TASKS_MAX = 64
"""A group is spread over at most this many tasks. A larger one becomes several groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTarget:
    """The goal: files of about `target_size_bytes`, with less than the share `deleted_ratio` of deleted rows.

    With a `fan_in`, small files are joined only if that many of similar size become a single file, or if the
    target is reached. A row is then rewritten about once for each time that its file grows by that factor,
    however often such a compaction runs. Of each size, fewer files than `fan_in` may stay. Unless it `joins`,
    small files are left to a clustering.
    """

    target_size_bytes: int
    deleted_ratio: float
    fan_in: int = 1
    joins: bool = True

    @property
    def most_bytes(self) -> int:
        """The size at which a writer begins another file. Rows of several files may need more space in a
        single file.

        A writer's rows in memory are not compressed yet, and so count for more than their final size.
        """
        return self.target_size_bytes + max(self.target_size_bytes // 2, HELD_BYTES)


def goal_of(
    properties: Mapping[str, str], target_size_bytes: int | None, deleted_ratio: float | None
) -> CompactionTarget:
    """Return the goal of these arguments. None means the table's property, or its default.

    Raises InvalidInput if an argument is out of range.
    """
    if target_size_bytes is None:
        target_size_bytes = TARGET_FILE_SIZE.of(properties)
    if target_size_bytes < TARGET_FILE_SIZE.minimum:
        raise InvalidInput(
            f"files of {target_size_bytes} bytes are not possible: give at least {TARGET_FILE_SIZE.minimum}"
        )
    if deleted_ratio is None:
        deleted_ratio = DELETED_RATIO.of(properties)
    if not 0 <= deleted_ratio <= 1:
        raise InvalidInput(
            f"the share of deleted rows is {deleted_ratio}: give a number from 0, for all files that have some, to 1"
        )
    # A larger target means as few files as possible.
    target_size_bytes = min(target_size_bytes, TARGET_FILE_SIZE.maximum)
    return CompactionTarget(target_size_bytes=target_size_bytes, deleted_ratio=deleted_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """A number of files that are rewritten together, with their live `rows` and their `deleted` rows.

    `tasks` share the work, by ranges of the columns by which rows are partitioned and clustered. Unless the
    group is `spread`, its rows belong to one present partition, and one task suffices. No new file has rows
    on both sides of the place `cut` of the table's curve. Tasks share the curve by stretches of `cell`
    places, a power of two. Each stretch begins at a multiple of `cell`, so its rows are in a box that no
    other stretch reaches into.
    """

    files: int
    rows: int
    size_bytes: int
    deleted: int
    tasks: int = 1
    spread: bool = False
    cut: int | None = None
    cell: int = 1


def plan_compaction(
    files: pa.Table, metadata: Metadata, goal: CompactionTarget, *, until: int, limit_bytes: int
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the next groups, up to about `limit_bytes`, and their files in the order of the groups.

    `files` has the form of `FileSet.chunks`. Files from after the version `until` do not count, so that a
    loop over newer and newer versions ends. Files that a transaction itself has added do not count either.
    """
    files = files.filter(added_until(files, until)).sort_by("path")
    plan = _Planned(files, metadata, goal)
    places: list[int] = []
    groups: list[FileGroup] = []
    total = 0
    for group_places, group in plan.groups():
        places += group_places
        groups.append(group)
        total += group.size_bytes
        if total >= limit_bytes:
            break
    return files.take(pa.array(places, pa.int64())), groups


def tier_of(size_bytes: int, fan_in: int) -> int:
    """Return the number of a size's tier. Sizes in the same tier differ by a factor of less than `fan_in`."""
    tier = 0
    while size_bytes >= fan_in:
        tier, size_bytes = tier + 1, size_bytes // fan_in
    return tier


def added_until(files: pa.Table, until: int) -> pa.Array:
    """Return a mask of the files that were added by the version `until`. Files of unknown versions are
    older."""
    if VERSION not in files.column_names:
        return pa.repeat(pa.scalar(True), files.num_rows)
    versions = pc.fill_null(files[VERSION].combine_chunks(), 1)
    return pc.and_(pc.less_equal(versions, until), pc.not_equal(versions, UNCOMMITTED))


class FileSizes:
    """Sizes of planned files, by their places in the plan, and the groups that are made of them."""

    def __init__(self, files: pa.Table) -> None:
        self.rows: list[int] = files["rows"].to_pylist()
        self.all_rows: list[int] = physical_rows(files).to_pylist()
        self._sizes: list[int] = files["size"].to_pylist()

    def live_bytes(self, place: int) -> int:
        """Return about how many bytes the live rows take."""
        return self._sizes[place] * self.rows[place] // max(1, self.all_rows[place])

    def group(
        self,
        places: Sequence[int],
        *,
        tasks: int = 1,
        spread: bool = False,
        cut: int | None = None,
        cell: int = 1,
    ) -> FileGroup:
        """Return the group of the files at these places."""
        rows = sum(self.rows[place] for place in places)
        return FileGroup(
            files=len(places),
            rows=rows,
            size_bytes=sum(self._sizes[place] for place in places),
            deleted=sum(self.all_rows[place] for place in places) - rows,
            tasks=tasks,
            spread=spread,
            cut=cut,
            cell=cell,
        )


class _Planned:
    def __init__(self, files: pa.Table, metadata: Metadata, goal: CompactionTarget) -> None:
        self._goal = goal
        self._metadata = metadata
        self._count = files.num_rows
        self._sizes = FileSizes(files)
        self._specs: list[int] = files["spec"].to_pylist()
        self._values = [_values(files, field.id) for field in metadata.spec.fields]

    def groups(self) -> Iterator[tuple[list[int], FileGroup]]:
        """Yield the places of the files of each group, and the group."""
        partitions: dict[tuple[Any, ...] | None, list[int]] = {}
        for place in range(self._count):
            if self._is_wanted(place):
                partitions.setdefault(self._partition(place), []).append(place)
        for partition, places in partitions.items():
            is_spread = partition is None or bool(self._metadata.clustering)
            for tier in self._tiers(places):
                yield from self._spread(tier) if is_spread else self._packed(tier)

    def _tiers(self, places: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield the files of each size tier, the smallest first. Yield all files together if the goal has no
        fan-in."""
        if self._goal.fan_in <= 1:
            yield places
            return
        tiers: dict[int, list[int]] = {}
        for place in places:
            tiers.setdefault(tier_of(self._sizes.live_bytes(place), self._goal.fan_in), []).append(place)
        for _, tier_places in sorted(tiers.items()):
            yield tier_places

    def _is_enough(self, chosen: Sequence[int], tasks: int) -> bool:
        """Return whether a rewrite of these files leaves few enough files to be worth it."""
        if not self._goal.joins:
            return False
        if self._goal.fan_in <= 1:
            return len(chosen) > tasks
        is_full = sum(map(self._sizes.live_bytes, chosen)) >= self._goal.target_size_bytes * SMALL * tasks
        return len(chosen) >= self._goal.fan_in * tasks or (len(chosen) > tasks and is_full)

    def _emptied(self, chosen: Sequence[int], *, spread: bool) -> Iterator[tuple[list[int], FileGroup]]:
        """Yield each file that has many deleted rows, on its own."""
        for place in chosen:
            if self._has_many_deleted(place):
                yield (
                    [place],
                    self._sizes.group([place], tasks=self._tasks([place]) if spread else 1, spread=spread),
                )

    def _tasks(self, chosen: Sequence[int]) -> int:
        return max(1, -(-sum(map(self._sizes.live_bytes, chosen)) // self._goal.target_size_bytes))

    def _packed(self, places: Sequence[int]) -> Iterator[tuple[list[int], FileGroup]]:
        for group_places in self._cut(places, self._goal.target_size_bytes):
            if self._is_enough(group_places, 1):
                yield group_places, self._sizes.group(group_places)
            else:
                yield from self._emptied(group_places, spread=False)

    def _spread(self, places: Sequence[int]) -> Iterator[tuple[list[int], FileGroup]]:
        for group_places in self._cut(places, self._goal.target_size_bytes * SPREAD_TASKS_MAX):
            tasks = self._tasks(group_places)
            purges_rows = (
                self._goal.joins and self._goal.fan_in <= 1 and any(map(self._has_many_deleted, group_places))
            )
            if purges_rows or self._is_enough(group_places, tasks):
                yield group_places, self._sizes.group(group_places, tasks=tasks, spread=True)
            else:
                yield from self._emptied(group_places, spread=True)

    def _cut(self, places: Sequence[int], size_bytes: int) -> Iterator[list[int]]:
        """Yield consecutive files, up to that size together, or a single larger file."""
        batch: list[int] = []
        total = 0
        for place in places:
            live = self._sizes.live_bytes(place)
            if batch and total + live > size_bytes:
                yield batch
                batch, total = [], 0
            batch.append(place)
            total += live
        if batch:
            yield batch

    def _is_wanted(self, place: int) -> bool:
        """Return whether a file may be rewritten. A file without rows stands for an empty partition."""
        if not self._sizes.rows[place]:
            return False
        small = self._goal.target_size_bytes * SMALL
        return self._sizes.live_bytes(place) < small or self._has_many_deleted(place)

    def _has_many_deleted(self, place: int) -> bool:
        all_rows = self._sizes.all_rows[place]
        deleted_rows = all_rows - self._sizes.rows[place]
        return deleted_rows > 0 and deleted_rows >= self._goal.deleted_ratio * all_rows

    def _partition(self, place: int) -> tuple[Any, ...] | None:
        """Return the values of a file's partition, or None for a file of an earlier partitioning."""
        if self._values and self._specs[place] != self._metadata.spec.id:
            return None
        return tuple(values[place] for values in self._values)


def _values(files: pa.Table, field_id: int) -> list[Any]:
    name = f"p{field_id}"
    if name not in files.column_names:
        return [None] * files.num_rows
    return from_arrow(files[name].combine_chunks())
