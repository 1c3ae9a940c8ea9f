"""How a page reads, in numbers: the length of its sentences, and words that stand for other words.

`python -m tests.unit.prose_measures PAGE …` prints them for each page, from the root of the repository. Code, tables
and headings are not prose.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONG_WORDS = 30
"""A sentence with more words is long."""

WIDE_CHARACTERS = 110
"""A line of prose with more characters is wide, unless it could not be broken."""

_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1 *$|^<!--.*?-->$", re.M | re.S)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]*\)")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d+\.) (?:\[ \] )?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(x])")


@dataclass(frozen=True)
class Measures:
    """Of a page or several: sentences, words, and how often some of them occur."""

    sentences: int
    words: int
    long_sentences: int
    counted: Counter[str]
    wide_lines: int

    @property
    def words_a_sentence(self) -> float:
        return self.words / max(1, self.sentences)

    @property
    def long_percent(self) -> float:
        return 100 * self.long_sentences / max(1, self.sentences)

    def per_thousand(self, word: str) -> float:
        return 1000 * self.counted[word] / max(1, self.words)


def measured(texts: list[str]) -> Measures:
    """Return the measures of pages together."""
    sentences = [words for text in texts for words in _sentences(text)]
    return Measures(
        sentences=len(sentences),
        words=sum(map(len, sentences)),
        long_sentences=sum(len(words) > LONG_WORDS for words in sentences),
        counted=Counter(word.lower() for words in sentences for word in words),
        wide_lines=sum(_is_wide(line) for text in texts for line in _without_code(text).splitlines()),
    )


def _without_code(text: str) -> str:
    return _CODE_BLOCK.sub("", text)


def _is_wide(line: str) -> bool:
    breakable = " " in _CODE_SPAN.sub("x", line.strip())
    return len(line) > WIDE_CHARACTERS and breakable and not line.startswith(("|", "    "))


def _sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence. A span of code is a word, and a link is its text."""
    plain = _LINK.sub(r"\1", _CODE_SPAN.sub("x", _without_code(text)))
    for paragraph in _paragraphs(plain):
        for sentence in _SENTENCE_END.split(paragraph.replace("*", "")):
            words = re.findall(r"[\w'’-]+", sentence)
            if words:
                yield words


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and items of lists, each as a line."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped_text = line.strip()
        begins = _LIST_ITEM.match(stripped_text)
        is_code = line.startswith("    ") and not lines and not begins
        ends = is_code or not stripped_text or stripped_text.startswith(("#", "|"))
        if (ends or begins) and lines:
            yield " ".join(lines)
            lines = []
        if not ends:
            lines.append(stripped_text[begins.end() :] if begins else stripped_text)


def main() -> None:
    for path in sys.argv[1:]:
        measures = measured([Path(path).read_text(encoding="utf-8")])
        often = ", ".join(
            f"{word} {measures.per_thousand(word):.1f}" for word in ("what", "where", "one", "if")
        )
        print(
            f"{path}: {measures.words_a_sentence:.1f} words a sentence, {measures.long_percent:.1f} % long, {often},"
            f" {measures.wide_lines} wide lines"
        )


if __name__ == "__main__":
    main()
