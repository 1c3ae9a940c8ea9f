"""Lakelog's own client for S3, against a server that answers what a test has written down."""

from __future__ import annotations

import itertools
import os
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import certifi
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.patience import PATIENCE_S

from lakelog.log import LogOptions, PermissionDenied, StorageError
from lakelog.log.costs import CostTally, tallied
from lakelog.log.stores import s3_clients, s3_wire
from lakelog.log.stores.http_connection import HttpServer
from lakelog.log.stores.ranges import ObjectRange
from lakelog.log.stores.s3_place import BucketPlace, place_of
from lakelog.log.stores.s3_signing import S3Credentials, encoded, query_of, signed
from lakelog.log.stores.s3_store import S3Store
from lakelog.log.stores.s3_wire import ATTEMPTS_MAX, BucketClient

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def refusal(status: int, code: str, more: str = "") -> bytes:
    body = f"<Error><Code>{code}</Code></Error>"
    return f"HTTP/1.1 {status} No\r\n{more}Content-Length: {len(body)}\r\n\r\n{body}".encode()


class Scripted(socketserver.ThreadingTCPServer):
    """Gives each request the next of `answers`: bytes, or None to close without one; then EMPTY."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[bytes | None] = []
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.gate: threading.Barrier | None = None
        self.closes = False
        self.tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        made, address = super().get_request()
        return made if self.tls is None else self.tls.wrap_socket(made, server_side=True), address

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that do not trust it


class _Handler(socketserver.StreamRequestHandler):
    server: Scripted

    def handle(self) -> None:
        self.server.connections += 1
        with suppress(OSError):
            while head := self._head():
                length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
                self.server.bodies.append(self.rfile.read(int(length or 0)))
                self.server.heads.append(head)
                answer = self.server.answers.pop(0) if self.server.answers else EMPTY
                if self.server.gate is not None:
                    self.server.gate.wait(PATIENCE_S)
                if answer is None:
                    return
                self.wfile.write(answer)
                if self.server.closes or b"onnection: close" in answer or b"ength" not in answer:
                    return

    def _head(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        return b"".join(lines).decode()


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    monkeypatch.setattr(
        s3_clients, "place_of", lambda bucket, **how: (place_at(server.server_address[1]), "")
    )
    store = S3Store("s3://lake/p", endpoint="http://h", region="eu-west-1", path_style=True)
    process = store.clients._of_this_process()
    assert store.client == "lakelog"
    process.wire = BucketClient(
        place_at(server.server_address[1]), 5, 0.5, LogOptions(sleep_s=lambda seconds: None)
    )
    return store


def place_at(port: int) -> BucketPlace:
    return BucketPlace(
        HttpServer("127.0.0.1", port), "h", "/lake/", "eu-west-1", lambda: S3Credentials("k", "s", None)
    )


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD"]),
    key=st.text(st.sampled_from("abz059-_.~ +%=&/:é€*'()!"), min_size=1, max_size=20),
    query=st.dictionaries(st.sampled_from(["list-type", "prefix", "delete", "start-after"]), TEXT),
    more=st.dictionaries(st.sampled_from(["range", "if-none-match", "content-type"]), st.just("a  b")),
    body=st.binary(max_size=20),
    token=st.sampled_from([None, "token/+="]),
    day=st.integers(10, 28),
)
@settings(max_examples=30, deadline=None)
def test_signatures_are_those_of_the_aws_sdk(
    method: str,
    key: str,
    query: dict[str, str],
    more: dict[str, str],
    body: bytes,
    token: str | None,
    day: int,
) -> None:
    at, path, keys = (
        f"202601{day}T010203Z",
        f"/lake/{encoded(key, '/')}",
        S3Credentials("AK", "secret/+", token),
    )
    text = query_of(query)
    ours = signed(method, path, text, {"host": "h:9000", **more}, body, at=at, keys=keys, region="eu-west-1")
    url = f"http://h:9000{path}" + (f"?{text}" if text else "")
    request = AWSRequest(method=method, url=url, data=body, headers={"host": "h:9000", **more})
    request.context.update(timestamp=at, payload_signing_enabled=True, signing={"bucket": "lake"})
    auth = S3SigV4Auth(Credentials("AK", "secret/+", token), "s3", "eu-west-1")
    auth._modify_request_before_signing(request)
    canonical = auth.canonical_request(request)
    theirs = auth.signature(auth.string_to_sign(request, canonical), request)
    assert ours["authorization"].rpartition("Signature=")[2] == theirs, canonical
    assert "secret" not in repr(keys)


@pytest.mark.parametrize(
    "lost", [refusal(500, "InternalError"), refusal(503, "SlowDown"), None, b"HTTP/1.1 2"]
)
def test_a_conditional_put_whose_answer_is_lost_is_sent_once_and_may_have_happened(
    server: Scripted, store: S3Store, lost: bytes | None
) -> None:
    server.answers = [lost]
    with pytest.raises(StorageError) as error:
        store.put_if_absent("a", b"data")
    assert not error.value.without_effect and len(server.heads) == 1
    assert "if-none-match: *\r\n" in server.heads[0] and server.bodies == [b"data"]


@pytest.mark.parametrize(
    "lost", [refusal(500, "InternalError"), refusal(503, "SlowDown"), None, b"HTTP/1.1 2"]
)
def test_what_can_be_repeated_is_sent_so_often_and_no_more(
    server: Scripted, store: S3Store, lost: bytes | None
) -> None:
    for ask in (
        lambda: store.get("a"),
        lambda: store.put("a", b"data"),
        lambda: list(store.list_after("a/")),
        lambda: store.delete(["a"]),
    ):
        server.heads, server.answers = [], [lost] * ATTEMPTS_MAX
        with pytest.raises(StorageError):
            ask()
        assert len(server.heads) == ATTEMPTS_MAX and not server.answers
    server.answers = [lost, lost, OK]
    seen_tally = CostTally()
    with tallied(seen_tally):
        assert store.get("a") == b"ok"
    assert (seen_tally.requests["get"], seen_tally.waits) == (3, 2)


@pytest.mark.parametrize(
    ("answer", "raised", "without_effect"),
    [
        (refusal(409, "ConditionalRequestConflict"), StorageError, False),
        (refusal(403, "AccessDenied"), PermissionDenied, True),
        (refusal(404, "NoSuchBucket"), StorageError, True),
        (refusal(400, "XAmzContentSHA256Mismatch"), StorageError, True),
    ],
)
def test_a_refusal_of_a_conditional_put_is_no_lost_race(
    server: Scripted, store: S3Store, answer: bytes, raised: type[StorageError], without_effect: bool
) -> None:
    server.answers = [answer]
    with pytest.raises(raised) as error:
        store.put_if_absent("a", b"data")
    assert error.value.without_effect is without_effect and len(server.heads) == 1
    server.answers = [refusal(412, "PreconditionFailed")]
    assert store.put_if_absent("a", b"data") is False


def test_a_connection_that_the_server_closed_meanwhile_is_not_taken(server: Scripted, store: S3Store) -> None:
    server.closes = True
    for _ in range(3):
        assert store.put_if_absent("a", b"data")
        for idle in store.clients._made.wire._idle:
            while not idle.is_dropped():
                pass
    assert len(server.heads) == server.connections == 3
    server.closes = False
    for _ in range(3):
        store.put("a", b"data")
    assert server.connections == 4


def test_requests_of_one_thread_are_under_way_at_the_same_time(server: Scripted, store: S3Store) -> None:
    server.gate = threading.Barrier(5)
    server.answers = [refusal(404, "NoSuchKey"), *[OK] * 4]
    found = store.get_many(list("abcde"))
    assert sorted(found, key=bool) == [None, *[b"ok"] * 4] and server.connections == 5
    server.gate = threading.Barrier(1)
    assert store.get_many([str(number) for number in range(100)]) == [b""] * 100


def test_no_more_connections_are_made_than_allowed_and_none_waits_for_ever(
    server: Scripted, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_wire, "CONNECTIONS_MAX", 3)
    store.clients._made.wire = BucketClient(place_at(server.server_address[1]), 5, 5)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: store.get_many([f"{each}/{n}" for n in range(20)]), range(8)))
    assert found == [[b""] * 20] * 8 and server.connections <= 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLength: 0\r\n\r\n1;x=y\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nDate: now\r\n\r\nok",  # to the end of the connection
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\ncontent-length:2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    ],
)
def test_answers_in_all_the_forms_of_http_are_read(server: Scripted, store: S3Store, answer: bytes) -> None:
    server.answers = [answer, answer]
    assert store.get("a") == b"ok" and store.get("b") == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLength: 0\r\n\r\nx\r\nok\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\nLength: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon, no length\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nLength: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"length: 1\r\n" * 300 + b"\r\n",
    ],
)
def test_an_answer_that_is_not_whole_or_not_http_is_an_error(
    server: Scripted, store: S3Store, answer: bytes
) -> None:
    server.answers = [answer] * ATTEMPTS_MAX
    with pytest.raises(StorageError, match="no answer from the store"):
        store.get("a")


def test_answers_that_are_no_s3_are_errors_and_not_empty(server: Scripted, store: S3Store) -> None:
    server.answers = [OK, OK]
    with pytest.raises(StorageError):
        list(store.list_after("a/"))
    with pytest.raises(StorageError):
        store.delete(["a"])
    body = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"
    server.answers = [f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()]
    with pytest.raises(StorageError):
        list(store.list_after("a/"))


def test_a_server_that_ignores_the_range_sends_all_and_the_part_is_cut_of_it(
    server: Scripted, store: S3Store
) -> None:
    server.answers = [OK]
    assert store.get_ranges([ObjectRange("a", 1, 1)]) == [b"k"]


def test_an_answer_that_comes_before_all_was_sent_is_read(server: Scripted, store: S3Store) -> None:
    """A server that refuses a large object does not read it to its end."""
    listener = socket.create_server(("127.0.0.1", 0))
    wire = store.clients._made.wire
    wire.place = place_at(listener.getsockname()[1])

    def refuse() -> None:
        connection, _ = listener.accept()
        connection.recv(100)
        connection.sendall(refusal(403, "AccessDenied", "Connection: close\r\n"))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass
        connection.close()

    thread = threading.Thread(target=refuse)
    thread.start()
    with pytest.raises(PermissionDenied):
        store.put_if_absent("a", b"x" * 20_000_000)
    thread.join()
    listener.close()


def test_a_server_by_https_is_verified_by_the_certificates_that_the_sdk_goes_by(
    server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    public_key = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    public_key = (
        public_key.serial_number(1)
        .not_valid_before(datetime(2020, 1, 1))
        .not_valid_after(datetime(2100, 1, 1))
    )
    public_key = public_key.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False
    )
    public_key = public_key.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = tmp_path / "server.pem"
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(text + public_key.sign(key, SHA256()).public_bytes(Encoding.PEM))
    server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.tls.load_cert_chain(pem)
    for variable, value in {**ENVIRONMENT, "NO_PROXY": "*"}.items():
        monkeypatch.setenv(variable, value)
    found: list[Any] = []
    for bundle in (pem, certifi.where()):
        monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
        endpoint = f"https://localhost:{server.server_address[1]}"
        place, _ = place_of("lake", endpoint=endpoint, region="r", path_style=True)
        assert place is not None and place.host == endpoint.removeprefix("https://")
        wire = BucketClient(place, 5, 5, LogOptions(sleep_s=lambda seconds: None))
        found += [wire.calls("put_object", [{"Key": "a", "Body": b"x" * 300_000}])[0]]
    assert found[0]["ResponseMetadata"]["HTTPStatusCode"] == 200 and server.bodies == [b"x" * 300_000]
    assert isinstance(found[1], ConnectionError) and "CERTIFICATE_VERIFY_FAILED" in str(found[1])


def test_a_forked_process_has_connections_of_its_own(server: Scripted, store: S3Store) -> None:
    store.put("a", b"1")
    child = os.fork()
    if child == 0:
        own = store.clients._of_this_process().wire
        os._exit(0 if own is not None and not own._idle and store.client == "lakelog" else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.put("a", b"2")
    assert server.connections == 1


def test_a_bucket_that_is_elsewhere_is_left_to_s3fs(
    server: Scripted, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [refusal(400, "AuthorizationHeaderMalformed", "x-amz-bucket-region: eu-north-1\r\n")]
    asked: list[Any] = []

    class Files:
        def calls(self, operation: str, each: Any) -> list[Any]:
            asked.append((operation, each))
            return [{}]

    monkeypatch.setattr(store.clients, "files", Files)
    assert store.put_if_absent("a", b"1") and asked == [
        ("put_object", [{"Body": b"1", "IfNoneMatch": "*", "Key": "p/a"}])
    ]
    assert store.client.startswith("s3fs (the bucket is in another region")


def test_each_request_is_noted_as_often_as_it_is_sent(server: Scripted, store: S3Store) -> None:
    from lakelog.log.costs import CostTally, tallied

    server.answers = [None, OK, EMPTY, refusal(412, "PreconditionFailed")]
    with tallied(CostTally()) as _, tallied(tally := CostTally()):
        store.get("a")
        store.put("a", b"data")
        store.put_if_absent("b", b"more")
    assert tally.requests == {"get": 2, "put": 1, "put_if_absent": 1}
    assert (tally.bytes_read, tally.bytes_written) == (2, 8)


FIPS = {"AWS_USE_FIPS_ENDPOINT": "true"}
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "s",
    "AWS_CONFIG_FILE": "/none",
    "AWS_SHARED_CREDENTIALS_FILE": "/none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}


@pytest.mark.parametrize(
    ("bucket", "settings", "more", "found"),
    [
        ("lake", {}, {}, ("lake.s3.eu-west-1.amazonaws.com", 443, "/", "eu-west-1")),
        ("la.ke", {}, {}, ("s3.eu-west-1.amazonaws.com", 443, "/la.ke/", "eu-west-1")),
        ("lake", {}, FIPS, ("lake.s3-fips.us-west-2.amazonaws.com", 443, "/", "us-west-2")),
        ("lake", {"endpoint": "http://h:9000/s3", "path_style": True}, {}, ("h:9000", 9000, "/s3/lake/", "eu-west-1")),
        ("lake", {}, {"AWS_ENDPOINT_URL_S3": "http://h"}, ("h", 80, "/lake/", "eu-west-1")),
        ("lake--use1-az4--x-s3", {}, {}, "directory buckets"),
        ("lake", {}, {"HTTPS_PROXY": "http://proxy:1"}, "proxy"),
        ("lake", {}, {"AWS_PROFILE": "absent"}, "ProfileNotFound"),
        ("lake", {}, {"AWS_ACCESS_KEY_ID": ""}, "no credentials"),
        ("lake", {}, {"LAKELOG_S3_CLIENT": "s3fs"}, "says so"),
    ],
)  # fmt: skip
def test_places_are_those_of_the_aws_sdk_and_what_is_not_known_is_left_to_s3fs(
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    settings: dict[str, Any],
    more: dict[str, str],
    found: tuple[Any, ...] | str,
) -> None:
    for name in itertools.chain(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    region = "us-west-2" if "AWS_USE_FIPS_ENDPOINT" in more else "eu-west-1"
    for name, text in {**ENVIRONMENT, **more}.items():
        monkeypatch.setenv(name, text)
    given = {"endpoint": None, "region": region, "path_style": False, **settings}
    place, why = place_of(bucket, **given)
    if isinstance(found, str):
        assert place is None and found in why
    else:
        assert place is not None, why
        assert (place.host, place.server.port, place.path, place.region) == found
        assert (place.server.tls is not None) is (place.server.port == 443)
