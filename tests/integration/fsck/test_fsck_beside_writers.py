"""That a check reports no damage beside live writers: each kind of work is done between any two of its requests."""

from __future__ import annotations

import io
import random
import threading
from collections import Counter
from pathlib import Path
from typing import BinaryIO, cast
from unittest import mock

import pytest
from tests.integration.fsck.busy import NOW, Busy, actions, worse_than_notes
from tests.integration.fsck.test_fsck import Folder
from tests.integration.fsck.world import SCHEMA, rows

from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log import LakelogError, LocalStore, StorageError

EVERY = 37
"""The short form lets each kind of work happen ahead of one request in so many."""
QUIET_REQUESTS = 111
"""What a check of the warehouse needs while it is at rest, each object of a round counted."""
WITH_PURGED_REQUESTS = 147
"""The same with five tables that were dropped and purged, of which keys and tombstones are left."""
CHECKS = 8
WRITERS = 3


@pytest.fixture(scope="module")
def busy() -> Busy:
    return Busy()


def test_the_warehouse_is_clean(busy: Busy) -> None:
    assert worse_than_notes(busy.check()) == []


def reported(busy: Busy, every: int) -> tuple[int, list[str]]:
    """Do each kind of work ahead of some of the requests. Returns how many checks that were, and what they reported."""
    tried_number, wrong = 0, []
    for n, (name, action) in enumerate(actions(busy.elsewhere).items()):
        at, inside = 1 + n % every, True
        while inside:
            findings, inside = busy.check_meanwhile(action, at)
            wrong += [
                f"{name} ahead of request {at}: {worse_than_note}"
                for worse_than_note in worse_than_notes(findings)
            ]
            busy.restore()
            tried_number, at = tried_number + 1, at + every
    return tried_number, wrong


def test_no_work_between_two_requests_is_reported_as_damage(busy: Busy) -> None:
    tried_number, wrong = reported(busy, EVERY)
    assert tried_number > 50 and wrong == [], "\n".join(wrong)


@pytest.mark.slow
def test_no_work_between_any_two_requests_is_reported_as_damage(busy: Busy) -> None:
    tried_number, wrong = reported(busy, 1)
    assert tried_number > 1000 and wrong == [], "\n".join(wrong)


def test_a_check_in_a_loop_beside_writers_in_a_loop_reports_no_damage() -> None:
    """Unlike above, work is seen half done here: what is undecided is repairable, and no damage."""
    busy, stop, counts, wrong = Busy(), threading.Event(), Counter[str](), list[str]()

    def write(seed: int) -> None:
        choose, work = random.Random(seed), sorted(actions(busy.elsewhere).items())
        while not stop.is_set():
            name, action = choose.choice(work)
            try:
                action(busy.client())
            except LakelogError:
                counts[f"{name}, refused"] += 1  # another writer has taken or dropped what it needs
            else:
                counts[name] += 1

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(WRITERS)]
    for thread in writers:
        thread.start()
    try:
        for _ in range(CHECKS):
            findings = busy.check()
            wrong += [
                f"{finding.kind}: {finding.where}: {finding.what}" for finding in findings.of(Severity.DAMAGE)
            ]
    finally:
        stop.set()
        for thread in writers:
            thread.join()
    assert not wrong, "\n".join(wrong)
    assert sum(counts.values()) > CHECKS and any("refused" not in name for name in counts), counts
    assert busy.check().of(Severity.DAMAGE) == []


class Vanishing(io.RawIOBase):
    """A file on S3 that is deleted after it was opened: no more of it can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.path.unlink()
        raise StorageError("no answer", location=str(self.path))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    new_folder = Folder(tmp_path / "warehouse")
    new_folder.catalog.create_namespace("a")
    return new_folder


def test_a_file_that_is_deleted_while_it_is_read_does_not_end_the_check(folder: Folder) -> None:
    place = folder.table("a.t", 3)
    [first_path, *_] = sorted(place.glob("data/*"))
    opened_input = LocalStore.open_input

    def open_input(store: LocalStore, key: str) -> BinaryIO:
        path = folder.path / key
        return (
            cast(BinaryIO, Vanishing(path))
            if path == first_path and path.exists()
            else opened_input(store, key)
        )

    with mock.patch.object(LocalStore, "open_input", open_input):
        findings = folder.check()
    assert [(finding.kind, finding.where) for finding in findings.found] == [
        ("data-file-missing", str(first_path))
    ]


def test_a_check_of_a_quiet_warehouse_costs_what_it_did(busy: Busy) -> None:
    requests = 0

    def count() -> None:
        nonlocal requests
        requests += 1

    assert busy.check(count).found == []
    assert requests == QUIET_REQUESTS
    catalog = busy.client()
    catalog.drop_cut("monday")
    for n in range(5):
        catalog.create_table(f"a.p{n}", SCHEMA).append(rows(1))
        catalog.drop_table(f"a.p{n}")
    catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    requests = 0
    assert worse_than_notes(busy.check(count)) == []
    assert requests == WITH_PURGED_REQUESTS
    busy.restore()
