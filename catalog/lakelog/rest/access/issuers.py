"""Tokens of an OAuth2 issuer: JSON Web Tokens, verified by the keys that the issuer publishes.

Rule: a token counts only with a signature by RS256 or ES256 of a key in the issuer's list, for this audience, within
its times. The algorithm follows from the key, never from the token alone. Keys are fetched now and then, and at most
once in a while, whatever tokens arrive. Only a token of an unknown key waits for that.
"""

from __future__ import annotations

import http.client
import logging
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from lakelog.log.clocks import steady_clock_us
from lakelog.log.errors import InvalidInput
from lakelog.rest.access.refusals import IssuerUnavailable, UnknownCaller
from lakelog.rest.hosts import is_loopback

ALGORITHMS = ("RS256", "ES256")
LEEWAY_S = 30
"""The error of clocks that is tolerated."""
FETCH_TIMEOUT_S = 5.0
"""How long the issuer may be silent, and also how long its document may take to arrive."""
DOCUMENT_BYTES_MAX = 1024 * 1024
_PART_BYTES = 64 * 1024
KEYS_AGE_S = 600.0
"""Keys are fetched again after so long."""
FETCH_EVERY_S = 10.0
"""The shortest time between two fetches."""
KEYS_AGE_MAX_S = 24 * 3600.0
"""Keys that could not be fetched again for so long are used no more."""
RSA_BITS_MIN = 2048
_TOKEN_TYPES = ("jwt", "at+jwt", "application/at+jwt")
_DISCOVERY = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
_FORM_ERRORS = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
"""What PyJWT raises for a token in a wrong form. Its older versions let Python's own errors through."""
_LOGGER = logging.getLogger("lakelog.rest")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the issuer, and the only algorithm that it is for."""

    algorithm: str
    key: RSAPublicKey | EllipticCurvePublicKey


class TokenIssuer:
    """Verifies the tokens of an issuer for an audience. Threads may share it.

    `name_claim` is the claim with the caller's name. `keys_url` saves the look-up of the issuer's own description.
    Raises InvalidInput or IssuerUnavailable at the start if the keys cannot be had.
    """

    def __init__(
        self, issuer: str, audience: str, *, name_claim: str = "sub", keys_url: str | None = None
    ) -> None:
        _check_url(issuer)
        self._issuer = issuer
        self._audience = audience
        self._name_claim = name_claim
        self._keys = IssuerKeys(keys_url if keys_url is not None else _keys_url(issuer))

    def caller_of(self, token: str) -> str:
        """Return the caller's name. Raises UnknownCaller, and IssuerUnavailable if it cannot be decided now."""
        try:
            header = jwt.get_unverified_header(token)
        except _FORM_ERRORS:
            raise UnknownCaller("the token is refused: it is not in the form of a JWT") from None
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise UnknownCaller(f"the token is refused: it is not signed by {' or '.join(ALGORITHMS)}")
        if str(header.get("typ", "JWT")).lower() not in _TOKEN_TYPES:
            raise UnknownCaller("the token is refused: it is a token for another purpose")
        if "crit" in header:
            raise UnknownCaller("the token is refused: it has extensions that are not known here")
        keys = [key for key in self._keys.keys(header.get("kid")) if key.algorithm == algorithm]
        if not keys:
            raise UnknownCaller(
                "the token is refused: it is signed by a key that the issuer does not publish"
            )
        return self._name_in(self._claims(token, _signer(token, keys)))

    def refresh(self) -> None:
        """Fetch the keys again if they are old. Never raises an error, since the former keys stay."""
        self._keys.refresh()

    def _claims(self, token: str, key: SigningKey) -> Mapping[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise UnknownCaller(
                "the token is refused: it has expired: get a new token", is_expired=True
            ) from None
        except jwt.ImmatureSignatureError:
            raise UnknownCaller("the token is refused: it is not valid yet") from None
        except jwt.InvalidAudienceError:
            raise UnknownCaller(
                f"the token is refused: it is for another audience than {self._audience}"
            ) from None
        except jwt.InvalidIssuerError:
            raise UnknownCaller(
                f"the token is refused: it is of another issuer than {self._issuer}"
            ) from None
        except jwt.MissingRequiredClaimError as error:
            raise UnknownCaller(f"the token is refused: it has no claim {error.claim}") from None
        except _FORM_ERRORS:
            raise UnknownCaller("the token is refused: its signature or its form is wrong") from None
        return claims

    def _name_in(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._name_claim)
        if not isinstance(name, str) or not name:
            raise UnknownCaller(f"the token is refused: its claim {self._name_claim} has no name")
        return name


class IssuerKeys:
    """The keys of an issuer, by their ids. A single thread fetches them, while others use the former.

    Several keys may have the same id. RFC 7517 advises issuers against that, and does not forbid it.
    """

    def __init__(self, url: str) -> None:
        _check_url(url)
        self._url = url
        self._lock = threading.Lock()
        self._keys: Mapping[str, Sequence[SigningKey]] = {}
        self._fetched_us = self._tried_us = steady_clock_us()
        self._has_failed = False
        """Whether the last fetch failed."""
        self._fetch()

    def refresh(self) -> None:
        """Fetch the keys again if they are old, unless another thread does so."""
        if self._is_older_than(KEYS_AGE_S):
            self._refresh()

    def keys(self, key_id: object) -> Sequence[SigningKey]:
        """Return the keys of this id, or the only key if the token names none.

        Raises IssuerUnavailable if the id is unknown and newer keys cannot be had at present.
        """
        if self._is_older_than(KEYS_AGE_MAX_S):
            raise IssuerUnavailable(f"the keys at {self._url} could not be fetched for a day")
        keys = self._known(key_id)
        if not keys and isinstance(key_id, str):
            if not self._refresh():
                raise IssuerUnavailable("the issuer's keys are being fetched: send the request again")
            keys = self._known(key_id)
            if not keys and self._has_failed:
                raise IssuerUnavailable("the issuer's newest keys cannot be had now: send the request again")
        return keys

    def _known(self, key_id: object) -> Sequence[SigningKey]:
        if key_id is None:
            all_keys = [key for keys in self._keys.values() for key in keys]
            return all_keys if len(all_keys) == 1 else ()
        return self._keys.get(key_id, ()) if isinstance(key_id, str) else ()

    def _is_older_than(self, age_s: float) -> bool:
        return steady_clock_us() - self._fetched_us > age_s * 1_000_000

    def _refresh(self) -> bool:
        """Fetch the keys, unless that was tried a moment ago. Return False if another thread is fetching them."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if steady_clock_us() - self._tried_us >= FETCH_EVERY_S * 1_000_000:
                self._tried_us = steady_clock_us()
                self._fetch()
        except (InvalidInput, IssuerUnavailable) as error:
            self._has_failed = True
            _LOGGER.error("the keys of the issuer stay as they were: %s", error)
        finally:
            self._lock.release()
        return True

    def _fetch(self) -> None:
        entries = fetched_document(self._url).get("keys")
        keys = _usable_keys(entries if isinstance(entries, list) else [])
        if not keys:
            raise InvalidInput(
                f"{self._url} has no key for {' or '.join(ALGORITHMS)} with an id: no token could be verified"
            )
        self._keys, self._fetched_us, self._has_failed = keys, steady_clock_us(), False


def _usable_keys(entries: list[Any]) -> dict[str, list[SigningKey]]:
    keys: dict[str, list[SigningKey]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") not in ("RSA", "EC"):
            continue  # a symmetric key would be a secret that everyone may read
        try:
            if entry.get("use", "sig") != "sig" or "verify" not in (entry.get("key_ops") or ["verify"]):
                continue
            public_key = jwt.PyJWK(
                {name: value for name, value in entry.items() if name not in ("d", "alg")},
                algorithm="RS256" if entry["kty"] == "RSA" else "ES256",
            ).key
        except _FORM_ERRORS:
            continue
        key = _signing_key(public_key)
        if key is not None and entry.get("alg", key.algorithm) == key.algorithm:
            keys.setdefault(str(entry.get("kid", "")), []).append(key)
    return keys


def _signer(token: str, keys: Sequence[SigningKey]) -> SigningKey:
    """Return the key that has signed a token. The first if none of them has."""
    for key in keys if len(keys) > 1 else ():
        with suppress(*_FORM_ERRORS):
            jwt.PyJWS().decode(token, key.key, algorithms=[key.algorithm])
            return key
    return keys[0]


def _signing_key(public_key: object) -> SigningKey | None:
    match public_key:
        case RSAPublicKey() if public_key.key_size >= RSA_BITS_MIN:
            return SigningKey("RS256", public_key)
        case EllipticCurvePublicKey() if isinstance(public_key.curve, SECP256R1):
            return SigningKey("ES256", public_key)
        case _:
            return None


def _keys_url(issuer: str) -> str:
    """Return the place of an issuer's keys, as its own description has it."""
    base, parts = issuer.rstrip("/"), urlsplit(issuer.rstrip("/"))
    urls = [f"{base}{_DISCOVERY[0]}", f"{parts.scheme}://{parts.netloc}{_DISCOVERY[1]}{parts.path}"]
    failures = []
    for url in urls:
        try:
            document = fetched_document(url)
        except IssuerUnavailable as error:
            failures.append(str(error))
            continue
        if document.get("issuer") != issuer:
            raise InvalidInput(
                f"{url} is about the issuer {document.get('issuer')!r}, and not {issuer!r}: give the issuer as it "
                "names itself"
            )
        keys_url = document.get("jwks_uri")
        if not isinstance(keys_url, str):
            raise InvalidInput(f"{url} has no jwks_uri, and so no keys")
        return keys_url
    raise IssuerUnavailable("; ".join(failures))


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        if parts.hostname and (
            parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
        ):
            return
    except ValueError:
        pass  # an address in brackets that is none
    raise InvalidInput(
        f"the issuer's address {url} is not an https:// URL: its keys could be forged on the way"
    )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirection for a failure, since it may lead to a place without TLS."""

    def redirect_request(self, *arguments: Any, **options: Any) -> None:
        return None


def fetched_document(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL. Raises IssuerUnavailable."""
    opener = urllib.request.build_opener(_NoRedirects)
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "lakelog"})
    deadline_us = steady_clock_us() + round(FETCH_TIMEOUT_S * 1_000_000)
    data = bytearray()
    try:
        with opener.open(request, timeout=FETCH_TIMEOUT_S) as response:
            while part := response.read1(_PART_BYTES):
                data += part
                if len(data) > DOCUMENT_BYTES_MAX:
                    raise IssuerUnavailable(f"{url} has more than {DOCUMENT_BYTES_MAX:,} bytes")
                if steady_clock_us() > deadline_us:
                    raise IssuerUnavailable(f"{url} takes more than {FETCH_TIMEOUT_S:g} s")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise IssuerUnavailable(f"{url} cannot be read: {str(error) or type(error).__name__}") from None
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise IssuerUnavailable(f"{url} has no JSON: {error}") from None
    if not isinstance(document, dict):
        raise IssuerUnavailable(f"{url} has no JSON object")
    return document
