"""Clustering: rows in the order of a curve over several columns, little by little, beside writers; nothing is lost."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from math import inf, log10, nan
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, DoneInPart, InvalidInput, Table, engine
from lakelog.catalog.core.parquet import read_files, written_rows
from lakelog.catalog.core.parquet.curve_cuts import border
from lakelog.catalog.core.parquet.curve_order import along_curve
from lakelog.catalog.core.schema import curve_of
from lakelog.catalog.core.state import clustering as planning
from lakelog.catalog.engine.upkeep import plan_upkeep
from lakelog.catalog.keeping.upkeep import clustering

SCHEMA = pa.schema({"id": pa.int64(), "day": pa.date32(), "part": pa.string(), "pad": pa.string()})
DAY = dt.date(2024, 1, 1)
SMALL = {"lakelog.write.target-file-size-bytes": "65536"}


def rows(count: int, chance: random.Random, first: int = 0) -> pa.Table:
    days = [DAY + dt.timedelta(days=chance.randrange(1_000)) for _ in range(count)]
    parts = [f"https://example.org/parts/{chance.randrange(10_000):05d}" for _ in range(count)]
    pads = [f"{chance.getrandbits(64):016x}" for _ in range(count)]
    return pa.table([list(range(first, first + count)), days, parts, pads], schema=SCHEMA)


def items(catalog: Catalog, **options: Any) -> Table:
    return catalog.create_table("t", SCHEMA, cluster_by=["day", "part"], properties=SMALL, **options)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Six appends that each have all days and parts."""
    chance = random.Random(1)
    table = items(catalog)
    for number in range(6):
        table = table.append(rows(5_000, chance, number * 5_000))
    return table


def on_branch(catalog: Catalog) -> Table:
    return Catalog(catalog.warehouse).load_table("t", ref="b")


def of(table: Table) -> Counter[Any]:
    return Counter(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist())))


def other_table(catalog: Catalog) -> Table:
    return Catalog(catalog.warehouse).load_table("t")


def rewritten(table: Table, since: int) -> int:
    entries = [entry for entry in table.history() if entry.version > since and entry.operation == "compact"]
    return sum(int(entry.details["removed_bytes"]) for entry in entries)


def test_a_filter_on_either_column_reads_few_files_afterwards(table: Table) -> None:
    counts_before = of(table)
    assert len(table.plan("day = DATE'2025-01-01'")) == 6
    version = table.version
    table = table.cluster()
    assert of(table) == counts_before and not table.changes(version + 1).to_arrow().num_rows
    files = len(table.plan())
    assert 8 <= files <= 36
    for filter in ("day = DATE'2025-01-01'", "part = 'https://example.org/parts/05000'"):
        assert len(table.plan(filter)) <= files // 2
    both = "day = DATE'2025-01-01' and part = 'https://example.org/parts/05000'"
    assert len(table.plan(both)) <= 4
    assert table.cluster().version == table.version, "there is nothing left to do"


def test_rows_that_come_later_rewrite_little(table: Table) -> None:
    chance = random.Random(2)
    table = table.cluster()
    began, asked_number = table.version, 0
    for number in range(20):
        size = table.size_bytes
        table = table.append(rows(500, chance, 30_000 + number * 500))
        asked_number += table.size_bytes - size
        table = table.cluster()
    times = rewritten(table, began) / asked_number
    assert times <= 1.2 * (1 + log10(table.size_bytes / (asked_number / 20)))
    both = "day = DATE'2025-01-01' and part = 'https://example.org/parts/05000'"
    assert len(table.plan(both)) <= 8


def test_a_depth_is_kept_by_rewriting_more(catalog: Catalog) -> None:
    chance = random.Random(2)
    depth = {"change": "set-property", "key": "lakelog.maintenance.cluster-depth", "value": "2"}
    table = items(catalog).append(rows(4_000, chance)).alter([depth]).cluster()
    for number in range(6):
        table = table.append(rows(500, chance, 30_000 + number * 500)).cluster()
        assert overlap(table) <= 2.2
    assert len(of(table)) == 7_000


