"""Packs: plans read parts of leaves by ranges, and find what a plan over all decoded entries finds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from lakelog.catalog.core.files.file_set import FileSet, FileSetRoot
from lakelog.catalog.core.files.leaves import ManifestLeaf
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.core.files.manifest_bounds import decode_bounds, encode_bounds
from lakelog.catalog.core.files.manifest_parts import (
    GAP_BYTES,
    HASH_BYTES,
    Directories,
    ManifestPart,
    PartCache,
    StoredPack,
    directories_in,
    ranges_of,
)
from lakelog.catalog.core.files.manifests import ManifestSet
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.catalog.core.files.stored_sets import PackLeaves, PackNumbers, StoredFileSet
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.scan_plan import plan_scan
from lakelog.catalog.core.schema.partitioning import PartitionSpec, spec_from_transforms
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

    def __init__(self, kept: PartCache | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[list[str]] = []
        self.kept = PartCache() if kept is None else kept

    def stored(self, files: FileSet, version: int) -> FileSet:
        """Return the set as a client loads it that did not write it."""
        root, blobs, own = files.dump(version, self.fetch, (), self.kept)
        self.objects |= blobs
        self.root, self.own = root, own
        self.asked.clear()
        return self.loaded()

    def loaded(self) -> FileSet:
        bounds = decode_bounds(encode_bounds(list(self.own.bounds().values())))
        packs = PackLeaves(self.packs)
        root = packs.root_of(msgspec.json.decode(msgspec.json.encode(self.stored_root), type=StoredFileSet))
        assert root == self.root
        return FileSet.load(root, bounds=bounds, directories=packs.directories, kept=self.kept)

    @property
    def stored_root(self) -> StoredFileSet:
        """Return the root as a snapshot has it."""
        return PackNumbers().stored(self.root, self.own)

    @property
    def packs(self) -> dict[str, StoredPack]:
        """Return the packs as a snapshot has them."""
        numbers = PackNumbers()
        numbers.stored(self.root, self.own)
        return msgspec.json.decode(msgspec.json.encode(numbers.packs()), type=dict[str, StoredPack])

    @property
    def directories(self) -> Directories:
        return PackLeaves(self.packs).directories

    def with_first(self, **changes: Any) -> FileSetRoot:
        """Return the root with changes of the first manifest that it names."""
        first, *other_lists = self.root.manifests
        return replace(self.root, manifests=[msgspec.structs.replace(first, **changes), *other_lists])

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        self.asked.append(list(names))
        found_pairs = [(name, self.objects[name]) for name in names]
        return [text.of(blob) if isinstance(text, BlobRange) else blob for text, blob in found_pairs]

    @property
    def bytes_asked(self) -> int:
        return sum(
            text.size if isinstance(text, BlobRange) else len(self.objects[text])
            for some_texts in self.asked
            for text in some_texts
        )


def condition(op: str, column: str, *values: int) -> Any:
    return bind(Predicate(op, (Column((column,)), *map(literal, values))), SCHEMA)


def added_set(files: FileSet, numbers: Sequence[int]) -> FileSet:
    return files.added([a_file(number) for number in numbers], SCHEMA, [SPEC])


def empty_data(names: Sequence[str]) -> list[bytes]:
    raise AssertionError("what is in memory is not read")


def by_path(tables: Sequence[pa.Table]) -> dict[str, DataFile]:
    return {file.path: file for table in tables for file in files_from_arrow(table)}


def rows_of(planned: pa.Table) -> dict[str, dict[str, Any]]:
    """Return what a plan says of each file, by its path; a column may be missing if it says nothing."""
    rows = planned.to_pylist()
    assert len({row["path"] for row in rows}) == len(rows)
    return {row["path"]: {name: value for name, value in row.items() if value is not None} for row in rows}


@pytest.mark.parametrize("few", [0, 40])
@settings(max_examples=examples(3, full=300))
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0, 3000, 10**9]))
def test_a_plan_by_ranges_is_a_plan_over_all_entries(few: int, seed: int, limit: int) -> None:
    chance, stored_objects, expected = random.Random(seed), Stored(PartCache(limit)), dict[int, DataFile]()
    files, plain = FileSet.empty(), FileSet.empty()
    number, removed_expected = 0, list[int]()
    for version in range(1, 9):
        ahead = number + chance.choice((1, 15, 40, 120))
        new = [*range(number, ahead), *chance.sample(removed_expected, len(removed_expected) // 2)]
        number = ahead
        files, plain = added_set(files, new), added_set(plain, new)
        expected |= {each: a_file(each) for each in new}
        removed_expected = chance.sample(sorted(expected), min(len(expected) // 2, chance.choice((0, 2, 60))))
        files, plain = (
            each_files.removed([removed_file(a_file(at)) for at in removed_expected])
            for each_files in (files, plain)
        )
        expected = {at: file for at, file in expected.items() if at not in removed_expected}
        files = stored_objects.stored(files, version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_set, "FEW_LEAVES", few)
        patch.setattr(file_set, "FEW_MANIFESTS", few)
        for _ in range(3):
            op, column = chance.choice(("=", "<", ">=")), chance.choice(("n", "m", "day"))
            bound_condition = condition(op, column, chance.randrange(number if column == "n" else 100) % 12)
            for files in (stored_objects.loaded(), stored_objects.loaded()):
                patch.setattr(manifests, "SELECTIVE", chance.choice((1, 16)))
                plan = plan_scan(files, stored_objects.fetch, bound_condition, [SPEC], statistics=(1, 2))
                wanted_plan = plan_scan(plain, empty_data, bound_condition, [SPEC], statistics=(1, 2))
                assert rows_of(plan) == rows_of(wanted_plan)
    paths = pa.array([a_file(at).path for at in range(0, number, 3)])
    named_files = {file.path: file for at, file in expected.items() if at % 3 == 0}
    assert by_path(stored_objects.loaded().named(stored_objects.fetch, paths)) == named_files
    assert by_path(list(stored_objects.loaded().parts(stored_objects.fetch))) == {
        file.path: file for file in expected.values()
    }
    assert by_path(stored_objects.loaded().chunks(stored_objects.fetch)) == {
        file.path: file for file in expected.values()
    }
    assert stored_objects.kept.bytes <= limit


def a_pack(count: int = 200) -> tuple[Stored, FileSet]:
    stored_objects = Stored()
    files = stored_objects.stored(added_set(FileSet.empty(), range(count)), 1)
    return stored_objects, files


def test_a_day_is_one_range_of_each_pack_and_small_beside_it() -> None:
    stored_objects, files = a_pack()
    assert all(isinstance(entry, ManifestLeaf) for entry in files.stored_in().manifests.entries)
    plan = plan_scan(files, stored_objects.fetch, condition("=", "day", 3), [SPEC])
    assert plan.num_rows == 20
    assert [len(names) for names in stored_objects.asked] == [1]
    assert stored_objects.bytes_asked < len(next(iter(stored_objects.objects.values()))) / 5
    stored_objects.asked.clear()
    plan_scan(stored_objects.loaded(), stored_objects.fetch, condition("=", "day", 3), [SPEC])
    assert stored_objects.asked == [], "what was read for another view is known by its hash"


def test_a_value_is_looked_for_by_the_statistics_of_its_column_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 2)
    stored_objects, files = a_pack()
    columns = list[str]()
    plan = plan_scan(files, stored_objects.fetch, condition("=", "m", 50), [SPEC])
    assert 0 < plan.num_rows < 100
    for entry in files.stored_in().manifests.entries:
        assert isinstance(entry, ManifestLeaf)
        columns += [
            kind for kind, part in entry.parts.items() if stored_objects.kept.get(part.sha256) is not None
        ]
    assert set(columns) == {"files", "2"}, "and neither column 1 nor the rest"
    assert len(stored_objects.asked) == 2


@pytest.mark.parametrize("limit", [0, 10**9])
def test_statistics_are_read_first_only_if_they_may_save_other_parts(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Not if bounds leave few leaves, nor for a column without any. Also if nothing that was read is kept."""
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored_objects, _ = a_pack()
    for column, value, count in (("day", 3, 20), ("n", 55, 2)):
        rows = {}
        for selective in (16, 1):
            monkeypatch.setattr(manifests, "SELECTIVE", selective)
            stored_objects.kept = PartCache(limit)
            stored_objects.asked.clear()
            bound_condition = condition("=", column, value)
            rows[selective] = rows_of(
                plan_scan(stored_objects.loaded(), stored_objects.fetch, bound_condition, [SPEC])
            )
            assert len(rows[selective]) == count
            is_first = column == "n" and selective == 16
            assert [len(names) for names in stored_objects.asked] == ([1, 1] if is_first else [1])
        assert rows[1] == rows[16]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("floats", [True, False])
