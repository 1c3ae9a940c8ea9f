"""Staged create, replace and create-or-replace: nothing before the commit, everything with it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import (
    Catalog,
    CommitConflict,
    DataFile,
    NameReassigned,
    NoSuchNamespace,
    NoSuchTable,
    Stage,
    TableExists,
)
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.log import InvalidInput, open_store

Client = Callable[[], Catalog]


def staged_files(stage: Stage, data: pa.Table) -> list[DataFile]:
    """Write `data` where the stage says, as an engine does."""
    inside = not stage.own_location
    store = open_store(stage.url.removesuffix("/" + stage.location) if inside else stage.url)
    prefix = stage.location if inside else ""
    return write_files(
        store,
        prefix,
        stage.write,
        data.to_reader(),
        stage.schema,
        stage.spec,
        stage.sort_order,
        properties=stage.properties,
    )


def test_nothing_is_visible_before_the_commit_and_everything_after_it(
    catalog: Catalog, client: Client
) -> None:
    stage = catalog.stage("create", "t", SCHEMA)
    files = staged_files(stage, rows(1, 2))
    assert client().list_tables() == []
    with pytest.raises(NoSuchTable):
        client().load_table("t")
    made = catalog.commit_stage(stage, files)
    assert made.version == 1, "metadata and files are one commit"
    assert client().load_table("t").to_arrow() == rows(1, 2)


def test_a_stage_can_be_committed_by_another_process_and_twice(catalog: Catalog, client: Client) -> None:
    stage = catalog.stage("create-or-replace", "t", SCHEMA)
    sent = msgspec.json.decode(msgspec.json.encode(stage), type=Stage)
    assert sent == stage
    files = staged_files(stage, rows(1))
    client().commit_stage(sent, files)
    again = client().commit_stage(sent, files)
    assert again.to_arrow() == rows(1)
    replace = client().stage("replace", "t", SCHEMA)
    files = staged_files(replace, rows(2))
    version = client().commit_stage(replace, files).version
    assert client().commit_stage(replace, files).version == version
    assert client().load_table("t").to_arrow() == rows(2)


def test_an_abandoned_stage_leaves_nothing_visible(catalog: Catalog, client: Client) -> None:
    staged_files(catalog.stage("create", "t", SCHEMA), rows(1))
    assert client().list_tables() == []
    assert client().create_table("t", SCHEMA).to_arrow().num_rows == 0


def test_of_two_stages_of_one_name_the_second_commit_fails(catalog: Catalog, client: Client) -> None:
    one, other = catalog.stage("create", "t", SCHEMA), client().stage("create", "t", SCHEMA)
    catalog.commit_stage(one, staged_files(one, rows(1)))
    with pytest.raises(TableExists, match="`t`"):
        client().commit_stage(other, staged_files(other, rows(2)))
    one, other = (
        catalog.stage("create-or-replace", "t", SCHEMA),
        client().stage("create-or-replace", "t", SCHEMA),
    )
    catalog.commit_stage(one, staged_files(one, rows(3)))
    with pytest.raises(CommitConflict, match="replaced the table"):
        client().commit_stage(other, staged_files(other, rows(4)))
    assert client().load_table("t").to_arrow() == rows(3)


def test_staging_fails_early_on_what_is_wrong_already(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        catalog.stage("replace", "t", SCHEMA)
    with pytest.raises(NoSuchNamespace):
        catalog.stage("create-or-replace", "a.t", SCHEMA)
    catalog.create_table("t", SCHEMA)
    with pytest.raises(TableExists):
        catalog.stage("create", "t", SCHEMA)
    with pytest.raises(InvalidInput, match="upsert"):
        catalog.stage("upsert", "t", SCHEMA)
    with pytest.raises(InvalidInput, match="name or a location"):
        catalog.stage("create", None, SCHEMA)


def test_a_replace_keeps_id_and_history_and_changes_all_else(catalog: Catalog, client: Client) -> None:
    old = catalog.create_table("t", SCHEMA, properties={"k": "v"}, partition_by=["region"]).append(rows(1))
    schema = pa.schema([pa.field("id", pa.string())])
    stage = catalog.stage("replace", "t", schema, properties={"l": "w"})
    assert client().load_table("t").to_arrow() == rows(1)
    data = pa.table({"id": ["x"]})
    new = catalog.commit_stage(stage, staged_files(stage, data))
    assert new.id == old.id
    assert new.version == old.version + 1
    seen = client().load_table("t")
    assert dict(seen.properties) == {"l": "w"}
    assert seen.to_arrow() == data
    assert seen.at(version=old.version).to_arrow() == rows(1)
    assert {f.physical for f in new.schema.fields}.isdisjoint(f.physical for f in old.schema.fields)


def test_a_replace_of_a_table_that_is_gone_fails_and_create_or_replace_creates_it(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    replace, either = catalog.stage("replace", "t", SCHEMA), catalog.stage("create-or-replace", "t", SCHEMA)
    replaced, files = staged_files(replace, rows(2)), staged_files(either, rows(3))
    client().drop_table("t")
    with pytest.raises(NoSuchTable):
        catalog.commit_stage(replace, replaced)
    made = catalog.commit_stage(either, files)
    assert made.version == 1
    assert client().load_table("t").to_arrow() == rows(3)
    assert client().commit_stage(either, files).id == made.id


def test_a_replace_of_a_name_that_leads_to_another_table_by_now_fails(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    stage = catalog.stage("create-or-replace", "t", SCHEMA)
    client().drop_table("t")
    client().create_table("t", SCHEMA).append(rows(9))
    files = staged_files(stage, rows(1))
    with pytest.raises(NameReassigned, match="was dropped and re-created.*run the statement again"):
        catalog.commit_stage(stage, files)
    assert client().load_table("t").to_arrow() == rows(9)


@pytest.mark.parametrize("how", ["create", "rename", "drop and create"])
def test_a_create_or_replace_that_meets_a_new_table_says_to_run_it_again(
    catalog: Catalog, client: Client, how: str
) -> None:
    if how == "rename":
        catalog.create_table("other", SCHEMA).append(rows(9))
    if how == "drop and create":
        catalog.create_table("t", SCHEMA)
    stage = catalog.stage("create-or-replace", "t", SCHEMA)
    files = staged_files(stage, rows(1))
    if how == "rename":
        client().rename_table("other", "t")
    else:
        client().drop_table("t")
        client().create_table("t", SCHEMA).append(rows(9))
    with pytest.raises(NameReassigned, match="Nothing was changed: run the statement again to replace"):
        catalog.commit_stage(stage, files)
    assert client().load_table("t").to_arrow() == rows(9)
    again = catalog.stage("create-or-replace", "t", SCHEMA)
    catalog.commit_stage(again, staged_files(again, rows(1)))
    assert client().load_table("t").to_arrow() == rows(1)
    create = catalog.stage("create-or-replace", "v", SCHEMA)
    client().create_table("v", SCHEMA)
    with pytest.raises(NameReassigned, match="another client created `v`"):
        catalog.commit_stage(create)


def test_a_namespace_that_is_gone_by_the_commit_fails_it(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.u", SCHEMA)
    create, replace = (
        catalog.stage("create", "a.t", SCHEMA),
        catalog.stage("create-or-replace", "a.u", SCHEMA),
    )
    client().drop_namespace("a", cascade=True)
    with pytest.raises(NoSuchNamespace):
        catalog.commit_stage(create, staged_files(create, rows(1)))
    with pytest.raises(NoSuchNamespace):
        catalog.commit_stage(replace, staged_files(replace, rows(1)))
    client().create_namespace("a")
    with pytest.raises(NoSuchNamespace):
        catalog.commit_stage(create, staged_files(create, rows(1)))
    assert client().list_tables("a") == []


def test_a_replace_goes_over_changed_properties_but_not_over_added_rows(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    stage = catalog.stage("replace", "t", SCHEMA)
    client().load_table("t").alter([{"change": "set-property", "key": "k", "value": "v"}])
    assert dict(catalog.commit_stage(stage, staged_files(stage, rows(1))).properties) == {}
    stage = catalog.stage("replace", "t", SCHEMA)
    client().load_table("t").append(rows(2))
    with pytest.raises(CommitConflict, match="added files"):
        catalog.commit_stage(stage, staged_files(stage, rows(3)))
    assert client().load_table("t").to_arrow().sort_by("id") == rows(1, 2)


def test_a_table_without_a_name_is_staged_by_its_place(catalog: Catalog, client: Client) -> None:
    place = "memory://elsewhere-" + catalog.warehouse.removeprefix("memory://") + "/x"
    stage = catalog.stage("create", None, SCHEMA, location=place)
    with pytest.raises(NoSuchTable):
        client().table_at(place)
    catalog.commit_stage(stage, staged_files(stage, rows(1)))
    assert client().table_at(place).to_arrow() == rows(1)
    with pytest.raises(TableExists):
        client().stage("create", None, SCHEMA, location=place)
    assert client().drop_table_at(place)
    assert not client().drop_table_at(place)
    with pytest.raises(NoSuchTable):
        client().table_at(place)
