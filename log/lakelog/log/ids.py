"""Identifiers: random, so that clients need neither agreement nor a clock.

This module also knows which commit ids may have an earlier try, perhaps of another process. A try is the first if
this process made its id, and has not tried it in the same log. Any other try must not say that nothing happened,
because the PUT of the earlier try may be in the log, or may still arrive. So a process that hands an id to another
process must not be the first to try it later.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from lakelog.log.errors import CommitUnknown, StorageError

ID_LENGTH = 26
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = tuple(range(0, ID_LENGTH * 5, 10))

OWN_IDS_MAX = 4096
"""The number of its newest ids that a process remembers. Older ids may have been tried."""

_tried: OrderedDict[tuple[int, str], tuple[str, ...]] = OrderedDict()
"""The ids that this process made, each with the logs where it was tried. A forked child does not know its parent's."""


def new_id() -> str:
    """Return 130 random bits as 26 characters of lowercase base32."""
    bits = int.from_bytes(os.urandom(17), "big")
    return "".join([_PAIRS[bits >> shift & 1023] for shift in _SHIFTS])


def own_id(commit_id: str) -> str:
    """Return an id that was just made, and remember that it has not been tried."""
    _tried[os.getpid(), commit_id] = ()
    if len(_tried) > OWN_IDS_MAX:
        _tried.popitem(last=False)
    return commit_id


@contextmanager
def trying(commit_id: str, location: str) -> Iterator[None]:
    """Try a commit to a log inside. Unless this is the first try, a StorageError becomes CommitUnknown."""
    key = os.getpid(), commit_id
    locations = _tried.get(key)
    is_first = locations is not None and location not in locations
    if locations is not None and is_first:
        _tried[key] = (*locations, location)
    try:
        yield
    except StorageError as error:
        if is_first:
            raise
        raise CommitUnknown(
            f"it is unknown whether commit {commit_id} to {location} happened in an earlier try, and this try failed: "
            f"{error}; retry with the same commit id",
            commit_id=commit_id,
            location=location,
        ) from error
