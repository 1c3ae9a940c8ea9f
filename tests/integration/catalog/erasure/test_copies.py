"""Copies of forgotten rows that the condition does not find: older ones, other names, bounds, temporary files."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.erasure.searching import found_in
from tests.integration.catalog.erasure.test_forgetting import client, store_of
from tests.integration.catalog.erasure.test_what_stays import catalog, warehouse
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.files import ColumnEstimates, TableEstimates
from lakelog.catalog.core.logs import writing_as
from lakelog.catalog.core.parquet import left_folders
from lakelog.catalog.core.parquet.temporary import temporary_folder
from lakelog.catalog.keeping.clones import cloning
from lakelog.log import wait_for_background
from lakelog.log.errors import NotFound

__all__ = ["catalog", "warehouse"]

SCHEMA = pa.schema([("id", pa.int64()), ("email", pa.string()), ("flag", pa.string())])
ADA = "ZQXJ-ada@example.com"
NOW = dt.timedelta(0)


def people(catalog: Catalog, name: str = "a.t", **how: Any) -> Table:
    rows = pa.table({"id": [1, 2, 3], "email": [ADA, "b", "c"], "flag": [None, None, None]}, SCHEMA)
    return catalog.create_table(name, SCHEMA, **how).append(rows)


def ids(catalog: Catalog, name: str = "a.t") -> list[int]:
    return sorted(catalog.load_table(name).to_arrow().column("id").to_pylist())


def left_in(warehouse: str) -> set[str]:
    wait_for_background()
    return set(found_in(store_of(warehouse), ["ZQXJ"]))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_an_update_has_marked_go_with_their_older_copies(
    mode: str, catalog: Catalog, warehouse: str
) -> None:
    table = people(catalog, properties={"lakelog.write.update.mode": mode})
    table.create_branch("side")
    table.refresh().update({"flag": "'erase'"}, "id = 1")
    report = catalog.forget("a.t", "flag = 'erase'", dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert ids(catalog) == [2, 3]
    assert sorted(catalog.load_table("a.t", ref="side").to_arrow()["id"].to_pylist()) == [2, 3]


def test_a_row_that_matched_before_goes_though_it_matches_no_more(catalog: Catalog, warehouse: str) -> None:
    people(catalog).update({"email": "'other'"}, "id = 1")
    report = catalog.forget("a.t", f"email = '{ADA}'")
    assert any(each.kind == "rows" and "1 " in each.why for each in report.lost), report.lost
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()
    assert ids(catalog) == [2, 3] and left_in(warehouse) == set()


def test_a_name_that_a_column_had_before_a_row_came_says_nothing_of_the_row(catalog: Catalog) -> None:
    table = people(catalog)
    table = table.alter([{"change": "rename-column", "name": ["email"], "new_name": "old"}])
    table = table.alter([{"change": "rename-column", "name": ["flag"], "new_name": "email"}])
    table.append(pa.table({"id": [4, 5], "old": [ADA, "e"], "email": ["x", ADA]}))
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()
    assert ids(catalog) == [2, 3, 4]


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_column_that_was_dropped_and_perhaps_added_again_is_looked_at(
    tagged: bool, again: bool, catalog: Catalog, warehouse: str
) -> None:
    table = people(catalog)
    table = table.create_tag("then") if tagged else table
    table = table.alter([{"change": "delete-column", "name": ["email"]}])
    if again:
        table.alter([{"change": "add-column", "name": ["email"], "type": "string"}])
    assert catalog.forget("a.t", f"email = '{ADA}'").is_needed
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert report.left == () and left_in(warehouse) == set() and ids(catalog) == [2, 3]


def test_a_column_that_no_version_has_any_more_is_found_by_its_first_name(
    catalog: Catalog, warehouse: str
) -> None:
    table = people(catalog).alter([{"change": "delete-column", "name": ["email"]}])
    table = table.alter([{"change": "add-column", "name": ["email"], "type": "string"}])
    table = table.alter([{"change": "delete-column", "name": ["flag"]}])
    catalog.expire("a.t", version=table.version, dry_run=False)
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert report.left == () and left_in(warehouse) == set() and ids(catalog) == [2, 3]
    assert any("flag_3" in text for text in report.out_of_reach)


@pytest.mark.parametrize("added_again", [True, False])
def test_a_field_that_no_version_has_any_more_is_found_by_its_first_name(
    added_again: bool, catalog: Catalog, warehouse: str
) -> None:
    person = pa.struct([("email", pa.string()), ("age", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("person", person)])
    rows = [{"id": 1, "person": {"email": ADA, "age": 1}}, {"id": 2, "person": {"email": "b", "age": 2}}]
    table = catalog.create_table("a.t", schema).append(pa.Table.from_pylist(rows, schema))
    table = table.alter([{"change": "delete-column", "name": ["person", "email"]}])
    if added_again:
        table = table.alter([{"change": "add-column", "name": ["person", "email"], "type": "string"}])
    catalog.expire("a.t", version=table.version, dry_run=False)
    report = catalog.forget("a.t", f"person.email = '{ADA}'", dry_run=False)
    assert report.left == () and ids(client(warehouse)) == [2] and left_in(warehouse) == set()


def test_a_table_that_had_the_name_before_it_was_renamed_is_named_and_stays(catalog: Catalog) -> None:
    people(catalog)
    catalog.rename_table("a.t", "a.r")
    people(catalog).delete("id = 1")
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert ["which was called" in text for text in report.left] == [True]
    assert ids(catalog, "a.r") == [1, 2, 3] and ids(catalog) == [2, 3]
    assert catalog.forget("a.r", f"email = '{ADA}'", dry_run=False).left == ()
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()


def test_bounds_of_files_that_are_gone_are_written_anew(catalog: Catalog, warehouse: str) -> None:
    people(catalog).export_iceberg()
    catalog.load_table("a.t").delete("id = 1").compact(deleted_ratio=0.001)
    catalog.load_table("a.t").export_iceberg()
    catalog.expire("a.t", version=catalog.load_table("a.t").version, dry_run=False)
    catalog.vacuum("a.t", older_than=NOW, dry_run=False, trust_clock=True)
    texts_before = left_in(warehouse)
    assert texts_before and not any("/data/" in text for text in texts_before)
    assert not catalog.forget("a.t", "email = 'AAAA'").is_needed
    report = catalog.forget("a.t", f"email = '{ADA}'")
    assert report.is_needed and report.tables[0].old_bounds
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()
    assert left_in(warehouse) == set() and ids(catalog) == [2, 3]
    assert not catalog.forget("a.t", f"email = '{ADA}'").is_needed


def test_statistics_of_rows_that_are_gone_go(catalog: Catalog, warehouse: str) -> None:
    table = people(catalog)
    seen_estimates = ColumnEstimates(type="string", distinct=3, min=ADA, max="c")
    table = engine.commit_statistics(
        table, TableEstimates(version=table.version, rows=3, size_bytes=9, columns={2: seen_estimates})
    )
    catalog.load_table("a.t").delete("id = 1").compact(deleted_ratio=0.001)
    catalog.expire("a.t", version=catalog.load_table("a.t").version, dry_run=False)
    catalog.vacuum("a.t", older_than=NOW, dry_run=False, trust_clock=True)
    assert engine.estimates(catalog.load_table("a.t")) is not None
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).is_needed
    assert left_in(warehouse) == set() and ids(catalog) == [2, 3]


@pytest.mark.parametrize("to", ["a.old", "b.old"])
def test_a_table_that_was_renamed_and_dropped_is_purged(to: str, catalog: Catalog, warehouse: str) -> None:
    catalog.create_namespace("b")
    people(catalog)
    catalog.rename_table("a.t", to)
    catalog.drop_table(to)
    catalog.create_table("a.t", SCHEMA)
    report = catalog.forget("a.t", f"email = '{ADA}'")
    assert [each.kind for each in report.lost] == ["dropped-table"]
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()
    assert left_in(warehouse) == set()


def test_a_dropped_table_of_a_dropped_namespace_is_named(catalog: Catalog) -> None:
    people(catalog)
    catalog.drop_namespace("a", cascade=True)
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert any("its namespace was dropped" in text for text in report.left), report.left


def test_rows_of_the_source_are_found_in_a_clone_and_not_the_other_way(
    catalog: Catalog, warehouse: str
) -> None:
    people(catalog)
    catalog.clone("a.t", "a.c")
    catalog.clone("a.c", "a.c2")
    catalog.load_table("a.c2").alter([{"change": "delete-column", "name": ["flag"]}])
    catalog.load_table("a.t").update({"flag": "'erase'"}, "id = 1")
    catalog.load_table("a.c").update({"flag": "'erase'"}, "id = 2")
    report = catalog.forget("a.t", "flag = 'erase'", dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert ids(catalog) == [2, 3] and ids(catalog, "a.c") == [3] and ids(catalog, "a.c2") == [3]


def test_ids_that_a_clone_gave_itself_are_not_its_sources(catalog: Catalog) -> None:
    people(catalog)
    catalog.clone("a.t", "a.c")
    more = pa.table({"id": [4, 5], "email": ["d", "e"], "flag": ["erase", None]}, SCHEMA)
    catalog.load_table("a.t").append(more)
    catalog.load_table("a.c").append(more.set_column(2, "flag", pa.array([None, None], pa.string())))
    catalog.expire("a.c", version=catalog.load_table("a.c").version, dry_run=False)
    assert catalog.forget("a.t", "flag = 'erase'", dry_run=False).left == ()
    assert ids(client(catalog.warehouse)) == [1, 2, 3, 5]
    assert ids(client(catalog.warehouse), "a.c") == [1, 2, 3, 4, 5]


def test_what_a_clone_that_was_stopped_has_left_is_named(catalog: Catalog, warehouse: str) -> None:
    table = people(catalog)
    place = f"{table.table_head.tracked.location.rpartition('/')[0]}/t-{'a' * 26}"
    store_of(warehouse).put(f"{place}/_log/sidecars/00000000000000000001-x.bin", ADA.encode())
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert any("where no name leads" in text for text in report.left), report.left
    for _ in range(2):  # the first one has met it, the second one deletes it
        catalog.vacuum(older_than=NOW, dry_run=False, trust_clock=True)
    assert left_in(warehouse) == set()


def test_a_call_that_an_expiry_and_a_vacuum_get_in_the_way_of_begins_anew(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.keeping.erasure import ErasureWork

    table = people(catalog)
    for number in range(10, 14):
        table = table.append(pa.table({"id": [number], "email": [ADA], "flag": [None]}, SCHEMA))
    met: list[str] = []

    class Beside(ErasureWork):
        def matching(self, *asked: Any, **more: Any) -> Any:
            if not met:
                other_catalog = client(warehouse)
                other_catalog.load_table("a.t").compact()
                other_catalog.expire("a.t", retain_last=1, dry_run=False)
                other_catalog.vacuum("a.t", older_than=NOW, dry_run=False, trust_clock=True)
                met.append("vacuum")
            try:
                yield from super().matching(*asked, **more)
            except NotFound as error:
                met.append(str(error))
                raise

    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False, work=Beside())
    assert len(met) == 2 and report.left == () and left_in(warehouse) == set()
    assert ids(catalog) == [2, 3]


KILLED = """
import os, signal
from lakelog.catalog.core.parquet.temporary import temporary_folder
with temporary_folder("rows") as folder:
    (folder / "rows.duckdb").write_bytes(b"ZQXJ" * 1000)
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_path(place: Path) -> Path:
    process = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
    )
    return Path(process.stdout.strip())


