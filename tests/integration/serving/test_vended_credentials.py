"""Credentials for tables: who gets which, their policies, and that clients without others work by them."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pytest
from tests.integration.iceberg.serving import served
from tests.integration.serving.recorded_moto import ROLE, RecordedServer, recorded_moto
from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog
from lakelog.rest import WarehouseAnswers, WritableAnswers
from lakelog.rest.access import (
    CREATE,
    DROP,
    READ,
    VERBS,
    WRITE,
    CallerRights,
    KnownCaller,
    NamespaceGrant,
)
from lakelog.rest.answers import HttpAnswer
from lakelog.rest.serving import RequestRecord
from lakelog.rest.vending import AssumedRole, CredentialVendor, RoleSettings, TableGrant, session_policy
from lakelog.rest.vending import role as role_module
from lakelog.testing.moto_server import ACCESS_KEY, SECRET_KEY

pytestmark = pytest.mark.s3

HEADER = "X-Iceberg-Access-Delegation"
VENDED = "vended-credentials"
SECRETS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
T = "/v1/namespaces/a/tables"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
}
ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def server() -> Iterator[RecordedServer]:
    with pytest.MonkeyPatch.context() as patch, recorded_moto(patch) as recorded_server:
        catalog = recorded_server.catalog()
        catalog.create_namespace("a")
        catalog.create_table("a.t", ROWS.schema, properties={"lakelog.iceberg.version": "2"}).append(ROWS)
        yield recorded_server


@pytest.fixture
def recorded(server: RecordedServer) -> RecordedServer:
    """The server, which has recorded nothing."""
    server.requests.clear()
    return server


def document(answer: HttpAnswer) -> Any:
    return json.loads(answer.body)


def caller(*verbs: str) -> KnownCaller:
    return KnownCaller("ann", CallerRights((NamespaceGrant(frozenset(verbs), ("a",)),)))


def is_without_credentials(answer: HttpAnswer) -> bool:
    return (
        answer.status == 200
        and document(answer)["config"] == {}
        and "storage-credentials" not in document(answer)
        and not any(word in answer.body.decode() for word in SECRETS)
    )


# What clients get


def test_pyiceberg_creates_appends_and_reads_by_vended_credentials(recorded: RecordedServer) -> None:
    from pyiceberg.catalog import load_catalog

    with served(recorded.catalog(), writes=True, vendor=recorded.vendor()) as url:
        recorded.requests.clear()
        lake: Any = load_catalog("lake", type="rest", uri=url)
        table = lake.create_table("a.new", schema=ROWS.schema)
        table.append(ROWS)
        assert lake.load_table("a.new").scan().to_arrow() == ROWS
        with lake.create_table_transaction("a.staged", schema=ROWS.schema) as transaction:
            transaction.append(ROWS)
        staged_table = lake.load_table("a.staged")
        assert staged_table.scan().to_arrow() == ROWS
        vended_ids = {table.io.properties["s3.access-key-id"], staged_table.io.properties["s3.access-key-id"]}
        credentials = lake.load_credentials("a.staged", staged_table.metadata_location)
        assert credentials["s3.access-key-id"] in vended_ids
    by_client = [request for request in recorded.requests if "aws-sdk-cpp" in request.client]
    assert {request.method for request in by_client} >= {"GET", "PUT"}
    assert {request.key_id for request in by_client} == vended_ids and ACCESS_KEY not in vended_ids
    assert all(request.token for request in by_client)
    # The server itself goes on with its own.
    others = {request.key_id for request in recorded.requests if request not in by_client}
    assert others == {ACCESS_KEY}
    assert len(recorded.sessions) == 2


def test_a_loaded_table_has_credentials_in_both_members(recorded: RecordedServer) -> None:
    answers = WarehouseAnswers(recorded.catalog(), recorded.vendor(duration_s=900))
    answer = answers.answer("GET", f"{T}/t", delegation=VENDED)
    loaded, location = document(answer), recorded.catalog().load_table("a.t").location
    (credential,) = loaded["storage-credentials"]
    assert credential["prefix"] == f"{location}/" and loaded["metadata-location"].startswith(f"{location}/")
    settings = {
        "client.region": "us-east-1",
        "s3.region": "us-east-1",
        "s3.endpoint": recorded.s3.endpoint,
        "s3.path-style-access": "true",
    }
    config = credential["config"]
    assert settings.items() <= config.items()
    assert set(config) == {*settings, *SECRETS, "s3.session-token-expires-at-ms"}
    path = "v1/namespaces/a/tables/t/credentials"
    assert loaded["config"] == {**config, "client.refresh-credentials-endpoint": path}
    (session,) = recorded.sessions
    assert (session["RoleArn"], session["DurationSeconds"]) == (ROLE, "900")
    assert session["RoleSessionName"] == f"lakelog-{recorded.catalog().load_table('a.t').id}"
    again = document(answers.answer("GET", f"/{path}"))
    assert again == {"storage-credentials": [credential]}
    assert len(recorded.sessions) == 1


def test_a_client_that_does_not_ask_gets_no_credentials(recorded: RecordedServer) -> None:
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    for header in ("", "something-new"):
        answer = answers.answer("GET", f"{T}/t", delegation=header)
        assert is_without_credentials(answer) and "ETag" in answer.headers
    body = json.dumps({"name": "plain", "schema": SCHEMA}).encode()
    assert is_without_credentials(answers.answer("POST", T, body=body))
    assert answers.answer("HEAD", f"{T}/t", delegation=VENDED).status == 204
    assert not recorded.sessions


def test_a_commit_is_answered_without_credentials(recorded: RecordedServer) -> None:
    """The protocol gives a commit no header for it, and its answer no member."""
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    updates = [{"action": "set-properties", "updates": {"x": "y"}}]
    body = json.dumps({"requirements": [], "updates": updates}).encode()
    assert is_without_credentials(answers.answer("POST", f"{T}/t", body=body, delegation=VENDED))
    assert not recorded.sessions


def test_an_answer_with_credentials_is_never_kept_or_called_unchanged(recorded: RecordedServer) -> None:
    with served(recorded.catalog(), vendor=recorded.vendor()) as url:
        address = urlsplit(url).netloc
        connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)

        def load(**headers: str) -> http.client.HTTPResponse:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", f"{T}/t", headers=names)
            answer = connection.getresponse()
            answer.read()
            return answer

        etag = load().headers["ETag"]
        assert load(If_None_Match=etag).status == 304
        vended_answer = load(If_None_Match=etag, X_Iceberg_Access_Delegation=VENDED)
        assert vended_answer.status == 200 and vended_answer.headers["ETag"] is None
        assert vended_answer.headers["Cache-Control"] == "no-store"
        connection.close()


def test_the_endpoint_of_credentials_is_there_if_there_are_any(recorded: RecordedServer) -> None:
    endpoint = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    for kind in (WarehouseAnswers, WritableAnswers):
        plain, rich = kind(recorded.catalog()), kind(recorded.catalog(), recorded.vendor())
        assert endpoint not in document(plain.answer("GET", "/v1/config"))["endpoints"]
        assert endpoint in document(rich.answer("GET", "/v1/config"))["endpoints"]
        assert plain.answer("GET", f"{T}/t/credentials", delegation=VENDED).status == 404
        assert rich.answer("GET", f"{T}/none/credentials").status == 404
        answer = rich.answer("GET", f"{T}/t/credentials")
        assert answer.status == 200 and "ETag" not in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"
        assert is_without_credentials(plain.answer("GET", f"{T}/t", delegation=VENDED))


def test_signing_is_refused_by_name_unless_the_client_takes_credentials_too(recorded: RecordedServer) -> None:
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    body = json.dumps({"name": "signed", "schema": SCHEMA}).encode()
    for method, path in (("GET", f"{T}/t"), ("POST", T)):
        answer = answers.answer(method, path, body=body, delegation="remote-signing")
        assert answer.status == 400 and b"this server signs no requests (remote-signing)" in answer.body
    assert answers.answer("GET", f"{T}/signed").status == 404
    both = answers.answer("GET", f"{T}/t", delegation="remote-signing, vended-credentials")
    assert set(SECRETS) <= document(both)["config"].keys()
    # A server that hands out nothing ignores the header, as the protocol lets it.
    plain = WritableAnswers(recorded.catalog())
    assert is_without_credentials(plain.answer("GET", f"{T}/t", delegation="remote-signing"))


# Rights


@pytest.mark.parametrize(
    ("verbs", "grant"),
    [
        ((READ,), TableGrant()),
        ((READ, CREATE, DROP), TableGrant()),
        ((READ, WRITE), TableGrant(writes=True)),
        ((READ, WRITE, DROP), TableGrant(writes=True, deletes=True)),
    ],
)
def test_the_policy_follows_the_rights_of_the_caller(
    recorded: RecordedServer, verbs: tuple[str, ...], grant: TableGrant
) -> None:
    catalog = recorded.catalog()
    location = catalog.load_table("a.t").location
    for kind, expected in ((WritableAnswers, grant), (WarehouseAnswers, TableGrant())):
        for path in (f"{T}/t", f"{T}/t/credentials"):
            answers = kind(catalog, recorded.vendor())
            assert answers.answer("GET", path, caller=caller(*verbs), delegation=VENDED).status == 200
            assert recorded.policies[-1] == session_policy(location, expected)
    assert len(recorded.sessions) == 4


def test_callers_with_other_rights_do_not_share_credentials(recorded: RecordedServer) -> None:
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    ids = [
        document(answers.answer("GET", f"{T}/t", caller=caller(*verbs), delegation=VENDED))["config"][
            "s3.access-key-id"
        ]
        for verbs in ((READ,), (READ, WRITE), (READ,), VERBS, (READ, WRITE))
    ]
    assert ids[0] == ids[2] and ids[1] == ids[4] and len(set(ids)) == 3
    assert len(recorded.sessions) == 3


def test_a_caller_without_the_right_to_read_gets_none(recorded: RecordedServer) -> None:
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    for path in (f"{T}/t", f"{T}/t/credentials", f"{T}/none/credentials"):
        for verbs in ((), (WRITE, CREATE, DROP)):
            answer = answers.answer("GET", path, caller=caller(*verbs), delegation=VENDED)
            assert answer.status == 403 and not any(word.encode() in answer.body for word in SECRETS)
    assert not recorded.sessions


def test_a_staged_creation_may_write_its_own_folder(recorded: RecordedServer) -> None:
    answers = WritableAnswers(recorded.catalog(), recorded.vendor())
    body = json.dumps({"name": "later", "schema": SCHEMA, "stage-create": True}).encode()
    answer = answers.answer("POST", T, body=body, caller=caller(READ, CREATE), delegation=VENDED)
    staged_table = document(answer)
    location = staged_table["metadata"]["location"]
    assert staged_table["storage-credentials"][0]["prefix"] == f"{location}/"
    assert set(SECRETS) <= staged_table["config"].keys()
    assert recorded.policies == [session_policy(location, TableGrant(writes=True))]
    assert answer.headers == {"Cache-Control": "no-store"}
    # After the creation the rights in the namespace count.
    body = json.dumps({"name": "now", "schema": SCHEMA}).encode()
    answer = answers.answer("POST", T, body=body, caller=caller(READ, CREATE), delegation=VENDED)
    location = document(answer)["metadata"]["location"]
    assert recorded.policies[1:] == [session_policy(location, TableGrant())]
    assert answer.headers == {"Cache-Control": "no-store"}


# Places


@pytest.mark.parametrize("folder", ["w*", "w?", "w$", "${aws:username}", 'w","*', "w ü+%2A"])
def test_a_warehouse_with_any_name_has_policies_for_its_tables_alone(
    recorded: RecordedServer, folder: str
) -> None:
    catalog = recorded.catalog(folder)
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS.schema)
    recorded.requests.clear()
    answer = WarehouseAnswers(catalog, recorded.vendor()).answer("GET", f"{T}/t", delegation=VENDED)
    (policy,) = recorded.policies
    assert policy == session_policy(table.location, TableGrant())
    assert folder in table.location and document(answer)["storage-credentials"][0]["prefix"] == (
        f"s3://{recorded.bucket}/{folder}/{table.location.partition(folder + '/')[2]}/"
    )


def test_names_of_tables_lead_to_their_own_credentials(recorded: RecordedServer) -> None:
    name = "a/b c?*${aws:username}+ü"
    catalog = recorded.catalog()
    catalog.create_namespace(("a", name))
    table = catalog.create_table(("a", name, name), ROWS.schema)
    recorded.requests.clear()
    answers = WarehouseAnswers(catalog, recorded.vendor())
    path = f"v1/namespaces/a%1F{quote(name, safe='')}/tables/{quote(name, safe='')}"
    loaded = document(answers.answer("GET", f"/{path}", delegation=VENDED))
    assert loaded["config"]["client.refresh-credentials-endpoint"] == f"{path}/credentials"
    again = document(answers.answer("GET", f"/{path}/credentials"))
    assert again["storage-credentials"] == loaded["storage-credentials"]
    assert recorded.policies == [session_policy(table.location, TableGrant())]


def test_a_clone_is_loaded_without_credentials(recorded: RecordedServer) -> None:
    """Its files are in folders of other tables. Those who ask for credentials by themselves learn it in words."""
    catalog = recorded.catalog()
    catalog.clone("a.t", "a.copy")
    answers = WarehouseAnswers(recorded.catalog(), recorded.vendor())
    assert is_without_credentials(answers.answer("GET", f"{T}/copy", delegation=VENDED))
    answer = answers.answer("GET", f"{T}/copy/credentials")
    assert answer.status == 400 and b"it is a clone, and needs files of other tables" in answer.body
    assert not recorded.sessions


def test_a_table_around_the_warehouse_is_loaded_without_credentials(recorded: RecordedServer) -> None:
    """They would reach the logs and the files of all other tables."""
    catalog = recorded.catalog("outer/data/w")
    catalog.create_namespace("a")
    catalog.create_table("a.t", ROWS.schema, location=f"s3://{recorded.bucket}/outer")
    recorded.requests.clear()
    answers = WritableAnswers(catalog, recorded.vendor())
    assert is_without_credentials(answers.answer("GET", f"{T}/t", delegation=VENDED))
    answer = answers.answer("GET", f"{T}/t/credentials")
    assert answer.status == 400 and b"the warehouse is in its folder" in answer.body
    assert not recorded.sessions


def test_a_table_elsewhere_is_loaded_without_credentials(recorded: RecordedServer, tmp_path: Any) -> None:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("a")
    catalog.create_table("a.t", ROWS.schema)
    answers = WritableAnswers(catalog, recorded.vendor())
    assert is_without_credentials(answers.answer("GET", f"{T}/t", delegation=VENDED))
    answer = answers.answer("GET", f"{T}/t/credentials")
    assert answer.status == 400 and b"they are handed out for s3:// alone" in answer.body
    body = json.dumps({"name": "later", "schema": SCHEMA, "stage-create": True}).encode()
    assert is_without_credentials(answers.answer("POST", T, body=body, delegation=VENDED))
    assert not recorded.sessions


# Failures, and the log


class FailingService:
    """Stands for botocore's client of STS, and fails."""

    def __init__(self, error: Exception) -> None:
        self.error, self.count = error, 0
        self.meta = type("Meta", (), {"endpoint_url": "https://user:pass@sts.example.com"})

    def assume_role(self, **_: Any) -> Any:
        self.count += 1
        raise self.error