def test_a_file_without_a_value_is_ruled_out_by_statistics_if_bounds_tell(
    monkeypatch: pytest.MonkeyPatch, bounded: bool, floats: bool
) -> None:
    """Statistics alone do not say how many rows a file has. Bounds of its leaf say that a value has bounds."""
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    schema = assign_ids([Field(name="n", type=AtomicType("double" if floats else "long"))])
    number: Any = 1.5 if floats else 1
    stats = [ColumnStats(nulls=10, nans=0 if floats else None)] * 200
    stats[::8] = [
        ColumnStats(nulls=5, nans=0 if floats else None, min=at * number, max=at * number) for at in range(25)
    ]
    if floats:
        stats[1::16] = [ColumnStats(nulls=4, nans=6)] * 13
    entries = [
        DataFile(path=f"data/{at}", size_bytes=1, rows=10, stats={1: stat}) for at, stat in enumerate(stats)
    ]
    stored_objects = Stored()
    files = stored_objects.stored(FileSet.empty().added(entries, schema, [PartitionSpec()]), 1)
    if not bounded:
        files = FileSet.load(
            stored_objects.root, directories=stored_objects.directories, kept=stored_objects.kept
        )
    for value, expected in ((24 * number, {192}), (1000 * number, set[int]())):
        stored_objects.kept.bytes, stored_objects.kept._parts = 0, type(stored_objects.kept._parts)()
        stored_objects.asked.clear()
        bound_condition = bind(Predicate("=", (Column(("n",)), literal(value))), schema)
        paths = plan_scan(files, stored_objects.fetch, bound_condition, [PartitionSpec()])["path"].to_pylist()
        assert set(paths) == {f"data/{at}" for at in expected}
        files_read = sum(
            leaf.parts["files"].sha256 in stored_objects.kept._parts for leaf in leaves_of(files)
        )
        assert files_read == (len(expected) if bounded else 0), "0: all files are read, and no part is kept"
    if floats:
        bound_condition = bind(Predicate("=", (Column(("n",)), literal(float("nan")))), schema)
        assert plan_scan(files, stored_objects.fetch, bound_condition, [PartitionSpec()]).num_rows == 13


