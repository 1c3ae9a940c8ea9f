"""The check reports lost, unfinished and left objects, and a repair deals with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import msgspec
import pytest
from tests.integration.fsck.world import OPTIONS, SCHEMA, altered, create_with_rows, rows

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.schema.definition import ViewColumn, ViewDefinition
from lakelog.catalog.core.state import namespace_projection
from lakelog.catalog.core.state.events import EntryDefined, TableDropped, TableMoved, encode
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.keeping.maintenance.fsck import Checksum, Findings, Severity, check_warehouse
from lakelog.cli.main import run
from lakelog.log import Draft, FormatError, LakelogError, LogPart, commit_together
from lakelog.log.decisions import WarehouseDecisions
from lakelog.log.expiry import expire
from lakelog.log.format import decode_decision, decode_root
from lakelog.log.format import encode as encode_object

VIEW = ViewDefinition(text="SELECT 1 AS a", columns=(ViewColumn(name="a", type="integer"),))


class Folder:
    """A warehouse in a folder, to be broken by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.catalog = self.client()

    def client(self) -> Catalog:
        return Catalog(str(self.path), options={"fsync": "off"}, log_options=OPTIONS)

    def logs(self) -> LogCache:
        return LogCache(WarehouseStores(str(self.path), {"fsync": "off"}), {}, OPTIONS)

    def check(
        self, *name: str, deep: bool = False, all_versions: bool = False, repair: bool = False
    ) -> Findings:
        return check_warehouse(self.logs(), name, deep=deep, all_versions=all_versions, repair=repair)

    def table(self, name: str, appends: int = 3) -> Path:
        """Make a table with a row for each append and return its folder."""
        table = self.catalog.create_table(name, SCHEMA)
        for n in range(appends):
            table = table.append(rows(n))
        return Path(table.location)

    def commit(self, name: str, version: int) -> Path:
        return Path(self.catalog.load_table(name).location, "_log", f"{version:020d}.json")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    new_folder = Folder(tmp_path / "warehouse")
    new_folder.catalog.create_namespace("a")
    return new_folder


def kinds(findings: Findings) -> set[str]:
    return {finding.kind for finding in findings.found}