def overlap(table: Table) -> float:
    """Return how many files lie over a point, on average."""
    files = table.table_head.all_files().select(["lo2", "hi2", "lo3", "hi3"]).to_pylist()
    chance = random.Random(4)
    total = 0
    for _ in range(200):
        day = DAY + dt.timedelta(days=chance.randrange(1_000))
        part = f"https://example.org/parts/{chance.randrange(10_000):05d}"
        total += sum(f["lo2"] <= day <= f["hi2"] and f["lo3"] <= part <= f["hi3"] for f in files)
    return total / 200


def test_files_of_a_run_do_not_overlap_since_they_end_at_borders_of_cells(table: Table) -> None:
    table = table.cluster()
    assert len(table.plan()) >= 8
    # A point may lie on the border of two files; where they ended anywhere, it was 1.4.
    assert overlap(table) <= 1.15


@pytest.mark.parametrize("chance", [random.Random(number) for number in range(3)])
def test_borders_are_those_of_cells_as_large_as_what_lies_before(chance: random.Random) -> None:
    places = np.array(sorted(chance.randrange(1 << 10) for _ in range(300)))
    for _ in range(50):
        begin, end = sorted(chance.sample(range(1, 301), 2))
        origin = int(places[chance.randrange(begin)])
        borders = [
            row
            for row in range(begin, end)
            if any(
                places[row - 1] >> bits != places[row] >> bits and int(places[row]) - origin < 2 << bits
                for bits in range(11)
            )
        ]
        assert border(places, begin, end, origin) == next(iter(borders), None)


def test_only_files_that_overlap_are_rewritten(catalog: Catalog) -> None:
    table = items(catalog)
    chance = random.Random(3)
    for number in range(4):
        table = table.append(rows(4_000, chance, number * 4_000))
    table = table.cluster()
    low = rows(3_000, chance, 50_000).set_column(1, "day", pa.array([DAY] * 3_000, pa.date32()))
    low = low.set_column(2, "part", pa.array(["https://example.org/parts/00000"] * 3_000))
    kept_rows = set(table.plan()["path"].to_pylist())
    for part in (low, low, low):
        table = table.append(part).cluster()
    assert len(kept_rows & set(table.plan()["path"].to_pylist())) >= len(kept_rows) - 2


def test_small_files_of_a_key_that_grows_are_joined(catalog: Catalog) -> None:
    schema = pa.schema({"id": pa.int64()})
    table = catalog.create_table("t", schema, cluster_by=["id"])
    version = table.version
    for number in range(48):
        # Later ones lie beyond all boundaries, and where these are new, the small files are of older ones.
        table = table.append(pa.table({"id": list(range(number * 20, number * 20 + 20))}, schema=schema))
        if number % 4 == 3:
            catalog.maintain("t")
            table = table.refresh()
            assert len(table.plan()) <= 2 * planning.SMALL_MIN
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(960))
    assert rewritten(table, version) <= 5 * sum(table.table_head.all_files()["size"].to_pylist())


def test_a_limit_ends_a_call_and_the_next_one_goes_on(table: Table) -> None:
    counts_before, version, calls = of(table), table.version, 0
    while calls < 30:
        calls += 1
        finished_table = table.cluster(limit_bytes=300_000)
        assert rewritten(finished_table, table.version) <= 300_000 + 2 * 65_536 * 6
        if finished_table.version == table.version:
            break
        table = finished_table
    assert calls > 2 and of(table) == counts_before
    assert rewritten(table, version) < 6 * table.size_bytes


def test_files_of_a_part_of_a_run_end_where_it_was_cut(table: Table) -> None:
    table = table.cluster()
    for number in range(2):
        chance = random.Random(9 + number)
        for part in range(3):
            table = table.append(rows(4_000, chance, 100_000 + part * 4_000 + number * 20_000))
    counts_before, version = of(table), table.version
    for _ in range(40):
        finished_table = table.cluster(limit_bytes=400_000)
        if finished_table.version == table.version:
            break
        table = finished_table
    assert of(table) == counts_before and rewritten(table, version) < 3 * table.size_bytes
    files = table.table_head.all_files()
    spans = sorted(zip(*(files[name].to_pylist() for name in ("curve_low", "curve_high")), strict=True))
    assert all(low <= high for low, high in spans)
    deepest = max(sum(low < at < high for low, high in spans) for at in range(0, 65_536, 64))
    assert deepest <= 4, (deepest, spans)


