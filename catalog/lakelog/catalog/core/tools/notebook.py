"""What notebooks show of a catalog's objects: a few facts and one short table, as HTML without any of a user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from lakelog.catalog.core.tools.controls import visible

ROWS_MAX = 20
_TEXT_MAX = 200


def as_html(
    title: str, facts: Mapping[str, object], header: Sequence[str] = (), rows: Sequence[Sequence[object]] = ()
) -> str:
    """Return a title, facts below it, and the first rows of a table; facts that are None or empty are left out."""
    shown = [(name, value) for name, value in facts.items() if value is not None and value != ""]
    parts = [f"<b>{_text(title)}</b>"]
    if shown:
        lines = (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in shown)
        parts.append(f"<table>{''.join(lines)}</table>")
    if rows:
        parts.append(
            f"<table>{_row('th', header)}{''.join(_row('td', row) for row in rows[:ROWS_MAX])}</table>"
        )
    if len(rows) > ROWS_MAX:
        parts.append(f"<p>{len(rows) - ROWS_MAX:,} more</p>")
    return "".join(parts)


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return escape(visible(text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"))
