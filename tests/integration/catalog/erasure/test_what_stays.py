"""The data that an erasure leaves alone, its report, and places where erased rows were once overlooked."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.erasure.searching import found_in
from tests.integration.catalog.erasure.test_forgetting import (
    MARKERS,
    NAME,
    NUMBER,
    SCHEMA,
    WHERE,
    Death,
    client,
    ids,
    rows,
    store_of,
)

from lakelog.catalog import Catalog, Forgotten, StreamBatch, ViewColumn, ViewDefinition, engine
from lakelog.catalog.core.files import ColumnEstimates, TableEstimates
from lakelog.catalog.core.logs import writing_as
from lakelog.catalog.core.parquet.row_bytes import encoded_rows
from lakelog.catalog.core.state import form_of
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.keeping.erasure import ErasureWork
from lakelog.catalog.keeping.upkeep import clustering
from lakelog.catalog.looking.changelog import StreamLimits, StreamVersions, TableStream
from lakelog.log import expiry, wait_for_background
from lakelog.log.errors import InvalidInput, LakelogError, NotFound
from lakelog.log.format import Proposal, ProposedChange, encode


@pytest.fixture
def warehouse() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def catalog(warehouse: str) -> Catalog:
    found_catalog = client(warehouse)
    found_catalog.create_namespace("a")
    return found_catalog


def test_a_clone_without_such_rows_keeps_its_versions(catalog: Catalog) -> None:
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.clone("a.t", "a.c")
    catalog.load_table("a.c").append(rows(2)).append(rows(3))
    table.refresh().append(rows(9, marked=True))
    report = catalog.forget("a.c", WHERE, dry_run=False)
    assert any("is a clone, has such rows" in text for text in report.left)
    assert not report.is_needed and not report.lost
    assert ids(catalog.load_table("a.c").at(version=2)) == [1, 2]


def test_a_clone_whose_past_has_such_rows_of_its_source_says_what_is_lost(catalog: Catalog) -> None:
    catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    catalog.clone("a.t", "a.c")
    catalog.load_table("a.c").truncate()
    report = catalog.forget("a.c", WHERE)
    assert report.is_needed and "versions" in {each.kind for each in report.lost}


def test_a_dropped_table_at_a_place_of_its_own_is_named_and_can_be_restored(
    catalog: Catalog, warehouse: str
) -> None:
    catalog.create_table("a.t", SCHEMA, location=f"{warehouse}/own").append(rows(1, marked=True))
    catalog.drop_table("a.t")
    catalog.create_table("a.t", SCHEMA).append(rows(2, marked=True))
    report = catalog.forget("a.t", WHERE, dry_run=False)
    assert any("at a place that a user chose" in text for text in report.left), report.left
    assert not [each for each in report.lost if each.kind == "dropped-table"]
    catalog.undrop_table("a.t", to="a.old")
    assert ids(catalog.load_table("a.old")) == [1, NUMBER]
    assert catalog.forget("a.old", WHERE, dry_run=False).left == ()
    assert found_in(store_of(warehouse), MARKERS) == {}
    assert ids(catalog.load_table("a.old")) == [1]


@pytest.mark.parametrize("quoted", ["O''Briqn", "O\\'Briqn"])
def test_a_statement_that_quotes_a_value_with_a_quote_in_it_expires(
    quoted: str, catalog: Catalog, warehouse: str
) -> None:
    with writing_as({"statement": f"CREATE TABLE t AS SELECT '{quoted}'"}):
        table = catalog.create_table("a.t", SCHEMA)
    row = dict(zip(SCHEMA.names, (1, "O'Briqn", Decimal(1), "EU"), strict=True))
    table.append(pa.Table.from_pylist([row], SCHEMA))
    assert catalog.forget("a.t", "name = 'O''Briqn'", dry_run=False).left == ()
    assert not [key for key, data in store_of(warehouse)._objects.items() if b"Briqn" in data]


def test_bases_from_when_a_file_had_such_rows_are_emptied(catalog: Catalog, warehouse: str) -> None:
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    seen_estimates = ColumnEstimates(type="long", distinct=2, min=1, max=NUMBER)
    known_estimates = TableEstimates(version=table.version, rows=2, size_bytes=9, columns={1: seen_estimates})
    table = engine.commit_statistics(table, known_estimates)
    catalog.expire("a.t", version=table.version, dry_run=False)
    table.refresh().delete(WHERE)
    known_estimates = TableEstimates(version=table.version, rows=1, size_bytes=9, columns={})
    catalog.load_table("a.t").compact()
    table = engine.commit_statistics(catalog.load_table("a.t"), known_estimates)
    catalog.expire("a.t", version=table.version, dry_run=False)
    catalog.vacuum("a.t", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    assert any("/bases/" in key for key in found_in(store_of(warehouse), MARKERS))
    for _ in range(2):
        catalog.forget("a.t", WHERE, dry_run=False)
        assert found_in(store_of(warehouse), MARKERS) == {}
    assert ids(client(warehouse).load_table("a.t")) == [1]


def test_a_clone_of_a_clone_is_released_by_both(catalog: Catalog, warehouse: str) -> None:
    """Its source's source keeps files for it, too, that nothing of itself shows."""
    catalog.create_table("a.t", SCHEMA).append(rows(1)).append(rows(2, marked=True))
    first = catalog.clone("a.t", "a.c")
    catalog.load_table("a.c").delete(f"id = 2 OR {WHERE}")
    clones = [catalog.clone("a.c", "a.c0")]
    # They are met by their ids: at least one is to be met after its own source.
    while max(table.id for table in clones) < first.id:
        clones.append(catalog.clone("a.c", f"a.c{len(clones)}"))
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert found_in(store_of(warehouse), MARKERS) == {}
    assert ids(catalog.load_table("a.t")) == [1, 2]
    assert {tuple(ids(catalog.load_table(f"a.c{number}"))) for number in range(len(clones))} == {(1,)}


