"""What work costs: requests, bytes, attempts, and the threads that it is done by.

Rule: nothing here changes what happens, and where no one asks, it costs a look at one variable.
It must not know what the work is for.
"""

from lakelog.log.costs.tally import (
    Tally,
    asked,
    attempted,
    open_to_read,
    read,
    rebased,
    tallied,
    tally_now,
    waiting,
)
from lakelog.log.costs.threads import Threads

__all__ = [
    "Tally",
    "Threads",
    "asked",
    "attempted",
    "open_to_read",
    "read",
    "rebased",
    "tallied",
    "tally_now",
    "waiting",
]