def test_every_type_null_nan_and_skew(catalog: Catalog) -> None:
    schema = pa.schema(
        {
            "i": pa.int32(), "f": pa.float64(), "d": pa.decimal128(20, 3), "b": pa.binary(),
            "t": pa.timestamp("us", "UTC"), "o": pa.bool_(), "s": pa.string(),
        }
    )  # fmt: skip
    chance = random.Random(4)

    def some(count: int) -> pa.Table:
        def maybe(value: Any) -> Any:
            return None if chance.random() < 0.2 else value

        return pa.table(
            [
                [maybe(chance.choice([0, 0, 0, 0, chance.randrange(-9, 9)])) for _ in range(count)],
                [maybe(chance.choice([nan, inf, -inf, 0.0, -0.0, chance.random()])) for _ in range(count)],
                [maybe(Decimal(chance.randrange(-(10**12), 10**12)).scaleb(-3)) for _ in range(count)],
                [maybe(chance.randbytes(chance.randrange(3))) for _ in range(count)],
                [
                    maybe(dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n))
                    for n in range(count)
                ],
                [maybe(chance.random() < 0.5) for _ in range(count)],
                [maybe(f"{'x' * 400}{chance.randrange(50)}") for _ in range(count)],
            ],
            schema=schema,
        )

    for number, keys in enumerate((["f", "d"], ["b", "t", "o"], ["s", "i", "f", "o"], ["d"], ["s"])):
        table = catalog.create_table(f"t{number}", schema, cluster_by=keys, properties=SMALL)
        for _ in range(3):
            table = table.append(some(300))
        texts_before = sorted(map(repr, table.scan().to_arrow().to_pylist()))
        expected = table.expected_of_clustering()
        assert expected.read_files == table.file_count and 0 < expected.overlap_after <= 3
        table = table.cluster()
        assert 0 < engine.clustering_overlap(table) <= 3
        table = table.append(some(100)).cluster() if number else table
        texts_after = sorted(map(repr, table.scan().to_arrow().to_pylist()))
        assert len(texts_after) == len(texts_before) + (100 if number else 0)
        assert not (Counter(texts_before) - Counter(texts_after))
        for key in keys:
            (at,) = [field for field in table.schema.fields if field.name == key]
            assert at.id in table.metadata.clustering


def test_dates_beyond_those_of_python_are_in_what_is_expected(catalog: Catalog) -> None:
    days = pa.array([-719_163, 0, 2_932_897], pa.int32()).cast(pa.date32())
    data = pa.table({"id": [1, 2, 3], "day": days, "part": days})
    table = catalog.create_table("t", data.schema, cluster_by=["day", "id"], partition_by=["part"])
    table = table.append(data).append(data)
    expected = table.expected_of_clustering()
    assert expected.read_files == 6 == rewritten_files(table.cluster(), table.version)


def rewritten_files(table: Table, since: int) -> int:
    entries = [entry for entry in table.history() if entry.version > since and entry.operation == "compact"]
    return sum(int(entry.details["removed_files"]) for entry in entries)


def test_one_column_is_plainly_in_order(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, cluster_by=["day"], properties=SMALL)
    chance = random.Random(5)
    for number in range(4):
        table = table.append(rows(4_000, chance, number * 4_000))
    table = table.cluster()
    spans = table.health().keys[0]
    assert spans.column == "day" and spans.overlap < 3.1 and spans.deepest <= 3


