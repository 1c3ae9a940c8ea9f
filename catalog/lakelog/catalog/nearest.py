"""Suggestions of similar names, for the error about a missing name.

Pure. A name is suggested only if few letters differ, or only their case. Other names would mislead the
reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

NAMES_MAX = 2_000
"""The most names that are compared, because an error must not take long."""

_SHOWN_MAX = 3
_LIKENESS = 0.7


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the names that are like `name`, behind a blank. An empty text if there are none."""
    likely = nearest(name, names)
    return f" Did you mean {' or '.join(likely)}?" if likely else ""


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three of `names` that are like `name`, the most alike first.

    Names that differ only in case count.
    """
    names_by_lower: dict[str, list[str]] = {}
    for candidate in islice(names, NAMES_MAX):
        names_by_lower.setdefault(candidate.lower(), []).append(candidate)
    matches = get_close_matches(name.lower(), names_by_lower, n=_SHOWN_MAX, cutoff=_LIKENESS)
    return [candidate for like in matches for candidate in names_by_lower[like]][:_SHOWN_MAX]