def leaves_of(files: FileSet) -> list[ManifestLeaf]:
    return [entry for entry in files.stored_in().manifests.entries if isinstance(entry, ManifestLeaf)]


def test_kept_parts_stay_within_the_limit() -> None:
    stored_objects = Stored(PartCache(4000))
    files = stored_objects.stored(added_set(FileSet.empty(), range(200)), 1)
    for day in range(10):
        assert plan_scan(files, stored_objects.fetch, condition("=", "day", day), [SPEC]).num_rows == 20
        assert 0 < stored_objects.kept.bytes <= 4000
    count = len(stored_objects.asked)
    plan_scan(files, stored_objects.fetch, condition("=", "day", 9), [SPEC])
    assert len(stored_objects.asked) == count
    plan_scan(files, stored_objects.fetch, condition("=", "day", 0), [SPEC])
    assert len(stored_objects.asked) == count + 1, "it was asked for longest ago"


@pytest.mark.parametrize("damage", ["altered", "truncated", "empty"])
def test_a_damaged_range_is_an_error(damage: str) -> None:
    stored_objects, files = a_pack()
    name, blob = next(iter(stored_objects.objects.items()))
    leaf = files.stored_in().manifests.entries[0]
    assert isinstance(leaf, ManifestLeaf)
    at = leaf.parts["files"].first + leaf.parts["files"].size // 2
    stored_objects.objects[name] = {
        "altered": blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :],
        "truncated": blob[:at],
        "empty": b"",
    }[damage]
    with pytest.raises(FormatError, match=f"the manifest {name}: its part files does not have the content"):
        plan_scan(files, stored_objects.fetch, condition("=", "day", 0), [SPEC])
    with pytest.raises(FormatError, match="run lakelog fsck --repair|Run lakelog fsck --repair"):
        files.chunks(stored_objects.fetch)


