from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from lakelog.catalog.core.files.data_file import (
    ColumnStats,
    DataFile,
    RemovedFile,
    check_files,
    decode_files,
    decode_removed,
    encode_files,
    encode_removed,
    files_from_arrow,
    files_to_arrow,
    removed_file,
)
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.file_tables import LONG, tiered
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifests import ManifestSet
from lakelog.catalog.core.schema.partitioning import PartitionSpec, spec_from_transforms
from lakelog.catalog.core.schema.schema import Schema, assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.log.errors import FormatError, InvalidInput

SCHEMA = assign_ids([Field(name="a", type=AtomicType("long")), Field(name="d", type=AtomicType("date"))])
SPEC = spec_from_transforms(["d"], SCHEMA)


def a_file(number: int, **changes: object) -> DataFile:
    values: dict[str, object] = {
        "path": f"data/w-{number:05d}.parquet", "size_bytes": 100, "rows": 10, "partition": {1000: number},
        "stats": {1: ColumnStats(nulls=0, min=number, max=number + 5)}, "write_id": "w",
    }  # fmt: skip
    return DataFile(**(values | changes))  # type: ignore[arg-type]


def grown(count: int, every: int) -> tuple[FileSet, dict[str, bytes], list[int]]:
    """Return a set that grew file by file with a dump after `every` files, all objects, and the size of each dump."""
    files, objects, numbers = FileSet.empty(), dict[str, bytes](), list[int]()
    for number in range(count):
        files = files.added([a_file(number)], SCHEMA, [SPEC])
        if number % every == every - 1:
            _, blobs, kept = files.dump(number)
            files.stored(kept)
            objects |= blobs
            numbers.append(sum(decode_files(blob).num_rows for blob in blobs.values()))
    return files, objects, numbers


def test_manifests_are_few_and_entries_are_rewritten_a_logarithmic_number_of_times() -> None:
    files, _, numbers = grown(20_000, 100)
    root, blobs, _ = files.dump(20_001)
    assert not blobs
    assert len(root.manifests) <= 9
    assert sum(numbers) <= 20_000 * 9
    # Few of them write much, and none all there is.
    assert len([size for size in numbers if size > 4_000]) <= 4 and max(numbers) <= 15_000


def test_manifests_that_are_not_in_memory_are_left_alone_unless_they_can_be_read() -> None:
    files, objects, _ = grown(200, 100)
    root, _, kept = files.dump(201)
    cold = FileSet.load(root).added([a_file(1000)], SCHEMA, [SPEC])
    alone, _, kept = cold.dump(202)
    merged_root, _, _ = cold.dump(202, lambda names: [objects[name] for name in names])
    assert len(alone.manifests) == len(root.manifests) + 1
    assert len(merged_root.manifests) == 1


def test_planning_a_loaded_set_reads_all_manifests_in_one_round_and_only_once() -> None:
    files, objects, _ = grown(3_000, 1_000)
    rounds: list[Sequence[str]] = []

    def fetch(names: Sequence[str]) -> list[bytes]:
        rounds.append(names)
        return [objects[name] for name in names]

    loaded = FileSet.load(files.dump(3_001)[0])
    assert loaded.table(fetch).num_rows == 3_000
    assert loaded.added([a_file(9_999)], SCHEMA, [SPEC]).table(fetch).num_rows == 3_001
    assert len(rounds) == 1


def test_a_plan_decodes_the_statistics_that_it_looks_at_and_others_once_they_are_needed() -> None:
    stats = {id: ColumnStats(nulls=id, min=id, max=id) for id in (1, 2)}
    files = FileSet.empty().added([a_file(number, stats=stats) for number in range(300)], SCHEMA, [SPEC])
    root, blobs, _ = files.dump(1)
    rounds: list[Sequence[str]] = []

    def fetch(names: Sequence[str]) -> list[bytes]:
        rounds.append(names)
        return [blobs[name] for name in names]

    def columns(files: FileSet, *statistics: int) -> set[str]:
        return {name for chunk in files.chunks(fetch, statistics) for name in chunk.column_names}

    planned_texts, first = {"path", "size", "rows", "spec", "p1000"}, {"nulls1", "lo1", "hi1"}
    second = {"nulls2", "lo2", "hi2"}
    loaded = FileSet.load(root)
    assert columns(loaded) == planned_texts
    assert columns(loaded, 1) == planned_texts | first
    kept_chunk = loaded.chunks(fetch, [1])[0]
    assert loaded.chunks(fetch, [])[0] is kept_chunk
    # Of what follows, too, and what is known of the set before is used.
    removed_files = [RemovedFile(path=a_file(7).path, rows=10, size_bytes=100)]
    after = loaded.removed(removed_files).added([a_file(900, stats=stats)], SCHEMA, [SPEC])
    assert columns(after, 1) == planned_texts | first
    assert sum(chunk.num_rows for chunk in after.chunks(fetch, [1])) == 300
    assert columns(after, 2) == planned_texts | first | second
    table = after.table(fetch)
    assert table.column_names == files.table(fetch).column_names
    assert columns(after, 2) == set(table.column_names)
    assert len(rounds) == 1
    # After a version with all columns comes one with all.
    assert columns(after.added([a_file(901)], SCHEMA, [SPEC]), 1) >= {"write", *second}


