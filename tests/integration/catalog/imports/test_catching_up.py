"""A table and its source both go on: what either has deleted stays deleted, and no row is lost or there twice.

The source is a table of another catalog, by its exports: it appends, deletes by vectors or by rewriting files, and
compacts. Ids of rows are never used twice.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, CommitConflict, SourceDiverged, Table, col
from lakelog.log.errors import InvalidInput

SHORT = range(4)
FULL = range(SHORT.stop, 400)
STEPS = 14
BELOW_100 = {"op": "<", "args": [{"col": ["n"]}, {"lit": 100, "type": "integer"}]}


class Side:
    """A table that is changed at random, and the ids that it has deleted itself."""

    def __init__(self, table: Table, chance: random.Random, first: int) -> None:
        self.table = table
        self.chance = chance
        self.next_id = first
        self.deleted: set[int] = set()
        self.own: set[int] = set()

    def ids(self) -> set[int]:
        self.table = self.table.refresh()
        return set(self.table.scan(["id"]).to_arrow()["id"].to_pylist())

    def append(self) -> None:
        ids = range(self.next_id, self.next_id + self.chance.choice((1, 5, 400)))
        self.next_id = ids.stop
        self.own |= set(ids)
        self.table = self.table.append(pa.table({"id": ids}))

    def delete(self) -> None:
        ids = sorted(self.ids())
        removed_ids = self.chance.sample(ids, min(len(ids), self.chance.choice((1, 3, 200))))
        self.deleted |= set(removed_ids)
        self.table = self.table.delete(col("id").is_in(removed_ids))

    def update(self) -> None:
        """Write rows anew as they are: they are in another file then, and this side's own."""
        ids = sorted(self.ids())
        some_ids = self.chance.sample(ids, min(len(ids), self.chance.choice((1, 3, 200))))
        self.own |= set(some_ids)
        self.table = self.table.update({"id": "id"}, col("id").is_in(some_ids))

    def compact(self) -> None:
        self.table = self.table.compact()

    def step(self, *steps: str) -> str:
        name = self.chance.choice(steps)
        self.table = self.table.refresh()
        getattr(self, name)()
        return name


def live(folder: Path, seed: int) -> int:
    """Return how often the table caught up."""
    chance = random.Random(seed)
    mode = chance.choice(("merge-on-read", "copy-on-write"))
    origin = Catalog(folder / "source").create_table(
        "t", pa.schema([("id", pa.int64())]), properties={"lakelog.write.delete.mode": mode}
    )
    source = Side(origin, chance, 0)
    source.append()
    catalog = Catalog(folder / "w")
    catalog.import_table(source.table.export_iceberg().url, "t", format="iceberg", copy=seed % 2 == 1)
    ours = Side(catalog.load_table("t"), chance, 1_000_000)
    results: list[str] = []
    caught = 0
    imported_ids: set[int] = source.ids()
    for _ in range(STEPS):
        if chance.random() < 0.6:
            results.append("source " + source.step("append", "append", "delete", "update", "compact"))
        else:
            results.append("ours " + ours.step("append", "delete", "update", "compact"))
        about = f"seed {seed} ({mode}), after {', '.join(results)}"
        if chance.random() < 0.5:
            continue
        ids_before = ours.ids()
        try:
            catalog.import_table(source.table.export_iceberg().url, "t", format="iceberg")
        except SourceDiverged:
            assert ours.ids() == ids_before, about
            results.append("(refused)")
            continue
        caught += 1
        imported_ids |= source.ids()
        results.append("(caught up)")
        expected = (source.ids() | ours.own) - ours.deleted
        table = catalog.load_table("t")
        rows = table.scan(["id"], row_ids=True).to_arrow()
        assert sorted(rows["id"].to_pylist()) == sorted(expected), about
        row_ids = rows["_row_id"].to_pylist()
        assert len(set(row_ids)) == len(row_ids) and None not in row_ids, about
        tagged_rows = table.at(ref="imported").scan(["id"]).to_arrow()["id"].to_pylist()
        assert sorted(tagged_rows) == sorted(source.ids()), about
    assert not catalog.fsck(deep=True).found
    return caught


@pytest.mark.parametrize("seed", SHORT)
def test_nothing_comes_back_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed)


@pytest.mark.slow
def test_nothing_comes_back_in_hundreds_of_lives(tmp_path: Path) -> None:
    assert sum(live(tmp_path / str(seed), seed) for seed in FULL) > len(FULL)


@pytest.fixture
def source(tmp_path: Path) -> Table:
    table = Catalog(tmp_path / "source").create_table("t", pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    return table.append(pa.table({"id": range(10), "n": range(10)}))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "w")


def import_it(catalog: Catalog, source: Table) -> Table:
    catalog.import_table(source.export_iceberg().url, "t", format="iceberg")
    return catalog.load_table("t")


