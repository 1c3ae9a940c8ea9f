"""The tokens of text filters, and errors that quote a token and its position."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from lakelog.log.errors import InvalidInput

_TOKENS = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<hex>[xX]'[0-9a-fA-F]*'|[xX]"[0-9a-fA-F]*")
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[yYsSlLdDfF])?(?!\w))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=>|<>|!=|==|<=|>=|[=<>!(),.+-])
    """,
    re.X | re.S,
)


@dataclass(frozen=True, slots=True)
class FilterToken:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """The keyword that this may be, or the sign. Empty for literals and names in backquotes."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


class FilterTokens:
    """The tokens of a text, with a present token. Raises InvalidInput for a character that starts no
    token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._at = 0

    @property
    def now(self) -> FilterToken:
        return self._tokens[self._at]

    def next(self) -> FilterToken:
        """Return the present token and advance. The last token is an empty token of the kind `end`."""
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def took(self, word: str) -> bool:
        """Advance if the present token is this keyword or sign, and return whether it was."""
        if self.now.word != word:
            return False
        self._at += 1
        return True

    def text_since(self, token: FilterToken) -> str:
        """Return the text from `token` to the token before the present token."""
        end = self._tokens[self._at - 1]
        return self._text[token.start : end.start + len(end.text)]

    @property
    def where(self) -> str:
        return f"the filter {self._excerpt(self.now.start)}"

    def _excerpt(self, at: int) -> str:
        first = max(0, at - 60)
        return repr(
            ("…" if first else "") + self._text[first : at + 60] + ("…" if at + 60 < len(self._text) else "")
        )

    def unexpected(self, expected: str, token: FilterToken | None = None) -> NoReturn:
        """Raise InvalidInput for `token`, by default the present token, because another was expected."""
        token = token or self.now
        text = repr(token.text) if token.kind != "end" else "nothing more"
        raise InvalidInput(
            f"the filter {self._excerpt(token.start)} has {text} at character {token.start + 1}: expected {expected}"
        )

    def refuse(self, token: FilterToken, what: str, instead: str) -> NoReturn:
        """Raise InvalidInput for a condition that predicates do not have. `instead` says what to write."""
        raise InvalidInput(
            f"the filter {self._excerpt(token.start)} {what} at character {token.start + 1}, which lakelog cannot do: "
            f"{instead}, or filter the result instead"
        )

    def _split(self) -> list[FilterToken]:
        tokens, at = [], 0
        while at < len(self._text):
            match = _TOKENS.match(self._text, at)
            if match is None:
                raise InvalidInput(
                    f"the filter {self._excerpt(at)} has {self._text[at]!r} at character {at + 1}, which no condition "
                    "here has: use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE and IS NULL of columns and literals"
                )
            if match.lastgroup != "space":
                tokens.append(FilterToken(match.lastgroup or "", match[0], at))
            at = match.end()
        return [*tokens, FilterToken("end", "", len(self._text))]
