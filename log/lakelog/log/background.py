"""Threads for work that may be lost: snapshots and hints, after a commit was acknowledged.

At exit the interpreter waits for started work, so no write is cut in the middle. Work that has not started is
not missed. Work is skipped if work of the same name is still under way.
"""

import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_LOGGER = logging.getLogger("lakelog.log")


class BackgroundThread:
    """A thread that starts when there is work. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._under_way: dict[str, Future[None]] = {}
        _all.add(self)

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` soon, unless work of that name is under way. Never raises."""
        with self._lock:
            if name in self._under_way:
                return
            if self._executor is None:
                self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lakelog-snapshots")
            try:
                self._under_way[name] = self._executor.submit(self._run, name, work)
            except RuntimeError:  # the interpreter is shutting down, or this is closed
                return

    def wait(self, timeout_s: float = 60.0) -> None:
        """Return when all work that was handed over before is done."""
        with self._lock:
            futures = list(self._under_way.values())
        for future in futures:
            future.result(timeout_s)

    def close(self) -> None:
        """Accept no more work; started work is completed."""
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(wait=False)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._executor = None
        self._under_way.clear()

    def _run(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            # Nothing depends on it. A missing snapshot costs readers time, and the next snapshot makes up for
            # it.
            _LOGGER.warning(
                "could not write a snapshot of %s; reading it takes longer until one is", name, exc_info=True
            )
        finally:
            with self._lock:
                self._under_way.pop(name, None)


_all: "weakref.WeakSet[BackgroundThread]" = weakref.WeakSet()
_OF_PROCESS = BackgroundThread()

run_in_background = _OF_PROCESS.run


def wait_for_background(timeout_s: float = 60.0) -> None:
    """Return when all work of this process that was handed over before is done."""
    for background in list(_all):
        background.wait(timeout_s)


def _forget_all() -> None:
    """Forget threads and their work, because a forked child has neither."""
    for background in list(_all):
        background._forget()


os.register_at_fork(after_in_child=_forget_all)
