"""How long a test waits for what has to happen, before it says that it did not.

The rule: no test depends on how quick the machine is. A wait for what must happen ends as soon as it has happened, and
gives up only after PATIENCE_S, which a machine with sixteen times its load does not reach. `tests/unit/test_house.py`
holds that no test gives up sooner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE_S = 300.0
_PAUSE_S = 0.005


def wait_until(happened: Callable[[], object], what: str = "it") -> None:
    """Return once `happened()` is true; fail after PATIENCE_S."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {PATIENCE_S:.0f} s"
        time.sleep(_PAUSE_S)


def barrier(threads: int) -> threading.Barrier:
    """Return a barrier at which so many threads meet."""
    return threading.Barrier(threads, timeout=PATIENCE_S)
