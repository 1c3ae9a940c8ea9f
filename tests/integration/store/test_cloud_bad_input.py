"""Bad locations, options and credentials of Google Cloud Storage and Azure: a clear error, and no secret in it."""

from __future__ import annotations

import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakelog.log import InvalidInput, PermissionDenied, StorageError, Unsupported, canonical_url, open_store
from lakelog.log.costs import CostTally, tallied
from lakelog.log.stores import endpoint_option
from lakelog.log.stores.cloud_errors import (
    AZURE,
    GOOGLE,
    NoCredentials,
    answer_of,
    is_absent,
    is_taken,
    meaning,
)
from lakelog.log.stores.s3_errors import are_credentials_unusable

NOWHERE = "http://127.0.0.1:9"
HOME = "abfss://box@account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("gs://bucket//w/", "gs://bucket/w"),
        ("gcs://bucket/w", "gs://bucket/w"),
        ("abfss://box@account.dfs.core.windows.net/w/", f"{HOME}/w"),
        ("abfs://box@account.blob.core.windows.net/w", f"{HOME}/w"),
        ("az://box@account/w", f"{HOME}/w"),
        ("azure://box@account", HOME),
        (
            "abfss://a-b@account.dfs.core.chinacloudapi.cn/w",
            "abfss://a-b@account.dfs.core.chinacloudapi.cn/w",
        ),
    ],
)
def test_a_location_has_one_spelling(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical
    assert canonical_url(canonical) == canonical


@pytest.mark.parametrize(
    "url",
    ["gs:///w", "gs://key:secret@bucket/w", "abfss://@account/w", "abfss://box@/w", "abfss://Box@account/w"]
    + ["abfss://box@account:secret/w", "abfss://a@b@account/w", "abfss://box@127.0.0.1/w"],
)
def test_a_location_of_no_bucket_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidInput) as raised:
        canonical_url(url)
    assert "key:secret" not in str(raised.value)


def test_the_environment_names_an_account_that_the_url_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidInput, match="names no account: write abfss://container@account"):
        canonical_url("az://box/w")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert canonical_url("az://box/w") == f"{HOME}/w"


def test_options_are_known_and_keys_are_no_options() -> None:
    with pytest.raises(InvalidInput, match="has no scheme: write http"):
        open_store("gs://bucket", {"gcs_endpoint": "127.0.0.1:9"})
    with pytest.raises(InvalidInput, match="AZURE_STORAGE_ACCOUNT_KEY"):
        open_store(HOME, {"account_key": "secret"})
    assert endpoint_option("gs://bucket") == "gcs_endpoint" and endpoint_option(HOME) == "azure_endpoint"
    assert endpoint_option("s3://bucket") == endpoint_option("/folder") == "endpoint"


@pytest.mark.parametrize("host", ["storage.googleapis.com", "bucket.storage.googleapis.com:443"])
def test_googles_s3_interface_is_refused_before_the_first_commit(host: str) -> None:
    store = open_store("s3://bucket/w", {"endpoint": f"https://{host}"})
    tally = CostTally()
    with tallied(tally), pytest.raises(Unsupported, match="has no condition for a put; use gs://bucket"):
        store.put_if_absent("a", b"x")
    assert not tally.requests


