"""The display of a catalog's objects in notebooks: facts, short tables and lines, as HTML without a user's HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from lakelog.catalog.core.tools.controls import visible

ROWS_MAX = 20
_TEXT_MAX = 200

_STYLE = (
    "<style>.lakelog-shown table{border-collapse:collapse;margin:.4em 0}"
    ".lakelog-shown th,.lakelog-shown td{text-align:left;vertical-align:top;padding:.2em .6em;"
    "border:1px solid #8886;white-space:pre-wrap}"
    ".lakelog-shown .wide{overflow-x:auto}.lakelog-shown .wide td{white-space:pre}"
    ".lakelog-shown pre{line-height:1.35}</style>"
)
"""Notebooks set the cells of tables flush right. Colors stay those of the notebook, light or dark."""


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table with a heading. Only its first rows are shown. A wide one scrolls, and its cells keep their lines."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    heading: str = ""
    is_wide: bool = False


class NullCell:
    """A NULL, which is shown differently from the text."""


NULL_CELL = NullCell()


def as_html(
    title: str,
    facts: Mapping[str, object],
    tables: Sequence[HtmlTable] = (),
    *,
    lines: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a title, facts below it, tables, lines of a fixed width, and notes.

    Facts that are None or empty are left out, and so are tables without rows.
    """
    visible_facts = [(name, value) for name, value in facts.items() if value is not None and value != ""]
    parts = [_STYLE, f"<b>{_text(title)}</b>"]
    if visible_facts:
        cells = (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in visible_facts)
        parts.append(f"<table>{''.join(cells)}</table>")
    parts += [_table(table) for table in tables if table.rows]
    if lines:
        parts.append(f"<pre>{escape(chr(10).join(map(one_line, lines)))}</pre>")
    parts += [f"<p>{_text(note)}</p>" for note in notes]
    return f'<div class="lakelog-shown">{"".join(parts)}</div>'


def one_line(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    return shortened_text(visible(text).replace("\n", "\\n").replace("\t", "\\t"), _TEXT_MAX)


def shortened_text(text: str, length_max: int) -> str:
    """Return a text, or its beginning if it is long."""
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def _table(table: HtmlTable) -> str:
    heading = f"<p>{_text(table.heading)}</p>" if table.heading else ""
    rows = "".join(_row("td", row) for row in table.rows[:ROWS_MAX])
    html_table = f"<table>{_row('th', table.header)}{rows}</table>"
    rows_left_out = len(table.rows) - ROWS_MAX
    count_line = f"<p>{rows_left_out:,} more</p>" if rows_left_out > 0 else ""
    return heading + (f'<div class="wide">{html_table}</div>' if table.is_wide else html_table) + count_line


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _text(value: object) -> str:
    if value is NULL_CELL:
        return '<span style="opacity:.55">NULL</span>'
    return escape(visible(shortened_text("" if value is None else str(value), _TEXT_MAX)))
