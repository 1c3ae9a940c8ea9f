"""One thread for work that may be lost: snapshots and hints, after a commit was acknowledged.

The interpreter waits at exit for what was begun, so no write is cut in the middle; what was not begun is not
missed. Work of the same name that is still waiting makes further work of that name superfluous.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_LOGGER = logging.getLogger("lakelog.log")
_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None
_under_way: dict[str, "Future[None]"] = {}


def run_in_background(name: str, work: Callable[[], None]) -> None:
    """Run `work` soon in another thread, unless work of that name is under way. Never raises."""
    global _executor
    with _lock:
        if name in _under_way:
            return
        if _executor is None:
            _executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lakelog-snapshots")
        try:
            _under_way[name] = _executor.submit(_run, name, work)
        except RuntimeError:  # the interpreter is shutting down
            return


def wait_for_background(timeout_s: float = 60.0) -> None:
    """Return when all work that was handed over before is done."""
    with _lock:
        waiting = list(_under_way.values())
    for future in waiting:
        future.result(timeout_s)


def _forget() -> None:
    """A forked child has neither the thread nor its work."""
    global _executor, _lock
    _lock = threading.Lock()
    _executor = None
    _under_way.clear()


os.register_at_fork(after_in_child=_forget)


def _run(name: str, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        # Nothing depends on it: a missing snapshot costs readers time, and the next one makes up for it.
        _LOGGER.warning(
            "could not write a snapshot of %s; reading it takes longer until one is", name, exc_info=True
        )
    finally:
        with _lock:
            _under_way.pop(name, None)
