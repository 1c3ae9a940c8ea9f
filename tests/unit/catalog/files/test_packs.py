"""Packs: plans read parts of leaves by ranges, and find what a plan over all decoded entries finds."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples

from lakelog.catalog.core.files import file_set, manifest_bounds, manifests, overlaps
from lakelog.catalog.core.files.arrow_lists import encode_table
from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, files_from_arrow, removed_file
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.leaves import Leaf
from lakelog.catalog.core.files.manifest_bounds import decode_bounds, encode_bounds
from lakelog.catalog.core.files.manifest_parts import (
    GAP_BYTES,
    Kept,
    Part,
    decode_directories,
    encode_directories,
    hash_of,
    ranges_of,
)
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.scan_plan import count_rows, plan_scan
from lakelog.catalog.core.schema.partitioning import spec_from_transforms
from lakelog.catalog.core.schema.predicate import Column, Predicate, literal
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.log import BlobRange
from lakelog.log.errors import FormatError

SCHEMA = assign_ids(
    [Field(name=name, type=AtomicType("long")) for name in ("n", "m")]
    + [Field(name="day", type=AtomicType("integer"))]
)
SPEC = spec_from_transforms(["day"], SCHEMA)
DAY = SPEC.fields[0].id


@pytest.fixture(scope="module", autouse=True)
def small_packs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_bounds, "BOUNDED_FROM", 1)
        patch.setattr(manifests, "PACKED_FROM", 20)
        patch.setattr(manifests, "PACK_LEAF_ENTRIES", 8)
        patch.setattr(manifests, "RUN_LIMIT", 200)
        patch.setattr(manifests, "ALWAYS_MERGED_BELOW", 10)
        patch.setattr(overlaps, "DEPTH_MAX", 2)
        yield


def a_file(number: int) -> DataFile:
    low = number * 7919 % 100
    stats = {1: ColumnStats(nulls=0, min=number, max=number + 1)}
    if number % 5:
        stats[2] = ColumnStats(nulls=number % 3, min=low, max=low + 3)
    return DataFile(
        path=f"data/{number}",
        size_bytes=1,
        rows=10,
        spec_id=SPEC.id,
        partition={DAY: number % 10},
        stats=stats,
        first_row=number * 10 if number % 2 else None,
    )


class Stored:
    """Sets that were written, and what was asked for."""

    def __init__(self, kept: Kept | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[list[str]] = []
        self.kept = Kept() if kept is None else kept

    def stored(self, files: FileSet, version: int) -> FileSet:
        """Return the set as a client loads it that did not write it."""
        root, blobs, own = files.dump(version, self.fetch, (), self.kept)
        self.objects |= blobs
        self.root, self.own = root, own
        self.asked.clear()
        return self.loaded()

    def loaded(self) -> FileSet:
        bounds = decode_bounds(encode_bounds(list(self.own.bounds().values())))
        directories = decode_directories(encode_directories(self.own.directories()))
        return FileSet.load(self.root, bounds=bounds, directories=directories, kept=self.kept)

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        self.asked.append(list(names))
        found = [(each, self.objects[each]) for each in names]
        return [each.of(blob) if isinstance(each, BlobRange) else blob for each, blob in found]

    @property
    def bytes_asked(self) -> int:
        return sum(
            each.size if isinstance(each, BlobRange) else len(self.objects[each])
            for some in self.asked
            for each in some
        )


def condition(op: str, column: str, *values: int) -> Any:
    return bind(Predicate(op, (Column((column,)), *map(literal, values))), SCHEMA)


def added(files: FileSet, numbers: Sequence[int]) -> FileSet:
    return files.added([a_file(number) for number in numbers], SCHEMA, [SPEC])


def nothing(names: Sequence[str]) -> list[bytes]:
    raise AssertionError("what is in memory is not read")


def by_path(tables: Sequence[pa.Table]) -> dict[str, DataFile]:
    return {file.path: file for table in tables for file in files_from_arrow(table)}


def rows_of(planned: pa.Table) -> dict[str, dict[str, Any]]:
    """Return what a plan says of each file, by its path; a column may be missing where it says nothing."""
    rows = planned.to_pylist()
    assert len({row["path"] for row in rows}) == len(rows)
    return {row["path"]: {name: value for name, value in row.items() if value is not None} for row in rows}


@pytest.mark.parametrize("few", [0, 40])
@settings(max_examples=examples(3, full=300))
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0, 3000, 10**9]))
def test_a_plan_by_ranges_is_a_plan_over_all_entries(few: int, seed: int, limit: int) -> None:
    chance, stored, expected = random.Random(seed), Stored(Kept(limit)), dict[int, DataFile]()
    files, plain = FileSet.empty(), FileSet.empty()
    number, gone = 0, list[int]()
    for version in range(1, 9):
        ahead = number + chance.choice((1, 15, 40, 120))
        new = [*range(number, ahead), *chance.sample(gone, len(gone) // 2)]
        number = ahead
        files, plain = added(files, new), added(plain, new)
        expected |= {each: a_file(each) for each in new}
        gone = chance.sample(sorted(expected), min(len(expected) // 2, chance.choice((0, 2, 60))))
        files, plain = (each.removed([removed_file(a_file(at)) for at in gone]) for each in (files, plain))
        expected = {at: file for at, file in expected.items() if at not in gone}
        files = stored.stored(files, version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_set, "FEW_LEAVES", few)
        patch.setattr(file_set, "FEW_MANIFESTS", few)
        for _ in range(3):
            op, column = chance.choice(("=", "<", ">=")), chance.choice(("n", "m", "day"))
            bound = condition(op, column, chance.randrange(number if column == "n" else 100) % 12)
            for files in (stored.loaded(), stored.loaded()):
                patch.setattr(manifests, "SELECTIVE", chance.choice((1, 16)))
                found = plan_scan(files, stored.fetch, bound, [SPEC], statistics=(1, 2))
                wanted = plan_scan(plain, nothing, bound, [SPEC], statistics=(1, 2))
                assert rows_of(found) == rows_of(wanted)
                assert count_rows(files, stored.fetch, bound, [SPEC]) == count_rows(
                    plain, nothing, bound, [SPEC]
                )
    paths = pa.array([a_file(at).path for at in range(0, number, 3)])
    named = {file.path: file for at, file in expected.items() if at % 3 == 0}
    assert by_path(stored.loaded().named(stored.fetch, paths)) == named
    assert by_path(list(stored.loaded().parts(stored.fetch))) == {
        file.path: file for file in expected.values()
    }
    assert by_path(stored.loaded().chunks(stored.fetch)) == {file.path: file for file in expected.values()}
    assert stored.kept.bytes <= limit


def a_pack(count: int = 200) -> tuple[Stored, FileSet]:
    stored = Stored()
    files = stored.stored(added(FileSet.empty(), range(count)), 1)
    return stored, files


def test_a_day_is_one_range_of_each_pack_and_small_beside_it() -> None:
    stored, files = a_pack()
    assert all(isinstance(each, Leaf) for each in files.stored_in().manifests.entries)
    found = plan_scan(files, stored.fetch, condition("=", "day", 3), [SPEC])
    assert found.num_rows == 20
    assert [len(names) for names in stored.asked] == [1]
    assert stored.bytes_asked < len(next(iter(stored.objects.values()))) / 5
    stored.asked.clear()
    plan_scan(stored.loaded(), stored.fetch, condition("=", "day", 3), [SPEC])
    assert stored.asked == [], "what was read for another view is known by its hash"


def test_a_value_is_looked_for_by_the_statistics_of_its_column_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 2)
    stored, files = a_pack()
    columns = list[str]()
    found = plan_scan(files, stored.fetch, condition("=", "m", 50), [SPEC])
    assert 0 < found.num_rows < 100
    for each in files.stored_in().manifests.entries:
        assert isinstance(each, Leaf)
        columns += [kind for kind, part in each.parts.items() if stored.kept.get(part.sha256) is not None]
    assert set(columns) == {"files", "judged", "2"}, "and neither column 1 nor the rest"
    assert len(stored.asked) == 2


@pytest.mark.parametrize("limit", [0, 10**9])
def test_where_bounds_leave_few_leaves_these_are_read_in_one_round(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also where there is no room to keep what was read."""
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored, files = a_pack()
    found = {}
    for selective in (16, 1):
        monkeypatch.setattr(manifests, "SELECTIVE", selective)
        stored.kept = Kept(limit)
        stored.asked.clear()
        found[selective] = rows_of(plan_scan(stored.loaded(), stored.fetch, condition("=", "day", 3), [SPEC]))
        assert len(found[selective]) == 20
        assert [len(names) for names in stored.asked] == ([1, 1] if selective == 16 else [1])
    assert found[1] == found[16]


