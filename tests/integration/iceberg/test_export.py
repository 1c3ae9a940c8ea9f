"""Exports of a table: their cost, agreement between exporters, refusals, and maintenance."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from tests.integration.iceberg import filters
from tests.integration.iceberg.readers import (
    READERS,
    by_duckdb,
    by_pyiceberg,
    duckdb_with_iceberg,
    hint,
    plain,
    refs,
)

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.schema import schema_to_arrow
from lakelog.catalog.engine.exports import iceberg_metadata
from lakelog.catalog.formats.iceberg.exporter import export
from lakelog.log import CountingStore, LogOptions
from lakelog.log.errors import InvalidInput, Unsupported

IDS = pa.schema({"id": pa.int64()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(str(tmp_path / "w"), log_options=LogOptions(in_background=lambda name, work: work()))


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table("t", IDS).append(rows(*range(1000)))
    return table.delete(col("id") < 5).append(rows(1000))


def metadata(url: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(url).read_bytes())
    return found


def objects(table: Table) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(table.location, "metadata").iterdir()}


def test_exporters_write_the_same_and_go_on_from_each_other(table: Table, tmp_path: Path) -> None:
    exports = [table.export_iceberg(), table.export_iceberg(), table.export_iceberg(str(tmp_path / "there"))]
    assert [(each.number, each.version) for each in exports] == [(1, 4)] * 3
    assert exports[1].objects == 0
    first = objects(table)
    for path in Path(table.location, "metadata").iterdir():
        path.unlink()
    table.export_iceberg()
    assert objects(table) == first

    table = table.append(rows(2000))
    # What is lost is not missed: the next export is whole.
    (lost_name,) = [name for name in first if "-snap-4-" in name]
    Path(table.location, "metadata", lost_name).unlink()
    done = table.export_iceberg()
    assert (done.number, done.version, hint(Path(table.location))) == (2, 5, 2)
    assert plain(by_duckdb(done.url)) == plain(table.to_arrow())
    Path(table.location, "metadata/v2.metadata.json").write_bytes(b'{"properties": 7}')
    Path(table.location, "metadata/version-hint.text").write_bytes(b"a page of a server")
    table = table.append(rows(2001))
    done = table.export_iceberg()
    assert (done.number, hint(Path(table.location))) == (3, 3)
    assert plain(by_duckdb(table.location)) == plain(table.to_arrow())


def test_metadata_that_is_there_is_read_once(catalog: Catalog, table: Table) -> None:
    done = table.export_iceberg()
    store = engine.places(catalog).stores[catalog.warehouse] = CountingStore(
        engine.places(catalog).store(catalog.warehouse)
    )
    url, data = iceberg_metadata(table)
    # The hint, what it is of, and that there is none after it.
    assert (url, data, store.by_kind) == (done.url, Path(done.url).read_bytes(), {"get": 3})


def test_what_another_program_writes_into_an_export_is_not_continued(catalog: Catalog, table: Table) -> None:
    """A writer of Iceberg that is pointed at the folder keeps the properties; anything else may be there too."""
    own = table.export_iceberg()
    folder = Path(own.url).parent
    document = metadata(own.url)

    def changed_data(**members: Any) -> bytes:
        return json.dumps(document | members).encode()

    foreign = {**document["snapshots"][-1], "snapshot-id": 999, "sequence-number": 999}
    main = {"snapshot-id": 999, "type": "branch"}
    for number, data in enumerate(
        (
            changed_data(
                **{
                    "snapshots": [*document["snapshots"], foreign],
                    "current-snapshot-id": 999,
                    "refs": {"main": main},
                }
            ),
            changed_data(snapshots=None),
            changed_data(**{"last-column-id": "x"}),
            changed_data(properties={**document["properties"], "lakelog.version": "²"}),
            changed_data(properties={**document["properties"], "lakelog.digest": 7}),
        )
    ):
        Path(folder, f"v{2 * number + 2}.metadata.json").write_bytes(data)
        if not number:
            objects_before = objects(table)
            catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)
            assert objects(table) == objects_before  # the export that begins anew may be under way
        done = table.export_iceberg()
        assert (done.number, done.version) == (2 * number + 3, 4)
        found_metadata = metadata(done.url)
        assert {**found_metadata, "properties": 0} == {**document, "properties": 0}
        assert plain(by_pyiceberg(done.url)) == plain(table.to_arrow())


def test_a_manifest_that_was_altered_is_not_continued(table: Table) -> None:
    table.export_iceberg()
    other = table.append(rows(1)).export_iceberg()
    lists = sorted(Path(table.location, "metadata").glob("*-snap-*.avro"))
    assert len(lists) > 1
    # Whole in itself, and of an older version.
    lists[-1].write_bytes(lists[0].read_bytes())
    table = table.refresh().append(rows(2))
    done = table.export_iceberg()
    assert done.number == other.number + 1 and plain(by_pyiceberg(done.url)) == plain(table.to_arrow())


def test_an_export_does_not_take_the_folder_of_another_table(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    other_text = str(tmp_path / "there")
    table.export_iceberg(other_text)
    other_table = catalog.create_table("other", IDS)
    with pytest.raises(InvalidInput, match="of another table, .*: choose an empty folder"):
        other_table.export_iceberg(other_text)
    assert table.append(rows(7)).export_iceberg(other_text).number == 2


def test_a_lost_or_wrong_hint_leads_to_the_newest_export(table: Table) -> None:
    place = Path(table.location)
    assert table.export_iceberg().number == 1
    for text in (None, "7000", "1\n"):
        table = table.append(rows(3000))
        done = table.export_iceberg()
        # As after a vacuum: exports before the newest one are gone.
        for path in place.glob("metadata/v*.metadata.json"):
            if path.name != f"v{done.number}.metadata.json":
                path.unlink()
        (place / "metadata/version-hint.text").unlink()
        if text is not None:
            (place / "metadata/version-hint.text").write_text(text)
        assert table.export_iceberg().number == hint(place) == done.number


def test_an_export_of_an_older_version_is_that_of_the_newest(table: Table) -> None:
    newer = table.append(rows(7000))
    assert newer.export_iceberg().version == 5
    assert export(table.table_head).version == 5
    assert hint(Path(table.location)) == 1


def test_an_export_costs_what_has_changed(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path / "w")).create_table("t", IDS)
    for number in range(12):
        table = table.append(rows(number))
    assert table.export_iceberg().objects == 1 + 2 * 12
    assert table.append(rows(99)).export_iceberg().objects == 3
    assert table.refresh().delete(col("id") == 3).export_iceberg().objects == 3
    assert table.refresh().export_iceberg().objects == 0


def test_versions_tags_and_branches_are_snapshots_with_their_columns(table: Table) -> None:
    table = table.create_tag("then").create_branch("side")
    table.at(ref="side").append(rows(5000))
    table = table.refresh().alter([{"change": "add-column", "name": ["more"], "type": "string"}])
    table = table.overwrite(pa.table({"id": [1], "more": ["x"]}))
    done = table.export_iceberg()
    assert [each_snapshot["snapshot-id"] for each_snapshot in metadata(done.url)["snapshots"]][:3] == [
        2,
        3,
        4,
    ]
    assert by_pyiceberg(done.url, 3).num_rows == 995
    named_refs = refs(done.url)
    assert named_refs.keys() == {"main", "then", "side"} and named_refs["then"] == 4
    assert sorted(by_pyiceberg(done.url, named_refs["side"])["id"].to_pylist())[-1] == 5000
    summary = metadata(done.url)["snapshots"][-1]["summary"]
    assert (summary["operation"], summary["lakelog.operation"]) == ("overwrite", "overwrite")
    assert "lakelog.user" in summary
    assert plain(by_duckdb(done.url)) == plain(table.to_arrow())


def test_only_the_newest_snapshots_are_listed_and_none_that_have_expired(catalog: Catalog) -> None:
    table = catalog.create_table("t", IDS)
    for number in range(8):
        table = table.append(rows(number))
    snapshot_ids = [
        each_snapshot["snapshot-id"]
        for each_snapshot in metadata(export(table.table_head, listed=3).url)["snapshots"]
    ]
    assert snapshot_ids == [7, 8, 9]
    table = table.append(rows(8))
    snapshot_ids = [
        each_snapshot["snapshot-id"]
        for each_snapshot in metadata(export(table.table_head, listed=3).url)["snapshots"]
    ]
    assert snapshot_ids == [8, 9, 10]
    for number in range(9, 15):
        table = table.append(rows(number))
    done = export(table.table_head, listed=3)
    # What is not listed is not made: of each snapshot its list and one manifest, and the metadata.
    assert done.objects == 7 and [
        each_snapshot["snapshot-id"] for each_snapshot in metadata(done.url)["snapshots"]
    ] == [
        14,
        15,
        16,
    ]
    assert plain(by_duckdb(done.url)) == plain(table.to_arrow())
    catalog.expire("t", version=16, dry_run=False)
    table = table.refresh().append(rows(9))
    done = table.export_iceberg()
    assert [each_snapshot["snapshot-id"] for each_snapshot in metadata(done.url)["snapshots"]] == [16, 18]
    assert all(
        "parent-snapshot-id" not in each_snapshot for each_snapshot in metadata(done.url)["snapshots"][:1]
    )
    assert plain(by_duckdb(done.url)) == plain(table.to_arrow())


def test_a_table_that_is_on_is_exported_after_each_commit(catalog: Catalog) -> None:
    table = catalog.create_table("t", IDS, properties={"lakelog.iceberg": "on"})
    for number in range(3):
        table = table.append(rows(number))
        assert plain(by_duckdb(table.location)) == plain(table.to_arrow())
    with catalog.transaction() as transaction:
        transaction.load_table("t").append(rows(10))
        with pytest.raises(Unsupported, match="of a transaction"):
            transaction.load_table("t").export_iceberg()
    assert by_duckdb(table.location).num_rows == 4
    table = catalog.load_table("t").alter(
        [{"change": "set-property", "key": "lakelog.iceberg", "value": "off"}]
    )
    with pytest.raises(Unsupported, match=r"lakelog\.iceberg .* is off: set it to on-demand"):
        table.export_iceberg()
    table.append(rows(11))
    assert by_duckdb(table.location).num_rows == 4


def test_what_is_left_to_export_of_a_dropped_table_is_not_exported(tmp_path: Path) -> None:
    later: list[Callable[[], None]] = []
    options = LogOptions(in_background=lambda name, work: later.append(work))
    catalog, place = Catalog(str(tmp_path / "w"), log_options=options), tmp_path / "place"
    on = {"lakelog.iceberg": "on"}
    catalog.create_table("t", IDS, properties=on, location=str(place)).append(rows(1))
    catalog.drop_table("t", purge=True)
    for work in later:
        work()
    assert not (place / "metadata").exists()
    catalog.create_table("t", IDS, location=str(place)).append(rows(2)).export_iceberg()
    for work in later:
        work()
    assert by_duckdb(str(place))["id"].to_pylist() == [2]


def test_what_iceberg_cannot_have_is_refused_by_name(catalog: Catalog) -> None:
    columns = pa.schema({"id": pa.int64(), "n": pa.int32(), "pause": pa.duration("us")})
    table = catalog.create_table("t", columns)
    assert [iceberg_obstacle.where for iceberg_obstacle in table.iceberg_obstacles()] == ["the column pause"]
    with pytest.raises(Unsupported, match="the column pause: Iceberg has no type for interval"):
        table.export_iceberg()
    with pytest.raises(Unsupported, match=r"is on, and Iceberg cannot have this table \(the column pause"):
        table.alter([{"change": "set-property", "key": "lakelog.iceberg", "value": "on"}])
    with pytest.raises(Unsupported, match="the column pause"):
        catalog.create_table("u", columns, properties={"lakelog.iceberg": "on"})
    table = table.alter(
        [
            {"change": "delete-column", "name": ["pause"]},
            {"change": "set-property", "key": "lakelog.iceberg", "value": "on"},
        ]
    )
    with pytest.raises(Unsupported, match="may have it as integer, which Iceberg does not read as double"):
        table.alter([{"change": "update-column-type", "name": ["n"], "type": "double"}])
    table = table.alter([{"change": "update-column-type", "name": ["n"], "type": "long"}])
    assert table.iceberg_obstacles() == []
    with pytest.raises(InvalidInput, match="inside of lakelog's own folders"):
        table.export_iceberg(f"{table.location}/_log/there")


def test_files_of_others_are_refused_by_name(catalog: Catalog, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for name, id in (("other", 1), ("more", 2)):
        pq.write_table(rows(id), tmp_path / f"{name}.parquet")
    table = catalog.create_table("t", IDS).add_files(str(tmp_path / "other.parquet"))
    with pytest.raises(
        Unsupported, match=r"other\.parquet has column ids that are not the table's, or none: write its rows"
    ):
        table.export_iceberg()
    # A tag that still has the file is not shown, and does not keep the table from being.
    table = table.add_files(str(tmp_path / "more.parquet")).create_tag("then").compact()
    assert refs(table.export_iceberg().url).keys() == {"main"}
    table = catalog.create_table("u", IDS, properties={"lakelog.iceberg": "on"})
    with pytest.raises(Unsupported, match=r"lakelog\.iceberg is on, and .* would not find the columns"):
        table.add_files(str(tmp_path / "other.parquet"))


def test_vacuum_and_purge_delete_what_exports_no_longer_need(catalog: Catalog) -> None:
    table = catalog.create_table("t", IDS, properties={"lakelog.iceberg": "on"})
    for number in itertools.chain(range(5), range(2000, 2003)):
        table = table.append(rows(number)).delete(col("id") == number)
    objects_before = objects(table)
    catalog.expire("t", retain_last=1, dry_run=False)
    table = table.refresh().append(rows(1))
    done = catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)[0]
    assert done.objects > 10
    assert len(objects(table)) < len(objects_before)
    assert plain(by_duckdb(table.location)) == plain(table.to_arrow())
    assert catalog.fsck(deep=True).found == []
    place = Path(table.location)
    catalog.drop_table("t", purge=True)
    assert list(place.rglob("*.avro")) == list(place.rglob("*.metadata.json")) == []


@pytest.mark.parametrize("is_exported_before", [True, False])
def test_readers_read_tables_and_tags_that_were_partitioned_by_a_dropped_column(
    catalog: Catalog, is_exported_before: bool
) -> None:
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "k": pa.string()}))
    table = table.alter([{"change": "set-partitioning", "fields": ["k"]}])
    table = table.append(pa.table({"id": [1, 2], "k": ["a", "b"]})).create_tag("then")
    if is_exported_before:
        table.export_iceberg()
    table = table.alter([{"change": "set-partitioning", "fields": []}])
    table = table.alter([{"change": "delete-column", "name": ["k"]}]).append(rows(3))
    url = table.export_iceberg().url
    for read in READERS.values():
        assert sorted(read(url)["id"].to_pylist()) == [1, 2, 3]
        assert sorted(read(url, refs(url)["then"])["id"].to_pylist()) == [1, 2]


def found_where(url: str, condition: str) -> list[list[int]]:
    """Return the ids of the rows that match, as two readers that leave out files find them."""
    other_rows = StaticTable.from_metadata(url).scan(row_filter=condition).to_arrow()
    return [_ids_by_duckdb(url, condition), sorted(other_rows["id"].to_pylist())]


def _ids_by_duckdb(url: str, condition: str) -> list[int]:
    found = duckdb_with_iceberg().execute(f"SELECT id FROM iceberg_scan('{url}') WHERE {condition}")
    return sorted(id for (id,) in found.fetchall())


def test_readers_are_not_misled_by_partitions_of_numbers(catalog: Catalog) -> None:
    columns = {
        "id": pa.int64(),
        "tiny": pa.int8(),
        "n": pa.int32(),
        "f": pa.float64(),
        "d": pa.decimal128(9, 2),
    }
    table = catalog.create_table("t", pa.schema(columns))
    by = [{"transform": "truncate", "args": [10], "column": [name]} for name in ("tiny", "n", "d")]
    table = table.alter([{"change": "set-partitioning", "fields": [*by, "f"]}])
    for id, tiny, n, f, d in [
        (1, -128, -(2**31), 0.1, "-1.28"),
        (2, 0, 0, float("nan"), "0"),
        (3, 1, 1, 1.0, "0"),
    ]:
        row = {"id": [id], "tiny": [tiny], "n": [n], "f": [f], "d": [Decimal(d)]}
        table = table.append(pa.table(row, schema_to_arrow(table.schema)))
    url = table.export_iceberg().url
    for condition in ("tiny = -128", "n = -2147483648", "f = 0.1", "d < 0"):
        assert found_where(url, condition) == [[1], [1]], condition
    assert (
        _ids_by_duckdb(url, "f > 5") == table.scan(["id"], col("f") > 5).to_arrow()["id"].to_pylist() == [2]
    )


@pytest.mark.parametrize("transform", ["day", "month"])
def test_times_before_1970_are_found_in_partitions_by_day_and_month(catalog: Catalog, transform: str) -> None:
    """DuckDB rounds what it looks for towards 1970: it would look for the last of 1969 in the first day of 1970."""
    times = [dt.datetime(year, 12, 31, 23, 30, tzinfo=dt.UTC) for year in (1800, 1969, 1970, 2024)]
    table = catalog.create_table("u", pa.schema({"id": pa.int64(), "v": pa.timestamp("us", "UTC")}))
    partitioned = {"change": "set-partitioning", "fields": [{"transform": transform, "column": ["v"]}]}
    table = table.alter([partitioned])

    def found_numbers() -> list[list[int]]:
        return [filters.by_duckdb(table.location, filters.Filter("=", (time,))) for time in times]

    table = table.append(pa.table({"id": [2, 3], "v": times[2:]}))
    table.export_iceberg()
    table = table.append(pa.table({"id": [0, 1], "v": times[:2]}))
    url = table.export_iceberg().url
    assert found_numbers() == [[0], [1], [2], [3]]
    fields = {
        partition_spec["spec-id"]: len(partition_spec["fields"])
        for partition_spec in metadata(url)["partition-specs"]
    }
    by_fields = [fields[task.file.spec_id] for task in StaticTable.from_metadata(url).scan().plan_files()]
    assert sorted(by_fields) == [0, 0, 1, 1], "others are found by their partitions"
    table = table.delete(col("id").is_in([1, 2])).append(pa.table({"id": [10], "v": [times[1]]}))
    table.export_iceberg()
    assert found_numbers() == [[0], [10], [], [3]]
