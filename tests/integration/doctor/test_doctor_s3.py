"""What the doctor says of buckets: their settings, servers that refuse or fail, and answers that may not be read."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests import s3_servers
from tests.integration.doctor.test_doctor import by_name, not_good
from tests.processes.faulty_proxy import FaultyProxy, faulty_proxy

from lakelog.cli.doctor import _address
from lakelog.cli.main import run
from lakelog.log import open_store
from lakelog.log.doctor import Check, Verdict, bucket, examine, races, reads
from lakelog.log.doctor.reads import Clock
from lakelog.log.doctor.rights import try_all
from lakelog.log.stores.s3_store import S3Store
from lakelog.testing.moto_server import ACCESS_KEY, SECRET_KEY, S3Server, moto_server

pytestmark = pytest.mark.s3
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def spoilt() -> Iterator[tuple[FaultyProxy, S3Server]]:
    with moto_server() as server, server.credentials(), faulty_proxy(server.endpoint) as proxy:
        yield proxy, dataclasses.replace(server, endpoint=proxy.endpoint)


@pytest.fixture
def proxy(spoilt: tuple[FaultyProxy, S3Server]) -> Iterator[FaultyProxy]:
    proxy, _ = spoilt
    yield proxy
    proxy.faults, proxy.refuse, proxy.date = [], lambda command, path, size: None, lambda: None


@pytest.fixture
def store(spoilt: tuple[FaultyProxy, S3Server], proxy: FaultyProxy) -> S3Store:
    """A place in a bucket of its own."""
    _, server = spoilt
    name = f"bucket{next(NUMBERS)}"
    server.create_bucket(name)
    opened = open_store(f"s3://{name}/a/warehouse", server.options)
    assert isinstance(opened, S3Store)
    return opened


def client(store: S3Store) -> S3Store:
    return S3Store(store.url, endpoint=store._endpoint, region=store._region, path_style=True)


def report_of(store: S3Store) -> dict[str, Check]:
    return by_name(examine(lambda: client(store), races_max=1))


def objects(store: S3Store) -> list[str]:
    page = store.call("list_object_versions")
    return [each["Key"] for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))]


def lifecycle_of(store: S3Store, rule: dict[str, Any]) -> Check:
    rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, **rule}
    store.call("put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": [rule]})
    return bucket.lifecycle(store)


@pytest.mark.parametrize(
    ("rule", "verdict", "text"),
    [
        ({"Expiration": {"Days": 30}}, Verdict.BAD, "'tidy' deletes commits and data after 30 days"),
        ({"Expiration": {"Date": "2030-01-01"}}, Verdict.BAD, "from 2030-01-01 on"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/"}}, Verdict.BAD, "after 30 days"),
        (
            {"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/warehouse/_log/"}},
            Verdict.BAD,
            "after 30 days",
        ),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "other/"}}, Verdict.NOTE, "0 rules"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/warehouse2"}}, Verdict.NOTE, "0 rules"),
        (
            {"Expiration": {"Days": 30}, "Filter": {"Tag": {"Key": "a", "Value": "b"}}},
            Verdict.NOTE,
            "0 rules",
        ),
        ({"Expiration": {"Days": 30}, "Status": "Disabled"}, Verdict.NOTE, "0 rules"),
        ({"Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}, Verdict.BAD, "to GLACIER"),
        (
            {"Transitions": [{"Days": 30, "StorageClass": "DEEP_ARCHIVE"}]},
            Verdict.BAD,
            "cannot be read at once",
        ),
        ({"Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]}, Verdict.NOTE, "reads cost more"),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 30}}, Verdict.NOTE, "none deletes"),
    ],
)
def test_rules_that_delete_or_archive_what_is_needed_are_bad(
    store: S3Store, rule: dict[str, Any], verdict: Verdict, text: str
) -> None:
    found = lifecycle_of(store, rule)
    assert found.verdict is verdict and text in found.what, found


def test_a_rule_for_interrupted_uploads_is_all_that_a_bucket_needs(store: S3Store) -> None:
    assert bucket.lifecycle(store).verdict is Verdict.NOTE
    assert (
        lifecycle_of(store, {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}}).verdict
        is Verdict.GOOD
    )


def test_what_may_not_be_read_is_unknown(store: S3Store, proxy: FaultyProxy) -> None:
    asked = (bucket.lifecycle, bucket.versioning, bucket.object_lock)
    for status, code in ((403, "AccessDenied"), (501, "NotImplemented"), (404, "Unheard")):
        answer = (status, code)
        proxy.refuse = lambda command, path, size: answer  # noqa: B023
        found = [ask(store) for ask in asked]
        assert [check.verdict for check in found] == [Verdict.UNKNOWN] * 3
        assert all(code in check.what for check in found)
        assert ("grant s3:GetLifecycleConfiguration" in found[0].todo) is (status == 403)


def test_versions_are_removed_too_or_reported(
    store: S3Store, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "parts", lambda store, key: [])
    monkeypatch.setattr(reads, "ROUNDS", 1)
    store.call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    proxy.refuse = lambda command, path, size: (403, "AccessDenied") if "?versions" in path else None
    found = report_of(store)
    assert not_good(found) == {"lifecycle": "note", "versioning": "note", "left behind": "warning"}
    assert "NoncurrentVersionExpiration" in found["versioning"].todo
    assert "noncurrent versions of" in found["left behind"].what
    proxy.refuse = lambda command, path, size: None
    assert objects(store)
    bucket.remove_versions(store, "_doctor")
    assert objects(store) == []


def test_object_lock_is_reported_and_that_its_retention_refuses_writes(store: S3Store) -> None:
    name = f"s3://locked{next(NUMBERS)}/w"
    locked = S3Store(name, endpoint=store._endpoint, region="us-east-1", path_style=True)
    locked.call("create_bucket", ObjectLockEnabledForBucket=True)
    lock: dict[str, Any] = {"ObjectLockEnabled": "Enabled"}
    locked.call("put_object_lock_configuration", ObjectLockConfiguration=lock)
    assert bucket.object_lock(locked).verdict is Verdict.NOTE
    lock["Rule"] = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 7}}
    locked.call("put_object_lock_configuration", ObjectLockConfiguration=lock)
    found = bucket.object_lock(locked)
    assert found.verdict is Verdict.WARNING and "compliance for 7 days" in found.what
    (right, *_) = try_all(locked, "_doctor/x").checks
    assert (right.name, right.verdict) == ("right: put", Verdict.BAD) and "400" in right.what


def test_uploads_in_parts_that_a_server_refuses_are_bad(
    store: S3Store, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[str]:
        return [str(check.verdict) for check in bucket.parts(store, "k")]

    monkeypatch.setattr(bucket, "PART_SIZE_BYTES", 6 * 1024 * 1024)
    assert found() == ["good", "good", "good"]
    proxy.refuse = lambda command, path, size: (
        (400, "EntityTooLarge") if "partNumber" in path and size > 6_000_000 else None
    )
    assert found() == ["good", "bad", "good"]
    proxy.refuse = lambda command, path, size: (501, "NotImplemented") if "uploads" in path else None
    assert found() == ["bad", "bad", "warning"]
    proxy.refuse = lambda command, path, size: (403, "AccessDenied") if command == "DELETE" else None
    assert found() == ["good", "good", "warning"]


def test_a_gateway_that_takes_small_requests_only_is_bad(store: S3Store, proxy: FaultyProxy) -> None:
    assert races.large(store, client(store), "first", 2_000_000).verdict is Verdict.GOOD
    proxy.refuse = lambda command, path, size: (413, "EntityTooLarge") if size > 1_000_000 else None
    found = races.large(store, client(store), "second", 2_000_000)
    assert found.verdict is Verdict.BAD and "413" in found.what


def test_conflicts_and_lost_answers_are_counted_and_settled(store: S3Store, proxy: FaultyProxy) -> None:
    proxy.faults = ["409", "lost-409", "409", "409"]
    assert {check.verdict for check in try_all(store, "_doctor/x").checks} == {Verdict.GOOD}
    proxy.faults = [*["409"] * 40, "lost-409", "lost-500"]
    found = races.judge("race", races.threads(store, client(store), ["k"], 0), "32")
    assert found.verdict is Verdict.GOOD and " times 409, settled by reading" in found.what
    assert not proxy.faults


@pytest.mark.parametrize(
    ("command", "action", "grant"),
    [("PUT", "put", "s3:PutObject"), ("POST", "delete", "s3:DeleteObject"), ("GET", "get", "s3:GetObject")],
)
def test_a_right_that_is_missing_is_named_as_it_is_granted(
    store: S3Store, proxy: FaultyProxy, command: str, action: str, grant: str
) -> None:
    proxy.refuse = lambda asked, path, size: (403, "AccessDenied") if asked == command else None
    (found,) = (check for check in try_all(store, "_doctor/x").checks if check.name == f"right: {action}")
    assert grant in found.todo and "AccessDenied" in found.what


@pytest.mark.parametrize(
    ("ahead_s", "verdict"), [([300], Verdict.WARNING), ([0, 10], Verdict.WARNING), ([0, 300], Verdict.BAD)]
)
def test_a_server_whose_time_is_wrong_or_changes_is_found(
    store: S3Store, proxy: FaultyProxy, ahead_s: list[int], verdict: Verdict
) -> None:
    clock = Clock(lambda: client(store), "near")
    for ahead in ahead_s:
        now = formatdate(time.time() + ahead, usegmt=True)
        proxy.date = lambda: now  # noqa: B023
        clock.look()
    assert clock.check().verdict is verdict


def test_the_command_prints_a_report_without_secrets_and_its_exit_code_is_the_verdict(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with s3_servers.running("versitygw", tmp_path / "objects") as (server, name):
        place = [f"s3://{name}/w", "--endpoint", server.endpoint, "--region", server.region, "--path-style"]
        # This server has no lifecycle rules, and answers 501: that is not known to be good.
        assert run(["doctor", *place, "--json"]) == 3
        text = capfd.readouterr().out
        report = json.loads(text)
        assert report["can_be_used"] and report["worst"] == "unknown"
        assert [check["name"] for check in report["checks"] if check["verdict"] != "good"] == ["lifecycle"]
        assert report["facts"]["server"] == "VERSITYGW" and report["facts"]["endpoint"] == server.endpoint
        assert ACCESS_KEY not in text and SECRET_KEY not in text
        assert list(open_store(f"s3://{name}", server.options).list_after("")) == []
        assert run(["doctor", f"s3://{name}-not/w", *place[1:]]) == 1
        assert "there is no bucket" in capfd.readouterr().err
    assert _address("https://user:password@host:9000/?key=secret") == "https://host:9000"
