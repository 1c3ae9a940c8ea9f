"""Tables that are always Iceberg tables too: a background export after each commit, never within it.

If a process does not complete an export, the process that makes the next commit does.
"""

from __future__ import annotations

import logging
import threading

from lakelog.catalog.core.logs import LogCache, TableHead, TrackedLog
from lakelog.catalog.core.state import TableState
from lakelog.catalog.formats.iceberg.exporter import export
from lakelog.log import LogView
from lakelog.log.errors import LakelogError, NotFound

_LOGGER = logging.getLogger("lakelog.catalog")


class ExportFollower:
    """Exports new versions of tables whose property `lakelog.iceberg` is `on`. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exported: dict[str, int] = {}

    def committed(self, logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]) -> None:
        """Schedule the export of a new version of such a table. Makes no request itself."""
        # Each commit schedules an export. A commit during an export is not part of it.
        name = f"version {view.version} of {tracked.log.location}, as an Iceberg table"
        logs.log_options.in_background(name, lambda: self._export(logs, tracked, view))

    def _export(self, logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]) -> None:
        key = f"{tracked.location} {view.log_id}"
        with self._lock:
            if self._exported.get(key, 0) >= view.version:
                return
        try:
            newest = self._newest(tracked)
            if newest is None or newest.log_id != view.log_id:
                # It was dropped after the commit. Its place may be purged, or another table's.
                return
            result = export(TableHead.at_place(logs, tracked, newest))
        except LakelogError as error:
            _LOGGER.warning(
                "%s was not exported for readers of Iceberg, who find an older version: %s",
                tracked.log.location,
                error,
            )
            return
        with self._lock:
            self._exported[key] = max(self._exported.get(key, 0), result.version)

    @staticmethod
    def _newest(tracked: TrackedLog[TableState]) -> LogView[TableState] | None:
        """Return the newest version of a table. None if it was dropped."""
        try:
            newest = tracked.current()
        except NotFound:
            return None
        return None if newest.sealed else newest
