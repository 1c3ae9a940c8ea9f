"""The site that `scripts/docs` builds: strictly, and without a request to another host."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from programs.site.search_words import LATER, NOT_SEARCHED, WORDS

ROOT = Path(__file__).parents[2]
SITE = ROOT / "scripts" / "programs" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=SITE,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return folder


def test_every_page_of_docs_is_on_the_site_and_all_links_lead_somewhere(site: Path) -> None:
    # Dead links and pages outside of the navigation have ended the strict build.
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        path = page.relative_to(docs).with_suffix(".html")
        assert (site / (path.with_name("index.html") if path.name == "README.html" else path)).is_file(), path
    assert '"design/names.html"' in (site / "limits.html").read_text(encoding="utf-8")
    # The repository's links to code are no links of the site.
    assert "spark/README" not in (site / "CONTRIBUTING.html").read_text(encoding="utf-8").replace(
        "catalog/spark/README.md", ""
    )


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded_matches = re.findall(
            r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"?([^\" >]+)", text
        )
        assert loaded_matches and not [
            each for each in loaded_matches if re.match(r"(?:https?:)?//", each)
        ], page
        assert "mermaid" not in text, "Material fetches what draws these pictures from another host"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\"?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_the_reference_has_the_methods_of_catalogs_and_tables_with_what_they_say(site: Path) -> None:
    text = (site / "python-interface.html").read_text(encoding="utf-8")
    for name in (
        "Catalog.create_table",
        "Catalog.transaction",
        "Table.append",
        "Table.scan",
        "Scan.to_arrow",
    ):
        assert re.search(rf'id="lakelog\.[\w.]*{re.escape(name)}"', text), name
    assert "Begin a transaction" in text and "_head" not in text


def test_the_home_page_is_its_own_with_tabs_and_what_comes_next(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    labels = re.findall(r"<label for=\"?__tabbed_1_\d\"?>([^<]+)</label>", text)
    assert labels == ["Spark", "Python", "Command"]
    assert "view.png" in text and "is the first release" in text and "icon.svg" in text
    quick = (site / "quick-start.html").read_text(encoding="utf-8")
    assert "md-footer__link--prev" in quick and "md-footer__link--next" in quick and "Apache License" in quick


def test_programs_find_a_list_of_the_pages_and_all_of_them_in_one_file(site: Path) -> None:
    listing = (site / "llms.txt").read_text(encoding="utf-8")
    for title, place, about in re.findall(r"^- \[(.+?)\]\(([^()]+)\): (.*)$", listing, re.M):
        assert title and about and (site / place).is_file(), place
    whole_text = (site / "llms-full.txt").read_text(encoding="utf-8")
    places = re.findall(r"^<!-- (\S+) -->$", whole_text, re.M)
    assert places[:2] == ["index.html", "quick-start.html"] and "sql/rows.html" in places
    assert set(places) <= set(re.findall(r"\]\(([^()]+)\): ", listing))


def found_texts(site: Path, query: str) -> list[str]:
    """Return the pages that the search finds, the best first, by the fields and boosts in its index.

    As in the browser, each word may be the beginning of one, and all words have to be there.
    """
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    boosts = {name: field["boost"] for name, field in index["config"]["fields"].items()}
    scores: dict[str, float] = {}
    for document in index["docs"]:
        fields = {
            "title": document["title"],
            "text": document["text"],
            "tags": " ".join(document.get("tags", [])),
        }
        score = 0.0
        for word in query.split():
            parts = {name: re.findall(rf"\b{re.escape(word)}", text, re.I) for name, text in fields.items()}
            of_word = sum(boosts[name] * len(hits) ** 0.5 for name, hits in parts.items())
            if not of_word:
                score = 0.0
                break
            score += of_word
        page = document["location"].partition("#")[0]
        scores[page] = max(scores.get(page, 0.0), score * document.get("boost", 1))
    return [page for page, score in sorted(scores.items(), key=lambda each: -each[1]) if score]


@pytest.mark.parametrize(
    ("query", "guide"),
    [
        ("time travel", "sql/reading.html"),
        ("gdpr", "erasure.html"),
        ("upsert", "merging.html"),
        ("scd", "bronze-to-gold.html"),
        ("small files", "upkeep.html"),
        ("restore", "undo.html"),
        ("branch", "branches.html"),
        ("cdc", "sql/changes.html"),
        ("vacuum", "maintenance.html"),
        ("schema evolution", "sql/alter.html"),
        ("deltatable", "from-python-libraries.html"),
        ("undo delete", "undo.html"),
        ("concurrent writes", "transactions.html"),
        ("migrate from delta", "coming-from-delta.html"),
        ("pytest", "testing.html"),
    ],
)
def test_the_words_that_users_type_lead_to_guides(site: Path, query: str, guide: str) -> None:
    pages = found_texts(site, query)
    assert guide in pages[:2], pages[:5]
    assert not [page for page in pages if page.startswith("design/")]


def test_the_words_of_the_search_are_of_pages_that_there_are(site: Path) -> None:
    for page in [*WORDS, *LATER]:
        assert (site / page.replace("README.md", "index.html").replace(".md", ".html")).is_file(), page
    assert (site / "design").is_dir() and "design/" in NOT_SEARCHED
