"""The outcome of a change whose answer was lost, for a client that retries from another process."""

from __future__ import annotations

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.commits import Token
from lakelog.log.errors import NotFound


def was_committed(logs: LogCache, token: Token) -> bool:
    """Return whether the transaction of `token`, whose coordinator is dead, happened.

    Costs about 2 GETs. Undecided commits are settled first, so that no client decides them later. A
    transaction in a single log is a single PUT. For it, False means that this PUT has not arrived yet; a
    store may still be busy with it.
    """
    for location in sorted(token.bases):
        has_commit = _has_commit(logs, location, token)
        if has_commit is not None:
            # Either all logs of the transaction have its commit, or none has: a single answer is enough.
            return has_commit
    return False


def has_happened(logs: LogCache, token: Token) -> bool:
    """Return `was_committed` for any change, which may be in only some of its token's logs.

    Costs a few GETs for each.
    """
    return any(_has_commit(logs, location, token) for location in sorted(token.bases))


def _has_commit(logs: LogCache, location: str, token: Token) -> bool | None:
    """Return whether the change is in a log, None if there is no such log."""
    log = logs.unread(location).log
    try:
        head = log.refresh_settled(log.load())
    except NotFound:
        return None
    return log.find(token.commit_id, token.bases[location] + 1, head.version) is not None
