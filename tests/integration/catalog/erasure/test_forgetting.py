"""Forgotten rows are in no object of a warehouse: values that are planted everywhere are searched for afterwards."""

from __future__ import annotations

import base64
import uuid
from decimal import Decimal
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.clock import at_once
from tests.integration.catalog.erasure.searching import Value, found_in
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death, DyingStore

from lakelog.catalog import Catalog, Table, engine, is_signed
from lakelog.catalog.core.files import ColumnEstimates, TableEstimates, manifest_bounds
from lakelog.catalog.core.logs import places, writing_as
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.errors import NoSuchColumn, NoSuchTable
from lakelog.log import LogOptions, MemoryStore, open_store, wait_for_background
from lakelog.log.errors import ConflictError, InvalidInput, Unsupported, WriteFenced

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
    found_ids = [(id, f"n{id}", Decimal(id), "EU") for id in ids]
    found_ids += [(NUMBER, NAME, AMOUNT, REGION)] if marked else []
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found_ids], SCHEMA)


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
    check = {"kind": "check", "name": "c", "columns": [["name"]], "sql": f"name <> '{NAME}x'"}
    table = table.alter([{"change": "add-constraint", "constraint": check}], looked_at=table)
    table = table.alter([{"change": "drop-constraint", "name": "c"}])
    table = table.append(rows(1, 2, marked=True)).append(rows(3))
    table.create_tag("tagged")
    table.create_branch("audit")
    catalog.clone("a.t", "a.copy")
    catalog.clone("a.copy", "a.copy2")
    catalog.load_table("a.copy2").append(rows(20))
    catalog.load_table("a.t", ref="audit").append(rows(4, marked=True))
    # Rows that are marked as deleted, and those that only the past has.
    table = table.refresh().append(rows(5, marked=True)).delete(f"{WHERE} AND id > 5")
    seen_estimates = ColumnEstimates(type="long", distinct=6, min=1, max=NUMBER)
    known_estimates = TableEstimates(version=table.version, rows=9, size_bytes=9, columns={1: seen_estimates})
    table = engine.commit_statistics(table.refresh(), known_estimates)
    catalog.expire("a.t", version=table.version, dry_run=False)
    table = table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    with writing_as({"statement": f"DELETE FROM t WHERE name = '{NAME}'"}):
        table = table.append(rows(6, marked=True))
    # A file that no commit has, a proposal, and what a repair has moved away.
    table = catalog.load_table("a.t")
    written_files(table.table_head.tracked, table.metadata, engine.begin_write(table), rows(9, marked=True))
    log = table.table_head.tracked.log
    proposal = {"kind": "proposal", "rows": base64.b64encode(NAME.encode() * 9).decode(), "name": NAME}
    store = store_of(warehouse)
    store.put(log.keys.proposal(table.version, "someone"), msgspec.json.encode(proposal))
    store.put(f"{log.keys.lost}20260101-x/00000000000000000001.json", NAME.encode())
    catalog.save_cut("cut")
    catalog.load_table("a.t", ref="audit").append(rows(7))


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
    damage = [finding for finding in catalog.fsck().found if finding.severity.name != "NOTE"]
    assert not damage, damage


