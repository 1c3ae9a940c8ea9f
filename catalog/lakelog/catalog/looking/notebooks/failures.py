"""Errors while a notebook's display is made: a line each, without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelog.log.errors import PermissionDenied, StorageError
from lakelog.log.secrets import masked


class DisplayFailures:
    """The errors of the parts of a display.

    If the store failed, the next part makes no request, because each attempt may take long.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_store_down = False

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Inside, an error ends this part of the display only."""
        try:
            yield
        except Exception as error:  # Whatever it is, a notebook shows the other parts.
            self.is_store_down = isinstance(error, StorageError) and not isinstance(error, PermissionDenied)
            self.lines.append(f"{name}: {error_line(error)}")


def error_line(error: Exception) -> str:
    """Return an error as a line without secrets."""
    return " ".join(masked(f"{type(error).__name__}: {error}").split())
