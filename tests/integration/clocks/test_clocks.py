"""Hosts whose clocks are wrong, in processes of their own under libfaketime, on a folder and on a real S3 server."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests import s3_servers

from lakelog.catalog import Catalog
from lakelog.catalog.times import time_us
from lakelog.cli.main import run
from lakelog.log import InvalidInput, LogOptions, NotFound, clocks, open_store
from lakelog.log.clocks import host_clock_us
from lakelog.log.stores import local_store
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.s3_clients import S3Clients
from lakelog.log.stores.s3_store import S3Store

MINUTE_US = 60_000_000
DAY_US = 24 * 60 * MINUTE_US
ROWS = pa.table({"id": [1, 2]})
TIMEOUT_S = 120


def _library() -> str | None:
    spec = importlib.util.find_spec("libfaketime")
    if spec is None or spec.origin is None:
        return None
    library = Path(spec.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    return str(library) if library.exists() else None


LIBRARY = _library()


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse, and clients of it whose clocks are `skew` (as libfaketime writes it) away from the right time."""

    url: str
    far: str
    """How far a clock may be wrong there: S3 refuses requests that are signed more than 15 minutes off."""
    options: dict[str, str] = field(default_factory=dict)

    def catalog(self) -> Catalog:
        return Catalog(self.url, options=self.options)

    def client(self, skew: str, steps: str, *, local_disk: bool = False) -> dict[str, Any]:
        host = _host(skew, local_disk)
        client = {
            "url": self.url,
            "options": self.options,
            "steps": textwrap.dedent(steps),
            "environment": {name: value for name, value in os.environ.items() if name.startswith("AWS_")},
        }
        assert host.stdin is not None and host.stdout is not None
        host.stdin.write(json.dumps(client) + "\n")
        host.stdin.flush()
        hangs = threading.Timer(TIMEOUT_S, host.kill)
        hangs.start()
        line = host.stdout.readline()
        hangs.cancel()
        assert line, f"the process of the client ended with {host.wait()}, as its output on stderr says"
        reported: dict[str, Any] = json.loads(line)
        return reported


_hosts: dict[tuple[str, bool], subprocess.Popen[str]] = {}
"""A process for each clock. Its start costs much more than what most clients do."""


def _host(skew: str, local_disk: bool) -> subprocess.Popen[str]:
    if LIBRARY is None:
        pytest.skip(
            "no libfaketime on this machine, so no clock was wrong in any test: pip install libfaketime"
        )
    if (skew, local_disk) not in _hosts:
        _hosts[skew, local_disk] = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.clocks.client"],
            env={
                **os.environ,
                "LD_PRELOAD": LIBRARY,
                "FAKETIME": skew,
                "NO_FAKE_STAT": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "LAKELOG_TEST_LOCAL_DISK": "1" if local_disk else "",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    return _hosts[skew, local_disk]


@pytest.fixture(scope="module", autouse=True)
def _end_hosts() -> Iterator[None]:
    yield
    while _hosts:
        _, host = _hosts.popitem()
        host.kill()  # its clients have written all that they had to
        host.communicate()


@pytest.fixture(scope="module", params=["folder", pytest.param("versitygw", marks=pytest.mark.s3)])
def place_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str], str]]:
    folder = tmp_path_factory.mktemp("clocks")
    if request.param == "folder":
        yield str(folder), {"fsync": "off"}, "8d"
        return
    with s3_servers.running("versitygw", folder / "objects") as (server, bucket):
        yield f"s3://{bucket}", server.options, "14m"


@pytest.fixture
def place(place_of: tuple[str, dict[str, str], str]) -> Place:
    """A warehouse that no client has used."""
    root, options, far = place_of
    return Place(f"{root}/{uuid.uuid4().hex}", far, options)


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    """A warehouse on a disk of a host: the files' stamps are wrong with its clock."""
    return Place(str(tmp_path / "warehouse"), "8d", {"fsync": "off"})


def dropped_and_replaced(place: Place) -> None:
    """Have a table of three versions, and another one that was just dropped."""
    catalog = place.catalog()
    catalog.create_table("kept", ROWS.schema).append(ROWS).append(ROWS)
    catalog.create_table("gone", ROWS.schema).append(ROWS)
    catalog.drop_table("gone")


def check_nothing_was_lost(place: Place) -> None:
    catalog = place.catalog()
    assert catalog.load_table("kept").at(version=2).to_arrow().num_rows == 2
    catalog.undrop_table("gone")
    assert catalog.load_table("gone").to_arrow().num_rows == 2


def test_a_host_that_is_ahead_deletes_nothing_that_is_young(place: Place) -> None:
    dropped_and_replaced(place)
    reported_client = place.client(
        f"+{place.far}",
        f"""
        age = dt.timedelta({"days=7" if place.far == "8d" else "minutes=7"})
        catalog.expire(older_than=age, dry_run=False)
        found = catalog.vacuum(older_than=age, dropped_older_than=age, dry_run=False)
        report({{"places": [each.kind for each in found]}})
        """,
    )
    assert "error" not in reported_client and "dropped-table" not in reported_client["places"]
    check_nothing_was_lost(place)


