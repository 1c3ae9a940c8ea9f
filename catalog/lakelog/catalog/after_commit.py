"""What a process does beside its writes, after them: exports for readers of Iceberg, and upkeep.

Rule: a commit costs nothing for it. What does the work is loaded when the first table asks for it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lakelog.catalog.core.logs import LogCache, TrackedLog
from lakelog.catalog.core.policies import is_auto
from lakelog.catalog.core.schema import ICEBERG, ICEBERG_ON, MAINTENANCE, OFF, value_of
from lakelog.catalog.core.state import TableState
from lakelog.log import View
from lakelog.log.errors import InvalidInput, LakelogError

if TYPE_CHECKING:
    from lakelog.catalog.formats.iceberg import Following
    from lakelog.catalog.keeping.upkeep import KeepingUp


class AfterCommit:
    """What follows the commits of one catalog. Safe to share between threads.

    `maintenance` holds for tables for which no property does; with off, none is looked after.
    """

    def __init__(self, maintenance: str) -> None:
        if maintenance not in MAINTENANCE.choices:
            raise InvalidInput(
                f"maintenance is {maintenance!r}: it must be one of {', '.join(MAINTENANCE.choices)}"
            )
        self._maintenance = maintenance
        self._lock = threading.Lock()
        self._following: Following | None = None
        self._keeping_up: KeepingUp | None = None

    def committed(self, logs: LogCache, tracked: TrackedLog[Any], view: View[Any]) -> None:
        """Have done soon what a new version of a log asks for."""
        state = view.state
        if not isinstance(state, TableState) or state.metadata is None or view.sealed:
            return
        if value_of(state.metadata.properties, ICEBERG) == ICEBERG_ON:
            self._exports().committed(logs, tracked, view)
        if self._is_kept_up(logs, state):
            self._upkeep().committed(logs, tracked, view)

    def _is_kept_up(self, logs: LogCache, state: TableState) -> bool:
        try:
            return self._maintenance != OFF and is_auto(logs, state, self._maintenance)
        except LakelogError:  # a link that leads nowhere: a reader of the name reports that
            return False

    def _exports(self) -> Following:
        from lakelog.catalog.formats.iceberg import Following

        with self._lock:
            self._following = self._following or Following()
            return self._following

    def _upkeep(self) -> KeepingUp:
        from lakelog.catalog.keeping.upkeep import KeepingUp

        with self._lock:
            self._keeping_up = self._keeping_up or KeepingUp(self._maintenance)
            return self._keeping_up
