"""The site that `scripts/docs` builds: strictly, and without a request to another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "scripts" / "programs" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=SITE,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
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
        loaded = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"?([^\" >]+)", text)
        assert loaded and not [each for each in loaded if re.match(r"(?:https?:)?//", each)], page
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
