"""Whether readers still need a data file that was found missing. Expiry and vacuum may have deleted it.

A file is deleted only after all versions that have it have expired, or their table was purged. So a file is
missed only if a version that is readable now has it.
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
    """Answers for the files of a table.

    At its check, it was the log `log_id`, and `first` was its first version.

    The table is read again, once, if a file is missed.
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
        """Return the paths of all files of the versions that are readable now.

        None stands for all checked files.
        """
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