def test_a_run_by_one_column_is_in_its_order_and_then_in_the_sort_order(catalog: Catalog) -> None:
    """Even if its rows are sorted by pieces, and written by others."""
    order = [{"transform": "identity", "column": ["part"], "direction": "desc", "nulls": "first"}]
    table = catalog.create_table("t", SCHEMA, cluster_by=["day"], sort_by=order, properties=SMALL)
    chance = random.Random(13)
    for number in range(3):
        some_rows = rows(4_000, chance, number * 4_000)
        days = [
            None if chance.random() < 0.1 else DAY + dt.timedelta(days=chance.randrange(30))
            for _ in range(4_000)
        ]
        parts = [None if chance.random() < 0.1 else row for row in some_rows["part"].to_pylist()]
        some_rows = some_rows.set_column(1, "day", pa.array(days, pa.date32()))
        table = table.append(some_rows.set_column(2, "part", pa.array(parts)))
    expected = sorted(
        zip(*table.scan().to_arrow().select(["day", "part"]).to_pydict().values(), strict=True),
        key=lambda row: (
            row[0] is not None,
            row[0] or DAY,
            row[1] is not None,
            [-ord(each) for each in row[1] or ""],
        ),
    )
    with (
        patch.object(along_curve, "__kwdefaults__", {"piece_bytes": 100_000}),
        patch.dict(written_rows.__kwdefaults__, {"buffered_bytes": 60_000}),
    ):
        table = table.cluster(full=True)
    # Names of files of a write have numbers, as they follow each other.
    files = table.table_head.all_files().sort_by(
        [(name, "ascending") for name in ("curve_low", "curve_high", "path")]
    )
    assert files.num_rows >= 4
    tracked_log, metadata = table.table_head.tracked, table.metadata
    _, batches = read_files(
        tracked_log.store, tracked_log.prefix, files, metadata.schema, metadata.specs, columns=["day", "part"]
    )
    found_batches = pa.Table.from_batches(batches)
    assert list(zip(*found_batches.to_pydict().values(), strict=True)) == expected


def test_rows_of_any_number_are_sorted_on_the_disk(table: Table) -> None:
    counts_before = of(table)
    with patch.object(along_curve, "__kwdefaults__", {"piece_bytes": 100_000}):
        table = table.cluster()
    assert of(table) == counts_before
    files = table.table_head.all_files()
    spans = sorted(zip(files["curve_low"].to_pylist(), files["curve_high"].to_pylist(), strict=True))
    assert all(span[1] <= two[0] for span, two in zip(spans, spans[1:], strict=False))


def test_rows_deleted_and_updated_meanwhile_and_a_new_key(catalog: Catalog, table: Table) -> None:
    rewrite = along_curve

    def beside(*args: Any, **more: Any) -> Any:
        yield from rewrite(*args, **more)
        late = other_table(catalog).delete("id < 100")
        late.update({"pad": "'late'"}, "id >= 29900")

    version = table.version
    with patch.object(clustering, "along_curve", beside):
        table = table.cluster()
    expected = [row for row in other_table(catalog).scan().to_arrow().to_pylist()]
    assert len(expected) == 29_900 and sum(each["pad"] == "late" for each in expected) == 100
    kinds = Counter(row["_change_type"] for row in table.changes(version + 1).to_arrow().to_pylist())
    assert kinds == {"delete": 200, "insert": 100}
    assert Catalog(catalog.warehouse).load_table("t", version=version).scan().to_arrow().num_rows == 30_000
    counts_before = of(table)
    table = table.alter([{"change": "set-clustering", "columns": [["id"], ["part"]]}])
    while True:
        finished_table = table.cluster(limit_bytes=500_000)
        if finished_table.version == table.version:
            break
        table = finished_table
    assert of(table) == counts_before and len(table.plan("id = 15000")) <= len(table.plan()) // 2


def test_new_values_beyond_all_boundaries_get_boundaries_and_old_files_stay(catalog: Catalog) -> None:
    table = items(catalog)
    chance = random.Random(6)
    for number in range(4):
        table = table.append(rows(4_000, chance, number * 4_000))
    table = table.cluster()
    first = table.metadata.ranks
    assert first is not None
    later = rows(4_000, chance, 90_000)
    days = [DAY + dt.timedelta(days=2_000 + chance.randrange(300)) for _ in range(4_000)]
    table = table.append(later.set_column(1, "day", pa.array(days, pa.date32())))
    kept_rows = set(table.plan("day < DATE'2026-12-31'")["path"].to_pylist())
    table = table.cluster()
    second = table.metadata.ranks
    assert second is not None and second.generation > second.first == first.generation
    assert kept_rows <= set(table.plan()["path"].to_pylist()), "what has an order of older boundaries waits"
    assert len(table.plan("day = DATE'2029-08-01'")) <= 4
    assert table.cluster().version == table.version


