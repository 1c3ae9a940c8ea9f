"""A table's log that takes part in an erasure: what it holds of such rows, and what is said of it.

`is_due` is never taken back: an erasure that has looked too little leaves rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.keeping.erasure.holdings import Held
from lakelog.catalog.keeping.erasure.model import ErasedTable
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.catalog.names import Identifier


@dataclass(slots=True)
class ErasedLog:
    """One table's log that takes part."""

    head: TableHead
    path: Identifier | None
    kind: str
    held: Held
    rows: RowSet | None = None
    is_due: bool = False
    done: ErasedTable = field(init=False)

    def __post_init__(self) -> None:
        state, live = self.head.state, self.held.live
        self.is_due = bool(self.is_due or live or self.held.past or state.erasing)
        self.done = ErasedTable(
            kind=self.kind,
            name=self.head.name,
            location=self.head.url,
            files=len(live),
            rows=sum(live.values()),
            past_files=len(self.held.past),
            versions=self._versions() if self.is_due else 0,
        )

    def _versions(self) -> int:
        return self.head.version - max(self.head.state.expired, 1) + 1

    def must(self) -> None:
        """Its older versions have such rows, though nothing else of it shows that."""
        if not self.is_due:
            self.is_due = True
            self.say(versions=self._versions())

    def say(self, **what: object) -> None:
        self.done = msgspec.structs.replace(self.done, **what)
