"""The doctor examines folders, and leaves nothing behind, even if it is interrupted or killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.integration.doctor.test_doctor import by_name, not_good, report_of

from lakelog.cli.doctor import cleaning_up_when_ended
from lakelog.log import LocalStore, MemoryStore, PermissionDenied, open_store
from lakelog.log.doctor import CheckVerdict, examine
from lakelog.log.doctor.file_system import file_system
from lakelog.log.doctor.processes import processes
from lakelog.log.doctor.report import CannotTry

TIME = "%Y%m%dT%H%M%SZ"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    (tmp_path / "warehouse").mkdir()
    return tmp_path / "warehouse"


def folder_store(path: Path) -> LocalStore:
    return LocalStore(str(path), fsync=False)


def no_processes(path: Path) -> tuple[str, ...]:
    """A command for racers that cannot be started: what is said of them is for other tests."""
    return (str(path / "no-such-program"),)


def test_a_folder_is_proven_by_processes_too_and_left_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "warehouse"
    options = {"fsync": "off", "endpoint": "http://127.0.0.1:9", "region": "nowhere"}
    report = examine(lambda: open_store(str(folder), options), races_max=3)
    name = by_name(report)
    assert set(not_good(name)) <= {"file system"}  # where tests run on one that hosts share, or in memory
    assert (
        "4 processes for each of 3 keys: one created it, 93 were refused"
        in name["put-if-absent: processes"].what
    )
    assert list(tmp_path.iterdir()) == []
    assert report.facts["store"] == str(folder) and "median get" in report.facts
    assert "endpoint" not in report.facts and "region" not in report.facts


def test_a_race_of_processes_that_two_win_is_bad(tmp_path: Path, warehouse: Path) -> None:
    script = tmp_path / "racer.py"
    script.write_text(
        "import pathlib, sys, uuid\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from tests.patience import wait_until\n"
        "from lakelog.log import LocalStore\n"
        "from lakelog.log.doctor import racer\n"
        "# Two that have looked write, however the host divides its time among them.\n"
        "class Racy(LocalStore):\n"
        "    def put_if_absent(self, key, data):\n"
        "        if self.get(key) is not None:\n"
        "            return False\n"
        f"        looked = pathlib.Path({str(tmp_path)!r}, 'looked', key)\n"
        "        looked.mkdir(parents=True, exist_ok=True)\n"
        "        (looked / uuid.uuid4().hex).touch()\n"
        "        wait_until(lambda: len(list(looked.iterdir())) > 1)\n"
        "        self.put(key, data)\n"
        "        return True\n"
        "racer.main(sys.argv[1:], lambda root: Racy(root, fsync=False))\n"
    )
    report = report_of(folder_store(warehouse), racer=(sys.executable, str(script)))
    assert report["put-if-absent: threads"].verdict is CheckVerdict.GOOD
    assert report["put-if-absent: processes"].verdict is CheckVerdict.BAD
    assert os.listdir(warehouse) == []


def test_racers_that_this_host_cannot_start_say_nothing_of_the_store(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder_store(warehouse)
    check = report_of(store, racer=no_processes(warehouse))["put-if-absent: processes"]
    assert check.verdict is CheckVerdict.UNKNOWN and "could not start" in check.what and check.todo
    # They are a group of their own: Ctrl-C in a terminal is for the doctor alone, which ends them.
    script = "import os; raise SystemExit(7 if os.getpgrp() == os.getpid() else 5)"
    with pytest.raises(CannotTry, match="ended with 7"):
        processes(store, ["k"], (sys.executable, "-c", script))

    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    check = report_of(store, racer=no_processes(warehouse))["put-if-absent: threads"]
    assert check.verdict is CheckVerdict.UNKNOWN and "32 threads" in check.what
    assert os.listdir(warehouse) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_examination_that_is_ended_leaves_nothing_behind(warehouse: Path, number: signal.Signals) -> None:
    # Of 32 threads one sends it, once: a second signal would end the cleaning up too.
    store, turn, race_began = folder_store(warehouse), threading.Lock(), threading.Event()

    class Slow(LocalStore):
        """Whose writes land a while after the signal."""

        def put_if_absent(self, key: str, data: bytes) -> bool:
            if "races" in key and turn.acquire(blocking=False):
                race_began.set()
                os.kill(os.getpid(), number)
            time.sleep(0.05)
            return super().put_if_absent(key, data)

    def ended_by_it() -> pytest.ExceptionInfo[BaseException]:
        with pytest.raises((KeyboardInterrupt, SystemExit)) as ended_error, cleaning_up_when_ended():
            examine(lambda: Slow(store.url, fsync=False), races_max=1, racer=no_processes(warehouse))
        return ended_error

    # A run that is not to end with its terminal, as under nohup, is left to ignore the signal.
    usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        error = ended_by_it()
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)
    assert race_began.is_set() and os.listdir(warehouse) == []
    if number is not signal.SIGINT:
        assert error.value.args == (128 + number,)


def test_what_killed_examinations_left_is_removed_a_day_later(warehouse: Path) -> None:
    old, young, foreign = (
        warehouse / "_doctor" / name
        for name in (
            f"{datetime.now(UTC) - timedelta(days=2):{TIME}}-{'a' * 26}",
            f"{datetime.now(UTC) - timedelta(hours=2):{TIME}}-{'b' * 26}",
            "notes",
        )
    )
    for folder in (old, young, foreign):
        (folder / "races").mkdir(parents=True)
        (folder / "races" / "0000").write_bytes(b"x")
    (old / "races" / ".lakelog-tmp-x").write_bytes(b"x")
    report = report_of(folder_store(warehouse), racer=no_processes(warehouse))
    other_checks = report["left behind by others"]
    assert other_checks.verdict is CheckVerdict.NOTE and other_checks.todo
    assert "1 earlier examinations had left was removed; 2 other examinations run now" in other_checks.what
    assert sorted(os.listdir(warehouse / "_doctor")) == sorted([young.name, foreign.name])
    assert (foreign / "races" / "0000").exists() and report["left behind"].verdict is CheckVerdict.GOOD


def test_two_examinations_at_once_are_good_and_leave_nothing_behind(warehouse: Path) -> None:
    reports = []

    def examined() -> None:
        reports.append(report_of(folder_store(warehouse), racer=no_processes(warehouse)))

    doctors = [threading.Thread(target=examined) for _ in range(2)]
    for doctor in doctors:
        doctor.start()
    for doctor in doctors:
        doctor.join()
    for report in reports:
        bad = {name for name, verdict in not_good(report).items() if verdict not in ("note", "unknown")}
        assert bad == set() and report["left behind"].verdict is CheckVerdict.GOOD
    assert os.listdir(warehouse) == []


def test_what_could_not_be_written_is_not_said_to_be_left_or_allowed(warehouse: Path) -> None:
    class ReadOnly(LocalStore):
        def put(self, key: str, data: bytes) -> None:
            raise PermissionDenied("may not write", location=key)

        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise PermissionDenied("may not write", location=key)

    report = report_of(ReadOnly(str(warehouse)))
    assert report["right: put"].verdict is report["right: conditional put"].verdict is CheckVerdict.BAD
    # Nothing was there, so the system refused nothing.
    assert report["right: get"].verdict is report["right: delete"].verdict is CheckVerdict.UNKNOWN
    assert report["left behind"].verdict is CheckVerdict.GOOD


def test_what_cannot_be_listed_or_read_after_it_was_deleted_is_not_said_to_be_gone() -> None:
    class Blind(MemoryStore):
        """May write and delete, and see nothing."""

        def get(self, key: str) -> bytes | None:
            raise PermissionDenied("may not read", location=key)

        def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
            raise PermissionDenied("may not list", location=prefix)

        def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
            raise PermissionDenied("may not list", location=prefix)

    left_behind = report_of(Blind())["left behind"]
    assert (
        left_behind.verdict is CheckVerdict.UNKNOWN
        and "whether they are gone cannot be read" in left_behind.what
    )


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
server:/x {root}/net nfs4 rw 0 0
host {root}/host virtiofs rw 0 0
/dev/sdb1 {root}/hidden xfs rw 0 0
//server/x {root}/hidden cifs rw 0 0
server:/y {root}/with\\040space nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "verdict", "kind"),
    [
        ("w", CheckVerdict.GOOD, "ext4"),
        ("net/w", CheckVerdict.UNKNOWN, "nfs4"),
        ("link/w", CheckVerdict.UNKNOWN, "nfs4"),
        ("network", CheckVerdict.GOOD, "ext4"),
        ("host", CheckVerdict.UNKNOWN, "virtiofs"),
        ("hidden/w", CheckVerdict.UNKNOWN, "cifs"),
        ("with space/w", CheckVerdict.UNKNOWN, "nfs"),
        ("/run/w", CheckVerdict.NOTE, "tmpfs"),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_place_itself(
    tmp_path: Path, folder: str, verdict: CheckVerdict, kind: str
) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "link").symlink_to(root / "net")
    mounts = root / "mounts"
    mounts.write_text(MOUNTS.format(root=root))
    found_file_system = file_system(str(root / folder), mounts)
    assert found_file_system.verdict is verdict and found_file_system.what.startswith(kind)
    assert file_system(str(root), root / "none").verdict is CheckVerdict.UNKNOWN
