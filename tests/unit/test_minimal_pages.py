"""The two pages that lead another client through the format stay short, and lead to each part of it that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS_MAX = {"minimal-reader": 1500, "minimal-writer": 800}
FORMATS = ("log/README.md", "catalog/README.md")


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", WORDS_MAX)
def test_a_minimal_page_is_short(name: str) -> None:
    assert len(page(name).split()) <= WORDS_MAX[name]


@pytest.mark.parametrize("name", WORDS_MAX)
@pytest.mark.parametrize("format_page", FORMATS)
def test_the_formats_and_the_minimal_pages_lead_to_each_other(name: str, format_page: str) -> None:
    assert f"](../docs/{name}.md)" in (ROOT / format_page).read_text(encoding="utf-8")
    assert f"](../{format_page}#" in page(name)


@pytest.mark.parametrize("name", WORDS_MAX)
def test_paragraphs_that_the_minimal_pages_name_exist(name: str) -> None:
    """`*Name* in [L](…)` is a heading, or a paragraph that begins with its name in bold."""
    for title, target in re.findall(r"\*([^*]+)\* in\s+\[[LC]\]\(\.\./([\w/]+\.md)", page(name)):
        words = r"\s+".join(map(re.escape, title.split()))
        text = (ROOT / target).read_text(encoding="utf-8")
        assert re.search(rf"^#+ {words}$|\*\*{words}\b[^*]*\*\*", text, re.M), title


def test_events_of_the_fold_are_events_of_the_format() -> None:
    fold = page("minimal-reader").partition("## The fold")[2].partition("## ")[0]
    tags = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", fold)
    formats = (ROOT / "catalog/README.md").read_text(encoding="utf-8")
    assert len(tags) > 10
    assert not [tag for tag in tags if f"| `{tag}` |" not in formats]
