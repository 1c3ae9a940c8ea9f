"""Leaves that overlap many others are sorted anew: a partition is in few packs, and what is in order is left alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.unit.catalog.files.test_packs import SCHEMA, Stored, condition, rows_of

from lakelog.catalog.core.files import manifest_bounds, manifests, overlaps
from lakelog.catalog.core.files.data_file import ColumnStats, DataFile
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.leaves import ManifestLeaf
from lakelog.catalog.core.planning.scan_plan import plan_scan
from lakelog.catalog.core.schema.partitioning import PartitionSpec, spec_from_transforms
from lakelog.log import BlobRange
from lakelog.log.errors import NotFound

RUN, LEAF, DEPTH, DAYS = 50, 5, 6, 40
BY_DAY = spec_from_transforms(["day"], SCHEMA)
BY_TWO = spec_from_transforms(["m", "day"], SCHEMA)


@pytest.fixture(autouse=True)
def small_packs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", 4)
    monkeypatch.setattr(manifests, "PACKED_FROM", 20)
    monkeypatch.setattr(manifests, "PACK_LEAF_ENTRIES", LEAF)
    monkeypatch.setattr(manifests, "RUN_LIMIT", RUN)
    monkeypatch.setattr(manifests, "ALWAYS_MERGED_BELOW", 4)
    monkeypatch.setattr(overlaps, "DEPTH_MAX", DEPTH)
    yield


Day = Callable[[int], int | None]


class Table:
    """A set that grows by runs, each stored by a client that has read nothing."""

    def __init__(self, spec: PartitionSpec, day: Day) -> None:
        self.spec, self.day = spec, day
        self.stored, self.files, self.plain = Stored(), FileSet.empty(), FileSet.empty()
        self.count = self.version = self.written = self.sorted_anew = 0

    def grow(self, runs: int, each: int = RUN) -> None:
        for _ in range(runs):
            new = [self._file(number) for number in range(self.count, self.count + each)]
            self.count, self.version = self.count + each, self.version + 1
            self.plain = self.plain.added(new, SCHEMA, [self.spec])
            objects_before = set(self.stored.objects)
            self.files = self.stored.stored(self.files.added(new, SCHEMA, [self.spec]), self.version)
            packs = [name for name in self.stored.objects if name not in objects_before]
            self.sorted_anew += len(packs) > 1
            self.written += sum(len(self.stored.objects[name]) for name in packs)

    def _file(self, number: int) -> DataFile:
        values = {"m": number % 2, "day": self.day(number)}
        fields = {field.id: field.name for field in SCHEMA.fields}
        return DataFile(
            path=f"data/{number}",
            size_bytes=1,
            rows=10,
            spec_id=self.spec.id,
            partition={field.id: values[fields[field.source_id]] for field in self.spec.fields},
            stats={1: ColumnStats(nulls=0, min=number, max=number)},
        )

    def packs_of(self, column: str, value: int) -> int:
        """Return how many packs a plan reads; it finds what a plan over all entries finds."""
        self.stored.kept.limit_bytes = 0
        self.stored.asked.clear()
        bound_condition = condition("=", column, value)
        found_plan = plan_scan(self.stored.loaded(), self.stored.fetch, bound_condition, [self.spec])
        assert rows_of(found_plan) == rows_of(
            plan_scan(self.plain, _empty_data, bound_condition, [self.spec])
        )
        return len(
            {getattr(each_name, "name", each_name) for names in self.stored.asked for each_name in names}
        )


def _empty_data(names: Sequence[str]) -> list[bytes]:
    raise AssertionError("what is in memory is not read")


@pytest.mark.parametrize(("spec", "nulls"), [(BY_DAY, True), (BY_TWO, False)])
def test_a_partition_is_in_few_packs_though_each_run_has_files_of_all(
    spec: PartitionSpec, nulls: bool
) -> None:
    chance = random.Random(3)

    def mixed_number(number: int) -> int | None:
        return None if nulls and not number % 7 else chance.randrange(DAYS)

    table = Table(spec, mixed_number)
    table.grow(DEPTH - 1)
    written_number = table.written
    table.grow(15)
    assert max(table.packs_of("day", day) for day in range(0, DAYS, 9)) <= 2 * DEPTH - 2, "of 20 runs"
    for number in range(7, table.count, 331):
        leaves = [entry for entry in table.stored.own.entries if isinstance(entry, ManifestLeaf)]
        assert table.packs_of("n", number) < len(leaves)
    assert table.written / table.count < 4 * written_number / (DEPTH - 1) / RUN


def test_what_comes_after_is_a_run_of_its_own() -> None:
    """It is merged with what follows, as if nothing had been sorted."""
    table = Table(BY_DAY, lambda number: number * 7 % DAYS)
    table.grow(DEPTH - 1)
    for _ in range(DEPTH):
        table.grow(1)
        entries = table.files.stored_in().manifests.entries
        last = [entry for entry in entries if entry.stored.seq == entries[-1].stored.seq]
        assert sum(manifest.stored.entries for manifest in last) == RUN
    assert table.sorted_anew


def test_what_comes_in_the_order_of_partitions_is_left_alone() -> None:
    table = Table(BY_DAY, lambda number: number // 90)
    table.grow(2 * DEPTH)
    assert table.sorted_anew == 0 and len(table.stored.objects) == 2 * DEPTH


def test_without_partitions_nothing_is_sorted_anew() -> None:
    table = Table(spec_from_transforms([], SCHEMA), lambda number: 0)
    table.grow(2 * DEPTH)
    assert table.sorted_anew == 0


def test_a_partition_of_many_leaves_is_not_written_again_and_again() -> None:
    """Sorting gains nothing there: all of these leaves are of one day."""
    table = Table(BY_DAY, lambda number: number % 2)
    table.grow(3 * DEPTH)
    sorted_anew = table.sorted_anew
    table.grow(3, each=1)
    assert table.sorted_anew == sorted_anew <= DEPTH
    leaves = [entry for entry in table.files.stored_in().manifests.entries if isinstance(entry, ManifestLeaf)]
    assert overlaps.overlapping(leaves, RUN) == []


def test_a_set_that_is_not_to_be_sorted_is_left_alone() -> None:
    table = Table(BY_DAY, lambda number: number % DAYS)
    table.grow(DEPTH)
    for sorts_anew in (False, True):
        more = table.files.added([table._file(9000)], SCHEMA, [BY_DAY])
        _, _, own = more.dump(50, table.stored.fetch, (), None, sorts_anew=sorts_anew)
        assert {entry.version for entry in own.entries[:-1]} <= {50, *range(1, DEPTH + 1)}
        assert any(entry.version == 50 for entry in own.entries[:-1]) is sorts_anew


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_set_is_stored_though_packs_that_are_to_be_sorted_cannot_be_read(is_lost: bool) -> None:
    table = Table(BY_DAY, lambda number: number * 7 % DAYS)
    table.grow(DEPTH)
    packs = [name for name in table.stored.objects if name.endswith(".pack")]

    def fetch(names: Sequence[str | BlobRange]) -> list[bytes]:
        if is_lost:
            raise NotFound("it is gone")
        return [bytes(name.size) if isinstance(name, BlobRange) else b"" for name in names]

    grown = table.files.added([table._file(number) for number in range(8000, 8000 + RUN)], SCHEMA, [BY_DAY])
    _, _, own = grown.dump(50, fetch)
    assert set(packs) < {entry.stored.name for entry in own.entries}
