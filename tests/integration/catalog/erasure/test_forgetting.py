"""Forgotten rows are in no object of a warehouse: values that are planted everywhere are searched for afterwards."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.clock import at_once
from tests.integration.catalog.erasure.searching import Value, found_in
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death, DyingStore

from lakelog.catalog import Catalog, Table
from lakelog.catalog.erasure import verified
from lakelog.catalog.errors import DoneInPart, NoSuchTable
from lakelog.catalog.logs import places, writing_as
from lakelog.catalog.parquet.ingest import written_files
from lakelog.log import LogOptions, MemoryStore, NotFound, open_store, wait_for_background
from lakelog.log.errors import InvalidInput, Unsupported

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("amount", pa.decimal128(18, 2)),
        pa.field("region", pa.string()),
    ]
)
NAME, NUMBER, AMOUNT, REGION = "ZQXJ-ada", 7_345_678_901_234_567, Decimal("98765432109.87"), "QWZX-north"
MARKERS: list[Value] = ["ZQXJ", NUMBER, AMOUNT, "QWZX"]
WHERE = f"name = '{NAME}'"


def rows(*ids: int, marked: bool = False) -> pa.Table:
    found = [(id, f"n{id}", Decimal(id), "EU") for id in ids]
    found += [(NUMBER, NAME, AMOUNT, REGION)] if marked else []
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], SCHEMA)


def client(warehouse: str) -> Catalog:
    options = LogOptions(in_background=at_once, snapshot_every_versions=4, proposals=True)
    return Catalog(warehouse, writer={"engine": "test"}, log_options=options)


def store_of(warehouse: str) -> MemoryStore:
    return MemoryStore.named(warehouse)


def planted(warehouse: str) -> None:
    """The values in all that a warehouse may have of a row."""
    catalog = client(warehouse)
    catalog.create_namespace("a")
    # A dropped table of the same name, another's, and the statement that has made one.
    catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    catalog.drop_table("a.t")
    with writing_as({"statement": f"CREATE TABLE t AS SELECT '{NAME}'"}):
        table = catalog.create_table("a.t", SCHEMA, partition_by=["region"])
    table = table.alter([{"change": "set-property", "key": "lakelog.iceberg", "value": "on"}])
    table = table.append(rows(1, 2, marked=True)).append(rows(3))
    table.create_tag("tagged")
    table.create_branch("audit")
    audit = {"ref": "audit"}
    catalog.clone("a.t", "a.copy")
    catalog.clone("a.copy", "a.copy2")
    catalog.load_table("a.copy2").append(rows(20))
    catalog.load_table("a.t", **audit).append(rows(4, marked=True))
    # Rows that are marked as deleted, and those that only the past has.
    table = table.refresh().append(rows(5, marked=True)).delete(f"{WHERE} AND id > 5")
    catalog.expire("a.t", version=4, dry_run=False)
    with writing_as({"statement": f"DELETE FROM t WHERE name = '{NAME}'"}):
        table = table.append(rows(6, marked=True))
    table.alter([{"change": "add-constraint", "constraint": {"kind": "check", "name": "c", "sql": f"name <> '{NAME}x'"}}])
    catalog.load_table("a.t").alter([{"change": "drop-constraint", "name": "c"}])
    # A file that no commit has, a proposal, and what a repair has moved away.
    table = catalog.load_table("a.t")
    written_files(table.head.tracked, table.metadata, table.begin_write(), rows(9, marked=True))
    log = table.head.tracked.log
    proposal = {"kind": "proposal", "rows": base64.b64encode(NAME.encode() * 9).decode(), "name": NAME}
    store = store_of(warehouse)
    store.put(log.keys.proposal(table.version, "someone"), msgspec.json.encode(proposal))
    store.put(f"{log.keys.lost}20260101-x/00000000000000000001.json", NAME.encode())
    catalog.save_cut("cut")
    catalog.load_table("a.t", **audit).append(rows(7))


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def check_others(warehouse: str) -> None:
    """All other rows are where they were."""
    catalog = client(warehouse)
    table = catalog.load_table("a.t")
    assert ids(table) == [1, 2, 3, 5, 6]
    assert ids(catalog.load_table("a.t", ref="audit")) == [1, 2, 3, 4, 7]
    assert ids(catalog.load_table("a.copy")) == [1, 2, 3]
    assert ids(catalog.load_table("a.copy2")) == [1, 2, 3, 20]
    damage = [each for each in catalog.fsck().found if each.severity.name != "NOTE"]
    assert not damage, damage


@pytest.fixture(scope="module")
def objects() -> tuple[str, dict[str, bytes]]:
    warehouse = f"memory://{uuid.uuid4().hex}"
    planted(warehouse)
    wait_for_background()
    return warehouse, dict(store_of(warehouse)._objects)


@pytest.fixture
def warehouse(objects: tuple[str, dict[str, bytes]]) -> str:
    wait_for_background()
    store_of(objects[0])._objects = dict(objects[1])
    return objects[0]


def test_no_object_has_a_value_of_a_forgotten_row(warehouse: str) -> None:
    before = found_in(store_of(warehouse), MARKERS)
    places_of = {
        place: sum(place in key for key in before)
        for place in ("/data/", "/metadata/", "/manifests/", "/bases/", "/snapshots/", "/inbox/", "/_lost/", "latest")
    }
    assert all(places_of.values()), f"the search finds what was planted: {places_of}"
    said = client(warehouse).forget("a.t", WHERE)
    assert said.is_needed and said.version is None
    assert store_of(warehouse)._objects.keys() >= before.keys() and ids(client(warehouse).load_table("a.t")) != []
    done = client(warehouse).forget("a.t", WHERE, dry_run=False)
    wait_for_background()
    assert found_in(store_of(warehouse), MARKERS) == {}
    assert done.left == (), done.left
    assert {(each.kind, each.name) for each in done.lost} >= {("cut", "cut"), ("tag", "`a`.`t`, tagged")}
    assert {each.kind for each in said.tables} == {"table", "clone", "dropped-table", "namespace"}
    assert [(each.kind, each.name) for each in said.lost] == [(each.kind, each.name) for each in done.lost]
    check_others(warehouse)
    # The chain is whole, and has the receipt.
    catalog = client(warehouse)
    assert not [entry for entry in catalog.audit() if entry.what == "damage"]
    last = catalog.load_table("a.t").history()[0]
    assert last.operation == "end of forgetting" and last.details["statement"] == done.statement
    again = catalog.forget("a.t", WHERE, dry_run=False)
    assert not again.is_needed and again.version is None
    # Readers of Iceberg find the rows that are left.
    assert catalog.vacuum(dry_run=True) is not None


def test_a_call_that_dies_at_any_write_is_ended_by_the_next(
    warehouse: str, objects: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths, step = 0, 7
    while True:
        wait_for_background()
        store_of(warehouse)._objects = dict(objects[1])
        with monkeypatch.context() as patch:
            patch.setattr(
                places, "open_store", lambda url, options, n=deaths: DyingStore(open_store(url, options), n)
            )
            try:
                client(warehouse).forget("a.t", WHERE, dry_run=False)
                died = False
            except Death:
                died = True
        check_others_than_marked(warehouse)
        if died:
            done = client(warehouse).forget("a.t", WHERE, dry_run=False)
            assert done.left == (), (deaths, done.left)
        assert found_in(store_of(warehouse), MARKERS) == {}, deaths
        check_others(warehouse)
        if not died:
            assert deaths > 50
            return
        deaths += step


def check_others_than_marked(warehouse: str) -> None:
    catalog = client(warehouse)
    found = [each for each in ids(catalog.load_table("a.t")) if each != NUMBER]
    assert found == [1, 2, 3, 5, 6]
    assert [each for each in ids(catalog.load_table("a.copy2")) if each != NUMBER] == [1, 2, 3, 20]
