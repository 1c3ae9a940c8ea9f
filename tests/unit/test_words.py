"""Plain English: words that documents, messages, comments and names do without, and what to write in their place.

Each pattern is so narrow that whatever it finds is wrong. A name is read as the words that it is made of.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).relative_to(ROOT).as_posix()

BANNED = {
    r"\b(?:no|some|any|every)body(?:'s)?\b": "reader, writer, client, vacuum, …",
    r"\bwho(?:m)?ever\b": "the reader, writer or client that …",
    r"\b(?:tells?\b(?!\()|told\b|telling\b)": "returns, reports, shows, says; distinguish",
    r"\b(?:lets?|letting) (?:\w+ )?go of\b": "expires, deletes, releases",
    r"\bask(?:s|ed|ing)?(?: \w+){0,2} again\b": "retry, repeat the request",
    r"\bbut for\b": "except for, (case-insensitive)",
    r"\b(?:is|are) none of\b": "is not a, exceeds",
    r"\b(?:is|are) no (?:valid )?names?\b": "is not a valid name",
    r"\bis so already\b": "nothing to change",
    r"\bwith a lid on\b": "over an overlay",
    r"\blast words\b": "last output",
    r"\bhas to look\b": "has to be scanned",
    r"\bis another one by (?:now|then)\b": "was dropped and re-created",
    r"\bis named, not placed\b": "cannot be created at a path",
    r"\bis nobody's business\b": "is not handled here",
}
"""Patterns, in small letters, and what to write instead."""


def findings(path: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        text = prose(text)
    found = []
    for match, better in matches(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(f"{path}:{line}: {' '.join(match[0].split())!r} (write: {better})")
    return found


def matches(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield what a text should not have, at its place in the text, with what to write instead."""
    words = text.replace("_", " ")
    for pattern, better in BANNED.items():
        for match in re.finditer(spaced(pattern), words, re.IGNORECASE):
            yield match, better


def spaced(pattern: str) -> str:
    """Return the pattern for a text in which words may stand on two lines."""
    return pattern.replace(" ", r"\s+")


def prose(markdown: str) -> str:
    """Return a page without its code, which is quoted: blocks and spans become empty lines and spaces."""
    without_blocks = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), markdown, flags=re.M | re.S
    )
    spans = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"
    return re.sub(spans, lambda span: re.sub(r"[^\n]", " ", span[0]), without_blocks, flags=re.S)


def tracked(*endings: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *(f"*{each}" for each in endings)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in listed.stdout.splitlines() if path != HERE and (ROOT / path).is_file()]


def commands() -> list[str]:
    """Return the scripts that are called by a name without an ending."""
    return [path for path in tracked() if path.startswith((".ci/", "scripts/")) and not Path(path).suffix]


@pytest.mark.parametrize("path", [*tracked(".md", ".py", ".scala", ".sh", ".toml", ".yml"), *commands()])
def test_a_file_is_in_plain_english(path: str) -> None:
    assert findings(path) == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Nobody reads it.", True),
        ("told by a\nreader", True),
        ("they let it go of", True),
        ("the versions are let\ngo of", True),
        ("it is let go of", True),
        ("a teller, retold, whose body", False),
        ("position = file.tell()", False),
        ("Ask the store again", True),
        ("def test_nobody_reads_it", True),
        ("ASKED_AGAIN = 1", True),
        ("_let_go_of", True),
        ("a_teller_of_retold", False),
    ],
)
def test_a_pattern_finds_words_and_not_parts_of_them(text: str, is_found: bool) -> None:
    assert any(matches(text)) is is_found


def test_code_in_a_page_is_not_prose() -> None:
    page = "a\n```sql\n-- nobody\n```\nb `nobody\nelse` c `` `x` tells `` d\n"
    assert "nobody" not in prose(page) and "tells" not in prose(page)
    assert prose(page).count("\n") == page.count("\n")
