"""How the site takes in the repository's pages: it adds pages outside of docs/ and pages made from the code.

Pages are written for readers of the repository. Their links are relative to their own folder there, and lead to the
same page of the site. A link to code or tests becomes plain text, because the site has no such page.
"""

from __future__ import annotations

import posixpath
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from programs import error_list, format_examples, operation_list
from programs.site import one_file, search_words

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent

OUTSIDE = {
    "CHANGELOG.md": "CHANGELOG.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "log/README.md": "log/README.md",
    "catalog/README.md": "catalog/README.md",
    "examples/dagster/README.md": "examples/dagster.md",
    "examples/dbt/README.md": "examples/dbt.md",
    "examples/openlineage/README.md": "examples/openlineage.md",
    "examples/reader/README.md": "examples/reader.md",
    "tests/conformance/README.md": "format/conformance.md",
}
"""Pages of the repository outside of docs/, and their names on the site."""

OWN = {f"scripts/programs/site/pages/{path.name}": path.name for path in (HERE / "pages").iterdir()}
"""Pages and files that only the site has."""

ON_SITE = {**OUTSIDE, **OWN, "README.md": "index.md"}
"""The place on the site for a link to a file. README has no page there, so the home page takes its place."""

_LINK = re.compile(r"(!?\[(?:[^\[\]`]|`[^`]*`|\[[^\]]*\])*\])\(([^()\s]+)\)")
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|`+[^`\n]*`+", re.DOTALL | re.MULTILINE)


_texts: dict[str, str] = {}
"""The texts of pages in the current build, by their place on the site."""


def on_config(config: Any) -> Any:
    config.copyright = f"lakelog {metadata.version('lakelog')}, Apache License 2.0."
    _texts.clear()
    return config


def on_files(files: Files, config: Any) -> Files:
    for source, target in {**OUTSIDE, **OWN}.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "errors.md", content=error_list.page()))
    operations = operation_list.page()
    files.append(File.generated(config, "commands-and-procedures.md", content=operations))
    for name, text in format_examples.documents().items():
        files.append(File.generated(config, f"format/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    on_site = page.file.src_uri
    page.meta.update(search_words.settings(on_site))
    own = {target: source for source, target in {**OUTSIDE, **OWN}.items()}
    place = own.get(on_site, f"docs/{on_site}")
    text = with_links_of_the_site(markdown, place, on_site, {file.src_uri for file in files})
    _texts[page.url] = text
    return text


def on_post_build(config: Any) -> None:
    first = [entry for entry in config.nav if isinstance(entry, dict)]
    order = [page.replace("README.md", "index.html").replace(".md", ".html") for page in _pages_of(first)]
    pages = [(url, _texts[url]) for url in order if url in _texts]
    one_file.write(Path(config.site_dir), pages)


def _pages_of(entries: list[Any]) -> list[str]:
    """Return the pages of a part of the navigation, in their order."""
    pages: list[str] = []
    for entry in entries:
        below = list(entry.values())[0] if isinstance(entry, dict) else entry
        pages += _pages_of(below) if isinstance(below, list) else [below]
    return pages


def with_links_of_the_site(text: str, place: str, on_site: str, known: set[str]) -> str:
    """Return the text of a page with its links rewritten for the site. Links in code stay as they are.

    The page's path is `place` in the repository, and `on_site` on the site. `known` are the site's pages.
    """

    def led(found: re.Match[str]) -> str:
        words, link = found.groups()
        path, hash_sign, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        on = ON_SITE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        if on not in known:
            if not (ROOT / target).exists():
                # mkdocs is strict, and reports the broken link.
                return found[0]
            return words.removeprefix("!")[1:-1]
        return f"{words}({posixpath.relpath(on, posixpath.dirname(on_site) or '.')}{hash_sign}{anchor})"

    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        inside = text.rfind("[", end, code.start())
        if code[0].startswith("`") and inside >= 0 and "]" not in text[inside : code.start()]:
            continue  # This code stands in a link's words.
        parts += (_LINK.sub(led, text[end : code.start()]), code[0])
        end = code.end()
    return "".join((*parts, _LINK.sub(led, text[end:])))