def test_what_a_repair_has_moved_away_is_said_to_go(catalog: Catalog, warehouse: str) -> None:
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    key = f"{table.table_head.tracked.log.keys.lost}20260101-x/00000000000000000001.json"
    store_of(warehouse).put(key, b"other")
    report = catalog.forget("a.t", WHERE)
    assert any(each.kind == "repairs" and "1 objects" in each.why for each in report.lost)
    assert key in store_of(warehouse)._objects


def test_boundaries_of_a_clustering_go_with_the_rows(catalog: Catalog, warehouse: str) -> None:
    """They are values of rows: of the table, of a tag, of what is kept for a clone, and of the clone, whose own rows
    are not among those."""
    table = catalog.create_table("a.t", SCHEMA, cluster_by=["id", "name"])
    table.append(rows(1, marked=True)).append(rows(2, 3, 4))
    clustered_table = catalog.load_table("a.t").cluster()
    table = catalog.load_table("a.t")
    assert clustered_table and table.metadata.ranks is not None
    table.delete(WHERE)
    catalog.load_table("a.t").compact(deleted_ratio=0.01)
    catalog.load_table("a.t").create_tag("clean")
    catalog.clone("a.t", "a.c")
    assert catalog.load_table("a.c").metadata.ranks is not None
    report = catalog.forget("a.t", WHERE)
    assert {table.kind for table in report.tables if table.versions} == {"table", "clone"}
    finished_report = catalog.forget("a.t", WHERE, dry_run=False)
    assert finished_report.left == () and found_in(store_of(warehouse), MARKERS) == {}
    for name in ("a.t", "a.c"):
        assert catalog.load_table(name).metadata.ranks is None
        assert ids(catalog.load_table(name)) == [1, 2, 3, 4]
    assert ids(catalog.load_table("a.t", ref="clean")) == [1, 2, 3, 4]
    catalog.load_table("a.t").cluster()
    assert catalog.load_table("a.t").metadata.ranks is not None
    again = catalog.forget("a.t", WHERE, dry_run=False)
    assert not again.is_needed
    assert catalog.forget("a.t", "id = 3").is_needed and not catalog.forget("a.t", "id = 77").is_needed


