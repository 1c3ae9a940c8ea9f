"""Tables that are Iceberg's at all times: an export in the background after each commit, never within it.

Work that a process does not come to is done after the next commit, by whichever process makes it.
"""

from __future__ import annotations

import logging
import threading

from lakelog.catalog.core.logs import LogCache, TableHead, TrackedLog
from lakelog.catalog.core.state import TableState
from lakelog.catalog.formats.iceberg.exporter import export
from lakelog.log import View
from lakelog.log.errors import LakelogError, NotFound

_LOGGER = logging.getLogger("lakelog.catalog")


class Following:
    """Exports what was committed to tables whose property `lakelog.iceberg` is `on`. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exported: dict[str, int] = {}

    def committed(self, logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> None:
        """Have a new version of such a table exported soon. Costs nothing here."""
        # Each commit asks for itself: one that comes while an export is under way is not in that.
        name = f"version {view.version} of {tracked.log.location}, as an Iceberg table"
        logs.log_options.in_background(name, lambda: self._export(logs, tracked, view))

    def _export(self, logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> None:
        key = f"{tracked.location} {view.log_id}"
        with self._lock:
            if self._exported.get(key, 0) >= view.version:
                return
        try:
            newest = self._newest(tracked)
            if newest is None or newest.log_id != view.log_id:
                # It was dropped meanwhile. Its place may be purged by now, or another table's.
                return
            done = export(TableHead.at_place(logs, tracked, newest))
        except LakelogError as error:
            _LOGGER.warning(
                "%s was not exported for readers of Iceberg, who find an older version: %s",
                tracked.log.location,
                error,
            )
            return
        with self._lock:
            self._exported[key] = max(self._exported.get(key, 0), done.version)

    @staticmethod
    def _newest(tracked: TrackedLog[TableState]) -> View[TableState] | None:
        """Return the newest version of a table; None where it was dropped."""
        try:
            newest = tracked.current()
        except NotFound:
            return None
        return None if newest.sealed else newest