def flip(path: Path, at: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bit
    path.write_bytes(data)


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


# What readers must not believe


def test_a_name_does_not_end_when_its_log_was_overwritten_by_another(folder: Folder) -> None:
    for name, ids in (("a.one", (1, 2)), ("a.two", (3, 4))):
        create_with_rows(folder.catalog, name, rows(*ids))
    swap(folder.commit("a.one", 1), folder.commit("a.two", 1))
    with pytest.raises(FormatError, match="copied or moved"):
        folder.client().load_table("a.one")
    assert folder.client().list_tables("a") == [("a", "one"), ("a", "two")]
    assert "commit-foreign" in kinds(folder.check()) and folder.check().worst is Severity.DAMAGE


def test_namespaces_that_were_swapped_are_refused(folder: Folder) -> None:
    folder.catalog.create_namespace("b", {"who": "b"})
    path, other_path = sorted(folder.path.glob("n-*/_log/00000000000000000001.json"))
    swap(path, other_path)
    with pytest.raises(FormatError, match="copied or moved"):
        folder.client().load_namespace("b")


def test_a_warehouse_that_lost_the_first_commit_of_its_root_is_not_empty(folder: Folder) -> None:
    first = folder.path / "_log" / "00000000000000000001.json"
    first.unlink()
    (folder.path / "_log" / "latest.json").unlink()
    for ask in (lambda: folder.client().list_namespaces(()), lambda: folder.client().create_namespace("b")):
        with pytest.raises(FormatError, match="missing"):
            ask()
    assert not first.exists()
    assert "commit-missing" in kinds(folder.check())


def test_a_warehouse_that_lost_the_log_of_its_root_is_not_empty(folder: Folder) -> None:
    for path in (folder.path / "_log").iterdir():
        path.unlink()
    with pytest.raises(FormatError, match="root namespace is missing"):
        folder.client().list_namespaces(())


def test_another_tables_base_is_not_believed(folder: Folder) -> None:
    places = [folder.table("a.one"), folder.table("a.two")]
    for place in places:
        expire(folder.logs().table(folder.logs().location(str(place))).log, 4)
        for hint in place.glob("_log/latest.json"):
            hint.unlink()
    swap(*(place / "_log" / "bases" / "00000000000000000001.json" for place in places))
    for name in ("a.one", "a.two"):
        with pytest.raises(FormatError, match="another log's version"):
            folder.client().load_table(name)
    assert "base-disagrees" in kinds(folder.check())


def test_history_and_times_do_not_show_another_tables_commits(folder: Folder) -> None:
    folder.table("a.one", 9)
    time_us = folder.catalog.load_table("a.one", version=3).committed_at
    folder.table("a.two", 9)
    swap(folder.commit("a.one", 3), folder.commit("a.two", 3))
    with pytest.raises(FormatError, match="copied or moved"):
        list(folder.client().load_table("a.one").history())
    with pytest.raises(LakelogError):
        folder.client().load_table("a.one", timestamp=time_us)


# Data files


@pytest.mark.parametrize("name", ["uncompressed", "zstd"])
def test_every_flipped_bit_of_a_data_file_is_found_and_never_read(folder: Folder, name: str) -> None:
    codec = {"lakelog.write.parquet.compression-codec": name}
    table = folder.catalog.create_table("a.t", SCHEMA, properties=codec).append(rows(*range(40)))
    [path] = Path(table.location).glob("data/*")
    size, right = path.stat().st_size, table.scan().to_arrow()
    silent, unseen = [], []
    for at in range(0, size, 3):
        flip(path, at, 1 << at % 8)
        try:
            if folder.client().load_table("a.t").scan().to_arrow() != right:
                silent.append(at)
        except LakelogError:
            pass
        if folder.check("a", "t", deep=True).worst is not Severity.DAMAGE:
            unseen.append(at)
        flip(path, at, 1 << at % 8)
    assert silent == [] and unseen == []


def test_data_files_that_were_swapped_are_found_and_not_read(folder: Folder) -> None:
    place = folder.table("a.t", 2)
    path, other_path = sorted(place.glob("data/*"))
    assert path.stat().st_size == other_path.stat().st_size
    swap(path, other_path)
    with pytest.raises(FormatError, match="footer"):
        folder.client().load_table("a.t").scan().to_arrow()
    assert sorted(f.where for f in folder.check().of(Severity.DAMAGE)) == [str(path), str(other_path)]


def test_files_of_older_versions_are_checked_on_request(folder: Folder) -> None:
    place = folder.table("a.t", 1)
    folder.catalog.load_table("a.t").truncate()
    [old] = place.glob("data/*")
    old.unlink()
    assert folder.check(deep=True).found == []
    assert kinds(folder.check(all_versions=True)) == {"data-file-missing"}


def test_what_nothing_names_is_noted(folder: Folder) -> None:
    place = folder.table("a.t")
    (place / "data" / "left.parquet").write_bytes(b"x")
    (place / "_log" / "sidecars").mkdir()
    (place / "_log" / "sidecars" / f"{'a' * 26}-{'0' * 16}.bin").write_bytes(b"x")
    (place / "_log" / "notes.txt").write_bytes(b"x")
    (folder.path / "README").write_bytes(b"x")
    findings = folder.check()
    assert kinds(findings) == {"data-file-unused", "sidecar-unused", "foreign-object"}
    assert findings.worst is Severity.NOTE


def test_an_examination_of_the_store_harms_no_warehouse_and_is_noted(folder: Folder) -> None:
    path = folder.path / "_doctor" / f"20261123T042106Z-{'a' * 26}" / "races"
    path.mkdir(parents=True)
    for name in ("0000", "0001", f".lakelog-tmp-{'a' * 26}"):
        (path / name).write_bytes(b"x")
    folder.table("a.t")
    findings = folder.check()
    assert kinds(findings) == {"doctor-left", "temporary-file"} and findings.worst is Severity.NOTE
    (finding,) = (each_finding for each_finding in findings.found if each_finding.kind == "doctor-left")
    assert "2 objects" in finding.what and finding.where == str(path.parent)
    assert Catalog(str(folder.path)).vacuum(dry_run=False) and (path / "0000").exists()


def test_a_deep_check_believes_checksums_that_others_have_taken(folder: Folder) -> None:
    place = folder.table("a.t", 2)
    checksums = {
        str(path): Checksum(path.stat().st_size, crc32(path.read_bytes())) for path in place.glob("data/*")
    }
    text, other_text = sorted(checksums)
    assert folder.catalog.fsck(deep=True, checksums=checksums).found == []
    # A flipped byte that no footer covers is found only by a read of the whole file, which others did here.
    flip(Path(text), 20)
    assert kinds(folder.catalog.fsck(deep=True)) == {"data-file-altered"}
    assert folder.catalog.fsck(deep=True, checksums=checksums).found == []
    wrong = checksums | {
        other_text: Checksum(checksums[other_text].size_bytes, checksums[other_text].crc ^ 1)
    }
    [finding] = folder.catalog.fsck(deep=True, checksums=wrong).found
    assert (finding.kind, finding.where) == (
        "data-file-altered",
        other_text,
    ) and "checksum differs" in finding.what
    # A file that they could not read is read by the check itself.
    assert [
        each_finding.where
        for each_finding in folder.catalog.fsck(
            deep=True, checksums={other_text: checksums[other_text]}
        ).found
    ] == [text]


# Unfinished things


def both(folder: Folder) -> tuple[LogCache, list[LogPart[Any]]]:
    logs = folder.logs()
    tracked_tables = [
        logs.table(logs.location(folder.catalog.load_table(f"a.{n}").location)) for n in ("one", "two")
    ]
    return logs, [
        LogPart(
            tracked_log.location, tracked_log.log, tracked_log.current(), lambda view, passed: altered("both")
        )
        for tracked_log in tracked_tables
    ]


@pytest.fixture
def undecided(folder: Folder) -> Folder:
    """Two tables with a transaction whose coordinator died before it decided."""
    for name in ("a.one", "a.two"):
        folder.table(name)
    logs, parts = both(folder)
    commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    [decision] = sorted(folder.path.glob("**/_txn/*.json"), key=lambda path: path.stat().st_mtime_ns)[-1:]
    decision.unlink()
    return folder


def test_an_undecided_transaction_is_repairable_and_repair_aborts_it(undecided: Folder) -> None:
    findings = undecided.check()
    assert kinds(findings) == {"transaction-undecided"} and findings.worst is Severity.REPAIRABLE
    assert len(findings.found) == 2
    report_after = undecided.check(repair=True)
    assert report_after.found == [] and any("aborted" in line for line in report_after.repaired)
    [decision] = undecided.path.glob("**/_txn/*.json")
    assert decode_decision(decision.read_bytes(), "").outcome == "aborted"
    undecided.client().load_table("a.one").append(rows(77))
    assert undecided.check().found == []


def test_a_decision_shows_that_a_commit_was_lost(folder: Folder) -> None:
    for name in ("a.one", "a.two"):
        folder.table(name)
    logs, parts = both(folder)
    commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    lost_path = folder.commit("a.one", 5)
    lost_path.unlink()
    assert [f.where for f in folder.check().of(Severity.DAMAGE)] == [str(lost_path)]


def test_a_decision_that_says_something_else_than_the_next_commit_is_damage(folder: Folder) -> None:
    for name in ("a.one", "a.two"):
        folder.table(name)
    for _ in range(2):
        logs, parts = both(folder)
        commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    path, other_path = folder.path.glob("**/_txn/*.json")
    swap(path, other_path)
    assert "decision-misplaced" in kinds(folder.check())
    swap(path, other_path)
    path.unlink()
    assert kinds(folder.check()) in ({"decision-missing"}, {"transaction-undecided"})


def test_a_decision_has_the_logs_and_the_folder_that_its_transaction_began_with(folder: Folder) -> None:
    for name in ("a.one", "a.two"):
        folder.table(name)
    logs, parts = both(folder)
    commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    assert folder.check().found == []
    [path] = folder.path.glob("**/_txn/*.json")
    data = path.read_bytes()
    decision = decode_decision(data, str(path))
    more = msgspec.structs.replace(decision, positions=decision.positions | {"n-more": 1}, hash="")
    path.write_bytes(encode_object(more))
    assert [(f.kind, f.where) for f in folder.check().of(Severity.DAMAGE)] == [("decision-void", str(path))]
    path.write_bytes(data)
    elsewhere = folder.path / "_txn" / path.name
    elsewhere.parent.mkdir(exist_ok=True)
    elsewhere.write_bytes(data)
    assert ("decision-void", str(elsewhere)) in {(f.kind, f.where) for f in folder.check().found}


def test_a_name_that_outlived_its_table_is_removed_by_repair(folder: Folder) -> None:
    folder.table("a.t")
    logs = folder.logs()
    tracked_table = logs.table(logs.location(folder.catalog.load_table("a.t").location))
    tracked_table.log.commit(
        tracked_table.current(), lambda view, passed: Draft(events=encode([TableDropped()]), seals=True)
    )
    assert kinds(folder.check()) == {"drop-unfinished"}
    report_after = folder.check(repair=True)
    assert report_after.found == [] and len(report_after.repaired) == 1
    assert folder.client().list_tables("a") == []


def test_a_table_whose_name_was_lost_is_damage(folder: Folder) -> None:
    place = folder.table("a.t")
    [linked_path] = folder.path.glob("n-*/_log/00000000000000000002.json")
    linked_path.unlink()
    hint = linked_path.with_name("latest.json")
    kinds = [(f.kind, f.where) for f in folder.check().of(Severity.DAMAGE)]
    assert kinds == [("head-lost", str(hint)), ("name-lost", str(place))]
    hint.unlink()
    assert [(f.kind, f.where) for f in folder.check().of(Severity.DAMAGE)] == [("name-lost", str(place))]


def test_what_was_dropped_is_checked_as_long_as_it_can_be_restored(folder: Folder) -> None:
    place = folder.table("a.t")
    folder.catalog.drop_table("a.t")
    assert folder.check().found == []
    (place / "_log" / "00000000000000000002.json").write_bytes(b"")
    assert kinds(folder.check()) == {"commit-altered"}


def test_a_saved_cut_is_checked(folder: Folder) -> None:
    folder.table("a.t")
    folder.catalog.save_cut("monday")
    assert folder.check().found == []
    [saved_path] = folder.path.glob("_cut/*")
    folder.catalog.save_cut("monday", namespace="a")
    assert folder.check().found == []
    [place] = folder.path.glob("n-*")
    [own] = place.glob("_cut/*")
    good = own.read_bytes()
    flip(own, 10)
    at_its_place = check_warehouse(folder.logs(), location=str(place))
    assert kinds(folder.check()) == kinds(at_its_place) == {"cut-altered"}
    own.write_bytes(good)
    flip(saved_path, 10)
    assert kinds(folder.check()) == {"cut-altered"}
    saved_path.unlink()
    assert kinds(folder.check()) == {"cut-missing"}


@pytest.mark.parametrize(
    ("spoiled", "kind"),
    [
        ({"kind": "view", "text": 1}, "commit-disagrees"),
        ({"kind": "of the future"}, "unsupported"),
        ({"more": 1}, "unsupported"),
    ],
)
def test_a_definition_that_cannot_be_decoded_is_named_and_never_believed(
    folder: Folder, spoiled: dict[str, object], kind: str
) -> None:
    engine.create_view(folder.catalog, "a.v", VIEW)
    [place] = folder.path.glob("n-*")
    [event] = encode([EntryDefined(space="relation", name="w", id="w" * 26, definition=VIEW)])
    event["definition"] |= spoiled
    tracked_namespace = folder.logs().namespace(place.name)
    with mock.patch.object(
        namespace_projection, "namespace_events", return_value=[]
    ):  # a client that does not look
        tracked_namespace.commit(tracked_namespace.current(), lambda view, passed: Draft(events=(event,)))
    [finding] = folder.check().of(Severity.DAMAGE)
    assert (finding.kind, finding.where) == (kind, str(place / "_log/00000000000000000003.json"))
    assert "`$.definition" in finding.what
    (place / "_log/latest.json").unlink()  # such a client's hint is believed: it was made of that commit
    for ask in (
        lambda: folder.client().load_view("a.w"),
        lambda: folder.client().load_view("a.v"),
        lambda: folder.client().list_views("a"),
    ):
        with pytest.raises(LakelogError, match=r"`\$\.definition"):
            ask()


# Derived things


@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_bytes(b""), lambda path: flip(path, 60), lambda path: path.unlink()]
)
@pytest.mark.parametrize("which", ["latest.json", "snapshots/*", "manifests/*"])
def test_repair_writes_derived_objects_anew(
    folder: Folder, which: str, spoil: Callable[[Path], None]
) -> None:
    place = folder.table("a.t", 12)
    right = folder.client().load_table("a.t").scan().to_arrow()
    spoil(sorted(place.glob(f"_log/{which}"))[-1])
    report_before = folder.check()
    assert report_before.worst is Severity.REPAIRABLE, report_before.found
    report_after = folder.check(repair=True)
    assert report_after.of(Severity.REPAIRABLE) == [] and report_after.of(Severity.DAMAGE) == []
    assert folder.client().load_table("a.t").scan().to_arrow() == right


