"""The documentation for programs that read it: `llms.txt` lists the pages, and `llms-full.txt` has their text.

The site's build makes both from the pages of its navigation, in that order. Pages that are made from the code are only
in the list.
"""

from __future__ import annotations

import re
from pathlib import Path

_TITLE = re.compile(r"^# (.+)$", re.M)
_CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*$", re.M | re.S)
_LINK = re.compile(r"!?\[((?:[^\[\]`]|`[^`]*`)*)\]\([^()\s]+\)")

FROM_CODE = ("commands-and-procedures.", "errors.", "format/", "python-interface.")
"""Beginnings of pages that are made from the code."""

ABOUT = (
    "Transactional tables for Apache Spark and Python, in a folder or an S3 bucket: no server, no database, no lock"
    " service. Every change is one commit in an append-only log of small objects; data files are plain Parquet."
)


def listing(pages: list[tuple[str, str]]) -> str:
    """Return `llms.txt` for the pages, given as places on the site and texts."""
    lines = [f"- [{title(text)}]({place}): {first_sentence(text)}" for place, text in pages]
    return "\n".join(["# lakelog", "", f"> {ABOUT}", "", "## Pages", "", *lines, ""])


def whole(pages: list[tuple[str, str]]) -> str:
    """Return the concatenated texts of pages, each after its place on the site."""
    pages_by_hand = [(place, text.strip()) for place, text in pages if not place.startswith(FROM_CODE)]
    return "\n\n".join(f"<!-- {place} -->\n\n{text}" for place, text in pages_by_hand) + "\n"


def title(text: str) -> str:
    title_match = _TITLE.search(text)
    return title_match[1] if title_match else ""


def first_sentence(text: str) -> str:
    """Return the first sentence below the title, without its links. Skips code."""
    below = _CODE.sub("", text[title_match.end() :] if (title_match := _TITLE.search(text)) else text)
    for part in re.split(r"\n\s*\n", below.strip()):
        if re.match(r"[A-Za-z`*]", part):
            words = " ".join(_LINK.sub(r"\1", part).split())
            return re.split(r"(?<=[.!?])\s(?=[A-Z`*])", words, maxsplit=1)[0]
    return ""


def write(folder: Path, pages: list[tuple[str, str]]) -> None:
    (folder / "llms.txt").write_text(listing(pages), encoding="utf-8")
    (folder / "llms-full.txt").write_text(whole(pages), encoding="utf-8")
