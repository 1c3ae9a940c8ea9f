"""Work of a process after its commits: exports for readers of Iceberg, and upkeep.

Rule: a commit costs nothing for it, and never fails by it. The modules that do the work are loaded by the
first commit that may need them.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from lakelog.catalog.core.logs import LogCache, TrackedLog
from lakelog.catalog.core.policies import FAN_IN, is_auto
from lakelog.catalog.core.schema import ICEBERG, ICEBERG_ON, MAINTENANCE, OFF
from lakelog.catalog.core.state import TableState
from lakelog.log import LogView
from lakelog.log.errors import InvalidInput, LakelogError

if TYPE_CHECKING:
    from lakelog.catalog.formats.iceberg import ExportFollower
    from lakelog.catalog.keeping.upkeep import KeepingUp

_LOGGER = logging.getLogger("lakelog.catalog")


class AfterCommit:
    """The work after the commits of a catalog.

    Safe to share between threads. `maintenance` holds for tables without such a property. With off, no table
    gets upkeep.
    """

    def __init__(self, maintenance: str) -> None:
        if maintenance not in MAINTENANCE.choices:
            raise InvalidInput(
                f"maintenance is {maintenance!r}: it must be one of {', '.join(MAINTENANCE.choices)}"
            )
        self._maintenance = maintenance
        self._lock = threading.Lock()
        self._following: ExportFollower | None = None
        self._keeping_up: KeepingUp | None = None
        self._since_s: float | None = None
        """The time of the first version that needs upkeep."""

    def committed(self, logs: LogCache, tracked: TrackedLog[Any], view: LogView[Any]) -> None:
        """Start the work that a new version of a log needs.

        Never raises, because the version is committed.
        """
        try:
            self._begin(logs, tracked, view)
        except Exception:
            # A module cannot be loaded if another release was installed while this process ran.
            _LOGGER.warning(
                "neither exports for readers of Iceberg nor upkeep can begin after version %d of %s, which was "
                "committed: restart this process, and install lakelog again if that does not help",
                view.version,
                tracked.location,
                exc_info=True,
            )

    def _begin(self, logs: LogCache, tracked: TrackedLog[Any], view: LogView[Any]) -> None:
        state = view.state
        if not isinstance(state, TableState) or state.metadata is None or view.sealed:
            return
        if ICEBERG.of(state.metadata.properties) == ICEBERG_ON:
            self._exports().committed(logs, tracked, view)
        if self._is_kept_up(logs, state):
            if self._since_s is None:
                self._since_s = logs.log_options.monotonic_s()
            if view.version % FAN_IN == 0:
                self._upkeep(self._since_s).committed(logs, tracked, view)

    def _is_kept_up(self, logs: LogCache, state: TableState) -> bool:
        try:
            return self._maintenance != OFF and is_auto(logs, state, self._maintenance)
        except LakelogError:  # the link leads nowhere, and a reader of the name reports that
            return False

    def _exports(self) -> ExportFollower:
        from lakelog.catalog.formats.iceberg import ExportFollower

        with self._lock:
            self._following = self._following or ExportFollower()
            return self._following

    def _upkeep(self, since_s: float) -> KeepingUp:
        from lakelog.catalog.keeping.upkeep import KeepingUp

        with self._lock:
            self._keeping_up = self._keeping_up or KeepingUp(self._maintenance, since_s)
            return self._keeping_up
