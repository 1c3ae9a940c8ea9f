"""Tokens: of an issuer and of a file; each way in which a token is bad is refused, and says why."""

from __future__ import annotations

import base64
import errno
import hmac
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.integration.iceberg.serving import served
from tests.integration.serving.issuers import AUDIENCE, FakeIssuer, ec_key, issuing, published, rsa_key
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, wait_until

from lakelog.catalog import Catalog
from lakelog.log.errors import InvalidInput
from lakelog.rest.access import (
    IssuerGate,
    IssuerUnavailable,
    ReloadedFile,
    TokenGate,
    UnknownCaller,
    hash_of,
    issuers,
    new_token,
    rights_of,
    tokens_of,
)
from lakelog.rest.access.issuers import TokenIssuer

NAMESPACES = "/v1/namespaces"
RIGHTS = """
[[grants]]
callers = ["ann"]
whole_warehouse = true
verbs = ["read", "write", "create", "drop"]
"""


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    with issuing() as issuer:
        yield issuer


def gate_of(issuer: FakeIssuer, tmp_path: Path, **options: Any) -> IssuerGate:
    rights = ReloadedFile(written(tmp_path / "rights.toml", RIGHTS), rights_of)
    return IssuerGate(TokenIssuer(issuer.url, AUDIENCE, **options), rights)


@pytest.fixture
def url(issuer: FakeIssuer, tmp_path: Path) -> Iterator[str]:
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    with served(str(tmp_path / "w"), writes=True, gate=gate_of(issuer, tmp_path)) as url:
        yield url


def test_good_tokens_of_both_algorithms_are_accepted(url: str, issuer: FakeIssuer) -> None:
    for token in (
        issuer.token(),
        issuer.token(key=ec_key("b"), key_id="b", algorithm="ES256"),
        issuer.token(aud=["another", AUDIENCE]),
        issuer.token(header={"typ": "at+jwt"}),
        issuer.token(nbf=time.time() - 5),
    ):
        assert send(url, NAMESPACES, token=token) == (200, {"namespaces": [["shop"]]})


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


DEEP = base64.urlsafe_b64encode(b"[" * 11_000).decode().rstrip("=")
"""Lists in lists, more than Python's parser can have."""


def with_claims(issuer: FakeIssuer, **claims: Any) -> str:
    """Return a token with claims that PyJWT makes no token of."""
    payload = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300, **claims}
    text = f"{encoded({'alg': 'RS256', 'kid': 'a', 'typ': 'JWT'})}.{encoded(payload)}"
    signature = rsa_key("a").sign(text.encode(), PKCS1v15(), SHA256())
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def signed_with_the_public_key(issuer: FakeIssuer) -> str:
    """Return a token whose signature is an HMAC with the text of the issuer's public key for its secret."""
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300}
    text = f"{encoded({'alg': 'HS256', 'kid': 'a', 'typ': 'JWT'})}.{encoded(claims)}"
    public_key = rsa_key("a").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signature = hmac.digest(public_key, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def unsigned(issuer: FakeIssuer) -> str:
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300}
    return f"{encoded({'alg': 'none', 'kid': 'a', 'typ': 'JWT'})}.{encoded(claims)}."


def with_other_claims(issuer: FakeIssuer) -> str:
    header, _, signature = issuer.token("ben").split(".")
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300}
    return f"{header}.{encoded(claims)}.{signature}"


