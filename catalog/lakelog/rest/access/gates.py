"""The callers of a server, by the header Authorization of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lakelog.rest.access.reloading import ReloadedFile
from lakelog.rest.access.rights import LOCAL_CALLER, KnownCaller
from lakelog.rest.access.rights_file import RightsFile
from lakelog.rest.access.static_tokens import StaticTokens

if TYPE_CHECKING:
    from lakelog.rest.access.issuers import TokenIssuer

TOKEN_BYTES_MAX = 16 * 1024


class Unauthenticated(Exception):
    """The request has no token that counts. The message is for its sender."""

    def __init__(self, message: str, *, is_expired: bool = False) -> None:
        super().__init__(message)
        self.is_expired = is_expired


class IssuerUnavailable(Exception):
    """The issuer's keys cannot be had at present."""


class RequestGate(Protocol):
    """Finds the caller of a request. Threads may share it."""

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        """Return the caller, by the values of the header Authorization.

        Raises Unauthenticated, and IssuerUnavailable if it cannot be decided now.
        """
        ...


class OpenGate:
    """Asks for no token. Every caller may do everything, so only this host may reach such a server."""

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        return LOCAL_CALLER


class TokenGate:
    """Knows callers by the tokens in a file."""

    def __init__(self, tokens: ReloadedFile[StaticTokens], rights: ReloadedFile[RightsFile]) -> None:
        self._tokens = tokens
        self._rights = rights

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        name = self._tokens.value.caller_of(_bearer(authorization))
        if name is None:
            raise Unauthenticated("the token is not known here")
        return KnownCaller(name, self._rights.value.of(name))


class IssuerGate:
    """Knows callers by tokens of an issuer."""

    def __init__(self, issuer: TokenIssuer, rights: ReloadedFile[RightsFile]) -> None:
        self._issuer = issuer
        self._rights = rights

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        from lakelog.rest.access.issuers import TokenRefused

        try:
            name = self._issuer.caller_of(_bearer(authorization))
        except TokenRefused as error:
            raise Unauthenticated(f"the token is refused: {error}", is_expired=error.is_expired) from None
        return KnownCaller(name, self._rights.value.of(name))


def _bearer(authorization: Sequence[str]) -> str:
    """Return the token of a request."""
    if len(authorization) != 1:
        raise Unauthenticated("send a token, by a single header Authorization: Bearer …")
    scheme, _, token = authorization[0].strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or not token.isascii():
        raise Unauthenticated("send a token, by the header Authorization: Bearer …")
    if len(token) > TOKEN_BYTES_MAX:
        raise Unauthenticated(f"the token is longer than {TOKEN_BYTES_MAX:,} bytes")
    return token
