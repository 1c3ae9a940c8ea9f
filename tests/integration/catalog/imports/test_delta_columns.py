"""Columns of Delta tables: mapping by name and by id, widened types, notes in the answer, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.imports.delta_logs import (
    READER,
    DeltaLog,
    column,
    mapped,
    rows_of,
    rows_of_delta,
    source_of,
    struct_of,
    versions_with_files,
)

from lakelog.catalog.core.schema import AtomicType, Default, dotted
from lakelog.log.errors import FormatError, InvalidInput, Unsupported

MODE = "delta.columnMapping.mode"


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return DeltaLog(tmp_path)


def ids_of(schema: Any) -> dict[str, int]:
    return {dotted(path): field.id for path, field in schema.walk()}


def test_columns_that_are_mapped_by_name_keep_their_ids_over_renames(log: DeltaLog) -> None:
    """From a table without mapping on, which every mapped one was before it was altered."""
    old = {"id": [1, 2], "s": [{"a": 1, "b": "x"}, None], "m": [[("k", 1)], []], "p": ["in", "file"]}
    shape = pa.schema(
        {
            "id": pa.int64(),
            "s": pa.struct({"a": pa.int64(), "b": pa.string()}),
            "m": pa.map_(pa.string(), pa.int64()),
            "p": pa.string(),
        }
    )
    numbers = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    log.commit(
        0,
        log.protocol(*READER),
        log.metadata(
            column("id", "long"),
            column("s", struct_of(column("a", "long"), column("b", "string"))),
            column("m", numbers),
            column("p", "string"),
            partition=["p"],
        ),
        log.write("0.parquet", pa.table(old, schema=shape), partitionValues={"p": "1"}),
    )
    inner = struct_of(mapped("a", "long", 3, "a"), mapped("b", "string", 4, "b"))
    fields = [mapped("id", "long", 1, "id"), mapped("s", inner, 2, "s"), mapped("m", numbers, 5, "m")]
    of_part = mapped("p", "string", 6, "p")
    log.commit(1, log.metadata(*fields, of_part, partition=["p"], **{MODE: "name"}))
    # b is dropped, and another b made; id and a are renamed; p is renamed.
    inner = struct_of(mapped("A", "long", 3, "a"), mapped("b", "string", 7, "col-7"))
    fields = [mapped("number", "long", 1, "id"), mapped("s", inner, 2, "s"), mapped("m", numbers, 5, "m")]
    of_part = mapped("part", "string", 6, "p")
    new = {"id": [3], "s": [{"a": 3, "col-7": "z"}], "m": [[("q", None)]]}
    new_shape = pa.schema(
        {
            "id": pa.int64(),
            "s": pa.struct({"a": pa.int64(), "col-7": pa.string()}),
            "m": pa.map_(pa.string(), pa.int64()),
        }
    )
    log.commit(
        2,
        log.metadata(*fields, of_part, partition=["part"], **{MODE: "name"}),
        log.write(
            "p=a%20/b.parquet",
            pa.table(new, schema=new_shape),
            partitionValues={"p": "a "},
            uri="p=a%2520/b.parquet",
        ),
    )
    found_versions_with_files = versions_with_files(source_of(log.folder))
    for version, files in found_versions_with_files:
        assert rows_of(log.folder, files, version) == rows_of_delta(log.folder, version)
    (first, _), (same_version, _), (last, _) = found_versions_with_files
    assert first.schema == same_version.schema and first.spec == same_version.spec
    ids_before, ids_after = ids_of(first.schema), ids_of(last.schema)
    renamed = {
        "id": "number",
        "s": "s",
        "s.a": "s.A",
        "m": "m",
        "m.key": "m.key",
        "m.value": "m.value",
        "p": "part",
    }
    assert {name: ids_before[name] for name in renamed} == {
        name: ids_after[new] for name, new in renamed.items()
    }
    assert ids_after["s.b"] not in ids_before.values()
    assert [field.id for field in first.spec.fields] == [field.id for field in last.spec.fields]
    # A later import knows them by the names in files, without a file.
    assert source_of(log.folder).live({}, last.schema).schema == last.schema


def test_columns_that_are_mapped_by_id_are_found_by_the_ids_in_the_file(log: DeltaLog) -> None:
    def identified_field(name: str, type: pa.DataType, id: int) -> pa.Field:
        return pa.field(name, type, metadata={"PARQUET:field_id": str(id)})

    inner = pa.struct([identified_field("was_a", pa.int64(), 3)])
    listed = pa.list_(identified_field("element", pa.struct([identified_field("was_x", pa.int64(), 5)]), 99))
    shape = pa.schema(
        [
            identified_field("was", pa.int64(), 1),
            identified_field("s", inner, 2),
            identified_field("l", listed, 4),
            identified_field("id", pa.int64(), 8),
        ]
    )
    rows = pa.table({"was": [1], "s": [{"was_a": 2}], "l": [[{"was_x": 3}]], "id": [9]}, schema=shape)
    fields = (
        mapped("id", "long", 1, "col-1"),
        mapped("s", struct_of(mapped("a", "long", 3, "col-3")), 2, "col-2"),
        mapped(
            "l",
            {
                "type": "array",
                "elementType": struct_of(mapped("x", "long", 5, "col-5")),
                "containsNull": True,
            },
            4,
            "col-4",
        ),
        mapped("later", "string", 6, "col-6"),
    )
    add = log.write("a.parquet", rows)
    log.commit(0, log.protocol(*READER), log.metadata(*fields, **{MODE: "id"}), add)
    live = source_of(log.folder).live({}, None)
    expected = [repr({"id": 1, "s": {"a": 2}, "l": [{"x": 3}], "later": None})]
    assert rows_of(log.folder, live.added, live) == expected
    # What an import before has found of the file need not be looked up again.
    (log.folder / "a.parquet").rename(log.folder / "b.parquet")
    known_files = {file.path: file for file in live.added}
    assert source_of(log.folder).live(known_files, live.schema).added == live.added
    log.commit(
        0,
        log.protocol(*READER),
        log.metadata(*fields, **{MODE: "id"}),
        log.write("c.parquet", pa.table({"was": [1]})),
    )
    with pytest.raises(FormatError, match="c.parquet .* no field ids"):
        source_of(log.folder).live({}, None)


def test_mapping_counts_only_where_the_protocol_has_it(log: DeltaLog) -> None:
    fields = (mapped("id", "long", 1, "col-1"),)
    for reader, features, name in ((1, (), "id"), (2, (), "col-1"), (3, (), "id"), (3, READER, "col-1")):
        add = log.write("a.parquet", pa.table({name: [7]}))
        log.commit(0, log.protocol(*features, reader=reader), log.metadata(*fields, **{MODE: "name"}), add)
        live = source_of(log.folder).live({}, None)
        assert rows_of(log.folder, live.added, live) == ["{'id': 7}"]


def test_a_column_that_another_one_took_the_place_of_has_another_id(log: DeltaLog) -> None:
    log.commit(0, log.protocol(), log.metadata(column("a", "integer"), column("b", "string")))
    log.commit(1, log.metadata(column("a", "long"), column("b", "string")))
    log.commit(
        2,
        log.metadata(
            column("a", "string"), column("b", {"type": "array", "elementType": "long", "containsNull": True})
        ),
    )
    ids, two, three = (ids_of(version.schema) for version, _ in versions_with_files(source_of(log.folder)))
    assert ids == two
    assert not set(ids.values()) & set(three.values())


def test_a_column_that_files_had_before_the_table_did_has_their_values(log: DeltaLog) -> None:
    add = log.write("a.parquet", pa.table({"a": [1], "b": ["there"]}))
    log.commit(0, log.protocol(), log.metadata(column("a", "long")), add)
    log.commit(1, log.metadata(column("a", "long"), column("b", "string")))
    for version, files in versions_with_files(source_of(log.folder)):
        assert rows_of(log.folder, files, version) == rows_of_delta(log.folder, version)


def test_types_that_were_widened_are_read_as_the_present_ones(log: DeltaLog) -> None:
    changes = [{"fromType": "short", "toType": "integer"}, {"fromType": "integer", "toType": "long"}]
    wider = [{"fromType": "decimal(4,2)", "toType": "decimal(8, 3)", "fieldPath": "element"}]
    array = {"type": "array", "elementType": "decimal(8,3)", "containsNull": True}
    fields = (
        column("a", "long", **{"delta.typeChanges": changes}),
        column("l", array, **{"delta.typeChanges": wider}),
        column(
            "d", "timestamp_ntz", **{"delta.typeChanges": [{"fromType": "date", "toType": "timestamp_ntz"}]}
        ),
    )
    old = pa.table(
        {
            "a": pa.array([7], pa.int16()),
            "l": pa.array([["1.25"]]).cast(pa.list_(pa.decimal128(4, 2))),
            "d": pa.array([19_782], pa.int32()).cast(pa.date32()),
        }
    )
    log.commit(
        0, log.protocol("typeWidening", "timestampNtz"), log.metadata(*fields), log.write("a.parquet", old)
    )
    live = source_of(log.folder).live({}, None)
    (row,) = rows_of(log.folder, live.added, live)
    assert row == "{'a': 7, 'l': [Decimal('1.250')], 'd': datetime.datetime(2024, 2, 29, 0, 0)}"
    narrower = column("a", "string", **{"delta.typeChanges": [{"fromType": "long", "toType": "string"}]})
    log.commit(0, log.protocol("typeWidening"), log.metadata(narrower))
    with pytest.raises(Unsupported, match="a of .* was widened from long to string"):
        source_of(log.folder)


def test_what_is_demanded_of_writers_is_noted(log: DeltaLog) -> None:
    identity = {f"delta.identity.{name}": 1 for name in ("start", "step", "highWaterMark")}
    fields = (
        column("id", "long", nullable=False, **identity, **{"delta.identity.allowExplicitInsert": False}),
        column("twice", "long", **{"delta.generationExpression": "id * 2"}),
        column("name", "string", CURRENT_DEFAULT="'ada'", EXISTS_DEFAULT="'bob'", comment="of a person"),
        column("at", "timestamp", CURRENT_DEFAULT="now()"),
        column("code", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)", mine="kept"),
        column("small", "long", **{"delta.invariants": '{"expression": {"expression": "small < 9"}}'}),
        column(
            "l",
            {
                "type": "array",
                "elementType": struct_of(column("x", "long", **{"delta.invariants": "x > 0"})),
                "containsNull": True,
            },
            __CHAR_VARCHAR_TYPE_STRING="array<struct<x:varchar(5)>>",
        ),
    )
    settings = {"delta.constraints.big": "id > 0", "owner": "me", "delta.appendOnly": "true"}
    action = log.metadata(*fields, **settings)
    # Some writers keep a property without a value.
    action["metaData"]["configuration"]["of"] = None
    log.commit(0, log.protocol(), action)
    source = source_of(log.folder)
    assert [note.partition(":")[0] for note in source.notes] == [
        "the column id is an identity column",
        "the column twice is generated from id * 2",
        "the column at has the default now(), which is not a literal",
        'the column small has the invariant {"expression"',
        "the column l is array<struct<x",
        "the column l.element.x has the invariant x > 0",
        "the constraint big CHECK (id > 0) is not enforced",
        "the property delta.appendOnly is true",
    ]
    assert source.properties == {"owner": "me"}
    columns = {field.name: field for field in source.live({}, None).schema.fields}
    assert not columns["id"].nullable and columns["id"].identity is None
    assert columns["name"].default == Default(current="'ada'") and columns["name"].comment == "of a person"
    assert columns["at"].default is None
    assert columns["code"].type == AtomicType("varchar(5)") and columns["code"].metadata == {"mine": "kept"}
    assert all(not field.metadata for name, field in columns.items() if name != "code")


@pytest.mark.parametrize("feature", ["variantType", "variantShredding"])
@pytest.mark.parametrize("preview", ["", "-preview"])
def test_a_feature_that_no_column_uses_is_no_reason_to_refuse_a_table(
    feature: str, preview: str, log: DeltaLog
) -> None:
    log.commit(0, log.protocol(*READER, feature + preview), log.metadata(column("id", "long")))
    assert source_of(log.folder).live({}, None).added == ()
    log.commit(1, log.metadata(column("id", "long"), column("v", "variant")))
    with pytest.raises(Unsupported, match="v of the Delta table .* is a variant"):
        source_of(log.folder)


@pytest.mark.parametrize(
    ("action", "error", "said"),
    [
        (DeltaLog.protocol(reader=4), Unsupported, "needs reader version 4"),
        (
            DeltaLog.protocol("catalogOwned-preview"),
            Unsupported,
            "needs the feature catalogOwned-preview: only",
        ),
        (DeltaLog.protocol("catalogManaged"), Unsupported, "needs the feature catalogManaged: only its own"),
        (DeltaLog.protocol("later"), Unsupported, "needs the feature later: lakelog does not know it"),
        (DeltaLog.metadata(column("v", "variant")), Unsupported, "v of the Delta table .* is a variant"),
        (
            DeltaLog.metadata(column("s", struct_of(column("v", "variant")))),
            Unsupported,
            "s.v of the Delta table .* is a variant",
        ),
        (DeltaLog.metadata(column("v", "void")), Unsupported, "v cannot be stored"),
        (DeltaLog.metadata(), Unsupported, "has no columns"),
        (
            DeltaLog.metadata(column("a", "long"), partition=["b"]),
            FormatError,
            "is partitioned by b, which is not",
        ),
        (
            DeltaLog.metadata(column("a", struct_of(column("b", "long"))), partition=["a"]),
            InvalidInput,
            "identity does not take a column",
        ),
        (DeltaLog.metadata(column("a", "long"), **{MODE: "odd"}), Unsupported, "maps columns by 'odd'"),
        (
            DeltaLog.metadata(column("a", "long"), **{MODE: "name"}),
            FormatError,
            "a of .* has no delta.columnMapping",
        ),
    ],
)
def test_what_lakelog_does_not_do_is_refused_by_name(
    action: dict[str, Any], error: type, said: str, log: DeltaLog
) -> None:
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")))
    assert source_of(log.folder).live({}, None).added == ()
    log.commit(1, action)
    with pytest.raises(error, match=said):
        source_of(log.folder)


def test_data_files_in_another_format_are_refused(log: DeltaLog) -> None:
    action = log.metadata(column("id", "long"))
    action["metaData"]["format"] = {"provider": "orc", "options": {}}
    log.commit(0, log.protocol(), action)
    with pytest.raises(Unsupported, match="data files in the format orc"):
        source_of(log.folder)


def test_a_file_without_statistics_is_counted_by_its_footer(log: DeltaLog) -> None:
    add = log.write("a.parquet", pa.table({"id": [1, 2, 3]}))
    del add["add"]["stats"]
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")), add)
    (file,) = source_of(log.folder).live({}, None).added
    assert (file.rows, file.stats) == (3, {})
    path = log.folder / "a.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(FormatError, match="a.parquet of the Delta table .* cannot be read"):
        source_of(log.folder).live({}, None)


@pytest.mark.parametrize(
    ("type", "text", "said"),
    [
        ("integer", "1.5", "'1.5' is not a valid integer"),
        ("byte", "300", "'300' is not a valid byte"),
        ("date", "2024-02-30", "is not a valid date"),
        ("timestamp", "2024-02-29 01:02:03", "has no time zone"),
        ("decimal(4,1)", "1.25", "is not a valid decimal"),
    ],
)
def test_a_value_of_a_partition_that_does_not_parse_is_named(
    type: str, text: str, said: str, log: DeltaLog
) -> None:
    fields = (column("part", type), column("id", "long"))
    add = log.write("a.parquet", pa.table({"id": [1]}), partitionValues={"part": text})
    log.commit(0, log.protocol(), log.metadata(*fields, partition=["part"]), add)
    with pytest.raises(
        InvalidInput, match=f"a.parquet of the Delta table .* column part is not one: .*{said}"
    ):
        source_of(log.folder).live({}, None)
    without = {"add": {**add["add"], "partitionValues": {}}}
    log.commit(0, log.protocol(), log.metadata(*fields, partition=["part"]), without)
    with pytest.raises(FormatError, match="no value of the partition column part for the file .*a.parquet"):
        source_of(log.folder).live({}, None)


def test_what_a_file_has_of_its_partition_column_counts_for_nothing(log: DeltaLog) -> None:
    """Some writers store it there, too."""
    values = {"part": 1, "id": 7}
    stats = {"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": {"part": 0, "id": 0}}
    fields = (column("part", "long"), column("id", "long"))
    add = log.write("a.parquet", pa.table({"part": [1], "id": [7]}), partitionValues={"part": "5"})
    add["add"]["stats"] = json.dumps(stats)
    log.commit(0, log.protocol(), log.metadata(*fields, partition=["part"]), add)
    live = source_of(log.folder).live({}, None)
    assert rows_of(log.folder, live.added, live) == ["{'part': 5, 'id': 7}"]
    (file,) = live.added
    part, id = (field.id for field in live.schema.fields)
    assert (set(file.stats), set(file.constants), set(file.names)) == ({id}, {part}, {id})
