"""The callers of a server, by the header Authorization of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakelog.rest.access.refusals import UnknownCaller
from lakelog.rest.access.reloading import ReloadedFile
from lakelog.rest.access.rights import LOCAL_CALLER, KnownCaller
from lakelog.rest.access.rights_file import RightsFile
from lakelog.rest.access.static_tokens import StaticTokens

TOKEN_BYTES_MAX = 16 * 1024


class TokenVerifier(Protocol):
    """Knows the callers of an issuer's tokens."""

    def caller_of(self, token: str) -> str:
        """Return the caller's name. Raises UnknownCaller, and IssuerUnavailable if it cannot be decided now."""
        ...

    def refresh(self) -> None:
        """Fetch the issuer's keys again if they are old."""
        ...


class RequestGate(Protocol):
    """Finds the caller of a request. Threads may share it."""

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        """Return the caller, by the values of the header Authorization.

        Raises UnknownCaller, and IssuerUnavailable if it cannot be decided now.
        """
        ...

    def refresh(self) -> None:
        """Look for changes of files and keys.

        A server calls it every second, so that a right that was taken away is gone before its owner's next request.
        """
        ...


class OpenGate:
    """Asks for no token. Every caller may do everything, so only this host may reach such a server."""

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        return LOCAL_CALLER

    def refresh(self) -> None:
        pass


class TokenGate:
    """Knows callers by the tokens in a file."""

    def __init__(self, tokens: ReloadedFile[StaticTokens], rights: ReloadedFile[RightsFile]) -> None:
        self._tokens = tokens
        self._rights = rights

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        name = self._tokens.value.caller_of(_bearer(authorization))
        if name is None:
            raise UnknownCaller("the token is not known here")
        return KnownCaller(name, self._rights.value.of(name))

    def refresh(self) -> None:
        self._tokens.refresh()
        self._rights.refresh()


class IssuerGate:
    """Knows callers by tokens of an issuer."""

    def __init__(self, issuer: TokenVerifier, rights: ReloadedFile[RightsFile]) -> None:
        self._issuer = issuer
        self._rights = rights

    def caller_of(self, authorization: Sequence[str]) -> KnownCaller:
        name = self._issuer.caller_of(_bearer(authorization))
        return KnownCaller(name, self._rights.value.of(name))

    def refresh(self) -> None:
        self._rights.refresh()
        self._issuer.refresh()


def _bearer(authorization: Sequence[str]) -> str:
    """Return the token of a request."""
    if len(authorization) != 1:
        raise UnknownCaller("send a token, by a single header Authorization: Bearer …")
    scheme, _, token = authorization[0].strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or not token.isascii():
        raise UnknownCaller("send a token, by the header Authorization: Bearer …")
    if len(token) > TOKEN_BYTES_MAX:
        raise UnknownCaller(f"the token is longer than {TOKEN_BYTES_MAX:,} bytes")
    return token
