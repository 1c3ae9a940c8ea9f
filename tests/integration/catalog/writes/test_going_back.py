"""Rollback and set-current-version from Python: restored contents, kept contents, and the view of other clients."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files.column_statistics import ColumnEstimates, TableEstimates
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.schema.arrow_types import schema_from_arrow
from lakelog.catalog.core.schema.predicate import col
from lakelog.catalog.core.writes import compaction_commit
from lakelog.catalog.core.writes.rollback import _missing_value
from lakelog.catalog.errors import CommitConflict, NoSuchTable
from lakelog.log.errors import InvalidInput, NotFound


def rows(table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in table.refresh().to_arrow().to_pylist()), key=repr)


def ids(*values: int, **more: list) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int32()), **more})


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    return Catalog(tmp_path / "w", options={"fsync": "off"})


@pytest.fixture
def table(catalog):
    """Versions: 1 created, 2 has row 1, 3 has rows 1 and 2."""
    new_table = catalog.create_table("t", pa.schema([("id", pa.int32())]), partition_by=["id"])
    new_table.append(ids(1))
    return new_table.append(ids(2)).refresh()


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        ("float", "double", 1e300),
        ("integer", "long", 2**40),
        ("date", "timestamp_ntz", dt.datetime(2020, 2, 29, 12)),
        ("decimal(5,2)", "decimal(12,4)", Decimal("12345.6789")),
        ("varchar(2)", "string", "long"),
    ],
)
@pytest.mark.parametrize("line", ["main", "branch"])
def test_rows_of_a_dropped_column_do_not_come_back_under_a_narrower_type(catalog, narrow, wide, value, line):
    table = catalog.create_table("t", pa.schema([("id", pa.int32())])).add_column("c", narrow)
    table = table.update_column("c", type=wide)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "c": [value]}, schema=table.arrow_schema))
    dropped = catalog.load_table("t").drop_column("c")
    table = catalog.load_table("t").rollback_to_version(2)
    with pytest.raises(InvalidInput, match="the column c had been dropped then"):
        if line == "main":
            table.set_current_version(dropped.version)
        else:
            table.create_branch("b", version=dropped.version)
    assert (rows(table), table.refresh().version) == ([], table.version)
    assert table.refresh().set_current_version(2).row_count == 0


@pytest.mark.parametrize(
    ("first", "other", "now", "value"),
    [
        ("integer", "decimal(20,6)", "double", Decimal("12345678901234.123456")),
        ("integer", "double", "decimal(38,2)", 0.126),
        ("integer", "long", "double", 2**40),
        ("decimal(10,2)", "decimal(38,10)", "decimal(38,2)", Decimal("1.1234")),
    ],
)
def test_rows_of_a_dropped_column_do_not_come_back_if_it_may_have_widened_in_another_way(
    catalog, first, other, now, value
):
    table = catalog.create_table("t", pa.schema([("id", pa.int32())])).add_column("c", first)
    table = table.update_column("c", type=other)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "c": [value]}, schema=table.arrow_schema))
    dropped = catalog.load_table("t").drop_column("c")
    table = catalog.load_table("t").rollback_to_version(2).update_column("c", type=now)
    with pytest.raises(InvalidInput, match="the column c had been dropped then"):
        table.set_current_version(dropped.version)


def test_rows_do_not_come_back_without_the_values_that_a_compaction_has_left_out(catalog):
    table = catalog.create_table("t", pa.schema([("id", pa.int32())])).add_column("c", "double", default=5.5)
    for id in (1, 2):
        table = table.append(pa.table({"id": pa.array([id], pa.int32()), "c": [0.5]}))
    compacted = table.drop_column("c").compact()
    table = compacted.rollback_to_version(table.version)
    with pytest.raises(InvalidInput, match="the column c had been dropped then"):
        table.set_current_version(compacted.version)


def test_a_write_that_lacks_a_required_field_of_a_struct_conflicts_with_the_rollback_that_brings_it_back(
    catalog,
):
    struct = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32())])
    catalog.create_table("t", pa.schema([("id", pa.int32()), ("s", struct)]))
    without_x = catalog.load_table("t").alter([{"change": "delete-column", "name": ["s", "x"]}])
    Catalog(catalog.warehouse).load_table("t").rollback_to_version(1)
    with pytest.raises(CommitConflict, match=r"s\.x is required now, and the files do not have it"):
        without_x.append(pa.table({"id": pa.array([2], pa.int32()), "s": [{"y": 2}]}))
    assert rows(catalog.load_table("t")) == []


def test_rows_do_not_come_back_without_a_part_of_the_keys_of_a_map(catalog):
    key = pa.struct([pa.field("a", pa.int32())])
    table = catalog.create_table("t", pa.schema([("m", pa.list_(pa.map_(key, pa.int32())))]))
    wide = table.alter([{"change": "add-column", "name": ["m", "element", "key", "b"], "type": "integer"}])
    maps = [{"m": [[({"a": 1, "b": 1}, 10), ({"a": 1, "b": 2}, 20)]]}]
    late = Catalog(catalog.warehouse).load_table("t")
    wide.append(pa.Table.from_pylist(maps, wide.arrow_schema))
    narrow = catalog.load_table("t").rollback_to_version(table.version)
    words = r"the keys of a map lack m\.element\.key\.b now"
    for go in (narrow.set_current_version, lambda version: narrow.create_branch("b", version=version)):
        with pytest.raises(InvalidInput, match=words):
            go(3)
    with pytest.raises(CommitConflict, match=words):
        late.append(pa.Table.from_pylist(maps, wide.arrow_schema))
    assert rows(narrow) == []
    assert rows(narrow.rollback_to_version(3)) == [(maps[0]["m"],)]


def test_changes_of_rows_do_not_show_maps_without_a_part_of_their_keys(catalog):
    key = pa.struct([pa.field("a", pa.int32())])
    table = catalog.create_table("t", pa.schema([("m", pa.map_(key, pa.int32()))]))
    wide = table.alter([{"change": "add-column", "name": ["m", "key", "b"], "type": "integer"}])
    maps = [{"m": [({"a": 1, "b": 1}, 10), ({"a": 1, "b": 2}, 20)]}]
    written = wide.append(pa.Table.from_pylist(maps, wide.arrow_schema))
    narrow = written.rollback_to_version(table.version)
    with pytest.raises(InvalidInput, match=r"the keys of a map lack m\.key\.b now"):
        narrow.changes(1).to_arrow()
    assert written.changes(1).to_arrow().num_rows == 1


@pytest.fixture
def stale(catalog):
    """A handle of a version without the column c, which a rollback has brought back since."""
    table = catalog.create_table("t", pa.schema([("id", pa.int32()), ("k", pa.int32()), ("c", pa.string())]))
    table = table.append(ids(1, 2, k=pa.array([1, 2], pa.int32()), c=["a", "b"]))
    without_c = table.drop_column("c")
    Catalog(catalog.warehouse).load_table("t").rollback_to_version(table.version)
    return without_c


CHANGES = {
    "update": lambda table: table.update({"k": "k + 10"}, "id = 1"),
    "merge": lambda table: (
        table.merge(ids(1, k=pa.array([9], pa.int32())), on="id").when_matched_update_all().execute()
    ),
    "overwrite": lambda table: table.overwrite(ids(1, k=pa.array([9], pa.int32())), "id = 1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_rows_do_not_lose_a_column_that_a_rollback_brings_back_at_the_same_time(
    catalog, stale, change
):
    with pytest.raises(CommitConflict, match="the column c is there again"):
        change(stale)
    assert rows(catalog.load_table("t")) == [(1, 1, "a"), (2, 2, "b")]


def test_writes_that_copy_no_rows_go_on_though_a_rollback_brings_a_column_back(catalog, stale):
    stale.delete("id = 1")
    stale.append(ids(3, k=pa.array([3], pa.int32())))
    assert rows(catalog.load_table("t")) == [(2, 2, "b"), (3, 3, None)]


def test_compacted_rows_do_not_lose_a_column_that_a_rollback_brings_back_at_the_same_time(
    catalog, stale, monkeypatch
):
    stale.append(ids(3, k=pa.array([3], pa.int32())))
    table = catalog.load_table("t")
    version, without_c = table.version, table.drop_column("c")

    def copied_after_rollback(*arguments, **options):
        monkeypatch.undo()
        Catalog(catalog.warehouse).load_table("t").rollback_to_version(version)
        return copied_files(*arguments, **options)

    monkeypatch.setattr(compaction_commit, "copied_files", copied_after_rollback)
    with suppress(CommitConflict):
        without_c.compact()
    assert rows(catalog.load_table("t")) == [(1, 1, "a"), (2, 2, "b"), (3, 3, None)]


def test_a_column_that_was_dropped_and_is_required_again_gets_no_rows_that_may_lack_it(catalog):
    table = catalog.create_table("t", pa.schema([("id", pa.int32())]))
    table = table.add_column("c", "double", nullable=False, default=0.5)
    table = table.update_column("c", nullable=True)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "c": pa.array([None], pa.float64())}))
    dropped = catalog.load_table("t").drop_column("c")
    table = catalog.load_table("t").rollback_to_version(2)
    with pytest.raises(InvalidInput, match="the column c had been dropped then"):
        table.set_current_version(dropped.version)


def test_a_rollback_brings_back_rows_columns_and_properties_as_a_new_version(catalog, table):
    assert table.version == 3
    table.alter(
        [
            {"change": "rename-column", "name": ["id"], "new_name": "key"},
            {"change": "add-column", "name": ["note"], "type": "string"},
            {"change": "set-property", "key": "owner", "value": "me"},
            {"change": "set-property", "key": "comment", "value": "mine"},
            {"change": "set-partitioning", "fields": []},
        ]
    )
    catalog.load_table("t").overwrite(pa.table({"key": pa.array([9], pa.int32()), "note": ["n"]}))
    now = catalog.load_table("t").rollback_to_version(2)
    assert (now.version, rows(now), now.schema.names) == (6, [(1,)], ("id",))
    assert (now.properties, now.comment, [f.name for f in now.spec.fields]) == ({}, None, ["id"])
    other_table = Catalog(catalog.warehouse).load_table("t")
    assert (rows(other_table), other_table.schema, other_table.specs) == ([(1,)], now.schema, now.specs)
    assert other_table.at(version=5).to_arrow().to_pylist() == [{"key": 9, "note": "n"}]
    assert (other_table.row_count, other_table.file_count) == (1, 1)
    [entry] = other_table.history(limit=1)
    assert (entry.operation, entry.details["version"]) == ("rollback", 2)


def test_ids_given_since_are_not_given_again(catalog, table):
    table.alter([{"change": "add-column", "name": ["note"], "type": "string"}])
    with_note = catalog.load_table("t").append(ids(3, note=["x"]))
    id = with_note.schema.find(("note",)).id
    catalog.load_table("t").rollback_to_version(3)
    again = catalog.load_table("t").alter([{"change": "add-column", "name": ["note"], "type": "long"}])
    assert again.schema.find(("note",)).id > id
    # Forward again, to what was undone: the first `note` is there, and the second one is not.
    forward = catalog.load_table("t").rollback_to_version(with_note.version)
    assert rows(forward) == [(1, None), (2, None), (3, "x")]


def test_setting_the_current_version_brings_back_rows_only(catalog, table):
    table.alter([{"change": "rename-column", "name": ["id"], "new_name": "key"}])
    table.refresh().alter([{"change": "add-column", "name": ["note"], "type": "string"}])
    catalog.load_table("t").truncate()
    current_version = catalog.load_table("t").set_current_version(2)
    assert (rows(current_version), current_version.schema.names) == ([(1, None)], ("key", "note"))
    [entry] = current_version.history(limit=1)
    assert (entry.operation, entry.details["version"]) == ("set-current-version", 2)


def test_rows_from_before_a_widening_are_found_by_their_new_type(catalog):
    table = catalog.create_table(
        "d", pa.schema([("day", pa.date32()), ("price", pa.decimal128(5, 2)), ("n", pa.int32())])
    )
    first = table.append(
        pa.table(
            {
                "day": [dt.date(2020, 1, 2)],
                "price": pa.array([1.5], pa.float64()).cast(pa.decimal128(5, 2)),
                "n": pa.array([3], pa.int32()),
            }
        )
    )
    wide = first.alter(
        [
            {"change": "update-column-type", "name": ["day"], "type": "timestamp_ntz"},
            {"change": "update-column-type", "name": ["price"], "type": "decimal(10,3)"},
            {"change": "update-column-type", "name": ["n"], "type": "long"},
        ]
    )
    wide.truncate()
    current_version = catalog.load_table("d").set_current_version(first.version)
    for _ in range(2):
        for each in (
            col("day") == dt.datetime(2020, 1, 2),
            col("price") == Decimal("1.5"),
            col("n") == 3,
        ):
            assert current_version.scan(filter=each).to_arrow().num_rows == 1, each
        current_version = Catalog(catalog.warehouse).load_table("d")
    # And back to the narrow types, with the wide ones in between.
    current_version.append(
        pa.table({"day": [dt.datetime(2021, 1, 1)], "price": [Decimal("2.5")], "n": pa.array([2**40])})
    )
    narrow = catalog.load_table("d").rollback_to_version(first.version)
    assert rows(narrow) == [(dt.date(2020, 1, 2), first.to_arrow()["price"][0].as_py(), 3)]
    with pytest.raises(InvalidInput):
        narrow.append(pa.table({"day": [dt.date(2021, 1, 1)], "n": pa.array([2**40])}))


def test_a_rollback_undoes_a_replace_and_setting_rows_over_one_is_refused(catalog, table):
    stage = engine.stage(catalog, "replace", "t", pa.schema([("other", pa.string())]))
    engine.commit_stage(catalog, stage)
    replaced_table = catalog.load_table("t")
    with pytest.raises(InvalidInput, match="was replaced after version 3.*rollback_to_version"):
        replaced_table.set_current_version(3)
    write = engine.begin_write(replaced_table)
    back = replaced_table.rollback_to_version(3)
    assert (rows(back), back.schema.names) == ([(1,), (2,)], ("id",))
    with pytest.raises(CommitConflict, match="replaced the table"):
        engine.commit_write(replaced_table, write, "append", [])
    back.append(ids(7))
    assert rows(back) == [(1,), (2,), (7,)]


def test_rows_that_lack_what_is_required_now_are_refused():
    part = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = schema_from_arrow(pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("s", part)]))
    nullable = schema_from_arrow(pa.schema([pa.field("id", pa.int32()), pa.field("s", part)]))
    without_s = msgspec.structs.replace(schema, fields=schema.fields[:1])
    without_id = msgspec.structs.replace(schema, fields=schema.fields[1:])
    assert _missing_value(schema, schema) is None
    assert _missing_value(nullable, schema) == "the column id is NOT NULL now, and was not then"
    assert _missing_value(without_id, schema) == "the column id is required now, and did not exist then"
    assert _missing_value(without_s, schema) is None


def test_rows_of_a_type_that_a_rollback_made_narrower_again_are_not_set(catalog):
    fields = pa.schema([("id", pa.int32()), ("at", pa.list_(pa.date32()))])
    new_table = catalog.create_table("u", fields).append(ids(1))
    wider = new_table.alter([{"change": "update-column-type", "name": ["id"], "type": "long"}])
    wider.append(pa.table({"id": [2**40]}))
    table = catalog.load_table("u").rollback_to_version(2)
    table.alter([{"change": "update-column-type", "name": ["at", "element"], "type": "timestamp_ntz"}])
    table = catalog.load_table("u").rollback_to_version(2)
    for version, words in {4: "column id is of type integer", 6: "column at.element is of type date"}.items():
        with pytest.raises(InvalidInput, match=f"{words} now, and was of the wider type"):
            table.set_current_version(version)
    assert rows(table) == [(1, None)]
    assert rows(table.set_current_version(1)) == []
    assert rows(table.rollback_to_version(4)) == [(1, None), (2**40, None)]


def test_a_rollback_goes_over_a_partitioning_that_the_former_type_of_its_column_does_not_have(catalog):
    table = catalog.create_table("d", pa.schema([("id", pa.int32()), ("day", pa.date32())]))
    first = table.append(ids(1, day=[dt.date(2020, 1, 2)]))
    hour = {"transform": "hour", "column": "day"}
    wide = first.update_column("day", type="timestamp_ntz").alter(
        [{"change": "set-partitioning", "fields": ["id", hour]}]
    )
    wide = wide.append(ids(2, day=[dt.datetime(2020, 1, 2, 5)]))
    narrow = first.refresh().rollback_to_version(first.version).rename_column("id", "key")
    assert rows(narrow) == [(1, dt.date(2020, 1, 2))]
    # Its number means no other partitioning from now on.
    narrow = narrow.alter([{"change": "set-partitioning", "fields": ["key"]}])
    assert narrow.spec.id not in [spec.id for spec in wide.specs]
    narrow = narrow.append(pa.table({"key": pa.array([3], pa.int32()), "day": [dt.date(2021, 1, 1)]}))
    assert narrow.scan(filter=col("key") == 3).to_arrow().num_rows == 1
    again = narrow.rollback_to_version(wide.version)
    assert again.spec == wide.spec and len(rows(again)) == 2
    assert again.scan(filter=col("day") >= dt.datetime(2020, 1, 2, 5)).to_arrow()["id"].to_pylist() == [2]
    # Rows from between, which have the other partitioning.
    assert rows(again.set_current_version(narrow.version)) == [
        (1, dt.datetime(2020, 1, 2)), (3, dt.datetime(2021, 1, 1))
    ]  # fmt: skip
    assert not catalog.fsck(deep=True).found


def test_a_partitioning_that_a_rollback_leaves_has_values_of_the_former_type(catalog):
    first = catalog.create_table("n", pa.schema([("id", pa.int32())])).append(ids(1))
    wide = first.update_column("id", type="long")
    wide.alter([{"change": "set-partitioning", "fields": ["id"]}])
    narrow = catalog.load_table("n").rollback_to_version(first.version)
    narrow = narrow.alter([{"change": "set-partitioning", "fields": ["id"]}]).append(ids(2))
    assert [str(field.result) for field in narrow.spec.fields] == ["integer"]
    assert [file["p1000"] for file in narrow.plan().to_pylist() if file["spec"] == narrow.spec.id] == [2]


@pytest.mark.parametrize(
    ("transform", "narrow_type", "wide_type", "value", "wide_value"),
    [
        ("bucket", pa.int32(), "decimal(12,2)", 15, Decimal("15.00")),
        ("truncate", pa.int32(), "decimal(12,2)", 15, Decimal("15.00")),
        ("bucket", pa.decimal128(10, 2), "decimal(14,4)", Decimal("15.00"), Decimal("15.0000")),
        ("truncate", pa.decimal128(10, 2), "decimal(14,4)", Decimal("15.00"), Decimal("15.0000")),
        ("bucket", pa.date32(), "timestamp_ntz", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)),
    ],
)
def test_rows_are_found_that_were_partitioned_by_another_type_of_their_column(
    catalog, transform, narrow_type, wide_type, value, wide_value
):
    first = catalog.create_table("n", pa.schema([("id", narrow_type)]))
    wide = first.update_column("id", type=wide_type)
    narrow = catalog.load_table("n").rollback_to_version(first.version)
    field = {"transform": transform, "args": [10], "column": "id"}
    narrow = narrow.alter([{"change": "set-partitioning", "fields": [field]}])
    narrow = narrow.append(pa.table({"id": pa.array([value], narrow_type)}))
    again = narrow.rollback_to_version(wide.version)
    again.create_branch("b", version=narrow.version)
    for table in (
        catalog.load_table("n").set_current_version(narrow.version),
        catalog.load_table("n", ref="b"),
    ):
        assert table.scan(filter=col("id") == wide_value).to_arrow()["id"].to_pylist() == [wide_value]
        assert table.scan(filter=col("id") < wide_value).to_arrow().num_rows == 0
    catalog.load_table("n").drop_branch("b")
    # The column can be widened again: no partitioning of the present table is by its values.
    renewed = catalog.load_table("n").rollback_to_version(first.version)
    renewed = renewed.set_current_version(narrow.version).update_column("id", type=wide_type)
    assert renewed.scan(filter=col("id") == wide_value).to_arrow().num_rows == 1
    assert renewed.delete(col("id") < wide_value).scan().to_arrow().num_rows == 1
    replaced = renewed.overwrite(pa.table({"id": [wide_value]}), col("id") == wide_value)
    assert replaced.scan().to_arrow().num_rows == 1
    assert not catalog.fsck(deep=True).found


@pytest.mark.parametrize("way", ["not there", "dropped"])
def test_a_partitioning_of_a_column_that_was_gone_has_values_of_the_former_type(catalog, way):
    field = {"transform": "truncate", "args": [10], "column": "c"}
    first = catalog.create_table("t", pa.schema([("id", pa.int32())]))
    narrow = first.add_column("c", "integer")
    wide = narrow.update_column("c", type="decimal(12,2)").alter(
        [{"change": "set-partitioning", "fields": [field]}]
    )
    if way == "dropped":
        gone = wide.alter([{"change": "set-partitioning", "fields": []}]).drop_column("c")
    else:
        gone = wide.rollback_to_version(first.version)
    back = gone.rollback_to_version(narrow.version).alter([{"change": "set-partitioning", "fields": [field]}])
    filled = back.append(ids(1, 2, c=pa.array([15, 24], pa.int32())))
    table = filled.rollback_to_version(wide.version).set_current_version(filled.version)
    assert table.scan(filter=col("c") == Decimal(15)).to_arrow()["id"].to_pylist() == [1]
    assert table.delete(col("c") < Decimal(15)).row_count == 2


@pytest.mark.parametrize("transform", [None, "identity", "hour"])
def test_a_delete_matches_rows_by_the_type_that_a_column_has_got_meanwhile(catalog, transform):
    stale = catalog.create_table("t", pa.schema([("id", pa.int32()), ("c", pa.date32())]))
    table = catalog.load_table("t").update_column("c", type="timestamp_ntz")
    if transform is not None:
        table = table.alter(
            [{"change": "set-partitioning", "fields": [{"transform": transform, "column": "c"}]}]
        )
    for id, hour in enumerate((0, 5, 23)):
        table = table.append(ids(id, c=[dt.datetime(2020, 1, 2, hour)]))
    assert stale.delete(col("c") <= dt.date(2020, 1, 2)).row_count == 2
    assert [row[0] for row in rows(table)] == [1, 2]


def test_a_delete_takes_no_rows_by_a_column_that_was_dropped_meanwhile(catalog):
    empty = catalog.create_table("t", pa.schema([("id", pa.int32()), ("c", pa.string())]))
    filled = empty.append(ids(1, c=["x"]))
    stale = catalog.load_table("t").rollback_to_version(empty.version)
    table = catalog.load_table("t").drop_column("c").set_current_version(filled.version)
    with pytest.raises(
        CommitConflict, match=r"the column c was dropped\. Nothing was changed: load the table again"
    ):
        stale.delete(col("c") == "x")
    assert rows(table) == [(1,)]


def test_going_back_to_the_current_version_makes_no_version(table):
    assert table.rollback_to_version(3).version == 3
    assert table.set_current_version(3).version == 3


def test_versions_that_there_are_not_are_refused(catalog, table):
    for go in (table.rollback_to_version, table.set_current_version):
        with pytest.raises(NotFound, match="has no version 99"):
            go(99)
        with pytest.raises(NotFound):
            go(0)
    with pytest.raises(NotFound):
        table.rollback_to_timestamp(0)
    with pytest.raises(InvalidInput, match="read-only"):
        table.at(version=2).rollback_to_version(1)
    catalog.drop_table("t")
    with pytest.raises(NoSuchTable):
        table.rollback_to_version(2)


def test_a_version_that_has_expired_cannot_come_back(catalog, table):
    old = catalog.load_table("t")
    then = old.at(version=2)
    catalog.expire("t", version=3, dry_run=False)
    with pytest.raises(NotFound):
        old.rollback_to_version(2)
    assert then.version == 2


def test_a_rollback_to_a_time(catalog, table):
    time_us = table.at(version=2).table_head.time_us
    assert rows(table.rollback_to_timestamp(time_us)) == [(1,)]


def test_a_rollback_joins_a_transaction_and_conflicts_when_rows_changed_meanwhile(catalog, table):
    with catalog.transaction() as tx:
        tx.load_table("t").append(ids(5))
        tx.load_table("t").rollback_to_version(2)
        assert rows(tx.load_table("t")) == [(1,)]
        assert rows(catalog.load_table("t")) == [(1,), (2,)]
    assert rows(catalog.load_table("t")) == [(1,)]
    tx = catalog.begin()
    tx.load_table("t").rollback_to_version(3)
    tx.load_table("t").rollback_to_version(1)
    catalog.load_table("t").append(ids(6))
    with pytest.raises(CommitConflict):
        tx.commit()
    assert rows(catalog.load_table("t")) == [(1,), (6,)]


def test_a_write_under_way_goes_on_over_a_rollback_where_its_columns_still_fit(catalog, table):
    newest = catalog.load_table("t")
    catalog.load_table("t").rollback_to_version(2)
    newest.append(ids(8))
    assert rows(newest) == [(1,), (8,)]
    widened = newest.refresh().alter([{"change": "update-column-type", "name": ["id"], "type": "long"}])
    write = engine.begin_write(widened)
    widened.rollback_to_version(2)
    from lakelog.catalog.core.parquet.ingest import written_files

    files = written_files(widened.table_head.tracked, widened.metadata, write, pa.table({"id": [2**40]}))
    with pytest.raises(CommitConflict, match="is a integer now, and was a long"):
        engine.commit_write(widened, write, "append", files)


def test_files_that_came_back_are_vacuumed_only_when_nothing_has_them(catalog, table):
    table.truncate()
    back = catalog.load_table("t").rollback_to_version(2)
    catalog.expire("t", retain_last=1, dry_run=False)
    [found] = catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)
    assert found.files == 1
    assert rows(back) == [(1,)]
    assert not catalog.fsck(deep=True).found


def test_estimates_stay_with_the_columns_that_they_are_of_and_go_with_a_replace(catalog, table):
    def estimates(version: int, **columns: int) -> TableEstimates:
        schema = catalog.load_table("t").schema
        return TableEstimates(
            version=version,
            rows=2,
            size_bytes=10,
            columns={
                schema.find((name,)).id: ColumnEstimates(type="integer", distinct=distinct)
                for name, distinct in columns.items()
            },
        )

    table.alter([{"change": "add-column", "name": ["n"], "type": "integer"}])
    engine.commit_statistics(catalog.load_table("t"), estimates(4, n=0))
    engine.commit_statistics(catalog.load_table("t"), estimates(4, id=2))
    assert engine.estimates(catalog.load_table("t")).columns.keys() == {1, 2}
    older = catalog.load_table("t")
    catalog.load_table("t").append(ids(9))
    engine.commit_statistics(older, estimates(5, id=3))
    current_table = Catalog(catalog.warehouse).load_table("t")
    assert (engine.estimates(current_table).version, engine.estimates(current_table).added_since) == (5, 1)
    assert {id: column.distinct for id, column in engine.estimates(current_table).columns.items()} == {1: 3}
    [entry] = current_table.history(limit=1)
    assert (entry.operation, entry.details) == ("compute statistics", {"version": 5, "rows": 2})
    for n in range(40):
        current_table = current_table.append(ids(n))
    assert engine.estimates(Catalog(catalog.warehouse).load_table("t")) == engine.estimates(current_table)
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", pa.schema([("other", pa.string())])))
    assert engine.estimates(catalog.load_table("t")) is None
    with pytest.raises(CommitConflict, match="replaced the table"):
        engine.commit_statistics(current_table, engine.estimates(current_table))
    assert not catalog.fsck().found