@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_first_commit_without_data_has_the_stores_time(place: Place, sign: str) -> None:
    """The root, a namespace, a transaction: nothing was written by these clients before."""
    before_us = host_clock_us()
    for steps in ("catalog.create_namespace('a')", "catalog.drop_namespace('a')"):
        assert "error" not in place.client(f"{sign}{place.far}", steps)
    times = [time_us(entry.committed_at) for entry in place.catalog().audit()]
    assert len(times) >= 4
    assert all(before_us - MINUTE_US <= time_us <= host_clock_us() + MINUTE_US for time_us in times)


def test_a_catalog_as_of_a_time_goes_by_the_stores_clock(place: Place) -> None:
    catalog = place.catalog()
    catalog.create_table("t", ROWS.schema)
    moment_us = catalog.load_table("t").append(ROWS).table_head.time_us
    _wait_for_date(place, moment_us)
    look = "report({'rows': open_catalog(as_of=%d).load_table('t').to_arrow().num_rows})"
    behind = place.client(f"-{place.far}", look % moment_us)
    assert behind.get("rows") == 2, behind
    ahead = place.client(f"+{place.far}", look % (moment_us + 5 * MINUTE_US))
    assert "in the future" in ahead.get("message", ""), ahead


def _wait_for_date(place: Place, moment_us: int) -> None:
    """Return when the store says that this moment is over. A Date is of whole seconds, and some servers make one only
    once a second, so that it may be two seconds old."""
    store = open_store(place.url, place.options)
    assert isinstance(store, LocalStore | S3Store)
    while (store.now_us() or 0) < moment_us:
        time.sleep(0.05)
        store._clock = clocks.StoreClock()