def forged_set(stored: Stored, change: Any) -> FileSet:
    """Return the set whose first leaf has other parts, validly hashed."""
    leaf = stored.own.entries[0]
    assert isinstance(leaf, ManifestLeaf)
    parts = leaf.parts
    name, data = leaf.stored.name, bytearray(stored.objects[leaf.stored.name])
    kind, table = change(
        {
            kind: pa.ipc.open_stream(bytes(data[part.first : part.first + part.size])).read_all()
            for kind, part in parts.items()
        }
    )
    blob = encode_table(table)
    place = leaf.directory.kinds.index(kind)
    places, hashes = list(leaf.directory.places), bytearray(leaf.directory.hashes)
    places[place] = len(data), len(blob)
    hashes[HASH_BYTES * place : HASH_BYTES * (place + 1)] = hashlib.sha256(blob).digest()
    stored.objects[name] = bytes(data + blob)
    forged_leaf = replace(leaf.directory, places=tuple(places), hashes=bytes(hashes))
    root = stored.with_first(sha256=forged_leaf.sha256)
    directories = {**stored.directories, (name, forged_leaf.sha256): forged_leaf}
    return FileSet.load(root, directories=directories)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: ("files", of["files"].slice(1)), "it has 7 entries, and its snapshot says 8"),
        (lambda of: ("files", of["files"].drop_columns(["path"])), "its part files lacks the columns path"),
        (lambda of: ("1", of["2"]), "its part 1 lacks the columns .none., and has lo2"),
        (lambda of: ("files", of["files"].drop_columns(["rows"])), "its part files lacks the columns rows"),
        (lambda of: ("1", of["1"].append_column("rows", pa.array([1] * 8))), "and has rows"),
        (
            lambda of: ("files", of["files"].set_column(0, "path", pa.array(["../up"] * 8))),
            "which is not one of a data file",
        ),
    ],
)
def test_a_forged_part_is_an_error(change: Any, message: str) -> None:
    stored_objects, _ = a_pack()
    with pytest.raises(FormatError, match=message):
        forged_set(stored_objects, change).chunks(stored_objects.fetch)


@pytest.mark.parametrize("extra", [False, True])
def test_what_is_taken_of_a_forged_leaf_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, extra: bool
) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored_objects, _ = a_pack()

    def change(of: Mapping[str, pa.Table]) -> tuple[str, pa.Table]:
        files = of["files"].set_column(0, "path", pa.array(["../up"] * 8))
        return "files", files.append_column("p9", pa.nulls(8, pa.int32())) if extra else files

    with pytest.raises(FormatError, match=r"the manifest 0.*which is not one of a data file"):
        plan_scan(forged_set(stored_objects, change), stored_objects.fetch, condition("<", "day", 3), [SPEC])


@pytest.mark.parametrize("kind", ["files", "1"])
@pytest.mark.parametrize("other_type", [False, True])
def test_what_files_are_judged_by_in_a_forged_leaf_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, other_type: bool
) -> None:
    """Even if it has other types than the leaves that it is checked with, or is read with the files."""
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    monkeypatch.setattr(manifests, "SELECTIVE", 1 if kind == "files" else 16)
    stored_objects, _ = a_pack()

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

    files = forged_set(stored_objects, change)
    with pytest.raises(FormatError, match=r"the manifest 0.*(a negative number in|no int32 in) its column"):
        plan_scan(files, stored_objects.fetch, condition("<", "n", 12), [SPEC])


