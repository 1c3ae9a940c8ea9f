"""The text that a commit keeps of its statement: without its literals, in full, or nothing. Pure.

Literals and comments may hold text that must not be kept for ever (a name, a password). So `normalized` puts
`?` for literals and drops comments. It reads text like Spark's own lexer. If it ended a literal at a quote at
which Spark does not, it would keep the text after the quote. An unclosed literal or comment goes on to the
text's end. No text is refused, because parsing is not this module's task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lakelog.log.errors import InvalidInput
from lakelog.log.secrets import masked, masked_urls

FULL, NORMALIZED, NONE = "full", "normalized", "none"
SETTINGS = (NORMALIZED, FULL, NONE)

NORMALIZED_LIMIT_BYTES = 4 * 1024
FULL_LIMIT_BYTES = 32 * 1024
"""Half of the size at which a commit writes a snapshot, so that a statement's text alone never causes a
snapshot."""

CUT = "… [cut]"
"""The end of a text that was longer than its limit."""

LITERAL = "?"

_TYPED = frozenset({"date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "x"})

# The order decides between tokens that begin alike. Quantifiers are possessive, so no text is read twice.
_TOKEN = re.compile(
    r"""
      (?P<space>   \s++
                 | --(?:\\\n|[^\r\n])*+ )
    | (?P<comment> /\*(?!\+) )
    | (?P<string>  '(?:[^'\\]++|\\.|'')*+(?:'|\\?\Z)
                 | "(?:[^"\\]++|\\.|"")*+(?:"|\\?\Z)
                 | [rR]'[^']*+(?:'|\Z)
                 | [rR]"[^"]*+(?:"|\Z) )
    | (?P<dollars> \$[A-Za-z]*+\$ )
    | (?P<other_literal>
                   [^\W\d_]++://[\w/\-.?=&#%]*+
                 | (?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?:[bB][dD]|[lLsSyYfFdD])?(?!\w)
                 | [0-9]++(?!\w) )
    | (?P<quoted>  `(?:[^`]++|``)*+` )
    | (?P<open>    ` )
    | (?P<word>    \w++ )
    | (?P<mark>    /\*\+ | \*/ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")

# Half of a surrogate pair cannot be written as UTF-8, and a terminal obeys control characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class SqlToken(NamedTuple):
    """A part of a text.

    `kind` is space, comment, string, dollars, other_literal, quoted, open (a name that is not closed), word
    or mark.
    """

    kind: str
    text: str


def kept(text: str, setting: str) -> str | None:
    """Return a statement's text under `setting` (normalized, full or none). Returns None if nothing is kept.

    Raises InvalidInput for another setting.
    """
    match setting:
        case "normalized":
            # Keys in a quoted path are part of a name. A value without quotes is a name, too.
            return full(masked(normalized(masked_urls(text))), NORMALIZED_LIMIT_BYTES)
        case "full":
            return full(masked(text))
        case "none":
            return None
    raise InvalidInput(
        f"{setting!r} is not a setting for a statement's text: use one of {', '.join(SETTINGS)}"
    )


def full(text: str, limit_bytes: int = FULL_LIMIT_BYTES) -> str:
    """Return `text`, cut to `limit_bytes` of UTF-8, without characters that cannot be written or shown."""
    text = _UNPRINTABLE.sub("\ufffd", text)
    data = text.encode()
    if len(data) <= limit_bytes:
        return text
    return data[: limit_bytes - len(CUT.encode())].decode(errors="ignore") + CUT


def normalized(text: str, limit_bytes: int = NORMALIZED_LIMIT_BYTES) -> str:
    """Return `text` with `?` for each literal, without comments, its whitespace collapsed, cut to
    `limit_bytes`.

    Keywords, identifiers (also in backticks), operators and hints stay as they were written. A second
    normalization changes nothing.
    """
    text = _UNPRINTABLE.sub("\ufffd", text)
    output = _Written(limit_bytes)
    if is_cut := text.endswith(CUT):
        text = text.removesuffix(CUT)
    for token in sql_tokens(text):
        match token.kind:
            case "space" | "comment":
                output.space()
            case "string" | "dollars":
                output.string()
            case "other_literal" | "open":
                output.token(LITERAL)
            case "quoted":
                output.token(re.sub(r"\s", " ", token.text))
            case _:
                output.token(token.text)
        if output.is_full:
            break
    return str(output) + CUT if is_cut and not output.is_full else str(output)


def sql_tokens(text: str) -> Iterator[SqlToken]:
    """Yield all tokens of a text, in their order."""
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None and token.lastgroup is not None, text[position]
        end = token.end()
        match token.lastgroup:
            case "comment":
                end = _after_comment(text, end)
            case "dollars":
                close = text.find(token[0], end)
                end = len(text) if close < 0 else close + len(token[0])
            case "open":
                end = len(text)
        yield SqlToken(token.lastgroup, text[position:end])
        position = end


def _after_comment(text: str, position: int) -> int:
    """Return the end of a comment whose opening ends at `position`. Comments may be nested."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, position):
        depth += -1 if edge[0] == "*/" else 1
        if depth == 0:
            return edge.end()
    return len(text)


class _Written:
    """The tokens so far, up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._parts: list[str] = []
        self._left_bytes = limit_bytes - len(CUT.encode())
        self._space = False
        self._after_string = False
        self.is_full = False

    def space(self) -> None:
        self._space = bool(self._parts)

    def token(self, token: str) -> None:
        part = f" {token}" if self._space else token
        self._left_bytes -= len(part.encode())
        self.is_full = self._left_bytes < 0
        self._parts.append(CUT if self.is_full else part)
        self._space = self._after_string = False

    def string(self) -> None:
        """Write a string. It forms a single literal with a string or a type's name right before it."""
        if self._after_string:
            self._space = False
            return
        if self._parts and self._parts[-1].strip().lower() in _TYPED:
            self._left_bytes += len(self._parts[-1].encode())
            self._space = self._parts.pop().startswith(" ")
        self.token(LITERAL)
        self._after_string = True

    def __str__(self) -> str:
        return "".join(self._parts)