def test_the_last_second_of_a_store_that_reports_whole_ones_is_not_in_the_future(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Date is up to a second behind. What was committed within it can be asked for by a host that goes by it."""
    disk.catalog().create_table("t", ROWS.schema)
    moment_us = disk.catalog().load_table("t").append(ROWS).table_head.time_us
    monkeypatch.setattr(LocalStore, "now_us", lambda store, near="": moment_us - 999_999)
    an_hour_behind = LogOptions(clock_us=lambda: host_clock_us() - 60 * MINUTE_US)

    def rows(at_us: int) -> int:
        catalog = Catalog(disk.url, options=disk.options, log_options=an_hour_behind, as_of=at_us)
        return int(catalog.load_table("t").to_arrow().num_rows)

    assert rows(moment_us) == 2
    with pytest.raises(InvalidInput, match="in the future"):
        rows(moment_us + 2)


def test_times_that_are_in_a_log_already_make_nothing_old(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of the warehouse has a commit that is a year ahead, of a store whose clock was wrong then."""
    year_ahead = LogOptions(clock_us=lambda: host_clock_us() + 365 * DAY_US)
    place.catalog().create_table("strange", ROWS.schema)
    with monkeypatch.context() as patch:
        for store in (LocalStore, S3Store):
            patch.setattr(store, "now_us", lambda store, near="": None)
        strange = Catalog(place.url, options=place.options, log_options=year_ahead).load_table("strange")
        assert strange.append(ROWS).table_head.time_us > host_clock_us() + 364 * DAY_US
    dropped_and_replaced(place)
    catalog = place.catalog()
    assert catalog.load_table("strange").row_count == 2
    catalog.expire(dry_run=False)
    assert all(not each.kind.startswith("dropped") for each in catalog.vacuum(dry_run=False))
    check_nothing_was_lost(place)


# A disk of the host itself, whose stamps are as wrong as its clock


def test_where_only_the_hosts_clock_makes_things_old_they_stay_until_it_is_said_to_be_right(
    disk: Place,
) -> None:
    dropped_and_replaced(disk)
    for call in ("catalog.expire({})", "catalog.vacuum({})"):
        # What is only looked at is shown as it would be.
        steps = f"report({{'looked': len({call.format('')})}}); {call.format('dry_run=False')}"
        reported_client = disk.client("+8d", steps, local_disk=True)
        assert reported_client["looked"] >= 2 and reported_client["error"] == "clock-not-trusted", (
            reported_client
        )
        assert "--trust-clock" in reported_client["message"]
    check_nothing_was_lost(disk)
    disk.catalog().drop_table("gone")
    reported_client = disk.client(
        "+8d",
        """
        [kept] = [each for each in catalog.expire(dry_run=False, trust_clock=True) if each.name == "`kept`"]
        gone = [each.name for each in catalog.vacuum(dry_run=False, trust_clock=True) if "dropped" in each.kind]
        report({"first": kept.first, "gone": gone})
        """,
        local_disk=True,
    )
    assert reported_client["first"] == 3 and reported_client["gone"] == ["`gone`"], reported_client


def test_a_gap_that_decides_nothing_needs_no_trust(disk: Place) -> None:
    """No version is old enough by any clock, or the age is 0, or no age was asked for; or the gap is of hours."""
    dropped_and_replaced(disk)
    reported_client = disk.client(
        "+8d",
        """
        catalog.expire(older_than=dt.timedelta(days=30), dry_run=False)
        catalog.vacuum(older_than=dt.timedelta(days=30), dropped_older_than=dt.timedelta(days=30), dry_run=False)
        """,
        local_disk=True,
    )
    assert "error" not in reported_client
    check_nothing_was_lost(disk)
    hours = "catalog.expire(older_than=dt.timedelta(hours=1), dry_run=False)"
    assert "error" not in disk.client("+20h", hours, local_disk=True)
    disk.catalog().drop_table("gone")
    at_any_time = """
        catalog.expire(retain_last=1, dry_run=False)
        catalog.vacuum(older_than=dt.timedelta(0), dropped_older_than=dt.timedelta(0), dry_run=False)
        """
    assert "error" not in disk.client("+8d", at_any_time, local_disk=True)
    with pytest.raises(NotFound):
        disk.catalog().undrop_table("gone")


def test_a_commit_anywhere_in_the_warehouse_shows_that_the_time_has_come(disk: Place) -> None:
    dropped_and_replaced(disk)
    catalog = disk.catalog()
    catalog.create_namespace("far")
    catalog.create_table("far.t", ROWS.schema)
    one_table = "report({'first': catalog.expire('kept', dry_run=False)[0].first})"
    assert disk.client("+8d", one_table, local_disk=True)["error"] == "clock-not-trusted"
    assert "error" not in disk.client("+188h", "catalog.load_table('far.t').append(rows)", local_disk=True)
    assert disk.client("+8d", one_table, local_disk=True)["first"] == 3


def test_the_command_refuses_and_takes_the_word_of_its_user(
    disk: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped_and_replaced(disk)
    week_later_ns = time.time_ns() + 8 * DAY_US * 1000
    monkeypatch.setattr(time, "time_ns", lambda: week_later_ns)
    monkeypatch.setattr(local_store, "stamp_us", lambda fd: week_later_ns // 1000)
    commands = [[command, "--warehouse", disk.url, "--apply"] for command in ("expire", "vacuum")]
    for command in commands:
        assert run(command) == 1
        assert "--trust-clock" in capsys.readouterr().err
    for command in commands:
        assert run([*command, "--trust-clock"]) == 0
    assert "dropped table" in capsys.readouterr().out


def test_a_store_that_may_not_be_written_has_no_time_and_a_host_whose_clock_was_set_takes_a_new_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path / "none" / "yet"))
    assert abs(store.now_us("a/b") - host_clock_us()) < MINUTE_US
    assert list(tmp_path.rglob("*")) == []
    real, stamps = local_store.stamp_us, []
    monkeypatch.setattr(local_store, "stamp_us", lambda fd: stamps.append(fd) or real(fd))
    assert store.now_us() is not None and stamps == []
    right = clocks.host_clock_us
    monkeypatch.setattr(clocks, "host_clock_us", lambda: right() + DAY_US)
    assert abs(store.now_us() - right()) < MINUTE_US and len(stamps) == 1
    monkeypatch.setattr(tempfile, "TemporaryFile", _denied)
    assert LocalStore(str(tmp_path)).now_us() is None


def _denied(**_: Any) -> Any:
    raise PermissionError(13, "Permission denied")


# What it costs


@pytest.mark.s3
def test_s3_reports_its_time_in_any_answer_and_is_asked_only_where_there_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_texts: list[str] = []
    real = S3Clients.calls

    def calls(self: S3Clients, operation: str, each: Any) -> Any:
        asked_texts.extend([operation] * len(each))
        return real(self, operation, each)

    monkeypatch.setattr(S3Clients, "calls", calls)
    with s3_servers.running("versitygw", tmp_path / "objects") as (server, bucket):
        for first in (
            lambda store: store.get("absent"),
            lambda store: store.put_if_absent("a", b"1") and False,
            lambda store: store.put_if_absent("a", b"2"),
            lambda store: list(store.list_after("")) and None,
        ):
            store = open_store(f"s3://{bucket}/of", server.options)
            assert not first(store)
            count = len(asked_texts)
            assert abs(store.now_us() - host_clock_us()) < MINUTE_US and len(asked_texts) == count
        store = open_store(f"s3://{bucket}/of", server.options)
        assert store.now_us() is not None and store.now_us() is not None
        assert asked_texts[count:] == ["head_object"]
        asked_texts.clear()
        place = Place(f"s3://{bucket}/w", "14m", server.options)
        dropped_and_replaced(place)
        place.catalog().expire(older_than=dt.timedelta(0), dry_run=False)
        place.catalog().vacuum(dry_run=False)
        assert place.catalog().load_table("kept").append(ROWS).row_count == 6
        assert "head_object" not in asked_texts
        # More than 15 minutes, and S3 refuses what such a host signs.
        refused_client = place.client("+8d", "catalog.create_namespace('a')")
        assert (refused_client["error"], "clock of this host" in refused_client["message"]) == (
            "storage",
            True,
        ), refused_client
