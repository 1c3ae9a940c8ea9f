"""That repair aborts nothing that has committed, and that the check takes nothing sound for damage."""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.integration.forging.forge import hashed
from tests.integration.fsck.test_fsck import Folder, both, flip, kinds
from tests.integration.fsck.world import OPTIONS, SCHEMA, rows

from lakelog.catalog import Catalog, col
from lakelog.catalog.core.state.events import TableDropped, encode
from lakelog.catalog.keeping.maintenance.fsck import Finding, Findings, Severity
from lakelog.log import Draft, LogOptions, MemoryStore, commit_together, snapshots
from lakelog.log.decisions import DecisionPlace, WarehouseDecisions
from lakelog.log.expiry import expire


@pytest.fixture
def together(tmp_path: Path) -> Folder:
    """Two tables with a transaction at their heads."""
    folder = Folder(tmp_path / "warehouse")
    folder.catalog.create_namespace("a")
    for name in ("a.one", "a.two"):
        folder.table(name)
    logs, parts = both(folder)
    commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    return folder


def _decisions_in(store: MemoryStore) -> list[str]:
    return [key for key in store.list_after("") if "_txn/" in key and key.endswith(".json")]


def decision_of(folder: Folder) -> Path:
    [decision] = sorted(folder.path.glob("**/_txn/*.json"), key=lambda path: path.stat().st_mtime_ns)[-1:]
    return decision


def worse_than_notes(findings: Findings) -> list[Finding]:
    return [finding for finding in findings.found if finding.severity is not Severity.NOTE]


def lose_the_decision_and_repair(folder: Folder) -> None:
    """Repair twice without the decision, which must do nothing, so that all is well once it is restored."""
    decision = decision_of(folder)
    data = decision.read_bytes()
    decision.unlink()
    for _ in range(2):
        findings = folder.check(repair=True)
        assert [
            (worse_than_note.kind, worse_than_note.where) for worse_than_note in worse_than_notes(findings)
        ] == [("decision-missing", str(decision))]
        assert not decision.exists()
    decision.write_bytes(data)
    assert worse_than_notes(folder.check()) == []


def test_a_snapshot_shows_that_a_transaction_committed() -> None:
    url = f"memory://{uuid.uuid4().hex}"
    catalog = Catalog(url, log_options=LogOptions(in_background=lambda name, work: work()))
    for name in ("t", "s"):
        table = catalog.create_table(name, SCHEMA)
        for n in range(18):
            table = table.append(rows(n))
    with catalog.transaction() as tx:
        for name in ("t", "s"):
            tx.load_table(name).append(rows(99))
    store = MemoryStore.named(url)
    decisions = {key: store.get(key) or b"" for key in _decisions_in(store)}
    store.delete(list(decisions))
    for _ in range(2):
        assert kinds(Catalog(url).fsck(repair=True)) == {"decision-missing"}
        assert _decisions_in(store) == []
    for key, data in decisions.items():
        store.put(key, data)
    assert Catalog(url).fsck().found == []
    assert [Catalog(url).load_table(name).row_count for name in ("t", "s")] == [19, 19]
    for key, data in decisions.items():
        plain = msgspec.json.decode(data)
        del plain["hash"]
        store.put(key, hashed(plain | {"time_us": 1}))
    findings = Catalog(url).fsck().found
    assert {finding.kind for finding in findings} == {"decision-disagrees"}
    assert all("_txn/" in finding.where for finding in findings)


def test_a_snapshot_of_one_log_shows_it_for_another(together: Folder) -> None:
    logs, _ = both(together)
    table = logs.table(logs.location(together.catalog.load_table("a.one").location))
    snapshots.write(table.log.replay, table.current())
    lose_the_decision_and_repair(together)


def test_the_next_commit_of_one_log_shows_it_for_another(together: Folder) -> None:
    together.catalog.load_table("a.one").append(rows(50))
    lose_the_decision_and_repair(together)


def test_a_tombstone_in_one_log_shows_it_for_another(together: Folder) -> None:
    table = together.catalog.load_table("a.one")
    for n in range(3):
        table = table.append(rows(50 + n))
    logs = together.logs()
    expire(logs.table(logs.location(table.location)).log, 7)
    lose_the_decision_and_repair(together)


