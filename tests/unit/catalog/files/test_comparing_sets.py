"""A replayed set of files and a stored one are compared by what they do not share: as exactly as if whole."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from tests.unit.catalog.files.test_file_set import SCHEMA, SPEC, a_file

from lakelog.catalog.files.data_file import DataFile, RemovedFile, removed_file
from lakelog.catalog.files.file_set import FileSet
from lakelog.catalog.files.manifests import Manifest
from lakelog.catalog.maintenance.fsck.judges import TableJudge, different_files
from lakelog.log.errors import FormatError


class Objects(dict[str, bytes]):
    """Manifests by name; `read` are the names of those that were fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        self.read += names
        return [self[name] for name in names]


def dumped(files: FileSet, version: int, objects: Objects) -> FileSet:
    """Dump a set as its writer does, and return it as a reader of the snapshot has it."""
    root, blobs = files.dump(version)
    objects.update(blobs)
    files.stored(blobs)
    return FileSet.load(root)


def difference(replayed: FileSet, stored: FileSet, objects: Objects) -> str | None:
    return TableJudge(objects.fetch)._difference_of_files(replayed, stored)


@pytest.mark.parametrize("seed", range(3))
def test_snapshots_of_a_random_history_are_found_to_be_right_and_altered_ones_wrong(seed: int) -> None:
    chance, objects = random.Random(seed), Objects()
    written = replayed = FileSet.empty()
    live: dict[str, DataFile] = {}
    gone: list[DataFile] = []
    whole = 0
    for version in range(1, 400):
        added, removed = list[DataFile](), list[RemovedFile]()
        kind = chance.random()
        if live and kind < 0.4:
            for path in chance.sample(sorted(live), min(len(live), chance.randrange(1, 12))):
                gone.append(live.pop(path))
                removed.append(removed_file(gone[-1]))
        elif gone and kind < 0.5:
            added = [gone.pop(chance.randrange(len(gone)))]
        else:
            added = [a_file(version * 100 + number) for number in range(chance.choice((1, 1, 5, 40)))]
        live |= {file.path: file for file in added}
        written = written.removed(removed).added(added, SCHEMA, [SPEC])
        replayed = replayed.removed(removed).added(added, SCHEMA, [SPEC])
        if version % 7 or not live:
            continue
        stored = dumped(written, version, objects)
        parts = replayed.apart_from(stored, objects.fetch)
        whole += parts is None
        assert parts is None or different_files(*parts) is None
        assert set(stored.table(objects.fetch)["path"].to_pylist()) == live.keys()
        altered = altered_set(stored, chance, version, objects)
        assert (difference(replayed, altered, objects) is None) == is_same(altered, live, objects)
        assert difference(replayed, stored, objects) is None
    assert whole < 12, "most of them are compared by their parts"


def altered_set(stored: FileSet, chance: random.Random, version: int, objects: Objects) -> FileSet:
    """Return a stored set of the same totals with another path in a manifest or in the list of removed ones."""
    root, _ = stored.dump(version)
    manifests = stored.stored_in().manifests
    kind = "removed" if manifests.removed and chance.random() < 0.5 else "manifests"
    lists = manifests.removed if kind == "removed" else manifests.entries
    index = chance.randrange(len(lists))
    was = lists[index].stored
    read = Manifest(was)
    read.read(objects[was.name], removed=kind == "removed")
    table = read.columns()
    paths = table["path"].to_pylist()
    live = sorted(stored.table(objects.fetch)["path"].to_pylist())
    paths[chance.randrange(len(paths))] = (
        chance.choice(live) if kind == "removed" and live else "data/x.parquet"
    )
    column = table.column_names.index("path")
    blobs: dict[str, bytes] = {}
    new = Manifest.new(table.set_column(column, "path", [paths]), version, was.seq, blobs).stored
    objects.update(blobs)
    root[kind][index] = {**root[kind][index], "name": new.name, "sha256": new.sha256}
    return FileSet.load(root)


def is_same(files: FileSet, live: dict[str, DataFile], objects: Objects) -> bool:
    try:
        return sorted(files.table(objects.fetch)["path"].to_pylist()) == sorted(live)
    except FormatError:
        return False


def test_a_set_that_names_a_manifest_twice_is_found_to_be_wrong() -> None:
    objects = Objects()
    replayed = FileSet.empty().added([a_file(number) for number in range(300)], SCHEMA, [SPEC])
    stored = dumped(replayed, 1, objects)
    assert difference(replayed, stored, objects) is None
    root, _ = stored.dump(1)
    twice = FileSet.load({**root, "manifests": root["manifests"] * 2})
    with pytest.raises(FormatError, match="its totals say"):
        twice.table(objects.fetch)
    assert "cannot be read" in str(difference(replayed, twice, objects))


def test_manifests_are_read_twice_at_most_though_each_snapshot_names_all() -> None:
    objects = Objects()
    written = replayed = FileSet.empty()
    for version in range(1, 2001):
        file = a_file(version)
        written, replayed = (files.added([file], SCHEMA, [SPEC]) for files in (written, replayed))
        if version % 20 == 0:
            assert difference(replayed, dumped(written, version, objects), objects) is None
    assert len(objects) == 100 and len(objects.read) < 2 * len(objects)
