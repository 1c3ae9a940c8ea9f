"""Where the pages of a namespace's names are read, and what happens where expiry has replaced them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from lakelog.catalog.logs.named_errors import naming
from lakelog.catalog.logs.tracked_log import TrackedLog
from lakelog.catalog.state import NamespaceState
from lakelog.log.errors import NotFound


class NamespacePages:
    """A `PageSource`. It does not keep the log, which keeps it: a catalog that is dropped releases all at once."""

    def __init__(self, read: Callable[[Sequence[str]], list[bytes]]) -> None:
        self._read = read
        self._tracked: weakref.ref[TrackedLog[NamespaceState]] | None = None

    def are_of(self, tracked: TrackedLog[NamespaceState]) -> None:
        self._tracked = weakref.ref(tracked)

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return pages by their names, in one round. NotFound where one has expired."""
        return self._read(names)

    def state_at(self, version: int) -> NamespaceState:
        """Return the state of a version, read anew. NotFound where it has expired: then the log is loaded anew when it
        is used the next time."""
        tracked = None if self._tracked is None else self._tracked()
        if tracked is None:
            raise NotFound("pages of a namespace have expired, and its catalog was closed: open it again")
        try:
            with naming(tracked.log.location):
                return tracked.log.view_at(version).state
        except NotFound:
            tracked.forget()
            raise
