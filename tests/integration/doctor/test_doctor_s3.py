"""What the doctor says of buckets: their settings, servers that refuse or fail, and answers that may not be read."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import s3_servers
from tests.integration.doctor.test_doctor import by_name, not_good
from tests.processes.faulty_proxy import FaultyProxy, faulty_proxy

from lakelog.cli.main import run
from lakelog.log import open_store
from lakelog.log.clocks import StoreClock
from lakelog.log.doctor import CheckVerdict, StoreCheck, bucket, examine, races, reads
from lakelog.log.doctor.cleaning import ExaminationRemains
from lakelog.log.doctor.reads import ClockReading
from lakelog.log.doctor.rights import StoreRights, try_all
from lakelog.log.errors import InvalidInput, PermissionDenied, StorageError
from lakelog.log.stores.s3_store import S3Store
from lakelog.testing.moto_server import ACCESS_KEY, SECRET_KEY, S3Server, moto_server

pytestmark = pytest.mark.s3
LARGE = StoreCheck(name="put-if-absent: largest commit", verdict=CheckVerdict.GOOD, what="left out")


@dataclass
class Clients:
    """Stores behind one proxy. To make one costs more than most requests, so tests share those for one bucket."""

    proxy: FaultyProxy
    server: S3Server
    known: dict[str, tuple[S3Store, S3Store]] = field(default_factory=dict)

    def __getitem__(self, bucket: str) -> tuple[S3Store, S3Store]:
        """Two clients that share no connection."""
        if bucket not in self.known:
            first, second = (open_store(f"s3://{bucket}/a/warehouse", self.server.options) for _ in range(2))
            assert isinstance(first, S3Store) and isinstance(second, S3Store)
            self.known[bucket] = first, second
        return self.known[bucket]


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with moto_server("bucket") as server, server.credentials(), faulty_proxy(server.endpoint) as proxy:
        yield Clients(proxy, dataclasses.replace(server, endpoint=proxy.endpoint))


@pytest.fixture
def proxy(clients: Clients) -> Iterator[FaultyProxy]:
    proxy = clients.proxy
    yield proxy
    proxy.faults, proxy.refuse, proxy.date = [], lambda command, path, size: None, lambda: None


@pytest.fixture
def store(clients: Clients, proxy: FaultyProxy) -> Iterator[S3Store]:
    """A place in a bucket without settings."""
    store, _ = clients["bucket"]
    yield store
    proxy.refuse = lambda command, path, size: None
    store.call("delete_bucket_lifecycle")


@pytest.fixture
def reader(clients: Clients) -> S3Store:
    return clients["bucket"][1]


def objects(store: S3Store) -> list[str]:
    page = store.call("list_object_versions")
    return [each["Key"] for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))]


def lifecycle_of(store: S3Store, rule: dict[str, Any]) -> StoreCheck:
    rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, **rule}
    store.call("put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": [rule]})
    return bucket.lifecycle(store)


@pytest.mark.parametrize(
    ("rule", "verdict", "text"),
    [
        ({"Expiration": {"Days": 30}}, CheckVerdict.BAD, "'tidy' deletes commits and data after 30 days"),
        ({"Expiration": {"Date": "2030-01-01"}}, CheckVerdict.BAD, "from 2030-01-01 on"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/"}}, CheckVerdict.BAD, "after 30 days"),
        (
            {"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/warehouse/_log/"}},
            CheckVerdict.BAD,
            "after 30 days",
        ),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "other/"}}, CheckVerdict.NOTE, "0 rules"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "a/warehouse2"}}, CheckVerdict.NOTE, "0 rules"),
        (
            {"Expiration": {"Days": 30}, "Filter": {"Tag": {"Key": "a", "Value": "b"}}},
            CheckVerdict.NOTE,
            "0 rules",
        ),
        ({"Expiration": {"Days": 30}, "Status": "Disabled"}, CheckVerdict.NOTE, "0 rules"),
        ({"Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}, CheckVerdict.BAD, "to GLACIER"),
        (
            {"Transitions": [{"Days": 30, "StorageClass": "DEEP_ARCHIVE"}]},
            CheckVerdict.BAD,
            "cannot be read at once",
        ),
        (
            {"Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]},
            CheckVerdict.NOTE,
            "reads cost more",
        ),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 30}}, CheckVerdict.NOTE, "none deletes"),
    ],
)
def test_rules_that_delete_or_archive_what_is_needed_are_bad(
    store: S3Store, rule: dict[str, Any], verdict: CheckVerdict, text: str
) -> None:
    check = lifecycle_of(store, rule)
    assert check.verdict is verdict and text in check.what, check


def test_a_rule_for_interrupted_uploads_is_all_that_a_bucket_needs(store: S3Store) -> None:
    assert bucket.lifecycle(store).verdict is CheckVerdict.NOTE
    assert (
        lifecycle_of(store, {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}}).verdict
        is CheckVerdict.GOOD
    )


def test_what_may_not_be_read_is_unknown(store: S3Store, proxy: FaultyProxy) -> None:
    asked = (bucket.lifecycle, bucket.versioning, bucket.object_lock)
    for status, code in ((403, "AccessDenied"), (501, "NotImplemented"), (404, "Unheard")):
        answer = (status, code)
        proxy.refuse = lambda command, path, size: answer  # noqa: B023
        checks = [ask(store) for ask in asked]
        assert [check.verdict for check in checks] == [CheckVerdict.UNKNOWN] * 3
        assert all(code in check.what for check in checks)
        assert ("grant s3:GetLifecycleConfiguration" in checks[0].todo) is (status == 403)


def test_versions_are_removed_too_or_reported(
    clients: Clients, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "parts", lambda store, key: [])
    monkeypatch.setattr(reads, "ROUNDS", 1)
    monkeypatch.setattr(races, "large", lambda store, reader, key, size_bytes: LARGE)
    store, _ = clients["versioned"]
    store.call("create_bucket")
    store.call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    proxy.refuse = lambda command, path, size: (403, "AccessDenied") if "?versions" in path else None
    name = by_name(examine(lambda: store, races_max=1))
    assert not_good(name) == {"lifecycle": "note", "versioning": "note", "left behind": "warning"}
    assert "NoncurrentVersionExpiration" in name["versioning"].todo
    assert "noncurrent versions of" in name["left behind"].what
    proxy.refuse = lambda command, path, size: None
    assert objects(store)
    remains = ExaminationRemains(
        store=store, folder="_doctor", keys=frozenset({"_doctor/x"}), rights=all_rights()
    )
    # Where it may not be read either whether there are versions, it is not said that there are none.
    proxy.refuse = lambda command, path, size: (403, "AccessDenied") if "?version" in path else None
    found_left = remains.remove()
    assert found_left.verdict is CheckVerdict.UNKNOWN and "noncurrent versions" in found_left.what
    proxy.refuse = lambda command, path, size: None
    store.call("create_multipart_upload", "_doctor/upload")
    assert remains.remove().verdict is CheckVerdict.GOOD
    assert objects(store) == [] and not store.call("list_multipart_uploads").get("Uploads")


def all_rights() -> StoreRights:
    return StoreRights(allowed={"put", "conditional put", "get", "get what is absent", "list", "delete"})


def test_object_lock_is_reported_and_that_its_retention_refuses_writes(clients: Clients) -> None:
    locked_store, _ = clients["locked"]
    locked_store.call("create_bucket", ObjectLockEnabledForBucket=True)
    lock: dict[str, Any] = {"ObjectLockEnabled": "Enabled"}
    locked_store.call("put_object_lock_configuration", ObjectLockConfiguration=lock)
    assert bucket.object_lock(locked_store).verdict is CheckVerdict.NOTE
    lock["Rule"] = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 7}}
    locked_store.call("put_object_lock_configuration", ObjectLockConfiguration=lock)
    object_lock = bucket.object_lock(locked_store)
    assert object_lock.verdict is CheckVerdict.WARNING and "compliance for 7 days" in object_lock.what
    (right, *_) = try_all(locked_store, "_doctor/x").checks
    assert (right.name, right.verdict) == ("right: put", CheckVerdict.BAD) and "400" in right.what


def test_uploads_in_parts_that_a_server_refuses_are_bad(
    store: S3Store, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_texts() -> list[str]:
        return [str(check.verdict) for check in bucket.parts(store, "k")]

    monkeypatch.setattr(bucket, "PART_SIZE_BYTES", 6 * 1024 * 1024)
    assert found_texts() == ["good", "good", "good"]
    proxy.refuse = lambda command, path, size: (
        (400, "EntityTooLarge") if "partNumber" in path and size > 6_000_000 else None
    )
    assert found_texts() == ["good", "bad", "good"]
    proxy.refuse = lambda command, path, size: (501, "NotImplemented") if "uploads" in path else None
    assert found_texts() == ["bad", "bad", "warning"]
    proxy.refuse = lambda command, path, size: (403, "AccessDenied") if command == "DELETE" else None
    assert found_texts() == ["good", "good", "warning"]
    call = store.call
    monkeypatch.setattr(
        store,
        "call",
        lambda operation, key=None, **rest: (
            {"ContentLength": 5} if operation == "head_object" else call(operation, key, **rest)
        ),
    )
    proxy.refuse = lambda command, path, size: None
    assert found_texts() == ["bad", "bad", "good"]


def test_a_gateway_that_takes_small_requests_only_is_bad(
    store: S3Store, reader: S3Store, proxy: FaultyProxy
) -> None:
    assert races.large(store, reader, "first", 20_000).verdict is CheckVerdict.GOOD
    proxy.refuse = lambda command, path, size: (413, "EntityTooLarge") if size > 10_000 else None
    check = races.large(store, reader, "second", 20_000)
    assert check.verdict is CheckVerdict.BAD and "413" in check.what


def test_conflicts_and_lost_answers_are_counted_and_settled(
    store: S3Store, reader: S3Store, proxy: FaultyProxy
) -> None:
    proxy.faults = ["409", "lost-409", "409", "409"]
    assert {check.verdict for check in try_all(store, "_doctor/x").checks} == {CheckVerdict.GOOD}
    proxy.faults = [*["409"] * 40, "lost-409", "lost-500"]
    judge = races.judge("race", races.threads(store, reader, ["raced"], 60_000_000), "32")
    assert judge.verdict is CheckVerdict.GOOD and " times 409, settled by reading" in judge.what
    assert not proxy.faults
    # The client resends what was lost, and the answer to that is a refusal.
    proxy.faults = ["lost-500"]
    assert races.large(store, reader, "large", 1000).verdict is CheckVerdict.GOOD
    proxy.faults = ["lost-500", "409", "lost-409", "500"]
    assert races.retried(store, reader, "twice").verdict is CheckVerdict.GOOD
    proxy.faults = ["lost-500"]
    assert races.after_delete(store, "deleted").verdict is CheckVerdict.GOOD
    assert not proxy.faults


@pytest.mark.parametrize(
    ("command", "action", "grant"),
    [("PUT", "put", "s3:PutObject"), ("POST", "delete", "s3:DeleteObject"), ("GET", "get", "s3:GetObject")],
)
def test_a_right_that_is_missing_is_named_as_it_is_granted(
    store: S3Store, proxy: FaultyProxy, command: str, action: str, grant: str
) -> None:
    proxy.refuse = lambda asked, path, size: (403, "AccessDenied") if asked == command else None
    (found_check,) = (
        check for check in try_all(store, "_doctor/x").checks if check.name == f"right: {action}"
    )
    assert grant in found_check.todo and "AccessDenied" in found_check.what


@pytest.mark.parametrize(
    ("ahead_s", "verdict"),
    [([300], CheckVerdict.WARNING), ([0, 10], CheckVerdict.WARNING), ([0, 300], CheckVerdict.BAD)],
)
def test_a_server_whose_time_is_wrong_or_changes_is_found(
    store: S3Store, proxy: FaultyProxy, ahead_s: list[int], verdict: CheckVerdict
) -> None:
    # A client that knows no earlier answer is made with each look.
    clock = ClockReading(lambda: store, "near")
    for ahead in ahead_s:
        current_text = formatdate(time.time() + ahead, usegmt=True)
        proxy.date = lambda: current_text  # noqa: B023
        store._clock = StoreClock()
        clock.look()
    assert clock.check().verdict is verdict


@pytest.mark.parametrize(
    ("status", "code", "error", "message"),
    [
        (
            400,
            "AuthorizationHeaderMalformed",
            StorageError,
            "the bucket is in another region .*correct the region",
        ),
        (400, "InvalidToken", PermissionDenied, "refuses these credentials .InvalidToken.; check them"),
        (403, "InvalidAccessKeyId", PermissionDenied, "refuses these credentials"),
    ],
)
def test_a_store_that_cannot_be_meant_is_an_error_and_gets_no_report(
    store: S3Store, proxy: FaultyProxy, status: int, code: str, error: type[StorageError], message: str
) -> None:
    proxy.refuse = lambda command, path, size: (status, code)
    with pytest.raises(error, match=message):
        examine(lambda: store)


def test_the_address_of_a_server_has_no_user_or_key() -> None:
    opened_store = open_store(
        "s3://b/w", {"endpoint": "https://user:password@host:9000/?key=secret", "region": "r"}
    )
    assert isinstance(opened_store, S3Store) and opened_store.address == {
        "endpoint": "https://host:9000",
        "region": "r",
    }
    with pytest.raises(InvalidInput, match="'host:9000' has no scheme: write http://"):
        open_store("s3://b/w", {"endpoint": "host:9000"})


def test_the_command_prints_a_report_without_secrets_and_its_exit_code_is_the_verdict(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_servers.running("versitygw", tmp_path / "objects") as (server, name):
        place = [f"s3://{name}/w", "--endpoint", server.endpoint, "--region", server.region, "--path-style"]
        # More rounds prove more of a store, and nothing of the command.
        monkeypatch.setattr("lakelog.cli.doctor.examine", partial(examine, races_max=3))
        monkeypatch.setattr(reads, "ROUNDS", 2)
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
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        assert run(["doctor", *place]) == 1
        assert "refuses these credentials (SignatureDoesNotMatch); check them" in capfd.readouterr().err
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        assert run(["doctor", *place]) == 1
        assert "no usable AWS credentials" in capfd.readouterr().err