def test_a_snapshot_that_lies_is_found_by_a_replay(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    hint = place / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    root.state["metadata"]["properties"]["owner"] = "mallory"
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    assert kinds(folder.check()) == {"hint-differs"}
    assert kinds(folder.check(repair=True)) == {"lost-kept"}
    assert "owner" not in folder.client().load_table("a.t").properties


def test_a_snapshot_that_lies_about_batches_of_streams_is_found_by_a_replay(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    hint = place / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    root.state["streams"] = {"a job": 7}
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    findings = folder.check()
    assert kinds(findings) == {"hint-differs"}
    assert "other batches of streams than in a replay" in str(findings.found)
    assert kinds(folder.check(repair=True)) == {"lost-kept"}


def test_a_namespaces_hint_in_a_table_is_found(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    for n in range(6):
        folder.catalog.alter_namespace("a", set={"n": str(n)})
    swap(place / "_log" / "latest.json", place.parent / "_log" / "latest.json")
    findings = folder.check()
    assert kinds(findings) == {"hint-altered", "hint-disagrees"}
    assert folder.client().load_table("a.t").row_count == 8
    assert folder.client().load_namespace("a") == {"n": "5"}


def test_repair_touches_no_commit(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    broken_place = place / "_log" / "00000000000000000003.json"
    flip(broken_place, 40)
    data_before = {path: path.read_bytes() for path in folder.path.rglob("*.json")}
    findings = folder.check(repair=True)
    assert kinds(findings) == {"commit-altered"}
    assert {path: path.read_bytes() for path in folder.path.rglob("*.json")} == data_before


# The command


def test_the_command_reports_by_its_exit_code(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder.table("a.t", 8)
    assert run(["fsck", str(folder.path)]) == 0
    assert "nothing to report" in capsys.readouterr().out
    (place / "_log" / "latest.json").write_bytes(b"")
    assert run(["fsck", "--warehouse", str(folder.path)]) == 3
    assert run(["fsck", str(place), "--json"]) == 3
    printed = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert [finding["kind"] for finding in printed["findings"]] == ["hint-altered"]
    assert run(["fsck", str(folder.path), "a.t", "--repair"]) == 0
    assert "repaired: " in capsys.readouterr().out
    folder.commit("a.t", 5).unlink()
    assert run(["fsck", str(folder.path), "a.t"]) == 4
    assert run(["fsck", "a", "--warehouse", str(folder.path)]) == 4
    assert run(["fsck", str(folder.path), "a.nothing"]) == 1
    assert run(["fsck", str(folder.path / "nowhere")]) == 1
    assert run(["fsck", "--warehouse", str(folder.path / "nowhere")]) == 1


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    assert run(["fsck", "--warehouse", str(tmp_path)]) == 1
    assert "photo.jpg" in capsys.readouterr().err


def test_the_catalog_checks_itself(folder: Folder) -> None:
    folder.table("a.t")
    assert folder.catalog.fsck().found == []
    folder.commit("a.t", 2).unlink()
    assert kinds(folder.catalog.fsck("a.t", deep=True)) == {"commit-missing"}


def test_a_name_that_the_tables_own_log_does_not_have_is_named(folder: Folder) -> None:
    folder.table("t")
    head = folder.catalog.load_table("t").table_head
    moved_draft = Draft(events=encode([TableMoved(namespace="", name="other")]))
    head.tracked.log.commit(head.view, lambda view, passed: moved_draft)
    [finding] = folder.check().of(Severity.DAMAGE)
    assert (finding.kind, "the log says that its name is `other`" in finding.what) == (
        "link-disagrees",
        True,
    )
    with pytest.raises(FormatError, match="the log there has the name `other`"):
        folder.client().load_table("t")
