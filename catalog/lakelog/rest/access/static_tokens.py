"""Tokens that a file names, by their hashes.

    [tokens]
    etl = "sha256:…"

A token is made of 256 random bits, so its hash does not lead back to it. Only texts in the form of such a token are
accepted, so no password can be a token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from lakelog.log.errors import InvalidInput
from lakelog.log.ids import new_id

_PREFIX = "lakelog-"
_TOKEN = re.compile(rf"{_PREFIX}[a-z2-7]{{52}}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class TokensDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    tokens: dict[str, str | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class StaticTokens:
    """The names of callers by the hashes of their tokens."""

    callers: Mapping[str, str]

    def caller_of(self, token: str) -> str | None:
        """Return the name of the token's owner. None if there is none.

        The look-up is by a hash, so its time shows nothing about other tokens.
        """
        return self.callers.get(hash_of(token)) if _TOKEN.fullmatch(token) else None


def tokens_of(data: bytes) -> StaticTokens:
    """Return the tokens in a file. Raises InvalidInput if it is no such TOML. A caller may have several tokens."""
    try:
        document = msgspec.toml.decode(data, type=TokensDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # The error's own text may quote a token that was written by mistake.
        place = str(error).rpartition(" - at ")[2] if " - at " in str(error) else "it is no TOML"
        raise InvalidInput(
            f'the tokens cannot be read ({place}): write name = "sha256:…" below [tokens]'
        ) from None
    callers: dict[str, str] = {}
    for name, hashes in document.tokens.items():
        if not name:
            raise InvalidInput("a token has no name: name its caller")
        for token_hash in (hashes,) if isinstance(hashes, str) else hashes:
            if not _HASH.fullmatch(token_hash):
                raise InvalidInput(
                    f"the token of {name} is not a hash: make tokens by `lakelog token NAME`, and keep its line here"
                )
            if token_hash in callers:
                raise InvalidInput(
                    f"{callers[token_hash]} and {name} have the same token: make a token for each caller"
                )
            callers[token_hash] = name
    return StaticTokens(callers)


def new_token() -> str:
    return f"{_PREFIX}{new_id()}{new_id()}"


def hash_of(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"
