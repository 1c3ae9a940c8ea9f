"""Names like one that was not found, for the error that says so.

Pure. A name is worth a suggestion where few letters differ, or only their case: others would send the reader astray.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

NAMES_MAX = 2_000
"""Of more names than that, only some are compared: an error must not take long."""

_SHOWN_MAX = 3
_LIKENESS = 0.7


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three of `names` that are like `name`, the most alike first; names that differ in case count."""
    folded: dict[str, list[str]] = {}
    for each in islice(names, NAMES_MAX):
        folded.setdefault(each.lower(), []).append(each)
    found = get_close_matches(name.lower(), folded, n=_SHOWN_MAX, cutoff=_LIKENESS)
    return [each for like in found for each in folded[like]][:_SHOWN_MAX]
