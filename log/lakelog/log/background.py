"""Threads for work that may be lost: snapshots and hints, after a commit was acknowledged.

The interpreter waits at exit for what was begun, so no write is cut in the middle; what was not begun is not
missed. Work of the same name that is still waiting makes further work of that name superfluous.
"""

import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_LOGGER = logging.getLogger("lakelog.log")


class Background:
    """One thread, which begins when there is work. Safe to share between threads."""

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
            except RuntimeError:  # the interpreter is shutting down, or it is closed
                return

    def wait(self, timeout_s: float = 60.0) -> None:
        """Return when all work that was handed over before is done."""
        with self._lock:
            waiting = list(self._under_way.values())
        for future in waiting:
            future.result(timeout_s)

    def close(self) -> None:
        """Take no more work; what was begun is completed."""
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
            # Nothing depends on it: a missing snapshot costs readers time, and the next one makes up for it.
            _LOGGER.warning(
                "could not write a snapshot of %s; reading it takes longer until one is", name, exc_info=True
            )
        finally:
            with self._lock:
                self._under_way.pop(name, None)


_all: "weakref.WeakSet[Background]" = weakref.WeakSet()
_OF_PROCESS = Background()

run_in_background = _OF_PROCESS.run


def wait_for_background(timeout_s: float = 60.0) -> None:
    """Return when all work of this process that was handed over before is done."""
    for each in list(_all):
        each.wait(timeout_s)


def _forget_all() -> None:
    """A forked child has neither the threads nor their work."""
    for each in list(_all):
        each._forget()


os.register_at_fork(after_in_child=_forget_all)