def test_kept_parts_stay_within_the_limit() -> None:
    stored = Stored(Kept(4000))
    files = stored.stored(added(FileSet.empty(), range(200)), 1)
    for day in range(10):
        assert plan_scan(files, stored.fetch, condition("=", "day", day), [SPEC]).num_rows == 20
        assert 0 < stored.kept.bytes <= 4000
    asked = len(stored.asked)
    plan_scan(files, stored.fetch, condition("=", "day", 9), [SPEC])
    assert len(stored.asked) == asked
    plan_scan(files, stored.fetch, condition("=", "day", 0), [SPEC])
    assert len(stored.asked) == asked + 1, "it was asked for longest ago"


@pytest.mark.parametrize("damage", ["altered", "truncated", "empty"])
def test_a_damaged_range_is_an_error(damage: str) -> None:
    stored, files = a_pack()
    name, blob = next(iter(stored.objects.items()))
    leaf = files.stored_in().manifests.entries[0]
    assert isinstance(leaf, Leaf)
    at = leaf.parts["files"].first + leaf.parts["files"].size // 2
    stored.objects[name] = {
        "altered": blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :],
        "truncated": blob[:at],
        "empty": b"",
    }[damage]
    with pytest.raises(FormatError, match=f"the manifest {name}: its part files does not have the content"):
        plan_scan(files, stored.fetch, condition("=", "day", 0), [SPEC])
    with pytest.raises(FormatError, match="run lakelog fsck --repair|Run lakelog fsck --repair"):
        files.chunks(stored.fetch)


