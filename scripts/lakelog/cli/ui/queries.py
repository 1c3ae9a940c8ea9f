"""Queries of the pages, in turn. A query ends if it is cancelled, or takes too long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from lakelog.catalog import Catalog
from lakelog.cli.contents import Kept, QueryResult, query_result
from lakelog.log.errors import InvalidInput

SECONDS_MAX = 60
_INTERRUPT_EVERY_S = 0.2
_END_S = 5


class RunningQueries:
    """Runs queries over a warehouse. Safe to share between threads."""

    def __init__(self, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._slot = threading.Lock()
        self._lock = threading.Lock()
        self._running: _RunningQuery | None = None

    def run(
        self,
        catalog: Catalog,
        sql: str,
        id: str,
        limit: int,
        keep: Callable[[Iterator[tuple[Any, ...]]], Kept],
        cell_max: int | None = None,
    ) -> QueryResult[Kept]:
        """Answer a query (see `query_result`).

        Raises InvalidInput for a mistake in it, if another query runs, and if it is cancelled or too slow.
        """
        if not self._slot.acquire(blocking=False):
            raise InvalidInput("another query is running: wait for it, or cancel it where it was begun")
        query = _RunningQuery(id, self._seconds_max)
        with self._lock:
            self._running = query
        try:
            return query_result(catalog, sql, limit, keep, cell_max=cell_max, began=query.watch)
        except InvalidInput:
            if query.reason:
                raise InvalidInput(query.reason) from None
            raise
        finally:
            query.end()
            with self._lock:
                self._running = None
            self._slot.release()

    def cancel(self, id: str) -> None:
        """End the query of this id, if it still runs."""
        with self._lock:
            if self._running is not None and self._running.id == id:
                self._running.stop("the query was cancelled")

    def close(self) -> None:
        """End the query that runs, and wait for its end."""
        with self._lock:
            if self._running is not None:
                self._running.stop("the server has ended")
        if self._slot.acquire(timeout=_END_S):
            self._slot.release()


class _RunningQuery:
    """A query, with a thread that interrupts DuckDB if the query must end. It does so again and again, because an
    interruption between two statements has no effect."""

    def __init__(self, id: str, seconds_max: float) -> None:
        self.id = id
        self.reason = ""
        self._seconds_max = seconds_max
        self._stopped, self._ended = threading.Event(), threading.Event()

    def stop(self, reason: str) -> None:
        self.reason = reason
        self._stopped.set()

    def end(self) -> None:
        self._ended.set()
        self._stopped.set()

    def watch(self, interrupt: Callable[[], None]) -> None:
        threading.Thread(target=self._watch, args=(interrupt,), daemon=True).start()

    def _watch(self, interrupt: Callable[[], None]) -> None:
        if not self._stopped.wait(self._seconds_max):
            self.reason = (
                f"the query took more than {self._seconds_max:g} seconds: ask for less, or use lakelog sql"
            )
        while not self._ended.is_set():
            with suppress(Exception):  # it may be closed by now
                interrupt()
            self._ended.wait(_INTERRUPT_EVERY_S)
