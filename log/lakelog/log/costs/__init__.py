"""What work costs: requests, bytes, attempts, the threads that it is done by, and the commits that it makes.

Rule: nothing here changes what happens, and where no one asks, it costs a look at one variable.
It must not know what the work is for.
"""

from lakelog.log.costs.noted import NotedCommit, note_commit, noting_commits
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
    "NotedCommit",
    "Tally",
    "Threads",
    "asked",
    "attempted",
    "note_commit",
    "noting_commits",
    "open_to_read",
    "read",
    "rebased",
    "tallied",
    "tally_now",
    "waiting",
]