def test_values_of_a_column_are_checked_when_it_is_decoded() -> None:
    table = files_to_arrow([a_file(1)], SCHEMA, [SPEC]).append_column("nulls2", pa.array([-1]))
    blobs: dict[str, bytes] = {}
    manifest = Manifest.new(table, 1, 1, blobs)
    files = FileSet(1, 10, 100, ManifestSet((Manifest(manifest.stored),)))
    assert files.chunks(lambda names: [blobs[name] for name in names], [1])[0].num_rows == 1
    with pytest.raises(FormatError, match=f"the manifest {manifest.stored.name}: .* a negative number"):
        files.chunks(lambda names: [blobs[name] for name in names])


def test_recent_files_are_found_in_the_manifests_that_were_written_since() -> None:
    def named_text(number: int) -> str:
        return f"data/{number:020d}-{'a' * 26}-0.parquet"

    files, objects = FileSet.empty(), dict[str, bytes]()
    for version in range(1, 1501):
        files = files.added([a_file(version, path=named_text(version - 1))], SCHEMA, [SPEC])
        if version in (1200, 1310, 1350):
            files = files.removed([removed_file(a_file(version, path=named_text(version - 150)))])
        if version % 20 == 0:
            _, blobs, kept = files.dump(version)
            files.stored(kept)
            objects |= blobs
    root, blobs, _ = files.dump(1500)
    assert not blobs
    files = files.added([a_file(0, path="data/new.parquet")], SCHEMA, [SPEC])
    files = files.removed([removed_file(a_file(1, path=named_text(1499)))])
    read: list[str] = []

    def fetch(names: Sequence[str]) -> list[bytes]:
        read.extend(names)
        return [objects[name] for name in names]

    def found_texts(*paths: str) -> set[str]:
        read.clear()
        cold = FileSet.load(root)
        return {path for table in cold.named(fetch, pa.array(paths)) for path in table["path"].to_pylist()}

    count = len(root.manifests)
    assert found_texts(named_text(1498), named_text(1490)) == {named_text(1498), named_text(1490)}
    assert len(read) - 1 < count
    assert (
        found_texts(named_text(3), named_text(1490)) == {named_text(3), named_text(1490)}
        and len(read) - 1 == count
    )
    # One that was removed, or whose name says less, makes it read all.
    assert found_texts(named_text(1160), named_text(1490)) == {named_text(1490)} and len(read) - 1 == count
    tables = files.named(fetch, pa.array([named_text(1499), "data/new.parquet"]))
    assert [table["path"].to_pylist() for table in tables if table.num_rows] == [["data/new.parquet"]]


def test_long_lists_are_not_copied_to_be_joined() -> None:
    long = pa.table({"path": pa.array([""] * LONG, pa.string())})
    short = long.slice(0, 10)
    first, second, last = tiered([long, long, short, short])
    assert first is long and second is long and last.num_rows == 20


def test_many_removed_files_make_their_manifests_be_rewritten() -> None:
    files, _, _ = grown(8_000, 4_000)
    removed_files = [
        RemovedFile(path=a_file(number).path, rows=10, size_bytes=100) for number in range(3_000)
    ]
    root, _, kept = files.removed(removed_files).dump(8_001)
    assert root.removed == []
    assert sum(manifest.entries for manifest in root.manifests) == 5_000
    few, _, _ = files.removed(removed_files[:500]).dump(8_001)
    assert [list_.entries for list_ in few.removed] == [500]


def test_an_altered_manifest_is_refused() -> None:
    files, objects, _ = grown(100, 100)
    loaded = FileSet.load(files.dump(101)[0])
    with pytest.raises(FormatError, match="altered or truncated"):
        loaded.table(lambda names: [objects[name][:-8] + b"12345678" for name in names])


def test_a_long_chain_of_changes_is_released_without_recursion() -> None:
    files = FileSet.empty()
    for number in range(20_000):
        files = files.added([a_file(number)], SCHEMA, [SPEC])
    files = files.cleared()
    assert files.file_count == 0