def test_what_contradicts_an_abort_is_kept(together: Folder) -> None:
    """A transaction that had committed was aborted: only the snapshot shows it."""
    logs, _ = both(together)
    table = logs.table(logs.location(together.catalog.load_table("a.one").location))
    snapshots.write(table.log.replay, table.current())
    decision = decision_of(together)
    decision.unlink()
    key = str(decision.relative_to(together.path))
    DecisionPlace(logs.places.store(logs.warehouse), key, decision.stem).abort("c" * 26, OPTIONS)
    kept_data = {path: path.read_bytes() for path in together.path.glob("**/_log/snapshots/*")}
    for _ in range(2):
        assert "decision-disagrees" in kinds(together.check(repair=True))
    assert {path: path.read_bytes() for path in together.path.glob("**/_log/snapshots/*")} == kept_data


def test_one_lost_decision_makes_others_doubtful(together: Folder) -> None:
    for name in ("a.one", "a.two"):
        together.catalog.load_table(name).append(rows(50))
    earlier = decision_of(together)
    logs, parts = both(together)
    commit_together(parts, decisions=WarehouseDecisions(logs.places.store(logs.warehouse)))
    later = decision_of(together)
    assert later != earlier
    earlier.unlink()
    later.unlink()
    findings = together.check(repair=True)
    assert "decision-missing" in kinds(findings) and not later.exists()
    assert any("may be lost" in line for line in findings.repaired)


def test_repair_of_a_part_leaves_a_transaction_of_more_alone(together: Folder) -> None:
    decision = decision_of(together)
    decision.unlink()
    findings = together.check("a", "one", repair=True)
    assert kinds(findings) == {"transaction-undecided"} and not decision.exists()
    assert any("check the whole warehouse" in line for line in findings.repaired)
    assert together.check("a", repair=True).found == [] and decision.exists()


def test_a_log_that_lost_its_part_may_have_committed(together: Folder) -> None:
    decision = decision_of(together)
    decision.unlink()
    flip(together.commit("a.two", 3), 60)
    together.commit("a.two", 5).unlink()
    findings = together.check(repair=True)
    assert "transaction-undecided" in kinds(findings) and not decision.exists()


def test_dates_and_times_that_python_has_not_are_checked(tmp_path: Path) -> None:
    catalog = Folder(tmp_path / "warehouse").catalog
    days = pa.array([2932897, -800000, None], pa.int32()).cast(pa.date32())
    times = pa.array([2**62, -(2**62), 0], pa.int64()).cast(pa.timestamp("us"))
    data = pa.table({"day": days, "time": times})
    catalog.create_table("t", data.schema).append(pa.concat_tables([data] * 2))
    findings = catalog.fsck(deep=True, all_versions=True)
    assert findings.found == [] and findings.checked["bytes read"]


def test_a_file_that_its_own_commit_removed_is_not_missed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "warehouse")
    table = folder.catalog.create_table("t", SCHEMA).append(rows(1))
    paths_before = set(Path(table.location).glob("data/*"))
    with folder.catalog.transaction() as tx:
        tx.load_table("t").append(rows(2))
        tx.load_table("t").delete(col("id") == 2)
    [within] = set(Path(table.location).glob("data/*")) - paths_before
    within.unlink()
    assert folder.check(all_versions=True).found == []
    [kept_path] = paths_before
    kept_path.unlink()
    assert kinds(folder.check(all_versions=True)) == {"data-file-missing"}


def test_a_place_that_was_used_again_is_not_linked_twice(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "warehouse")
    place = str(tmp_path / "place")
    folder.catalog.create_table("first", SCHEMA, location=place)
    tracked_table = folder.logs().table(place)
    tracked_table.log.commit(
        tracked_table.current(), lambda view, passed: Draft(events=encode([TableDropped()]), seals=True)
    )
    folder.client().create_table("second", SCHEMA, location=place).append(rows(1))
    findings = folder.check()
    assert kinds(findings) == {"name-outlived"} and findings.worst is Severity.REPAIRABLE
    assert folder.check(repair=True).found == []
    assert folder.client().load_table("second").row_count == 1
