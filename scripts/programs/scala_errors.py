"""The errors that the Spark adapter raises, read from its Scala sources: the texts in the calls that make them.

This scans text and does not parse Scala. It sees the string literals in the first argument of the calls in `MAKERS`.
There, `$name` appears as `{name}`, and other code as `…`. An `if` at the top of the argument gives a message for each
side. Texts from functions or variables are not seen, nor are conditions that Spark has texts for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from programs.python_errors import Message

MAKERS = {
    "Failures.invalid": "AnalysisException",
    "Failures.unsupported": "UnsupportedOperationException",
    "new UnsupportedOperationException": "UnsupportedOperationException",
    "SparkInternals.analysisException": "AnalysisException",
    "new LakelogException": "QueryExecutionException",
}
"""Calls whose first argument is a message, and the exception that Spark's users catch."""

_MAKER = re.compile("|".join(rf"\b{re.escape(maker)}\(" for maker in MAKERS))
_OPENING, _CLOSING = "([{", ")]}"
_SIMPLE = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A string literal (`is_text`), or a stretch of code."""

    text: str
    is_text: bool


def scala_messages(root: Path, source: str) -> list[Message]:
    """Return every message below `source`, once for each folder, sorted. `kind` is the exception's class."""
    messages = set()
    for path in sorted((root / source).rglob("*.scala")):
        text = path.read_text(encoding="utf-8")
        room = path.parent.relative_to(root).as_posix()
        for call in _MAKER.finditer(text):
            kind = MAKERS[call[0][:-1]]
            for message in messages_of(text, call.end()):
                messages.add(Message(kind, room, message))
    return sorted(messages)


def messages_of(text: str, at: int) -> list[str]:
    """Return the possible messages of a call's first argument. `at` is behind the call's opening parenthesis."""
    sides: list[list[_Piece]] = [[]]
    for piece in _argument(text, at):
        if not piece.is_text and re.search(r"\belse\b", piece.text) and not _is_within(sides[-1]):
            sides.append([])
        else:
            sides[-1].append(piece)
    return [message for side in sides if (message := _message(side)).strip("… ")]


def _is_within(pieces: list[_Piece]) -> bool:
    """Whether an `if` begins behind a text of the pieces, so that its sides are parts of a longer text."""
    first_text = next((at for at, piece in enumerate(pieces) if piece.is_text), len(pieces))
    return any("if (" in piece.text for piece in pieces[first_text:] if not piece.is_text)


def _message(pieces: list[_Piece]) -> str:
    parts = []
    for piece in pieces:
        code = re.sub(r"//.*", "", piece.text).strip()
        if piece.is_text:
            parts.append(piece.text)
        elif code.strip("+ \n") and parts:
            parts.append("…")
    text = "".join(parts)
    return " ".join(re.sub(r"…(\s*…)+", "…", text).split())


def _argument(text: str, at: int) -> Iterator[_Piece]:
    """Yield the literals of the argument that begins at `at`, and the code between them."""
    depth, start = 0, at
    while at < len(text):
        if text[at] == '"':
            is_interpolated = text[at - 1] == "s" and not text[at - 2].isalnum()
            code = text[start : at - is_interpolated]
            if code.strip():
                yield _Piece(code, False)
            literal, at = _literal(text, at, is_interpolated)
            # A literal within another call, such as a separator, does not belong to the message.
            if depth == 0 or _is_condition_free(code):
                yield _Piece(literal, True)
            start = at
            continue
        if text[at] == "'" and (char := re.compile(r"'(\\.|[^\\'])'").match(text, at)):
            at = char.end()
            continue
        if text.startswith("//", at):
            at = text.index("\n", at)
            continue
        if text[at] in _OPENING:
            depth += 1
        elif text[at] in _CLOSING:
            if depth == 0:
                break
            depth -= 1
        elif text[at] == "," and depth == 0:
            break
        at += 1
    if text[start:at].strip():
        yield _Piece(text[start:at], False)


def _is_condition_free(code: str) -> bool:
    """Whether a literal behind this code, in parentheses or braces, still belongs to the text around it."""
    return bool(re.fullmatch(r"[\s+({]*", code))


def _literal(text: str, at: int, interpolated: bool) -> tuple[str, int]:
    """Return the text of a string literal, and the position behind it."""
    triple = text.startswith('"""', at)
    quote = '"""' if triple else '"'
    at += len(quote)
    letters = []
    while not text.startswith(quote, at):
        char = text[at]
        if char == "\\" and not triple:
            letters.append({"n": "\n", "t": "\t"}.get(text[at + 1], text[at + 1]))
            at += 2
        elif char == "$" and interpolated:
            put_in, at = _interpolation(text, at)
            letters.append(put_in)
        else:
            letters.append(char)
            at += 1
    return "".join(letters), at + len(quote)


def _interpolation(text: str, at: int) -> tuple[str, int]:
    """Return the placeholder for `$name` or `${code}` at `at`, and the position behind it."""
    if text[at + 1] == "$":
        return "$", at + 2
    if text[at + 1] != "{":
        name = re.compile(r"\w+").match(text, at + 1)
        assert name is not None
        return f"{{{name[0]}}}", name.end()
    depth, end = 0, at + 1
    while True:
        if text[end] == '"':
            _, end = _literal(text, end, text[end - 1] == "s")
            continue
        if text[end] == "{":
            depth += 1
        elif text[end] == "}":
            depth -= 1
            if depth == 0:
                break
        end += 1
    code = text[at + 2 : end]
    placeholder = f"{{{code.split('.')[-1]}}}" if _SIMPLE.fullmatch(code) else "…"
    return placeholder, end + 1
