"""A table's log in an erasure: the rows to erase that it holds, and the report on it.

`is_due` is never withdrawn: an erasure that checks too little leaves rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.keeping.erasure.holdings import HeldRows
from lakelog.catalog.keeping.erasure.model import ErasedTable
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.catalog.names import Identifier


@dataclass(slots=True)
class ErasedLog:
    """A table's log in an erasure."""

    head: TableHead
    path: Identifier | None
    kind: str
    held: HeldRows
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
        """Mark it as due: its older versions have rows to erase, though nothing else shows that."""
        if not self.is_due:
            self.is_due = True
            self.say(versions=self._versions())

    def say(self, **what: object) -> None:
        self.done = msgspec.structs.replace(self.done, **what)
