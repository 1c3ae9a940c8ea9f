"""Links between the documents lead somewhere, and the files, modules and functions that they name exist."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```$", re.M | re.S)


FILE = re.compile(r"[\w./-]*\w\.(?:py|scala|md|toml|sh)")
NAME = re.compile(r"lakelog\.(?:log|catalog|spark|testing|cli)(?:\.\w+)*")


def tracked_texts() -> list[str]:
    process = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in process.stdout.splitlines() if (ROOT / path).is_file()]


FILES = [f"/{path}" for path in tracked_texts()]


def pages() -> list[str]:
    return [path for path in tracked_texts() if path.endswith(".md")]


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are linked by: small letters and digits, with `-` for spaces."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {
        re.sub(r"[^\w -]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).lower().replace(" ", "-")
        for heading in headings
    }


def broken_texts(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked_parent = page.parent / path if path else page
        if not linked_parent.exists() or (anchor and anchor not in anchors(linked_parent)):
            found.append(target)
    return found


def missing(page: Path) -> list[str]:
    """Return the files, by the ends of their paths, and the dotted names that a page names and that do not exist."""
    spans = re.findall(r"`([^`\n]+)`", CODE.sub("", page.read_text(encoding="utf-8")))
    files = [span for span in spans if FILE.fullmatch(span)]
    names = [span.partition("(")[0] for span in spans if NAME.match(span)]
    return [
        *(file for file in files if not any(path.endswith(f"/{file.lstrip('./')}") for path in FILES)),
        *(name for name in names if NAME.fullmatch(name) and not is_there(name)),
    ]


def is_there(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found_module = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found_module, part):
                return False
            found_module = getattr(found_module, part)
        return True
    return False


@pytest.mark.parametrize("page", pages())
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    assert broken_texts(ROOT / page) == []


@pytest.mark.parametrize("page", pages())
def test_what_a_page_names_exists(page: str) -> None:
    assert missing(ROOT / page) == []


def test_paths_are_below_the_folder_that_a_section_names() -> None:
    sections = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.M)
    of_sections = [(section, re.search(r"Paths are\s+below\s+`([^`]+)`", section)) for section in sections]
    of_folders = [(text, folder[1]) for text, folder in of_sections if folder is not None]
    assert len(of_folders) >= 3
    lost_paths = [
        path
        for section, folder in of_folders
        for path in re.findall(r"`([\w-]+/[\w./-]*)`", section)
        if not any((ROOT / place / path).exists() for place in ("", folder))
    ]
    assert lost_paths == []


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# `One`, and two\n[x](b.md) [y](#one-and-two) [z](#three) [w](https://e.org) [v](a.md#one-and-two)"
    )
    assert broken_texts(page) == ["b.md", "#three"]


def test_a_name_of_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "`log/format.py` `format.pyx` `lakelog.log.nowhere` `lakelog.log.new_id()` `lost/format.py`"
    )
    assert missing(page) == ["lost/format.py", "lakelog.log.nowhere"]
