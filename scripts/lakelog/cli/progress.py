"""Progress of long work, on stderr or in a notebook, so that stdout holds the answer alone.

    with Progress() as progress:
        catalog.vacuum(dry_run=False, progress=progress)

Whatever takes a `progress` of lakelog's calls it with a text now and then. Work that is short shows nothing.
"""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Live

from lakelog.catalog.engine import visible
from lakelog.cli.answer import say

EVERY_S = 2.0
"""The time before the first sign of progress, and between two lines."""

_OF = re.compile(r"([\d,]+) of ([\d,]+)")


class Progress:
    """Shows progress, but only if the work takes long. A terminal or a notebook shows a bar; a pipe or a file gets a
    line now and then."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._last = time.monotonic()
        self._live: Live | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar, because the answer itself reports the outcome."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, message: str) -> None:
        if self._live is not None:
            self._show(message)
        elif time.monotonic() - self._last > EVERY_S:
            self._last = time.monotonic()
            if self._console.is_terminal or self._console.is_jupyter:
                self._begin()
                self._show(message)
            else:
                say(f"lakelog: {message}", err=True)

    def _begin(self) -> None:
        columns = (TextColumn("{task.fields[text]}", markup=False), BarColumn(), TimeElapsedColumn())
        self._live = Live(*columns, console=self._console, transient=True)
        self._task = self._live.add_task("", total=None, text="")
        self._live.start()

    def _show(self, message: str) -> None:
        assert self._live is not None
        done_count, total = _counts(message)
        self._live.update(self._task, text=visible(message), completed=done_count, total=total)


def _counts(message: str) -> tuple[int, int | None]:
    """Return how far the work is, if the message says so: `3 of 12` files, versions or tables."""
    match = _OF.search(message)
    if match is None:
        return 0, None
    done_count, total = (int(number.replace(",", "") or 0) for number in match.groups())
    return min(done_count, total), total
