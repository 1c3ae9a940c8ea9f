"""Staged create, replace and create-or-replace: nothing before the commit, everything with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests import s3_servers
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import (
    Catalog,
    CommitConflict,
    NameReassigned,
    NoSuchNamespace,
    NoSuchTable,
    Observation,
    TableExists,
    engine,
)
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.engine import DataFile, StagedTable
from lakelog.log import InvalidInput, open_store, wait_for_background

Client = Callable[[], Catalog]


def staged_files(stage: StagedTable, data: pa.Table) -> list[DataFile]:
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
    stage = engine.stage(catalog, "create", "t", SCHEMA)
    files = staged_files(stage, rows(1, 2))
    assert client().list_tables() == []
    with pytest.raises(NoSuchTable):
        client().load_table("t")
    table = engine.commit_stage(catalog, stage, files)
    assert table.version == 1, "metadata and files are one commit"
    assert client().load_table("t").to_arrow() == rows(1, 2)


def test_a_stage_can_be_committed_by_another_process_and_twice(catalog: Catalog, client: Client) -> None:
    stage = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
    sent_table = msgspec.json.decode(msgspec.json.encode(stage), type=StagedTable)
    assert sent_table == stage
    files = staged_files(stage, rows(1))
    engine.commit_stage(client(), sent_table, files)
    again = engine.commit_stage(client(), sent_table, files)
    assert again.to_arrow() == rows(1)
    replace = engine.stage(client(), "replace", "t", SCHEMA)
    files = staged_files(replace, rows(2))
    version = engine.commit_stage(client(), replace, files).version
    assert engine.commit_stage(client(), replace, files).version == version
    assert client().load_table("t").to_arrow() == rows(2)


def test_an_abandoned_stage_leaves_nothing_visible(catalog: Catalog, client: Client) -> None:
    staged_files(engine.stage(catalog, "create", "t", SCHEMA), rows(1))
    assert client().list_tables() == []
    assert client().create_table("t", SCHEMA).to_arrow().num_rows == 0


def test_of_two_stages_of_one_name_the_second_commit_fails(catalog: Catalog, client: Client) -> None:
    first_table, other_table = (
        engine.stage(catalog, "create", "t", SCHEMA),
        engine.stage(client(), "create", "t", SCHEMA),
    )
    engine.commit_stage(catalog, first_table, staged_files(first_table, rows(1)))
    with pytest.raises(TableExists, match="`t`"):
        engine.commit_stage(client(), other_table, staged_files(other_table, rows(2)))
    first_table, other_table = (
        engine.stage(catalog, "create-or-replace", "t", SCHEMA),
        engine.stage(client(), "create-or-replace", "t", SCHEMA),
    )
    engine.commit_stage(catalog, first_table, staged_files(first_table, rows(3)))
    with pytest.raises(CommitConflict, match="replaced the table"):
        engine.commit_stage(client(), other_table, staged_files(other_table, rows(4)))
    assert client().load_table("t").to_arrow() == rows(3)


def test_staging_fails_early_on_what_is_wrong_already(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        engine.stage(catalog, "replace", "t", SCHEMA)
    with pytest.raises(NoSuchNamespace):
        engine.stage(catalog, "create-or-replace", "a.t", SCHEMA)
    catalog.create_table("t", SCHEMA)
    with pytest.raises(TableExists):
        engine.stage(catalog, "create", "t", SCHEMA)
    with pytest.raises(InvalidInput, match="upsert"):
        engine.stage(catalog, "upsert", "t", SCHEMA)
    with pytest.raises(InvalidInput, match="name or a location"):
        engine.stage(catalog, "create", None, SCHEMA)


def test_a_replace_keeps_id_and_history_and_changes_all_else(catalog: Catalog, client: Client) -> None:
    old = catalog.create_table("t", SCHEMA, properties={"k": "v"}, partition_by=["region"]).append(rows(1))
    schema = pa.schema([pa.field("id", pa.string())])
    stage = engine.stage(catalog, "replace", "t", schema, properties={"l": "w"})
    assert client().load_table("t").to_arrow() == rows(1)
    data = pa.table({"id": ["x"]})
    new = engine.commit_stage(catalog, stage, staged_files(stage, data))
    assert new.id == old.id
    assert new.version == old.version + 1
    seen_table = client().load_table("t")
    assert dict(seen_table.properties) == {"l": "w"}
    assert seen_table.to_arrow() == data
    assert seen_table.at(version=old.version).to_arrow() == rows(1)
    assert {f.physical for f in new.schema.fields}.isdisjoint(f.physical for f in old.schema.fields)


def test_a_replace_of_a_table_that_is_gone_fails_and_create_or_replace_creates_it(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    replace, either = (
        engine.stage(catalog, "replace", "t", SCHEMA),
        engine.stage(catalog, "create-or-replace", "t", SCHEMA),
    )
    replaced_files, files = staged_files(replace, rows(2)), staged_files(either, rows(3))
    client().drop_table("t")
    with pytest.raises(NoSuchTable):
        engine.commit_stage(catalog, replace, replaced_files)
    table = engine.commit_stage(catalog, either, files)
    assert table.version == 1
    assert client().load_table("t").to_arrow() == rows(3)
    assert engine.commit_stage(client(), either, files).id == table.id


def test_staged_files_of_a_dropped_table_that_are_gone_fail_the_statement(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    stage = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
    files = staged_files(stage, rows(2))
    client().drop_table("t")
    store = open_store(catalog.warehouse)
    store.delete([f"{stage.location}/{file.path}" for file in files])
    with pytest.raises(NoSuchTable, match="its files were removed.*run the statement again"):
        engine.commit_stage(catalog, stage, files)
    assert client().list_tables() == []
    assert engine.commit_stage(catalog, stage, staged_files(stage, rows(3))).to_arrow() == rows(3)


@pytest.mark.s3
def test_a_bucket_copies_the_staged_files_of_a_dropped_table_by_itself(tmp_path: Path) -> None:
    seen_observations: list[Observation] = []
    with s3_servers.running("moto", tmp_path / "objects") as (server, bucket):
        catalog = Catalog(f"s3://{bucket}/w", options=server.options, observe=seen_observations.append)
        catalog.create_table("t", SCHEMA)
        stage = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
        store = open_store(catalog.warehouse, server.options)
        files = write_files(
            store, stage.location, stage.write, rows(*range(50_000)).to_reader(), stage.schema, stage.spec,
            stage.sort_order, properties={"lakelog.write.target-file-size-bytes": "65536"},
        )  # fmt: skip
        catalog.drop_table("t")
        data_bytes = sum(file.size_bytes for file in files)
        seen_observations.clear()
        table = engine.commit_stage(catalog, stage, files)
        wait_for_background()
        (observation,) = [
            each_observation
            for each_observation in seen_observations
            if each_observation.operation == "commit_stage"
        ]
        assert len(files) > 1 and observation.requests["copy"] == len(files)
        assert observation.bytes_read + observation.bytes_written < data_bytes
        assert table.row_count == 50_000


def test_a_replace_of_a_name_that_leads_to_another_table_by_now_fails(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    stage = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
    client().drop_table("t")
    client().create_table("t", SCHEMA).append(rows(9))
    files = staged_files(stage, rows(1))
    with pytest.raises(NameReassigned, match="was dropped and re-created.*run the statement again"):
        engine.commit_stage(catalog, stage, files)
    assert client().load_table("t").to_arrow() == rows(9)


@pytest.mark.parametrize("how", ["create", "rename", "drop and create"])
def test_a_create_or_replace_that_meets_a_new_table_says_to_run_it_again(
    catalog: Catalog, client: Client, how: str
) -> None:
    if how == "rename":
        catalog.create_table("other", SCHEMA).append(rows(9))
    if how == "drop and create":
        catalog.create_table("t", SCHEMA)
    stage = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
    files = staged_files(stage, rows(1))
    if how == "rename":
        client().rename_table("other", "t")
    else:
        client().drop_table("t", missing_ok=True)
        client().create_table("t", SCHEMA).append(rows(9))
    with pytest.raises(NameReassigned, match="Nothing was changed: run the statement again to replace"):
        engine.commit_stage(catalog, stage, files)
    assert client().load_table("t").to_arrow() == rows(9)
    again = engine.stage(catalog, "create-or-replace", "t", SCHEMA)
    engine.commit_stage(catalog, again, staged_files(again, rows(1)))
    assert client().load_table("t").to_arrow() == rows(1)
    create = engine.stage(catalog, "create-or-replace", "v", SCHEMA)
    client().create_table("v", SCHEMA)
    with pytest.raises(NameReassigned, match="another client created `v`"):
        engine.commit_stage(catalog, create)


def test_a_namespace_that_is_gone_by_the_commit_fails_it(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.u", SCHEMA)
    create, replace = (
        engine.stage(catalog, "create", "a.t", SCHEMA),
        engine.stage(catalog, "create-or-replace", "a.u", SCHEMA),
    )
    client().drop_namespace("a", cascade=True)
    with pytest.raises(NoSuchNamespace):
        engine.commit_stage(catalog, create, staged_files(create, rows(1)))
    with pytest.raises(NoSuchNamespace):
        engine.commit_stage(catalog, replace, staged_files(replace, rows(1)))
    client().create_namespace("a")
    with pytest.raises(NoSuchNamespace):
        engine.commit_stage(catalog, create, staged_files(create, rows(1)))
    assert client().list_tables("a") == []


def test_a_replace_goes_over_changed_properties_but_not_over_added_rows(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    client().load_table("t").alter([{"change": "set-property", "key": "k", "value": "v"}])
    assert dict(engine.commit_stage(catalog, stage, staged_files(stage, rows(1))).properties) == {}
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    client().load_table("t").append(rows(2))
    with pytest.raises(CommitConflict, match="added files"):
        engine.commit_stage(catalog, stage, staged_files(stage, rows(3)))
    assert client().load_table("t").to_arrow().sort_by("id") == rows(1, 2)


def test_a_table_without_a_name_is_staged_by_its_place(catalog: Catalog, client: Client) -> None:
    place = "memory://elsewhere-" + catalog.warehouse.removeprefix("memory://") + "/x"
    stage = engine.stage(catalog, "create", None, SCHEMA, location=place)
    with pytest.raises(NoSuchTable):
        client().table_at(place)
    engine.commit_stage(catalog, stage, staged_files(stage, rows(1)))
    assert client().table_at(place).to_arrow() == rows(1)
    with pytest.raises(TableExists):
        engine.stage(client(), "create", None, SCHEMA, location=place)
    assert engine.drop_table_at(client(), place)
    assert not engine.drop_table_at(client(), place)
    with pytest.raises(NoSuchTable):
        client().table_at(place)
