"""What the site does with the repository's pages: those outside of docs/ join it, as do those that are made
from the code, and links are led to where pages are.

A page is written to be read in the repository: its links are relative to its own folder there. Links to what is no page
of the site (code, tests) stay as text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from programs import error_list, format_examples

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent

OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "log/README.md": "log/README.md",
    "catalog/README.md": "catalog/README.md",
    "examples/dagster/README.md": "examples/dagster.md",
    "examples/dbt/README.md": "examples/dbt.md",
    "examples/openlineage/README.md": "examples/openlineage.md",
}
"""Pages of the repository outside of docs/, and what they are called on the site."""

_LINK = re.compile(r"(!?\[(?:[^\[\]`]|`[^`]*`|\[[^\]]*\])*\])\(([^()\s]+)\)")
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|`+[^`\n]*`+", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for page in sorted((HERE / "pages").glob("*.md")):
        files.append(File.generated(config, page.name, abs_src_path=str(page)))
    files.append(File.generated(config, "errors.md", content=error_list.page()))
    for name, text in format_examples.documents().items():
        files.append(File.generated(config, f"format/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    on_site = page.file.src_uri
    place = next((source for source, target in OUTSIDE.items() if target == on_site), f"docs/{on_site}")
    return with_links_of_the_site(markdown, place, on_site, {each.src_uri for each in files})


def with_links_of_the_site(text: str, place: str, on_site: str, known: set[str]) -> str:
    """Return the text of a page with its links as the site needs them; those in code stay as they are.

    The page is at `place` in the repository, and called `on_site` on the site, whose pages are `known`.
    """

    def led(found: re.Match[str]) -> str:
        words, link = found.groups()
        path, hash_sign, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        on = OUTSIDE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        if on not in known:
            if not (ROOT / target).exists():
                # mkdocs, which is strict, names it.
                return found[0]
            return words.removeprefix("!")[1:-1]
        return f"{words}({posixpath.relpath(on, posixpath.dirname(on_site) or '.')}{hash_sign}{anchor})"

    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        inside = text.rfind("[", end, code.start())
        if code[0].startswith("`") and inside >= 0 and "]" not in text[inside : code.start()]:
            continue  # a span of code in a link's words
        parts += (_LINK.sub(led, text[end : code.start()]), code[0])
        end = code.end()
    return "".join((*parts, _LINK.sub(led, text[end:])))
