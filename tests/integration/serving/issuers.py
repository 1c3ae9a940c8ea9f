"""An OAuth2 issuer with real keys, in a thread of this process, and tokens that it did or did not sign."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tests.patience import PATIENCE_S

AUDIENCE = "lakelog-of-the-test"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a key. It is made once, since that takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def published(key: Any, key_id: str, **more: Any) -> dict[str, Any]:
    """Return a public key as an issuer publishes it."""
    form: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(form.to_jwk(key.public_key())), "kid": key_id, **more}


class FakeIssuer:
    """The state of an issuer. Tests change what it publishes."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = [published(rsa_key("a"), "a"), published(ec_key("b"), "b")]
        self.fetches = 0
        self.is_down = False
        self.answers = threading.Event()
        """Is set unless the issuer holds its answers back."""
        self.answers.set()
        self.raw: bytes | None = None
        """Is sent in place of an answer, as it is."""
        self.named_issuer: str | None = None
        self.lifetime_s = 300.0

    def token(
        self,
        name: str = "ann",
        *,
        key: Any = None,
        key_id: str | None = "a",
        algorithm: str = "RS256",
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a token that is good, unless an argument makes it bad. A claim of None is left out."""
        now = time.time()
        payload = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": name,
            "iat": now,
            "exp": now + self.lifetime_s,
            **claims,
        }
        payload = {claim: value for claim, value in payload.items() if value is not None}
        headers = {**({} if key_id is None else {"kid": key_id}), **(header or {})}
        return jwt.encode(payload, key or rsa_key("a"), algorithm=algorithm, headers=headers)

    def document(self, path: str) -> Any:
        match path:
            case "/.well-known/openid-configuration":
                return {
                    "issuer": self.named_issuer or self.url,
                    "jwks_uri": f"{self.url}/keys",
                    "token_endpoint": f"{self.url}/token",
                }
            case "/keys":
                self.fetches += 1
                return {"keys": self.keys}
            case _:
                return None


@contextmanager
def issuing() -> Iterator[FakeIssuer]:
    """Run an issuer. Its secret for any client is `secret`."""
    issuer = FakeIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(None if issuer.is_down else issuer.document(self.path))

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            good = form.get("grant_type") == ["client_credentials"] and form.get("client_secret") == [
                "secret"
            ]
            name = form.get("client_id", [""])[0]
            token = {"access_token": issuer.token(name), "token_type": "bearer"}
            self._send(token if good and self.path == "/token" else None)

        def _send(self, document: Any) -> None:
            assert issuer.answers.wait(PATIENCE_S)
            if issuer.raw is not None:
                self.wfile.write(issuer.raw)
                return
            body = json.dumps(document).encode()
            self.send_response(200 if document is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
