"""The vocabulary of CONTRIBUTING.md: each word means one thing, and no other word stands for it."""

from __future__ import annotations

import re
import subprocess

from tests.unit.code_measures import ROOT

WORDS = 40
MEANING_WORDS_MAX = 20


def vocabulary() -> list[list[str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("<!-- vocabulary -->") : text.index("<!-- /vocabulary -->")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()[3:]]


def test_the_vocabulary_is_sorted_and_each_word_has_one_short_meaning() -> None:
    words = [word for word, _, _ in vocabulary()]
    assert words == sorted(set(words)) and len(words) == WORDS
    meanings = [meaning for _, meaning, _ in vocabulary()]
    assert [meaning for meaning in meanings if not 0 < len(meaning.split()) <= MEANING_WORDS_MAX] == []
    assert len(set(meanings)) == WORDS


def unwanted_texts() -> list[str]:
    """Return the words that a word of the vocabulary stands for and that have no other use: they are not in italics."""
    return [
        word.strip()
        for _, _, instead in vocabulary()
        for word in instead.split(",")
        if not word.strip().startswith("*")
    ]


def test_no_source_and_no_page_has_a_word_that_the_vocabulary_replaces() -> None:
    assert unwanted_texts()
    pattern = "|".join(re.escape(word).replace(r"\ ", "[ _-]") for word in unwanted_texts())
    grep = ["git", "grep", "--untracked", "-niE", rf"\b({pattern})s?\b", "--", "*.py", "*.md", "*.scala"]
    lines = subprocess.run(grep, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in lines if not line.startswith("CONTRIBUTING.md:")] == []