def refusal(code: str, message: str) -> Exception:
    from botocore.exceptions import ClientError

    return ClientError({"Error": {"Code": code, "Message": message}}, "AssumeRole")


def silence() -> Exception:
    from botocore.exceptions import ConnectTimeoutError

    return ConnectTimeoutError(endpoint_url="https://sts.example.com")


def failing(
    recorded: RecordedServer, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> tuple[WritableAnswers, FailingService]:
    vendor, service = recorded.vendor(), FailingService(error)
    monkeypatch.setattr(vendor._role, "_client", service)
    return WritableAnswers(recorded.catalog(), vendor), service


def test_a_refusal_of_sts_is_shown_without_secrets(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    words = "User: arn:aws:iam::1:user/x may not do sts:AssumeRole"
    message = (
        f"{words}\x1b[2J; {SECRET_KEY} {ACCESS_KEY} AKIAABCDEFGHIJKLMNOP secret=hush\n"
        "The Canonical String was x-amz-security-token:FwoG-hidden"
    )
    answers, service = failing(recorded, refusal("AccessDenied", message), monkeypatch)
    with caplog.at_level(logging.DEBUG, "lakelog"):
        for path in (f"{T}/t", f"{T}/t/credentials"):
            answer = answers.answer("GET", path, delegation=VENDED)
            error = document(answer)["error"]
            assert (answer.status, error["type"]) == (503, "ServiceUnavailableException")
            assert f"sts.example.com refused it (AccessDenied: {words}" in error["message"]
    assert service.count == 2
    for text in (error["message"], caplog.text):
        for hidden in (SECRET_KEY, ACCESS_KEY, "AKIAABC", "hush", "hidden", "\x1b", "user:pass", "Canonical"):
            assert hidden not in text
    assert words in caplog.text
    # Without the header, the table is loaded as ever.
    assert is_without_credentials(answers.answer("GET", f"{T}/t"))


@pytest.mark.parametrize("code", ["PackedPolicyTooLargeException", "MalformedPolicyDocument"])
def test_a_table_whose_policy_is_refused_is_loaded_without_credentials(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    """To send the request again would change nothing."""
    answers, _ = failing(recorded, refusal(code, "110% of the space"), monkeypatch)
    with caplog.at_level(logging.ERROR, "lakelog"):
        assert is_without_credentials(answers.answer("GET", f"{T}/t", delegation=VENDED))
    assert f"{code}: 110% of the space" in caplog.text
    answer = answers.answer("GET", f"{T}/t/credentials")
    assert answer.status == 400 and code.encode() in answer.body


def test_sts_that_gives_no_answer_holds_up_one_request_alone(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, service = failing(recorded, silence(), monkeypatch)
    first, second = (
        document(answers.answer("GET", f"{T}/t", delegation=VENDED, caller=caller(*verbs)))["error"]
        for verbs in ((READ,), (READ, WRITE))
    )
    assert "sts.example.com gave no answer (ConnectTimeoutError)" in first["message"]
    assert "had no answer. Try again" in second["message"]
    assert (first["code"], second["code"], service.count) == (503, 503, 1)


def test_a_table_that_was_created_without_credentials_is_said_to_be_there(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 503 would let the client send the request again, and find its own table in the way."""
    answers, _ = failing(recorded, refusal("Throttling", "slow down"), monkeypatch)
    body = json.dumps({"name": "made", "schema": SCHEMA}).encode()
    answer = answers.answer("POST", T, body=body, delegation=VENDED)
    error = document(answer)["error"]
    assert (answer.status, error["type"]) == (500, "CommitStateUnknownException")
    assert "was made" in error["message"] and "Throttling: slow down" in error["message"]
    assert recorded.catalog().load_table("a.made").version >= 1
    # A staged creation has stored nothing.
    body = json.dumps({"name": "later", "schema": SCHEMA, "stage-create": True}).encode()
    assert answers.answer("POST", T, body=body, delegation=VENDED).status == 503


def test_an_answer_of_sts_without_credentials_is_an_error(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for keys in ({}, {"Credentials": {"AccessKeyId": "x"}}):
        vendor = recorded.vendor()
        monkeypatch.setattr(vendor._role._client, "assume_role", lambda keys=keys, **_: keys)
        answer = WarehouseAnswers(recorded.catalog(), vendor).answer("GET", f"{T}/t", delegation=VENDED)
        assert answer.status == 503 and b"has no credentials" in answer.body and b"'x'" not in answer.body


def test_an_answer_of_sts_that_is_cut_off_is_not_quoted(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from botocore.parsers import ResponseParserError

    error = ResponseParserError("invalid XML received:\nb'<SecretAccessKey>hidden-key</Secr'")
    answers, _ = failing(recorded, error, monkeypatch)
    with caplog.at_level(logging.DEBUG):
        answer = answers.answer("GET", f"{T}/t", delegation=VENDED)
    assert answer.status == 503 and b"gave no answer (ResponseParserError)" in answer.body
    assert "hidden-key" not in caplog.text and b"hidden-key" not in answer.body


def test_a_refusal_is_not_quoted_if_the_own_secrets_are_not_known(
    recorded: RecordedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import MetadataRetrievalError

    def get_credentials() -> Any:
        raise MetadataRetrievalError(error_msg="no metadata")

    answers, _ = failing(recorded, refusal("AccessDenied", "its key is hidden-key"), monkeypatch)
    assert answers._vendor is not None
    monkeypatch.setattr(answers._vendor._role._session, "get_credentials", get_credentials)
    answer = answers.answer("GET", f"{T}/t", delegation=VENDED)
    assert answer.status == 503 and b"hidden-key" not in answer.body
    assert b"AccessDenied: its words are not shown" in answer.body


def test_the_log_of_a_server_has_no_credentials(
    recorded: RecordedServer, caplog: pytest.LogCaptureFixture
) -> None:
    records: list[RequestRecord] = []
    with (
        caplog.at_level(logging.DEBUG, "lakelog"),
        served(recorded.catalog(), vendor=recorded.vendor(), asked=records.append) as url,
    ):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
        connection.request("GET", f"{T}/t", headers={HEADER: VENDED})
        config = json.loads(connection.getresponse().read())["config"]
        connection.close()
    assert [record.status for record in records] == [200]
    text = caplog.text + str(records) + str([record.members for record in records])
    for name in SECRETS:
        assert len(config[name]) > 8 and config[name] not in text


def test_the_logs_of_libraries_have_no_credentials_at_any_level(
    recorded: RecordedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """botocore logs whole requests and answers at level DEBUG."""
    parsers = logging.getLogger("botocore.parsers")
    levels = {logger: logger.level for logger in (logging.getLogger("botocore"), parsers)}
    try:
        with caplog.at_level(logging.DEBUG):
            parsers.setLevel(logging.DEBUG)
            s3 = recorded.s3
            vendor = CredentialVendor(
                AssumedRole(RoleSettings(arn=ROLE, endpoint=s3.endpoint, region=s3.region))
            )
            answer = WarehouseAnswers(recorded.catalog(), vendor).answer("GET", f"{T}/t", delegation=VENDED)
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
    config = document(answer)["config"]
    assert all(len(config[name]) > 8 and config[name] not in caplog.text for name in SECRETS)
    assert SECRET_KEY not in caplog.text


def test_a_request_for_credentials_ends_soon() -> None:
    """It takes a thread that answers."""
    config = AssumedRole(RoleSettings(arn=ROLE, region="us-east-1"))._client.meta.config
    attempts = role_module.ATTEMPTS_MAX
    assert config.retries["total_max_attempts"] == attempts
    assert (config.connect_timeout + config.read_timeout) * attempts <= 20