BAD_TOKENS = {
    "expired": (lambda issuer: issuer.token(exp=time.time() - 60), 419, "has expired"),
    "without an end": (lambda issuer: issuer.token(exp=None), 401, "no claim exp"),
    "not valid yet": (lambda issuer: issuer.token(nbf=time.time() + 600), 401, "not valid yet"),
    "made in the future": (lambda issuer: issuer.token(iat=time.time() + 600), 401, "not valid yet"),
    "of another audience": (lambda issuer: issuer.token(aud="other"), 401, "another audience"),
    "of other audiences": (lambda issuer: issuer.token(aud=["x", "y"]), 401, "another audience"),
    "without an audience": (lambda issuer: issuer.token(aud=None), 401, "no claim aud"),
    "of another issuer": (lambda issuer: issuer.token(iss="https://other.example"), 401, "another issuer"),
    "without an issuer": (lambda issuer: issuer.token(iss=None), 401, "no claim iss"),
    "of another key": (lambda issuer: issuer.token(key=rsa_key("x")), 401, "signature"),
    "of an unknown key": (lambda issuer: issuer.token(key=rsa_key("x"), key_id="x"), 401, "does not publish"),
    "without a key's id": (lambda issuer: issuer.token(key_id=None), 401, "does not publish"),
    "of a key of another algorithm": (
        lambda issuer: issuer.token(key=ec_key("b"), key_id="a", algorithm="ES256"),
        401,
        "does not publish",
    ),
    "of RS512": (lambda issuer: issuer.token(algorithm="RS512"), 401, "not signed by RS256 or ES256"),
    "unsigned": (unsigned, 401, "not signed by RS256 or ES256"),
    "signed by HS256 with the public key": (signed_with_the_public_key, 401, "not signed by RS256 or ES256"),
    "with other claims": (with_other_claims, 401, "signature"),
    "for another purpose": (
        lambda issuer: issuer.token(header={"typ": "logout+jwt"}),
        401,
        "another purpose",
    ),
    "with extensions": (
        lambda issuer: issuer.token(header={"crit": ["x"], "x": 1}),
        401,
        "is refused",
    ),
    "without a name": (lambda issuer: issuer.token(sub=None), 401, "claim sub has no name"),
    "with an empty name": (lambda issuer: issuer.token(""), 401, "claim sub has no name"),
    "with a number for a name": (lambda issuer: issuer.token(sub=7), 401, "wrong"),
    "with a number for its issuer": (lambda issuer: with_claims(issuer, iss=7), 401, "refused"),
    "with an endless time": (lambda issuer: issuer.token(nbf=float("inf")), 401, "wrong"),
    "with a nested header": (lambda issuer: f"{DEEP}.e30.AAAA", 401, "not in the form of a JWT"),
    "with a nested body": (
        lambda issuer: f"{issuer.token().split('.')[0]}.{DEEP}.AAAA",
        401,
        "wrong",
    ),
    "no JWT": (lambda issuer: "abc", 401, "not in the form of a JWT"),
    "cut": (lambda issuer: issuer.token()[:-20], 401, "is refused"),
    "too long": (lambda issuer: "a" * 20_000, 401, "longer than"),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_bad_token_is_refused(url: str, issuer: FakeIssuer, kind: str, tmp_path: Path) -> None:
    make, status, words = BAD_TOKENS[kind]
    token = make(issuer)
    for method, path, body in (
        ("GET", NAMESPACES, None),
        ("GET", "/v1/config", None),
        ("POST", NAMESPACES, {"namespace": ["evil"]}),
    ):
        number, error = send(url, path, method, body, token=token)
        assert (number, error["code"]) == (status, status) and words in error["message"]
        assert token not in error["message"]
    assert Catalog(str(tmp_path / "w")).list_namespaces() == [("shop",)]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YW5uOmFubg=="},
        {"Authorization": "Bearer \u00e9"},
    ],
)
def test_a_request_without_a_token_is_refused(url: str, headers: dict[str, str]) -> None:
    status, error = send(url, NAMESPACES, headers=headers)
    assert status == 401 and error["type"] == "NotAuthorizedException" and "Bearer" in error["message"]


def test_probes_need_no_token_and_show_nothing(url: str) -> None:
    assert send(url, "/health") == (200, {"status": "alive"})
    assert send(url, "/ready") == (200, {"status": "ready"})
    assert send(url, "/health", "POST")[0] == 405