def test_former_boundaries_of_a_clustering_go_where_nothing_else_has_such_rows(
    catalog: Catalog, warehouse: str
) -> None:
    catalog.create_table("a.t", SCHEMA, cluster_by=["id", "name"]).append(rows(1, marked=True)).append(
        rows(2)
    )
    catalog.load_table("a.t").cluster()
    catalog.load_table("a.t").delete(WHERE).compact(deleted_ratio=0.01)
    catalog.expire("a.t", version=catalog.load_table("a.t").version, dry_run=False)
    catalog.vacuum("a.t", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    catalog.load_table("a.t").alter([{"change": "set-clustering", "columns": []}])
    assert found_in(store_of(warehouse), MARKERS)
    report = catalog.forget("a.t", f"id = {NUMBER}", dry_run=False)
    assert report.left == () and found_in(store_of(warehouse), MARKERS) == {}


def test_definitions_that_quote_a_value_are_named_and_go_once_they_are_changed(
    catalog: Catalog, warehouse: str
) -> None:
    def forgotten() -> Forgotten:
        return client(warehouse).forget("a.t", WHERE, dry_run=False)

    def view(of: str) -> ViewDefinition:
        text = f"SELECT id FROM a.t WHERE name = '{of}'"
        return ViewDefinition(text=text, columns=(ViewColumn(name="id", type="long"),))

    catalog.create_namespace("b")
    engine.create_view(catalog, "b.v", view(NAME))
    engine.create_view(catalog, "a.v", view(NAME))
    check = {"kind": "check", "name": "c", "columns": [["name"]], "sql": f"name <> '{NAME}'"}
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    table.alter([{"change": "add-constraint", "constraint": check}], looked_at=table).create_tag("x")
    done = forgotten()
    assert [text.split(" quotes")[0] for text in done.left] == [
        "`a`.`t`: the constraint c",
        "`a`: the view v",
    ]
    assert not done.is_needed and any("`b`: the view v quotes" in text for text in done.out_of_reach)
    table = catalog.load_table("a.t").alter([{"change": "drop-constraint", "name": "c"}])
    assert any("`a`.`t`, x: the constraint c quotes" in text for text in forgotten().left), "a tag has it"
    table.refresh().drop_tag("x")
    engine.replace_view(catalog, "a.v", view("another"))
    assert any("/t-" in key for key in found_in(store_of(warehouse), MARKERS))
    done = forgotten()
    assert done.left == () and {table.kind for table in done.tables if table.versions} == {
        "table",
        "namespace",
    }
    of_b = catalog._tree.find_namespace(("b",))
    assert of_b is not None
    assert all(of_b.tracked.location in key for key in found_in(store_of(warehouse), MARKERS))
    assert not forgotten().is_needed and catalog.view_exists("a.v")
    engine.create_view(catalog, "a.w", view(NAME))
    catalog.drop_view("a.w")
    assert ["the dropped view w" in text for text in forgotten().left] == [True]


def test_an_expiry_that_finds_an_object_gone_is_done_again(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    expire, tried = expiry.expire, list[object]()

    def beside_another(*what: Any, **options: Any) -> Any:
        tried.append(what)
        if len(tried) == 1:
            raise NotFound("a list of files is gone: another expiry has replaced it")
        return expire(*what, **options)

    monkeypatch.setattr(expiry, "expire", beside_another)
    report = catalog.forget("a.t", WHERE, dry_run=False)
    assert len(tried) > 1 and report.left == () and found_in(store_of(warehouse), MARKERS) == {}


def test_what_was_computed_from_such_rows_meanwhile_is_refused(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("a.t", SCHEMA, cluster_by=["id", "name"])
    table = table.append(rows(1, marked=True)).append(rows(2, 3, 4))
    seen_estimates = ColumnEstimates(type="long", distinct=2, min=1, max=NUMBER)
    known_estimates = TableEstimates(version=table.version, rows=5, size_bytes=9, columns={1: seen_estimates})
    sample = clustering.sample

    def beside(head: Any, files: pa.Table) -> Any:
        found_head = sample(head, files)
        assert client(warehouse).forget("a.t", WHERE, dry_run=False).left == ()
        return found_head

    with monkeypatch.context() as patch:
        patch.setattr(clustering, "sample", beside)
        with pytest.raises(LakelogError, match="expired|forgotten"):
            table.cluster()
    with pytest.raises(LakelogError, match="expired|forgotten"):
        engine.commit_statistics(table, known_estimates)
    assert found_in(store_of(warehouse), MARKERS) == {}


def test_a_statement_that_quotes_a_short_text_expires(catalog: Catalog, warehouse: str) -> None:
    with writing_as({"statement": "CREATE TABLE t AS SELECT 'Zq' AS name, 'Zqx' AS other"}):
        catalog.create_table("a.t", SCHEMA)
    assert (
        catalog.forget("a.t", "name = 'Zqx'").is_needed and not catalog.forget("a.t", "name = 'qx'").is_needed
    )
    assert catalog.forget("a.t", "name = 'Zq'", dry_run=False).is_needed
    assert not [key for key, data in store_of(warehouse)._objects.items() if b"'Zq'" in data]


def test_proposals_that_come_at_the_end_are_looked_into(catalog: Catalog, warehouse: str) -> None:
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True)).append(rows(2))
    log = table.table_head.tracked.log

    def propose(*numbers: int, marked: bool = False) -> str:
        seen_version = catalog.load_table("a.t").version
        change = ProposedChange(
            commit_id=log.options.new_id(),
            base=seen_version,
            rows=encoded_rows(rows(*numbers, marked=marked)),
        )
        proposal = Proposal(
            format=1, log_id=table.id, seen=seen_version, until=seen_version + 1, changes=(change,)
        )
        key = log.keys.proposal(seen_version, change.commit_id)
        store_of(warehouse).put(key, encode(proposal))
        return key

    came: list[str] = []

    def beside(message: str) -> None:
        if "is read" in message:
            came.append(propose(3, marked=len(came) == 0))

    report = catalog.forget("a.t", WHERE, dry_run=False, progress=beside)
    assert report.left == () and len(came) == 2, report.left

    def always(message: str) -> None:
        if "is read" in message:
            came.append(propose(4, marked=True))

    catalog.load_table("a.t").append(rows(5, marked=True))
    report = catalog.forget("a.t", WHERE, dry_run=False, progress=always)
    assert [text for text in report.left if came[-1] in text and "1 such rows" in text], report.left


def test_an_imported_folder_is_not_to_be_adopted(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(rows(1, marked=True), tmp_path / "source" / "part.parquet")
    catalog = Catalog(str(tmp_path / "lake"), options={"fsync": "off"})
    catalog.import_table(str(tmp_path / "source"), "t", format="parquet")
    with pytest.raises(InvalidInput, match="copy the rows"):
        catalog.forget("t", WHERE)


class Dying(ErasureWork):
    """An engine that dies after so many of its jobs."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def _job(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Death

    def rewrite(self, *asked: Any) -> None:
        for path in asked[1]:
            self._job()
            super().rewrite(asked[0].refreshed(), [path], *asked[2:])

    def count(self, *asked: Any, **more: Any) -> Any:
        self._job()
        return super().count(*asked, **more)

    def count_listed(self, *asked: Any) -> Any:
        for each in super().count_listed(*asked):
            self._job()
            yield each


def test_an_engine_that_dies_between_jobs_is_followed_by_another(catalog: Catalog, warehouse: str) -> None:
    table = catalog.create_table("a.t", SCHEMA)
    for number in range(3):
        table = table.append(rows(number, marked=True))
    catalog.clone("a.t", "a.c")
    catalog.load_table("a.t").delete(WHERE)
    wait_for_background()
    objects = dict(store_of(warehouse)._objects)
    for jobs in range(0, 99, 3):
        wait_for_background()
        store_of(warehouse)._objects = dict(objects)
        try:
            client(warehouse).forget("a.t", WHERE, dry_run=False, work=Dying(jobs))
            return
        except Death:
            report = client(warehouse).forget("a.t", WHERE, dry_run=False)
        assert report.left == () and found_in(store_of(warehouse), MARKERS) == {}, jobs
        for name in ("a.t", "a.c"):
            assert ids(client(warehouse).load_table(name)) == [0, 1, 2], jobs
    raise AssertionError("it never came to its end")


def test_dropped_tables_and_clones_go_with_what_they_quote_and_what_a_purge_would_leave(
    catalog: Catalog, warehouse: str
) -> None:
    """A dropped clone is purged before its source is erased, the clones of a dropped table before that is purged."""
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True))
    clustered = {"change": "set-clustering", "columns": [["id"], ["name"]]}
    table.alter([clustered]).append(rows(2)).cluster()
    catalog.clone("a.t", "a.of the dropped one")
    catalog.load_table("a.of the dropped one").append(rows(5))
    catalog.load_table("a.of the dropped one").materialize()
    catalog.drop_table("a.t")
    # No row of this one is to be forgotten, but a statement quotes one.
    table = catalog.create_table("a.t", SCHEMA)
    with writing_as({"statement": f"DELETE FROM t WHERE {WHERE}"}):
        table.append(rows(7))
    catalog.drop_table("a.t")
    catalog.create_table("a.t", SCHEMA).append(rows(1, 2, marked=True))
    catalog.clone("a.t", "a.dropped clone")
    catalog.drop_table("a.dropped clone")
    assert len(found_in(store_of(warehouse), MARKERS)) > 9
    report = catalog.forget("a.t", WHERE, dry_run=False)
    wait_for_background()
    assert not report.left and not found_in(store_of(warehouse), MARKERS)
    assert ids(catalog.load_table("a.t")) == [1, 2]
    assert ids(catalog.load_table("a.of the dropped one")) == [1, 2, 5]


def test_a_stream_that_writes_goes_on_after_an_erasure_and_one_that_reads_says_that_it_cannot(
    catalog: Catalog,
) -> None:
    first = StreamBatch(stream="s", number=0)
    table = catalog.create_table("a.t", SCHEMA).append(rows(1, marked=True), batch=first)
    mark = table.stream_mark("s")

    def stream() -> TableStream:
        found_table = catalog.load_table("a.t")
        return TableStream(
            table=found_table, name="t", form=form_of(found_table.schema), since=1, versions=StreamVersions()
        )

    checkpoints = [stream().start(version=1).to_json(), stream().head().to_json()]
    report = catalog.forget("a.t", WHERE, dry_run=False)
    assert any(each.kind == "streams" and "that read it begin anew" in each.why for each in report.lost)
    second = StreamBatch(stream="s", number=1, after=mark)
    catalog.load_table("a.t").append(rows(5), batch=second).append(rows(5), batch=second)
    assert ids(catalog.load_table("a.t")) == [1, 5]
    for checkpoint in checkpoints:
        with pytest.raises(StreamStopped, match="has expired before it was read"):
            stream().next(stream().position(checkpoint), StreamLimits())