def test_what_a_killed_merge_has_left_is_said_and_deleted(catalog: Catalog, temporary_folders: Path) -> None:
    people(catalog)
    remaining_path = killed_path(temporary_folders)
    assert (remaining_path / "rows.duckdb").exists()
    with temporary_folder("sql") as used_temporary_folder:
        assert not remaining_path.exists(), "the next one deletes what the last one has left"
        remaining_path.mkdir()
        (remaining_path / ".in-use").touch()
        report = catalog.forget("a.t", f"email = '{ADA}'")
        assert [each.name for each in report.lost if each.kind == "temporary-folder"] == [str(remaining_path)]
        assert remaining_path.exists() and any(
            str(used_temporary_folder) in text for text in report.out_of_reach
        )
        catalog.forget("a.t", "email = 'none'", dry_run=False)
        assert not remaining_path.exists() and used_temporary_folder.exists()
    assert left_folders().killed == {} and not used_temporary_folder.exists()


def test_a_folder_of_which_nothing_is_known_is_named(catalog: Catalog, temporary_folders: Path) -> None:
    people(catalog)
    (temporary_folders / "lakelog-rows-older").mkdir()
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert any("lakelog-rows-older" in text for text in report.out_of_reach)
    assert (temporary_folders / "lakelog-rows-older").exists()


