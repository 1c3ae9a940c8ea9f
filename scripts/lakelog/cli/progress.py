"""Progress of long work: a line on stderr now and then, so that stdout holds the answer alone."""

from __future__ import annotations

import time

from lakelog.cli.answer import say

EVERY_S = 2.0


class Progress:
    """Prints the progress that it is given, but only where the work takes long."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, message: str) -> None:
        if time.monotonic() - self._last > EVERY_S:
            self._last = time.monotonic()
            say(f"lakelog: {message}", err=True)