def forged(stored: Stored, change: Any) -> FileSet:
    """Return the set whose first leaf has other parts, validly hashed."""
    leaf = stored.own.entries[0]
    assert isinstance(leaf, Leaf)
    parts = dict(leaf.parts)
    name, data = leaf.stored.name, bytearray(stored.objects[leaf.stored.name])
    kind, table = change(
        {
            kind: pa.ipc.open_stream(bytes(data[part.first : part.first + part.size])).read_all()
            for kind, part in parts.items()
        }
    )
    blob = encode_table(table)
    parts[kind] = Part(kind, len(data), len(blob), hashlib.sha256(blob).hexdigest())
    stored.objects[name] = bytes(data + blob)
    directory = msgspec.json.encode(list(parts.values())).decode()
    root = {**stored.root, "manifests": [dict(each) for each in stored.root["manifests"]]}
    root["manifests"][0]["sha256"] = hash_of(directory)
    known = {hash_of(each): each for each in [directory, *stored.own.directories()]}
    return FileSet.load(root, directories=known)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: ("files", of["files"].slice(1)), "it has 7 entries, and its snapshot says 8"),
        (lambda of: ("files", of["files"].drop_columns(["path"])), "its part files lacks the columns path"),
        (lambda of: ("1", of["2"]), "its part 1 lacks the columns .none., and has lo2"),
        (
            lambda of: ("judged", of["judged"].set_column(0, "rows", pa.array([99] * 8, pa.int64()))),
            "its part judged says other than its files",
        ),
        (
            lambda of: ("files", of["files"].set_column(0, "path", pa.array(["../up"] * 8))),
            "which is not one of a data file",
        ),
    ],
)
def test_a_forged_part_is_an_error(change: Any, message: str) -> None:
    stored, _ = a_pack()
    with pytest.raises(FormatError, match=message):
        forged(stored, change).chunks(stored.fetch)


@pytest.mark.parametrize("extra", [False, True])
def test_what_is_taken_of_a_forged_leaf_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, extra: bool
) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored, _ = a_pack()

    def change(of: Mapping[str, pa.Table]) -> tuple[str, pa.Table]:
        files = of["files"].set_column(0, "path", pa.array(["../up"] * 8))
        return "files", files.append_column("p9", pa.nulls(8, pa.int32())) if extra else files

    with pytest.raises(FormatError, match=r"the manifest 0.*which is not one of a data file"):
        plan_scan(forged(stored, change), stored.fetch, condition("<", "day", 3), [SPEC])


@pytest.mark.parametrize("kind", ["judged", "files", "1"])
@pytest.mark.parametrize("other_type", [False, True])
def test_what_files_are_judged_by_in_a_forged_leaf_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, other_type: bool
) -> None:
    """Also where it has other types than the leaves that it is checked with, or is read with the files."""
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    monkeypatch.setattr(manifests, "SELECTIVE", 1 if kind == "files" else 16)
    stored, _ = a_pack()

    def change(of: Mapping[str, pa.Table]) -> tuple[str, pa.Table]:
        column = "nulls1" if kind == "1" else "rows"
        table = of[kind].set_column(
            of[kind].column_names.index(column), column, pa.array([-1] * 8, pa.int64())
        )
        if other_type:
            place = table.column_names.index("lo1" if kind == "1" else "spec")
            name = table.column_names[place]
            table = table.set_column(place, name, table[name].cast(pa.int16()))
        return kind, table

    files = forged(stored, change)
    with pytest.raises(FormatError, match=r"the manifest 0.*(a negative number in|no int32 in) its column"):
        plan_scan(files, stored.fetch, condition("<", "n", 12), [SPEC])


