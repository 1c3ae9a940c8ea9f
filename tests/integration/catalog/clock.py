"""A clock that tests move, for catalogs in memory whose store has the same one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakelog.catalog import Catalog
from lakelog.log import LogOptions, MemoryStore


class Clock:
    """Goes on by a second with each look, and by more on request."""

    def __init__(self) -> None:
        self.now_us = 1_800_000_000_000_000

    def __call__(self) -> int:
        self.now_us += 1_000_000
        return self.now_us

    def days_later(self, days: float) -> None:
        self.now_us += round(days * 86_400_000_000)

    def govern(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """Be the store's clock too: it corrects writers whose own is far from it."""
        monkeypatch.setattr(MemoryStore, "now_us", lambda store, near="": self.now_us)
        return self

    def client(self, warehouse: str) -> Catalog:
        options = LogOptions(clock_us=self, in_background=at_once)
        return Catalog(warehouse, writer={"engine": "test"}, log_options=options)


def at_once(name: str, work: Callable[[], None]) -> None:
    work()
