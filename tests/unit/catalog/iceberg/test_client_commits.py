"""What a client's requirements and updates mean for a table: metadata alone, without a store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lakelog.catalog.core.schema import (
    IDENTITY,
    AtomicType,
    Field,
    ListType,
    Metadata,
    PartitionSpec,
    Schema,
    SortField,
    SortOrder,
    StructType,
    physical_name,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.formats.iceberg.metadata_json import (
    empty_document,
    in_version_2,
    table_uuid,
    with_metadata,
)
from lakelog.catalog.formats.iceberg_commits import creation_updates
from lakelog.catalog.formats.iceberg_commits.commits import ClientCommit, planned
from lakelog.catalog.formats.iceberg_commits.definitions import altered_definition, new_definition
from lakelog.catalog.formats.iceberg_commits.requirements import check_requirements
from lakelog.catalog.formats.iceberg_commits.updates import updated
from lakelog.log.errors import InvalidInput, Unsupported

LONG, TEXT = AtomicType("long"), AtomicType("string")


def field(id: int, name: str, type: Any, **more: Any) -> Field:
    return Field(id=id, name=name, physical=physical_name(name, id), type=type, **more)


METADATA = Metadata(
    schema=Schema(
        fields=(
            field(1, "id", LONG, nullable=False),
            field(2, "code", AtomicType("varchar(9)")),
            field(3, "n", AtomicType("byte")),
            field(4, "at", StructType((field(5, "x", AtomicType("integer")),))),
            field(6, "tags", ListType(element_id=7, element=AtomicType("integer"))),
        ),
        last_id=9,
    ),
    specs=(PartitionSpec(),),
    sort_order=SortOrder(),
    properties={"owner": "me"},
)


def base(metadata: Metadata = METADATA, **more: Any) -> dict[str, Any]:
    document = with_metadata(empty_document("/w/t", "log"), metadata, "log", 4, 0)
    snapshot = {"snapshot-id": 77, "sequence-number": 4, "summary": {}, "manifest-list": "/w/t/metadata/l"}
    refs = {"main": {"snapshot-id": 77, "type": "branch"}}
    return document | {"snapshots": [snapshot], "refs": refs, "current-snapshot-id": 77} | more


def after(*updates: dict[str, Any]) -> Any:
    document = base()
    return altered_definition(METADATA, document, updated(document, updates))


def columns(*changes: Any) -> list[dict[str, Any]]:
    """Return the updates that set the exported columns, with changed or added ones by id; None drops one."""
    fields = {item["id"]: item for item in base()["schemas"][0]["fields"]}
    for change in changes:
        if isinstance(change, int):
            del fields[change]
        else:
            fields[change["id"]] = {**fields.get(change["id"], {"required": False}), **change}
    schema = {"type": "struct", "schema-id": 5, "fields": list(fields.values())}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def test_requirements_hold_or_are_conflicts() -> None:
    true_requirements: list[dict[str, Any]] = [
        {"type": "assert-table-uuid", "uuid": table_uuid("log").upper()},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 77},
        {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ]
    check_requirements(true_requirements, base(), "t", 4)
    false_requirements: list[dict[str, Any]] = [
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": "0"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": 77},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 8},
    ]
    for requirement in false_requirements:
        with pytest.raises(CommitConflict, match="does not hold for t"):
            check_requirements([requirement], base(), "t", 4)
    bad_requirements: list[dict[str, Any]] = [
        {"type": "assert-tea"},
        {"type": "assert-table-uuid"},
        {"type": "assert-default-spec-id", "default-spec-id": "0"},
        {},
    ]
    for requirement in bad_requirements:
        with pytest.raises(InvalidInput):
            check_requirements([requirement], base(), "t", 4)


def test_the_same_definition_changes_nothing() -> None:
    definition = after(*columns())
    assert definition.schema == METADATA.schema and definition.properties == {"owner": "me"}
    assert definition.specs == METADATA.specs and definition.sort_order == METADATA.sort_order


def test_what_iceberg_has_no_word_for_stays_with_its_column() -> None:
    schema = after(*columns({"id": 2, "name": "key", "doc": "of all"})).schema
    key = schema.find(("key",))
    assert (key.type, key.physical, key.comment) == (AtomicType("varchar(9)"), "code_2", "of all")
    assert schema.find(("n",)).type == AtomicType("byte")


def test_columns_come_with_the_ids_of_the_client() -> None:
    struct_type = {"type": "struct", "fields": [{"id": 11, "name": "y", "required": True, "type": "int"}]}
    schema = after(*columns({"id": 10, "name": "new", "type": struct_type}, 3)).schema
    assert schema.find(("new", "y")).id == 11 and schema.last_id == 11 and not schema.has_id(3)


def test_types_widen_as_iceberg_knows_and_remember_what_they_were() -> None:
    x = {"id": 5, "name": "x", "required": False, "type": "long"}
    schema = after(*columns({"id": 4, "name": "at", "type": {"type": "struct", "fields": [x]}})).schema
    assert schema.find(("at", "x")).type == LONG and schema.find(("at", "x")).widened == ("integer",)


def struct(id: int) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"id": id, "name": "x", "required": False, "type": "int"}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": 1, "name": "id", "type": "string"}, "cannot change from long to string"),
        ({"id": 2, "name": "code", "type": struct(12)}, "cannot change"),
        ({"id": 8, "name": "back", "type": "long"}, "belonged to a column that was dropped"),
        ({"id": 12, "name": "must", "type": "long", "required": True}, "new and required"),
        ({"id": 12, "name": "f", "type": "fixed[3]"}, "fixed"),
        ({"id": 12, "name": "u", "type": "uuid"}, "uuid"),
        ({"id": 2, "name": "code", "initial-default": "x"}, "existing rows"),
        (
            {"id": 12, "name": "s", "type": struct(5)},
            "one id",
        ),
    ],
)  # fmt: skip
def test_columns_by_which_older_files_would_be_read_wrongly_are_refused(change: Any, words: str) -> None:
    with pytest.raises((Unsupported, InvalidInput), match=words):
        after(*columns(change))


def test_identifier_fields_are_refused() -> None:
    updates = columns()
    updates[0]["schema"]["identifier-field-ids"] = [1]
    with pytest.raises(Unsupported, match="identifier"):
        after(*updates)


def test_partitionings_get_ids_that_no_other_has() -> None:
    def spec(*fields: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"action": "add-spec", "spec": {"fields": list(fields)}},
            {"action": "set-default-spec", "spec-id": -1},
        ]

    by_id = {"source-id": 1, "name": "id_bucket", "transform": "bucket[4]"}
    definition = after(*spec(by_id))
    assert definition.spec.id == 1 and [part.id for part in definition.spec.fields] == [1000]
    assert definition.specs[0] == PartitionSpec()
    assert after(*spec()).spec == PartitionSpec()
    for part, words in (
        ({**by_id, "transform": "truncate[10]"}, "miss rows"),
        ({**by_id, "transform": "void"}, "void"),
        ({**by_id, "transform": "zorder"}, "zorder"),
        ({**by_id, "name": "code"}, "name of a column"),
        ({**by_id, "source-id": 99}, "does not have"),
        ({"source-ids": [1, 2], "name": "x", "transform": "bucket[4]"}, "several columns"),
    ):
        with pytest.raises((InvalidInput, Unsupported), match=words):
            after(*spec(part))


def test_a_column_in_use_is_not_dropped() -> None:
    order = SortOrder(fields=(SortField(source_id=1, transform=IDENTITY, direction="asc", nulls="first"),))
    metadata = msgspec.structs.replace(METADATA, sort_order=order)
    document = base(metadata)
    with pytest.raises(InvalidInput, match="the sort order needs it"):
        altered_definition(metadata, document, updated(document, columns(1)))


def test_a_new_table_gets_fresh_ids_in_icebergs_order() -> None:
    place = {"type": "struct", "fields": [{"id": 9, "name": "x", "required": False, "type": "int"}]}
    tags = {"type": "list", "element-id": 3, "element-required": False, "element": "string"}
    part = {"source-id": 9, "field-id": 5, "name": "x", "transform": "bucket[2]"}
    request = {
        "name": "t",
        "schema": {
            "type": "struct",
            "fields": [
                {"id": 7, "name": "at", "required": False, "type": place},
                {"id": 8, "name": "tags", "required": False, "type": tags},
            ],
        },
        "partition-spec": {"spec-id": 0, "fields": [part]},
        "properties": {"format-version": "3", "comment": "of tea"},
    }  # fmt: skip
    target = updated(empty_document("/w/t", "log") | {"format-version": 2}, creation_updates(request))
    definition = new_definition(target)
    ids = {path: item.id for path, item in definition.schema.walk()}
    assert ids == {("at",): 1, ("tags",): 2, ("at", "x"): 3, ("tags", "element"): 4}
    assert definition.spec.fields[0].source_id == 3 and definition.spec.fields[0].id == 1000
    assert definition.properties == {"lakelog.iceberg.version": "3"} and definition.comment == "of tea"
    request["properties"] = {"format-version": "1"}
    target = updated(empty_document("/w/t", "log") | {"format-version": 2}, creation_updates(request))
    with pytest.raises(Unsupported, match="version '1'"):
        new_definition(target)


def snapshot(id: int, parent: int | None = 77, **more: Any) -> dict[str, Any]:
    entry = {
        "snapshot-id": id,
        "parent-snapshot-id": parent,
        "manifest-list": f"/w/t/metadata/{id}",
        "summary": {"operation": "append"},
    }
    return {"action": "add-snapshot", "snapshot": {**entry, **more}}


def ref(id: int, name: str = "main", kind: str = "branch", **more: Any) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": id, **more}


def plan(*updates: dict[str, Any], requirements: Any = ()) -> Any:
    return planned(ClientCommit(requirements, updates), base(), "t", 4, "log")


NEW, NEXT = (1 << 61) + 5, (1 << 61) + 6


def test_a_plan_has_the_last_snapshot_of_a_line() -> None:
    single_plan = plan(snapshot(NEW), ref(NEW))
    assert single_plan.line == "main" and single_plan.fact["iceberg"]["snapshot"] == str(NEW)
    assert single_plan.fact["iceberg"]["summary"] == {"operation": "append"}
    double_plan = plan(snapshot(NEW), ref(NEW), snapshot(NEXT, NEW), ref(NEXT))
    assert (
        double_plan.fact["iceberg"]["snapshot"] == str(NEXT) and "summary" not in double_plan.fact["iceberg"]
    )
    tag_plan = plan(ref(77, "old", "tag"))
    assert tag_plan.line is None and tag_plan.fact["iceberg"]["refs"] == {"old": "77"}
    assert plan({"action": "set-properties", "updates": {"a": "b"}}).fact == {}


def test_snapshots_that_would_be_lost_are_refused() -> None:
    with pytest.raises(Unsupported, match="no tag or branch leads to"):
        plan(snapshot(NEW))
    with pytest.raises(Unsupported, match="one tag or branch in each commit"):
        plan(snapshot(NEW), ref(NEW), snapshot(NEXT), ref(NEXT, "b"))
    with pytest.raises(InvalidInput, match="already"):
        plan(snapshot(77), ref(77))
    with pytest.raises(Unsupported, match="max-ref-age-ms"):
        plan(ref(77, "old", "tag", **{"max-ref-age-ms": 5}))
    with pytest.raises(InvalidInput, match="cannot be a tag"):
        plan(ref(77, "main", "tag"))
    for id in (5, 3 << 40 | 7):
        with pytest.raises(InvalidInput, match="lakelog's own versions"):
            plan(snapshot(id), ref(id))


def test_a_snapshot_that_continues_another_state_is_a_conflict() -> None:
    with pytest.raises(CommitConflict, match="continues main of t from the snapshot 70"):
        plan(snapshot(NEW, 70), ref(NEW))
    required = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 77}]
    assert plan(snapshot(NEW, 70), ref(NEW), requirements=required).line == "main"


def test_version_2_is_shown_only_without_what_needs_version_3() -> None:
    document = base()
    shown_document = in_version_2(document)
    assert (
        shown_document is not None
        and shown_document["format-version"] == 2
        and "next-row-id" not in shown_document
    )
    vectors = {**document["snapshots"][0], "summary": {"total-delete-files": "1"}}
    assert in_version_2({**document, "snapshots": [vectors]}) is None
    schema = document["schemas"][0]
    schema_with_default = {**schema, "fields": [{**schema["fields"][0], "write-default": 1}]}
    assert in_version_2({**document, "schemas": [schema_with_default]}) is None