def test_rows_that_both_have_deleted_in_one_file_stay_deleted(source: Table, catalog: Catalog) -> None:
    import_it(catalog, source).delete(col("id") == 1)
    import_it(catalog, source.delete(col("id") == 2))
    assert ids(catalog) == [0, 3, 4, 5, 6, 7, 8, 9]


def ids(catalog: Catalog, name: str = "t") -> list[int]:
    return sorted(catalog.load_table(name).scan(["id"]).to_arrow()["id"].to_pylist())


def test_rows_come_back_where_the_source_went_back_unless_they_were_deleted_here(
    source: Table, catalog: Catalog
) -> None:
    version_before = source.version
    source = source.delete(col("id") < 3)
    import_it(catalog, source).delete(col("id") == 5)
    source = source.rollback_to_version(version_before)
    import_it(catalog, source)
    assert ids(catalog) == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_a_merge_that_has_not_seen_a_row_come_back_does_not_insert_its_key_again(
    source: Table, catalog: Catalog
) -> None:
    version_before = source.version
    table = import_it(catalog, source := source.delete(col("id") < 3))
    import_it(catalog, source.rollback_to_version(version_before))
    key = pa.table({"id": [2], "n": pa.array([7], pa.int32())})
    with pytest.raises(CommitConflict, match="should have seen"):
        table.merge(key, on="target.id = source.id").when_not_matched_insert_all().execute()
    assert ids(catalog) == list(range(10))


def test_a_file_that_was_gone_does_not_come_back_with_rows_that_were_deleted_here(
    source: Table, catalog: Catalog
) -> None:
    source = source.append(pa.table({"id": [10], "n": [1]}))
    version_before = source.version
    import_it(catalog, source).delete(col("id") == 1)
    import_it(catalog, source := source.delete(col("id") < 10))
    import_it(catalog, source := source.append(pa.table({"id": [11], "n": [1]})))
    with pytest.raises(
        SourceDiverged, match=r"has the file .*\.parquet again, which was removed by an import"
    ):
        import_it(catalog, source.rollback_to_version(version_before))
    assert ids(catalog) == [10, 11]


def test_files_that_both_have_rewritten_are_refused_by_name(source: Table, catalog: Catalog) -> None:
    import_it(catalog, source).delete(col("id") == 1)
    source = source.append(pa.table({"id": [10], "n": [10]})).compact()
    with pytest.raises(SourceDiverged, match=r"rows of the file .*/data/\d{20}-.*\.parquet were deleted"):
        import_it(catalog, source)
    assert ids(catalog) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_row_that_both_have_changed_by_vectors_is_refused_where_it_may_have_moved(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source).update({"n": "-1"}, where="id = 1")
    with pytest.raises(
        SourceDiverged, match=r"rows of the file .*\.parquet were deleted or rewritten in `t` and"
    ):
        import_it(catalog, source.update({"n": "-2"}, where="id IN (1, 2)"))
    assert sorted(catalog.load_table("t").scan(["id"]).to_arrow()["id"].to_pylist()) == list(range(10))


def test_a_row_that_both_have_deleted_and_that_cannot_have_moved_stays_deleted(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source).delete(col("id") < 3)
    import_it(catalog, source.delete(col("id") < 4))
    assert ids(catalog) == [4, 5, 6, 7, 8, 9]


def test_columns_of_the_source_come_along_where_ours_are_as_they_were(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source)
    source = source.alter([{"change": "add-column", "name": ["more"], "type": "string"}])
    source = source.append(pa.table({"id": [20], "n": [1], "more": ["x"]}))
    import_it(catalog, source)
    table = catalog.load_table("t").alter([{"change": "add-column", "name": ["own"], "type": "long"}])
    assert table.schema.names == ("id", "n", "more", "own")
    source = source.append(pa.table({"id": [21], "n": [1], "more": ["y"]}))
    import_it(catalog, source)
    assert ids(catalog)[-2:] == [20, 21]
    source = source.alter([{"change": "delete-column", "name": ["more"]}])
    with pytest.raises(SourceDiverged, match="were changed, and so were those of its source"):
        import_it(catalog, source)


def test_what_was_demanded_here_since_is_demanded_of_new_files(source: Table, catalog: Catalog) -> None:
    import_it(catalog, source).alter(
        [{"change": "update-column-nullability", "name": ["n"], "nullable": False}]
    )
    import_it(catalog, source)
    with pytest.raises(SourceDiverged, match="the column n of `t` is NOT NULL"):
        import_it(catalog, source.append(pa.table({"id": [20], "n": [-1]})))


def test_checks_that_were_added_here_are_held_by_all_imports(source: Table, catalog: Catalog) -> None:
    table = import_it(catalog, source)
    check = {"kind": "check", "name": "low", "columns": [["n"]], "sql": "n < 100"}
    table.alter([{"change": "add-constraint", "constraint": check | {"predicate": BELOW_100}}])
    for n in (20, 30):
        source = source.append(pa.table({"id": [n], "n": [n]}))
        import_it(catalog, source)
    with pytest.raises(SourceDiverged, match="may have rows that violate CHECK"):
        import_it(catalog, source.append(pa.table({"id": [40], "n": [400]})))
    assert ids(catalog) == [*range(10), 20, 30]