def test_boundaries_of_a_clone_follow_those_of_its_source(catalog: Catalog, table: Table) -> None:
    """Its versions begin with 1 again, while its files have places by boundaries of the source."""
    table = table.cluster()
    assert table.metadata.ranks is not None
    catalog.clone("t", "c")
    later = rows(20_000, random.Random(8), 90_000)
    later = later.set_column(
        1, "day", pa.array([DAY + dt.timedelta(days=2_000 + n % 99) for n in range(20_000)])
    )
    clone = catalog.load_table("c").append(later).cluster()
    ranks = clone.metadata.ranks
    assert ranks is not None and ranks.generation == table.metadata.ranks.generation + 1
    assert ranks.first == table.metadata.ranks.first
    assert clone.scan().to_arrow().num_rows == 50_000 and clone.cluster().version == clone.version


@pytest.mark.parametrize("partitioned", [False, True])
def test_what_is_expected_comes_true(catalog: Catalog, partitioned: bool) -> None:
    """Of a table without boundaries, with runs of a curve, with values beyond its boundaries; and with a limit."""
    chance = random.Random(12)
    by = [{"transform": "bucket", "args": [2], "column": ["id"]}] if partitioned else []
    table = items(catalog, partition_by=by)
    for number in range(6):
        table = table.append(rows(5_000, chance, number * 5_000))

    def clustered_table(table: Table, **how: Any) -> Table:
        expected = table.expected_of_clustering(**how)
        assert other_table(catalog).version == table.version, "nothing is changed, or read but metadata"
        current_table = table.cluster(**how)
        history = [
            entry
            for entry in current_table.history()
            if entry.version > table.version and entry.operation == "compact"
        ]
        assert expected.read_bytes == rewritten(current_table, table.version)
        assert expected.read_files == sum(int(entry.details["removed_files"]) for entry in history)
        removed_rows = set(table.plan()["path"].to_pylist()) - set(current_table.plan()["path"].to_pylist())
        assert set(expected.paths) == removed_rows
        total = sum(int(entry.details["added_files"]) for entry in history)
        # Rows take another size in their new order.
        assert 0.6 * total <= expected.written_files <= 2 * total
        assert abs(expected.overlap_after - overlap(current_table)) < 0.3
        assert abs(engine.clustering_overlap(current_table) - overlap(current_table)) < 0.3
        if history:
            assert expected.new_boundaries == (current_table.version > table.version + len(history))
        assert expected.is_left == bool(
            current_table.expected_of_clustering(full=bool(how.get("full"))).read_files
        )
        return current_table

    table = clustered_table(table)
    assert clustered_table(table).version == table.version
    for number in range(4):
        table = table.append(rows(500, chance, 90_000 + number * 500))
    expected_before = table.expected_of_clustering(full=True)
    assert [key.column for key in expected_before.keys] == ["day", "part"]
    assert all(key.after < key.before for key in expected_before.keys)
    assert abs(expected_before.overlap_before - overlap(table)) < 0.3
    table = clustered_table(table, full=True)
    later = rows(4_000, chance, 200_000)
    days = [DAY + dt.timedelta(days=2_000 + chance.randrange(300)) for _ in range(4_000)]
    table = clustered_table(table.append(later.set_column(1, "day", pa.array(days, pa.date32()))))


def test_a_limit_of_one_byte_does_little_at_a_time_and_comes_to_an_end(table: Table) -> None:
    counts_before, version, calls = of(table), table.version, 0
    while table.expected_of_clustering(limit_bytes=1).is_left or table.expected_of_clustering().read_files:
        calls += 1
        expected = table.expected_of_clustering(limit_bytes=1)
        current_table = table.cluster(limit_bytes=1)
        assert expected.read_bytes == rewritten(current_table, table.version) > 0
        table = current_table
        assert calls < 60
    assert of(table) == counts_before and rewritten(table, version) < 12 * table.size_bytes
    assert table.cluster().version == table.version


def test_a_table_without_a_key_and_limits_that_make_no_sense(catalog: Catalog) -> None:
    plain = catalog.create_table("plain", SCHEMA)
    with pytest.raises(InvalidInput, match="no columns to be clustered by: name some first"):
        plain.cluster()
    with pytest.raises(InvalidInput, match="no columns to be clustered by: name some first"):
        plain.expected_of_clustering()
    empty = items(catalog)
    assert empty.cluster().version == empty.version
    assert empty.expected_of_clustering().read_files == 0
    with pytest.raises(InvalidInput, match="give more than 0"):
        empty.cluster(limit_bytes=0)