def test_a_leaf_of_another_length_than_its_snapshot_says_is_an_error_though_its_parts_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_set, "FEW_LEAVES", 0)
    stored_objects, _ = a_pack()
    known_directories = stored_objects.directories
    right = FileSet.load(stored_objects.root, directories=known_directories, kept=stored_objects.kept)
    assert plan_scan(right, stored_objects.fetch, condition("=", "day", 5), [SPEC]).num_rows == 20
    root = stored_objects.with_first(entries=stored_objects.root.manifests[0].entries - 1)
    wrong = FileSet.load(root, directories=known_directories, kept=stored_objects.kept)
    with pytest.raises(FormatError, match="it has 8 entries, and its snapshot says 7"):
        plan_scan(wrong, stored_objects.fetch, condition("=", "day", 5), [SPEC])


def test_many_columns_make_leaves_long_and_roots_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root says where each part of each leaf is: of 1,000 columns it would be tens of megabytes."""
    monkeypatch.setattr(manifests, "PACK_LEAF_PARTS", 3)
    stored_objects, files = a_pack()
    entries = files.stored_in().manifests.entries
    assert [entry.stored.entries for entry in entries] == [16] * 12 + [8], "four parts are twice three"
    assert by_path(files.chunks(stored_objects.fetch)) == {f"data/{at}": a_file(at) for at in range(200)}


def test_more_columns_than_a_leaf_can_have_parts_are_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "PARTS_MAX", 3)
    stored_objects, files = a_pack()
    assert not files.stored_in().manifests.is_packed
    assert plan_scan(files, stored_objects.fetch, condition("=", "day", 3), [SPEC]).num_rows == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": ["files", "1", "2"]}, "lack files or rest"),
        ({"kinds": ["files", "1", "1", "rest"]}, "are there twice"),
        ({"kinds": ["files", "rest"]}, "a place and a hash for each of its parts"),
        ({"places": []}, "entries of 25 leaves, places of 0, and hashes of 25"),
        ({"entries": [8]}, "entries of 1 leaves, places of 25, and hashes of 25"),
        ({"places": [[[0, 1]] * 3] * 25}, "a place and a hash for each of its parts"),
        ({"sha256": [""] * 25}, "a place and a hash for each of its parts"),
        ({"sha256": ["?"] * 25}, "a place and a hash for each of its parts"),
        ({"kinds": ["files", "../x", "2", "rest"]}, "kinds"),
        ({"places": [[[-1, 1]] * 4] * 25}, "places"),
        ({"places": [[[0, 0]] * 4] * 25}, "places"),
        ({"more": 1}, "more"),
    ],
)
def test_a_forged_directory_is_an_error(change: dict[str, Any], message: str) -> None:
    stored_objects, _ = a_pack()
    [(name, pack)] = msgspec.to_builtins(stored_objects.packs).items()
    with pytest.raises((FormatError, msgspec.ValidationError), match=message):
        directories_in(name, msgspec.convert(pack | change, StoredPack, strict=True))


def test_a_leaf_is_named_by_its_parts_and_its_pack() -> None:
    """The same leaf may be in two packs, at other places."""
    stored_objects, files = a_pack()
    [(name, pack)] = stored_objects.packs.items()
    other_text = f"{2:020d}-{'0' * 64}.pack"
    moved_pack = msgspec.structs.replace(
        pack,
        places=tuple(tuple((first + 9, size) for first, size in places) for places in pack.places),
    )
    stored_objects.objects[other_text] = bytes(9) + stored_objects.objects[name]
    manifests_there = [
        msgspec.structs.replace(manifest, name=other_text) for manifest in stored_objects.root.manifests
    ]
    root = replace(stored_objects.root, manifests=manifests_there)
    copy = FileSet.load(root, directories=PackLeaves({name: pack, other_text: moved_pack}).directories)
    assert by_path(copy.chunks(stored_objects.fetch)) == by_path(files.chunks(stored_objects.fetch))


def test_a_leaf_whose_parts_a_snapshot_does_not_say_is_an_error() -> None:
    stored_objects, _ = a_pack()
    with pytest.raises(FormatError, match="and does not say where it is"):
        FileSet.load(stored_objects.root)
    with pytest.raises(FormatError, match="and does not say where it is"):
        PackLeaves({}).root_of(stored_objects.stored_root)


@pytest.mark.parametrize(
    "manifest",
    [
        {"name": "PACK", "seq": 1, "leaves": [25]},
        {"name": "PACK", "seq": 1, "leaves": []},
        {"name": "PACK", "seq": 1, "leaves": [0], "entries": 8},
        {"name": "PACK", "seq": 1, "entries": 8, "sha256": "0" * 64},
        {"name": f"{1:020d}-x.arrow", "seq": 1, "leaves": [0]},
        {"name": f"{1:020d}-x.arrow", "seq": 1, "entries": 8},
        {"name": f"{1:020d}-x.arrow", "seq": 1, "sha256": "0" * 64},
        {"name": f"{1:020d}-x.arrow", "seq": 1, "entries": 8, "sha256": "0" * 64, "leaves": [0]},
    ],
)
def test_a_manifest_in_the_form_of_another_kind_is_an_error(manifest: dict[str, Any]) -> None:
    stored_objects, _ = a_pack()
    [name] = stored_objects.packs
    files = {
        "files": 8,
        "rows": 8,
        "bytes": 8,
        "manifests": [manifest | {"name": manifest["name"].replace("PACK", name)}],
    }
    with pytest.raises(FormatError, match="form of another kind|does not say where it is"):
        PackLeaves(stored_objects.packs).root_of(msgspec.convert(files, StoredFileSet))


def test_sets_that_share_leaves_name_them_by_number_in_any_order() -> None:
    """A tag of a large table takes little room in the root, also after some leaves were sorted again."""
    stored_objects, _ = a_pack()
    numbers, [first, *other_entries] = PackNumbers(), stored_objects.own.entries
    mixed_manifest = [
        *other_entries[:3],
        Manifest(StoredList(name=f"{1:020d}-x.arrow", entries=1, seq=1, sha256="0" * 64)),
        first,
    ]
    sets = [
        (
            replace(stored_objects.root, manifests=[entry.stored for entry in entries]),
            ManifestSet(tuple(entries)),
        )
        for entries in (mixed_manifest, stored_objects.own.entries)
    ]
    written = [numbers.stored(root, own) for root, own in sets]
    assert [manifest.leaves for manifest in written[0].manifests] == [(0, 1, 2), (), (3,)]
    assert [manifest.leaves for manifest in written[1].manifests] == [(3, 0, 1, 2, *range(4, 25))]
    assert len(msgspec.json.encode(written[1])) < 400
    packs = PackLeaves(numbers.packs())
    assert [packs.root_of(each) for each in written] == [root for root, _ in sets]


def test_a_store_without_ranges_is_read_whole() -> None:
    stored_objects, files = a_pack()
    plan = plan_scan(
        files,
        lambda names: [stored_objects.objects[name] for name in names],
        condition("=", "day", 3),
        [SPEC],
    )
    assert plan.num_rows == 20


def test_parts_are_read_by_few_ranges_of_an_object() -> None:
    far = [("a", ManifestPart("files", at * 10**6, 10, "")) for at in range(5)]
    assert [(range_.first, range_.size) for range_ in ranges_of(far[:2])] == [(0, 10), (10**6, 10)]
    assert sum(range_.size for range_ in ranges_of(far)) >= 3 * 10**6 and len(ranges_of(far)) <= 2
    near = [("a", ManifestPart("files", 0, 10, "")), ("a", ManifestPart("1", GAP_BYTES, 10, ""))]
    assert [(range_.first, range_.size) for range_ in ranges_of(near)] == [(0, GAP_BYTES + 10)]
    assert [str(range_) for range_ in ranges_of([*near, ("b", near[0][1])])] == ["a", "b"]


def test_leaves_of_partitions_that_are_nan_are_read_whole() -> None:
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
    stored_objects = Stored()
    files = stored_objects.stored(FileSet.empty().added(new, schema, [spec]), 1)
    assert stored_objects.own.is_packed
    assert by_path(files.chunks(stored_objects.fetch)).keys() == {file.path for file in new}