def test_a_new_key_is_fetched_once_in_a_while(
    url: str, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of tokens with made-up key ids makes no flood of requests to the issuer."""
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 2 * PATIENCE_S)
    for number in range(20):
        assert send(url, NAMESPACES, token=issuer.token(key=rsa_key("x"), key_id=f"k{number}"))[0] == 401
    assert issuer.fetches == 1
    issuer.keys = [published(rsa_key("new"), "new")]
    token = issuer.token(key=rsa_key("new"), key_id="new")
    assert send(url, NAMESPACES, token=token)[0] == 401
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 0.0)
    assert send(url, NAMESPACES, token=token)[0] == 200
    # A key that the issuer publishes no more signs nothing any more.
    assert send(url, NAMESPACES, token=issuer.token())[0] == 401
    assert issuer.fetches == 3


def test_keys_outlive_an_issuer_that_is_down_for_a_while(
    url: str, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.is_down = True
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 0.0)
    monkeypatch.setattr(issuers, "KEYS_AGE_S", 0.0)
    assert send(url, NAMESPACES, token=issuer.token())[0] == 200
    monkeypatch.setattr(issuers, "KEYS_AGE_MAX_S", 0.0)
    status, error = send(url, NAMESPACES, token=issuer.token())
    assert status == 503 and "could not be fetched" in error["message"]


def test_an_issuer_that_is_slow_holds_up_only_tokens_of_unknown_keys(
    url: str, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 0.0)
    monkeypatch.setattr(issuers, "FETCH_TIMEOUT_S", PATIENCE_S)
    fetches = issuer.fetches
    unknown_token = issuer.token(key=rsa_key("x"), key_id="x")
    issuer.answers.clear()
    try:
        # The server fetches old keys by itself. Until the issuer answers, there are no newer keys.
        monkeypatch.setattr(issuers, "KEYS_AGE_S", 0.0)
        wait_until(lambda: issuer.fetches > fetches, "the keys were fetched without a request")
        for _ in range(5):
            assert send(url, NAMESPACES, token=issuer.token())[0] == 200
            status, error = send(url, NAMESPACES, token=unknown_token)
            assert status == 503 and "being fetched" in error["message"]
    finally:
        issuer.answers.set()
    monkeypatch.setattr(issuers, "KEYS_AGE_S", 2 * PATIENCE_S)
    wait_until(lambda: send(url, NAMESPACES, token=unknown_token)[0] == 401, "the keys were there")


def test_a_token_of_an_unknown_key_is_not_called_bad_while_newer_keys_cannot_be_had(
    url: str, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 0.0)
    issuer.keys.append(published(rsa_key("new"), "new"))
    issuer.is_down = True
    token = issuer.token(key=rsa_key("new"), key_id="new")
    status, error = send(url, NAMESPACES, token=token)
    assert status == 503 and "cannot be had now" in error["message"] and issuer.url not in error["message"]
    issuer.is_down = False
    assert send(url, NAMESPACES, token=token)[0] == 200


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"no HTTP at all", "cannot be read"),
        (b"HTTP/1.0 200 \r\n\r\n\xff", "has no JSON"),
        (b'HTTP/1.0 200 \r\n\r\n{"keys": "\xff"}', "has no JSON"),
        (b"HTTP/1.0 200 \r\n\r\n" + b"[" * 100_000, "has no JSON"),
        (b"HTTP/1.0 200 \r\n\r\n[]", "has no JSON object"),
        (b"HTTP/1.0 200 \r\n\r\n" + b" " * (1 << 21), "has more than"),
        (b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "cannot be read"),
        (b"HTTP/1.0 302 \r\nLocation: http://127.0.0.1:1/\r\n\r\n", "cannot be read"),
    ],
)
def test_an_issuer_that_answers_nonsense_changes_no_keys(
    issuer: FakeIssuer,
    raw: bytes,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(issuers, "FETCH_EVERY_S", 0.0)
    verifier = TokenIssuer(issuer.url, AUDIENCE)
    issuer.raw = raw
    with pytest.raises(IssuerUnavailable, match=words):
        TokenIssuer(issuer.url, AUDIENCE)
    with pytest.raises(IssuerUnavailable, match="cannot be had now"):
        verifier.caller_of(issuer.token(key_id="x"))
    assert words in caplog.text
    assert verifier.caller_of(issuer.token()) == "ann"


def test_unfit_keys_of_an_issuer_are_not_used(issuer: FakeIssuer, tmp_path: Path) -> None:
    secret = {"kty": "oct", "kid": "s", "k": "c2VjcmV0"}
    small = published(rsa_key("small", 1024), "small")
    other_curve = published(ec.generate_private_key(ec.SECP384R1()), "p384")
    for unfit in (
        secret,
        small,
        other_curve,
        published(rsa_key("a"), "a", use="enc"),
        published(rsa_key("a"), "a", key_ops=["encrypt"]),
        published(rsa_key("a"), "a", alg="RS512"),
        published(rsa_key("a"), "a", key_ops=7),
        {"kty": "RSA", "kid": "a", "n": "!", "e": "AQAB"},
        "no key",
    ):
        issuer.keys = [unfit]  # type: ignore[list-item]
        with pytest.raises(InvalidInput, match="no key for RS256 or ES256"):
            gate_of(issuer, tmp_path)


def test_keys_with_the_same_id_all_count(issuer: FakeIssuer, tmp_path: Path) -> None:
    issuer.keys = [published(key, "same") for key in (rsa_key("a"), ec_key("b"), rsa_key("c"), ec_key("d"))]
    verifier = TokenIssuer(issuer.url, AUDIENCE)
    for key, algorithm in (
        (rsa_key("a"), "RS256"),
        (ec_key("b"), "ES256"),
        (rsa_key("c"), "RS256"),
        (ec_key("d"), "ES256"),
    ):
        assert verifier.caller_of(issuer.token(key=key, key_id="same", algorithm=algorithm)) == "ann"
        with pytest.raises(UnknownCaller, match="has expired"):
            verifier.caller_of(issuer.token(key=key, key_id="same", algorithm=algorithm, exp=1))
    for key, algorithm in ((rsa_key("other"), "RS256"), (ec_key("other"), "ES256")):
        with pytest.raises(UnknownCaller, match="its signature or its form is wrong"):
            verifier.caller_of(issuer.token(key=key, key_id="same", algorithm=algorithm))
    # Several keys are no only key.
    with pytest.raises(UnknownCaller, match="does not publish"):
        verifier.caller_of(issuer.token(key_id=None))


def test_an_issuer_that_names_itself_otherwise_or_has_no_tls_is_refused(
    issuer: FakeIssuer, tmp_path: Path
) -> None:
    issuer.named_issuer = "https://other.example"
    with pytest.raises(InvalidInput, match="is about the issuer 'https://other.example'"):
        gate_of(issuer, tmp_path)
    for address in ("http://issuer.example", "ftp://issuer.example", "issuer.example", "", "https://[::1"):
        with pytest.raises(InvalidInput, match="is not an https:// URL"):
            TokenIssuer(address, AUDIENCE)
    with pytest.raises(InvalidInput, match="is not an https:// URL"):
        TokenIssuer(issuer.url, AUDIENCE, keys_url="http://keys.example/keys")
    issuer.is_down = True
    with pytest.raises(IssuerUnavailable):
        gate_of(issuer, tmp_path)


def test_the_name_comes_from_the_claim_that_the_server_is_given(issuer: FakeIssuer, tmp_path: Path) -> None:
    gate = gate_of(issuer, tmp_path, name_claim="client_id", keys_url=f"{issuer.url}/keys")
    assert gate.caller_of([f"bearer {issuer.token('x', client_id='ann')}"]).name == "ann"


def test_pyiceberg_gets_tokens_and_renews_them(
    url: str, issuer: FakeIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog import load_catalog

    monkeypatch.setattr(issuers, "LEEWAY_S", 3600)
    issuer.lifetime_s = -60.0
    lake = load_catalog(
        "lake",
        type="rest",
        uri=url,
        credential="ann:secret",
        **{"oauth2-server-uri": f"{issuer.url}/token"},
    )
    assert lake.list_namespaces() == [("shop",)]
    issuer.lifetime_s = 300.0
    monkeypatch.setattr(issuers, "LEEWAY_S", 30)
    lake.create_namespace("more")
    assert {entry.user for entry in Catalog(str(tmp_path / "w")).audit()} >= {"ann"}


# Tokens of a file


@pytest.fixture
def token() -> str:
    return new_token()


def tokens_text(**tokens: str) -> str:
    return "[tokens]\n" + "".join(f'{name} = "{hash_of(token)}"\n' for name, token in tokens.items())


def test_a_token_of_the_file_is_known_by_its_hash(tmp_path: Path, token: str) -> None:
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    tokens = ReloadedFile(
        written(tmp_path / "tokens.toml", tokens_text(ann=token)), tokens_of, secret=True, check_every_s=0.1
    )
    rights = ReloadedFile(written(tmp_path / "rights.toml", RIGHTS), rights_of)
    with served(str(tmp_path / "w"), gate=TokenGate(tokens, rights)) as url:
        assert send(url, NAMESPACES, token=token) == (200, {"namespaces": [["shop"]]})
        for bad in (new_token(), hash_of(token), token[:-1], token.upper(), f"{token} x", "password"):
            assert send(url, NAMESPACES, token=bad)[0] == 401
        # A token that is taken away counts no more, without a restart.
        written(tmp_path / "tokens.toml", tokens_text(ben=new_token()))
        wait_until(lambda: send(url, NAMESPACES, token=token)[0] == 401, "the file was read again")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read"),
        ("tokens = 3", "cannot be read"),
        ("[tokens]\nann = 'plain-token'", "is not a hash"),
        ("[tokens]\nann = 'sha256:abc'", "is not a hash"),
        (f"[tokens]\n'' = '{hash_of('x')}'", "has no name"),
        (f"[tokens]\nann = '{hash_of('x')}'\nben = ['{hash_of('x')}']", "have the same token"),
    ],
)
def test_a_file_of_tokens_that_is_wrong_is_refused_and_not_quoted(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tokens_of(text.encode())
    assert words in refused.value.message and "plain-token" not in refused.value.message


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o604, "other users may read"),
        (0o644, "other users may read"),
        (0o620, "other users may change"),
        (0o602, "other users may change"),
    ],
)
def test_a_file_of_tokens_that_others_may_read_or_change_is_refused(
    tmp_path: Path, token: str, mode: int, words: str
) -> None:
    path = written(tmp_path / "tokens.toml", tokens_text(ann=token), mode)
    with pytest.raises(InvalidInput, match=words):
        ReloadedFile(path, tokens_of, secret=True)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        ReloadedFile(str(tmp_path / "none"), rights_of)
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        ReloadedFile(str(tmp_path), rights_of)
    with pytest.raises(InvalidInput, match="other users may change"):
        ReloadedFile(written(tmp_path / "rights.toml", RIGHTS, 0o666), rights_of)
    if os.geteuid() == 0:
        path = written(tmp_path / "rights.toml", RIGHTS)
        os.chown(path, 12345, -1)
        with pytest.raises(InvalidInput, match="belongs to another user"):
            ReloadedFile(path, rights_of)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InvalidInput, match="is no file"):
        ReloadedFile(str(tmp_path / "pipe"), rights_of)


def test_a_file_that_becomes_wrong_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rights.toml"
    rights = ReloadedFile(written(path, RIGHTS), rights_of, check_every_s=0.0)
    before = rights.value
    for text, mode in (("[[grants", 0o600), (RIGHTS.replace("ann", "ben"), 0o666)):
        caplog.clear()
        written(path, text, mode)
        wait_until(lambda: rights.value is not before or "is not used" in caplog.text, "the file was read")
        assert rights.value is before
    path.unlink()
    assert rights.value is before
    written(path, RIGHTS.replace("ann", "cid"))
    wait_until(lambda: rights.value is not before, "the good file was read")
    assert set(rights.value.callers) == {"cid"}


def test_a_token_that_was_taken_away_is_refused_however_long_its_owner_was_silent(
    tmp_path: Path, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first look at a new file may not be that of the next request, which would be answered by the old file."""
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    path = tmp_path / "tokens.toml"
    tokens = ReloadedFile(written(path, tokens_text(ann=token)), tokens_of, secret=True, check_every_s=0.1)
    rights = ReloadedFile(written(tmp_path / "rights.toml", RIGHTS), rights_of, check_every_s=0.1)
    with served(str(tmp_path / "w"), gate=TokenGate(tokens, rights)) as url:
        assert send(url, NAMESPACES, token=token)[0] == 200
        written(path, tokens_text(ben=new_token()))
        wait_until(lambda: f"{path} has changed" in caplog.text, "the server looked at its files by itself")
        assert send(url, NAMESPACES, token=token)[0] == 401


def test_a_file_that_was_refused_is_used_once_its_mode_is_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rights.toml"
    rights = ReloadedFile(written(path, RIGHTS), rights_of, check_every_s=0.0)
    before = rights.value
    written(path, RIGHTS.replace("ann", "ben"), 0o666)
    wait_until(lambda: rights.value is before and "chmod go-w" in caplog.text, "the file was refused")
    path.chmod(0o600)
    wait_until(lambda: rights.value is not before, "the file was read again")
    assert set(rights.value.callers) == {"ben"}


def test_a_file_that_cannot_be_opened_for_a_moment_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process may have no more open files at the very moment at which a right is taken away."""
    path = tmp_path / "rights.toml"
    rights = ReloadedFile(written(path, RIGHTS), rights_of, check_every_s=0.0)
    before = rights.value
    written(path, RIGHTS.replace("ann", "ben"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *arguments: fail(errno.EMFILE))
        for _ in range(5):
            assert rights.value is before
    assert caplog.text.count("is not used") == 1
    assert set(rights.value.callers) == {"ben"}


def fail(code: int) -> int:
    raise OSError(code, os.strerror(code))


def test_half_of_a_file_does_not_count(tmp_path: Path) -> None:
    """Half of it may grant more than all of it: an exception that stands below a grant, for example."""
    path = tmp_path / "rights.toml"
    rights = ReloadedFile(written(path, RIGHTS), rights_of, check_every_s=0.0)
    before = rights.value
    written(path, RIGHTS.replace("ann", "ben"))
    assert rights.value is before  # it is looked at, and may still be written
    written(path, RIGHTS.replace("ann", "cid"))
    assert rights.value is before
    assert set(rights.value.callers) == {"cid"}
