"""A replayed set of files and a stored set are compared by their differences, as exactly as if compared in whole."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.unit.catalog.files.test_file_set import SCHEMA, SPEC, a_file

from lakelog.catalog.core.files import manifest_bounds, manifests
from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, removed_file
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.manifest import Manifest
from lakelog.catalog.keeping.maintenance.fsck.judges import TableJudge, different_files
from lakelog.log.errors import FormatError


class Objects(dict[str, bytes]):
    """Manifests by name; `read` are the names of those that were fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        self.read += names
        return [self[name] for name in names]


def dumped_set(files: FileSet, version: int, objects: Objects) -> FileSet:
    """Dump a set as its writer does, and return it as a reader of the snapshot has it."""
    root, blobs, kept = files.dump(version)
    objects.update(blobs)
    bounds = kept.bounds()
    files.stored(kept)
    return FileSet.load(root, bounds=bounds)


def difference(replayed: FileSet, stored: FileSet, judge: TableJudge) -> str | None:
    return judge._difference_of_files(replayed, stored)


@pytest.mark.parametrize("seed", range(3))
def test_snapshots_of_a_random_history_are_found_to_be_right_and_altered_ones_wrong(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if a thousand times as many files were removed: lists of them are several.
    monkeypatch.setattr(manifests, "ALWAYS_MERGED_BELOW", (256, 6, 6)[seed])
    monkeypatch.setattr(manifests, "REMOVED_FRACTION", (8, 8, 2)[seed])
    chance, objects = random.Random(seed), Objects()
    judge = TableJudge(objects.fetch)
    written = replayed = FileSet.empty()
    live: dict[str, DataFile] = {}
    removed_files: list[DataFile] = []
    whole_number = 0
    for version in range(1, 400):
        added_files, removed = list[DataFile](), list[RemovedFile]()
        kind = chance.random()
        if live and kind < 0.4:
            for path in chance.sample(sorted(live), min(len(live), chance.randrange(1, 12))):
                removed_files.append(live.pop(path))
                removed.append(removed_file(removed_files[-1]))
        elif removed_files and kind < 0.5:
            added_files = [removed_files.pop(chance.randrange(len(removed_files)))]
        else:
            added_files = [a_file(version * 100 + number) for number in range(chance.choice((1, 1, 5, 40)))]
        live |= {file.path: file for file in added_files}
        written = written.removed(removed).added(added_files, SCHEMA, [SPEC])
        replayed = replayed.removed(removed).added(added_files, SCHEMA, [SPEC])
        if version % 7 or not live:
            continue
        stored = dumped_set(written, version, objects)
        parts = judge.compared.apart(replayed, stored)
        whole_number += parts is None
        assert parts is None or different_files(*parts) is None
        assert set(stored.table(objects.fetch)["path"].to_pylist()) == live.keys()
        altered = altered_set(stored, chance, version, objects)
        assert (difference(replayed, altered, judge) is None) == is_same(altered, live, objects)
        assert difference(replayed, stored, judge) is None
    assert whole_number < 12, "most of them are compared by their parts"


def altered_set(stored: FileSet, chance: random.Random, version: int, objects: Objects) -> FileSet:
    """Return a stored set of the same totals with another path in a manifest or in the list of removed ones."""
    root, _, _ = stored.dump(version)
    stored_in = stored.stored_in().manifests
    kind = "removed" if stored_in.removed and chance.random() < 0.5 else "manifests"
    lists = stored_in.removed if kind == "removed" else stored_in.entries
    index = chance.randrange(len(lists))
    was_list = lists[index].stored
    read = Manifest(was_list)
    read.read(objects[was_list.name], removed=kind == "removed")
    table = read.columns()
    paths = table["path"].to_pylist()
    live = sorted(stored.table(objects.fetch)["path"].to_pylist())
    paths[chance.randrange(len(paths))] = (
        chance.choice(live) if kind == "removed" and live else "data/x.parquet"
    )
    column = table.column_names.index("path")
    blobs: dict[str, bytes] = {}
    new = Manifest.new(table.set_column(column, "path", [paths]), version, was_list.seq, blobs).stored
    objects.update(blobs)
    stored_lists = [*getattr(root, kind)]
    stored_lists[index] = msgspec.structs.replace(was_list, name=new.name, sha256=new.sha256)
    changes: Any = {kind: stored_lists}
    return FileSet.load(replace(root, **changes))


def is_same(files: FileSet, live: dict[str, DataFile], objects: Objects) -> bool:
    try:
        return sorted(files.table(objects.fetch)["path"].to_pylist()) == sorted(live)
    except FormatError:
        return False


def test_a_set_that_names_a_manifest_twice_is_found_to_be_wrong() -> None:
    objects = Objects()
    judge = TableJudge(objects.fetch)
    replayed = FileSet.empty().added([a_file(number) for number in range(300)], SCHEMA, [SPEC])
    stored = dumped_set(replayed, 1, objects)
    assert difference(replayed, stored, judge) is None
    root, _, _ = stored.dump(1)
    twice = FileSet.load(replace(root, manifests=root.manifests * 2))
    with pytest.raises(FormatError, match="its totals say"):
        twice.table(objects.fetch)
    assert "cannot be read" in str(difference(replayed, twice, judge))


def test_manifests_are_read_twice_at_most_though_each_snapshot_names_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", 50)
    objects = Objects()
    judge = TableJudge(objects.fetch)
    written = replayed = FileSet.empty()
    for version in range(1, 2001):
        file = a_file(version)
        written, replayed = (files.added([file], SCHEMA, [SPEC]) for files in (written, replayed))
        if version % 20 == 0:
            stored = dumped_set(written, version, objects)
            assert difference(replayed, stored, judge) is None
            judge.compared.keep([stored])
    bounded_entries = [entry for entry in stored.stored_in().manifests.entries if entry.bounds is not None]
    assert bounded_entries and len(objects) == 100 and len(objects.read) <= 3 * len(objects)


def test_lists_of_removed_files_are_joined_like_manifests_and_compared_by_what_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifests, "ALWAYS_MERGED_BELOW", 10)
    objects = Objects()
    judge = TableJudge(objects.fetch)
    first = [a_file(number) for number in range(9000)]
    written = replayed = FileSet.empty().added(first, SCHEMA, [SPEC])
    for version in range(1, 101):
        files = [removed_file(file) for file in first[version * 10 : version * 10 + 10]]
        written, replayed = written.removed(files), replayed.removed(files)
        stored = dumped_set(written, version, objects)
        assert difference(replayed, stored, judge) is None
        judge.compared.keep([stored])
    lists = stored.stored_in().manifests.removed
    assert sum(manifest.stored.entries for manifest in lists) == 990 and len(lists) < 8
    sizes = [len(blob) for name, blob in objects.items() if name not in stored_names(stored, "manifests")]
    assert sum(sizes) < 12 * sum(len(objects[name]) for name in stored_names(stored, "removed"))
    assert max(objects.read.count(name) for name in objects) == 1
    root = stored.dump(101)[0]
    revived = FileSet.load(replace(root, removed=root.removed[1:]))
    assert judge.compared.apart(replayed, revived) is None
    assert "its totals say" in str(difference(replayed, revived, judge))


def stored_names(files: FileSet, kind: str) -> set[str]:
    return {each.name for each in getattr(files.dump(1000)[0], kind)}