def test_a_key_that_is_dropped_while_clustering_runs_ends_it_and_loses_nothing(
    catalog: Catalog, table: Table
) -> None:
    counts_before = of(table)
    rewrite = along_curve

    def beside(*args: Any, **more: Any) -> Any:
        yield from rewrite(*args, **more)
        late = other_table(catalog)
        if late.metadata.clustering:
            late = late.alter([{"change": "set-clustering", "columns": []}])
            late.alter([{"change": "delete-column", "name": ["part"]}])

    with (
        patch.object(clustering, "along_curve", beside),
        pytest.raises(DoneInPart, match="were changed meanwhile"),
    ):
        table.cluster()
    remaining_rows = other_table(catalog).scan().to_arrow().to_pylist()
    assert Counter(each["id"] for each in remaining_rows) == Counter(
        element[0] for element in counts_before.elements()
    )


def test_branches_and_partitions(catalog: Catalog) -> None:
    table = items(catalog, partition_by=[{"transform": "bucket", "args": [2], "column": ["id"]}])
    chance = random.Random(7)
    for number in range(4):
        table = table.append(rows(3_000, chance, number * 3_000))
    with pytest.raises(InvalidInput, match="cluster the table first"):
        table.create_branch("b")
        on_branch(catalog).cluster()
    with pytest.raises(InvalidInput, match="cluster the table first"):
        on_branch(catalog).expected_of_clustering()
    counts_before, branch = of(table), on_branch(catalog).delete("id = 5")
    table = table.cluster()
    assert of(table) == counts_before
    branch = branch.cluster()
    assert branch.scan().to_arrow().num_rows == 11_999 and of(other_table(catalog)) == counts_before


def test_plans_are_pure_and_small_files_wait_where_asked(table: Table) -> None:
    table = table.cluster()
    metadata, files = table.metadata, table.table_head.all_files()
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    assert curve is not None
    goal = planning.ClusteringTarget(target_size_bytes=65_536, limit_bytes=1 << 40, fresh_min=3)
    found, groups = planning.plan_clustering(files, metadata, curve, goal, until=table.version)
    assert not groups and not found.num_rows


def test_one_commit_serves_many_partitions_and_upkeep_says_and_does_it(catalog: Catalog) -> None:
    table = items(catalog, partition_by=[{"transform": "bucket", "args": [16], "column": ["id"]}])
    chance = random.Random(11)
    for number in range(8):
        table = table.append(rows(800, chance, number * 800))
    counts_before, version = of(table), table.version
    (advice,) = [advice_item for advice_item in table.health().advice if advice_item.action == "cluster"]
    assert (advice.level, advice.command, advice.reads_files) == ("should", "lakelog cluster t", 128)
    assert advice.sql == "CALL lake.system.cluster(table => '`t`')" and not plan_upkeep(catalog)[0].compacts
    (due,) = catalog.maintain("t", dry_run=True)
    assert due.compacted.read_files == 128 and other_table(catalog).version == version
    (done,) = catalog.maintain("t")
    table = table.refresh()
    assert (done.compacted.read_files, done.compacted.written_files) == (128, 16)
    assert table.version == version + 2 and of(table) == counts_before, "boundaries, and one commit for all"
    assert not [
        advice_item for advice_item in table.health().advice if advice_item.action in ("cluster", "compact")
    ]
    assert plan_upkeep(catalog) == []
    # What is deleted is the compaction's, which keeps the order.
    table = table.delete("day < DATE'2025-06-01'")
    (done,) = catalog.maintain("t")
    assert done.compacted.deleted_rows > 0
    assert table.refresh().table_head.all_files()["curve_low"].null_count == 0
    first = other_table(catalog)
    for number in range(8):
        first = first.append(rows(200, chance, 90_000 + number * 200))
    version, kept_counts = first.version, of(first)
    first = first.cluster("day >= DATE'2024-01-01'", full=True)
    assert of(first) == kept_counts and first.version == version + 1
    assert first.file_count == 16, "of each partition one that overlaps no other"
