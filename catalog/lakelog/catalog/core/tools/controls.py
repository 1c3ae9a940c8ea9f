"""Visible forms of control characters in foreign texts, so that a display never obeys them. Pure."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""A terminal obeys these, or they reverse the direction of a line. Any client that may write to a namespace
can have them in a name."""


def visible(text: str) -> str:
    """Return a text that is safe to show. Control characters become `\\x1b`, except for tabs and line
    feeds."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