def test_statistics_keep_the_type_of_their_time_until_they_meet_wider_ones() -> None:
    wider = Schema(
        fields=(SCHEMA.fields[0], Field(id=2, name="d", physical="d_2", type=AtomicType("timestamp_ntz"))),
        last_id=2,
    )
    day, moment = a_file(1, partition={}, stats={2: ColumnStats(min=1, max=2)}), a_file(2, partition={}, stats={
        2: ColumnStats(min=86_400_000_000, max=86_400_000_000)})  # fmt: skip
    day_first = FileSet.empty().added([day], SCHEMA, ()).added([moment], wider, ())
    moment_first = FileSet.empty().added([moment], wider, ()).added([day], SCHEMA, ())
    for files in (day_first, moment_first):
        table = files.table(lambda names: [])
        assert table["lo2"].type == pa.timestamp("us")
        assert table["lo2"].cast(pa.int64()).to_pylist() == [86_400_000_000, 86_400_000_000]


def test_files_survive_arrow_and_bytes() -> None:
    schema = assign_ids([
        Field(name=name.split("(")[0].replace(" ", "_"), type=AtomicType(name))
        for name in (
            "boolean", "byte", "double", "decimal(30,2)", "string", "binary", "date", "timestamp", "time(6)",
            "interval year to month", "interval day to second",
        )
    ])  # fmt: skip
    values: list[object] = [True, -3, "Infinity", "-12345678901234567890.50", "é", "/w==", -5, -1, 5, 14, -7]
    stats = {
        field.id: ColumnStats(nulls=1, min=value, max=value)  # type: ignore[arg-type]
        for field, value in zip(schema.fields, values, strict=True)
    }
    spec = spec_from_transforms([{"transform": "bucket", "args": [4], "column": ["string"]}, "date"], schema)
    file = DataFile(
        path="data/x", size_bytes=5, rows=7, spec_id=spec.id, partition={1000: 3, 1001: -5}, stats=stats
    )
    assert files_from_arrow(files_to_arrow([file], schema, [spec])) == [file]
    assert files_from_arrow(decode_files(encode_files([file], schema, {spec.id: spec}))) == [file]


def test_removed_files_survive_bytes() -> None:
    files = [RemovedFile(path="data/é", rows=3, size_bytes=9)]
    assert decode_removed(encode_removed(files)) == files


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not of the type int64"):
        files_to_arrow(
            [a_file(1, partition={}, stats={1: ColumnStats(min="x", max="y")})], SCHEMA, [PartitionSpec()]
        )


def test_broken_bytes_are_refused() -> None:
    with pytest.raises(FormatError, match="truncated or altered"):
        decode_files(b"nothing of the kind")
    with pytest.raises(FormatError, match="lacks the columns size"):
        decode_files(encode_files(pa.table({"path": ["x"]}), SCHEMA, ()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": {}}, r"fields \[\], but its spec 0 has the fields \[1000\]"),
        ({"partition": {1000: 1, 1001: 2}}, r"fields \[1000, 1001\]"),
        ({"spec_id": 7}, "partition spec 7"),
        ({"rows": -1}, "-1 rows"),
        ({"partition": {1000: "x"}}, "not of the type date32"),
    ],
)
def test_a_file_that_would_be_read_wrong_is_refused(changes: dict[str, object], message: str) -> None:
    check_files([a_file(1), a_file(2, partition={1000: None})], SCHEMA, [SPEC])
    with pytest.raises(InvalidInput, match=message):
        check_files([a_file(1, **changes)], SCHEMA, [SPEC])


def test_a_file_is_not_added_twice_in_one_commit() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        check_files([a_file(1), a_file(1)], SCHEMA, [SPEC])


@pytest.mark.parametrize("tagged_at", [3, 4, 12])
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_snapshot_of_an_older_version_than_a_tags_was_stored_with_has_no_file_twice(
    tagged_at: int, comes_back: bool
) -> None:
    objects: dict[str, bytes] = {}

    def fetch(names: Sequence[str]) -> list[bytes]:
        return [objects[name] for name in names]

    def dumped_set(files: FileSet, version: int) -> FileSet:
        root, blobs, kept = files.dump(version, fetch)
        objects.update(blobs)
        files.stored(kept)
        return FileSet.load(root)

    tag = FileSet.empty().added([a_file(1), a_file(2)], SCHEMA, [SPEC])
    main = tag.removed([removed_file(a_file(1))]).added([a_file(3)], SCHEMA, [SPEC])
    if comes_back:
        dumped_set(main, tagged_at)
        main = main.added([a_file(1)], SCHEMA, [SPEC])
    # By another thread, which has read a newer version: its snapshot holds the tag's files too.
    dumped_set(tag, tagged_at)
    expected = [a_file(number).path for number in ((1, 2, 3) if comes_back else (2, 3))]
    assert sorted(dumped_set(main, 4).table(fetch)["path"].to_pylist()) == expected
