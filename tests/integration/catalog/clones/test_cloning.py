"""Clones: a table with the files of another one, which keeps them as long as the clone needs them, and no longer."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, NamespaceExists, NoSuchTable, Table, TableExists, engine
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.keeping.clones import cloning, materializing
from lakelog.catalog.keeping.clones import namespaces as clone_namespaces
from lakelog.catalog.keeping.maintenance import Severity, promises, purge
from lakelog.log.errors import NotFound, PermissionDenied, Unsupported

NOW = dt.timedelta(0)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def vacuumed(catalog: Catalog) -> dict[str, Any]:
    report = catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    return {each.name: each for each in report}


def emptied(catalog: Catalog, name: str) -> None:
    """Replace all rows of a table, and let its older versions expire: its files are needed by clones alone."""
    catalog.load_table(name).overwrite(rows(99))
    catalog.expire(name, retain_last=1, dry_run=False)


def check_whole(catalog: Catalog) -> None:
    report = catalog.fsck(deep=True, all_versions=True)
    assert not report.of(Severity.DAMAGE), report.of(Severity.DAMAGE)


@pytest.fixture
def source(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table with two files, of which one has a vector in an object of its own."""
    monkeypatch.setattr(deletion_vectors, "INLINE_MAX_BYTES", 0)
    table = catalog.create_table("a", SCHEMA).append(rows(1, 2, 3)).append(rows(4, 5))
    return table.delete("id = 2")