def test_a_leaf_of_another_length_than_its_snapshot_says_is_an_error_though_its_parts_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored, _ = a_pack()
    known = {hash_of(each): each for each in stored.own.directories()}
    right = FileSet.load(stored.root, directories=known, kept=stored.kept)
    assert plan_scan(right, stored.fetch, condition("=", "day", 5), [SPEC]).num_rows == 20
    root = {**stored.root, "manifests": [dict(each) for each in stored.root["manifests"]]}
    root["manifests"][0]["entries"] -= 1
    wrong = FileSet.load(root, directories=known, kept=stored.kept)
    with pytest.raises(FormatError, match="it has 8 entries, and its snapshot says 7"):
        plan_scan(wrong, stored.fetch, condition("=", "day", 5), [SPEC])


def test_many_columns_make_leaves_long_and_roots_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root says where each part of each leaf is: of 1,000 columns it would be tens of megabytes."""
    monkeypatch.setattr(manifests, "PACK_LEAF_PARTS", 3)
    stored, files = a_pack()
    entries = files.stored_in().manifests.entries
    assert [each.stored.entries for each in entries] == [16] * 12 + [8], "five parts are twice three"
    assert by_path(files.chunks(stored.fetch)) == {f"data/{at}": a_file(at) for at in range(200)}


def test_more_columns_than_a_leaf_can_have_parts_are_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "PARTS_MAX", 4)
    stored, files = a_pack()
    assert not files.stored_in().manifests.is_packed
    assert plan_scan(files, stored.fetch, condition("=", "day", 3), [SPEC]).num_rows == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "its parts lack files, judged, rest"),
        ("{}", "its parts cannot be read"),
        ('[["files",-1,5,"' + "0" * 64 + '"]]', "its parts cannot be read"),
        ('[["../x",1,5,"' + "0" * 64 + '"]]', "its parts cannot be read"),
        ('[["files",1,0,"' + "0" * 64 + '"]]', "its parts cannot be read"),
    ],
)
def test_a_forged_directory_is_an_error(text: str, message: str) -> None:
    stored, _ = a_pack()
    root = {**stored.root, "manifests": [{**stored.root["manifests"][0], "sha256": hash_of(text)}]}
    files = FileSet.load(root, directories={hash_of(text): text})
    with pytest.raises(FormatError, match=message):
        files.chunks(stored.fetch)


def test_a_leaf_whose_parts_a_snapshot_does_not_say_is_an_error() -> None:
    stored, _ = a_pack()
    with pytest.raises(FormatError, match="and does not say where it is"):
        FileSet.load(stored.root)
    with pytest.raises(FormatError, match="no base64"):
        decode_directories("?")
    with pytest.raises(FormatError, match="other columns than texts"):
        decode_directories(base64.b64encode(encode_table(pa.table({"x": ["y"]}))).decode())


def test_a_store_without_ranges_is_read_whole() -> None:
    stored, files = a_pack()
    found = plan_scan(
        files, lambda names: [stored.objects[name] for name in names], condition("=", "day", 3), [SPEC]
    )
    assert found.num_rows == 20


def test_parts_are_read_by_few_ranges_of_an_object() -> None:
    far = [("a", Part("files", at * 10**6, 10, "")) for at in range(5)]
    assert [(each.first, each.size) for each in ranges_of(far[:2])] == [(0, 10), (10**6, 10)]
    assert sum(each.size for each in ranges_of(far)) >= 3 * 10**6 and len(ranges_of(far)) <= 2
    near = [("a", Part("files", 0, 10, "")), ("a", Part("judged", GAP_BYTES, 10, ""))]
    assert [(each.first, each.size) for each in ranges_of(near)] == [(0, GAP_BYTES + 10)]
    assert [str(each) for each in ranges_of([*near, ("b", near[0][1])])] == ["a", "b"]


def test_leaves_of_partitions_that_are_nan_are_read_whole() -> None:
    """To Arrow, NaN is not NaN, and what files are judged by is held against the copy of it."""
    schema = assign_ids([Field(name="x", type=AtomicType("double"))])
    spec = spec_from_transforms(["x"], schema)
    values = [[float("nan"), None, 0.0, 1.5][number % 4] for number in range(40)]
    new = [
        DataFile(
            path=f"data/{number}",
            size_bytes=1,
            rows=1,
            spec_id=spec.id,
            partition={spec.fields[0].id: value},
            stats={},
        )
        for number, value in enumerate(values)
    ]
    stored = Stored()
    files = stored.stored(FileSet.empty().added(new, schema, [spec]), 1)
    assert stored.own.is_packed
    assert by_path(files.chunks(stored.fetch)).keys() == {each.path for each in new}
