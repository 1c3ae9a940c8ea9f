"""The ways in which a token does not lead to a caller."""

from __future__ import annotations


class UnknownCaller(Exception):
    """The request has no token that counts. The message is for its sender. An expired token was good before."""

    def __init__(self, message: str, *, is_expired: bool = False) -> None:
        super().__init__(message)
        self.is_expired = is_expired


class IssuerUnavailable(Exception):
    """The issuer's keys cannot be had at present."""
