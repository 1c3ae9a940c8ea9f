"""Commits to a real S3 client and server with spoilt answers in between: once, and acknowledged, or unknown."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator

import pytest
from tests.integration.store.odd_answers import ODD_ANSWERS, Truncating
from tests.integration.store.sums import Sum
from tests.processes.faulty_proxy import Chance, FaultyProxy, faulty_proxy

from lakelog.log import CommitUnknown, Draft, Log, LogOptions, StorageError, open_store
from lakelog.log.stores import copy_object, s3_clients, stamp_of
from lakelog.log.stores.s3_place import CLIENT
from lakelog.log.stores.s3_wire import ATTEMPTS_MAX
from lakelog.testing.moto_server import S3Server, moto_server

pytestmark = pytest.mark.s3
OPTIONS = LogOptions(sleep_s=lambda seconds: None, snapshot_every_versions=0)


@pytest.fixture(scope="module")
def spoilt() -> Iterator[tuple[FaultyProxy, S3Server]]:
    with moto_server() as server, server.credentials(), faulty_proxy(server.endpoint) as proxy:
        yield proxy, dataclasses.replace(server, endpoint=proxy.endpoint)


def new_log(server: S3Server, options: LogOptions = OPTIONS) -> Log[int]:
    return Log(open_store(f"s3://lake/{uuid.uuid4().hex}", server.options), "t", Sum(), options=options)


def add_one(view: object, passed: object) -> Draft:
    return Draft(events=({"n": 1},))


@pytest.mark.parametrize(
    "faults",
    [
        *ODD_ANSWERS,
        # s3fs sends a conditional PUT again by itself, and may find that the key is taken, by its own first one.
        ["s3fs", "409"],
        ["s3fs", "500", "lost-500", "500"],
        ["s3fs", "lost-reset", "409"],
        ["s3fs", "lost-503"],
    ],
    ids=" ".join,
)
def test_a_commit_happens_once_and_is_acknowledged(
    spoilt: tuple[FaultyProxy, S3Server], faults: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = spoilt
    if faults[0] == "s3fs":
        faults = faults[1:]
        monkeypatch.setenv(CLIENT, "s3fs")
    log = new_log(server)
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.faults = list(faults)
    change = log.commit(view, add_one)
    assert (change.version, log.load().state) == (2, 2)
    assert not proxy.faults


@pytest.mark.parametrize("fault", ["hang", "lost-hang"])
def test_an_answer_that_never_comes_is_settled_after_the_time_limit(
    spoilt: tuple[FaultyProxy, S3Server], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = spoilt
    monkeypatch.setattr(s3_clients, "READ_TIMEOUT_S", 1)
    log = new_log(server)
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.faults = [fault]
    assert log.commit(view, add_one).version == 2
    assert log.load().state == 2


def test_a_commit_that_no_answer_settles_is_unknown_and_found_by_a_retry(
    spoilt: tuple[FaultyProxy, S3Server],
) -> None:
    proxy, server = spoilt
    log = new_log(server, dataclasses.replace(OPTIONS, put_tries=2))
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.faults = ["409"] * 20
    with pytest.raises(CommitUnknown) as error:
        log.commit(view, add_one, commit_id="mine")
    assert error.value.commit_id == "mine"
    proxy.faults = []
    assert log.commit(view, add_one, commit_id="mine").version == 2
    assert log.commit(log.load(), add_one, commit_id="mine", base=1).version == 2
    assert log.load().state == 2


def test_requests_on_the_wire_are_those_of_the_budget(spoilt: tuple[FaultyProxy, S3Server]) -> None:
    """What the counting store counts is what the server sees: no hidden HEAD, no LIST."""
    proxy, server = spoilt
    log = new_log(server)
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.requests = []
    view = log.commit(view, add_one).view
    assert proxy.requests == ["PUT"]
    proxy.requests = []
    log.refresh(view)
    assert proxy.requests == ["GET"]
    proxy.requests = None


@pytest.mark.parametrize("breaks", [1, ATTEMPTS_MAX - 1, ATTEMPTS_MAX])
def test_a_read_whose_answer_breaks_off_is_retried_also_where_nothing_is_there(
    spoilt: tuple[FaultyProxy, S3Server], breaks: int
) -> None:
    proxy, server = spoilt
    store = open_store(f"s3://lake/{uuid.uuid4().hex}", server.options)
    store.put("there", b"x" * 1000)
    reads = (lambda: store.get("absent"), lambda: store.get("there"), lambda: list(store.list_after("")))
    for read, found in zip(reads, (None, b"x" * 1000, ["there"]), strict=True):
        proxy.chance = Truncating(breaks)
        try:
            if breaks < ATTEMPTS_MAX:
                assert read() == found
            else:
                with pytest.raises(StorageError):
                    read()
        finally:
            proxy.chance = None


class OnPuts(Chance):
    """Gives each PUT the next of these faults."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(0)
        self.faults = faults

    def fault(self, command: str, conditional: bool) -> str:
        return self.faults.pop(0) if command == "PUT" and self.faults else ""


@pytest.mark.parametrize(
    ("faults", "is_done"),
    [
        (["lost-500"], True),
        (["lost-reset", "503"], True),
        (["500"] * ATTEMPTS_MAX, False),
        (["lost-500"] * ATTEMPTS_MAX, False),
    ],
)
def test_a_copy_by_the_server_whose_answer_is_lost_is_done_or_an_error_and_can_be_repeated(
    spoilt: tuple[FaultyProxy, S3Server], faults: list[str], is_done: bool
) -> None:
    proxy, server = spoilt
    store = open_store(f"s3://lake/{uuid.uuid4().hex}", server.options)
    store.put("data/from", b"after" * 1000)
    store.put("data/to", b"before")
    stamp = stamp_of(store, "data/from")
    proxy.chance = OnPuts(list(faults))
    try:
        if is_done:
            assert copy_object(store, "data/from", store, "data/to", stamp)
        else:
            with pytest.raises(StorageError):
                copy_object(store, "data/from", store, "data/to", stamp)
            assert store.get("data/to") == (b"before" if faults[0] == "500" else b"after" * 1000)
        assert not proxy.chance.faults
    finally:
        proxy.chance = None
    assert copy_object(store, "data/from", store, "data/to", stamp)
    assert store.get("data/to") == b"after" * 1000 and store.get("data/from") == b"after" * 1000