def test_a_clone_that_was_never_linked_is_purged(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog)
    promise_all = cloning.promise_all

    def dying(*given: Any) -> None:
        promise_all(*given)
        raise Death

    with monkeypatch.context() as patch:
        # It dies once its source has promised to keep the files.
        patch.setattr(cloning, "promise_all", dying)
        with pytest.raises(Death):
            client(warehouse).clone("a.t", "a.c")
    report = catalog.forget("a.t", f"email = '{ADA}'")
    assert any(each.kind == "unfinished-clone" for each in report.lost), report
    assert catalog.forget("a.t", f"email = '{ADA}'", dry_run=False).left == ()
    assert left_in(warehouse) == set()
    assert not [finding for finding in catalog.fsck().found if finding.severity.name != "NOTE"]


def test_half_of_what_killed_writes_were_writing_is_deleted(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), options={"fsync": "off"})
    catalog.create_namespace("a")
    folder = Path(people(catalog).location)
    namespace = folder.parent
    for place in (
        folder / "data",
        folder / "_log",
        folder / "metadata",
        namespace / "_log",
        namespace / "_txn",
    ):
        place.mkdir(exist_ok=True)
        (place / f".lakelog-tmp-{'a' * 26}").write_text(ADA)
    assert "temporary-files" in {each.kind for each in catalog.forget("a.t", "id = 77").lost}
    catalog.forget("a.t", "id = 77", dry_run=False)
    assert not [path for path in tmp_path.rglob(".lakelog-tmp-*") if path.is_file()]
    assert ids(catalog) == [1, 2, 3]