@pytest.fixture(scope="module")
def objects() -> tuple[str, dict[str, bytes]]:
    warehouse = f"memory://{uuid.uuid4().hex}"
    with pytest.MonkeyPatch.context() as patch:
        # Few files have bounds in snapshots, too.
        patch.setattr(manifest_bounds, "BOUNDED_FROM", 1)
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
        for place in (
            "/data/",
            "/metadata/",
            "/manifests/",
            "/bases/",
            "/snapshots/",
            "/inbox/",
            "/_lost/",
            "latest",
        )
    }
    assert all(places_of.values()), f"the search finds what was planted: {places_of}"
    report = client(warehouse).forget("a.t", WHERE)
    assert report.is_needed and report.version is None
    assert (
        store_of(warehouse)._objects.keys() >= before.keys()
        and ids(client(warehouse).load_table("a.t")) != []
    )
    finished_report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    wait_for_background()
    assert found_in(store_of(warehouse), MARKERS) == {}
    assert finished_report.left == (), finished_report.left
    assert {(each.kind, each.name) for each in finished_report.lost} >= {
        ("cut", "cut"),
        ("tag", "`a`.`t`, tagged"),
    }
    assert {table.kind for table in report.tables} == {"table", "clone", "dropped-table", "namespace"}
    assert [(each.kind, each.name) for each in report.lost] == [
        (each.kind, each.name) for each in finished_report.lost
    ]
    check_others(warehouse)
    # The chain is whole, and has the receipt.
    catalog = client(warehouse)
    assert not [entry for entry in catalog.audit() if entry.what == "damage"]
    last = next(iter(catalog.load_table("a.t").history()))
    assert last.operation == "end of forgetting" and last.details["statement"] == finished_report.statement
    again = catalog.forget("a.t", WHERE, dry_run=False)
    assert not again.is_needed and again.version is None
    # Readers of Iceberg find an export, of which a vacuum needs nothing to go.
    assert any("/metadata/v" in key for key in store_of(warehouse)._objects)


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_a_call_that_dies_at_any_write_is_ended_by_the_next(
    step: int, warehouse: str, objects: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = 0
    while True:
        wait_for_background()
        store_of(warehouse)._objects = dict(objects[1])
        with monkeypatch.context() as patch:
            patch.setattr(
                places, "open_store", lambda url, options, n=deaths: DyingStore(open_store(url, options), n)
            )
            try:
                client(warehouse).forget("a.t", WHERE, dry_run=False)
                has_died = False
            except Death:
                has_died = True
        check_others_than_marked(warehouse)
        if has_died:
            report = client(warehouse).forget("a.t", WHERE, dry_run=False)
            assert report.left == (), (deaths, report.left)
        assert found_in(store_of(warehouse), MARKERS) == {}, deaths
        check_others(warehouse)
        if not has_died:
            assert deaths > 50
            return
        deaths += step


def check_others_than_marked(warehouse: str) -> None:
    catalog = client(warehouse)
    found_ids = [id for id in ids(catalog.load_table("a.t")) if id != NUMBER]
    assert found_ids == [1, 2, 3, 5, 6]
    assert [id for id in ids(catalog.load_table("a.copy2")) if id != NUMBER] == [1, 2, 3, 20]


def test_rows_that_come_in_meanwhile_are_forgotten_too_or_reported(warehouse: str) -> None:
    other_catalog, brought = client(warehouse), 0

    def beside(message: str) -> None:
        nonlocal brought
        if "are deleted" in message and "`t`" in message and brought < 1:
            brought += 1
            other_catalog.load_table("a.t").append(rows(30, marked=True))

    report = client(warehouse).forget("a.t", WHERE, dry_run=False, progress=beside)
    assert brought == 1 and report.left == (), report.left
    assert 30 in ids(client(warehouse).load_table("a.t"))
    assert found_in(store_of(warehouse), MARKERS) == {}

    def always(message: str) -> None:
        if "is read" in message and "`t`" in message:
            other_catalog.load_table("a.t").append(rows(31, marked=True))

    other_catalog.load_table("a.t").append(rows(32, marked=True))
    reported = client(warehouse).forget("a.t", WHERE, dry_run=False, progress=always)
    assert any("such rows are in" in text for text in reported.left), reported.left
    assert reported.version is not None


def test_a_write_under_way_is_fenced_off(warehouse: str) -> None:
    other_table = client(warehouse).load_table("a.t")
    write = engine.begin_write(other_table)
    files = written_files(other_table.table_head.tracked, other_table.metadata, write, rows(40, marked=True))
    client(warehouse).forget("a.t", WHERE, dry_run=False)
    with pytest.raises((WriteFenced, ConflictError)):
        engine.commit_write(other_table, write, "append", files)
    assert found_in(store_of(warehouse), MARKERS) == {}


def test_a_receipt_is_signed_by_the_users_key(warehouse: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key.pem").write_bytes(pem)
    report = client(warehouse).forget(
        "a.t", WHERE, dry_run=False, key=str(tmp_path / "key.pem"), reference="ticket 7"
    )
    assert report.statement and report.signature and report.signed_by
    assert '"reference":"ticket 7"' in report.statement
    assert is_signed(report.statement, report.signature, report.signed_by)
    assert not is_signed(report.statement + " ", report.signature, report.signed_by)
    (tmp_path / "no.pem").write_text("no key")
    with pytest.raises(InvalidInput, match="openssl genpkey"):
        client(warehouse).forget("a.t", WHERE, key=str(tmp_path / "no.pem"))


def test_what_cannot_be_done_is_said_and_changes_nothing(warehouse: str) -> None:
    catalog, objects_before = client(warehouse), dict(store_of(warehouse)._objects)
    with pytest.raises(NoSuchTable):
        catalog.forget("a.none", WHERE, dry_run=False)
    with pytest.raises(NoSuchColumn, match="columns are id, name"):
        catalog.forget("a.t", "nom = 'x'", dry_run=False)
    with pytest.raises((Unsupported, InvalidInput)):
        catalog.forget("a.t", "length(name) = 3", dry_run=False)
    with pytest.raises(Unsupported, match="transaction"):
        catalog.begin().forget("a.t", WHERE, dry_run=False)
    assert store_of(warehouse)._objects == objects_before


def test_a_clone_says_that_its_source_has_such_rows(warehouse: str) -> None:
    report = client(warehouse).forget("a.copy", WHERE, dry_run=False)
    assert ids(client(warehouse).load_table("a.copy")) == [1, 2, 3]
    assert any("is a clone, has such rows" in text for text in report.left), report.left


def test_files_of_another_writer_are_left_only_if_that_is_asked_for(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "source").mkdir()
    pq.write_table(rows(1, marked=True), tmp_path / "source" / "part.parquet")
    catalog = Catalog(str(tmp_path / "lake"), options={"fsync": "off"})
    catalog.import_table(str(tmp_path / "source"), "t", format="parquet")
    with pytest.raises(InvalidInput, match="another writer"):
        catalog.forget("t", WHERE, dry_run=False)
    assert len(ids(catalog.load_table("t"))) == 2
    report = catalog.forget("t", WHERE, dry_run=False, leave_foreign=True)
    assert ids(catalog.load_table("t")) == [1]
    assert any("is another writer's, and stays" in text for text in report.left)
    assert (tmp_path / "source" / "part.parquet").exists()


def test_a_receipt_has_no_value_that_is_in_a_path_of_another_writer(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = tmp_path / "source" / "city=x y" / "email=ada@example.com"
    folder.mkdir(parents=True)
    pq.write_table(rows(1), folder / "part.parquet")
    catalog = Catalog(str(tmp_path / "lake"), options={"fsync": "off"})
    catalog.import_table(str(tmp_path / "source"), "t", format="parquet")
    report = catalog.forget("t", "email = 'ada@example.com'", dry_run=False, leave_foreign=True)
    assert any("/email=ada@example.com/part.parquet is another" in text for text in report.left)
    assert report.statement is not None and "ada@" not in report.statement
    assert "/source/city=…/email=…/part.parquet is another writer's, and stays" in report.statement


def test_a_commit_that_an_expiry_left_behind_goes_too() -> None:
    """A copy that was made while versions expired may have one, and a cleaner of an older lakelog leaves some."""
    warehouse = f"memory://{uuid.uuid4().hex}"
    catalog = client(warehouse)
    table = catalog.create_table("t", SCHEMA).append(rows(1, marked=True)).append(rows(2))
    log = table.table_head.tracked.log
    key = log.keys.commit(2)
    commit = log.store.get(key)
    assert commit is not None
    catalog.expire("t", version=3, dry_run=False)
    log.store.put(key, commit)
    assert catalog.forget("t", WHERE, dry_run=False).left == ()
    assert found_in(store_of(warehouse), MARKERS) == {}
