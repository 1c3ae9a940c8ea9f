"""Golden files: what earlier versions wrote is read for ever, and today's bytes are still the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.format.golden_log import KEYS, LEFT, PROPOSED, PURGED, RIGHT, ROOT, STORED, Lines, build

from lakelog.log import (
    Draft,
    LocalStore,
    Log,
    LogOptions,
    LogSealed,
    MemoryStore,
    NotFound,
    WriteRef,
    each_change,
)
from lakelog.log.format import Tombstone, decode_entry


def golden() -> MemoryStore:
    store = MemoryStore()
    for path in STORED.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(STORED).as_posix(), path.read_bytes())
    return store


def test_todays_code_writes_the_golden_bytes() -> None:
    expected, built_store = golden(), build()
    assert list(built_store.list_after("")) == list(expected.list_after(""))
    for key in expected.list_after(""):
        assert built_store.get(key) == expected.get(key), key


def test_every_kind_of_object_is_among_the_golden_files() -> None:
    kinds = set()
    for path in STORED.rglob("*.json"):
        kinds.add((path.parent.name, json.loads(path.read_bytes())["kind"]))
    assert kinds == {
        ("_log", "commit"),
        ("_log", "tombstone"),
        ("_log", "snapshot"),
        ("_txn", "decision"),
        ("bases", "base"),
        ("snapshots", "snapshot"),
        (f"{0:020d}", "proposal"),
    }
    assert list(STORED.rglob("sidecars/*")) and list(STORED.rglob("manifests/*"))


@pytest.mark.parametrize("without", ["nothing", "the hint", "the hint and the snapshots"])
def test_the_golden_log_is_read_cold_with_and_without_its_derived_objects(without: str) -> None:
    store = golden()
    if without != "nothing":
        store.delete([KEYS.latest])
    if without.endswith("snapshots"):
        store.delete(list(store.list_after(KEYS.snapshots)))
    log = Log(store, ROOT, Lines())
    view = log.load()
    assert (view.version, view.log_id, view.state) == (9, "m" * 26, ("anew",))
    sealed_view = log.view_at(8)
    assert (sealed_view.sealed, sealed_view.fence, sealed_view.base, sealed_view.state[-1]) == (
        True,
        4,
        1,
        "last",
    )
    with pytest.raises(LogSealed):
        log.commit(sealed_view, lambda view, passed: Draft())
    with pytest.raises(NotFound, match="versions from 3 to 9"):
        log.view_at(1)
    assert log.read_blobs(["00000000000000000006-lines.txt"])[0].endswith(
        b"third\nby another thread\nby a third one\nkept sidecar"
    )
    assert [commit.version for commit in log.commits()] == [4, 5, 6, 7, 8, 9]
    assert [each_commit.write for commit in log.commits(5, 5) for each_commit in each_change(commit)] == [
        None, WriteRef(id="w-shared", version=4)
    ]  # fmt: skip
    [shared_commit] = log.commits(5, 5)
    assert [log.find(change.commit_id, 1, 9) for change in shared_commit.changes] == [5, 5]


def together(store: MemoryStore, name: str) -> Log[tuple[str, ...]]:
    return Log(store, name, Lines(), options=LogOptions(sleep_s=lambda seconds: None))


@pytest.mark.parametrize("without", ["nothing", "the hint and the snapshots"])
def test_the_golden_transactions_are_read_as_they_were_decided(without: str) -> None:
    store = golden()
    left_log, right, purged_log = (together(store, name) for name in (LEFT, RIGHT, PURGED))
    if without != "nothing":
        for log in (left_log, right, purged_log):
            store.delete([log.keys.latest, *store.list_after(log.keys.snapshots)])
    head = left_log.load()
    assert (head.version, head.sealed, left_log.view_at(5).sealed) == (6, False, True)
    assert head.settles is not None and head.settles.outcome == "committed"
    if without != "nothing":
        assert head.state == ("first", "kept sidecar", "settles", "restored")
    assert left_log.view_at(4).state == left_log.view_at(3).state == ("first", "kept sidecar", "settles")
    assert [commit.version for commit in left_log.commits()] == [1, 2, 3, 5, 6]
    assert right.load().version == 6 and right.load().time_us == head.time_us
    assert purged_log.load().purged
    # The next writer settles what was left undecided at both heads.
    assert left_log.commit(head, lambda view, passed: Draft(events=({"line": "on"},))).version == 8
    assert right.refresh_settled(right.load()).version == 7


def test_a_golden_proposal_is_applied_and_refused_in_the_version_after_it() -> None:
    log = together(golden(), PROPOSED)
    head = log.load()
    assert head.state == ("first", "may have proposals", "proposed")
    [version] = log.commits(3, 3)
    assert [(change.seen, change.refused is None) for change in version.changes] == [(2, True), (2, False)]
    assert len(list(each_change(version))) == 1


def test_tombstones_of_golden_intents_have_their_outcomes() -> None:
    outcomes = []
    for version in range(1, 6):
        entry = decode_entry((STORED / RIGHT / "_log" / f"{version:020d}.json").read_bytes(), "golden")
        assert isinstance(entry, Tombstone)
        outcomes.append(entry.outcome)
    assert outcomes == ["", "committed", "aborted", "", "committed"]


def test_the_golden_log_is_read_from_a_folder() -> None:
    assert Log(LocalStore(str(STORED)), ROOT, Lines()).load().version == 9


def test_every_hash_can_be_checked_with_nothing_but_json_and_sha256() -> None:
    """As README.md says: cut off the last member, close the object, hash it. The chain goes through tombstones."""
    for path in STORED.rglob("*.json"):
        data = path.read_bytes()
        assert data[-75:-66] == b',"hash":"' and data[-2:] == b'"}'
        assert hashlib.sha256(data[:-75] + b"}").hexdigest() == json.loads(data)["hash"], path.name
    previous = ""
    for version in range(1, 10):
        stored = json.loads(Path(STORED / KEYS.commit(version)).read_bytes())
        assert stored["version"] == version and stored["prev"] == previous
        previous = stored["commit_hash"] if stored["kind"] == "tombstone" else stored["hash"]
    expired_commit = decode_entry((STORED / KEYS.commit(2)).read_bytes(), "golden")
    assert isinstance(expired_commit, Tombstone) and len(expired_commit.applied) == 2
