"""Plans that read the manifests which they need, by the bounds in a snapshot."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
import pytest

from lakelog.catalog.core.files import file_set, manifest_bounds, manifests
from lakelog.catalog.core.files.arrow_lists import encode_table
from lakelog.catalog.core.files.data_file import (
    ColumnStats,
    DataFile,
    files_from_arrow,
    files_to_arrow,
    removed_file,
)
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import (
    bounds_of,
    bounds_table,
    decode_bounds,
    encode_bounds,
    holds,
)
from lakelog.catalog.core.files.manifests import ManifestSet
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.scan_plan import choosing, plan_scan
from lakelog.catalog.core.schema.partitioning import PartitionSpec, spec_from_transforms
from lakelog.catalog.core.schema.predicate import Column, Predicate, literal
from lakelog.catalog.core.schema.schema import Schema, assign_ids
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.log.errors import FormatError

SCHEMA = assign_ids([Field(name="n", type=AtomicType("long")), Field(name="day", type=AtomicType("integer"))])
UNPARTITIONED = PartitionSpec()
SPEC = spec_from_transforms(["day"], SCHEMA)
DAY = SPEC.fields[0].id


@pytest.fixture(autouse=True)
def manifests_of_few_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", 10)
    monkeypatch.setattr(manifests, "LEAF_ENTRIES", 100)
    monkeypatch.setattr(manifests, "RUN_LIMIT", 1000)
    yield


def a_file(number: int) -> DataFile:
    """The files of ten days, each next to none of its own."""
    stats = {1: ColumnStats(nulls=0, min=number, max=number + 1)}
    return DataFile(
        path=f"data/{number}",
        size_bytes=1,
        rows=10,
        spec_id=SPEC.id,
        partition={DAY: number % 10},
        stats=stats,
    )


class Stored:
    """A set of files that was written, and each request for a part of it."""

    def __init__(self, files: FileSet) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[Sequence[str]] = []
        self.files = self.loaded(files, 1)

    def loaded(self, files: FileSet, version: int) -> FileSet:
        root, blobs, kept = files.dump(version, self.fetch)
        self.objects |= blobs
        bounds = decode_bounds(encode_bounds(list(kept.bounds().values())))
        self.asked.clear()
        return FileSet.load(root, bounds=bounds)

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        self.asked.append(names)
        return [self.objects[name] for name in names]

    def paths(self, files: FileSet, op: str, column: str, *values: int) -> set[str]:
        bound_condition = bind(Predicate(op, (Column((column,)), *map(literal, values))), SCHEMA)
        planned_rows = plan_scan(files, self.fetch, bound_condition, [SPEC])["path"].to_pylist()
        assert len(set(planned_rows)) == len(planned_rows)
        return set(planned_rows)


def many() -> FileSet:
    return FileSet.empty().added([a_file(number) for number in range(1000)], SCHEMA, [SPEC])


def of_day(day: int, numbers: range = range(1000)) -> set[str]:
    return {a_file(number).path for number in numbers if number % 10 == day}


def test_a_day_is_in_one_manifest_however_its_files_came() -> None:
    stored_objects = Stored(many())
    assert stored_objects.paths(stored_objects.files, "=", "day", 3) == of_day(3)
    assert [len(names) for names in stored_objects.asked] == [1]
    assert stored_objects.paths(stored_objects.files, "<", "day", 2) == of_day(0) | of_day(1)
    assert [len(names) for names in stored_objects.asked] == [1, 2]
    assert stored_objects.paths(stored_objects.files, "=", "day", 77) == set()
    assert len(stored_objects.asked) == 2, "what is known is not read, and what is certainly nowhere neither"
    assert len(stored_objects.paths(stored_objects.files, ">=", "day", 0)) == 1000
    assert [len(names) for names in stored_objects.asked] == [1, 2, 7]


def test_what_came_since_and_what_is_gone_is_seen_beside_few_manifests() -> None:
    stored_objects = Stored(many())
    files, expected = stored_objects.files, of_day(3)
    for number in range(3, 63, 10):
        # Files of the manifests are removed, new ones come and go, and some come back.
        files = files.removed([removed_file(a_file(number))])
        assert stored_objects.paths(files, "=", "day", 3) == expected - {a_file(number).path}
        files = files.added([a_file(1000 + number)], SCHEMA, [SPEC])
        expected = expected - {a_file(number).path} | {a_file(1000 + number).path}
        assert stored_objects.paths(files, "=", "day", 3) == expected
        if number % 20 == 3:
            removed_a_file = a_file(1000 + number)
            files = files.removed([removed_file(removed_a_file)]).added([a_file(number)], SCHEMA, [SPEC])
            expected = expected - {removed_a_file.path} | {a_file(number).path}
            assert stored_objects.paths(files, "=", "day", 3) == expected
    assert [len(names) for names in stored_objects.asked] == [1]
    again = stored_objects.loaded(files, 2)
    assert stored_objects.paths(again, "=", "day", 3) == expected
    assert stored_objects.paths(stored_objects.files, "=", "day", 3) == of_day(3), (
        "an older version stays as it was"
    )


def test_a_plan_of_a_set_whose_manifests_were_just_written_starts_from_them() -> None:
    files = many()
    later = files.added([a_file(1003)], SCHEMA, [SPEC])
    stored_objects = Stored(files)
    assert stored_objects.paths(later, "=", "day", 3) == of_day(3, range(1004))
    root, blobs, kept = files.dump(2, stored_objects.fetch)
    stored_objects.objects |= blobs
    files.stored(kept)
    newest = later.added([a_file(1013)], SCHEMA, [SPEC])
    assert stored_objects.paths(newest, "=", "day", 3) == of_day(3, range(1014))
    assert stored_objects.paths(later, "=", "day", 3) == of_day(3, range(1004))


def test_a_dump_has_its_bounds_though_another_thread_dumps_and_stores_the_set_meanwhile() -> None:
    files = many()
    root, _, kept = files.dump(2)
    files.stored(files.dump(2)[2])
    assert kept.bounds().keys() == {manifest.name for manifest in root.manifests} != set()


@pytest.mark.parametrize("where", ["chosen", "_since_manifests", "_since"])
def test_manifests_that_another_thread_stores_meanwhile_hide_no_file(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_objects = Stored(many())
    before = stored_objects.files.added([a_file(1003)], SCHEMA, [SPEC]).removed([removed_file(a_file(3))])
    files = before.added([a_file(1013)], SCHEMA, [SPEC])
    _, blobs, kept = before.dump(2, stored_objects.fetch)
    stored_objects.objects |= blobs
    owner = ManifestSet if where == "chosen" else FileSet
    real = getattr(owner, where)

    def meanwhile(self: object, *arguments: object) -> object:
        before.stored(kept)
        return real(self, *arguments)

    monkeypatch.setattr(owner, where, meanwhile)
    assert stored_objects.paths(files, "=", "day", 3) == of_day(3, range(1014)) - {a_file(3).path}


def test_a_run_is_merged_and_written_in_order_until_it_is_long() -> None:
    stored_objects = Stored(many())
    more = stored_objects.files.added([a_file(number) for number in range(1000, 1600)], SCHEMA, [SPEC])
    two_runs = stored_objects.loaded(more, 2)
    assert stored_objects.paths(two_runs, "=", "day", 3) == of_day(3, range(1600))
    assert [len(names) for names in stored_objects.asked] == [3], (
        "of 16: one of the first run, two of the other"
    )
    short = FileSet.empty().added([a_file(number) for number in range(300)], SCHEMA, [SPEC])
    merged_stored_objects = Stored(short)
    longer = merged_stored_objects.files.added([a_file(number) for number in range(300, 700)], SCHEMA, [SPEC])
    one_run = merged_stored_objects.loaded(longer, 2)
    assert merged_stored_objects.paths(one_run, "=", "day", 3) == of_day(3, range(700))
    assert sum(map(len, merged_stored_objects.asked)) <= 2
    assert len({entry.stored.seq for entry in one_run.stored_in().manifests.entries}) == 1


def test_files_are_looked_for_in_many_manifests_once_and_then_all_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_set, "FEW_MANIFESTS", 3)
    whole_texts: list[str] = []
    real = Manifest.columns

    def columns(self: Manifest, statistics: Collection[int] | None = None, *, keep: bool = True) -> pa.Table:
        whole_texts.append(self.stored.name)
        return real(self, statistics, keep=keep)

    stored_objects = Stored(many())
    files = stored_objects.loaded(
        stored_objects.files.removed([removed_file(a_file(number)) for number in (505, 7)]), 2
    )
    monkeypatch.setattr(Manifest, "columns", columns)
    files = files.removed([removed_file(a_file(504))]).added([a_file(499 + 1000)], SCHEMA, [SPEC])
    # Of each number there are files in all days, so that bounds of numbers leave out no manifest.
    bound_condition = bind(
        Predicate("IN", (Column(("n",)), *map(literal, (500, 502, 504, 506, 1499)))), SCHEMA
    )
    rows = plan_scan(files, stored_objects.fetch, bound_condition, [SPEC])["path"].to_pylist()
    assert set(rows) == {a_file(number).path for number in (499, 500, 501, 502, 503, 506, 1499)}
    entries = {entry.stored.name for entry in files.stored_in().manifests.entries}
    assert len(entries) == 10 and entries.isdisjoint(whole_texts)
    assert len(set(rows)) == len(rows) == 7
    assert stored_objects.paths(files, "=", "n", 505) == set()
    assert entries < set(whole_texts)
    assert [len(names) for names in stored_objects.asked] == [11]


def test_files_of_some_paths_are_decoded_alone() -> None:
    stored_objects = Stored(many())
    files = stored_objects.loaded(stored_objects.files.removed([removed_file(a_file(7))]), 2)
    files = files.removed([removed_file(a_file(8)), removed_file(a_file(9))]).added(
        [a_file(8)], SCHEMA, [SPEC]
    )
    array = pa.array([a_file(number).path for number in (3, 7, 8, 9, 4000)])
    found_files = [
        file for table in files.named(stored_objects.fetch, array) for file in files_from_arrow(table)
    ]
    assert sorted(file.path for file in found_files) == ["data/3", "data/8"]
    assert all(file == a_file(int(file.path.removeprefix("data/"))) for file in found_files)
    assert files._tables is None and [len(names) for names in stored_objects.asked] == [11]
    again = stored_objects.loaded(files, 3).named(stored_objects.fetch, array)
    assert sorted(path for table in again for path in table["path"].to_pylist()) == ["data/3", "data/8"]


def test_all_columns_of_the_files_that_a_filter_may_match(monkeypatch: pytest.MonkeyPatch) -> None:
    stored_objects = Stored(many())
    bound_condition = bind(Predicate("=", (Column(("day",)), literal(3))), SCHEMA)
    for few in (16, 0):
        monkeypatch.setattr(file_set, "FEW_MANIFESTS", few)
        chunks = stored_objects.files.chunks(stored_objects.fetch, None, choosing(bound_condition, [SPEC]))
        files = [file for table in chunks for file in files_from_arrow(table)]
        expected = [a_file(number) for number in range(1000) if number % 10 == 3]
        assert {file.path: file for file in files} == {file.path: file for file in expected}
    assert [len(names) for names in stored_objects.asked] == [1]


def test_a_snapshot_without_bounds_is_read_whole() -> None:
    stored_objects = Stored(many())
    root, _, _ = stored_objects.files.dump(2)
    assert stored_objects.paths(FileSet.load(root), "=", "day", 3) == of_day(3)
    assert [len(names) for names in stored_objects.asked] == [10]


def test_small_manifests_have_no_bounds_and_wide_entries_make_manifests_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = FileSet.empty().added([a_file(number) for number in range(9)], SCHEMA, [SPEC])
    _, _, kept = files.dump(1)
    assert encode_bounds(list(kept.bounds().values())) is None and kept.bounds() == {}
    monkeypatch.setattr(manifests, "LEAF_BYTES", many().table(lambda names: []).nbytes // 50)
    root, _, _ = many().dump(1)
    assert len(root.manifests) == 50


def test_bounds_that_leave_out_an_entry_are_noticed() -> None:
    files = files_to_arrow([a_file(number) for number in range(20)], SCHEMA, [SPEC])
    known = bounds_of("m", files)
    assert known is not None
    assert holds(known.table, files) and holds(known.table, files.slice(3, 5))
    assert holds(known.table.drop_columns(["lo1", "hi1", "may1"]), files), (
        "what is not known leaves out nothing"
    )
    for name, value in (
        ("lo1", 1),
        ("hi1", 19),
        (f"plo{DAY}", 1),
        (f"phi{DAY}", 8),
        ("may1", 3),
        (f"pmay{DAY}", 0),
    ):
        at = known.table.column_names.index(name)
        wrong = pa.array([value], known.table.schema.field(name).type)
        assert not holds(known.table.set_column(at, name, wrong), files), name
    at = known.table.column_names.index("specs")
    assert not holds(known.table.set_column(at, "specs", pa.array(["7"])), files)


def test_an_entry_of_which_nothing_is_known_widens_the_bounds() -> None:
    unknown = DataFile(path="data/x", size_bytes=1, rows=10, spec_id=SPEC.id, partition={DAY: None})
    files = FileSet.empty().added([*(a_file(number) for number in range(300)), unknown], SCHEMA, [SPEC])
    stored_objects = Stored(files)
    bound_condition = bind(Predicate("=", (Column(("n",)), literal(-5))), SCHEMA)
    assert plan_scan(stored_objects.files, stored_objects.fetch, bound_condition, [SPEC])[
        "path"
    ].to_pylist() == ["data/x"]
    choose = choosing(bind(Predicate("IS_NULL", (Column(("day",)),)), SCHEMA), [SPEC])
    assert choose is not None
    every = [
        entry.bounds
        for entry in stored_objects.files.stored_in().manifests.entries
        if entry.bounds is not None
    ]
    assert choose.manifests(bounds_table(every)).to_pylist().count(True) == 1


def is_needed(files: Sequence[DataFile], schema: Schema, spec: PartitionSpec, op: str, value: object) -> bool:
    """Whether a manifest of `files` is needed for a filter on the first column."""
    known = bounds_of("m", files_to_arrow(list(files) * 10, schema, [spec]))
    choice = choosing(bind(Predicate(op, (Column((schema.fields[0].name,)), literal(value))), schema), [spec])
    assert known is not None and choice is not None
    [found] = choice.manifests(known.table).to_pylist()
    return bool(found)


def test_days_of_partitions_say_between_which_moments_all_rows_are() -> None:
    schema = assign_ids([Field(name="at", type=AtomicType("timestamp"))])
    spec = spec_from_transforms([{"transform": "day", "args": [], "column": ["at"]}], schema)
    [field] = spec.fields
    days = [
        DataFile(path=f"data/{day}", size_bytes=1, rows=1, spec_id=spec.id, partition={field.id: day})
        for day in (-3, 2)
    ]
    day = dt.timedelta(days=1)
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert is_needed(days, schema, spec, "=", start + 2.9 * day) and is_needed(
        days, schema, spec, "=", start - 3 * day
    )
    assert not is_needed(days, schema, spec, "=", start + 3 * day)
    assert not is_needed(days, schema, spec, "<", start - 3 * day)


def test_equal_bounds_of_long_texts_have_no_end() -> None:
    schema = assign_ids([Field(name="s", type=AtomicType("string"))])

    def a_file(number: int, low: str, high: str) -> DataFile:
        stats = {1: ColumnStats(nulls=0, min=low, max=high)}
        return DataFile(path=f"data/{number}", size_bytes=1, rows=4, stats=stats)

    cut, short = "b" * 32, "a" * 5
    assert is_needed([a_file(1, cut, cut), a_file(2, short, short)], schema, UNPARTITIONED, "=", "b" * 40)
    assert not is_needed([a_file(1, "b", "b"), a_file(2, short, short)], schema, UNPARTITIONED, "=", "b" * 40)


def test_a_nan_in_one_file_is_one_in_its_manifest() -> None:
    schema = assign_ids([Field(name="x", type=AtomicType("double"))])
    nan = float("nan")

    def a_file(number: int, **known: object) -> DataFile:
        stats = {1: ColumnStats(nulls=0, **known)}  # type: ignore[arg-type]
        return DataFile(path=f"data/{number}", size_bytes=1, rows=4, stats=stats)

    plain = a_file(1, min=1.0, max=2.0)
    for other_a_file, expected in (
        (a_file(2, min=1.0, max=2.0), False),
        (a_file(2, min=1.0, max=2.0, nans=1), True),
        (a_file(2, nans=4), True),
        (a_file(2), True),
    ):
        assert is_needed([plain, other_a_file], schema, UNPARTITIONED, "=", nan) is expected
        assert is_needed([plain, other_a_file], schema, UNPARTITIONED, ">", 5.0) is expected
        assert is_needed([plain, other_a_file], schema, UNPARTITIONED, "=", 1.5)
    # One that holds nothing else needs no bounds.
    assert not is_needed([plain, a_file(2, nans=4)], schema, UNPARTITIONED, "=", 0.5)
    assert is_needed([plain, a_file(2)], schema, UNPARTITIONED, "=", 0.5)

    spec = spec_from_transforms(["x"], schema)
    values: list[float | str] = ["NaN", 1.0, 2.0]
    files = [
        DataFile(
            path=f"data/{value}", size_bytes=1, rows=1, spec_id=spec.id, partition={spec.fields[0].id: value}
        )
        for value in values
    ]
    assert is_needed(files, schema, spec, "=", nan) and is_needed(files, schema, spec, ">", 5.0)
    assert not is_needed(files[1:], schema, spec, "=", nan) and not is_needed(
        files[1:], schema, spec, ">", 5.0
    )


def test_buckets_between_those_of_a_manifest_are_not_left_out() -> None:
    schema = assign_ids([Field(name="n", type=AtomicType("long"))])
    spec = spec_from_transforms([{"transform": "bucket", "args": [16], "column": ["n"]}], schema)
    partition = spec.fields[0].id

    def of_buckets(*buckets: int) -> list[DataFile]:
        return [
            DataFile(
                path=f"data/{bucket}", size_bytes=1, rows=1, spec_id=spec.id, partition={partition: bucket}
            )
            for bucket in buckets
        ]

    bucket = apply_transform(spec.fields[0].transform, pa.array([34], pa.int64()), AtomicType("long"))[
        0
    ].as_py()
    assert 0 < bucket < 15
    assert is_needed(of_buckets(0, 15), schema, spec, "=", 34) and is_needed(
        of_buckets(bucket), schema, spec, "=", 34
    )
    assert not is_needed(of_buckets(*range(bucket)), schema, spec, "=", 34)


def test_files_of_another_spec_are_not_held_to_be_in_a_partition() -> None:
    mixed_a_files = [a_file(1), DataFile(path="data/x", size_bytes=1, rows=10, spec_id=SPEC.id + 1)]
    other_spec = PartitionSpec(id=SPEC.id + 1)
    known = bounds_of("m", files_to_arrow(mixed_a_files * 10, SCHEMA, [SPEC, other_spec]))
    choice = choosing(bind(Predicate("=", (Column(("day",)), literal(7))), SCHEMA), [SPEC, other_spec])
    assert known is not None and choice is not None
    assert choice.manifests(known.table).to_pylist() == [True]


def test_numbers_that_wrapped_around_are_in_no_range_of_truncated_ones() -> None:
    """The lowest numbers are truncated to ones near the top, so that they are not where their partitions say."""
    lowest, top = -(2**31), 2**31 - 6
    spec = spec_from_transforms([{"transform": "truncate", "args": [10], "column": ["day"]}], SCHEMA)
    partition = spec.fields[0].id
    files = [
        DataFile(path=f"data/{value}", size_bytes=1, rows=1, spec_id=spec.id, partition={partition: value})
        for value in (0, 10, 20, top)
    ]
    known = bounds_of("m", files_to_arrow([*files] * 3, SCHEMA, [spec]))
    assert known is not None
    for value, expected in ((lowest, True), (5, True)):
        choose = choosing(bind(Predicate("=", (Column(("day",)), literal(value))), SCHEMA), [spec])
        assert choose is not None and choose.manifests(known.table).to_pylist() == [expected]
    same = bounds_of("m", files_to_arrow(files[1:2] * 12, SCHEMA, [spec]))
    choose = choosing(bind(Predicate("=", (Column(("day",)), literal(20))), SCHEMA), [spec])
    assert same is not None and choose is not None and choose.manifests(same.table).to_pylist() == [False]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a"]}, "lack specs"),
        ({"name": ["a", "a"], "specs": ["0", "0"]}, "a manifest twice"),
        ({"name": ["a"], "specs": ["0;"]}, "no numbers"),
        ({"name": ["a", "b"], "specs": ["0", None]}, "no name or specs"),
        ({"name": ["a"], "specs": ["0"], "lo": [1]}, "unknown columns lo"),
        ({"name": ["a"], "specs": ["0"], "may1": [1]}, "no int8"),
        ({"name": [1], "specs": ["0"]}, "no string"),
    ],
)
def test_forged_bounds_are_refused(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_bounds(base64.b64encode(encode_table(pa.table(columns))).decode())


@pytest.mark.parametrize("text", ["?", "AAAA", "QUJD"])
def test_text_that_holds_no_bounds_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        decode_bounds(text)


def test_a_manifest_of_another_length_than_its_snapshot_says_is_refused() -> None:
    stored_objects = Stored(many())
    root, _, _ = stored_objects.files.dump(2)
    first = msgspec.structs.replace(root.manifests[0], entries=99)
    root = replace(root, manifests=[first, *root.manifests[1:]])
    with pytest.raises(FormatError, match="has 100 entries, and its snapshot says 99"):
        FileSet.load(root).table(stored_objects.fetch)
