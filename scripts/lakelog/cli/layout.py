"""How a table fits the width of a terminal: whole lines, wrapped cells, or a record for each row.

Pure. A cell is wrapped after a space. A long name is wrapped after a dot, hyphen, underscore, slash, comma or equals
sign. No name breaks into letters: if a column is too narrow for the parts of its names, each row becomes a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

GAP = 2
"""Spaces between two columns."""

_LINES_MAX = 3
"""A row with names in parts has at most so many lines: else a record is easier to read."""

_MOMENT = r"\d{4}-\d\d-\d\d(?: \d\d:\S+)?"
_WORD = re.compile(rf"\s*(?:{_MOMENT}|\S+)|\s+")
_PART = re.compile(rf"\s*(?:{_MOMENT}|[^\s.\-_/,=]+[.\-_/,=]*|[.\-_/,=]+)|\s+")


def column_widths(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, whole: Sequence[bool]
) -> list[int] | None:
    """Return the widths of a table's columns, together with their gaps at most `width`; None if there are none.

    Names stay whole if all columns fit then. Cells of columns that are `whole`, such as numbers, always stay so.
    """
    columns = list(zip(headings, whole, *rows, strict=True))
    room = width - GAP * (len(columns) - 1)
    widest = [max(map(_line_width, (heading, *cells))) for heading, _, *cells in columns]
    if sum(widest) <= room:
        return widest
    for piece in (_WORD, _PART):
        narrowest = [
            max(
                _longest(heading, _WORD),
                *(_line_width(cell) if is_whole else _longest(cell, piece) for cell in cells),
            )
            for heading, is_whole, *cells in columns
        ]
        if sum(narrowest) > room:
            continue
        widths = _shared_out(narrowest, widest, room)
        if (
            piece is _WORD
            or max(len(wrapped(cell, at)) for row in rows for cell, at in zip(row, widths, strict=True))
            <= _LINES_MAX
        ):
            return widths
    return None


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text. A part that is wider than `width` stays whole, so that it can be copied."""
    return [line for paragraph in text.split("\n") for line in _wrapped(paragraph, width)]


def _wrapped(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    # A line may be as long as the text: it is neither copied nor measured again for each of its pieces.
    lines: list[list[str]] = [[]]
    line_width = 0
    for word in _WORD.findall(text):
        pieces = [word] if cell_len(word.strip()) <= width else _PART.findall(word)
        for piece in pieces:
            if lines[-1] and line_width + cell_len(piece.rstrip()) > width:
                piece = piece.lstrip()
                lines.append([])
                line_width = 0
            if piece:
                lines[-1].append(piece)
                line_width += cell_len(piece)
    return ["".join(line).rstrip() for line in lines]


def _shared_out(narrowest: Sequence[int], widest: Sequence[int], room: int) -> list[int]:
    """Return widths that fill the room. The narrowest incomplete column grows first."""
    widths = list(narrowest)
    for _ in range(room - sum(widths)):
        growable = [at for at, width in enumerate(widths) if width < widest[at]]
        if not growable:
            break
        widths[min(growable, key=lambda at: widths[at])] += 1
    return widths


def _longest(text: str, piece: re.Pattern[str]) -> int:
    return max((cell_len(part.strip()) for part in piece.findall(text)), default=0)


def _line_width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
