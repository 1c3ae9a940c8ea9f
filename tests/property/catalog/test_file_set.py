"""The set of data files against a plain dictionary, through random changes, dumps and loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.property.examples import examples

from lakelog.catalog.core.files import file_set, manifest_bounds, manifests
from lakelog.catalog.core.files.comparison import ManifestComparison
from lakelog.catalog.core.files.data_file import (
    ColumnStats,
    DataFile,
    RemovedFile,
    files_from_arrow,
    files_to_arrow,
)
from lakelog.catalog.core.files.file_set import FileSet, FileSetRoot
from lakelog.catalog.core.files.manifest_bounds import decode_bounds, encode_bounds
from lakelog.catalog.core.files.manifests import FileChoice, ManifestSet
from lakelog.catalog.core.files.stored_sets import PackLeaves, PackNumbers
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, Field

SCHEMA = Schema(
    fields=tuple(Field(id=id, name=f"a{id}", physical=f"a_{id}", type=AtomicType("long")) for id in (1, 2)),
    last_id=2,
)


@pytest.fixture(scope="module", autouse=True)
def manifests_of_few_files() -> Iterator[None]:
    """Few files are many manifests, and those of larger dumps are packs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests, "PACKED_FROM", 60)
        patch.setattr(manifests, "PACK_LEAF_ENTRIES", 25)
        patch.setattr(manifest_bounds, "BOUNDED_FROM", 10)
        patch.setattr(manifests, "LEAF_ENTRIES", 40)
        patch.setattr(manifests, "ALWAYS_MERGED_BELOW", 30)
        patch.setattr(manifests, "RUN_LIMIT", 400)
        patch.setattr(file_set, "FEW_MANIFESTS", 3)
        patch.setattr(file_set, "MANY_FILES", 20)
        yield


def file_numbered(number: int) -> DataFile:
    stats = {1: ColumnStats(nulls=number % 3, min=number, max=number + 3)}
    if number % 4:
        stats[2] = ColumnStats(nulls=number % 5, min=-number, max=number)
    return DataFile(path=f"data/{number}", size_bytes=number + 1, rows=number % 7, stats=stats, write_id="w")


def _loaded_set(root: FileSetRoot, kept: ManifestSet) -> FileSet:
    """Return the set that a snapshot has."""
    bounds = decode_bounds(encode_bounds(list(kept.bounds().values())))
    numbers = PackNumbers()
    stored = numbers.stored(root, kept)
    packs = PackLeaves(numbers.packs())
    return FileSet.load(packs.root_of(stored), bounds=bounds, directories=packs.directories)


class FileSetAgainstDictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.files = FileSet.empty()
        self.model: dict[str, DataFile] = {}
        self.past: list[tuple[FileSet, dict[str, DataFile]]] = []
        self.gone: dict[str, DataFile] = {}
        self.objects: dict[str, bytes] = {}
        self.next_number = 0
        self.version = 0

    def fetch(self, names: Sequence[str]) -> list[bytes]:
        return [self.objects[name] for name in names]

    @rule(count=st.integers(1, 400), bulk=st.booleans())
    def add_new_files(self, count: int, bulk: bool) -> None:
        new = [file_numbered(self.next_number + index) for index in range(count)]
        self.next_number += count
        self._add(new, bulk)

    @precondition(lambda self: self.gone)
    @rule(data=st.data(), bulk=st.booleans())
    def restore_removed_files(self, data: st.DataObject, bulk: bool) -> None:
        paths = data.draw(st.lists(st.sampled_from(sorted(self.gone)), min_size=1, max_size=5, unique=True))
        self._add([self.gone.pop(path) for path in paths], bulk)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove_a_few(self, data: st.DataObject) -> None:
        self._remove(
            data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=9, unique=True))
        )

    @precondition(lambda self: self.model)
    @rule(modulus=st.integers(1, 5))
    def remove_many(self, modulus: int) -> None:
        self._remove(sorted(self.model)[::modulus])

    @rule()
    def clear(self) -> None:
        self.files, self.model = self.files.cleared(), {}

    @rule(readable=st.booleans(), durable=st.booleans(), reload=st.booleans())
    def dump(self, readable: bool, durable: bool, reload: bool) -> None:
        self.version += 1
        root, blobs, kept = self.files.dump(self.version, self.fetch if readable else None, [1])
        assert all(name.startswith(f"{self.version:020d}-") for name in blobs)
        self.objects |= blobs
        if durable:
            self.files.stored(kept)
            again = self.files.dump(self.version + 1)
            assert again[:2] == (root, {}), "what is unchanged is not written again"
        loaded = _loaded_set(root, kept)
        self._check(loaded, self.model)
        assert ManifestComparison(self.fetch).with_wrong_bounds(loaded) is None
        if reload:
            self.files = _loaded_set(root, kept)

    @rule()
    def remember(self) -> None:
        self.past.append((self.files, dict(self.model)))

    @precondition(lambda self: self.model)
    @rule(modulus=st.integers(1, 5), ahead=st.integers(0, 3), durable=st.booleans())
    def dump_after_a_tag_was_stored_with_a_newer_version(
        self, modulus: int, ahead: int, durable: bool
    ) -> None:
        tag, model = self.files, dict(self.model)
        self.remove_many(modulus)
        root, blobs, kept = tag.dump(self.version + 1 + ahead, self.fetch)
        self.objects |= blobs
        tag.stored(kept)
        self._check(_loaded_set(root, kept), model)
        self.dump(readable=True, durable=durable, reload=False)

    @rule()
    def read(self) -> None:
        self._check(self.files, self.model)

    @rule(statistics=st.sets(st.integers(1, 2)))
    def plan(self, statistics: set[int]) -> None:
        """A plan sees all files, and what is known of the columns that it looks at; perhaps more."""
        found = {}
        for chunk in self.files.chunks(self.fetch, statistics):
            known_ids = {id for id in (1, 2) if f"lo{id}" in chunk.column_names}
            for row in chunk.to_pylist():
                stats = self.model[row["path"]].stats
                assert row["rows"] == self.model[row["path"]].rows
                for id in statistics | known_ids:
                    stat = stats.get(id, ColumnStats())
                    seen = [row.get(f"{kind}{id}") for kind in ("nulls", "lo", "hi")]
                    assert seen == [stat.nulls, stat.min, stat.max] or (
                        id not in statistics and seen == [None] * 3
                    )
                found[row["path"]] = row
        assert found.keys() == self.model.keys()
        assert sum(chunk.num_rows for chunk in self.files.chunks(self.fetch, statistics)) == len(found)

    @rule(statistics=st.sets(st.integers(1, 2)), low=st.integers(-5, 2500), length=st.integers(0, 400))
    def plan_a_range(self, statistics: set[int], low: int, length: int) -> None:
        """A plan sees all files that may match, each once and as it is, and no others than live ones."""
        high = low + length

        def choose(known: pa.Table) -> pa.Array:
            outside = pc.or_kleene(pc.greater(known["lo1"], high), pc.less(known["hi1"], low))
            return pc.invert(pc.fill_null(outside, False)).combine_chunks()

        choice = FileChoice(manifests=choose, files=choose, looked_at=frozenset([1]))

        rows = [
            row
            for chunk in self.files.chunks(self.fetch, statistics, choice)
            for row in chunk.select(["path", "rows"]).to_pylist()
        ]
        found_rows = {row["path"]: row["rows"] for row in rows}
        assert len(found_rows) == len(rows)
        assert found_rows.items() <= {path: file.rows for path, file in self.model.items()}.items()
        for path, file in self.model.items():
            number = int(path.removeprefix("data/"))
            # A file without values matches nothing, whatever its bounds are.
            assert path in found_rows or number > high or number + 3 < low or file.rows <= number % 3

    @invariant()
    def totals_are_exact(self) -> None:
        assert self.files.file_count == len(self.model)
        assert self.files.row_count == sum(file.rows for file in self.model.values())
        assert self.files.size_bytes == sum(file.size_bytes for file in self.model.values())

    def teardown(self) -> None:
        for files, model in [*self.past, (self.files, self.model)]:
            self._check(files, model)

    def _add(self, new: list[DataFile], bulk: bool) -> None:
        self.files = self.files.added(files_to_arrow(new, SCHEMA, ()) if bulk else new, SCHEMA, ())
        self.model |= {file.path: file for file in new}

    def _remove(self, paths: list[str]) -> None:
        files = [self.model.pop(path) for path in paths]
        self.gone |= {file.path: file for file in files}
        removed_files = [
            RemovedFile(path=file.path, rows=file.rows, size_bytes=file.size_bytes) for file in files
        ]
        self.files = self.files.removed(removed_files)

    def _check(self, files: FileSet, model: dict[str, DataFile]) -> None:
        parts = [file for part in files.parts(self.fetch) for file in files_from_arrow(part)]
        assert len(parts) == len(model) and {file.path: file for file in parts} == model
        found_files = files_from_arrow(files.table(self.fetch))
        assert len(found_files) == len(model)
        assert {file.path: file for file in found_files} == model


FileSetAgainstDictionary.TestCase.settings = settings(
    max_examples=examples(12, full=125), stateful_step_count=30, deadline=None
)
TestFileSet = FileSetAgainstDictionary.TestCase
