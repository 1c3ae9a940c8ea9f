"""Whether a data file that was found missing is one that readers still need: expiry and vacuum may have been there.

A file is deleted only after all versions that have it have expired, or their table was purged. So a file is missed only
where a version that can be read now has it.
"""

from __future__ import annotations

import threading
from typing import Any

from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.state import TableState
from lakelog.catalog.keeping.maintenance.reachable import first_readable, paths, reachable
from lakelog.log.errors import LakelogError, StorageError
from lakelog.log.leftovers import last_base_from


class StillNeeded:
    """Says it of the files of one table, which was read when it was the log `log_id`, and `first` its first version.

    The table is read again, once, when the first file is missed.
    """

    def __init__(self, tracked: TrackedLog[TableState], log_id: str, first: int) -> None:
        self._tracked = tracked
        self._log_id = log_id
        self._first = first
        self._lock = threading.Lock()
        self._needed: Any = _UNREAD

    def __call__(self, path: str) -> bool:
        with self._lock:
            if self._needed is _UNREAD:
                self._needed = self._read()
            return self._needed is None or path in self._needed

    def _read(self) -> set[str] | None:
        """Return the paths of all files that versions which can be read now have; None for all that were checked."""
        try:
            log = self._tracked.log
            view = log.load()
            if view.purged or view.log_id != self._log_id:
                return set()
            if first_readable(last_base_from(log, view)) == self._first:
                return None
            return paths(reachable(self._tracked, view.version))
        except StorageError:
            raise
        except LakelogError:
            return None


_UNREAD = object()
