"""Plain English: words that documents, messages, comments and names do without, and what to write in their place.

Each pattern is so narrow that whatever it finds is wrong. A name is read as the words that it is made of.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.prose_measures import Measures, measured

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
        for match in re.finditer(spaced_text(pattern), words, re.IGNORECASE):
            yield match, better


def spaced_text(pattern: str) -> str:
    """Return the pattern for a text in which words may stand on two lines."""
    return pattern.replace(" ", r"\s+")


def prose(markdown: str) -> str:
    """Return a page without its code, which is quoted: blocks and spans become empty lines and spaces."""
    without_blocks = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), markdown, flags=re.M | re.S
    )
    spans = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"
    return re.sub(spans, lambda span: re.sub(r"[^\n]", " ", span[0]), without_blocks, flags=re.S)


def tracked_texts(*endings: str) -> list[str]:
    process = subprocess.run(
        [
            "git",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            *(f"*{ending}" for ending in endings),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in process.stdout.splitlines() if path != HERE and (ROOT / path).is_file()]


def commands() -> list[str]:
    """Return the scripts that are called by a name without an ending."""
    return [
        path for path in tracked_texts() if path.startswith((".ci/", "scripts/")) and not Path(path).suffix
    ]


@pytest.mark.parametrize(
    "path", [*tracked_texts(".md", ".py", ".scala", ".sh", ".toml", ".yml"), *commands()]
)
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


@dataclass(frozen=True)
class Limits:
    """The most that the prose of some pages may have, and the least of `if`. They are only ever made stricter.

    The goal of all pages is 15 words a sentence, 3 % of long sentences, and the defaults below.
    """

    words_a_sentence: float
    long_percent: float
    what: float = 2.0
    where: float = 2.0
    one: float = 2.0
    if_: float = 4.0
    wide_lines: int = 0

    def exceeded_by(self, found: Measures) -> list[str]:
        pairs = {
            "words a sentence": (found.words_a_sentence, self.words_a_sentence),
            "percent of long sentences": (found.long_percent, self.long_percent),
            "what in 1,000 words": (found.per_thousand("what"), self.what),
            "where in 1,000 words": (found.per_thousand("where"), self.where),
            "one in 1,000 words": (found.per_thousand("one"), self.one),
            "wide lines": (found.wide_lines, self.wide_lines),
            "if in 1,000 words, at least": (-found.per_thousand("if"), -self.if_),
        }
        return [f"{name}: {abs(is_now):.2f}" for name, (is_now, limit) in pairs.items() if is_now > limit]


FIRST_READ = [
    "README.md",
    "scripts/programs/site/pages/index.md",
    *(f"docs/{name}.md" for name in (
        "quick-start", "install", "tour", "bronze-to-gold", "concepts", "compared", "limits", "compatibility",
        "from-python-libraries", "pipelines", "production",
    )),
]  # fmt: skip

PROSE = {
    "first read": (FIRST_READ, Limits(words_a_sentence=12.6, long_percent=0.6, where=0.5, if_=6.5)),
    "docs": (
        ["docs/*.md"],
        Limits(words_a_sentence=14.1, long_percent=1.7, what=1.3, where=0.2, one=1.6, if_=7.1),
    ),
    "docs/sql": (
        ["docs/sql/*.md"],
        Limits(words_a_sentence=14.4, long_percent=0.2, what=0.4, where=0.4, one=1.0, if_=7.0),
    ),
    "docs/design": (
        ["docs/design/*.md"],
        Limits(14.7, 0.6, what=1.5, where=0.6, one=1.2, if_=6.3),
    ),
    "examples": (
        ["examples/*/*.md"],
        Limits(words_a_sentence=11.8, long_percent=0.5, if_=2.5),
    ),
    "formats": (
        ["log/README.md", "catalog/README.md"],
        Limits(16.2, 5.2, what=0.1, where=0.1, one=1.3, if_=12.0),
    ),
    "for developers": (
        [
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "tests/*.md",
            "tests/*/*.md",
            "catalog/spark/*.md",
        ],
        Limits(14.0, 3.0, what=1.4, where=0.3, one=1.4, if_=4.7),
    ),
    "changelog": (
        ["CHANGELOG.md"],
        Limits(words_a_sentence=13.9, long_percent=0.1, what=0.5, where=0.5, one=1.5, if_=5.0),
    ),
}
"""Pages, and what their prose keeps to. A change that makes a figure better makes its limit stricter."""


@pytest.mark.parametrize("name", PROSE)
def test_the_prose_of_pages_gets_no_harder_to_read(name: str) -> None:
    patterns, limits = PROSE[name]
    paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    measures = measured([path.read_text(encoding="utf-8") for path in paths])
    assert limits.exceeded_by(measures) == []


def test_prose_is_measured_by_sentences_without_code_and_tables() -> None:
    page = (
        "# What where one\n\nIf it is, `what it` [is one](a.md). Yes.\n\n| what |\n|---|\n\n```sh\nwhere\n```\n"
        "\n    what\n\n- one two\n- three\n"
    )
    measures = measured([page])
    assert (measures.sentences, measures.words) == (4, 10)
    assert [measures.counted[word] for word in ("if", "what", "where", "one")] == [1, 0, 0, 2]
    assert measured(["a " * 60 + "\n| " + "b " * 60]).wide_lines == 1


ENTRY_WORDS_MAX = 30


def test_an_entry_of_the_changelog_is_short() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)]
    assert entries
    assert [entry for entry in entries if len(entry.split()) > ENTRY_WORDS_MAX] == []
