"""The history of a table or a namespace for users: an iterator, which a notebook shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar

from lakelog.catalog.core.logs import OfThisProcess
from lakelog.catalog.core.state import HistoryEntry
from lakelog.catalog.core.tools import ROWS_MAX, HtmlTable, as_html
from lakelog.catalog.times import exact_text, time_us


class History(Iterator[HistoryEntry], OfThisProcess):
    """Changes, the newest first, as an iterator that reads the log lazily.

    A notebook shows the changes that were taken from it. If none was taken, it shows the newest change, which
    takes a round of requests.
    """

    _instead: ClassVar[str] = "give list(…) of it, or the table"

    def __init__(
        self, name: str, entries: Iterator[HistoryEntry], newest: Callable[[], Iterator[HistoryEntry]]
    ) -> None:
        self._name = name
        self._entries = entries
        self._newest = newest
        self._first: list[HistoryEntry] = []

    def __next__(self) -> HistoryEntry:
        entry = next(self._entries)
        if len(self._first) < ROWS_MAX:
            self._first.append(entry)
        return entry

    def _repr_html_(self) -> str:
        from lakelog.catalog.looking.pictures import what

        header = ("version", "time", "what", "user", "engine")
        rows = [
            (
                entry.version,
                exact_text(time_us(entry.committed_at)),
                what(entry),
                entry.writer.get("user"),
                entry.writer.get("engine"),
            )
            for entry in self._first or islice(self._newest(), 1)
        ]
        hint = None if self._first else "the newest change; list(…) reads all of them"
        return as_html(f"History of {self._name}", {"shown": hint}, [HtmlTable(header, rows)])
