"""Google Cloud Storage and Azure with spoilt answers, without rights, and servers that do not keep a promise."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import traceback
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests import cloud_servers
from tests.cloud_servers import CloudServer
from tests.integration.store.odd_answers import ODD_ANSWERS, Truncating
from tests.integration.store.sums import Sum
from tests.processes.faulty_proxy import FaultyProxy, faulty_proxy

from lakelog.log import (
    CommitUnknown,
    Draft,
    Log,
    LogOptions,
    ObjectStore,
    PermissionDenied,
    StorageError,
    open_store,
    wait_for_background,
)
from lakelog.log.costs import CostTally, tallied
from lakelog.log.stores import cloud_store
from lakelog.log.stores.cloud_store import ATTEMPTS_MAX

pytestmark = pytest.mark.s3
OPTIONS = LogOptions(sleep_s=lambda seconds: None, snapshot_every_versions=0)


@pytest.fixture(scope="module", params=cloud_servers.NAMES)
def spoilt(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FaultyProxy, CloudServer]]:
    with (
        cloud_servers.running(request.param, tmp_path_factory.mktemp("objects")) as server,
        faulty_proxy(server.endpoint) as proxy,
    ):
        yield proxy, dataclasses.replace(server, options=server.options_at(proxy.endpoint))


def new_store(server: CloudServer) -> ObjectStore:
    return open_store(f"{server.url}/{uuid.uuid4().hex}", server.options)


def new_log(server: CloudServer, options: LogOptions = OPTIONS) -> Log[int]:
    return Log(new_store(server), "t", Sum(), options=options)


def add_one(view: object, passed: object) -> Draft:
    return Draft(events=({"n": 1},))


@pytest.mark.parametrize("faults", ODD_ANSWERS, ids=" ".join)
def test_a_commit_happens_once_and_is_acknowledged(
    spoilt: tuple[FaultyProxy, CloudServer], faults: list[str]
) -> None:
    proxy, server = spoilt
    log = new_log(server)
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.faults = list(faults)
    done = log.commit(view, add_one)
    assert (done.version, log.load().state) == (2, 2)
    assert not proxy.faults


def test_a_commit_that_no_answer_settles_is_unknown_and_found_by_a_retry(
    spoilt: tuple[FaultyProxy, CloudServer],
) -> None:
    proxy, server = spoilt
    log = new_log(server, dataclasses.replace(OPTIONS, put_tries=2))
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.faults = ["409"] * 20
    with pytest.raises(CommitUnknown):
        log.commit(view, add_one, commit_id="mine")
    proxy.faults = []
    assert log.commit(view, add_one, commit_id="mine").version == 2
    assert log.load().state == 2


def test_requests_on_the_wire_are_those_that_are_counted(spoilt: tuple[FaultyProxy, CloudServer]) -> None:
    proxy, server = spoilt
    log = new_log(server)
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    proxy.requests = []
    tally = CostTally()
    with tallied(tally):
        view = log.commit(view, add_one).view
        assert proxy.requests == ["PUT"]
        log.refresh(view)
    assert proxy.requests == ["PUT", "GET"]
    assert sum(tally.requests.values()) == 2
    proxy.requests = None


@pytest.mark.parametrize("breaks", [1, ATTEMPTS_MAX - 1, ATTEMPTS_MAX])
def test_a_read_whose_answer_breaks_off_is_retried_also_where_nothing_is_there(
    spoilt: tuple[FaultyProxy, CloudServer], breaks: int
) -> None:
    proxy, server = spoilt
    store = new_store(server)
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


@pytest.mark.parametrize(("status", "code"), [(403, "AuthorizationFailure"), (401, "ExpiredToken")])
def test_a_refusal_is_permission_denied_and_shows_no_secret(
    spoilt: tuple[FaultyProxy, CloudServer], status: int, code: str
) -> None:
    proxy, server = spoilt
    store = new_store(server)
    proxy.refuse = lambda command, path, size: (status, code)
    try:
        for request in (
            lambda: store.get("a"),
            lambda: store.put("a", b"x"),
            lambda: store.put_if_absent("a", b"x"),
            lambda: list(store.list_after("")),
            lambda: store.delete(["a"]),
        ):
            with pytest.raises(PermissionDenied, match=code) as raised:
                request()
            shown = "".join(traceback.format_exception(raised.value))
            assert cloud_servers.ACCOUNT_KEY not in shown and "Debug source" not in shown
    finally:
        proxy.refuse = lambda command, path, size: None


@pytest.mark.parametrize("status", [429, 503])
def test_too_many_requests_are_tried_again_and_at_last_an_error(
    spoilt: tuple[FaultyProxy, CloudServer], status: int
) -> None:
    proxy, server = spoilt
    store = new_store(server)
    store.put("a", b"x")
    left = [0]

    def refuse(command: str, path: str, size: int) -> tuple[int, str] | None:
        left[0] -= 1
        return (status, "SlowDown") if left[0] >= 0 else None

    proxy.refuse = refuse
    try:
        left[0] = ATTEMPTS_MAX - 1
        assert store.get("a") == b"x"
        left[0] = ATTEMPTS_MAX
        with pytest.raises(StorageError, match=str(status)) as raised:
            store.get("a")
        assert not isinstance(raised.value, PermissionDenied)
    finally:
        proxy.refuse = lambda command, path, size: None


def test_a_missing_bucket_is_an_error_and_not_an_empty_store(
    spoilt: tuple[FaultyProxy, CloudServer],
) -> None:
    _, server = spoilt
    scheme, _, place = server.url.partition("://")
    _, at, host = place.partition("@")
    store = open_store(f"{scheme}://no-such-{uuid.uuid4().hex[:8]}{at}{host}/w", server.options)
    for request in (
        lambda: store.get("a"),
        lambda: store.put_if_absent("a", b"x"),
        lambda: list(store.list_after("")),
        lambda: store.open_input("a"),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(StorageError, match="no-such|no bucket or container"):
            request()


def test_empty_objects_that_stand_for_folders_are_not_listed(
    spoilt: tuple[FaultyProxy, CloudServer],
) -> None:
    """Consoles and Hadoop make them: a/b on Azure, and a/b/ on Google, which obstore shows as a/b after a/b-1."""
    _, server = spoilt
    store = new_store(server)
    keys = ["t/data-1", "t/data/a", "t/data/b", "t/empty"]
    for key in keys:
        store.put(key, b"x" * (key != "t/empty"))
    if server.url.startswith("gs:"):
        bucket, _, prefix = store.url.removeprefix("gs://").partition("/")
        address = f"{server.options['gcs_endpoint']}/upload/storage/v1/b/{bucket}/o?uploadType=media&name="
        for name in ("t/", "t/data/", "t/gone/"):
            urllib.request.urlopen(f"{address}{quote(f'{prefix}/{name}', safe='')}", data=b"").close()
        folder_keys = ["t/gone"]
    else:
        for name in ("t", "t/data"):
            store.put(name, b"")
        folder_keys = []
    assert list(store.list_after("")) == keys + folder_keys
    assert list(store.list_sizes("t/data")) == [(key, 1) for key in keys[:3]]
    assert list(store.list_after("t/", "t/data-1")) == keys[1:] + folder_keys
    assert store.list_folders("t/") == ["data", *(["gone"] if folder_keys else [])]
    store.delete([*keys, *folder_keys])
    assert [key for key in store.list_after("") if key in keys] == []


def test_a_retention_rule_is_named_and_stops_no_commit(spoilt: tuple[FaultyProxy, CloudServer]) -> None:
    """It refuses that objects are replaced or deleted. Hints are replaced, and are not needed."""
    proxy, server = spoilt
    status, code = (
        (403, "RetentionPolicyNotMet") if server.url.startswith("gs:") else (409, "BlobImmutableDueToPolicy")
    )
    log = new_log(server, dataclasses.replace(OPTIONS, snapshot_every_versions=1))
    view = log.create(Draft(events=({"n": 1},)), log_id="l")
    view = log.commit(view, add_one).view
    wait_for_background()
    proxy.refuse = lambda command, path, size: (
        (status, code) if command == "DELETE" or (command == "PUT" and "latest" in path) else None
    )
    try:
        for _ in range(3):
            view = log.commit(view, add_one).view
            wait_for_background()
        assert Log(log.store, "t", Sum(), options=OPTIONS).load().state == 5
        (hint,) = [key for key in log.store.list_after("") if key.endswith("latest.json")]
        with pytest.raises(StorageError, match=f"retention rule or a hold .*{code}") as raised:
            log.store.put(hint, b"x")
        assert not isinstance(raised.value, PermissionDenied)
        if server.url.startswith("gs:"):  # Azure's batch has an answer for each of its keys
            with pytest.raises(StorageError, match=f"retention rule or a hold .*{code}"):
                log.store.delete(["a"])
    finally:
        proxy.refuse = lambda command, path, size: None


def test_a_name_that_looks_like_a_status_is_a_name(spoilt: tuple[FaultyProxy, CloudServer]) -> None:
    store = new_store(spoilt[1])
    key = "status code: 412 <Code>NoSuchBucket</Code>"
    assert store.get(key) is None
    assert store.put_if_absent(key, b"x") and not store.put_if_absent(key, b"y")
    assert store.get(key) == b"x" and list(store.list_after("status")) == [key]


def test_names_that_begin_with_dots_are_listed(spoilt: tuple[FaultyProxy, CloudServer]) -> None:
    store = new_store(spoilt[1])
    for key in ("f/.x", "f/..x", "f/...", "f/x"):
        store.put(key, b"x")
    assert list(store.list_after("f/.x")) == ["f/.x"]
    assert list(store.list_after("f/...")) == ["f/..."]
    assert list(store.list_after("f/..x")) == ["f/..x"]


def test_a_large_object_is_read_in_parts(
    spoilt: tuple[FaultyProxy, CloudServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = spoilt
    monkeypatch.setattr(cloud_store, "PART_SIZE_BYTES", 1000)
    store = new_store(server)
    content = bytes(range(250)) * 10
    store.put("a", content)
    with store.open_input("a") as opened_input:
        proxy.requests = []
        assert opened_input.read() == content
        assert proxy.requests == ["GET"] * 3
    proxy.requests = None


def test_the_store_shows_its_own_time(spoilt: tuple[FaultyProxy, CloudServer]) -> None:
    proxy, server = spoilt
    proxy.date = lambda: "Sat, 01 Jan 2050 00:00:00 GMT"
    try:
        store = new_store(server)
        now_us = store.now_us()
        assert now_us is not None and 0 <= now_us - 2_524_608_000_000_000 < 60_000_000
    finally:
        proxy.date = lambda: None


def _get_in_a_child(url: str, options: dict[str, str], answer: multiprocessing.SimpleQueue[str]) -> None:
    try:
        answer.put(str(open_store(url, options).get("a")))
    except StorageError as error:
        answer.put(f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def test_a_forked_child_is_refused_in_place_of_waiting_for_ever(
    spoilt: tuple[FaultyProxy, CloudServer],
) -> None:
    store = new_store(spoilt[1])
    store.put("a", b"x")
    for method, expected in (("fork", "StorageError"), ("spawn", "b'x'")):
        context: Any = multiprocessing.get_context(method)
        answer = context.SimpleQueue()
        child = context.Process(target=_get_in_a_child, args=(store.url, spoilt[1].options, answer))
        child.start()
        assert answer.get().startswith(expected)
        child.join()
