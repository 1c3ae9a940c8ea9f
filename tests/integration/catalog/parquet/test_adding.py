"""Files of other writers in a table: accepted files, refused files, and reads after later changes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.predicate import col
from lakelog.log.errors import InvalidInput, NotFound

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    return Catalog(tmp_path / "w", options={"fsync": "off"})


@pytest.fixture
def source(tmp_path):
    """Writes Parquet files below a folder."""

    def write(data: pa.Table, *parts: str, **options) -> str:
        place = tmp_path.joinpath("source", *parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, place, **options)
        return str(tmp_path / "source")

    return write


def rows(table, **scan) -> list[dict]:
    return sorted(table.refresh().scan(**scan).to_arrow().to_pylist(), key=repr)


def test_files_are_read_where_they_are_and_not_copied(catalog, source, tmp_path):
    source(pa.table({"id": [1], "name": ["a"]}), "one.parquet")
    folder = source(pa.table({"NAME": ["b"], "Id": [2]}), "two.parquet")
    table = catalog.create_table("t", COLUMNS)
    table.append(pa.table({"id": [3], "name": ["c"]}))
    table.refresh().add_files(folder)
    other_table = Catalog(catalog.warehouse).load_table("t")
    assert rows(other_table) == [{"id": n, "name": "abc"[n - 1]} for n in (1, 2, 3)]
    assert rows(other_table, filter=col("name") == "b", columns=["id"]) == [{"id": 2}]
    assert sorted(other_table.plan()["path"].to_pylist())[:2] == [
        f"{folder}/one.parquet",
        f"{folder}/two.parquet",
    ]
    assert len(other_table.plan(col("id") == 2)) == 1
    assert (other_table.row_count, other_table.file_count) == (3, 3)
    assert not catalog.fsck(deep=True).found


def test_what_is_renamed_dropped_and_added_again_later_reads_right(catalog, source):
    folder = source(
        pa.table({"id": [1], "name": ["old"], "s": [{"x": 1, "y": "in"}], "l": [[{"x": 5}]], "m": [[("k", {"x": 6})]]},
                 schema=pa.schema([
                     ("id", pa.int64()), ("name", pa.string()),
                     ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
                     ("l", pa.list_(pa.struct([("x", pa.int64())]))),
                     ("m", pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
                 ])),
        "f.parquet",
    )  # fmt: skip
    schema = pq.read_schema(f"{folder}/f.parquet")
    table = catalog.create_table("t", schema).add_files(folder)
    table = table.alter(
        [
            {"change": "rename-column", "name": ["id"], "new_name": "key"},
            {"change": "add-column", "name": ["id"], "type": "string"},
            {"change": "delete-column", "name": ["name"]},
            {"change": "add-column", "name": ["name"], "type": "string"},
            {"change": "rename-column", "name": ["s", "x"], "new_name": "z"},
            {"change": "add-column", "name": ["s", "x"], "type": "long"},
            {"change": "delete-column", "name": ["s", "y"]},
            {"change": "add-column", "name": ["s", "y"], "type": "string"},
            {"change": "rename-column", "name": ["l", "element", "x"], "new_name": "w"},
            {"change": "add-column", "name": ["l", "element", "x"], "type": "long"},
            {"change": "rename-column", "name": ["m", "value", "x"], "new_name": "v"},
        ]
    )
    [row] = rows(table)
    assert row == {
        "key": 1,
        "id": None,
        "name": None,
        "s": {"z": 1, "x": None, "y": None},
        "l": [{"w": 5, "x": None}],
        "m": [("k", {"v": 6})],
    }
    assert rows(table, filter=col("key") == 1, columns=["name"]) == [{"name": None}]
    assert rows(table, filter=col("name") == "old") == []
    again = catalog.load_table("t").rollback_to_version(2)
    assert rows(again)[0]["name"] == "old"


def test_a_column_called_as_lakelog_calls_its_own_is_not_taken_for_one(catalog, source):
    table = catalog.create_table("t", COLUMNS)
    physical = table.schema.find(("name",)).physical
    folder = source(pa.table({"id": [1], physical: ["foreign"]}), "f.parquet")
    with pytest.raises(InvalidInput, match=f"has {physical}, which the table does not have"):
        table.add_files(folder)
    assert rows(table.add_files(folder, ignore_extra_columns=True)) == [{"id": 1, "name": None}]


def test_files_whose_keys_have_more_parts_are_refused_also_without_extra_columns(catalog, source):
    key = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.int32())])
    table = catalog.create_table(
        "t", pa.schema([("m", pa.list_(pa.map_(pa.struct([key.field(0)]), pa.int32())))])
    )
    maps = [[[({"a": 1, "b": 1}, 10), ({"a": 1, "b": 2}, 20)]]]
    folder = source(pa.table({"m": pa.array(maps, pa.list_(pa.map_(key, pa.int32())))}), "f.parquet")
    for options in ({}, {"ignore_extra_columns": True}):
        with pytest.raises(
            InvalidInput, match=r"has m\.element\.key\.b, without which two keys of a map may be equal"
        ):
            table.add_files(folder, **options)


def test_ids_that_other_writers_gave_to_fields_mean_nothing(catalog, source):
    foreign = pa.schema(
        [
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "1"}),
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    folder = source(pa.table({"name": ["a"], "id": [1]}, schema=foreign), "f.parquet")
    table = catalog.create_table("t", COLUMNS).add_files(folder)
    assert rows(table) == [{"id": 1, "name": "a"}]


def test_names_of_folders_are_columns_and_partitions(catalog, source):
    source(pa.table({"id": [1]}), "day=2024-01-01", "kind=a%20b", "f.parquet")
    source(pa.table({"id": [2]}), "day=2024-01-02", "kind=__HIVE_DEFAULT_PARTITION__", "f.parquet")
    folder = source(pa.table({"id": [3]}), "_tmp", "f.parquet")
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string())])
    partitioned_files = catalog.create_table(
        "p", schema, partition_by=["kind", {"transform": "month", "column": ["day"]}]
    ).add_files(folder)
    expected = [
        {"id": 1, "day": dt.date(2024, 1, 1), "kind": "a b"},
        {"id": 2, "day": dt.date(2024, 1, 2), "kind": None},
    ]
    assert rows(partitioned_files) == expected
    assert len(partitioned_files.plan(col("day") == dt.date(2024, 1, 1))) == 1
    plain = catalog.create_table("q", schema).add_files(folder, partition_filter={"day": "2024-01-02"})
    assert rows(plain) == expected[1:]
    assert rows(plain, filter=col("kind").is_null(), columns=["day"]) == [{"day": dt.date(2024, 1, 2)}]
    # A day is a day, whatever the column is by now.
    later = plain.alter([{"change": "update-column-type", "name": ["day"], "type": "timestamp_ntz"}])
    assert rows(later, columns=["day"]) == [{"day": dt.datetime(2024, 1, 2)}]
    assert rows(later, filter=col("day") == dt.datetime(2024, 1, 2), columns=["id"]) == [{"id": 2}]
    later.add_files(folder, partition_filter={"day": "2024-01-01"})
    assert len(rows(later)) == 2
    alone = catalog.create_table("r", schema).add_files(f"{folder}/day=2024-01-01/kind=a%20b")
    assert rows(alone) == expected[:1]
    for bad, match in (
        ({"hour": "1"}, "no partition column hour"),
        ({"day": "x"}, "is not a valid timestamp_ntz"),
    ):
        with pytest.raises(InvalidInput, match=match):
            later.refresh().add_files(folder, partition_filter=bad)
    partitioned_files.delete(col("kind") == "a b")
    assert rows(partitioned_files) == expected[1:]


def test_a_files_partition_is_known_by_its_bounds_where_it_has_one(catalog, source):
    folder = source(pa.table({"id": [7, 7], "name": ["a", "b"]}), "f.parquet")
    by_id = catalog.create_table("i", COLUMNS, partition_by=["id"]).add_files(folder)
    assert [row["id"] for row in rows(by_id, filter=col("id") == 7)] == [7, 7]
    for name, spec in (("n", "name"), ("b", {"transform": "bucket", "args": [4], "column": ["name"]})):
        table = catalog.create_table(name, COLUMNS, partition_by=[spec])
        with pytest.raises(
            InvalidInput, match="does not prove that all of its rows have one value of the partition field"
        ):
            table.add_files(folder)
        assert table.refresh().version == 1
    truncated = {"transform": "truncate", "args": [10], "column": ["id"]}
    assert rows(catalog.create_table("u", COLUMNS, partition_by=[truncated]).add_files(folder))[0]["id"] == 7


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (pa.table({"id": ["x"], "name": ["a"]}), "has string for id, which is long"),
        (pa.table({"id": [1.5], "name": ["a"]}), "has double for id"),
        (pa.table({"id": [{"x": 1}], "name": ["a"]}), "has struct.* for id"),
        (pa.table({"id": [1], "name": [b"a"]}), "has binary for name"),
        (pa.table({"id": [1], "name": ["a"], "more": [1]}), "has more, which the table does not have"),
        (pa.table({"id": [1], "ID": [2], "name": ["a"]}), "id and ID, which differ in upper and lower case"),
        (pa.table({"name": ["a"], "id": pa.array([1], pa.timestamp("ns"))}), "nanoseconds"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused_by_name_and_nothing_changes(catalog, source, data, match):
    table = catalog.create_table("t", COLUMNS)
    folder = source(data, "f.parquet")
    with pytest.raises(InvalidInput, match=match) as error:
        table.add_files(folder)
    assert f"{folder}/f.parquet" in str(error.value)
    assert table.refresh().version == 1


def test_a_column_that_a_file_lacks_has_its_default_if_that_is_a_value(catalog, source):
    data = pa.table({"id": [1]})
    folder = source(data, "f.parquet")
    table = catalog.create_table("t", data.schema).add_column("note", "string", default="none")
    assert rows(table.add_files(folder)) == [{"id": 1, "note": "none"}]
    lists = {"type": "array", "elementType": "long", "containsNull": True}
    for name, type in (("v", "variant"), ("l", lists)):
        table = catalog.create_table(name, data.schema).alter(
            [
                {"change": "add-column", "name": [name], "type": type},
                {"change": "update-column-default", "name": [name], "default": {"current": "f(1)"}},
            ]
        )
        with pytest.raises(
            InvalidInput, match=r"lacks the column ., whose default f\(1\) is for new rows alone"
        ):
            table.add_files(folder)
        table = table.refresh().update_column(name, default=None)
        assert rows(table.add_files(folder)) == [{"id": 1, name: None}]


def test_required_columns_and_lengths_that_a_footer_does_not_prove_are_refused(catalog, source):
    required_schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = catalog.create_table("t", required_schema)
    with pytest.raises(InvalidInput, match="holds 1 NULLs in id, which is NOT NULL"):
        table.add_files(source(pa.table({"id": [1, None]}), "f.parquet"))
    with pytest.raises(InvalidInput, match="may hold NULLs in id"):
        table.add_files(source(pa.table({"id": [1]}), "f.parquet", write_statistics=False))
    with pytest.raises(InvalidInput, match="lacks the column id"):
        table.add_files(source(pa.table({"name": ["a"]}), "f.parquet"))
    assert rows(table.add_files(source(pa.table({"id": [1]}), "f.parquet"))) == [{"id": 1, "name": None}]
    short = catalog.create_table("v", COLUMNS).alter(
        [{"change": "add-column", "name": ["code"], "type": "varchar(3)"}]
    )
    with pytest.raises(InvalidInput, match="a footer does not show whether the texts fit"):
        short.add_files(source(pa.table({"id": [1], "code": ["long text"]}), "f.parquet"))


def test_texts_in_folders_are_held_to_the_length_of_the_column(catalog, source):
    table = catalog.create_table("t", pa.schema([("id", pa.int64())])).alter(
        [
            {"change": "add-column", "name": ["c"], "type": "char(3)"},
            {"change": "add-column", "name": ["v"], "type": "varchar(3)"},
        ]
    )
    folder = source(pa.table({"id": [1]}), "c=a", "v=abc", "f.parquet")
    assert rows(table.add_files(folder)) == [{"id": 1, "c": "a  ", "v": "abc"}]
    source(pa.table({"id": [1]}), "c=abcd", "v=b", "f.parquet")
    with pytest.raises(InvalidInput, match=r"has 'abcd' for c, which is char\(3\)"):
        table.refresh().add_files(f"{folder}/c=abcd")


def test_narrower_types_in_other_units_and_layouts_read_right(catalog, source):
    when = dt.datetime(2024, 5, 6, 7, 8, 9)
    data = pa.table(
        {
            "i": pa.array([1, None], pa.int16()),
            "f": pa.array([1.5, float("nan")], pa.float32()),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
            "at": pa.array([when, None], pa.timestamp("ms")),
            "u": pa.array([2**31 + 5, 1], pa.uint32()),
            "text": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    folder = source(data, "f.parquet", coerce_timestamps="ms")
    table = catalog.create_table(
        "t",
        pa.schema(
            [("i", pa.int64()), ("f", pa.float64()), ("d", pa.decimal128(9, 3)), ("at", pa.timestamp("us")),
             ("u", pa.int64()), ("text", pa.string())]
        ),
    ).add_files(folder)  # fmt: skip
    for each in (
        col("i") == 1, col("f") == 1.5, col("d") == Decimal("1.250"), col("at") == when, col("u") == 2**31 + 5,
        col("text") == "x",
    ):  # fmt: skip
        [row] = rows(table, filter=each)
        assert row == {"i": 1, "f": 1.5, "d": Decimal("1.250"), "at": when, "u": 2**31 + 5, "text": "x"}
    assert len(rows(table, filter=col("f") > 100.0)) == 1  # NaN is greater than all
    assert not catalog.fsck(deep=True).found


def test_a_file_is_in_a_table_once_also_when_two_add_it_at_the_same_time(catalog, source):
    folder = source(pa.table({"id": [1]}), "f.parquet")
    table = catalog.create_table("t", COLUMNS)
    table.add_files(folder)
    with pytest.raises(
        InvalidInput, match=r"has the file .*f.parquet already: its rows would be added twice"
    ):
        table.add_files(folder)
    token = catalog.token("t")
    table.refresh().truncate()
    for _ in range(2):
        catalog.load_table("t").add_files(f"{folder}/f.parquet", token=token)
    assert rows(table) == [{"id": 1, "name": None}]
    with pytest.raises(NotFound, match="no files at"):
        table.refresh().add_files(f"{folder}/none")


def test_files_of_lakelog_tables_are_refused(catalog, source):
    other_table = catalog.create_table("other", COLUMNS).append(pa.table({"id": [1]}))
    table = catalog.create_table("t", COLUMNS)
    with pytest.raises(InvalidInput, match="belongs to a lakelog table"):
        table.add_files(f"{other_table.location}/data", ignore_extra_columns=True)


def test_vacuum_and_purge_never_delete_files_that_are_elsewhere(catalog, source, tmp_path):
    folder = source(pa.table({"id": [1]}), "f.parquet")
    table = catalog.create_table("t", COLUMNS).add_files(folder)
    table.truncate()
    [expired] = catalog.expire("t", retain_last=1, dry_run=False)
    assert (expired.files, expired.file_bytes) == (0, 0)
    catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)
    catalog.load_table("t").add_files(folder)
    catalog.drop_table("t")
    catalog.vacuum(older_than=dt.timedelta(0), dropped_older_than=dt.timedelta(0), dry_run=False)
    assert (tmp_path / "source" / "f.parquet").exists()
    with pytest.raises(NotFound):
        catalog.load_table("t")


def test_fsck_finds_files_elsewhere_that_are_missing_or_others_by_now(catalog, source, tmp_path):
    folder = source(pa.table({"id": [1]}), "f.parquet")
    source(pa.table({"id": [2]}), "g.parquet")
    table = catalog.create_table("t", COLUMNS).add_files(folder)
    source(pa.table({"id": [3]}), "f.parquet")
    (tmp_path / "source" / "g.parquet").unlink()
    assert {(each.kind, each.where) for each in catalog.fsck().found} == {
        ("data-file-altered", f"{folder}/f.parquet"),
        ("data-file-missing", f"{folder}/g.parquet"),
    }
    with pytest.raises(Exception, match="its footer is not the one that was written|cannot be read"):
        rows(table, filter=col("id") == 1)


def test_a_transaction_that_is_rolled_back_leaves_the_files(catalog, source, tmp_path):
    folder = source(pa.table({"id": [1]}), "f.parquet")
    catalog.create_table("t", COLUMNS)
    with catalog.transaction() as tx:
        tx.load_table("t").add_files(folder)
        assert rows(tx.load_table("t")) == [{"id": 1, "name": None}]
        tx.rollback()
    assert (tmp_path / "source" / "f.parquet").exists()
    assert catalog.load_table("t").row_count == 0


def test_many_files_stand_in_a_sidecar_and_in_snapshots(catalog, source):
    for n in range(210):
        folder = source(pa.table({"ID": [n]}), f"n={n}", "f.parquet")
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table = catalog.create_table("t", schema).add_files(folder)
    for n in range(40):
        table = table.append(pa.table({"id": [1000 + n], "n": pa.array([n], pa.int32())}))
    other_table = Catalog(catalog.warehouse).load_table("t")
    assert len(rows(other_table)) == 250
    assert rows(other_table, filter=(col("n") == 205)) == [{"id": 205, "n": 205}]
    assert not catalog.fsck(deep=True).found


def test_files_have_to_prove_by_their_bounds_that_they_satisfy_a_check(catalog, source):
    condition = {"op": ">", "args": [{"col": ["id"]}, {"lit": 0, "type": "long"}]}
    check = {
        "kind": "check",
        "name": "positive",
        "columns": [["id"]],
        "sql": "id > 0",
        "predicate": condition,
    }
    table = catalog.create_table("t", COLUMNS).alter([{"change": "add-constraint", "constraint": check}])
    folder = source(pa.table({"id": [0, 5]}), "bad", "f.parquet")
    source(pa.table({"id": [1, None]}), "good", "f.parquet")
    with pytest.raises(InvalidInput, match=r"does not prove that its rows satisfy CHECK \(id > 0\)"):
        table.add_files(f"{folder}/bad")
    assert len(rows(table.add_files(f"{folder}/good"))) == 2
