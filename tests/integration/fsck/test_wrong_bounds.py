"""Bounds of manifests that lie: plans would miss files, so the check names them, and repair writes them anew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.integration.fsck.test_fsck import Folder, kinds
from tests.integration.fsck.world import rows

from lakelog.catalog import col
from lakelog.catalog.core.files import manifest_bounds, manifests
from lakelog.catalog.core.files.manifest_bounds import BoundsAt, decode_bounds, encode_bounds
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log.expiry import expire
from lakelog.log.format import LogBase, SnapshotRoot, decode_base, decode_root
from lakelog.log.format import encode as encode_object


@pytest.fixture(autouse=True, params=["manifests", "packs"])
def manifests_of_few_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", 1)
    monkeypatch.setattr(manifests, "LEAF_ENTRIES", 2)
    monkeypatch.setattr(manifests, "PACKED_FROM", 1 if request.param == "packs" else 10**9)
    monkeypatch.setattr(manifests, "PACK_LEAF_ENTRIES", 2)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    new_folder = Folder(tmp_path / "warehouse")
    new_folder.catalog.create_namespace("a")
    return new_folder


def lie(root: SnapshotRoot) -> None:
    """Have all bounds say that no id is above 0."""
    bounds = list(decode_bounds(root.state["hints"]["bounds"]).values())
    table = bounds[0].table
    at = table.column_names.index("hi1")
    table = table.set_column(at, "hi1", pa.array([0] * table.num_rows, pa.int64()))
    root.state["hints"]["bounds"] = encode_bounds([BoundsAt(table, each.row) for each in bounds])


def planned_number(folder: Folder) -> int:
    return int(folder.client().load_table("a.t").plan(col("id") == 5).num_rows)


def test_a_snapshot_with_bounds_that_leave_out_a_file_is_named_and_written_anew(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    assert kinds(folder.check()) == set() and planned_number(folder) == 1
    hint = place / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    lie(root)
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    findings = folder.check()
    assert kinds(findings) == {"hint-differs"}
    assert "leave out files that are in it" in str(findings.found)
    assert kinds(folder.check(repair=True)) == {"lost-kept"}
    assert planned_number(folder) == 1


def test_a_base_with_bounds_that_leave_out_a_file_is_named(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    logs = folder.logs()
    expire(logs.table(logs.location(str(place))).log, 8)
    folder.client().load_table("a.t").append(rows(20))
    assert folder.check().of(Severity.DAMAGE) == []
    [path] = place.glob("_log/bases/*.json")
    base: LogBase = decode_base(path.read_bytes(), "", KNOWN, number=1)
    lie(base.root)
    path.write_bytes(encode_object(msgspec.structs.replace(base, hash="")))
    findings = folder.check().of(Severity.DAMAGE)
    assert "base-disagrees" in {finding.kind for finding in findings}
    assert "contradicts itself: the bounds of the manifest" in str(findings)


@pytest.mark.parametrize("member", ["bounds", "packs"])
def test_bounds_or_packs_that_are_none_cost_time_only(folder: Folder, member: str) -> None:
    place = folder.table("a.t", 8)
    hint = place / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    (root.state["hints"] if member == "bounds" else root.state)[member] = "no bounds"
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    assert planned_number(folder) == 1
    assert kinds(folder.check()) == {"hint-differs"}


def test_a_hint_that_is_not_known_is_ignored_and_not_written_again(folder: Folder) -> None:
    hint = folder.table("a.t", 8) / "_log" / "latest.json"
    root = decode_root(hint.read_bytes(), "", KNOWN)
    root.state["hints"]["keys"] = {"index": [1, {"of": None}]}
    hint.write_bytes(encode_object(msgspec.structs.replace(root, hash="")))
    assert planned_number(folder) == 1 and kinds(folder.check()) == set()
    tracked_log = folder.client().load_table("a.t").table_head.tracked
    tracked_log.log.snapshot(tracked_log.current())
    assert set(decode_root(hint.read_bytes(), "", KNOWN).state["hints"]) == {"bounds"}


@pytest.mark.parametrize("manifests_of_few_files", ["packs"], indirect=True)
def test_a_pack_that_was_altered_is_named_and_written_anew(folder: Folder) -> None:
    place = folder.table("a.t", 8)
    for pack in place.glob("_log/manifests/*.pack"):
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1
        pack.write_bytes(data)
    assert "manifest-altered" in kinds(folder.check())
    folder.check(repair=True)
    assert planned_number(folder) == 1 and "manifest-altered" not in kinds(folder.check())
