"""Work that runs in another thread, one piece at a time, while its caller prepares the next piece.

Rule: an error of a piece is raised when the caller hands over the next piece, or waits. It must not know the
work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType

from lakelog.log.costs import TallyThreads


class SideThread:
    """A thread for work, which begins with the first piece. Its work has ended once the block is left."""

    def __init__(self, name: str) -> None:
        self._pool = TallyThreads(1, thread_name_prefix=name)
        self._last: Future[None] | None = None

    def __enter__(self) -> SideThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def run(self, work: Callable[[], None]) -> None:
        """Begin `work` once the previous piece has ended, and raise that piece's error."""
        self.wait()
        self._last = self._pool.submit(work)

    def wait(self) -> None:
        """Return once the last piece has ended; its error is raised, once."""
        last, self._last = self._last, None
        if last is not None:
            last.result()
