"""The costs of work: requests, bytes, attempts, its threads, and the commits that it makes.

Rule: nothing here changes what happens. If no caller asks, it costs a look at a variable. It must not know
the purpose of the work.
"""

from lakelog.log.costs.noted import NotedCommit, note_commit, noting_commits
from lakelog.log.costs.tally import (
    CostTally,
    asked,
    attempted,
    open_to_read,
    read,
    rebased,
    tallied,
    tally_now,
    waiting,
)
from lakelog.log.costs.threads import TallyThreads

__all__ = [
    "NotedCommit",
    "CostTally",
    "TallyThreads",
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