@pytest.mark.parametrize(
    "change",
    [
        {"change": "delete-column", "name": ["n"]},
        {"change": "rename-column", "name": ["n"], "new_name": "k"},
        {"change": "update-column-type", "name": ["n"], "type": "long"},
    ],
)
def test_a_column_that_a_constraint_needs_is_not_changed_by_the_source(
    source: Table, catalog: Catalog, change: dict[str, Any]
) -> None:
    table = import_it(catalog, source)
    check = {"kind": "check", "name": "low", "columns": [["n"]], "sql": "n < 100"}
    table.alter([{"change": "add-constraint", "constraint": check | {"predicate": BELOW_100}}])
    with pytest.raises(SourceDiverged, match="the column n, which the constraint low of `t` needs as it is"):
        import_it(catalog, source.alter([change]))
    catalog.load_table("t").alter([{"change": "drop-constraint", "name": "low"}])
    assert import_it(catalog, source.refresh()).schema.names == source.refresh().schema.names


def test_values_that_a_column_cannot_hold_since_a_rollback_are_refused(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source)
    source = source.alter([{"change": "update-column-type", "name": ["n"], "type": "long"}])
    import_it(catalog, source).rollback_to_version(1)
    with pytest.raises(SourceDiverged, match="the column n of `t` is integer, and long in its source"):
        import_it(catalog, source.append(pa.table({"id": [10], "n": [1 << 40]})))
    assert ids(catalog) == list(range(10))


def test_a_column_that_the_source_requires_later_may_be_null_in_rows_of_ours(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source).append(pa.table({"id": [100], "n": pa.array([None], pa.int32())}))
    source = source.alter([{"change": "update-column-nullability", "name": ["n"], "nullable": False}])
    import_it(
        catalog,
        source.append(
            pa.table(
                {"id": [11], "n": [1]},
                pa.schema([("id", pa.int64()), pa.field("n", pa.int32(), nullable=False)]),
            )
        ),
    )
    table = catalog.load_table("t")
    assert table.schema.find(("n",)).nullable
    assert table.scan(filter="n IS NULL").to_arrow()["id"].to_pylist() == [100]


def test_only_the_table_of_a_source_catches_up_with_it(
    source: Table, catalog: Catalog, tmp_path: Path
) -> None:
    table = import_it(catalog, source)
    other_table = Catalog(tmp_path / "other").create_table("t", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInput, match="is another iceberg source"):
        import_it(catalog, other_table.append(pa.table({"id": [1]})))
    catalog.create_table("own", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInput, match="was not imported"):
        catalog.import_table(source.export_iceberg().url, "own", format="iceberg")
    table.drop_tag("imported")
    with pytest.raises(SourceDiverged, match="has no tag imported"):
        import_it(catalog, source.append(pa.table({"id": [11], "n": [1]})))


def test_of_two_imports_at_once_one_has_to_start_over(
    source: Table, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.formats.imports import catching_up
    from lakelog.catalog.formats.imports.differences import difference

    import_it(catalog, source)
    other_catalog = Catalog(tmp_path / "w")
    url = source.append(pa.table({"id": [11], "n": [1]})).export_iceberg().url
    raced_flags: list[bool] = []

    def slow(before: Any, now: Any) -> Any:
        if not raced_flags:
            raced_flags.append(True)
            other_catalog.import_table(url, "t", format="iceberg")
        return difference(before, now)

    monkeypatch.setattr(catching_up, "difference", slow)
    with pytest.raises(CommitConflict, match="imported by another client at the same time"):
        catalog.import_table(url, "t", format="iceberg")
    assert ids(catalog) == [*range(10), 11]


def test_an_import_after_versions_expired_knows_what_it_had(source: Table, catalog: Catalog) -> None:
    import datetime as dt

    import_it(catalog, source).delete(col("id") == 1)
    catalog.load_table("t").append(pa.table({"id": [50], "n": [1]}))
    catalog.expire("t", older_than=dt.timedelta(0), dry_run=False)
    catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)
    import_it(catalog, source.delete(col("id") == 2))
    assert ids(catalog) == [0, 3, 4, 5, 6, 7, 8, 9, 50]


def test_rows_that_the_source_deletes_by_vectors_are_deletions_of_these_alone(
    source: Table, catalog: Catalog
) -> None:
    import_it(catalog, source)
    source = source.delete(col("id") == 3)
    table = import_it(catalog, source.append(pa.table({"id": [20]})))
    rows = table.changes(table.version).to_arrow().select(["id", "_change_type"]).to_pylist()
    assert sorted(map(str, rows)) == [
        "{'id': 20, '_change_type': 'insert'}",
        "{'id': 3, '_change_type': 'delete'}",
    ]