def test_files_of_expired_versions_are_read_by_the_first_name_of_a_column(
    catalog: Catalog, warehouse: str
) -> None:
    table = people(catalog).delete("email LIKE 'ZQXJ%'").compact(deleted_ratio=0.0)
    for name, new in (("email", "other"), ("flag", "email"), ("other", "flag")):
        table = table.alter([{"change": "rename-column", "name": [name], "new_name": new}])
    catalog.expire("a.t", version=table.version, dry_run=False)
    assert any("/data/" in key for key in left_in(warehouse)), "no vacuum has been there"
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert ids(catalog) == [2, 3]


def test_a_dropped_table_without_such_a_column_goes_with_what_it_quotes(
    catalog: Catalog, warehouse: str
) -> None:
    table = catalog.create_table("a.t", SCHEMA)
    table = table.alter([{"change": "rename-column", "name": ["email"], "new_name": "mail"}])
    catalog.expire("a.t", version=table.version, dry_run=False)
    with writing_as({"statement": f"DELETE FROM t WHERE email = '{ADA}'"}):
        table.append(pa.table({"id": [7]}))
    catalog.drop_table("a.t")
    people(catalog)
    report = catalog.forget("a.t", f"email = '{ADA}'", dry_run=False)
    assert report.left == () and "dropped-table" in {each.kind for each in report.lost}
    assert left_in(warehouse) == set()