def test_a_clone_has_the_rows_and_no_file_of_its_own(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b")
    assert (ids(clone), clone.version, clone.row_count) == ([1, 3, 4, 5], 1, 4)
    assert (clone.schema, clone.properties) == (source.schema, source.properties)
    store, prefix = clone.table_head.tracked.store, clone.table_head.tracked.prefix
    assert not list(store.list_sizes(f"{prefix}/data/"))
    assert all(path.startswith(source.table_head.url) for path in clone.plan()["path"].to_pylist())
    assert [entry.operation for entry in clone.history()] == ["create, clone"]
    check_whole(catalog)


def test_each_goes_its_own_way(catalog: Catalog, source: Table, client: Callable[[], Catalog]) -> None:
    catalog.clone("a", "b").append(rows(7)).delete("id = 4")
    source.append(rows(8))
    assert ids(client().load_table("b")) == [1, 3, 5, 7]
    assert ids(client().load_table("a")) == [1, 3, 4, 5, 8]
    assert ids(catalog.load_table("b").compact().refresh()) == [1, 3, 5, 7]
    check_whole(catalog)


def test_rows_keep_their_ids_and_new_ones_get_others(catalog: Catalog, source: Table) -> None:
    def numbered(table: Table) -> dict[int, int]:
        rows = table.scan(row_ids=True).to_arrow()
        return dict(zip(rows["id"].to_pylist(), rows["_row_id"].to_pylist(), strict=True))

    before = numbered(source)
    after = numbered(catalog.clone("a", "b").append(rows(7)))
    assert {id: after[id] for id in before} == before
    assert after[7] not in before.values()


def test_an_old_version_is_cloned_with_the_columns_that_it_had(catalog: Catalog, source: Table) -> None:
    source.alter([{"change": "add-column", "name": ["more"], "type": "string"}])
    clone = catalog.clone("a", "b", version=2)
    assert (ids(clone), clone.schema.names) == ([1, 2, 3], ("id", "region", "amount"))
    emptied(catalog, "a")
    vacuumed(catalog)
    assert ids(catalog.load_table("b")) == [1, 2, 3]
    with pytest.raises(NotFound, match="expired"):
        catalog.clone("a", "c", version=2)


def test_what_is_written_to_a_clone_is_the_same_for_change_feeds(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b").delete("id = 1")
    changes = pa.Table.from_batches(clone.changes(1, 2).to_arrow().to_batches())
    seen_pairs = sorted(zip(changes["_change_type"].to_pylist(), changes["id"].to_pylist(), strict=True))
    assert seen_pairs == [("delete", 1), *(("insert", id) for id in (1, 3, 4, 5))]


def test_the_source_keeps_what_the_clone_needs(
    catalog: Catalog, source: Table, client: Callable[[], Catalog]
) -> None:
    catalog.clone("a", "b")
    emptied(catalog, "a")
    vacuumed(catalog)
    vacuumed(catalog)  # after one of the clone
    # As another client reads it, from a snapshot.
    assert ids(client().load_table("b")) == [1, 3, 4, 5]
    check_whole(client())


def test_a_source_that_was_dropped_is_purged_once_its_clones_are(catalog: Catalog, source: Table) -> None:
    catalog.clone("a", "b")
    catalog.drop_table("a")
    answer = vacuumed(catalog)["`a`"]
    assert (answer.kept_for_clones, answer.files) == (("`b`",), 0)
    assert ids(catalog.load_table("b")) == [1, 3, 4, 5]
    catalog.drop_table("b")
    assert vacuumed(catalog)["`b`"].kept_for_clones == ()
    answer = vacuumed(catalog).get("`a`")
    # Either vacuum may have purged it: the order of names decides.
    assert answer is None or (answer.kept_for_clones, answer.files > 0) == ((), True)
    with pytest.raises(NotFound):
        catalog.undrop_table("a")


def test_a_purge_of_the_source_is_refused_by_the_names_of_its_clones(catalog: Catalog, source: Table) -> None:
    catalog.clone("a", "b")
    with pytest.raises(Unsupported, match="`b`: materialize"):
        catalog.drop_table("a", purge=True)
    assert catalog.table_exists("a")
    catalog.drop_table("b", purge=True)
    assert not catalog.load_table("a").table_head.state.clones
    assert catalog.drop_table("a", purge=True)


def test_a_clone_in_a_dropped_namespace_is_named_by_its_place(catalog: Catalog, source: Table) -> None:
    catalog.create_namespace("n")
    clone = catalog.clone("a", "n.a")
    catalog.drop_namespace("n", cascade=True)
    with pytest.raises(Unsupported, match=f"clones of it need, {clone.table_head.url}: materialize"):
        catalog.drop_table("a", purge=True)


def test_a_namespace_is_purged_with_table_and_clone(catalog: Catalog) -> None:
    catalog.create_namespace("n")
    catalog.create_table("n.a", SCHEMA).append(rows(1))
    catalog.clone("n.a", "n.b")
    catalog.drop_namespace("n", cascade=True)
    assert not any(each.kept_for_clones for each in vacuumed(catalog).values())
    with pytest.raises(NotFound):
        catalog.undrop_namespace("n")


def test_a_clone_that_is_undropped_has_its_rows(catalog: Catalog, source: Table) -> None:
    catalog.clone("a", "b")
    catalog.drop_table("b")
    emptied(catalog, "a")
    catalog.rename_table("a", "other")
    catalog.vacuum(older_than=NOW, dry_run=False)
    catalog.undrop_table("b", to="c")
    assert ids(catalog.load_table("c")) == [1, 3, 4, 5]


def test_a_clone_of_a_clone_outlives_both(catalog: Catalog, source: Table) -> None:
    catalog.clone("a", "b").append(rows(7))
    catalog.clone("b", "c")
    emptied(catalog, "a")
    emptied(catalog, "b")
    catalog.drop_table("b")
    catalog.drop_table("a")
    answers = vacuumed(catalog)
    assert answers["`a`"].kept_for_clones == ("`b`", "`c`") and answers["`b`"].kept_for_clones == ("`c`",)
    assert ids(catalog.load_table("c")) == [1, 3, 4, 5, 7]
    check_whole(catalog)


def test_a_clone_of_a_clone_that_has_none_of_its_files_does_not_hold_it(
    catalog: Catalog, source: Table
) -> None:
    catalog.clone("a", "b")
    catalog.clone("b", "c")
    assert catalog.drop_table("b", purge=True)
    emptied(catalog, "a")
    vacuumed(catalog)
    assert ids(catalog.load_table("c")) == [1, 3, 4, 5]
    check_whole(catalog)


def test_a_clone_that_has_nothing_of_the_source_any_more_releases_it(catalog: Catalog, source: Table) -> None:
    catalog.clone("a", "b")
    emptied(catalog, "b")
    vacuumed(catalog)
    assert not catalog.load_table("b").table_head.state.origins
    assert not catalog.load_table("a").table_head.state.clones
    assert catalog.drop_table("a", purge=True)
    assert ids(catalog.load_table("b")) == [99]


def test_older_versions_of_a_clone_keep_what_they_need(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b")
    clone.overwrite(rows(99))
    emptied(catalog, "a")
    vacuumed(catalog)
    vacuumed(catalog)
    assert ids(catalog.load_table("b", version=1)) == [1, 3, 4, 5]


def test_what_dies_before_the_name_costs_space_only(
    catalog: Catalog, source: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging, "_link", killed)
        with pytest.raises(Killed):
            catalog.clone("a", "b")
    assert not catalog.table_exists("b")
    assert len(catalog.load_table("a").table_head.state.clones) == 1
    check_whole(catalog)
    vacuumed(catalog)  # purges the log that no name leads to
    vacuumed(catalog)
    assert not catalog.load_table("a").table_head.state.clones
    catalog.clone("a", "b")


def test_a_name_that_is_taken_leaves_no_promise_behind(catalog: Catalog, source: Table) -> None:
    catalog.create_table("b", SCHEMA)
    with pytest.raises(TableExists):
        catalog.clone("a", "b")
    assert catalog.clone("a", "b", if_not_exists=True).row_count == 0
    assert not catalog.load_table("a").table_head.state.clones


def test_a_clone_that_comes_too_late_leaves_no_open_log_behind(
    catalog: Catalog, source: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(*_: object) -> None:
        raise CommitConflict("vacuum took it for abandoned", version=0)

    with monkeypatch.context() as patch, pytest.raises(CommitConflict):
        patch.setattr(staging, "check_not_forgotten", forgotten)
        catalog.clone("a", "b")
    [promise] = catalog.load_table("a").table_head.state.clones.values()
    assert catalog._tree.logs.table(promise.location).current().sealed
    vacuumed(catalog)
    assert not catalog.load_table("a").table_head.state.clones


def test_a_reader_who_may_not_write_is_refused_by_name(
    catalog: Catalog, source: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(tracked: Any, *arguments: Any) -> None:
        raise PermissionDenied("no right to put that object", location=tracked.location)

    monkeypatch.setattr(type(source.table_head.tracked), "commit", denied)
    monkeypatch.setattr(staging, "_give_up", lambda tracked, view: None)
    with pytest.raises(PermissionDenied, match="`b` cannot be a clone: `a` has to keep its files"):
        catalog.clone("a", "b")


def test_what_no_log_keeps_is_not_cloned(catalog: Catalog, source: Table, tmp_path: Any) -> None:
    catalog.create_table("ext", SCHEMA, location="memory://elsewhere/t").append(rows(1))
    with pytest.raises(Unsupported, match="a place of its user's"):
        catalog.clone("ext", "b")
    source.create_branch("dev")
    with pytest.raises(Unsupported, match="is on dev"):
        cloning.clone_table(catalog._tree, catalog.load_table("a", ref="dev").table_head, ("b",), None)
    with pytest.raises(Unsupported, match="not part of a transaction"), catalog.transaction() as tx:
        tx.clone("a", "b")


def test_a_namespace_is_cloned_by_one_commit(
    catalog: Catalog, client: Callable[[], Catalog], source: Table
) -> None:
    catalog.create_namespace("n", {"comment": "first"})
    catalog.create_namespace("n.deep")
    catalog.create_table("n.t", SCHEMA).append(rows(1))
    catalog.create_table("n.deep.u", SCHEMA).append(rows(2))
    catalog.rename_table("a", "n.moved")
    count_before = len(list(catalog.history(())))
    catalog.clone_namespace("n", "m")
    assert len(list(catalog.history(()))) == count_before + 1
    other_catalog = client()
    assert other_catalog.list_tables("m") == [("m", "moved"), ("m", "t")] and other_catalog.load_namespace(
        "m"
    ) == {"comment": "first"}
    assert [ids(other_catalog.load_table(name)) for name in ("m.t", "m.moved", "m.deep.u")] == [
        [1],
        [1, 3, 4, 5],
        [2],
    ]
    other_catalog.load_table("m.deep.u").append(rows(3))
    emptied(catalog, "n.moved")
    catalog.drop_namespace("n", cascade=True)
    answers = vacuumed(catalog)
    assert answers["`n`"].kept_for_clones == ("`m`.`deep`.`u`", "`m`.`moved`", "`m`.`t`")
    assert ids(catalog.load_table("m.moved")) == [1, 3, 4, 5]
    check_whole(catalog)
    with pytest.raises(NamespaceExists):
        catalog.clone_namespace("m", "m")
    catalog.drop_namespace("m", cascade=True)
    vacuumed(catalog)
    assert not any(each.kept_for_clones for each in vacuumed(catalog).values())


def test_a_clone_of_a_namespace_that_died_is_purged_as_a_whole(
    catalog: Catalog, source: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*arguments: Any) -> None:
        raise Killed

    catalog.create_namespace("n")
    catalog.create_namespace("n.deep")
    catalog.rename_table("a", "n.deep.a")
    with monkeypatch.context() as patch:
        patch.setattr(clone_namespaces, "_link", killed)
        with pytest.raises(Killed):
            catalog.clone_namespace("n", "m")
    assert catalog.list_namespaces() == [("n",)]
    assert len(catalog.load_table("n.deep.a").table_head.state.clones) == 1
    vacuumed(catalog)
    assert not catalog.load_table("n.deep.a").table_head.state.clones
    check_whole(catalog)


def test_materializing_copies_what_is_borrowed_and_ends_the_promise(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b")
    clone.create_branch("dev")
    clone.create_tag("first")
    done = catalog.load_table("b").materialize()
    assert (done.files, done.tags, done.owners) == (2, ("first",), (source.table_head.url,))
    table = catalog.load_table("b")
    assert ids(table) == ids(table.at(ref="dev")) == ids(table.at(ref="first")) == [1, 3, 4, 5]
    check_whole(catalog)
    table.drop_tag("first")
    catalog.expire("b", retain_last=1, dry_run=False)
    assert catalog.load_table("b").materialize().owners == ()
    assert catalog.drop_table("a", purge=True)
    assert ids(catalog.load_table("b")) == [1, 3, 4, 5]
    check_whole(catalog)


def test_what_is_deleted_while_files_are_copied_stays_deleted(
    catalog: Catalog, source: Table, client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = catalog.clone("a", "b")
    real = materializing._copy

    def meanwhile(*arguments: Any) -> Any:
        done = real(*arguments)
        client().load_table("b").delete("id = 3")
        return done

    monkeypatch.setattr(materializing, "_copy", meanwhile)
    clone.materialize()
    assert ids(clone.refresh()) == [1, 4, 5]
    changes = clone.refresh().changes(2).to_arrow()
    assert list(zip(changes["_change_type"].to_pylist(), changes["id"].to_pylist(), strict=True)) == [
        ("delete", 3)
    ]


def test_a_change_that_was_prepared_before_finds_its_rows_in_the_copies(
    catalog: Catalog, source: Table
) -> None:
    clone = catalog.clone("a", "b")
    write, positions = engine.begin_write(clone), base64.b64encode(BitMap([0]).serialize()).decode()
    (path,) = [path for path, rows in zip(*_paths_and_rows(clone), strict=True) if rows == 2 and "-" in path][
        -1:
    ]
    clone.materialize()
    engine.commit_rows(clone, write, "delete", deletes=[{"path": path, "positions": positions}])
    assert len(ids(clone.refresh())) == 3
    check_whole(catalog)


def _paths_and_rows(table: Table) -> tuple[list[str], list[int]]:
    files = table.plan()
    return files["path"].to_pylist(), files["rows"].to_pylist()


def test_a_clone_without_the_promise_is_found(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b")
    tracked_log = source.table_head.tracked
    promises._ended(tracked_log, tracked_log.current(), [clone.id])
    report = catalog.fsck()
    assert [finding.kind for finding in report.of(Severity.DAMAGE)] == ["clone-not-kept"]


def test_a_promise_without_the_clone_is_found(
    catalog: Catalog, source: Table, client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = catalog.clone("a", "b")
    catalog.clone("a", "c")
    with monkeypatch.context() as patch:
        # As by a client that may not write in the source's log.
        patch.setattr(purge, "end_at_origins", lambda *arguments: None)
        catalog.drop_table("b", purge=True)
    store, lost_prefix = clone.table_head.tracked.store, catalog.load_table("c").table_head.tracked.prefix
    report = catalog.fsck("a")
    assert [finding.kind for finding in report.found] == ["clone-over"]
    store.delete(list(store.list_after(f"{lost_prefix}/")))
    report = client().fsck("a")
    assert [finding.kind for finding in report.found] == ["clone-over", "clone-missing"]
    assert not report.of(Severity.DAMAGE)
    client().vacuum("a", older_than=NOW, dry_run=False)
    # What is not known to be over is kept.
    assert len(client().load_table("a").table_head.state.clones) == 1


def test_a_log_elsewhere_with_the_id_of_a_clone_ends_nothing(catalog: Catalog, source: Table) -> None:
    clone = catalog.clone("a", "b")
    logs, origins = clone.table_head.logs, clone.table_head.state.origins
    promises.end_at_origins(logs, clone.id, f"n-{clone.id}/t-{clone.id}", origins)
    assert list(source.refresh().table_head.state.clones) == [clone.id]
    promises.end_at_origins(logs, clone.id, clone.table_head.tracked.location, origins)
    assert not source.refresh().table_head.state.clones


def test_a_clone_of_a_clone_whose_source_was_dropped_says_what_to_do(catalog: Catalog) -> None:
    catalog.create_table("t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    catalog.clone("t", "c")
    catalog.drop_table("t")
    with pytest.raises(NoSuchTable, match=r"`c` cannot be cloned: the table at .* was dropped.* MATERIALIZE"):
        catalog.clone("c", "d")
    catalog.load_table("c").materialize()
    catalog.expire("c", retain_last=1, dry_run=False)
    catalog.vacuum("c", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    assert catalog.clone("c", "d").to_arrow()["id"].to_pylist() == [1]
