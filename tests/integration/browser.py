"""A browser for tests of pages: one that is there already, driven by playwright. Nothing is fetched or installed.

`LAKELOG_TEST_BROWSER` is the path of a Chromium or Chrome; else Debian's is looked for by its paths.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "LAKELOG_TEST_BROWSER"
_PATHS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
"""Tests may run as root and in containers, where Chromium's sandbox does not start. Pages are our own."""


def path_of_browser() -> str:
    """Return the path of the browser; the test that needs it is skipped, with a loud reason, if there is none."""
    given_text = os.environ.get(VARIABLE)
    if given_text:
        assert shutil.which(given_text), f"{VARIABLE} is {given_text}, which is not a program"
        return given_text
    found_path = next((path for path in _PATHS if Path(path).exists()), None)
    if found_path is None:
        pytest.skip(
            f"no browser: pages are not looked at. Install Debian's package chromium, or set {VARIABLE} to a Chromium"
        )
    return found_path


@contextmanager
def browser() -> Iterator[Any]:
    """Start the browser, and end it."""
    path = path_of_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=_SWITCHES)
        try:
            yield started
        finally:
            started.close()


class Looked:
    """A page in a tab, with what went wrong in it and what it requested."""

    def __init__(self, started: Any, place: Path | str, **how: Any) -> None:
        self.tab = started.new_page(**{"viewport": {"width": 1200, "height": 900}, **how})
        self.problems: list[str] = []
        self.requested: list[str] = []
        self.tab.on("console", lambda said: self.problems.append(f"{said.type}: {said.text}"))
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.problems.append("a dialog"), dialog.dismiss()))
        self.tab.on("request", lambda request: self.requested.append(request.url))
        self.tab.goto(place if isinstance(place, str) else place.as_uri())

    def open(self, view: str) -> None:
        self.tab.click(f"#tab-{view}")

    def is_too_wide(self) -> bool:
        """Return whether the page must be scrolled sideways."""
        return bool(self.tab.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def texts(self, selector: str) -> list[str]:
        return [" ".join(text.split()) for text in self.tab.locator(selector).all_inner_texts()]
