"""That repair leaves nothing less readable than it was, keeps what it removes, and changes nothing in doubt."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.integration.fsck.test_fsck import Folder, flip, kinds, swap
from tests.integration.fsck.world import SCHEMA, rows

from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.keeping.maintenance.fsck import Findings, Severity
from lakelog.catalog.keeping.maintenance.fsck.judges import TableJudge
from lakelog.log import FormatError, LocalStore
from lakelog.log.checks.lost import LostList
from lakelog.log.checks.repair import repair
from lakelog.log.checks.verify import verify
from lakelog.log.expiry import expire
from lakelog.log.format import decode_root
from lakelog.log.format import encode as encode_object


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    new_folder = Folder(tmp_path / "warehouse")
    new_folder.catalog.create_namespace("a")
    return new_folder


@pytest.fixture
def expired(folder: Folder) -> Path:
    """A table with a base, and after it versions of its own: its hint names manifests that the base has not."""
    place = folder.table("a.t", 4)
    logs = folder.logs()
    expire(logs.table(logs.location(str(place))).log, 4)
    table = folder.client().load_table("a.t")
    for n in range(10, 20):
        table = table.append(rows(n))
    return place


def ids(folder: Folder, version: int | None = None) -> list[int]:
    table = folder.client().load_table("a.t", version=version)
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_broken_base_does_not_cost_the_snapshots_that_can_be_read(folder: Folder, expired: Path) -> None:
    ids_before = ids(folder)
    [manifest] = expired.glob("_log/manifests/00000000000000000004-*")
    flip(manifest, 100)
    assert ids(folder) == ids_before
    findings = folder.check(repair=True)
    assert ids(folder) == ids_before
    assert [(finding.kind, finding.where) for finding in findings.of(Severity.DAMAGE)] == [
        ("manifest-altered", str(manifest))
    ]
    assert kinds(findings) == {"manifest-altered"}


def spoil(expired: Path) -> Path:
    """Damage the manifest of the base."""
    [manifest] = expired.glob("_log/manifests/00000000000000000004-*")
    flip(manifest, 100)
    return manifest


def test_a_snapshot_makes_up_for_a_lost_hint_where_the_base_is_broken(folder: Folder, expired: Path) -> None:
    ids_before = ids(folder)
    spoil(expired)
    (expired / "_log" / "latest.json").unlink()
    with pytest.raises(FormatError):
        ids(folder)
    assert "hint-missing" in kinds(folder.check())
    folder.check(repair=True)
    assert ids(folder) == ids_before
    table = folder.client().load_table("a.t").append(rows(99))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*ids_before, 99]


def test_the_newest_of_what_can_be_read_is_taken(folder: Folder, expired: Path) -> None:
    """The newest snapshot needs a manifest that is damaged, and so does the base; the one before does not."""
    ids_before, manifest = ids(folder), spoil(expired)
    newest = max(expired.glob("_log/manifests/*"))
    assert newest != manifest
    flip(newest, 100)
    with pytest.raises(FormatError):
        ids(folder)
    hint = (expired / "_log" / "latest.json").read_bytes()
    findings = folder.check(repair=True)
    assert any("wrote snapshot and hint" in line for line in findings.repaired), findings.repaired
    assert ids(folder) == ids_before
    [kept_path] = expired.glob("_log/_lost/*/latest.json")
    assert kept_path.read_bytes() == hint


def test_nothing_changes_where_nothing_can_be_read(folder: Folder, expired: Path) -> None:
    for manifest in expired.glob("_log/manifests/*"):
        flip(manifest, 100)
    objects_before = objects(folder)
    findings = folder.check(repair=True)
    assert objects(folder) == objects_before
    assert any("skipped" in line for line in findings.repaired) and findings.worst is Severity.DAMAGE


def test_nothing_changes_where_a_base_and_a_snapshot_disagree(folder: Folder, expired: Path) -> None:
    """What the base was made of has expired, and so nothing says which of both is right."""
    hint = expired / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    root.state["metadata"]["properties"]["owner"] = "mallory"
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    # A second reason to repair.
    max(expired.glob("_log/snapshots/*")).write_bytes(b"")
    objects_before, read = objects(folder), folder.client().load_table("a.t").properties
    findings = folder.check(repair=True)
    assert [finding.kind for finding in findings.of(Severity.DAMAGE)] == ["hint-differs"]
    assert objects(folder) == objects_before and folder.client().load_table("a.t").properties == read
    assert any("left as it is" in line for line in findings.repaired), findings.repaired


def objects(folder: Folder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


# What was removed


def test_what_a_repair_removes_is_kept_with_a_list_until_a_purge(folder: Folder) -> None:
    place = folder.table("a.t", 12)
    hint = place / "_log" / "latest.json"
    snapshot = min(place.glob("_log/snapshots/*"))
    for path in (hint, snapshot):
        flip(path, 60)
    broken_data = {"latest.json": hint.read_bytes(), f"snapshots/{snapshot.name}": snapshot.read_bytes()}
    findings = folder.check(repair=True)
    assert kinds(findings) == {"lost-kept", "manifest-unused"} and not snapshot.exists()
    [kept_path] = (place / "_log" / "_lost").iterdir()
    [note] = [finding for finding in findings.found if finding.kind == "lost-kept"]
    assert note.where == str(kept_path) and "latest.json" in note.what
    listed = msgspec.json.decode((kept_path / "list.json").read_bytes(), type=LostList)
    assert {object_.name: (kept_path / object_.name).read_bytes() for object_ in listed.moved} == broken_data
    assert all(object_.why.startswith(("hint-altered", "snapshot-altered")) for object_ in listed.moved)
    assert listed.log_id == place.name.removeprefix("t-") and "latest.json" in listed.written

    # Vacuum leaves it, a second repair has nothing to do, and the purge of the dropped table says that it takes it.
    no_time = dt.timedelta(0)
    folder.client().vacuum(older_than=no_time, dropped_older_than=no_time, dry_run=False)
    assert folder.check(repair=True).repaired == [] and kept_path.exists()
    folder.client().drop_table("a.t")
    report = folder.client().vacuum(older_than=no_time, dropped_older_than=no_time, dry_run=False, keys=True)
    assert [key for each in report for key in each.keys if key.endswith(f"{kept_path.name}/list.json")]
    assert not (kept_path / "list.json").exists() and folder.check().worst in (None, Severity.NOTE)


def test_a_repair_that_is_stopped_anywhere_has_cost_nothing(folder: Folder, expired: Path) -> None:
    ids_before = ids(folder)
    for path in (expired / "_log" / "latest.json", max(expired.glob("_log/snapshots/*"))):
        flip(path, 60)
    broken_objects, dying = objects(folder), Dying()
    with (
        mock.patch.object(LocalStore, "put", dying.write_of(LocalStore.put)),
        mock.patch.object(LocalStore, "delete", dying.write_of(LocalStore.delete)),
    ):
        for allowed_number in range(100):
            dying.left = allowed_number
            with suppress(KeyboardInterrupt):
                folder.check(repair=True)
            assert ids(folder) == ids_before, f"stopped at write {allowed_number + 1}"
            assert set(broken_objects.values()) <= set(objects(folder).values())
            if dying.left >= 0:
                break
            dying.left = 100
            assert folder.check(repair=True).worst in (None, Severity.NOTE)
            assert ids(folder) == ids_before
            for path in objects(folder).keys() - broken_objects.keys():
                path.unlink()
            for path, data in broken_objects.items():
                path.write_bytes(data)
    assert allowed_number > 4


class Dying:
    """A process that dies ahead of a write, once it has made as many as are `left`."""

    def __init__(self) -> None:
        self.left = 100

    def write_of(self, write: Callable[..., None]) -> Callable[..., None]:
        def dying(*arguments: Any) -> None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            write(*arguments)

        return dying


def test_a_hint_that_was_written_meanwhile_is_not_replaced(folder: Folder) -> None:
    place = folder.table("a.t", 12)
    hint = place / "_log" / "latest.json"
    flip(hint, 60)
    logs = folder.logs()
    log = logs.table(logs.location(str(place))).log
    judge = TableJudge(log.read_blobs)
    verified_log = verify(log, judge, Findings())
    folder.client().load_table("a.t").append(rows(50)).append(rows(51)).append(rows(52))
    newer = hint.read_bytes()
    assert decode_root(newer, "", KNOWN).version > verified_log.head
    assert "wrote snapshot and hint" in repair(log, verified_log, judge)
    assert hint.read_bytes() == newer


# Names


def test_a_name_stays_where_another_log_was_copied_to_its_place(folder: Folder, tmp_path: Path) -> None:
    """The other log did not follow the table's own, as it would if that had been dropped."""
    for name in ("one", "two"):
        location = str(tmp_path / "places" / name)
        folder.catalog.create_table(f"a.{name}", SCHEMA, location=location)
    first, second = (tmp_path / "places" / name / "_log" / f"{1:020d}.json" for name in ("one", "two"))
    swap(first, second)
    findings = folder.check(repair=True)
    assert [finding.kind for finding in findings.of(Severity.DAMAGE)] == ["log-foreign", "log-foreign"]
    swap(first, second)
    assert folder.check().found == []
    assert folder.client().load_table("a.one").version == 1


def test_a_name_stays_where_the_restore_of_its_table_is_lost(folder: Folder) -> None:
    place = folder.table("a.t", 6)
    folder.catalog.drop_table("a.t")
    folder.catalog.undrop_table("a.t")
    table = folder.catalog.load_table("a.t")
    restored_version = table.version
    for n in range(4):
        table = table.append(rows(20 + n))
    lost_places = [
        place / "_log" / f"{version:020d}.json" for version in range(restored_version, table.version + 1)
    ]
    data = [path.read_bytes() for path in lost_places]
    for path in lost_places:
        path.unlink()
    findings = folder.check(repair=True)
    assert {"head-lost", "drop-unfinished"} <= kinds(findings)
    assert any("left its name" in line for line in findings.repaired), findings.repaired
    for path, item in zip(lost_places, data, strict=True):
        path.write_bytes(item)
    assert folder.client().load_table("a.t").row_count == 10
