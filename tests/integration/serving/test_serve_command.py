"""The commands `lakelog serve` and `lakelog token`: what they refuse, TLS, and the log."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from tests.integration.serving.issuers import AUDIENCE, issuing
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, wait_until

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.cli.options import Place
from lakelog.cli.server import ServerLog
from lakelog.cli.server.command import AccessOptions, WarehouseServer
from lakelog.rest.access import hash_of, new_token, tokens_of
from lakelog.rest.serving import RequestRecord, ServerSettings, TlsFiles

RIGHTS = (
    '[[grants]]\ncallers = ["ann"]\nwhole_warehouse = true\nverbs = ["read", "write", "create", "drop"]\n'
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a warehouse, the tokens of ann, and her rights."""
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    token = new_token()
    for name, text in (
        ("token", token),
        ("tokens", f'[tokens]\nann = "{hash_of(token)}"\n'),
        ("rights", RIGHTS),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    return tmp_path


def certified(folder: Path, name: str = "localhost", password: bytes | None = None) -> TlsFiles:
    """Write a certificate of this host, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(names)
        .issuer_name(names)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password)
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    (folder / "key.pem").chmod(0o600)
    return TlsFiles(str(folder / "cert.pem"), str(folder / "key.pem"))


@contextmanager
def command(folder: Path, *options: str) -> Iterator[tuple[str, Path]]:
    """Run the command; yield its URL, and the file that has its log."""
    log = folder / "log"
    arguments = ["serve", "--warehouse", str(folder / "w"), "--port", "0", *options]
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-m", "lakelog.cli", *arguments], stderr=out)
    try:
        wait_until(lambda: re.search(r"https?://[0-9.:]+", log.read_text()), "it said its URL")
        match = re.search(r"https?://[0-9.:]+", log.read_text())
        assert match is not None
        yield match[0].replace("0.0.0.0", "127.0.0.1"), log
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


AT = ("--host", "0.0.0.0")
TOKENS = ("--tokens", "tokens", "--rights", "rights")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (AT, "it would let all of them in: give --tokens or --issuer"),
        (("--behind-proxy",), "it would let all of them in"),
        (("--host", "::"), "it would let all of them in"),
        (("--host", "example.com"), "it would let all of them in"),
        ((*AT, *TOKENS), "tokens would travel to 0.0.0.0 in the open"),
        ((*AT, "--tls-cert", "cert", "--tls-key", "key"), "cannot be used"),
        ((*AT, *TOKENS, "--tls-cert", "cert"), "--tls-cert and --tls-key belong together"),
        (("--tokens", "tokens"), "no caller would have a right"),
        (("--rights", "rights"), "give --tokens or --issuer, too"),
        (("--issuer", "https://x.example", "--rights", "rights"), "--issuer and --audience belong together"),
        (("--audience", "x"), "--issuer and --audience belong together"),
        ((*TOKENS, "--issuer", "https://x.example", "--audience", "x"), "choose one of both"),
        ((*TOKENS, "--keys-url", "https://x.example"), "--keys-url is for --issuer"),
        (("--issuer", "http://x.example", "--audience", "x", "--rights", "rights"), "is not an https:// URL"),
        (("--tokens", "none", "--rights", "rights"), "none cannot be read"),
        (("--tokens", "tokens", "--rights", "tokens"), "tokens: the rights cannot be read"),
        (("--verbose", "--workers", "2"), "leave it or --workers out"),
    ],
)
def test_options_that_leave_a_server_open_or_contradict_each_other_are_refused(
    files: Path,
    options: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    assert run(["serve", "--warehouse", str(files / "w"), "--port", "0", *options]) in (1, 2)
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_missing_library_is_named(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for library, options in (
        ("uvicorn", ()),
        ("jwt", ("--issuer", "https://x.example", "--audience", "x", "--rights", str(files / "rights"))),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            assert run(["serve", "--warehouse", str(files / "w"), "--port", "0", *options]) == 1
        assert f"needs the package {library}, which is not installed: pip install" in capsys.readouterr().err


def test_a_key_with_a_password_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tls = certified(files, password=b"secret")
    options = ("--tls-cert", tls.certificate, "--tls-key", tls.key)
    assert run(["serve", "--warehouse", str(files / "w"), *options]) == 1
    assert "the key is encrypted" in capsys.readouterr().err


def test_a_key_that_others_may_read_or_change_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = certified(files)
    for mode, words in ((0o604, "other users may read"), (0o660, "other users may change")):
        os.chmod(tls.key, mode)
        assert (
            run(
                [
                    "serve",
                    "--warehouse",
                    str(files / "w"),
                    "--tls-cert",
                    tls.certificate,
                    "--tls-key",
                    tls.key,
                ]
            )
            == 1
        )
        assert words in capsys.readouterr().err


def test_a_missing_library_of_spans_is_named_before_a_process_starts(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    options = ("--opentelemetry", "--workers", "2")
    assert run(["serve", "--warehouse", str(files / "w"), "--port", "0", *options]) == 1
    captured = capsys.readouterr().err
    assert "needs the package opentelemetry, which" in captured and "Serving" not in captured


def test_a_process_that_cannot_serve_says_why_in_a_line(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(warehouse=str(files / "none"), endpoint=None, region=None, path_style=False, as_json=True)
    access = AccessOptions(
        issuer=None, audience=None, name_claim="sub", keys_url=None, tokens=None, rights=None
    )
    server = WarehouseServer(
        place=place,
        settings=ServerSettings(port=0),
        access=access,
        vendor=None,
        write=False,
        quiet=False,
        opentelemetry=False,
    )
    with socket.socket() as listener, pytest.raises(SystemExit):
        server(listener)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "failed" and "none" in json.loads(line)["message"]


@pytest.mark.parametrize("as_json", [False, True])
def test_no_text_of_a_client_looks_like_an_entry_of_the_log(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ServerLog(as_json=as_json, quiet=False)
    forged = "ann\n2026-01-01T00:00:00Z 10.0.0.1:1 admin GET /v1/config 200 1.0 ms\r\x1b[2K\x85\u2028x"
    record = RequestRecord(
        request_id="1",
        began_us=0,
        duration_s=0.1,
        method="GET",
        target="/x?token=hidden",
        status=200,
        body_bytes=0,
        answer_bytes=0,
        caller=forged,
        address="10.0.0.7:1",
        client=forged,
    )
    log.request(record)
    (line,) = capsys.readouterr().err.splitlines()
    assert "hidden" not in line and "\x1b" not in line
    with log.kept():
        try:
            raise ValueError(f"{forged} password=hidden")
        except ValueError:
            logging.getLogger("lakelog.rest").exception("not answered: %s token=hidden", forged)
    first_line, *traceback_lines = capsys.readouterr().err.splitlines()
    assert "hidden" not in first_line + "".join(traceback_lines) and "\x1b" not in first_line
    if as_json:
        assert not traceback_lines and "ValueError" in json.loads(first_line)["traceback"]
    else:
        assert "ValueError" in "".join(traceback_lines)
        assert all(line.startswith("    ") for line in traceback_lines)


def test_other_hosts_are_served_by_tls_to_callers_with_tokens(files: Path) -> None:
    tls = certified(files)
    token = (files / "token").read_text()
    tokens, rights = str(files / "tokens"), str(files / "rights")
    options = (*AT, "--write", "--json", "--tokens", tokens, "--rights", rights)
    with command(files, *options, "--tls-cert", tls.certificate, "--tls-key", tls.key) as (url, log):
        context = ssl.create_default_context(cafile=tls.certificate)
        assert url.startswith("https://")
        path = f"{url}/v1/namespaces?parent=&token=hidden"
        request = urllib.request.Request(path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, context=context) as answer:
            assert json.load(answer) == {"namespaces": [["shop"]]}
            request_id = answer.headers["X-Request-Id"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(path, context=context)
        with pytest.raises(OSError, match=r"(?i)closed|reset|bad status|remote end"):
            urllib.request.urlopen(path.replace("https", "http"), timeout=PATIENCE_S)
        wait_until(lambda: log.read_text().count('"event": "request"') == 2, "two requests were logged")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    good, bad = [entry for entry in entries if entry["event"] == "request"]
    assert (good["caller"], good["status"], good["method"]) == ("ann", 200, "GET")
    assert good["request_id"] == request_id and good["time"].endswith("+00:00")
    assert (bad["caller"], bad["status"]) == ("", 401)
    text = log.read_text()
    assert token not in text and "hidden" not in text and entries[0]["event"] == "serving"


def test_a_proxy_passes_requests_for_other_hosts_on(files: Path) -> None:
    with issuing() as issuer:
        options = ("--behind-proxy", "--issuer", issuer.url, "--audience", AUDIENCE)
        with command(files, *options, "--rights", str(files / "rights"), "--workers", "2") as (url, log):
            wait_until(lambda: _answers(url), "a process answered")
            headers = {"Host": "lake.example.com"}
            assert send(url, "/v1/namespaces", token=issuer.token(), headers=headers)[0] == 200
            assert send(url, "/v1/namespaces", token=issuer.token("ben"), headers=headers) == (
                200,
                {"namespaces": []},
            )
            assert send(url, "/v1/namespaces", headers=headers)[0] == 401
            wait_until(lambda: log.read_text().count("/v1/namespaces") == 3, "three requests were logged")
        assert re.search(r"Z 127\.0\.0\.1:\d+ ann GET /v1/namespaces 200 ", log.read_text())


def _answers(url: str) -> bool:
    try:
        return send(url, "/health")[0] == 200
    except OSError:
        return False


def test_a_token_is_printed_once_and_its_hash_is_for_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", 'a "b'.replace(" ", "\t")]) == 0
    captured = capsys.readouterr()
    token, line = captured.out.strip(), captured.err.partition("[tokens]: ")[2]
    assert tomllib.loads(line)
    assert tokens_of(f"[tokens]\n{line}".encode()).caller_of(token) == 'a\t"b'
    assert run(["token", "ann", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert hash_of(answer["token"]) == answer["hash"] and answer["token"] != token
    assert run(["token", ""]) == 2


def test_a_renewed_certificate_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where the time between two looks can be made short."""
    import threading

    from lakelog.rest import WarehouseAnswers, serve
    from lakelog.rest.serving import RunningServer, ServerSettings, uvicorn_server

    monkeypatch.setattr(uvicorn_server, "_TLS_TICKS", 1)
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    tls, servers, ready = (
        certified(tmp_path, "first.example"),
        list[tuple[str, RunningServer]](),
        threading.Event(),
    )

    def began(url: str, server: RunningServer) -> None:
        servers.append((url, server))
        ready.set()

    settings = ServerSettings(port=0, tls=tls)
    answers = WarehouseAnswers(Catalog(str(tmp_path / "w")))
    thread = threading.Thread(target=lambda: serve(answers, began=began, settings=settings))
    thread.start()
    assert ready.wait(PATIENCE_S)
    port = int(servers[0][0].rpartition(":")[2])
    try:
        first = ssl.get_server_certificate(("127.0.0.1", port))
        os.rename(tls.certificate, f"{tls.certificate}.old")
        certified(tmp_path, "second.example")
        wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", port)) != first, "the new one was used")
        now = ssl.get_server_certificate(("127.0.0.1", port))
        # A pair that does not fit is not used.
        (tmp_path / "cert.pem").write_text(first)
        for _ in range(20):
            assert ssl.get_server_certificate(("127.0.0.1", port)) == now
    finally:
        servers[0][1].shutdown()
        thread.join()
