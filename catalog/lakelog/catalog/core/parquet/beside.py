"""Work that goes on beside its caller, one piece at a time: so the caller prepares the next piece meanwhile.

Rule: an error of a piece is raised where the next piece is handed over, or where the caller waits. It must not know
what the work is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType

from lakelog.log.costs import Threads


class Beside:
    """A thread for work, which begins with the first piece. What is under way has ended when the block is left."""

    def __init__(self, name: str) -> None:
        self._pool = Threads(1, thread_name_prefix=name)
        self._last: Future[None] | None = None

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def run(self, work: Callable[[], None]) -> None:
        """Begin `work` once the piece before has ended, whose error is raised."""
        self.wait()
        self._last = self._pool.submit(work)

    def wait(self) -> None:
        """Return when the last piece has ended; its error is raised, once."""
        last, self._last = self._last, None
        if last is not None:
            last.result()