@pytest.mark.parametrize(("url", "advice"), [("gs://bucket/w", "gcloud auth"), (f"{HOME}/w", "az login")])
def test_credentials_that_cannot_be_read_are_named(
    url: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "key.json"
    broken.write_text('{"private_key": "sesame"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(broken))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "sesame!")
    store = open_store(url)
    for request in (
        lambda: store.get("a"),
        lambda: store.put_if_absent("a", b""),
        lambda: list(store.list_after("")),
    ):
        with pytest.raises(PermissionDenied, match=f"no usable credentials for .*{advice}") as raised:
            request()
        assert raised.value.without_effect and are_credentials_unusable(raised.value)
        assert "sesame" not in "".join(traceback.format_exception(raised.value))


def test_a_signature_in_the_environment_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2024-11-04&sig=sesame")
    store = open_store(f"{HOME}/w", {"azure_endpoint": f"{NOWHERE}/account"})
    for request in (
        lambda: store.get("a"),
        lambda: store.put("a", b""),
        lambda: list(store.list_after("")),
        lambda: store.now_us(),
    ):
        with pytest.raises(StorageError, match="no answer from the store at http://127.0.0.1:9") as raised:
            request()
        assert not raised.value.without_effect
        assert "sesame" not in "".join(traceback.format_exception(raised.value, chain=True))
        assert "sesame" not in repr(raised.value.__cause__)


def test_only_a_status_and_a_code_decide_what_a_failure_means() -> None:
    def answer(text: str, path: str = "w/a") -> Exception:
        return answer_of("put", OSError(f"Object at location {path}: {text}\n\nDebug source: 500"), path, 0)

    refused = "Server returned non-2xx status code: {}: <Error><Code>{}</Code></Error>".format
    for words, status, code, taken in (
        (AZURE, "409 Conflict", "BlobAlreadyExists", True),
        (AZURE, "412 Precondition Failed", "ConditionNotMet", True),
        (AZURE, "409 Conflict", "ContainerBeingDeleted", False),
        (AZURE, "409 Conflict", "LeaseIdMissing", False),
        (GOOGLE, "412 Precondition Failed", "PreconditionFailed", True),
        (GOOGLE, "409 Conflict", "BlobAlreadyExists", False),
    ):
        failure = answer(refused(status, code))
        assert is_taken(failure, words) == taken
        known = meaning("create", "place", failure, words, bucket="b", endpoint="")
        assert isinstance(known, StorageError) and not known.without_effect
    assert is_absent(answer(refused("404 Not Found", "NoSuchKey")), GOOGLE)
    assert not is_absent(answer(refused("404 Not Found", "NoSuchBucket")), GOOGLE)
    assert not is_absent(answer("Server returned non-2xx status code: 404 Not Found: "), AZURE)
    assert is_absent(answer(refused("404 Not Found", "BlobNotFound")), AZURE)
    # An anonymous client of a private container gets this for each object. So the log would seem to be gone.
    anonymous = answer(refused("404 Not Found", "ResourceNotFound"))
    assert not is_absent(anonymous, AZURE)
    with pytest.raises(PermissionDenied, match="refuses these credentials"):
        raise meaning("read", "place", anonymous, AZURE, bucket="b", endpoint="")
    # A name is no answer.
    name = refused("412", "NoSuchKey")
    assert not is_taken(answer("HTTP error: error sending request", name), GOOGLE)


@pytest.mark.parametrize(("status", "may_pass"), [(503, True), (429, True), (400, False), (403, False)])
def test_a_server_of_tokens_that_is_overloaded_gets_the_request_again(status: int, may_pass: bool) -> None:
    text = f"Error performing token request: Server returned non-2xx status code: {status} No"
    failure = answer_of("put_if_absent", OSError(text), "w/a", 0)
    assert isinstance(failure, NoCredentials) and failure.may_pass == may_pass


def test_az_without_a_login_is_about_credentials() -> None:
    text = (
        "Generic MicrosoftAzure error: 'az account get-access-token' command failed: Azure Cli not installed"
    )
    assert isinstance(answer_of("get", OSError(text), "w/a", 0), NoCredentials)


@pytest.mark.parametrize("path", ["a", "status", "code", "e", "w"])
def test_a_short_name_hides_no_answer(path: str) -> None:
    text = f"Error performing GET http://host/b?prefix={path}%2F - Server returned non-2xx status code: 404 Not Found: "
    failure = answer_of("list", OSError(f"{text}<Error><Code>NoSuchBucket</Code></Error>"), path, 0)
    known = meaning("list", "place", failure, GOOGLE, bucket="b", endpoint="")
    assert "there is no bucket" in str(known)


@pytest.mark.parametrize("host", ["login.microsoftonline", "metadata.google.internal", "169.254.169.254"])
def test_a_name_like_the_host_of_tokens_leaves_a_lost_answer_uncertain(host: str) -> None:
    path = f"from={host}.com/_log/1.json"
    text = f"Error performing PUT http://host/b/from%3D{host}.com/_log/1.json - HTTP error: error sending request"
    failure = answer_of("put_if_absent", OSError(text), path, 0)
    known = meaning("create", "place", failure, AZURE, bucket="b", endpoint="")
    assert isinstance(known, StorageError) and not isinstance(known, PermissionDenied)
    assert not known.without_effect


def test_the_time_is_asked_without_the_user_of_the_endpoint() -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if heads:
                self.wfile.write(b"no HTTP\r\n\r\n")
                return
            heads.append(str(self.headers.get("Authorization")))
            self.send_response(403)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    heads: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://user:sesame@127.0.0.1:{server.server_address[1]}"
        assert open_store("gs://bucket/w", {"gcs_endpoint": endpoint}).now_us() is not None
        assert heads == ["None"]
        with pytest.raises(StorageError, match="no answer from the store"):
            open_store("gs://bucket/w", {"gcs_endpoint": endpoint}).now_us()
        server.shutdown()
