"""That repair leaves nothing less readable than it was, keeps what it removes, and changes nothing in doubt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.fsck.test_fsck import Folder, flip, kinds
from tests.integration.fsck.world import rows

from lakelog.catalog.maintenance.fsck import Severity
from lakelog.log.expiry import expire


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "warehouse")
    made.catalog.create_namespace("a")
    return made


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
    before = ids(folder)
    [manifest] = expired.glob("_log/manifests/00000000000000000004-*")
    flip(manifest, 100)
    assert ids(folder) == before
    findings = folder.check(repair=True)
    assert ids(folder) == before
    assert [(each.kind, each.where) for each in findings.of(Severity.DAMAGE)] == [
        ("manifest-altered", str(manifest))
    ]
    assert kinds(findings) == {"manifest-altered"}
